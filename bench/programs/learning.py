"""Programs that fit models to data."""

import numpy as np

from bench.programs import Collection

PROGRAMS = Collection()


@PROGRAMS.program(lambda rng: (rng.random((2000, 40)), (rng.random(2000) < 0.5) * 1.0, 0.1, 50))
def logistic_regression(x, y, rate, steps):
    weights = np.zeros(x.shape[1])
    for _ in range(steps):
        guess = 1 / (1 + np.exp(-(x @ weights)))
        weights -= rate * (x.T @ (guess - y)) / len(y)
    return weights


@PROGRAMS.program(lambda rng: (rng.random((3000, 4)), 8, 10))
def lloyd(points, count, rounds):
    means = points[:count].copy()
    for _ in range(rounds):
        nearest = np.argmin(np.linalg.norm(points - means[:, None], axis=2), axis=0)
        for k in range(count):
            mine = points[nearest == k]
            if len(mine):
                means[k] = mine.mean(axis=0)
    return means, nearest


@PROGRAMS.program(
    lambda rng: (
        rng.standard_normal((128, 64)),
        rng.standard_normal((128, 10)),
        rng.standard_normal((64, 32)) * 0.1,
        rng.standard_normal((32, 10)) * 0.1,
        30,
    )
)
def train_network(x, y, first, second, steps):
    for _ in range(steps):
        hidden = np.maximum(x @ first, 0)
        raw = hidden @ second
        share = np.exp(raw - raw.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        slope = (share - y) / len(x)
        back = (slope @ second.T) * (hidden > 0)
        second = second - 0.1 * hidden.T @ slope
        first = first - 0.1 * x.T @ back
    return first, second


@PROGRAMS.program(
    lambda rng: (rng.random((500, 16)), rng.integers(0, 5, 500), rng.random((60, 16)))
)
def nearest_neighbours(known, labels, asked):
    distance = ((asked[:, None, :] - known[None]) ** 2).sum(axis=2)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :7]
    return np.array([np.bincount(labels[row], minlength=5).argmax() for row in nearest])


@PROGRAMS.program(lambda rng: (rng.random((64, 1000)),))
def softmax_rows(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
