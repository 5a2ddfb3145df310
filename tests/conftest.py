"""What holds for all folders of tests.

Tests that stand for many others tell at the end what became of those (``record_property``). They
take long, so they come first: at the end all processes have work.

``--sample`` runs a part of the tests where all of them would teach nothing new: under the
sanitizers, and with another NumPy. Which part that is says ``SAMPLES`` below. ``--shuffle`` and
``--at-most`` run some of the tests in random order, for `.ci/soak`.

Whatever jitted functions compute in the tests' own process is compared with NumPy, request by
request (``ufuse.requests``), so that a wrong value is reported where it is made.
"""

import itertools
import os
import random
import signal
import zlib

import numpy as np
import pytest
from ufuse import _core
from ufuse.tools import requests

# What each sample leaves out: folders and files below tests/. Of a test with many sets of
# parameters it runs those that show each combination of all parameters but one (see `_sampled`).
SAMPLES = {
    # What a sanitizer can find in the C++ code it was built into: nothing in the processes that
    # tests start (each would load the sanitizer anew, and compilers are no part of ours), nor in
    # tests of tools, texts and other packages. Generated loops are not instrumented.
    "sanitizers": [
        *("faults", "house", "leaks", "numpy_suite"),
        *("numpy/test_seen.py", "numpy/test_pickling.py", "numpy/test_foreign.py"),
        *("numpy/test_commands.py", "numpy/test_config.py"),
    ],
    # What may depend on the version of Python or NumPy: not compilers, caches, threads and tools.
    "numpy": ["faults", "house", "threads", "numpy/test_commands.py", "numpy/test_config.py"],
}
# A test with fewer sets of parameters is run with all of them.
FEW = 24


def pytest_addoption(parser):
    parser.addoption("--sample", choices=SAMPLES, help="run a part of the tests: tests/conftest.py")
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run the tests in random order")
    parser.addoption("--every", action="store_true", help="all sets of parameters: tests/numpy")
    parser.addoption("--at-most", type=int, metavar="COUNT", help="run only the first of them")


def pytest_configure():
    # What a test expects of a loop must not depend on how busy the machine is: here, and in all
    # processes that tests start, calls wait for the compiler as long as it takes. Tests of what
    # happens otherwise say so (`impatient` in faults/).
    os.environ.setdefault("UFUSE_PATIENCE", "1000")
    # Nor must it depend on the clock which way answers a call: not the plain function, unless a
    # test says so (`by_clock`).
    os.environ.setdefault("UFUSE_CHOICES", "ours")
    _core.choose_by(os.environ["UFUSE_CHOICES"])
    # A shell's background jobs ignore Ctrl-C, and so would all processes that tests start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    requests.watch()


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No request of the test differs from NumPy, whatever the test makes of the exception.

    No call is left open, and NumPy's error state is as it was.
    """
    known, state = len(requests.found), np.geterr()
    yield
    assert requests.found[known:] == []
    assert not _core.session_active()
    assert np.geterr() == state


@pytest.fixture
def by_clock():
    """Calls are answered by the way that is measured to be faster, as they are for users."""
    before = _core.choose_by("clock")
    yield
    _core.choose_by(before)


@pytest.fixture
def unwatched():
    """For tests of memory and addresses: what the comparison holds meanwhile would be counted."""
    _core.set_request_judge(None)
    yield
    requests.watch()


def pytest_collection_modifyitems(config, items):
    if name := config.getoption("sample"):
        without = [f"/tests/{left_out}" for left_out in SAMPLES[name]]
        kept = _sampled(
            [item for item in items if not any(part in item.path.as_posix() for part in without)]
        )
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]
    items.sort(key=lambda item: "numpy_suite" not in item.path.parts)
    if (seed := config.getoption("shuffle")) is not None:
        random.Random(seed).shuffle(items)
    if (most := config.getoption("at_most")) is not None:
        config.hook.pytest_deselected(items=items[most:])
        del items[most:]


def _sampled(items):
    """The tests that show a combination of parameters that no other one kept shows.

    A test of operation, layout and backend is run with each operation in each layout, each
    operation with each backend, and each layout with each backend, but not with all three crossed.
    The order is one of chance that is the same each time, so that what is kept is spread evenly.
    """
    families = {}
    for item in items:
        families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = set()
    for family in families.values():
        seen = set()
        for item in sorted(family, key=lambda item: zlib.crc32(item.nodeid.encode())):
            shown = set(_combinations(item))
            if len(family) < FEW or not shown <= seen:
                kept.add(item)
                seen |= shown
    return kept


def _combinations(item):
    """The values of a test's parameters, with each one left out in turn."""
    values = list(enumerate(item.callspec._idlist)) if hasattr(item, "callspec") else []
    return itertools.combinations(values, max(len(values) - 1, 1))


def pytest_terminal_summary(terminalreporter):
    """One line for each test that has something to tell."""
    told = sorted(
        text
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, text in getattr(report, "user_properties", ())
        if name == "told" and report.when == "call"
    )
    if told:
        terminalreporter.section("NumPy's and SciPy's own tests")
        for line in told:
            terminalreporter.line(line)
