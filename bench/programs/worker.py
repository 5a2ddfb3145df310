"""What does one program cost, in one process? Prints one JSON object.

Calls with and without ``ufuse.jit`` take turns. Each gets arguments of its own, copied outside the
measured time, and its result and its arguments afterwards are compared with NumPy's bit by bit.
With ``--plain`` nothing is decorated: what the first calls cost in a process of NumPy's own, which
asks the system for memory as often.
"""

import argparse
import copy
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NUMPYS_CALLS = 3  # before ours
FIRST_CALLS = 10
# Rounds of the steady state. Copies of large arguments take longer than the calls.
FEWEST, ENOUGH = 5, 31
LONGEST = 6  # times the budget, for enough of them


def timed(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[float, Any]:
    """Seconds of a call on copies; its result, and the arguments afterwards."""
    own = copy.deepcopy(arguments)
    start = time.perf_counter()
    result = function(*own)
    return time.perf_counter() - start, (result, own)


def first_calls(
    plain: Callable[..., Any], function: Callable[..., Any], arguments: tuple[Any, ...]
) -> dict[str, Any]:
    """NumPy's result and times once it is warm; then a function's times, beside that result."""
    from bench.compare import compare

    _, expected = timed(plain, arguments)
    found: dict[str, Any] = {"expected": expected, "firsts": [], "results": []}
    found["numpys"] = [timed(plain, arguments)[0] for _ in range(NUMPYS_CALLS)]
    for _ in range(FIRST_CALLS):
        seconds, actual = timed(function, arguments)
        found["firsts"].append(seconds)
        found["results"].append(compare(expected, actual))
    return found


def wants_more(rounds: int, seconds: float, budget: float) -> bool:
    """Whether the medians of so many rounds need another, ``seconds`` after the first began."""
    if rounds < FEWEST or seconds < budget:
        return True
    return rounds < ENOUGH and seconds < LONGEST * budget


def measure_plain(program: Any) -> dict[str, Any]:
    """What NumPy's calls take at the place of the first calls of ``measure``."""
    plain = program.build(lambda function: function)
    return {"first": first_calls(plain, plain, program.arguments())["firsts"]}


def measure(program: Any, settle: float, budget: float) -> dict[str, Any]:
    """Times and bits of a program, see __main__.py; ``settle`` and ``budget`` are seconds."""
    import ufuse

    from bench.compare import compare
    from bench.timing import median

    made: list[Any] = []

    def decorate(function: Callable[..., Any]) -> Any:
        made.append(ufuse.jit(function))
        return made[-1]

    plain, ours = program.build(lambda function: function), program.build(decorate)
    arguments = program.arguments()
    found = first_calls(plain, ours, arguments)
    expected, results = found["expected"], found["results"]
    begin = time.perf_counter()
    while time.perf_counter() - begin < settle:
        timed(ours, arguments)
    results += [compare(expected, timed(ours, arguments)[1]) for _ in range(FIRST_CALLS)]
    numpys: list[float] = []
    steady: list[float] = []
    begin = time.perf_counter()
    while wants_more(len(steady), time.perf_counter() - begin, budget):
        ways = ((plain, numpys), (ours, steady))
        for function, samples in ways[:: -1 if len(steady) % 2 else 1]:
            samples.append(timed(function, arguments)[0])
    worst = next(result for result in ("different", "close", "identical") if result in results)
    return {
        "numpy": median(numpys),
        "first": found["firsts"],
        "steady": median(steady),
        "result": worst,
        "stats": [function.stats()._asdict() for function in made],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--npbench", type=Path)
    parser.add_argument("--preset", default="S")
    parser.add_argument("--settle", type=float, default=1.5)
    parser.add_argument("--budget", type=float, default=1.0)
    parser.add_argument("--plain", action="store_true")
    options = parser.parse_args()
    # Loops of other runs would make the first calls look faster than those of a new user.
    # At the end compilers may still be writing into it.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["UFUSE_CACHE_DIR"] = folder
        from bench.programs.__main__ import collection

        program = collection(options.npbench, options.preset)[options.name]
        report = (
            measure_plain(program)
            if options.plain
            else measure(program, options.settle, options.budget)
        )
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
