"""Is what is pending there for everything that looks at an array's memory, and what that writes?

Memoryviews, flat iterators, `nditer`, pointers, buffers that arrays share with others, generators of
random numbers that fill an array: each is used before, between and after operations that wait.
"""

import array
import ctypes
import datetime
import decimal
import functools
import io
import statistics
import struct
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import ufuse
from same import check, same

WHOLE = np.arange(6.0)
VIEW = memoryview(WHOLE)
PYTHONS = array.array("d", range(6))
BUFFER = bytearray(48)


def global_memoryview(x: Any) -> Any:
    WHOLE[:] = x
    y = WHOLE * 2
    VIEW[0] = 5.0
    z = WHOLE + 1
    WHOLE[1] = 8.0
    return y, z, VIEW[1], VIEW.tolist()


def pythons_array(x: Any) -> Any:
    shared = np.frombuffer(PYTHONS)
    shared[:] = x
    y = shared * 2
    PYTHONS[0] = 5.0
    z = shared + 1
    shared[1] = 8.0
    return y, z, PYTHONS[1], list(PYTHONS)


def shared_bytes(x: Any) -> Any:
    shared = np.frombuffer(BUFFER)
    shared[:] = x
    y = shared * 2
    BUFFER[7] ^= 64
    z = shared + 1
    shared[1] = 8.0
    return y, z, BUFFER[15], bytes(BUFFER)


def memoryview_of_data(x: Any) -> Any:
    y, m = x * 2, x.data
    m[0] = 7.0
    z = x + 1
    x[1] = 9.0
    return y, z, m[1], bytes(m)


def made_memoryview(x: Any) -> Any:
    y, m = x * 2, memoryview(x)
    m[0] = 3.0
    z = x + 1
    x[1] = 9.0
    return y, z, m[1], m.tolist(), bytearray(x + 1)


def flat_iterator(x: Any) -> Any:
    y, flat = x * 2, x.flat
    flat[0] = 7.0
    z = x + 1
    x[1] = 9.0
    return y, z, flat[1], list(flat), np.asarray(flat)


def iterates_over_operands(x: Any) -> Any:
    y = x * 2
    for v in np.nditer(x, op_flags=["readwrite"]):
        v[...] = v + 1
    return y, x * 3


def pointer(x: Any) -> Any:
    y = x * 2
    p = x.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    p[0] = 8.0
    z = x + 1
    x[2] = 4.0
    return y, z, p[2]


def interface(x: Any) -> Any:
    y = x * 2
    place = x.__array_interface__
    ctypes.c_double.from_address(place["data"][0]).value = 7.0
    z = x + y
    return y, z, place["shape"], place["typestr"], getattr(x, "no_attribute_of_arrays", None)


def strided(x: Any) -> Any:
    y = x * 2
    v = np.lib.stride_tricks.as_strided(x, (3,), (16,))
    v[0] = 5
    z = x + 1
    x[2] = 1.0
    return y, z, v + 0


def exchanged(x: Any) -> Any:
    y, d = x * 2, np.from_dlpack(x)
    x[0] = 9.0
    return y, d + 1


def bytes_swapped(x: Any) -> Any:
    y = x * 2
    x.byteswap(True)
    z = x + 1
    x.byteswap(inplace=True)
    return y, z, x


def other_shape_and_type(x: Any) -> Any:
    y = x * 2
    x.shape = (2, 3)
    z = x + 1
    x.dtype = np.int64
    return y, z, x + 1


def elements_set_in_order(x: Any) -> Any:
    y = x * 2
    y.flat = abs(x) * 0.75
    w = y[1:]
    w.flat = 3.0
    x.flat = y + 1
    return y, w, x.sum(), y.real


def attributes_that_cannot_be_set(x: Any) -> Any:
    y, told = x * 2, []
    for name in ("T", "nothing", "size", "flags"):
        for each in (y, y.sum()):
            try:
                setattr(each, name, 3)
            except AttributeError as error:
                told.append(str(error))
    try:
        del y.flat
    except AttributeError as error:
        told.append(str(error))
    return y, told


