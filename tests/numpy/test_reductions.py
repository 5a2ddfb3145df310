"""Do reductions give NumPy's bits, for every axis, option, dtype and layout?"""

import numpy as np
import pytest
import ufuse
from arrays import DTYPES, LAYOUTS, array
from same import check

SHARES = {"test_every_dtype": 2, "test_every_layout": 3, "test_order_of_sums": 2}
REDUCTIONS = [
    "sum",
    "prod",
    "min",
    "max",
    "any",
    "all",
    "mean",
    "var",
    "std",
    "argmin",
    "argmax",
    "ptp",
    "nansum",
    "nanmax",
    "nanmean",
    "count_nonzero",
    "cumsum",
    "median",
]
AXES = [None, 0, 1, -1, (0, 1), (1, 0), (), (0, 2), 2]


@pytest.fixture(params=[1, 2])
def threads(request):
    """With one thread and with two."""
    before = ufuse.get_num_threads()
    ufuse.set_num_threads(request.param)
    yield request.param
    ufuse.set_num_threads(before)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_every_dtype(name, dtype):
    function = getattr(np, name)
    x = array(dtype, shape=(5, 6, 7))
    check(lambda x: (function(x), function(x, axis=0), function(x, axis=-1)), x)


@pytest.mark.parametrize("layout", LAYOUTS[1:])
@pytest.mark.parametrize("name", REDUCTIONS[:12])
def test_every_layout(name, layout):
    function = getattr(np, name)
    for dtype in "dleg":
        x = array(dtype, layout)
        axis = None if x.ndim == 0 else 0
        check(lambda x: function(x, axis=axis), x)
        if x.ndim > 1:
            check(lambda x: function(x, axis=1), x)
            check(lambda x: function(x), x)


@pytest.mark.parametrize("keepdims", [True, False, 0, 2, None, [], "x", np.True_, 1.0], ids=repr)
def test_values_of_keepdims(keepdims):
    x = np.arange(6.0).reshape(2, 3)
    check(lambda x: np.sum(x, axis=0, keepdims=keepdims), x)
    check(lambda x: np.logical_or.reduce(x, keepdims=keepdims), x)
    check(lambda x: x.mean(axis=1, keepdims=keepdims), x)
    check(lambda x: np.argmin(x, axis=1, keepdims=keepdims), x)


def test_masks_that_do_not_fit():
    x, mask = np.arange(3.0), np.array([True, False, True])
    check(lambda x, m: x[1].sum(where=m), x, mask)
    check(lambda x, m: np.add.reduce(x[:, None][0], where=m[None]), x, mask)
    check(lambda x, m: np.max(x, where=m[:2], initial=0), x, mask)
    check(lambda x, m: np.prod(x[:0], where=m, initial=2), x, mask)
    check(lambda x, m: np.any(x, where=np.outer(m, m)), x, mask)


@pytest.mark.parametrize("axis", [0, -1, 1, (), (0,), (-1,), (0, 0), None], ids=str)
def test_axes_of_nothing(axis):
    for x in (np.array(3.0), np.float64(3.0)):
        check(lambda x: np.add.reduce(x, axis=axis), x)
        check(lambda x: np.max(x, axis=axis, keepdims=True), x)
        check(lambda x: np.any(x, axis=axis), x)
        check(lambda x: np.mean(x, axis=axis), x)
        check(lambda x: np.linalg.norm(x, axis=axis), x)
        check(lambda x: np.squeeze(x, axis=axis), x)
        check(lambda x: np.argmax(x, axis=axis), x)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS[:9])
def test_axes(name, axis, keepdims):
    function = getattr(np, name)
    x = np.random.default_rng(0).normal(size=(4, 5, 6))
    check(lambda x: function(x, axis=axis, keepdims=keepdims), x)
    check(lambda x: function(x.transpose(2, 0, 1), axis=axis, keepdims=keepdims), x)


@pytest.mark.parametrize("name", ["sum", "prod", "min", "max", "any", "all"])
def test_initial_and_where(name):
    function = getattr(np, name)
    x = array("d", shape=(6, 7))
    mask = array("?", shape=(6, 7))
    if name not in ("any", "all"):
        check(lambda x: (function(x, initial=2), function(x, initial=1.5, axis=0)), x)
        check(lambda x, m: function(x, initial=1, where=m), x, mask)
        check(lambda x, m: function(x, axis=1, initial=1, where=m), x, mask)
    if name not in ("min", "max"):
        check(lambda x, m: (function(x, where=m), function(x, axis=0, where=m[0])), x, mask)


