"""Where does each value on the stack of a code object come from?

``walk(code, events)`` reads the instructions in order, keeps a stack of origins instead of values,
and tells ``events`` what is loaded, assigned and called. It judges nothing; ``scan`` does.
One row of handlers per kind of instruction: those of Python 3.11 to 3.14. An opcode that is not
known changes the stack by its effect and leaves something fresh behind.
"""

from __future__ import annotations

import dis
import sys
import types
from collections.abc import Callable
from typing import Any, Protocol

# Where LOAD_GLOBAL puts the NULL of a call: below the function before Python 3.13, above it since.
_NULL_FIRST = 0 if sys.version_info < (3, 13) else 1

# A value's origin: ("fresh",), ("const",), ("param", name), ("local", name), ("global", name),
# ("free", name), ("attr", base, name), ("item", base), ("args", (origins...)), ("foreign",).
Origin = tuple[Any, ...]
FRESH: Origin = ("fresh",)
CONST: Origin = ("const",)
NULL: Origin = ("null",)
FOREIGN: Origin = ("foreign",)


class Events(Protocol):
    """Who is told what the code does."""

    line: int  # of the instruction at hand, set by the walk

    def variable(self, name: str) -> Origin:
        """The origin of a local or free variable."""

    def assign(self, name: str, value: Origin) -> None:
        """A local or free variable is assigned."""

    def load_global(self, name: str) -> None:
        """A global or builtin is loaded."""

    def load_attribute(self, base: Origin, name: str) -> None:
        """An attribute is loaded."""

    def call(self, callee: Origin, arguments: list[Origin], keywords: tuple[str, ...]) -> Origin:
        """A call; ``arguments`` with the last one first. Gives the origin of what it returns."""

    def import_module(self) -> None:
        """A module is imported."""

    def fail(self, reason: str, detail: str) -> None:
        """The function cannot be traced; raises."""


def walk(code: types.CodeType, events: Events) -> None:
    """Tell ``events`` what the instructions of ``code`` do, one basic block after the other."""
    machine = _Machine(code, events)
    for instruction in dis.get_instructions(code):
        machine.step(instruction)


class _Machine:
    """The stack of origins between two instructions."""

    def __init__(self, code: types.CodeType, events: Events) -> None:
        self.code = code
        self.events = events
        self.stack: list[Origin] = []
        self.keywords: tuple[str, ...] = ()  # of the call that follows
        self.constant: Any = None  # the last one loaded
        self.at_label: dict[int, list[Origin]] = {}  # the stack that a jump brings along

    def pop(self, n: int = 1) -> Origin:
        """The last one of ``n`` popped."""
        last: Origin = FOREIGN
        for _ in range(n):
            last = self.stack.pop() if self.stack else FOREIGN
        return last

    def popped(self, n: int) -> list[Origin]:
        return [self.pop() for _ in range(n)]

    def push(self, *origins: Origin) -> None:
        self.stack.extend(origins)

    def top(self) -> Origin:
        return self.stack[-1] if self.stack else FOREIGN

    def step(self, instruction: dis.Instruction) -> None:
        if instruction.positions is not None and instruction.positions.lineno is not None:
            self.events.line = instruction.positions.lineno
        if instruction.offset in self.at_label:
            self.stack = self.at_label[instruction.offset]
        before = list(self.stack)
        _HANDLERS.get(instruction.opname, _by_effect)(self, instruction)
        if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs:
            effect = dis.stack_effect(instruction.opcode, instruction.arg, jump=True)
            there = before[: len(before) + effect] if effect < 0 else before + [FRESH] * effect
            self.at_label.setdefault(instruction.argval, there)


_Handler = Callable[[_Machine, dis.Instruction], None]
_HANDLERS: dict[str, _Handler] = {}


def _on(*opnames: str) -> Callable[[_Handler], _Handler]:
    def register(handler: _Handler) -> _Handler:
        for opname in opnames:
            _HANDLERS[opname] = handler
        return handler

    return register


def _by_effect(m: _Machine, i: dis.Instruction) -> None:
    """Any other instruction."""
    effect = dis.stack_effect(i.opcode, i.arg, jump=False)
    if effect >= 0:
        m.push(*[FRESH] * effect)
    else:
        m.pop(-effect)
    if m.stack and not i.opname.startswith(("POP_JUMP", "JUMP", "RETURN", "POP_")):
        m.stack[-1] = FRESH


@_on("RESUME", "NOP", "CACHE", "PRECALL", "EXTENDED_ARG", "NOT_TAKEN", "GET_ITER")
@_on("COPY_FREE_VARS", "MAKE_CELL", "RETURN_GENERATOR")
def _nothing(m: _Machine, i: dis.Instruction) -> None:
    """The stack stays as it is."""


# Variables and constants.


@_on("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_FAST_AND_CLEAR")
@_on("LOAD_DEREF", "LOAD_CLASSDEREF")
def _load(m: _Machine, i: dis.Instruction) -> None:
    m.push(m.events.variable(i.argval))


@_on("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW")
def _load_two(m: _Machine, i: dis.Instruction) -> None:
    m.push(*(m.events.variable(name) for name in i.argval))


@_on("STORE_FAST", "STORE_DEREF", "STORE_FAST_MAYBE_NULL")
def _store(m: _Machine, i: dis.Instruction) -> None:
    m.events.assign(i.argval, m.pop())


@_on("STORE_FAST_STORE_FAST")
def _store_two(m: _Machine, i: dis.Instruction) -> None:
    for name in i.argval:
        m.events.assign(name, m.pop())


