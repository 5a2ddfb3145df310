"""Are NumPy's own calls (matmul, sort, solve) part of a recording, and right in each repeated call?

Each function is called with arguments of one signature whose values change, some of which make
NumPy warn or raise, and compared with the plain function each time, arguments included.
"""

import copy
import pickle
import threading

import numpy as np
import pytest
import ufuse
from same import check, copied, same
from texts import function_of

N = 6

CALLS = {
    "matmul": lambda A, v: (A + 1) @ v - (v * 2) @ A,
    "matmul of matrices": lambda A, v: (A @ A.T + 1, A[::2] @ A[:, ::-1]),
    "np.matmul": lambda A, v: np.matmul(A, v, dtype="f8") + np.matmul(A * 2, A)[0],
    "dot": lambda A, v: np.dot(v, v * 2) + A.dot(v).sum(),
    "inner": lambda A, v: np.inner(A, v) - np.vdot(v, v + 1),
    "einsum": lambda A, v: np.einsum("ij,j->i", A * 2, v) + np.einsum("ii", A),
    "tensordot": lambda A, v: np.tensordot(A, A * 2, axes=1) + 1,
    "argsort": lambda A, v: v[np.argsort(v * -1)] + (A * 2).argsort(axis=0)[1],
    "sort": lambda A, v: np.sort(A * A, axis=None)[::2] + np.sort(v)[0],
    "partition": lambda A, v: np.partition(v * 2, 2)[:3] + np.argpartition(v, 1)[0],
    "searchsorted": lambda A, v: np.searchsorted(np.sort(v), A[0] * 2) + 1,
    "lexsort": lambda A, v: A[0][np.lexsort((v > 0.8, v))] * 2,
    "repeat": lambda A, v: np.repeat(A * 2, 2, axis=0) + 1,
    "choose": lambda A, v: np.choose((v > 0.8).astype(int), [v, A[0]]) * 2,
    "interp": lambda A, v: np.interp(A * 3, [0.0, 1.0, 4.0], [2.0, -1.0, 5.0]) * 2,
    "round": lambda A, v: np.round(A * 7, 1) + v.round(2),
    "trace": lambda A, v: np.trace(A * 2) * v + A.trace(1),
    "convolve": lambda A, v: np.correlate(v * 2, A[1], "full") + 1,
    "solve": lambda A, v: np.linalg.solve(A + np.eye(N), v) * 2,
    "inv": lambda A, v: np.linalg.inv(A * 2) @ v,
    "det": lambda A, v: np.linalg.det(A) * v + np.linalg.matrix_rank(A),
    "eigvalsh": lambda A, v: np.linalg.eigvalsh(A @ A.T) + np.linalg.pinv(A)[0],
    "statistics": lambda A, v: np.median(A * 2, axis=0) + np.percentile(v, 30) + np.corrcoef(A)[0],
    "cov": lambda A, v: np.cov(A) @ np.diag(A) + np.linalg.svd(A)[1] * np.meshgrid(v, A[0])[1][1],
    "unique": lambda A, v: np.unique(np.round(A * 3)) + 1,
    "digitize": lambda A, v: np.digitize(v * 2, [0.5, 1.0, 2.5]) + np.unravel_index(7, A.shape)[1],
    "ufuncs": lambda A, v: np.subtract.outer(v * 2, v) + np.add.reduceat(v * 2, [0, 2, 4])[1],
    "arrays of numbers": lambda A, v: (
        np.array([[v[0], 2.0], [1, v.sum()]]) @ A[:2] + [[1.0], [2.0]]
    ),
    "joined": lambda A, v: np.concatenate([v, v.astype("f4")] * 5) * 2,
    "isclose": lambda A, v: (np.isclose(A @ v, v * 3, 0.3) | (v > 1), np.allclose(A, A * 1)),
    "count_nonzero": lambda A, v: v * np.count_nonzero(A > 0.5) + np.count_nonzero(A, axis=0),
    "nan_to_num": lambda A, v: np.nan_to_num(np.where(A > 0.5, np.nan, A * 2)) @ v,
    "norm": lambda A, v: A / np.linalg.norm(A) + np.linalg.norm(v * 2),
    "fft": lambda A, v: np.fft.ifft(np.fft.fft(v * 2) * 1j) + np.fft.rfft2(A)[0, 0],
    "in a loop": lambda A, v: [v := A @ v / 3 for _ in range(4)],
    "itself": lambda A, v: A @ v,
    "twice": lambda A, v: (w := A @ v, w, w[1:], w[2]),
}


