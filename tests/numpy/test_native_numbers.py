"""Do functions of Python's numbers give in native loops what they give in Python?"""

import itertools
import math

import numpy as np
import pytest
from test_native_loops import alike, outcome, told
from test_native_loops import check as every_exit
from texts import function_of
from ufuse.source import heads
from ufuse.tracing.loops import looped

BACKENDS = ["compiled"]
FLOATS = [
    *(0.0, -0.0, 0.3, -0.3, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 2.5, 2.0, 3.7, -3.7, 1e-310, -1e-310),
    *(1e300, -1e300, 1e308, 710.0, -745.2, 2.0**52 + 0.5, 2.0**63, -(2.0**63), 4503599627370497.5),
    *(math.pi, 0.49999999999999994, math.inf, -math.inf, math.nan),
]
INTS = [0, 1, -1, 2, 7, -12, 18, 99, 2**31, 2**53, 2**53 + 1, 3037000499**2, 2**63 - 1, -(2**63)]
PAIRS = list(
    itertools.product([*FLOATS[:12:2], *FLOATS[11:29:2], math.inf, math.nan], FLOATS[1::2])
)
OF_ONE = [
    *(
        [
            "sqrt",
            "exp",
            "log",
            "log2",
            "log10",
            "log1p",
            "expm1",
            "exp2",
            "cbrt",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
        ]
    ),
    *(
        [
            "tanh",
            "asinh",
            "acosh",
            "atanh",
            "erf",
            "erfc",
            "fabs",
            "degrees",
            "radians",
            "floor",
            "ceil",
            "trunc",
            "isnan",
            "isinf",
        ]
    ),
    *(["isfinite", "isqrt"]),
]
OF_TWO = ["atan2", "pow", "fmod", "copysign", "gcd"]


def in_a_loop(expression):
    """``f(x, y)`` gives what an expression is in the third round of a loop."""
    text = f"def f(x, y):\n    for _i in range(3):\n        r = {expression}\n    return r\n"
    return function_of(text, {"math": math, "np": np, "abs": abs})


def check(expression, cases, native=True):
    function = in_a_loop(expression)
    made = looped(function)
    (loop,) = heads.loops_of(made.__code__)
    used = 0
    for case in cases:
        with told(eager=True):
            alike(outcome(made, case), outcome(function, case))
        used += any(version["native_ns"] for version in loop.facts["versions"])
    assert native is None or bool(used) == native, loop.facts["why_not"]


@pytest.mark.parametrize("name", OF_ONE)
def test_math_of_one(name):
    values = [*FLOATS, *map(np.float64, FLOATS[:9]), *map(np.float32, FLOATS[:9])]
    if name == "isqrt":
        values = []
    check(f"math.{name}(x)", [(x, 0) for x in [*INTS, *values, True]])


@pytest.mark.parametrize("name", OF_TWO)
def test_math_of_two(name):
    pairs = PAIRS
    if name == "gcd":
        pairs = itertools.product(INTS, INTS)
    check(f"math.{name}(x, y)", [*pairs, (3, 0.5), (0.5, 3), (True, 2), (np.float64(2.0), 0.5)])


@pytest.mark.parametrize(
    "expression", ["round(x)", "divmod(x, y)", "pow(x, y)", "divmod(x, y)[0] - round(y)"]
)
def test_builtins(expression):
    check(expression, PAIRS)
    small = [*INTS[:8], *FLOATS[:14:2], True, False]
    check(expression, itertools.product(small, small))


@pytest.mark.parametrize("name", ["round(x)", "divmod(x, y)", "pow(x, y)", "math.trunc(x)"])
@pytest.mark.parametrize("scalar", [np.float64, np.float32, np.int64, np.bool_])
def test_scalars_of_numpy(name, scalar):
    check(name, [(scalar(3), scalar(1)), (scalar(0), 2)], native=None)


TYPES = ["int", "float", "bool", "complex", "(int, float)", "np.float64", "(np.int64, bool)"]


