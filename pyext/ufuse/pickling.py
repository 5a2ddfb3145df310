"""How does a jitted function get into another process?

As a plain function does: by its name where the other process finds it by that, and by value where
not. Which of the two it is depends on the pickler. For ``pickle``, a function of ``__main__`` is
found by its name, because ``multiprocessing`` runs the script again. ``cloudpickle`` (joblib, Dask,
Spark, Ray) sends it by value, and also functions of modules that were registered with it. An object
is not told which pickler asks, but each of them treats plain functions by its own rule. So a jitted
function is pickled as a plain function, its *door*, that holds it. The door has a name under which
it is found: a pickler that sends the name leads to the jitted function, and one that sends the door
by value sends the jitted function in it.
"""

from __future__ import annotations

import copyreg
import sys
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._core import Jitted
from .source import carried

if TYPE_CHECKING:
    from .function import Function

_MISSING = object()
# The attribute of a jitted function under which its door is found.
PATH = "__ufuse_way__"
# The jitted functions behind doors that came from other processes.
_behind: weakref.WeakKeyDictionary[types.FunctionType, weakref.ref[Function]] = (
    weakref.WeakKeyDictionary()
)


class Way:
    """The attribute of a jitted function that the name of its door leads through.

    It is pickled by name itself, in any protocol.
    """

    def __init__(self, function: Function) -> None:
        self.door = _door(function, Contents(function))
        self._name = _names(function)

    def __reduce__(self) -> Any:
        return _named, (*self._name, PATH)


def way_to(function: Function) -> Way:
    """The one ``Way`` of the function under its present name."""
    return function._ways.setdefault(_names(function), Way(function))


class Contents:
    """What the door of a jitted function holds; pickled as the function's class and state."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def __reduce__(self) -> Any:
        return _given, (type(self.function), self.function.__getstate__())


def _given(*values: Any) -> Any:
    return values


def _named(module: str, name: str, attribute: str) -> Any:
    __import__(module)
    found: Any = sys.modules[module]
    for part in (*name.split("."), attribute):
        found = getattr(found, part)
    return found


def _door(function: Function, contents: Contents) -> types.FunctionType:
    module, name = _names(function)
    code = (lambda: contents).__code__
    # Its globals are few: they would be sent along.
    cell = types.CellType(contents)
    door = types.FunctionType(code, {"__name__": module}, "door", None, (cell,))
    door.__module__ = module
    door.__qualname__ = f"{name}.{PATH}.door"
    return door


def reduced(function: Function) -> Any:
    """What ``__reduce__`` of a jitted function returns."""
    module, name = _names(function)
    if not _leads_to(module, name, function):
        return copyreg.__newobj__, (type(function),), function.__getstate__()  # type: ignore[attr-defined]
    if module == "__main__" or _is_sent_by_value(module):
        return _behind_door, (getattr(function, PATH).door,)
    return name


def _behind_door(door: types.FunctionType) -> Function:
    """The jitted function of a door.

    A jitted function that names itself is met while its door is still being unpickled and holds
    nothing. An empty one is returned then, which gets its state later.
    """
    try:
        contents = door()
    except NameError:
        contents = None
    if isinstance(contents, Contents):
        return contents.function
    known = _behind.get(door)
    made = known() if known is not None else None
    if made is None:
        from .function import Function

        made = Jitted.__new__(Function if contents is None else contents[0])
        _behind[door] = weakref.ref(made)
    if contents is not None and not hasattr(made, "_options"):
        made.__class__ = contents[0]
        made.__setstate__(contents[1])
    return made


def is_there(value: Any) -> bool:
    """Whether a process to which a function is sent finds a value by its name."""
    module, name = _names(value)
    if module == "__main__" or not _leads_to(module, name, value):
        return False
    return not _is_sent_by_value(module)


def _names(value: Any) -> tuple[str, str]:
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    return str(module), str(name)


def _leads_to(module: str, name: str, value: Any) -> bool:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is value


def _is_sent_by_value(module: str) -> bool:
    """Whether any copy of cloudpickle was told to send a module's functions by value."""
    for name, found in list(sys.modules.items()):
        if name.rpartition(".")[2] == "cloudpickle":
            listed: Callable[[], set[str]] | None
            listed = getattr(found, "list_registry_pickle_by_value", None)
            for each in listed() if listed is not None else ():
                if module == each or module.startswith(each + "."):
                    return True
    return False


def attributes(function: Function, own: frozenset[str]) -> dict[str, Any]:
    """What somebody has set on a jitted function, beside what it took from the original."""
    original = function.__wrapped__
    return {
        name: value
        for name, value in vars(function).items()
        if name not in own and getattr(original, name, _MISSING) is not value
    }


def texts_of(function: Function) -> tuple[carried.Excerpt, ...]:
    """The source that goes along with a jitted function."""
    inner = function._function
    if not isinstance(inner, types.FunctionType) or is_there(inner):
        return ()
    return carried.excerpts(inner, is_there)
