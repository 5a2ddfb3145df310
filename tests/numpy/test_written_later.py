"""Does whoever was given an array see what is written to it later?

Values of traced code need no memory before somebody looks at them, and a value that is overwritten
as a whole needs none at all. That is over once others may hold the array.
"""

import collections
import ctypes
import functools
import itertools
import weakref

import numpy as np
import pytest
import ufuse
from same import same

BACKENDS = ["compiled"]


class Slotted:
    __slots__ = ("__weakref__", "array")


class Meant:
    """Its operators are no part of the trace."""

    def __init__(self):
        self.array = None

    def __iadd__(self, array):
        self.array = array
        return self

    def __setitem__(self, key, array):
        self.array = array


class Pair(ctypes.Structure):
    _fields_ = [("array", ctypes.py_object)]


slotted, meant, queue, pair = Slotted(), Meant(), collections.deque(), Pair()
kept = {}
last = None


def by_slot(z):
    slotted.array = z
    return lambda: slotted.array


def by_setattr(z):
    setattr(slotted, "array", z)  # noqa: B010
    return lambda: slotted.array


def by_function_of_attributes(z):
    object.__setattr__(slotted, "array", z)
    return lambda: slotted.array


def by_operator(z):
    other = meant
    other += z
    return lambda: meant.array


def by_item(z):
    meant[0] = z
    return lambda: meant.array


def by_queue(z):
    queue.append(z)
    return lambda: queue[-1]


def by_structure(z):
    pair.array = z
    return lambda: pair.array


def by_dict(z):
    kept["array"] = [z]
    return lambda: kept["array"][0]


def by_partial(z):
    f = functools.partial(np.asarray, z)
    queue.append(f)
    return lambda: queue[-1]()


def by_iterator(z):
    queue.append(itertools.repeat(z))
    return lambda: next(queue[-1])


def by_memoryview(z):
    queue.append(memoryview(z))
    return lambda: np.asarray(queue[-1])


def by_interface(z):
    queue.append(z.__array__())
    return lambda: queue[-1]


def by_base(z):
    queue.append(z[1:].base)
    return lambda: queue[-1]


def by_pointer(z):
    queue.append((z.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), z.__array_interface__))
    return lambda: np.ctypeslib.as_array(queue[-1][0], (6,))


def by_view(z):
    slotted.array = z[::-1]
    return lambda: slotted.array


def by_weak_dict(z):
    table = weakref.WeakKeyDictionary()
    table[slotted] = z
    queue.append(table)
    return lambda: queue[-1][slotted]


def by_global(z):
    global last
    last = z
    return lambda: last


def by_nonlocal(z):
    held = None

    def hold():
        nonlocal held
        held = z

    hold()
    return lambda: held


def by_closure(z):
    def held():
        return z

    queue.append(held)
    functools.reduce(lambda _, each: kept.update(array=held()), [0, 1])
    return lambda: kept["array"]


WAYS = [each for name, each in list(globals().items()) if name.startswith("by_")]


def minimum_at(z):
    np.minimum.at(z[::2], [0, 0, 1], z[:3])


def changed_in_place(z):
    z *= 2


def sorted_then_filled(z):
    z.sort()
    z.fill(3)


def accumulated(z):
    np.add.accumulate(z[::-1], out=z[::-1])


def chosen(z):
    z[z > 3] = 1


def at_positions(z):
    z[np.array([0, 0, 1])] += 1


def both(z):
    z += 1
    z[1:] = z[:-1] * 2


def again(z):
    z[:] = z + 1
    z[...] = np.sqrt(z)


WRITES = [
    lambda z: np.put(z, [0, 1], 5.0),
    lambda z: np.putmask(z, z > 3, 5.0),
    lambda z: np.place(z, z > 3, [1, 2]),
    lambda z: np.put_along_axis(z, np.array([0, 0, 1]), 5.0, 0),
    lambda z: np.copyto(z, 2.0, where=z > 3),
    lambda z: np.add(z, 1, out=z),
    lambda z: np.clip(z, 2, 3, out=z),
    lambda z: np.cumsum(z, out=z),
    lambda z: np.add.reduce(z.reshape(2, 3), axis=1, out=z[:2]),
    lambda z: np.take(z, [0, 0], out=z[:2], mode="clip"),
    lambda z: np.matmul(z.reshape(2, 3), np.eye(3) * 2, out=z.reshape(2, 3)),
    lambda z: np.add.at(z, np.array([0, 0, 1]), 5.0),
    lambda z: np.subtract.at(z, [0, 0, 1], 3.0),
    lambda z: np.negative.at(z, [0, 0, 1]),
    lambda z: np.add.at(z, z > 3, 5),
    lambda z: np.add.at(z.reshape(2, 3), ([0, 1], [1, 1]), 5),
    lambda z: np.nan_to_num(z, copy=False, nan=1.0),
    lambda z: np.fill_diagonal(z.reshape(2, 3), 8),
    lambda z: np.random.default_rng(0).shuffle(z),
    lambda z: z.partition(2),
    lambda z: z.fill(3),
    lambda z: z.byteswap(inplace=True),
    lambda z: z.put([0, 1], 3.0),
    lambda z: z.__setitem__(slice(None), 4.0),
    lambda z: z.flat.__setitem__(2, 8),
    lambda z: z.view("i8").__setitem__(slice(2), 5),
    lambda z: z.T[::-1].__setitem__(slice(1, 3), 7),
    minimum_at,
    changed_in_place,
    sorted_then_filled,
    accumulated,
    chosen,
    at_positions,
    both,
    again,
]


def shown_then_written(a, show, write):
    z = a * 2.0
    look = show(z)
    write(z)
    seen = np.sin(z)
    z += 1
    return look, seen


@pytest.mark.parametrize("show", WAYS)
def test_what_is_written_later_is_seen(show):
    for write in WRITES:
        jitted = ufuse.jit(shown_then_written)
        for k in range(2):
            a = np.arange(6.0)[::-1] + k
            look, theirs = shown_then_written(a, show, write)
            expected = np.array(look())
            queue.clear()
            look, ours = jitted(a, show, write)
            same(np.array(look()), expected, f"{WRITES.index(write)}, {write.__name__}")
            same(ours, theirs)
            queue.clear()