def test_where_of_moments():
    x, mask = array("d", shape=(6, 7)), array("?", shape=(6, 7))
    check(lambda x, m: (x.mean(where=m), x.std(axis=1, where=m)), np.nan_to_num(x) % 7, mask)


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.int32, np.complex128, bool, "e", "g", object]
)
def test_dtype_argument(dtype):
    for given in "lfd?e":
        x = np.abs(array(given, shape=(5, 6))) % 3 if given != "?" else array("?", shape=(5, 6))
        check(lambda x: (np.sum(x, dtype=dtype), np.sum(x, axis=0, dtype=dtype)), x)


def test_out():
    x = np.random.default_rng(1).normal(size=(5, 6))
    check(lambda x, o: np.sum(x, axis=0, out=o), x, np.zeros(6))
    check(lambda x, o: x.max(axis=1, out=o), x, np.zeros(5))
    check(lambda x, o: np.mean(x, axis=1, out=o), x, np.zeros(5, np.float32))


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 127, 128, 129, 1000, 8191, 8192, 8193, 20000])
@pytest.mark.parametrize("dtype", ["e", "f", "d", "g", "D", "G"])
def test_order_of_sums(n, dtype):
    x = np.random.default_rng(n).normal(size=(3, n)).astype(dtype)
    check(lambda x: (x.sum(), x.sum(axis=1), x.sum(axis=0), x.T.sum(axis=0), x[:, ::2].sum()), x)
    check(lambda x: (x * 2 + 1).sum(axis=1), x)
    check(lambda x: (x.mean(), x.var(axis=1)), x, _warnings=n > 0)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (1, 7, 1), (300, 3), (3, 300), (0, 3), (3, 0), ()])
def test_shapes(shape):
    x = np.random.default_rng(0).normal(size=shape)
    for axis in [None, *range(len(shape))]:
        check(lambda x: (x.sum(axis=axis), (x + 1).prod(axis=axis)), x)
        check(lambda x: x.max(axis=axis), x)
        check(lambda x: x.argmin(axis=axis), x)


def test_consecutive():
    x = np.random.default_rng(0).normal(size=(40, 9))
    check(lambda x: (x - x.mean(0)) / x.std(0) + x.sum(1, keepdims=True) * x.max(), x)
    check(lambda x: ((x - x.min(1)[:, None]) ** 2).sum(0).argmax(), x)


@pytest.mark.parametrize("at", [None, 0, 1023, 1024, 69_999])
def test_any_and_all_stop_at_the_answer(at, threads):
    x = np.zeros(70_000)
    if at is not None:
        x[at] = 2.0
    check(lambda x: (x > 1).any(), x)
    check(lambda x: (x < 1).all(), x)
    check(lambda x: (np.any(x), np.all(x == 0)), x)
    check(lambda x: (x > 1).reshape(7, -1).any(1), x)
    check(lambda x: (x < 1).reshape(-1, 7).all(0), x)


def test_any_sees_all_warnings():
    x = np.ones(70_000)
    y = np.ones(70_000)
    y[-1] = 0.0
    check(lambda x, y: (x / y > 0.5).any(), x, y)
    check(lambda x, y: (x / y > 0.5).all(), x, y)


COUNTS = [
    lambda x, m: m.sum(),
    lambda x, m: np.count_nonzero(m),
    lambda x, m: (m.mean(), np.nonzero(m), x[m]),
    lambda x, m: (x > 0.25).sum(),
    lambda x, m: np.sum((x > 0.25) & m, dtype="i4"),
    lambda x, m: np.sum(x < 0.75, dtype="u1"),
    lambda x, m: np.add.reduce(m, dtype="f4"),
    lambda x, m: m[::-1].sum() + m[::3].sum(initial=5),
]


@pytest.mark.parametrize("share", [0, 0.001, 0.1, 0.5, 1])
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 255 * 64, 255 * 64 + 1, 70_001])
@pytest.mark.parametrize("f", COUNTS)
def test_counts_of_truths(f, n, share, threads):
    rng = np.random.default_rng(n)
    check(f, rng.random(n), rng.random(n) < share)


def test_bytes_that_count_as_true():
    m = np.arange(40_000, dtype="u1").view(bool)
    check(lambda m: (np.count_nonzero(m), np.nonzero(m), m.sum(), m.mean()), m)
    check(lambda x, m: x[m], np.arange(40_000), m)


