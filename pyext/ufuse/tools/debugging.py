"""Where was the first NaN born, which integers wrapped around, and which dtypes became larger?

``python -m ufuse debug script.py`` runs a script with plain NumPy, looks at the value of each
operation in the script and in the modules beside it, and says at the end what it has found.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib.machinery
import math
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ufuse.source.operations import Operand, Operation, marked
from ufuse.source.sites import Chain
from ufuse.source.text import nested

from .explain import shown_file

_MISSING: Any = object()
# Of operations with these names the values are any.
_UNDEFINED = ("empty", "empty_like", "ndarray")
# What makes a NaN or an infinity because it is asked for one.
_ASKED = ("float", "complex")
# So much of an operand's text is shown.
_LONGEST_OPERAND = 30
# At most so many items of a list are looked at, and lists within lists.
_MOST_ITEMS, _MOST_DEPTH = 1000, 4
_OPERANDS = (np.ndarray, np.generic, int, float, complex, list, tuple, dict)
_NONFINITE = {"NaN": np.isnan, "infinity": np.isinf}
# The exact results of operations on integers, but for rounding.
_EXACT: dict[str, Callable[[Any, Any], Any]] = {
    **{"Add": np.add, "Sub": np.subtract, "Mult": np.multiply},
    "LShift": lambda x, bits: x * np.exp2(bits),
}
_SAME_AS = {"add": "Add", "subtract": "Sub", "multiply": "Mult"}


class Finding(NamedTuple):
    """Something that one operation of the program did, at its first time.

    Attributes
    ----------
    operation : Operation
    kind : {"NaN", "infinity", "wrapped", "promoted"}
    text : str
        What happened, with the values that it happened to.
    """

    operation: Operation
    kind: str
    text: str


class _Here:
    """A running frame of the program: what its statement has told."""

    def __init__(self, frame: types.FrameType, seen: int) -> None:
        self.address, self.code, self.statement = id(frame), frame.f_code, -1
        self.values: dict[str, Any] = {}  # of this statement's operations, by their texts
        self.before: dict[Operation, Any] = {}  # what `x += y` changes
        self.seen = self.at_start = seen  # how many NaNs and infinities came before

    def is_of(self, frame: types.FrameType) -> bool:
        """Whether it is this frame's. Another one may have had its address before."""
        return self.address == id(frame) and self.code is frame.f_code

    def goes_on(self, operation: Operation) -> None:
        """An operation of the frame is told; those of earlier statements are no operands of it."""
        if operation.statement != self.statement:
            self.statement = operation.statement
            self.values.clear()
            self.at_start = self.seen


class _Running(threading.local):
    def __init__(self) -> None:
        self.frames: list[_Here] = []  # the innermost one is last


