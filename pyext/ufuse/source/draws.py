"""The same statements, with random draws as statements of their own.

What a program has drawn from a random generator it cannot take back, and Python does a statement
from its beginning where the program cannot go on. So ``x[i] = a * rng.random()`` is read as ::

    .drawn0 = a
    .drawn1 = rng.random()
    x[i] = .drawn0 * .drawn1

What Python would evaluate before a draw, and what might fail, gets a variable, too: the order in
which things are evaluated stays what it was.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from ufuse import _core

from .text import copied

_NAMES = frozenset(_core.draw_names)
_NO_ORDER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Part(NamedTuple):
    """What a statement stands for, which is part of another one.

    Attributes
    ----------
    of : ast.stmt
        The statement as it was written.
    is_first : bool
        Whether it is the first part.
    """

    of: ast.stmt
    is_first: bool


def part_of(statement: ast.stmt) -> Part | None:
    """The statement that one of ``split``'s is a part of."""
    part: Part | None = getattr(statement, "part", None)
    return part


def _is_draw(node: ast.AST) -> bool:
    """Whether a call may draw, as far as its text can tell."""
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
    return name in _NAMES


def _draws(*nodes: ast.AST | None) -> bool:
    return any(_is_draw(each) for node in nodes if node is not None for each in ast.walk(node))


def split(loop: ast.For | ast.While, local: frozenset[str]) -> frozenset[str]:
    """Change a loop so that its draws are statements of their own.

    Parameters
    ----------
    loop : ast.For or ast.While
        The statement. What has no order that is known here stays as it is.
    local : frozenset of str
        The names that are variables of its function.

    Returns
    -------
    frozenset of str
        The names of the variables that are new.
    """
    if not _draws(loop):
        return frozenset()
    splitter = _Splitter(local)
    splitter.rounds(loop)
    return frozenset(splitter.names)


class _NoOrder(Exception):
    """A draw stands where nobody here knows what is evaluated before it."""


