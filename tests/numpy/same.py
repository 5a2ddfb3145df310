"""Does a jitted function do exactly what the plain one does?

``check(f, *args)`` runs both on separate copies of the arguments and compares everything that a
caller can see: bits, dtype, shape, strides, Python type, warnings with their line, exceptions with
their text, the arguments afterwards, and which results share memory with which arguments.
"""

import copy
import functools
import warnings

import numpy as np
import ufuse

# One loop for each function, so that a second check of it meets a warm plan.
jitted = functools.lru_cache(maxsize=None)(ufuse.jit)


def twin_array(x, memo):
    """A copy of ``x`` with the same strides, alignment and offset in a buffer of its own."""
    if x.dtype.hasobject or type(x) is not np.ndarray:
        return copy.deepcopy(x)
    base = x
    while isinstance(base.base, np.ndarray):
        base = base.base
    low, high = _bounds(base)
    if (low, high) not in memo:
        raw = np.ctypeslib.as_array(_bytes_at(low), (high - low,)) if high > low else None
        shift = low % 64
        buffer = np.empty(high - low + 128, np.uint8)
        start = -buffer.ctypes.data % 64 + shift
        if raw is not None:
            buffer[start : start + high - low] = raw
        memo[low, high] = (buffer, start)
    buffer, start = memo[low, high]
    offset = start + x.__array_interface__["data"][0] - low
    made = np.ndarray(x.shape, x.dtype, buffer, offset if x.size else 0, x.strides)
    made.flags.writeable = x.flags.writeable
    return made


def _bounds(x):
    low = high = x.__array_interface__["data"][0]
    if x.size == 0:
        return low, low
    for size, stride in zip(x.shape, x.strides):
        if stride < 0:
            low += (size - 1) * stride
        else:
            high += (size - 1) * stride
    return low, high + x.itemsize


def _bytes_at(address):
    import ctypes

    return ctypes.cast(address, ctypes.POINTER(ctypes.c_uint8))


def copied(value, memo=None):
    """``value`` with every array in it copied; arrays that share memory share it again."""
    memo = {} if memo is None else memo
    if isinstance(value, np.ndarray):
        return twin_array(value, memo)
    if isinstance(value, tuple):
        items = [copied(item, memo) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if type(value) is list:
        return [copied(item, memo) for item in value]
    if type(value) is dict:
        return {name: copied(item, memo) for name, item in value.items()}
    return value


class Outcome:
    """What one run gave."""

    def __init__(self, function, args, kwargs):
        self.args, self.kwargs = args, kwargs
        self.error = self.result = None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                self.result = function(*args, **kwargs)
            except Exception as error:
                self.error = error
        self.warnings = [(w.category, str(w.message), w.filename, w.lineno) for w in caught]


def same(ours, theirs, where="result"):
    """Assert that two values are the same to the bit, but for which NaN it is."""
    assert type(ours) is type(theirs), f"{where}: {type(ours)} is not {type(theirs)}"
    if isinstance(theirs, (tuple, list, dict)) and hasattr(theirs, "__dict__"):
        same(vars(ours), vars(theirs), f"vars({where})")
    if isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype, f"{where}: dtype {ours.dtype} is not {theirs.dtype}"
        assert ours.shape == theirs.shape, f"{where}: shape {ours.shape} is not {theirs.shape}"
        assert _order(ours) == _order(theirs), (
            f"{where}: strides {ours.strides} are not {theirs.strides} (shape {ours.shape})"
        )
        assert ours.flags.writeable == theirs.flags.writeable, f"{where}: writeable differs"
        if theirs.dtype.hasobject:
            same(ours.tolist(), theirs.tolist(), where)
        elif _bits(ours) != _bits(theirs):
            _show_difference(ours, theirs, where)
    elif isinstance(theirs, np.generic):
        assert ours.dtype == theirs.dtype, where
        if not theirs.dtype.hasobject:
            assert _bits(ours) == _bits(theirs), f"{where}: {ours!r} is not {theirs!r}"
    elif isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs), f"{where}: length"
        for i, (a, b) in enumerate(zip(ours, theirs)):
            same(a, b, f"{where}[{i}]")
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs), f"{where}: keys"
        for name in theirs:
            same(ours[name], theirs[name], f"{where}[{name!r}]")
    elif isinstance(theirs, (float, complex)):
        assert _bits(np.array(ours)) == _bits(np.array(theirs)), f"{where}: {ours} {theirs}"
    elif isinstance(theirs, (int, str, bytes, bool, type(None), slice, np.dtype, type)):
        assert ours == theirs, f"{where}: {ours!r} is not {theirs!r}"


