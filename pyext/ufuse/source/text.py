"""Where is the source of a function, and is it really what the function runs?

A file may have changed since it was imported, and a code object may have been made by a program. So
the text is compiled unchanged, and only a function whose own byte code comes out has source. Of a
``def`` the lines from its first one on are read, as far as they make a whole statement; of a
``lambda`` the whole file is, and where several stand on a line the one with equal code is meant.
What was sent from another process (``carried``) is looked at after what is here.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import io
import itertools
import linecache
import re
import sys
import types
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

from ufuse import _core
from ufuse._core import is_a

_FUTURES = 0
for _name in __future__.all_feature_names:
    _FUTURES |= getattr(__future__, _name).compiler_flag
# What compiling raises for a text that is no Python or nested too deeply, and where Python itself
# fails.
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError, SystemError)
# So many lines may follow the last one with code: brackets, strings and comments.
_TRAILING_LINES = 400

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def copied(tree: Any) -> Any:
    """A copy of a syntax tree, or of a list of them."""
    if isinstance(tree, list):
        return [copied(each) for each in tree]
    if not isinstance(tree, ast.AST) or not tree._fields:
        return tree
    made = type(tree).__new__(type(tree))
    attributes = vars(made)
    for name, value in vars(tree).items():
        attributes[name] = copied(value) if isinstance(value, (ast.AST, list)) else value
    return made


class NoSource(Exception):
    """There is no source, or it is not the code; the message says which."""


class Source(NamedTuple):
    """The source of one function.

    Attributes
    ----------
    tree : ast.Module
        The function and what is needed around it, so that its variables mean what they mean in its
        file. It may be changed.
    definition : ast.FunctionDef, ast.AsyncFunctionDef or ast.Lambda
        The function in the tree.
    owner : str
        The class around it, by which Python changes names like `__a`; may be empty.
    position : int
        Which of the code objects in the compiled tree is the function's, counted by ``nested``.
    """

    tree: ast.Module
    definition: Definition
    owner: str
    position: int


class Text(list[str]):
    """The lines of a text that was sent from another process; known while somebody holds it."""


# Not by the names of files: several processes may have one of the same name (`<stdin>`), and newer
# versions of cloudpickle leave the names out.
_sent: weakref.WeakValueDictionary[str, Text] = weakref.WeakValueDictionary()


def sent(text: str) -> Text:
    """The lines of a text that stands for a file where the process has another one, or none."""
    return _sent.setdefault(text, Text(io.StringIO(text)))  # only "\n" ends a line


def nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code objects inside a code object, from the outside in."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from nested(constant)


def names_used(code: types.CodeType) -> Iterator[str]:
    """The names in ``co_names`` of a code object and of the code nested in it."""
    for each in (code, *nested(code)):
        yield from each.co_names


def compiled(tree: ast.Module, like: types.CodeType) -> types.CodeType:
    """A module's tree compiled with the file name and language features of a code object."""
    made = _compiled(tree, like, 0)
    assert isinstance(made, types.CodeType)
    return made


def _compiled(text: str | ast.Module, like: types.CodeType, flags: int) -> Any:
    """What `compile` makes of a text or tree.

    Warnings are silenced: the text was warned of when it was imported.
    """
    flags |= like.co_flags & _FUTURES
    uninterrupted = _core.without_collections
    return _core.quietly(uninterrupted, compile, text, like.co_filename, "exec", flags, True)


def source_of(function: types.FunctionType) -> Source:
    """The source of a function.

    Raises
    ------
    NoSource
        Where there is none, or it is not what the function runs.
    """
    return _found(function)[0]


def text_of(function: types.FunctionType) -> list[str]:
    """The lines of the text in which the source of a function stands.

    Raises
    ------
    NoSource
        As ``source_of``.
    """
    return _found(function)[1]


def _found(function: types.FunctionType) -> tuple[Source, list[str]]:
    code = function.__code__
    here = _lines(function)
    for lines in itertools.chain([here], _sent_with(code)):
        source = _source_in(lines, function)
        if source is not None:
            return source, lines
    if not here:
        raise NoSource(f"there is no source of {code.co_filename}")
    raise NoSource(f"the text of {code.co_filename} is not what was imported")