class Findings:
    """Watches the operations of a program; ``str()`` is the report.

    Examples
    --------
    >>> findings = Findings()
    >>> text = "import numpy as np\\nx = np.array([1.0, 0.0])\\ny = x / x[1]\\n"
    >>> with np.errstate(all="ignore"):
    ...     exec(findings.compiled(text, "model.py"), {})
    >>> print(findings)
    NaN and infinity, in the order in which they appeared:
      model.py:3: x / x[1]
        NaN: 1 of 2, the first at [1], where x = 0.0, x[1] = 0.0
        infinity: 1 of 2, the first at [0], where x = 1.0, x[1] = 0.0
    """

    def __init__(self) -> None:
        self._found: dict[tuple[Operation, str], Finding] = {}
        self._times: dict[tuple[Operation, str], int] = {}
        self._running = _Running()
        self._bad = 0  # values with a NaN or an infinity so far
        self._has_ended = False
        self._failed: dict[Operation, str] = {}  # what could not be looked at
        self._codes: dict[int, types.CodeType] = {}  # the program's own, by their addresses

    def compiled(
        self, program: str | bytes | ast.Module | ast.Expression, file: str
    ) -> types.CodeType:
        """The code of a module, or of an expression, whose operations are watched."""
        code = marked(program, file, self._told, self._before)
        self._codes.update((id(each), each) for each in [code, *nested(code)])
        return code

    def end(self) -> None:
        """Look at nothing any more, though code that is watched goes on."""
        self._has_ended = True

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._found.values())

    # ---- What the program's code calls ----

    def _before(self, value: Any, operation: Operation) -> None:
        if self._has_ended:
            return
        here = self._here(sys._getframe(1))
        if isinstance(value, np.ndarray):
            try:
                value = np.array(value, order="K")
            except MemoryError:
                value = _MISSING
        here.before[operation] = value

    def _told(self, value: Any, operation: Operation) -> Any:
        if self._has_ended:
            return value
        frame = sys._getframe(1)
        here = self._here(frame)
        here.goes_on(operation)
        if not _is_plain(value):
            try:
                self._look(value, operation, frame, here)
            except Exception as error:  # the program goes on as without us
                self._failed[operation] = f"{type(error).__name__}: {error}"
        if isinstance(value, _OPERANDS):  # nothing else lives longer by this
            here.values[operation.text] = value
        here.before.pop(operation, None)
        here.seen = self._bad
        return value

    def _look(self, value: Any, operation: Operation, frame: types.FrameType, here: _Here) -> None:
        bad = self._bad
        was_called = operation.kind == "Call" and bad != here.seen  # it came up in there
        look = _Look(operation, value, frame, here)
        if operation.kind != "Subscript":
            self._integers(value, look)
            self._promotion(value, look)
        for each in _numbers(value):
            for kind in _nonfinite(each):
                self._bad += 1
                if operation.kind in ("Subscript", "USub", "UAdd") or _gives_any(operation):
                    continue
                born = None if was_called else look.born(each, kind)
                if born is None or (look.is_partial and bad != here.at_start):
                    continue
                self._note(look, kind, look.birth(each, kind, born))

    def _here(self, frame: types.FrameType) -> _Here:
        frames = self._running.frames
        if not frames or not frames[-1].is_of(frame):
            known = {each.address: each for each in frames}
            # The program's own frames that run now, the innermost one first.
            frames.clear()
            around: types.FrameType | None = frame
            while around is not None:
                if id(around.f_code) in self._codes:
                    here = known.get(id(around))
                    if here is None or not here.is_of(around):
                        here = _Here(around, self._bad)
                    frames.append(here)
                around = around.f_back
            frames.reverse()
        return frames[-1]

    def _note(self, look: _Look, kind: str, text: str) -> None:
        key = look.operation, kind
        self._times[key] = self._times.get(key, 0) + 1
        if key not in self._found:
            self._found[key] = Finding(look.operation, kind, text)

    # ---- Integers and dtypes ----

    def _integers(self, value: Any, look: _Look) -> None:
        if type(value) is not np.ndarray or value.dtype.kind not in "iu" or not value.size:
            return
        with np.errstate(all="ignore"):
            exact = look.exact_integers(value)
        if exact is None:
            return
        wrapped = np.abs(exact - value.astype(np.float64)) > 2.0 ** (8 * value.itemsize - 1)
        if wrapped.any():
            self._note(look, "wrapped", look.wrapped(value, wrapped, exact))

    def _promotion(self, value: Any, look: _Look) -> None:
        if type(value) is not np.ndarray or value.ndim == 0 or value.dtype.kind not in "iufc":
            return
        is_chosen = not look.operation.keywords.isdisjoint(["out", "dtype"])
        if is_chosen or (look.operation, "promoted") in self._found or not look.is_elementwise():
            return
        text = look.promotion(value.dtype)
        if text:
            self._note(look, "promoted", text)

    # ---- The report ----

    _TITLES = (
        ("NaN and infinity, in the order in which they appeared:", ("NaN", "infinity")),
        ("Integers that wrapped around:", ("wrapped",)),
        ("Dtypes that became larger:", ("promoted",)),
    )

    def __str__(self) -> str:
        parts = []
        for title, kinds in self._TITLES:
            lines: list[str] = []
            last: Operation | None = None
            for found in self:
                if found.kind not in kinds:
                    continue
                operation = found.operation
                if operation != last:
                    lines.append(f"  {_place(operation)}")
                times = self._times[operation, found.kind]
                again = f" ({times} times)" if times > 1 and found.kind != "promoted" else ""
                lines.append(f"    {found.text}{again}")
                last = operation
            if lines:
                parts += [title, *lines]
        if not parts:
            parts = [
                "no NaN or infinity came up, no integer wrapped around, no dtype became larger"
            ]
        if self._failed:
            parts.append("Could not be looked at:")
            parts += [f"  {_place(each)}: {error}" for each, error in self._failed.items()]
        return "\n".join(parts)


