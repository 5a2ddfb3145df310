"""Is much of everything still right: 64 threads that call at once, and thousands of shapes?

The number of shapes is that of the environment variable UFUSE_TEST_FAULT_ROUNDS times 1,000.
"""

from place import needs_compiler, rounds

pytestmark = needs_compiler

THREADS = """
import threading
import numpy as np, ufuse

def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)

def steps(x, k):
    y = x * k
    y[1:] += x[:-1]
    return y, np.sqrt(np.abs(y)).sum(axis=0)

x = np.random.default_rng(0).normal(size=(70, 50))
large = np.random.default_rng(1).normal(size=(2000, 100))
native = [ufuse.jit(softmax), ufuse.jit(steps)]
barrier = threading.Barrier(64)
wrong = []

def same(a, b):
    return a.tobytes() == b.tobytes() and type(a) is type(b)

def call(k):
    own = ufuse.jit(lambda x: np.log(np.abs(x * k) + 1).sum(axis=k % 2))
    barrier.wait()
    try:
        for n in range(3):
            y = x[: 20 + k, n:]
            assert same(native[0](y), softmax(y))
            for a, b in zip(native[1](y, k + n), steps(y, k + n)):
                assert same(a, b)
            assert same(own(y), own.__wrapped__(y))
        assert same(native[0](large), softmax(large))
    except BaseException as error:
        wrong.append(repr(error))

threads = [threading.Thread(target=call, args=(k,)) for k in range(64)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong, wrong
"""


def test_64_threads_at_once(place):
    place.program(THREADS)


SHAPES = """
import gc, os
import numpy as np, ufuse

def function(x, y):
    z = x * 2 + y
    z[1:] -= x[:-1]
    return np.sqrt(np.abs(z)).sum(axis=0)

def memory():
    gc.collect()
    pages = int(open("/proc/self/statm").read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")

native = ufuse.jit(function)
space = np.random.default_rng(0).normal(size=(2, 400, 400))
count = {count}
for i in range(count):
    x, y = space[:, : 20 + i % 150, : 20 + i // 150]
    assert native(x, y).tobytes() == function(x, y).tobytes(), x.shape
    if i == count // 2:
        before = memory()
grown = memory() - before
# Some 10 KiB are kept for each of the last 4,096 shapes, and nothing of older ones.
assert grown < 16 << 20, f"{{grown}} bytes more for the second half"
"""


def test_thousands_of_shapes_in_flat_memory(place):
    place.variables["UFUSE_BACKEND"] = "deferred"
    place.program(SHAPES.format(count=1000 * rounds(2)))
