"""Could a lazy array escape unseen from this function, and is the function pure?

``scan(function)`` reads the byte code of a function and of the code nested in it (comprehensions,
lambdas) once. ``twin`` asks it before it makes a twin and ``jit`` before each kind of call. Nothing
here runs user code or knows of lazy arrays: it follows where each value on the stack came from, one
basic block after the other. What it cannot follow counts as foreign, so an unknown opcode or a new
Python version costs speed, never an answer.
"""

from __future__ import annotations

import builtins
import dis
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

_GENERATOR = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR

# Methods that keep their argument in the object they are called on.
_KEEPERS = frozenset(
    [
        "append",
        "extend",
        "insert",
        "add",
        "update",
        "setdefault",
        "appendleft",
        "extendleft",
        "put",
        "put_nowait",
        "push",
        "send",
        "write",
        "writelines",
        "register",
        "set_result",
        "__setitem__",
        "__setattr__",
        "__setstate__",
    ]
)
# Methods and functions that write into an array that is their object or first argument.
_WRITING_METHODS = frozenset(
    ["fill", "sort", "partition", "put", "itemset", "setfield", "byteswap", "resize"]
)
_WRITING_FUNCTIONS = frozenset(
    ["at", "copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis", "shuffle"]
    + ["setitem", "iadd", "isub", "imul", "itruediv", "ifloordiv", "ipow", "imod", "iand", "ior"]
)
# Attributes of arrays that are no arrays.
_FACTS = frozenset(["shape", "ndim", "size", "dtype", "itemsize", "nbytes", "strides"])
# Builtins that see or change names behind the code's back.
_REFLECTIVE = frozenset(
    ["exec", "eval", "globals", "locals", "vars", "setattr", "delattr", "compile", "breakpoint"]
)
# Names that hand out an array's memory, so that later writes are not seen.
_MEMORY_GLOBALS = frozenset({"nditer", "memoryview", "as_strided", "frombuffer", "from_dlpack"})
_MEMORY_ATTRIBUTES = frozenset(
    [
        "nditer",
        "as_strided",
        "ctypes",
        "flat",
        "data",
        "setflags",
        "resize",
        "byteswap",
        "__array_interface__",
        "__array_struct__",
        "__dlpack__",
        "getbuffer",
    ]
)
# Methods of random generators that fill an array given as `out`.
_FILLERS = frozenset(
    ["random", "standard_normal", "standard_exponential", "standard_gamma", "permuted"]
)
# Builtins whose result holds what their arguments hold.
_PASSING = frozenset(
    [
        "enumerate",
        "zip",
        "reversed",
        "iter",
        "next",
        "getattr",
        "map",
        "filter",
        "sorted",
        "min",
        "max",
    ]
)
_PURE_BUILTINS = frozenset(
    [
        "abs",
        "all",
        "any",
        "bool",
        "complex",
        "divmod",
        "enumerate",
        "float",
        "int",
        "isinstance",
        "issubclass",
        "len",
        "list",
        "max",
        "min",
        "pow",
        "range",
        "reversed",
        "round",
        "slice",
        "sorted",
        "sum",
        "tuple",
        "zip",
        "dict",
        "set",
        "frozenset",
        "str",
        "type",
        "True",
        "False",
        "None",
        "Exception",
        "ValueError",
        "TypeError",
    ]
)

_PURE_MODULES = ("numpy", "scipy", "math", "cmath", "_operator", "operator")
_CONSTANTS = (int, float, complex, str, bytes, types.NoneType, np.generic, np.dtype)

# Error states under which an operation cannot run later than it stands.
_ERROR_STATE = frozenset({"errstate", "seterr", "seterrcall"})
_LASTING = frozenset({"seterr", "seterrcall"})  # beyond the call
# Who sees a warning, and when, is decided by the filters in force at its line.
_FILTERS = frozenset(
    ["catch_warnings", "simplefilter", "filterwarnings", "resetwarnings", "showwarning"]
)
_STRICT_MODES = frozenset({"raise", "call", "print", "log"})

# Where LOAD_GLOBAL puts the NULL of a call: below the function before Python 3.13, above it since.
_NULL_FIRST = 0 if sys.version_info < (3, 13) else 1

