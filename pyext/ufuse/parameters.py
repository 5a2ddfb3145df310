"""Which Python numbers can a recorded call take anew, because they are operands and nothing else?

``parameters(function)`` reads the byte code of a function and of the helpers it calls. A number may
come from a caller with another value as long as each use of it is one that ``_core``'s numbers see
by themselves: an operator, a comparison, a condition, a ufunc, or a parameter of a helper for which
the same holds. Whatever else is done with a variable (``x[:n]``, ``range(n)``, ``type(n)``,
``return n``) makes its value part of the recorded call. A number worked out of others is such a
number itself where its place in the code (a *site*) hands it to nothing but such uses.

Only what is known to be harmless is let through: an instruction that is not in the tables below
counts as a look at all that is on the stack.
"""

from __future__ import annotations

import builtins
import dis
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from . import _core, twin
from .source import sites


class Parameters(NamedTuple):
    """Where numbers are operands and nothing else.

    Attributes
    ----------
    positions : tuple of int
        Positional arguments.
    names : tuple of str
        Keyword arguments.
    sites : tuple of (code, int)
        Offsets of operations in the byte code whose results go into operations only.
    """

    positions: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    sites: tuple[tuple[types.CodeType, int], ...] = ()

    def wrap(self, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Put numbers that are recorded in the places of Python's, in the order of the call."""
        for at in self.positions:
            if at < len(args):
                args[at] = _core.wrap_number(args[at])
        for name, value in kwargs.items():
            if name in self.names:
                kwargs[name] = _core.wrap_number(value)


# A variable or the result of an operation: (id of the code object, name or offset). Equal code
# objects are not the same place.
_Source = tuple[int, "str | int"]
# What is on the stack: a source, ("value", object) of a name, ("null",), or None.
_Item = Any
_NULL = ("null",)
# A load that brings the NULL of a call along puts it below the function before Python 3.13.
_NULL_FIRST = dis.opmap.get("CALL_KW") is None

# Operators that numbers have; of `%` the left operand only, for the right one may be put into text.
_OPERATORS = frozenset(["+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^"])

# Instructions that look at what they take: how many that is, and how much they leave.
_LOOKS: dict[str, Callable[[int], tuple[int, int]]] = {
    "BINARY_SUBSCR": lambda n: (2, 1),
    "BINARY_SLICE": lambda n: (3, 1),
    "STORE_SUBSCR": lambda n: (3, 0),
    "STORE_SLICE": lambda n: (4, 0),
    "BUILD_TUPLE": lambda n: (n, 1),
    "BUILD_LIST": lambda n: (n, 1),
    "BUILD_SLICE": lambda n: (n, 1),
    "UNPACK_SEQUENCE": lambda n: (1, n),
    "IS_OP": lambda n: (2, 1),
    "CONTAINS_OP": lambda n: (2, 1),
    "GET_ITER": lambda n: (1, 1),
    "RETURN_VALUE": lambda n: (1, 0),
}
_NOTHING = frozenset(
    ["RESUME", "NOP", "CACHE", "PRECALL", "EXTENDED_ARG", "NOT_TAKEN", "COPY_FREE_VARS"]
    + ["MAKE_CELL"]
)
_LOADS = frozenset(["LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW"])
_PAIRS = frozenset(["LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"])
_CONSTANTS = frozenset(
    ["LOAD_CONST", "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT", "LOAD_DEREF", "LOAD_CLOSURE"]
)
_ENDS = frozenset(
    ["RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD"]
    + ["JUMP_BACKWARD_NO_INTERRUPT"]
)


class _Reader:
    """Reads functions; knows which sources are looked at and where each one goes."""

    def __init__(self) -> None:
        self.looked_at: set[_Source] = set()
        self.flows: list[tuple[_Source, _Source]] = []
        self.sites: dict[_Source, types.CodeType] = {}
        self.read: set[types.FunctionType] = set()

    def function(self, function: types.FunctionType) -> None:
        if function not in self.read:
            self.read.add(function)
            code = function.__code__
            self.looked_at.update((id(code), name) for name in code.co_cellvars)
            _Walk(self, function).run()

    def close(self) -> None:
        """What goes into something that is looked at is looked at."""
        size = -1
        while size != len(self.looked_at):
            size = len(self.looked_at)
            self.looked_at.update(a for a, b in self.flows if b in self.looked_at)


class _Walk:
    """One pass over the instructions of one function."""

    def __init__(self, reader: _Reader, function: types.FunctionType) -> None:
        self.reader = reader
        self.globals = function.__globals__
        self.code = function.__code__
        self.place = id(self.code)
        self.stack: list[_Item] = []
        self.keywords: tuple[str, ...] = ()
        self.constant: Any = None  # the last one loaded

    def run(self) -> None:
        depth_at: dict[int, int] = {}
        ended = False
        for i in dis.get_instructions(self.code):
            if ended and i.is_jump_target:
                # Only a jump leads here; whatever it brought along was looked at there.
                self.stack = [None] * depth_at.get(i.offset, 0)
            before = len(self.stack)
            self.step(i)
            if i.opcode in dis.hasjrel or i.opcode in dis.hasjabs:
                self.look(self.stack)
                effect = dis.stack_effect(i.opcode, i.arg, jump=True)
                depth_at.setdefault(i.argval, max(before + effect, 0))
            ended = i.opname in _ENDS

    # The stack.

    def pop(self) -> _Item:
        return self.stack.pop() if self.stack else None

    def source(self, item: _Item) -> _Source | None:
        return item if item and type(item[0]) is int else None

    def look(self, items: list[_Item]) -> None:
        for item in items:
            if source := self.source(item):
                self.reader.looked_at.add(source)

    def flow(self, item: _Item, into: _Source) -> None:
        if source := self.source(item):
            self.reader.flows.append((source, into))

    def result(self, offset: int) -> None:
        self.reader.sites[self.place, offset] = self.code
        self.stack.append((self.place, offset))

    def value(self, name: str) -> _Item:
        found = self.globals.get(name, getattr(builtins, name, None))
        return ("value", found)

    # Instructions.

    def step(self, i: dis.Instruction) -> None:
        name, arg = i.opname, i.arg or 0
        if name in _LOADS:
            self.stack.append((self.place, i.argval))
        elif name in _PAIRS:
            self.stack.extend((self.place, variable) for variable in i.argval)
        elif name in _CONSTANTS:
            self.constant = i.argval
            self.stack.append(None)
        elif name == "STORE_FAST":
            self.flow(self.pop(), (self.place, i.argval))
        elif name == "STORE_FAST_STORE_FAST":
            for variable in i.argval:
                self.flow(self.pop(), (self.place, variable))
        elif name == "STORE_FAST_LOAD_FAST":
            self.flow(self.pop(), (self.place, i.argval[0]))
            self.stack.append((self.place, i.argval[1]))
        elif name == "BINARY_OP":
            right, left = self.pop(), self.pop()
            operator = i.argrepr.removesuffix("=")
            if operator not in _OPERATORS:
                self.look([left])
            if operator not in _OPERATORS or operator == "%":
                self.look([right])
            self.result(i.offset)
        elif name in ("UNARY_NEGATIVE", "UNARY_INVERT", "UNARY_POSITIVE"):
            self.pop()
            self.result(i.offset)
        elif name == "COMPARE_OP":
            self.pop()
            self.pop()
            self.stack.append(None)
        elif name in ("UNARY_NOT", "TO_BOOL"):
            self.pop()
            self.stack.append(None)
        elif name == "POP_TOP" or name.startswith("POP_JUMP"):
            self.pop()
        elif name in ("PUSH_NULL", "LOAD_GLOBAL"):
            self.load_global(i)
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            self.load_attribute(i)
        elif name == "KW_NAMES":
            self.keywords = self.code.co_consts[arg]
        elif name in ("CALL", "CALL_KW"):
            self.call(name == "CALL_KW", arg)
        elif name == "COPY" and len(self.stack) >= arg:
            self.stack.append(self.stack[-arg])
        elif name == "SWAP" and len(self.stack) >= arg:
            self.stack[-1], self.stack[-arg] = self.stack[-arg], self.stack[-1]
        elif name in _LOOKS:
            takes, leaves = _LOOKS[name](arg)
            self.look([self.pop() for _ in range(takes)])
            self.stack.extend([None] * leaves)
        elif name not in _NOTHING:
            self.anything(i)

    def anything(self, i: dis.Instruction) -> None:
        """Any other instruction looks at everything, and at the variable that it names."""
        self.look(self.stack)
        for variable in i.argval if isinstance(i.argval, tuple) else (i.argval,):
            if isinstance(variable, str):
                self.reader.looked_at.add((self.place, variable))
        effect = dis.stack_effect(i.opcode, i.arg, jump=False)
        self.stack = [None] * max(len(self.stack) + effect, 0)

    def load_global(self, i: dis.Instruction) -> None:
        if i.opname == "PUSH_NULL":
            self.stack.append(_NULL)
            return
        pair: list[_Item] = [self.value(i.argval)]
        if (i.arg or 0) & 1:
            pair.insert(0 if _NULL_FIRST else 1, _NULL)
        self.stack.extend(pair)

    def load_attribute(self, i: dis.Instruction) -> None:
        base = self.pop()
        self.look([base])
        found = None
        if base and base[0] == "value" and isinstance(base[1], types.ModuleType):
            found = ("value", getattr(base[1], i.argval, None))
        self.stack.append(found)
        if i.opname == "LOAD_METHOD" or dis.stack_effect(i.opcode, i.arg or 0) == 1:
            # Below a function that is no method there is nothing.
            self.stack.insert(len(self.stack) - 1 if _NULL_FIRST else len(self.stack), _NULL)

    def call(self, named: bool, count: int) -> None:
        if named:
            self.pop()
            self.keywords = self.constant if isinstance(self.constant, tuple) else ()
        arguments = [self.pop() for _ in range(count)][::-1]
        upper, lower = self.pop(), self.pop()
        callee = upper if lower == _NULL else lower if upper == _NULL else None
        self.look([upper, lower])
        keywords, self.keywords = self.keywords, ()
        function = callee[1] if callee and callee[0] == "value" else None
        self.stack.append(None)
        if isinstance(function, np.ufunc) and not keywords:
            return
        if not isinstance(function, types.FunctionType) or not twin.is_traced(function):
            self.look(arguments)
            return
        self.reader.function(function)
        code = function.__code__
        first_named = len(arguments) - len(keywords)
        for at, argument in enumerate(arguments):
            if at >= first_named and keywords[at - first_named] in _named(code):
                self.flow(argument, (id(code), keywords[at - first_named]))
            elif at < min(first_named, code.co_argcount):
                self.flow(argument, (id(code), code.co_varnames[at]))
            else:
                self.look([argument])


def _named(code: types.CodeType) -> tuple[str, ...]:
    """The parameters of a function that can be given by name."""
    return code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]


