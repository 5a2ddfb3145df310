"""Programs of linear algebra: factorisations and iterations, written out."""

import numpy as np

from bench.programs import Collection

PROGRAMS = Collection()


def _positive(rng, n):
    a = rng.random((n, n))
    return a @ a.T + n * np.eye(n)


@PROGRAMS.program(lambda rng: (_positive(rng, 60),))
def cholesky_by_hand(a):
    n = len(a)
    for j in range(n):
        a[j, j] = np.sqrt(a[j, j] - np.dot(a[j, :j], a[j, :j]))
        for i in range(j + 1, n):
            a[i, j] = (a[i, j] - np.dot(a[i, :j], a[j, :j])) / a[j, j]
    return np.tril(a)


@PROGRAMS.program(lambda rng: (rng.random((120, 80)),))
def gram_schmidt(a):
    q = np.zeros_like(a)
    for k in range(a.shape[1]):
        v = a[:, k] - q[:, :k] @ (q[:, :k].T @ a[:, k])
        q[:, k] = v / np.sqrt(np.sum(v * v))
    return q


@PROGRAMS.program(lambda rng: (_positive(rng, 100), rng.random(100)))
def eliminate(a, b):
    n = len(b)
    for k in range(n - 1):
        factors = a[k + 1 :, k] / a[k, k]
        a[k + 1 :] -= factors[:, None] * a[k]
        b[k + 1 :] -= factors * b[k]
    x = np.zeros(n)
    for k in range(n - 1, -1, -1):
        x[k] = (b[k] - a[k, k + 1 :] @ x[k + 1 :]) / a[k, k]
    return x


@PROGRAMS.program(lambda rng: (_positive(rng, 300), rng.random(300), 60))
def conjugate_gradients(a, b, steps):
    x = np.zeros_like(b)
    r = b - a @ x
    p, rr = r, r @ r
    for _ in range(steps):
        ap = a @ p
        alpha = rr / (p @ ap)
        x = x + alpha * p
        r = r - alpha * ap
        new = r @ r
        if new < 1e-20:
            break
        p, rr = r + new / rr * p, new
    return x


@PROGRAMS.program(lambda rng: (rng.random((400, 400)), 50))
def power_iteration(a, steps):
    v = np.ones(len(a))
    for _ in range(steps):
        v = a @ v
        v = v / np.linalg.norm(v)
    return v @ a @ v


@PROGRAMS.program(lambda rng: (rng.random((600, 200)),))
def correlations(data):
    centred = (data - data.mean(axis=0)) / data.std(axis=0)
    return centred.T @ centred / len(data)


@PROGRAMS.program(lambda rng: (1.5, 1.2, rng.random((700, 700)), *rng.random((4, 700))))
def rank_two_update(alpha, beta, a, u, v, y, z):
    a += np.outer(u, v)
    x = beta * y @ a + z
    return alpha * a @ x


@PROGRAMS.program(lambda rng: (rng.random((90, 90)),))
def shortest_paths(distances):
    for k in range(len(distances)):
        distances[:] = np.minimum(distances, distances[:, k, None] + distances[None, k])
    return distances