class _Look:
    """One operation that has just told its value."""

    def __init__(
        self, operation: Operation, value: Any, frame: types.FrameType, here: _Here
    ) -> None:
        self.operation = operation
        # What this was before is not known any more.
        self._changed = value if "out" in operation.keywords else None
        self._frame, self._here = frame, here
        self._given: list[Any] | None = None
        self.is_partial = False  # whether an operand is not known

    def operands(self) -> list[Any]:
        """Their values; ``_MISSING`` of those that are not known."""
        if self._given is None:
            self._given = list(map(self._value, self.operation.operands))
            if self.operation.changes:
                self._given[0] = self._here.before.get(self.operation, _MISSING)
        return self._given

    def _value(self, operand: Operand) -> Any:
        if operand.kind == "number":
            return operand.value
        if operand.kind == "parts":
            return [self._value(each) for each in operand.value]
        found = _MISSING
        if operand.kind == "operation":
            found = self._here.values.get(operand.text, _MISSING)
        elif operand.kind == "name":
            found = _looked_up(self._frame, operand.value)
        self.is_partial = self.is_partial or found is _MISSING
        is_changed = self._changed is not None and found is self._changed
        return _MISSING if is_changed else found

    def born(self, value: Any, kind: str) -> Any:
        """Where such values are that come from no operand's: a mask, or None."""
        born = np.asarray(_NONFINITE[kind](value))
        given = [each for each in _numbers(self.operands()) if kind in _nonfinite(each)]
        if not given:
            return born
        if not self.is_elementwise() or type(value) is not np.ndarray:
            return None
        for each in given:
            try:
                born = born & ~np.broadcast_to(_NONFINITE[kind](each), value.shape)
            except ValueError:  # it has another shape
                return None
        return born if born.any() else None

    def is_elementwise(self) -> bool:
        """Whether each element of the result is made of those of the operands at its place."""
        kind = self.operation.kind
        if kind != "Call":
            return kind not in ("MatMult", "Subscript")
        if self.operation.function[-1:] == ("astype",):
            return True
        return bool(self.operation.function) and isinstance(self._function(), np.ufunc)

    def _function(self) -> Any:
        return _looked_up(self._frame, self.operation.function)

    def _named(self) -> list[tuple[str, Any]]:
        """Text and value of the operands that are numbers or arrays of them."""
        pairs = zip(self.operation.operands, self.operands(), strict=True)
        return [(a.text, b) for a, b in pairs if _is_number(b) and a.kind != "number"]

    def _at(self, index: tuple[Any, ...], shape: tuple[int, ...]) -> str:
        """The operands at the place of one element of the result."""
        texts: dict[str, None] = {}
        for text, value in self._named():
            with contextlib.suppress(ValueError):  # it has another shape
                item = np.broadcast_to(value, shape)[index]
                texts[f"{_short(text)} = {_shown(item)}"] = None
        return f", where {', '.join(texts)}" if texts else ""

    def birth(self, value: Any, kind: str, born: Any) -> str:
        """What is said of NaNs or infinities that came up there."""
        index, text = _first(born, kind) if born.ndim > 0 else ((), kind)
        if self.is_elementwise():
            return text + self._at(index, np.shape(value))
        ranges = [f"{_short(name)} is {_range(each)}" for name, each in self._named()]
        return "; ".join([text, *ranges])

    # ---- Integers ----

    def exact_integers(self, value: np.ndarray) -> Any:
        """What the result would be without a largest integer, rounded; None: it is not known."""
        kind = self.operation.kind
        if kind == "Call":
            name = self.operation.function[-1:]
            if name == ("astype",):
                given = self.operands()[0]
                known = type(given) is np.ndarray and given.dtype.kind in "iuf"
                return np.trunc(given.astype(np.float64)) if known else None
            kind = _SAME_AS.get(name[0], "") if name and self.is_elementwise() else ""
        if kind not in (*_EXACT, "USub"):
            return None
        given = [each for each in self.operands() if not isinstance(each, types.ModuleType)]
        if len(given) != (1 if kind == "USub" else 2) or not all(map(_is_real, given)):
            return None
        wide = [np.asarray(each).astype(np.float64) for each in given]
        exact = -wide[0] if kind == "USub" else _EXACT[kind](*wide)
        return exact if np.shape(exact) == value.shape else None

    def wrapped(self, value: np.ndarray, mask: np.ndarray, exact: Any) -> str:
        """What is said of integers that wrapped around."""
        index, text = _first(mask, str(value.dtype))
        became = f"{_whole(exact[index])} became {value[index]}"
        return f"{text}{self._at(index, value.shape)}: {became}"

    # ---- Dtypes ----

    def promotion(self, dtype: np.dtype[Any]) -> str | None:
        """What is said of a result whose dtype is larger than one may expect."""
        given = [each for each in self._named() if hasattr(each[1], "dtype")]
        if len(given) != 2 or self.operation.function[-1:] == ("astype",):
            return None
        (left, a), (right, b) = given
        if a.ndim > 0 and b.ndim > 0:
            kinds = {a.dtype.kind, b.dtype.kind}
            if dtype.kind not in "fc" or dtype in (a.dtype, b.dtype) or "b" in kinds:
                return None
            why = ", which holds whole numbers up to 2**53 only" if kinds <= set("iu") else ""
            return f"{a.dtype} with {b.dtype} gives {dtype}{why}"
        if a.ndim == 0:
            left, a, right, b = right, b, left, a
        if b.ndim > 0 or dtype == a.dtype:
            return None
        number = b.item()
        try:
            with_number = np.result_type(a, number)
        except (TypeError, OverflowError):
            return None
        if with_number != a.dtype:
            return None
        scalar = "0-d array" if isinstance(b, np.ndarray) else "NumPy scalar"
        name = _short(right)
        return (
            f"{a.dtype} with the {scalar} {name} of {b.dtype} gives {dtype}; "
            f"with {type(number).__name__}({name}) it stays {a.dtype}"
        )


