"""What stands in a twin's globals for each value that code can name?

It depends on the type of the value: modules become ``Namespace`` objects, NumPy's C
functions their handler or a call of NumPy, Python functions of NumPy, SciPy and the user their
twins, ``ufuse.jit`` functions their inner function's twin; everything else stays itself. The native
handlers stand in ``handlers.py``, the twins in ``twin.py``.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core, names, scan

DATA = object()  # guard value: "no callable and no module"
LIBRARIES = ("numpy", "scipy")
# Where NumPy 1 compiles the dispatcher of each function under ``__array_function__``.
DISPATCHER_FILE = "<__array_function__ internals>"

# Modules whose Python code looks into arrays in ways a lazy array cannot follow (memory, classes
# with state, text): their functions are called with real arrays.
_OPAQUE = [
    "numpy.ma",
    "numpy.testing",
    "numpy.f2py",
    "numpy.distutils",
    "numpy.matrixlib",
    "numpy.rec",
    "numpy.char",
    "numpy.ctypeslib",
    "numpy._core.records",
    "numpy.core.records",
    "numpy._core.arrayprint",
    "numpy.core.arrayprint",
    "numpy._core.defchararray",
    "numpy.core.defchararray",
    "numpy.lib.npyio",
    "numpy.lib._npyio_impl",
    "numpy.lib.format",
    "numpy.lib._format_impl",
    "numpy.lib.recfunctions",
    "numpy.lib.utils",
    "numpy.lib._utils_impl",
    "numpy._core.memmap",
    "numpy.core.memmap",
    "numpy._core.strings",
    "numpy.strings",
    "numpy._core.getlimits",
    "numpy.core.getlimits",
    "numpy.core.overrides",
    "numpy._core.overrides",
    "numpy.lib.index_tricks",
    "numpy.lib._index_tricks_impl",
    "numpy._core._internal",
    "numpy.core._internal",
    "numpy.lib._user_array_impl",
    "numpy.lib.user_array",
    "numpy.lib.introspect",
    "numpy._core.multiarray",
    "numpy.core.multiarray",
    "numpy._core.einsumfunc",
    "numpy.core.einsumfunc",
]

_Dispatcher: type | None = type(np.sum) if not isinstance(np.sum, types.FunctionType) else None
_CODE = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.ModuleType,
    type,
    np.ufunc,
    functools.partial,
    functools._lru_cache_wrapper,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    *((_Dispatcher,) if _Dispatcher else ()),
)
# What a context manager used as a decorator makes: NumPy 1's ``errstate`` among others.
_DECORATED = contextlib.ContextDecorator()(lambda: None).__code__
_namespaces: dict[str, Namespace] = {}
_callers: dict[Any, Any] = {}
_handled: dict[Any, Handled] = {}


def is_stable(function: types.FunctionType) -> bool:
    """Whether the globals of a function are NumPy's or SciPy's own, which do not change."""
    return function.__code__.co_filename == DISPATCHER_FILE or is_library(
        function.__globals__.get("__name__")
    )


def is_library(module: Any) -> bool:
    """Whether a module's name belongs to NumPy or SciPy, whose globals do not change."""
    return isinstance(module, str) and module.partition(".")[0] in LIBRARIES


def is_code(value: Any) -> bool:
    """Whether a value is a module or a callable, which is guarded; anything else is data."""
    return isinstance(value, _CODE) or hasattr(type(value), "__ufuse_inner__")


def _is_standard(module: Any) -> bool:
    if not isinstance(module, str):
        return False
    top = module.partition(".")[0]
    return top in sys.stdlib_module_names or top == "ufuse"


class Namespace(types.ModuleType):
    """A module as twins see it: each attribute swapped by the rules.

    NumPy's and SciPy's attributes are kept once swapped; those of other modules are looked up, and
    their helpers' globals checked, at each use.
    """

    def __init__(self, module: types.ModuleType) -> None:
        super().__init__(module.__name__, module.__doc__)
        for name in ("__package__", "__spec__", "__file__", "__path__", "__version__", "__all__"):
            if hasattr(module, name):
                self.__dict__[name] = getattr(module, name)
        self.__dict__["_ufuse_module"] = module
        self.__dict__["_ufuse_stable"] = is_library(module.__name__)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__dict__["_ufuse_module"], name)
        swapped = swap(value)
        if self.__dict__["_ufuse_stable"]:
            self.__dict__[name] = swapped
        return swapped

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_ufuse_module"])

    def __repr__(self) -> str:
        return repr(self.__dict__["_ufuse_module"])


