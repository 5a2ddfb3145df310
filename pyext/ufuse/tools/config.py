"""Which settings hold, and where do they come from? ``ufuse.config`` shows it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ufuse import _core, environment, threads
from ufuse.tracing.watchers import stances

from .explain import table


class Setting(NamedTuple):
    """One setting as it holds now.

    Attributes
    ----------
    name : str
        Of the environment variable; ``stance`` is that of the thread that asks.
    value : str
        What holds.
    origin : str
        "default", "environment", or the function that has set it. ``python -m ufuse doctor`` says
        why a value cannot be used.
    meaning : str
        What it is for.
    """

    name: str
    value: str
    origin: str
    meaning: str


class Config(Mapping[str, Setting]):
    """All settings by name, as they hold when they are looked at.

    Examples
    --------
    >>> import ufuse
    >>> ufuse.config["stance"].value
    'default'
    >>> with ufuse.disabled():
    ...     ufuse.config["stance"].value
    'plain'
    >>> ufuse.set_num_threads(1)
    >>> ufuse.config["OMP_NUM_THREADS"]  # doctest: +ELLIPSIS
    Setting(name='OMP_NUM_THREADS', value='1', origin='ufuse.set_num_threads', ...)
    >>> ufuse.set_num_threads(0)
    """

    def __iter__(self) -> Iterator[str]:
        yield "stance"
        for variable in environment.VARIABLES:
            yield variable.name

    def __len__(self) -> int:
        return 1 + len(environment.VARIABLES)

    def __getitem__(self, name: str) -> Setting:
        if name == "stance":
            unset = "default" if stances.now == "default" else "environment"
            origin = "ufuse.stance" if stances.entered else unset
            return Setting(name, stances.now, origin, "what this thread wants of calls")
        for variable in environment.VARIABLES:
            if variable.name == name:
                return _of_variable(variable)
        raise KeyError(name)

    def __repr__(self) -> str:
        rows = [(each.name, each.value, each.origin, each.meaning) for each in self.values()]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        return "\n".join(
            "  ".join([*(cell.ljust(n) for cell, n in zip(row[:3], widths, strict=True)), row[3]])
            for row in rows
        )

    def _repr_html_(self) -> str:
        return table(self.values())


def _of_variable(variable: environment.Variable) -> Setting:
    name, default, meaning = variable
    value, origin = default, "default"
    if name in dict(environment.found):
        origin = "default: what is set cannot be used"
    elif os.environ.get(name):
        value, origin = os.environ[name], "environment"
    if name == "OMP_NUM_THREADS":
        value = str(_core.get_num_threads())
        if threads.is_set:
            origin = "ufuse.set_num_threads"
    elif name == "UFUSE_CACHE_DIR":
        facts = _core.cache()
        value = facts["folder"] or value
        if facts["note"]:
            origin = f"{origin}; unused: {facts['note']}"
    return Setting(name, value, origin, meaning)


config = Config()