class _Splitter:
    def __init__(self, local: frozenset[str]) -> None:
        self._local = local
        self.names: list[str] = []
        self._before: list[ast.stmt] = []  # what stands before the statement at hand

    # Statements.

    def block(self, block: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for each in block:
            made += self._parts(each) if _draws(each) else [each]
        return made

    def _parts(self, node: ast.stmt) -> list[ast.stmt]:
        written, around = copied(node), self._before
        self._before, known = [], len(self.names)
        changed = copied(node)
        try:
            changed = self._change(changed)
            made = [*self._before, changed]
        except _NoOrder:
            del self.names[known:]
            made = [node]
        self._before = around
        self._inside(made[-1])
        for position, each in enumerate(made):
            each.part = Part(written, position == 0)  # type: ignore[attr-defined]
        return made

    def _inside(self, node: ast.stmt) -> None:
        if isinstance(node, (ast.For, ast.While)):
            self.rounds(node)
        elif isinstance(node, ast.If):
            node.body, node.orelse = self.block(node.body), self.block(node.orelse)

    def rounds(self, loop: ast.For | ast.While) -> None:
        """The statements of a loop, and what a ``while`` asks in each round."""
        loop.body, loop.orelse = self.block(loop.body), self.block(loop.orelse)
        if isinstance(loop, ast.For) or loop.orelse or not _draws(loop.test):
            return
        around, self._before, known = self._before, [], len(self.names)
        try:
            test = self._test(copied(loop.test))
            ends = ast.If(ast.UnaryOp(ast.Not(), test), [ast.Break()], [])
            asked = [*self._before, ends]
            for each in (ends, *ends.body):
                ast.copy_location(each, loop.test)
            ast.copy_location(ends.test, loop.test)
            loop.body = [*asked, *loop.body]
            loop.test = ast.copy_location(ast.Constant(True), loop.test)
        except _NoOrder:
            del self.names[known:]
        self._before = around

    def _change(self, node: ast.stmt) -> ast.stmt:
        """Put the draws of one statement before it; what is left of it."""
        if isinstance(node, ast.Assign):
            self._assign(node)
        elif isinstance(node, ast.AugAssign):
            return self._augment(node)
        elif isinstance(node, (ast.Expr, ast.Return, ast.AnnAssign)):
            if node.value is not None and not self._is_bare(node.value):
                node.value = self._lifted(node.value)
        elif isinstance(node, (ast.If, ast.Assert)):
            node.test = self._test(node.test)
        elif isinstance(node, ast.For):
            node.iter = self._lifted(node.iter)
        return node

    @staticmethod
    def _is_bare(value: ast.expr) -> bool:
        """Whether there is nothing but one draw."""
        return _is_draw(value) and not _draws(*ast.iter_child_nodes(value))

    def _assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if not _draws(*node.targets):
            is_name = len(node.targets) == 1 and isinstance(target, ast.Name)
            if not (is_name and self._is_bare(node.value)):
                node.value = self._lifted(node.value)
            return
        if len(node.targets) > 1 or not isinstance(target, ast.Subscript):
            raise _NoOrder
        node.value = self._held(node.value)
        target.value = self._held(target.value)
        target.slice = self._lifted(target.slice)

    def _augment(self, node: ast.AugAssign) -> ast.stmt:
        """The target is read before the value is drawn, once."""
        target = node.target
        if isinstance(target, ast.Name):
            self._variable(ast.copy_location(ast.Name(target.id, ast.Load()), target))
            node.value = self._lifted(node.value)
            return node
        target.value = self._held(target.value)
        if isinstance(target, ast.Subscript):
            target.slice = self._held_key(target.slice)
        if not _draws(node.value):
            return node
        read = copied(target)
        read.ctx = ast.Load()
        value = self._variable(read)
        assert isinstance(value, ast.Name)
        stored = ast.copy_location(ast.Name(value.id, ast.Store()), target)
        node.value = self._lifted(node.value)
        self._before.append(ast.copy_location(ast.AugAssign(stored, node.op, node.value), node))
        return ast.copy_location(ast.Assign([target], copied(value)), node)

    # Expressions.

    def _variable(self, value: ast.expr) -> ast.expr:
        """A new variable for a value that is evaluated now."""
        name = self._new_name()
        self._before.append(_assigned(name, value))
        return ast.copy_location(ast.Name(name, ast.Load()), value)

    def _held(self, node: ast.expr) -> ast.expr:
        """What is evaluated before a draw that follows."""
        if isinstance(node, ast.Constant):
            return node
        if isinstance(node, ast.Name) and node.id not in self._local:
            return node
        if isinstance(node, (ast.Starred, *_NO_ORDER)):
            raise _NoOrder
        value = self._lifted(node)
        return value if _is_new(value) else self._variable(value)

    def _held_key(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Tuple):
            node.elts = [self._held_key(each) for each in node.elts]
            return node
        if isinstance(node, ast.Slice):
            for name in ("lower", "upper", "step"):
                if (part := getattr(node, name)) is not None:
                    setattr(node, name, self._held(part))
            return node
        return self._held(node)

    def _lifted(self, node: ast.expr) -> ast.expr:
        """The same expression, its draws being variables."""
        if not _draws(node):
            return node
        if isinstance(node, ast.IfExp):
            return self._choice(node)
        if isinstance(node, ast.BoolOp):
            return self._both(node)
        if self._is_bare(node):
            return self._variable(node)
        places = _places(node)
        last = max(at for at, (owner, name, i) in enumerate(places) if _draws(_at(owner, name, i)))
        if isinstance(node, ast.Call):
            self._check_function(node.func)
        for owner, name, i in places[:last]:
            _put(owner, name, i, self._held_key(_at(owner, name, i)))
        owner, name, i = places[last]
        _put(owner, name, i, self._lifted(_at(owner, name, i)))
        return self._variable(node) if _is_draw(node) else node

    def _check_function(self, function: ast.expr) -> None:
        """What is called is looked up before its arguments."""
        root = function
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name):
            raise _NoOrder
        if root.id in self._local:
            self._variable(copied(root))

    def _branch(self, value: ast.expr, name: str) -> list[ast.stmt]:
        """The statements by which a variable gets the value of a branch."""
        around, self._before = self._before, []
        value = self._lifted(value)
        made = [*self._before, _assigned(name, value)]
        self._before = around
        return made

    def _new_name(self) -> str:
        self.names.append(f".drawn{len(self.names)}")
        return self.names[-1]

    def _choice(self, node: ast.IfExp) -> ast.expr:
        node.test = self._test(node.test)
        if not _draws(node.body, node.orelse):
            return node
        name = self._new_name()
        branches = self._branch(node.body, name), self._branch(node.orelse, name)
        self._before.append(ast.copy_location(ast.If(node.test, *branches), node))
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def _both(self, node: ast.BoolOp) -> ast.expr:
        """``a and b``, ``a or b``: the first one that decides."""
        name = self._new_name()
        value = ast.copy_location(ast.Name(name, ast.Load()), node)
        made = self._branch(node.values[0], name)
        inner = made
        for each in node.values[1:]:
            test: ast.expr = copied(value)
            if isinstance(node.op, ast.Or):
                test = ast.copy_location(ast.UnaryOp(ast.Not(), test), node)
            branch = self._branch(each, name)
            inner.append(ast.copy_location(ast.If(test, branch, []), node))
            inner = branch
        self._before += made
        return value

    def _test(self, node: ast.expr) -> ast.expr:
        """The same where only its truth matters, which is asked once."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node.operand = self._test(node.operand)
            return node
        if not isinstance(node, ast.BoolOp) or not _draws(*node.values[1:]):
            return self._lifted(node)
        name = self._new_name()
        is_or = isinstance(node.op, ast.Or)
        decided = [_assigned(name, ast.copy_location(ast.Constant(is_or), node))]
        other = [_assigned(name, ast.copy_location(ast.Constant(not is_or), node))]
        rest = other
        for each in reversed(node.values):
            around, self._before = self._before, []
            test = self._test(each)
            branches = (copied(decided), rest) if is_or else (rest, copied(decided))
            rest = [*self._before, ast.copy_location(ast.If(test, *branches), each)]
            self._before = around
        self._before += rest
        return ast.copy_location(ast.Name(name, ast.Load()), node)


def _is_new(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id.startswith(".drawn")


def _assigned(name: str, value: ast.expr) -> ast.stmt:
    target = ast.copy_location(ast.Name(name, ast.Store()), value)
    return ast.copy_location(ast.Assign([target], value), value)


Place = tuple[ast.AST, str, int | None]


def _places(node: ast.expr) -> list[Place]:
    """Where the parts of an expression stand, in the order in which they are evaluated."""
    if isinstance(node, ast.Compare):
        if _draws(*node.comparators[1:]):
            raise _NoOrder
        return [(node, "left", None), (node, "comparators", 0)]
    if isinstance(node, ast.Call):
        if _draws(node.func) or any(each.arg is None for each in node.keywords):
            raise _NoOrder
        found: list[Place] = [(node, "args", i) for i in range(len(node.args))]
        return [*found, *((each, "value", None) for each in node.keywords), (node, "func", None)]
    if isinstance(node, (ast.Tuple, ast.List)):
        return [(node, "elts", i) for i in range(len(node.elts))]
    names: dict[type[ast.expr], tuple[str, ...]] = {
        ast.BinOp: ("left", "right"),
        ast.UnaryOp: ("operand",),
        ast.Subscript: ("value", "slice"),
        ast.Slice: ("lower", "upper", "step"),
        ast.Attribute: ("value",),
    }
    if type(node) not in names:
        raise _NoOrder
    return [(node, name, None) for name in names[type(node)] if getattr(node, name) is not None]


def _at(owner: ast.AST, name: str, position: int | None) -> ast.expr:
    found = getattr(owner, name)
    part: ast.expr = found if position is None else found[position]
    return part


def _put(owner: ast.AST, name: str, position: int | None, value: ast.expr) -> None:
    if position is None:
        setattr(owner, name, value)
    else:
        getattr(owner, name)[position] = value
