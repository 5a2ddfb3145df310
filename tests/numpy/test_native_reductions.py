"""Do reductions along axes in native loops combine elements in NumPy's order?

Random arrays, layouts, axes, functions and expressions. `UFUSE_TEST_REDUCTIONS=1000` tries so many.
"""

import os
import random

import numpy as np
import pytest
from test_native_arrays import with_code_of_its_own
from test_native_loops import alike, check, outcome, told
from texts import function_of
from ufuse.source import heads
from ufuse.tracing.loops import looped

COUNT = int(os.environ.get("UFUSE_TEST_REDUCTIONS", "24"))
RNG = np.random.default_rng(3)
M = RNG.normal(size=(6, 7)) * np.exp(RNG.normal(size=(6, 7)) * 5)
T = RNG.normal(size=(4, 5, 6))
W = RNG.normal(size=(3, 3, 2, 5))


def rows_and_columns(m):
    for i in range(1, 5):
        a = m[:i].sum(axis=0)
        b = np.sum(m[:, :i], axis=1)
        c = np.mean(m[i:], 0) - m.mean(axis=-1, keepdims=True)[i]
        m[i] = a - b[0] + c
    return a, b, c, m


def softmax(m):
    for _ in range(3):
        e = np.exp(m - np.max(m, axis=-1, keepdims=True))
        m[:] = e / np.sum(e, axis=-1, keepdims=True)
    return m


def convolved(x, w, out):
    for i in range(out.shape[1]):
        for j in range(out.shape[2]):
            out[:, i, j, :] = np.sum(
                x[:, i : i + 3, j : j + 3, :, np.newaxis] * w[np.newaxis], axis=(1, 2, 3)
            )
    return out


def pooled(x, out):
    for i in range(out.shape[1]):
        for j in range(out.shape[2]):
            out[:, i, j] = np.max(x[:, 2 * i : 2 * i + 2, j : j + 2], axis=(1, 2))
            out[0, i, j] += np.amin(x[:, i, j:], axis=(0,)).min() + x[:, i].prod(1)[0]
    return out


def of_one_element(x, m):
    for i in range(3):
        a = x[:1].sum(axis=0)
        b = np.sum(m[:1, :1], axis=0)
        c = m[:, i : i + 1].sum(axis=1, keepdims=True)
        d = np.max(m[i : i + 1], axis=0)
    return a, b, c, d


def of_nothing(x, m):
    for i in range(3):
        a = m[i:i].sum(axis=0)
        b = m[:, i:i].sum(axis=1)
        c = m[:, i:i].max(axis=0)
    return a, b, c


def extreme_of_nothing(m):
    for i in range(3):
        a = m[i:i].max(axis=0)
    return a


def overflows(m):
    for _ in range(3):
        a = np.sum(m * 1e308, axis=0)
        b = np.sum(m * 1e308, axis=1)
    return a, b


def large(x):
    for _ in range(2):
        a = x.sum(axis=1)
        b = np.sum(x * 2.0, axis=0)
    return a, b


def wrong_axes(m):
    for i in range(3):
        a = m.sum(axis=i)
    return a


def spreads(v, m):
    for i in range(1, 4):
        a = np.std(m[:i]), m.var(), v.std(), np.var(v[i:])
        b = m[i:].std(axis=0), np.var(m, axis=1, keepdims=True), (m * v[0]).std(axis=-1)
        m[i] = (m[i] - m[i].mean()) / m[i].std()
    return a, b, m


def norms(v, m):
    s = 0.0
    for i in range(1, 5):
        r = np.linalg.norm(v[:i]) + np.linalg.norm(m[:, i])
        c = np.linalg.norm(m, axis=0), np.linalg.norm(m[:i], axis=1, keepdims=True)
        f = np.linalg.norm(m[i:], axis=(0, 1))
        if np.linalg.norm(m[i] - v[0]) > 1.0:
            s += r
    return r, c, f, s


def of_truths(v, m):
    n = 0
    for i in range(5):
        if np.any(m[i] > 1) and not np.all(v > i):
            n += 1
        a = m.any(axis=0), np.all(m > 0, axis=1), (m[i] > 0).all(), v[i:].any()
        if (v < 0).any():
            break
    return n, a


def positions(v, m):
    for i in range(4):
        p = np.argmax(np.abs(m[i:, i]))
        q, r = m[i].argmin(), np.argmin(v * v[i])
        m[i] = m[p] * 2 + q
        m[p] += r
    return p, q, r, m


