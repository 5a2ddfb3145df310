"""What does a function's text do with its values?

``facts_of`` walks the tree of a function once and writes down where each value comes from, what the
variables are assigned, and which values somebody looks at. It judges nothing: ``scan`` and
``parameters`` do, when they know what the names stand for. All of it is plain tuples, which are
kept with the code that has call sites.

A row of the table of values is ``(kind, ...)``, other values being their rows' numbers::

    ("made",)                           ("attr", value, name, offsets)
    ("const",)                          ("call", value, (arguments...), (keywords...))
    ("local", variable)                 ("op", offsets)
    ("global", name)                    ("import",)
    ("free", name)                      ("unseen",)
    ("outside", name)                   ("fail", reason, detail)

"made" is anything else, such as an argument or an item. "op" is the result of an operator; the
offsets are those of its instructions, and of those that read an attribute, for ``parameters``. The
keywords of a call are those of its last arguments; "*" and "**" stand for what is starred.
"outside" is an assignment to a global name, or to a variable of an enclosing function. "unseen" is
a look at attributes that is no expression. Nested functions have variables of their
own: ``"2.x"`` and the like.
"""

from __future__ import annotations
import __future__

import ast
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

Row = tuple[Any, ...]
MADE, CONST = 0, 1
_NAMES = ("name", "store", "bind")
# Rows that may stand for a number whose uses matter.
SOURCES = ("local", "op", "attr")
# Those of them whose row ends with the place in the code.
PLACED = ("op", "attr")
_ANNOTATIONS_ARE_TEXT = __future__.annotations.compiler_flag
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Sequence = ast.Tuple | ast.List
_OF_OBJECTS = ast.Is | ast.IsNot | ast.In | ast.NotIn
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Facts(NamedTuple):
    """What the text of one function, and of those inside it, says.

    Attributes
    ----------
    values : tuple of tuple
        The table, in the order of the text; nested functions come last.
    lines : tuple of int
        Where each value is made first.
    assigned : tuple of (str, int)
        A variable, and a value that it is assigned.
    looked_at : tuple of int
        Variables, attributes and results of operators whose value may be used otherwise than as an
        operand.
    """

    values: tuple[Row, ...]
    lines: tuple[int, ...]
    assigned: tuple[tuple[str, int], ...]
    looked_at: tuple[int, ...]

    def globals_read(self) -> set[str]:
        """The names that stand for globals or builtins."""
        return {row[1] for row in self.values if row[0] == "global"}

    def at_offsets_of(self, code: types.CodeType) -> Facts:
        """The same with the offsets of a compiled tree in the place of positions in the text."""
        offsets: dict[Any, list[int]] = {}
        for i, position in enumerate(code.co_positions()):
            offsets.setdefault(position, []).append(2 * i)
        values = (
            (*row[:-1], tuple(offsets.get(row[-1], ()))) if row[0] in PLACED else row
            for row in self.values
        )
        return self._replace(values=tuple(values))


def facts_of(
    definition: _Function, code: types.CodeType, owner: str
) -> tuple[Facts, frozenset[ast.Name]]:
    """Read the tree of a function.

    Parameters
    ----------
    definition : ast.FunctionDef, ast.AsyncFunctionDef or ast.Lambda
        As it stands in the text.
    code : types.CodeType
        What it was compiled to.
    owner : str
        The class around it, by which Python changes names like `__a`.

    Returns
    -------
    Facts
        With positions ``(line, end line, column, end column)`` for the offsets of operators.
    frozenset of ast.Name
        Where "outside" names are assigned.
    """
    reader = _Reader(code, owner)
    reader.function(definition, _NOWHERE)
    for inner, around in reader.later:  # which grows
        reader.function(inner, around)
    return reader.facts(), reader.outside()


def mangled(name: str, owner: str) -> str:
    """A name as Python looks it up inside the class ``owner``."""
    owner = owner.lstrip("_")
    is_private = owner and name.startswith("__") and not name.endswith("__")
    return f"_{owner}{name}" if is_private else name


_NOWHERE = -1
_FLAGS = frozenset(["writeable", "aligned", "writebackifcopy", "_warn_on_write"])


