"""How does a Python function get to see lazy arrays instead of NumPy's own?

The *twin* of a function has the same source, globals, variables of enclosing functions and default
values; only its call sites ask what to run (``source/sites.py``). So each name means what it means
in Python, and ``f is g`` is true where it is in Python. NumPy's own Python functions have twins
likewise: most of NumPy is traced through NumPy's source, keyword handling and messages included.
``jit`` and ``callees`` ask for twins; nothing here records or runs an operation.
"""

from __future__ import annotations

import atexit
import builtins
import collections
import functools
import operator
import types
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from ufuse import _core
from ufuse._core import Jitted, is_a
from ufuse.source import sites
from ufuse.source.names import is_fixed, is_library, is_pure
from ufuse.source.scan import Scan, scan
from ufuse.source.text import NoSource

from . import callees, filters, locking, tracebacks

# (globals or cell, name, value)
Guard = tuple["dict[str, Any] | types.CellType", str, Any]
HOOKS = sites.Hooks(
    site=_core.site,
    same=_core.is_same,
    managed=filters.managed,
    attribute=_core.read_attribute,
    found=_core.found,
    owner=_core.owner,
    changed=_core.changed,
    begin=_core.begin_augment,
    augment=_core.augment,
    operand=_core.operand,
    compared=_core.compared,
    indexed=_core.indexed,
    known=_core.known,
    own=_core.with_own_code,
    spread=_core.spread_site,
    outside=_core.outside,
)
# Of NumPy's own functions: they find no arrays in attributes, meet no objects of other packages and
# hold no locks.
_LIBRARY_HOOKS = sites.Hooks(
    _core.site, _core.is_same, own=_core.with_own_code, outside=_core.outside
)
_MISSING = object()
DATA = object()  # no callable and no module
_twins: weakref.WeakKeyDictionary[types.FunctionType, Twin] = weakref.WeakKeyDictionary()