def positions_along(m, t):
    for i in range(1, 4):
        a = np.argmax(m, axis=0), m.argmin(axis=1), np.argmin(m[i:], 1), m[:, ::2].argmax(-1)
        b = t.argmax(axis=1), np.argmin(t, axis=-1), t[0].T.argmax(axis=0), (t + t).argmin(0)
        m[i] = m[a[0][i]] + m[a[1][0] - 7]
    return a, b, m


def positions_along_nothing(m):
    for i in range(3):
        p = m[:, i:i].argmax(axis=1)
    return p


def sums_of_small_integers(v, m):
    for i in range(4):
        a = v.sum(), np.sum(v[i:]), v[:3].prod(), np.prod(v[::2])
        b = m.sum(axis=0), np.sum(m, axis=1, keepdims=True), m[i:].prod(axis=-1), m.sum()
        c = (m > v).sum(), (m > m[i]).sum(axis=1), (v != m[0]).sum() + 1
    return a, b, c


def position_of_nothing(v):
    for i in range(3):
        p = np.argmax(v[i:i])
    return p


def chosen(v, m):
    for i in range(4):
        v = np.where(v > 0.5, v * 0.5, v)
        a = np.where(m > 0, m, 0)
        b = np.where(m[i] > 0, 1.0, -1)
        c = np.where(m, m[:, :1], m[0])
        d = np.where(v > i, 3, 4)
    return v, a, b, c, d


def chosen_where_it_divides(v):
    for i in range(3):
        w = np.where(v > 0, v / (v - i), 0.0)
    return w


def filled(v, m):
    for i in range(3):
        a = np.full(3, v[i])
        b = np.full((2, i), 7)
        c = np.full(m.shape, 1.5) + np.copy(m)
        d = np.copy(v)
        d[0] = i
    return a, b, c, d, v


CASES = [
    (spreads, M[0], M),
    (spreads, M[0].astype("f4"), M.astype("f4")),
    (spreads, M[0] * 1e200, M * 1e300),
    (spreads, M[0], np.asfortranarray(M)),
    (norms, M[0], M),
    (norms, M[0].astype("f4"), M.astype("f4")),
    (norms, np.arange(7), np.arange(42).reshape(6, 7)),
    (norms, M[0] * 1e200, M * 1e300),
    (of_truths, M[0], M),
    (of_truths, M[0] * 0, M * 0),
    (of_truths, M[0] > 0, M > 0),
    (of_truths, np.array([1, np.nan, 0.0]), M.astype("f4")),
    (of_truths, np.arange(7), np.asfortranarray(np.arange(42).reshape(6, 7))),
    (positions, M[0], M),
    (positions, M[0] * 0, np.where(M > 1, np.nan, M)),
    (positions, np.zeros(5) * -1.0, np.sign(M) * 0.0),
    (positions, np.arange(7), np.arange(42).reshape(6, 7) % 5),
    (position_of_nothing, M[0]),
    (positions_along, M, T),
    (positions_along, np.where(M > 1, np.nan, M), np.where(T > 0, -0.0, 0.0).astype("f4")),
    (positions_along, np.arange(42).reshape(6, 7) % 5, np.asfortranarray(T)),
    (positions_along, M, T[::-1] > 0),
    (positions_along, np.asfortranarray(M), T.astype(np.uint8)),
    (positions_along_nothing, M),
    *(
        (sums_of_small_integers, (M[0] * 1e3).astype(dtype), (M * 1e4).astype(dtype))
        for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "?")
    ),
    (chosen, M[0], M),
    (chosen, M[0].astype("f4"), M.astype("f4")),
    (chosen, M[0], np.asfortranarray(M)),
    (chosen_where_it_divides, np.array([0.5, 2.0, 3.0])),
    (chosen_where_it_divides, np.array([0.5, 4.0, 3.5])),
    (filled, M[0], M),
    (filled, np.arange(7), M),
    (filled, M[0].astype("f4"), np.asfortranarray(M)),
    (rows_and_columns, M),
    (rows_and_columns, np.asfortranarray(M)),
    (rows_and_columns, M[::-1]),
    (rows_and_columns, M.astype("f4")),
    (softmax, M),
    (softmax, M.astype("f4")),
    (softmax, np.where(M > 9, np.nan, M)),
    (convolved, RNG.random((2, 6, 6, 2)), W, np.zeros((2, 4, 4, 5))),
    (
        convolved,
        RNG.random((2, 6, 6, 2)).astype("f4"),
        W.astype("f4"),
        np.zeros((2, 4, 4, 5), "f4"),
    ),
    (convolved, RNG.random((2, 6, 6, 1)), W[:, :, :1, :1], np.zeros((2, 4, 4, 1))),
    (
        convolved,
        RNG.integers(-9, 9, (2, 6, 6, 2)),
        (W * 9).astype(int),
        np.zeros((2, 4, 4, 5), int),
    ),
    (pooled, T, np.zeros((4, 2, 4))),
    (pooled, np.where(T > 1, np.nan, T), np.zeros((4, 2, 4))),
    (pooled, np.where(T > 0, -0.0, 0.0), np.zeros((4, 2, 4))),
    (pooled, np.asfortranarray(T), np.zeros((4, 2, 4))),
    (of_one_element, -M[0] * 0, M),
    (of_nothing, M[0], M),
    (extreme_of_nothing, M),
    (overflows, M),
    (large, RNG.random((3, 9000))),
    (large, RNG.random((200, 300))),
    (wrong_axes, M),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_along_axes(case):
    function, *args = case
    # Before NEP 50 numbers beside arrays of other kinds are NumPy's.
    by_values = np.lib.NumpyVersion(np.__version__) < "2.0.0" and function in (of_truths, chosen)
    native = function is not wrong_axes and not by_values
    check(with_code_of_its_own(function), *args, native=native, most=12, name=__file__)


