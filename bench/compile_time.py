"""How long does one wait for a first result?

Each measurement is a process of its own: the import of ufuse beyond NumPy's, the first call with
empty caches (the interpreter answers while the loop is compiled) and the same when it waits for the
compiler, the first call with the loop in the disk cache, and how many loops a second shape of the
same rank compiles (none). The function is k-means on 1000 points.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.timing import human, median

ROOT = Path(__file__).parents[1]

CHILD = """
import json, time
start = time.perf_counter()
import numpy
middle = time.perf_counter()
import ufuse
end = time.perf_counter()
report = {"import numpy": middle - start, "import ufuse": end - middle}
from bench.cases import CASES
case = CASES["kmeans"]
X, means = case.make(numpy.random.default_rng(0), 1000)
native = ufuse.jit(case.function)
for name in ("first call", "second call"):
    start = time.perf_counter()
    native(X, means)
    report[name] = time.perf_counter() - start
print(json.dumps(report))
"""
OTHER_SHAPE = """
import numpy, ufuse
from bench.cases import CASES
case = CASES["kmeans"]
X, means = case.make(numpy.random.default_rng(0), 1777)
ufuse.jit(case.function)(X, means)
print("null")
"""


def run(program: str, cache: str, backend: str = "deferred") -> Any:
    """Run a program in a fresh process that uses the given cache folder; its last line is JSON."""
    environment = {**os.environ, "UFUSE_CACHE_DIR": cache, "UFUSE_BACKEND": backend}
    # An import without byte code would measure Python's parser.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def cached_files(folder: str) -> int:
    return sum(path.is_file() for path in Path(folder).rglob("*"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7, help="processes per measurement")
    rounds = parser.parse_args().rounds

    cold: list[dict[str, float]] = []
    waiting: list[dict[str, float]] = []
    warm: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        run(CHILD, f"{folder}/warm-up")  # byte code is written, files are in memory
        for number in range(rounds):
            cache = f"{folder}/{number}"
            cold.append(run(CHILD, cache))
            waiting.append(run(CHILD, f"{folder}/{number}-waiting", "compiled"))
            warm.append(run(CHILD, cache))
        before = cached_files(cache)
        run(OTHER_SHAPE, cache)
        compiled = cached_files(cache) - before

    def of(samples: list[dict[str, float]], name: str) -> str:
        return human(median([sample[name] for sample in samples]))

    print(f"import numpy                       {of(warm, 'import numpy')}")
    print(f"import ufuse, beyond NumPy         {of(warm, 'import ufuse')}")
    print(f"first call, cold caches            {of(cold, 'first call')}")
    print(f"the same, waiting for the compiler {of(waiting, 'first call')}")
    print(f"first call, from the disk cache    {of(warm, 'first call')}")
    print(f"second call                        {of(warm, 'second call')}")
    print(f"files cached after cold calls      {before}")
    print(f"files cached for a second shape    {compiled}")


if __name__ == "__main__":
    main()
