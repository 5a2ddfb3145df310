"""Which of NumPy's and SciPy's own tests pass plainly and fail with ufuse?

There are two ways to run them: "swapped", with ``ufuse.numpy`` in NumPy's place, and "jitted", with
each test function decorated and called three times. Used by ``test_suite.py`` and from the command
line (``README.md``). Each module of tests runs in a process of its own, so a crash ends one module
and is told with the test it happened in. The tests that fail run again plainly: one that fails
there too is no difference.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from differences import JITTED, SWAPPED

HERE = Path(__file__).parent
NUMPY = Path(np.__file__).parent
PACKAGES = ("core", "lib", "linalg", "fft", "polynomial", "random", "ma", "matrixlib")
SCIPY_PACKAGES = tuple(
    f"scipy.{name}" for name in ("signal", "ndimage", "special", "linalg", "stats")
)
SECONDS = 600
# A first call records, a second one replays, a third one replays again what the second has left.
CALLS = {"swapped": 1, "jitted": 3}
DIFFERENCES = {"swapped": SWAPPED, "jitted": JITTED}


class Result(NamedTuple):
    """What one module's tests gave with ufuse: test ids, with the text of failures."""

    module: str
    passed: list[str]
    skipped: list[str]
    broken: dict[str, str]  # fail plainly too
    listed: dict[str, str]  # differ, and differences.py says why
    others: dict[str, str]  # differ
    stale: list[str]  # rows of differences.py that do not differ

    def __str__(self):
        told = [f"{len(self.passed)} passed", f"{len(self.skipped)} skipped"]
        told += [f"{len(self.broken)} fail plainly too"] if self.broken else []
        told += [f"{len(self.listed)} listed as different"] if self.listed else []
        told += [f"{len(self.others)} DIFFERENT"] if self.others else []
        return f"{self.module}: {', '.join(told)}"

    def problems(self):
        """Lines for each difference that is not listed, and each listed one that is none."""
        told = [f"{test}\n{text}" for test, text in self.others.items()]
        return told + [f"listed in differences.py, but no difference: {row}" for row in self.stale]


def path_of(module):
    """The file of ``core/test_umath.py`` in the installed NumPy, or of
    ``scipy.signal/test_windows.py`` in SciPy; None where it has none."""
    package, name = module.split("/")
    return next((path for folder in folders(package) if (path := folder / name).exists()), None)


def folders(package):
    """Where the tests of a package may stand."""
    if package.startswith("scipy."):
        scipy = importlib.util.find_spec("scipy")
        found = [] if scipy is None else [Path(scipy.origin).parent / package[len("scipy.") :]]
    else:
        found = [NUMPY / f"_{package}", NUMPY / package]
    return [folder / "tests" for folder in found]


def modules(packages):
    """All modules of the packages' tests."""
    return [
        f"{package}/{path.name}"
        for package in packages
        for folder in folders(package)
        for path in sorted(folder.glob("test_*.py"))
    ]


def run(module, way, calls, only=None, share=1):
    """Run one module's tests.

    Parameters
    ----------
    module : str
        As ``core/test_umath.py``.
    way : {"plain", "swapped", "jitted"}
        How ufuse takes part.
    calls : int
        How often each test function is called.
    only : list of str, optional
        Test ids.
    share : int
        Of a module with many tests, one in so many runs, always the same ones.

    Returns
    -------
    dict
        ``(outcome, text)`` by test id. The outcome is "passed", "skipped" or "failed"; a test in
        which the process died has failed, and so has one that the module itself stands for.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        log.touch()
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "through_ufuse",
        ]
        command += ["-m", "not slow", "-c", os.devnull, "--tb=short"]
        task = {"way": way, "calls": calls, "log": str(log), "only": only, "share": share}
        environment = {
            **os.environ,
            "NUMPY_SUITE": json.dumps(task),
            "NPY_AVAILABLE_MEM": "1 GB",
            "UFUSE_BACKEND": "interpreted",  # what loops compute is tested elsewhere
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


def compare(module, way, every=False, share=1):
    """Run a module with ufuse, and again plainly what does not pass.

    ``every``: all of it again, so that tests are found that only the plain run has. ``share``: as
    for ``run``; where tests are left out, no row of ``differences.py`` is called stale.
    """
    calls = CALLS[way]
    ours = run(module, way, calls, share=share)
    missed = [test for test, (outcome, _) in ours.items() if outcome != "passed"]
    plain = run(module, "plain", calls, None if every else missed) if every or missed else {}
    if every:
        gone = ("failed", "not run with ufuse, or not passed there")
        ours = {test: gone for test, (outcome, _) in plain.items() if outcome == "passed"} | ours
    failed, broken = {}, {}
    for test, (outcome, text) in ours.items():
        theirs = plain.get(test, ("missing", ""))[0]
        if outcome == "failed" and theirs == "failed":
            broken[test] = text
        elif outcome == "failed" or (outcome == "skipped" and theirs == "passed"):
            failed[test] = text or "skipped, but not plainly"
    listed = {test: text for test, text in failed.items() if is_listed(test, way)}
    return Result(
        module,
        [test for test, (outcome, _) in ours.items() if outcome == "passed"],
        [test for test, (outcome, _) in ours.items() if outcome == "skipped"],
        broken,
        listed,
        {test: text for test, text in failed.items() if test not in listed},
        [row for row in rows(way) if share == 1 and _is_stale(row, ours, failed)],
    )


def rows(way):
    """All rows of ``differences.py`` that are meant for this version of NumPy."""
    major, minor, *_ = np.__version__.split(".")
    meant = tuple(f"NumPy {version}: " for version in (major, f"{major}.{minor}"))
    return [
        row.partition(": ")[2] if row.startswith(meant) else row
        for group in DIFFERENCES[way].values()
        for row in group
        if not row.startswith("NumPy ") or row.startswith(meant)
    ]


def is_listed(test, way):
    """Whether a row of ``differences.py`` means this test."""
    return any(covers(row, test) for row in rows(way))


def covers(row, test):
    """Whether a row (a module, class, test, or one parameter set) means this test."""
    return test == row or test.startswith((f"{row}::", f"{row}["))


def _is_stale(row, ours, failed):
    meant = [test for test in ours if covers(row, test)]
    return bool(meant) and not any(test in failed for test in meant)


def main():
    """Run modules and print what differs; the exit status says whether anything does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "modules",
        nargs="*",
        help="core, core/test_umath.py, scipy or scipy.signal; default: NumPy's",
    )
    parser.add_argument("--jitted", action="store_true", help="decorate the test functions")
    parser.add_argument("-j", type=int, default=os.cpu_count(), help="processes")
    given = parser.parse_args()
    wanted = tuple(given.modules) or PACKAGES
    way = "jitted" if given.jitted else "swapped"
    known = modules([*PACKAGES, *SCIPY_PACKAGES])
    chosen = [module for module in known if module.startswith(wanted)]
    results = []
    with ThreadPoolExecutor(given.j) as pool:
        for result in pool.map(lambda module: compare(module, way, every=True), chosen):
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
