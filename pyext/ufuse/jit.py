"""What does ``ufuse.jit`` take, and how is it switched off?

``jit`` makes a ``Function`` of what it decorates; what happens in a call is said there.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeVar, get_args, overload

import numpy as np

from . import environment
from ._core import is_a
from .function import Function
from .pandas_engine import Engine
from .tracing.run import Options
from .tracing.watchers import Stance

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

P = ParamSpec("P")
R = TypeVar("R")
# What stays what it is when the function in it is jitted.
_D = TypeVar("_D", bound="staticmethod[..., Any] | classmethod[Any, ..., Any] | property")
_Numerics = Literal["exact", "fast"]
_Compile = Literal["background", "wait"]


class Decorator(Protocol):
    """What ``jit`` returns where it is given options only."""

    @overload
    def __call__(self, function: _D, /) -> _D: ...  # type: ignore[overload-overlap]

    @overload
    def __call__(self, function: Callable[P, R], /) -> Function[P, R]: ...


def disabled() -> AbstractContextManager[None]:
    """A context manager: jitted functions that this thread calls are the plain ones meanwhile.

    ``UFUSE_DISABLE=1`` does the same for a whole process.

    Examples
    --------
    >>> import numpy as np, ufuse
    >>> f = ufuse.jit(lambda x: x + 1)
    >>> with ufuse.disabled():
    ...     f(np.arange(3))
    array([1, 2, 3])
    >>> f.stats().traced
    0
    """
    return Stance("plain")


@overload
def jit(  # type: ignore[overload-overlap]
    function: _D,
    /,
    *,
    numerics: _Numerics = "exact",
    debug: bool = False,
    verify: int = 0,
    compile: _Compile = "background",
    strict: bool = False,
) -> _D: ...


@overload
def jit(
    function: Callable[P, R],
    /,
    *,
    numerics: _Numerics = "exact",
    debug: bool = False,
    verify: int = 0,
    compile: _Compile = "background",
    strict: bool = False,
) -> Function[P, R]: ...


@overload
def jit(
    function: None = None,
    /,
    *,
    numerics: _Numerics = "exact",
    debug: bool = False,
    verify: int = 0,
    compile: _Compile = "background",
    strict: bool = False,
) -> Decorator: ...


def jit(
    function: Any = None,
    /,
    *,
    numerics: _Numerics = "exact",
    debug: bool = False,
    verify: int = 0,
    compile: _Compile = "background",
    strict: bool = False,
) -> Any:
    """Run a plain NumPy function as fused native loops, with NumPy's own answers.

    Parameters
    ----------
    function : callable
        A function, lambda, method, closure, ``functools.partial`` or callable object; also a
        ``staticmethod``, ``classmethod`` or ``property``. Left out, ``jit`` returns a decorator.
    numerics : {"exact", "fast"}
        "exact" gives NumPy's bits. "fast" allows contraction (``a * b + c`` rounded once) in this
        function's compiled loops: results may differ by 1 to 2 ULP per operation. A call that
        has waited for the compiler in vain gives NumPy's bits.
    debug : bool
        Raise what went wrong inside ufuse instead of answering with NumPy.
    verify : int
        So many calls are compared with plain NumPy, which runs on copies of the arguments: results
        and arguments afterwards, or the exceptions. The first difference raises
        ``ufuse.Mismatch``, which names the first operation that differs. A call that could have
        effects (it reads or writes files, prints, draws random numbers from elsewhere than its
        arguments and the global streams of NumPy and Python) is never made twice: it is not
        compared, and ``explain`` says why. Afterwards calls cost what they cost without. With
        ``UFUSE_DEBUG=check`` all calls of all functions are compared.
    compile : {"background", "wait"}
        What a call does whose loops are not compiled yet. "background": NumPy or an interpreter
        answers meanwhile, and the call waits only where that would take longer. "wait": the call
        waits for them, up to 5 seconds, so that the next one is as fast as it gets; for
        measurements, and for programs that have time before they begin.
    strict : bool
        Raise ``ufuse.FallbackError`` where NumPy or Python would run a part of a call, as under
        ``ufuse.stance("fail_on_fallback")``; calls wait for the compiler. Later calls of a
        recorded function cost nothing more. A call inside another traced call belongs to that.

    Returns
    -------
    Function
        A callable with the name, documentation and signature of ``function``, and the methods
        ``explain``, ``source``, ``stats`` and ``warmup``. It is pickled and copied as ``function``
        would be. pandas 3 takes ``jit``, with or without options, as an ``engine``.

    Raises
    ------
    TypeError
        When ``function`` cannot be called, or is a class; when ``verify`` is no number of calls.
    ValueError
        For an unknown ``numerics`` or ``compile``, and for a ``verify`` that is negative, or given
        with ``numerics="fast"``, which gives up the bits that are compared.

    Examples
    --------
    >>> import numpy as np, ufuse
    >>> @ufuse.jit
    ... def distance(x, y):
    ...     return np.sqrt(((x - y) ** 2).sum(-1))
    >>> distance(np.zeros((2, 3)), np.ones(3))
    array([1.73205081, 1.73205081])
    """
    if numerics not in get_args(_Numerics):
        raise ValueError(f"numerics must be 'exact' or 'fast', not {numerics!r}")
    if compile not in get_args(_Compile):
        raise ValueError(f"compile must be 'background' or 'wait', not {compile!r}")
    if strict:
        compile = "wait"  # meanwhile it would be NumPy's or the interpreter's
    calls = _calls_to_verify(verify, numerics)
    options = Options(numerics, bool(debug), calls, compile, bool(strict))
    if function is None:
        decorator = functools.partial(_decorate, options)
        vars(decorator)["__pandas_udf__"] = Engine
        return decorator
    return _decorate(options, function)


# What `df.apply(f, engine=ufuse.jit)` looks for.
vars(jit)["__pandas_udf__"] = Engine


def _calls_to_verify(verify: Any, numerics: str) -> float:
    """How many calls are compared with plain NumPy: the argument of ``jit``, or all."""
    if isinstance(verify, (bool, np.bool_)) or not hasattr(type(verify), "__index__"):
        raise TypeError(f"verify must be a number of calls, not {verify!r}")
    calls = operator.index(verify)
    if calls < 0:
        raise ValueError(f"verify must be a number of calls, not {calls}")
    if numerics == "fast":
        if calls:
            raise ValueError('verify compares bits, which numerics="fast" gives up')
        return 0
    return math.inf if "check" in environment.debug_words() else calls


def _decorate(options: Options, function: Any) -> Any:
    if is_a(function, (staticmethod, classmethod)):
        return type(function)(_decorate(options, function.__func__))
    if is_a(function, property) and function.fget is not None:
        return function.getter(_decorate(options, function.fget))
    return Function(function, options)
