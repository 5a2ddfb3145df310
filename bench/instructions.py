"""How many instructions does ufuse take for what it does beside the loops? (`make instructions`)

    python -m bench.instructions            beside the numbers in instructions.json
    python -m bench.instructions --write    puts the new numbers there

Counted by valgrind's callgrind: other than times, the numbers are the same on a busy machine. Each
is the difference between a process that makes few calls and one that makes more. The status is 1
where a number has grown by more than a tenth since it was written. Builds of Python and versions of
NumPy have numbers of their own: where none was written, there is nothing to compare with.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import ufuse

KNOWN = Path(__file__).with_suffix(".json")
GROWN = 1.1
FEW, MORE = 10, 40
STATEMENTS = 40


def recorder() -> Callable[[], Any]:
    """A call that records 200 operations: views, arithmetic, a ufunc. Nothing uses the results, and
    integers do not warn, so next to nothing is computed; what happens to the list keeps the
    recording from being replayed."""

    @ufuse.jit
    def record(x, seen):
        for _ in range(STATEMENTS):
            np.minimum(x[1:-1] * 2 + x[:-2], 3)
        seen.append(1)

    x = np.arange(1000)
    return lambda: record(x, [])


def replayer() -> Callable[[], Any]:
    """A call that is replayed, with one loop on ten numbers (by the interpreter: valgrind does not
    know all instructions of compiled loops)."""

    @ufuse.jit
    def step(x, dt):
        return x + 0.5 * dt * x

    x = np.arange(10.0)
    return lambda: step(x, 0.1)


# What is counted: how to make a call, and how many of it each call does.
COUNTED: dict[str, tuple[Callable[[], Callable[[], Any]], int]] = {
    "an operation recorded": (recorder, 5 * STATEMENTS),
    "a call replayed": (replayer, 1),
}


def instructions(name: str, calls: int, cache: str) -> int:
    """Of a process that makes so many calls, from its start to its end."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command += [sys.executable, "-m", "bench.instructions", "--call", name, str(calls)]
    # One thread, one order of hashes, one way for all calls: the same process each time.
    settings = {
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "UFUSE_BACKEND": "interpreted",
        "UFUSE_CACHE_DIR": cache,
        "UFUSE_CHOICES": "ours",
    }
    done = subprocess.run(
        command, env=os.environ | settings, stderr=subprocess.PIPE, text=True, check=False
    )
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or collected is None:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return int(collected[1])


def count(name: str) -> int:
    """Instructions for one of what is counted."""
    with tempfile.TemporaryDirectory() as cache:
        instructions(name, 1, cache)  # writes what is kept on the disk
        few, more = (instructions(name, calls, cache) for calls in (FEW, MORE))
    return round((more - few) / (MORE - FEW) / COUNTED[name][1])


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the numbers down")
    parser.add_argument("--call", nargs=2, metavar=("NAME", "CALLS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.call:
        call = COUNTED[options.call[0]][0]()
        for _ in range(int(options.call[1])):
            call()
        return 0
    known: dict[str, dict[str, int]] = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    versions = f"Python {sys.version}, NumPy {np.__version__}"
    before, now = known.get(versions, {}), {}
    for name in COUNTED:
        now[name] = count(name)
        beside = f"before {before[name]}" if name in before else "never counted before"
        print(f"{name:24} {now[name]:8} instructions, {beside}")
    if options.write:
        KNOWN.write_text(json.dumps(known | {versions: now}, indent=2) + "\n")
        return 0
    grown = [name for name in before if now[name] > GROWN * before[name]]
    for name in grown:
        print(f"{name} takes more instructions than it did: see bench/instructions.py")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
