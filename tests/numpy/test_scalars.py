"""Do NumPy scalars stay scalars, and Python numbers weak?"""

import operator
import statistics

import numpy as np
import pytest
import ufuse
from arrays import DTYPES, array
from same import check, check_all

SHARES = {"test_python_numbers": 3, "test_assigned_numpy_scalars": 2}
OPERATORS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
    "and_": "&",
    "or_": "|",
    "xor": "^",
    "lshift": "<<",
    "rshift": ">>",
}
PYTHON = [True, 0, 2, -1, 2.5, 0.0, -0.0, 1e300, 1j, 127, 128, -129, 2**40]


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_python_numbers(name, dtype):
    operation = getattr(operator, name)
    x = array(dtype, shape=(6,))
    check_all(lambda x, number: operation(x, number), [(x, number) for number in PYTHON])
    check_all(lambda x, number: operation(number, x), [(x, number) for number in PYTHON])
    check(lambda x, number: operation(x, number), x, 2)


@pytest.mark.parametrize("name", OPERATORS)
def test_numpy_scalars(name):
    function = getattr(operator, name)
    operation = eval(f"lambda a, b: a {OPERATORS[name]} b")
    scalars = [
        np.float32(1.5),
        np.int8(3),
        np.float64(-2),
        np.uint64(7),
        np.bool_(True),
        np.complex64(1j),
        np.float16(2.5),
        np.longdouble(-0.1),
        np.clongdouble(1 + 2j),
    ]
    for a in scalars:
        check(lambda a, x: (function(a, x), function(x, a)), a, np.arange(1.0, 5.0))
        pairs = [(a, b) for b in scalars]
        check_all(operation, pairs)
        # A long double hands operator.pow to the ufunc, whose warning has other words; at a
        # call ours cannot tell them apart.
        known = name == "pow" and isinstance(a, (np.longdouble, np.clongdouble))
        check_all(lambda a, b: function(a, b), pairs, _warnings=not known)
        check(lambda a: (function(a, 2), function(2, a)), a)


