"""How fast is a function over arrays that are larger than memory?

A chain of ten operations and a sum over the rows of an array in a file, twice: as Dask's own
operations, each of which is a task for each block, and as one function with ``ufuse.dask.map``; and
how long reading the file takes. Each runs in a process of its own, on the same file and blocks, and
they take turns. Printed are the times, how much memory each process took at most, and whether the
results have the bits of NumPy on a part of the file that fits into memory::

    .venv/bin/python -m bench.blocks --gigabytes 4 --file /tmp/blocks.npy

The file is made where it is missing, and stays.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import ufuse.dask

COLUMNS = 4000
# Rows of the part that is compared with NumPy.
COMPARED = 5_000
GAIN, OFFSET, BEND = np.float32(0.002), np.float32(-0.1), np.float32(0.01)


def chain(x: Any) -> Any:
    """What a sensor counted, calibrated: ten operations and a sum, for NumPy or Dask."""
    y = x * GAIN + OFFSET
    z = np.maximum(y + BEND * y * y, 0)
    return np.abs(np.sqrt(z) * y - z).sum(axis=1)


def make(path: Path, rows: int) -> None:
    """Random numbers of 12 bits, written a piece at a time."""
    shape = (rows, COLUMNS)
    if path.exists() and np.load(path, mmap_mode="r").shape == shape:
        return
    print(f"writing {path} ...", flush=True)
    array = np.lib.format.open_memmap(path, "w+", np.int16, shape)
    rng = np.random.default_rng(0)
    for start in range(0, rows, 10_000):
        size = (min(10_000, rows - start), COLUMNS)
        array[start : start + 10_000] = rng.integers(0, 4096, size, np.int16)
    array.flush()


class Rows:
    """An array in a file, for ``da.from_array``, which would read all of a ``memmap`` at once."""

    ndim, dtype = 2, np.dtype(np.int16)

    def __init__(self, path: Path) -> None:
        self._array = np.load(path, mmap_mode="r")
        self.shape = self._array.shape

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self._array[key])


class Peak:
    """Most memory of this process meanwhile, without pages of files; gigabytes."""

    def __enter__(self) -> Peak:
        self.gigabytes = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(0.01):
            (kilobytes,) = re.findall(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())
            self.gigabytes = max(self.gigabytes, int(kilobytes) / 2**20)


def touched(block: Any) -> Any:
    """One number of each page."""
    return block.reshape(-1)[::2048].sum(keepdims=True)


WAYS: dict[str, Callable[[da.Array], da.Array]] = {
    "reading": lambda x: x.map_blocks(touched, drop_axis=1, chunks=(1,), dtype=np.int64),
    "dask": chain,
    "ufuse": lambda x: ufuse.dask.map(chain, x),
}


def measure(way: str, path: Path, block: int) -> dict[str, Any]:
    """One computation of all rows in this process."""
    data = Rows(path)
    x = da.from_array(data, chunks=(block, COLUMNS), name=str(path))
    start = time.perf_counter()
    with Peak() as peak:
        found = WAYS[way](x).compute()
    seconds = time.perf_counter() - start
    equal = way == "reading" or found[:COMPARED].tobytes() == chain(data[:COMPARED]).tobytes()
    return {"seconds": seconds, "gigabytes": peak.gigabytes, "equal": equal}


def main() -> None:
    """Measure both in turn, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--gigabytes", type=float, default=4)
    parser.add_argument("--file", type=Path, default=Path("/tmp/ufuse_blocks.npy"))
    parser.add_argument("--block", type=int, default=2000, help="rows of a block")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(measure(options.way, options.file, options.block)))
        return
    make(options.file, int(options.gigabytes * 1e9 / 2 / COLUMNS))
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for _ in range(options.times):
        for way, rows in found.items():
            ended = subprocess.run(
                [sys.executable, "-m", "bench.blocks", *sys.argv[1:], "--way", way],
                capture_output=True,
                text=True,
                check=True,
            )
            rows.append(json.loads(ended.stdout))
    print(f"{options.gigabytes:g} GB, blocks of {options.block} x {COLUMNS}")
    medians = {}
    for way, rows in found.items():
        seconds = statistics.median(row["seconds"] for row in rows)
        peak = max(row["gigabytes"] for row in rows)
        bits = "NumPy's bits" if all(row["equal"] for row in rows) else "other bits than NumPy"
        print(
            f"{way:8}{seconds:8.2f} s  {options.gigabytes / seconds:6.2f} GB/s  "
            f"at most {peak:.2f} GB of memory, {bits}"
        )
        medians[way] = seconds
    print(f"ufuse is {medians['dask'] / medians['ufuse']:.2f}x as fast as Dask alone")


if __name__ == "__main__":
    main()
