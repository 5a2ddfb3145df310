"""What do names tell the scan of what is done with a value?

The text of a function says that something named ``resize`` is called, and no more. The tables here
say which names hand out memory, see local variables or change how errors are reported; ``is_pure``
says which values of globals mean the same in each call; ``Meanings`` finds what the names of a
function stand for. A new way by which an array can get out of sight is a name here.
"""

from __future__ import annotations

import builtins
import sys
import types
from typing import Any

import numpy as np

from ufuse import _core

from .facts import Row

_NUMBERS = (int, float, complex)
# Methods and attributes of classes in C, as the classes have them: they refuse lazy arrays.
DESCRIPTORS = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
)
# Standard modules whose C code looks at the types of what it is given: a number must be a `float`,
# bytes must have a buffer. Their functions get real values; their classes cannot be wrapped.
STRICT_MODULES = frozenset(
    ["base64", "binascii", "bz2", "ctypes", "datetime", "decimal", "hashlib", "io", "json", "lzma"]
    + ["time", "zlib"]
)
# Attributes of arrays that are no arrays.
FACTS = frozenset(["shape", "ndim", "size", "dtype", "itemsize", "nbytes", "strides"])
# Builtins by which code sees or changes names without naming them.
REFLECTIVE = frozenset(
    ["exec", "eval", "globals", "locals", "vars", "setattr", "delattr", "compile", "breakpoint"]
)
# Names that hand out an array's memory, so that later writes are not seen.
MEMORY_GLOBALS = frozenset(
    {"nditer", "bytearray", "memoryview", "as_strided", "frombuffer", "from_dlpack"}
)
MEMORY_ATTRIBUTES = frozenset(
    ["nditer", "as_strided", "ctypes", "flat", "data", "setflags", "resize", "byteswap"]
    + ["__array_interface__", "__array_struct__", "__dlpack__", "getbuffer"]
)
# Attributes of arrays that lazy ones do not have.
MEMORY_INTERFACES = frozenset(["__array_interface__", "__array_struct__", "ctypes"])
if _core.numpy_version.flat_needs_real_index:
    MEMORY_INTERFACES |= {"flat"}
# Methods of random generators that fill an array given as `out`.
FILLERS = frozenset(
    ["random", "standard_normal", "standard_exponential", "standard_gamma", "permuted"]
)
# Builtins whose result holds what their arguments hold.
PASSING = frozenset(
    ["enumerate", "zip", "reversed", "iter", "next", "getattr", "map", "filter", "sorted"]
    + ["min", "max"]
)
PURE_BUILTINS = frozenset(
    ["abs", "all", "any", "bool", "complex", "divmod", "enumerate", "float", "int"]
    + ["isinstance", "issubclass", "len", "list", "max", "min", "pow", "range", "reversed"]
    + ["round", "slice", "sorted", "sum", "tuple", "zip", "dict", "set", "frozenset", "str"]
    + ["type", "True", "False", "None", "Exception", "ValueError", "TypeError"]
)

PURE_MODULES = ("numpy", "scipy", "math", "cmath", "_operator", "operator")
CONSTANTS = frozenset(
    [int, float, complex, bool, str, bytes, types.NoneType, types.EllipsisType]
    + [kind for kind in np.sctypeDict.values() if kind not in (np.void, np.object_)]
)

# What sets NumPy's error state, under which operations may have to run at once.
ERROR_STATE = frozenset({"errstate", "seterr", "seterrcall"})
LASTING = frozenset({"seterr", "seterrcall"})  # also after the call
# Who sees a warning, and when, is decided by the filters in force at its line.
FILTERS = frozenset(
    ["catch_warnings", "simplefilter", "filterwarnings", "resetwarnings", "showwarning"]
)
STRICT_MODES = frozenset({"raise", "call", "print", "log"})


def is_strict(module: Any) -> bool:
    """Whether a module's name belongs to ``STRICT_MODULES`` or to the C half of one of them."""
    if not isinstance(module, str):
        return False
    top = module.partition(".")[0].lstrip("_").removeprefix("py")
    return top in STRICT_MODULES or top in ("blake2", "md5", "sha1", "sha2", "sha3")


def is_class_method(value: Any, name: str) -> bool:
    """Whether ``value.name`` is a method or attribute of an array's or a number's class itself."""
    if not (isinstance(value, type) and issubclass(value, (np.ndarray, np.generic, *_NUMBERS))):
        return False
    return isinstance(getattr(value, name, None), DESCRIPTORS)


def is_python_ufunc(ufunc: np.ufunc) -> bool:
    """Whether each element is a call of Python, as of what ``np.frompyfunc`` makes."""
    return all(set(each) <= set("O->") for each in ufunc.types)


def is_pure(value: Any) -> bool:
    """Whether using a global's value means the same each time, as long as it is the same object."""
    kind = type(value)
    if isinstance(value, types.ModuleType):
        top = value.__name__.partition(".")[0]
        return top in PURE_MODULES and ".random" not in value.__name__
    if isinstance(value, types.FunctionType):
        # A helper is looked at by itself; one of Python's library (a clock, a file list) is not.
        top = str(value.__globals__.get("__name__")).partition(".")[0]
        return top in PURE_MODULES or top not in sys.stdlib_module_names
    if isinstance(value, np.ufunc):
        return not is_python_ufunc(value)
    if isinstance(value, types.BuiltinFunctionType):
        owner = value.__self__
        return isinstance(owner, np.ufunc) or (
            isinstance(owner, types.ModuleType | None)
            and (value.__module__ or "").partition(".")[0] in PURE_MODULES
        )
    if isinstance(value, type):
        known = value in (np.ndarray, np.dtype, np.finfo, np.iinfo) or issubclass(value, np.generic)
        return known or value.__module__ == "builtins"
    if hasattr(kind, "__ufuse_inner__"):
        return not value._is_joined  # else it is no twin itself
    if kind is tuple:
        return all(map(is_fixed, value))
    if isinstance(value, np.dtype):
        return value.names is None  # which can be changed
    # A dispatcher of NumPy 2, or a number; subclasses have attributes, records have fields.
    return kind is type(np.sum) or kind in CONSTANTS


def is_fixed(value: Any) -> bool:
    """As ``is_pure`` for a value that is called without a twin: a function may then do anything."""
    return is_pure(value) and not isinstance(value, types.FunctionType)


class Meanings:
    """What the names among the values of a function (``Facts.values``) stand for at the moment."""

    def __init__(self, function: types.FunctionType, values: tuple[Row, ...]) -> None:
        self._values = values
        self._globals = function.__globals__
        free, cells = function.__code__.co_freevars, function.__closure__ or ()
        self._cells = dict(zip(free, cells, strict=True))

    def of(self, at: int) -> Any:
        """What a global or free name, or an attribute of a module, stands for; else None."""
        kind, *what = self._values[at]
        if kind == "attr":
            base = self.of(what[0])
            return getattr(base, what[1], None) if isinstance(base, types.ModuleType) else None
        if kind == "free":
            try:
                return self._cells[what[0]].cell_contents
            except (KeyError, ValueError):
                return None
        if kind != "global":
            return None
        return self._globals.get(what[0], getattr(builtins, what[0], None))

    def of_name(self, at: int) -> Any:
        """The same of names only."""
        return self.of(at) if self._values[at][0] in ("global", "free") else None
