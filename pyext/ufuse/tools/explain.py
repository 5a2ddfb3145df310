"""What happened in a call? ``f.explain(*args)`` says it as data, text and HTML.

``explain`` runs the function once, on copies of the arguments, and reads what the session recorded.
``logs`` and ``profiling`` read the same after each call.
"""

from __future__ import annotations

import html
import re
import sys
import time
import types
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from ufuse import _core
from ufuse.copies import copied
from ufuse.source import heads
from ufuse.source.names import is_pure
from ufuse.source.text import line_of, names_used
from ufuse.tracing import loops
from ufuse.tracing.run import may_warn_late
from ufuse.tracing.twin import free_variables

from . import stats
from .stats import NO_CALLS, Stats

_KINDS = {
    "force": "computed here",
    "numpy_call": "NumPy call",
    "flush": "computed here",
    "escape": "computed here",
    "redo": "computed anew",
}


# So many operations of a group are named in a line.
_MOST_SHOWN = 12
# Where a program's C++ text says which line of the function follows.
_LINE = re.compile(r"^ *// line (\d+)$", re.MULTILINE)


class Note(NamedTuple):
    """Something that ended a fusion: a call of NumPy, or a value that was needed at once.

    Attributes
    ----------
    kind : str
        "force", "numpy_call", "flush", "escape" or "redo".
    reason : str
        Row of ``reasons.def``.
    sentence : str
        What the reason means.
    detail : str
        Name of the function or attribute.
    file, line : str, int
        Where it stands in the user's program.
    times : int
        How often it happened there.
    """

    kind: str
    reason: str
    sentence: str
    detail: str
    file: str
    line: int
    times: int = 1

    @property
    def place(self) -> str:
        """File and line, or the notebook's cell and line."""
        return f"{shown_file(self.file)}:{self.line}"

    @property
    def what(self) -> str:
        """The kind in words, with the name of what was called."""
        words = "call of" if self.reason == "user_call" else _KINDS.get(self.kind, self.kind)
        return f"{words} {self.detail}" if self.detail else words

    def __str__(self) -> str:
        often = f" ({self.times} times)" if self.times > 1 else ""
        return f"{self.place}: {self.what}: {self.sentence}{often}"


class Group(NamedTuple):
    """Operations that ran as one loop nest.

    Attributes
    ----------
    ops : tuple of str
        What was fused, in order.
    source, loops, schedule : str
        The C++ text, the loop nest that it was printed from, and the schedule that the nest
        follows: where each value lives. Empty for the interpreter.
    passes : str
        The loop nest after each pass that changed it, where ``UFUSE_LOGS`` asks for passes.
    origin : str
        "compiled", "disk cache", "memory cache", "interpreter" or "NumPy".
    compile_ms : float
        What compiling or loading took, in this call or in the one that needed it first.
    note : str
        Why it was not compiled, if so.
    fresh : bool
        Whether it was compiled or loaded for this call.
    runs : int
        How often it ran in this call.
    """

    ops: tuple[str, ...]
    source: str
    loops: str
    schedule: str
    passes: str
    origin: str
    compile_ms: float
    note: str
    fresh: bool = True
    runs: int = 1

    @property
    def is_compiled(self) -> bool:
        """Whether its loops ran, and not what answers without them."""
        return self.origin not in ("interpreter", "NumPy")

    @property
    def is_built_anew(self) -> bool:
        """Whether this call needed machine code that the process did not have yet."""
        return self.fresh and (self.asked_compiler or self.origin == "disk cache")

    @property
    def asked_compiler(self) -> bool:
        """Whether the compiler was to make its code, with success or without."""
        return self.origin == "compiled" or (not self.is_compiled and bool(self.source))

    @property
    def what(self) -> str:
        """Its operations in a line that can be read: of many, the first and how many there are."""
        if len(self.ops) <= _MOST_SHOWN:
            return " ".join(self.ops) or "copy"
        return f"{' '.join(self.ops[:_MOST_SHOWN])} ... ({len(self.ops)} operations)"

    @property
    def whence(self) -> str:
        """Where its code came from, in words."""
        if not self.is_compiled:
            return self.origin + (f": {self.note}" if self.note else "")
        if not self.fresh:
            return "in use since an earlier call"
        if self.origin == "compiled":
            return f"compiled in {self.compile_ms:.1f} ms"
        return f"from the {self.origin}"

    def __str__(self) -> str:
        often = f"  x {self.runs}" if self.runs > 1 else ""
        return f"{self.what}{often}  [{self.whence}]"