@pytest.mark.parametrize("types", TYPES)
def test_isinstance(types):
    numbers = [1, 1.5, True, 2j, np.float64(1.5), np.int64(3), np.float32(1), np.complex128(1j)]
    values = [*numbers, np.bool_(True), np.ones(3), (1, 2), [1.5], None]
    check(f"isinstance(x, {types})", [(x, 0) for x in values])
    check(f"2 if isinstance(x, {types}) else 3", [(x, 0) for x in values])


def test_what_types_rule_out_is_not_typed():
    text = """
def f(x, n):
    s = 0.0
    for i in range(n):
        if isinstance(x, float):
            s += x
        elif not isinstance(x, (int, bool)):
            s += x[i]
        else:
            s -= x
    return s
"""
    function = function_of(text, {})
    for x in (2.5, 3, True, np.arange(9.0)):
        made = looped(function)
        with told(eager=True):
            alike(outcome(made, (x, 9)), outcome(function, (x, 9)))
        (loop,) = heads.loops_of(made.__code__)
        assert loop.facts["versions"], loop.facts["why_not"]


# ---- A float or an int ----


def clipped(x, n):
    s = 0.0
    for i in range(n):
        s += max(0, x[i]) * 0.5 - min(x[i], 1) / 3.0
        x[i] = max(x[i], 0)
    return s, x


def clipped_floats(p, n):
    s = t = 0.0
    for v in p:
        h = max(0, v)
        s += h
        t = t * 0.5 + (h if h < 2.5 else 3)
        if max(v, 1) and h > 0 and min(2, v) < max(-1, v):
            t -= h
    return s, t, h


def ramp(v):
    return max(0, v)


def in_a_function(p, n):
    s = 0.0
    for v in p:
        s = s + ramp(v) * v
        s += 1.5 * ramp(-v)
    return s


def kept(p, n):
    last = first = None
    for v in p:
        last = max(0, v)
        first = (min(v, 1), v)
    return last, first


def returned(p, n):
    for v in p:
        if v > 2:
            return min(n, v)
    return 0 if n > 2 else 0.5


def both_sides(p, n):
    s = 0.0
    k = 0
    for v in p:
        s += max(0, v) - min(v, 0)
        k = max(0, v) + k
        if max(0, v) >= min(1, v):
            s -= 1
    return s, k


def both_ints(p, n):
    s = 0.0
    for v in p:
        d = max(0, v) - max(0, -v)
        q = max(1, v) / max(2, v) + max(2, v) ** max(-1, v) + max(3, v) // max(2, v)
        s += d * q
        if max(0, v) == max(0, -v) or max(1, v) >= n:
            s = s - 1
    return s, d, q


def operators(p, n):
    s = 0.0
    for v in p:
        m = max(2, v)
        s += m**2.0 + m**-0.5 + 7.0 // m + 7.5 % m + v // m
        s -= abs(m) + (-m) + float(m) + math.sqrt(m) + math.exp(-min(5, v)) + np.sqrt(m)
    return s


def at_zero(p, n):
    s = 0.0
    for v in p:
        s += 1.0 / max(0, v)
    return s


def by_type(p, n):
    count = 0
    for v in p:
        if isinstance(max(0, v), int):
            count += 1
    return count


def large_ints(p, n):
    s = 0.0
    big = n * 2**51
    for v in p:
        s += max(big, v) * 1.0
        big = big + 1
    return s, big


def as_an_argument(p, n):
    s = 0.0
    for v in p:
        s += scaled(max(0, v), 2.0) + scaled(v if v > 1 else 1, v)
    return s


def scaled(a, b):
    if a > b:
        a = a - b
    return a * b


def in_a_tuple(p, n):
    s = 0.0
    for v in p:
        pair = max(0, v), v
        a, b = pair
        s += a * b + pair[0]
        pair = (pair[1], s)
    return s, pair, a


