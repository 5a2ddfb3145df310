"""How do times grow with the size of the arguments? ``%ubench --over`` asks."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import ufuse
from ufuse import threads
from ufuse.function import Function

from . import explain
from .timing import best_time, compared, shown

Call = tuple[Function[..., Any], tuple[Any, ...], dict[str, Any]]


class Row(NamedTuple):
    """The best times of a call with arguments of one size, in seconds.

    Attributes
    ----------
    size : int
    numpy : float
        Of the plain function.
    ours : tuple of float
        Of the jitted function, with each number of threads.
    limit : float
        What the memory needs at least to move the arguments and the results once; 0 where that is
        not known. Arrays that fit the CPU's caches may take less.
    """

    size: int
    numpy: float
    ours: tuple[float, ...]
    limit: float


class Sizes:
    """Times for several sizes: a table as text, a table and a picture in a notebook.

    Attributes
    ----------
    text : str
        The call.
    name : str
        The variable that is the size.
    threads : tuple of int
        With how many threads the jitted function ran.
    rows : list of Row
    """

    def __init__(self, text: str, name: str, threads: tuple[int, ...]) -> None:
        self.text = text
        self.name = name
        self.threads = threads
        self.rows: list[Row] = []

    @property
    def head(self) -> tuple[str, ...]:
        """The names of the table's columns."""
        ours = [f"ufuse, {count} thread{'s' * (count != 1)}" for count in self.threads]
        return (self.name, "NumPy", *ours, "", "memory limit")

    def _cells(self) -> Iterator[tuple[str, ...]]:
        for row in self.rows:
            limit = shown(row.limit) if row.limit else "-"
            times = map(shown, (row.numpy, *row.ours))
            yield (f"{row.size:,}", *times, compared(row.ours[-1], row.numpy), limit)

    def __str__(self) -> str:
        return f"{self.text}\n{explain.columns([self.head, *self._cells()])}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        table = explain.table(self._cells(), self.head)
        try:
            figure = self.plot()
        except ImportError:
            return f"{table}<p>With Matplotlib installed there is a picture, too.</p>"
        picture = io.StringIO()
        figure.savefig(picture, format="svg")
        svg = picture.getvalue()
        return table + svg[svg.index("<svg") :]

    def plot(self) -> Any:
        """Draw the times over the sizes, both on logarithmic axes.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        ImportError
            When Matplotlib is not installed.
        """
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.5, 4.0), layout="constrained")
        axes = figure.add_subplot()
        sizes = [row.size for row in self.rows]
        axes.plot(sizes, [row.numpy for row in self.rows], "o-", color="tab:gray", label="NumPy")
        for place, label in enumerate(self.head[2:-2]):
            style = "o-" if place == len(self.threads) - 1 else "o--"
            times = [row.ours[place] for row in self.rows]
            axes.plot(sizes, times, style, color="tab:blue", label=label)
        known = [row for row in self.rows if row.limit]
        axes.plot(
            [row.size for row in known],
            [row.limit for row in known],
            ":",
            color="black",
            label="memory limit",
        )
        axes.set(
            xscale="log",
            yscale="log",
            xlabel=self.name,
            ylabel="seconds of a call",
            title=self.text,
        )
        axes.grid(alpha=0.3)
        axes.legend()
        return figure


def measure(
    found: Sizes, sizes: Sequence[int], call_for: Callable[[int], Call], seconds: float
) -> Iterator[Row]:
    """Time a call for each size; the rows are added to ``found`` as they come.

    Parameters
    ----------
    found : Sizes
    sizes : sequence of int
    call_for : callable
        Gives the jitted function and the arguments for a size.
    seconds : float
        For about so long each version runs at each size.
    """
    bandwidth = memory_bandwidth()
    for size in sizes:
        function, args, kwargs = call_for(size)
        best = functools.partial(_best_time, args=args, kwargs=kwargs, seconds=seconds)
        moved = function.explain(*args, **kwargs).bytes_minimum
        ours = tuple(_with_threads(count, best, function) for count in found.threads)
        row = Row(size, best(function.__wrapped__), ours, moved / bandwidth)
        found.rows.append(row)
        yield row


def _best_time(
    callee: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], seconds: float
) -> float:
    return best_time(functools.partial(callee, *args, **kwargs), seconds)


def _with_threads(
    count: int, best: Callable[[Callable[..., Any]], float], function: Callable[..., Any]
) -> float:
    """The best time of a call with so many threads."""
    before = threads.get_num_threads() if threads.is_set else 0
    threads.set_num_threads(count)
    try:
        return best(function)
    finally:
        threads.set_num_threads(before)


@functools.cache
def memory_bandwidth() -> float:
    """Bytes per second that all threads together read and write, measured once in a process."""
    source = np.ones(16_000_000)
    target = np.empty_like(source)
    copy = ufuse.jit(lambda: np.negative(source, out=target))
    copy.warmup()
    return 2 * source.nbytes / best_time(copy, 0.3)
