"""Do operators treat large temporaries as NumPy's do, which write over them, and layouts with it?

From 256 KiB on NumPy's operators put their result where a dying operand was; the result then has that
operand's strides, which sums that follow depend on.
"""

import operator
import tracemalloc

import numpy as np
import pytest
import ufuse
from same import check, jitted

pytestmark = pytest.mark.usefixtures("unwatched")

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 30, 60)).transpose(2, 0, 1)
Y = RNG.normal(size=X.shape)
K = (X * 100).astype(np.int64)
SMALL = RNG.normal(size=(4, 3))


def named(x, y):
    z = x.copy("K")
    return z + y, y - z


def named_and_lost(x, y):
    z = x.copy("K")
    return z + y


def in_a_list(x, y):
    z = [x.copy("K")]
    return z[0] + y


def another_name_of_a_sum(x, y):
    z = x.copy("K") + y
    w = z * y
    return w, z


EXPRESSIONS = [
    named,
    named_and_lost,
    in_a_list,
    another_name_of_a_sum,
    lambda x, y: x.copy("K") + y,
    lambda x, y: y + x.copy("K"),
    lambda x, y: x.copy("K") - y,
    lambda x, y: y - x.copy("K"),
    lambda x, y: y / x.copy("K"),
    lambda x, y: x.copy("K") / 2,
    lambda x, y: (x.copy("K") + y).sum(0),
    lambda x, y: ((x * 2.0) * y).sum((0, 2)),
    lambda x, y: x.copy("K")[1:] + y[1:],  # a view of a temporary owns nothing
    lambda x, y: x.copy("K").T + y.T,
    lambda x, y: x.astype(np.float32, order="K") + y,
    lambda x, y: x.copy("K") + y[0],
    lambda x, y: y[:, :1] + x.copy("K"),
    lambda x, y: np.add(x.copy("K"), y),
    lambda x, y: operator.add(x.copy("K"), y),
    lambda x, y: (x.copy("K") + y) * y - x,
    lambda x, y: np.sort(x) + y,
    lambda x, y: np.sort(x) * y / 3 + 1,
    lambda x, y: np.cumsum(x, 1) // y,
    lambda x, y: np.random.default_rng(0).normal(size=x.shape) + x,
    lambda x, y: x - np.random.default_rng(0).normal(size=x.shape) * 2,
    lambda x, y: np.random.default_rng(0).normal(size=x.shape) / (y * 0),
]


@pytest.mark.parametrize("f", EXPRESSIONS)
def test_layout_of_an_operators_result(f):
    for _ in range(2):
        check(f, X, Y)
    check(f, K, Y)
    check(f, X, K)
    check(f, Y, X)


@pytest.mark.parametrize("kind", ["c16", "c8", "f8", "f4", "i4"])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: x * (x + 1) * (x + 2),
        lambda x, y: x * (y + 1),
        lambda x, y: (x - 1) * y / (x * y + 2),
        lambda x, y: y - x * (y * x) + 1,
    ],
)
def test_operand_that_is_written_over_comes_first(f, kind):
    """Complex products round differently with their factors in the other order."""
    x = (RNG.normal(size=40_000) * 5 + 9).astype(kind)
    y = (RNG.normal(size=40_000) * 5 + 9).astype(kind)
    if kind[0] == "c":
        x, y = x + 1j * y, y - 2j * x
    check(f, x, y)
    check(f, x[::2], y[::-2])


KEPT = []


def keep(x):
    made = np.sort(x)
    KEPT.append(made)
    return made


def test_arrays_that_somebody_holds_are_left_alone():
    def f(x, y):
        a = np.sort(x)
        b = a
        return a + y, b, keep(x) + y

    check(f, X, Y)
    assert all((made == np.sort(X)).all() for made in KEPT)


def peak_memory(f, x):
    """The most memory that arrays take during a call, in arrays like x."""
    f(x)  # whatever is made once
    tracemalloc.start()
    result = f(x)
    peak = tracemalloc.get_traced_memory()[1] / x.nbytes
    tracemalloc.stop()
    assert result.nbytes == x.nbytes
    return peak


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x + np.random.default_rng(0).normal(size=x.shape),
        lambda x: x - np.sort(x),
        lambda x: np.sort(np.sort(x) * 2) + x,
        lambda x: (made := np.sort(x)) + made,  # held by the name
    ],
)
def test_a_temporarys_memory_is_the_results(f):
    x = np.ones(50_000)
    if peak_memory(lambda x: np.sort(x) + x, x) > 1.5:
        pytest.skip("NumPy reuses no temporaries here")
    ours, numpys = peak_memory(jitted(f), x), peak_memory(f, x)
    assert ours < numpys + 0.1


def add_in_place(x, y):
    x += y
    return x


def scale_in_place(x, y):
    x[1:] *= y[1:]


def twice_in_place(x, y):
    x += y
    x *= y


@pytest.mark.parametrize("f", [add_in_place, scale_in_place, twice_in_place])
@pytest.mark.parametrize("n", [3, 300, 70_000])
def test_in_place_with_flags_raised(f, n):
    """One operation tells its warnings by the flags, while its operand is gone."""
    big = np.full(n, 1e308)
    big[0] = np.nan
    for _ in range(3):  # traced, then replayed
        check(f, big, big.copy())
        check(f, np.arange(n * 1.0), np.ones(n))
        check(f, big[::-1], big.copy())
        check(f, big, big[:1])


def test_in_place_when_a_warning_is_made_an_error():
    def f(x, y):
        import warnings

        warnings.simplefilter("error")
        x += y

    x = np.full(3, 1e308)
    with pytest.raises(RuntimeWarning, match="overflow encountered in add"):
        ufuse.jit(f)(x, x.copy())
    assert np.isinf(x).all()
