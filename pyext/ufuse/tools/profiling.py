"""Where does the time of a program's jitted calls go?

``ufuse.profile`` writes a trace in Chrome's format: one slice per call, and inside it one for each
time the compiler or the loops ran; the rest of a call is Python and NumPy. Open it at
https://ui.perfetto.dev or chrome://tracing, or print ``table()``.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ufuse.tracing.watchers import watchers

from . import explain, logs
from .timing import shown


class Row(NamedTuple):
    """The calls of one function that were answered in one way; times in seconds.

    Attributes
    ----------
    function : str
    mode : {'replayed', 'traced', 'plain'}
    calls : int
    total : float
        Calls inside these calls are part of it.
    compiling, loops : float
        How much of the total the compiler and the loops took; known of traced calls only.
    bytes_moved : int
        What those loops read and wrote.
    """

    function: str
    mode: str
    calls: int
    total: float
    compiling: float
    loops: float
    bytes_moved: int


class Table(tuple[Row, ...]):
    """Where the time of calls went, the longest first: text, and a table in a notebook."""

    _HEAD = ("function", "answered", "calls", "total", "per call", "compiling", "loops", "GB/s")

    def _cells(self) -> Iterator[tuple[str, ...]]:
        for row in self:
            times = [shown(row.total), shown(row.total / row.calls)]
            if row.mode == "traced":
                rate = f"{row.bytes_moved / row.loops / 1e9:.1f}" if row.loops else "-"
                times += [shown(row.compiling), shown(row.loops), rate]
            else:
                times += ["-"] * 3
            yield (row.function, row.mode, f"{row.calls:,}", *times)

    def __str__(self) -> str:
        return explain.columns([self._HEAD, *self._cells()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return explain.table(self._cells(), self._HEAD)


class Trace(list[dict[str, Any]]):
    """The events of a profile; it grows with each call."""

    def table(self) -> Table:
        """The calls of each function, and where their time went.

        Examples
        --------
        >>> import numpy as np, ufuse, tempfile, os
        >>> f = ufuse.jit(lambda x: np.sin(x) + 1)
        >>> with ufuse.profile(os.path.join(tempfile.mkdtemp(), "trace.json")) as trace:
        ...     for _ in range(3):
        ...         _ = f(np.arange(5.0))
        >>> sum(row.calls for row in trace.table())
        3
        """
        rows: dict[tuple[str, str], Row] = {}
        last: dict[int, tuple[str, str]] = {}  # the call of each thread whose slices follow
        for event in self:
            took = event["dur"] / 1e6
            if event["cat"] == "call":
                key = last[event["tid"]] = (event["name"], event["args"]["mode"])
                row = rows.get(key, Row(*key, 0, 0.0, 0.0, 0.0, 0))
                rows[key] = row._replace(calls=row.calls + 1, total=row.total + took)
                continue
            key = last[event["tid"]]
            row = rows[key]
            if event["cat"] == "compile":
                rows[key] = row._replace(compiling=row.compiling + took)
            else:
                moved = row.bytes_moved + event["args"]["bytes_moved"]
                rows[key] = row._replace(loops=row.loops + took, bytes_moved=moved)
        return Table(sorted(rows.values(), key=lambda row: -row.total))


@contextlib.contextmanager
def profile(path: str | os.PathLike[str] = "ufuse-trace.json") -> Iterator[Trace]:
    """Record the jitted calls inside the ``with`` block, on all threads, in a Chrome trace.

    Parameters
    ----------
    path : str or path-like
        The file that is written when the block ends, also when it ends by an exception.

    Yields
    ------
    Trace
        A list of the trace's events, which grows with each call; its ``table()`` sums them up.

    Raises
    ------
    OSError
        When the file cannot be written; at the beginning, before anything is computed for it.

    Examples
    --------
    >>> import numpy as np, ufuse, tempfile, os
    >>> f = ufuse.jit(lambda x: np.sin(x) + 1)
    >>> with ufuse.profile(os.path.join(tempfile.mkdtemp(), "trace.json")) as events:
    ...     _ = f(np.arange(5.0))
    >>> len([event for event in events if event["cat"] == "call"])
    1
    """
    Path(path).touch()
    events = Trace()
    watchers.append(watcher := functools.partial(_note, events))
    try:
        yield events
    finally:
        watchers.remove(watcher)
        Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}))


def _note(events: Trace, seen: logs.Seen) -> None:
    """Add one call, and what it was made of, to a trace."""

    def add(name: str, category: str, times: tuple[int, int], **details: Any) -> None:
        events.append(
            {
                "name": name,
                "cat": category,
                "ph": "X",
                "ts": times[0] / 1e3,
                "dur": (times[1] - times[0]) / 1e3,
                "pid": os.getpid(),
                "tid": threading.get_native_id(),
                "args": details,
            }
        )

    whole = (seen.start, seen.end)
    if seen.mode != "traced":
        add(seen.name, "call", whole, call=seen.signature, mode=seen.mode, reason=seen.reason)
        return
    last = explain.last_call()
    add(
        seen.name,
        "call",
        whole,
        call=seen.signature,
        mode=seen.mode,
        interruptions=[str(note) for note in last.notes],
    )
    for row in last.rows:
        groups = explain.groups_of(row)
        ops = " ".join(op for group in groups for op in group.ops) or "copy or fill"
        if row["fresh"]:
            add(f"prepare {ops}", "compile", row["prepared"], code=[g.whence for g in groups])
        moved, minimum = row["bytes_moved"], row["bytes_minimum"]
        add(ops, "loops", row["ran"], bytes_moved=moved, bytes_minimum=minimum)
