"""What does a bad compiler do to the calls of a program, to its threads and to Ctrl-C?

Each case is a process of its own with a stand-in for the compiler: one that hangs, floods, fails at
random, dies or is slow. Answers must be NumPy's bits in all of them.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++ to stand in for")

# How many compilers that fail at random; one for a quick look.
ROUNDS = int(os.environ.get("UFUSE_TEST_FAULT_ROUNDS", "1"))
# Bars are far above what is expected (0.05 s each), for machines that have much else to do.
STALL, LATE = 0.5, 1.0

# Asked what it would run it says nothing that helps, so that it is called itself.
ANSWER = 'case "$*" in *"-###"*) g++ "$@" 2>&1 | sed s/cc1plus/other/ >&2; exit;; esac;'

BEGIN = """
import os, signal, threading, time
import numpy as np, ufuse
from ufuse import _core

def make(k):
    "A function that needs a kernel of its own."
    def f(x):
        y = x * x + 2
        for _ in range(k):
            y = np.sqrt(y + x)
        return y.sum(axis=0)
    return f

def same(f, x):
    expected = f.__wrapped__(x)
    start = time.perf_counter()
    result = f(x)
    took = time.perf_counter() - start
    assert result.tobytes() == expected.tobytes() and type(result) is type(expected)
    return took

def said():
    return [group for row in _core.reports() for group in row["groups"]]

# Too much for the interpreter, whatever the compiler does.
large = np.random.default_rng(0).uniform(size=(4, 500_000))
small = large[:, :100].copy()

class Ticks:
    "The longest time for which this thread's Python stood still."

    def __enter__(self):
        self.longest, self.count, self.over = 0.0, 0, False
        self.thread = threading.Thread(target=self.tick, daemon=True)
        self.thread.start()
        return self

    def tick(self):
        last = time.perf_counter()
        while not self.over:
            for _ in range(100):
                self.count += 1
            now = time.perf_counter()
            self.longest, last = max(self.longest, now - last), now
            time.sleep(0.001)

    def __exit__(self, *what):
        self.over = True
        self.thread.join()
"""


class Place:
    """A folder for the compiler and its cache; programs run there."""

    def __init__(self, folder):
        self.folder = folder
        self.variables = {**os.environ, "UFUSE_CACHE_DIR": str(folder / "cache")}
        self.variables["TMPDIR"] = str(folder / "tmp")
        (folder / "tmp").mkdir()
        for name in ("CXX", "UFUSE_LOGS", "UFUSE_DEBUG"):
            self.variables.pop(name, None)
        # Calls wait for the compiler, as others do where NumPy would take longer.
        self.variables["UFUSE_BACKEND"] = "compiled"

    def compiler(self, text, answer=ANSWER):
        """A compiler that counts its runs; `answer` is how it says what it is."""
        path = self.folder / "compiler"
        path.write_text(f"#!/bin/bash\n{answer}\necho run >>{self.folder}/runs\n{text}\n")
        path.chmod(0o755)
        self.variables["UFUSE_CXX"] = str(path)
        return self

    def runs(self):
        """How often it was run."""
        file = self.folder / "runs"
        return len(file.read_text().split()) if file.exists() else 0

    def run(self, *arguments, **variables):
        """What Python did, in a time that is no hang."""
        done = subprocess.run(
            [sys.executable, *arguments],
            env={**self.variables, **variables},
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
        assert not list((self.folder / "tmp").glob("ufuse-??????")), "a work folder was left"
        return done

    def program(self, text, **variables):
        """Run a program that has to succeed in silence."""
        done = self.run("-c", BEGIN + text, **variables)
        assert done.returncode == 0, done.stderr
        assert (done.stdout, done.stderr) == ("", "")

    def doctor(self):
        """What ``python -m ufuse doctor`` says."""
        return self.run("-m", "ufuse", "doctor").stdout


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.fixture
def impatient(place):
    """Here calls wait for the compiler as long as they do for users, not as long as it takes."""
    place.variables.pop("UFUSE_PATIENCE", None)
    return place


HANGS = "sleep 1000"
SLOW = 'sleep 2; exec g++ "$@"'


def test_nobody_waits_long_for_a_compiler_that_hangs(impatient):
    """What answers instead has NumPy's bits also where more is allowed."""
    impatient.compiler(HANGS).program(
        """
took = same(ufuse.jit(make(1), numerics="fast"), large)
assert 4 < took < 15, took
[group] = said()
assert group["origin"] == "NumPy" and "longer than a call waits" in group["note"], group
for numerics in ("exact", "fast"):
    for k in range(2, 5):
        took = same(ufuse.jit(make(k), numerics=numerics), large)
        assert took < 2, took
        took = same(ufuse.jit(make(k), numerics=numerics), small)
        assert took < 2, took
assert "longer than a call waits" in str(ufuse.jit(make(2)).explain(large))
"""
    )
    assert impatient.runs() <= 4  # as many as are built side by side


