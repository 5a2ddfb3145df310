"""Where does the time of a program's jitted calls go?

``ufuse.profile`` writes a trace in Chrome's format: one slice per call, and inside it one for each
time that it waited for loops (``prepare``), that loops ran, or a native program of the function's
own text, and for each call of NumPy or Python that interrupted it; the rest of a call is Python.
The compiler has slices on threads of its own. Open it at https://ui.perfetto.dev or
chrome://tracing, or print ``table()``.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ufuse import _core
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
    compiling, loops, interruptions : float
        How much of the total was waiting for loops to be compiled or loaded, running them (native
        programs among them), and running NumPy or Python in between.
    bytes_moved : int
        What the loops read and wrote, programs left out.
    """

    function: str
    mode: str
    calls: int
    total: float
    compiling: float
    loops: float
    interruptions: float
    bytes_moved: int


class Table(tuple[Row, ...]):
    """Where the time of calls went, the longest first: text, and a table in a notebook."""

    _HEAD = (
        *("function", "answered", "calls", "total", "per call"),
        *("compiling", "loops", "NumPy", "GB/s"),
    )

    def _cells(self) -> Iterator[tuple[str, ...]]:
        for row in self:
            times = [shown(row.total), shown(row.total / row.calls)]
            parts = (row.compiling, row.loops, row.interruptions)
            times += [shown(part) if part else "-" for part in parts]
            rate = f"{row.bytes_moved / row.loops / 1e9:.1f}" if row.bytes_moved else "-"
            yield (row.function, row.mode, f"{row.calls:,}", *times, rate)

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
        calls: list[dict[str, Any]] = []  # that are open, the outermost first
        for event in sorted(self, key=lambda event: (event["tid"], event["ts"], -event["dur"])):
            while calls and not _is_inside(event, calls[-1]):
                calls.pop()
            took = event["dur"] / 1e6
            if event["cat"] == "call":
                calls.append(event)
                key = (event["name"], event["args"]["mode"])
                row = rows.get(key, Row(*key, 0, 0.0, 0.0, 0.0, 0.0, 0))
                rows[key] = row._replace(calls=row.calls + 1, total=row.total + took)
            elif calls and event["cat"] in _PARTS:
                key = (calls[-1]["name"], calls[-1]["args"]["mode"])
                part = _PARTS[event["cat"]]
                moved = rows[key].bytes_moved + event["args"].get("bytes_moved", 0)
                times = {part: getattr(rows[key], part) + took}
                rows[key] = rows[key]._replace(bytes_moved=moved, **times)
        return Table(sorted(rows.values(), key=lambda row: -row.total))


# Which column of the table the slices of a call add to.
_PARTS = {
    "prepare": "compiling",
    "loops": "loops",
    "program": "loops",
    "interruption": "interruptions",
}


def _is_inside(event: dict[str, Any], call: dict[str, Any]) -> bool:
    return event["tid"] == call["tid"] and event["ts"] < call["ts"] + call["dur"]


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
    recorder = _Recorder()
    watchers.append(watcher := recorder.note)  # one object, by which it is found again
    try:
        yield recorder.events
    finally:
        watchers.remove(watcher)
        written = recorder.end()
        Path(path).write_text(json.dumps({"traceEvents": written, "displayTimeUnit": "ms"}))


class _Recorder:
    """Makes a trace of the calls that it is told of, and of what ``_core`` saw in them."""

    def __init__(self) -> None:
        self.events = Trace()
        self._first = _core.keep_timeline()
        self._next: dict[int, int] = {}  # per thread: the first slice that it has not told yet
        self._names: dict[int, str] = {}  # of threads

    def note(self, seen: logs.Seen) -> None:
        """Add a call that has ended on this thread, and what it was made of."""
        thread = threading.get_native_id()
        details: dict[str, Any] = {"call": seen.signature, "mode": seen.mode}
        if seen.mode == "traced":
            details["interruptions"] = [str(note) for note in explain.last_call().notes]
        else:
            details["reason"] = seen.reason
        self._add(seen.name, "call", (seen.start, seen.end), thread, details)
        first = self._next.get(thread, self._first)
        slices = _core.slices(first)
        self._next[thread] = first + len(slices)
        self._names[thread] = threading.current_thread().name
        for each in slices:
            if each["thread"] == thread:
                self._add_slice(each)

    def end(self) -> list[dict[str, Any]]:
        """All events, with those of the threads that compile, and the names of threads."""
        for each in _core.slices(self._first):
            if each["kind"] == "compile" and each["thread"] not in self._next:
                self._add_slice(each)
                self._names[each["thread"]] = "ufuse compiler"
        _core.let_go_timeline()
        names = {"process_name": {0: "Python"}, "thread_name": self._names}
        return [
            {
                "name": kind,
                "cat": "__metadata",
                "ph": "M",
                "pid": os.getpid(),
                "tid": thread,
                "args": {"name": name},
            }
            for kind, given in names.items()
            for thread, name in given.items()
        ] + self.events

    def _add_slice(self, each: _core.SliceRow) -> None:
        details: dict[str, Any] = {"detail": each["detail"]} if each["detail"] else {}
        if each["kind"] == "loops":
            details["bytes_moved"] = each["bytes_moved"]  # none where NumPy computes it after all
            details["bytes_minimum"] = each["bytes_minimum"]
        self._add(each["name"], each["kind"], each["times"], each["thread"], details)

    def _add(
        self,
        name: str,
        category: str,
        times: tuple[int, int],
        thread: int,
        details: dict[str, Any],
    ) -> None:
        self.events.append(
            {
                "name": name,
                "cat": category,
                "ph": "X",
                "ts": times[0] / 1e3,
                "dur": (times[1] - times[0]) / 1e3,
                "pid": os.getpid(),
                "tid": thread,
                "args": details,
            }
        )
