"""What answers while loops are being compiled in the background, and what becomes of that work?

Each case is a process of its own, with a compiler that takes as long as the case needs.
"""

import shutil
import time

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++ to slow down")

# Asked what it would run it says nothing that helps, so that it is called itself.
ANSWER = 'case "$*" in *"-###"*) g++ "$@" 2>&1 | sed s/cc1plus/other/ >&2; exit;; esac;'

BEGIN = """
import os, time
import numpy as np, ufuse
from ufuse import _core

def f(x, y):
    return np.sqrt(x * x + y).sum(axis=1)

def same(a, b):
    assert a.tobytes() == b.tobytes() and type(a) is type(b)

def said():
    return [group for row in _core.reports() for group in row["groups"]]

g = ufuse.jit(f)
x, y = np.random.default_rng(0).uniform(size=(2, 40, 7))
start = time.perf_counter()
same(g(x, y), f(x, y))
"""


@pytest.fixture
def slow(place):
    """A place where the compiler takes some seconds and calls do not wait for it."""

    def with_compiler(seconds):
        place.variables["UFUSE_BACKEND"] = "deferred"
        place.variables["UFUSE_CXX"] = place.script(f'{ANSWER} sleep {seconds}; exec g++ "$@"')
        return place

    return with_compiler


def test_the_interpreter_answers_until_the_loops_are_there(slow):
    slow(1).program(
        BEGIN
        + """
[group] = said()
assert group["origin"] == "interpreter" and "being compiled" in group["note"], group
assert "ufuse_kernel" in group["source"]
while said()[0]["origin"] == "interpreter":
    same(g(x, y), f(x, y))
    assert time.perf_counter() - start < 60
assert said()[0]["origin"] == "compiled", said()
assert said()[0]["compile_ms"] > 900
for n in range(3):
    same(g(x + n, y), f(x + n, y))
assert _core.jit_statistics()["compiled"] == 1
"""
    )


def test_tracing_stops_where_the_loops_that_would_pay_for_it_do_not_come(slow):
    slow(50).program(
        BEGIN
        + """
def halved(x, rounds):
    for _ in rounds:
        x = x * 0.5 + 1.0
        if x.sum() < 0:
            break
    return x

began = []

def timed(count):
    for number in range(count):
        began.append(time.perf_counter())
        yield number

x = np.linspace(0, 1, 20_000)
same(ufuse.jit(halved)(x, timed(6000)), halved(x, [None] * 6000))
traced = len(_core.reports())
assert traced < 5000, traced
assert began[traced] - began[0] > 0.05, (traced, began[traced] - began[0])
"""
    )


def test_numpy_computes_once_what_variables_hold(slow):
    slow(50).program(
        BEGIN
        + """
asked = 0

class Counting:
    def __init__(self, function):
        self.function = function

    def __call__(self, *args, **kwargs):
        global asked
        asked += 1
        return self.function(*args, **kwargs)

def parts(x, out):
    held = x * 3 * x
    out[1:] += held[1:] - x[1:]
    seen = held + 1
    out[:-1] -= held[:-1]
    del held
    out[2:] += seen[2:]
    return out.copy()

x = np.random.default_rng(0).uniform(size=(1000, 300))
expected = parts(x, x + 2)
multiply, np.multiply = np.multiply, Counting(np.multiply)
got = ufuse.jit(parts)(x, x + 2)
np.multiply = multiply
same(got, expected)
assert {group["origin"] for group in said()} >= {"NumPy"}, said()
assert asked == 2, asked
"""
    )


def test_long_work_waits_for_its_loops(slow):
    slow(0.3).program(
        BEGIN
        + """
def long(x):
    for _ in range(10):
        x = np.sqrt(x * x + 1)
    return x

x = np.random.default_rng(0).uniform(size=6_000_000)
same(ufuse.jit(long)(x), long(x))
assert {group["origin"] for group in said()} == {"compiled"}, said()
"""
    )


def test_explain_and_fast_numerics_wait(slow):
    slow(0.3).program(
        BEGIN
        + """
assert g.explain(x, y).groups[0].origin == "compiled"
fast = ufuse.jit(f, numerics="fast")
fast(x, y)
assert said()[0]["origin"] == "compiled", said()
"""
    )


def test_the_compiler_has_no_file_of_the_program_open(slow):
    place = slow(0)
    begun = place.folder / "begun"
    begun.touch()
    place.variables["UFUSE_CXX"] = place.script(f"{ANSWER} echo here >> {begun}; sleep 20; exit 1")
    place.program(
        "import fcntl\n"
        + BEGIN
        + f"""
locked = os.open("{place.folder}/locked", os.O_RDWR | os.O_CREAT)
os.set_inheritable(locked, True)  # as the files are that a library in C opens
fcntl.flock(locked, fcntl.LOCK_EX)
same(ufuse.jit(lambda x: x * 3 + 1)(x), x * 3 + 1)
while os.path.getsize("{begun}") < 2 * len("here\\n"):
    assert time.perf_counter() - start < 60
os.close(locked)
locked = os.open("{place.folder}/locked", os.O_RDWR)
fcntl.flock(locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
"""
    )


def test_the_next_process_finds_what_a_short_one_began(slow):
    place = slow(0.3)
    # It waits two seconds for a compiler at its end: too short on a machine that is busy enough.
    place.program(
        BEGIN
        + """
import atexit
assert said()[0]["origin"] == "interpreter", said()
atexit.unregister(_core.finish_builds)
atexit.register(_core.finish_builds, 60.0)
"""
    )
    place.program(
        BEGIN
        + """
while said()[0]["origin"] == "interpreter":
    assert time.perf_counter() - start < 60, said()
assert said()[0]["origin"] == "disk cache", said()
"""
    )


def test_a_process_does_not_wait_long_for_a_compiler_at_its_end(slow):
    place = slow(50)
    started = time.monotonic()
    place.program(BEGIN)
    assert time.monotonic() - started < 30


def test_a_compiler_that_fails_meanwhile(slow):
    place = slow(0)
    place.variables["UFUSE_CXX"] = place.script(f"{ANSWER} sleep 0.3; echo no luck >&2; exit 1")
    place.program(
        BEGIN
        + """
while "being compiled" in said()[0]["note"]:
    same(g(x, y), f(x, y))
[group] = said()
assert group["origin"] == "interpreter" and "no luck" in group["note"], group
same(g(x, y), f(x, y))
assert "no luck" in str(g.explain(x, y)) or "fail" in str(g.explain(x, y))
"""
    )


def test_a_child_forked_meanwhile_has_loops_of_its_own(slow):
    slow(0.5).program(
        BEGIN
        + """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
child = os.fork()
if child == 0:
    same(g(x, y), f(x, y))
    os._exit(0 if said()[0]["origin"] != "interpreter" else 1)
assert os.waitpid(child, 0)[1] == 0
same(g(x, y), f(x, y))
"""
    )


def test_calls_of_functions_at_exit(slow):
    slow(0.2).program(
        """
import atexit
atexit.register(lambda: same(ufuse.jit(lambda x: x * 3)(x), x * 3))
"""
        + BEGIN
    )
