"""Is a recorded call replayed only where Python would have done the same again?"""

import sys
import types
import warnings
from glob import glob

import numpy as np
import pytest
import ufuse
from same import check, same
from texts import function_of

BACKENDS = ["compiled"]

FACTOR = 2.0
PATTERN = ""
TABLE = [1.0]
X = np.linspace(0.5, 2.0, 12).reshape(3, 4)


def helper(x):
    return x + 1


def scaled(x):
    return helper(x) * FACTOR


def _files(x):
    return x * len(glob(PATTERN))


def counted(f):
    """``f`` jitted, and how often its Python ran."""
    runs = []
    jitted = ufuse.jit(f)
    traced = jitted._trace

    def trace(*args, **kwargs):
        runs.append(1)
        return traced(*args, **kwargs)

    jitted.plan()
    if jitted._dispatcher is not None and jitted._dispatcher.records:
        dispatcher = ufuse._core.Dispatcher(trace, [(d, n, v) for d, n, v in _guards_of(f)])
        jitted._dispatcher = jitted._at_once = dispatcher
    return jitted, runs


def _guards_of(f):
    from ufuse.tracing.twin import twin_of

    return twin_of(f).guards(set())


def test_python_runs_once_per_signature():
    f, runs = counted(scaled)
    for _ in range(3):
        same(f(X), scaled(X))
    assert len(runs) == 1
    same(f(X.T), scaled(X.T))
    same(f(X.astype("f")), scaled(X.astype("f")))
    assert len(runs) == 3


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.mean(),
        lambda x: (x - x.mean(axis=0)) / x.std(axis=0),
        lambda x: np.var(x, axis=1) * np.float32(2),
        lambda x, a=3.0: x * np.float64(a),
    ],
)
def test_numpy_scalars_are_constants_of_a_signature(function):
    f, runs = counted(function)
    for x in (X, X * 2, X[:2], X[:2] + 1):
        same(f(x), function(x))
    assert len(runs) == 2
    if function.__code__.co_argcount == 2:
        same(f(X, 5.0), function(X, 5.0))
        same(f(X, np.float64(7.0)), function(X, np.float64(7.0)))
        same(f(X, np.float64(8.0)), function(X, np.float64(8.0)))


@pytest.mark.parametrize(
    ("name", "value"),
    [("FACTOR", 5.0), ("helper", lambda x: x - 3), ("np", np), ("len", lambda x: 7)],
)
def test_guards(monkeypatch, name, value):
    def f(x):
        return helper(x) * FACTOR + len(x) + np.sin(x)

    f = types.FunctionType(f.__code__, sys.modules[__name__].__dict__, "f")
    g = ufuse.jit(f)
    same(g(X), f(X))
    same(g(X), f(X))
    monkeypatch.setattr(sys.modules[__name__], name, value, raising=False)
    same(g(X), f(X))
    same(g(X), f(X))
    monkeypatch.undo()
    same(g(X), f(X))


def test_numbers_that_decide_on_a_dtype():
    """Beside arrays NumPy 1 promotes by their values."""
    f = lambda x, n: x * n  # noqa: E731
    g = ufuse.jit(f)
    x = np.arange(5, dtype="u1")
    for n in (np.int8(-1), np.int8(1), np.int8(-1), np.array(1, "i1"), np.array(-1, "i1")):
        same(g(x, n), f(x, n))
    same(g(x.astype("f4"), np.float64(1e300)), f(x.astype("f4"), np.float64(1e300)))
    same(g(x.astype("f4"), np.float64(2)), f(x.astype("f4"), np.float64(2)))


def test_functions_of_pythons_library_are_asked_again(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PATTERN", str(tmp_path / "*"))
    g = ufuse.jit(_files)
    for n in range(3):
        same(g(X), X * n)
        same(g(X), X * n)
        (tmp_path / str(n)).write_text("")


def test_code_that_is_replaced():
    def f(x):
        return x + 1

    g = ufuse.jit(f)
    same(g(X), X + 1)
    f.__code__ = (lambda x: x * 10).__code__
    same(g(X), X * 10)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + TABLE[0],
        lambda x: print(end="") or x * 2,
        lambda x: x + np.random.rand(),
        lambda x: x * id(x) * 0,
        lambda x: (lambda: x * 2)(),
    ],
    ids=["list", "print", "random", "id", "nested"],
)
def test_what_is_not_pure(function):
    f = ufuse.jit(function)
    f(X)
    if f._dispatcher.records:
        assert function.__code__.co_names == ()


def test_global_list_that_changes():
    f = ufuse.jit(lambda x: x + TABLE[0])
    same(f(X), X + 1)
    TABLE[0] = 3.0
    same(f(X), X + 3)
    TABLE[0] = 1.0