class Loop(NamedTuple):
    """A loop of the function's text, or of a function of the user's that it calls.

    It says what has become of the loop in all calls so far.

    Attributes
    ----------
    line : int
        Where it stands.
    native : bool
        Whether there is a program for the types that its variables have had.
    reason : str
        Why it is Python's, with the line of what stands in the way; empty where nothing does: it
        may not have taken long enough yet.
    programs : tuple of str
        Its programs, one for each combination of types: statements with the types of all values.
    sources : tuple of str
        The C++ text of each, with the function's lines as comments.
    exits : int
        How often a program left the rest of a round to Python: for an exception, a warning, an
        integer beyond 64 bits.
    native_seconds, python_seconds : float
        What its programs have taken, and what Python took for its other rounds.
    helper : str
        The name of the function where it stands; empty where that is the one that is explained.
    """

    line: int
    native: bool
    reason: str
    programs: tuple[str, ...]
    sources: tuple[str, ...]
    exits: int
    native_seconds: float
    python_seconds: float
    helper: str = ""

    @property
    def place(self) -> str:
        """Where it stands, in words."""
        return f"line {self.line}" + (f" ({self.helper})" if self.helper else "")

    @property
    def times(self) -> str:
        """What it has taken so far, in words; empty where that is not known yet."""
        parts = [(self.native_seconds, "natively"), (self.python_seconds, "as Python")]
        return ", ".join(f"{each * 1e3:.3f} ms {how}" for each, how in parts if each > 0)

    def __str__(self) -> str:
        text = f"{self.place}: {'native' if self.native else 'Python'}"
        if self.reason and not self.native:
            text += f": {self.reason}"
        if self.exits:
            text += f", left to Python {self.exits} times"
        return text + (f"  [{self.times}]" if self.times else "")


