"""How is time measured?

Versions take turns within one process: a machine's slow second then slows all of them alike, and
ratios stay honest. Medians, because the noise of a shared machine is one-sided.
"""

import math
import statistics
import time
from collections.abc import Callable, Mapping

# A call shorter than this is repeated within one sample, to stand above the clock's grain.
MIN_SAMPLE = 1e-3
# Between samples: lets the worker threads of the version before stop spinning.
PAUSE = 0.02
MIN_ROUNDS, MAX_ROUNDS = 3, 25
# Versions much faster than the slowest have more turns in each round: the one after the slowest
# finds caches and memory as that left them.
LAPS, MUCH_FASTER = 3, 10


def once(call: Callable[[], object]) -> float:
    """Seconds of a single call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _sample(call: Callable[[], object], number: int) -> float:
    start = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - start) / number


def in_turns(calls: Mapping[str, Callable[[], object]], budget: float) -> dict[str, list[float]]:
    """Samples of seconds per call for each version, taken in turns.

    Parameters
    ----------
    calls : the versions by name, each already warm
    budget : seconds to spend in all; at least MIN_ROUNDS rounds are measured whatever it says

    Returns
    -------
    At least MIN_ROUNDS samples for each name, more of those that are much faster than the slowest.

    Examples
    --------
    >>> samples = in_turns({"a": lambda: None, "b": lambda: sum(range(10))}, budget=0.5)
    >>> len(samples["a"]) >= len(samples["b"]) >= MIN_ROUNDS
    True
    """
    estimate = {name: once(call) for name, call in calls.items()}
    number = {name: max(1, math.ceil(MIN_SAMPLE / max(t, 1e-7))) for name, t in estimate.items()}
    slowest = max(estimate.values())
    laps = {name: LAPS if estimate[name] * MUCH_FASTER < slowest else 1 for name in calls}
    one_round = sum((estimate[name] * number[name] + PAUSE) * laps[name] for name in calls)
    rounds = min(MAX_ROUNDS, max(MIN_ROUNDS, int(budget / one_round)))
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds):
        # Each second round goes backwards: no version always comes after the same one.
        order = list(calls.items())[:: -1 if turn % 2 else 1]
        for lap in range(LAPS):
            for name, call in order:
                if lap >= laps[name]:
                    continue
                time.sleep(PAUSE)
                if number[name] > 1:
                    call()  # wakes its threads: short calls are measured as part of a series
                samples[name].append(_sample(call, number[name]))
    return samples


def median(samples: list[float]) -> float:
    return statistics.median(samples)


def human(seconds: float) -> str:
    """A time with a fitting unit.

    >>> human(0.0129), human(2.5), human(3.2e-6)
    ('12.9 ms', '2.50 s', '3.20 us')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale or unit == "us":
            value = seconds / scale
            return f"{value:.3g} {unit}" if value >= 100 else f"{value:#.3g} {unit}"
    raise AssertionError("unreachable")
