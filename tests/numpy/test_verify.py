"""Are calls compared with plain NumPy where one asks for it, and what is said of a wrong one?

``jit(verify=N)`` and ``UFUSE_DEBUG=check``. What is wrong is made so here: a stand-in of a NumPy
function that answers something else, guards that are forgotten, writes that nobody sees.
(``faults/test_wrong_loops.py`` has wrong loops.)
"""

import collections
import dataclasses
import functools
import itertools
import os
import pickle
import random
import sys
import time
import typing
import warnings

import numpy as np
import pytest
import ufuse
from ufuse import _core
from ufuse.tools import effects
from ufuse.tracing import callees, handlers, twin
from ufuse.tracing.watchers import watchers

BACKENDS = ["compiled"]

X = np.linspace(-1.0, 2.0, 12).reshape(3, 4)
SCALE = 2.0
TABLE = np.arange(3.0)
KEPT = []
STREAM = np.random.default_rng(3)


@pytest.fixture
def broken(monkeypatch):
    """``broken(np.where, f)``: traced code runs ``f`` where it says ``np.where``."""

    def set_stand_in(function, wrong):
        monkeypatch.setitem(handlers.table(), function, callees.Handled(function, wrong))
        _core.set_callees(callees.stand_in)

    yield set_stand_in
    monkeypatch.undo()
    _core.set_callees(callees.stand_in)


@pytest.fixture
def wrong_where(broken):
    broken(np.where, lambda condition, x, y: _core.where(condition, y, x))


def relu(x):
    return np.where(x > 0, x, 0.0)


def layer(x):
    y = x * 2.0
    y = relu(y)
    return y.sum(axis=0)


def line_of(function, offset):
    return f"{__file__}:{function.__code__.co_firstlineno + offset}"


def compared(f):
    return f._verifier._compared


