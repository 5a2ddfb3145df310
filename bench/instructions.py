"""How many instructions do the loops take, and what ufuse does beside them? (`make instructions`)

    python -m bench.instructions            beside the numbers in instructions.json
    python -m bench.instructions --write    puts the new numbers there

Counted by valgrind's callgrind: other than times, the numbers are the same on a busy machine. What
is counted stands in ``counted.py``: recording, replaying and plain calls, and the loops of ten
functions, by the element and without the inner loops of NumPy's that they call.

Valgrind does not know the newest instructions (AVX-512), and loops are made for the CPU that is
there. So here they are made for what all x86-64 CPUs have had for ten years (x86-64-v3), and
valgrind shows such a CPU to NumPy and the C library. The numbers depend on no machine, then, but on
the compiler, or on the builds of Python and NumPy: each of those has numbers of its own, and where
none were written there is nothing to compare with.

The status is 1 where a number has grown: by a twentieth, or, of loops, by a fiftieth.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from bench.counted import CALLS, COUNTED

HERE = Path(__file__).parent
KNOWN = HERE / "instructions.json"
GROWN, LOOPS_GROWN = 1.05, 1.02
# g++ for another CPU than the one that is there.
COMPILER = """#!/bin/sh
for word; do
  shift
  [ "$word" = -march=native ] && word=-march=x86-64-v3
  set -- "$@" "$word"
done
exec g++ "$@"
"""


def counts() -> dict[str, float]:
    """Instructions for one of all that is counted."""
    with tempfile.TemporaryDirectory() as folder:
        compiler, marks = Path(folder, "compiler"), Path(folder, "marks.so")
        compiler.write_text(COMPILER)
        compiler.chmod(0o755)
        run("cc", "-O1", "-shared", "-fPIC", HERE / "counted.c", "-o", marks)
        # One thread, one order of hashes, one way for all calls: the same process each time.
        settings = {
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",
            "UFUSE_BACKEND": "compiled",
            "UFUSE_CACHE_DIR": f"{folder}/cache",
            "UFUSE_CHOICES": "ours",
            "UFUSE_CXX": str(compiler),
            "UFUSE_PATIENCE": "1000",
        }
        valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no"]
        valgrind += [f"--callgrind-out-file={folder}/counts"]
        run(*valgrind, sys.executable, "-m", "bench.counted", marks, **settings)
        texts = [path.read_text() for path in Path(folder).glob("counts.*")]
    found = {}
    for text in texts:
        if name := re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.MULTILINE):
            found[name[1]] = text
    return {name: one_of(name, found) for name in COUNTED}


def one_of(name: str, found: dict[str, str]) -> float:
    """The instructions of one of what is counted, by what valgrind found of its calls."""
    counted = COUNTED[name]
    texts = [found[f"{name}, {size}"] for size in counted.sizes]
    amounts = [counted.amount(size) for size in counted.sizes]
    if not counted.is_of_loops:
        return round(of_all(texts[0]) / CALLS / amounts[0])
    few, more = map(of_loops, texts)
    return round((more - few) / CALLS / (amounts[1] - amounts[0]), 2)


def of_all(text: str) -> int:
    """All instructions that callgrind counted."""
    total = re.search(r"^totals: (\d+)$", text, re.MULTILINE)
    assert total, "callgrind wrote no total"
    return int(total[1])


def of_loops(text: str) -> int:
    """Those of compiled loops, and not of NumPy's inner loops that they call.

    Loops are loaded from memory, so theirs is the only code that belongs to no file.
    """
    total, object_file, names = 0, "", {}
    lines = iter(text.splitlines())
    for line in lines:
        if found := re.match(r"ob=(\(\d+\))(?: (.*))?$", line):
            object_file = names.setdefault(found[1], found[2])
        elif found := re.match(r"c?ob=(\(\d+\)) (.*)$", line):
            names[found[1]] = found[2]
        elif line.startswith("calls="):
            next(lines)  # what the call took, which is counted where it was taken
        elif object_file == "???" and (found := re.match(r"[\d+*-]\S* (\d+)$", line)):
            total += int(found[1])
    assert total, "callgrind saw no loops"
    return total


def run(*command: str | Path, **settings: str) -> str:
    """What a command prints; ends this one where it fails."""
    done = subprocess.run(
        command, env=os.environ | settings, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def has_such_cpu() -> bool:
    """Whether this machine can run the loops that are made here."""
    return {"avx2", "bmi2", "fma"} <= set(Path("/proc/cpuinfo").read_text().split())


def makers() -> dict[bool, str]:
    """On which the numbers depend: those of loops, and the others."""
    compiler = run("g++", "--version").splitlines()[0]
    return {
        True: f"loops: {platform.machine()}, {compiler}, NumPy {np.__version__}",
        False: f"calls: Python {sys.version}, NumPy {np.__version__}",
    }


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the numbers down")
    options = parser.parse_args()
    if not has_such_cpu():
        print("this CPU cannot run loops for x86-64-v3: nothing is counted")
        return 0
    known: dict[str, dict[str, float]] = json.loads(KNOWN.read_text())
    made_by, status = makers(), 0
    for name, now in counts().items():
        loops = COUNTED[name].is_of_loops
        numbers = known.setdefault(made_by[loops], {})
        before = numbers.get(name)
        told = "never counted before" if before is None else f"before {before}"
        if before is not None and now > (LOOPS_GROWN if loops else GROWN) * before:
            told, status = f"{told}: it has grown", 1
        print(f"{name:29} {now:>9} instructions{' an element' if loops else ''}, {told}")
        numbers[name] = now
    if options.write:
        KNOWN.write_text(json.dumps(known, indent=2) + "\n")
        return 0
    return status


if __name__ == "__main__":
    sys.exit(main())
