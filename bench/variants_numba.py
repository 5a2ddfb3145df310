"""What would one write in Numba for each case?

Array expressions where Numba's parallel compiler takes them well, explicit loops where it does not
(`norm` with an axis, `keepdims`). Imported only where Numba is installed.
"""

import numpy as np
from numba import njit, prange

from bench import cases


@njit(parallel=True)
def kmeans(X, means):
    result = np.empty(X.shape[0], dtype=np.int64)
    for i in prange(X.shape[0]):
        best, best_distance = 0, np.inf
        for k in range(means.shape[0]):
            total = 0.0
            for d in range(X.shape[1]):
                difference = X[i, d] - means[k, d]
                total += difference * difference
            distance = np.sqrt(total)
            if distance < best_distance:
                best, best_distance = k, distance
        result[i] = best
    return result


@njit(parallel=True)
def softmax(x):
    result = np.empty_like(x)
    for i in prange(x.shape[0]):
        e = np.exp(x[i] - x[i].max())
        result[i] = e / e.sum()
    return result


@njit(parallel=True)
def zscore(x):
    result = np.empty_like(x)
    rows, columns = x.shape
    mean = x.sum(axis=0) / rows
    square = np.zeros(columns)
    for i in prange(rows):
        square += (x[i] - mean) ** 2
    std = np.sqrt(square / rows)
    for i in prange(rows):
        result[i] = (x[i] - mean) / std
    return result


@njit(parallel=True)
def pairwise(x, y):
    result = np.empty((x.shape[0], y.shape[0]))
    for i in prange(x.shape[0]):
        for j in range(y.shape[0]):
            total = 0.0
            for d in range(x.shape[1]):
                total += (x[i, d] - y[j, d]) ** 2
            result[i, j] = np.sqrt(total)
    return result


@njit(parallel=True)
def grey(image):
    result = np.empty(image.shape[:2], dtype=np.uint8)
    for i in prange(image.shape[0]):
        for j in range(image.shape[1]):
            total = 0.0
            for channel in range(image.shape[2]):
                total += image[i, j, channel]
            result[i, j] = np.uint8(total / image.shape[2])
    return result


@njit(parallel=True)
def einsum(x, y):
    result = np.empty(x.shape[0])
    for i in prange(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j] * y[i, j]
        result[i] = total
    return result


VARIANTS = {
    "kmeans": kmeans,
    "softmax": softmax,
    "zscore": zscore,
    "pairwise": pairwise,
    "grey": grey,
    "chain": njit(parallel=True)(cases.chain),
    "stencil": njit(parallel=True)(cases.stencil),
    "positive": njit(cases.positive),
    "sort": njit(cases.sort),
    "svd": njit(cases.svd),
    "einsum": einsum,
}