class TestRight:
    def test_the_first_calls_are_compared(self):
        f = ufuse.jit(layer, verify=3)
        for n in range(5):
            assert f(X).tobytes() == layer(X).tobytes()
            assert compared(f) == min(n + 1, 3)
        # From now on it is a function like any other: nothing stands before the dispatcher.
        assert not f._is_verified
        assert f.answering() is f._dispatcher
        assert f._dispatcher.counts[0] > 0

    def test_recorded_calls_are_replayed_meanwhile(self):
        f = ufuse.jit(layer, verify=8)
        for _ in range(8):
            dispatcher = f.answering().args[0]
            f(X)
        assert dispatcher.counts[0] == 7
        assert compared(f) == 8

    def test_the_callers_own_arguments_are_used(self):
        def change(x, held):
            x[1:] += 1.0
            held["y"] *= 2.0
            return x[0], held

        f = ufuse.jit(change, verify=2)
        x, held = X.copy(), {"y": X.copy()}
        row, same = f(x, held)
        assert same is held
        assert row.base is x
        assert (x[1:] == X[1:] + 1.0).all()
        assert (held["y"] == X * 2.0).all()
        f(x, held)
        assert compared(f) == 2

    def test_exceptions(self):
        f = ufuse.jit(lambda x: x.sum() + np.ones((2, 2)) @ x, verify=2)
        for _ in range(2):
            with pytest.raises(ValueError, match="matmul") as caught:
                f(X)
            assert [entry.name for entry in caught.traceback] == ["test_exceptions", "<lambda>"]
        assert compared(f) == 2

    @pytest.mark.filterwarnings("error::DeprecationWarning")
    def test_warnings_that_are_errors(self):
        def f(x):
            warnings.warn("is old", DeprecationWarning, stacklevel=2)
            return x * 2

        f = ufuse.jit(f, verify=1)
        with pytest.raises(DeprecationWarning, match="is old"):
            f(X)
        assert compared(f) == 1

    def test_random_streams_go_on_once(self):
        def noise(x, rng):
            return x + rng.normal(size=4) + np.random.rand() + random.random()

        def run(f):
            rng = np.random.default_rng(7)
            np.random.seed(1)
            random.seed(1)
            return [f(X, rng).tobytes() for _ in range(3)]

        f = ufuse.jit(noise, verify=2)
        assert run(f) == run(noise)
        assert compared(f) == 2

    def test_generators_that_share_a_stream(self):
        f = ufuse.jit(lambda x, a, b: x + a.random() - b.random(), verify=2)
        rng, other = np.random.default_rng(7), np.random.default_rng(7)
        assert f(X, rng, rng).tobytes() == (X + other.random() - other.random()).tobytes()
        assert compared(f) == 1

    def test_methods(self):
        class Model:
            def __init__(self, w):
                self.w = w

            @property
            def doubled(self):
                return self.w * 2.0

            def act(self, x):
                return np.tanh(x) * self.doubled

            @ufuse.jit(verify=2)
            def apply(self, x):
                return self.act(x) + self.w

        model = Model(X[0].copy())
        for _ in range(2):
            assert model.apply(X).shape == X.shape
        assert compared(vars(Model)["apply"]) == 2

    def test_other_jitted_functions_are_plain_beside_it(self, wrong_where):
        inner = ufuse.jit(relu)
        f = ufuse.jit(lambda x: inner(x) * 2.0, verify=1)
        with pytest.raises(ufuse.Mismatch):
            f(X)
        assert not watchers

    def test_calls_in_traced_calls_are_not_compared(self):
        inner = ufuse.jit(relu, verify=5)
        ufuse.jit(lambda x: inner(x) * 2.0)(X)
        assert compared(inner) == 0

    def test_decorators_and_partials(self):
        @ufuse.jit(verify=1)
        def f(x, y=1.0):
            return x * y

        assert (f(X, y=3.0) == X * 3.0).all()
        assert compared(f) == 1
        g = ufuse.jit(functools.partial(f.__wrapped__, X), verify=1)
        assert (g(2.0) == X * 2.0).all()
        assert compared(g) == 1

    def test_functions_of_numpy(self):
        f = ufuse.jit(np.tanh, verify=1)
        assert (f(X) == np.tanh(X)).all()
        assert compared(f) == 1

    def test_pickled_functions_are_compared_anew(self):
        f = ufuse.jit(functools.partial(layer), verify=2)
        f(X)
        again = pickle.loads(pickle.dumps(f))
        again(X)
        assert compared(again) == compared(f) == 1

    def test_the_environment_asks_for_all_calls(self, monkeypatch):
        monkeypatch.setenv("UFUSE_DEBUG", "check")
        f, g = ufuse.jit(layer), ufuse.jit(relu, verify=1)
        for _ in range(4):
            f(X), g(X)
        assert (compared(f), compared(g)) == (4, 4)
        assert ufuse.jit(layer, numerics="fast")._verifier is None

    @pytest.mark.parametrize("verify", [True, 1.0, "3", None, np.True_])
    def test_no_number_of_calls(self, verify):
        with pytest.raises(TypeError, match="verify must be a number of calls, not "):
            ufuse.jit(layer, verify=verify)

    def test_impossible_numbers_of_calls(self):
        with pytest.raises(ValueError, match="verify must be a number of calls, not -1"):
            ufuse.jit(layer, verify=-1)
        with pytest.raises(ValueError, match='numerics="fast" gives up'):
            ufuse.jit(layer, verify=1, numerics="fast")
        assert ufuse.jit(layer, verify=np.int64(2))._options.verify == 2