def parameters(function: types.FunctionType) -> Parameters:
    """Read the byte code of ``function`` and of its helpers.

    Parameters
    ----------
    function : types.FunctionType
        A function that ``scan`` finds traceable; names stand for what they stand for now.

    Returns
    -------
    Parameters

    Examples
    --------
    >>> parameters(lambda x, dt, n: x[:n] * (dt / 2)).names
    ('dt',)
    """
    reader = _Reader()
    reader.function(function)
    reader.close()
    code = function.__code__

    def is_operand(name: str) -> bool:
        return (id(code), name) not in reader.looked_at

    return Parameters(
        tuple(i for i in range(code.co_argcount) if is_operand(code.co_varnames[i])),
        tuple(filter(is_operand, _named(code))),
        tuple(_sites(reader)),
    )


def _sites(reader: _Reader) -> Iterator[tuple[types.CodeType, int]]:
    """Operations whose results go into operations only: where they stand in the twins' code."""
    offsets: dict[types.FunctionType, dict[int, int]] = {}
    functions = {id(function.__code__): function for function in reader.read}
    for at, place in reader.sites:
        if (at, place) in reader.looked_at:
            continue
        function = functions[at]
        made = twin.instrumented(function).code
        if function not in offsets:
            offsets[function] = sites.moved_offsets(function.__code__, made)
        if int(place) in offsets[function]:
            yield made, offsets[function][int(place)]