def _are_flags(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "flags"


class _Scope(NamedTuple):
    around: int
    is_comprehension: bool
    bound: set[str]
    world: set[str]  # declared to be global
    outer: set[str]  # declared to be nonlocal


class _Reader(ast.NodeVisitor):
    """A visit of an expression gives the row of its value.

    Whether a name is local is known only when a function has been read to its end. Until then its
    row is ``("name", scope, name)``, or ``("store", scope, name)`` where a value of its own is
    assigned to it, or ``("bind", scope, name)`` where a statement gives it another one.
    """

    def __init__(self, code: types.CodeType, owner: str) -> None:
        self.code, self.owner = code, owner
        self.scopes: list[_Scope] = []
        self.scope = _NOWHERE  # the one that is read
        self.later: list[tuple[_Function, int]] = []
        self.line = code.co_firstlineno
        self.values: dict[Row, int] = {("made",): MADE, ("const",): CONST}
        self.lines = [self.line] * len(self.values)
        self.assigned: list[tuple[int, int]] = []
        self.stored: list[tuple[int, str, ast.Name]] = []
        self.looked_at: dict[int, None] = {}
        self.rules: dict[type[ast.AST], Callable[[Any], Any]] = {}

    def facts(self) -> Facts:
        """What was read."""
        rows = list(self.values)
        for at, (kind, *what) in enumerate(self.values):
            if kind in _NAMES:
                rows[at] = self.known(kind, *what)
                if what[0] and "." not in rows[at][1]:
                    self.look(at)  # a variable of another function
        stores = [(rows[at], value) for at, value in self.assigned]
        assigned = {(what[0], value): None for (kind, *what), value in stores if kind == "local"}
        self.look(*(value for (kind, *_), value in stores if kind == "outside"))
        looked_at = tuple(at for at in self.looked_at if rows[at][0] in SOURCES)
        return Facts(tuple(rows), tuple(self.lines), tuple(assigned), looked_at)

    def outside(self) -> frozenset[ast.Name]:
        """The targets of assignments to names from outside."""
        kinds = ((self.resolved(scope, name)[0], node) for scope, name, node in self.stored)
        return frozenset(node for kind, node in kinds if kind != "local")

    def known(self, kind: str, scope: int, name: str) -> Row:
        """The row of a name, or of an assignment to it."""
        found = self.resolved(scope, name)
        if kind == "name" or found[0] == "local":
            return found
        if kind == "store":
            return "outside", name
        if found[0] == "global":
            return "fail", "store_global", f"the global name `{name}` is bound by a statement"
        return "fail", "store_outer", f"a statement binds `{name}` of the enclosing function"

    def resolved(self, scope: int, name: str) -> tuple[str, str]:
        while scope != _NOWHERE:
            around, _, bound, world, outer = self.scopes[scope]
            if name in world:
                break
            if not scope and name in self.code.co_freevars:
                return "free", name
            if name in bound and name not in outer:
                return "local", f"{scope}.{name}" if scope else name
            scope = around
        return "global", name

    # The table.

    def row(self, *row: Any) -> int:
        at = self.values.setdefault(row, len(self.values))
        if at == len(self.lines):
            self.lines.append(self.line)
        return at

    def look(self, *values: int) -> None:
        self.looked_at.update(dict.fromkeys(values))

    def visit(self, node: ast.AST) -> Any:
        """As in the base class, but each kind of node looks up its method once only."""
        kind = type(node)
        if kind not in self.rules:
            self.rules[kind] = getattr(self, f"visit_{kind.__name__}", self.generic_visit)
        self.line = getattr(node, "lineno", self.line)
        return self.rules[kind](node)

    def seen(self, node: ast.AST | None) -> int:
        """The value of an expression, which is used for anything."""
        if node is None:
            return CONST
        value: int = self.visit(node) or MADE  # a statement has none
        self.look(value)
        return value

    def generic_visit(self, node: ast.AST) -> int:
        """A node without a rule of its own uses all that is in it, and makes something new."""
        self.all_seen(ast.iter_child_nodes(node))
        return MADE

    def all_seen(self, nodes: Iterable[ast.AST]) -> list[int]:
        return [self.seen(node) for node in nodes]

    # Names.

    def bind(
        self, name: str, value: int, scope: int | None = None, target: ast.Name | None = None
    ) -> int:
        """A name is bound; ``target``: where it is assigned a value that stands there."""
        scope, name = self.scope if scope is None else scope, mangled(name, self.owner)
        self.scopes[scope].bound.add(name)
        at = self.row("bind" if target is None else "store", scope, name)
        self.assigned.append((at, value))
        if target is not None:
            self.stored.append((scope, name, target))
        return at

    def assign(self, target: ast.expr, value: int, stores: bool = False) -> None:
        self.line = target.lineno
        if isinstance(target, ast.Name):
            self.bind(target.id, value, target=target if stores else None)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value, stores)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.look(value)
            for each in target.elts:
                self.assign(each, MADE, stores)
        else:
            if not isinstance(target, ast.Attribute):  # which keeps what is recorded of a number
                self.look(value)
            self.generic_visit(target)
            self.flag(target)

    def flag(self, target: ast.expr) -> None:
        """The assignment may set a flag of an array, which a lazy one cannot do."""
        name: Any = None
        if isinstance(target, ast.Attribute):
            name = target.attr if target.attr in _FLAGS else None
        elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            name = target.slice.value
            if not _are_flags(target.value) and str(name).lower() not in _FLAGS:
                name = None
        if name is not None:
            self.row("fail", "memory_exposed", f"the flag `{name}` of an array is set")

    def visit_Name(self, node: ast.Name) -> int:
        if node.id == "__debug__":
            return CONST
        if not isinstance(node.ctx, ast.Load):
            return self.bind(node.id, MADE)  # or deleted
        return self.row("name", self.scope, mangled(node.id, self.owner))

    def declaration(self, node: ast.Global | ast.Nonlocal) -> None:
        scope = self.scopes[self.scope]
        declared = scope.world if isinstance(node, ast.Global) else scope.outer
        declared.update(mangled(name, self.owner) for name in node.names)

    visit_Global = visit_Nonlocal = declaration

    # Functions.

    def open(self, around: int, is_comprehension: bool) -> None:
        self.scope = len(self.scopes)
        self.scopes.append(_Scope(around, is_comprehension, set(), set(), set()))

    def function(self, node: _Function, around: int) -> None:
        self.open(around, is_comprehension=False)
        for each in ast.iter_child_nodes(node.args):
            if isinstance(each, ast.arg):
                self.bind(each.arg, MADE)
        self.all_seen(node.body if isinstance(node.body, list) else [node.body])

    def nested(self, node: _Function) -> int:
        """A function inside: its defaults, which run now. Its body is read later."""
        self.visit(node.args)
        self.later.append((node, self.scope))
        return MADE

    visit_Lambda = nested

    def visit_arg(self, node: ast.arg) -> None:
        self.annotated(node.annotation)

    def annotated(self, node: ast.expr | None) -> None:
        if not self.code.co_flags & _ANNOTATIONS_ARE_TEXT:
            self.seen(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        decorators = self.all_seen(node.decorator_list)
        self.annotated(node.returns)
        self.all_seen(getattr(node, "type_params", ()))
        made = self.nested(node)
        for decorator in reversed(decorators):
            made = self.row("call", decorator, (made,), ())
        self.line = node.lineno
        self.bind(node.name, made)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.row("fail", "class_body", "a class is made inside the function")

    def comprehension(self, node: _Comprehension) -> int:
        outer = self.scope
        self.seen(node.generators[0].iter)
        self.open(outer, is_comprehension=True)
        for made in node.generators:
            if made is not node.generators[0]:
                self.seen(made.iter)
            self.assign(made.target, MADE)
            self.all_seen(made.ifs)
        self.all_seen([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])
        self.scope = outer
        return MADE

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension

    # Expressions.

    def visit_Constant(self, node: ast.Constant) -> int:
        return CONST

    def visit_NamedExpr(self, node: ast.NamedExpr) -> int:
        value: int = self.visit(node.value)
        scope = self.scope
        while self.scopes[scope].is_comprehension:
            scope = self.scopes[scope].around
        self.bind(node.target.id, value, scope, node.target)
        return value

    def operator(self, node: Any, operator: ast.AST, operands: Sequence[int]) -> int:
        """The result of an operator."""
        if isinstance(operator, (ast.MatMult, ast.Mod)):
            self.look(*operands[isinstance(operator, ast.Mod) :])
        if all(value == CONST for value in operands):
            return CONST
        self.line = node.lineno
        return self.row("op", self.place(node))

    def place(self, node: ast.expr | ast.stmt) -> Any:
        """Where in the text of the function itself; None inside others."""
        place = node.lineno, node.end_lineno, node.col_offset, node.end_col_offset
        return None if self.scope else place

    def visit_BinOp(self, node: ast.BinOp) -> int:
        operands = self.visit(node.left), self.visit(node.right)
        return self.operator(node, node.op, operands)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> int:
        if isinstance(node.op, ast.Not):
            self.test(node.operand)
            return MADE
        return self.operator(node, node.op, [self.visit(node.operand)])

    def visit_BoolOp(self, node: ast.BoolOp) -> int:
        self.all_seen(node.values)
        return MADE

    def visit_IfExp(self, node: ast.IfExp) -> int:
        self.test(node.test)
        self.all_seen([node.body, node.orelse])
        return MADE

    def visit_Compare(self, node: ast.Compare) -> int:
        sides = [node.left, *node.comparators]
        values = [self.visit(each) for each in sides]
        asks_objects = any(isinstance(each, _OF_OBJECTS) for each in node.ops)
        if isinstance(node.ops[-1], (ast.Is, ast.IsNot)) and len(sides) == 2:
            asks_objects = not any(map(_is_none, sides))  # no number is None
        self.look(*(values if asks_objects else values[1:-1]))
        return MADE

    def test(self, node: ast.expr) -> None:
        """An expression of which only the truth is asked."""
        if isinstance(node, ast.BoolOp):
            for each in node.values:
                self.test(each)
        else:
            self.visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> int:
        value = self.seen(node.value)
        # The line of the name itself.
        self.line = node.end_lineno or node.lineno
        return self.row("attr", value, mangled(node.attr, self.owner), self.place(node))

    def visit_Subscript(self, node: ast.Subscript) -> int:
        self.all_seen([node.value, node.slice])
        return MADE

    def collection(self, node: ast.Tuple | ast.List | ast.Set) -> int:
        values = self.all_seen(node.elts)
        if isinstance(node, ast.Tuple) and all(value == CONST for value in values):
            return CONST
        return MADE

    visit_Tuple = visit_List = visit_Set = collection

    def visit_Call(self, node: ast.Call) -> int:
        function = self.seen(node.func)
        parts = [*node.args, *(each.value for each in node.keywords)]
        arguments = [self.visit(each) for each in parts]
        keywords = tuple(each.arg or "**" for each in node.keywords)
        if any(isinstance(each, ast.Starred) for each in node.args):
            keywords = ("*", *keywords)
        if "*" in keywords or "**" in keywords:
            self.look(*arguments)
        self.line = node.func.end_lineno or node.lineno
        is_setattr = isinstance(node.func, ast.Name) and node.func.id == "setattr"
        if is_setattr and node.args and _are_flags(node.args[0]):
            self.row("fail", "memory_exposed", "a flag of an array is set")
        return self.row("call", function, tuple(arguments), keywords)

    # Statements.

    def visit_Expr(self, node: ast.Expr) -> None:
        self.visit(node.value)

    def visit_If(self, node: ast.If | ast.While) -> None:
        self.test(node.test)
        self.all_seen([*node.body, *node.orelse])

    visit_While = visit_If

    def visit_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) == 1 and (pairs := _pairs(node.targets[0], node.value)):
            for target, value in [(target, self.visit(value)) for target, value in pairs]:
                self.assign(target, value, stores=True)
            return
        value = self.visit(node.value)
        for target in node.targets:
            self.assign(target, value, stores=True)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.visit(node.value))
        elif not isinstance(node.target, ast.Name):
            self.generic_visit(node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            left = self.row("name", self.scope, mangled(target.id, self.owner))
            operands = left, self.visit(node.value)
            self.bind(target.id, self.operator(node, node.op, operands), target=target)
            return
        left = self.visit(target)
        made = self.operator(node, node.op, (left, self.visit(node.value)))
        if not isinstance(target, ast.Attribute):
            self.look(made)
        self.flag(target)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.seen(node.iter)
        self.assign(node.target, MADE)
        self.all_seen([*node.body, *node.orelse])

    visit_AsyncFor = visit_For

    def visit_withitem(self, node: ast.withitem) -> None:
        self.seen(node.context_expr)
        if node.optional_vars is not None:
            self.assign(node.optional_vars, MADE)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.seen(node.type)
        if node.name:
            self.bind(node.name, MADE)
        self.all_seen(node.body)

    def imports(self, node: ast.Import | ast.ImportFrom) -> None:
        self.row("import")
        for alias in node.names:
            self.bind(alias.asname or alias.name.partition(".")[0], MADE)

    visit_Import = visit_ImportFrom = imports

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        self.generic_visit(node)
        self.row("unseen")
        for name in node.kwd_attrs:
            self.row("attr", MADE, mangled(name, self.owner), None)

    def captures(self, node: ast.MatchAs | ast.MatchStar | ast.MatchMapping) -> None:
        self.generic_visit(node)
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name:
            self.bind(name, MADE)

    visit_MatchAs = visit_MatchStar = visit_MatchMapping = captures


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Each target with its value, where `a, b = b, a` needs nothing that holds both."""
    if not isinstance(target, _Sequence) or not isinstance(value, _Sequence):
        return []
    is_starred = any(isinstance(each, ast.Starred) for each in [*target.elts, *value.elts])
    is_matched = len(target.elts) == len(value.elts) and not is_starred
    return list(zip(target.elts, value.elts, strict=True)) if is_matched else []


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