@pytest.mark.parametrize("name", ["neg", "pos", "abs", "invert"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_unary(name, dtype):
    operation = getattr(operator, name)
    check(lambda x: (operation(x), operation(x[1])), array(dtype, shape=(6,)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_and_in_place(dtype):
    for name in ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"):
        operation = getattr(operator, name)
        x, y = array(dtype, shape=(6,)), array(dtype, shape=(6,), seed=1)
        check(lambda x, y: operation(x, y), x, y)
        check(lambda x: operation(x, 2), x)
        check(lambda x: operation(x, 2.5), x)
        check(lambda x: operation(x.sum(), 2), x)


def test_types_of_scalars():
    x = np.linspace(0, 1, 7)
    check(lambda x: (x.sum(), x[0], x[0] + 1, x[0] + x[1], x.max() * 2.0, x.sum() > 1), x)
    check(lambda x: (x[0].item(), float(x[0]), int(x[6]), bool(x[1]), x[2].dtype, x[2].shape), x)
    check(lambda x: [type(v) for v in (x, x[0], x.sum(), x[0] > 0, x.argmin(), np.sqrt(x[1]))], x)
    check(lambda x: (np.float64(3) * [1, 2], np.int32(2) * [1, 2, 3]), x)
    check(lambda x: (x.argmax() * [1, 2], [0] * x.argmin()), x)
    check(lambda x: [10, 20, 30][np.argmin(x)], x)
    check(lambda x: "abc"[x.argmin() : 2], x)
    check(lambda x: range(x.argmax() - 4), x)
    check(lambda x: {x.argmax(): 1, x[0]: 2}, x)
    check(lambda x: x[0] in (0.0, 1.0), x)
    check(
        lambda x: (round(x[1]), round(x[1], 2), divmod(x[1], 0.3), x[1] ** 2, -x[1], abs(-x[1])), x
    )
    check(lambda x: max(x[0], x[1], 0.5), x)
    check(lambda x: isinstance(x[0], (float, np.floating)), x)


def test_zero_d_arrays():
    x = np.array(2.5)
    check(
        lambda x: (x, x + 1, x[()], x[...], x * x, np.sqrt(x), x.sum(), x.reshape(1), float(x)), x
    )
    check(lambda x: np.add(x, 1, out=x), x)
    check(lambda x: x.__iadd__(3), x)


def test_powers():
    for dtype in "efdglDG":
        x = array(dtype, shape=(40,))
        x = np.abs(x) if dtype not in "DG" else x
        for p in (2, 0.5, -1, 0, 1, 3, 2.0, -2, 1.5, np.float32(2), np.int64(2)):
            check(lambda x, p: x**p, x, p)


def test_warnings_of_scalars():
    check(lambda x: x[0] / 0, np.ones(3))
    check(lambda x: np.log(x[0] - 1), np.ones(3))
    check(lambda x: x[0] * 1e300 * 1e300, np.ones(3))
    check(lambda x: np.int8(100) + x[0], np.array([100], np.int8))


# Python's complex numbers take np.float64 for a float of theirs, and the ufunc answers for the
# other real scalars. Warnings tell which it was.
@pytest.mark.parametrize("number", [0.5, 2, 1j, True, np.float64(0.5)])
@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
def test_which_operator_answers(dtype, number):
    values = [np.nan, np.inf, 0, 1e308, 2]
    if dtype in "FD":
        values += [complex(np.inf, np.nan), complex(np.inf, np.inf), complex(1e308, 1e308)]
    given = [(np.full(3, value).astype(dtype), number) for value in values if dtype in "dD"]
    given = given or [(np.full(3, np.inf, dtype), number), (np.ones(3, dtype), number)]
    check_all(lambda x, n: (x.max() + n, x.max() - n, x.max() * n), given)
    check_all(lambda x, n: (x.max() / n, x.max() ** n, x.max() == n), given)
    check_all(lambda x, n: (x[0] * n, x[0] / n, np.multiply(x.max(), n)), given)
    check_all(lambda x, n: (n + x.max(), n - x.max(), n * x.max()), given)
    check_all(lambda x, n: (n / (x.max() + 1), n ** x[0]), given)


# NumPy's comparisons of scalars warn of nothing, its comparisons of arrays do.
@pytest.mark.parametrize("value", [np.nan, np.inf, 1.5])
@pytest.mark.parametrize("known", [np.complex128(2), np.complex64(np.nan), np.float32(1.5)])
@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
def test_comparisons_warn_of_nothing(dtype, known, value):
    def compared(x, c, n):
        y = x.max()
        return c < y, c <= y, c > y, c >= y, c == y, c != y, max(y, c), min(y, c), c > n, y > n

    def called(x, c, n):
        return np.greater(c, x.max()), np.less(x.max(), c), max(c, n), x * n

    given = (np.full(3, value, dtype), known, value)
    check(compared, *given)
    check(called, *given)


def test_equal_operations_in_two_error_states():
    def reported_first(x):
        a = np.sqrt(x)
        with np.errstate(invalid="ignore"):
            b = np.sqrt(x)
        return a, b, np.sqrt(x)

    def ignored_first(x):
        with np.errstate(invalid="ignore"):
            a = np.sqrt(x) * 1e300
        return a, np.sqrt(x) * 1e300

    for function in (reported_first, ignored_first):
        check(function, np.linspace(-1, 1e200, 9))
        with np.errstate(invalid="raise"):
            check(function, np.linspace(-1, 1, 9))
        with np.errstate(all="ignore"):
            check(function, np.linspace(-1, 1e200, 9))


def test_warnings_and_their_lines():
    def f(x):
        a = x / 0
        b = np.log(-x)
        with np.errstate(divide="ignore"):
            c = x / 0
        d = np.exp(x * 1e4)
        return a, b, c, d

    check(f, np.arange(4.0))
    check(lambda x: x.mean(), np.zeros(0))
    check(lambda x: x.mean(axis=0), np.zeros((0, 3)))
    check(lambda x: np.nanmean(x), np.full(3, np.nan))
    check(lambda x: x.std(ddof=5), np.arange(3.0))
    check(lambda x: x.astype(int), np.array([np.nan, 1e300]))
    bad = np.array([np.nan, 1e300])
    check(lambda x: np.full_like(x, x.max(), dtype=int), bad)
    check(lambda x: np.full_like(x, x.max().item(), dtype=np.int8), bad)
    check(lambda x: np.full(3, x[1], np.float32), bad)
    check(lambda x: np.full(3, 1e300, np.float32) + x[0], bad)


# NumPy puts its scalars into signed integers by way of Python's int, and so raises where the value
# does not fit; arrays, and all other dtypes, are cast.


def _assign_element(x, v):
    x[0] = v


def _assign_part(x, v):
    x[:2] = v


def _assign_computed(x, v):
    x[...] = v * v.dtype.type(1)


def _assign_masked(x, v):
    x[x == 0] = v


def _fill(x, v):
    x.fill(v)


def _copyto(x, v):
    np.copyto(x, v, casting="unsafe")


ASSIGN = [_assign_element, _assign_part, _assign_computed, _assign_masked, _fill, _copyto]
VALUES = [
    np.uint8(200),
    np.int64(300),
    np.int64(-3),
    np.float64(300.7),
    np.float64(-2.5),
    np.float64("nan"),
    np.float32(1e38),
    np.complex128(1j),
    np.uint64(2**63),
    np.bool_(True),
    np.float16(2.5),
    np.longdouble("1e400"),
]


@pytest.mark.parametrize("assign", ASSIGN)
@pytest.mark.parametrize("dtype", ["b", "h", "l", "B", "L", "?", "e", "f", "g"])
def test_assigned_numpy_scalars(assign, dtype):
    for value in VALUES:
        for given in (value, np.array(value)):
            # The line of a warning out of a stand-in written in Python is not NumPy's.
            check(assign, np.zeros(3, dtype), given, _warnings=assign is not _copyto)


def test_scalars_that_become_arrays():
    for dtype in "dfeg":
        check(lambda x: np.asarray(x.sum(), dtype), np.arange(3.0))
        check(lambda x: np.array(x.sum(), dtype), np.arange(3.0))
        check(lambda x: np.asarray(x.sum() * 2), np.arange(3.0).astype(dtype))
    check(lambda x: (x.sum().reshape(()), x.sum().reshape(1), x.sum().reshape((1, 1))), np.ones(3))
    check(lambda x: (np.broadcast_to(x.sum(), ()), np.reshape(x.sum(), ())), np.ones(3))


@pytest.mark.parametrize("dtype", "?bBlefdgDG")
def test_conjugates(dtype):
    x = array(dtype, shape=(4,))
    check(lambda x: (x.any().conj(), x.max().conjugate(), x[0].conj(), np.conj(x), x.conj()), x)


def test_methods_that_scalars_lack():
    check(lambda x: x.sum().dot(2.0), np.ones(3))


def test_methods_of_the_class_of_scalars():
    check(lambda x: (x.sum().fromhex("0x1p4"), x.sum().hex(), x.sum().is_integer()), np.ones(3))


@pytest.mark.parametrize(
    "same_value",
    [
        lambda s: type(s)(s),
        lambda s: np.float64(s),
        lambda s: s.conj(),
        lambda s: s.conjugate(),
        lambda s: s.reshape(()),
        lambda s: s.astype(s.dtype),
        lambda s: s.squeeze(),
        lambda s: s.copy(),
        lambda s: s.real,
        lambda s: s[()],
        lambda s: +s,
        lambda s: np.positive(s),
        lambda s: s,
    ],
)
@pytest.mark.parametrize("given", [np.float64(1.5), np.float32(2), np.int64(3), np.complex128(2)])
@pytest.mark.filterwarnings("ignore")
def test_which_scalars_are_one_object(given, same_value):
    """Those that methods and casts make are new ones, though their values are the same."""

    def f(s, x):
        made, of_result = same_value(s), x.max()
        again = same_value(of_result)
        return made is s, again is of_result, made, s, of_result, again, x * 2

    def objects(found):
        return [[a is b for b in (*found, given)] for a in found if isinstance(a, np.generic)]

    native, x = ufuse.jit(f), np.arange(3.0)
    for _ in range(4):
        assert objects(native(given, x)) == objects(f(given, x))
        assert native(given, x)[:2] == f(given, x)[:2]


def test_methods_of_pythons_numbers():
    x = np.arange(3.0)
    check(lambda x: ((2.5).__add__(x[1]), (2.5).__eq__(x[1] * 2.5), (2).__add__(x[1])), x)
    check(lambda x: ((1j).__mul__(x[1] + 1j), (2.0).__divmod__(x[2]), (2.0).__rpow__(x[1])), x)
    check(lambda x: (list(map((2.0).__mul__, x)), max(map((1.0).__sub__, [x[0], x[2]]))), x)


@pytest.mark.parametrize(
    "function",
    [
        *[statistics.mean, statistics.fmean, statistics.median, statistics.stdev],
        *[statistics.mode, statistics.quantiles, lambda v: statistics.NormalDist(*v[:2]).cdf(2)],
    ],
)
def test_statistics_make_numbers_of_the_type_that_they_are_given(function):
    check(lambda x: function([x[1] * 2, x[2], x[2] + 0.5]), np.arange(3.0))
    check(lambda x: function([x[1] * 2, x[2], x[2]]), np.arange(3))


def test_scalar_types_that_look_at_the_class_of_a_number():
    def function(x):
        n, v = (x.sum() - 1).astype(np.int64), x[1] * 2.5
        return (
            (np.timedelta64(n, "D"), np.timedelta64(n), np.datetime64(n, "D")),
            (np.datetime64("2020-01-01") + np.timedelta64(n, "h"), np.void(n)),
            (np.object_(v), np.object_([v]), np.str_(v), np.bytes_(n), np.bool_(v), np.half(v)),
        )

    check(function, np.arange(3.0))


METHODS = [
    "sum",
    "prod",
    "max",
    "min",
    "mean",
    "std",
    "var",
    "any",
    "all",
    "argmax",
    "round",
    "clip",
]


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_scalars_that_write(name):
    """They give a scalar all the same."""
    arguments = (0, 1) if name == "clip" else ()

    def function(x, out):
        return getattr(x[1], name)(*arguments, out=out), getattr(np, name)(
            x[2], *arguments, out=out
        )

    dtype = {"any": bool, "all": bool, "argmax": np.intp}.get(name, float)
    check(function, np.arange(3.0), np.zeros((), dtype))
    check(function, np.arange(3.0), np.zeros(1, dtype))
    check(lambda x: getattr(x[1], name)(*arguments), np.arange(3.0))
