"""Does a traced call give what NumPy gives?

Each case is a plain function; it runs once with NumPy and once through ``_core``'s lazy arrays, and
values, dtypes, strides, types, the arguments afterwards and the warnings must be the same. Run with
compiled loops and the interpreter (conftest.py), and with NumPy's own replay in their place.
"""

import pickle
import warnings

import numpy as np
import pytest
from lazy import assert_same, check, traced
from ufuse import _core

rng = np.random.default_rng(7)
A = rng.normal(size=(4, 6))
B = rng.normal(size=6)
F = np.asfortranarray(rng.normal(size=(4, 6)))
I = rng.integers(-9, 9, size=(4, 6))
S = A[::-1, ::2]
N = np.array([1.0, np.nan, -0.0, 0.0, np.inf, -np.inf])
F4 = A.astype(np.float32)
C = A + 1j * A[::-1]
M = A > 0


def add_into(x, y):
    x += y
    return x


def partial_write(x, y):
    z = x * 2
    x[1:3] = y
    return z + x


def shifted(x):
    x[1:] = x[:-1] * 2
    return x


def shifted_after_update(x):
    x += 1
    x[1:] = x[:-1] * 2
    x *= 3
    return x


def rows_then_columns(x):
    x[0] += 1
    x[:, 1] -= x[:, 0]
    return x.sum(0)


def old_value(x):
    before = x + 0.5
    first = x[0, 0]
    x[...] = 0
    return before, first, x


def view_of_pending(x):
    y = x * 2
    v = y[1:, ::2]
    y[1] = -1
    v[0] = 7
    return y, v


def masked(x):
    y = x.copy()
    y[y < 0] = 0
    x[x > 1] = x[0, 0]
    return y


def gathered(x):
    y = x[[0, 2]]
    x[[1, 3]] = y
    return x[x > 0], y


def loop(x):
    y = x * 0
    for i in range(60):
        y = y + x * i - y / 3
    return y


def while_loop(x):
    n = 0
    while np.abs(x).max() > 1e-3:
        x = x / 2
        n += 1
    return x, n


def scalars(x):
    s = x.sum()
    n = x.size
    return s / n, s * 2, s > 0, -s, s**2, float(s)


def integer_scalars(x):
    s = x.sum()
    return s + 1, s * 3, s // 2, s % 5, s**2, s / 3, s == 0


def builtins(x):
    return len(x), list(x[0]), [row.sum() for row in x], bool(x[0, 0] > 0), 3.5 in x


def result_is_view(x):
    return x[1:], x.T, x.reshape(-1), x.swapaxes(0, 1)


