"""Notebook magics: ``%load_ext ufuse`` gives ``%%ufuse``, ``%ubench`` and ``%%udebug``.

``%%ufuse`` runs a cell and compiles the functions that it defines, before their first call; that
call is compared with NumPy, unless it could have effects, which would be doubled.
``%ubench expression`` times a call of such a function beside the plain one, and with ``--over`` for
several sizes of its arguments. ``%%udebug`` runs a cell with plain NumPy, and says where its first
NaN was born.
"""

# IPython's decorators have no types.
# mypy: disable-error-code="no-untyped-call,untyped-decorator"

from __future__ import annotations

import ast
import functools
import linecache
import types
from collections.abc import Callable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, needs_local_scope
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import ProgressBar

from ufuse import threads
from ufuse.function import Function
from ufuse.jit import disabled
from ufuse.tracing.run import Options
from ufuse.tracing.tracebacks import UsersTraceback

from . import debugging, sizes, verify
from .timing import best_time, compared, shown

_DECORATOR = "__ufuse_compiled__"


def _compiled(function: Any, options: Options, check: bool) -> Any:
    """A function of the cell, whose first call is compared with plain NumPy."""
    if not isinstance(function, types.FunctionType):
        return function
    made = Function(function, options)

    def tell(verdict: verify.Verdict) -> None:
        made._end_verification()
        print(f"{verdict.name}: {verdict}")

    if check:
        made._verify(1, tell)
    return made


class _Decorate(ast.NodeTransformer):
    """Puts a decorator on the functions at the top level of a cell, outside all others."""

    def visit_Module(self, node: ast.Module) -> ast.Module:
        for function in node.body:
            if isinstance(function, ast.FunctionDef):
                name = ast.copy_location(ast.Name(_DECORATOR, ast.Load()), function)
                function.decorator_list.insert(0, name)
        return node


@magics_class
class UfuseMagics(Magics):
    """The magics of ``%load_ext ufuse``."""

    shell: InteractiveShell

    @magic_arguments()
    @argument("--numerics", default="exact", choices=("exact", "fast"), help="see ufuse.jit")
    @argument("--no-check", action="store_true", help="do not compare the first call with NumPy")
    @cell_magic
    def ufuse(self, line: str, cell: str) -> None:
        """Run the cell and compile the functions that it defines.

        The first call of each also runs the plain function on copies of the arguments, and says
        whether the results are the same. A call that could have effects (it prints, reads or
        writes files or names of other cells, draws from a random generator of another cell) is
        made once, and it says why it was not compared.
        """
        options = parse_argstring(self.ufuse, line)
        known = Options(options.numerics)
        space, transformer = self.shell.user_ns, _Decorate()
        space[_DECORATOR] = functools.partial(_compiled, options=known, check=not options.no_check)
        self.shell.ast_transformers.append(transformer)
        try:
            result = self.shell.run_cell(cell)
        finally:
            self.shell.ast_transformers.remove(transformer)
            space.pop(_DECORATOR, None)
        if not result.success:
            # IPython has shown the exception; this one stops whoever runs all cells.
            raise UsageError("the cell under %%ufuse raised an exception")

    @cell_magic
    def udebug(self, line: str, cell: str) -> Any:
        """Run the cell with plain NumPy, and say where its numbers went wrong.

        Operations in the cell are looked at, also those in functions that it defines, but not those
        in functions of other cells. Where a NaN or an infinity came up that no operand had, where
        integers wrapped around, and where a dtype became larger is said when the cell has ended.
        """
        if line.strip():
            raise UsageError("%%udebug takes no arguments")
        text = self.shell.transform_cell(cell)
        file = self.shell.compile.cache(text, self.shell.execution_count)
        tree = ast.parse(text, file)
        shown = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            shown = ast.Expression(tree.body.pop().value)
        findings = debugging.Findings()
        space = self.shell.user_ns
        try:
            with disabled(), UsersTraceback():
                exec(findings.compiled(tree, file), space)
                return eval(findings.compiled(shown, file), space) if shown else None
        finally:
            findings.end()
            print(findings)

    @magic_arguments()
    @argument("--seconds", type=float, default=0.5, help="time for each version")
    @argument("--over", metavar="NAME=SIZES", help="sizes, such as n=1000,1e6: one row for each")
    @argument("expression", nargs="+", help="a call of a function compiled by %%ufuse or ufuse.jit")
    @needs_local_scope
    @line_magic
    def ubench(self, line: str, local_ns: dict[str, Any] | None = None) -> sizes.Sizes | None:
        """Time a call of a compiled function and of the plain one.

        The arguments are evaluated once, and not timed. With ``--over n=1000,1e6`` they are
        evaluated for each of these values of ``n``, and a table and a picture compare the times,
        with one thread and with all, with what the memory allows.
        """
        options = parse_argstring(self.ubench, line)
        text = " ".join(options.expression)
        space = {**self.shell.user_ns, **(local_ns or {})}
        call_in = _reader_of(text)
        with UsersTraceback():
            if options.over:
                return _over(text, options, lambda name, size: call_in({**space, name: size}))
            function, args, kwargs = call_in(space)
            ours, theirs = (
                best_time(functools.partial(callee, *args, **kwargs), options.seconds)
                for callee in (function, function.__wrapped__)
            )
        print(f"ufuse {shown(ours)}   NumPy {shown(theirs)}   {compared(ours, theirs)}")
        return None


