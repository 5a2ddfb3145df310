"""Containers of any depth, and in themselves: as plain Python has them, whichever way calls go."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ufuse
from place import COMPILER
from ufuse import compare, copies
from ufuse.tracing import tree

DEPTHS = (3, 500, 30_000)


def nested(kind: type, depth: int, leaf: Any) -> Any:
    made = leaf
    for _ in range(depth):
        made = {"in": made} if kind is dict else kind([made])
    return made


def inside(nest: Any) -> Any:
    while isinstance(nest, (tuple, list, dict)):
        nest = nest["in"] if isinstance(nest, dict) else nest[0]
    return nest


def depth_of(nest: Any) -> int:
    depth = 0
    while isinstance(nest, (tuple, list, dict)):
        nest = nest["in"] if isinstance(nest, dict) else nest[0]
        depth += 1
    return depth


def unpacked(nest: Any) -> Any:
    while isinstance(nest, (tuple, list, dict)):
        nest = nest["in"] if isinstance(nest, dict) else nest[0]
    return nest * 2 + 1


def given_back(nest: Any) -> Any:
    return nest


def made_new(nest: Any, depth: int) -> Any:
    value = np.arange(4.0) + 1
    for _ in range(depth):
        value = [value]
    return value


def changed(nest: Any) -> Any:
    nest.append(np.arange(3.0) * 2)
    return len(nest)


def refused(nest: Any) -> Any:
    raise LookupError(nest)


def to_numpy(nest: Any) -> Any:
    return np.shape(nest[0])


def jitted(f: Callable[..., Any]) -> Any:
    return ufuse.jit(f)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("kind", [list, tuple, dict])
def test_deep_argument(kind: type, depth: int) -> None:
    x = np.arange(5.0)
    f = jitted(unpacked)
    for _ in range(3):
        np.testing.assert_array_equal(f(nested(kind, depth, x)), x * 2 + 1)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("kind", [list, tuple, dict])
def test_given_back(kind: type, depth: int) -> None:
    x = np.arange(5.0)
    f = jitted(given_back)
    nest = nested(kind, depth, x)
    for _ in range(3):
        assert f(nest) is nest
    assert inside(nest) is x


@pytest.mark.parametrize("depth", DEPTHS)
def test_deep_result(depth: int) -> None:
    f = jitted(made_new)
    for _ in range(3):
        result = f([], depth)
        assert depth_of(result) == depth
        assert type(inside(result)) is np.ndarray
        np.testing.assert_array_equal(inside(result), np.arange(4.0) + 1)


def test_deep_tuple_of_a_loop() -> None:
    """Loops may have become native before their variables get such values."""

    def f(n: int) -> Any:
        d: Any = np.int32
        for _ in range(n):
            d = (d, (1,))
        return len(d)

    g = jitted(f)
    for _ in range(3):
        assert g(100_000) == 2


@pytest.mark.parametrize("depth", DEPTHS)
def test_deep_error(depth: int) -> None:
    nest = nested(list, depth, np.arange(3.0))
    with pytest.raises(LookupError) as caught:
        jitted(refused)(nest)
    assert caught.value.args[0] is nest


def test_list_in_itself() -> None:
    x = np.arange(3.0)
    knot: list[Any] = [x]
    knot.append(knot)
    f = jitted(given_back)
    for _ in range(3):
        assert f(knot) is knot
    assert knot[0] is x
    assert knot[1] is knot
    assert len(knot) == 2


def test_changed_list_in_itself() -> None:
    knot: list[Any] = [np.arange(3.0)]
    knot.append(knot)
    f = jitted(changed)
    assert f(knot) == 3
    assert f(knot) == 4
    assert knot[1] is knot
    assert type(knot[2]) is np.ndarray


def test_tuple_in_itself() -> None:
    inner: list[Any] = []
    knot = (np.arange(3.0), inner)
    inner.append(knot)

    def through(knot: Any) -> Any:
        return knot[1][0][1][0][0] + 1, knot[1][0] is knot, knot[1][0][1] is knot[1]

    f = jitted(through)
    for _ in range(3):
        value, first, second = f(knot)
        np.testing.assert_array_equal(value, np.arange(3.0) + 1)
        assert first
        assert second


def test_knot_as_result() -> None:
    def knotted(x: Any) -> Any:
        knot: dict[str, Any] = {"value": x + 1}
        knot["self"] = (knot, [knot])
        return knot

    f = jitted(knotted)
    for _ in range(3):
        knot = f(np.arange(3.0))
        assert type(knot["value"]) is np.ndarray
        assert knot["self"][0] is knot
        assert knot["self"][1][0] is knot


def test_two_places_of_one_result() -> None:
    def twice(x: Any) -> Any:
        pair = [x + 1]
        triple = (x * 2, 1)
        return pair, pair, triple, triple

    f = jitted(twice)
    for _ in range(4):
        one, two, three, four = f(np.arange(3.0))
        assert one is two
        assert three is four


def test_function_that_holds_itself() -> None:
    def maker(x: Any) -> Any:
        y = x + 1

        def down(n: int) -> Any:
            return y if n == 0 else down(n - 1)

        return down

    f = jitted(maker)
    for _ in range(2):
        np.testing.assert_array_equal(f(np.arange(3.0))(4), np.arange(3.0) + 1)


@pytest.mark.parametrize("depth", [1, 9, 500, 30_000])
@pytest.mark.parametrize("kind", [list, tuple, dict])
def test_deep_operand(kind: type, depth: int) -> None:
    """A lazy array deep inside what NumPy is called with."""
    ufuse._core.begin()
    try:
        lazy = ufuse._core.wrap(np.arange(3.0)) + 1
        nest = nested(kind, depth, lazy)
        real = ufuse._core.unwrap([nest, nest, "text"])
    finally:
        ufuse._core.abort()
    assert inside(nest) is lazy
    assert real[0] is real[1]
    assert type(inside(real[0])) is np.ndarray
    assert depth_of(real[0]) == depth


def test_operand_in_knots() -> None:
    ufuse._core.begin()
    try:
        knot: list[Any] = [ufuse._core.wrap(np.arange(3.0)) + 1, [1, 2]]
        knot.extend([(knot, {"in": (knot,)})] + [knot] * 100)
        real = ufuse._core.unwrap(knot)
    finally:
        ufuse._core.abort()
    assert type(real[0]) is np.ndarray
    assert real[1] is knot[1]
    assert real[2][0] is real
    assert real[2][1]["in"][0] is real
    assert real[-1] is real


def test_wide_knot() -> None:
    """A list that holds itself a hundred times has as many paths as nobody can walk."""
    knot: list[Any] = [np.arange(3.0)]
    knot.extend([knot] * 100)

    def first(knot: Any) -> Any:
        return np.add(knot[0], 1), len(knot)

    f = jitted(first)
    np.testing.assert_array_equal(f(knot)[0], np.arange(3.0) + 1)

    def held(knot: Any) -> Any:
        box = np.empty(1, object)
        box.fill(knot)
        return box[0] is knot

    assert jitted(held)(knot) == held(knot)


@pytest.mark.parametrize("depth", DEPTHS)
def test_explain(depth: int) -> None:
    x = np.arange(5.0)
    assert jitted(unpacked).explain(nested(list, depth, x)).mode
    assert str(jitted(unpacked).explain(nested(tuple, depth, x)))


def test_explain_knot() -> None:
    knot: list[Any] = [np.arange(3.0)]
    knot.append(knot)
    assert jitted(given_back).explain(knot).mode
    assert len(knot) == 2


def test_copies() -> None:
    x = np.arange(4.0)
    knot: list[Any] = [x, {"x": x}]
    knot.append((knot, x[1:]))
    made = copies.copied(knot)
    assert made is not knot
    assert made[2][0] is made
    assert made[0] is not x
    assert np.shares_memory(made[0], made[2][1])
    deep = copies.copied(nested(tuple, 30_000, x))
    assert inside(deep) is not x
    assert depth_of(deep) == 30_000


def test_difference() -> None:
    one, two = nested(list, 30_000, np.arange(3.0)), nested(list, 30_000, np.arange(3.0))
    assert compare.difference(one, two) is None
    found = compare.difference(one, nested(list, 30_000, np.ones(3)))
    assert found is not None
    assert len(found) < 2000
    knot: list[Any] = [1]
    knot.append(knot)
    other: list[Any] = [1]
    other.append(other)
    assert compare.difference(knot, other) is None


def test_walks_keep_identity() -> None:
    shared: list[Any] = [1]
    x = np.arange(3.0)
    arguments = tree.Arguments()
    plain = (shared, "text", 3)
    ufuse._core.begin()
    try:
        assert arguments.wrap((1, "a", None)) == (1, "a", None)
        made = arguments.wrap((shared, shared, x, plain))
        assert made[0] is made[1]
        assert made[3][0] is made[0]
    finally:
        ufuse._core.abort()


def test_logs_of_deep_arguments(tmp_path: Path) -> None:
    """In a process of its own, which tells of each call, and of each loop that is compiled."""
    program = """
        import numpy as np, ufuse

        @ufuse.jit
        def f(nest):
            return np.arange(3.0) + 1

        nest = []
        for _ in range(30_000):
            nest = [nest]
        knot = [np.arange(3)]
        knot.append(knot)
        for argument in (nest, knot):
            f(argument)
            f(argument)
        print("done")
    """
    script = tmp_path / "logged.py"
    script.write_text(textwrap.dedent(program))

    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={
            **os.environ,
            "UFUSE_LOGS": "graph,fusion,fallbacks,recompiles",
            "UFUSE_BACKEND": "compiled",
            "UFUSE_CACHE_DIR": str(tmp_path / "cache"),
        },
    )
    assert done.stdout == "done\n", done.stderr[-2000:]
    if COMPILER:
        assert "[ufuse.recompiles] f([[[list]]]): " in done.stderr
