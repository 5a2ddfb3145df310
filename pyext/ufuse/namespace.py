"""How does ``import ufuse.numpy as np`` run each call through ufuse at once?

Every function, ufunc and ufunc method of NumPy becomes an ``Eager`` callable: the call is traced
alone, or replayed, and computed before it returns. Calls in which tracing has found no loops to run
are NumPy's own from then on. With ``UFUSE_DEBUG=check`` NumPy runs beside it, and the first
difference raises ``Mismatch``. Classes, constants and everything else are NumPy's own.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import Any

import numpy as np

from . import _core, environment
from .compare import Mismatch
from .source.names import is_library
from .tracing import callees, tree
from .tracing.run import Options, may_warn_late, run

_OPTIONS = Options()
# Functions that give another answer, or change NumPy's own state, each time they are called.
_ONCE_MODULES = ("numpy.random.",)
_ONCE_NAMES = ("empty", "seterr", "setbufsize", "set_", "save", "tofile")


_made: dict[Callable[..., Any], Eager] = {}


class _Doc:
    """``Eager.__doc__``: of the class its own text, of an object that of what it wraps."""

    def __init__(self, text: str | None) -> None:
        self._text = text

    def __get__(self, eager: Any, _: type) -> Any:
        return self._text if eager is None else getattr(eager.__wrapped__, "__doc__", None)

    def __set__(self, eager: Any, text: str | None) -> None:
        eager.__doc__ = text  # what is set is set on the wrapped one


def _observed(functions: list[Any]) -> tuple[list[Any], list[Any]] | None:
    """No guards and no codes of NumPy's own functions, which a recorded call has run.

    None where there are others, for example one of the user's that NumPy was given: they may do
    something else each time.
    """
    return ([], []) if all(map(callees.is_stable, functions)) else None


@_core.call_as_base
class Eager(_core.Answered):
    """One callable of NumPy, run through ufuse at once.

    Parameters
    ----------
    function : callable
        NumPy's function, ufunc or ufunc method.
    name : str
        Full name, for messages.
    """

    __wrapped__: Callable[..., Any]
    _full_name: str
    _site: Callable[..., Any]
    _is_checked: bool
    __name__: str
    _is_joined = False  # whether the arguments of a call are to be joined with others

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        site = functools.partial(_core.site, function)
        is_checked = "check" in environment.debug_words()
        self.__dict__.update(
            __wrapped__=function, _full_name=name, _site=site, _is_checked=is_checked
        )
        self._describe()

    def _describe(self) -> None:
        function = self.__wrapped__
        name = getattr(function, "__name__", self._full_name.rpartition(".")[2])
        self.__dict__.update(
            __name__=name,
            __qualname__=getattr(function, "__qualname__", name),
            __doc__=getattr(function, "__doc__", None),
            __module__=getattr(function, "__module__", None),
        )

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__wrapped__, name, value)
        self._describe()

    def __delattr__(self, name: str) -> None:
        delattr(self.__wrapped__, name)
        self._describe()

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        # Code asks isinstance(f, np.ufunc).
        return np.ufunc if isinstance(self.__wrapped__, np.ufunc) else Eager

    def answering(self) -> Callable[..., Any]:
        """What answers a call that is made now."""
        if self._is_checked:
            return self._checked
        if self._at_once is None:
            object.__setattr__(self, "_at_once", self._dispatcher)
        return self._at_once

    @functools.cached_property
    def _dispatcher(self) -> _core.Dispatcher:
        function = self.__wrapped__
        return _core.Dispatcher(self._run, [], lambda: function, observe=_observed, eager=True)

    def _run(self, /, *args: Any, **kwargs: Any) -> Any:
        if _core.session_active():
            return self._nested(*args, **kwargs)
        # C code of NumPy asks for its own types.
        args = tuple(a.__wrapped__ if type(a) is Eager else a for a in args)
        if not may_warn_late():
            return self.__wrapped__(*args, **kwargs)
        with _core.backend("interpreted"):
            return run(self._site, args, kwargs, _OPTIONS)

    def _nested(self, /, *args: Any, **kwargs: Any) -> Any:
        """A call made in a traced one: by a jitted function, or by an object that NumPy asks.

        An object's ``__array__`` and the like have real arrays, and must give them.
        """
        given = tree.Results(tree.Arguments())
        given.collect((args, kwargs))
        if given.lazies:
            return self._site(*args, **kwargs)
        return _core.unwrap(_core.numpy_call(self.__wrapped__, args, kwargs, "user_call", False))

    def _checked(self, /, *args: Any, **kwargs: Any) -> Any:
        if _core.session_active() or not self._repeatable(args, kwargs):
            return self._dispatcher(*args, **kwargs)
        from .tools import verify

        # Operands as they were before the call, which may write to them.
        operands = ", ".join(
            [*map(_text, args), *(f"{name}={_text(value)}" for name, value in kwargs.items())]
        )
        place = sys._getframe(1)
        call = f"{self._full_name}({operands}) at {place.f_code.co_filename}:{place.f_lineno}"
        before = verify.Before(args, kwargs)
        ours = verify.Outcome(self._dispatcher, args, kwargs)
        found = verify.difference(ours, before.plainly(self.__wrapped__))
        if found is not None:
            raise Mismatch(f"{call}\n{found}") from ours.error
        return ours.answer()

    def _repeatable(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call can be made twice: nothing is used up, written out or drawn by chance."""
        if self._full_name.startswith(_ONCE_MODULES) or self.__name__.startswith(_ONCE_NAMES):
            return False
        return not any(
            hasattr(type(value), name)
            for value in (*args, *kwargs.values())
            for name in ("__next__", "read", "write")
        )

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__dict__["__wrapped__"], name)
        if isinstance(value, types.BuiltinFunctionType):
            return _of(value, f"{self._full_name}.{name}")
        return value

    def __eq__(self, other: object) -> Any:
        # Tables with functions as keys are asked for NumPy's own by ``__array_function__``.
        return self.__wrapped__ == (other.__wrapped__ if type(other) is Eager else other)

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def __reduce__(self) -> Any:
        return _of, (self.__wrapped__, self._full_name)


