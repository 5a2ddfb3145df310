"""What happened in a call? ``f.explain(*args)`` says it as data, text and HTML.

``explain`` runs the function once, on copies of the arguments, and reads what the session recorded.
"""

from __future__ import annotations

import html
import time
from typing import Any, NamedTuple

from . import _core
from .copies import copied


class Note(NamedTuple):
    """Something that did not run natively, or that Python asked for.

    Attributes
    ----------
    kind : str
        "force", "numpy_call", "flush", "escape" or "replay".
    reason : str
        Row of ``reasons.def``.
    sentence : str
        What the reason means.
    detail : str
        Name of the function or attribute.
    file, line : str, int
        Where it stands in the user's program.
    """

    kind: str
    reason: str
    sentence: str
    detail: str
    file: str
    line: int

    def __str__(self) -> str:
        what = self.kind.replace("_", " ").replace("numpy", "NumPy")
        detail = f" {self.detail}" if self.detail else ""
        return f"{self.file}:{self.line}: {what}{detail}: {self.sentence}"


class Group(NamedTuple):
    """Operations that ran as one loop nest."""

    ops: tuple[str, ...]
    source: str
    loops: str
    origin: str
    compile_ms: float
    note: str

    def __str__(self) -> str:
        took = f", compiled in {self.compile_ms:.1f} ms" if self.compile_ms else ""
        note = f" ({self.note})" if self.note else ""
        return f"{' '.join(self.ops)}  [{self.origin}{took}]{note}"


class Explanation(NamedTuple):
    """What one call of a jitted function did.

    Attributes
    ----------
    name : str
        The function.
    mode : str
        "replayed", "traced" or "plain".
    reason : str
        Why it is plain; empty otherwise.
    notes : tuple of Note
        Forced values and NumPy calls, in order.
    groups : tuple of Group
        What was fused, in order.
    bytes_moved, bytes_minimum : int
        Memory traffic of the loops, and what reading each input and writing each output once takes.
    seconds : float
        The whole call, compiling included.
    """

    name: str
    mode: str
    reason: str
    notes: tuple[Note, ...]
    groups: tuple[Group, ...]
    bytes_moved: int
    bytes_minimum: int
    seconds: float

    @property
    def source(self) -> str:
        """The C++ text of all loops."""
        return "\n".join(group.source for group in self.groups if group.source)

    @property
    def compile_ms(self) -> float:
        """Time spent in the C++ compiler, milliseconds."""
        return sum(group.compile_ms for group in self.groups)

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.mode}" + (f": {self.reason}" if self.reason else "")]
        if self.groups:
            lines.append(f"{len(self.groups)} fused group{'s' * (len(self.groups) != 1)}:")
            lines += [f"  {i + 1}. {group}" for i, group in enumerate(self.groups)]
            lines.append(
                f"memory traffic {_bytes(self.bytes_moved)}, minimum {_bytes(self.bytes_minimum)}"
            )
        if self.notes:
            lines.append("not native:")
            lines += [f"  {note}" for note in self.notes]
        lines.append(f"{self.seconds * 1e3:.3f} ms, of which compiling {self.compile_ms:.3f} ms")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        def table(head: list[str], rows: list[list[object]]) -> str:
            cells = "".join(f"<th style='text-align:left'>{html.escape(h)}</th>" for h in head)
            body = "".join(
                "<tr>"
                + "".join(
                    f"<td style='text-align:left'>{html.escape(str(cell))}</td>" for cell in row
                )
                + "</tr>"
                for row in rows
            )
            return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"

        parts = [f"<b>{html.escape(self.name)}</b>: {html.escape(self.mode)}"]
        if self.reason:
            parts.append(f"<p>{html.escape(self.reason)}</p>")
        if self.groups:
            rows: list[list[object]] = [
                [i + 1, " ".join(g.ops), g.origin, f"{g.compile_ms:.1f}", g.note]
                for i, g in enumerate(self.groups)
            ]
            parts.append(table(["group", "operations", "from", "compile ms", ""], rows))
            parts.append(
                f"<p>memory traffic {_bytes(self.bytes_moved)}, "
                f"minimum {_bytes(self.bytes_minimum)}</p>"
            )
        if self.notes:
            rows = [
                [f"{n.file}:{n.line}", n.kind.replace("_", " "), n.detail, n.sentence]
                for n in self.notes
            ]
            parts.append(table(["place", "what", "", "why"], rows))
        if self.source:
            text = html.escape(self.source)
            parts.append(f"<details><summary>C++</summary><pre>{text}</pre></details>")
        return "\n".join(parts)


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def explain(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Explanation:
    """Run a jitted function once on copies of the arguments and say what happened.

    Parameters
    ----------
    function : ufuse.jit.Function
    args, kwargs
        The call's arguments; arrays in them are not touched.

    Returns
    -------
    Explanation
    """
    plan = function.plan()
    memo: dict[int, Any] = {}
    their_args, their_kwargs = copied(args, memo), copied(kwargs, memo)
    start = time.perf_counter()
    function._trace(*their_args, **their_kwargs)
    seconds = time.perf_counter() - start
    name = str(getattr(function, "__qualname__", repr(function)))
    reason = plan_reason(plan)
    if reason:
        return Explanation(name, "plain", reason, (), (), 0, 0, seconds)
    notes, groups, moved, minimum = last_call()
    # A call that asked Python for nothing is recorded, and later ones run without Python.
    mode = "replayed" if function._replay is not None and not notes else "traced"
    return Explanation(name, mode, "", notes, groups, moved, minimum, seconds)


def plan_reason(plan: Any) -> str:
    """Why a plan runs the plain function; empty when it does not."""
    if plan.reason is None:
        return ""
    sentence = sentences().get(plan.reason, plan.reason)
    file = plan.callee.__code__.co_filename
    return f"{sentence} ({file}:{plan.line}: {plan.detail})"


def sentences() -> dict[str, str]:
    """The sentence of each row of ``reasons.def``."""
    return dict(_core.reasons())


def last_call() -> tuple[tuple[Note, ...], tuple[Group, ...], int, int]:
    """Notes, groups and memory traffic of the last traced call on this thread."""
    words = sentences()
    notes = tuple(
        Note(
            event["kind"],
            event["reason"],
            words.get(event["reason"], event["reason"]),
            event["detail"],
            event["file"],
            event["line"],
        )
        for event in _core.events()
        if event["kind"] != "run"
    )
    reports = _core.reports()
    groups = tuple(
        Group(
            tuple(group["ops"]),
            group["source"],
            group["loops"],
            group["origin"],
            group["compile_ms"],
            group["note"],
        )
        for report in reports
        for group in report["groups"]
    )
    moved = sum(report["bytes_moved"] for report in reports)
    return notes, groups, moved, sum(report["bytes_minimum"] for report in reports)
