"""Does anybody meet a lazy array after the call that made it?

Values that a function puts into objects of others, whatever the way, are real arrays there.
"""

import builtins
import collections
import dataclasses
import functools
import gc
import heapq
import itertools
import operator
import types
import typing

import numpy as np
import pytest
import ufuse
from ufuse import _core

BACKENDS = ["compiled"]

X = np.ones(3)


@dataclasses.dataclass
class Record:
    value: object


class Kept:
    history: typing.ClassVar = []

    def __setitem__(self, key, value):
        self.value = value


class Slotted:
    __slots__ = ("value",)


KEPT, SLOTTED, SPACE, LIST, DICT = Kept(), Slotted(), types.SimpleNamespace(), [], {}
MODULE = types.ModuleType("module_with_a_table")
MODULE.table = {}
PUSH = LIST.append


def default(x, seen=[]):  # noqa: B006
    seen.append(x * 2)


def by_subscript(kept, x):
    kept["k"] = x * 2


def logged(x):
    return x


logged.log = []


def local(x):
    put = LIST.append
    put(x * 2)


STORES = {
    "list of a class": (lambda x: Kept.history.append(x * 2), lambda: Kept.history[-1]),
    "table of a module": (
        lambda x: MODULE.table.__setitem__("k", x * 2),
        lambda: MODULE.table["k"],
    ),
    "list of a function": (lambda x: logged.log.append(x * 2), lambda: logged.log[-1]),
    "unbound": (lambda x: list.append(LIST, x * 2), lambda: LIST[-1]),
    "bound": (lambda x: PUSH(x * 2), lambda: LIST[-1]),
    "bound by a local name": (local, lambda: LIST[-1]),
    "mapped": (lambda x: list(map(LIST.append, [x * 2])), lambda: LIST[-1]),
    "heap": (lambda x: heapq.heappush(LIST, x.sum()) if not LIST.clear() else 0, lambda: LIST[-1]),
    "operator": (lambda x: operator.iconcat(LIST, [x * 2]) and None, lambda: LIST[-1]),
    "setattr": (lambda x: builtins.setattr(SPACE, "value", x * 2), lambda: SPACE.value),
    "slot": (lambda x: builtins.setattr(SLOTTED, "value", x * 2), lambda: SLOTTED.value),
    "default argument": (default, lambda: default.__defaults__[0][-1]),
    "an argument itself": (lambda x: PUSH(x), lambda: LIST[-1]),
    "key": (lambda x: DICT.update({x.sum(): 1}), lambda: list(DICT)[-1]),
}


@pytest.mark.parametrize("name", STORES)
def test_stores(name):
    function, stored = STORES[name]
    native = ufuse.jit(function)
    for _ in range(3):
        native(X)
        assert isinstance(stored(), (np.ndarray, np.generic))
        assert "ufuse" not in str(type(stored()))


ARGUMENTS = {
    "deque": (collections.deque(), lambda q, x: q.append(x * 2), lambda q: q[-1]),
    "ordered": (
        collections.OrderedDict(),
        lambda d, x: d.__setitem__("k", x * 2),
        lambda d: d["k"],
    ),
    "with a subscript of its own": (KEPT, by_subscript, lambda kept: kept.value),
    "default": (
        collections.defaultdict(list),
        lambda d, x: d["k"].append(x * 2),
        lambda d: d["k"][-1],
    ),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name):
    given, function, stored = ARGUMENTS[name]
    ufuse.jit(function)(given, X)
    assert type(stored(given)) is np.ndarray


