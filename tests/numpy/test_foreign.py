"""Does code of other packages get real arrays, and leave them as it does in plain Python?

The packages decide what they do with an array: compiled code wants NumPy's own type, some functions
write into their arguments. Each call is made three times, the last ones perhaps by a recorded plan,
with the caller's own arrays and with arrays that are computed in the same function.
"""

import array
import ctypes
import warnings

import foreign
import numpy as np
import pytest
import ufuse
from same import check
from texts import function_of

BACKENDS = ["compiled"]

CASES = list(foreign.cases())
# What one and the same plain call does not always say, or says once in a process.
QUIET = {"_warnings": False}


@pytest.mark.parametrize(("text", "function"), CASES, ids=[text for text, _ in CASES])
def test_call(text, function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            check(function, *foreign.arguments(text), **QUIET)
        check(_on_computed(text, function), *foreign.arguments(text), **QUIET)


def _on_computed(text, function):
    names = foreign.NAMES
    computed = ", ".join(f"{name} + 0" for name in names.split(", "))
    space = dict(function.__globals__)
    del space["function"]
    return function_of(
        f"def computed({names}):\n    {names} = {computed}\n    return {text}\n", space
    )


class Vector:
    """Of the user's: its operators are traced, and meet what Python gives them."""

    def __init__(self, values):
        self.values = values

    def __add__(self, other):
        return Vector(self.values + np.tanh(other))

    def __getitem__(self, index):
        return self.values[index]

    def __setitem__(self, index, value):
        self.values[index] = value

    def __lt__(self, other):
        return self.values < other

    def __contains__(self, value):
        return bool((self.values == value).any())


def products(x, s):
    sparse = pytest.importorskip("scipy.sparse")
    made = []
    for kind in (sparse.coo_matrix, sparse.csr_matrix, sparse.bsr_matrix, sparse.dia_matrix):
        made += [kind(s) @ (x * 2), kind(s) @ s, kind(s) * (s + 1), (x * 2) @ kind(s)]
    changed = sparse.lil_matrix(s)
    changed[0, 1] = (x * 3)[1]
    changed[1] = x * 4
    return made, changed.toarray()


def columns(x, s):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0]})
    frame["b"] = x * 2
    frame.loc[1] = x[:2] + 1
    series = frame["b"] * (x + 1)
    series += x * 2
    series[0] = x.sum()
    picked = series[x > 0.5].to_numpy()
    return frame.to_numpy(), series.to_numpy(), (series < x * 3).to_numpy(), picked


def memory(x, s):
    numbers = array.array("d", [0.0, 1.0])
    numbers[0] = (x * 2).sum()
    native = (ctypes.c_double * 3)()
    native[0] = (x + 1)[0]
    flat = (x * 2).flat
    flat[x.astype(int)] = 7.0
    return list(numbers), (x * 2).sum() in numbers, list(native), flat[x.astype(int)]


def subclasses(x, s):
    matrix, masked = np.matrix(s), np.ma.array(x, mask=[False, True, False])
    matrix[0] = x * 2
    return matrix @ (x * 2), matrix * (matrix + x), masked * (x + 1), masked[x > 0.5].data


def users_own(x, s):
    vector = Vector(x * 1)
    other = vector + x * 2
    other[0] = x.sum()
    vector += x
    return other.values, vector.values, vector[x > 0.5], vector < x * 2, x[0] * 1 in vector


@pytest.mark.parametrize("function", [products, columns, memory, subclasses, users_own])
def test_operators(function):
    x = np.array([0.3, 0.6, 0.9])
    for _ in range(3):
        check(function, x, np.arange(9.0).reshape(3, 3), **QUIET)


def test_there_are_enough():
    assert len(CASES) > 250
    assert np.unique([text for text, _ in CASES]).size == len(CASES)


def test_ufuncs_of_scipy_are_part_of_the_loops():
    special = pytest.importorskip("scipy.special")
    for function in (lambda x: special.expit(x * 2) + 1, lambda x: special.gammaln(x) * 2):
        found = ufuse.jit(function).explain(np.ones(9))
        assert found.notes == ()
        assert found.mode == "replayed"
        assert len(found.groups) == 1


@pytest.mark.skipif(np.__version__ < "2", reason="NumPy 1 looks at the limits by itself")
def test_clip_is_part_of_the_loops_when_scipy_is_there():
    pytest.importorskip("scipy.special")
    found = ufuse.jit(lambda x: (x * 2).clip(0.2, 0.9) + 1).explain(np.ones(9))
    assert found.notes == ()
    assert len(found.groups) == 1


@ufuse.jit
def distance(x, target):
    return ((x - target) ** 2).sum() + np.abs(x).sum()


def nearest(target):
    optimize = pytest.importorskip("scipy.optimize")
    shifted = target * 2 + 1
    found = optimize.minimize(distance, np.zeros(3), args=(shifted,), method="Nelder-Mead")
    return found.x - shifted, found.nfev


def test_jitted_functions_that_other_packages_call_are_calls_of_their_own():
    search = ufuse.jit(nearest)
    target = np.arange(3.0)
    ours = [search(target) for _ in range(4)]
    assert distance._dispatcher.counts[1] > 0  # recorded for itself
    theirs = nearest(target)
    for found in ours:
        assert found[0].tobytes() == theirs[0].tobytes()
        assert found[1] == theirs[1]


ROOM = np.zeros(3)


@ufuse.jit
def counted(t):
    ROOM[0] += 1
    ROOM[1:] += t
    return float((ROOM * t).sum())


def integrated(x):
    integrate = pytest.importorskip("scipy.integrate")
    before = ROOM * 2
    ROOM[1] = x[0] * 3
    kept = x * ROOM
    value = integrate.fixed_quad(np.vectorize(counted), 0.0, 1.0, n=4)
    behind = ROOM + 1
    ROOM[2] -= x[1]
    return before, kept, value[0], behind


def test_jitted_functions_that_other_packages_call_write_what_the_caller_knows():
    told = []
    for function in (integrated, ufuse.jit(integrated)):
        ROOM[:] = 0
        told.append([function(np.array([1.5, 2.5, 3.5])) for _ in range(4)])
        told[-1].append(ROOM.copy())
    for theirs, ours in zip(*told, strict=True):
        for a, b in zip(theirs, ours, strict=True):
            assert type(a) is type(b)
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
