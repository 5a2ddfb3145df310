"""Are values rounded that are float64 again afterwards, to float32 or to integers? Compilers forget
it."""

import numpy as np
import pytest
import ufuse
from same import check, same

FUNCTIONS = [
    lambda x, y: x * y.astype(np.float32),
    lambda x, y: y.astype(np.float32).astype(np.float64),
    lambda x, y: np.outer(x, y.astype(np.float32)),
    lambda x, y: (x + 1j * y).astype(np.complex64).astype(np.complex128),
    lambda x, y: y.astype(np.complex64) + x,
    lambda x, y: x + y.astype(np.float32).astype(np.complex128),
    lambda x, y: (y.astype(np.float32) * x).sum(),
    lambda x, y: np.stack([x, y], axis=1).astype("f4").astype("f8"),
    lambda x, y: x.astype(np.float32) @ np.ones(len(x)),
    lambda x, y: np.where(x > 1, x.astype("f4"), y),
    lambda x, y: x.astype(np.float16).astype(np.float64) + y.astype(np.float16),
    # Not computed with in between, or as a mean of floats.
    lambda x, y: np.maximum(y.astype("f4"), 1.0).astype("f8") - np.abs(x.astype("f4")) * y,
    lambda x, y: np.conj(-y.astype("f4")).astype("f8"),
    lambda x, y: (x - 1j * y).astype("c8").real.astype("f8"),
    lambda x, y: np.stack([x, y], 1).astype("f4").max(axis=1) * y,
    lambda x, y: np.stack([x, y, x], 1).astype("f4").mean(axis=1) * y,
    lambda x, y: np.stack([x, y, x], 1).astype("f4").std(axis=1).astype("f8"),
    lambda x, y: (x.astype("f4") - x.astype("f4").mean()) * y,
    lambda x, y: np.where(x > 1, np.float32(y), np.float32(x)).astype("f8"),
    lambda x, y: np.maximum.accumulate(y.astype("f4")).astype("f8"),
    lambda x, y: np.float32(np.float64(np.float32(x * y)) * x) * y,
]


# NumPy 1 rounds products of complex numbers by the addresses of their memory: it has two answers.
if int(np.__version__.split(".")[0]) >= 2:
    FUNCTIONS.append(lambda x, y: (x + 1j * y).astype(np.complex64) * (x - 1j * y))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_is_rounded(function):
    jitted = ufuse.jit(function)
    for size in (*range(1, 20), 33, 101):
        x, y = np.linspace(0.1, 2.7, size), np.linspace(-3.3, 7.7, size)
        for _ in range(2):
            same(jitted(x, y), function(x, y))


@pytest.mark.parametrize("backend", ["compiled", "interpreted"], indirect=True)
@pytest.mark.parametrize("integer", "bhil?")
@pytest.mark.parametrize("given", "efd")
def test_integers_have_no_negative_zero_and_no_nan(given, integer):
    """`(float)(int)x` is no rounding of floats."""
    x = np.resize(np.array([-0.5, -0.0, 0.5, -1.5, 7, 100.25, np.inf, -np.inf, np.nan], given), 300)

    def function(x):
        return [x[1:] + 1, x.astype(integer).astype(given), x.astype(integer) * x]

    jitted = ufuse.jit(function)
    with np.errstate(all="ignore"):
        for _ in range(2):
            for ours, theirs in zip(jitted(x), function(x), strict=True):
                same(ours, theirs)


def one_exponent(x, y):
    """NumPy squares, or takes roots, where one exponent stands beside all elements."""
    powers = [x**2.0, x**0.5, x**-1.0, np.power(x, y[:1]), np.power(x[:1], y[:1]), x[:-1] ** 2.0]
    sums = [np.sum((x - 1) ** 2.0 + (2 - x) ** 2.0), np.sum(np.stack([x, x + 1], 1) ** 2.0, axis=1)]
    return [*powers, *sums, x[0:1, None] ** 2.0, np.power(x, x * 0 + 2.0)]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_powers_of_few_elements(size, dtype):
    rng = np.random.default_rng(size)
    for _ in range(40):
        check(one_exponent, (rng.random(size) * 3 + 0.1).astype(dtype), np.array([2.0], dtype))


def powers_of_rows(x, e):
    """NumPy's iterator decides for which rows an exponent has a stride of 0, and which run backwards."""
    power = np.power(x, e)
    sums = [np.sum(x**e, axis=0), np.sum((x * 1) ** (e + 0), axis=-1)]
    angles = np.arctan2(x, np.broadcast_to(e + 0.1, power.shape)).sum(axis=0)
    return [power, *sums, angles, (x**e).T + 1, x ** np.broadcast_to(e, power.shape)]


def powers_of_equal_exponents(x):
    """They stand in memory, or would without a compiler."""
    twos = np.full(x.shape, 2.0, x.dtype)
    return [x**twos, x ** (twos + 0), x**2.0, x ** twos[..., :1], np.sum(x**twos, axis=0)]


