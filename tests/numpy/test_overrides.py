"""Are foreign arrays, dtypes and ufuncs asked, and kept, as NumPy does it?

Classes with ``__array_function__``, numbers whose dtype holds more than their kind, and ufuncs that
write to their inputs or raise from their loops. Then the ends of what is native: integers beyond 64
bits, arrays beyond the address space.
"""

from importlib import import_module

import numpy as np
import pytest
import ufuse
from same import check

BACKENDS = ["compiled"]

core = np._core if hasattr(np, "_core") else np.core
umath_tests = import_module(f"{core.__name__}._umath_tests")
X = np.arange(6.0).reshape(2, 3)


class Duck:
    """No array, but it answers NumPy's functions."""

    shape, ndim = (3,), 1

    def __array_function__(self, func, types, args, kwargs):
        return func.__name__, sorted(kind.__name__ for kind in types)


class Answering(np.ndarray):
    """A subclass that answers NumPy's functions itself."""

    def __array_function__(self, func, types, args, kwargs):
        return func.__name__, "answered"


class Plain(np.ndarray):
    """A subclass with NumPy's own protocol."""


CALLS = {
    "reduction": lambda x, d: np.sum(d),
    "twin": lambda x, d: np.linalg.norm(d),
    "native": lambda x, d: (np.expand_dims(d, 0), np.broadcast_to(d, (2, 3)), np.copy(d)),
    "c_function": lambda x, d: np.where(d, 1, 2),
    "in_list": lambda x, d: np.stack([x[0], d]),
    "in_nested_list": lambda x, d: np.block([[x[0], d]]),
    "with_lazy": lambda x, d: np.concatenate([x[0] * 2, d]),
    "native_with_lazy": lambda x, d: np.where(x > 1, x * 2, d),
    "by_keyword": lambda x, d: np.average(x[0], weights=d),
    "written": lambda x, d: (np.copyto(x, d), np.copyto(d, x)),
    "dtypes": lambda x, d: np.result_type(d, 1),
    "like": lambda x, d: np.zeros_like(d),
    "after_write": lambda x, d: (x.__setitem__(0, 7.0), np.isclose(x, d), x.sum()),
    "not_relevant": lambda x, d: np.sum(x, axis=d),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    "foreign",
    [Duck(), np.arange(3.0).view(Answering), np.arange(3.0).view(Plain)],
    ids=["duck", "answering", "plain"],
)
def test_array_function(name, foreign):
    # `same` copies arguments; a subclass is copied as one.
    check(CALLS[name], X, foreign)


@pytest.mark.parametrize("name", ["stack", "vstack", "hstack", "dstack", "column_stack"])
def test_stacks_refuse_iterators(name):
    stack = getattr(np, name)
    # NumPy 1 only warns, at a place that depends on who calls the function.
    check(lambda x: stack(row for row in x), X, _warnings=np.__version__ >= "2")
    check(lambda x: stack(list(x)), X)


def test_sum_of_a_generator():
    # What it says of that is told at a place that depends on who calls the function.
    check(lambda x: np.sum(row * 2 for row in x), X, _warnings=False)
    check(lambda x: np.sum(row * 2 for row in x) + x.sum(), X, _warnings=False)


def test_missing_arguments_are_named_as_numpy_names_them():
    for function in (np.asarray, np.full, np.copyto, np.expand_dims, np.broadcast_to, np.zeros):
        check(lambda x, f=function: f(), X)
        check(lambda x, f=function: f(x, nothing=1), X)


def annotated(dtype):
    return np.dtype(dtype, metadata={"unit": "m"})


