"""What runs where traced code calls ``f``?

``stand_in(f)`` says so, by what ``f`` is and not by what it is called: NumPy's C functions have
their handler or run on real arrays; Python functions of NumPy and of the user have their twins;
builtins whose meaning is known run themselves; everything else is given real arrays. Call sites
(``_core.site``) ask once for each object. The native handlers stand in ``handlers.py``, the twins
in ``twin.py``.
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import functools
import itertools
import operator
import os
import sys
import sysconfig
import types
import weakref
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any

import numpy as np

from ufuse import _core
from ufuse._core import Jitted, is_a
from ufuse.source import names
from ufuse.source.text import NoSource

from . import tracebacks

# The file name of the dispatchers that NumPy 1 compiles for functions under ``__array_function__``.
DISPATCHER_FILE = "<__array_function__ internals>"

# Modules of NumPy whose Python code looks into arrays in ways a lazy array cannot follow (memory,
# classes with state, text): their functions are called with real arrays.
_OPAQUE = [
    f"{package}.{name}"
    for package, names_in_it in {
        "numpy": "ma testing f2py distutils matrixlib rec char ctypeslib strings",
        "numpy.lib": "npyio _npyio_impl format _format_impl utils _utils_impl index_tricks"
        " _index_tricks_impl user_array _user_array_impl recfunctions introspect",
        _core.numpy_version.core_package: "records arrayprint defchararray memmap strings getlimits"
        " overrides _internal multiarray einsumfunc",
    }.items()
    for name in names_in_it.split()
]
# Modules of other packages whose Python code is written for arrays alone: their functions have
# twins. A row may stand here when the package's own tests pass with it.
_TRANSPARENT = ["scipy.signal.windows", "scipy.special._logsumexp"]
# Builtins, and others of Python's library, that call what they are given; and the place of the
# argument that is called. Below zero: it is given by name.
_CALL_BACK: dict[Any, int] = {
    **dict.fromkeys((builtins.map, builtins.filter, functools.reduce), 0),
    **dict.fromkeys((itertools.starmap, itertools.takewhile), 0),
    **dict.fromkeys((itertools.dropwhile, itertools.filterfalse), 0),
    **dict.fromkeys((itertools.accumulate, itertools.groupby), 1),
    **dict.fromkeys((builtins.sorted, builtins.min, builtins.max), -1),
}
# Modules in C whose functions take lazy arrays as any other object.
_KNOWN_MODULES = frozenset(
    ["builtins", "math", "cmath", "_operator", "itertools", "_functools", "_collections", "sys"]
    + ["_warnings", "gc", "_weakref", "_copy", "_contextvars", "atexit", "_random", "_bisect"]
    + ["_heapq", "_abc", "_typing"]
)
# Modules in C whose functions need real numbers; most of their calls have no argument.
_NUMBER_MODULES = frozenset(["time"])
# Python's own modules whose code takes arrays as any other object, and shows them to nobody else.
_HARMLESS_MODULES = (_KNOWN_MODULES | _NUMBER_MODULES) | frozenset(
    ["abc", "bisect", "collections", "contextlib", "copy", "dataclasses", "enum", "fractions"]
    + ["functools", "heapq", "importlib", "inspect", "keyword", "numbers", "operator", "random"]
    + ["re", "reprlib", "string", "textwrap", "types", "typing", "warnings"]
    + ["weakref", "ufuse", "__future__", "sysconfig", "traceback", "pprint", "pathlib", "os"]
)
# Objects whose methods in C take lazy arrays: they keep them, or look at them by their operators.
_KNOWN_OWNERS = (
    *(list, tuple, dict, set, frozenset, range, slice),
    *(collections.deque, collections.OrderedDict, collections.defaultdict, types.MappingProxyType),
    *(type, np.dtype, np.ufunc, BaseException),
)
# Methods and attributes of classes in C, as the classes have them.
_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType)
_DESCRIPTORS = (*_METHODS, types.GetSetDescriptorType, types.MemberDescriptorType)


def _pythons() -> Iterator[Any]:
    ordered: Any = collections.OrderedDict()
    texts: tuple[Any, ...] = ("", "\u20ac", b"", bytearray(), memoryview(b""))
    plain: Any = {}
    views = (
        *(plain.keys(), plain.items(), plain.values()),
        *(ordered.keys(), ordered.items(), ordered.values()),
    )
    forth: tuple[Any, ...] = ((), [], set(), range(0), range(2**70), plain, ordered, *texts, *views)
    back: tuple[Any, ...] = ((), [], range(0), range(2**70), plain, ordered, *views)
    yield from (*vars(builtins).values(), *vars(types).values(), *map(type, views))
    yield from (type(iter(each)) for each in forth)
    yield from (type(reversed(each)) for each in back)
    yield from (type(iter(int, 1)), type(iter(type("", (), {"__getitem__": None})())))


# Classes of Python's own, most of which have no name anywhere.
_PYTHONS = frozenset(each for each in _pythons() if is_a(each, type))
# Functions that go on where something is sent or thrown into them.
_GOES_ON = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)

_Dispatcher: type | None = type(np.sum) if not is_a(np.sum, types.FunctionType) else None
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
_HANDLED = (types.FunctionType, types.BuiltinFunctionType, type, np.ufunc)
# What a context manager used as a decorator makes: NumPy 1's ``errstate`` among others.
_DECORATED = contextlib.ContextDecorator()(lambda: None).__code__
_INSTALLED = tuple(
    {
        folder.rstrip("/") + "/"
        for name in ("stdlib", "platstdlib", "purelib", "platlib")
        if (folder := sysconfig.get_path(name))
    }
)

_NUMPY_FOLDER = os.path.dirname(np.__file__) + "/"
_HARMLESS_FOLDERS = (_NUMPY_FOLDER, tracebacks.FOLDER)
# Code of NumPy's that reads arrays which traced code has not handed to it: the memory of its own
# classes, and any array where an object in C prints what it holds.
_STRANGE_FOLDERS = tuple(
    _NUMPY_FOLDER + each
    for each in ("ma/", "matrixlib/", "testing/", "_core/arrayprint.py", "core/arrayprint.py")
)


def is_stable(function: types.FunctionType) -> bool:
    """Whether the globals of a function are NumPy's or SciPy's own, which do not change.

    A context manager made by ``contextlib`` is as stable as the generator function inside it.
    """
    module = function.__globals__.get("__name__")
    if module == "contextlib" and (inner := getattr(function, "__wrapped__", None)) is not None:
        return is_a(inner, types.FunctionType) and is_stable(inner)
    return function.__code__.co_filename == DISPATCHER_FILE or names.is_library(module)


def reads_memory(function: types.FunctionType) -> bool:
    """Whether a function reads attributes that tell where arrays lie, such as
    ``x.__array_interface__``; lazy arrays do not have them."""
    return not names.MEMORY_INTERFACES.isdisjoint(function.__code__.co_names)


# Installed packages with a jitted function: all of their functions are the user's.
_jitted_packages: set[str] = set()


def own(function: types.FunctionType) -> None:
    """From now on a jitted function, and all others of its package, count as the user's."""
    package = _package_of(function)
    if package in _jitted_packages or is_own(function) or names.is_library(package):
        return
    if package not in sys.stdlib_module_names:
        _jitted_packages.add(package)
        # What call sites and operators know of its functions and classes is no longer true.
        _core.set_callees(stand_in)
        _others.clear()