def test_results_are_fresh():
    f = ufuse.jit(lambda x: (x * 2, x))
    a, x1 = f(X)
    b, x2 = f(X)
    assert a is not b
    assert not np.may_share_memory(a, b)
    assert x1 is X
    assert x2 is X


def test_writes_to_arguments():
    def f(x, y):
        x[1:] += y[:-1]
        x *= 2
        return x.sum()

    for _ in range(3):
        check(f, X, X * 3)
        check(f, X[::-1], X * 3)
        check(f, np.asfortranarray(X), X[:, ::-1])


def test_warnings_come_each_time():
    for _ in range(3):
        check(lambda x: np.log(x - 1), X)


def test_error_state():
    f = ufuse.jit(lambda x: np.log(x - 1))
    with np.errstate(all="ignore"):
        f(X)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        f(X)


def test_equal_error_states_have_one_plan():
    x = np.ones(20_000)  # too large for plain NumPy to have a turn
    f = ufuse.jit(lambda x: np.log(x * 0))
    for _ in range(3):
        with np.errstate(all="ignore"), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                same(f(x), np.log(x * 0))
        assert not caught
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            f(x)
    replayed, traced, _ = f._dispatcher.counts
    assert traced <= 1 + 3, "one recording, and each of the calls that warn"
    assert replayed >= 3 * 3 - 1


def test_exceptions():
    def f(x, y):
        return x + y

    for _ in range(2):
        check(f, X, X)
        check(f, X, np.ones(3))


def test_python_numbers():
    f = ufuse.jit(lambda x, n: x * n + n)
    for n in (1, 2, 2.0, 1j, True, 3, 1):
        same(f(X, n), X * n + n)


def of_nest(pair, named, rest):
    return pair[0] * named["x"] + rest[0][1], len(rest)


def gives_back(pair):
    return pair


def gives_back_inside(pair):
    return [pair, pair[0] + 1]


def appends(kept, x):
    kept.append(x + 1)
    return x * 2


def replaces(kept):
    kept[0] = kept[0] + 1
    return kept[0]


def test_arguments_in_nests_are_replayed():
    x, y, z = np.ones(3), np.arange(3.0), np.full(3, 2.0)
    f, runs = counted(of_nest)
    for _ in range(4):
        made, size = f((x, y), {"x": z}, [[y, x]])
        same(made, x * z + x)
        assert size == 1
    assert len(runs) == 1
    assert f((x, y), {"x": z}, [[y, x], x])[1] == 2  # another length
    with pytest.raises(KeyError):
        f((x, y), {"y": z}, [[y, x]])
    same(f([x, y], {"x": z}, ([y, z],))[0], x * z + z)  # other containers


@pytest.mark.parametrize("kind", [tuple, list])
def test_containers_of_the_caller(kind):
    x = np.arange(3.0)
    for f in (gives_back, gives_back_inside):
        g = ufuse.jit(f)
        for _ in range(3):
            pair = kind([x, x])
            made = g(pair)
            assert made is pair or made[0] is pair


@pytest.mark.parametrize("f", [appends, replaces])
def test_a_list_that_is_changed_is_changed_each_time(f):
    x = np.arange(3.0)
    g = ufuse.jit(f)
    for _ in range(3):
        kept = [x]
        g(kept, x) if f is appends else g(kept)
        same(kept[-1], x + 1)


OPTIONS = {"factor": 2.0}


def with_options(x, options=OPTIONS):
    return x * options["factor"]


def with_named_options(x, *, options=OPTIONS):
    return x * options["factor"]


def with_named_number(x, *, factor=2.0):
    return x * factor


@pytest.mark.parametrize("f", [with_options, with_named_options])
def test_a_default_that_changes_within(f):
    g = ufuse.jit(f)
    for OPTIONS["factor"] in (2.0, 2.0, 2.0, 5.0, 5.0):
        same(g(X), f(X))


def test_named_defaults_that_are_replaced():
    g = ufuse.jit(with_named_number)
    for factor in (2.0, 2.0, 2.0, 5.0, 5.0):
        with_named_number.__kwdefaults__["factor"] = factor
        same(g(X), X * factor)
    with_named_number.__kwdefaults__ = {"factor": 7.0}
    same(g(X), X * 7.0)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("f", [np.mean, np.std, np.var])
def test_counts_that_numpy_works_out_of_the_shape(f, axis):
    # A function without a closure: those are traced each time.
    text = f"def counted(x):\n    return np.{f.__name__}(x, axis)\n"
    native = ufuse.jit(function_of(text, {"np": np, "axis": axis}))
    for _ in range(4):
        same(native(X), f(X, axis))
    assert native._dispatcher.counts[0] > 0
