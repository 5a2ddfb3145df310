"""Is ``x[mask] = f(x[mask])`` what NumPy makes of it, though it is done for whole arrays?

f is computed everywhere, and taken where the mask is true. So nothing may be heard of what it would
be elsewhere, and nothing may go wrong where masks, or what they pick, have been written to between.
"""

import warnings

import numpy as np
import pytest
import ufuse
from same import check

BACKENDS = ["interpreted", "compiled"]
RNG = np.random.default_rng(5)
X = np.round(RNG.normal(size=(7, 9)) * 6, 1)
Y = np.round(RNG.normal(size=(7, 9)) * 3, 1)


def adds(x, y, m):
    x[m] += 4
    return x


def assigned(x, y, m):
    x[m] = x[m] - y[m]
    return x, y


def taken(x, y, m):
    x[m] = y[m]
    return x


def negated(x, y, m):
    x[m] = -x[m]
    x[~m] *= 2
    return x


def looked_at_again(x, y, limit=1):
    x[x > limit] = x[x > limit] - y[x > limit]
    return x


def in_a_band(x, y):
    x[(x > -3) & (x < 3)] += 1
    x[(x > -2) & (x < 2)] = y[(x > -2) & (x < 2)] * x[(x > -2) & (x < 2)]
    return x


def computed_first(x, y):
    d = x - y
    d[d > 0] = d[d > 0] - 3
    d[d < -1] = d[d < -1] + 3
    return d, d * 2


def operand_turned_between(x, y):
    d = x - y
    t = y[d > 0] * 2
    d[0] = d[0, ::-1].copy()
    y[d > 0] = t
    return d, y


def chained(x, y, m):
    t = x[m] * 2 + 1
    u = np.maximum(t, y[m]) - t * t
    x[m] = np.minimum(u, 9)
    return x, t, u


def of_its_mean(x, y, m):
    x[m] = x[m] - x[m].mean()
    return x


def kept(x, y, m):
    before = x[m]
    x[m] = before * 3
    return x, before


def written_between(x, y, m):
    t = x[m] * 2
    x += 1
    x[m] = t
    return x


def computed_between(x, y, m):
    """What has been picked is in memory, and what it was picked from has been written over."""
    t = x[m]
    u = t * 2
    first = float(t[0])
    x += 100
    seen = x.tobytes()
    x[m] = u
    return x, first, seen


def mask_written_between(x, y, m):
    t = x[m] * 2
    m[0] = ~m[0]
    try:
        x[m] = t
    except ValueError as error:
        return str(error), x
    return x


def operand_written_between(x, y, m):
    t = x[x > 0] * 2
    x[0, 0] = 100
    x[x > 0][:0] = t[:0]
    u = x[x > 0]
    x[x > 0] = u - 1
    return t, x


def another_mask(x, y, m):
    t = x[m] - 1
    x[m[::-1]] = t
    return x


def another_array(x, y, m):
    x[m] = (x * y)[m] + y.T.T[m]
    return x


def of_a_part(x, y, m):
    x[1:][m[1:]] = y[:-1][m[1:]] * x[1:][m[1:]]
    return x


def of_rows(x, y, m):
    rows = m[:, 0]
    x[rows] = x[rows] * 2
    return x


def flat(x, y, m):
    a, b, k = x.ravel(), y.ravel(), m.ravel()
    a[k] = np.sqrt(np.abs(a[k])) / 2 + b[k]
    return a


def twice(x, y, m):
    for _ in range(3):
        x[m] = x[m] * 0.5
    return x


def compared(x, y, m):
    m[m] = m[m] & (x[m] > y[m])
    return m


def too_many(x, y, m):
    x[m] = y[m][1:] + 1
    return x


WITH_MASK = [
    adds, assigned, taken, negated, chained, of_its_mean, kept, written_between, computed_between,
    mask_written_between, operand_written_between, another_mask, another_array, of_a_part, of_rows,
    flat, twice, compared, too_many,
]  # fmt: skip
WITHOUT_MASK = [looked_at_again, in_a_band, computed_first, operand_turned_between]
MASKS = {
    "some": X > 0.5,
    "most": X > -9,
    "few": X > 12,
    "all": np.ones(X.shape, bool),
    "none": np.zeros(X.shape, bool),
}
LAYOUTS = {
    "as it is": lambda x: x.copy(),
    "transposed": lambda x: x.T.copy().T,
    "a part": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
    "reversed": lambda x: x[::-1].copy()[::-1],
}


@pytest.mark.parametrize("function", WITH_MASK)
@pytest.mark.parametrize("mask", MASKS)
def test_values(function, mask):
    check(function, X, Y, MASKS[mask].copy())