def is_own(function: types.FunctionType) -> bool:
    """Whether a function is the user's: of no package that was installed, or of one with a jitted
    function."""
    if _package_of(function) in _jitted_packages:
        return True
    return not is_installed(function.__code__.co_filename)


def is_installed(name: str) -> bool:
    """Whether a file is part of an installed package."""
    return name.startswith(_INSTALLED) or any(
        part in name for part in ("/site-packages/", "/dist-packages/")
    )


def is_harmless_code(code: types.CodeType) -> bool | None:
    """Whether code without call sites may run while values are pending.

    Python's own library hands objects on to others, and NumPy gets real arrays where it looks into
    them. None: where NumPy is called to compute a value of these alone.
    """
    name = code.co_filename
    if name == DISPATCHER_FILE or name.startswith(_HARMLESS_FOLDERS):
        return None if name.startswith(_STRANGE_FOLDERS) else True
    # The second is the function that makes a named tuple.
    return tracebacks.is_of_python(name) or code.co_names == ("_tuple_new",)


def _package_of(function: types.FunctionType) -> str:
    return str(function.__globals__.get("__name__")).partition(".")[0]


# What `is_other` has answered.
_others: weakref.WeakKeyDictionary[type, bool | None] = weakref.WeakKeyDictionary()


def _is_named_tuple(kind: type) -> bool:
    """Whether a class is a tuple with names, and has a tuple's operators."""
    return (
        issubclass(kind, tuple)
        and hasattr(kind, "_fields")
        and all(getattr(kind, name) is method for name, method in _OPERATORS_OF_TUPLES)
    )


