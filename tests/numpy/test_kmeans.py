"""Is the k-means line of the README NumPy's to the bit, for every shape, dtype and layout?"""

import numpy as np
import pytest
from same import check

POINTS = 41


def kmeans(X, means):
    return np.argmin(np.linalg.norm(X - means[:, None], axis=2), axis=0)


def data(dtype, k, d, layout):
    rng = np.random.default_rng([k, d])
    dtype = np.dtype(dtype)

    def draw(*shape):
        made = rng.normal(size=shape) * 4
        if dtype.kind == "c":
            made = made + 1j * rng.normal(size=shape)
        return made.astype(dtype)

    if layout == "contiguous":
        x = draw(POINTS, d)
    elif layout == "transposed":
        x = draw(d, POINTS).T
    elif layout == "strided":
        x = draw(2 * POINTS, 2 * d)[::2, ::2]
    elif layout == "reversed":
        x = draw(POINTS, d)[::-1, ::-1]
    elif layout == "empty":
        x = draw(0, d)
    else:
        assert layout == "special"
        x = draw(POINTS, d)
        if dtype.kind in "fc":
            x[3], x[5], x[7], x[8] = np.nan, np.inf, -0.0, -np.inf
            x[9, 0] = np.nan
    means = draw(k, d)
    if k > 2:
        means[2] = means[0]  # ties
    if len(x) > 20:
        x[20] = means[0]
    return x, means


LAYOUTS = ("contiguous", "transposed", "strided", "reversed", "empty", "special")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.complex128])
@pytest.mark.parametrize("d", [1, 2, 3, 8, 17, 64])
@pytest.mark.parametrize("k", [1, 2, 3, 7, 16, 50])
def test_kmeans(k, d, dtype):
    for layout in LAYOUTS:
        check(kmeans, *data(dtype, k, d, layout))


@pytest.mark.parametrize(
    "function",
    [
        lambda X, m: np.argmin(np.linalg.norm(X - m[:, None], axis=-1), axis=-2),
        lambda X, m: np.argmin(np.linalg.norm(X - m[:, None], axis=2, keepdims=True), axis=0),
        lambda X, m: np.argmin(np.linalg.norm(X - m[:, None], ord=1, axis=2), axis=0),
        lambda X, m: np.argmin(np.linalg.norm(X - m[:, None], ord=np.inf, axis=2), axis=0),
        lambda X, m: np.argmin(np.linalg.norm(X - m[:, None], ord=-np.inf, axis=2), axis=0),
        lambda X, m: np.argmin(np.linalg.norm(X - m[:, None], ord=3, axis=2), axis=0),
        lambda X, m: np.argmax(np.linalg.norm(X - m[:, None], axis=2), axis=0, keepdims=True),
        lambda X, m: np.linalg.norm(X - m[:, None], axis=(1, 2)),
    ],
    ids=["negative", "keepdims", "ord1", "inf", "-inf", "ord3", "argmax", "matrix"],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.complex128])
def test_norms(function, dtype):
    check(function, *data(dtype, 3, 3, "contiguous"))
    check(function, *data(dtype, 2, 2, "special"))


def near_ties(dtype, k):
    """Points as far from one mean as from another, but for rounding.

    The squares of such distances are a few units in the last place apart; their roots, which NumPy
    compares, are often the same number, and then the first mean wins.
    """
    rng = np.random.default_rng(k)
    means = rng.normal(size=(k, 2)) * 3
    first, second = means[0], means[-1]
    across = np.array([first[1] - second[1], second[0] - first[0]])
    along = rng.normal(size=(20_000, 1)) * 2.0 ** rng.integers(-3, 4, size=(20_000, 1))
    return ((first + second) / 2 + along * across).astype(dtype), means.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_near_ties(k, dtype):
    x, means = near_ties(dtype, k)
    for choose in (np.argmin, np.argmax, np.min, np.max):

        def function(X, means, choose=choose):
            return choose(np.linalg.norm(X - means[:, None], axis=2), axis=0)

        check(function, x, means)
        check(function, x, means[::-1])
    squares = ((x - means[:, None]) ** 2).sum(axis=2)
    hidden = np.argmin(squares, axis=0) != np.argmin(np.sqrt(squares), axis=0)
    assert hidden.any(), "the roots hide differences of the squares, else this tests nothing"


def test_means_as_people_write_them():
    x = np.random.default_rng(0).normal(size=(1000, 2)) * 5
    check(kmeans, x, np.array([[5, 5], [10, 10]]))


def test_bad_axis():
    x, means = data(np.float64, 2, 2, "contiguous")
    check(lambda X, m: np.argmin(np.linalg.norm(X - m[:, None], axis=3), axis=0), x, means)
    check(lambda X, m: np.argmin(np.linalg.norm(X - m[:, None], axis=2), axis=7), x, means)