DTYPES = [
    annotated("f8"),
    annotated("i4"),
    np.dtype((np.int32, [("low", "i2"), ("high", "i2")])),
    np.dtype("q"),
]
MADE = {
    "arithmetic": lambda x, d: (x + 1, np.add(x, x), -x),
    "views": lambda x, d: (x[1:], x.T, x.reshape(-1), x[0, 0]),
    "copies": lambda x, d: (x.copy(), np.copy(x), x.astype(d), np.array(x, d), np.array(x)),
    "conversion": lambda x, d: (np.asarray(x, d), np.asarray(x)),
    "filled": lambda x, d: (np.zeros(3, d), np.ones((2, 2), d), np.full(3, 2, d)),
    "filled_like": lambda x, d: (np.zeros_like(x), np.zeros_like(x, d), np.full_like(x, 3, d)),
    "reduction": lambda x, d: (np.sum(x, axis=0), np.max(x, axis=0), x.mean(axis=0)),
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes_keep_what_they_hold(name, dtype):
    f = MADE[name]
    for x in (np.ones((2, 3), dtype), np.ones((2, 3), np.dtype(dtype.type))):
        expected, got = f(x, dtype), ufuse.jit(f)(x, dtype)
        for want, result in zip(expected, got, strict=True):
            assert result.dtype == want.dtype
            assert result.dtype.num == want.dtype.num
            assert result.dtype.metadata == want.dtype.metadata
            assert result.dtype.fields == want.dtype.fields
            assert (result is x) == (want is x)
            assert result.tobytes() == want.tobytes()


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
@pytest.mark.parametrize("value", [True, 3, 3.5, 2j, 2**80, 2e300])
@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f4", "f8", "c8"])
def test_copyto_casts_numbers_as_numpy_does(dtype, value, casting):
    check(lambda x: np.copyto(x, value, casting), np.ones(3, dtype))


def test_a_ufunc_that_writes_to_its_inputs():
    inplace_add = import_module(f"{core.__name__}._operand_flag_tests").inplace_add
    check(lambda x: inplace_add(x[:-1, :-1], x[1:, 1:]), np.arange(16).reshape(4, 4))


@pytest.mark.skipif(
    not hasattr(umath_tests, "always_error"), reason="this NumPy has no ufunc that raises"
)
def test_a_ufunc_that_raises_from_its_loop():
    check(lambda x: umath_tests.always_error(x, x), X)
    check(lambda x: umath_tests.always_error(x, x[:1]) + 1, X)


@pytest.mark.parametrize("value", [2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1])
@pytest.mark.parametrize("dtype", ["i1", "u1", "i8", "u8", "f4", "f8", "c16"])
def test_integers_at_the_ends(dtype, value):
    x = np.ones(3, dtype)
    for operator in (np.add, np.multiply, np.maximum, np.true_divide, np.power):
        check(lambda x, v, f=operator: f(x, v), x, value)
        check(lambda x, v, f=operator: f(v, x[0]), x, value)
    check(lambda x, v: (x < v, v == x), x, value)
    check(lambda x, v: np.where(x > 0, x, v), x, value)
    check(lambda x, v: x.__setitem__(0, v), x, value)
    check(lambda x, v: np.full(3, v, x.dtype), x, value)


NO_INTEGERS = {
    "reshape": lambda x, b: x.reshape((b, -1)),
    "zeros": lambda x, b: np.zeros((b, 2)),
    "full": lambda x, b: np.full(b, 3),
    "axis": lambda x, b: x.sum(axis=b),
    "argmax": lambda x, b: np.argmax(x, b),
    "broadcast_to": lambda x, b: np.broadcast_to(x[0], (b, 3)),
    "squeeze": lambda x, b: x[:, None].squeeze(b),
}


@pytest.mark.parametrize("name", NO_INTEGERS)
def test_truth_values_are_no_integers(name):
    check(NO_INTEGERS[name], X, np.bool_(True))


NO_DTYPES = {
    "zeros": lambda x: np.zeros(3, x),
    "full": lambda x: np.full(3, 1, x),
    "zeros_like": lambda x: np.zeros_like(x, x),
    "asarray": lambda x: np.asarray(x, x),
    "astype": lambda x: x.astype(x),
    "sum": lambda x: np.sum(x, dtype=x),
    "mean": lambda x: x.mean(dtype=x),
    "ufunc": lambda x: np.add(x, x, dtype=x),
}


@pytest.mark.parametrize("name", NO_DTYPES)
def test_arrays_are_no_dtypes(name):
    check(NO_DTYPES[name], X)


TOO_BIG = {
    "zeros": lambda x: np.zeros([26244] * 5, np.int8),
    "zeros_of_float": lambda x: np.zeros((2**40, 2**20)),
    "with_empty_axis": lambda x: np.zeros((2**62, 2, 0)),
    "full": lambda x: np.full([26244] * 5, 3, np.int8),
    "broadcast_to": lambda x: np.broadcast_to(x, (2**40, 2**40)) + 1,
    "sum": lambda x: np.broadcast_to(x, (2**33, 1)) + np.broadcast_to(x, (2**33,)),
}


@pytest.mark.parametrize("name", TOO_BIG)
def test_arrays_beyond_the_address_space(name):
    check(TOO_BIG[name], np.ones(1))
    assert not ufuse._core.session_active()


@pytest.mark.skipif(np.__version__ < "2.3", reason="out=... came with NumPy 2.3")
def test_out_ellipsis_of_methods():
    check(lambda x: np.add.reduce(x, out=...), np.arange(3.0))
    check(lambda x: np.add.reduce(x[0], out=...), np.arange(3.0))
    check(lambda x: np.add(x[0], 2, out=...), np.arange(3.0))
    check(lambda x: np.divmod(x[0], 2, out=...), np.arange(3.0))
    check(lambda x: (np.add.accumulate(x, out=...), np.multiply.outer(x, x, out=...)), X[0])