CASES = {
    "sqrt plus one": (lambda x: np.sqrt(np.abs(x)) + 1, A),
    "broadcast": (lambda x, y: x * y - y, A, B),
    "fortran": (lambda x, y: (x + y, x * 2, x + x), F, A),
    "strided": (lambda x: (x * 2, np.exp(x)), S),
    "weak": (lambda x: (x + 1, 2.5 * x, 1 / x, x - 1j, 3 - x, 2**x), A),
    "float32": (lambda x: (x + 1, x * 2.5, x / 3, x + np.float64(1)), F4),
    "integers": (lambda x: (x + 1, x / 2, x // 2, x % 3, x * x, ~x, x << 1, divmod(x, 4)), I),
    "comparisons": (lambda x, y: (x < y, x == y, x != 0, (x > 0) & (y <= 1), x >= y), A, B),
    "powers": (lambda x: (x**2, x**3, x**2.0, x**1, x**-1), A),
    "roots": (lambda x: (np.abs(x) ** 0.5, x**0, abs(x) ** 0.25), A),
    "integer powers": (lambda x: (x**2, x**3, x**2.0), I),
    "complex": (lambda z: (z * z.conj(), abs(z), z.real, z.imag, z + 1, z / 2), C),
    "sums": (
        lambda x: (x.sum(), x.sum(0), x.sum(1), x.sum(axis=(0, 1)), x.sum(-1, keepdims=True)),
        A,
    ),
    "sums of fortran": (lambda x: (x.sum(), x.sum(0), x.sum(1)), F),
    "sums of a product": (lambda x, y: ((x * y).sum(0), (x * y).sum(1)), A, F),
    "extrema": (lambda x: (x.min(), x.max(0), x.max(axis=1), x.argmin(), x.argmax(0)), A),
    "extrema with nan": (lambda x: (x.min(), x.max(), x.argmin(), np.maximum(x, 0)), N),
    "prod any all": (lambda x: (x.prod(0), (x > 0).any(0), (x > 0).all(), x.any()), A),
    "integer sums": (lambda x: (x.sum(), x.sum(0), x.prod(1), x.max()), I),
    "bool sums": (lambda x: (x.sum(), x.sum(0), x.any(), x.argmax(1)), M),
    "float32 sums": (lambda x: (x.sum(), x.sum(0), x.sum(dtype=np.float64), x.sum(1)), F4),
    "ufunc keywords": (
        lambda x: (
            np.add(x, 1, dtype=np.float32, casting="same_kind"),
            np.add.reduce(x),
            np.exp(x, where=x > 0, out=x * 1),
        ),
        A,
    ),
    "ufunc methods": (lambda x: (np.add.accumulate(x), np.multiply.outer(x[0], x[1])), A),
    "two outputs": (lambda x: (*np.modf(x), *np.frexp(x)), A),
    "out": (lambda x, y: (np.add(x, y, out=x), np.multiply(x, 2, x)), A, B),
    "in place": (add_into, A, B),
    "in place on itself": (lambda x: add_into(x, x), A),
    "in place of integers": (lambda x: add_into(x, 2), I),
    "in place, cast refused": (lambda x: add_into(x, 1.5), I),
    "in place on a reversed view": (lambda x: add_into(x, x[::-1]), A),
    "partial write": (partial_write, A, B),
    "shifted": (shifted, A),
    "shifted after update": (shifted_after_update, A),
    "rows then columns": (rows_then_columns, A),
    "old value": (old_value, A),
    "view of pending": (view_of_pending, A),
    "masked": (masked, A),
    "gathered": (gathered, A),
    "long loop": (loop, A),
    "while loop": (while_loop, A),
    "scalars": (scalars, A),
    "integer scalars": (integer_scalars, I),
    "scalar argument": (lambda x, s: (x * s, s + 1, s * s, s.dtype), A, np.float64(2.5)),
    "float32 scalar argument": (lambda x, s: (x * s, s * 2.0, s + 1), A, np.float32(2.5)),
    "0-d argument": (lambda x, z: (x * z, z + 1, z), A, np.array(2.5)),
    "builtins": (builtins, A),
    "result is a view": (result_is_view, A),
    "views of views": (lambda x: (x[1:][::-1].T[2:4] * 2, x[:, None, ::2] + x[0, 0]), A),
    "copies": (
        lambda x: (
            x.copy(),
            x.T.copy(),
            x.T.copy("K"),
            x.T.flatten(),
            x.T.ravel(),
            x.T.reshape(3, 8),
        ),
        A,
    ),
    "fortran reshapes": (
        lambda x: (x.reshape(6, 4, order="F"), x.flatten("F"), (x + 1).reshape((2, 12), order="F")),
        A,
    ),
    "astype": (
        lambda x: (x.astype(int), x.astype("f4"), x.astype(bool), x.astype(float, copy=False)),
        A,
    ),
    "astype of scalar": (lambda x: (x.sum().astype(int), x.sum().astype("f4")), A),
    "fill": (lambda x: (x.fill(3), x)[1], A),
    "item": (lambda x: (x.item(3), x.tolist(), x[0].tolist()), A),
    "numpy functions": (
        lambda x: (np.sort(x), np.dot(x, x.T), x.cumsum(0), np.where(x > 0, x, 0)),
        A,
    ),
    "sort in place": (lambda x: (x + 1, x.sort(), x)[::2], A),
    "matmul": (lambda x: x @ x.T, A),
    "bad shapes": (lambda x, y: x + y, A, A[:, :5].copy()),
    "bad axis": (lambda x: x.sum(axis=3), A),
    "bad index": (lambda x: x[9], A),
    "too many indices": (lambda x: x[0, 0, 0], A),
    "bad reshape": (lambda x: x.reshape(5, 5), A),
    "bad operand": (lambda x: x + "text", A),
    "bad truth": (lambda x: bool(x), A),
    "empty": (lambda x: (x[:0].sum(0), x[:0] + 1, x[:0].sum()), A),
    "max of empty": (lambda x: x[:0].max(), A),
    "attributes": (
        lambda x: (
            x.shape,
            x.ndim,
            x.size,
            x.dtype,
            x.strides,
            x.nbytes,
            x.T.strides,
            (x.T + 1).strides,
        ),
        A,
    ),
    "warns": (lambda x: x / 0, N),
    "warns in two lines": (lambda x: (np.log(x), np.sqrt(x)), N),
    "warns in a value nobody wants": (lambda x: (np.log(x), x + 1)[1], N),
    "warns when cast": (lambda x: x.astype(int), N),
    "overflow": (lambda x: np.exp(x * 1000), A),
    "scalar warns": (lambda x: x.sum() / (x.sum() * 0), A),
    "integer scalar overflows": (lambda x: x.sum() * 2**62, I + 4),
    "lists": (lambda x: x + [1, 2, 3, 4, 5, 6], A),
    "bool operands": (lambda x: (x + True, x & True, ~x, x | x), M),
    "types": (lambda x: (isinstance(x, np.ndarray), isinstance(x.sum(), float)), A),
    "format": (lambda x: (f"{x.sum():.3f}", str(x), repr(x.sum())), A),
    "setting shape": (lambda x: (setattr(x, "shape", (6, 4)), x + 1)[1], A),
}


@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name):
    check(*CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_without_any_backend(name):
    with _core.backend("numpy"):
        check(*CASES[name])


def test_the_argument_itself_comes_back():
    x = A.copy()
    assert traced(lambda a: a, x) is x
    assert traced(add_into, x, 1) is x


def test_views_share_the_callers_memory():
    x = A.copy()
    v, t = traced(lambda a: (a[1:, ::2], a.T), x)
    assert v.base is x
    assert t.base is x
    assert v.flags.writeable
    v[...] = 3
    assert (x[1:, ::2] == 3).all()


def test_equal_results_are_arrays_of_their_own():
    a, b = traced(lambda x: (x + 1, x + 1), A)
    assert a is not b
    assert not np.shares_memory(a, b)


def test_two_names_one_array():
    def function(x, y):
        x += 1
        return y * 2

    x = A.copy()
    expected = (A + 1) * 2
    assert_same(traced(function, x, x), expected)


def test_overlapping_arguments():
    def function(x, y):
        z = y * 2
        x += 1
        x[...] = y + x
        return z + y

    def on_overlap(how):
        base = np.arange(12.0)
        return how(function, base[:8], base[4:]), base

    assert_same(on_overlap(traced), on_overlap(lambda f, *a: f(*a)))


def test_read_only_argument():
    x = A.copy()
    x.flags.writeable = False
    check(lambda a: add_into(a, 1), x)
    with pytest.raises(ValueError, match="read-only"):
        traced(lambda a: add_into(a, 1), x)


def test_writes_are_done_when_the_call_raises():
    def function(x):
        x += 1
        y = x * 2
        raise KeyError(y.shape)

    x = A.copy()
    with pytest.raises(KeyError):
        traced(function, x)
    assert_same(x, A + 1)
    assert not _core.session_active()


def test_escaped_arrays_are_concrete():
    kept = []

    def function(x):
        kept.append(x * 2)
        return x + 1

    traced(function, A)
    assert [e["kind"] for e in _core.events()].count("escape") == 1
    lazy = kept[0]
    assert_same(lazy + 1, A * 2 + 1)
    assert_same(np.sqrt(np.abs(lazy)), np.sqrt(np.abs(A * 2)))
    assert_same(lazy[1:], (A * 2)[1:])
    assert_same(traced(lambda x: x + lazy, A), A + A * 2)
    assert_same(pickle.loads(pickle.dumps(lazy)), A * 2)


def test_captured_arrays_are_read_when_they_are_used():
    outside = A.copy()

    def function(x):
        y = x + outside
        outside[...] = 0
        return y

    assert_same(traced(function, A), A + A)
    large = np.ones(100_000)

    def function_of_large(x):
        y = x + large
        large[...] = 0
        return y

    assert_same(traced(function_of_large, large * 2), np.full(100_000, 3.0))


def test_unsupported_arrays_are_numpys():
    check(lambda x, y: x + y, A, A.astype(">f8"))
    check(lambda x, y: x + y, A, np.ma.masked_array(A, A > 0).filled(0))
    check(lambda x, y: x + y, A, A.astype(object))


def test_a_force_computes_what_it_went_through():
    def function(x):
        y = np.exp(x)
        if y[0, 0] > 0:
            y = y + 1
        return y

    assert_same(traced(function, A), np.exp(A) + 1)
    runs = _core.reports()
    assert len(runs) <= 2
    assert sum("exp" in op for r in runs for g in r["groups"] for op in g["ops"]) <= 1


def test_numpy_call_on_a_view():
    def function(x):
        d = _core.numpy_call(np.diagonal, (x,), {}, "not_native", True)
        e = d + 0
        x += 1
        return d + 0, e

    x = np.arange(16.0).reshape(4, 4)
    d, e = traced(function, x)
    assert_same(e, np.arange(16.0)[::5] + 0)
    assert_same(d, np.arange(16.0)[::5] + 1)


def test_error_mask_is_taken_by_line():
    def function(x):
        with np.errstate(all="ignore"):
            y = x / 0
        return y, x - x

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        traced(function, np.array([1.0, np.inf]))
    assert [str(w.message) for w in caught] == ["invalid value encountered in subtract"]


def test_events_name_lines_and_reasons():
    def function(x):
        if x.sum() > 0:
            pass
        return np.sort(x)

    traced(function, A)
    rows = {(e["kind"], e["reason"]) for e in _core.events()}
    assert ("force", "bool") in rows
    assert any(kind == "numpy_call" for kind, _ in rows)
    known = dict(_core.reasons())
    assert all(e["reason"] in known for e in _core.events() if e["kind"] != "run")
    assert __file__ in {e["file"] for e in _core.events()}


def test_what_is_computed_anew_names_the_users_line_and_says_why():
    def function(x):
        return np.mean(x - x) + np.var(x)  # in NumPy's own functions infinities are subtracted

    with np.errstate(all="warn"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced(function, np.array([1.0, np.inf]))
    events = [each for each in _core.events() if each["kind"] == "redo"]
    assert {each["reason"] for each in events} == {"warning"}
    assert {each["file"] for each in events} == {__file__}


def test_long_loops_are_flushed():
    traced(loop, A)
    kinds = [e["kind"] for e in _core.events()]
    assert kinds.count("flush") >= 1
