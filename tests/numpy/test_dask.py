"""``ufuse.dask.map``: blocks have NumPy's bits, and axes that cannot be cut stay whole."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

da = pytest.importorskip("dask.array")
import dask  # noqa: E402
import ufuse  # noqa: E402
import ufuse.dask  # noqa: E402

# The blocks are computed by whatever backend there is; one of them shows it.
BACKENDS = ["compiled"]


@pytest.fixture(autouse=True)
def one_block_at_a_time():
    with dask.config.set(scheduler="synchronous"):
        yield


def arrays(shape=(60, 40), dtype="f8", seed=0):
    return (np.random.default_rng(seed).random(shape) * 9 - 3).astype(dtype)


def check(function, *given, chunks=None, cut=None, **keywords):
    """The results have the bits of the function of whole arrays, and these chunks."""
    chunks = chunks or [tuple(max(1, n // 4) for n in x.shape) for x in given]
    lazy = [da.from_array(x, chunks=c) for x, c in zip(given, chunks, strict=True)]
    before = [x.tobytes() for x in given]
    found = ufuse.dask.map(function, *lazy, **keywords)
    expected = function(*(x.copy() for x in given), **keywords)
    several = isinstance(expected, (tuple, list))
    assert not several or type(found) is type(expected)
    results = found if several else [found]
    for ours, theirs in zip(results, expected if several else [expected], strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        real = ours.compute()
        assert type(real) is np.ndarray
        assert (real.shape, real.dtype) == (theirs.shape, theirs.dtype)
        assert real.tobytes() == theirs.tobytes()
        if cut is not None:
            assert tuple(len(c) for c in ours.chunks) == cut
    assert [x.tobytes() for x in given] == before
    return found


def chain(x):
    return np.sqrt(np.abs(np.sin(x) * 2 + np.exp(-x * x))) - x


def standardized(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


def kmeans(X, means):
    return np.argmin(np.linalg.norm(X - means[:, None], axis=2), axis=0)


def test_elementwise():
    check(chain, arrays(), cut=(4, 4))
    check(chain, arrays(dtype="f4"), cut=(4, 4))
    check(lambda x, y: x * y.T + 1, arrays((12, 8)), arrays((8, 12)), cut=(4, 4))
    check(lambda x, y: np.where(x > y[:, None], x, y[:, None]), arrays(), arrays((60,)), cut=(4, 4))


def test_reductions():
    check(lambda x: x.sum(axis=1), arrays(), cut=(4,))
    check(lambda x: x.sum(axis=0), arrays(), cut=(4,))
    check(lambda x: (x * 2).max(axis=(0, 2)), arrays((8, 12, 6)), cut=(4,))
    check(standardized, arrays((300, 40)), cut=(1, 4))
    check(lambda x: np.cumsum(x, axis=0), arrays(), cut=(1, 4))
    check(lambda x: x.mean(axis=1, keepdims=True), arrays(), cut=(4, 1))


def test_kmeans():
    check(kmeans, arrays((200, 3)), arrays((5, 3)), chunks=[(50, 3), (2, 3)], cut=(4,))


def test_views():
    check(lambda x: x[:, ::-1] * 2, arrays(), cut=(4, 1))
    check(lambda x: x[:, 1:] - x[:, :-1], arrays(), cut=(4, 1))
    check(lambda x: x.T + 1, arrays(), cut=(4, 4))
    check(lambda x: (x + 1).reshape(-1, 8, 5), arrays(), cut=(4, 1, 1))


def test_several_results():
    def parts(x):
        mean = x.mean(axis=1)
        return mean, x - mean[:, None]

    found = check(parts, arrays())
    assert [len(result.chunks[0]) for result in found] == [4, 4]
    calls = dask.compute(*found)
    assert calls[0].tobytes() == arrays().mean(axis=1).tobytes()
    check(lambda x: [x + 1, x * 2], arrays())


def test_blocks_of_one():
    """NumPy adds along another axis where an array has one row or column."""
    x = arrays((9, 50), "f4") * 1000
    check(lambda x: x.sum(axis=0), x, chunks=[(9, 7)])
    check(lambda x: x.sum(axis=0), arrays((200, 9), "f4"), chunks=[(50, 4)])  # 4, 4 and 1
    check(lambda x: x.sum(axis=0), arrays((200, 9), "f4"), chunks=[(50, 1)])
    check(lambda x: x.sum(axis=1), arrays((9, 200), "f4"), chunks=[(4, 50)])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c16", "i4"])
def test_sums_of_any_shape(dtype):
    rng = np.random.default_rng(1)
    for _ in range(12):
        shape = tuple(int(n) for n in rng.integers(1, 30, 3))
        x = arrays(shape, dtype, seed=int(rng.integers(99)))
        axis = int(rng.integers(3))
        chunks = tuple(int(rng.integers(1, n + 1)) for n in shape)
        try:
            check(lambda x, axis: (x * 3).sum(axis=axis), x, chunks=[chunks], axis=axis)
        except ValueError as error:
            assert "cannot run block by block" in str(error)  # noqa: PT017


def test_the_argument_is_written_to():
    def doubled(x):
        x *= 2
        return x + 1

    check(doubled, arrays(), cut=(4, 4))


def test_lengths_count():
    with pytest.raises(ValueError, match="for fewer elements along axis 0"):
        ufuse.dask.map(lambda x: x * x.shape[0], da.from_array(arrays((60,)), chunks=10))
    check(lambda x: x * x.shape[0], arrays(), cut=(1, 4))
    check(lambda x: x * np.array([x.shape[1]]), arrays(), cut=(4, 1))
    check(lambda x: x + np.array([x.shape[0], 2.5])[1], arrays(), cut=(4, 4))
    check(lambda x: x + np.arange(x.shape[0])[:, None], arrays(), cut=(1, 4))


def test_both_axes_are_one():
    with pytest.raises(ValueError, match="add needs all elements along axis 0 of argument 1"):
        ufuse.dask.map(lambda x: x[:, None] + x, da.from_array(arrays((60,)), chunks=10))


def test_keywords_are_the_same_for_all_blocks():
    check(lambda x, w, n: x * w + n, arrays(), w=arrays((40,)), n=3, cut=(4, 1))


class Model:
    def __init__(self, weights):
        self.weights = weights

    @ufuse.jit
    def apply(self, x):
        return np.tanh(x * self.weights).sum(axis=1)


def test_methods():
    model, x = Model(2.5), arrays()
    found = ufuse.dask.map(model.apply, da.from_array(x, chunks=(15, 40)))
    assert found.compute().tobytes() == np.tanh(x * 2.5).sum(axis=1).tobytes()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x.sum(), "needs all elements"),
        (lambda x: x if x[0, 0] > 0 else -x, "line"),
        (lambda x: np.linalg.inv(x), "inv"),
        (lambda x: 3, "does not return an array"),
        (lambda x: {"a": x}, "does not return an array"),
        (lambda x: np.sort(x, axis=1), "sort"),
    ],
)
def test_what_cannot_be_cut(function, words):
    with pytest.raises(ValueError, match="cannot run block by block") as caught:
        ufuse.dask.map(function, da.from_array(arrays((40, 40)), chunks=10))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_wrong_arguments():
    x = da.from_array(arrays(), chunks=20)
    with pytest.raises(TypeError, match="not 'float'"):
        ufuse.dask.map(chain, 2.0)
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        ufuse.dask.map(chain, x[x[:, 0] > 0])
    with pytest.raises(TypeError, match="not 'MaskedArray'"):
        ufuse.dask.map(chain, da.ma.masked_less(x, 0))
    with pytest.raises(ValueError, match="shapes do not fit"):
        ufuse.dask.map(lambda x, y: x + y, x, da.from_array(arrays((7,)), chunks=3))
    with pytest.raises(TypeError, match="w: Dask arrays are cut"):
        ufuse.dask.map(lambda x, w: x * w, x, w=x)
    with pytest.raises(TypeError, match="needs a callable"):
        ufuse.dask.map(3, x)
    ufuse.dask.map(chain, x).compute()


def test_nothing_is_computed_before_it_is_asked_for():
    x = da.ones((10**7, 10**4), chunks=(10**6, 10**4))
    found = ufuse.dask.map(lambda x: np.sqrt(x).sum(axis=1), x)
    assert found.shape == (10**7,)
    assert found.chunks[0] == (10**6,) * 10


def test_threads():
    x = arrays((400, 50))
    found = ufuse.dask.map(chain, da.from_array(x, chunks=(20, 50)))
    assert found.compute(scheduler="threads").tobytes() == chain(x).tobytes()
    assert ufuse.get_num_threads() >= 1


def test_processes(tmp_path):
    """A cluster on this machine; its processes find each other's loops in the cache."""
    pytest.importorskip("distributed")
    program = """
        import numpy as np, dask.array as da, ufuse.dask
        from distributed import Client

        def chain(x):
            return np.sqrt(np.abs(np.sin(x) * 2 + 1)).sum(axis=1)

        if __name__ == "__main__":
            x = np.random.default_rng(0).random((400, 50))
            with Client(n_workers=2, threads_per_worker=2, dashboard_address=None) as client:
                found = ufuse.dask.map(chain, da.from_array(x, chunks=(50, 50))).compute()
            assert found.tobytes() == chain(x).tobytes()
            print("equal")
    """
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(program))
    ended = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.stdout == "equal\n", ended.stderr
