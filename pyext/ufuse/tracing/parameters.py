"""Which Python numbers may have another value when a recorded call is replayed?

Those that are operands and nothing else. ``parameters(function)`` asks what the texts of a function
and of the helpers it calls do with their values (``source/facts.py``). While a call is recorded, a
number is a ``_core.number``, which notices operators, comparisons, conditions and ufuncs, and may
be handed to a helper of which the same is true. Any other use of a variable (``x[:n]``,
``range(n)``, ``type(n)``, ``return n``) needs the value itself, and the recording is good for that
value alone. The result of an operation with such numbers is one as well if its place in the code (a
*site*) hands it to nothing but such uses.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ufuse import _core
from ufuse._core import is_a
from ufuse.source import sites
from ufuse.source.facts import PLACED, SOURCES
from ufuse.source.names import Meanings

from . import twin


class Parameters(NamedTuple):
    """Where numbers may have other values in a replay.

    Attributes
    ----------
    positions : tuple of int
        Positional arguments.
    names : tuple of str
        Keyword arguments.
    sites : tuple of (code, int)
        Offsets, in the twins' code, of operations whose results go into operations and attributes
        only, and of attributes that are read for the same.
    """

    positions: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    sites: tuple[tuple[types.CodeType, int], ...] = ()

    def wrap(self, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Replace Python's numbers by recorded ones, in the order of the call."""
        for at in self.positions:
            if at < len(args):
                args[at] = _core.wrap_number(args[at])
        for name, value in kwargs.items():
            if name in self.names:
                kwargs[name] = _core.wrap_number(value)


# A variable or the result of an operation: (id of the code object, name or row of the table). Equal
# code objects are not the same place.
_Source = tuple[int, "str | int"]


class _Reader:
    """Reads functions; knows which sources are looked at and where each one goes."""

    def __init__(self) -> None:
        self.looked_at: set[_Source] = set()
        self.flows: list[tuple[_Source, _Source]] = []
        self.read: dict[types.FunctionType, sites.Instrumented] = {}

    def function(self, function: types.FunctionType) -> None:
        """Read a function, and the helpers that it calls."""
        if function in self.read:
            return
        self.read[function] = made = twin.instrumented(function)
        code, values = function.__code__, made.facts.values
        meanings = Meanings(function, values)
        sources: dict[int, _Source] = {}
        for at, (kind, *what) in enumerate(values):
            if kind in SOURCES:
                sources[at] = id(code), what[0] if kind == "local" else at
        self.looked_at.update((id(code), name) for name in code.co_cellvars)
        self.looked_at.update(sources[at] for at in made.facts.looked_at)
        for variable, value in made.facts.assigned:
            if value in sources:
                self.flows.append((sources[value], (id(code), variable)))
        for kind, *what in values:
            if kind == "call":
                arguments = [sources.get(given) for given in what[1]]
                self.call(meanings.of(what[0]), arguments, what[2])

    def call(self, called: Any, arguments: list[_Source | None], keywords: tuple[str, ...]) -> None:
        """Where the arguments of a call go; keywords are the names of the last ones."""
        if is_a(called, np.ufunc) and not keywords:
            return
        known: Iterable[_Source | None] = ()
        if is_a(called, types.FunctionType) and twin.is_traced(called):
            self.function(called)
            known = _parameters(called.__code__, len(arguments) - len(keywords), keywords)
        for argument, into in itertools.zip_longest(arguments, known):
            if argument and into:
                self.flows.append((argument, into))
            elif argument:
                self.looked_at.add(argument)

    def close(self) -> None:
        """What goes into something that is looked at is looked at."""
        size = -1
        while size != len(self.looked_at):
            size = len(self.looked_at)
            self.looked_at.update(a for a, b in self.flows if b in self.looked_at)

    def sites(self) -> Iterator[tuple[types.CodeType, int]]:
        """Operations and attributes that go into operations only: their places in twins' code."""
        for function, made in self.read.items():
            for at, (kind, *what) in enumerate(made.facts.values):
                if kind in PLACED and (id(function.__code__), at) not in self.looked_at:
                    yield from ((made.code, offset) for offset in what[-1])


def _parameters(
    code: types.CodeType, count: int, keywords: tuple[str, ...]
) -> Iterator[_Source | None]:
    """What the arguments of a call are called in the function; None where it has no name."""
    names = code.co_varnames
    for at in range(count):
        yield (id(code), names[at]) if at < code.co_argcount else None
    for name in keywords:
        yield (id(code), name) if name in _named(code) else None


def _named(code: types.CodeType) -> tuple[str, ...]:
    """The parameters of a function that can be given by name."""
    return code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]


def parameters(function: types.FunctionType) -> Parameters:
    """Ask what is done with the parameters of ``function``.

    Parameters
    ----------
    function : types.FunctionType
        A function that ``scan`` finds traceable; names stand for what they stand for now.

    Returns
    -------
    Parameters

    Examples
    --------
    >>> parameters(lambda x, dt, n: x[:n] * (dt / 2)).names
    ('dt',)
    """
    reader = _Reader()
    reader.function(function)
    reader.close()
    code = function.__code__

    def is_operand(name: str) -> bool:
        return (id(code), name) not in reader.looked_at

    return Parameters(
        tuple(i for i in range(code.co_argcount) if is_operand(code.co_varnames[i])),
        tuple(filter(is_operand, _named(code))),
        tuple(reader.sites()),
    )
