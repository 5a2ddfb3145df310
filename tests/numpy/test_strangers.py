"""Does code without call sites see memory as it is, and is what it writes seen?

An operator's method, a generator that goes on, a callback of compiled code and a finalizer run in
the middle of a traced call without being called by name. What was written before must be there,
what was read before must have been read before, and nothing that they write may be missed.
"""

import copy
import dataclasses
import functools
import operator
import pickle
import pprint
import sysconfig
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import ufuse
from numpy.testing import assert_raises

BACKENDS = ["compiled"]


class Held:
    """Somebody's object on the caller's memory."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __setitem__(self, index: Any, value: Any) -> None:
        self.data[index] = value

    def __getitem__(self, index: Any) -> Any:
        return self.data[index]

    def __add__(self, other: Any) -> Any:
        return self.data + other

    def __rmul__(self, other: Any) -> Any:
        return other * self.data

    def __iadd__(self, other: Any) -> Any:
        self.data += other
        return self

    def __neg__(self) -> Any:
        return -self.data

    def __lt__(self, other: Any) -> Any:
        return self.data < other

    def __iter__(self) -> Iterator[Any]:
        return iter(self.data.tolist())

    def __contains__(self, value: Any) -> bool:
        return bool((self.data == value).any())

    def __bool__(self) -> bool:
        return bool(self.data[0] > 0)

    def __len__(self) -> int:
        return int(self.data[0])

    def __index__(self) -> int:
        return int(self.data[0]) % 4

    def __format__(self, spec: str) -> str:
        return f"{self.data[0]}"

    def __enter__(self) -> Any:
        return self.data.copy()

    def __exit__(self, *exc_info: Any) -> None:
        self.data[0] = 100.0

    @property
    def first(self) -> float:
        return float(self.data[0])

    @first.setter
    def first(self, value: float) -> None:
        self.data[0] = value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return float(self.data[0])

    def __matmul__(self, other: Any) -> Any:
        self.data[:] = 7.0
        return 0.0


def sums(x: Any) -> Iterator[Any]:
    """A generator that holds the caller's array."""
    for _ in range(3):
        yield x.sum()


def doubles(x: Any) -> Iterator[None]:
    """A generator that writes to it."""
    while True:
        yield
        x *= 2


def reads_in_a_generator(x: Any, held: Any) -> Any:
    found = []
    for total in sums(x):
        found.append(total)
        x[:] = x + 1
    return found


def writes_in_a_generator(x: Any, held: Any) -> Any:
    steps = doubles(x)
    next(steps)
    y = x + 1
    next(steps)
    z = x + 1
    next(steps)
    return y, z, x + 1


def sets_an_item(x: Any, held: Any) -> Any:
    y = x * 2
    held[0] = 5.0
    return y, x + 1


def gets_an_item(x: Any, held: Any) -> Any:
    x[:] = x + 1
    y = held[1:]
    x[:] = x + 1
    return y, held[0]


def adds(x: Any, held: Any) -> Any:
    x[:] = x + 1
    y = held + 1
    x[:] = x + 1
    return y, 2.0 * held, -held


def adds_in_place(x: Any, held: Any) -> Any:
    y = x * 2
    held += 1
    return y, x * 2


def multiplies(x: Any, held: Any) -> Any:
    y = x * 2
    held @ 1
    return y, x * 2


def compares(x: Any, held: Any) -> Any:
    x[:] = x + 1
    y = held < 2
    x[:] = x + 1
    return y, held < 3, 3.0 in held


def goes_round(x: Any, held: Any) -> Any:
    x[:] = x + 1
    y = [v for v in held]
    x[:] = x + 1
    a, b, *c = held
    return y, a, b, c


def asks_truth(x: Any, held: Any) -> Any:
    x[:] = x - 10
    a = 1 if held else 2
    x[:] = x + 20
    return a, 1 if held else 2, not held, len(held), bool(held)