Eager.__doc__ = _Doc(Eager.__doc__)  # type: ignore[assignment]


def _of(function: Any, name: str) -> Eager:
    """The one ``Eager`` of a function, whatever names NumPy has for it."""
    known = _made.get(function)
    return _made.setdefault(function, Eager(function, name)) if known is None else known


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"<{value.dtype} {value.shape} strides {value.strides}>"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class EagerModule(types.ModuleType):
    """A module of NumPy whose callables are ``Eager``."""

    _ufuse_module: types.ModuleType

    def __getattr__(self, name: str) -> Any:
        real = self.__dict__["_ufuse_module"]
        value = getattr(real, name)
        swapped = eager(value, f"{real.__name__}.{name}")
        # Values that are no functions may change, and attributes that are made on demand may warn
        # each time.
        if swapped is not value and name in vars(real):
            self.__dict__[name] = swapped
        return swapped

    def __dir__(self) -> list[str]:
        return sorted({*dir(self.__dict__["_ufuse_module"])})


def eager(value: Any, name: str) -> Any:
    """What stands for an attribute of a NumPy module."""
    if isinstance(value, type):
        return value
    if isinstance(value, types.ModuleType):
        return module_of(value)
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, np.ufunc)) or (
        callees.is_dispatcher(value)
    ):
        module = getattr(value, "__module__", None) or ""
        return _of(value, name) if not module.startswith("numpy.testing") else value
    return value


def module_of(module: types.ModuleType) -> types.ModuleType:
    """``ufuse.numpy`` or a submodule of it, for NumPy's module of the same name."""
    if not is_library(module.__name__) or module.__name__.startswith("numpy.testing"):
        return module
    name = f"ufuse.{module.__name__}"
    made = sys.modules.get(name)
    if not isinstance(made, EagerModule):
        made = EagerModule(name, module.__doc__)
        fill(made, module)
        sys.modules[name] = made
    return made


def fill(made: types.ModuleType, module: types.ModuleType) -> None:
    """Let ``made`` stand for ``module``."""
    made.__dict__["_ufuse_module"] = module
    for name in ("__all__", "__version__"):
        if name in vars(module):  # asking a module that is deprecated for more would warn
            made.__dict__[name] = vars(module)[name]
    if "__path__" in vars(module):
        made.__path__ = []
    for name, value in vars(module).items():
        if not isinstance(value, types.ModuleType) and not name.startswith("__"):
            swapped = eager(value, f"{module.__name__}.{name}")
            if swapped is not value:
                made.__dict__[name] = swapped


class Finder:
    """Imports ``ufuse.numpy.linalg`` and the like: NumPy's module of that name, made eager."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec of a submodule of ``ufuse.numpy`` that NumPy has; None for all other names."""
        if not name.startswith("ufuse.numpy.") or find_spec(name[6:]) is None:
            return None
        return ModuleSpec(name, Finder(), is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """What importlib asks of a loader."""
        return module_of(import_module(spec.name[6:]))

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing is left to do."""