def _source_in(lines: list[str], function: types.FunctionType) -> Source | None:
    code = function.__code__
    candidates = _lambdas(lines, code) if code.co_name == "<lambda>" else _definitions(lines, code)
    names_of = function.__globals__
    used = set(names_used(code))
    for definition in candidates:
        tree, position = _surrounded(definition, code)
        around = tree.body
        tried = []
        modules = {name for name in used if is_a(names_of.get(name), types.ModuleType)}
        looks = itertools.chain([modules], _imported(lines, code), _imported_within(lines, code))
        for imported in looks:
            names = sorted(used & imported)
            if names in tried:
                continue
            tried.append(names)
            # Python compiles methods of what a module imports in another way.
            ahead = [ast.Import([ast.alias(name) for name in names])] if names else []
            tree.body = [*map(ast.fix_missing_locations, ahead), *around]
            try:
                module = compiled(tree, code)
            except UNREADABLE:
                continue
            found = list(nested(module))[position]
            if found.co_name == code.co_name and _same(found, code):
                return Source(tree, definition, _owner(code), position)
    return None


def _sent_with(code: types.CodeType) -> Iterator[list[str]]:
    """The texts of other processes that have the function's name in its lines."""
    name = "lambda" if code.co_name == "<lambda>" else code.co_name
    first, last = code.co_firstlineno, last_line(code)
    for lines in list(_sent.values()):
        if any(name in line for line in lines[first - 1 : last]):
            yield lines


def _lines(function: types.FunctionType) -> list[str]:
    name = function.__code__.co_filename
    if name == "<string>" and "-c" in sys.orig_argv[:-1]:
        return sys.orig_argv[sys.orig_argv.index("-c") + 1].splitlines(keepends=True)
    linecache.checkcache(name)
    return linecache.getlines(name, function.__globals__)


def line_of(function: types.FunctionType, number: int) -> str:
    """A line of the function's file; empty where it is not known."""
    lines = _lines(function)
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def parsed(text: str, code: types.CodeType) -> ast.Module:
    made = _compiled(text, code, ast.PyCF_ONLY_AST)
    assert isinstance(made, ast.Module)
    return made


# An import statement, to the end of its line or of its brackets.
_IMPORT = r"^(?:import|from)[ \t](?:[^\n(]*\([^)]*\)|[^\n]*)"


class _Imports:
    """The names that a file imports: first those of lines that begin with an import, then also of
    indented lines, at last of the parsed file.

    Each look takes longer than the one before. They are needed where the modules among a function's
    globals are not all names that its file imports.
    """

    def __init__(self, lines: list[str], code: types.CodeType) -> None:
        self.lines = lines
        self._code = code
        self._found: list[set[str]] = []

    def __iter__(self) -> Iterator[set[str]]:
        looks = (self._unindented, self._anywhere, self._certain)
        for at, look in enumerate(looks):
            if at == len(self._found):
                self._found.append(look())
            yield self._found[at]

    def _unindented(self) -> set[str]:
        return self._named_by(re.compile(_IMPORT, re.MULTILINE))

    def _anywhere(self) -> set[str]:
        return self._named_by(re.compile(rf"^[ \t]*{_IMPORT[1:]}", re.MULTILINE))

    def _certain(self) -> set[str]:
        try:
            return names_imported(parsed("".join(self.lines), self._code))
        except UNREADABLE:
            return set()

    def _named_by(self, pattern: re.Pattern[str]) -> set[str]:
        statements = [found.group().strip() for found in pattern.finditer("".join(self.lines))]
        names: set[str] = set()
        try:
            return names_imported(parsed("\n".join(statements), self._code))
        except UNREADABLE:
            pass
        for statement in statements:  # one of them is a line inside a text
            with contextlib.suppress(*UNREADABLE):
                names |= names_imported(parsed(statement, self._code))
        return names


# The imports of the files that were read last, by their names, for as long as `linecache` gives the
# same lines. In a notebook each run of a cell is a new file, so there is no end of them.
_imports: dict[str, _Imports] = {}
_MOST_FILES = 256


def _imported(lines: list[str], code: types.CodeType) -> _Imports:
    known = _imports.get(code.co_filename)
    if known is None or known.lines is not lines:
        known = _imports[code.co_filename] = _Imports(lines, code)
        while len(_imports) > _MOST_FILES:
            del _imports[next(iter(_imports))]
    return known


def _imported_within(lines: list[str], code: types.CodeType) -> Iterator[set[str]]:
    """What the statement with the function imports: a notebook compiles each of a cell alone."""
    with contextlib.suppress(*UNREADABLE):
        for statement in parsed("".join(lines), code).body:
            if (statement.end_lineno or 0) >= code.co_firstlineno:
                yield names_imported(ast.Module([statement], []))
                return


def names_imported(tree: ast.Module) -> set[str]:
    """What a module's own statements import, those of its functions not counted."""
    names = set()
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                names.add(alias.asname or alias.name.partition(".")[0])
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
            pending.extend(ast.iter_child_nodes(node))
    return names