_OPERATORS_OF_TUPLES = [
    (name, getattr(tuple, name))
    for name in ("__getitem__", "__iter__", "__len__", "__contains__", "__add__", "__mul__")
    + ("__rmul__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__")
]


def is_other(kind: type) -> bool | None:
    """Whether a class is that of another package, whose operators may be compiled code.

    False for the user's classes; None for Python's own, whose operators ask the other operand.
    """
    if kind not in _others:
        module = module_of(kind)
        python = _is_harmless(module) or module == "ufuse._core" or _is_named_tuple(kind)
        _others[kind] = None if python else not _is_users(module)
    return _others[kind]


def module_of(kind: type) -> str:
    """The module of a class; none where its name is all that another package's C code gives it.

    Python takes such a class (SciPy's ``SuperLU`` is one) for a builtin.
    """
    module = str(kind.__module__)
    if module == "builtins" and kind not in _PYTHONS and "__module__" not in vars(kind):
        return ""
    return module


def _is_users(module: str) -> bool:
    """Whether a module is Python code of the user's; what has no file is, such as a notebook."""
    package = module.partition(".")[0]
    if package in _jitted_packages:
        return True
    if names.is_library(package) or package in sys.stdlib_module_names:
        return False
    file = str(getattr(sys.modules.get(module), "__file__", None) or "")
    return module != "" and not (is_installed(file) or file.endswith(tuple(EXTENSION_SUFFIXES)))


def is_code(value: Any) -> bool:
    """Whether a value is a module or a callable, which is guarded; anything else is data."""
    return is_a(value, _CODE) or is_a(value, Jitted)


def is_dispatcher(value: Any) -> bool:
    """Whether a value is a function under NumPy's ``__array_function__`` protocol in C."""
    return _Dispatcher is not None and is_a(value, _Dispatcher)


def is_opaque(module: str) -> bool:
    """Whether the Python functions of a module of NumPy or SciPy get real arrays."""
    if module.partition(".")[0] == "numpy":
        return _is_in(module, _OPAQUE)
    return not _is_in(module, _TRANSPARENT)


def _is_in(module: str, rows: list[str]) -> bool:
    return any(module == name or module.startswith(name + ".") for name in rows)


def _is_standard(module: Any) -> bool:
    if not is_a(module, str):
        return False
    top = module.partition(".")[0]
    return top in sys.stdlib_module_names or top == "ufuse"


def _is_harmless(module: Any) -> bool:
    return is_a(module, str) and module.partition(".")[0] in _HARMLESS_MODULES


# What is called.


def stand_in(value: Any) -> Any:
    """What runs in the place of ``value``.

    Returns
    -------
    callable or None or int
        None: ``value`` itself. A number: ``value`` itself, but functions among its arguments are
        call sites, and so is whatever stands at that place, or is given as ``key`` or ``func``.
    """
    found = _found(value)
    return None if found is value else found


def callee(value: Any) -> Any:
    """What a function of ufuse's calls in the place of ``value``."""
    found = _found(value)
    return value if is_a(found, int) else found


def _found(value: Any) -> Any:
    handler = _handler(value)
    if handler is not None:
        return handler
    if is_a(value, type):
        return _of_class(value)
    if is_a(value, np.ufunc):
        if names.is_python_ufunc(value):
            return caller(value, "user_call", pure=False)
        return value
    if is_a(value, types.FunctionType):
        return _of_function(value)
    if is_a(value, (types.BuiltinFunctionType, types.MethodWrapperType)):
        return _of_builtin(value)
    if is_dispatcher(value):
        found = _of_dispatcher(value, getattr(value, "_implementation", None))
        if not is_a(found, types.FunctionType):
            return found
        return Handled(value, _of_sequence(found) if value in _OF_SEQUENCES else found)
    if is_a(value, Jitted):
        return value._inner()
    if is_a(value, StandIn):
        return value
    if is_a(value, types.MethodType):
        return _of_method(value)
    if is_a(value, functools.partial):
        return functools.partial(_core.site, value.func, *value.args, **value.keywords)
    if is_a(value, _METHODS):
        if value in (object.__setattr__, object.__delattr__, object.__sizeof__):
            return functools.partial(_core.call_on_real, value)
        owner = value.__objclass__
        known = owner in _KNOWN_OWNERS or owner is object or owner is _core.ndarray
        return value if known else caller(value, "user_call", pure=False)
    call = getattr(type(value), "__call__", None)  # noqa: B004
    if is_a(call, types.FunctionType) and is_own(call):
        return functools.partial(_core.site, call, value)
    if not callable(value):
        return value  # raises
    return caller(value, "user_call", pure=False)