def _over(text: str, options: Any, call_for: Callable[[str, int], sizes.Call]) -> sizes.Sizes:
    """The table of ``%ubench --over``, with a bar while it is made."""
    name, _, given = options.over.partition("=")
    try:
        values = [_size(value) for value in given.split(",")]
    except ValueError:
        values = []
    if not (name.isidentifier() and values):
        raise UsageError(
            f"%ubench: --over needs a name and whole numbers, as n=1000,1e6; not {options.over}"
        )
    most = threads.get_num_threads()
    found = sizes.Sizes(text, name, (1, most) if most > 1 else (1,))
    rows = sizes.measure(found, values, functools.partial(call_for, name), options.seconds)
    for _ in zip(ProgressBar(len(values)), rows, strict=True):
        pass
    return found


def _size(text: str) -> int:
    """A whole number, also as ``1e6``."""
    value = float(text)
    if not value.is_integer() or value < 0:
        raise ValueError(text)
    return int(value)


def _reader_of(text: str) -> Callable[[dict[str, Any]], sizes.Call]:
    """What gives the function and the arguments of a call from the values of its names."""
    try:
        tree = ast.parse(text, "<ubench>", mode="eval")
    except SyntaxError as error:
        raise UsageError(f"%ubench: {error.msg}: {text}") from None
    if not isinstance(tree.body, ast.Call):
        raise UsageError("%ubench needs a call, such as: %ubench f(x)")
    name = tree.body.func
    pair = ast.Tuple([name, tree.body], ast.Load())
    tree.body.func = ast.Name("_ufuse_arguments", ast.Load())
    code = compile(ast.fix_missing_locations(ast.Expression(pair)), "<ubench>", "eval")
    linecache.cache["<ubench>"] = (len(text), None, [text + "\n"], "<ubench>")

    def call_in(space: dict[str, Any]) -> sizes.Call:
        function, (args, kwargs) = eval(code, {**space, "_ufuse_arguments": _arguments})
        if not isinstance(function, Function):
            raise UsageError(
                f"%ubench: {ast.unparse(name)} was not compiled by %%ufuse or ufuse.jit"
            )
        return function, args, kwargs

    return call_in


def _arguments(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs


def load(shell: Any) -> None:
    """What ``%load_ext ufuse`` runs."""
    shell.register_magics(UfuseMagics)