def test_a_compiler_that_hangs_when_asked_what_it_is(impatient):
    impatient.compiler("", answer=HANGS).program(
        """
assert 4 < same(ufuse.jit(make(1)), large) < 15
assert same(ufuse.jit(make(2)), large) < 2
"""
    )


def test_the_wait_of_one_call_is_bounded_in_all(impatient):
    """Two seconds for each of many kernels, one after the other."""
    impatient.compiler(SLOW).program(
        """
def many(x):
    total = 0.0
    for k in range(6):
        x = np.sqrt(x + k)
        x = x.reshape(x.shape[::-1]) - k if k % 2 else x.T + k
        total += float(x.sum())
    return total

start = time.perf_counter()
result = ufuse.jit(many)(large)
assert time.perf_counter() - start < 12
assert result == many(large)
"""
    )


@pytest.mark.parametrize("seconds", [0, 1])
def test_the_user_says_how_long_a_call_waits(place, seconds):
    place.compiler(HANGS).program(
        f"""
assert {seconds} <= same(ufuse.jit(make(1)), large) < {seconds} + 3
assert same(ufuse.jit(make(2)), large) < 2
""",
        UFUSE_PATIENCE=str(seconds),
    )


def test_a_slow_compiler_is_waited_for_where_the_user_says_so(place):
    """Also by a call of small arrays, if it waits at all, and by one after a slow one."""
    place.compiler('sleep 6; exec g++ "$@"').program(
        """
for k, x in enumerate((large, small)):
    assert same(ufuse.jit(make(k + 1)), x) > 6
    assert said()[0]["origin"] == "compiled", said()
    _core.set_backend("compiled")
""",
        UFUSE_PATIENCE="100",
    )


def test_a_loop_does_not_leave_request_after_request_to_numpy(place, tmp_path):
    """The rest of such a call is plain Python; later ones run loops, recorded or native."""
    go = tmp_path / "go"
    place.compiler(f'while [ ! -e {go} ]; do sleep 0.05; done; exec g++ "$@"').program(
        f"""
import pathlib
def means(keys, count):
    found = np.zeros(count)
    for i in range(count):
        found[i] = keys[(i / count <= keys) & (keys < (i + 1) / count)].mean()
    return found

_core.choose_by("ours")
f, keys = ufuse.jit(means), np.random.default_rng(0).random(200_000)
right = means(keys, 400)
assert f(keys, 400).tobytes() == right.tobytes()
def reasons():
    return {{each["reason"] for each in _core.events()}}

assert "slow_tracing" in reasons()
pathlib.Path({str(go)!r}).touch()
def runs_loops():
    return f.stats().replayed or not reasons() & {{"slow_tracing", "compiling"}}

give_up = time.monotonic() + 100
while not runs_loops() and time.monotonic() < give_up:
    assert f(keys, 400).tobytes() == right.tobytes()
assert runs_loops(), reasons()
""",
        UFUSE_BACKEND="deferred",
    )


def test_other_threads_go_on_while_a_compiler_runs(place):
    place.compiler(SLOW).program(
        f"""
f = ufuse.jit(make(1))
with Ticks() as ticks:
    took = same(f, large)
assert took > 1.5 and said()[0]["origin"] == "compiled", (took, said())
assert ticks.longest < {STALL}, ticks.longest
assert ticks.count > 10_000
"""
    )


