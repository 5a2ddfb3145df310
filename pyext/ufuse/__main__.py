"""``python -m ufuse doctor``: is this machine fit for ufuse, and if not, what is missing?"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Check(NamedTuple):
    """One line of the doctor's report."""

    name: str
    good: bool
    text: str
    advice: str = ""


def compiler() -> Check:
    """The C++ compiler that will be used."""
    candidates = [os.environ.get("UFUSE_CXX"), os.environ.get("CXX"), "g++", "clang++"]
    for name in candidates:
        path = shutil.which(name) if name else None
        if path is None:
            continue
        found = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        if found.returncode == 0:
            return Check("compiler", True, f"{path}: {found.stdout.splitlines()[0]}")
    advice = "Install g++ or clang++, or set UFUSE_CXX. Without one the interpreter answers."
    return Check("compiler", False, "none was found", advice)


def cache() -> Check:
    """The folder for compiled loops."""
    text = os.environ.get("UFUSE_CACHE_DIR")
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(text) if text else Path(base) / "ufuse"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Check(
            "cache", False, f"{folder}: {error}", "Set UFUSE_CACHE_DIR to a folder of yours."
        )
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        return Check("cache", False, f"{folder} can be written by others", f"chmod 700 {folder}")
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return Check("cache", True, f"{folder}, {size / 1e6:.1f} MB in use")


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


def loops() -> Check:
    """Whether a function compiles, runs in parallel, and gives NumPy's bits."""
    import numpy as np

    import ufuse

    x = np.linspace(0.0, 1.0, 300_000).reshape(-1, 3)

    def function(x: Any) -> Any:
        return np.sqrt((x * x + 1.0).sum(axis=1))

    jitted = ufuse.jit(function)
    start = time.perf_counter()
    ours = jitted(x)
    first = time.perf_counter() - start
    if ours.tobytes() != function(x).tobytes():
        return Check("loops", False, "a result differs from NumPy's", "Please report this.")
    groups = jitted.explain(x).groups
    origin = groups[0].origin if groups else "NumPy"
    text = f"same bits as NumPy, {ufuse.get_num_threads()} threads, {origin}"
    text += f", first call {first * 1e3:.0f} ms"
    if origin == "interpreter":
        return Check("loops", False, text, groups[0].note or "No loop was compiled.")
    return Check("loops", True, text)


def checks() -> Iterator[Check]:
    """All checks, in the order in which they are worth reading."""
    yield versions()
    yield cpu()
    yield compiler()
    yield cache()
    yield loops()


def doctor() -> int:
    """Print the report; the exit status is the number of things that are wrong."""
    wrong = 0
    for check in checks():
        print(f"{'ok ' if check.good else 'BAD'} {check.name:9} {check.text}")
        if not check.good:
            wrong += 1
            if check.advice:
                print(f"    {'':9} {check.advice}")
    return wrong


def main(argv: list[str] | None = None) -> int:
    """The command line of ``python -m ufuse``."""
    parser = argparse.ArgumentParser(prog="python -m ufuse", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="check compiler, OpenMP, cache and CPU")
    parser.parse_args(argv)
    return doctor()


if __name__ == "__main__":
    sys.exit(main())