class TestWrong:
    def test_the_operation_is_named(self, wrong_where):
        with pytest.raises(ufuse.Mismatch) as caught:
            ufuse.jit(layer, verify=3)(X)
        first, second, third = str(caught.value).splitlines()
        assert first.startswith("layer, call 1: result: 4 of 4 elements differ in bits, first (0,)")
        assert second == (
            "The first operation that differs is `np.where(x > 0, x, 0.0)` at " + line_of(relu, 1)
        )
        assert third.startswith("value: ")
        assert [entry.name for entry in caught.traceback] == ["test_the_operation_is_named"]

    def test_in_a_loop_the_first_round_that_differs(self, broken):
        def f(x, n):
            for i in range(n):
                x = x + i
                x = np.where(x > 3.0, 3.0, x)
            return x

        broken(np.where, lambda c, a, b: _core.where(c, 3.5, b))
        g = ufuse.jit(f, verify=3)
        assert g(np.zeros(2), 2).tolist() == [1.0, 1.0]
        with pytest.raises(ufuse.Mismatch, match=r"f, call 2: .*\n.*where\(x > 3.0, 3.0, x\)") as e:
            g(np.zeros(2), 5)
        assert f"{line_of(f, 3)}\nvalue: 2 of 2 elements differ" in str(e.value)
        assert "3.5" in str(e.value).splitlines()[-1]

    def test_what_is_written_into_arguments(self, broken):
        def f(x, y):
            np.copyto(x, y)
            x += 1.0

        broken(np.copyto, lambda x, y: None)
        with pytest.raises(ufuse.Mismatch, match=r"arguments\[0\]: 12 of 12 elements differ") as e:
            ufuse.jit(f, verify=1)(np.zeros((3, 4)), X)
        assert f"`x += 1.0` at {line_of(f, 2)}" in str(e.value)

    def test_exceptions(self, broken):
        def fail(*args):
            raise ValueError("inside")

        broken(np.where, fail)
        with pytest.raises(ufuse.Mismatch, match="result: ValueError: inside is not a value") as e:
            ufuse.jit(layer, verify=1)(X)
        assert "`np.where(x > 0, x, 0.0)`" in str(e.value)
        assert "ufuse does not get there" in str(e.value)

    def test_a_missing_exception(self, broken):
        def f(x):
            return np.where(x, x, np.ones(99))

        broken(np.where, lambda c, a, b: a)
        with pytest.raises(ufuse.Mismatch, match="a value is not ValueError: operands could") as e:
            ufuse.jit(f, verify=1)(X)
        assert f"`np.where(x, x, np.ones(99))` at {line_of(f, 1)}: NumPy does" in str(e.value)

    def test_types_and_memory(self, broken):
        broken(np.broadcast_to, lambda x, shape: x.copy())
        with pytest.raises(ufuse.Mismatch, match=r"strides|written|memory"):
            ufuse.jit(lambda x: np.broadcast_to(x, (3, 4)), verify=1)(X)
        broken(np.expand_dims, lambda x, axis: 0.5)
        with pytest.raises(ufuse.Mismatch, match=r"type builtins\.float is not numpy\.ndarray"):
            ufuse.jit(lambda x: np.expand_dims(x, 0), verify=1)(X)

    def test_random_streams(self, broken):
        broken(np.where, lambda c, a, b: (_core.where(c, a, b), np.random.rand())[0])
        state = np.random.get_state()
        try:
            with pytest.raises(ufuse.Mismatch, match="random streams"):
                ufuse.jit(layer, verify=1)(X)
        finally:
            np.random.set_state(state)

    def test_a_function_of_numpy(self, broken):
        broken(np.asarray, lambda x: x + 1)
        with pytest.raises(ufuse.Mismatch, match="`asarray` is one operation"):
            ufuse.jit(np.asarray, verify=1)(X)

    def test_a_write_that_nobody_sees(self, monkeypatch):
        def f(x):
            y = x * 2.0
            np.putmask(x, x > 1.9, 9.0)
            return y

        monkeypatch.setattr(callees, "is_pure", lambda function: True)
        _core.set_callees(callees.stand_in)
        with pytest.raises(ufuse.Mismatch, match="result: 1 of 12 elements differ") as caught:
            ufuse.jit(f, verify=1)(X.copy())
        monkeypatch.undo()
        _core.set_callees(callees.stand_in)
        assert f"`x * 2.0` at {line_of(f, 1)}" in str(caught.value)

    def test_a_stale_recording(self, monkeypatch):
        monkeypatch.setattr(twin.Twin, "guards", lambda self, seen: [])
        f = ufuse.jit(lambda x: x * SCALE, verify=2)
        f(X)
        monkeypatch.setitem(globals(), "SCALE", 3.0)
        with pytest.raises(ufuse.Mismatch, match=r"call 2: .*\nNone of its operations") as caught:
            f(X)
        assert "in replaying the call" in str(caught.value)

    def test_it_is_told_by_other_threads_too(self, wrong_where):
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as pool:
            found = pool.submit(ufuse.jit(layer, verify=1), X).exception()
        assert isinstance(found, ufuse.Mismatch)


# What is not made twice. Each counts how often it ran.


def prints(x):
    print("seen")
    return x * 2.0


def times(x):
    return x * time.perf_counter()


def draws(x):
    return x + STREAM.random()


def draws_anew(x):
    return x + np.random.default_rng().random()


def seeds(x, seed=None):
    return x + np.random.default_rng(seed).random()


def reads(x):
    return x + len(os.listdir("."))


def loads(x):
    return x + np.load("nowhere.npy")


def writes(x):
    x.tofile("nowhere")
    return x


def adds_to_a_table(x):
    return helper(x, TABLE[:1])


def helper(x, y):
    y += 1.0
    return x.sum() + y


def by_a_helper(x):
    return prints(x)


def by_a_name(x):
    say = prints
    return [say(each) for each in x]


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (prints, "`print`"),
        (times, "`time.perf_counter`"),
        (draws, "`STREAM"),
        (draws_anew, "`np.random.default_rng`"),
        (seeds, "the system may be asked"),
        (reads, "`os.listdir`"),
        (loads, "`np.load`"),
        (writes, "`.tofile`"),
        (adds_to_a_table, "`TABLE`"),
        (by_a_helper, "`print`"),
        (by_a_name, "`print`"),
    ],
)
def test_what_has_effects(function, named):
    found = effects.reason(function, (X,), {})
    assert found is not None
    assert named in found
    assert __file__ in found


