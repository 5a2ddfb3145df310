"""Does ``_core``'s replay of a recorded call give what tracing it again would give?

The dispatcher alone, without twins and guards of the package; test_replay.py asks the same of
jitted functions.
"""

import threading
import warnings

import numpy as np
import pytest
import ufuse
from lazy import assert_same, traced
from ufuse import _core

BACKENDS = ["compiled"]


def dispatcher(function, guards=()):
    return _core.Dispatcher(lambda *args: traced(function, *args), guards)


def test_replay_gives_what_tracing_gives():
    calls = []

    def function(x, y, a, s):
        calls.append(1)
        z = x * y + a
        return z, z[1:], z.sum(), x, y[0], s * 2, (z * s)[:, 0]

    replayed = dispatcher(function)
    for seed in range(4):
        r = np.random.default_rng(seed)
        args = (r.normal(size=(3, 4)), r.normal(size=4), 2.5, np.float64(seed))
        assert_same(replayed(*args), function(*args))
        calls.pop()
    assert len(calls) == 1
    assert replayed.counts == (3, 1, 1)
    got = replayed(*args)
    assert got[3] is args[0]
    assert got[1].base is got[0]
    args = (r.normal(size=(5, 4)), *args[1:])
    assert_same(replayed(*args), function(*args))
    assert replayed.counts[1] == 2


def test_replay_writes_arguments():
    def add_into(x, y):
        x += y
        return x

    replayed = dispatcher(add_into)
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=(3, 4))
        expected = x + 2
        result = replayed(x, 2)
        assert result is x
        assert_same(x, expected)
    y = np.arange(8.0)
    replayed(y[:5], y[3:])  # overlapping: traced each time


def test_replay_goes_the_way_that_a_value_steers():
    def function(x):
        return x + 1 if x.sum() > 0 else x - 1

    replayed = dispatcher(function)
    for sign in (1, -1, 1, -1):
        assert_same(replayed(np.full(3, 2.0 * sign)), np.full(3, 3.0 * sign))
    assert replayed.counts == (2, 2, 2)


