"""Does every ufunc give NumPy's bits for every dtype and layout, called, reduced and into ``out=``?"""

import warnings

import numpy as np
import pytest
import ufuse
from arrays import COMPLEXES, DTYPES, FLOATS, LAYOUTS, array
from same import check, check_all

UFUNCS = sorted(
    {u.__name__: u for u in vars(np).values() if isinstance(u, np.ufunc)}.values(),
    key=lambda u: u.__name__,
)
ELEMENTWISE = [u for u in UFUNCS if u.signature is None]
BY_NAME = {u.__name__: u for u in ELEMENTWISE}
SHARES = {"test_every_layout": 3, "test_weak_scalars": 3}
ids = pytest.mark.parametrize("ufunc", ELEMENTWISE, ids=lambda u: u.__name__)


def accepts(ufunc, *dtypes):
    """Whether NumPy has a loop for operands of these dtypes."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ufunc(*(np.ones(1, dtype) for dtype in dtypes))
    except TypeError:
        return False
    return True


def operands(ufunc, dtypes, layout):
    return [array(dtype, layout, seed=k) for k, dtype in enumerate(dtypes)]


@ids
def test_every_dtype(ufunc):
    """One dtype for all operands; all dtypes in one function, so that they compile together."""
    dtypes = [d for d in DTYPES if accepts(ufunc, *[d] * ufunc.nin)]
    given = [operands(ufunc, [d] * ufunc.nin, "contiguous") for d in dtypes]
    check(lambda given: [ufunc(*args) for args in given], given)


@ids
@pytest.mark.parametrize("layout", LAYOUTS[1:])
def test_every_layout(ufunc, layout):
    dtypes = [d for d in "d?lfD" if accepts(ufunc, *[d] * ufunc.nin)][:2]
    others = [d for d in "egG" if accepts(ufunc, *[d] * ufunc.nin)]
    for some in (dtypes, others):
        given = [operands(ufunc, [d] * ufunc.nin, layout) for d in some]
        check(lambda given: [ufunc(*args) for args in given], given)


@pytest.mark.parametrize("ufunc", [u for u in ELEMENTWISE if u.nin == 2], ids=lambda u: u.__name__)
def test_mixed_dtypes(ufunc):
    pairs = [
        "df",
        "dl",
        "fb",
        "bB",
        "lL",
        "?h",
        "Fd",
        "Df",
        "iI",
        "H?",
        "ld",
        "eb",
        "ef",
        "he",
        "ge",
        "lg",
        "Ge",
        "gF",
    ]
    pairs = [p for p in pairs if accepts(ufunc, *p)]
    given = [operands(ufunc, p, "contiguous") for p in pairs]
    check(lambda given: [ufunc(*args) for args in given], given)


@pytest.mark.parametrize("ufunc", [u for u in ELEMENTWISE if u.nin == 2], ids=lambda u: u.__name__)
@pytest.mark.parametrize("weak", [3, -1, 2.5, 0, True, 1j, 300, 10**20], ids=repr)
def test_weak_scalars(ufunc, weak):
    if weak == 10**20 and ufunc is np.power and np.__version__.startswith("1."):
        pytest.skip("NumPy 1 makes objects of these, whose powers have no end")
    dtypes = [d for d in "dfblBDegG" if accepts(ufunc, d, d)]

    def function(given, weak):
        return [ufunc(x, weak) for x in given], [ufunc(weak, x) for x in given]

    check_all(function, [([array(d, shape=(5,))], weak) for d in dtypes], _text=False)


@pytest.mark.parametrize("ufunc", [u for u in ELEMENTWISE if u.nin == 2], ids=lambda u: u.__name__)
def test_broadcast_and_scalars(ufunc):
    dtypes = [d for d in "dlfeg" if accepts(ufunc, d, d)]
    for d in dtypes:
        x, y = array(d, shape=(4, 1, 5)), array(d, shape=(3, 1), seed=1)
        check(lambda x, y: (ufunc(x, y), ufunc(x[0, 0, 0], y), ufunc(x[0, 0, 1], x[0, 0, 2])), x, y)


@ids
def test_out(ufunc):
    def function(args, outs):
        return ufunc(*args, out=tuple(outs))

    for d in [d for d in "dlfeG" if accepts(ufunc, *[d] * ufunc.nin)]:
        args = operands(ufunc, [d] * ufunc.nin, "contiguous")
        if ufunc.__name__ == "power" and d != "G":
            args = [np.abs(args[0]), args[1] % 3]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = ufunc(*args)
        results = results if isinstance(results, tuple) else (results,)
        check(function, args, [np.zeros_like(r) for r in results])
        check(function, args, [np.zeros(r.shape[::-1], r.dtype).T for r in results])
        # Into a dtype that may not fit: NumPy's error.
        check(function, args, [np.zeros(r.shape, np.int8) for r in results])


@pytest.mark.parametrize(
    "name", ["add", "multiply", "maximum", "logical_and", "bitwise_or", "power"]
)
def test_methods(name):
    ufunc = BY_NAME[name]
    for d in [d for d in "dl?eg" if accepts(ufunc, d, d)]:
        x = array(d, shape=(4, 5))
        check(lambda x: ufunc.accumulate(x), x)
        check(lambda x: ufunc.accumulate(x, axis=1), x)
        check(lambda x: ufunc.outer(x[0], x[1]), x)
        check(lambda x: ufunc.reduceat(x, [0, 2], axis=0), x)
        check(lambda x: ufunc.at(x, [0, 1], x[2]), x)
        check(lambda x: ufunc(x, x, where=x > 1, out=np.zeros_like(x)), x)
        check(lambda x: ufunc(x, x, dtype=np.float32), x)
        check(lambda x: ufunc(x, x, casting="no"), x)


@pytest.mark.parametrize("dtype", ["O", "M8[s]", "m8[s]", "S3", "U3"])
def test_other_dtypes(dtype):
    if dtype in ("S3", "U3"):
        x = np.array(["ab", "c", "ab"], dtype)
        check(lambda x: (x == x[::-1], x.astype("U5")), x)
        return
    x = np.arange(6).astype(dtype) if dtype != "O" else np.array([1, 2.5, 3, 4, 5, 6], object)
    check(lambda x: (x - x[0], x[1:] == x[:-1], x.max()), x)


def test_structured_and_subclasses():
    x = np.zeros(4, [("a", "f8"), ("b", "i4")])
    check(lambda x: (x["a"] + 1, x[0]), x)
    check(lambda m: m * m, np.matrix([[1.0, 2.0], [3.0, 4.0]]))
    masked = np.ma.masked_array(np.arange(4.0), [0, 1, 0, 0])
    check(lambda m: (m + 1).sum(), masked)


def test_other_packages():
    special = pytest.importorskip("scipy.special")
    x = np.linspace(0.1, 4, 37)
    check(lambda x: special.erf(x) * 2 + special.gamma(x), x)
    check(lambda x: special.jv(2, x) + special.xlogy(x, x), x)


@pytest.mark.parametrize("dtype", FLOATS + COMPLEXES)
def test_chain_of_all_unary(dtype):
    names = [
        "exp",
        "log",
        "sqrt",
        "sin",
        "cos",
        "tanh",
        "square",
        "negative",
        "absolute",
        "reciprocal",
    ]

    def function(x):
        return [BY_NAME[name](x * 0.5 + 1) - x for name in names]

    check(function, array(dtype, shape=(300,)))


TARGETS = {
    "as it is": lambda x: x,
    "gaps": lambda x: np.repeat(x, 2)[::2],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "columns": lambda x: x.reshape(3, -1).copy().T,
    "rows backwards": lambda x: x.reshape(3, -1)[:, ::-1].copy()[:, ::-1],
}
ROUNDED = {
    "multiply": ("dd", "DD", "FF"),
    "absolute": ("D", "F"),
    "square": ("D", "F"),
    "exp": ("d", "f"),
    "log": ("d",),
    "arctan2": ("dd",),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ROUNDED)
def test_loops_that_round_by_layout(name, target):
    """Inner loops that take another way for memory with gaps, backwards or of an operand."""
    ufunc, layout = getattr(np, name), TARGETS[target]
    into = lambda *args: ufunc(*args[:-1], out=args[-1])  # noqa: E731
    in_place = lambda *args: ufunc(*args, out=args[-1])  # noqa: E731
    rng = np.random.default_rng(0)
    for types in ROUNDED[name]:
        operands = [(rng.normal(size=(300, 2)) @ (5, 5j)) for _ in types]
        operands = [(x if t in "FD" else abs(x)).astype(t) for x, t in zip(operands, types)]
        operands = [layout(x) for x in operands]
        made = ufunc(*operands)
        for other in (made.copy(), layout(made.ravel())):
            if other.shape == made.shape:
                check(into, *operands, other)
        if made.dtype == types[-1]:
            check(in_place, *operands)


# NumPy's loops choose their code, and with it the last bits, by stride; so a loop must get the
# operand that NumPy would hand it, whether or not that array stands in memory here.


def _after_out(x):
    y = np.empty(x.shape)
    y[:] = x[::-1]
    return np.log1p(y)


STRIDES = [
    lambda x: np.log1p((x + 1)[::-1]),
    lambda x: np.log1p((x + 1)[::-1] * 1.5),
    lambda x: np.log1p((x + 1)[::3]),
    lambda x: np.log1p(x[::-1].copy()),
    lambda x: np.log1p(x[::-1].flatten()),
    lambda x: np.log1p(x[::-1].ravel()),
    lambda x: np.log1p(np.array(x[::-1])),
    lambda x: np.log1p(np.ascontiguousarray(x[::-1])),
    lambda x: np.log1p(x[::-1].astype(x.dtype)),
    lambda x: np.log1p(x[::-1].copy()[::-1]),
    lambda x: np.log1p(x.copy()[::-1]),
    lambda x: np.log1p(+x[::-1]),
    lambda x: np.log1p(np.flip(x * 1.5)),
    lambda x: np.log1p((x + 1).reshape(-1, 5)[::-1, ::-1]),
    lambda x: np.log1p((x + 1).reshape(-1, 5)[:, ::-1]),
    lambda x: np.log1p((x + 1).reshape(-1, 5).T[::-1]),
    lambda x: np.log1p((x + 1).reshape(-1, 5)[:, 2]),
    lambda x: (x + 1)[::-1] ** 1.3,
    lambda x: np.arctan2((x + 1)[::-1], x),
    _after_out,
]


@pytest.mark.parametrize("function", STRIDES)
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_strides_of_operands(function, dtype):
    # NumPy takes an output that ends where a reversed operand begins in memory for one that
    # overlaps it, and computes it in another way, with other bits. Memory of an odd number of
    # doubles can lie so.
    check(function, np.abs(np.random.default_rng(0).normal(size=110)).astype(dtype) * 2)


def _in_place(ufunc):
    def function(x):
        ufunc(*[x] * ufunc.nin, out=x)
        return x

    return function


@pytest.mark.parametrize("layout", ["reversed", "strided", "transposed"])
@pytest.mark.parametrize(
    "name", ["log1p", "tanh", "cbrt", "power", "arctan2", "square", "multiply"]
)
def test_strides_of_outputs(name, layout):
    ufunc = BY_NAME[name]
    for dtype in [d for d in "fdFD" if accepts(ufunc, *[d] * ufunc.nin)]:
        x, y = (array(dtype, layout, (5, 33), seed) for seed in (0, 1))
        args = [x, y][: ufunc.nin]
        check(_in_place(ufunc), x)
        check(lambda args, out: ufunc(*args, out=out), args, y)
        check(lambda args, out: ufunc(*args, out=out), args, y.copy())
        check(lambda args, out: ufunc(*args, out=out), [a.copy() for a in args], y)


def test_outputs_that_are_one_array():
    x = np.random.default_rng(0).normal(size=7)
    check(lambda x: np.modf(x, x, x), x)
    check(lambda x, y: np.divmod(x, 2, y, y), x, np.zeros(7))
    check(lambda x, y: np.modf(x, y[:1], y[:1]), x[:1], np.zeros(7))
    square = np.random.default_rng(0).normal(size=(4, 4))
    check(lambda x, y: np.modf(x, y, x), square, square.T)


def test_no_output_is_written_when_one_cannot_be():
    x, y = np.random.default_rng(0).normal(size=(2, 7))
    check(lambda x, y, n: np.modf(x, y, n), x, y, np.zeros(7, int))
    check(lambda x, y, n: np.modf(x, y, n), x, y, np.zeros(8))
    read_only = np.zeros(7)
    read_only.flags.writeable = False
    check(lambda x, y, n: np.modf(x, y, n), x, y, read_only)


def test_methods_beside_out_and_ellipsis():
    def function(x, y):
        np.add(x, y, out=x)
        y[..., 0] = np.add.reduce(x, axis=-1)
        np.add.at(y, [0, 0], 1)
        return np.add.accumulate(x), np.add.outer(x[0], y[0]), np.add.identity

    check(function, *np.random.default_rng(0).normal(size=(2, 4, 5)))


@pytest.mark.parametrize("dtype", ["F", "D"])
def test_products_of_complex_numbers(dtype):
    """NumPy fuses one product with the sum in its vector code only, so one number may differ."""
    parts = np.random.default_rng(0).normal(size=(40, 2, 2)) @ [1, 1j]

    def scalars(a, b):
        s, t = a + 0, b + 0
        return (
            s * t,
            s * s.conj(),
            s**2,
            np.square(a),
            a * b,
            s * b,
        )

    def in_place(a, b):
        a *= b
        b **= 2
        np.square(a, out=a)
        a *= a
        return a, b

    for a, b in parts.astype(dtype):
        check(scalars, np.array(a), np.array(b))
        check(scalars, a, b)
        check(in_place, np.array([a]), np.array([b]))
        check(in_place, np.array([a, b]), np.array([b, a]))


@pytest.mark.parametrize("dtype", ["F", "D"])
def test_products_of_complex_scalars_by_ufuncs(dtype):
    """NumPy does so in memory of its own or in place, as the addresses are: either is right."""
    native = ufuse.jit(lambda a, b: (np.multiply(a + 0, b + 0), np.square(a + 0)))
    parts = np.random.default_rng(0).normal(size=(40, 2, 2)) @ [1, 1j]
    for a, b in parts.astype(dtype):
        s, t = a + 0, b + 0
        for found, ufunc, operands in zip(native(a, b), (np.multiply, np.square), ([s, t], [s])):
            own, in_place = [np.array(x) for x in operands], [np.array(x) for x in operands]
            either = {ufunc(*own).tobytes(), ufunc(*in_place, out=in_place[0]).tobytes()}
            assert type(found) is type(s)
            assert found.tobytes() in either


@pytest.mark.parametrize("dtype", ["f", "d", "F"])
def test_strides_of_one_element(dtype):
    x = np.random.default_rng(0).normal(size=(20, 2)).astype(dtype)
    for pair in x:
        check(lambda x: (np.log1p(x), np.tanh(x), x**1.3, x * 2, x * x), pair[:1][::-1])
        check(lambda x: (np.log1p(x), np.tanh(x), x**1.3, x * 2, x * x), pair[::2])
        check(lambda x: np.tanh((x + 1)[::-2][:1]), pair)


# What a compiler may find out to be the same for all elements makes other values needless. NumPy
# computes them all, and warns.
NEEDLESS = [
    lambda x, i: np.where(x < x, np.sqrt(x), x),
    lambda x, i: np.where(i == i, x, np.sqrt(x)),
    lambda x, i: np.where(~(i >= i), x, 1 / (x - x)),
    lambda x, i: np.where((x < 0) & (x > 0) & (x < x), np.sqrt(x), x),
    lambda x, i: np.where(np.zeros(x.shape, bool), np.sqrt(x), x),
    lambda x, i: np.where(np.ones(x.shape, bool), x, np.log(x)),
    lambda x, i: np.where(np.sqrt(x) < -np.abs(x), np.sqrt(x), x),
    lambda x, i: np.where(i.astype("u1") < np.uint8(0), np.sqrt(x), x),
    lambda x, i: np.where(np.logical_and(x[0] < 100, x < x), np.sqrt(x), x),
    lambda x, i: np.where(np.logical_or(np.bool_(len(x) > 0), i == i), x, np.sqrt(x)),
    lambda x, i: (np.sqrt(x) > 0) & (x < x),
    lambda x, i: np.logical_or(i == i, np.sqrt(x) > 0),
    lambda x, i: np.logical_and(i - i, 1 / (i - i) > 0),
    lambda x, i: (i - i) * np.sqrt(x).astype(int),
    lambda x, i: (i ^ i) & (x / 0).astype(int),
    lambda x, i: (i | ~i) | np.sqrt(x).astype(int),
    lambda x, i: np.sqrt(x) * np.where(x < x, np.sqrt(x - 100), 2.0),
    # It cannot find this out, for the two that are compared have nothing to do with each other.
    lambda x, i: (x[0] * 0 + 1000 < x) & (np.sqrt(x) > 0),
    lambda x, i: np.where(x[1:] * 0 - 1000 > x[:-1], np.sqrt(x[1:]), x[1:]),
    lambda x, i: np.logical_or(abs(x[::-1]) >= x - 1000, np.log(x) > 0),
    # One of several values is chosen for each element.
    lambda x, i: np.where(x > 100, np.sqrt(x), x),
    lambda x, i: np.where(x > 100, x, 1 / (i - i)),
    lambda x, i: np.where(x > 100, np.where(x > 99, np.sqrt(x), x), i),
    lambda x, i: np.where(x > 100, x * np.finfo(x.dtype).max * 9, 0).sum(),
    lambda x, i: np.where(x > 100, np.finfo(x.dtype).max * x + np.finfo(x.dtype).max, x),
    lambda x, i: np.where(x > 100, (x * np.finfo(x.dtype).max).astype("f2"), 0),
    lambda x, i: np.where(x > 100, (x + 1j) * np.finfo(x.dtype).max, x),
    lambda x, i: np.minimum((x * np.finfo(x.dtype).max) ** 2, x),
    lambda x, i: np.maximum(-((x * np.finfo(x.dtype).max) ** 2), x),
    lambda x, i: np.clip((x * np.finfo(x.dtype).max) ** 2, 0, 1),
    # No element is used.
    lambda x, i: np.compress(x > 100, np.sqrt(x)).sum(),
    lambda x, i: np.sqrt(x)[x > 100].sum() + 1,
    lambda x, i: np.sqrt(x)[3:3].sum(),
    lambda x, i: (np.sqrt(x) * np.ones((0, 1))).sum(axis=1),
    lambda x, i: np.broadcast_to(np.sqrt(x), (0, 40)).any(),
    lambda x, i: np.take(np.sqrt(x), i[:0]).sum(),
]


@pytest.mark.parametrize("f", NEEDLESS)
def test_values_that_a_compiler_might_leave_out_warn(f):
    x = np.random.default_rng(1).normal(size=40)
    i = np.arange(40)
    check(f, x, i)
    check(f, x.astype("f4"), i.astype("i2"))
    check(f, np.abs(x) + 1, i + 1)


NANS_COMPARED = [
    lambda x, y: x < y,
    lambda x, y: (x >= 0.5) & (x < y) | (y >= 2) & ~(x > 1),
    lambda x, y: (x > y).sum(axis=0),
    lambda x, y: (x >= y).any(),
    lambda x, y: np.where(x <= y, x, -y),
    lambda x, y: np.clip(x, -1, 1) + 0,
    lambda x, y: np.sign(x) * (x > 0.25),
    lambda x, y: np.maximum(x, y) < np.minimum(np.abs(y), 3),
    lambda x, y: (np.maximum.accumulate(x) > y).astype("i1"),
    # In one loop with what may warn.
    lambda x, y: np.where(x < y, x * 2, y),
    lambda x, y: (x + y > 1).mean(),
    lambda x, y: ((x - y) / 2 >= x).astype(x.dtype) + y,
    lambda x, y: (x < y).astype("f4") / np.maximum(np.abs(x), 1),
    lambda x, y: np.where(np.exp(x) > y, x, 0),
]


@pytest.mark.parametrize("errors", ["warn", "raise"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("f", NANS_COMPARED)
def test_comparisons_with_nan_do_not_warn(f, dtype, errors):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 30, 70)).astype(dtype)
    x[rng.random(x.shape) < 0.3] = np.nan
    y[rng.random(x.shape) < 0.3] = -np.nan
    x[3, :9], y[3, :9] = 0.0, -0.0
    with np.errstate(all=errors, under="ignore"):
        check(f, x, y)
        check(f, x, x)
        x[5, 5:8] = y[5, 4:9] = np.inf
        y[6] = -np.inf
        check(f, x, y)
        check(f, x[:, ::-2], y[:, ::2])


@pytest.mark.parametrize("subok", [True, False, 1, None, [], np.True_, np.array([True])], ids=str)
def test_subok(subok):
    check(lambda x: (np.sqrt(x, subok=subok), 1), np.arange(3.0))
    check(lambda x: np.add(x, x, subok=subok), np.arange(3.0))
    check(lambda x: x.astype("f4", subok=subok), np.arange(3.0))
