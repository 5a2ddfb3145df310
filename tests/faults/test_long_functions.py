"""Functions of hundreds to tens of thousands of statements: NumPy's answer, and soon."""

from __future__ import annotations

import importlib.util
import os
import random
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ufuse

ROUNDS = int(os.environ.get("UFUSE_TEST_FAULT_ROUNDS", "2"))


def written(folder: Path, lines: list[str]) -> Callable[..., Any]:
    """A function of these lines, from a file of its own."""
    name = f"long_{abs(hash(tuple(lines)))}"
    path = folder / f"{name}.py"
    text = "import numpy as np\n\n\ndef f(x, a, b):\n" + "".join(f"    {line}\n" for line in lines)
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    made: Callable[..., Any] = module.f
    return made


def alternating(count: int) -> list[str]:
    steps = ["y = y * a", "y = y + x", "y = np.where(y > b, y - b, x)", "y = np.maximum(y, -x)"]
    return ["y = x", *(steps[k % 4] for k in range(count)), "return y"]


def with_calls(count: int) -> list[str]:
    steps = ["y = np.sin(y)", "y = y * a", "y = np.exp(-y)", "y = y - b"]
    return ["y = x", *(steps[k % 4] for k in range(count)), "return y"]


def many_live(count: int) -> list[str]:
    values = [f"v{k} = x * {k % 13 + 1}.0" for k in range(count // 2)]
    sums = [f"s = s + v{k}" for k in reversed(range(count // 2))]
    return [*values, "s = x", *sums, "return s"]


def many_results(count: int) -> list[str]:
    values = [f"v{k} = {'x' if k == 0 else f'v{k - 1}'} + a" for k in range(count)]
    return [*values, f"return [{', '.join(f'v{k}' for k in range(0, count, 7))}]"]


def with_reductions(count: int) -> list[str]:
    steps = ["y = y * a + b", "y = y - y.mean()", "y = y / (1 + np.abs(y).max())", "y = y + x"]
    return ["y = x", *(steps[k % 4] for k in range(count)), "return y"]


def in_place(count: int) -> list[str]:
    steps = ["x *= a", "y = y + x", "x += b"]
    return ["y = x.copy()", *(steps[k % 3] for k in range(count)), "return y"]


KINDS = [alternating, with_calls, many_live, many_results, with_reductions, in_place]


def same_bits(ours: Any, numpys: Any) -> bool:
    if isinstance(numpys, list):
        return len(ours) == len(numpys) and all(map(same_bits, ours, numpys))
    return bool(ours.dtype == numpys.dtype and ours.tobytes() == numpys.tobytes())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [250, 1200])
def test_long(tmp_path: Path, kind: Callable[[int], list[str]], count: int) -> None:
    f = written(tmp_path, kind(count))
    jitted = ufuse.jit(f)
    x = np.linspace(-1.0, 1.0, 60).reshape(4, 15)
    for _ in range(3):
        theirs, ours = x.copy(), x.copy()
        want = f(theirs, 0.999, 0.25)
        assert same_bits(jitted(ours, 0.999, 0.25), want)
        assert same_bits(ours, theirs)


def test_first_answer_soon(tmp_path: Path) -> None:
    f = written(tmp_path, alternating(5000))
    jitted = ufuse.jit(f)
    x = np.linspace(-1.0, 1.0, 1000)
    start = time.perf_counter()
    assert same_bits(jitted(x, 0.999, 0.25), f(x, 0.999, 0.25))
    assert time.perf_counter() - start < 50  # some 2 s, on an idle machine


def test_parts_are_compiled_once(tmp_path: Path) -> None:
    """Statements that repeat are cut at the same distances: their loops have one text."""
    f = ufuse.jit(written(tmp_path, alternating(4000)))
    groups = f.explain(np.linspace(-1.0, 1.0, 1000), 0.999, 0.25).groups
    assert sum(group.runs for group in groups) > 20
    assert len(groups) < 10  # equal ones are told once


def test_twenty_thousand_statements(tmp_path: Path) -> None:
    """In a process of its own: it ended in a stack overflow."""
    program = f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from pathlib import Path
        import numpy as np, ufuse
        from test_long_functions import alternating, same_bits, written
        f = written(Path({str(tmp_path)!r}), alternating(20_000))
        x = np.linspace(-1.0, 1.0, 50)
        jitted = ufuse.jit(f)
        assert same_bits(jitted(x, 0.999, 0.25), f(x, 0.999, 0.25))
        assert same_bits(jitted(x, 0.998, 0.25), f(x, 0.998, 0.25))
        print("same")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.stdout == "same\n", done.stderr


def test_thread_with_a_small_stack(tmp_path: Path) -> None:
    f = written(tmp_path, alternating(2000))
    x = np.linspace(-1.0, 1.0, 50)
    found: list[Any] = []
    before = threading.stack_size(1 << 20)
    try:
        thread = threading.Thread(target=lambda: found.append(ufuse.jit(f)(x, 0.9, 0.2)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert same_bits(found[0], f(x, 0.9, 0.2))


SHARED = {
    "slice": (["y = (y + y)[1:]"], np.int64),
    "sum": (["y = y + y"], np.float64),
    "reshape": (["y = y + y.T"], np.float64),
}


@pytest.mark.parametrize("name", SHARED)
def test_value_used_twice_each_time(tmp_path: Path, name: str) -> None:
    """2 ** 60 ways lead from the last value to the first."""
    steps, dtype = SHARED[name]
    last = "return y.sum(axis=-1)" if name == "sum" else "return y.reshape(-1).sum()"
    f = written(tmp_path, ["y = x", *(60 * steps), "y = y[..., :2]", last])
    x = np.arange(100 * 100).reshape(100, 100).astype(dtype) % 7
    with np.errstate(all="ignore"):
        want = f(x, 0, 0)
        assert same_bits(ufuse.jit(f)(x, 0, 0), want)


def test_warnings_keep_their_lines(tmp_path: Path) -> None:
    lines = alternating(1500)
    lines.insert(700, "z = x / (y - y)")
    lines.insert(1300, "w = np.log(x - 5.0)")
    f = written(tmp_path, lines)
    x = np.linspace(-1.0, 1.0, 40)

    def told(call: Callable[..., Any]) -> list[tuple[str, int]]:
        import warnings

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(x, 0.999, 0.25)
        return [(str(w.message), w.lineno) for w in caught]

    want = told(f)
    assert want
    jitted = ufuse.jit(f)
    assert told(jitted) == want
    assert told(jitted) == want


def random_lines(random_: random.Random, count: int) -> list[str]:
    """Statements on a handful of names of two shapes."""
    lines = ["p = x", "q = x * b", "r = x.sum(axis=0)", "s = x.mean()"]
    for _ in range(count):
        target = random_.choice("pq")
        one, two = random_.choice(["p", "q", "x"]), random_.choice(["p", "q", "r", "s", "a"])
        lines.append(
            random_.choice(
                [
                    f"{target} = {one} * 0.5 + {two}",
                    f"{target} = np.minimum({one}, {two})",
                    f"{target} = np.where({one} > {two}, {one}, -{one})",
                    f"{target} = np.tanh({one})",
                    f"r = {one}.max(axis=0)",
                    f"s = {one}.sum() / 60",
                    f"{target} = {one}[::-1] - {two}",
                    f"{target} = {one}.T.reshape({one}.shape) * a",
                ]
            )
        )
    return [*lines, "return [p, q, r + s]"]


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_random(tmp_path: Path, seed: int) -> None:
    x = np.linspace(-1.0, 1.0, 60).reshape(4, 15)
    for backend, count in (("deferred", 600), ("compiled", 150 if seed % 2 == 0 else 0)):
        f = written(tmp_path, random_lines(random.Random(seed), count))
        with ufuse._core.backend(backend):
            assert same_bits(ufuse.jit(f)(x, 0.9, 0.2), f(x, 0.9, 0.2)), f"seed {seed}, {backend}"