class Writer:
    """A random loop of reductions."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.values = np.random.default_rng(seed)

    def array(self, rank):
        shape = [self.rng.choice([1, 2, 3, 5, 8, 9, 40]) for _ in range(rank)]
        dtype = self.rng.choice(["f8", "f8", "f8", "f4", "i8", "c16", "c8", "i4", "u1"])
        made = self.values.normal(size=shape) * np.exp(self.values.normal(size=shape) * 3)
        if dtype[0] in "iu":
            made = np.clip(made * 10, 0, 250)
        made = made.astype(dtype)
        if dtype.startswith("c"):
            made = made + made[::-1] * made.dtype.type(1j)
        elif dtype[0] == "f" and self.rng.random() < 0.2:
            made.flat[self.rng.randrange(made.size)] = self.rng.choice([np.nan, np.inf, -0.0, 0.0])
        ways = {
            "as it is": made,
            "columns": np.asfortranarray(made),
            "steps": made[..., ::2],
            "reversed": made[::-1],
            "part": made[..., : max(1, made.shape[-1] - 1)],
            "turned": made.T,
        }
        return self.rng.choice([made, made, *ways.values()])

    def other(self, x):
        return self.rng.choice([x + 1, x * x, x[..., :1] * 2, x[:1], x])

    def line(self, number, rank):
        pick = self.rng.choice
        axes = [axis for axis in range(rank) if self.rng.random() < 0.5] or [pick(range(rank))]
        axis = str(axes[0] - (rank if self.rng.random() < 0.4 else 0))
        if len(axes) > 1 or self.rng.random() < 0.3:
            axis = str(tuple(axes))
        name = pick(["sum", "sum", "mean", "max", "min", "prod", "amax"])
        of = pick(["x", "x * y", "(x + y)", "x * y * 0.5", "x * i", "(x - y)", "y"])
        stay = pick(["", "", ", keepdims=True", ", keepdims=False"])
        by = f"{pick(['axis=', ''])}{axis}{stay}"
        if name != "amax" and self.rng.random() < 0.4:
            call = f"({of}).{name}({by})"
        else:
            call = f"np.{name}({of}, {by})"
        return f"        r{number} = {call}{pick(['', '', ' + 1', ' * 2'])}\n"

    def text(self, rank):
        lines = [self.line(number, rank) for number in range(4)]
        results = ", ".join(f"r{number}" for number in range(4))
        return f"def f(x, y):\n    for i in range(2):\n{''.join(lines)}    return {results}\n"


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_reductions(seed):
    writer = Writer(seed)
    rank = writer.rng.choice([1, 2, 2, 3, 3, 4])
    x = writer.array(rank)
    text, args = writer.text(rank), (x, writer.other(x))
    function = function_of(text, {"np": np})
    name = function.__code__.co_filename
    try:
        with told(eager=True):
            alike(outcome(looped(function), args, name), outcome(function, args, name))
    except BaseException:
        print(text)
        raise


def test_most_random_reductions_are_native():
    native = 0
    for seed in range(20):
        writer = Writer(seed)
        rank = writer.rng.choice([1, 2, 2, 3, 3, 4])
        x = writer.array(rank)
        function = function_of(writer.text(rank), {"np": np})
        made = looped(function)
        with told(eager=True):
            outcome(made, (x, writer.other(x)))
        native += any(loop.facts["versions"] for loop in heads.loops_of(made.__code__))
    assert native >= 8