def test_replay_warns():
    replayed = dispatcher(lambda x: 1 / x)
    replayed(np.ones(3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        replayed(np.zeros(3))
    assert [str(w.message) for w in caught] == ["divide by zero encountered in divide"]
    with np.errstate(divide="ignore"), warnings.catch_warnings(record=True) as caught:
        replayed(np.zeros(3))
    assert not caught


def test_replay_drops_plans_when_a_guard_changes():
    names = {"factor": 2.0}
    replayed = dispatcher(lambda x: x * names["factor"], [(names, "factor", names["factor"])])
    x = np.ones(3)
    assert_same(replayed(x), x * 2)
    assert_same(replayed(x), x * 2)
    names["factor"] = 3.0
    assert_same(replayed(x), x * 3)


def test_replay_tells_values_of_numbers_apart():
    replayed = dispatcher(lambda x, n, flag: (x[n:] * n, x + 1 if flag else x))
    x = np.arange(5.0)
    for n, flag in ((1, True), (2, True), (1, False), (1, True), (True, 1)):
        assert_same(replayed(x, n, flag), (x[n:] * n, x + 1 if flag else x))


def test_calls_are_answered_by_the_faster_way(by_clock):
    """Which way has its turn when is tested in tests/cpp/tracer/test_ledger.cpp."""
    calls = {"plain": 0}

    def plain(x):
        calls["plain"] += 1
        return x + 1

    def slow(x):
        calls["plain"] += 1
        for _ in range(20_000):
            pass
        return x + 1

    x = np.arange(3.0)
    for function in (plain, slow):
        replayed = _core.Dispatcher(
            lambda x: traced(lambda x: x + 1, x), [], lambda function=function: function
        )
        calls["plain"] = 0
        for _ in range(200):
            assert_same(replayed(x), x + 1)
        found = replayed.stats()
        assert found["plain"] == calls["plain"]
        assert found["replayed"] + found["plain"] + found["traced"] == 200
        if function is slow:
            assert not replayed.prefers_plain(x)
            assert calls["plain"] < 20, "it is looked at ever more rarely"


def polynomials(x, points):
    d = x[:, None] - points
    return ((((((d * d + 1) * d + 2) * d + 3) * d + 4) * d + 5) * d + 6).sum(axis=1)


@pytest.mark.parametrize(
    ("function", "arguments", "asked"),
    [
        (polynomials, (np.zeros(600_000), np.arange(20.0)), False),
        (lambda x: x + 1, (np.zeros(9_000_000),), True),
    ],
    ids=["whose loops win", "whose loops do not"],
)
def test_the_plain_function_with_large_arrays(function, arguments, asked, unwatched, by_clock):
    """It may need much memory, and is asked only where it might be faster."""
    calls = []

    def plain(*args):
        calls.append(args)
        return function(*args)

    replayed = _core.Dispatcher(lambda *args: traced(function, *args), [], lambda: plain)
    for _ in range(12):
        replayed(*arguments)
    assert bool(calls) == asked


def test_calls_that_cannot_be_replayed_are_answered_by_the_faster_way(unwatched, by_clock):
    calls = {"traced": 0, "plain": 0}

    def trace(x):
        calls["traced"] += 1
        return traced(lambda x: x + 1, x)

    def plain(x):
        calls["plain"] += 1
        return x + 1

    tracing = _core.Dispatcher(trace, None, lambda: plain)
    assert not tracing.records
    x = np.arange(3.0)
    for number in range(1, 100):
        assert_same(tracing(x), x + 1)
        assert sum(calls.values()) == number, "each call runs once, one way or the other"
        assert tracing.counts == (0, calls["traced"], 0)
    assert tracing.prefers_plain(x), "tracing one addition costs more"
    assert tracing.stats()["plain"] == calls["plain"] > 80
    alone = _core.Dispatcher(trace, None)
    for _ in range(25):
        alone(x)
    assert not alone.prefers_plain(x)
    assert alone.counts == (0, 25, 0)


def test_calls_that_are_handed_on_unseen_are_looked_at_when_they_take_long(unwatched, by_clock):
    def function(x):
        return x + 1

    tracing = _core.Dispatcher(lambda x: traced(function, x), None, lambda: function)
    x = np.arange(3.0)
    for _ in range(100):
        tracing(x)
    assert tracing.prefers_plain(x)
    before = tracing.counts[1]
    large = np.zeros(1_000_000)
    for _ in range(2):
        assert_same(tracing(large), large + 1)
    # A busy machine may have ended the row before.
    assert tracing.counts[1] - before in (1, 2), "only the first is handed on, as one of a row"


class Grid:
    """What calls are made of in which no array is used at all: attributes and numbers."""

    def __init__(self):
        self.resolution = 0.5
        self.left = 2.0
        self.u = np.zeros(50)

    def position(self, index, lower):
        return lower + index * self.resolution

    def corner(self, i, j):
        return self.position(i, self.left), self.position(j, self.left)

    def row(self, start, many):
        return self.u[start:] * 2 + many if many > 5 else many


def test_calls_without_loops_are_left_to_python_whatever_their_numbers(unwatched, by_clock):
    position, corner = ufuse.jit(Grid.position), ufuse.jit(Grid.corner)
    grid = Grid()
    for i in range(3_000):
        assert position(grid, i % 600, 0.5) == Grid.position(grid, i % 600, 0.5)
        assert corner(grid, i % 600, i) == Grid.corner(grid, i % 600, i)
    for function in (position, corner):
        found = function.stats()
        assert found.replayed == 0
        assert found.traced < 20
        assert found.traced + found.plain == 3_000
        assert found.choices[0].way == "plain"


def test_calls_with_thousands_of_objects_are_left_to_numpy(unwatched, by_clock):
    """Where there are more than a signature holds, no call is replayed."""

    def total(arrays):
        return sum(each * 2.0 for each in arrays)

    jitted = ufuse.jit(total)
    many = [np.ones(3) for _ in range(5_000)]
    assert_same(jitted(many), total(many))
    found = jitted.stats()
    assert (found.traced, found.plain) == (0, 1)


def test_calls_with_loops_are_recorded_after_many_without(unwatched, by_clock):
    row = ufuse.jit(Grid.row)
    grid = Grid()
    grid.u = np.zeros(100_000)
    for i in range(3):  # the loops of all that follows: compiling them is not what is timed here
        ufuse.jit(Grid.row).warmup(grid, i, 7)
    for i in range(100):
        assert row(grid, i, 1) == 1
    for i in range(100, 4_000):
        assert_same(row(grid, i % 3, 7), Grid.row(grid, i % 3, 7))
    assert row.stats().replayed > 0


class Node:
    def __init__(self, x):
        self.x = np.full(3, x)
        self.cost = x


def test_a_list_that_grows_is_not_always_new(unwatched, by_clock):
    def nearest(nodes, x):
        for node in nodes:
            node.cost = float(np.abs(node.x - x).sum())
        return min(range(len(nodes)), key=lambda i: nodes[i].cost)

    jitted = ufuse.jit(nearest)
    nodes, x = [], np.ones(3)
    for i in range(300):
        nodes.append(Node(float(i % 17)))
        assert jitted(nodes, x) == nearest(nodes, x)
    found = jitted.stats()
    assert found.traced + found.plain == 300
    assert found.traced < 40


def test_the_regret_of_a_function_is_bounded(unwatched, by_clock):
    """Also where it raises, writes to its argument, and never sees a signature twice."""

    def many(x):
        held = {"x": x}  # so that the loop does not go natively
        for i in range(len(x)):
            held["x"][i] = held["x"][i] + 1
        raise ValueError("the end")

    native = ufuse.jit(many)
    with pytest.raises(ValueError, match="the end"):
        ufuse.jit(many).warmup(np.zeros(3))  # compiling is not what is timed here
    for size in range(3000, 3100):
        x = np.zeros(size)
        with pytest.raises(ValueError, match="the end"):
            native(x)
        assert x.tobytes() == np.ones(size).tobytes()
    found = native.stats()
    assert found.plain > 50
    assert found.traced + found.plain == 100
    assert 0 < found.regret < 0.5
    assert found.choices[0].way == "plain"


def test_choices_by_chance_give_the_same():
    """As everybody else who asks for it, tests can have every way mixed with every other."""
    x = np.arange(12.0)

    def add_into(x, y):
        x += y
        return np.sqrt(x), x

    before = _core.choose_by("5")
    try:
        native = ufuse.jit(add_into)
        for number in range(60):
            ours, theirs = x.copy(), x.copy()
            assert_same(native(ours, number)[0], add_into(theirs, number)[0])
            assert_same(ours, theirs)
        found = native.stats()
        assert found.replayed > 10
        assert found.plain > 10
    finally:
        _core.choose_by(before)
    with pytest.raises(ValueError, match="'clock', 'ours' or a number, not 'me'"):
        _core.choose_by("me")


def test_calls_without_loops_to_run_are_plain(by_clock):
    calls = {"traced": 0, "plain": 0}
    factor = None

    def trace(x):
        calls["traced"] += 1
        return traced(lambda x: x.argsort() if factor is None else x.argsort() * factor, x)

    def plain(x):
        calls["plain"] += 1
        return x.argsort()

    tracing = _core.Dispatcher(trace, None, lambda: plain)
    huge = np.linspace(1, 0, 200_000)
    for _ in range(40):
        assert_same(tracing(huge), huge.argsort())
    assert calls["traced"] == 3, "the first, the 16th and the 32nd call"
    assert tracing.prefers_plain(huge)
    factor = 1  # from now on there is a loop
    for _ in range(24):
        assert_same(tracing(huge), huge.argsort())
    assert not tracing.prefers_plain(huge)


def test_calls_inside_a_plain_one_are_plain(by_clock):
    """The function's calls of itself; a call that another thread makes meanwhile is looked at."""
    calls = {"traced": 0, "plain": 0}
    others = []

    def trace(x, depth=0):
        calls["traced"] += 1
        return traced(lambda x: x.argsort(), x)

    def plain(x, depth=0):
        calls["plain"] += 1
        if depth:
            return tracing(x[1:], depth - 1)
        if others:
            thread = threading.Thread(target=tracing, args=(others.pop(),))
            thread.start()
            thread.join()
        return x.argsort()

    tracing = _core.Dispatcher(trace, None, lambda: plain)
    huge = np.linspace(1, 0, 200_000)
    for _ in range(40):
        tracing(huge, 9)
    assert calls["traced"] == 3, "the first, the 16th and the 32nd call"
    assert calls["plain"] == 370
    others.append(np.ones((3, 3)))
    tracing(huge, 9)
    assert calls["traced"] == 4


def test_ledgers_survive_recursion_and_exceptions(by_clock):
    def plain(n, x):
        if n == 0:
            raise ValueError("the end")
        return tracing(n - 1, x) if n < 9 else x * n

    tracing = _core.Dispatcher(plain, None, lambda: plain)
    x = np.arange(3.0)
    for _ in range(50):
        with pytest.raises(ValueError, match="the end"):
            tracing(8, x)
        assert_same(tracing(9, x), x * 9)


def test_a_loop_over_elements_is_left_to_numpy(by_clock):
    def solve(L, x, b):
        given = {"b": b}  # so that the loop does not go natively
        for i in range(60):
            x[i] = (given["b"][i] - L[i, :i] @ x[:i]) / L[i, i]

    native = ufuse.jit(solve)
    L, b = np.tril(np.random.default_rng(0).random((60, 60)) + 1), np.ones(60)
    for _ in range(12):
        ours, theirs = np.zeros(60), np.zeros(60)
        native(L, ours, b)
        solve(L, theirs, b)
        assert ours.tobytes() == theirs.tobytes()
    assert native._dispatcher.prefers_plain(L, ours, b), native.stats()