@pytest.mark.parametrize("kind", ["f8", "f4", "i8", "i2", "u1", "?"])
@pytest.mark.parametrize("n", [1, 63, 4097, 70_001])
def test_extremes_of_long_runs(kind, n):
    rng = np.random.default_rng(n)
    x = (rng.normal(size=n) * 40).astype(kind)
    for make in (lambda x: x, lambda x: x[::-1], lambda x: x[::3]):
        check(lambda x: (x.min(), x.max(), x.argmin(), x.argmax()), make(x))
    if kind[0] == "f":
        for at in (0, n // 2, n - 1):
            for odd in (np.nan, np.inf, -0.0):
                y = np.abs(x) if odd == 0 else x.copy()
                y[at] = odd
                check(lambda x: (x.min(), x.max(), x.argmin(), x.argmax()), y)
                check(lambda x: (x * 2).max(), y)


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i8"])
@pytest.mark.parametrize("n", [16_385, 70_001])
def test_sums_of_block_calls_along_runs(n, dtype, threads):
    """Too long for a row of scratch, so the ufunc's own loop runs on a block at a time."""
    x = np.random.default_rng(1).normal(size=n).astype(dtype)
    check(lambda x: np.exp(x * x / -9).sum(), x)
    check(lambda x: (np.tanh(x).mean(), np.sin(x).std()), x)
    check(lambda x: np.log(x[1:] + x[:-1]).sum(), x)  # warns
    check(lambda x: (np.exp(x) + 1).sum(initial=2), x[::-3])


def test_sums_of_block_calls_in_several_dimensions():
    x = np.random.default_rng(2).normal(size=(3, 20_000))
    both = [
        lambda x: np.exp(x).sum(),
        lambda x: np.exp(x).sum(axis=1),
        lambda x: np.exp(x.T).sum(),
        lambda x: np.exp(x).sum(axis=1, keepdims=True) + x,
        lambda x: np.log(np.exp(x - x.max()).sum()) + x.max(),
        lambda x: np.arctan2(x[:, ::2], np.cbrt(x[:, 1::2])).sum(),
        lambda x: np.exp((x[:, :, None] * [1.0, 2.0, 3.0]).sum(-1)).sum(),
    ]
    for f in both:
        check(f, x)
        check(f, x.astype(np.float32))


def test_block_calls_that_others_want_too():
    def softmax(x):
        e = np.exp(x)
        return e / e.sum()

    def twice(x):
        e = np.exp(x) + 1
        return e.sum(), (e * 2).sum(), e[::2]

    x = np.random.default_rng(3).normal(size=(200, 300))
    for f in (softmax, twice):
        check(f, x)
        check(f, x.ravel())
        exps = [group.ops.count("exp") for group in ufuse.jit(f).explain(x).groups]
        assert sum(exps) == 1, exps


@pytest.mark.parametrize("dtype", ["?", "u1", "i1", "u2", "i2"])
@pytest.mark.parametrize("n", [17, 300, 70_001])
def test_means_of_narrow_numbers(n, dtype, threads):
    x = (np.random.default_rng(4).normal(size=(2, n)) * 50).astype("i2").astype(dtype)
    check(lambda x: (x.mean(), x.mean(axis=1), x.std(axis=0)), x)
    check(lambda x: (x[:, ::2].mean(axis=1), (x > 3).mean(), (x * 2.5).sum(axis=1)), x)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i2", "c16"])
def test_columns_of_large_matrices(dtype, threads):
    """Threads get some columns each; later rows are fetched where that pays."""
    x = (np.random.default_rng(5).normal(size=(1500, 1001)) * 50).astype(dtype)
    f = lambda x, m: (x.sum(axis=0), ((x - m) * x).sum(axis=0), np.abs(x).min(axis=0))  # noqa: E731
    g = lambda x: (x.argmax(axis=0), (x > 1).any(axis=0), x.prod(axis=0))  # noqa: E731
    for y in (x, x[:, 100:900], x[3::2, :7], x[:2], x[::-1]):
        check(f, y, y[1])
        check(g, y)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "i8", "f4"])
@pytest.mark.parametrize("columns", [3, 4, 5, 7, 8, 9])
def test_long_columns_beside_each_other(columns, dtype, threads):
    """Any order gives the same integers: column by column, or row by row."""
    x = (np.random.default_rng(6).normal(size=(40_001, columns)) * 50).astype(dtype)
    for y in (x, x[::2], np.asfortranarray(x)):
        check(lambda x: (x.sum(axis=0), x.max(axis=0), x.any(axis=0)), y)
        check(lambda x: (x | x[0]).prod(axis=0) if x.dtype.kind in "iu" else x.min(axis=0), y)
        check(lambda x: ((x == x[5]).all(axis=0), (x * 2).sum(axis=0), x.argmin(axis=0)), y)
