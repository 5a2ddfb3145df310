"""Which of NumPy's own tests pass with NumPy and fail with ``ufuse.numpy``?

Used by ``test_suite.py`` and from the command line (``README.md``). Each module of NumPy's tests
runs in a process of its own, so a crash ends one module and is told with the test it happened in.
The tests that fail run again with plain NumPy: one that fails there too is no difference.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from differences import DIFFERENCES

HERE = Path(__file__).parent
NUMPY = Path(np.__file__).parent
PACKAGES = ("core", "lib", "linalg", "fft", "polynomial", "random", "ma", "matrixlib")
SECONDS = 600


class Result(NamedTuple):
    """What one module's tests gave with ``ufuse.numpy``: test ids, with the text of failures."""

    module: str
    passed: list[str]
    skipped: list[str]
    broken: dict[str, str]  # fail with plain NumPy too
    listed: dict[str, str]  # differ, and differences.py says why
    others: dict[str, str]  # differ
    stale: list[str]  # rows of differences.py that do not differ

    def __str__(self):
        told = [f"{len(self.passed)} passed", f"{len(self.skipped)} skipped"]
        told += [f"{len(self.broken)} fail with NumPy too"] if self.broken else []
        told += [f"{len(self.listed)} listed as different"] if self.listed else []
        told += [f"{len(self.others)} DIFFERENT"] if self.others else []
        return f"{self.module}: {', '.join(told)}"

    def problems(self):
        """Lines for each difference that is not listed, and each listed one that is none."""
        told = [f"{test}\n{text}" for test, text in self.others.items()]
        return told + [f"listed in differences.py, but no difference: {row}" for row in self.stale]


def path_of(module):
    """The file of ``core/test_umath.py`` in the installed NumPy; None where it has none."""
    package, name = module.split("/")
    for folder in (f"_{package}", package):
        path = NUMPY / folder / "tests" / name
        if path.exists():
            return path
    return None


def modules(packages=PACKAGES):
    """All modules of NumPy's tests, by package."""
    found = []
    for package in packages:
        for folder in (f"_{package}", package):
            for path in sorted((NUMPY / folder / "tests").glob("test_*.py")):
                found.append(f"{package}/{path.name}")
    return found


def run(module, swap, only=None):
    """Run one module's tests.

    Parameters
    ----------
    module : str
        As ``core/test_umath.py``.
    swap : bool
        Whether with ``ufuse.numpy``.
    only : list of str, optional
        Test ids.

    Returns
    -------
    dict
        ``(outcome, text)`` by test id. The outcome is "passed", "skipped" or "failed"; a test in
        which the process died has failed, and so has one that the module itself stands for.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        log.touch()
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "swapped"]
        command += ["-m", "not slow", "-c", os.devnull, "--tb=short"]
        task = {"swap": swap, "log": str(log), "only": only}
        environment = {
            **os.environ,
            "NUMPY_SUITE": json.dumps(task),
            "NPY_AVAILABLE_MEM": "1 GB",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # each costs time in each of very many tests
            "OPENBLAS_NUM_THREADS": "1",  # as many processes as cores are running already
            "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
        }
        try:
            done = subprocess.run(
                [*command, str(path_of(module))],
                env=environment,
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=SECONDS,
            )
            status, output = done.returncode, done.stdout
        except subprocess.TimeoutExpired as error:
            status, output = "timeout", (error.stdout or b"").decode(errors="replace")
        return _outcomes(module, log.read_text(), status, output)


def _outcomes(module, log, status, output):
    outcomes = {}
    started = module
    for line in log.splitlines():
        note = json.loads(line)
        if "start" in note:
            started = note["start"]
        elif "error" in note:
            outcomes[module] = ("failed", note["error"])
        elif "skipped" in note:
            outcomes[module] = ("skipped", note["skipped"])
        elif outcomes.get(note["id"], ("passed",))[0] != "failed":
            outcomes[note["id"]] = (note["outcome"], note["text"])
    if status not in (0, 1, 5) and outcomes.get(module, ("",))[0] != "failed":
        outcomes[started] = ("failed", f"the process ended with {status}\n{output[-3000:]}")
    return outcomes


def compare(module, every=False):
    """Run a module with ``ufuse.numpy``, and again with plain NumPy what does not pass.

    ``every``: all of it again, so that tests are found that only NumPy's run has.
    """
    ours = run(module, swap=True)
    missed = [test for test, (outcome, _) in ours.items() if outcome != "passed"]
    numpys = run(module, swap=False, only=None if every else missed) if every or missed else {}
    if every:
        gone = ("failed", "not run with ufuse.numpy, or not passed there")
        ours = {test: gone for test, (outcome, _) in numpys.items() if outcome == "passed"} | ours
    failed, broken = {}, {}
    for test, (outcome, text) in ours.items():
        theirs = numpys.get(test, ("missing", ""))[0]
        if outcome == "failed" and theirs == "failed":
            broken[test] = text
        elif outcome == "failed" or (outcome == "skipped" and theirs == "passed"):
            failed[test] = text or "skipped, but not with NumPy"
    listed = {test: text for test, text in failed.items() if is_listed(test)}
    return Result(
        module,
        [test for test, (outcome, _) in ours.items() if outcome == "passed"],
        [test for test, (outcome, _) in ours.items() if outcome == "skipped"],
        broken,
        listed,
        {test: text for test, text in failed.items() if test not in listed},
        [row for row in rows() if _is_stale(row, ours, failed)],
    )


def rows():
    """All rows of ``differences.py`` that are meant for this version of NumPy."""
    major = int(np.__version__.partition(".")[0])
    return [
        row.removeprefix(f"NumPy {major}: ")
        for group in DIFFERENCES.values()
        for row in group
        if not row.startswith("NumPy ") or row.startswith(f"NumPy {major}: ")
    ]


def is_listed(test):
    """Whether a row of ``differences.py`` means this test."""
    return any(covers(row, test) for row in rows())


def covers(row, test):
    """Whether a row (a module, class, test, or one parameter set) means this test."""
    return test == row or test.startswith((f"{row}::", f"{row}["))


def _is_stale(row, ours, failed):
    meant = [test for test in ours if covers(row, test)]
    return bool(meant) and not any(test in failed for test in meant)


def main():
    """Run modules and print what differs; the exit status says whether anything does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help="core, or core/test_umath.py; default: all")
    parser.add_argument("-j", type=int, default=os.cpu_count(), help="processes")
    given = parser.parse_args()
    wanted = tuple(given.modules) or PACKAGES
    chosen = [module for module in modules() if module.startswith(wanted)]
    results = []
    with ThreadPoolExecutor(given.j) as pool:
        for result in pool.map(lambda module: compare(module, every=True), chosen):
            results.append(result)
            print("\n    ".join([str(result), *result.problems()]), flush=True)
    total = Result("total", *(_joined(parts) for parts in list(zip(*results, strict=True))[1:]))
    print(total)
    return 1 if total.problems() else 0


def _joined(parts):
    if isinstance(parts[0], dict):
        return {name: text for part in parts for name, text in part.items()}
    return [name for part in parts for name in part]


if __name__ == "__main__":
    sys.exit(main())
