"""The same code in which each call ``f(x)`` asks ``site(f, x)`` first.

``instrumented(function, site)`` gives the code object; file name, lines and columns are those of
the source, so tracebacks, warnings, debuggers and coverage show the user's own. ``site`` is a
constant of the code and has no Python frame. Names, variables and everything else stay as they are.
"""

from __future__ import annotations

import ast
import dis
import functools
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .text import compiled, nested, source_of

# Stands for `site` until the code object is made.
_PLACE = b"\0ufuse: call site"
# The code objects that were made, by their address, with the original of each.
_originals: dict[int, tuple[weakref.ref[types.CodeType], types.CodeType]] = {}


Chain = tuple[str, ...]


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


class _Sites(ast.NodeTransformer):
    def __init__(self) -> None:
        self.chains: set[Chain] = set()

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        names, base = [node.attr], node.value
        while isinstance(base, ast.Attribute):
            names.append(base.attr)
            base = base.value
        if isinstance(base, ast.Name):
            self.chains.add((base.id, *reversed(names)))
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "super" and not node.args:
            return node  # it looks into the frame of its caller
        site = ast.copy_location(ast.Constant(_PLACE), node.func)
        return ast.copy_location(ast.Call(site, [node.func, *node.args], node.keywords), node)


def instrumented(function: types.FunctionType, site: Callable[..., Any]) -> Instrumented:
    """The code of a function with ``site`` at its call sites.

    Parameters
    ----------
    function : types.FunctionType
        Its source is read.
    site : callable
        ``site(f, *args, **kwargs)`` is called in the place of ``f(*args, **kwargs)``.

    Returns
    -------
    Instrumented

    Raises
    ------
    NoSource
        Where the source is not known for certain.
    """
    code = function.__code__
    tree, position = source_of(function)
    sites = _Sites()
    made = list(nested(compiled(sites.visit(tree), code)))[position]
    return Instrumented(_filled(made, code, site), frozenset(sites.chains))


def original_of(code: types.CodeType) -> types.CodeType | None:
    """The code that ``instrumented`` made a code object from; None for any other."""
    known = _originals.get(id(code))
    return known[1] if known is not None and known[0]() is code else None


def _filled(made: types.CodeType, original: types.CodeType, site: Any) -> types.CodeType:
    # In the order in which they stand: the rewriting neither adds nor removes any.
    inner = (each for each in original.co_consts if isinstance(each, types.CodeType))
    constants = tuple(
        _filled(each, next(inner), site)
        if isinstance(each, types.CodeType)
        else site
        if isinstance(each, bytes) and each == _PLACE
        else each
        for each in made.co_consts
    )
    code = made.replace(co_consts=constants, co_qualname=original.co_qualname)
    _originals[id(code)] = weakref.ref(code, functools.partial(_forget, id(code))), original
    return code


def _forget(address: int, _: object, known: dict[int, Any] = _originals) -> None:
    known.pop(address, None)


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
