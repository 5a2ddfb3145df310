"""Are the bits the same for any number of threads, and can Python's own threads call at once?

Also: is Python's lock free while a loop runs, and do nested and recursive functions work there?
"""

import concurrent.futures
import functools
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import ufuse
from same import check, same

RNG = np.random.default_rng(0)
LARGE = RNG.normal(size=(3001, 301))
LONG = RNG.normal(size=700_001)
TABLE = RNG.normal(size=(20, 50_000))
SMALL = RNG.normal(size=(7, 5))


def kmeans(x):
    means = x[:3]
    return np.argmin(np.linalg.norm(x - means[:, None], axis=2), axis=0)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def z_score(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


def sums(x):
    y = x * 1.1
    return y.sum(), y.sum(axis=0), y.sum(axis=-1), y.T.sum(axis=0), y.prod(), (y > 0).sum()


def extremes(x):
    return x.max(), x.argmin(), np.argmax(x, axis=0), np.sqrt(np.abs(x)).min(axis=-1)


def chain(x):
    return np.log(np.abs(np.tanh(np.where(x > 0, np.exp(-x), x))) + 1.5) ** 2


def norms(x):
    return np.linalg.norm(x, axis=0), np.linalg.norm(x, axis=-1), x.var(), x.std(axis=-1)


def in_place(x):
    x += 1
    x[1:] = x[:-1] * 2
    x[...] = np.sqrt(np.abs(x))
    return x


def single_precision(x):
    y = x.astype(np.float32)
    return y.sum(), (y * y).sum(axis=0), y.mean(), np.exp(y).sum(axis=-1)


def gather(x):
    return np.sort(x[x > 0])[::7] + x.mean()


FUNCTIONS = [softmax, z_score, sums, extremes, chain, norms, in_place, single_precision, gather]
ARRAYS = {
    "rows": LARGE,
    "columns": LARGE.T,
    "long": LONG,
    "table": TABLE,
    "strided": LARGE[::2, ::3],
}


@pytest.fixture
def threads():
    """Sets the number of threads; afterwards it is what it was."""
    before = ufuse.get_num_threads()
    yield ufuse.set_num_threads
    ufuse.set_num_threads(before)


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("function", [kmeans, *FUNCTIONS], ids=lambda f: f.__name__)
def test_equal_bits_for_any_number_of_threads(function, name, threads):
    x = ARRAYS[name]
    if function is kmeans:
        x = x[:2000, None] if x.ndim == 1 else x[:2000, :6]
    jitted = ufuse.jit(function)
    with np.errstate(all="ignore"):
        expected = function(x.copy())
        for n in (1, 2, 3, 1):
            threads(n)
            same(jitted(x.copy()), expected)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_warnings_of_any_part_of_a_loop(share, threads):
    """Each thread has the processor's flags of its own."""
    x, table = np.abs(LONG) + 1, np.abs(TABLE) + 1
    x[int(share * (x.size - 1))] = 0
    table[:, int(share * (table.shape[1] - 1))] = 0
    inverse = ufuse.jit(lambda x: 1 / x + x)
    total = ufuse.jit(lambda x: (1 / x).sum())
    columns = ufuse.jit(lambda x: (1 / x).sum(axis=0))
    for n in (2, 1, 3):
        threads(n)
        for jitted, argument in ((inverse, x), (total, x), (columns, table)):
            for _ in range(2):  # recorded and replayed
                check(jitted.__wrapped__, argument, _jitted=jitted)


def test_number_of_threads(threads):
    default = ufuse.get_num_threads()
    threads(3)
    assert ufuse.get_num_threads() == 3
    threads(0)
    assert ufuse.get_num_threads() >= 1
    threads(default)
    assert ufuse.get_num_threads() == default


SCRIPT = """
import hashlib
import sys
sys.path[:0] = sys.argv[1:]
import test_threads, ufuse
total = hashlib.sha256()
for function in test_threads.FUNCTIONS:
    for name in ("rows", "table"):
        result = ufuse.jit(function)(test_threads.ARRAYS[name].copy())
        for array in result if isinstance(result, tuple) else (result,):
            total.update(array.tobytes())
print(ufuse.get_num_threads(), total.hexdigest())
"""


def test_equal_bits_for_omp_num_threads():
    digests = set()
    for n in ("1", "2", "4"):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", SCRIPT, *sys.path],
            env={**os.environ, "OMP_NUM_THREADS": n},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        count, digest = done.stdout.split()
        assert count == n
        digests.add(digest)
    assert len(digests) == 1


# ---- threads of Python's


def at_once(*work):
    """Run callables in threads that start together; their results, or the first exception."""
    barrier = threading.Barrier(len(work))
    results = [None] * len(work)
    errors = []

    def body(k):
        try:
            barrier.wait(30)
            results[k] = work[k]()
        except BaseException as error:
            errors.append(error)

    started = [threading.Thread(target=body, args=(k,), daemon=True) for k in range(len(work))]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(60)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]
    return results


