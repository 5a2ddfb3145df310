"""Arrays with too many axes or elements: NumPy's own exception, its words, at its place."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ufuse

HUGE = 1 << 40  # float64: 8 TiB
MANY = 70  # axes; NumPy allows 32 or 64


def spread(x: Any, *shape: int) -> Any:
    return np.broadcast_to(x[:1], shape)


def zeros(x: Any) -> Any:
    return np.zeros((HUGE,)) + x[0]


def empty(x: Any) -> Any:
    return np.empty((HUGE, 4))


def ones(x: Any) -> Any:
    return np.ones((1 << 20, 1 << 20), np.float32)


def full(x: Any) -> Any:
    return np.full((HUGE,), 1.5)


def counted(x: Any) -> Any:
    return np.arange(HUGE) * 2.0


def repeated(x: Any) -> Any:
    return spread(x, HUGE) + 1


def product(x: Any) -> Any:
    y = spread(x, 1 << 20)
    return (y[:, None] * y[None, :])[0, 0]


def part(x: Any) -> Any:
    return (spread(x, 1 << 20, 1 << 20) * 2)[0, :3]


def squared(x: Any) -> Any:
    return spread(x, HUGE) ** 2


def converted(x: Any) -> Any:
    return spread(x, HUGE).astype(np.float32)


def copied(x: Any) -> Any:
    return spread(x, HUGE).copy()


def chosen(x: Any) -> Any:
    return np.where(spread(x, HUGE) > 0, 1.0, 2.0)


def joined(x: Any) -> Any:
    y = spread(x, HUGE)
    return np.concatenate([y, y])


def beyond_addresses(x: Any) -> Any:
    return np.zeros((1 << 62, 4))


def beyond_integers(x: Any) -> Any:
    return np.zeros((1 << 70,))


def beyond_all(x: Any) -> Any:
    return np.broadcast_to(x[:1], (1 << 40, 1 << 40))


def product_beyond_all(x: Any) -> Any:
    y = spread(x, HUGE)
    return y[:, None] + y[None, :]


def negative(x: Any) -> Any:
    return np.zeros(-1)


def expanded(x: Any) -> Any:
    for _ in range(MANY):
        x = np.expand_dims(x, 0)
    return x + 1


def indexed(x: Any) -> Any:
    for _ in range(MANY):
        x = x[None]
    return x * 2


def indexed_at_once(x: Any) -> Any:
    return x[(None,) * 32] + 1


def reshaped(x: Any) -> Any:
    return x.reshape((1,) * MANY + (-1,))


def many_zeros(x: Any) -> Any:
    return np.zeros((1,) * 65)


def some_ones(x: Any) -> Any:
    return np.ones((1,) * 33) + x[0]


def spread_out(x: Any) -> Any:
    return np.broadcast_to(x, (1,) * 65 + x.shape)


def outer(x: Any) -> Any:
    y = np.ones((1,) * 31)
    for _ in range(3):
        y = np.add.outer(y, y)
    return y


def refused_and_caught(x: Any) -> Any:
    try:
        y = np.zeros(HUGE) + 1
    except MemoryError as error:
        return str(error)
    return y


def after_a_write(x: Any) -> Any:
    x[:] = 5
    return spread(x, HUGE) * 3


FUNCTIONS = [
    zeros, empty, ones, full, counted, repeated, product, part, squared, converted, copied, chosen,
    joined, beyond_addresses, beyond_integers, beyond_all, product_beyond_all, negative, expanded,
    indexed, indexed_at_once, reshaped, many_zeros, some_ones, spread_out, outer,
    refused_and_caught, after_a_write,
]  # fmt: skip


def outcome(f: Callable[..., Any]) -> Any:
    x = np.linspace(1.0, 2.0, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = f(x)
        except Exception as error:
            return type(error), str(error), x.tolist()
    if isinstance(result, str):
        return result
    return type(result), result.shape, result.dtype, np.ravel(result)[:9].tolist(), x.tolist()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_limit(function: Callable[..., Any], capfd: pytest.CaptureFixture[str]) -> None:
    want = outcome(function)
    jitted = ufuse.jit(function)
    for _ in range(3):
        assert outcome(jitted) == want
    assert capfd.readouterr().err == ""  # of what could not be raised


def test_no_memory_on_the_way() -> None:
    """Where loops or the interpreter lack memory that NumPy can do without, NumPy answers."""
    program = """
        import resource
        import numpy as np, ufuse

        def f(x):
            y = x * 2
            z = y[:, None] * y[None, :]
            return (z + z.T)[0, :3]

        x = np.arange(30_000.0)
        jitted = ufuse.jit(f)
        jitted(x[:100])
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (3 << 30), used + (3 << 30)))
        def told(f):
            try:
                return f(x).tolist()
            except MemoryError as error:
                return type(error).__name__, str(error)
        assert told(jitted) == told(f), (told(jitted), told(f))
        print("same")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.stdout == "same\n" or "AddressSanitizer" in done.stderr, done.stderr


ENDING = """
    import os

    import numpy as np
    import ufuse

    @ufuse.jit
    def known(x):
        return np.sqrt(x) * 2 + np.add.reduce(x)

    @ufuse.jit
    def unknown(x):
        return np.sqrt(np.add.reduce(x - 1)) - x

    x = np.arange(1.0, 9.0)
    for _ in range({calls}):
        known(x)

    class Last:
        def __init__(self):
            self.x, self.known, self.unknown, self.write = x, known, unknown, os.write

        def __del__(self):
            self.write(1, self.known(self.x).tobytes().hex().encode())
            self.write(1, self.unknown(self.x).tobytes().hex().encode())

    {keep} = Last()
"""


@pytest.mark.parametrize("calls", [0, 1, 5])
@pytest.mark.parametrize("keep", ["last", "known.kept"])
def test_calls_while_the_interpreter_ends(tmp_path: Path, calls: int, keep: str) -> None:
    text = textwrap.dedent(ENDING.format(calls=calls, keep=keep))
    (tmp_path / "ending.py").write_text(text)
    plain = text.replace("@ufuse.jit\n", "")
    (tmp_path / "plain.py").write_text(plain)

    def run(name: str) -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, str(tmp_path / name)],
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0
        return done.stdout, done.stderr

    ours, plain_ones = run("ending.py"), run("plain.py")
    assert plain_ones[0]
    assert ours == plain_ones