def indexes(x: Any, held: Any) -> Any:
    x[:] = x + 1
    a = [10, 20, 30, 40][held]
    x[:] = x + 1
    return a, [10, 20, 30, 40][held]


def formats(x: Any, held: Any) -> Any:
    x[:] = x + 1
    text = f"{held}"
    x[:] = x + 1
    return text, f"{held}"


def enters(x: Any, held: Any) -> Any:
    x[:] = x + 1
    with held as inside:
        y = x + inside
    return y, x + 1


def asks_an_attribute(x: Any, held: Any) -> Any:
    x[:] = x + 1
    a = held.first
    x[:] = x + 1
    return a, held.first, held.anything


def sets_an_attribute(x: Any, held: Any) -> Any:
    y = x * 2
    held.first = 50.0
    return y, x * 2


def is_called_back(x: Any, held: Any) -> Any:
    x[:] = x + 1
    order = sorted(held.data.tolist(), key=functools.partial(distance, held))
    x[:] = x * 3
    return order, sorted([3.0, 1.0], key=functools.partial(distance, held))


def distance(held: Any, value: float) -> float:
    return abs(value - held.data[1])


def gives_numpy_a_function(x: Any, held: Any) -> Any:
    y = x * 2

    def shown(step: int) -> Any:
        return np.ndarray(3, buffer=y, strides=step)

    assert_raises(ValueError, shown, -8)
    return shown(8)


doubled = ufuse.jit(lambda x: x * 2)
in_a_list = ufuse.jit(lambda x: [x * 2, x.sum()])


def calls_jitted_functions(x: Any) -> Any:
    for made in (doubled(x), *in_a_list(x)):
        yield made, type(made) in (np.ndarray, np.float64)


def gets_results_of_jitted_functions(x: Any, held: Any) -> Any:
    y = x + 1
    return [made for made in calls_jitted_functions(y)]


FUNCTIONS: list[Callable[..., Any]] = [
    *(reads_in_a_generator, writes_in_a_generator, sets_an_item, gets_an_item, adds),
    *(adds_in_place, multiplies, compares, goes_round, asks_truth, indexes, formats, enters),
    *(asks_an_attribute, sets_an_attribute, is_called_back),
    *(gives_numpy_a_function, gets_results_of_jitted_functions),
]


def outcome(function: Callable[..., Any]) -> Any:
    x = np.arange(4.0)
    result = function(x, Held(x))
    return repr(result), x.tolist()


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_memory_is_what_it_would_be_for(function: Callable[..., Any]) -> None:
    jitted = ufuse.jit(function)
    for _ in range(4):
        assert outcome(jitted) == outcome(function)


DYING = """
class Dying:
    def __init__(self, data, seen):
        self.data, self.seen = data, seen

    def __del__(self):
        self.seen.append(self.data.tolist())
"""


# Installed packages lie below the folder of Python's own library, which may run at any time.
@pytest.mark.parametrize("file", [__file__, sysconfig.get_path("stdlib") + "/site-packages/a.py"])
def test_a_finalizer_sees_what_was_written(file: str) -> None:
    namespace: dict[str, Any] = {}
    exec(compile(DYING, file, "exec"), namespace)
    seen: list[Any] = []

    def f(x: Any, holder: Any) -> Any:
        x[:] = x + 1
        holder.data = None
        return x * 2

    for function in (f, ufuse.jit(f)):
        x = np.arange(3.0)
        function(x, Held(namespace["Dying"](x, seen)))
    assert seen == [[1.0, 2.0, 3.0]] * 2


def test_an_exception_in_a_stranger_is_the_users() -> None:
    class Raising:
        def __neg__(self) -> Any:
            raise ValueError("no")

    def f(x: Any, raising: Any) -> Any:
        x[:] = x + 1
        try:
            return -raising
        except ValueError as error:
            return str(error), x * 2

    x, y = np.arange(3.0), np.arange(3.0)
    assert repr(ufuse.jit(f)(x, Raising())) == repr(f(y, Raising()))
    assert x.tobytes() == y.tobytes()