def _place(operation: Operation) -> str:
    text = operation.text.partition("\n")[0]
    return f"{shown_file(operation.file)}:{operation.line}: {text}"


def _looked_up(frame: types.FrameType, chain: Chain) -> Any:
    """The value of a name or of attributes that can be looked at without running code."""
    if not chain:
        return _MISSING
    for space in (frame.f_locals, frame.f_globals, vars(builtins)):
        found = space.get(chain[0], _MISSING)
        if found is not _MISSING:
            break
    for name in chain[1:]:
        if found is _MISSING:
            break
        if isinstance(found, (types.ModuleType, np.ndarray, np.generic)):
            found = getattr(found, name, _MISSING)
        else:
            try:
                found = object.__getattribute__(found, "__dict__").get(name, _MISSING)
            except AttributeError:
                found = _MISSING
    return found


def _gives_any(operation: Operation) -> bool:
    """Whether NaNs and infinities in the result say nothing."""
    return operation.function[-1:] in [(name,) for name in (*_UNDEFINED, *_ASKED)]


def _is_plain(value: Any) -> bool:
    """Whether there is nothing to see in a value: most are finite numbers."""
    if isinstance(value, float):
        return math.isfinite(value)
    return type(value) in (int, bool, str, bytes, types.NoneType)


def _is_number(value: Any) -> bool:
    """Whether it is a number or an ordinary array of numbers."""
    if type(value) is np.ndarray or isinstance(value, np.generic):
        return value.dtype.kind in "biufc"
    return type(value) in (int, float, complex)


def _is_real(value: Any) -> bool:
    return _is_number(value) and np.asarray(value).dtype.kind in "biuf"


def _numbers(value: Any, depth: int = 0) -> Iterator[Any]:
    """The numbers and arrays in a value, containers taken apart."""
    if type(value) in (list, tuple, dict) and depth < _MOST_DEPTH:
        items: Sequence[Any] = list(value.values()) if type(value) is dict else value
        for each in items[:_MOST_ITEMS]:
            yield from _numbers(each, depth + 1)
    elif _is_number(value):
        yield value


def _nonfinite(value: Any) -> list[str]:
    """Which of NaN and infinity a number or an array holds."""
    if type(value) is float:
        if math.isfinite(value):
            return []
    elif type(value) is int or np.isfinite(value).all():
        return []
    return [kind for kind, test in _NONFINITE.items() if test(value).any()]


def _first(mask: np.ndarray, name: str) -> tuple[tuple[Any, ...], str]:
    """Where it is true for the first time, and what is said of that."""
    index = tuple(int(each) for each in np.unravel_index(int(np.argmax(mask)), mask.shape))
    place = ", ".join(map(str, index))
    return index, f"{name}: {int(mask.sum())} of {mask.size}, the first at [{place}]"


def _range(value: Any) -> str:
    array = np.asarray(value)
    if array.ndim == 0:
        return _shown(array[()])
    told = f"{array.dtype} of shape {array.shape}"
    if array.size and array.dtype.kind in "iuf":
        told += f", from {_shown(array.min())} to {_shown(array.max())}"
    return told


def _shown(item: Any) -> str:
    return repr(item.item() if isinstance(item, np.generic) else item)


def _whole(number: Any) -> str:
    return f"{float(number):.17g}" if np.isfinite(number) else str(float(number))


def _short(text: str) -> str:
    text = text.partition("\n")[0]
    return text if len(text) <= _LONGEST_OPERAND else text[: _LONGEST_OPERAND - 3] + "..."


class Finder:
    """While a script runs: modules of its own folder are watched as well.

    Belongs before ``importlib.machinery.PathFinder`` in ``sys.meta_path``.

    Parameters
    ----------
    findings : Findings
    folder : str
        The script's.
    """

    def __init__(self, findings: Findings, folder: str) -> None:
        self._findings = findings
        self._folder = os.path.join(os.path.realpath(folder), "")

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """What Python's own finder says, with a loader that watches."""
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or type(spec.loader) is not importlib.machinery.SourceFileLoader:
            return spec
        file = os.path.realpath(spec.loader.path)
        if not file.startswith(self._folder) or "-packages" + os.sep in file:
            return spec
        spec.loader = _Loader(spec.loader.name, spec.loader.path)
        spec.loader.findings = self._findings
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    findings: Findings

    def get_code(self, fullname: str) -> types.CodeType:
        """Without Python's cache of byte code."""
        return self.findings.compiled(self.get_data(self.path), self.path)
