"""What are instructions counted of, and how does valgrind learn where that begins and ends?

``python -m bench.counted MARKS`` runs all of it in one process, under valgrind: ``instructions.py``
starts it. Valgrind counts between two marks, calls of the library MARKS, which is made of
``counted.c``; all else runs uncounted, and so ten times as fast.
"""

import ctypes
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import ufuse

from bench.cases import CASES, Arguments

STATEMENTS = 40
WARM_UP, CALLS = 5, 4


class Counted(NamedTuple):
    """Calls of which instructions are counted.

    Attributes
    ----------
    call : size -> what is called
    sizes : one: what is told is the instructions of a call; two: those of its compiled loops, for
        each of the elements that a call of the second size has more
    amount : size -> how many elements, or other parts, a call of that size has
    """

    call: Callable[[int], Callable[[], Any]]
    sizes: tuple[int, ...]
    amount: Callable[[int], int]

    @property
    def is_of_loops(self) -> bool:
        return len(self.sizes) > 1


def recording(_: int) -> Callable[[], Any]:
    """A call that records 200 operations: views, arithmetic, a ufunc. Nothing uses the results, and
    integers do not warn, so next to nothing is computed; what happens to the list keeps the
    recording from being replayed, and a loop over a list does not become native."""

    @ufuse.jit
    def record(x, rounds, seen):
        for _ in rounds:
            np.minimum(x[1:-1] * 2 + x[:-2], 3)
        seen.append(1)

    x, rounds = np.arange(1000), [None] * STATEMENTS
    return lambda: record(x, rounds, [])


def replaying(_: int) -> Callable[[], Any]:
    """A call that is replayed, with one loop on ten numbers."""

    @ufuse.jit
    def step(x, dt):
        return x + 0.5 * dt * x

    x = np.arange(10.0)
    return lambda: step(x, 0.1)


def listing(size: int) -> Callable[[], Any]:
    """The same where an argument is a list of NumPy scalars, of which one is used."""

    @ufuse.jit
    def step(x, weights):
        return x + 0.5 * weights[0] * x

    x, weights = np.arange(10.0), list(np.linspace(0.1, 0.9, size))
    return lambda: step(x, weights)


def plain(_: int) -> Callable[[], Any]:
    """A call that the plain function answers, which does nothing itself."""

    @ufuse.jit
    def f(x):
        global last
        match x:
            case last:
                return x

    x = np.arange(10.0)
    return lambda: f(x)


def loops(
    function: Callable[..., Any],
    make: Callable[[int], Arguments],
    sizes: tuple[int, int],
    amount: Callable[[int], int],
) -> Counted:
    """The loops of a function, on arguments that ``make`` makes in two sizes."""

    def call(size: int) -> Callable[[], Any]:
        native, arguments = ufuse.jit(function), make(size)
        return lambda: native(*arguments)

    return Counted(call, sizes, amount)


def of_case(name: str, sizes: tuple[int, int], amount: Callable[[int], int]) -> Counted:
    """The loops of a case of the benchmark."""
    case = CASES[name]
    return loops(case.function, partial(case.make, np.random.default_rng(0)), sizes, amount)


def normal(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape)


def total(x):
    return x.sum()


def extremes(x):
    return x.min(axis=0), x.argmin(axis=0)


def single(x):
    return np.maximum(x * 2.5 + 1, 0)


COUNTED = {
    "an operation recorded": Counted(recording, (0,), lambda _: 5 * STATEMENTS),
    "a call replayed": Counted(replaying, (0,), lambda _: 1),
    "an item of a list replayed": Counted(listing, (1000,), lambda n: n),
    "a call of the plain function": Counted(plain, (0,), lambda _: 1),
    "kmeans": of_case("kmeans", (1024, 4096), lambda n: n),
    "softmax": of_case("softmax", (16, 64), lambda n: n * 100),
    "zscore": of_case("zscore", (256, 1024), lambda n: n * 8),
    "pairwise": of_case("pairwise", (32, 96), lambda n: n * n),
    "grey": of_case("grey", (32, 96), lambda n: n * n),
    "chain": of_case("chain", (1024, 4096), lambda n: n),
    "stencil": of_case("stencil", (34, 98), lambda n: n * n),
    "sum": loops(total, lambda n: (normal(n),), (2048, 8192), lambda n: n),
    "extremes": loops(extremes, lambda n: (normal(n, 64),), (32, 128), lambda n: n * 64),
    "float32": loops(single, lambda n: (normal(n).astype("f"),), (2048, 8192), lambda n: n),
}


def main(library: str) -> None:
    """Make all calls, those that are counted between two marks."""
    marks = ctypes.PyDLL(library)
    for name, counted in COUNTED.items():
        for size in counted.sizes:
            call = counted.call(size)
            for _ in range(WARM_UP):
                call()
            marks.begin()
            for _ in range(CALLS):
                call()
            marks.end(f"{name}, {size}".encode())


if __name__ == "__main__":
    main(sys.argv[1])
