"""Are the things of NumPy that few programs use NumPy's own in traced code?

Each function is called three times: traced, perhaps replayed, and what the second call has left.
"""

import copy
import sys
import warnings

import numpy as np
import pytest
from same import check
from texts import function_of

NUMPY_2 = np.lib.NumpyVersion(np.__version__) >= "2.0.0"
X = np.arange(24.0).reshape(4, 6)


def three_times(function, *args):
    for _ in range(3):
        check(function, *args)


@pytest.mark.parametrize(
    "shape",
    [
        (2, 13, 419, 691, 823, 2977518503),  # a multiple of 2**64, and 10
        (-1, 2**62, 4),
        (2**32, 2**32),
        (2**32, 2**32, 0),
        (0, 2**62, 4),
    ],
)
@pytest.mark.parametrize("order", "CF")
def test_the_sizes_of_a_shape_that_overflow(shape, order):
    three_times(lambda x: np.reshape(x, shape, order), np.ones(20)[::2])


def test_copies_by_module_copy_keep_the_order_in_memory():
    three_times(lambda x: copy.copy(x.T), X)
    three_times(lambda x: copy.deepcopy([x.T, (x + 1)[::2].T]), X)
    three_times(lambda: copy.copy(np.zeros((2, 3), order="F")))


def records(x):
    buffer = (x + 0).astype(np.int8).reshape(-1)
    return np.recarray(1, formats="i4,f8,f8", names="a,x,y", buf=buffer).tolist()


def on_memory(x):
    y = x * 2
    head = np.ndarray((2, 3), buffer=y, strides=(8, 16))
    y[0, 0] = -1.0
    return head, y, head.base is y


@pytest.mark.parametrize(
    "function",
    [
        records,
        on_memory,
        lambda x: np.random.Generator(np.random.PCG64(np.arange(5))).random(3) + x[0, 0],
        lambda x: np.random.RandomState((x[0] + 1).astype(int)).randint(100, size=3),
        lambda x: np.poly1d(x[0] + 1)(x[1]),
        lambda x: np.matrix(x + 1) * np.matrix(x.T),
        lambda x: [place + (value,) for place, value in np.ndenumerate(x * 2)],
        lambda x: np.broadcast(x + 1, x[0]).shape,
        lambda x: [float(value) for value in np.nditer(x[::2] + 1)],
        lambda x: np.polynomial.Polynomial(x[0] * 2).roots(),
        lambda x: np.ma.MaskedArray(x + 1, mask=x > 3).sum(axis=0).tolist(),
        lambda x: np.linalg.svd(x + 1).S,
    ],
)
def test_classes_that_look_into_arrays(function):
    three_times(function, X)


def test_a_module_is_asked_for_a_name():
    three_times(lambda x: np.__getattribute__("sum")(x * 2), X)


# Calls that write to `y` or `i`, of which products are pending.
WRITES = """
np.dot(x, x, y)
x.dot(x, y)
np.concatenate((x[:2], x[:1]), 0, y)
x.take(i, 0, y)
i.choose(x, y[0])
x.cumsum(0, None, y)
x.cumprod(0, None, y)
x.trace(0, 0, 1, None, y[0, :1].reshape(()))
x.compress([True] * 3, 0, y)
x.round(0, y)
x.sum(0, None, y[0])
x.astype(">f8").astype(np.longdouble).min(0, y[0])
x.argmax(0, i)
np.ma.fix_invalid(y, copy=False)
np.asmatrix(y).fill(3)
np.asmatrix(y).__setitem__(0, 7.0)
np.frombuffer(y).__setitem__(1, 5.0)
scipy.ndimage.correlate1d(x, [2.0], output=y)
scipy.ndimage.uniform_filter(x, 3, y)
scipy.linalg.lu_factor(y, overwrite_a=True)
scipy.linalg.solve(y + np.eye(3), x[0], overwrite_b=True)
"""


@pytest.mark.parametrize("call", WRITES.split("\n")[1:-1])
def test_writes_past_pending_values(call):
    names = {"np": np}
    if call.startswith("scipy"):
        names["scipy"] = pytest.importorskip("scipy")
        pytest.importorskip("scipy.linalg")
        pytest.importorskip("scipy.ndimage")
    text = f"    z, w = y * 2, i * 2\n    result = {call}\n    return z, w, y, i, result\n"
    on_arguments = function_of(f"def function(x, y, i):\n{text}", dict(names))
    on_computed = function_of(f"def function(x, y, i):\n    y, i = y + 1, i + 0\n{text}", names)
    x = np.arange(1.0, 10.0).reshape(3, 3) ** 1.5
    for function in (on_arguments, on_computed):
        three_times(function, x, np.sqrt(x) - 2, np.array([2, 0, 1]))