MIXED = [
    *(clipped_floats, in_a_function, kept, returned, both_sides, operators, at_zero, by_type),
    *(both_ints, large_ints, as_an_argument, in_a_tuple),
]
VALUES = [
    *([1.5, -2.5, 0.5, 3.0, -0.0, 0.0, 2.0, 1.0, -1.0], [0.5, 0.25, 2.75], [-0.5, -1.0, 4.0]),
    *([math.nan, 1.5, -1.0], [1.5, math.inf, -math.inf], [3, 1.5, -2], [-1, 0, 3]),
    *([np.float64(2.5), np.float64(-2.5), np.float64(0.0)], [1e300, -1e300], [True, 2.5]),
]


@pytest.mark.parametrize("function", MIXED, ids=lambda f: f.__name__)
def test_a_float_or_an_int(function):
    for values in VALUES:
        for n in (0, 1, 3):
            check_everywhere(function, values, n)


@pytest.mark.parametrize("given", ["f8", "f4", "i4"])
def test_a_float_or_an_int_and_elements(given):
    for values in ([1.5, -2.5, 0.5], [0.0, -0.0, 2.0], [1e300, np.nan, np.inf]):
        with np.errstate(all="ignore"):
            x = np.array(values).astype(given)
        check_everywhere(clipped, x, 3)


def check_everywhere(function, *args):
    every_exit(function, *args, native=None, most=20)


def test_they_are_native():
    for function in MIXED:
        native = function not in (by_type,)
        every_exit(function, [1.5, -2.5, 0.5, 3.0], 1, native=native, most=2)
    every_exit(clipped, np.array([1.5, -2.5, 0.5]), 3, native=True, most=2)


PYTHON_OR_NUMPY = """
def f(x, y, l, zero, one, n):
    for i in range(n):
        v = x[i]
        a = max(v, zero)
        b = min(one, v, zero)
        c = v if v > one else zero
        d = zero if v < one else v
        e = v or one
        g = v and c
        h = (a if i % 2 else one) + (b or d)
        y[i] = a
        a += h * e - g
        k = a if c else min(a, d)
        l[i] = c
        l.append(max(v, zero))
    return a, b, c, d, e, g, h, k, y, l
"""


@pytest.mark.parametrize(
    ("dtype", "zero", "one", "native"),
    [
        *[("f8", 0.0, 1.0, True), ("f8", np.float64(0), 1.0, True), ("f8", -0.0, math.nan, True)],
        *[("i8", 0, 1, True), ("i8", np.int64(0), 1, True), ("f4", 0.0, 1.0, False)],
        *[("?", False, True, False), ("f8", 0, 1.0, False)],
    ],
)
def test_numbers_of_python_or_of_numpy(dtype, zero, one, native):
    values = np.array([0.0, 1.5, -0.0, 0.5, -2.0, math.nan if dtype in ("f8", "f4") else 1])
    function = function_of(PYTHON_OR_NUMPY, {})
    for n in (1, 2, 3, 6):
        for first in range(7 - n):
            x = values.astype(dtype)[first:]
            every_exit(function, x, np.zeros(6), [one] * 6, zero, one, n, native=native, most=20)


def of_ufuncs(x, y, o):
    for i in range(len(x)):
        o[i, 0], o[i, 1] = np.exp(x[i]), np.exp2(x[i])
        o[i, 2], o[i, 3] = np.log(y[i]), np.log1p(y[i])
        o[i, 4], o[i, 5] = np.sin(x[i]), np.tanh(x[i])
        o[i, 6], o[i, 7] = np.power(y[i], x[i]), np.arctan2(x[i], y[i])
        o[i, 8], o[i, 9] = np.expm1(x[i]), np.cbrt(x[i])
    return o


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_ufuncs_of_numbers(dtype):
    """NumPy chooses other code for one number than for many side by side."""
    rng = np.random.default_rng(3)
    x = rng.normal(0, 3, 2000).astype(dtype)
    y = np.exp(rng.normal(0, 3, 2000)).astype(dtype)
    made = looped(of_ufuncs)
    with told(eager=True):
        alike(made(x, y, np.zeros((2000, 10))), of_ufuncs(x, y, np.zeros((2000, 10))))
    assert any(each.facts["versions"] for each in heads.loops_of(made.__code__))


