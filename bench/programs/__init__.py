"""What is a program that `python -m bench.programs` measures?

A function as people write it for NumPy, with arguments; nothing in it knows of ufuse. Modules of
this folder hold programs of our own by field; ``npbench.py`` reads those of a checkout of NPBench.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Decorate = Callable[[Callable[..., Any]], Callable[..., Any]]


class Program(NamedTuple):
    """One program.

    Attributes
    ----------
    name : its name in tables
    build : gives what is called, of a decorator to put on its function: ``ufuse.jit`` or none
    arguments : makes the arguments of a call; the same values each time
    """

    name: str
    build: Callable[[Decorate], Callable[..., Any]]
    arguments: Callable[[], tuple[Any, ...]]


class Collection(dict[str, Program]):
    """The programs of a module, by name, which their functions add themselves to."""

    def program(self, arguments: Callable[[np.random.Generator], tuple[Any, ...]]) -> Decorate:
        """Add a function that is decorated and called with these arguments."""

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            name = function.__name__
            self[name] = Program(name, lambda decorate: decorate(function), _seeded(arguments))
            return function

        return add

    def with_callback(
        self, arguments: Callable[[np.random.Generator], tuple[Any, ...]]
    ) -> Callable[[Callable[[Decorate], Any]], Callable[[Decorate], Any]]:
        """Add a function that gives what is called, of the decorator for its callback."""

        def add(build: Callable[[Decorate], Any]) -> Callable[[Decorate], Any]:
            self[build.__name__] = Program(build.__name__, build, _seeded(arguments))
            return build

        return add


def _seeded(
    arguments: Callable[[np.random.Generator], tuple[Any, ...]],
) -> Callable[[], tuple[Any, ...]]:
    return lambda: arguments(np.random.default_rng(7))