def resized(x: Any) -> Any:
    y = x * 2
    y.resize(9, refcheck=False)
    z = y + 1
    y[-1] = 4.0
    return y, z, y.sum()


def read_only(x: Any) -> Any:
    y, z = x * 2, x.copy()
    x.setflags(write=False)
    z.setflags(write=False)
    for each in (x, z):
        try:
            each[0] = 1
        except ValueError as error:
            y = y + len(str(error))
    return y, z, x.flags.writeable, z.flags.writeable


def shuffles(x: Any) -> Any:
    rng = np.random.default_rng(3)
    y = x * 2
    rng.shuffle(x)
    z = x + 1
    shuffle = rng.shuffle
    shuffle(z)
    np.random.default_rng(4).permuted(y, out=y)
    return y, x * 2, z - 1


def draws_into(x: Any) -> Any:
    y, rng = x * 2, np.random.default_rng(3)
    rng.random(out=x)
    z = x + 1
    rng.standard_normal(**{"out": z})
    return y, x * 2, z - 1


def methods_of_classes(x: Any) -> Any:
    total = np.ndarray.sum
    real, transposed = np.ndarray.real.__get__(x + 1j), np.ndarray.T.__get__(x * 2)
    return (
        real,
        transposed,
        total(x * 2),
        np.ndarray.__add__(x, x),
        list(map(total, [x, x + 1])),
        float.__add__(1.0, 2),
    )


def strict_types(x: Any) -> Any:
    class_ = decimal.Decimal
    return class_(x[0]), datetime.timedelta(seconds=x.sum()), float(x[1]), class_(float(x.max()))


class Holder:
    """Attributes that are called as those of arrays that show their memory."""

    def __init__(self, x: Any) -> None:
        self.data, self.flat, self.ctypes = x, x + 1, 3.0

    def shuffle(self) -> Any:
        self.data = self.data[::-1] * self.ctypes
        return self


def attributes_of_other_objects(x: Any) -> Any:
    holder = Holder(x * 2)
    for name in ("base", "like"):
        setattr(holder, name, holder.shuffle().data + holder.flat)
    bases = [getattr(holder, name) for name in ("base", "like")]
    for name in ("flat", "like"):
        delattr(holder, name)
    return holder.data, bases[0] * 2, bases, sorted(vars_of(holder))


def vars_of(holder: Any) -> Any:
    return holder.__dict__