def test_calls_of_other_threads_meanwhile(place):
    """They trace, drop recorded calls, see new ufuncs and wait for loops of their own."""
    place.compiler(SLOW).program(
        """
def busy():
    scale = 1.0
    def scaled(x):
        return np.exp(x * scale) + 1
    jitted = ufuse.jit(scaled)
    functions = [np.sin, np.arctan, np.expm1, np.log1p, np.tan, np.cbrt, np.sinh, np.rint]
    n = 0
    while not over:
        scale += 1e-3
        same(jitted, small)
        f = functions[n % len(functions)]
        same(ufuse.jit(lambda x, f=f, n=n: f(x) * n - x), small)
        ufuse.set_num_threads(1 + n % 2)
        n += 1
    done.append(n)

over, done = False, []
threads = [threading.Thread(target=busy) for _ in range(2)]
for thread in threads:
    thread.start()
for k in (1, 2):
    same(ufuse.jit(make(k)), np.tile(large, (1, 16)))
over = True
for thread in threads:
    thread.join()
assert min(done) > 3, done
""",
        UFUSE_BACKEND="deferred",
    )


def test_kernels_are_built_side_by_side(place):
    """This compiler does nothing before it runs twice at once."""
    both = f"[ $(wc -l <{place.folder}/runs) -ge 2 ]"
    place.compiler(
        f'for _ in $(seq 100); do {both} && break; sleep 0.1; done\n{both} && exec g++ "$@"; exit 1'
    ).program(
        """
threads = [
    threading.Thread(target=same, args=(ufuse.jit(make(k)), large)) for k in (1, 2)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
start = time.perf_counter()
while _core.jit_statistics()["compiled"] < 2:
    time.sleep(0.01)
    assert time.perf_counter() - start < 60
"""
    )


# A signal that asks for no thread of Python's; its handler is Ctrl-C's own.
INTERRUPT = """
def interrupt(after):
    global due
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    due = time.perf_counter() + after
    signal.setitimer(signal.ITIMER_REAL, after)
"""


@pytest.mark.parametrize("backend", ["deferred", "compiled"])
def test_an_interrupt_while_a_compiler_runs(place, backend):
    place.compiler(SLOW).program(
        INTERRUPT
        + f"""
f = ufuse.jit(make(1))
x = np.ones((4, 8_500_000)) if {backend!r} == "deferred" else small
interrupt(0.7)
try:
    f(x)
except KeyboardInterrupt as error:
    late = time.perf_counter() - due
    traceback = error.__traceback__
else:
    raise AssertionError("no interrupt")
assert late < {LATE}, late
assert traceback.tb_next is None, "the traceback shows ufuse's own frames"
assert not _core.session_active()
same(f, x)  # what was begun has gone on
assert said()[0]["origin"] == "compiled", said()
assert _core.jit_statistics()["compiled"] == 1
""",
        UFUSE_BACKEND=backend,
    )
    assert place.runs() == 1


def test_an_interrupt_inside_the_function_is_at_its_line(place):
    place.compiler(SLOW).program(
        INTERRUPT
        + """
def decides(x):
    x[0] = 7
    caught = 0
    try:
        if (np.sqrt(x * x + 1) - x).sum() > 0:
            caught += 1
    except KeyboardInterrupt:
        caught += 10
    return np.abs(x).sum() + caught

y = np.tile(large, (1, 17))
expected = decides(y.copy()) + 9
interrupt(0.7)
result = ufuse.jit(decides)(y)
assert result == expected and (y[0] == 7).all(), (result, expected)
assert not _core.session_active()
""",
        UFUSE_BACKEND="deferred",  # which waits for the condition, and for nothing else
    )


def test_a_handler_that_computes_itself(place):
    """Its calls are none of the call that waits."""
    place.compiler(SLOW).program(
        """
def handler(number, frame):
    assert not _core.session_active()
    seen.append(same(ufuse.jit(lambda x: np.cos(x) + 2), small))
    seen.append(same(f, small))

seen = []
signal.signal(signal.SIGALRM, handler)
f = ufuse.jit(make(1))
signal.setitimer(signal.ITIMER_REAL, 0.5)
assert same(f, large) > 1.5
assert len(seen) == 2
assert said()[0]["origin"] == "compiled"
"""
    )


FLOODS = {"to stdout": "exec yes nonsense", "to stderr": "exec yes nonsense >&2"}


