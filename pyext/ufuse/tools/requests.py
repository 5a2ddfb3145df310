"""Does each request give what NumPy gives?

A request is all that is computed at one point of a traced call, by one or a few loops. With
``UFUSE_DEBUG=requests`` NumPy computes every one of them as well. The first that differs by a bit
ends the call with ``InternalError``, and what is needed to look into it is left in a folder. This
is for hunting wrong values: what shows once in a thousand runs is caught where it happens. The
project's own tests run this way.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ufuse import _core
from ufuse.compare import difference

found: list[str] = []  # what ``judge`` complained of: user code may have swallowed the error
_present: list[Callable[[dict[str, Any]], None] | None] = [None]
_told: set[str] = set()  # graphs that were complained of: a call that raised computes them again


def watch() -> None:
    """Judge all requests of this process from now on."""
    _set_judge(judge)


@contextlib.contextmanager
def judged_by(other: Callable[[dict[str, Any]], None]) -> Iterator[None]:
    """While it is open, ``other`` judges all requests, and nobody else."""
    before = _present[0]
    _set_judge(other)
    try:
        yield
    finally:
        _set_judge(before)


def _set_judge(new: Callable[[dict[str, Any]], None] | None) -> None:
    _present[0] = new
    _core.set_request_judge(new)


def judge(row: dict[str, Any]) -> None:
    """Compare one request with NumPy.

    Parameters
    ----------
    row : dict
        ``expected`` and ``results``, NumPy's and ours, as lists of arrays; ``operands`` before
        and ``operands_now`` after the loops ran; ``parameters``, the bits of each;
        ``overwritten``, for each result the operand that it was written over, or -1; the
        addresses ``operands_at`` and ``results_at``; ``graph``; ``sources`` and ``origins`` of
        the loops; ``file`` and ``line``; and ``again()``, which runs the same loops once more on
        the operands as they were.

    Raises
    ------
    InternalError
        When a result differs.
    """
    differences = _differences(row["results"], row["expected"])
    if not differences or row["graph"] in _told:
        return
    _told.add(row["graph"])
    folder = _write(row, differences)
    complaint = (
        f"a request at {row['file']}:{row['line']} gave another value than NumPy "
        f"({differences[0]}); all about it is in {folder}"
    )
    found.append(complaint)
    raise _core.InternalError(complaint)


def _differences(ours: list[Any], theirs: list[Any]) -> list[str]:
    pairs = enumerate(zip(ours, theirs, strict=True))
    found = (difference(a, b, f"result {k}") for k, (a, b) in pairs)
    return [text for text in found if text is not None]


def _write(row: dict[str, Any], differences: list[str]) -> str:
    folder = tempfile.mkdtemp(prefix="ufuse-wrong-")
    again = row["again"]()
    repeated = _differences(again, row["expected"])
    moved = [
        text.replace("result", "operand", 1)
        for text in _differences(row["operands_now"], row["operands"])
    ]
    lines = [
        f"{row['file']}:{row['line']}",
        f"process {os.getpid()}, thread {threading.current_thread().name}, {time.asctime()}",
        f"load {os.getloadavg()}, NumPy {np.__version__}",
        "",
        *differences,
        "Run once more, the same loops give " + ("; ".join(repeated) or "NumPy's value") + ".",
        "Operands that were changed meanwhile: " + ("; ".join(moved) or "none") + ".",
        "",
        "Parameters: " + ", ".join(bits.hex() for bits in row["parameters"]),
        "Operands at " + ", ".join(map(hex, row["operands_at"])),
        "Results at " + ", ".join(map(hex, row["results_at"])),
        f"Operand that each result was written over: {row['overwritten']}",
        "",
        row["graph"],
    ]
    for origin, source in zip(row["origins"], row["sources"], strict=True):
        lines += ["", f"--- {origin}", source]
    with open(os.path.join(folder, "report.txt"), "w", encoding="utf-8", errors="replace") as file:
        file.write("\n".join(lines))
    arrays = {
        f"{name}_{i}": array
        for name, group in {**row, "again": again}.items()
        if name in ("operands", "operands_now", "expected", "results", "again")
        for i, array in enumerate(group)
    }
    np.savez(os.path.join(folder, "arrays.npz"), **arrays)
    return folder