def set_handlers(table: Callable[[], dict[Any, Any]]) -> None:
    """``table`` gives the stand-ins that are handlers; the module that has it needs this one."""
    global _handlers
    _handlers = table


_handlers: Callable[[], dict[Any, Any]] = dict


def _handler(value: Any) -> Any:
    if type(value) in _HANDLED or is_dispatcher(value):  # others' `==` may be anything
        return _handlers().get(value)
    return None


# Scalar types whose constructors look at the class of a number.
_OF_REAL = (np.datetime64, np.timedelta64, np.void, np.object_)


def _of_class(value: type) -> Any:
    if value in _CALL_BACK:
        return _CALL_BACK[value]
    if value in (memoryview, bytearray):
        return caller(value, "array", pure=False)
    init = value.__init__  # type: ignore[misc]
    plain = type(value) is type and value.__new__ is object.__new__
    if plain and is_a(init, types.FunctionType) and is_own(init):
        # A class of the user's: what sets its attributes is a call like others.
        return functools.partial(_core.construct, value)
    module = module_of(value)
    standard = module.partition(".")[0] == "numpy" or _is_standard(module)
    if not standard and not issubclass(value, (tuple, BaseException)):
        return caller(value, "user_call", pure=False)
    if names.is_strict(module):
        return caller(value, "user_call", pure=False)
    takes_any = issubclass(value, (np.generic, tuple, BaseException))
    if names.is_library(module) and (not takes_any or issubclass(value, _OF_REAL)):
        # It looks into memory, is compiled, or keeps what it is given.
        return functools.partial(_core.call_real, value)
    return value


def _of_method(value: types.MethodType) -> Any:
    owner, function = value.__self__, value.__func__
    if is_a(owner, _core.ndarray):
        return value
    if names.is_library(type(owner).__module__):
        return caller(value, "not_native", pure=False)  # of NumPy's global random generator
    return functools.partial(_core.site, function, owner)


def _of_function(function: types.FunctionType) -> Any:
    from . import twin

    if twin.is_instrumented(function):
        return function
    wrapped = getattr(function, "__wrapped__", None)
    if function.__code__.co_filename == DISPATCHER_FILE and wrapped is not None:
        implementation = _of_dispatcher(function, wrapped)
        if is_a(implementation, types.FunctionType):
            # NumPy 1's dispatcher is a Python frame that `stacklevel` counts: keep it.
            return twin.dispatcher_twin(function, implementation)
        return implementation
    module = function.__globals__.get("__name__")
    if names.is_strict(module):
        return caller(function, "user_call", pure=True)
    if _is_harmless(module) and function.__code__ is not _DECORATED:
        return function
    if names.is_library(module):
        if is_opaque(str(module)):
            return caller(function, "not_native")
    elif not is_own(function):
        return caller(function, "user_call", pure=False)
    if function.__code__.co_flags & 0x2A0:
        return function if names.is_library(module) else caller(function, "user_call", pure=False)
    if names.is_library(module) and reads_memory(function):
        return caller(function, "memory_exposed", pure=False)
    if not names.is_library(module) and (reason := twin.scanned(function).reason) is not None:
        return caller(function, reason, pure=False)
    try:
        return twin.twin_of(function).function
    except NoSource:
        return caller(function, "no_source", pure=names.is_library(module))


# Functions whose results are new arrays, made of the values of their arguments alone.
_REPEATED = {
    getattr(import_module(module), name, None): reason
    for module, name, form, reason, _ in _core.surface()
    if form == "Repeated" and module != "ndarray"
}


