"""Are float16, longdouble and clongdouble computed in the loops, with NumPy's bits and warnings?"""

import numpy as np
import pytest
import ufuse
from arrays import DTYPES, array
from same import check
from ufuse import _core

HALVES = np.arange(65536, dtype=np.uint16).view(np.float16)


def numpy_calls(function, *args):
    notes = ufuse.jit(function).explain(*args).notes
    return [note for note in notes if note.kind == "numpy_call"]


def chain(x):
    y = np.where(x > 0.5, np.exp(-np.abs(x)) * 2, np.sqrt(x * x + 1) - x)
    y = y.astype(np.float64).astype(x.dtype) + np.tanh(y[::-1])
    return y, y.sum(axis=1), y.prod(axis=0), np.isnan(y) | (y != 1)


@pytest.mark.parametrize("dtype", "egG")
def test_a_chain_is_one_piece(dtype):
    x = np.random.default_rng(0).normal(size=(40, 50)).astype(dtype)
    function = chain if dtype != "G" else (lambda x: np.exp(-x) * 2 + np.sin(x[::-1]) - 1)
    check(function, x)
    assert numpy_calls(function, x) == []


@pytest.mark.parametrize("to", DTYPES)
def test_casts_of_every_half(to):
    check(lambda x: x.astype(to), HALVES)
    check(lambda x: x.astype(to), HALVES[np.isfinite(HALVES)].copy()[::-1])


@pytest.mark.parametrize("to", "egG")
@pytest.mark.parametrize("given", DTYPES)
def test_casts(given, to):
    if np.dtype(given).kind == "c" and to != "G":
        pytest.skip("NumPy warns of the imaginary part, and casts itself")
    check(lambda x: (x.astype(to), x[::2].astype(to) + 1), array(given, shape=(9, 40)))


@pytest.mark.parametrize("given", "fdg")
def test_casts_to_half_between_and_beyond_halves(given):
    finite = HALVES[np.isfinite(HALVES)].astype(given)
    steps = np.spacing(HALVES[np.isfinite(HALVES)]).astype(given)
    for part in (0.25, 0.5, 0.5 - 2.0**-12, 0.5 + 2.0**-12, 0.75):
        check(lambda x: x.astype("e"), finite + steps * part)
    wide = np.exp(np.random.default_rng(0).normal(size=4000) * 20).astype(given)
    check(lambda x: x.astype("e"), wide)


@pytest.mark.parametrize(
    "ufunc", [np.add, np.subtract, np.multiply, np.divide, np.maximum, np.less]
)
def test_pairs_of_halves(ufunc):
    rng = np.random.default_rng(0)
    x, y = rng.permutation(HALVES), rng.permutation(HALVES)
    check(lambda x, y: ufunc(x, y), x, y)


@pytest.mark.parametrize(
    "ufunc",
    [np.negative, np.absolute, np.sqrt, np.square, np.reciprocal, np.sign, np.rint, np.floor]
    + [np.ceil, np.trunc, np.isnan, np.isinf, np.isfinite, np.signbit, np.fabs, np.conjugate],
)
def test_every_half(ufunc):
    rounds = ufunc in (np.rint, np.floor, np.ceil, np.trunc)  # signalling NaNs: ir/SEMANTICS.md
    signals = np.isnan(HALVES) & (HALVES.view(np.uint16) & 0x200 == 0)
    check(lambda x: ufunc(x), HALVES[~signals] if rounds else HALVES)


WARNERS = [
    (lambda x: x * x, "e", 300),
    (lambda x: x * x, "e", 1e-4),
    (lambda x: x + x, "e", 65504),
    (lambda x: x / 0, "e", 1),
    (lambda x: (x - x) / 0, "e", 1),
    (lambda x: x.astype("e"), "f", 1e5),
    (lambda x: x.astype("e"), "d", 1e-6),
    (lambda x: x.astype("e"), "g", 65520),
    (lambda x: x.astype("e"), "l", 70000),
    (lambda x: (x.astype("e") > 0).any(), "l", 70000),
    (lambda x: x.astype("b"), "e", np.nan),
    (lambda x: x.astype("d"), "g", np.longdouble("1e4000")),
    (lambda x: np.exp(x), "e", 20),
    (lambda x: x * x, "g", np.longdouble("1e4000")),
    (lambda x: x / 0, "g", 1),
    (lambda x: np.sqrt(-x), "g", 1),
    (lambda x: x.sum(), "e", 60000),
    (lambda x: x.prod(), "e", 300),
    (lambda x: x < np.nan, "g", 1),
    (lambda x: x + 1e5, "e", 1),
]