RESULTS = {
    "dataclass": (lambda x: Record(x * 2), lambda r: r.value),
    "namespace": (lambda x: types.SimpleNamespace(a=x * 2), lambda r: r.a),
    "partial": (lambda x: functools.partial(np.add, x * 2), lambda r: r.args[0]),
    "key": (lambda x: {x.sum(): 1}, lambda r: next(iter(r))),
    "set": (lambda x: {(x.sum(), 1)}, lambda r: next(iter(r))[0]),
    "iterator": (lambda x: iter([x * 2]), next),
    "chain": (lambda x: itertools.chain([x * 2]), next),
    "proxy": (lambda x: types.MappingProxyType({"a": x * 2}), lambda r: r["a"]),
    "bound method": (lambda x: (x * 2).sum, lambda r: r.__self__),
    "default argument": (lambda x: (lambda y: lambda a=y: a)(x * 2), lambda r: r()),
    "exception": (lambda x: ValueError(x * 2), lambda r: r.args[0]),
    "shared variable": (lambda x: (lambda y: (lambda: y, lambda: y * 2))(x * 2), lambda r: r[0]()),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results(name):
    function, inside = RESULTS[name]
    found, wanted = inside(ufuse.jit(function)(X)), inside(function(X))
    assert type(found) is type(wanted)
    np.testing.assert_array_equal(found, wanted)


CONTAINERS = {
    "tuple": lambda x: (x * 2, x.sum()),
    "tuple in a tuple": lambda x: ((x * 2, 1), x.sum()),
    "list": lambda x: [x * 2, x.sum()],
    "list in a tuple": lambda x: ([x * 2], x.sum()),
    "dict": lambda x: {1: x * 2, x.sum(): 3},
    "deque": lambda x: collections.deque([x * 2, x.sum()]),
    "set": lambda x: {x.sum(), x[0] * np.nan, 2},
    "frozenset": lambda x: frozenset([x.sum(), x[0] * np.nan, 2]),
    "set of tuples": lambda x: {(x.sum(), x[1] * 2), 3},
    "caller's array": lambda x: x,
}


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS)
def test_one_object_in_two_places(make):
    def function(kept, x):
        kept.value = made = make(x)
        return made

    plain, jitted = types.SimpleNamespace(), types.SimpleNamespace()
    wanted = function(plain, X)
    found = ufuse.jit(function)(jitted, X)
    assert found is jitted.value
    assert type(found) is type(wanted)
    if isinstance(found, (set, frozenset)):  # NaNs have the places of their addresses
        assert all(each in found for each in found)
        assert sorted(map(repr, found)) == sorted(map(repr, wanted))
    else:
        assert repr(found) == repr(wanted)


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS)
def test_identities(make):
    def function(x):
        made = make(x)
        told = id(made)
        others = [make(x) for _ in range(20)]  # they do not take its address
        return id(made) == told, told, made, len({id(each) for each in [made, *others]})

    native = ufuse.jit(function)
    for _ in range(3):
        is_same, told, made, count = native(X)
        assert is_same
        assert told == id(made)
        assert count == function(X)[-1]


def test_identities_of_the_callers_own():
    def function(given):
        return [id(each) for each in (given, *given, given[0][0])]

    given = ([X, 1], {"a": X}, (X, X))
    native = ufuse.jit(function)
    for _ in range(3):
        assert native(given) == function(given)


def test_closures_share_their_variables():
    def function(x):
        total = x.sum()

        def add(y):
            nonlocal total
            total += y

        return add, lambda: total

    add, total = ufuse.jit(function)(X)
    add(5)
    assert total() == 8.0


def test_raised():
    def function(x):
        LIST.append(x * 2)
        raise ValueError(x + 1)

    with pytest.raises(ValueError, match="2") as caught:
        ufuse.jit(function)(X)
    assert type(caught.value.args[0]) is np.ndarray
    np.testing.assert_array_equal(LIST[-1], X * 2)


def test_what_only_a_traceback_holds_is_not_searched_for(monkeypatch):
    def function(x):
        y = x * 2
        raise ValueError(f"no {y.shape}")

    native = ufuse.jit(function)
    searched = []
    monkeypatch.setattr(_core, "holders_of", lambda lazies: searched.append(lazies) or [])
    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            native(X)
    assert searched == []


def of_lists(xs, outs):
    return [np.add(*xs, out=tuple(outs)), {"sum": xs[0] + outs[0]}]


def refused(xs, outs):
    held = {"inner": [xs, (outs, xs[0] * 2)]}
    return held["inner"][1][1].reshape(7, 7)


