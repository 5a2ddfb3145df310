"""The same code in which each call ``f(x)`` asks ``site(f, x)`` first.

``instrumented(function, hooks)`` gives the code object; file name, lines and columns are those of
the source, so tracebacks, warnings, debuggers and coverage show the user's own. Names, variables
and everything else stay as they are.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar, cast

from ufuse import _core
from ufuse._core import is_a

from . import heads, kept
from .facts import Facts, facts_of, mangled
from .text import UNREADABLE, NoSource, Source, compiled, nested, source_of

Chain = tuple[str, ...]


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
    attribute : callable or None
        ``attribute(x, "a")`` in the place of ``x.a`` where it is read. None: it stays, and nothing
        below is called.
    found : callable or None
        ``found(x[i])`` in the place of ``x[i]``, where it is read, and of a name ``x`` that is
        iterated over.
    owner : callable or None
        ``owner(x).a`` in the place of ``x.a`` where it is assigned or deleted.
    changed : callable or None
        ``changed(x)[i]`` in the place of ``x[i]`` where it is assigned or deleted.
    begin : callable or None
        See ``augment``.
    augment : callable or None
        ``augment("iadd", begin(x, "a"), y)`` in the place of ``x.a += y``.
    operand : callable or None
        ``operand(x)`` in the place of ``x`` where Python asks ``x`` first what an operator means,
        as in ``x @ y``; and ``x += operand(x, y)`` in the place of ``x += y``.
    compared : callable or None
        ``compared(x)`` in the place of ``x`` in ``x == y`` and ``y in x``.
    indexed : callable or None
        ``indexed(x)[i]`` in the place of ``x[i]`` where it is read.
    known : callable or None
        ``known(x)`` in the place of ``x`` where it is another operand, and of a name ``x`` that is
        asked for its truth, taken apart, or put into text.
    value : callable or None
        ``value(x, text, line)`` in the place of each operation ``x``: a call, an operator, an
        index; and after each assignment that changes an array. None: these stay.
    own : callable or None
        ``own(f)`` in the place of each function ``f`` that the code makes, before its decorators
        get it. None: it stays.
    spread : callable or None
        ``spread(f)(*args, **kwargs)`` in the place of ``f(*args, **kwargs)``. None: ``site`` is
        called there, too.
    outside : callable or None
        ``outside(x)`` in the place of ``x`` where it is assigned to a global name or to a variable
        of an enclosing function; and ``g = outside("iadd", g, x)`` in the place of ``g += x``.
        None: it stays.
    """

    site: Callable[..., Any]
    same: Callable[[Any, Any], bool]
    managed: Callable[[Any], Any] | None = None
    attribute: Callable[[Any, str], Any] | None = None
    found: Callable[[Any], Any] | None = None
    owner: Callable[[Any], Any] | None = None
    changed: Callable[[Any], Any] | None = None
    begin: Callable[[Any, str], Any] | None = None
    augment: Callable[[str, Any, Any], None] | None = None
    operand: Callable[..., Any] | None = None
    compared: Callable[[Any], Any] | None = None
    indexed: Callable[[Any], Any] | None = None
    known: Callable[[Any], Any] | None = None
    value: Callable[[Any, str, int], Any] | None = None
    own: Callable[[Any], Any] | None = None
    spread: Callable[[Any], Callable[..., Any]] | None = None
    outside: Callable[..., Any] | None = None


# Constants that stand in the code for the hooks until these are filled in.
_PLACES = Hooks(*(f"\0ufuse: {name}".encode() for name in Hooks._fields))  # type: ignore[arg-type]
_PLAIN_SITE: Any = b"\0ufuse: plain site"
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


# Code objects that were made. Their originals, which know them, are not kept here: both would stay.
_made: PerCode[bool] = PerCode()


class Instrumented(NamedTuple):
    """The code of a twin, what it reads attributes of, and what the text says of its values.

    Attributes
    ----------
    code : types.CodeType
        Variables of enclosing functions are in the order of ``co_freevars``.
    chains : frozenset of tuple of str
        ``("np", "linalg", "norm")`` for ``np.linalg.norm``, of each name that begins a chain.
    facts : Facts
        Of the text before it was changed; offsets are those of ``code``.
    """

    code: types.CodeType
    chains: frozenset[Chain]
    facts: Facts


