"""Notebook magics: ``%load_ext ufuse`` gives ``%%ufuse`` and ``%ubench``.

``%%ufuse`` runs a cell and compiles the functions that it defines, before their first call; that
call is compared with NumPy. ``%ubench expression`` times a call of such a function beside the plain
one.
"""

# IPython's decorators have no types.
# mypy: disable-error-code="no-untyped-call,untyped-decorator"

from __future__ import annotations

import ast
import functools
import linecache
import timeit
import types
from collections.abc import Callable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, needs_local_scope
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from . import _core, compare, copies
from .jit import Function, Options
from .trace import UsersTraceback, without_ours

_DECORATOR = "__ufuse_compiled__"


class Checked(Function):
    """A jitted function whose first call also runs plain NumPy on copies, and compares.

    Afterwards it is an ordinary ``Function``.
    """

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if _core.session_active():
            return super().__call__(*args, **kwargs)
        self.__class__ = Function  # type: ignore[assignment]
        theirs = copies.copied((args, kwargs))
        try:
            ours = self(*args, **kwargs)
        except BaseException as error:
            self.__class__ = Checked
            error.__traceback__ = without_ours(error.__traceback__)
            raise
        print(f"{self._name()}: {_verdict(self, ours, (args, kwargs), theirs)}")
        return ours


def _verdict(function: Function, ours: Any, given: Any, theirs: Any) -> str:
    """How a result and the arguments after the call compare with NumPy's, in words."""
    try:
        result = function.__wrapped__(*theirs[0], **theirs[1])
    except Exception as error:
        return f"DIFFERS from NumPy, which raises {type(error).__name__}: {error}"
    found = compare.difference(ours, result)
    found = found or compare.difference(given, theirs, "arguments")
    if found is None:
        return "same as NumPy"
    if function._options.numerics == "fast":
        return f'differs from NumPy as numerics="fast" may: {found}'
    return f"DIFFERS from NumPy: {found}"


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

        The first call of each also runs the plain function on copies of the arguments, says
        whether the results are the same, and repeats what it prints or writes to files.
        """
        options = parse_argstring(self.ufuse, line)
        kind = Function if options.no_check else Checked

        def compiled(value: Any) -> Any:
            known = Options(options.numerics)
            return kind(value, known) if isinstance(value, types.FunctionType) else value

        space, transformer = self.shell.user_ns, _Decorate()
        space[_DECORATOR] = compiled
        self.shell.ast_transformers.append(transformer)
        try:
            result = self.shell.run_cell(cell)
        finally:
            self.shell.ast_transformers.remove(transformer)
            space.pop(_DECORATOR, None)
        if not result.success:
            # IPython has shown the exception; this one stops whoever runs all cells.
            raise UsageError("the cell under %%ufuse raised an exception")

    @magic_arguments()
    @argument("--seconds", type=float, default=0.5, help="time for each of the two")
    @argument("expression", nargs="+", help="a call of a function compiled by %%ufuse or ufuse.jit")
    @needs_local_scope
    @line_magic
    def ubench(self, line: str, local_ns: dict[str, Any] | None = None) -> None:
        """Time a call of a compiled function and of the plain one.

        The arguments are evaluated once, and not timed.
        """
        options = parse_argstring(self.ubench, line)
        text = " ".join(options.expression)
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
        space = {**self.shell.user_ns, **(local_ns or {}), "_ufuse_arguments": _arguments}
        linecache.cache["<ubench>"] = (len(text), None, [text + "\n"], "<ubench>")
        with UsersTraceback():
            function, (args, kwargs) = eval(code, space)
            if not isinstance(function, Function):
                raise UsageError(
                    f"%ubench: {ast.unparse(name)} was not compiled by %%ufuse or ufuse.jit"
                )
            ours, theirs = (
                _time(functools.partial(callee, *args, **kwargs), options.seconds)
                for callee in (function, function.__wrapped__)
            )
        ratio = f"{theirs / ours:.3g}x faster" if theirs > ours else f"{ours / theirs:.3g}x slower"
        print(f"ufuse {_text(ours)}   NumPy {_text(theirs)}   {ratio}")


def _arguments(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs


def _time(call: Callable[[], Any], seconds: float) -> float:
    """Best time of one call, in seconds."""
    call()
    timer = timeit.Timer(call)
    number, took = timer.autorange()
    repeat = max(1, min(20, int(seconds / max(took, 1e-9))))
    return min(timer.repeat(repeat, number)) / number


def _text(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def load(shell: Any) -> None:
    """What ``%load_ext ufuse`` runs."""
    shell.register_magics(UfuseMagics)
