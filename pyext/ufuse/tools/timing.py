"""How long does a call take? For ``%ubench`` and ``python -m ufuse bench``."""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any


def best_time(call: Callable[[], Any], seconds: float) -> float:
    """Best time of one call, in seconds.

    Parameters
    ----------
    call : callable
        Called once before anything is timed.
    seconds : float
        For about so long it is called again and again.
    """
    call()
    timer = timeit.Timer(call)
    number, took = timer.autorange()
    repeat = max(1, min(20, int(seconds / max(took, 1e-9))))
    return min(timer.repeat(repeat, number)) / number


def shown(seconds: float) -> str:
    """A time in words.

    Examples
    --------
    >>> shown(0.0123), shown(4.5e-7)
    ('12.3 ms', '450 ns')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def compared(ours: float, theirs: float) -> str:
    """How two times stand to each other.

    Examples
    --------
    >>> compared(1.0, 2.5)
    '2.5x faster'
    """
    return f"{theirs / ours:.3g}x faster" if theirs > ours else f"{ours / theirs:.3g}x slower"
