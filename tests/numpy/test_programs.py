"""The programs of everyday: are they NumPy's to the bit, in every dtype and layout that they meet?"""

import numpy as np
import pytest
from arrays import array
from same import check

LAYOUTS = ("contiguous", "transposed", "strided", "reversed", "empty")


def row_softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def column_z_score(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


def pairwise_distances(x, y):
    return np.sqrt(((x[:, None, :] - y[None, :, :]) ** 2).sum(-1))


def grey(rgb):
    g = rgb @ np.array([0.299, 0.587, 0.114])
    return g - g.mean()


def grey_by_mean(rgb):
    return rgb.mean(axis=2)


def chain(x):
    y = x
    for k in range(10):
        y = np.where(y > 0.1 * k, np.tanh(y) + 0.5, np.exp(-np.abs(y)) - 0.25 * y)
        y = np.log(np.abs(y) + 1.0) * 1.5
    return y


def stencil(u, v):
    v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])


def time_steps(u, n, dt):
    for _ in range(n):
        u[1:-1] += dt * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u.sum()


def newton(x):
    steps = 0
    y = x
    while np.abs(y * y - x).max() > 1e-12 and steps < 60:
        y = 0.5 * (y + x / y)
        steps += 1
    return y, steps


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("function", [row_softmax, column_z_score, chain])
def test_one_array(function, dtype, layout):
    check(function, array(dtype, layout, (9, 11)))


@pytest.mark.parametrize("function", [row_softmax, column_z_score, chain])
def test_large(function):
    check(function, np.random.default_rng(1).normal(size=(70, 301)))


@pytest.mark.parametrize("dtype", ["f", "d", "l", "D"])
def test_pairwise_distances(dtype):
    check(pairwise_distances, array(dtype, shape=(13, 5)), array(dtype, shape=(8, 5), seed=1))


def test_grey():
    rgb = np.random.default_rng(2).random((12, 17, 3))
    check(grey, rgb)
    check(grey_by_mean, rgb)
    check(grey_by_mean, (rgb * 255).astype(np.uint8))


def test_stencil():
    u = np.random.default_rng(3).normal(size=(14, 15))
    check(stencil, u, np.zeros_like(u))
    # Source and target are one array: run as NumPy runs it.
    check(lambda u: stencil(u, u), u)


@pytest.mark.parametrize("n", [0, 1, 2, 50])
def test_time_steps(n):
    check(time_steps, np.random.default_rng(4).normal(size=64), n, 0.1)


def test_control_flow():
    check(newton, np.random.default_rng(5).random(30) + 0.5)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[x > 0],
        lambda x: np.sort(x, axis=0),
        lambda x: np.linalg.svd(x),
        lambda x: np.einsum("ij,kj->ik", x, x),
        lambda x: x + np.random.default_rng(0).normal(size=x.shape),
        lambda x: np.sort(x * 2 + 1)[::-1] - x.mean(),
        lambda x: (x @ x.T + 1).sum(axis=0),
    ],
    ids=["mask", "sort", "svd", "einsum", "random", "sort_in_the_middle", "matmul"],
)
def test_calls_of_numpy(function):
    check(function, np.random.default_rng(6).normal(size=(9, 6)))