def _bits(x):
    """The bytes that carry the value: a long double has 10 of them, and 6 that may hold anything."""
    if x.dtype.kind in "fc":
        x = _one_nan(x)
    x = x.astype(x.dtype.newbyteorder("="), copy=False)
    if x.dtype.char in "gG" and x.dtype.itemsize in (16, 32):
        return np.ascontiguousarray(x).reshape(-1).view(np.uint8).reshape(-1, 16)[:, :10].tobytes()
    return x.tobytes()


def _one_nan(x):
    """``x`` with one NaN for all: which one survives where two meet is the C compiler's choice, also
    inside NumPy (ir/SEMANTICS.md)."""
    x = np.array(x)
    parts = [x] if x.dtype.kind == "f" else [x.real, x.imag]
    for part in parts:
        part[np.isnan(part)] = np.nan
    return x


def _order(x):
    """Strides where they mean something: not along axes of one element, not of empty arrays."""
    return x.size and [s for s, n in zip(x.strides, x.shape) if n > 1]


def _show_difference(ours, theirs, where):
    if ours.dtype.kind in "fc":
        ours, theirs = _one_nan(ours), _one_nan(theirs)
    a = np.ascontiguousarray(ours).reshape(-1).view(np.uint8).reshape(theirs.size, -1)
    b = np.ascontiguousarray(theirs).reshape(-1).view(np.uint8).reshape(theirs.size, -1)
    bad = np.flatnonzero((a != b).any(axis=1))
    first = bad[0]
    raise AssertionError(
        f"{where}: {len(bad)} of {theirs.size} elements ({theirs.dtype}) differ in bits, first "
        f"[{np.unravel_index(first, theirs.shape)}]: "
        f"{ours.flat[first]!r} is not {theirs.flat[first]!r}"
    )


def _all_bits(outcome, most=4096):
    """Results and arguments afterwards in full, unless they are large: what is wrong once may never
    be seen again."""
    lines = []
    for array in _arrays((outcome.result, outcome.args, outcome.kwargs)):
        numbers = array.tobytes().hex() if array.nbytes <= most else "..."
        lines.append(f"  {array.dtype} {array.shape} {array.strides}: {numbers}")
    return "\n".join([f"  {outcome.result!r}"[:most], *lines])


def _arrays(value):
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _arrays(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _arrays(item)


def sharing(outcome):
    """Which results share memory with, or are, which arguments and other results."""
    results = list(_arrays(outcome.result))
    given = list(_arrays((outcome.args, outcome.kwargs)))
    return [
        (i, j, r is o, np.may_share_memory(r, o))
        for i, r in enumerate(results)
        for j, o in enumerate(given + results[:i])
    ]


def check(function, *args, _jitted=None, _warnings=True, _text=True, **kwargs):
    """Run ``function`` plain and jitted on copies of the arguments and compare; gives the result."""
    theirs = Outcome(function, *copied((args, kwargs)))
    ours = Outcome(_jitted or jitted(function), *copied((args, kwargs)))
    if theirs.error is not None:
        if ours.error is None:
            raise AssertionError(f"no exception, but NumPy raises {theirs.error!r}")
        assert type(ours.error) is type(theirs.error), f"{ours.error!r} is not {theirs.error!r}"
        if _text:
            assert str(ours.error) == str(theirs.error)
    elif ours.error is not None:
        raise ours.error
    try:
        same(ours.result, theirs.result)
        same((ours.args, ours.kwargs), (theirs.args, theirs.kwargs), "arguments afterwards")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{_all_bits(ours)}\nare not\n{_all_bits(theirs)}") from None
    assert sharing(ours) == sharing(theirs), "results share memory with other arrays than in NumPy"
    if _warnings:
        assert ours.warnings == theirs.warnings, f"warnings {ours.warnings} not {theirs.warnings}"
    return theirs.result


def check_all(function, cases, **options):
    """Check ``function`` with each of many sets of arguments: in one call, whose loops are compiled
    together, but for those with which it raises. Compilers take most of the time of our tests."""

    def each(cases):
        return [function(*case) for case in cases]

    raising = [case for case in cases if Outcome(function, copied(case), {}).error is not None]
    for case in raising:
        check(function, *case, **options)
    together = [case for case in cases if not any(case is other for other in raising)]
    if together:
        check(each, together, **options)