def item_of_a_matrix(x):
    y = x + 1
    matrix = np.asmatrix(y)
    z = y * 2
    matrix[0, 0] = 7
    y[...] = x * 3
    return z, y, matrix[1, 1], list(matrix), -matrix


def matrix_in_place(x):
    y = x + 1
    matrix = np.asmatrix(y)
    z = y * 2
    matrix *= 2
    return z, y


def mask_of_others(x):
    mask = x > 100
    kept = mask.copy()
    masked = np.ma.array([1, 2, 3], mask=mask)
    masked[[0, 2]] = np.ma.masked
    other = np.ma.array([1, 2, 3], mask=mask)
    mask[...] = True
    return kept, mask, other[1] is np.ma.masked, masked.tolist()


def other_byte_order(x):
    y = x + 1
    other = y.view(">f8")
    z = y * 2
    other[0] = 7
    w = y * 2
    other += 1
    y[1] = x[0]
    y[...] = y * x
    return z, w, y, other[0], other.tolist()


def through_an_iterator(x):
    y = x + 1
    z = y * 2
    for element in np.nditer(y, op_flags=["readwrite"]):
        w = y * 2
        element[...] = 3
    return z, w, y


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (item_of_a_matrix, X),
        (matrix_in_place, X),
        (mask_of_others, X[0, :3]),
        (other_byte_order, X[0]),
        (through_an_iterator, X),
    ],
)
def test_other_ways_to_the_same_memory(function, x):
    three_times(function, x)


class Recorder(warnings.catch_warnings):
    """What is derived from ``catch_warnings``, as ``pytest.warns``."""

    def __init__(self):
        super().__init__(record=True)

    def __enter__(self):
        self.seen = super().__enter__()
        warnings.simplefilter("always")
        return self.seen


def recorded(x):
    with Recorder() as seen:
        y = x / 0
        z = y - y
    return y, z, len(seen)


def test_who_records_warnings_gets_them_in_time():
    three_times(recorded, X)


def called_by_others(x):
    y, n = x * 2, x.sum()
    seen = []

    def inner(t, y=y):
        return np.ndarray((1,), buffer=y)[0] * t

    def outer(t):
        nonlocal n
        seen.append(type(n))
        n = n + t
        y[0] += t
        return inner(t) + np.ndarray((1,), buffer=y)[0]

    found = np.vectorize(outer)(np.arange(3.0))
    return found, y, n, seen, [type(value) for value in (y, n)], inner(2.0), outer(1.0)


def test_functions_that_others_call_have_real_variables():
    three_times(called_by_others, X[0])


def as_a_program_calls_it(x, form):
    function = x.__array_function__
    if form == "keywords":
        return function(func=lambda y: y * 2, types=(np.ndarray,), args=(x,), kwargs={})
    if form == "arguments":
        return function(np.sum, (np.ndarray,), x, {})
    if form == "keyword arguments":
        return function(np.sum, (np.ndarray,), (x,), (2, 1))
    return function(np.sum, (np.ndarray,), (x,), {})


# NumPy 1 itself ends the process where the arguments are no tuple and no dict.
FORMS = ["keywords", "plain", *(["arguments", "keyword arguments"] if NUMPY_2 else [])]


@pytest.mark.parametrize("form", FORMS)
def test_array_function_called_by_its_name(form):
    three_times(as_a_program_calls_it, X, form)


def test_the_size_of_an_array_is_that_of_the_array():
    three_times(lambda x: (sys.getsizeof(x), sys.getsizeof(x * 2)), X)


NDARRAYS = {
    "dtype": lambda x: _filled(np.ndarray((2, 3), np.float32), x),
    "named dtype": lambda x: _filled(np.ndarray((2, 3), dtype=x.dtype), x),
    "buffer": lambda x: np.ndarray((2,), buffer=x, offset=8) + 1,
    "positional buffer": lambda x: np.ndarray((2, 2), float, x) * 2,
    "negative": lambda x: np.ndarray((2, -1), dtype=int),
    "no shape": lambda x: np.ndarray("a"),
    "no dtype": lambda x: np.ndarray((2, 3), "nope"),
    "nothing": lambda x: np.ndarray(),
    "too many axes": lambda x: np.ndarray((1,) * 70),
    "the class": lambda x: (isinstance(x, np.ndarray), np.ndarray is type(x), np.ndarray.sum(x)),
}


def _filled(y, x):
    y[1:] = x[:3]
    y[0] = x[-1]
    return y


@pytest.mark.parametrize("name", NDARRAYS)
def test_arrays_made_by_their_class(name):
    for _ in range(3):
        check(NDARRAYS[name], np.arange(6.0))
