"""What does one case cost, in one process with a fixed number of threads?

run.py starts this module as a process of its own per case and thread count, because every library
reads its thread count when it is loaded. Prints one JSON object with an entry per version.
"""

import argparse
import copy
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def limit_threads(threads: int) -> None:
    """Hold this process to ``threads`` cores; the libraries must not be loaded yet."""
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(threads)
    # JAX has no variable for it and counts the cores it may use.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def measure(case_name: str, size: str, versions: list[str], budget: float) -> dict[str, Any]:
    """Time the versions of one case in turns, after checking each result against NumPy's.

    Returns, by version, either ``{"cannot": reason}`` or ``{"seconds": [...], "first": seconds of
    the first call, "result": "identical" | "close" | "different" | "unchecked"}``.
    """
    from bench import timing
    from bench.cases import CASES
    from bench.compare import compare
    from bench.peers import PEERS, Cannot

    case = CASES[case_name]
    arguments = case.arguments(size)

    def outcome(returned: Any, used: tuple[Any, ...]) -> Any:
        return returned if case.writes is None else (returned, used[case.writes])

    used = copy.deepcopy(arguments)
    expected = outcome(case.function(*used), used)

    report: dict[str, Any] = {}
    calls: dict[str, Callable[[], Any]] = {}
    for name in versions:
        try:
            version = PEERS[name](case)
            # Only a case that writes needs arguments of its own for each version.
            own = arguments if case.writes is None else copy.deepcopy(arguments)
            native = tuple(version.to_native(argument) for argument in own)
            call = partial(version.call, *native)
            results: list[Any] = []
            first = timing.once(lambda: results.append(call()))  # noqa: B023 - called at once
        except Cannot as reason:
            report[name] = {"cannot": str(reason)}
            continue
        except Exception as error:  # a peer's failure is a finding, not the end of the run
            text = str(error).strip().splitlines() or [""]
            report[name] = {"cannot": f"{type(error).__name__}: {text[0][:120]}"}
            continue
        result = version.to_numpy(results.pop())
        actual = (None, result) if version.functional else outcome(result, native)
        checked = compare(expected, actual) if version.checked else "unchecked"
        report[name] = {"first": first, "result": checked}
        calls[name] = call
    for name, seconds in timing.in_turns(calls, budget).items():
        report[name]["seconds"] = seconds
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", required=True)
    parser.add_argument("--size", choices=["full", "small"], default="full")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--versions", default="numpy,ufuse", help="separated by commas")
    parser.add_argument("--budget", type=float, default=10.0, help="seconds of measuring")
    options = parser.parse_args()
    limit_threads(options.threads)
    # The result that is checked, and the first call, are those of compiled loops.
    os.environ.setdefault("UFUSE_BACKEND", "compiled")
    report = measure(options.case, options.size, options.versions.split(","), options.budget)
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
