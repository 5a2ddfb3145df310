"""The same code in which each call ``f(x)`` asks ``site(f, x)`` first.

``instrumented(function, hooks)`` gives the code object; file name, lines and columns are those of
the source, so tracebacks, warnings, debuggers and coverage show the user's own. Names, variables
and everything else stay as they are.
"""

from __future__ import annotations

import ast
import dis
import functools
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar, cast

from ufuse import _core

from . import kept
from .kept import Chain
from .text import UNREADABLE, NoSource, compiled, nested, source_of


class Hooks(NamedTuple):
    """What instrumented code calls; constants of the code, without Python frames.

    Attributes
    ----------
    site : callable
        ``site(f, *args, **kwargs)`` in the place of ``f(*args, **kwargs)``.
    same : callable
        ``same(a, b)`` in the place of ``a is b``.
    managed : callable or None
        ``with managed(c)`` in the place of ``with c``. None: it stays.
    found : callable or None
        ``found(x.a)`` and ``found(x[i])`` in the places of ``x.a`` and ``x[i]``, where they are
        read and not called. None: these stay.
    value : callable or None
        ``value(x, text, line)`` in the place of each operation ``x``: a call, an operator, an
        index; and after each assignment that changes an array. None: these stay.
    operand : callable or None
        ``operand(x)`` in the place of ``x`` where Python asks ``x`` first what an operator means,
        as in ``x @ y``; and ``x += operand(x, y)`` in the place of ``x += y``. None: these stay.
    indexed : callable or None
        ``indexed(x)`` in the place of ``x`` where it has an index, as in ``x[i] = y``. None: it
        stays.
    own : callable or None
        ``own(f)`` of each function ``f`` that the code makes, before its decorators get it. None:
        it is not told.
    """

    site: Callable[..., Any]
    same: Callable[[Any, Any], bool]
    managed: Callable[[Any], Any] | None
    found: Callable[[Any], Any] | None
    value: Callable[[Any, str, int], Any] | None = None
    operand: Callable[..., Any] | None = None
    indexed: Callable[[Any], Any] | None = None
    own: Callable[[Any], Any] | None = None


# What stands for the hooks until the code object is made.
_PLACES = Hooks(*(f"\0ufuse: {name}".encode() for name in Hooks._fields))  # type: ignore[arg-type]
Value = TypeVar("Value")


