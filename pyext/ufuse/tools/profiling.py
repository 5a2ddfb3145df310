"""Where does the time of a program's jitted calls go?

``ufuse.profile`` writes a trace in Chrome's format: one slice per call, and inside it one for each
time the compiler or the loops ran; the rest of a call is Python and NumPy. Open it at
https://ui.perfetto.dev or chrome://tracing.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ufuse.tracing.watchers import watchers

from . import explain, logs


@contextlib.contextmanager
def profile(path: str | os.PathLike[str] = "ufuse-trace.json") -> Iterator[list[dict[str, Any]]]:
    """Record the jitted calls inside the ``with`` block, on all threads, in a Chrome trace.

    Parameters
    ----------
    path : str or path-like
        The file that is written when the block ends, also when it ends by an exception.

    Yields
    ------
    list of dict
        The trace's events; it grows with each call.

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
    events: list[dict[str, Any]] = []
    watchers.append(watcher := functools.partial(_note, events))
    try:
        yield events
    finally:
        watchers.remove(watcher)
        Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}))


def _note(events: list[dict[str, Any]], seen: logs.Seen) -> None:
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
