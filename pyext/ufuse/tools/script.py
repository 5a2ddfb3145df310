"""Scripts that are run to learn something of them.

``python -m ufuse explain script.py`` says what became of its jitted functions, ``python -m ufuse
debug script.py`` where its numbers went wrong.
"""

from __future__ import annotations

import builtins
import os
import runpy
import sys
import types
from collections import Counter
from collections.abc import Callable
from importlib.machinery import PathFinder

from ufuse.tracing.tracebacks import is_of_python, without_ours
from ufuse.tracing.watchers import Stance, watchers

from . import debugging, explain, logs
from .timing import shown


class _Calls:
    """All calls of one function so far."""

    def __init__(self) -> None:
        self.modes: Counter[str] = Counter()
        self.seconds = 0.0
        self.reasons: Counter[str] = Counter()
        self.notes: Counter[explain.Note] = Counter()

    def add(self, seen: logs.Seen) -> None:
        self.modes[seen.mode] += 1
        self.seconds += (seen.end - seen.start) * 1e-9
        if seen.mode == "plain":
            self.reasons[seen.reason] += 1
        if seen.mode == "traced":
            for note in explain.last_call().notes:
                self.notes[note._replace(times=1)] += note.times

    def lines(self, name: str) -> list[str]:
        number = self.modes.total()
        modes = ", ".join(f"{times} {mode}" for mode, times in self.modes.items())
        found = [f"{name}: {number} call{'s' * (number != 1)} in {shown(self.seconds)}: {modes}"]
        found += [f"  plain: {reason}" for reason in self.reasons]
        found += [f"  {note._replace(times=times)}" for note, times in self.notes.items()]
        return found


class Report:
    """Watches calls; ``str()`` says function by function what became of them.

    Examples
    --------
    >>> import numpy as np, ufuse
    >>> f = ufuse.jit(lambda x: np.sqrt(x) + 1)
    >>> with Report() as report:
    ...     y = f(np.arange(3.0))
    >>> print(report)  # doctest: +ELLIPSIS
    <lambda>: 1 call in ...s: 1 traced
    """

    def __init__(self) -> None:
        self._calls: dict[str, _Calls] = {}

    def __call__(self, seen: logs.Seen) -> None:
        self._calls.setdefault(seen.name, _Calls()).add(seen)

    def __enter__(self) -> Report:
        watchers.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        watchers.remove(self)

    def __str__(self) -> str:
        if not self._calls:
            return "no jitted function was called"
        rows = sorted(self._calls.items(), key=lambda row: -row[1].seconds)
        return "\n".join(line for name, calls in rows for line in calls.lines(name))


def run(path: str, arguments: list[str]) -> int:
    """Run a script as ``python script.py`` does, and print the report at its end to stderr.

    Parameters
    ----------
    path : str
    arguments : list of str
        What follows the script's name: ``sys.argv[1:]``.

    Returns
    -------
    int
        0; 1 where the script raised an exception, whose traceback stands before the report; 2
        where there is no such file. ``SystemExit`` is raised after the report.
    """
    report = Report()

    def call() -> None:
        with report:
            runpy.run_path(path, run_name="__main__")

    return _reported(path, arguments, call, report)


def debug(path: str, arguments: list[str]) -> int:
    """Run a script with plain NumPy and its operations watched; else as ``run`` does.

    See ``debugging``.
    """
    findings = debugging.Findings()

    def call() -> None:
        module = types.ModuleType("__main__")
        module.__dict__.update(__file__=path, __cached__=None, __builtins__=builtins)
        with open(path, "rb") as file:
            code = findings.compiled(file.read(), path)
        before = sys.modules["__main__"]
        finder = debugging.Finder(findings, sys.path[0])
        sys.modules["__main__"] = module
        # In the place of Python's own, of which it asks.
        sys.meta_path.insert(sys.meta_path.index(PathFinder), finder)
        try:
            with Stance("plain"):
                exec(code, module.__dict__)
        finally:
            sys.meta_path.remove(finder)
            sys.modules["__main__"] = before

    return _reported(path, arguments, call, findings)


def _reported(
    path: str, arguments: list[str], call: Callable[[], None], report: Report | debugging.Findings
) -> int:
    if not os.path.exists(path):
        print(f"there is no file {path!r}", file=sys.stderr)
        return 2
    sys.argv = [path, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    try:
        call()
    except Exception as error:
        error.__traceback__ = _in_script(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    finally:
        sys.stdout.flush()
        print(report, file=sys.stderr)
    return 0


def _in_script(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """The part of a traceback that begins in the script: what runs it is left out."""
    entry = without_ours(traceback)
    while entry is not None and is_of_python(entry.tb_frame.f_code.co_filename):
        entry = entry.tb_next
    return entry or traceback