# A value's origin: ("fresh",), ("const",), ("param", name), ("local", name), ("global", name),
# ("free", name), ("attr", base, name), ("item", base), ("args", (origins...)), ("foreign",).
Origin = tuple[Any, ...]
FRESH: Origin = ("fresh",)
CONST: Origin = ("const",)
NULL: Origin = ("null",)
FOREIGN: Origin = ("foreign",)


class Scan(NamedTuple):
    """What the byte code of one function says.

    Attributes
    ----------
    reason : str or None
        Row of ``reasons.def`` why the function must run as plain NumPy; None when it can be traced.
    detail : str
        What was found, for the user.
    line : int
        Line of ``detail`` in the function's file.
    mutated : frozenset of str
        Parameters whose elements are stored into, or which take part in a store.
    pure : bool
        Whether equal arguments and equal globals always mean the same recorded operations.
    """

    reason: str | None
    detail: str
    line: int
    mutated: frozenset[str]
    pure: bool


def is_pure(value: Any) -> bool:
    """Whether using a global's value means the same each time, as long as it is the same object."""
    if isinstance(value, types.ModuleType):
        top = value.__name__.partition(".")[0]
        return top in _PURE_MODULES and ".random" not in value.__name__
    if isinstance(value, (types.FunctionType, np.ufunc)):
        return True  # a helper is looked at by itself
    if isinstance(value, types.BuiltinFunctionType):
        owner = value.__self__
        return isinstance(owner, np.ufunc) or (
            isinstance(owner, types.ModuleType | None)
            and (value.__module__ or "").partition(".")[0] in _PURE_MODULES
        )
    if isinstance(value, type):
        return value.__module__.partition(".")[0] in ("numpy", "builtins")
    if callable(value):
        kind = type(value)
        return hasattr(kind, "__ufuse_inner__") or kind.__module__.partition(".")[0] == "numpy"
    if type(value) is tuple:
        return all(map(is_pure, value))
    return isinstance(value, _CONSTANTS)


def _texts(code: types.CodeType) -> Iterator[str]:
    """The string constants of a code object."""
    for constant in code.co_consts:
        if isinstance(constant, str):
            yield constant


class _Finding(Exception):
    def __init__(self, reason: str, detail: str, line: int) -> None:
        super().__init__(reason)
        self.reason, self.detail, self.line = reason, detail, line


