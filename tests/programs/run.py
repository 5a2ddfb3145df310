"""Runs random programs, as many as wanted: ``python tests/programs/run.py --count 5000``.

Prints each program that differs, shortened, with its seed; the status is 1 where one did.
"""

import argparse
import contextlib
import functools
import sys
import time

from shorten import shortened
from ufuse import _core
from worlds import TIMES, first_difference
from writer import written


def backend_of(seed):
    """One program in eight waits for the compiler; the others are answered by the interpreter."""
    return "compiled" if seed % 8 == 0 else "interpreted"


def operations_of(seed):
    """In one program of three tracing stops in the middle of calls, after so many operations."""
    return seed // 3 % 40 if seed % 3 == 0 else -1


def choices_of(seed):
    """Half of them mix plain calls with ours, by chance."""
    return str(seed) if seed % 2 else "ours"


@contextlib.contextmanager
def ways_of(seed):
    """While it is open, calls go the ways that are meant for a seed."""
    before = _core.choose_by(choices_of(seed))
    try:
        with _core.backend(backend_of(seed)), _core.most_operations(operations_of(seed)):
            yield
    finally:
        _core.choose_by(before)


def differing(seed):
    """How the program of a seed differs; None where it does not."""
    with ways_of(seed):
        return first_difference(written(seed))


def quick(found, text):
    """How a text differs, called as often as the one that was ``found`` to differ."""
    times = [each for each in TIMES if found.startswith(f"called {each} times,")]
    return first_difference(text, times or TIMES)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--count", type=int, default=5000, help="how many programs (5000)")
    parser.add_argument("--text", action="store_true", help="print the programs, run none")
    parser.add_argument("--whole", action="store_true", help="do not shorten what differs")
    given = parser.parse_args()
    start = time.monotonic()
    failed = []
    for seed in range(given.first, given.first + given.count):
        if given.text:
            print(written(seed))
            continue
        found = differing(seed)
        if found is not None:
            failed.append(seed)
            print(f"==== seed {seed}: {found}", flush=True)
            if not given.whole:
                with ways_of(seed):
                    text, found = shortened(written(seed), functools.partial(quick, found))
                print(f"---- shortened: {found}\n{text}", flush=True)
        done = seed - given.first + 1
        if done % 100 == 0:
            print(
                f"{done} programs, {len(failed)} differ, {time.monotonic() - start:.0f} s",
                flush=True,
            )
    print(f"{given.count} programs, {len(failed)} differ: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
