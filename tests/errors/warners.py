"""Which numbers and which programs warn? Inputs of test_warnings.py and test_error_state.py."""

import warnings

import numpy as np
import ufuse
from outcomes import step

SIZES = {"three": 3, "block": 256, "large": 9_001}


def numbers(n, kind="f8"):
    """Zeros, NaN, infinities and huge numbers strewn into ordinary ones."""
    x = np.linspace(-3.0, 5.0, n)
    x[: n // 3] = 0.0
    if n > 10:
        x[[4, 5, 6, 7]] = np.nan, np.inf, -np.inf, -0.0
    x[-1] = np.finfo(kind).max
    return x.astype(kind)


def layouts(n, kind="f8"):
    """The same numbers in several layouts."""
    x = numbers(n, kind)
    yield "contiguous", x
    wide = np.ones(2 * n, kind)
    wide[::2] = x
    yield "strided", wide[::2]
    yield "rows", np.ones((n, 3), kind) * x[:, None]
    if n < 1000:
        yield "reversed", x[::-1].copy()[::-1]
        yield "columns", (np.ones((3, n), kind) * x).T


def many_lines(x, y):
    a = np.log(x)
    step("a")
    b = a / y
    c = np.sqrt(
        b - 1  # a statement of several lines
    )
    d = np.exp(y)
    with np.errstate(divide="ignore"):
        e = 1 / y
    with np.errstate(all="ignore"):
        f = np.log(-x) / y
    g = f * 1e300 * 1e300
    return a, c, d, e, g


def in_place(x, y):
    x /= y
    step("divided")
    np.log(x, out=x)
    x[1:] = np.sqrt(x[:-1])
    y *= 1e300
    y *= 1e300
    y -= y


def in_a_loop(x, y):
    for _ in range(4):
        x = np.log(x)
        y = y / x
    return y


def in_a_helper(x, y):
    return helper(helper(x)) + helper(y)


def helper(x):
    return np.log(x)


@ufuse.jit
def jitted_helper(x):
    return 1 / x


def in_a_jitted_helper(x, y):
    return jitted_helper(x) + jitted_helper(jitted_helper(y))


def value_asked_for(x, y):
    a = np.log(x)
    step(str(a.ravel()[0]))
    b = a + 1
    if np.isnan(b).any():
        return np.sqrt(-np.abs(y))
    return b / 0


def warns_before_it_raises(x, y):
    a = np.log(x)
    step("warned")
    y /= 0
    raise KeyError(a.shape)


def warns_before_numpy_raises(x, y):
    a = 1 / x
    return a + np.ones(1234)


def warns_unused_before_it_raises(x, y):
    np.log(x)
    raise KeyError("stop")


def pythons_own_warning(x, y):
    a = np.log(x)
    warnings.warn("from the user", UserWarning, stacklevel=1)
    return a / y


def through_numpys_source(x, y):
    return np.nanmean(x * np.nan), np.mean(x[:0]), np.std(x[:1], ddof=1), np.var(x / y)


PROGRAMS = [
    many_lines,
    in_place,
    in_a_loop,
    in_a_helper,
    in_a_jitted_helper,
    value_asked_for,
    warns_before_it_raises,
    warns_before_numpy_raises,
    warns_unused_before_it_raises,
    pythons_own_warning,
    through_numpys_source,
]