def into_arguments(A, v):
    v *= 2
    A[0] = A @ v
    v[1:] = (A @ v)[:-1]
    return A.sum()


def into_what_it_made(A, v):
    w = A @ v
    first = w + 1
    w *= 2
    w[1] = v @ v
    return first, w, A @ w


def told(A, v):
    if (A @ v).max() > v @ v:
        return A @ A
    return np.sort(v) * 2


def goes_on(A, v):
    rest = v - A @ v
    for _ in range(4):
        step = rest @ rest / (rest @ (A @ rest))
        v = v + step * rest
        rest = rest - step * (A @ rest)
        if rest @ rest < 1e-3:
            break
    return v


def raises_late(A, v):
    v += 1
    A[1] = v * 2
    w = np.linalg.solve(A, v)
    v[:] = w
    return w @ w


def warns(A, v):
    v += 1
    w = (A * 1e150) @ (v * 1e150)
    A[:] = 7
    return w - 1


def as_many(A, v):
    return np.repeat(v * 2, (v > 0.9).astype(int)) + 1


def named_tuples(A, v):
    values, vectors = np.linalg.eigh(A + A.T)
    U, s, Vh = np.linalg.svd(A * 2, full_matrices=False)
    Q, R = np.linalg.qr(A)
    sign, log = np.linalg.slogdet(A)
    return values * 2, vectors @ v, (U * s) @ Vh, Q @ R + sign * log


FUNCTIONS = [into_arguments, into_what_it_made, told, goes_on, raises_late, warns, as_many]
CALLS |= {f.__name__: f for f in [*FUNCTIONS, named_tuples]}


def pairs():
    """Arguments in the order of the calls: equal kinds in a row, so that they meet a recording."""
    random = np.random.default_rng(5)
    A, v = random.random((N, N)), random.random(N) + 0.5
    yield from [(A, v)] * 3
    yield A - 0.5, -v
    yield A * 1e100, v * 1e100
    yield np.ones((N, N)), v  # singular
    yield np.where(A > 0.9, np.nan, A), v
    yield np.where(A > 0.9, np.inf, A), -v
    yield np.zeros((N, N)), np.zeros(N)
    yield A, v


@pytest.mark.parametrize("name", CALLS)
def test_values_that_change(name):
    native = ufuse.jit(CALLS[name])
    for pair in pairs():
        check(CALLS[name], *pair, _jitted=native)


# Before these versions results are views, or numbers of Python's.
SINCE = {"fft": "2.0.0", "count_nonzero": "2.4.0"}


@pytest.mark.parametrize("name", CALLS)
def test_python_runs_once(name):
    if np.lib.NumpyVersion(np.__version__) < SINCE.get(name, "1.0.0"):
        pytest.skip("this NumPy makes no new array")
    native = ufuse.jit(CALLS[name])
    A, v = next(pairs())
    native.warmup(A.copy(), v.copy())
    before = native._dispatcher.counts[1]
    for _ in range(4):
        native(A.copy(), v.copy())
    assert native._dispatcher.counts[1] <= before + 1


@pytest.mark.parametrize("dtype", ["f4", "F", "D", "i8", "i2", "?", "e", "g"])
def test_dtypes(dtype):
    def function(A, v):
        return A @ v, v @ v, np.dot(A, A) + 1, np.sort(v) * 2, np.trace(A)

    native = ufuse.jit(function)
    random = np.random.default_rng(5)
    for _ in range(4):
        A, v = (random.integers(0, 9, shape).astype(dtype) for shape in ((N, N), N))
        check(function, A, v, _jitted=native)


def test_layouts():
    def function(A, B):
        return A @ B, A[::-1] @ B.T, np.sort(A.T) * 2, A[:, 1] @ B[2]

    native = ufuse.jit(function)
    A, B = np.random.default_rng(5).random((2, N, N))
    for _ in range(3):
        for a in (A, A.T, A[::-1], np.repeat(A, 2, axis=1)[:, ::2]):
            check(function, a, B, _jitted=native)


