"""Does a process live on whatever the environment tells libomp, and however little it may have?

Each case is a process of its own that computes with all threads it can get.
"""

import ctypes.util
import os
import resource
import subprocess
import sys

import pytest

SCRIPT = """
import os, sys, time
import numpy as np
import ufuse

before = dict(os.environ)
forks = True
x = np.linspace(0, 1, 3_000_000)
f = ufuse.jit(lambda x: np.sqrt(x * x + 1) - x)
if len(sys.argv) > 1:
    exec(sys.argv[1])
assert f(x).tobytes() == f.__wrapped__(x).tobytes()
assert f(x).tobytes() == f.__wrapped__(x).tobytes()
if forks:
    child = os.fork()
    if child == 0:
        os._exit(0 if f(x).tobytes() == f.__wrapped__(x).tobytes() else 1)
    status = os.waitpid(child, 0)[1]
    assert status == 0, status
assert dict(os.environ) == before
print("fine", ufuse.get_num_threads(), ufuse._core.threads_note())
"""


def run(code="", limits=(), **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "KMP_"))}

    def restrict():
        for kind, value in limits:
            resource.setrlimit(kind, (value, value))

    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, *([code] if code else [])],
        env={**environment, **variables},
        preexec_fn=restrict if limits else None,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr[-2000:])
    assert done.stdout.startswith("fine"), done.stdout
    return done


@pytest.mark.parametrize("value", ["", " ", ",", "abc", "-1", "0", "4,", "9" * 30])
def test_number_of_threads(value):
    found = run(OMP_NUM_THREADS=value).stderr
    assert "OMP_NUM_THREADS" in found
    assert "it is ignored" in found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OMP_STACKSIZE", "1T"),
        ("OMP_STACKSIZE", "9" * 20),
        ("KMP_STACKSIZE", "9999999T"),
        ("KMP_CPUINFO_FILE", "/nowhere"),
    ],
)
def test_what_libomp_does_not_bear(name, value):
    found = run(**{name: value}).stderr
    assert f"{name}: " in found
    assert "it is ignored" in found


# Bugs of some versions.
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GOMP_CPU_AFFINITY", "1T"),
        ("KMP_ALIGN_ALLOC", "1000000"),
        ("KMP_ADAPTIVE_LOCK_PROPS", ""),
        ("OMP_PLACES", "{0}"),
    ],
)
def test_what_libomp_may_not_bear(name, value):
    run(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OMP_STACKSIZE", ""),
        ("OMP_STACKSIZE", "1M"),
        ("OMP_STACKSIZE", "64M"),
        ("OMP_SCHEDULE", "nonsense"),
        ("KMP_AFFINITY", "compact"),
        ("OMP_NUM_THREADS", "3,2"),
    ],
)
def test_what_libomp_bears_is_left_to_it(name, value):
    assert "ignored" not in run(**{name: value}).stderr.replace("Ignor", "ignor").split("OMP:")[0]


def test_two_that_are_wrong():
    found = run(OMP_NUM_THREADS="", OMP_STACKSIZE="1T", OMP_WAIT_POLICY="passive").stderr
    assert "OMP_NUM_THREADS: " in found
    assert "OMP_STACKSIZE: " in found
    assert "OMP_WAIT_POLICY" not in found


def test_the_doctor():
    environment = {**os.environ, "OMP_NUM_THREADS": "", "OMP_STACKSIZE": "1T"}
    done = subprocess.run(
        [sys.executable, "-m", "ufuse", "doctor"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode >= 1, done.stderr
    assert "OMP_NUM_THREADS: '' is no list of positive numbers" in done.stdout
    assert "OMP_STACKSIZE: libomp ends the process over '1T'" in done.stdout


def test_more_threads_than_memory_for_stacks():
    gib = 1 << 30
    done = run("ufuse.set_num_threads(600)", [(resource.RLIMIT_AS, 3 * gib)])
    assert "of 600 threads the system gives" in done.stdout


def test_stacks_too_large_for_many():
    done = run("ufuse.set_num_threads(64)", [(resource.RLIMIT_AS, 3 << 30)], OMP_STACKSIZE="99M")
    assert "of 64 threads the system gives" in done.stdout


# The loop is compiled, and run by one thread, before what it needs is taken away.
FIRST = "forks = False\nufuse.set_num_threads(1)\nf.warmup(x)\nf(x)\nufuse.set_num_threads(4)\n"


def test_no_thread_at_all():
    code = f"{FIRST}import resource\n"
    if os.geteuid() == 0:  # whom this limit does not hold for
        code += "os.setgroups([])\nos.setgid(65534)\nos.setuid(65534)\n"
    done = run(code + "resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))")
    assert "of 4 threads the system gives 1" in done.stdout


# libomp says in a file that it runs.
RUNS_LIBOMP = """
def name(number):
    return f"/dev/shm/__KMP_REGISTERED_LIB_{number}_{os.getuid()}"

ufuse.set_num_threads(2)
for _ in range(1000):  # a loop leaves the cores to a compiler that runs, so one thread may do
    f(x)
    if os.path.exists(name(os.getpid())):
        break
    time.sleep(0.01)
assert os.path.exists(name(os.getpid()))
"""


def test_another_library_in_front():
    # Loops go to libomp all the same: libgomp hangs in a forked child.
    libgomp = ctypes.util.find_library("gomp")
    if libgomp is None:
        pytest.skip("libgomp is not installed")
    code = """
import ctypes
assert hasattr(ctypes.CDLL(None), "GOMP_parallel")
assert not hasattr(ctypes.CDLL(None), "kmp_set_blocktime")
"""
    run(code + RUNS_LIBOMP, LD_PRELOAD=libgomp)


def test_no_file_descriptors():
    code = "held = []\ntry:\n    while True: held.append(os.open('/dev/null', 0))\n"
    code += "except OSError: pass\n"
    done = run(FIRST + code, [(resource.RLIMIT_NOFILE, 100)])
    assert "OpenMP cannot be started" in done.stdout


def test_an_empty_file_with_a_childs_number():
    # Left behind by a process that was killed while libomp started in it. It is not known which
    # number the child will have.
    code = """
made = [n for n in map(name, range(os.getpid(), os.getpid() + 500)) if not os.path.exists(n)]
for each in made:
    open(each, "w").close()
child = os.fork()
if child == 0:
    os._exit(0 if f(x).tobytes() == f.__wrapped__(x).tobytes() else 1)
status = os.waitpid(child, 0)[1]
for each in made:
    if os.path.exists(each):
        os.unlink(each)
assert child - os.getpid() < 500  # it had a file of its number
assert status == 0, status
"""
    run(RUNS_LIBOMP + code)


def test_no_memory_for_libomp():
    code = "import resource\nused = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
    code += "limit = used + 8 * x.nbytes + (400 << 20)\n"
    code += "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n"
    run(FIRST + code + "ufuse.set_num_threads(200)")
