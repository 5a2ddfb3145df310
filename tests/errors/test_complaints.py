"""Does NumPy's own complaint come as NumPy words it, after the writes that came before it?

Shapes, axes, indices, casts, read-only arrays: each case runs twice, plain and jitted.
"""

import operator

import numpy as np
import pytest
from outcomes import check, step
from same import same

X = np.random.default_rng(0).normal(size=(5, 6))
V = np.linspace(-1.0, 2.0, 7)
K = np.arange(-3, 9).reshape(3, 4)
B = V > 0
READ_ONLY = X.copy()
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + np.ones(99),
        lambda x: np.add(x, np.ones((2, 1, 4))),
        lambda x: np.where(x > 0, x, np.ones(5)),
        lambda x: x.sum(axis=2),
        lambda x: x.sum(axis=(0, 0)),
        lambda x: x.sum(axis=(0, -3)),
        lambda x: x.sum(axis="rows"),
        lambda x: x.sum(axis=1.5),
        lambda x: x.mean(axis=7),
        lambda x: x.std(axis=-3),
        lambda x: np.argmin(x, axis=3),
        lambda x: np.max(x[:0]),
        lambda x: np.argmax(x[:0]),
        lambda x: np.expand_dims(x, 5),
        lambda x: np.squeeze(x, axis=0),
        lambda x: np.transpose(x, (0, 0)),
        lambda x: x.swapaxes(0, 4),
        lambda x: np.moveaxis(x, 0, 7),
        lambda x: np.roll(x, 1, axis=5),
        lambda x: x[99],
        lambda x: x[-6],
        lambda x: x[0, 0, 0],
        lambda x: x[1.5],
        lambda x: x["name"],
        lambda x: x[None, ..., ...],
        lambda x: x[::0],
        lambda x: x[[0, 99]],
        lambda x: x[np.ones(3, bool)],
        lambda x: x.__setitem__(99, 1),
        lambda x: x.__setitem__((0, 0, 0), 1),
        lambda x: x.__setitem__(slice(1, 3), np.ones(7)),
        lambda x: x.__setitem__(0, "text"),
        lambda x: x.__setitem__(0, 1j),
        lambda x: x.__delitem__(0),
        lambda x: np.add(x, 1, out=np.empty(3)),
        lambda x: np.add(x, 1, out=np.empty(x.shape, int)),
        lambda x: np.add(x, 1, out=[1, 2]),
        lambda x: np.add(x, 1, out=(np.empty(x.shape), np.empty(x.shape))),
        lambda x: x.sum(axis=0, out=np.empty(99)),
        lambda x: x.mean(axis=0, out=np.empty(99)),
        lambda x: np.add(x, x, dtype=int),
        lambda x: np.add(x, x, casting="nothing"),
        lambda x: np.add(x),
        lambda x: np.add(x, x, x, x),
        lambda x: np.sin(x, unknown=1),
        lambda x: np.sqrt("text"),
        lambda x: x + "text",
        lambda x: x + None,
        lambda x: x - object(),
        lambda x: x & 1,
        lambda x: ~x,
        lambda x: x << 1,
        lambda x: x @ x,
        lambda x: x @ 3,
        lambda x: np.dot(x, x),
        lambda x: bool(x),
        lambda x: float(x),
        lambda x: int(x[0]),
        lambda x: [1, 2, 3][x[0, 0]],
        lambda x: range(x[0, 0]),
        lambda x: hash(x),
        lambda x: x(),
        lambda x: x.no_such_attribute,
        lambda x: np.no_such_function(x),
        lambda x: setattr(x, "shape", (7, 7)),
        lambda x: setattr(x, "no_such_attribute", 1),
        lambda x: len(x[0, 0]),
        lambda x: iter(x.sum()),
        lambda x: x.reshape(7, 7),
        lambda x: x.reshape(-1, -1),
        lambda x: x.reshape(4, -1),
        lambda x: x.astype("no such dtype"),
        lambda x: x.astype(int, casting="safe"),
        lambda x: x.item(99),
        lambda x: x.item(),
        lambda x: np.broadcast_to(x, (3, 3)),
        lambda x: np.broadcast_arrays(x, np.ones(5)),
        lambda x: np.concatenate([x, x[0]]),
        lambda x: np.concatenate([]),
        lambda x: np.stack([x, x[:2]]),
        lambda x: np.split(x, 3),
        lambda x: np.take(x, 99),
        lambda x: np.einsum("ij,jk", x, x),
        lambda x: np.average(x, weights=[1, 2]),
        lambda x: np.percentile(x, 200),
        lambda x: np.pad(x, 1, mode="no such mode"),
        lambda x: np.zeros(-1) + x,
        lambda x: np.arange(),
        lambda x: np.full((2, "a"), 1.0) + x,
        lambda x: np.linspace(0, 1, -5) + x,
        lambda x: np.linalg.norm(x, ord="bad"),
        lambda x: np.linalg.norm(x, ord=7),
        lambda x: np.linalg.norm(x, ord="fro", axis=0),
        lambda x: np.linalg.norm(x, axis=(0, 1, 1)),
        lambda x: np.linalg.norm(x, axis=3),
        lambda x: np.linalg.inv(x),
        lambda x: np.linalg.inv(x[:5, :5] * 0),
        lambda x: np.linalg.cholesky(-np.eye(3)),
        lambda x: np.linalg.solve(x, x),
        lambda x: np.add.reduce(x, axis=4),
        lambda x: np.subtract.reduce(x, axis=(0, 1)),
        lambda x: np.add.accumulate(x, axis=9),
        lambda x: np.add.at(x, 99, 1),
        lambda x: np.sum(),
        lambda x: np.cross(x, x),
        lambda x: np.gradient(x[:1]),
        lambda x: np.interp(x, [1, 2], [1, 2, 3]),
        lambda x: np.random.default_rng(0).normal(size=-1) + x,
        lambda x: unknown_name + x,  # noqa: F821
        lambda x: x.sum().no_such_attribute,
        lambda x: x.sum()[0],
        lambda x: operator.setitem(x[0, 0], 0, 1),
        lambda x: step(1) + step("a") + x,
    ],
)
def test_complaints(function):
    def written_before(x):
        x += 1
        step("before")
        y = function(x)
        x += 1
        step("after")
        return y

    trail = check(written_before, X)
    assert trail.error is not None, "a case that does not raise tests nothing"
    assert trail.steps[0] == "before"
    assert trail.steps[-1] != "after"


