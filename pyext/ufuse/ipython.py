"""Notebook magics: ``%load_ext ufuse`` gives ``%%ufuse`` and ``%ubench``.

``%%ufuse`` runs a cell and compiles the functions that it defines; the first call of each is
compared with NumPy. ``%ubench expression`` times a call of such a function beside the plain one.
"""

# IPython's decorators have no types.
# mypy: disable-error-code="no-untyped-call,untyped-decorator"

from __future__ import annotations

import ast
import functools
import timeit
import types
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, needs_local_scope
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from . import compare, copies
from .jit import Function, jit


def checked(function: Function) -> Any:
    """``function``, whose first call also runs plain NumPy on copies and compares."""
    pending = [True]

    @functools.wraps(function.__wrapped__)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not pending:
            return function(*args, **kwargs)
        pending.clear()
        their_args, their_kwargs = copies.copied((args, kwargs))
        ours = function(*args, **kwargs)
        theirs = function.__wrapped__(*their_args, **their_kwargs)
        found = compare.difference(ours, theirs)
        name = getattr(function, "__name__", "function")
        print(f"{name}: same as NumPy" if found is None else f"{name}: DIFFERS: {found}")
        return ours

    call.__dict__["ufuse"] = function
    call.__dict__["explain"] = function.explain
    call.__dict__["source"] = function.source
    return call


@magics_class
class UfuseMagics(Magics):
    """The magics of ``%load_ext ufuse``."""

    shell: InteractiveShell

    @magic_arguments()
    @argument("--numerics", default="exact", choices=("exact", "fast"), help="see ufuse.jit")
    @argument("--no-check", action="store_true", help="do not compare the first call with NumPy")
    @cell_magic
    def ufuse(self, line: str, cell: str) -> None:
        """Run the cell and compile the functions that it defines."""
        options = parse_argstring(self.ufuse, line)
        tree = ast.parse(cell)
        names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        result = self.shell.run_cell(cell)
        if result.error_in_exec is not None or result.error_before_exec is not None:
            return
        space = self.shell.user_ns
        for name in names:
            if isinstance(space.get(name), types.FunctionType):
                function = jit(space[name], numerics=options.numerics)
                space[name] = function if options.no_check else checked(function)

    @magic_arguments()
    @argument("--seconds", type=float, default=0.5, help="time for each of the two")
    @argument("expression", nargs="+", help="a call of a function compiled by %%ufuse or ufuse.jit")
    @needs_local_scope
    @line_magic
    def ubench(self, line: str, local_ns: dict[str, Any] | None = None) -> None:
        """Time a call of a compiled function and of the plain one."""
        options = parse_argstring(self.ubench, line)
        text = " ".join(options.expression)
        tree = ast.parse(text, mode="eval")
        if not isinstance(tree.body, ast.Call):
            raise ValueError("%ubench needs a call, such as: %ubench f(x)")
        space = {**self.shell.user_ns, **(local_ns or {})}
        function = eval(ast.unparse(tree.body.func), space)
        function = getattr(function, "ufuse", function)
        if not isinstance(function, Function):
            raise ValueError("%ubench needs a function compiled by %%ufuse or ufuse.jit")
        tree.body.func = ast.Name("_ufuse_callee", ast.Load())
        code = compile(ast.fix_missing_locations(tree), "<ubench>", "eval")
        times = [
            _time(code, {**space, "_ufuse_callee": callee}, options.seconds)
            for callee in (function, function.__wrapped__)
        ]
        print(
            f"ufuse {_text(times[0])}   NumPy {_text(times[1])}   ratio {times[1] / times[0]:.2f}"
        )


def _time(code: types.CodeType, space: dict[str, Any], seconds: float) -> float:
    """Best time of one evaluation, in seconds."""
    timer = timeit.Timer(lambda: eval(code, space))
    timer.timeit(1)
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