def swap(value: Any) -> Any:
    """What stands for ``value`` in a twin's globals, and as an attribute of a ``Namespace``."""
    if isinstance(value, type):
        return _handlers().get(value, value)
    if isinstance(value, np.ufunc):
        return value
    if isinstance(value, types.FunctionType):
        return _swap_function(value)
    if isinstance(value, types.ModuleType):
        return _swap_module(value)
    if isinstance(value, types.BuiltinFunctionType):
        return _swap_builtin(value)
    if isinstance(value, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return caller(value, "user_call", pure=False)
    if isinstance(value, types.MethodType) and is_library(type(value.__self__).__module__):
        return caller(value, "not_native", pure=False)  # of NumPy's global random generator
    if is_dispatcher(value):
        swapped = _swap_dispatcher(value, getattr(value, "_implementation", None))
        if isinstance(swapped, types.FunctionType):
            return _handled.setdefault(value, Handled(value, swapped))
        return swapped
    inner = getattr(type(value), "__ufuse_inner__", None)
    if inner is not None:
        return inner(value)
    if isinstance(value, StandIn):
        return value
    if isinstance(value, functools.partial):
        function = swap(value.func)
        if function is value.func:
            return value
        return functools.partial(function, *value.args, **value.keywords)
    if isinstance(value, functools._lru_cache_wrapper):
        return caller(value, "user_call", pure=False)
    try:
        return _handlers().get(value, value)
    except TypeError:  # not hashable
        return value


def array_function(function: Any, _types: Any, args: Any, kwargs: Any) -> Any:
    """``__array_function__`` of lazy arrays: NumPy's functions called by code that has no twin."""
    stand_in = swap(function)
    if stand_in is function or not _core.session_active():
        return _core.numpy_call(function, args, kwargs, "not_native", False)
    return stand_in(*args, **kwargs)


def let_go() -> None:
    """Forget what stands for functions and modules; it is found anew."""
    for known in (_callers, _handled, _namespaces):
        known.clear()


def is_dispatcher(value: Any) -> bool:
    """Whether a value is a function under NumPy's ``__array_function__`` protocol in C."""
    return _Dispatcher is not None and isinstance(value, _Dispatcher)


def _handlers() -> dict[Any, Any]:
    from . import handlers

    return handlers.table()


def extra_names(function: types.FunctionType) -> dict[str, Any]:
    """Names that one function of NumPy needs swapped in another way than the rules say."""
    from . import handlers

    return handlers.extra_names(function)


def _swap_module(module: types.ModuleType) -> Any:
    name = module.__name__
    if isinstance(module, Namespace):
        return module
    generic = _is_standard(name) and name != "warnings" and not names.is_strict(name)
    if generic or name.startswith(("numpy.ma", "numpy.testing")):
        return module
    known = _namespaces.get(name)
    if known is None or known.__dict__["_ufuse_module"] is not module:
        known = _namespaces[name] = Namespace(module)
    return known


def _swap_function(function: types.FunctionType) -> Any:
    from . import twin

    handler = _handlers().get(function)
    if handler is not None:
        return handler
    wrapped = getattr(function, "__wrapped__", None)
    if function.__code__.co_filename == DISPATCHER_FILE and wrapped is not None:
        implementation = _swap_dispatcher(function, wrapped)
        if isinstance(implementation, types.FunctionType):
            # NumPy 1's dispatcher is a Python frame that `stacklevel` counts: keep it.
            return twin.twin_of(function).function
        return implementation
    module = function.__globals__.get("__name__")
    if isinstance(function.__globals__, twin.LiveGlobals):
        return function
    if names.is_strict(module):
        return caller(function, "user_call", pure=True)
    if _is_standard(module) and function.__code__ is not _DECORATED:
        return function
    library = is_library(module)
    if library and isinstance(module, str) and is_opaque(module):
        return caller(function, "not_native")
    if function.__code__.co_flags & 0x2A0:
        return function if library else caller(function, "user_call", pure=False)
    found = scan.scan(function)
    if found.reason is not None:
        return caller(function, found.reason, pure=False)
    return twin.twin_of(function).function


def is_opaque(module: str) -> bool:
    """Whether the Python functions of a NumPy or SciPy module get real arrays."""
    return any(module == name or module.startswith(name + ".") for name in _OPAQUE)


def _swap_dispatcher(public: Any, implementation: Any) -> Any:
    """A function under NumPy's ``__array_function__`` dispatcher: its implementation's stand-in."""
    handler = _handlers().get(public)
    if handler is not None:
        return handler
    if isinstance(implementation, types.FunctionType):
        if "like" in (implementation.__kwdefaults__ or ()):
            return caller(public, "not_native")  # asks its first argument, and drops it
        swapped = _swap_function(implementation)
        # An opaque implementation is called under its public name, as NumPy would.
        if isinstance(swapped, Caller):
            return caller(public, swapped.reason)
        return swapped
    return caller(public, "not_native")


def _swap_builtin(function: Any) -> Any:
    handler = _handlers().get(function)
    if handler is not None:
        return handler
    owner = function.__self__
    if isinstance(owner, np.ufunc):
        return function
    if is_library(getattr(owner, "__module__", None) or type(owner).__module__):
        return caller(function, "not_native", pure=False)
    module = function.__module__ or getattr(owner, "__name__", None)
    if is_library(module):
        return caller(function, "not_native")
    return caller(function, "user_call", pure=True) if names.is_strict(module) else function


class StandIn(functools.partial):
    """A callable in the place of a library's; everything else about it is the library's own."""

    __wrapped__: Callable[..., Any]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["__wrapped__"], name)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


