"""Does a call with lazy arrays, and nothing else of the package, give what NumPy gives?

``traced(function, *args)`` runs a plain function through ``_core``; ``check`` compares that run with
NumPy's own: values, dtypes, strides, types, the arguments afterwards and the warnings.
"""

import copy
import types
import warnings

import numpy as np
from ufuse import _core


def traced(function, *args):
    """``function(*args)`` with lazy arguments; real results."""
    if isinstance(function, types.FunctionType):
        _core.mark_traced(function.__code__)
    _core.begin()
    try:
        result = function(*map(_core.wrap, args))
        many = isinstance(result, tuple)
        real = _core.finish(list(result) if many else [result], result)
    except BaseException:
        if _core.session_active():
            _core.abort()
        raise
    return tuple(real) if many else real[0]


def layout(value):
    """What must agree beside the elements."""
    if isinstance(value, np.ndarray):
        flags = value.flags
        steps = [s for s, n in zip(value.strides, value.shape, strict=True) if n > 1]
        return value.dtype, value.shape, steps if value.size else [], flags.writeable
    return type(value), getattr(value, "dtype", None)


def assert_same(got, expected):
    if isinstance(expected, (tuple, list)):
        assert type(got) is type(expected)
        assert len(got) == len(expected)
        for g, e in zip(got, expected, strict=True):
            assert_same(g, e)
        return
    assert layout(got) == layout(expected)
    if isinstance(expected, (np.ndarray, np.generic)):
        got, expected = np.asarray(got), np.asarray(expected)
        if expected.dtype.char in "gGO":  # whose bytes hold padding or pointers
            np.testing.assert_array_equal(got, expected)
            return
        if expected.dtype.kind in "fc":
            np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        equal = got.tobytes() == expected.tobytes()
        if not equal and expected.dtype.kind in "fc":  # payloads of NaN are the backends' business
            bits = np.where(np.isnan(expected), 0, expected)
            equal = np.where(np.isnan(got), 0, got).tobytes() == bits.tobytes()
        assert equal, f"\n{got!r}\n{expected!r}"
    else:
        assert got == expected


def run(function, args, how):
    """Result or exception, the arguments afterwards, and the warnings."""
    args = copy.deepcopy(args)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = how(function, *args)
        except Exception as error:
            result = (type(error), str(error))
    noted = [(str(w.message), w.category, w.lineno) for w in caught]
    return result, args, noted


def check(function, *args):
    expected, expected_args, expected_warnings = run(function, args, lambda f, *a: f(*a))
    got, got_args, got_warnings = run(function, args, traced)
    assert_same(got, expected)
    for g, e in zip(got_args, expected_args, strict=True):
        assert_same(g, e)
    assert sorted(map(str, got_warnings)) == sorted(map(str, expected_warnings))