def integer_plus_float(k):
    k += 1
    k += 1.5
    k += 1


def integer_divided(k):
    k -= 1
    k /= 2


def integer_out(k):
    k *= 2
    np.add(k, 1.5, out=k)


def integer_gets_nan(k):
    k *= 2
    k[0] = np.nan


def integer_gets_complex(k):
    k *= 2
    k[0] = 1j


def negative_power(k):
    k *= 2
    return k**-1


def too_large_a_number(k):
    k += 1
    return k + 2**70


def too_large_for_int8(k):
    k += 1
    return k.astype(np.int8) + 300


def bool_minus(b):
    b[0] = True
    return b - b


def bool_negative(b):
    b[0] = True
    return -b


def bool_plus_in_place(b):
    b |= True
    b += 1


def unpack(v):
    v += 1
    a, b = v
    return a + b


@pytest.mark.parametrize(
    ("function", "array"),
    [
        (integer_plus_float, K),
        (integer_divided, K),
        (integer_out, K),
        (integer_gets_nan, K),
        (integer_gets_complex, K),
        (negative_power, K),
        (too_large_a_number, K.astype(np.int32)),
        (too_large_for_int8, K),
        (bool_minus, B),
        (bool_negative, B),
        (bool_plus_in_place, B),
        (unpack, V),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_casts_and_dtypes(function, array):
    check(function, array)


def test_a_casting_error_is_numpys():
    trail = check(integer_plus_float, K)
    assert type(trail.error).__name__ == "UFuncTypeError" or isinstance(trail.error, TypeError)
    same(trail.args[0], K + 1)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.__iadd__(1),
        lambda x: x.__setitem__(0, 1),
        lambda x: x.__setitem__((slice(1, None), 0), x[0, 0]),
        lambda x: x[1:].__imul__(2),
        lambda x: np.add(x, 1, out=x),
        lambda x: np.sum(x, axis=0, out=x[0]),
        lambda x: x.sort(),
        lambda x: x.fill(0),
        lambda x: x.put(0, 1),
        lambda x: np.copyto(x, 1),
        lambda x: x.__setitem__(x > 0, 0),
        lambda x: x.T.__iadd__(1),
        lambda x: x.reshape(-1).__iadd__(1),
    ],
)
def test_read_only(write):
    def function(x, y):
        y += x
        step()
        write(x)
        y += 1

    trail = check(function, READ_ONLY, X)
    assert isinstance(trail.error, ValueError)
    same(trail.args[1], X + X)


def test_write_into_a_broadcast_view():
    def function(x):
        y = np.broadcast_to(x, (3, *x.shape))
        step()
        y += 1

    check(function, X)
