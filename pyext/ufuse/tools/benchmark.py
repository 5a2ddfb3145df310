"""How fast is ufuse on this machine, beside NumPy? ``python -m ufuse bench`` says it.

A few functions of common kinds, each with arrays of some MB. For a study of your own functions
there is ``%ubench``.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import ufuse

from .timing import best_time, compared, shown


def kmeans(x: Any, means: Any) -> Any:
    return np.argmin(np.linalg.norm(x - means[:, None], axis=2), axis=0)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def diffusion(u: Any) -> Any:
    inside = u[1:-1, 1:-1]
    return inside + 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inside)


def masked_mean(x: Any, low: float, high: float) -> Any:
    return x[(low <= x) & (x < high)].mean()


def recurrence(x: Any) -> Any:
    y = np.empty_like(x)
    state = 0.0
    for i in range(len(x)):
        state = 0.9 * state + x[i]
        y[i] = state
    return y


def cases() -> Iterator[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """The functions with their arguments."""
    random = np.random.default_rng(0)
    square = random.random((1000, 1000))
    yield kmeans, (random.random((500_000, 2)), random.random((4, 2)))
    yield softmax, (square,)
    yield diffusion, (square,)
    yield masked_mean, (square.ravel(), 0.25, 0.75)
    yield recurrence, (random.random(100_000),)


def run(seconds: float) -> int:
    """Print a table; the status is the number of results that differ from NumPy's."""
    threads = ufuse.get_num_threads()
    print(f"best times of a call, {threads} thread{'s' * (threads != 1)}, NumPy {np.__version__}")
    print(f"{'':12} {'NumPy':>8} {'ufuse':>8} {'':13}  first call")
    wrong = 0
    for function, arguments in cases():
        jitted = ufuse.jit(function)
        start = time.perf_counter()
        result = jitted(*arguments)
        first = time.perf_counter() - start
        jitted.warmup(*arguments)
        same = result.tobytes() == function(*arguments).tobytes()
        wrong += not same
        ours, theirs = (
            best_time(functools.partial(callee, *arguments), seconds)
            for callee in (jitted, function)
        )
        told = "" if same else "  NOT NumPy's bits"
        print(
            f"{function.__name__:12} {shown(theirs):>8} {shown(ours):>8} "
            f"{compared(ours, theirs):13}  {shown(first)}{told}",
            flush=True,
        )
    return wrong
