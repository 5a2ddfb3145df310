"""``python -m ufuse doctor``: is this machine fit for ufuse, and if not, what is missing?

``python -m ufuse cache``: which compiled loops are kept, and where? With ``--clear`` they go.
``python -m ufuse explain script.py``: what became of the jitted functions of a script?
``python -m ufuse debug script.py``: where did a script's first NaN come from, and what else went
wrong with its numbers?
``python -m ufuse bench``: how fast is it here, beside NumPy?
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from . import _core, environment, loading

MIB = 1 << 20


class Check(NamedTuple):
    """One line of the doctor's report."""

    name: str
    good: bool
    text: str
    advice: str = ""


def cpu() -> Check:
    """The processor and its vector instructions."""
    name, flags = platform.processor() or platform.machine(), ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                name = value.strip()
            elif key.strip() in ("flags", "Features"):
                flags = value
                break
    vectors = [word for word in ("avx512f", "avx2", "sve", "asimd") if word in flags.split()]
    return Check("CPU", True, f"{name}, {os.cpu_count()} threads, {' '.join(vectors) or 'no SIMD'}")


def versions() -> Check:
    """Python, NumPy and ufuse."""
    import numpy as np

    import ufuse

    return Check(
        "versions",
        True,
        f"ufuse {ufuse.__version__}, NumPy {np.__version__}, Python {platform.python_version()}",
    )


def variables() -> Check:
    """Environment variables that have no effect."""
    wrong = [f"{name}: {trouble}" for name, trouble in environment.found]
    logged = os.environ.get("UFUSE_LOGS", "").split(",")
    from .tools import logs

    unknown = {word.strip() for word in logged} - {*logs.CATEGORIES, "all", ""}
    if unknown:
        wrong.append(f"UFUSE_LOGS: {', '.join(sorted(unknown))} is no category")
    left_out = os.environ.get("UFUSE_LEAVE_OUT", "").split(",")
    unknown = {word.strip() for word in left_out} - {name for name, _ in _core.loop_passes()} - {""}
    if unknown:
        wrong.append(f"UFUSE_LEAVE_OUT: {', '.join(sorted(unknown))} is no pass")
    return Check("variables", not wrong, "; ".join(wrong) or "all that are set can be used")


def loops() -> Iterator[Check]:
    """Whether a function compiles and gives NumPy's bits; with which compiler, OpenMP and cache."""
    import numpy as np

    import ufuse

    from .tools.explain import waiting

    x = np.linspace(0.0, 1.0, 300_000).reshape(-1, 3)

    def function(x: Any) -> Any:
        return np.sqrt((x * x + 1.0).sum(axis=1))

    jitted = ufuse.jit(function)
    start = time.perf_counter()
    with waiting():
        ours = jitted(x)
    first = time.perf_counter() - start
    same = ours.tobytes() == function(x).tobytes()
    group = jitted.explain(x).groups[0]
    compiled = group.is_compiled
    known = _core.jit_statistics()
    why = "" if compiled else group.note or "No loop was compiled."
    text = known["compiler"] or "none that works"
    if known["trouble"]:
        text, why = f"{text}: {known['trouble']}", "Name another one in UFUSE_CXX."
    yield Check("compiler", compiled and not known["trouble"], text, why)
    threads = ufuse.get_num_threads()
    fewer = _core.threads_note()
    text = f"{_openmp()}, {threads} thread{'s' * (threads != 1)}"
    yield Check("OpenMP", not fewer, text, f"Loops get fewer: {fewer}.")
    yield kept()
    text = "same bits as NumPy" if same else "a result differs from NumPy's"
    how = group.origin if group.origin != "memory cache" else "compiled"
    text += f", {how}, first call {first * 1e3:.0f} ms"
    yield Check("loops", same, text, "Please report this.")


def kept() -> Check:
    """The folder in which compiled loops are kept."""
    facts = _core.cache()
    if not facts["note"]:
        return Check("cache", True, f"{_shown(facts['folder'])}, {_amount(facts)}")
    wanted = facts["most_bytes"] == 0  # UFUSE_CACHE_SIZE=0
    advice = "Set UFUSE_CACHE_DIR to a folder of yours, or each process compiles anew."
    return Check("cache", wanted, facts["note"], "" if wanted else advice)


def _amount(facts: _core.CacheFacts) -> str:
    files = f"{facts['files']} file{'s' * (facts['files'] != 1)}"
    return f"{files}, {facts['bytes'] / MIB:.1f} of at most {facts['most_bytes'] / MIB:.0f} MiB"


def _shown(path: str) -> str:
    """A path that can be printed: bytes that are no text are written out."""
    return path.encode("utf-8", "backslashreplace").decode()


def _openmp() -> str:
    """The OpenMP library of this process."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    paths = {line.split()[-1] for line in lines if "libomp" in line or "libiomp" in line}
    return ", ".join(sorted(paths)) or "libomp"


def checks() -> Iterator[Check]:
    """All checks, in the order in which they are worth reading."""
    yield versions()
    yield cpu()
    yield variables()
    yield from loops()


def doctor() -> int:
    """Print the report; the exit status is the number of things that are wrong."""
    wrong = 0
    for check in checks():
        print(loading.line(*check))
        wrong += not check.good
    return wrong


def cache(clear: bool) -> int:
    """Print what is kept, or was; the exit status is 1 where nothing can be kept."""
    facts = _core.cache(clear)
    print(f"folder  {_shown(facts['folder']) or 'none'}")
    if facts["note"]:
        print(f"unused  {facts['note']}")
        return 0 if facts["most_bytes"] == 0 else 1
    print(f"{'removed' if clear else 'kept   '} {_amount(facts)}")
    if facts["foreign"] and not clear:
        print(
            f"        {facts['foreign']} of them other users own or can write: these are never "
            "used, and `python -m ufuse cache --clear` removes them"
        )
    return 0


def main(argv: list[str] | None = None) -> int:
    """The command line of ``python -m ufuse``."""
    parser = argparse.ArgumentParser(
        prog="python -m ufuse", description="ufuse runs NumPy functions as fused OpenMP loops."
    )
    parser.add_argument("--version", action="version", version=f"ufuse {_core.__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="say whether compiler, OpenMP, cache and CPU are fit for it")
    shown = commands.add_parser("cache", help="show where compiled loops are kept, and how many")
    shown.add_argument("--clear", action="store_true", help="remove them")
    for name, told in (
        ("explain", "run a script, and say what became of its jitted functions"),
        (
            "debug",
            "run a script with plain NumPy, and say where NaNs, infinities, wrapped "
            "integers and larger dtypes came from",
        ),
    ):
        given = commands.add_parser(name, help=told)
        given.add_argument("script", help="its path")
        given.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script is given")
    timed = commands.add_parser("bench", help="time some functions beside plain NumPy")
    timed.add_argument("--seconds", type=float, default=0.5, help="for each of them (0.5)")
    arguments = parser.parse_args(argv)
    if arguments.command in ("explain", "debug"):
        from .tools import script

        run = script.run if arguments.command == "explain" else script.debug
        return run(arguments.script, arguments.arguments)
    if arguments.command == "bench":
        from .tools import benchmark

        return benchmark.run(arguments.seconds)
    return cache(arguments.clear) if arguments.command == "cache" else doctor()


if __name__ == "__main__":
    sys.exit(main())