@pytest.mark.parametrize("shape", [(7, 5), (300, 200)], ids=["small", "large"])
def test_one_function_in_four_threads(shape):
    jitted = ufuse.jit(softmax)
    inputs = [RNG.normal(size=shape) for _ in range(4)]

    def work(x):
        return lambda: [jitted(x * k) for k in range(1, 8)]

    for x, results in zip(inputs, at_once(*map(work, inputs)), strict=True):
        for k, result in enumerate(results, 1):
            same(result, softmax(x * k))


def test_different_functions_in_four_threads():
    x = RNG.normal(size=(60, 50))
    expected = [f(x.copy()) for f in FUNCTIONS]

    def work(first):
        def body():
            order = FUNCTIONS[first:] + FUNCTIONS[:first]
            return {f: ufuse.jit(f)(x.copy()) for f in order}

        return body

    for results in at_once(*map(work, range(4))):
        for function, answer in zip(FUNCTIONS, expected, strict=True):
            same(results[function], answer)


def test_first_call_of_a_new_function_in_four_threads():
    for constant in (1.25, 2.5, 3.75):
        jitted = ufuse.jit(lambda x, c=constant: np.cbrt(x * x + c) - np.arctan(x * c))
        expected = jitted.__wrapped__(SMALL)
        for result in at_once(*[lambda j=jitted: j(SMALL)] * 4):
            same(result, expected)


def test_threads_write_into_parts_of_one_array():
    x = np.ones((4, 50_000))

    @ufuse.jit
    def scale(row, k):
        row *= k
        row[1:] += row[:-1] * 0.5

    expected = x.copy()
    for k in range(4):
        scale.__wrapped__(expected[k], k)
    at_once(*[lambda k=k: scale(x[k], k) for k in range(4)])
    same(x, expected)


def test_exceptions_and_warnings_stay_in_their_threads():
    @ufuse.jit
    def fails(x, k):
        x += k
        if k % 2:
            raise KeyError(k)
        with np.errstate(divide="ignore"):
            return np.log(x * 0)

    def work(k):
        def body():
            for _ in range(20):
                x = SMALL.copy()
                if k % 2:
                    with pytest.raises(KeyError, match=str(k)):
                        fails(x, k)
                else:
                    same(fails(x, k), np.full_like(x, -np.inf))
                same(x, SMALL + k)
            return True

        return body

    assert at_once(*map(work, range(4))) == [True] * 4


def test_error_state_of_one_thread():
    jitted = ufuse.jit(lambda x: np.log(x - x) * 2)

    def strict():
        with np.errstate(divide="raise"):
            for _ in range(20):
                with pytest.raises(FloatingPointError):
                    jitted(np.ones(4))
        return 1

    def lenient():
        with np.errstate(divide="ignore"):
            for _ in range(20):
                same(jitted(np.ones(4)), np.full(4, -np.inf))
        return 1

    assert at_once(strict, lenient, strict, lenient) == [1] * 4