FUNCTIONS = [
    *(global_memoryview, pythons_array, shared_bytes, memoryview_of_data, made_memoryview),
    *(flat_iterator, iterates_over_operands, pointer, interface, strided, exchanged, bytes_swapped),
    *(other_shape_and_type, resized, read_only, shuffles, draws_into, methods_of_classes),
    *(strict_types, attributes_of_other_objects, elements_set_in_order),
    attributes_that_cannot_be_set,
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_memory(function: Callable[..., Any]) -> None:
    jitted = ufuse.jit(function)
    for k in range(3):
        check(function, np.arange(6.0) + k, _jitted=jitted)


def test_names_alone_leave_nothing_to_numpy() -> None:
    def function(holder: Any, x: Any) -> Any:
        return (np.sqrt(holder.data + holder.flat) * holder.ctypes + x).sum()

    found = ufuse.jit(function).explain(Holder(np.ones(3)), np.ones(3))
    assert found.mode == "traced"
    assert found.groups


class Keeper:
    """An object with such a view in an attribute."""

    def __init__(self) -> None:
        self.view = VIEW


KEEPER, VIEWS, BY_NAME = Keeper(), [VIEW], {"view": VIEW}
FLAT, RECORDS = WHOLE.flat, WHOLE.view([("value", "f8")])
NUMBERS = (ctypes.c_double * 6).from_buffer(WHOLE)
SHOWN = np.ma.masked_array(WHOLE, copy=False)


def in_a_loop() -> Any:
    total = 0.0
    for each in VIEW:
        total += each
    return total


def in_a_loop_over_an_attribute() -> Any:
    found = []
    for i, each in enumerate(KEEPER.view):
        found.append((i, each))
    for each in VIEWS[0]:
        found.append(each)
    return found


def taken_apart() -> Any:
    a, *b = VIEW
    (c, _, *_), [d, *_] = KEEPER.view, VIEWS[0]
    return a, b, c, d


def matched() -> Any:
    match VIEW:
        case [first, *_]:
            return first


def from_the_beginning() -> Any:
    return [float(each) for each in WHOLE.flat], float(FLAT[1])


READERS = [
    in_a_loop,
    in_a_loop_over_an_attribute,
    taken_apart,
    matched,
    from_the_beginning,
    lambda: (list(VIEW), tuple(VIEW), bytes(VIEW), bytearray(VIEW)),
    lambda: [e for e in VIEW] + [e + 1 for e in KEEPER.view if e > 1],
    lambda: (sum(VIEW), max(VIEW), min(VIEW), sorted(VIEW)),
    lambda: (all(VIEW), any(VIEW), 3.0 in VIEW),
    lambda: (VIEW.tolist(), VIEW.tobytes(), VIEW.hex(), VIEW[1:3].tolist()),
    lambda: (KEEPER.view.tolist(), VIEWS[0].tobytes(), BY_NAME["view"].hex()),
    lambda: (list(map(float, VIEW)), list(zip(VIEW, VIEW, strict=True)), list(reversed(VIEW))),
    lambda: {k: v for k, v in zip("abc", VIEW, strict=False)},
    lambda: ([*VIEW], [*KEEPER.view], (*VIEWS[0],)),
    lambda: VIEW == memoryview(np.arange(6.0) * 2 + 1),  # noqa: SIM300
    lambda: (struct.unpack("6d", VIEW), io.BytesIO(VIEW).read(), b"".join([VIEW])),
    lambda: (statistics.mean(VIEW), VIEW.__len__(), VIEW.__getitem__(1)),
    lambda: (next(iter(VIEW)), memoryview(VIEW)[0], VIEW.cast("B")[3]),
    lambda: (np.array(VIEW), np.asarray(VIEW).sum(), np.add(VIEW, 1), np.sum(VIEW)),
    lambda: (np.stack([VIEW, VIEW]), np.array([VIEW, VIEW[::-1]]), np.array(VIEWS) * 2),
    lambda: np.array([1.0, 2, 3, 4, 5, 6]) + VIEW,
    lambda: (list(NUMBERS), [e for e in NUMBERS], NUMBERS[:2], sum(NUMBERS)),
    lambda: (list(RECORDS), RECORDS.tolist(), [e[0] for e in RECORDS]),
    lambda: (list(SHOWN), SHOWN.tolist(), [float(e) for e in SHOWN], float(sum(SHOWN))),
    lambda: (str(VIEW[0]), f"{VIEW[1]}", f"{NUMBERS[2]:.1f}", hash(bytes(VIEW[:2]))),
]


def read_later(a: Any, k: float, read: Callable[[], Any]) -> Any:
    a *= 2.0
    a += k
    return read()


def read_while_writing(a: Any, k: float, read: Callable[[], Any]) -> Any:
    first = iter(VIEW)
    a *= 2.0
    a += k
    seen = [next(first), read()]
    a[1] = k
    a[2:] *= a[1:-1]
    return seen, next(first), read()


@pytest.mark.parametrize("function", [read_later, read_while_writing])
def test_looks_by_names(function: Callable[..., Any]) -> None:
    def called(f: Callable[..., Any], k: float) -> Any:
        WHOLE[:] = np.arange(6.0)
        return f(WHOLE, k, read)

    for read in READERS:
        jitted = ufuse.jit(function)
        for k in (1.0, 2.0, 3.0):
            expected = called(function, k)
            same(called(jitted, k), expected, f"reader {READERS.index(read)}, {k}")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_functions_of_numpy_that_look() -> None:
    modules = (np, getattr(np.lib, "array_utils", np))
    bounds = next(found for module in modules if (found := getattr(module, "byte_bounds", None)))
    x = np.arange(6.0)
    jitted, as_pointer = ufuse.jit(bounds), ufuse.jit(np.ctypeslib.as_ctypes)
    for _ in range(3):
        same(jitted(x), bounds(x))
        same(jitted(x[::-2]), bounds(x[::-2]))
        assert list(as_pointer(x)) == x.tolist()


def weakly_held(x: Any) -> Any:
    y = x * 2
    held, view = weakref.ref(y), y[1:]
    del y
    kept = held() is not None
    del view
    return kept, held() is None


def weak_values(x: Any) -> Any:
    table: Any = weakref.WeakValueDictionary(a=x + 1)
    before = len(table)
    table["b"] = y = x + 2
    return before, len(table), y


@pytest.mark.parametrize("function", [weakly_held, weak_values])
def test_weak_references(function: Callable[..., Any]) -> None:
    check(function, np.arange(4.0))


def test_arrays_without_elements() -> None:
    def f(n: int) -> Any:
        x = np.ndarray((n,), bool, np.zeros(3, np.uint8))
        return x.__array_interface__["shape"], x.ctypes.data % 1

    for n in (0, 2, 0):
        check(f, n)


class Changed:
    """Changes an array where a block ends."""

    def __init__(self, x: Any, name: str, value: Any) -> None:
        self.x, self.name, self.value = x, name, value

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        setattr(self.x, self.name, self.value)


def set_by_block(x: Any, name: str, value: Any) -> None:
    with Changed(x, name, value):
        pass


def set_by_text(x: Any, name: str, value: Any) -> None:
    exec(f"x.{name} = value", {"x": x, "value": value})


def set_by_partial(x: Any, name: str, value: Any) -> None:
    list(map(functools.partial(setattr, x, name), [value]))


def set_here(x: Any, name: str, value: Any) -> None:
    if name == "shape":
        x.shape = value
    else:
        x.dtype = value


SETTERS = [set_here, setattr, object.__setattr__, set_by_block, set_by_text, set_by_partial]
LAYOUTS = [("shape", (3, 2)), ("shape", (1, 6)), ("dtype", "i8"), ("dtype", ">f8"), ("dtype", "S8")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "value"), LAYOUTS)
@pytest.mark.parametrize("setter", SETTERS)
def test_layouts_that_others_change(setter: Callable[..., Any], name: str, value: Any) -> None:
    def of_given(x: Any) -> Any:
        y = x + 1
        setter(x, name, value)
        known = x.shape, x.strides, x.dtype, x.ndim, x.size, x.itemsize, x.nbytes
        return known, y, x.T, x[:1], x if value == "S8" else x * 3

    def of_made(x: Any) -> Any:
        y = x * 2
        part = y[1:]
        setter(y, name, value)
        part += 1
        y[:1] = y[1:2]
        return y.shape, y.dtype, part, y, x if value == "S8" else y + 1

    for f in (of_given, of_made):
        jitted = ufuse.jit(f)
        for _ in range(4):
            check(f, np.arange(6.0), _jitted=jitted)