class Twin:
    """The twin of one Python function.

    Parameters
    ----------
    original : types.FunctionType
        The function whose code is to meet lazy arrays.

    Attributes
    ----------
    function : types.FunctionType
        The twin itself.

    Raises
    ------
    NoSource
        Where the function's source is not known for certain.
    """

    def __init__(self, original: types.FunctionType) -> None:
        self.original = weakref.ref(original)
        self._code = original.__code__
        self._defaults = original.__defaults__, original.__kwdefaults__
        self._stable = callees.is_stable(original)
        self.function = with_code(original)
        # Callables and modules that the code names: the verdict of the scan depends on them.
        self._names: list[tuple[str, Any]] = []
        self._cells: list[tuple[types.CellType, Any]] = []
        self._children: list[Twin] = []

    def look(self) -> None:
        """Note what the code names; after registration, because a function may name itself."""
        original = self.original()
        if original is None or self._stable:
            return
        real = original.__globals__
        for name in instrumented(original).facts.globals_read():
            value = real.get(name, _MISSING)
            if value is not _MISSING or not hasattr(builtins, name):
                self._names.append((name, self._held(value)))
        for cell, _, value in free_variables(original):
            self._cells.append((cell, self._held(value)))

    def _held(self, value: Any) -> Any:
        if value is _MISSING or not callees.is_code(value):
            return value if value is _MISSING else DATA
        inner = value._function if is_a(value, Jitted) else value
        helper = is_a(inner, types.FunctionType) and inner is not self.original()
        if helper and is_traced(inner):
            self._children.append(twin_of(inner))
        return value

    def up_to_date(self, seen: set[int]) -> bool:
        """Whether code, names and cells of this twin and its helpers are as they were."""
        if self._stable or id(self) in seen:
            return True
        seen.add(id(self))
        original = self.original()
        if original is None:
            return True
        if original.__code__ is not self._code:
            return False
        given = original.__defaults__, original.__kwdefaults__
        if not all(map(operator.is_, given, self._defaults)):
            return False
        real = original.__globals__
        if not all(_is_as_held(real.get(name, _MISSING), held) for name, held in self._names):
            return False
        contents = {id(cell): current for cell, _, current in free_variables(original)}
        if not all(_is_as_held(contents.get(id(cell)), held) for cell, held in self._cells):
            return False
        return all(child.up_to_date(seen) for child in self._children)

    def guards(self, seen: set[int]) -> list[Guard] | None:
        """What must stay as it is for a recorded call to be good: ``(globals, name, value)``.

        A cell stands in the place of the globals for a variable of the enclosing function. ``...``
        as the value says that there must be none. None when there is more to a call than that: a
        variable that is no constant, or a helper that is not pure.
        """
        original = self.original()
        if original is None or not scanned(original).pure:
            return None
        cells = free_variables(original)
        if not all(value is ... or is_pure(value) for _, _, value in cells):
            return None
        seen.add(id(self))
        named = original.__kwdefaults__ or {}
        if not all(map(is_fixed, (*(original.__defaults__ or ()), *named.values()))):
            return None
        real = original.__globals__
        rows: list[Guard] = [*cells, *((named, name, value) for name, value in named.items())]
        made = instrumented(original)
        for name in made.facts.globals_read():
            rows.append((real, name, real.get(name, ...)))
            if name not in real and name in vars(builtins):
                rows.append((vars(builtins), name, vars(builtins)[name]))
        outer = {name: value for _, name, value in cells}
        space = collections.ChainMap(outer, real, vars(builtins))
        for chain in made.chains:
            if chain[0] in self._code.co_varnames:
                continue
            more = _attribute_rows(space, chain)
            if more is None:
                return None
            rows += more
        for child in self._children:
            if child._stable or id(child) in seen:
                continue
            more = child.guards(seen)
            if more is None:
                return None
            rows += more
        return rows

    def functions(self, seen: set[int]) -> Iterator[types.FunctionType]:
        """The user's functions that this twin and its helpers stand for."""
        original = self.original()
        if original is None or self._stable or id(self) in seen:
            return
        seen.add(id(self))
        yield original
        for child in self._children:
            yield from child.functions(seen)


def _attribute_rows(space: Mapping[str, Any], chain: sites.Chain) -> list[Guard] | None:
    """Guards of ``np.linalg.norm`` and the like, as far as modules and functions have them."""
    first, *attributes = chain
    value = space.get(first)
    rows: list[Guard] = []
    for name in attributes:
        if not is_a(value, (types.ModuleType, types.FunctionType)):
            break
        names = vars(value)
        if name not in names and is_library(value.__name__):
            _core.quietly(getattr, value, name, None)  # SciPy imports a module when asked for it
        if name not in names:
            return None
        value = names[name]
        rows.append((names, name, value))
        if not is_pure(value):
            return None
    return rows


def free_variables(function: types.FunctionType) -> list[tuple[types.CellType, str, Any]]:
    """The variables of enclosing functions: cell, name and value, which is ``...`` for none."""
    rows = []
    names = function.__code__.co_freevars
    for cell, name in zip(function.__closure__ or (), names, strict=True):
        try:
            rows.append((cell, name, cell.cell_contents))
        except ValueError:
            rows.append((cell, name, ...))
    return rows


def _is_as_held(current: Any, held: Any) -> bool:
    return current is held or (held is DATA and not callees.is_code(current))


def is_traced(function: types.FunctionType) -> bool:
    """Whether a function of the user's is traced where it is called."""
    if callees.is_stable(function) or not callees.is_own(function) or is_instrumented(function):
        return False
    return scanned(function).reason is None


def is_instrumented(function: types.FunctionType) -> bool:
    """Whether a function was made by a twin's code, or is a twin."""
    return sites.is_made(function.__code__)


# The code of twins, of each original code.
_codes: sites.PerCode[sites.Instrumented] = sites.PerCode()


