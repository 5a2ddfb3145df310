"""Which code runs where no call is traced? The user's own, whose loops may go on natively.

So may those of other functions of the user's that it calls: of these calls, and no others, there
are call sites (``_core.plain_site``).
"""

from __future__ import annotations

import contextlib
import inspect
import time
import types
import weakref
from collections.abc import Iterator
from typing import Any, TypeGuard

from ufuse import _core
from ufuse._core import is_a
from ufuse.source import heads, sites
from ufuse.source.text import NoSource

from . import callees, locking, tracebacks, twin

# Of the functions that one calls, and these call, so many are looked at.
_MOST_FUNCTIONS = 32
_LATE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_OF_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class whose names may be functions of Python's
_methods: weakref.WeakKeyDictionary[type, frozenset[str]] = weakref.WeakKeyDictionary()
# When it was looked, in seconds, and the functions with loops that were found.
_called: sites.PerCode[tuple[float, frozenset[sites.Chain]]] = sites.PerCode()
_GOOD_FOR = 1.0  # seconds


class _Made:
    """What was made of a code object, and the functions that run it."""

    def __init__(self, looped: sites.Looped) -> None:
        self.looped = looped
        # Whose originals, which their variables may lead to, are not kept.
        self.functions: weakref.WeakKeyDictionary[
            types.FunctionType, weakref.ref[types.FunctionType]
        ] = weakref.WeakKeyDictionary()

    def redo(self, code: types.CodeType, called: frozenset[sites.Chain]) -> None:
        """Make it anew, without the heads that were of no use."""
        before = self.looped
        without = frozenset(i for i, loop in enumerate(before.loops) if loop.is_useless)
        for original in (of() for of in self.functions.values()):
            if original is not None and original.__code__ is code:
                self.looped = sites.looped(original, called, before, without)
                break
        for function in self.functions:
            if function.__code__ is before.code:
                function.__code__ = self.looped.code


# What was made of each original code, by the functions that have call sites.
_codes: sites.PerCode[dict[frozenset[sites.Chain], _Made]] = sites.PerCode()


def looped(function: types.FunctionType) -> types.FunctionType | None:
    """The function as it is, whose loops may go on natively; None where there are no such loops.

    Raises
    ------
    NoSource
        Where the function's source is not known for certain.
    """
    called = _called_by(function)
    if not called and not heads.loops_of(twin.instrumented(function).code):
        return None
    with locking.tables:
        made = _codes.get(function.__code__)
        if made is None:
            _codes.set(function.__code__, made := {})
        if called not in made:
            made[called] = _Made(sites.looped(function, called))
        found = made[called]
        if not called and not heads.loops_of(found.looped.code):
            return None
        result = twin.with_code(function, found.looped.code)
        found.functions[result] = weakref.ref(function)
    return result


def _called_by(function: types.FunctionType) -> frozenset[sites.Chain]:
    """Which functions it calls that lead to loops.

    Functions that are made again and again by one ``def`` are looked at once in a while.
    """
    now = time.monotonic()
    then, called = _called.get(function.__code__) or (-_GOOD_FOR, frozenset())
    if now - then >= _GOOD_FOR:
        known: dict[types.FunctionType, bool] = {}
        called = frozenset(
            chain for chain, helper in _helpers(function) if _leads_to_loops(helper, known)
        )
        _called.set(function.__code__, (now, called))
    return called


def plain(function: Any) -> Any:
    """What answers calls that are not traced: the function, whose loops may go on natively."""
    made = _looped_if_possible(function) if is_a(function, types.FunctionType) else None
    return made or function


def of_helper(function: types.FunctionType) -> types.FunctionType | None:
    """What runs for a function that another one calls, for ``_core.set_plain_callees``.

    None where it runs itself.
    """
    if callees.is_own(function) and twin.is_traced(function):
        return _looped_if_possible(function)
    return None


def drop_heads(loop: _core.Loop) -> None:
    """Have the functions of a loop do without its head, for ``_core.set_drop_heads``."""
    code = heads.code_of(loop)
    if code is None:
        return
    with _by_python_otherwise(), locking.tables:
        for called, made in (_codes.get(code) or {}).items():
            if loop in made.looped.loops:
                made.redo(code, called)