@_on("STORE_FAST_LOAD_FAST")
def _store_and_load(m: _Machine, i: dis.Instruction) -> None:
    m.events.assign(i.argval[0], m.pop())
    m.push(m.events.variable(i.argval[1]))


@_on("LOAD_CONST", "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT")
def _load_const(m: _Machine, i: dis.Instruction) -> None:
    m.push(CONST)
    m.constant = i.argval


@_on("LOAD_GLOBAL", "LOAD_NAME")
def _load_global(m: _Machine, i: dis.Instruction) -> None:
    m.events.load_global(i.argval)
    pair: list[Origin] = [("global", i.argval)]
    if i.opname == "LOAD_GLOBAL" and (i.arg or 0) & 1:
        pair.insert(_NULL_FIRST, NULL)
    m.push(*pair)


@_on("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_NAME")
def _store_global(m: _Machine, i: dis.Instruction) -> None:
    m.events.fail("store_global", f"the global name `{i.argval}` is assigned")


# Attributes and items.


@_on("LOAD_ATTR", "LOAD_METHOD")
def _load_attr(m: _Machine, i: dis.Instruction) -> None:
    base = m.pop()
    m.events.load_attribute(base, i.argval)
    m.push(("attr", base, i.argval))
    if i.opname == "LOAD_METHOD" or dis.stack_effect(i.opcode, i.arg or 0) == 1:
        m.push(base)


@_on("BINARY_SUBSCR", "BINARY_SLICE")
def _item(m: _Machine, i: dis.Instruction) -> None:
    m.pop(2 if i.opname == "BINARY_SLICE" else 1)
    m.push(("item", m.pop()))


@_on("STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE", "DELETE_SUBSCR")
def _assign(m: _Machine, i: dis.Instruction) -> None:
    m.pop(-dis.stack_effect(i.opcode, i.arg))


# Operators and containers.


@_on("BINARY_OP")
def _binary(m: _Machine, i: dis.Instruction) -> None:
    if i.argrepr == "[]":
        return _item(m, i)
    m.pop()
    left = m.pop()
    # `a += b` may give back `a` itself.
    m.push(("args", (left, FRESH)) if i.argrepr.endswith("=") else FRESH)


@_on("BUILD_LIST", "BUILD_TUPLE", "BUILD_SET")
def _build(m: _Machine, i: dis.Instruction) -> None:
    m.push(("args", (FRESH, *m.popped(i.arg or 0))))


@_on("FOR_ITER")
def _next(m: _Machine, i: dis.Instruction) -> None:
    m.push(("item", m.top()))


@_on("UNPACK_SEQUENCE")
def _unpack(m: _Machine, i: dis.Instruction) -> None:
    source = m.pop()
    m.push(*[("item", source)] * (i.arg or 0))


@_on("UNPACK_EX")
def _unpack_starred(m: _Machine, i: dis.Instruction) -> None:
    source = m.pop()
    m.push(*[("item", source)] * ((i.arg or 0) % 256 + (i.arg or 0) // 256 + 1))


# Calls.


@_on("KW_NAMES")
def _keyword_names(m: _Machine, i: dis.Instruction) -> None:
    m.keywords = m.code.co_consts[i.arg or 0]


@_on("CALL", "CALL_KW")
def _call(m: _Machine, i: dis.Instruction) -> None:
    if i.opname == "CALL_KW":
        m.pop()
        m.keywords = m.constant if isinstance(m.constant, tuple) else ()
    arguments = m.popped(i.arg or 0)
    upper, lower = m.pop(), m.pop()
    keywords, m.keywords = m.keywords, ()
    m.push(m.events.call(upper if lower == NULL else lower, arguments, keywords))


@_on("CALL_FUNCTION_EX")
def _call_starred(m: _Machine, i: dis.Instruction) -> None:
    items = m.popped(1 - dis.stack_effect(i.opcode, i.arg or 0))
    callee = next((o for o in reversed(items) if o != NULL), FOREIGN)
    m.push(m.events.call(callee, items, ()))


# The stack itself, and the rest.


@_on("PUSH_NULL")
def _push_null(m: _Machine, i: dis.Instruction) -> None:
    m.push(NULL)


@_on("POP_TOP")
def _pop_top(m: _Machine, i: dis.Instruction) -> None:
    m.pop()


@_on("COPY")
def _copy(m: _Machine, i: dis.Instruction) -> None:
    m.push(m.stack[-i.arg] if i.arg and len(m.stack) >= i.arg else FOREIGN)


@_on("SWAP")
def _swap(m: _Machine, i: dis.Instruction) -> None:
    assert i.arg is not None
    while len(m.stack) < i.arg:
        m.stack.insert(0, FOREIGN)
    m.stack[-1], m.stack[-i.arg] = m.stack[-i.arg], m.stack[-1]


@_on("PUSH_EXC_INFO")
def _push_exc_info(m: _Machine, i: dis.Instruction) -> None:
    m.stack = [FRESH, FRESH]


@_on("LOAD_BUILD_CLASS")
def _build_class(m: _Machine, i: dis.Instruction) -> None:
    m.events.fail("class_body", "a class is made inside the function")


@_on("IMPORT_NAME")
def _import(m: _Machine, i: dis.Instruction) -> None:
    m.events.import_module()
    m.pop(2)
    m.push(FRESH)


@_on("IMPORT_FROM")
def _import_from(m: _Machine, i: dis.Instruction) -> None:
    m.push(FRESH)
