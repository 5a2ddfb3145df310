"""Which functions have golden files, called with which arguments?

Each function shows something that the tracer, the shim or the code generator decides; its
docstring says what. The files hold on all machines, and for all versions of NumPy from 1.24 on,
unless a case names a later one: NumPy's own Python code changes, and so does its order of summation
along more than 8192 elements.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import special


class Case(NamedTuple):
    """A function, and what makes the arguments of its call."""

    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    numpy: str  # the oldest version for which its file holds
    reuses: bool  # it holds where NumPy's operators write over large temporaries


CASES: dict[str, Case] = {}


def case(arguments, numpy="1.24", reuses=False):
    """Decorate a function: it has a golden file, of its call with these arguments."""

    def add(function):
        CASES[function.__name__] = Case(function, arguments, numpy, reuses)
        return function

    return add


def numbers(*shape, dtype=float):
    """An array of the shape, with 0, 1, 2 ... in it."""
    return np.arange(np.prod(shape)).astype(dtype).reshape(shape)


@case(lambda: (numbers(1000, 2), np.array([[5, 5], [10, 10]])))
def kmeans(X, means):
    """One loop over the points; the means are read before it, and only the answer is stored."""
    return np.argmin(np.linalg.norm(X - means[:, None], axis=2), axis=0)


@case(lambda: (numbers(1000, 100),))
def softmax(x):
    """Row by row: a maximum, the exponentials in a row of scratch, their sum, the quotients."""
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@case(lambda: (numbers(600, 600),), reuses=True)
def stencil(u):
    """What is assigned to a part of an argument reads its elements: it is made beside them."""
    u[1:-1, 1:-1] = 0.2 * (u[1:-1, 1:-1] + u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])


@case(lambda: (numbers(30, 40),))
def add_in_place(x):
    """The result of a whole write goes straight into the argument's memory."""
    x += 1
    return x


@case(lambda: (numbers(20, 30),))
def view_of_view(x):
    """Views of views are an address and strides; no loop copies anything but the result."""
    y = x[2:, ::2]
    z = y[::-3, 1:].T
    return z[1:] - z[:-1]


@case(lambda: (numbers(100_000), numbers(100_000)), reuses=True)
def chain(x, y):
    """Many operations and calls of NumPy's inner loops in one loop; floats are parameters."""
    a = x * 2.0 + y
    b = np.exp(-(a * a))
    c = np.log(x * x + 1.0) - b
    d = np.tanh(c + a * 0.5)
    e = np.where(d > 0.25, d * a, b - c)
    f = (e + x) * (e - y) / (np.abs(e) + 1.0)
    return np.sqrt(f * f + b) + np.minimum(c, d)


@case(lambda: (numbers(1000), numbers(1000) > 500))
def masked_where(x, mask):
    """Both sides of a where are computed, for their warnings; masks combine bit by bit."""
    return np.where(mask & (x < 900), np.sqrt(x), -x)


@case(lambda: (numbers(1000),))
def assembled(x):
    """A new array of which parts are assigned."""
    y = np.zeros(2000)
    y[:1000] = x + 1
    y[1000:] = x[::-1] * 2
    return y


@case(lambda: (numbers(30, 40, dtype=np.int32),))
def integer_mean(x):
    """Integers are summed as float64; the count is a parameter."""
    return x.mean(axis=1)


# NumPy before 2.4 multiplies where this one squares.
@case(lambda: (numbers(20_000, 8),), numpy="2.4")
def zscore(x):
    """Statistics of columns, with ddof, in loops of their own before the loop that needs them."""
    return (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)


@case(lambda: (numbers(30, 40), numbers(40, 30)))
def reversed_and_transposed(x, y):
    """The result's memory has the order of its operands, and so has the loop."""
    return x[::-1].T + y[:, ::-1] * x.T


@case(lambda: (numbers(1000, dtype=np.float32),))
def single_precision(x):
    """Python's numbers have no dtype of their own: float32 stays float32; ** 2 is a square."""
    return (x * 2.5 + 1) ** 2 - x / 3


@case(lambda: (numbers(1000),))
def forced_if(x):
    """Python asks for a truth value: one request for it, one for what comes after."""
    y = x - 5
    if y.sum() > 0:
        y = y * 2
    return y + 1


@case(lambda: (numbers(1000),))
def error_function(x):
    """A ufunc of SciPy's is a call of its inner loop, block by block, between other operations."""
    return special.erf(x * 0.5) + 1


@case(lambda: (numbers(1000),))
def sorted_between(x):
    """A call of NumPy with no native form: its argument is computed before, the rest afterwards."""
    return np.sort(x * 2) + 1


@case(lambda: (numbers(500, 3), numbers(500, 3)))
def pairwise_distances(x, y):
    """A norm of three terms, written out, inside two loops; no array of three dimensions."""
    return np.sqrt(((x[:, None, :] - y[None, :, :]) ** 2).sum(-1))


@case(lambda: (numbers(100_000), 7.0))
def any_above(x, most):
    """A search along a run stops at the first element that is true."""
    return np.any(x > most)


@case(lambda: (numbers(100_000), np.float64(7.0), 3.0))
def counted_between(x, step, parts):
    """The compiler cannot know how bounds that are computed compare with what is read: no guard."""
    return np.sum((step / parts <= x) & (x < step * 2 / parts))


@case(lambda: (numbers(100_000), np.float64(7.0), 3.0))
def mask_and_count(x, step, parts):
    """The count reads the mask, although its bounds, numbers as well, come before."""
    low = step / parts
    mask = low <= x
    return low, mask, np.sum(mask)


@case(lambda: (numbers(100_000), 1.0))
def wrapped_around(x, length):
    """What a mask picks is computed for the whole array: there is no list of positions."""
    distance = x * 2
    distance[distance > length / 2] -= length
    return distance


@case(lambda: (numbers(2000, 500),))
def column_extremes(x):
    """Extremes along the first axis: accumulators beside the lanes, four rows at a time."""
    return x.min(axis=0), x.argmin(axis=0)


@case(lambda: (numbers(100_000),), numpy="2.3")
def sum_of_calls(x):
    """A call in a pairwise sum runs on a block at a time: the exponentials are never stored."""
    return np.exp(-x * x).sum()


@case(lambda: (numbers(400, 500, 3, dtype=np.uint8),))
def grey(image):
    """A mean over three channels is written out; the cast back drops the fraction."""
    return image.mean(axis=2).astype(np.uint8)


@case(lambda: (numbers(1000), np.arange(1000)[::-1].copy(), numbers(1000)))
def weighted(x, i, w):
    """Elements at positions are read where they are used, and each position is looked at there."""
    return (x[i] * w).sum()


@case(lambda: (numbers(1000),))
def running(x):
    """What is carried along an axis stands between what makes it and what uses it."""
    return np.cumsum(x * 0.5) - x


@case(lambda: (numbers(1000), numbers(1000) % 3 == 0))
def masked(x, m):
    """True elements are counted, then listed; then they are positions, which need no look."""
    return x[m] * 2


@case(lambda: (np.arange(1000) % 7, numbers(1000)))
def histogram(i, w):
    """A loop over what is added, in order, after one over the bins."""
    sums = np.zeros(7)
    np.add.at(sums, i, w)
    return sums