def test_error_states():
    def function(A, v):
        with np.errstate(over="ignore"):
            quiet = (A * 1e150) @ (v * 1e155)
        return quiet, (A * 1e150) @ (v * 1e155)

    native = ufuse.jit(function)
    A, v = next(pairs())
    for scale in (1e-5, 1e-5, 1e-5, 1e5, 1e-5):
        check(function, A * scale, v, _jitted=native)
    for mode in ("ignore", "raise", "warn"):
        with np.errstate(all=mode):
            for scale in (1e-5, 1e-5, 1e-5, 1e5, 1e-5):
                check(function, A * scale, v, _jitted=native)


def test_numbers_and_options():
    def function(v, count, kind):
        return np.repeat(v * 2, count), np.argsort(v * 2, kind=kind), np.round(v, count)

    native = ufuse.jit(function)
    v = np.random.default_rng(5).random(N)
    for _ in range(2):
        for count, kind in ((2, "stable"), (3, "stable"), (2, "heapsort"), (0, None)):
            for _ in range(2):
                check(function, v, count, kind, _jitted=native)


def test_other_functions_of_the_same_name(monkeypatch):
    def function(v):
        return np.sort(v * 2) + np.linalg.inv(np.eye(2) * v[0])[0, 0]

    native = ufuse.jit(function)
    v = np.random.default_rng(5).random(N)
    for _ in range(3):
        check(function, v, _jitted=native)
    monkeypatch.setattr(np, "sort", lambda x: x[::-1])
    for _ in range(3):
        check(function, v, _jitted=native)


class Holder:
    pass


show = eval("lambda pair: [type(each).__name__ for each in pair]")  # has no source


@pytest.mark.parametrize(
    "use",
    [
        lambda pair: show(pair),
        lambda pair: (pair, pair[1] * 2),
        lambda pair: pickle.dumps(pair),
        lambda pair: (copy.deepcopy(pair), {"pair": pair}),
        lambda pair: [*pair, len(pair), pair == pair, isinstance(pair, tuple)],
    ],
)
def test_named_tuples_are_numpys(use):
    """They never show lazy arrays to others."""

    def function(A):
        held = Holder()
        held.pair = np.linalg.eigh(A + A.T)
        held.pair.eigenvalues[1:] *= 2
        return use(held.pair), show(held.pair), show({"pair": held.pair}["pair"])

    native = ufuse.jit(function)
    A = np.random.default_rng(5).random((2, 2))
    for _ in range(3):
        check(function, A, _jitted=native)


def test_lists_that_change():
    weights, nested = [1.0, 2.0], [[3.0, 4.0]]

    def function(v):
        return v * np.array(weights), v @ np.array(nested).T

    native = ufuse.jit(function)
    for number in range(5):
        weights[0] = nested[0][1] = number
        check(function, np.array([1.5, 2.5]), _jitted=native)


def test_threads():
    def function(A, v):
        for _ in range(5):
            v = np.sort(A @ v + 1)
        return v

    native = ufuse.jit(function)
    pairs = [(np.random.default_rng(k).random((40, 40)), np.arange(40.0) + k) for k in range(4)]
    right = [function(*pair) for pair in pairs]
    wrong = []

    def work(k):
        for _ in range(50):
            try:
                same(native(*copied(pairs[k])), right[k])
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


BINARY = sorted(
    name
    for name, ufunc in vars(np).items()
    if isinstance(ufunc, np.ufunc)
    and ufunc.nin == 2
    and ufunc.signature is None
    # NumPy 1 gives np.ldexp(300, x) another dtype than np.ldexp(2, x), which recordings do not know.
    and (name != "ldexp" or np.lib.NumpyVersion(np.__version__) >= "2.0.0")
)


@pytest.mark.parametrize("dtype", ["f8", "i8", "D", "e", "i1", "?"])
def test_numbers_beside_ufuncs(dtype):
    """Those without a native form are repeated, with the number of the call."""
    x = np.array([1, 0, 3]).astype(dtype)
    for name in BINARY:
        function = function_of(f"def f(x, a): return np.{name}(x, a), np.{name}(a, x)", {"np": np})
        native = ufuse.jit(function)
        for number in (2, 2, 3, 5, 2.5, 2.5, 3.5, 300, 1j, 2):
            check(function, x, number, _jitted=native)