class Explanation(NamedTuple):
    """What one call of a jitted function did.

    Attributes
    ----------
    name : str
        The function.
    mode : str
        "replayed": later calls like this one run without Python; "traced": Python runs at each
        call; "plain": NumPy ran it.
    reason : str
        Why it is traced or plain; empty for replayed.
    notes : tuple of Note
        What ended a fusion, in order.
    groups : tuple of Group
        What was fused, in order; one that ran several times stands there once.
    bytes_moved, bytes_minimum : int
        Memory traffic of the loops (NumPy's own calls are not counted), and what reading each
        input and writing each output of theirs once would take.
    seconds : float
        The whole call, which was traced: a replayed one takes less.
    compile_seconds, run_seconds : float
        The parts of it that went into compiling or loading loops, and into running them.
    verification : str
        How many calls were compared with plain NumPy, and why a call like this one is not; empty
        where nobody asked for it (``jit(verify=N)``).
    stats : ufuse.tools.stats.Stats
        How the calls before this one were answered, and what that has cost.
    loops : tuple of Loop
        The loops of the function that can be read; those inside a native one are part of it.
    """

    name: str
    mode: str
    reason: str
    notes: tuple[Note, ...]
    groups: tuple[Group, ...]
    bytes_moved: int
    bytes_minimum: int
    seconds: float
    compile_seconds: float = 0.0
    run_seconds: float = 0.0
    verification: str = ""
    stats: Stats = NO_CALLS
    loops: tuple[Loop, ...] = ()

    @property
    def source(self) -> str:
        """The C++ text of all loops."""
        texts = [group.source for group in self.groups if group.source]
        return "\n".join([*texts, *(text for loop in self.loops for text in loop.sources)])

    @property
    def schedule(self) -> str:
        """Where the values of all groups live, and in which loops they are computed."""
        return "\n".join(group.schedule for group in self.groups if group.schedule)

    @property
    def compile_ms(self) -> float:
        """Time this call spent in the C++ compiler or loading its output, milliseconds."""
        return self.compile_seconds * 1e3

    @property
    def headline(self) -> str:
        """Name, mode and why."""
        why = self.reason or "later calls like this one run without Python"
        return f"{self.name}: {self.mode}: {why}"

    @property
    def traffic(self) -> str:
        """Bytes moved against the minimum, in words."""
        return (
            f"the loops move {_bytes(self.bytes_moved)}; reading inputs and writing outputs once "
            f"is {_bytes(self.bytes_minimum)}"
        )

    @property
    def times(self) -> str:
        """Where the time of the call went, in words."""
        total = f"{self.seconds * 1e3:.3f} ms"
        if self.mode == "plain":
            return total
        return (
            f"{total}: {self.compile_ms:.3f} compiling or loading, "
            f"{self.run_seconds * 1e3:.3f} in the loops, the rest in Python and NumPy"
        )

    @property
    def before(self) -> str:
        """What is known of earlier calls, in words; empty where there were none."""
        return f"calls so far: {self.stats}" if self.stats.calls else ""

    def __str__(self) -> str:
        lines = [self.headline]
        if self.groups:
            lines.append(f"{len(self.groups)} fused group{'s' * (len(self.groups) != 1)}:")
            lines += [f"  {i + 1}. {group}" for i, group in enumerate(self.groups)]
            lines.append(self.traffic)
        elif self.mode != "plain":
            lines.append("nothing to compute in loops")
        if self.notes:
            lines.append("what interrupted them:" if self.groups else "what ran instead:")
            lines += [f"  {note}" for note in self.notes]
        if self.loops:
            lines.append("loops of the text:")
            lines += [f"  {loop}" for loop in self.loops]
        lines += [text for text in (self.verification, self.times, self.before) if text]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        name, _, rest = self.headline.partition(":")
        parts = [f"<b>{html.escape(name)}</b>:{html.escape(rest)}"]
        if self.groups:
            rows = [(i + 1, g.what, g.runs, g.whence) for i, g in enumerate(self.groups)]
            parts.append(table(rows, ("group", "operations", "runs", "code")))
            parts.append(f"<p>{html.escape(self.traffic)}</p>")
        if self.notes:
            places = [(n.place, n.what, n.sentence, n.times) for n in self.notes]
            parts.append(table(places, ("place", "what", "why", "times")))
        if self.loops:
            ran = [
                (n.place, "native" if n.native else "Python", n.reason, n.times) for n in self.loops
            ]
            parts.append(table(ran, ("place", "loop", "why", "took so far")))
        if self.verification:
            parts.append(f"<p>{html.escape(self.verification)}</p>")
        parts.append(f"<p>{html.escape(self.times)}</p>")
        if self.before:
            parts.append(f"<pre>{html.escape(self.before)}</pre>")
        for name, text in (("schedule", self.schedule), ("C++", self.source)):
            if text:
                inside = f"<summary>{name}</summary><pre>{html.escape(text)}</pre>"
                parts.append(f"<details>{inside}</details>")
        return "\n".join(parts)


def table(rows: Iterable[tuple[object, ...]], head: tuple[str, ...] = ()) -> str:
    """Rows of cells as HTML."""

    def row(tag: str, cells: Iterable[object]) -> str:
        inner = (
            f"<{tag} style='text-align:left'>{html.escape(str(cell))}</{tag}>" for cell in cells
        )
        return f"<tr>{''.join(inner)}</tr>"

    body = "".join(row("td", cells) for cells in rows)
    above = f"<thead>{row('th', head)}</thead>" if head else ""
    return f"<table>{above}<tbody>{body}</tbody></table>"