@pytest.mark.parametrize("function", WITHOUT_MASK)
def test_masks_that_are_computed_again(function):
    check(function, X, Y)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout):
    x, y, m = (LAYOUTS[layout](each) for each in (X, Y, MASKS["some"]))
    for function in (adds, assigned, chained, negated):
        check(function, x, y, m)
        check(function, x, Y, MASKS["most"])
        check(function, X, y, m)
    for function in WITHOUT_MASK:
        check(function, x, y)


@pytest.mark.parametrize("dtype", "?bhilBHILefdgFDG")
def test_dtypes(dtype):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x, y = np.abs(X).astype(dtype), np.abs(Y).astype(dtype)
    for function in (adds, assigned, taken, negated, chained, kept):
        check(function, x, y, MASKS["some"])
        check(function, X, y, MASKS["some"])  # cast to x's dtype, where NumPy does that
        check(function, x, Y, MASKS["some"])


def divides(x, y, m):
    x[m] = 1 / y[m]
    return x


def roots(x, y, m):
    x[m] = np.sqrt(x[m]) * 2
    return x


def overflows(x, y, m):
    x[m] = x[m] * 1e308
    return x


def by_nothing(x, y, m):
    x[m] = y[m] / 0
    return x


def reciprocals(x, y, m):
    x[m] = np.reciprocal(y[m]) + np.sqrt(x[m])
    y[m] /= x[m] * 0
    return x, y


@pytest.mark.parametrize("function", [divides, roots, overflows, by_nothing, reciprocals])
@pytest.mark.parametrize("bad", ["inside", "outside", "both", "neither"])
def test_only_what_is_picked_warns(function, bad):
    m = np.zeros(40, bool)
    m[::2] = True
    x, y = np.linspace(1, 2, 40), np.linspace(3, 4, 40)
    places = {"inside": [2], "outside": [3], "both": [2, 3], "neither": []}[bad]
    x[places], y[places] = -np.inf, 0
    x[places[:1]] = -1e300
    for mask in (m, m & False):
        check(function, x, y, mask)
        with np.errstate(all="raise"):
            check(function, x, y, mask)
        with np.errstate(divide="ignore", invalid="warn"):
            check(function, x, y, mask)


def test_warnings_come_in_order():
    def f(x, y, m):
        t = x[m] / 0
        u = np.sqrt(y)
        x[m] = t
        y[m] = u[m] / 0
        return x, u, y

    m = np.arange(40) % 2 == 0
    check(f, np.linspace(1, 2, 40), np.linspace(-1, 1, 40), m)


def not_read(x, m):
    x[m] = x[m] / 0
    x[m] = 1
    return x


def read_as_well(x, m):
    t = x[m] / 0
    x[m] = t * 2
    return x, t


def read_later(x, m):
    x[m] = np.sqrt(x[m]) * 2
    y = x * 3
    y[m] = np.sqrt(x[m]) * 2
    return x, y


def done_again(x, m):
    y = x.copy()
    y[m] = np.sqrt(x[m]) * y[m]
    x[m] = np.sqrt(x[m]) / x[m]
    return x, y, np.sqrt(x[m])


@pytest.mark.parametrize("function", [not_read, read_as_well, read_later, done_again])
def test_each_operation_warns_once(function):
    check(function, np.linspace(-1, 2, 40), np.arange(40) % 2 == 0)


def test_unsafe_casts():
    def f(x, y, m):
        x[m] = y[m] * 1e10
        return x

    m = np.arange(40) % 2 == 0
    check(f, np.arange(40, dtype=np.int8), np.linspace(1, 2, 40), m)
    check(f, np.arange(40, dtype=np.float32), np.linspace(1, 1e290, 40), m)


def test_it_is_done_for_whole_arrays():
    """No list of positions is made, and a mask is counted once."""
    x, y = np.tile(X, 50), np.tile(Y, 50)
    for function in (adds, assigned, chained, twice):
        told = str(ufuse.jit(function).explain(x.copy(), y, x > 0.5))
        assert "scatter" not in told
        assert "nonzero" not in told or function is chained
    for function in WITHOUT_MASK[:-1]:
        told = str(ufuse.jit(function).explain(x.copy(), y))
        assert "scatter" not in told
        assert "nonzero" not in told


def test_numbers_that_differ():
    """Equal operations with numbers are one; each call has its own numbers."""

    def f(x, a, b):
        x[x > a / 2] = x[x > a / 2] - b
        x[x < b * 0.5] = x[x < a * 0.5] + a / 2 if a == b else x[x < b * 0.5] + a / 2
        return x * a / 2, x * (a / 2), a / 2

    jitted = ufuse.jit(f)
    for a, b in [(1.0, 2.0), (1.0, 2.0), (3.0, 1.0), (2.0, 2.0), (0.0, -0.0), (-0.0, 0.0), (4, 2)]:
        check(f, X, a, b, _jitted=jitted)
        check(f, X, a, b, _jitted=jitted)