# What may be Python's number or NumPy's, where that makes a difference, in a loop over `i`.
OF_EITHER = [
    "k = ~(x[i] > 0 and flag)",
    "k = -(x[i] > 0 and flag)",
    "k = +(flag or x[i] > 0)",
    "k = abs(flag or x[i] > 0)",
    "k = not (flag or x[i] > 0)",
    "k = (x[i] > 0 and flag) | flag",
    "k = (x[i] > 0 and flag) ^ (x[i] > 1)",
    "k = (x[i] > 0 and flag) == True",
    "k = (x[i] > 0 and flag) < flag",
    "flag = x[i] > 0 and flag",
    "flag = flag or x[i] > 1",
    "k += flag and x[i] > 0",
    "k = k - (x[i] > 0 if i > 1 else flag)",
    "k = 2 * (x[i] > 0 if i > 1 else flag)",
    "k = (x[i] > 0 if i > 1 else flag) & 1",
    "k = (x[i] > 0 if i > 1 else flag) / 2",
    "k = int(x[i] > 0 if i > 1 else flag)",
    "z[0] = x[i] > 0 and flag",
    "x[i] = x[i] > 0 and flag",
    "y[i] = x[i] > 0 and flag",
    "s = s * (x[i] > 0 and flag)",
    "s = np.exp(x[i] > 0 and flag)",
    "k = max(flag, x[i] > 0)",
    "k = max(flag, x[i] > 0) + k",
    "k = y[i] if i > 1 else k",
    "k = (y[i] if i > 1 else k) * 2**61",
    "k = (y[i] if i > 1 else k) - 2**63",
    "k = (y[i] if i > 1 else k) // 0",
    "k = (y[i] if i > 1 else k) % (k if i > 2 else y[i])",
    "s = (x[i] if i > 1 else s) / 0.0",
    "s = (x[i] if i > 1 else s) * 1e308",
    "s = (x[i] if i > 1 else s) // 0.0",
    "s = (x[i] if i > 1 else s) ** 0.5",
    "s = (x[i] if i > 1 else s) ** 2.5",
    "s = (x[i] if i > 1 else s) ** (x[0] if i else 2.0)",
    "s = (x[i] if i > 1 else s) - (x[i] if i < 3 else s)",
    "k = (y[i] if i > 1 else k) + (y[i] if i < 3 else k)",
    "k = (y[i] if i > 1 else k) / (y[i] if i < 3 else k)",
    "k = k << (y[i] if i > 1 else 1)",
    "k = (y[i] if i > 1 else k) & 3",
    "k = (y[i] if i > 1 else k) == (x[i] if i else 0.5)",
    "c = (x[i] if i else s) * 1j",
    "s = min(x[i], s, x[0])",
    "s = max(s, 1.0, x[i], s)",
    "k = range(max(k, y[i]))[0]",
    "s = divmod(max(k, y[i]), 2)[0]",
    "s = pow(max(s, x[i]), 2)",
    "s = math.floor(max(s, x[i]))",
    "s = x[0] and (s or x[i])",
    "s = (x[i] if i else s) if i > 1 else (s if i else x[i])",
    "assert max(s, x[i]) < 2.5, 3",
]


@pytest.mark.parametrize("statement", OF_EITHER)
def test_what_either_number_gives(statement):
    text = (
        "def f(x, y, z, s, k, flag):\n    for i in range(4):\n"
        f"        {statement}\n    return x, y, z, s, k\n"
    )
    function = function_of(text, {"np": np, "math": math})
    given = [(0.5, 1, True), (np.float64(1.0), np.int64(2), np.True_), (math.nan, -1, False)]
    for s, k, flag in given:
        x, y = np.array([0.0, 1.5, -0.5, 3.0]), np.array([1, -1, 3, 2])
        every_exit(function, x, y, [0.5, 2.5], s, k, flag, native=False, most=4)