def columns(rows: Iterable[tuple[str, ...]]) -> str:
    """Rows as text: columns of one width, the first one at its left, the others at their right.

    Examples
    --------
    >>> print(columns([("name", "calls"), ("f", "12")]))
    name  calls
    f        12
    """
    lines = list(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def shown_file(file: str) -> str:
    """A file as the user knows it: a notebook's cell has no name of its own there.

    Bytes of its name that are no text are written out, so that the whole can be printed.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    known = shell.compile.format_code_name(file) if shell is not None else None
    return (" ".join(known) if known else file).encode("utf-8", "backslashreplace").decode()


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

    Examples
    --------
    >>> import numpy as np, ufuse
    >>> print(explain(ufuse.jit(lambda x: x + 1), (np.arange(3),), {}).mode)
    replayed
    """
    args, kwargs = function.joined(args, kwargs)
    plan = function.plan()
    memo: dict[int, Any] = {}
    their_args, their_kwargs = copied((args, kwargs), memo)
    verifier = function._verifier
    verification = "" if verifier is None else verifier.about(args, kwargs)
    recorder = function._dispatcher
    reason = why_plain(plan)
    before = stats.of(recorder)
    plain_wins = recorder is not None and recorder.prefers_plain(*their_args, **their_kwargs)
    start = time.perf_counter()
    kept = False
    with waiting():
        if recorder is None:
            function._trace(*their_args, **their_kwargs)
        else:
            kept = recorder.record(*their_args, **their_kwargs)
    seconds = time.perf_counter() - start
    name = function._name()
    if reason:
        return Explanation(
            name, "plain", reason, (), (), 0, 0, seconds, verification=verification, stats=before
        )
    last = last_call()
    repeated = all(note.kind in ("force", "flush", "numpy_call") for note in last.notes)
    mode = "replayed" if kept and repeated else "traced"
    if plain_wins:
        reason = sentences()["faster_plain"]
    elif mode == "traced":
        interrupted = any(note.reason != "write" for note in last.notes)
        reason = _why_traced(function, plan, interrupted)
    return Explanation(
        name,
        mode,
        reason,
        last.notes,
        last.groups,
        last.bytes_moved,
        last.bytes_minimum,
        seconds,
        last.seconds("prepared"),
        last.seconds("ran"),
        verification,
        before,
        loops_of(function._function),
    )


def loops_of(function: Any) -> tuple[Loop, ...]:
    """What has become of the loops of a function, and of those that it calls."""
    if not isinstance(function, types.FunctionType):
        return ()
    own, *helpers = loops.functions_around(function)
    found = [_loops_in(own)]
    found += [[each._replace(helper=one.__name__) for each in _loops_in(one)] for one in helpers]
    return tuple(each for of_one in found for each in of_one)


def _loops_in(function: types.FunctionType) -> list[Loop]:
    found: dict[int, Loop] = {}
    # There are two codes: of traced calls, and of those that the plain function answers.
    for code in loops.codes_with_heads(function):
        for loop in heads.loops_of(code):
            made = _loop_of(loop.facts, function)
            known = found.get(made.line)
            if known is not None:
                better = made if (made.sources or made.reason) and not known.native else known
                made = better._replace(
                    exits=made.exits + known.exits,
                    native_seconds=made.native_seconds + known.native_seconds,
                    python_seconds=made.python_seconds + known.python_seconds,
                )
            found[made.line] = made
    return [found[line] for line in sorted(found)]


def _loop_of(facts: _core.LoopFacts, function: types.FunctionType) -> Loop:
    def with_text(comment: re.Match[str]) -> str:
        text = line_of(function, int(comment[1]))
        return f"{comment[0]}: {text}" if text else comment[0]

    reason, versions = facts["why_not"], facts["versions"]
    if reason and facts["why_line"]:
        reason = f"line {facts['why_line']}: {reason}"
    return Loop(
        facts["line"],
        bool(versions) and not reason,
        reason,
        tuple(version["program"] for version in versions),
        tuple(_LINE.sub(with_text, version["source"]) for version in versions),
        sum(version["exits"] for version in versions),
        sum(version["native_ns"] for version in versions) * 1e-9,
        (facts["python_ns"] + sum(version["python_ns"] for version in versions)) * 1e-9,
    )


def waiting() -> _core.backend:
    """A context in which calls wait for the compiler, not for ever: one wants to see the loops."""
    backend = _core.current_backend()
    return _core.backend("compiled" if backend == "deferred" else backend)


def why_plain(plan: Any) -> str:
    """Why a call made now would run the plain function; empty when it would not."""
    return plan_reason(plan) or ("" if may_warn_late() else sentences()["error_state"])


def plan_reason(plan: Any) -> str:
    """Why a plan runs the plain function; empty when it does not."""
    if plan.reason is None:
        return ""
    sentence = sentences().get(plan.reason, plan.reason)
    file = shown_file(plan.callee.__code__.co_filename)
    return f"{sentence} ({file}:{plan.line}: {plan.detail})"


def _why_traced(function: Any, plan: Any, interrupted: bool) -> str:
    """Why Python runs at each call of a function that is no plain one."""
    always = "Python runs at each call"
    inner = function._function
    if interrupted:
        return f"{always}, for what interrupts the loops"
    if not isinstance(inner, types.FunctionType):
        return f"{always}: it is no Python function"
    for _, name, value in free_variables(inner):
        if value is not ... and not is_pure(value):
            return f"{always}: `{name}` of the enclosing function may change"
    if plan.pure:
        return f"{always}: these arguments or results cannot be recorded"
    names = inner.__globals__
    for name in sorted(set(names_used(inner.__code__))):
        if name in names and not is_pure(names[name]):
            return f"{always}: `{name}` may be another value next time"
    return (
        f"{always}: it uses attributes, builtins or modules that may answer differently next time"
    )


def sentences() -> dict[str, str]:
    """The sentence of each row of ``reasons.def``."""
    return dict(_core.reasons())


class LastCall(NamedTuple):
    """What the last traced call on this thread left: notes, groups, and its runs as recorded."""

    notes: tuple[Note, ...]
    groups: tuple[Group, ...]
    rows: list[_core.ReportRow]

    @property
    def bytes_moved(self) -> int:
        """What the loops read and wrote."""
        return sum(row["bytes_moved"] for row in self.rows)

    @property
    def bytes_minimum(self) -> int:
        """What reading each input and writing each output once takes."""
        return sum(row["bytes_minimum"] for row in self.rows)

    def seconds(self, phase: Literal["prepared", "ran"]) -> float:
        """Time spent in a phase of all runs."""
        return sum(row[phase][1] - row[phase][0] for row in self.rows) * 1e-9


def last_call() -> LastCall:
    """What the last traced call on this thread did; equal notes and groups are counted."""
    words = sentences()
    notes: dict[Note, int] = {}
    for event in _core.events():
        if event["kind"] == "run":
            continue
        sentence = words.get(event["reason"], event["reason"])
        note = Note(
            event["kind"], event["reason"], sentence, event["detail"], event["file"], event["line"]
        )
        notes[note] = notes.get(note, 0) + 1
    groups: dict[tuple[Any, ...], Group] = {}
    rows = _core.reports()
    for row in rows:
        for group in groups_of(row):
            key = (group.ops, group.source)
            known = groups.get(key)
            groups[key] = group if known is None else known._replace(runs=known.runs + 1)
    return LastCall(
        tuple(note._replace(times=times) for note, times in notes.items()),
        tuple(groups.values()),
        rows,
    )


def groups_of(row: _core.ReportRow) -> list[Group]:
    """The groups of one run."""
    return [
        Group(
            tuple(group["ops"]),
            group["source"],
            group["loops"],
            group["schedule"],
            group["passes"],
            group["origin"],
            group["compile_ms"],
            group["note"].partition("\n")[0],
            row["fresh"],
        )
        for group in row["groups"]
    ]