def test_bytes_of_objects() -> None:
    def f(x: Any) -> Any:
        return x.__sizeof__(), object.__sizeof__(x), (x * 2).sum().__sizeof__()

    check(f, np.arange(6.0))


VALUES = {
    "array": lambda x: x * 2,
    "0-d array": lambda x: np.asarray(x.sum()),
    "float": lambda x: x.sum(),
    "truth": lambda x: (x > 1).any(),
    "integer": lambda x: (x > 1).sum(),
    "complex number": lambda x: (x * 1j).sum(),
}
NAMES = sorted({*dir(np.ndarray), *dir(np.float64), *dir(np.complex128), "nothing"} - {"mT"})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", VALUES.values(), ids=VALUES)
def test_attributes_are_those_of_the_real_object(make):
    def attributes(x):
        value = make(x)
        found = []
        for name in NAMES:
            attribute = getattr(value, name, None)
            found.append((name, hasattr(value, name), attribute is None, callable(attribute)))
        return found

    assert ufuse.jit(attributes)(np.arange(3.0)) == attributes(np.arange(3.0))


def test_a_scalar_has_no_method_of_arrays():
    def f(x):
        with pytest.raises(AttributeError) as caught:
            _ = x.sum().partition
        return str(caught.value)

    assert ufuse.jit(f)(np.arange(3.0)) == f(np.arange(3.0))