@pytest.mark.parametrize("case", range(len(WARNERS)))
def test_warnings(case):
    function, dtype, value = WARNERS[case]

    def loudly(x):
        with np.errstate(all="warn"):
            return function(x)

    for x in (
        np.full(5, value, dtype),
        np.full(5, value, dtype)[0],
        np.full((3, 40), value, dtype),
    ):
        check(function, x)
        check(loudly, x)


@pytest.mark.parametrize("dtype", "egG")
def test_writes_views_and_creation(dtype):
    def function(x):
        x[1:-1] = x[2:] * 2
        x[x != x[0]] = 3
        x += np.arange(x.size).astype(x.dtype)
        y = np.zeros_like(x)
        y[::2] = x[::2]
        z = np.full(x.shape, 2.5, x.dtype) + np.ones(x.size, x.dtype)
        return (
            y,
            z,
            x.reshape(2, -1).T,
            x.real,
            x.imag,
            np.empty((2, 2), x.dtype).dtype,
            x[3],
            x[3] + 1,
        )

    check(function, array(dtype, shape=(12,)))
    check(
        lambda x: (np.linspace(0, 1, 5, dtype=x.dtype) + x[:5], np.arange(3, dtype=x.dtype)),
        array(dtype, shape=(12,)),
    )


@pytest.mark.parametrize("dtype", "eg")
def test_orders_of_reductions(dtype):
    rng = np.random.default_rng(0)
    for shape in [(3, 5), (7, 300), (300, 7), (2, 9000), (40, 50, 3), (200_000,)]:
        x = rng.normal(size=shape).astype(dtype)
        check(lambda x: (x.sum(), x.sum(axis=0), x.sum(axis=-1), x.T.sum(axis=0)), x)
        check(lambda x: ((x * 2).sum(axis=-1), (x + 1).mean(), x.var(axis=0)), x)
        check(lambda x: (x.max(), x.min(axis=0), x.max(axis=-1), x.prod(axis=0)), x)
        check(lambda x: (x.argmax(), x.argmin(axis=0), x.argmax(axis=-1)), x)
    zeros = np.array([0.0, -0.0, 0.0, -0.0] * 9, dtype)
    check(
        lambda x: (x.max(), x.min(), x[1:].max(), x[1:].min(), x.sum(), x.reshape(4, 9).max(0)),
        zeros,
    )
    nans = np.where(zeros == zeros, np.nan, 0).astype(dtype)
    check(lambda x: (x.max(), x.min(), x.argmax(), np.nanmax(x[:0], initial=2)), nans)


@pytest.mark.parametrize("dtype", "egG")
def test_numbers_beside_them(dtype):
    x = array(dtype, shape=(7,))
    for number in (
        1,
        -3,
        2**60 + 1,
        0.1,
        1e-5,
        True,
        1j,
        np.float32(0.1),
        np.int8(3),
        np.longdouble(0.1),
        np.float16(3),
        np.float64(0.1),
    ):
        check(lambda x, n: (x + n, n - x, x * n, x == n), x, number)
        # The line of a warning out of a stand-in written in Python is not NumPy's.
        check(lambda x, n: np.where(x != 0, x, n), x, number, _warnings=number != 2**60 + 1)


@pytest.mark.parametrize(
    "f",
    [
        lambda a, x: np.negative([a]),
        lambda a, x: np.fmax([a], [a, a]),
        lambda a, x: np.add([x.sum(), x[0]], 0),
        lambda a, x: np.array([[x[1]], [a]]) + [x[2]],
        lambda a, x: x.sum() * a + x[0],
        lambda a, x: (x * a, [x.sum()], x.mean(), x[0].real),
    ],
)
@pytest.mark.parametrize("dtype", [np.longdouble, np.clongdouble])
def test_long_numbers_in_lists_keep_all_digits(f, dtype):
    x = np.arange(1, 5).astype(dtype) / 3
    for a in (dtype(np.finfo(np.longdouble).max), dtype(1) / 3, dtype(7)):
        for _ in range(2):
            check(f, a, x)


@pytest.mark.parametrize("code", "egG")
def test_where_has_a_loop(code):
    x = np.linspace(1, 2, 500).astype(code)
    before = _core.jit_statistics()["failed"]
    check(lambda x: np.where(x != 1, x * x, x / 2), x)
    assert _core.jit_statistics()["failed"] == before
