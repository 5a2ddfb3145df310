"""Are the things of NumPy that few programs use NumPy's own in traced code?

Each function is called three times: traced, perhaps replayed, and what the second call has left.
"""

import copy

import numpy as np
import pytest
from same import check

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