LOG: list[Any] = []


def test_what_was_shown_is_written_at_once() -> None:
    def f(x: Any, held: Any) -> Any:
        y = x * 2
        LOG.append(y)
        y[...] = y + 1
        with held:
            y[...] = y + x
        y[...] = y * 2 + 1
        return x + 1

    kept = []
    for function in (f, ufuse.jit(f), ufuse.jit(f)):
        LOG.clear()
        x = np.arange(3.0)
        function(x, Held(x))
        kept.append((type(LOG[0]), LOG[0].tolist()))
    assert kept[0] == kept[1] == kept[2]


def test_frames_are_not_watched_afterwards() -> None:
    import sys

    def f(x: Any) -> Any:
        return x + 1

    ufuse.jit(f)(np.arange(3.0))
    depth = sys.getrecursionlimit() - 100

    def deep(n: int) -> int:
        return 0 if n == 0 else deep(n - 1)

    assert deep(depth // 2) == 0


@dataclasses.dataclass
class Row:
    data: Any


# Python's own functions that come to arrays through an object.
LOOKS = [
    lambda row: copy.deepcopy(row).data,
    lambda row: copy.copy(row).data + 0,
    lambda row: copy.deepcopy([row, row.data])[0].data,
    lambda row: copy.deepcopy(vars(row))["data"],
    lambda row: pickle.loads(pickle.dumps(row)).data,
    lambda row: dataclasses.asdict(row)["data"],
    lambda row: dataclasses.astuple(row)[0],
    lambda row: dataclasses.replace(row).data + 0,
    lambda row: operator.attrgetter("data")(row) * 2,
    lambda row: repr(row),
    lambda row: repr(types.SimpleNamespace(**vars(row))),
    lambda row: pprint.pformat(row),
    lambda row: f"{row}",
]


@pytest.mark.parametrize("look", LOOKS)
def test_who_looks_into_an_object_sees_what_was_written(look: Callable[..., Any]) -> None:
    def function(row: Any, x: Any) -> Any:
        x += 1
        return look(row)

    x, y = np.linspace(-1, 2, 6), np.linspace(-1, 2, 6)
    expected, found = function(Row(x), x), ufuse.jit(function)(Row(y), y)
    assert type(found) is type(expected)
    np.testing.assert_equal(found, expected)
    assert x.tobytes() == y.tobytes()


def namespace(x: Any) -> types.SimpleNamespace:
    return types.SimpleNamespace(data=x, size=1)


# Python compares these without asking anybody, but for their parts.
COMPARED = [
    lambda a, b: (a, b),
    lambda a, b: ([a], [b]),
    lambda a, b: ((1, a), (1, b)),
    lambda a, b: ({"k": [a]}, {"k": [b]}),
]


@pytest.mark.parametrize("wrap", COMPARED)
def test_objects_that_are_compared_show_what_was_written(wrap: Callable[..., Any]) -> None:
    def same(x: Any, a: Any, b: Any) -> Any:
        y = a.data
        y += x
        left, right = wrap(a, b)
        return left == right, left != right, y

    def literal(x: Any, a: Any, b: Any) -> Any:
        a.data[:] = a.data + x
        return [a] == [b], a in [b], a == b, a in (1, b)

    def later(x: Any, a: Any, b: Any) -> Any:
        return a == changed(x, a, b)

    def changed(x: Any, a: Any, b: Any) -> Any:
        y = a.data
        y += x
        return b

    for function in (same, literal, later):
        jitted = ufuse.jit(function)
        for second in (3.0, 4.0, 3.0):
            args = [
                (np.ones(1), namespace(np.array([2.0])), namespace(np.array([second])))
                for _ in range(2)
            ]
            assert repr(function(*args[0])) == repr(jitted(*args[1]))
            assert repr(args[0]) == repr(args[1])
