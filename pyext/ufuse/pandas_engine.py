"""What do ``df.apply(f, engine=ufuse.jit)`` and ``series.map(f, engine=ufuse.jit)`` run?

pandas (from version 3 on) hands the whole call to what the engine names in ``__pandas_udf__``: a
class with the methods of ``pandas.api.executors.BaseExecutionEngine``. The answer is pandas' own
for the jitted function: same types, index and exceptions. pandas is not imported here.
"""

from __future__ import annotations

import functools
import time
import types
from collections.abc import Callable
from typing import Any

import numpy as np

# So many functions stay jitted for the next time that pandas is given them, and alive.
_KEPT = 32
# So many elements are timed with each of two functions.
_TIMED = 8
_PLAIN = (types.FunctionType, types.MethodType, functools.partial)


class Engine:
    """Runs functions over axes and elements of pandas' objects."""

    @staticmethod
    def map(
        data: Any,
        func: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        decorator: Callable[[Any], Any],
        skip_na: bool,
    ) -> Any:
        """Each element by itself."""
        function = _jitted(func, decorator)
        alternative = getattr(function, "_alternative", None)
        if alternative is not None and alternative() is not None:
            function = _sooner(func, function)
        if args or kwargs:
            function = _with(function, args, kwargs)
        if isinstance(data, np.ndarray):
            return _map_array(data, function, skip_na)
        return data.map(function, na_action="ignore" if skip_na else None)

    @staticmethod
    def apply(
        data: Any,
        func: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        decorator: Callable[[Any], Any],
        axis: Any,
    ) -> Any:
        """Each column or row by itself: as an array where the data is one, else as a Series."""
        function = _jitted(func, decorator)
        if not isinstance(data, np.ndarray):
            return data.apply(function, axis=axis, args=args, **kwargs)
        if isinstance(func, np.ufunc):
            with np.errstate(all="ignore"):  # as pandas has it
                return func(data, *args, **kwargs)
        along = 1 if axis in (1, "columns") else 0
        if not callable(func):  # the name of a method, or several functions
            return _frame(data).apply(func, axis=along, args=args, **kwargs).to_numpy()

        def of_line(line: Any) -> Any:
            result = function(line, *args, **kwargs)
            # NumPy would cut texts to the length of the first one.
            return np.array(result, dtype=object) if isinstance(result, str) else result

        return np.apply_along_axis(of_line, along, data)


def _sooner(plain: Callable[..., Any], jitted: Callable[..., Any]) -> Callable[..., Any]:
    """Of two functions with equal results the one that is measured to be faster on some elements.

    Most elements are Python's numbers, for which plain Python often takes less time.
    """
    spent = [0, 0]
    ways = (plain, jitted)
    # Which of them is next, and whether its time counts: first calls take longer than others.
    turns = iter([(1, False)] * 2 + [(0, True), (1, True)] * _TIMED)
    chosen: Callable[..., Any] | None = None

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal chosen
        if chosen is not None:
            return chosen(*args, **kwargs)
        turn = next(turns, None)
        if turn is None:
            chosen = ways[spent[1] < spent[0]]
            return chosen(*args, **kwargs)
        which, counts = turn
        start = time.perf_counter_ns()
        result = ways[which](*args, **kwargs)
        spent[which] += counts * (time.perf_counter_ns() - start)
        return result

    return call


def _frame(data: Any) -> Any:
    from pandas import DataFrame

    return DataFrame(data)


def _map_array(data: Any, function: Callable[..., Any], skip_na: bool) -> Any:
    from pandas import Series

    flat = Series(data.ravel()).map(function, na_action="ignore" if skip_na else None)
    return flat.to_numpy().reshape(data.shape)


def _with(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[..., Any]:
    return lambda element: function(element, *args, **kwargs)


def _jitted(func: Any, decorator: Callable[[Any], Any]) -> Any:
    """The jitted function; names, ufuncs and lists of functions mean something to pandas."""
    if isinstance(func, types.FunctionType):
        return _kept(func, decorator)
    return decorator(func) if isinstance(func, _PLAIN) else func


@functools.lru_cache(maxsize=_KEPT)
def _kept(func: types.FunctionType, decorator: Callable[[Any], Any]) -> Any:
    return decorator(func)
