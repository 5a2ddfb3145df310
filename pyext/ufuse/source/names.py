"""What do the names in a function's text stand for, and is that the same in each call?

``Meanings`` finds what the names of a function stand for; ``is_pure`` says which values of globals
mean the same in each call. The tables name builtins and modules of which that, and whether they can
be called while a function is traced, is known.
"""

from __future__ import annotations

import builtins
import sys
import types
from typing import Any

import numpy as np

from ufuse import _core
from ufuse._core import Jitted, is_a

from .facts import Row

# Standard modules whose C code looks at the types of what it is given: a number must be a `float`,
# bytes must have a buffer. Their functions get real values; their classes cannot be wrapped.
STRICT_MODULES = frozenset(
    ["base64", "binascii", "bz2", "ctypes", "datetime", "decimal", "hashlib", "io", "json", "lzma"]
    + ["time", "zlib"]
)
# Builtins by which code sees local variables without naming them.
REFLECTIVE = frozenset(["exec", "eval", "locals", "vars", "compile", "breakpoint"])
# Attributes of arrays that lazy ones do not have.
MEMORY_INTERFACES = frozenset(["__array_interface__", "__array_struct__", "ctypes"])
if _core.numpy_version.flat_needs_real_index:
    MEMORY_INTERFACES |= {"flat"}
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


def is_library(module: Any) -> bool:
    """Whether a module's name belongs to NumPy or SciPy, whose globals do not change."""
    return is_a(module, str) and module.partition(".")[0] in ("numpy", "scipy")


def is_strict(module: Any) -> bool:
    """Whether a module's name belongs to ``STRICT_MODULES`` or to the C half of one of them."""
    if not is_a(module, str):
        return False
    top = module.partition(".")[0].lstrip("_").removeprefix("py")
    return top in STRICT_MODULES or top in ("blake2", "md5", "sha1", "sha2", "sha3")


def is_python_ufunc(ufunc: np.ufunc) -> bool:
    """Whether each element is a call of Python, as of what ``np.frompyfunc`` makes."""
    return all(set(each) <= set("O->") for each in ufunc.types)


def is_pure(value: Any) -> bool:
    """Whether using a global's value means the same each time, as long as it is the same object."""
    kind = type(value)
    if is_a(value, types.ModuleType):
        top = value.__name__.partition(".")[0]
        return top in PURE_MODULES and ".random" not in value.__name__
    if is_a(value, types.FunctionType):
        # A helper is looked at by itself; one of Python's library (a clock, a file list) is not.
        top = str(value.__globals__.get("__name__")).partition(".")[0]
        return top in PURE_MODULES or top not in sys.stdlib_module_names
    if is_a(value, np.ufunc):
        return not is_python_ufunc(value)
    if is_a(value, types.BuiltinFunctionType):
        owner = value.__self__
        return is_a(owner, np.ufunc) or (
            is_a(owner, (types.ModuleType, types.NoneType))
            and (value.__module__ or "").partition(".")[0] in PURE_MODULES
        )
    if is_a(value, type):
        known = value in (np.ndarray, np.dtype, np.finfo, np.iinfo) or issubclass(value, np.generic)
        return known or value.__module__ == "builtins"
    if is_a(value, Jitted):
        return not value._is_joined  # else it is no twin itself
    if kind is tuple:
        return all(map(is_fixed, value))
    if is_a(value, np.dtype):
        return value.names is None  # which can be changed
    # A dispatcher of NumPy 2, or a number; subclasses have attributes, records have fields.
    return kind is type(np.sum) or kind in CONSTANTS


def is_fixed(value: Any) -> bool:
    """As ``is_pure`` for a value that is called without a twin: a function may then do anything."""
    return is_pure(value) and not is_a(value, types.FunctionType)


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
            # A module's own `__getattr__` runs where the user's code asks for it, nowhere else.
            return vars(base).get(what[1]) if is_a(base, types.ModuleType) else None
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
