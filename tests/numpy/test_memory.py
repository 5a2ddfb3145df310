"""Is a large result, whose memory is used again when it dies, an array like NumPy's?"""

import gc
import pickle
import threading
import tracemalloc

import numpy as np
import pytest
import ufuse
from same import check, same
from ufuse import _core

N = 1 << 20  # float64: 8 MiB


@pytest.fixture
def doubled():
    return ufuse.jit(lambda x: x * 2)


def address(x):
    return x.__array_interface__["data"][0]


def test_it_owns_its_memory(doubled):
    x = np.arange(N, dtype=float)
    made, numpys = doubled(x), x * 2
    for name in ("owndata", "writeable", "aligned", "c_contiguous"):
        assert getattr(made.flags, name) == getattr(numpys.flags, name)
    assert made.base is None
    assert (pickle.loads(pickle.dumps(made)) == numpys).all()
    made.resize(2 * N, refcheck=False)
    assert (made[:N] == numpys).all()
    assert not made[N:].any()
    made.resize(10, refcheck=False)
    assert (made == numpys[:10]).all()


def test_memory_comes_back_when_nobody_holds_it(doubled):
    x = np.arange(N, dtype=float)
    first = doubled(x)
    view, place = first[5:], address(first)
    del first
    gc.collect()
    other = doubled(x + 1)
    assert address(other) != place
    assert (view == x[5:] * 2).all()
    del view
    assert {address(made) for made in [doubled(x), doubled(x)]} & {place}


def test_shapes_of_other_sizes(doubled):
    rng = np.random.default_rng(0)
    held = []
    for n in rng.integers(N // 2, 3 * N, size=40):
        x = rng.normal(size=n)
        held.append((x, doubled(x)))
        if len(held) > 3:
            held.pop(rng.integers(3))
        assert all((made == x * 2).all() for x, made in held)
    check(lambda x: (x.T + 1, x.sum(axis=0), x[::2] - 1), rng.normal(size=(1024, 1100)))


def test_other_threads_may_free_it(doubled):
    x = np.arange(N, dtype=float)
    wrong = []

    def work():
        for _ in range(20):
            made = [doubled(x), doubled(-x)]
            wrong.append(not ((made[0] + made[1]) == 0).all())
            left.append(made)
            if len(left) > 3:
                left.pop()

    left = []
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not any(wrong)


def test_tracemalloc_counts_it(doubled):
    x = np.arange(N, dtype=float)
    tracemalloc.start()
    made = doubled(x)
    held = tracemalloc.get_traced_memory()[0]
    del made
    left = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held - left >= x.nbytes


def test_numpys_own_results_are_not_touched(doubled):
    x = np.arange(N, dtype=float)
    doubled(x)
    multiarray = np._core.multiarray if hasattr(np, "_core") else np.core.multiarray
    assert multiarray.get_handler_name() == "default_allocator"
    assert multiarray.get_handler_name(x + 1) == "default_allocator"
    assert multiarray.get_handler_name(doubled(x)) == "ufuse"
    assert multiarray.get_handler_name(doubled(x[:10])) == "default_allocator"


@pytest.mark.parametrize("backend", ["compiled"], indirect=True)
@pytest.mark.parametrize("threads", [1, 3])
def test_results_larger_than_the_caches(threads):
    """They are streamed past these: from an odd offset, with a tail, from several loops."""

    def into(x, out):
        out[1:] = x[1:] * 3 - x[:-1]

    def kmeans(points, means):
        return np.argmin(np.linalg.norm(points - means[:, None], axis=2), axis=0)

    before = ufuse.get_num_threads()
    ufuse.set_num_threads(threads)
    try:
        x = np.random.default_rng(0).normal(size=8_400_013)
        check(lambda x: (x * 2 + 1, np.exp(x) - 3), x)
        check(lambda x: np.where(x > 0, x, 1j)[::-1], x[: 1 << 22])
        check(into, x, x * 0)
        check(lambda x: x.reshape(-1, 1000)[:, 1:] + x[:1].sum(), x[:8_400_000])
        check(lambda x: x[:, None] > [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], x)
        check(kmeans, x[:-1].reshape(-1, 2).repeat(2, axis=0), np.array([[0, 0], [1, 1]]))
    finally:
        ufuse.set_num_threads(before)


@pytest.mark.parametrize("backend", ["compiled"], indirect=True)
def test_another_size_compiles_nothing():
    """From few elements (up to 16 are part of the text) to results that are streamed."""

    def kmeans(points, means):
        return np.argmin(np.linalg.norm(points - means[:, None], axis=2), axis=0)

    cases = [(kmeans, (2,), (np.ones((3, 2)),)), (lambda x: np.hypot(x, 3) * 2, (), ())]
    for function, tail, rest in cases:
        native = ufuse.jit(function)
        native(np.zeros((100, *tail)), *rest)
        before = _core.jit_statistics()
        for size in (17, 5000, 8_400_013):
            x = np.random.default_rng(size).normal(size=(size, *tail))
            same(native(x, *rest), function(x, *rest))
        after = _core.jit_statistics()
        for kind in ("compiled", "disk_hits", "failed"):
            assert after[kind] == before[kind]
