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


def test_means_as_people_write_them():
    x = np.random.default_rng(0).normal(size=(1000, 2)) * 5
    check(kmeans, x, np.array([[5, 5], [10, 10]]))


def test_bad_axis():
    x, means = data(np.float64, 2, 2, "contiguous")
    check(lambda X, m: np.argmin(np.linalg.norm(X - m[:, None], axis=3), axis=0), x, means)
    check(lambda X, m: np.argmin(np.linalg.norm(X - m[:, None], axis=2), axis=7), x, means)
