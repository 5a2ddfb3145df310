"""How have the calls of a jitted function been answered? ``f.stats()`` says it.

A call is replayed, traced or run by the plain function, whichever was measured to cost least for
calls like it (``tracer/ledger.h``).
"""

from __future__ import annotations

from typing import NamedTuple

from ufuse import _core


class Choice(NamedTuple):
    """What is known of calls of one kind.

    Attributes
    ----------
    way : str
        "replayed", "traced" or "plain": how such calls are answered now.
    ours, numpy : float
        Seconds of a call replayed or traced, and of the plain function; 0 where it was not timed.
    """

    way: str
    ours: float
    numpy: float

    def __str__(self) -> str:
        times = [
            f"{name} {seconds * 1e6:.1f} us"
            for name, seconds in (("ufuse", self.ours), ("NumPy", self.numpy))
            if seconds
        ]
        return f"{self.way} ({', '.join(times) or 'no loops to run'})"


class Stats(NamedTuple):
    """What the calls of a jitted function have cost.

    Attributes
    ----------
    replayed, traced, plain : int
        How many calls were answered in which way.
    numpy : float
        Seconds that plain NumPy would have taken for all of them, as far as it has been timed.
    regret : float
        Seconds that they have taken beyond that. What was saved is not counted against it.
    building : int
        How many kinds of calls wait for loops that are being compiled.
    choices : tuple of Choice
        One for each kind of calls, as far as it has been timed.
    """

    replayed: int
    traced: int
    plain: int
    numpy: float
    regret: float
    building: int
    choices: tuple[Choice, ...]

    @property
    def calls(self) -> int:
        """How many there were."""
        return self.replayed + self.traced + self.plain

    def __str__(self) -> str:
        lines = [
            f"{self.replayed} calls replayed, {self.traced} traced, {self.plain} plain",
            f"regret {self.regret * 1e3:.1f} ms beside {self.numpy * 1e3:.1f} ms of plain NumPy",
        ]
        if self.building:
            lines.append(f"{self.building} kinds of calls wait for loops that are being compiled")
        return "\n".join(lines + [f"  {choice}" for choice in self.choices])

    def __repr__(self) -> str:
        return str(self)


NO_CALLS = Stats(0, 0, 0, 0.0, 0.0, 0, ())


def of(dispatcher: _core.Dispatcher | None) -> Stats:
    """The stats of a function's dispatcher; where there is none, no call has needed it."""
    if dispatcher is None:
        return NO_CALLS
    found = dispatcher.stats()
    choices = [
        Choice("plain" if wins else "replayed" if replays else "traced", ours / 1e9, numpy / 1e9)
        for replays, ours, numpy, wins in found["rows"]
    ]
    return Stats(
        found["replayed"],
        found["traced"],
        found["plain"],
        found["numpy"] / 1e9,
        found["regret"] / 1e9,
        found["building"],
        tuple(choices),
    )
