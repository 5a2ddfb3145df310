"""Do functions of Python's numbers give in native loops what they give in Python?"""

import itertools
import math

import numpy as np
import pytest
from test_native_loops import alike, outcome, told
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