def test_executor():
    jitted = ufuse.jit(z_score)
    inputs = [RNG.normal(size=(50 + k, 20)) for k in range(24)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for x, result in zip(inputs, pool.map(jitted, inputs), strict=True):
            same(result, z_score(x))


def test_executor_inside_a_function():
    def function(x):
        y = x * 2
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            parts = list(pool.map(np.sum, [y[:3], y[3:]]))
        return parts[0] + parts[1]

    same(ufuse.jit(function)(SMALL), function(SMALL))


def test_threads_that_end_leave_nothing_behind():
    jitted = ufuse.jit(chain)
    for _ in range(30):
        at_once(lambda: jitted(SMALL))
    same(jitted(SMALL), chain(SMALL))


def long_chain(x):
    for _ in range(30):
        x = np.sin(x) + 0.5
    return x


def test_pythons_lock_is_free_while_a_loop_runs():
    jitted = ufuse.jit(long_chain)
    x = np.linspace(0, 1, 400_000)
    jitted(x)  # compiles
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    start = time.perf_counter()
    for _ in range(3):
        jitted(x)
    took = time.perf_counter() - start
    stop.set()
    thread.join(10)
    inside = [t for t in ticks if start < t < start + took]
    longest = max(b - a for a, b in zip([start, *inside], [*inside, start + took], strict=True))
    assert longest < took / 4, f"no progress for {longest:.3f} s of {took:.3f} s"


# ---- nests


def test_recursion():
    @ufuse.jit
    def halves(x):
        if len(x) < 4:
            return x.sum()
        middle = len(x) // 2
        return halves(x[:middle]) + halves(x[middle:]) * 2

    same(halves(LONG[:100]), np.float64(plain_halves(LONG[:100])))


def plain_halves(x):
    if len(x) < 4:
        return x.sum()
    middle = len(x) // 2
    return plain_halves(x[:middle]) + plain_halves(x[middle:]) * 2


def test_deep_recursion_is_pythons_error():
    @ufuse.jit
    def endless(x):
        return endless(x + 1) + 1

    with pytest.raises(RecursionError):
        endless(SMALL)
    same(ufuse.jit(softmax)(SMALL), softmax(SMALL))


@ufuse.jit
def deep(x, n):
    return x if n == 0 else deep(x, n - 1) + 1


def test_recursion_without_pythons_limit():
    """Python would go on until the stack ends, and the process with it."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10**7)
    try:
        same(deep(SMALL, 400), functools.reduce(lambda x, _: x + 1, range(400), SMALL))
        with pytest.raises(RecursionError):
            deep(SMALL, 10**6)
    finally:
        sys.setrecursionlimit(limit)
    same(deep(SMALL, 3), SMALL + 1 + 1 + 1)


@ufuse.jit
def middle(x, write):
    y = inner(x * 2)
    if write:
        x += y
    return y - 1


@ufuse.jit
def inner(x):
    return np.exp(x).sum(axis=0)


def test_nested():
    def outer(x, middle, inner):
        first = middle(x, True)
        second = middle(x[1:], False) + inner(x)
        x -= 1
        return first, second, inner(x[:, ::-1])

    theirs, ours = SMALL.copy(), SMALL.copy()
    expected = outer(theirs, lambda x, w: plain_middle(x, w), inner.__wrapped__)
    same(ufuse.jit(outer)(ours, middle, inner), expected)
    same(ours, theirs)
    global_result = ufuse.jit(lambda x: middle(x, False) + inner(x))(SMALL)
    same(global_result, plain_middle(SMALL, False) + inner.__wrapped__(SMALL))


def plain_middle(x, write):
    y = inner.__wrapped__(x * 2)
    if write:
        x += y
    return y - 1


def test_called_back_by_numpy():
    def function(x):
        return np.apply_along_axis(inner, 0, x[:, :, None] * 2), [f(x) for f in (inner, np.sin)]

    def plain(x):
        f = inner.__wrapped__
        return np.apply_along_axis(f, 0, x[:, :, None] * 2), [f(x), np.sin(x)]

    same(ufuse.jit(function)(SMALL), plain(SMALL))


def test_called_by_sorted_and_map():
    def function(x):
        return list(map(inner, [x, x * 2])), sorted([x[0], x[1]], key=lambda r: inner(r))

    def plain(x):
        f = inner.__wrapped__
        return [f(x), f(x * 2)], sorted([x[0], x[1]], key=lambda r: f(r))

    same(ufuse.jit(function)(SMALL), plain(SMALL))


def test_a_thread_started_inside():
    kept = []

    def function(x):
        y = x * 2
        thread = threading.Thread(target=lambda: kept.append(inner(np.ones((2, 2)))))
        thread.start()
        thread.join()
        return y + 1

    same(ufuse.jit(function)(SMALL), SMALL * 2 + 1)
    same(kept[0], np.exp(np.ones((2, 2))).sum(axis=0))


LEFT_BEHIND = """
import os
name = f"/dev/shm/__KMP_REGISTERED_LIB_{os.getpid()}_{os.getuid()}"
open(name, "w").close()  # one may be there
import numpy as np
import ufuse
ufuse.set_num_threads(2)
x = np.arange(2e6)
assert ufuse.jit(lambda x: np.sqrt(x) + x)(x).tobytes() == (np.sqrt(x) + x).tobytes()
"""


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no shared memory")
def test_what_a_killed_process_of_the_same_number_left_behind():
    subprocess.run([sys.executable, "-c", LEFT_BEHIND], check=True, timeout=100)


def test_environment_written_while_loops_are_built():
    """The builder's thread must not read what Python is writing; the sanitizers would see it."""

    def function(x, c):
        return np.sqrt(x * c + 1234.5) - c

    x = np.arange(100.0)
    native = ufuse.jit(function)
    native(x, 2.5)
    names = [f"UFUSE_TEST_{i}" for i in range(5000)]
    os.environ.update(dict.fromkeys(names, "1"))
    for name in names:
        del os.environ[name]
    assert native(x, 2.5).tobytes() == function(x, 2.5).tobytes()


RESTS = """
import sys
import time
import numpy as np
import ufuse
ufuse.set_num_threads(2)
x = np.arange(2e6)
if sys.argv[1] == "alone":
    f = ufuse.jit(lambda x: np.sqrt(x) + x, compile="wait")
else:
    f = ufuse.jit(lambda x: np.sqrt(x) + x + np.sort(x[:9])[0], compile="wait")
used = []
for _ in range(5):
    f(x)
    time.sleep(0.05 if sys.argv[1] == "alone" else 0.01)
    before = time.process_time()
    time.sleep(0.1)
    used.append(time.process_time() - before)
print(min(used))
"""


@pytest.mark.parametrize("case", ["alone", "beside others"])
def test_threads_rest_soon_after_a_loop(case):
    """Otherwise they would take the cores from others, from BLAS above all."""
    done = subprocess.run(
        [sys.executable, "-c", RESTS, case],
        env={name: text for name, text in os.environ.items() if name[:4] not in ("KMP_", "OMP_")},
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert float(done.stdout) < 0.02, "of 0.1 s of processor time that one of them would take"