def _looped_if_possible(function: types.FunctionType) -> types.FunctionType | None:
    with _by_python_otherwise():
        return looped(function)
    return None


@contextlib.contextmanager
def _by_python_otherwise() -> Iterator[None]:
    """Where it cannot be done the user's function runs as it is, or as it did."""
    try:
        yield
    except NoSource:
        pass
    except Exception as error:  # of ours
        if tracebacks.is_of_handler(error.__traceback__):
            raise


def codes_with_heads(function: types.FunctionType) -> Iterator[types.CodeType]:
    """The codes of a function in which loops may go on natively, as far as there are some."""
    yield from twin.codes_known(function)
    yield from (made.looped.code for made in (_codes.get(function.__code__) or {}).values())


def functions_around(function: types.FunctionType) -> list[types.FunctionType]:
    """The function, and those of the user's that it calls, or that these call, as far as known."""
    found = [function]
    for each in found:
        with contextlib.suppress(NoSource):
            if len(found) < _MOST_FUNCTIONS:
                found += dict.fromkeys(one for _, one in _helpers(each) if one not in found)
    return found


def _leads_to_loops(function: types.FunctionType, known: dict[types.FunctionType, bool]) -> bool:
    """Whether a function has loops that can be read, or calls one that has."""
    if function not in known and len(known) < _MOST_FUNCTIONS:
        known[function] = False  # until it is found out: it may call itself
        with contextlib.suppress(NoSource):
            known[function] = bool(heads.loops_of(twin.instrumented(function).code)) or any(
                _leads_to_loops(helper, known) for _, helper in _helpers(function)
            )
    return known.get(function, False)


def _helpers(
    function: types.FunctionType,
) -> Iterator[tuple[sites.Chain, types.FunctionType]]:
    """The functions of the user's that names in a function lead to.

    ``("", "step")`` stands for ``x.step``, whatever ``x`` is: a class among the function's globals
    has it.
    """
    code, space = function.__code__, function.__globals__
    cells = {name: value for _, name, value in twin.free_variables(function)}
    chains = {(name,) for name in (*code.co_names, *code.co_freevars)}
    for chain in sorted(chains.union(twin.instrumented(function).chains)):
        first, *attributes = chain
        value = cells.get(first, space.get(first))
        if code.co_argcount and first == code.co_varnames[0]:
            value = _class_of(function)
        for name in attributes:
            value = _attribute(value, name)
        if _is_helper(value):
            yield chain, value
    names = frozenset(code.co_names)
    for each in [*space.values()]:
        if is_a(each, type) and each.__flags__ & _OF_PYTHON:
            for name in names & _methods_of(each):
                if _is_helper(value := _attribute(each, name)):
                    yield ("", name), value


def _methods_of(of: type) -> frozenset[str]:
    """The names of functions that a class or its bases have had when it was first asked about."""
    found = _methods.get(of)
    if found is None:
        spaces = [vars(each) for each in of.__mro__ if each.__flags__ & _OF_PYTHON]
        found = frozenset(
            name
            for space in spaces
            for name, value in [*space.items()]
            if is_a(value, (types.FunctionType, staticmethod, classmethod))
        )
        _methods[of] = found
    return found


def _is_helper(value: Any) -> TypeGuard[types.FunctionType]:
    return (
        is_a(value, types.FunctionType)
        and not value.__code__.co_flags & _LATE
        and callees.is_own(value)
        and not callees.is_stable(value)
        and not twin.is_instrumented(value)
    )


def _class_of(method: types.FunctionType) -> Any:
    """The class of which a function is a method by its name, if there is one."""
    first, *names = method.__qualname__.split(".")
    value = method.__globals__.get(first)
    for name in names[:-1]:
        value = _attribute(value, name)
    return value if names and is_a(value, type) else None


def _attribute(owner: Any, name: str) -> Any:
    """What a module or a class has by this name; it is not asked for it."""
    if is_a(owner, types.ModuleType):
        spaces: tuple[Any, ...] = (owner,)
    elif is_a(owner, type):
        spaces = owner.__mro__
    else:
        return None
    found = next((vars(each)[name] for each in spaces if name in vars(each)), None)
    return found.__func__ if is_a(found, (staticmethod, classmethod)) else found
