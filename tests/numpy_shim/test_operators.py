"""Operators that are more than calls of their ufuncs: `**` of arrays, those of NumPy's scalars."""

import itertools
import operator
import warnings

import numpy as np
import pytest
from shim_client import NATIVE, ask, word

EXPONENTS = [2, -1, 0, 1, 3, True, 2**40, 2.0, -1.0, 0.5, 0.0, 1.0, -2.0, 1.5, np.nan]
EXPONENTS += [np.float64(2), np.float64(0.5), np.float32(0.5), np.int8(2), np.uint16(1)]


class Spy(np.ndarray):
    """An array that tells which ufunc an operator comes down to, and on which dtype."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return ufunc.__name__, inputs[0].dtype.char


@pytest.mark.parametrize("code", NATIVE)
def test_what_power_calls(code):
    def called(exponent):
        name, dtype = np.ones(3, code).view(Spy) ** exponent
        # NumPy before 2.3 squares integers as floats for 2.0, and has a ufunc of its own for 0.0.
        return "numpy" if dtype != code or name == "_ones_like" else name

    def question(exponent):
        kind = "float" if isinstance(exponent, (float, np.floating)) else "int"
        own = int(type(exponent) in (int, float))
        return f"power {code} {kind} {float(exponent)!r} {own}"

    answers = ask(list(map(question, EXPONENTS)))
    assert answers == list(map(called, EXPONENTS))


OPERATORS = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "divmod": divmod,
    "less": operator.lt,
    "equal": operator.eq,
}
VALUES = [0, 1, 3, 100, 127, -1, -128, 2**31 - 1, 2**63 - 1, 0.1, 1e38, 1e308, -0.0]
VALUES += [np.inf, np.nan, 0.1 + 0.7j, 1e38 + 1e38j, complex(np.nan, 1)]


def numbers(code):
    """NumPy scalars of a dtype, as far as it has these values."""
    kind = np.dtype(code).kind
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in VALUES:
            if isinstance(value, complex) and kind != "c":
                continue
            if isinstance(value, float) and kind not in "fc":
                continue
            try:
                yield np.array(value, code)[()]
            except (OverflowError, RuntimeWarning, DeprecationWarning):
                continue


def outcome(compute):
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
        warnings.simplefilter("always")
        try:
            result = compute()
        except (TypeError, ZeroDivisionError) as error:
            return type(error)
    # Digits tell all bits apart, but for those of NaN. What scalars warn of, and in which words, is
    # asked of NumPy once a flag is up.
    parts = result if isinstance(result, tuple) else (result,)
    return [(repr(each), each.dtype) for each in parts], bool(caught)


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_scalars(name):
    """Where the loop is taken for the scalars' own operator, both do the same."""
    apply = OPERATORS[name]
    pairs = list(itertools.product(NATIVE, NATIVE))
    words = [[word(np.ones((), code)[()]) for code in pair] for pair in pairs]
    answers = ask([f"scalar_operator {name} {' '.join(each)}" for each in words])
    for (one, other), answer in zip(pairs, answers, strict=True):
        if answer != "ok":
            continue
        for a, b in itertools.product(numbers(one), numbers(other)):
            if np.result_type(a, b) != np.promote_types(a.dtype, b.dtype):
                continue  # NumPy 1 promotes by value here, and such calls are NumPy's
            by_loop = outcome(lambda a=a, b=b: getattr(np, name)(a, b))
            assert outcome(lambda a=a, b=b: apply(a, b)) == by_loop, (a, b)