class _Scanner:
    """One function with the code nested in it; names of cells are shared between them."""

    def __init__(self, code: types.CodeType, lookup: Callable[[str, bool], Any]) -> None:
        self.root = code
        self.lookup = lookup
        self.assigned: dict[str, list[Origin]] = {}
        self.stores: list[tuple[Origin, Origin, str, int]] = []  # container, value, reason, line
        self.mutated: set[str] = set()
        self.pure = True
        self.line = code.co_firstlineno

    # What a name stands for.

    def callable_global(self, origin: Origin) -> bool:
        """Whether a global or free name is a module, a function or a class at the moment."""
        value = self.lookup(origin[1], origin[0] == "free")
        return isinstance(value, types.ModuleType) or callable(value)

    def is_number(self, origin: Origin) -> bool:
        """Whether a global or free name is a number at the moment."""
        value = self.lookup(origin[1], origin[0] == "free")
        return isinstance(value, (int, float, complex, np.generic))

    def roots(self, origin: Origin, seen: frozenset[str] = frozenset()) -> Iterator[Origin]:
        """The origins an origin can be traced back to: const, fresh, param or foreign ones."""
        kind = origin[0]
        if kind in ("fresh", "const", "param", "foreign"):
            yield origin
        elif kind == "local":
            if origin[1] not in seen:
                for source in self.assigned.get(origin[1], [FRESH]):
                    yield from self.roots(source, seen | {origin[1]})
        elif kind == "item":
            for root in self.roots(origin[1], seen):
                yield FRESH if root == CONST else root
        elif kind == "attr":
            base = origin[1]
            if base[0] in ("global", "free") and self.callable_global(base):
                yield FRESH
            else:
                for root in self.roots(base, seen):
                    # An attribute of a parameter may be anything its object holds, except for the
                    # views that arrays have as attributes, and what is no array.
                    if origin[2] in _FACTS:
                        yield FRESH
                        continue
                    own = root == FRESH or origin[2] in ("T", "real", "imag", "mT")
                    yield root if own else FOREIGN
        elif kind == "args":
            for source in origin[1]:
                yield from self.roots(source, seen)
        elif kind in ("global", "free"):
            known = self.callable_global(origin) or self.is_number(origin)
            yield FRESH if known else FOREIGN
        else:
            yield FOREIGN

    def result_of(self, callee: Origin, arguments: list[Origin]) -> Origin:
        """The origin of what a call returns."""
        if callee[0] == "global" and callee[1] in _PASSING:
            return ("args", tuple(arguments))
        if callee[0] == "attr":
            return ("item", callee[1]) if callee[1][0] != "global" else FRESH
        return FRESH

    # Events.

    def fail(self, reason: str, detail: str) -> None:
        raise _Finding(reason, detail, self.line)

    def call(self, callee: Origin, arguments: list[Origin], keywords: tuple[str, ...]) -> None:
        """``arguments`` as they are popped: the last one first."""
        if callee[0] == "attr" and callee[2] in _KEEPERS:
            self.stores.append((callee[1], FRESH, "store_in_container", self.line))
        if callee[0] == "attr" and callee[2] in _WRITING_METHODS:
            self.stores.append((callee[1], FRESH, "store_in_array", self.line))
        if callee[0] == "attr" and callee[2] in _FILLERS and "out" in keywords:
            self.fill_by_object(callee[1], callee[2])
        name = callee[2] if callee[0] == "attr" else callee[1] if callee[0] == "global" else None
        if name in _WRITING_FUNCTIONS and arguments:
            self.stores.append((arguments[-1], FRESH, "store_in_array", self.line))
        for keyword, argument in zip(reversed(keywords), arguments, strict=False):
            if keyword == "out":
                self.stores.append((argument, FRESH, "store_in_array", self.line))

    def fill_by_object(self, base: Origin, name: str) -> None:
        """A random generator writes into memory; names of modules are swapped, objects are not."""
        origin = base
        while origin[0] == "attr":
            origin = origin[1]
        if origin[0] not in ("global", "free") or not isinstance(
            self.lookup(origin[1], origin[0] == "free"), types.ModuleType
        ):
            self.fail("memory_exposed", f"`.{name}` writes into an array's memory")

    def holds_no_array(self, origin: Origin) -> bool:
        """Whether storing a constant into this object cannot write into an array's memory."""
        if origin[0] not in ("global", "free"):
            return False
        return type(self.lookup(origin[1], origin[0] == "free")) in (dict, list, set)

    def load_global(self, name: str) -> None:
        if name in _MEMORY_GLOBALS:
            self.fail("memory_exposed", f"`{name}` hands out an array's memory")
        if name in _REFLECTIVE and self.lookup(name, False) is getattr(builtins, name):
            self.fail("reflection", f"`{name}` can see every local name")
        value = self.lookup(name, False)
        if hasattr(builtins, name) and value is getattr(builtins, name):
            self.pure = self.pure and name in _PURE_BUILTINS
        else:
            self.pure = self.pure and is_pure(value)

    def load_attribute(self, base: Origin, name: str) -> None:
        if name in _MEMORY_ATTRIBUTES and any(
            root[0] in ("fresh", "param") for root in self.roots(base)
        ):
            if base[0] in ("global", "free") and name not in _MEMORY_GLOBALS:
                return
            self.fail("memory_exposed", f"`.{name}` hands out an array's memory")
        if name == "shuffle":
            self.fill_by_object(base, name)
        if name == "random":
            self.pure = False

    # One code object.

    def run(self, code: types.CodeType, nested: bool) -> None:
        names = _ERROR_STATE.intersection(code.co_names)
        if found := _FILTERS.intersection(code.co_names):
            self.fail("error_state", f"`{min(found)}` changes who sees a warning")
        if names & _LASTING or (names and _STRICT_MODES.intersection(_texts(code))):
            self.fail("error_state", "floating-point errors shall raise or call somebody at once")
        if code.co_flags & _GENERATOR and not nested:
            self.fail("generator", "a generator or coroutine keeps its values between calls")
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & 0x4) + bool(code.co_flags & 0x8)
        # A nested function's parameters are given by code that is scanned as well.
        params = frozenset(() if nested else code.co_varnames[:count])
        for name in params:
            self.assigned.setdefault(name, []).append(("param", name))
        self.block(code, nested)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self.run(constant, nested=True)

    def name_origin(self, code: types.CodeType, name: str, nested: bool) -> Origin:
        if name in self.root.co_freevars:
            return ("free", name)
        if nested and name not in code.co_freevars:
            name = f"{code.co_qualname}.{name}"
            self.assigned.setdefault(name, [FRESH])
        return ("local", name)

    def assign(self, code: types.CodeType, name: str, value: Origin, nested: bool) -> None:
        origin = self.name_origin(code, name, nested)
        if origin[0] == "free":
            self.fail("store_outer", f"`{name}` of the enclosing function is assigned")
        self.assigned.setdefault(origin[1], []).append(value)

    def block(self, code: types.CodeType, nested: bool) -> None:
        stack: list[Origin] = []
        keywords: tuple[str, ...] = ()  # of the call that follows
        constant: Any = None  # the last one loaded
        at_label: dict[int, list[Origin]] = {}

        def pop(n: int = 1) -> Origin:
            last: Origin = FOREIGN
            for _ in range(n):
                last = stack.pop() if stack else FOREIGN
            return last

        def push(*origins: Origin) -> None:
            stack.extend(origins)

        for instruction in dis.get_instructions(code):
            op, arg, value = instruction.opname, instruction.arg, instruction.argval
            if instruction.positions is not None and instruction.positions.lineno is not None:
                self.line = instruction.positions.lineno
            if instruction.offset in at_label:
                stack = at_label[instruction.offset]
            before = list(stack)

            if op == "KW_NAMES":
                keywords = code.co_consts[arg or 0]
                continue
            if op in ("RESUME", "NOP", "CACHE", "PRECALL", "EXTENDED_ARG", "NOT_TAKEN"):
                continue
            if op in ("COPY_FREE_VARS", "MAKE_CELL", "RETURN_GENERATOR"):
                continue
            if op in ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_FAST_AND_CLEAR"):
                push(self.name_origin(code, value, nested))
            elif op in ("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"):
                push(*(self.name_origin(code, name, nested) for name in value))
            elif op in ("LOAD_DEREF", "LOAD_CLASSDEREF"):
                push(self.name_origin(code, value, nested))
            elif op in ("STORE_FAST", "STORE_DEREF", "STORE_FAST_MAYBE_NULL"):
                self.assign(code, value, pop(), nested)
            elif op == "STORE_FAST_STORE_FAST":
                for name in value:
                    self.assign(code, name, pop(), nested)
            elif op == "STORE_FAST_LOAD_FAST":
                self.assign(code, value[0], pop(), nested)
                push(self.name_origin(code, value[1], nested))
            elif op in ("LOAD_CONST", "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT"):
                push(CONST)
                constant = value
            elif op in ("LOAD_GLOBAL", "LOAD_NAME"):
                self.load_global(value)
                pair: list[Origin] = [("global", value)]
                if op == "LOAD_GLOBAL" and (arg or 0) & 1:
                    pair.insert(_NULL_FIRST, NULL)
                push(*pair)
            elif op in ("LOAD_ATTR", "LOAD_METHOD"):
                base = pop()
                self.load_attribute(base, value)
                push(("attr", base, value))
                method = op == "LOAD_METHOD" or (
                    dis.stack_effect(instruction.opcode, arg or 0) == 1
                )
                if method:
                    push(base)
            elif op == "PUSH_NULL":
                push(NULL)
            elif op == "POP_TOP":
                pop()
            elif op == "COPY":
                push(stack[-arg] if arg and len(stack) >= arg else FOREIGN)
            elif op == "SWAP":
                assert arg is not None
                while len(stack) < arg:
                    stack.insert(0, FOREIGN)
                stack[-1], stack[-arg] = stack[-arg], stack[-1]
            elif op in ("CALL", "CALL_KW"):
                if op == "CALL_KW":
                    pop()
                    keywords = constant if isinstance(constant, tuple) else ()
                arguments = [pop() for _ in range(arg or 0)]
                upper, lower = pop(), pop()
                callee = upper if lower == NULL else lower
                self.call(callee, arguments, keywords)
                keywords = ()
                push(self.result_of(callee, arguments))
            elif op == "CALL_FUNCTION_EX":
                depth = -dis.stack_effect(instruction.opcode, arg or 0) + 1
                items = [pop() for _ in range(depth)]
                callee = next((o for o in reversed(items) if o != NULL), FOREIGN)
                self.call(callee, items, ())
                push(self.result_of(callee, items))
            elif op in ("STORE_SUBSCR", "STORE_SLICE"):
                pop(2 if op == "STORE_SLICE" else 1)
                container = pop()
                self.stores.append((container, pop(), "store_in_container", self.line))
            elif op == "DELETE_SUBSCR":
                pop()
                self.stores.append((pop(), CONST, "store_in_container", self.line))
            elif op in ("BINARY_SUBSCR", "BINARY_SLICE") or (
                op == "BINARY_OP" and instruction.argrepr == "[]"
            ):
                pop(2 if op == "BINARY_SLICE" else 1)
                push(("item", pop()))
            elif op == "BINARY_OP":
                pop()
                left = pop()
                # `a += b` may give back `a` itself.
                inplace = instruction.argrepr.endswith("=")
                if inplace:
                    self.stores.append((left, FRESH, "inplace", self.line))
                push(("args", (left, FRESH)) if inplace else FRESH)
            elif op == "STORE_ATTR":
                pop()
                self.fail("store_attribute", f"an attribute `.{value}` is assigned")
            elif op in ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_NAME"):
                self.fail("store_global", f"the global name `{value}` is assigned")
            elif op == "LOAD_BUILD_CLASS":
                self.fail("class_body", "a class is made inside the function")
            elif op == "GET_ITER":
                pass
            elif op == "FOR_ITER":
                push(("item", stack[-1] if stack else FOREIGN))
            elif op == "UNPACK_SEQUENCE":
                source = pop()
                push(*[("item", source)] * (arg or 0))
            elif op == "UNPACK_EX":
                source = pop()
                push(*[("item", source)] * ((arg or 0) % 256 + (arg or 0) // 256 + 1))
            elif op in ("BUILD_LIST", "BUILD_TUPLE", "BUILD_SET"):
                items = [pop() for _ in range(arg or 0)]
                push(("args", (FRESH, *items)))
            elif op == "PUSH_EXC_INFO":
                stack = [FRESH, FRESH]
            elif op == "IMPORT_NAME":
                self.pure = False
                pop(2)
                push(FRESH)
            elif op == "IMPORT_FROM":
                push(FRESH)
            else:
                effect = dis.stack_effect(instruction.opcode, arg, jump=False)
                if effect >= 0:
                    push(*[FRESH] * effect)
                else:
                    pop(-effect)
                if stack and not op.startswith(("POP_JUMP", "JUMP", "RETURN", "POP_")):
                    stack[-1] = FRESH
            if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs:
                effect = dis.stack_effect(instruction.opcode, arg, jump=True)
                there = before[: len(before) + effect] if effect < 0 else before + [FRESH] * effect
                at_label.setdefault(value, there)

    # The verdict.

    def verdict(self) -> Scan:
        try:
            self.run(self.root, nested=False)
            for container, value, reason, line in self.stores:
                self.line = line
                for root in self.roots(container):
                    if root[0] == "param":
                        self.mutated.add(root[1])
                    elif root[0] != "foreign":
                        continue
                    elif reason == "inplace":
                        self.fail("store_in_array", "what is changed may be an array's memory")
                    elif value != CONST or not self.holds_no_array(container):
                        self.fail(reason, "a value is stored in an object from outside")
        except _Finding as found:
            return Scan(found.reason, found.detail, found.line, frozenset(self.mutated), False)
        return Scan(None, "", 0, frozenset(self.mutated), self.pure)


def scan(function: types.FunctionType) -> Scan:
    """Read the byte code of ``function``.

    Parameters
    ----------
    function : types.FunctionType
        A Python function; its globals and closure are looked at for what names stand for now.

    Returns
    -------
    Scan

    Examples
    --------
    >>> kept = []
    >>> scan(lambda x: kept.append(x * 2)).reason
    'store_in_container'
    >>> scan(lambda x: [x * 2, x]).reason is None
    True
    """
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))

    def lookup(name: str, free: bool) -> Any:
        if free:
            try:
                return cells[name].cell_contents
            except (KeyError, ValueError):
                return None
        if name in function.__globals__:
            return function.__globals__[name]
        return getattr(builtins, name, None)

    return _Scanner(function.__code__, lookup).verdict()