def chain_of(node: ast.expr) -> Chain:
    """``("np", "linalg", "norm")`` of ``np.linalg.norm``; empty for what begins with no name."""
    found: list[str] = []
    while isinstance(node, ast.Attribute):
        found.append(node.attr)
        node = node.value
    return (node.id, *reversed(found)) if isinstance(node, ast.Name) else ()


_LEAVES = frozenset([ast.Name, ast.Constant, ast.Load, ast.Store, ast.Del])
# The value of such an expression is of one of Python's own types.
_MADE_HERE = (
    *(ast.Constant, ast.JoinedStr, ast.Tuple, ast.List, ast.Dict, ast.Set),
    *(ast.ListComp, ast.DictComp, ast.SetComp),
)


# Such an expression gives an object that was there before. It may be one of others' that looks at
# memory, such as a memoryview.
_FOUND = (ast.Name, ast.Attribute, ast.Subscript)


# The part of which a node asks the truth, or that it takes apart or puts into text.
_NAMED_PARTS = {
    **dict.fromkeys((ast.If, ast.While, ast.IfExp, ast.Assert), "test"),
    **{ast.Match: "subject", ast.FormattedValue: "value"},
}


class _Sites(ast.NodeTransformer):
    def __init__(self, hooks: Hooks, outside: frozenset[ast.Name]) -> None:
        self.hooks = hooks
        self.outside = outside if hooks.outside is not None else frozenset()
        self.chains: set[Chain] = set()
        self.owner = ""  # the class around, by which Python changes names like `__a`

    def visit(self, node: ast.AST) -> Any:
        """As in the base class, but for names and numbers, which have no rule."""
        return node if type(node) in _LEAVES else super().visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        outer, self.owner = self.owner, node.name
        self.generic_visit(node)
        self.owner = outer
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if chain := chain_of(node):
            self.chains.add(chain)
        self.generic_visit(node)
        if self.hooks.attribute is None:
            return node
        if not isinstance(node.ctx, ast.Load):
            node.value = _call(_PLACES.owner, [node.value], [], node.value)
            return node
        return _call(_PLACES.attribute, [node.value, self._name(node)], [], node)

    def _name(self, node: ast.Attribute) -> ast.expr:
        """The name of an attribute as Python looks it up."""
        return ast.copy_location(ast.Constant(mangled(node.attr, self.owner)), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if self.hooks.found is None:
            return node
        if not isinstance(node.ctx, ast.Load):
            node.value = _call(_PLACES.changed, [node.value], [], node.value)
            return node
        if not isinstance(node.value, _MADE_HERE):
            node.value = _call(_PLACES.indexed, [node.value], [], node.value)
        return _call(_PLACES.found, [node], [], node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        node.left = self._operand(node.left)
        node.right = self._known(node.right)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        node.operand = self._known(node.operand)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        if self.hooks.augment is not None and isinstance(node.target, ast.Attribute):
            return self._augment(node, node.target)
        self.generic_visit(node)
        if node.target in self.outside:
            return self._augment_outside(node, node.target)
        if self.hooks.operand is not None and isinstance(node.target, ast.Name):
            changed = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
            node.value = _call(_PLACES.operand, [changed, node.value], [], node.value)
        return node

    def _augment(self, node: ast.AugAssign, target: ast.Attribute) -> ast.Expr:
        given = [self.visit(target.value), self._name(target)]
        begun = _call(_PLACES.begin, given, [], target)
        name = ast.copy_location(ast.Constant(_IN_PLACE[type(node.op)]), target)
        call = _call(_PLACES.augment, [name, begun, self.visit(node.value)], [], target)
        for each in (call, call.func):
            each.end_lineno, each.end_col_offset = node.end_lineno, node.end_col_offset
        return ast.copy_location(ast.Expr(call), node)

    def _augment_outside(self, node: ast.AugAssign, target: ast.Name) -> ast.Assign:
        now = ast.copy_location(ast.Name(target.id, ast.Load()), target)
        name = ast.copy_location(ast.Constant(_IN_PLACE[type(node.op)]), target)
        call = _call(_PLACES.outside, [name, now, node.value], [], target)
        for each in (call, call.func):
            each.end_lineno, each.end_col_offset = node.end_lineno, node.end_col_offset
        return ast.copy_location(ast.Assign([target], call), node)

    def _stored(self, targets: list[ast.expr], value: ast.expr) -> ast.expr:
        """A value that is assigned."""
        if not self.outside or not any(each in self.outside for each in _names(targets)):
            return value
        return _call(_PLACES.outside, [value], [], value)

    def _operand(self, node: ast.expr) -> ast.expr:
        if self.hooks.operand is None or isinstance(node, _MADE_HERE):
            return node
        return _call(_PLACES.operand, [node], [], node)

    def _compared(self, node: ast.expr) -> ast.expr:
        if self.hooks.compared is None or isinstance(node, ast.Constant):
            return node
        return _call(_PLACES.compared, [node], [], node)

    def _known(self, node: ast.expr) -> ast.expr:
        if self.hooks.known is None or isinstance(node, _MADE_HERE):
            return node
        return _call(_PLACES.known, [node], [], node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "super" and not node.args:
            return node  # it looks into the frame of its caller
        if self.hooks.spread is not None and _is_spread(node):
            node.func = _call(_PLACES.spread, [node.func], [], node.func)
            return node
        return _call(_PLACES.site, [node.func, *node.args], node.keywords, node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        identity = len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot))
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            node.left = self._known(node.left)
            node.comparators = [self._compared(node.comparators[0])]
        elif not identity:
            node.left = self._compared(node.left)
            node.comparators = [self._known(each) for each in node.comparators]
        if not identity or any(isinstance(each, ast.Constant) for each in sides):
            return node
        same = _call(_PLACES.same, sides, [], node)
        if isinstance(node.ops[0], ast.Is):
            return same
        return ast.copy_location(ast.UnaryOp(ast.Not(), same), node)

    def _named_part(self, node: Any) -> ast.AST:
        """A node with one part that may be a name."""
        self.generic_visit(node)
        part = _NAMED_PARTS[type(node)]
        setattr(node, part, self._known_name(getattr(node, part)))
        return cast(ast.AST, node)

    visit_If = visit_While = visit_IfExp = visit_Assert = _named_part
    visit_Match = visit_FormattedValue = _named_part

    def visit_For(self, node: ast.For) -> ast.AST:
        return self._iteration(node)

    def _iteration(self, node: ast.For | ast.comprehension) -> ast.AST:
        """What is iterated over is read later, when traced code may have written to it."""
        is_found = isinstance(node.iter, _FOUND)
        self.generic_visit(node)
        if is_found and self.hooks.found is not None:
            node.iter = _call(_PLACES.found, [node.iter], [], node.iter)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self._iteration(node)
        node.ifs = [self._known_name(each) for each in node.ifs]
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        is_found = isinstance(node.value, _FOUND)
        self.generic_visit(node)
        if is_found and isinstance(node.ctx, ast.Load):
            node.value = self._known(node.value)
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        self.generic_visit(node)
        if node.arg is None:  # `**x`
            node.value = self._known_name(node.value)
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        self.generic_visit(node)
        pairs = zip(node.keys, node.values, strict=True)
        node.values = [each if key else self._known_name(each) for key, each in pairs]
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        # The truth of the last one is not asked here: it is the result.
        node.values = [*map(self._known_name, node.values[:-1]), node.values[-1]]
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        is_found = isinstance(node.value, _FOUND)
        self.generic_visit(node)
        if is_found and any(isinstance(each, (ast.Tuple, ast.List)) for each in node.targets):
            node.value = self._known(node.value)
        node.value = self._stored(node.targets, node.value)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        self.generic_visit(node)
        node.value = self._stored([node.target], node.value)
        return node

    def _known_name(self, node: ast.expr) -> ast.expr:
        """Only names need it: the values of all other expressions come from hooks."""
        return self._known(node) if isinstance(node, ast.Name) else node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        # Patterns stay as they are: they cannot hold calls.
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
        # On the line of the last decorator, so that the function begins on the same line as before.
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


_IN_PLACE = {
    ast.Add: "iadd",
    ast.Sub: "isub",
    ast.Mult: "imul",
    ast.Div: "itruediv",
    ast.FloorDiv: "ifloordiv",
    ast.Mod: "imod",
    ast.Pow: "ipow",
    ast.MatMult: "imatmul",
    ast.LShift: "ilshift",
    ast.RShift: "irshift",
    ast.BitAnd: "iand",
    ast.BitOr: "ior",
    ast.BitXor: "ixor",
}
_LONGEST_TEXT = 200


class _Operations(_Sites):
    """The same rules, and ``Hooks.value`` is called with the value of each operation."""

    def _told(self, node: Any, visit: Callable[[Any], Any]) -> Any:
        mark = _mark(node)
        made = visit(node)
        if made is node and isinstance(node, ast.Call) and not _is_spread(node):
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
        return self._told(node, super().visit_UnaryOp)

    def visit_Assign(self, node: ast.Assign) -> Any:
        changed = [each for each in node.targets if not isinstance(each, ast.Name)]
        statements = self._changed(node, changed)
        super().visit_Assign(node)
        return statements

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        statements = self._changed(node, [node.target])
        return [super().visit_AugAssign(node), *statements[1:]]

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


def _names(targets: list[ast.expr]) -> Iterator[ast.Name]:
    """What is assigned by its name."""
    waiting = list(targets)
    while waiting:
        target = waiting.pop()
        if isinstance(target, ast.Name):
            yield target
        elif isinstance(target, ast.Starred):
            waiting.append(target.value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            waiting += target.elts


def _is_spread(node: ast.Call) -> bool:
    """Whether ``*`` or ``**`` stands in a call."""
    return any(isinstance(each, ast.Starred) for each in node.args) or any(
        each.arg is None for each in node.keywords
    )


def _mark(node: ast.stmt | ast.expr) -> list[ast.expr]:
    """Text and line of an operation."""
    text = ast.unparse(node)[:_LONGEST_TEXT]
    return [ast.copy_location(ast.Constant(value), node) for value in (text, node.lineno)]


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
        kept.put(code, variant, known)
    made, chains, facts, loops = known
    places = heads.places(heads.loops(code, loops))
    filled = _filled(made, code, {**places, **dict(zip(_PLACES, hooks, strict=True))})
    return Instrumented(filled, frozenset(chains), Facts(*facts))


def _with_places(
    function: types.FunctionType, hooks: Hooks
) -> tuple[types.CodeType, tuple[Chain, ...], tuple[Any, ...], tuple[heads.Row, ...]]:
    source, code = source_of(function), function.__code__
    loops: heads.Loops | None = None
    with _reading():
        facts, outside = facts_of(source.definition, code, source.owner)
        sites = (_Sites if hooks.value is None else _Operations)(hooks, outside)
        if hooks.attribute is not None:
            loops = heads.Loops(source.definition, code)
        sites.visit(source.tree)
        if loops is not None:
            loops.put_heads(source.definition, is_traced=True)
        made = _compiled(source, code)
    rows = () if loops is None else loops.rows()
    return made, tuple(sorted(sites.chains)), tuple(facts.at_offsets_of(made)), rows


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except UNREADABLE as error:
        raise NoSource(f"it cannot be compiled with call sites: {error}") from error


def _compiled(source: Source, code: types.CodeType) -> types.CodeType:
    """The code of a function whose text was changed."""
    made = list(nested(compiled(source.tree, code)))[source.position]
    if not _is_from(made, code):
        raise NoSource("it is not found again with call sites")
    return made


class _Calls(ast.NodeTransformer):
    """Calls of some functions, outside of functions that are made inside."""

    def __init__(self, called: frozenset[Chain]) -> None:
        self._called = called

    def visit_Call(self, node: ast.Call) -> ast.AST:
        chains = {chain_of(node.func)}
        if isinstance(node.func, ast.Attribute):
            chains.add(("", node.func.attr))
        self.generic_visit(node)
        if self._called.isdisjoint(chains):
            return node
        return _call(_PLAIN_SITE, [node.func, *node.args], node.keywords, node)

    def _stays(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _stays
    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _stays


class Looped(NamedTuple):
    """The code of a function whose loops may go on natively, and all its loops, by number."""

    code: types.CodeType
    loops: tuple[_core.Loop, ...]


def looped(
    function: types.FunctionType,
    called: frozenset[Chain],
    before: Looped | None = None,
    without: frozenset[int] = frozenset(),
) -> Looped:
    """The code of a function as it is, whose loops may go on natively.

    Parameters
    ----------
    function : types.FunctionType
        Its source is read.
    called : frozenset of tuple of str
        Functions that it calls, whose loops may do so as well: ``plain_site(f, *args, **kwargs)``
        stands there. ``("", "step")``: each ``x.step``.
    before : Looped, optional
        What was made of it before: the loops are those.
    without : frozenset of int
        The numbers of loops that stay as they are.

    Raises
    ------
    NoSource
        Where the source is not known for certain.
    """
    code = function.__code__
    variant = " ".join(
        ["loops", *map(str, sorted(without)), *sorted(".".join(chain) for chain in called)]
    )
    known = kept.read(code, variant)
    if known is None:
        source = source_of(function)
        with _reading():
            loops = heads.Loops(source.definition, code)
            if called:
                body, calls = source.definition.body, _Calls(called)
                made = (
                    [calls.visit(each) for each in body] if is_a(body, list) else calls.visit(body)
                )
                source.definition.body = made
            loops.put_heads(source.definition, without=without)
            known = _compiled(source, code), loops.rows()
        kept.put(code, variant, known)
    made, rows = known
    of = heads.loops(code, rows) if before is None else before.loops
    places = {**heads.places(of), _PLAIN_SITE: _core.plain_site}
    filled = _with_constants(made, code, made.co_consts, places)
    _made.set(filled, True)
    return Looped(filled, of)


def is_made(code: types.CodeType) -> bool:
    """Whether ``instrumented`` made a code object."""
    return _made.get(code) is not None


def _filled(
    made: types.CodeType, original: types.CodeType, hooks: dict[Any, Any]
) -> types.CodeType:
    inner = [each for each in original.co_consts if isinstance(each, types.CodeType)]
    constants = tuple(
        _filled_inside(each, inner, hooks) if isinstance(each, types.CodeType) else each
        for each in made.co_consts
    )
    code = _with_constants(made, original, constants, hooks)
    _made.set(code, True)
    _core.mark_traced(code)
    return code


def _with_constants(
    made: types.CodeType,
    original: types.CodeType,
    constants: tuple[Any, ...],
    places: dict[Any, Any],
) -> types.CodeType:
    filled = (places.get(each, each) if isinstance(each, bytes) else each for each in constants)
    return made.replace(co_consts=tuple(filled), co_qualname=original.co_qualname)


def _filled_inside(
    made: types.CodeType, originals: list[types.CodeType], hooks: dict[Any, Any]
) -> types.CodeType:
    """The code of a nested function with the hooks filled in.

    Its original is the first of ``originals`` that it can come from, which is removed: functions of
    one line have the same order in both. Those of other lines may not: what is returned inside of a
    ``try`` runs the code behind ``finally`` there, and heads of loops return. There may be none,
    because Python drops code that is never reached: then it stands for itself.
    """
    for at, original in enumerate(originals):
        if _is_from(made, original) and made.co_firstlineno == original.co_firstlineno:
            del originals[at]
            code = _filled(made, original, hooks)
            _core.set_own_code(code, original)
            return code
    return _filled(made, made, hooks)


def _is_from(made: types.CodeType, original: types.CodeType) -> bool:
    """Whether name and parameters are the same."""
    return made.co_name == original.co_name and inspect.getargs(made) == inspect.getargs(original)
