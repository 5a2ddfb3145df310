"""Where does the time of a program's jitted calls go?

``ufuse.profile`` writes a trace in Chrome's format: one slice per call, with its fused groups,
compile times and NumPy calls as arguments. Open it at https://ui.perfetto.dev or chrome://tracing.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import explain, logs


@contextlib.contextmanager
def profile(path: str | os.PathLike[str] = "ufuse-trace.json") -> Iterator[list[dict[str, Any]]]:
    """Record the jitted calls inside the ``with`` block in a Chrome trace.

    Parameters
    ----------
    path : str or path-like
        The file that is written when the block ends, also when it ends by an exception.

    Yields
    ------
    list of dict
        The trace's events; it grows with each call.

    Examples
    --------
    >>> import numpy as np, ufuse, tempfile, os
    >>> f = ufuse.jit(lambda x: np.sin(x) + 1)
    >>> with ufuse.profile(os.path.join(tempfile.mkdtemp(), "trace.json")) as events:
    ...     _ = f(np.arange(5.0))
    >>> len([event for event in events if event["cat"] == "call"])
    1
    """
    events: list[dict[str, Any]] = []

    def note(name: str, start: int, end: int) -> None:
        notes, groups, moved, minimum = explain.last_call()
        place = {"pid": os.getpid(), "tid": threading.get_native_id()}
        events.append(
            {
                "name": name,
                "cat": "call",
                "ph": "X",
                "ts": start / 1e3,
                "dur": (end - start) / 1e3,
                "args": {
                    "groups": [str(group) for group in groups],
                    "not native": [str(note) for note in notes],
                    "bytes moved": moved,
                    "bytes minimum": minimum,
                },
                **place,
            }
        )
        at = start / 1e3
        for group in groups:
            if group.origin == "compiled":
                events.append(
                    {
                        "name": "compile " + " ".join(group.ops),
                        "cat": "compile",
                        "ph": "X",
                        "ts": at,
                        "dur": group.compile_ms * 1e3,
                        "args": {},
                        **place,
                    }
                )
                at += group.compile_ms * 1e3

    logs.watchers.append(note)
    try:
        yield events
    finally:
        logs.watchers.remove(note)
        Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}))