def rounded_otherwise(shape, dtype):
    """Numbers whose square is another one than NumPy's power with an exponent of 2 (if it is)."""
    x = (np.random.default_rng(0).random(100_000) * 3 + 0.1).astype(dtype)
    differ = x[np.power(x, np.full_like(x, 2)) != x * x]
    return np.resize(differ if differ.size else x, shape)


def laid_out(x, how):
    if how == "strided":
        memory = np.zeros([2 * n for n in x.shape], x.dtype)
        view = memory[tuple(slice(None, None, 2) for _ in x.shape)]
        view[...] = x
        return view
    if how == "backwards":
        back = (slice(None, None, -1),) * x.ndim
        return np.ascontiguousarray(x[back])[back]
    return np.asarray(x, order=how)


SHAPES = {
    (1, 1): [(1, 1), (1,), ()],
    (5,): [(5,), (1,), ()],
    (2, 3): [(2, 3), (2, 1), (3,), (1, 1)],
    (40, 6): [(40, 1), (1, 6), (40, 6)],
    (6, 600): [(6, 1), (600,)],
    (2, 3, 4): [(3, 1), (2, 1, 1), (2, 1, 4)],
}


@pytest.mark.parametrize("backend", ["compiled", "interpreted", "numpy"], indirect=True)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("how", ["C", "F", "strided", "backwards"])
def test_powers_with_an_exponent_for_each_row(backend, shape, how):
    x = laid_out(rounded_otherwise(shape, "f8"), how)
    check(powers_of_equal_exponents, x)
    check(powers_of_equal_exponents, x.astype("f4"))
    for exponents in SHAPES[shape]:
        check(powers_of_rows, x, np.full(exponents, 2.0))
        check(powers_of_rows, x, np.full(exponents, 2.0, "f4"))
        if len(exponents) > 1:
            check(powers_of_rows, x, laid_out(np.full(exponents, 2.0), "strided"))


def gap(x):
    return np.concatenate([x, x], axis=-1)[..., : x.shape[-1]]


# Not all of them are one row to NumPy's iterator, which decides from 2.1 to 2.2.
LAYOUTS = {
    "C": lambda x: x,
    "transposed": lambda x: x.T,
    "gap": gap,
    "gap_transposed": lambda x: gap(x).T,
    "rows": lambda x: np.repeat(x, 2, axis=0)[::2],
    "columns": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "upside_down": lambda x: x[::-1],
    "backwards": lambda x: x[:, ::-1],
    "both": lambda x: x[::-1, ::-1],
    "repeated": lambda x: np.broadcast_to(x[0], x.shape),
    "column": lambda x: gap(x)[:, :1],
    "one_row": lambda x: gap(x)[:1],
}


def powers_of_one_exponent(x):
    """A number, however it comes; into memory of several layouts."""
    given = [2.0, np.float64(2), np.array(2.0), np.array(2.0, "f4"), np.array(2), 0.5, -1.0, 3.0]
    numbers = [np.power(x, e) for e in given]
    outs = [np.empty(x.shape, x.dtype), np.empty(x.shape[::-1], x.dtype).T]
    written = [np.power(x, e, out=out) for out in outs for e in (2.0, 3.0)]
    y = x.copy()
    wide = np.zeros((x.shape[0], 2 * x.shape[1]), x.dtype)
    wide[:, ::2] = x
    wide[:, ::2] **= 2.0
    y **= 2.0
    return [*numbers, *written, y, wide, (x**2.0).sum(axis=0), np.power(x, 2.0).sum(axis=1)]


@pytest.mark.parametrize("backend", ["compiled", "interpreted", "numpy"], indirect=True)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("how", LAYOUTS)
def test_powers_with_one_exponent(backend, how, dtype):
    check(powers_of_one_exponent, LAYOUTS[how](rounded_otherwise((4, 5), dtype)))


@pytest.mark.parametrize("backend", ["compiled", "numpy"], indirect=True)
@pytest.mark.parametrize("dtype", ["i1", "i4", "i8", "u8", "f4"])
@pytest.mark.parametrize("how", ["C", "F", "strided", "backwards"])
def test_squares_of_integers_by_an_exponent_of_floats(backend, dtype, how):
    """NumPy before 2.3 squares a copy as doubles, whose order in memory is C or Fortran."""
    top = 100 if dtype == "i1" else 2**31 if dtype == "i4" else 10**10
    x = laid_out((np.random.default_rng(0).random((6, 40)) * top).astype(dtype), how)
    check(lambda x: [x**2.0, x[:, ::-1] ** 2.0 + 1, x**0.0, x**2, (x + 1) ** 1.0], x)


def test_squares_in_loops():
    def squares(x):
        total = np.zeros(x.shape)
        for i in range(40):
            total += (x + i) ** 2.0
        return total

    check(squares, (np.random.default_rng(0).random(300) * 10**10).astype("i8"))