class PerCode(Generic[Value]):
    """What is known of code objects while they live; equal ones are not the same."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[types.CodeType], Value]] = {}

    def get(self, code: types.CodeType) -> Value | None:
        """What is known of a code object; None where nothing is."""
        known = self._known.get(id(code))
        return known[1] if known is not None and known[0]() is code else None

    def set(self, code: types.CodeType, value: Value) -> None:
        """Know this of a code object."""
        forget = functools.partial(PerCode._forget, self._known, id(code))
        self._known[id(code)] = weakref.ref(code, forget), value

    @staticmethod
    def _forget(known: dict[int, Any], address: int, _: object) -> None:
        known.pop(address, None)


# The original of each code object that was made.
_originals: PerCode[types.CodeType] = PerCode()


class Instrumented(NamedTuple):
    """The code of a twin, and what it reads attributes of.

    Attributes
    ----------
    code : types.CodeType
        Variables of enclosing functions are in the order of ``co_freevars``.
    chains : frozenset of tuple of str
        ``("np", "linalg", "norm")`` for ``np.linalg.norm``, of each name that begins a chain.
    """

    code: types.CodeType
    chains: frozenset[Chain]


def chain_of(node: ast.expr) -> Chain:
    """``("np", "linalg", "norm")`` of ``np.linalg.norm``; empty for what begins with no name."""
    found: list[str] = []
    while isinstance(node, ast.Attribute):
        found.append(node.attr)
        node = node.value
    return (node.id, *reversed(found)) if isinstance(node, ast.Name) else ()


_LEAVES = frozenset([ast.Name, ast.Constant, ast.Load, ast.Store, ast.Del])
# What such an expression makes is of a type of Python's own.
_MADE_HERE = (
    *(ast.Constant, ast.JoinedStr, ast.Tuple, ast.List, ast.Dict, ast.Set),
    *(ast.ListComp, ast.DictComp, ast.SetComp),
)


class _Sites(ast.NodeTransformer):
    def __init__(self, hooks: Hooks) -> None:
        self.hooks = hooks
        self.chains: set[Chain] = set()

    def visit(self, node: ast.AST) -> Any:
        """As of the base class, which would ask of each name and number what to do."""
        return node if type(node) in _LEAVES else super().visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if chain := chain_of(node):
            self.chains.add(chain)
        self.generic_visit(node)
        return self._found(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.value, _MADE_HERE) and self.hooks.indexed is not None:
            node.value = _call(_PLACES.indexed, [node.value], [], node.value)
        return self._found(node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        node.left = self._operand(node.left)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        if self.hooks.operand is not None and isinstance(node.target, ast.Name):
            changed = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
            node.value = _call(_PLACES.operand, [changed, node.value], [], node.value)
        return node

    def _operand(self, node: ast.expr) -> ast.expr:
        if self.hooks.operand is None or isinstance(node, _MADE_HERE):
            return node
        return _call(_PLACES.operand, [node], [], node)

    def _found(self, node: ast.Attribute | ast.Subscript) -> ast.expr:
        if self.hooks.found is None or not isinstance(node.ctx, ast.Load):
            return node
        return _call(_PLACES.found, [node], [], node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Call) and _is_place(node.func.func, _PLACES.found):
            node.func = node.func.args[0]
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "super" and not node.args:
            return node  # it looks into the frame of its caller
        return _call(_PLACES.site, [node.func, *node.args], node.keywords, node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        identity = len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot))
        if len(node.ops) == 1 and not identity:
            if isinstance(node.ops[0], (ast.In, ast.NotIn)):
                node.comparators = [self._operand(node.comparators[0])]
            else:
                node.left = self._operand(node.left)
        if not identity or any(isinstance(each, ast.Constant) for each in sides):
            return node
        same = _call(_PLACES.same, sides, [], node)
        if isinstance(node.ops[0], ast.Is):
            return same
        return ast.copy_location(ast.UnaryOp(ast.Not(), same), node)

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        # A pattern calls nothing.
        node.guard = node.guard and self.visit(node.guard)
        node.body = [self.visit(each) for each in node.body]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._makes(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._makes(node)

    def _makes(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self.generic_visit(node)
        if self.hooks.own is None:
            return node
        # Where the last decorator stands, so the function begins at the line at which it began.
        place: Any = _PLACES.own
        before = node.decorator_list[-1] if node.decorator_list else node
        node.decorator_list.append(ast.copy_location(ast.Constant(place), before))
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.generic_visit(node)
        return node if self.hooks.own is None else _call(_PLACES.own, [node], [], node)

    def visit_With(self, node: ast.With) -> ast.AST:
        self.generic_visit(node)
        for item in node.items if self.hooks.managed is not None else ():
            given = item.context_expr
            item.context_expr = _call(_PLACES.managed, [given], [], given)
        return node


_LONGEST_TEXT = 200


class _Operations(_Sites):
    """The same, in which the value of each operation is told."""

    def _told(self, node: Any, visit: Callable[[Any], Any]) -> Any:
        mark = _mark(node)
        made = visit(node)
        if made is node and isinstance(node, ast.Call):
            return node  # super()
        return _call(_PLACES.value, [made, *mark], [], node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return cast(ast.AST, self._told(node, super().visit_Call))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        return cast(ast.AST, self._told(node, super().visit_Compare))

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if not isinstance(node.ctx, ast.Load):
            return super().visit_Subscript(node)
        return cast(ast.AST, self._told(node, super().visit_Subscript))

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        return self._told(node, super().visit_BinOp)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        return self._told(node, self.generic_visit)

    def visit_Assign(self, node: ast.Assign) -> Any:
        changed = [each for each in node.targets if not isinstance(each, ast.Name)]
        statements = self._changed(node, changed)
        self.generic_visit(node)
        return statements

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        statements = self._changed(node, [node.target])
        super().visit_AugAssign(node)
        return statements

    def _changed(self, node: ast.stmt, targets: list[ast.expr]) -> list[ast.stmt]:
        statements: list[ast.stmt] = [node]
        for target in targets:
            while isinstance(target, ast.Subscript):
                target = target.value
            if isinstance(target, ast.Name):
                name = ast.copy_location(ast.Name(target.id, ast.Load()), target)
                told = _call(_PLACES.value, [name, *_mark(node)], [], name)
                statements.append(ast.copy_location(ast.Expr(told), node))
        return statements


def _mark(node: ast.stmt | ast.expr) -> list[ast.expr]:
    """Text and line of an operation."""
    text = ast.unparse(node)[:_LONGEST_TEXT]
    return [ast.copy_location(ast.Constant(value), node) for value in (text, node.lineno)]


def _is_place(node: ast.expr, place: Any) -> bool:
    return isinstance(node, ast.Constant) and node.value is place


def _call(
    place: Any, arguments: list[ast.expr], keywords: list[ast.keyword], node: ast.expr
) -> ast.Call:
    hook = ast.copy_location(ast.Constant(place), arguments[0])
    return ast.copy_location(ast.Call(hook, arguments, keywords), node)


def instrumented(function: types.FunctionType, hooks: Hooks) -> Instrumented:
    """The code of a function with ``hooks`` at its call sites and the like.

    Parameters
    ----------
    function : types.FunctionType
        Its source is read.
    hooks : Hooks
        What is called there.

    Returns
    -------
    Instrumented

    Raises
    ------
    NoSource
        Where the source is not known for certain.
    """
    code = function.__code__
    variant = " ".join(name for name in Hooks._fields if getattr(hooks, name) is not None)
    known = kept.read(code, variant)
    if known is None:
        known = _with_places(function, hooks)
        kept.put(code, variant, *known)
    made, chains = known
    return Instrumented(_filled(made, code, dict(zip(_PLACES, hooks, strict=True))), chains)


def _with_places(
    function: types.FunctionType, hooks: Hooks
) -> tuple[types.CodeType, frozenset[Chain]]:
    tree, position = source_of(function)
    sites = (_Sites if hooks.value is None else _Operations)(hooks)
    try:
        made = list(nested(compiled(sites.visit(tree), function.__code__)))[position]
    except UNREADABLE as error:
        raise NoSource(f"it cannot be compiled with call sites: {error}") from error
    return made, frozenset(sites.chains)


def original_of(code: types.CodeType) -> types.CodeType | None:
    """The code that ``instrumented`` made a code object from; None for any other."""
    return _originals.get(code)


def _filled(
    made: types.CodeType, original: types.CodeType, hooks: dict[Any, Any]
) -> types.CodeType:
    # In the order in which they stand: the rewriting neither adds nor removes any.
    inner = (each for each in original.co_consts if isinstance(each, types.CodeType))
    constants = tuple(
        _filled_inside(each, next(inner), hooks)
        if isinstance(each, types.CodeType)
        else hooks.get(each, each)
        if isinstance(each, bytes)
        else each
        for each in made.co_consts
    )
    code = made.replace(co_consts=constants, co_qualname=original.co_qualname)
    _originals.set(code, original)
    return code


def _filled_inside(
    made: types.CodeType, original: types.CodeType, hooks: dict[Any, Any]
) -> types.CodeType:
    code = _filled(made, original, hooks)
    _core.set_own_code(code, original)
    return code


def moved_offsets(original: types.CodeType, made: types.CodeType) -> dict[int, int]:
    """Where the operators of a code object stand in the one that was made from it.

    Returns
    -------
    dict
        Offsets of instructions in ``made`` by those in ``original``.
    """
    there = dict(_operators(made))
    return {at: there[key] for key, at in _operators(original) if key in there}


def _operators(code: types.CodeType) -> Iterator[tuple[Any, int]]:
    """Each operator's place in the text, and its offset; what stands twice is counted."""
    seen: dict[Any, int] = {}
    for i in dis.get_instructions(code):
        if i.opname.startswith(("BINARY_OP", "UNARY_")):
            place = (i.opname, i.arg, i.positions)
            seen[place] = seen.get(place, 0) + 1
            yield (place, seen[place]), i.offset