def _of_dispatcher(public: Any, implementation: Any) -> Any:
    """A function under NumPy's ``__array_function__`` dispatcher: its implementation's stand-in."""
    if public in _REPEATED:
        if is_a(implementation, types.FunctionType) and public.__module__ == "numpy":
            # Some import it when they first run, and a call in which that happens is not recorded.
            import_module("numpy.ma")
        return caller(public, _REPEATED[public], pure=True)
    if is_a(implementation, types.FunctionType):
        if "like" in (implementation.__kwdefaults__ or ()):
            return caller(public, "not_native")  # NumPy asks the array given as `like=`
        found = _handler(implementation) or _of_function(implementation)
        # An opaque implementation is called under its public name, as NumPy would.
        if is_a(found, Caller):
            return caller(public, found.reason)
        return found
    return caller(public, "not_native")


# Before NumPy runs one of these, it refuses what is no sequence, a dict's values for example.
_OF_SEQUENCES = (np.stack, np.vstack, np.hstack, np.dstack, np.column_stack)


def _of_sequence(stand_in: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        given = args[0] if args else kwargs.get("arrays", kwargs.get("tup"))
        return stand_in(*args, **kwargs) if hasattr(given, "__getitem__") else NotImplemented

    return call


def _of_builtin(function: Any) -> Any:
    owner = function.__self__
    if is_a(owner, (types.ModuleType, types.NoneType)):
        # A method of a module (`np.__getattribute__`) has no module itself.
        module = getattr(function, "__module__", None) or getattr(owner, "__name__", None)
        if function in _CALL_BACK:
            return _CALL_BACK[function]
        if function in (builtins.round, sys.getsizeof):
            return caller(function, "array", pure=True)
        if function is builtins.id:
            return _core.identity
        if function in (builtins.setattr, builtins.delattr):
            return caller(function, "user_call", pure=False)
        if function is builtins.getattr:
            return _core.get_attribute
        if function in (builtins.isinstance, builtins.hasattr):
            return functools.partial(_core.call_on_like, function)
        if names.is_library(module):
            return caller(function, "not_native")
        if function is operator.call:
            return _core.site
        if module == "_operator" or function in (builtins.divmod, builtins.pow, builtins.sum):
            return functools.partial(_core.call_operator, function)
        if module in _KNOWN_MODULES or module == "ufuse._core":
            return function
        if module in _NUMBER_MODULES:
            return functools.partial(_core.call_real, function)
        return caller(function, "user_call", pure=names.is_strict(module))
    if is_a(owner, (np.ufunc, _core.ndarray)):
        return function
    if is_a(owner, _DESCRIPTORS):
        return caller(function, "user_call", pure=False)
    if is_a(owner, (np.number, np.bool_)):
        return functools.partial(_core.call_real, function)
    kind = owner if is_a(owner, type) else type(owner)
    module = module_of(kind)
    if names.is_library(module):
        return caller(function, "not_native", pure=False)
    if is_a(owner, list) and function.__name__ == "sort":
        return -1
    if is_a(owner, (str, bytes, bytearray, int, float, complex)):
        return functools.partial(_core.call_real, function)
    if is_a(owner, _GOES_ON):
        return caller(function, "user_call", pure=False)
    if is_a(owner, _KNOWN_OWNERS) or kind.__module__ == "ufuse._core":
        return function
    if _is_harmless(module):
        return function
    return caller(function, "user_call", pure=False)


def array_function(function: Any, _types: Any, args: Any, kwargs: Any) -> Any:
    """``__array_function__`` of lazy arrays: NumPy's functions called by code that has no twin."""
    found = callee(function)
    if found is function or not _core.session_active():
        return _core.numpy_call(function, args, kwargs, "not_native", False)
    return found(*args, **kwargs)


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


def caller(function: Callable[..., Any], reason: str, pure: bool | None = None) -> Caller:
    """The ``Caller`` of a function."""
    return Caller(function, reason, is_pure(function) if pure is None else pure)


# Names of NumPy's functions and methods that write to an argument.
WRITERS = frozenset(name for _, name, _, _, writes in _core.surface() if writes)


# Whose functions may write to what they are given: `output=`, `overwrite_a=`, `copy=False`.
_WRITING_MODULES = ["scipy", "numpy.ma", "numpy.random", "numpy.ctypeslib"]


def is_pure(function: Callable[..., Any]) -> bool:
    """Whether a function of NumPy or SciPy leaves its arguments as they are."""
    if _is_in(str(getattr(function, "__module__", "")), _WRITING_MODULES):
        return False
    return getattr(function, "__name__", "") not in WRITERS