@pytest.mark.parametrize(
    ("function", "out"),
    [(of_lists, np.zeros(3)), (of_lists, np.zeros(3, np.int8)), (refused, np.zeros(3))],
    ids=["results", "an error of NumPy's", "an error after both"],
)
def test_calls_that_leave_nothing_look_for_nobody(function, out, monkeypatch):
    """Finding who holds an array takes a look at each object of the process: tens of ms, often."""
    monkeypatch.setattr(_core, "holders_of", lambda _: pytest.fail("looked"))
    native = ufuse.jit(function)
    for _ in range(3):
        try:
            native((X, X), [out.copy()])
        except (ValueError, TypeError):
            continue


def test_a_container_that_the_traceback_holds_and_somebody_else_too():
    def f(xs):
        held = [xs[0] * 2]
        LIST.append(held)
        raise ValueError("kept")

    native = ufuse.jit(f)
    for _ in range(3):
        with pytest.raises(ValueError, match="kept") as raised:
            native([X])
        assert type(LIST[-1][0]) is np.ndarray
        assert (LIST[-1][0] == 2).all()
        del raised


@pytest.mark.parametrize("young", [0, 1, 2])
@pytest.mark.parametrize("operations", [0, 1, 2, 3, 4])
def test_whoever_holds_it_is_found_however_old(young, operations):
    """The objects made last are looked at first, and the others if these are not all."""

    def f(x, kept):
        y = x + 1
        kept.extend([y])
        new = [[y] for _ in range(young)]
        return g(y, *(each[0] for each in new)), y * 2, new

    def g(y, *others):
        return y * len(others)

    kept = []
    gc.collect()  # it is old now
    native = ufuse.jit(f)
    for number in range(1, 4):
        with _core.most_operations(operations):
            total, twice, new = native(X, kept)
        assert (total == (X + 1) * young).all()
        assert (twice == (X + 1) * 2).all()
        assert len(kept) == number
        for each in [*kept, *(each[0] for each in new)]:
            assert type(each) is np.ndarray
            assert each.tobytes() == (X + 1).tobytes()


@pytest.mark.parametrize("operations", [1, 2, 3, 4, 5])
def test_arguments_that_are_held_by_a_tuple(operations):
    """Of a call with a star, which are found twice: as arguments, and in the tuple."""

    def f(x, kept):
        y = x + 1
        kept.extend([y])
        given = (y, kept, x)
        return g(*given)

    def g(y, kept, x):
        z = x * 2
        return z + y, list(map(type, kept))

    kept = []
    gc.collect()  # it is old now
    native = ufuse.jit(f)
    for number in range(1, 4):
        with _core.most_operations(operations):
            z, kinds = native(X, kept)
        assert z.tobytes() == (X * 2 + (X + 1)).tobytes()
        assert kinds == [np.ndarray] * number


@pytest.mark.parametrize("raises", [False, True])
def test_all_objects_are_not_looked_at_where_the_latest_hold_it(monkeypatch, raises):
    """Nor where it is a variable only, as where a loop goes on natively.

    What an older exception holds, as the last one of a notebook does, is not looked for.
    """

    def bad(x):
        y = x * 2
        return nowhere + y  # noqa: F821

    if raises:
        with pytest.raises(NameError) as kept:
            ufuse.jit(bad)(np.arange(3.0))
        gc.collect()
        assert kept.traceback

    def f(x):
        y = x + 1
        total = 0.0
        for i in range(len(x)):
            total = total + y[i]
        return total

    looks = []
    asked = gc.get_objects
    monkeypatch.setattr(gc, "get_objects", lambda *age: looks.append(age) or asked(*age))
    native = ufuse.jit(f)
    before = _core.choose_programs(eager=True)
    try:
        for size in (60, 600, 6_000):
            x = np.arange(float(size))
            assert native(x) == f(x)
        assert "native_loop" in {note.reason for note in native.explain(x).notes}
    finally:
        _core.choose_programs(*before)
    assert () not in looks