# Why that cannot be made, of each original code of which it was tried. Looking for the source again
# would take as long: there may be a new function, a ``lambda`` in a loop, for each call.
_failed: sites.PerCode[Scan] = sites.PerCode()


def codes_known(function: types.FunctionType) -> Iterator[types.CodeType]:
    """The code of a function's twin, if it has been made."""
    if (known := _codes.get(function.__code__)) is not None:
        yield known.code


def instrumented(function: types.FunctionType) -> sites.Instrumented:
    """The code of the function's twin; functions made by one ``def`` share it.

    Raises
    ------
    NoSource
        Where the source is not known for certain.
    """
    with locking.tables:  # `linecache` loses lines that two threads ask for
        made = _codes.get(function.__code__)
        if made is None:
            is_plain = callees.is_stable(function) and not callees.reads_memory(function)
            hooks = _LIBRARY_HOOKS if is_plain else HOOKS
            made = sites.instrumented(function, hooks)
            _codes.set(function.__code__, made)
        return made


def scanned(function: types.FunctionType) -> Scan:
    """Can the function be traced, and is it pure?

    Examples
    --------
    >>> scanned(lambda x: eval("x")).reason
    'reflection'
    >>> scanned(lambda x: [x * 2, x]).reason is None
    True
    """
    failed = _failed.get(function.__code__)
    if failed is None:
        try:
            return scan(function, instrumented(function).facts)
        except NoSource as error:
            failed = Scan("no_source", str(error), 0, False)
        except Exception as error:
            if tracebacks.is_of_handler(error.__traceback__):
                raise
            failed = Scan("internal_error", f"{type(error).__name__}: {error}", 0, False)
        _failed.set(function.__code__, failed)
    return failed


def with_code(
    original: types.FunctionType, code: types.CodeType | None = None
) -> types.FunctionType:
    """A function like another one, with other code: that of its twin, if none is given."""
    code = instrumented(original).code if code is None else code
    cells = dict(zip(original.__code__.co_freevars, original.__closure__ or (), strict=True))
    made = types.FunctionType(
        code,
        original.__globals__,
        original.__name__,
        original.__defaults__,
        tuple(cells[name] for name in code.co_freevars),
    )
    made.__kwdefaults__ = original.__kwdefaults__
    made.__qualname__ = original.__qualname__
    made.__module__ = original.__module__
    made.__doc__ = original.__doc__
    made.__annotations__ = original.__annotations__
    made.__dict__.update(original.__dict__)
    return made


def twin_of(function: types.FunctionType) -> Twin:
    """The up-to-date twin of a Python function, made when there is none.

    Raises
    ------
    NoSource
        Where the function's source is not known for certain.
    """
    with locking.tables:
        twin = _twins.get(function)
        if twin is None or not twin.up_to_date(set()):
            forget(twin)
            twin = _twins[function] = Twin(function)
            twin.look()
        return twin


@functools.cache
def dispatcher_twin(
    function: types.FunctionType, implementation: types.FunctionType
) -> types.FunctionType:
    """A copy of NumPy 1's dispatcher of a function that calls ``implementation`` at its end.

    Dispatchers have no source, and so no twin. Classes that override the function are given NumPy's
    own.
    """
    names = dict(function.__globals__)
    names["implement_array_function"] = functools.partial(_core.implement, function)
    cells = [
        types.CellType(implementation) if name == "implementation" else cell
        for cell, name, _ in free_variables(function)
    ]
    made = types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, tuple(cells)
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__doc__ = function.__doc__
    return made


def forget(twin: Twin | None) -> None:
    """Drop a stale twin and its helpers' twins; the next use makes them anew."""
    if twin is None:
        return
    original = twin.original()
    if original is not None and _twins.pop(original, None) is not None:
        for child in twin._children:
            forget(child)


@atexit.register
def _let_go() -> None:
    """Forget all functions while NumPy is still there.

    They keep the globals of their modules alive, and with them objects whose ``__del__`` may call
    NumPy.
    """
    _twins.clear()
    dispatcher_twin.cache_clear()
