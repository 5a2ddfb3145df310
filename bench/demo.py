"""What does ufuse do for one line of NumPy? (`make demo`)

k-means' assignment step on 20 million points: NumPy, ufuse and a hand-written loop with the same
memory traffic take turns; the results are compared bit by bit, and the generated loop is shown.
The exit status is 1 when the results differ.
"""

import argparse
import inspect
import sys
from functools import partial
from typing import Any

import numpy as np
import ufuse

from bench import reference, timing
from bench.cases import CASES, kmeans
from bench.compare import identical


def describe(result: Any) -> str:
    return f"{type(result).__name__}, {result.dtype}, shape {result.shape}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=CASES["kmeans"].full)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of measuring")
    options = parser.parse_args()

    X, means = CASES["kmeans"].make(np.random.default_rng(12345), options.points)
    native = ufuse.jit(kmeans)
    print(inspect.getsource(kmeans))
    print(f"X: {describe(X)}; means: {describe(means)}\n")

    results: list[Any] = []
    first = timing.once(lambda: results.append(native(X, means)))
    print(f"first call of ufuse: {timing.human(first)}, tracing and compiling included")
    same = identical(kmeans(X, means), results.pop())

    def on_threads(threads: int) -> Any:
        ufuse.set_num_threads(threads)
        return native(X, means)

    counts = sorted({1, reference.available_threads()})
    calls: dict[str, Any] = {"NumPy": partial(kmeans, X, means)}
    for count in counts:
        calls[f"reference loop, {count} thread(s)"] = partial(reference.same_traffic, X, count)
        calls[f"ufuse, {count} thread(s)"] = partial(on_threads, count)
        calls[f"ufuse, {count} thread(s)"]()
    medians = {
        name: timing.median(samples)
        for name, samples in timing.in_turns(calls, options.budget).items()
    }
    for name, seconds in medians.items():
        faster = f"{medians['NumPy'] / seconds:.1f}x"
        print(f"  {name:28} {timing.human(seconds):>8}  {faster:>7}")
    for count in counts:
        share = medians[f"reference loop, {count} thread(s)"] / medians[f"ufuse, {count} thread(s)"]
        print(f"on {count} thread(s) ufuse has {share:.0%} of the reference loop's speed")
    print("(hand-written C++ that reads and writes the same memory, with one addition per point)")

    print(f"\nresult: {describe(native(X, means))}")
    print("bits, dtype and type are", "identical to NumPy's" if same else "DIFFERENT from NumPy's")
    print(f"\nthe generated loop:\n\n{native.source(X, means)}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
