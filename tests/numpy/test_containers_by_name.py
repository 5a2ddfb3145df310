"""Are the caller's lists, dicts and tuples the same by whatever name traced code reaches them, and
for whoever looks at them in between?
"""

import collections
import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import ufuse
from test_objects import flat

BACKENDS = ["compiled"]


class World:
    """What one of two equal worlds holds: its lists are reached by several names."""

    def __init__(self) -> None:
        self.x = np.linspace(0.0, 1.0, 5)
        self.arrays = [self.x, self.x * 2, np.arange(5.0)]
        self.table = {"a": self.x + 1, "b": [self.x * 3], "n": 1}
        self.pair = (self.x, self.arrays)
        self.numbers = [1.0, 2.0]
        self.cycle: list[Any] = [self.x + 5]
        self.cycle.append(self.cycle)
        self.seen: list[Any] = []

    def look(self) -> None:
        """Not traced: others' code sees real arrays."""
        held = (*self.arrays, *self.table.values(), *self.numbers)
        assert not any(type(each).__base__ is ufuse._core.ndarray for each in held)
        self.seen.append([np.sum(each) for each in self.arrays])
        self.arrays.append(self.x * 7)
        self.table["look"] = len(self.arrays)

    def __len__(self) -> int:
        self.look()
        return len(self.arrays)


W = World()


def by_global(arrays: Any, table: Any) -> Any:
    arrays[0] = arrays[0] + 1
    W.arrays[1] = W.arrays[0] * 2
    table["a"] = W.table["a"] + arrays[1]
    W.table["c"] = table["a"] * 2
    return arrays is W.arrays, table is W.table, W.arrays[0] - arrays[0], table["c"]


def by_attribute(w: Any, arrays: Any) -> Any:
    w.arrays.append(arrays[0] + 1)
    arrays.append(len(w.arrays))
    w.arrays += [arrays[1] * 2]
    return w.arrays is arrays, [each + 1 for each in w.arrays], sum(w.arrays)


def loops(arrays: Any, w: Any) -> Any:
    total = w.x * 0
    mine = w.arrays
    for each in mine:
        each += 1
        total = total + each
    (first, *rest), second = mine, [*mine][1]
    if mine and len(rest):
        total += first * second
    return total, f"{len(mine)} {mine[0]}", [*map(np.sum, mine)], max(arrays[2])


def nested(pair: Any, cycle: Any, table: Any) -> Any:
    pair[1][0] = pair[0] * 2
    W.pair[1][1] = pair[1][0] + W.pair[0]
    cycle[1][1][0] = cycle[0] + 1
    table["b"].append(W.table["b"][0] + 1)
    table["b"][0] += 1
    return pair is W.pair, cycle[1] is cycle, W.cycle[0], table["b"]


def others(arrays: Any, w: Any) -> Any:
    arrays[0] = arrays[0] * 3
    count = len(w)  # its method is no code that is traced
    arrays[-1] = arrays[-1] + arrays[0]
    w.table["d"] = arrays[0]
    count += len(w)
    return count, arrays[3], w.table["look"], w.arrays is arrays


def numbers(numbers: Any, w: Any) -> Any:
    numbers[0] = 5.0
    w.numbers.append(w.x * numbers[1])
    numbers.extend(each * 2 for each in w.arrays)
    list.append(numbers, w.x + 1)
    return w.numbers[0], len(numbers), numbers[-1] + w.numbers[2]


def fails(arrays: Any, w: Any) -> Any:
    w.arrays.append(arrays[0] * 2)
    del arrays[1]
    return w.arrays[0] + np.ones(3)


def catches(arrays: Any, w: Any) -> Any:
    try:
        fails(arrays, w)
    except ValueError as error:
        w.table["error"] = (str(error), arrays[-1] * 2)
    return len(arrays)


def orders(table: Any, w: Any) -> Any:
    table["z"] = table.pop("a") + 1
    w.table.update(a=table["z"] * 2, y=w.x)
    return list(table), [*w.table], list(w.table.values())[-1] - 1


ROWS: list[tuple[Callable[..., Any], Callable[[World], tuple[Any, ...]]]] = [
    (by_global, lambda w: (w.arrays, w.table)),
    (by_attribute, lambda w: (w, w.arrays)),
    (loops, lambda w: (w.arrays, w)),
    (nested, lambda w: (w.pair, w.cycle, w.table)),
    (others, lambda w: (w.arrays, w)),
    (numbers, lambda w: (w.numbers, w)),
    (fails, lambda w: (w.arrays, w)),
    (catches, lambda w: (w.arrays, w)),
    (orders, lambda w: (w.table, w)),
]


def seen(function: Callable[..., Any], world: World, given: Any) -> Any:
    global W
    W = world
    kept = [world.arrays, world.table, world.pair, world.numbers, world.cycle]
    try:
        result = function(*given(world))
    except ValueError as error:
        result = str(error)
    now = [world.arrays, world.table, world.pair, world.numbers, world.cycle]
    return flat((result, world), {}), [a is b for a, b in zip(kept, now, strict=True)]


@pytest.mark.parametrize(("function", "given"), ROWS, ids=lambda f: getattr(f, "__name__", ""))
def test_containers_are_one_object(function: Callable[..., Any], given: Any) -> None:
    jitted = functools.partial(ufuse.jit(function))
    plain, ours = World(), World()
    for _ in range(3):
        assert seen(jitted, ours, given) == seen(function, plain, given)


Pair = collections.namedtuple("Pair", "left right")


def looked_into(pairs, scale):
    last = pairs[-1]
    first = pairs[0]
    total = scale * 0
    for pair in pairs:
        total = total + pair[0] * scale
    if isinstance(last[1], np.ndarray):
        last[1][0] += 1
    return total, first, pairs, last


@pytest.mark.parametrize("count", [3, 255, 256, 300, 5000])
@pytest.mark.parametrize(
    "last",
    [(1, 2), (1, np.arange(3.0)), Pair(2, np.arange(3.0)), [3, np.float32(2)], [4, [np.ones(2)]]],
)
def test_many_containers_in_one(count, last):
    scale = np.arange(4.0)
    both = [[*((i, i + 1) for i in range(count)), copy.deepcopy(last)] for _ in range(2)]
    function = ufuse.jit(looked_into)
    for _ in range(3):
        ours, theirs = function(both[0], scale), looked_into(both[1], scale)
        assert ours[0].tobytes() == theirs[0].tobytes()
        assert ours[1] is both[0][0]
        assert ours[2] is both[0]
        assert ours[3] is both[0][-1]
        assert repr(both[0][-1]) == repr(both[1][-1])
