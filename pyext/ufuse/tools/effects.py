"""May a call be made twice: would anybody notice the second time?

``reason(function, args, kwargs)`` says why not, before the call. Whoever wants to compare a call
with plain NumPy asks. The source of the function and of the user's functions that it names is read:
every name and attribute in it must be known to read and write nothing but the arguments, of which
a second call gets copies, and the two global streams of random numbers, whose state can be put
back. What is not known counts as an effect, so a call of something new is left alone.
"""

from __future__ import annotations

import ast
import builtins
import collections
import functools
import inspect
import random
import types
from typing import Any, NamedTuple

import numpy as np

from ufuse import _core, copies
from ufuse._core import Jitted, is_a
from ufuse.source.names import is_library
from ufuse.source.sites import PerCode, chain_of
from ufuse.source.text import NoSource, names_used, source_of
from ufuse.tracing import callees
from ufuse.tracing.twin import free_variables

from .explain import shown_file

_BUILTINS = frozenset(
    ["abs", "all", "any", "ascii", "bin", "bool", "bytes", "callable", "chr", "complex", "dict"]
    + ["divmod", "enumerate", "filter", "float", "format", "frozenset", "hash", "hex", "int"]
    + ["isinstance", "issubclass", "iter", "len", "list", "map", "max", "min", "next", "oct"]
    + ["ord", "pow", "range", "repr", "reversed", "round", "set", "slice", "sorted", "str"]
    + ["sum", "super", "tuple", "type", "zip", "object", "property"]
)
# Modules whose functions do no more than compute.
_MODULES = frozenset(
    ["numpy", "scipy", "math", "cmath", "operator", "_operator", "itertools", "functools"]
    + ["_functools", "statistics", "fractions", "numbers", "copy", "collections", "_collections"]
    + ["bisect", "_bisect", "heapq", "_heapq", "typing", "dataclasses", "_warnings", "warnings"]
)
_OTHER_MODULES = ("numpy.ctypeslib", "numpy.f2py", "numpy.distutils", "scipy.io", "scipy.datasets")
# Functions of NumPy that read or write files, or change how NumPy works; beginnings of names.
_WITH_EFFECTS = (
    *("save", "load", "fromfile", "fromregex", "tofile", "dump", "memmap", "genfromtxt"),
    *("open", "DataSource", "seterr", "setbufsize", "set_", "show", "info", "test", "source"),
    *("lookfor", "errprint"),
    *("simplefilter", "filterwarnings", "resetwarnings", "catch_warnings", "showwarning"),
)
_NEW_STREAMS = frozenset(
    ["default_rng", "RandomState", "SeedSequence", "PCG64", "PCG64DXSM", "MT19937", "Philox"]
    + ["SFC64", "Random", "seed"]
)
_DATA = (
    *(bool, int, float, complex, str, bytes, types.NoneType, types.EllipsisType),
    *(types.NotImplementedType, slice, range, np.generic, np.dtype),
)
# The attributes of arrays, numbers, texts, containers, generators and ufuncs.
_ATTRIBUTES = frozenset(
    name
    for kind in (
        *(np.ndarray, np.float64, np.complex128, np.int64, np.bool_, np.dtype, np.ufunc, np.finfo),
        *(np.iinfo, str, bytes, list, tuple, dict, set, frozenset, int, float, complex, range),
        *(slice, collections.deque, collections.Counter, BaseException, np.random.Generator),
        *(np.random.RandomState, random.Random, types.MethodType),
    )
    for name in dir(kind)
) - {"tofile", "dump", "data", "ctypes", "seed", "__class__", "__dict__", "__reduce__"}
# Attributes that may lead to files and the like, whatever object they are taken from.
_DOORS = frozenset(
    ["tofile", "dump", "write", "writelines", "read", "readline", "readlines", "flush", "close"]
    + ["open", "save", "send", "recv", "ctypes", "__dict__", "__class__", "__globals__"]
)
# Methods that Python calls by itself, and that a class may define without anybody noticing.
_NEUTRAL = frozenset(
    ["__init__", "__new__", "__repr__", "__str__", "__hash__", "__getnewargs__", "__replace__"]
)
_TOO_MUCH = frozenset(["__getattr__", "__getattribute__", "__setattr__", "__reduce_ex__"])