@pytest.mark.parametrize("how", [*FLOODS, "dies"])
def test_a_compiler_that_floods_or_dies_is_remembered(place, how):
    place.compiler(FLOODS.get(how, "kill -SEGV $$")).program(
        """
took = same(ufuse.jit(make(12)), large)
assert took < 15, took
for k in range(1, 6):
    same(ufuse.jit(make(k)), large)
    [group] = said()
    assert group["origin"] == "NumPy" and "tried again later" in group["note"], group
assert "was killed" in _core.jit_statistics()["trouble"]
assert "was killed" in str(ufuse.jit(make(1)).explain(large))
"""
    )
    assert place.runs() == 1
    text = place.doctor()
    assert "BAD compiler" in text, text
    assert "was killed" in text


def test_the_doctor_names_a_compiler_that_hangs(impatient):
    impatient.compiler(HANGS)
    text = impatient.doctor()
    assert "BAD compiler" in text, text
    assert "longer than a call waits" in text


@pytest.mark.parametrize("number", range(ROUNDS))
def test_compilers_that_fail_at_random(place, number):
    """Each run of it ends in another way; loops, interpreter and NumPy give the same bits."""
    seed = random.randrange(1 << 30)
    print("seed", seed)
    ways = [
        'exec g++ "$@"',
        'exec g++ "$@"',
        "exit 1",
        "kill -9 $$",
        "sleep 0.3; exit 3",
        'g++ "$@"; exit 1',
        'g++ "$@"; for w; do case $w in *.so) truncate -s 3000 $w;; esac; done; kill -9 $$',
        "exec yes >&2",
        "exec true",
    ]
    cases = "\n".join(f"{i}) {way};;" for i, way in enumerate(ways))
    place.compiler(f"RANDOM=$(({seed} + $$)); case $((RANDOM % {len(ways)})) in\n{cases}\nesac")
    place.program(
        """
for k in range(1, 12):
    f = ufuse.jit(make(k))
    for x in (large, small, large[:, ::2], small):
        same(f, x)
"""
    )


CHILDREN = {
    "ignored": "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
    "collected": """
def collect():
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            time.sleep(0.0001)

threading.Thread(target=collect, daemon=True).start()
""",
}
# Sound code of another source, or half of the right one.
WRONG = {
    "other code": 'for w; do case $w in *.cpp) sed -i "s/sqrt/fabs/g" $w;; esac; done;'
    ' g++ "$@"; exit 1',
    "half of the code": 'g++ "$@"; for w; do case $w in *.so) truncate -s 6000 $w;; esac; done;'
    " kill -9 $$",
}


@pytest.mark.parametrize("children", CHILDREN)
@pytest.mark.parametrize("wrong", WRONG)
def test_what_a_failed_compiler_left_is_not_used(place, children, wrong):
    """Also where how it ended is lost: the process ignores its children, or collects them all."""
    text = f"""
{CHILDREN[children]}
for k in range(1, 4):
    f = ufuse.jit(make(k))
    same(f, large)
    assert said()[0]["origin"] == WANTED, said()
    same(f, small)
"""
    place.compiler(WRONG[wrong]).program(f"WANTED = 'NumPy'\n{text}")
    place.compiler('exec g++ "$@"').program(f"WANTED = 'compiled'\n{text}")


def test_children_forked_while_a_compiler_runs(place):
    """A child waits for loops of its own, no longer than anybody, and no lock is left taken."""
    place.compiler('sleep 0.3; exec g++ "$@"').program(
        """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads

def work():
    for k in range(1, 4):
        same(ufuse.jit(make(k)), large)

thread = threading.Thread(target=work)
thread.start()
while thread.is_alive():
    child = os.fork()
    if child == 0:
        try:
            same(ufuse.jit(make(1)), small)
            same(ufuse.jit(make(3)), large)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
thread.join()
"""
    )


def test_the_end_of_the_program_does_not_wait(impatient):
    impatient.compiler(HANGS)
    start = time.monotonic()
    impatient.program("same(ufuse.jit(make(1)), small)")
    assert time.monotonic() - start < 20


def test_an_interrupt_at_the_end_leaves_nothing_behind(place):
    """Ctrl-C that nobody catches: Python ends by it, and the compiler with it."""
    place.compiler(HANGS)
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN + "print('go', flush=True)\nufuse.jit(make(1))(large)"],
        env=place.variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "go\n"
    deadline = time.monotonic() + 60
    while not place.runs() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in err, err
    assert "ufuse/" not in err, err
    assert process.returncode == -signal.SIGINT
    assert not list((place.folder / "tmp").glob("ufuse-??????"))
