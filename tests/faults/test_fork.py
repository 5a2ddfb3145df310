"""Does a forked child still compute, whatever the parent did before and does meanwhile?

Each case is a script in a process of its own, with a limit of time: a child that hangs is the usual
way in which this fails. UFUSE_TEST_FAULT_ROUNDS: how many forks at random moments.
"""

import os
import subprocess
import sys
import textwrap

import pytest
from place import COMPILER, needs_compiler, rounds

BEGIN = """
import concurrent.futures, multiprocessing, os, random, threading, time, warnings
import numpy as np, ufuse

warnings.simplefilter("ignore")  # Python 3.12 warns of forks beside threads

@ufuse.jit
def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)

@ufuse.jit
def roots(x):
    return np.sqrt(np.abs(x) + 0.75).sum(axis=0)

ROUNDS = int(os.environ.get("UFUSE_TEST_FAULT_ROUNDS") or 5)
LARGE = np.random.default_rng(0).normal(size=(1500, 301))
SMALL = LARGE[:5, :4].copy()

def good(f, x):
    assert f(x).tobytes() == f.__wrapped__(x).tobytes()
    return True

def in_child(work):
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 3)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(4)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
"""

CASES = {
    "without a call before": """
        in_child(lambda: good(softmax, LARGE))
    """,
    "after a parallel loop": """
        ufuse.set_num_threads(2)
        good(softmax, LARGE)
        in_child(lambda: good(softmax, LARGE))
        good(softmax, LARGE)
    """,
    "a new function in the child": """
        ufuse.set_num_threads(2)
        good(softmax, LARGE)
        in_child(lambda: good(roots, LARGE) and good(roots, SMALL))
        good(roots, LARGE)
    """,
    "grandchildren": """
        good(softmax, LARGE)
        in_child(lambda: good(softmax, LARGE) and (in_child(lambda: good(roots, LARGE)), 1))
    """,
    "several children at once": """
        good(softmax, LARGE)
        children = []
        for _ in range(4):
            child = os.fork()
            if child == 0:
                os._exit(0 if good(softmax, LARGE) and good(roots, LARGE) else 3)
            children.append(child)
        assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    """,
    "while other threads compute": """
        stop = threading.Event()
        def busy(k):
            n = 0
            while not stop.is_set():
                ufuse.jit(lambda x: x * k + n)(SMALL)
                good(softmax, LARGE)
                n += 1
        threads = [threading.Thread(target=busy, args=(k,), daemon=True) for k in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(ROUNDS):
            time.sleep(random.uniform(0, 0.05))
            in_child(lambda: good(softmax, LARGE) and good(roots, LARGE))
        stop.set()
        for thread in threads:
            thread.join()
    """,
    "while a thread imports what a first call needs": """
        import sys
        class Slow:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name.startswith("ufuse."):
                    time.sleep(0.1)
        sys.meta_path.insert(0, Slow)
        thread = threading.Thread(target=lambda: good(roots, SMALL))
        thread.start()
        while thread.is_alive():
            time.sleep(0.02)
            in_child(lambda: good(softmax, SMALL))
        thread.join()
    """,
    "while a compiler runs": """
        def busy():
            for k in range(4):
                exec(f"f = ufuse.jit(lambda x: np.tanh(x) - np.sin(x) ** {k + 3})", globals())
                f(LARGE)
        thread = threading.Thread(target=busy)
        thread.start()
        for _ in range(ROUNDS):
            time.sleep(random.uniform(0, 0.1))
            in_child(lambda: good(roots, LARGE))
        thread.join()
    """,
    "while another thread forks": """
        def forks():
            for _ in range(ROUNDS):
                in_child(lambda: good(roots, SMALL))
        threads = [threading.Thread(target=forks) for _ in range(3)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            in_child(lambda: good(softmax, LARGE))
        for thread in threads:
            thread.join()
    """,
    "between each two calls": """
        for k in range(4 * ROUNDS):
            good(softmax, LARGE[: 20 + k])
            in_child(lambda: good(softmax, LARGE[: 21 + k]))
    """,
    "inside a traced call": """
        def forks(x):
            y = x * 2
            child = os.fork()
            if child == 0:
                os._exit(0 if float(y.sum()) == float((LARGE * 2).sum()) else 3)
            assert os.waitpid(child, 0)[1] == 0
            return y + 1
        assert ufuse.jit(forks)(LARGE).tobytes() == (LARGE * 2 + 1).tobytes()
    """,
    "a child that ends as usual": """
        good(softmax, LARGE)
        child = os.fork()
        if child == 0:
            good(softmax, LARGE)
            raise SystemExit(0)
        assert os.waitpid(child, 0)[1] == 0
    """,
    "multiprocessing": """
        good(softmax, LARGE)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            results = pool.map(softmax, [LARGE + k for k in range(4)])
        for k, result in enumerate(results):
            assert result.tobytes() == softmax.__wrapped__(LARGE + k).tobytes()
    """,
    "process pool": """
        good(softmax, LARGE)
        context = multiprocessing.get_context("fork")
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            for k, result in enumerate(pool.map(softmax, [SMALL, LARGE])):
                assert result.tobytes() == softmax.__wrapped__([SMALL, LARGE][k]).tobytes()
    """,
    "number of threads in the child": """
        ufuse.set_num_threads(2)
        good(softmax, LARGE)
        def work():
            assert ufuse.get_num_threads() == 2
            ufuse.set_num_threads(1)
            return good(softmax, LARGE)
        in_child(work)
        assert ufuse.get_num_threads() == 2
    """,
}


# Loaded before all other libraries: libomp's start on a thread takes half a second.
SLOW = """
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" int slow_calls = 0;
extern "C" int __register_atfork(void (*before)(), void (*parent)(), void (*child)(), void* dso) {
  if (syscall(SYS_gettid) != getpid()) {
    ++slow_calls;
    usleep(500000);
  }
  return reinterpret_cast<decltype(&__register_atfork)>(dlsym(RTLD_NEXT, "__register_atfork"))(
      before, parent, child, dso);
}
"""

WHILE_OPENMP_STARTS = """
    import ctypes
    slow_calls = ctypes.c_int.in_dll(ctypes.CDLL(None), "slow_calls")
    ufuse.set_num_threads(1)
    good(softmax, LARGE)
    ufuse.set_num_threads(2)
    thread = threading.Thread(target=lambda: good(softmax, LARGE))
    thread.start()
    while thread.is_alive():
        time.sleep(0.1)
        in_child(lambda: good(softmax, LARGE))
    assert slow_calls.value > 0
"""


def run(folder, body, **variables):
    script = folder / "script.py"
    body = textwrap.indent(textwrap.dedent(body), "    ")
    script.write_text(f"{BEGIN}\nif __name__ == '__main__':\n{body}\n    print('done')\n")
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60 + 2 * rounds(5),
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


@pytest.mark.parametrize("name", CASES)
def test_fork(name, tmp_path):
    run(tmp_path, CASES[name])


@needs_compiler
def test_fork_while_openmp_starts(tmp_path):
    source, library = tmp_path / "slow.cpp", tmp_path / "slow.so"
    source.write_text(SLOW)
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    preloaded = f"{os.environ.get('LD_PRELOAD', '')} {library}".strip()
    run(tmp_path, WHILE_OPENMP_STARTS, LD_PRELOAD=preloaded, UFUSE_BACKEND="compiled")