class _Mentions(NamedTuple):
    """What stands in the text of one function; with lines."""

    chains: list[tuple[tuple[str, ...], int]]  # ("np", "linalg", "norm"), of names from outside
    attributes: list[tuple[str, bool, int]]  # of anything else, and whether they are called
    seeded: int  # line of a generator made from what may be None
    stores: int  # line of the first store into an array or container, 0: there is none
    strange: tuple[str, int] | None  # a statement that is not looked into


_known: PerCode[_Mentions] = PerCode()


def reason(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Why a call should not be made twice; None where nobody would notice.

    Parameters
    ----------
    function : callable
    args, kwargs
        Of the call. Arrays in them, through containers and objects, may be written by it.

    Examples
    --------
    >>> reason(lambda x: x[0] + 1, ([np.arange(3)],), {}) is None
    True
    >>> reason(lambda x: print(x), (1,), {}).partition(": ")[2]
    '`print` may do what others see'
    """
    try:
        _Look(args, kwargs).at(function)
    except _Effect as found:
        return str(found)
    except Exception as error:  # of an object of somebody's that was asked what it is
        return f"it cannot be looked into: {error!r}"
    return None


class _Effect(Exception):
    pass


class _Look:
    """A look at one call; raises what it finds."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._seen: set[int] = set()
        self._where = "the arguments"
        self._function: Any = None
        self._call = args, kwargs
        self._stores = self._seeded = self._shared = ""
        containers, self._leaves = copies.contents((args, kwargs), objects=True)
        # Those of a class in Python: named tuples among them.
        self._objects = [each for each in containers if type(each) not in (tuple, list, dict)]

    def at(self, function: Any) -> None:
        """Look at the function that is called with these arguments."""
        self._function = function
        for leaf in self._leaves:
            self._argument(leaf)
        for kind in {type(each) for each in self._objects}:
            self._class(kind)
        self._value(function, getattr(function, "__name__", "function"))
        if self._stores and self._shared:
            raise _Effect(f"{self._stores}: what is changed there may be {self._shared}")
        if self._seeded and any(leaf is None for leaf in self._leaves):
            raise _Effect(f"{self._seeded}: the system may be asked for random numbers")

    def _argument(self, leaf: Any) -> None:
        if is_a(leaf, np.ndarray) and is_library(type(leaf).__module__):
            if leaf.dtype.hasobject and not all(map(_is_data, leaf.flat)):
                raise _Effect("an argument is an array of objects, which have no copies")
        elif not (_is_data(leaf) or is_a(leaf, copies.GENERATORS)):
            if not (callees.is_code(leaf) or is_a(leaf, types.MethodType)):
                raise _Effect(f"an argument is of the type {_type_name(leaf)}, which has no copies")
            self._value(leaf, getattr(leaf, "__name__", _type_name(leaf)))

    def _class(self, kind: type) -> None:
        """What Python calls of a class by itself must be harmless."""
        for each in kind.__mro__:
            if each.__module__ == "builtins":
                continue
            for name, value in vars(each).items():
                code = getattr(value, "__code__", None)
                if code is not None and code.co_filename == "<string>":
                    continue  # written by Python, for a dataclass or a named tuple
                if name in _TOO_MUCH:
                    raise _Effect(f"`{kind.__name__}` has a `{name}` of its own")
                special = name.startswith("__") and name.endswith("__") and name not in _NEUTRAL
                if special and is_a(value, types.FunctionType):
                    self._value(value, name)

    # What names stand for.

    def _value(self, value: Any, name: str) -> None:
        """A value that the code names, or is given, is data or a function without effects."""
        if _is_data(value) or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if is_a(value, (np.ndarray, list, dict, set, tuple, frozenset)):
            return self._data(value, name)
        if is_a(value, Jitted):
            value = value.__wrapped__
        if is_a(value, functools.partial):
            self._value(value.func, name)
            for given in (*value.args, *value.keywords.values()):
                self._value(given, name)
        elif is_a(value, types.FunctionType) and not callees.is_stable(value):
            if callees.is_own(value):
                return self._source(value)
            self._library(value, name)
        elif is_a(value, types.MethodType):
            if any(value.__self__ is each for each in self._objects):
                return self._value(value.__func__, name)
            self._owner(value.__self__, name)
        elif is_a(value, np.ufunc):
            if all(set(each) <= set("O->") for each in value.types):
                self._fail(name)
        else:
            self._library(value, name)
        return None

    def _data(self, value: Any, name: str) -> None:
        containers, leaves = copies.contents(value)
        for leaf in leaves:
            if is_a(leaf, (set, frozenset)):
                for item in leaf:
                    self._value(item, name)
            elif not (is_a(leaf, np.ndarray) and not leaf.dtype.hasobject):
                self._value(leaf, name)
        if any(not is_a(each, (tuple, frozenset)) for each in (*containers, *leaves)):
            self._shared = self._shared or f"`{name}`"

    def _library(self, value: Any, name: str) -> None:
        """Of Python's library, NumPy or SciPy: known by name and module."""
        named = getattr(value, "__name__", name)
        owner = getattr(value, "__self__", None)
        if is_a(value, type):
            self._kind(value, name)
        elif owner is not None and not is_a(owner, types.ModuleType):
            self._owner(owner, named)
        elif getattr(builtins, named, None) is value:
            if named not in _BUILTINS:
                self._fail(name)
        else:
            self._module(str(getattr(value, "__module__", None)), named, name)

    def _kind(self, kind: type, name: str) -> None:
        if issubclass(kind, (np.generic, BaseException)) or kind in (np.ndarray, np.dtype):
            return
        if kind.__module__ == "builtins":
            if kind.__name__ not in _BUILTINS:
                self._fail(name)
        elif issubclass(kind, tuple) and hasattr(kind, "_fields"):
            pass
        else:
            self._module(kind.__module__, kind.__name__, name)

    def _owner(self, owner: Any, name: str) -> None:
        """A method of this object."""
        streams = (np.random.mtrand._rand, random._inst, *self._leaves)
        if name == "seed":  # which asks the system, if it is not told
            self._fail(name)
        if any(owner is each for each in streams) or is_a(owner, np.ufunc):
            return
        if not (is_a(owner, type) and is_library(owner.__module__)):
            self._fail(name)

    def _module(self, module: str, named: str, name: str) -> None:
        other = any(module == each or module.startswith(each + ".") for each in _OTHER_MODULES)
        random_numbers = module.startswith("numpy.random")
        known = module.partition(".")[0] in _MODULES and not other and not random_numbers
        if not known or named.startswith(_WITH_EFFECTS):
            self._fail(name)

    # What stands in a text.

    def _source(self, function: types.FunctionType) -> None:
        code = function.__code__
        mentions = _known.get(code)
        if mentions is None:
            try:
                mentions = _mentions(function)
            except NoSource:
                raise _Effect(f"the source of `{function.__name__}` is not known") from None
            _known.set(code, mentions)
        before = self._where
        place = functools.partial("{}:{}".format, shown_file(code.co_filename))
        self._where = place(code.co_firstlineno)
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._value(default, "a default value")
            if default is None and not self._given(function):
                self._leaves.append(None)
        if mentions.stores:
            self._stores = self._stores or place(mentions.stores)
        if mentions.seeded:
            self._seeded = self._seeded or place(mentions.seeded)
        cells = {name: value for _, name, value in free_variables(function)}
        space = collections.ChainMap(cells, function.__globals__, vars(builtins))
        for chain, line in mentions.chains:
            self._where = place(line)
            self._chain(space, chain)
        for name, called, line in mentions.attributes:
            self._where = place(line)
            self._attribute(name, called)
        self._where = before
        if mentions.strange is not None:
            raise _Effect(f"{place(mentions.strange[1])}: {mentions.strange[0]}")

    def _given(self, function: types.FunctionType) -> bool:
        """Whether all arguments of the function are given in the call that is looked at."""
        if function is not self._function:
            return False
        try:
            bound = inspect.signature(function).bind(*self._call[0], **self._call[1])
        except TypeError:
            return False
        return len(bound.arguments) == len(bound.signature.parameters)

    def _chain(self, space: Any, chain: tuple[str, ...]) -> None:
        value = space.get(chain[0], ...)
        if value is ...:
            return  # Python complains, both times
        rest = chain[1:]
        while rest and is_a(value, types.ModuleType):
            try:
                value = _core.quietly(getattr, value, rest[0])
            except AttributeError:
                return
            rest = rest[1:]
        if is_a(value, types.ModuleType):
            self._fail(".".join(chain))  # handed on as an object
        self._value(value, ".".join(chain[: len(chain) - len(rest)]))
        for name in rest:
            self._attribute(name, True)

    def _attribute(self, name: str, called: bool) -> None:
        found = False
        for owner in self._objects:
            if name in getattr(owner, "__dict__", ()) or name in getattr(owner, "_fields", ()):
                found = True  # its value has been looked at
                continue
            value = inspect.getattr_static(type(owner), name, None)
            if value is None:
                continue
            found = True
            if is_a(value, property):
                value = value.fget
            elif is_a(value, (staticmethod, classmethod)):
                value = value.__func__
            self._value(value, name)
        if found or name in _ATTRIBUTES:
            return
        if called or name in _DOORS:
            self._fail(f".{name}")

    def _fail(self, name: str) -> None:
        raise _Effect(f"{self._where}: `{name}` may do what others see")


def _is_data(value: Any) -> bool:
    """A number, a text or the like, whose operators are Python's or NumPy's."""
    kind = type(value)
    return is_a(value, _DATA) and (
        kind.__module__ in ("builtins", "types") or is_library(kind.__module__)
    )


def _type_name(value: Any) -> str:
    return type(value).__qualname__


def _mentions(function: types.FunctionType) -> _Mentions:
    code = function.__code__
    reader = _Reader({*names_used(code), *code.co_freevars})
    reader.generic_visit(source_of(function).definition)
    return _Mentions(reader.chains, reader.attributes, reader.seeded, reader.stores, reader.strange)


class _Reader(ast.NodeVisitor):
    """Collects what one function's text names."""

    def __init__(self, outside: set[str]) -> None:
        self.outside = outside
        self.chains: list[tuple[tuple[str, ...], int]] = []
        self.attributes: list[tuple[str, bool, int]] = []
        self.seeded = self.stores = 0
        self.strange: tuple[str, int] | None = None

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and node.id in self.outside:
            self.chains.append(((node.id,), node.lineno))

    def visit_Attribute(self, node: ast.Attribute, called: bool = False) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.stores = self.stores or node.lineno
        chain = chain_of(node)
        if chain and chain[0] in self.outside:
            self.chains.append((chain, node.lineno))
            return
        self.attributes.append((node.attr, called, node.lineno))
        self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        chain = chain_of(node.func)
        if any(keyword.arg == "out" for keyword in node.keywords):
            self.stores = self.stores or node.lineno
        if chain and chain[-1] in _NEW_STREAMS and chain[0] in self.outside and node.args:
            first = node.args[0]
            if not isinstance(first, ast.Constant):
                self.seeded = self.seeded or node.lineno
            elif first.value is None:
                self.visit(node.func)
        elif isinstance(node.func, ast.Attribute):
            if node.func.attr in _WRITERS:
                self.stores = self.stores or node.lineno
            self.visit_Attribute(node.func, called=True)
        else:
            self.visit(node.func)
        for each in (*node.args, *node.keywords):
            self.visit(each)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.stores = self.stores or node.lineno
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.stores = self.stores or node.lineno
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        self.strange = self.strange or (f"`{ast.unparse(node)}`", node.lineno)

    visit_Nonlocal = visit_Global

    def visit_Import(self, node: ast.stmt | ast.expr) -> None:
        text = ast.unparse(node).partition("\n")[0]
        self.strange = self.strange or (f"`{text}` is not looked into", node.lineno)

    visit_ImportFrom = visit_ClassDef = visit_Import
    visit_Yield = visit_YieldFrom = visit_Await = visit_Import


# Functions and methods that write into what they are given: of NumPy, and of Python's containers.
_WRITERS = callees.WRITERS | {
    *("append", "extend", "insert", "pop", "popitem", "update", "setdefault", "remove", "clear"),
    *("add", "discard", "reverse", "appendleft", "popleft", "extendleft", "rotate", "subtract"),
}
