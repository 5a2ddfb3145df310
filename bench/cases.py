"""Which functions are measured, on which arguments?

One row per case: a plain NumPy function and a factory of its arguments in two sizes. The functions
are written as one writes NumPy, not to suit a compiler. Peers that need the case in another form
have it in variants_*.py. Nothing here knows how anything is timed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Arguments = tuple[Any, ...]
Random = np.random.Generator


def kmeans(X, means):
    return np.argmin(np.linalg.norm(X - means[:, None], axis=2), axis=0)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def zscore(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


def pairwise(x, y):
    return np.sqrt(((x[:, None, :] - y[None, :, :]) ** 2).sum(-1))


def grey(image):
    return image.mean(axis=2).astype(np.uint8)


def chain(x, y):
    a = x * 2.0 + y
    b = np.exp(-(a * a))
    c = np.log(x * x + 1.0) - b
    d = np.tanh(c + a * 0.5)
    e = np.where(d > 0.25, d * a, b - c)
    f = (e + x) * (e - y) / (np.abs(e) + 1.0)
    g = np.sqrt(f * f + b) + np.minimum(c, d)
    h = np.exp(-g) * a + np.log(g + 2.0)
    i = np.where(h < f, h, f + 0.125)
    return np.tanh(i - d) * np.maximum(g, e) + x


def stencil(u, out):
    out[1:-1, 1:-1] = 0.2 * (
        u[1:-1, 1:-1] + u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    )


def positive(x):
    return x[x > 0]


def sort(x):
    return np.sort(x)


def svd(x):
    return np.linalg.svd(x)


def einsum(x, y):
    return np.einsum("ij,ij->i", x, y)


def noise(x):
    return x + np.random.default_rng(0).normal(size=x.shape)


@dataclass(frozen=True)
class Case:
    """One function to measure.

    Attributes
    ----------
    function : the plain NumPy function
    make : random generator and size -> arguments
    full, small : the sizes, in the unit `make` takes (usually the number of rows)
    note : what the case shows
    writes : index of the argument the function writes to, None when it returns its result
    """

    function: Callable[..., Any]
    make: Callable[[Random, int], Arguments]
    full: int
    small: int
    note: str
    writes: int | None = None

    @property
    def name(self) -> str:
        return self.function.__name__

    def arguments(self, size: str) -> Arguments:
        """Fresh arguments, the same ones each time; ``size`` is "full" or "small"."""
        return self.make(np.random.default_rng(12345), self.full if size == "full" else self.small)


def _kmeans_arguments(rng: Random, n: int) -> Arguments:
    return rng.normal(7.5, 3.0, size=(n, 2)), np.array([[5, 5], [10, 10]])


def _stencil_arguments(rng: Random, n: int) -> Arguments:
    return rng.normal(size=(n, n)), np.zeros((n, n))


CASES = {
    case.name: case
    for case in (
        Case(
            kmeans,
            _kmeans_arguments,
            full=20_000_000,
            small=1_000,
            note="broadcast, norm and argmin in one loop",
        ),
        Case(
            softmax,
            lambda rng, n: (rng.normal(size=(n, 100)),),
            full=100_000,
            small=10,
            note="two row reductions and exp",
        ),
        Case(
            zscore,
            lambda rng, n: (rng.normal(size=(n, 8)),),
            full=1_000_000,
            small=100,
            note="column statistics, then normalising",
        ),
        Case(
            pairwise,
            lambda rng, n: (rng.normal(size=(n, 3)), rng.normal(size=(n, 3))),
            full=2_000,
            small=30,
            note="distances without the three-dimensional temporary",
        ),
        Case(
            grey,
            lambda rng, n: (rng.integers(0, 256, size=(n, n, 3), dtype=np.uint8),),
            full=3_000,
            small=20,
            note="uint8 mean over the last axis",
        ),
        Case(
            chain,
            lambda rng, n: (rng.normal(size=n), rng.normal(size=n)),
            full=5_000_000,
            small=1_000,
            note="40 elementwise operations with exp, log, tanh, where",
        ),
        Case(
            stencil,
            _stencil_arguments,
            full=4_000,
            small=30,
            note="five points, slice assignment into an argument",
            writes=1,
        ),
        Case(
            positive,
            lambda rng, n: (rng.normal(size=n),),
            full=10_000_000,
            small=1_000,
            note="boolean indexing: the result's size depends on values",
        ),
        Case(
            sort,
            lambda rng, n: (rng.normal(size=n),),
            full=5_000_000,
            small=1_000,
            note="NumPy's own sort",
        ),
        Case(
            svd,
            lambda rng, n: (rng.normal(size=(n, n)),),
            full=400,
            small=10,
            note="LAPACK through NumPy",
        ),
        Case(
            einsum,
            lambda rng, n: (rng.normal(size=(n, 100)), rng.normal(size=(n, 100))),
            full=100_000,
            small=10,
            note="einsum has loops of its own",
        ),
        Case(
            noise,
            lambda rng, n: (rng.normal(size=n),),
            full=5_000_000,
            small=1_000,
            note="a random generator made inside the function",
        ),
    )
}