def _definitions(lines: list[str], code: types.CodeType) -> Iterator[Definition]:
    """The ``def`` that begins at the code's first line."""
    first = code.co_firstlineno - 1
    if first >= len(lines):
        return
    # Empty lines keep the numbers of lines; below `if 1:` a statement may be indented.
    indented = lines[first][:1].isspace()
    ahead = "\n" * (first - 1) + "if 1:\n" if indented else "\n" * first
    last = last_line(code)
    for end in range(last, min(last + _TRAILING_LINES, len(lines)) + 1):
        try:
            tree = parsed(ahead + "".join(lines[first:end]), code)
        except UNREADABLE:
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node
                return
        return


def last_line(code: types.CodeType) -> int:
    last = code.co_firstlineno
    for each in (code, *nested(code)):
        for _, _, line in each.co_lines():
            last = max(last, line or 0)
    return last


def _lambdas(lines: list[str], code: types.CodeType) -> Iterator[Definition]:
    """All ``lambda`` at the code's first line."""
    try:
        tree = parsed("".join(lines), code)
    except UNREADABLE:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
            yield node


def _surrounded(definition: Definition, code: types.CodeType) -> tuple[ast.Module, int]:
    """A module in which the function's code comes out as in its own, and how deep inside it.

    Variables of enclosing functions are those of one function around it; a class around it makes
    names with two underscores, and what ``super()`` needs, as they are.
    """
    body: ast.stmt
    if isinstance(definition, ast.Lambda):
        _without_defaults(definition.args)
        body = ast.copy_location(ast.Expr(definition), definition)
    else:
        _without_defaults(definition.args)
        definition.decorator_list = []
        definition.returns = None
        if hasattr(definition, "type_params"):
            definition.type_params = []
        body = definition
    depth = 0
    if owner := _owner(code):
        body, depth = _class(owner, body, code), depth + 1
    free = [name for name in code.co_freevars if name != "__class__"]
    if "__class__" in code.co_freevars and not isinstance(body, ast.ClassDef):
        body, depth = _class("_", body, code), depth + 1
    if free:
        body, depth = _function("_", free, body, code), depth + 1
    return ast.Module([body], []), depth


def _owner(code: types.CodeType) -> str:
    """The class around a function; empty where it is in none.

    One around a function outside of it counts only where there are names with two underscores.
    """
    is_directly_around = True
    for around in reversed(code.co_qualname.split(".")[:-1]):
        if around == "<locals>":
            is_directly_around = False
        elif not around.startswith("<"):  # as "<listcomp>" does
            private = f"_{around.lstrip('_')}__"
            if is_directly_around or any(name.startswith(private) for name in names_used(code)):
                return around
    return ""


def _without_defaults(arguments: ast.arguments) -> None:
    """Default values and annotations belong to the code around a function."""
    nothing = ast.Constant(None, lineno=1, col_offset=0)
    arguments.defaults = [nothing for _ in arguments.defaults]
    arguments.kw_defaults = [each and nothing for each in arguments.kw_defaults]
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for each in (*every, arguments.vararg, arguments.kwarg):
        if each is not None:
            each.annotation = None


def _class(name: str, body: ast.stmt, code: types.CodeType) -> ast.ClassDef:
    made = parsed(f"class {name}: pass", code).body[0]
    assert isinstance(made, ast.ClassDef)
    made.body = [body]
    return made


def _function(
    name: str, parameters: list[str], body: ast.stmt, code: types.CodeType
) -> ast.FunctionDef:
    made = parsed(f"def {name}(): pass", code).body[0]
    assert isinstance(made, ast.FunctionDef)
    made.args.args = [ast.arg(each, lineno=1, col_offset=0) for each in parameters]
    made.body = [body]
    return made


_COMPARED = (
    "co_code",
    "co_names",
    "co_varnames",
    "co_freevars",
    "co_cellvars",
    "co_argcount",
    "co_posonlyargcount",
    "co_kwonlyargcount",
    "co_exceptiontable",
)


def _same(a: types.CodeType, b: types.CodeType) -> bool:
    """Whether two code objects do the same."""
    if any(getattr(a, name) != getattr(b, name) for name in _COMPARED):
        return False
    return len(a.co_consts) == len(b.co_consts) and all(
        map(_same_constant, a.co_consts, b.co_consts)
    )


def _same_constant(a: object, b: object) -> bool:
    if isinstance(a, types.CodeType) and isinstance(b, types.CodeType):
        return _same(a, b)
    # In words, because 0.0 == -0.0 and a NaN is equal to nothing; a set's order says nothing.
    return type(a) is type(b) and (a == b if isinstance(a, frozenset) else repr(a) == repr(b))
