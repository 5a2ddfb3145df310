"""What does a call cost when there is almost nothing to compute?

Small arguments: the time is that of dispatch, argument handling and the result's creation. NumPy's
own time for the same call stands beside it. The last rows are calls of ``ufuse.numpy``, the drop-in
module.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import ufuse
import ufuse.numpy as unp
from ufuse.tools.explain import waiting

from bench import timing
from bench.cases import chain, kmeans


def add_one(x):
    return x + 1


def three_operations(x, y):
    return (x + y) * 2.0 - x


def total(x):
    return x.sum()


def from_tuple(pair):
    return pair[0] + pair[1]


def step(x, dt):
    return x + 0.5 * dt * x


def sign(x):
    return x + 1 if x.sum() > 0 else x - 1


def halve(x):
    while np.abs(x).max() > 1:
        x = x / 2
    return x


def scaled_by(factor):
    return lambda x: x * factor


class Scaler:
    """Its method reads an attribute, which each replay looks at."""

    def __init__(self, factor):
        self.factor = factor

    def apply(self, x):
        return x * self.factor + 1


def positive(x):
    return x[x > 0] * 2


def rows() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """What is called, with which arguments, by the name in the table."""
    one, thousand = np.ones(1), np.ones(1000)
    means = np.array([[5, 5], [10, 10]])
    return {
        "x + 1, 1 element": (add_one, (one,)),
        "x + 1, 1000 elements": (add_one, (thousand,)),
        "x + 1, NumPy scalar": (add_one, (np.float64(1.0),)),
        "x.sum(), 1000 elements": (total, (thousand,)),
        "(x + y) * 2 - x, 1000 elements": (three_operations, (thousand, thousand)),
        "arguments in a tuple, 1 element": (from_tuple, ((one, one),)),
        "a number that changes, 1000 elements": (step, (thousand, count(0.5))),
        "if x.sum() > 0, 1000 elements": (sign, (thousand,)),
        "while with 4 rounds, 1000 elements": (halve, (thousand * 16,)),
        "closure, 1000 elements": (scaled_by(2.0), (thousand,)),
        "partial, 1000 elements": (partial(step, dt=0.5), (thousand,)),
        "method, 1000 elements": (Scaler.apply, (Scaler(2.0), thousand)),
        "x[x > 0] * 2, 1000 elements": (positive, (thousand,)),
        "40 operations, 10 elements": (chain, (np.ones(10), np.ones(10))),
        "kmeans, 10 points": (kmeans, (np.ones((10, 2)), means)),
    }


def call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[[], Any]:
    """A call with these arguments; of an iterator with another one each time."""
    if not any(isinstance(argument, Iterator) for argument in arguments):
        return partial(function, *arguments)
    return lambda: function(*(next(a) if isinstance(a, Iterator) else a for a in arguments))


def drop_in_rows() -> dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]]:
    """NumPy's function, the drop-in module's, and their arguments, by the name in the table."""
    x = np.arange(10.0)
    given: dict[str, tuple[Any, ...]] = {
        **{"add": (x, x), "sin": (x,), "sum": (x,), "mean": (x,), "where": (x > 3, x, 0.0)},
        **{"zeros": (10,), "dot": (x, x), "concatenate": ([x, x],), "argsort": (x,)},
    }
    return {
        f"np.{name}, 10 elements": (getattr(np, name), getattr(unp, name), arguments)
        for name, arguments in given.items()
    }


def main() -> None:
    print(f"{'call':36} {'NumPy':>9} {'ufuse':>9} {'ratio':>8}")
    jitted = {name: (f, ufuse.jit(f), arguments) for name, (f, arguments) in rows().items()}
    for name, (function, native, arguments) in (jitted | drop_in_rows()).items():
        # Enough calls for a plan to be recorded, compiled and replayed before the clock starts.
        calls = {"numpy": call(function, arguments), "ufuse": call(native, arguments)}
        with waiting():
            for _ in range(50):
                calls["ufuse"]()
        samples = timing.in_turns(calls, budget=1.0)
        numpys, ours = timing.median(samples["numpy"]), timing.median(samples["ufuse"])
        times = f"{numpys * 1e6:6.2f} us {ours * 1e6:6.2f} us"
        print(f"{name:36} {times} {numpys / ours:7.2f}x", flush=True)


if __name__ == "__main__":
    main()
