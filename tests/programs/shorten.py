"""What is the least of a program that still differs?

``shortened(text, differs)`` leaves out statements, puts the bodies of ``if``, ``for``, ``try`` and
``with`` in their places, and operands in the places of expressions, as long as a difference stays.
"""

import ast
import time


def _blocks(tree):
    """All lists of statements, inner ones last."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield node, block
        for handler in getattr(node, "handlers", ()):
            yield handler, handler.body


def _valid(tree):
    """The text of a tree; None where it is no program any more."""
    try:
        text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
        compile(text, "text", "exec")
    except (SyntaxError, ValueError, TypeError):
        return None
    return text


def _without_statements(text, size):
    """Texts without some statements that follow each other."""
    count = len(list(_blocks(ast.parse(text))))
    for at in reversed(range(count)):
        length = len(list(_blocks(ast.parse(text)))[at][1])
        for first in reversed(range(0, length, size)):
            tree = ast.parse(text)
            node, block = list(_blocks(tree))[at]
            block[first : first + size] = []
            if not block and node is not tree and getattr(node, "body", None) is block:
                block.append(ast.Pass())
            yield tree


def _with_inner(text):
    """Texts in which the body of a compound statement stands in its place."""
    total = sum(len(block) for _, block in _blocks(ast.parse(text)))
    for wanted in range(total):
        tree = ast.parse(text)
        at = 0
        for _, block in _blocks(tree):
            if at <= wanted < at + len(block):
                inner = getattr(block[wanted - at], "body", None)
                if isinstance(inner, list) and not isinstance(
                    block[wanted - at], ast.FunctionDef | ast.ClassDef
                ):
                    block[wanted - at : wanted - at + 1] = inner
                    yield tree
                break
            at += len(block)


class _Replaced(ast.NodeTransformer):
    """Puts one of its operands in the place of the expression with a number."""

    def __init__(self, wanted, which):
        self.wanted, self.which = wanted, which
        self.seen = -1
        self.done = False

    def visit(self, node):
        if isinstance(node, ast.expr):
            self.seen += 1
            if self.seen == self.wanted:
                inner = [
                    each
                    for each in ast.iter_child_nodes(node)
                    if isinstance(each, ast.expr) and not isinstance(each, ast.Starred)
                ]
                if self.which < len(inner) and isinstance(
                    getattr(node, "ctx", ast.Load()), ast.Load
                ):
                    self.done = True
                    return inner[self.which]
        return self.generic_visit(node)


def _with_operands(text):
    count = sum(isinstance(node, ast.expr) for node in ast.walk(ast.parse(text)))
    for wanted in range(count):
        for which in range(3):
            replaced = _Replaced(wanted, which)
            tree = replaced.visit(ast.parse(text))
            if replaced.done:
                yield tree


def shortened(text, differs, seconds=60.0):
    """A shorter program that differs, and how.

    Parameters
    ----------
    text : str
        A program that differs.
    differs : callable
        What the difference of a text is; None where there is none.
    seconds : float
        How long to try at most.
    """
    end = time.monotonic() + seconds
    found = differs(text)
    tries = [lambda t, size=size: _without_statements(t, size) for size in (16, 4, 1)]
    tries += [_with_inner, _with_operands]
    again = True
    while again and time.monotonic() < end:
        again = False
        for candidates in tries:
            progress = True
            while progress and time.monotonic() < end:
                progress = False
                for tree in candidates(text):
                    shorter = _valid(tree)
                    if time.monotonic() > end:
                        break
                    if shorter is None or len(shorter) >= len(text):
                        continue
                    try:
                        now = differs(shorter)
                    except Exception:
                        continue
                    if now is not None:
                        text, found, progress, again = shorter, now, True, True
                        break
    return text, found