class Handled(StandIn):
    """What stands for a function of NumPy that has a native form or a twin.

    Parameters
    ----------
    function : callable
        NumPy's own, called where an argument may override it (``__array_function__``) or where the
        stand-in returns ``NotImplemented``.
    stand_in : callable
        What is called otherwise.
    """

    def __new__(cls, function: Callable[..., Any], stand_in: Callable[..., Any]) -> Handled:
        self = super().__new__(cls, _core.call_handled, function, stand_in, is_pure(function))
        self.__wrapped__ = function
        return self


class Caller(StandIn):
    """Calls a function with real arrays, at the place where it stands.

    A partial of ``_core.call_numpy``: the call has no Python frame of its own, so NumPy's warnings
    name the user's line.

    Parameters
    ----------
    function : callable
        What is called.
    reason : str
        Row of ``reasons.def``.
    pure : bool
        False when the call may write to its arguments or depends on hidden state.
    """

    reason: str
    __name__: str

    def __new__(cls, function: Callable[..., Any], reason: str, pure: bool) -> Caller:
        self = super().__new__(cls, _core.call_numpy, function, reason, pure)
        self.__wrapped__ = function
        self.reason = reason
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self.__doc__ = getattr(function, "__doc__", None)
        return self


# C functions of NumPy that write to an argument.
_WRITERS = frozenset(
    [
        "copyto",
        "put",
        "place",
        "_place",
        "_insert",  # np.place of NumPy 1
        "putmask",
        "fill_diagonal",
        "put_along_axis",
        "shuffle",
        "at",
        "sort",
        "partition",
    ]
)


def is_pure(function: Callable[..., Any]) -> bool:
    """Whether a function of NumPy leaves its arguments as they are."""
    return getattr(function, "__name__", "") not in _WRITERS


class Late(StandIn):
    """What stands for a function in a library's globals until it is called for the first time.

    Most helpers that a function of NumPy names are not called; looking through the code of all of
    them, and of theirs, would be most of a first call. It has no Python frame either.

    Parameters
    ----------
    function : callable
        The library's own function.
    names : dict
        The globals in which its stand-in takes this object's place.
    name : str
        Its key.
    """

    def __new__(cls, function: Callable[..., Any], names: dict[str, Any], name: str) -> Late:
        def resolve() -> Any:
            swapped = swap(function)
            if isinstance(names.get(name), Late):
                names[name] = swapped
            return swapped

        self = super().__new__(cls, _core.call_late, resolve)
        self.__wrapped__ = function
        return self


def late(value: Any, names: dict[str, Any], name: str) -> Any:
    """``swap(value)`` for the globals of a library's function, put off where that has a price."""
    if not (isinstance(value, types.FunctionType) or is_dispatcher(value)):
        return swap(value)
    handler = _handlers().get(value)
    return Late(value, names, name) if handler is None else handler


def caller(function: Callable[..., Any], reason: str, pure: bool | None = None) -> Caller:
    """The ``Caller`` of a function, made once."""
    try:
        known = _callers.get(function)
    except TypeError:
        return Caller(function, reason, bool(pure))
    if known is None:
        if pure is None:
            pure = is_pure(function)
        known = _callers[function] = Caller(function, reason, pure)
    assert isinstance(known, Caller)
    return known


# Builtins.


class _TypeMeta(type):
    """Makes ``type(x)`` tell the real class of a lazy array, and stay ``type`` otherwise."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs:
            return args[0].__class__ if type(args[0]) is _core.ndarray else type(args[0])
        return type(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, type)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, type)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is type

    def __hash__(cls) -> int:
        return hash(type)


class _Type(type, metaclass=_TypeMeta):
    """Stands for the builtin ``type`` in twins."""


def _import(
    name: str,
    globals: dict[str, Any] | None = None,
    locals: Any = None,
    fromlist: Any = (),
    level: int = 0,
) -> Any:
    module = builtins.__import__(name, globals, locals, fromlist, level)
    return _swap_module(module) if isinstance(module, types.ModuleType) else module


def _real(name: str) -> Callable[..., Any]:
    """A builtin that reads an array's memory or type, given the real array."""
    function = getattr(builtins, name)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _core.numpy_call(function, args, kwargs, "array", True)

    return call


class _LiveBuiltins(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        return builtins.__dict__[name]


@functools.cache
def builtins_for(library: bool) -> dict[str, Any]:
    """The ``__builtins__`` of twins: an exact dict (fast) for libraries, a live one for users."""
    swapped: dict[str, Any] = {} if library else _LiveBuiltins()
    swapped.update(builtins.__dict__)
    swapped["type"] = _Type
    swapped["__import__"] = _import
    for name in ("bytes", "bytearray", "memoryview", "round"):
        if not isinstance(getattr(builtins, name), type):
            swapped[name] = _real(name)
    return swapped