@pytest.mark.parametrize(
    "arguments",
    [([iter([1])],), ({"file": sys.stdout},), (itertools.count(),), (print,), (lambda: print(),)],
)
def test_arguments_with_effects(arguments):
    assert effects.reason(relu, arguments, {}) is not None


class Loud(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        print("seen")


class Metres(float):
    def __add__(self, other):
        print("seen")


class Point(collections.namedtuple("Point", ["x", "y"])):
    def __add__(self, other):
        print("seen")


class Typed(typing.NamedTuple):
    x: float

    def __mul__(self, other):
        print("seen")


class Adder:
    def __add__(self, other):
        print("seen")


@dataclasses.dataclass(frozen=True)
class Grid:
    x: np.ndarray
    size: float

    def scaled(self):
        return self.x * self.size


Pair = collections.namedtuple("Pair", ["first", "second"])


@pytest.mark.parametrize(
    "argument", [X.view(Loud), Metres(1.0), Point(1.0, 2.0), Typed(1.0), Adder(), [{"a": Adder()}]]
)
def test_operators_with_effects(argument):
    assert effects.reason(lambda x: x + 1, (argument,), {}) is not None


def test_dataclasses_and_named_tuples():
    f = ufuse.jit(lambda grid, pair: grid.scaled() + pair.first * pair[1], verify=2)
    for _ in range(2):
        assert (f(Grid(X, 2.0), Pair(X, 3.0)) == X * 2.0 + X * 3.0).all()
    assert compared(f) == 2


def many_names(x, f, *, rng):
    norm = np.linalg.norm
    parts = [norm(x, axis=0), f(x).max(), rng.normal(size=3)]
    parts.append(np.add.reduce(x))
    with np.errstate(all="ignore"):
        named = {k: float(np.log(x[k]).sum()) for k in range(len(x))}
    if not np.isfinite(x).all():
        raise ValueError(f"not finite: {x.shape}")
    return parts, named, (lambda q: q @ q.T)(x), sorted(named.values())[0], "a".upper()


def test_what_has_none():
    given = {"rng": np.random.default_rng(1)}
    assert effects.reason(many_names, (X, relu), given) is None
    assert effects.reason(seeds, (X, 4), {}) is None
    assert effects.reason(np.sort, (X,), {}) is None


class TestNotComparedTwice:
    def test_it_runs_once(self, capsys):
        f = ufuse.jit(prints, verify=2)
        f(X)
        f(X)
        assert capsys.readouterr().out == "seen\nseen\n"
        assert compared(f) == 0

    def test_explain_says_why(self):
        found = ufuse.jit(prints, verify=2).explain(X)
        assert "0 of 0 calls compared with NumPy; one like this is not: " in found.verification
        assert "`print` may do what others see" in str(found)
        assert "`print` may do what others see" in found._repr_html_()
        f = ufuse.jit(layer, verify=2)
        f(X)
        assert f.explain(X).verification == "1 of 1 calls compared with NumPy"
        assert ufuse.jit(layer).explain(X).verification == ""

    def test_plain_functions_are_not_compared_with_themselves(self):
        def keeps(x):
            KEPT.append(x)
            return eval("x")

        f = ufuse.jit(keeps, verify=2)
        before = len(KEPT)
        f(X)
        assert len(KEPT) == before + 1
        assert "plain NumPy ran it: " in f._verifier.about((X,), {})

    def test_a_strict_error_state(self):
        f = ufuse.jit(layer, verify=2)
        with np.errstate(all="raise"):
            f(X)
        assert compared(f) == 0
        f(X)
        assert compared(f) == 1

    def test_the_asking_ends(self):
        f = ufuse.jit(prints, verify=1)
        for _ in range(100):
            assert f._is_verified
            f(X)
        assert not f._is_verified


def test_objects_are_copied_with_what_they_hold():
    class Holder:
        def __init__(self, x):
            self.x, self.rows, self.me = x, [x[0], x[1]], self

    held = Holder(X.copy())
    (made,) = ufuse.copies.copied((held,), objects=True)
    assert type(made) is Holder
    assert made.me is made
    assert np.may_share_memory(made.x, made.rows[1])
    assert not np.may_share_memory(made.x, held.x)
    assert ufuse.copies.copied(held) is held
