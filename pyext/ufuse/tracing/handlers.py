"""Which functions of NumPy have a native form or a stand-in of their own?

``table()`` maps NumPy's function or class to what call sites run in its place. A handler takes what
NumPy's function takes. When an argument has no native form it returns ``NotImplemented``: NumPy's
own call, without a frame of ours, answers and words the errors; so a handler never has to be
complete, only right.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import inspect
import math
import sys
import types
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from ufuse import _core

from . import callees, filters
from .tree import is_lazy

Handler = Callable[..., Any]

# C functions that take no arrays.
_PLAIN = ("normalize_axis_index", "_get_extobj_dict", "_make_extobj", "geterrobj", "seterrobj")

# Where NumPy keeps its Python sources.
_core_package: Any = import_module(_core.numpy_version.core_package)
numpy_methods: types.ModuleType = _core_package._methods
_umath: types.ModuleType = _core_package._multiarray_umath

_native: dict[str, Handler] = {}


def native(*names: str) -> Callable[[Handler], Handler]:
    """Register a handler for functions of NumPy; it gets the real function first."""

    def register(handler: Handler) -> Handler:
        _native.update(dict.fromkeys(names, _worded_by_numpy(handler)))
        return handler

    return register


class _Declined(Exception):
    """NumPy's own call answers: what is given has no native form."""


def _worded_by_numpy(handler: Handler) -> Handler:
    """A handler that leaves to NumPy what it declines, and missing or unknown arguments."""
    code = handler.__code__
    takes_any = code.co_argcount == code.co_posonlyargcount and code.co_kwonlyargcount == 0

    @functools.wraps(handler)
    def call(real: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return handler(real, *args, **kwargs)
        except _Declined:
            return NotImplemented
        except TypeError:
            if takes_any:
                raise
            try:
                inspect.signature(handler).bind(real, *args, **kwargs)
            except TypeError:
                return NotImplemented
            raise

    return call


# Conversions.


@native("asarray", "asanyarray")
def _asarray(
    real: Any, /, a: Any, dtype: Any = None, order: Any = None, *args: Any, **kwargs: Any
) -> Any:
    if not is_lazy(a) or args or kwargs or order not in (None, "K", "A"):
        return NotImplemented
    if dtype is not None:
        wanted = _dtype(dtype)
        if not _is_number(wanted) or _drops_imaginary(a, wanted):
            return NotImplemented
        if wanted != a.dtype:
            a = a.astype(wanted)
    return _as_array(a)


_NUMBERS = {bool, int, float, complex}
_DTYPES = [np.dtype(code) for code in "?bhilqBHILQefdgFDG"]
_CLASSES = _NUMBERS.union(dtype.type for dtype in _DTYPES)
_NAMES = {name for name, kind in np.sctypeDict.items() if type(name) is str and kind in _CLASSES}
_NAMES.update(text for dtype in _DTYPES for text in (dtype.char, dtype.str, dtype.str[1:]))


def _names_dtype(given: Any) -> bool:
    """Whether it is, or names, a dtype; of some other names and classes NumPy warns."""
    if type(given) is type:
        return given in _CLASSES
    return given in _NAMES if type(given) is str else isinstance(given, np.dtype)


def _dtype(given: Any) -> np.dtype[Any]:
    """A dtype argument."""
    if not _names_dtype(given):
        raise _Declined
    return np.dtype(given)


def _is_number(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is no more than its kind, size and byte order: results of ours have those."""
    plain = dtype.names is None and dtype.metadata is None and dtype.isnative
    return plain and dtype.char in "?bhilBHILfdFD"


def _drops_imaginary(a: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a conversion loses imaginary parts, of which NumPy warns at the caller's line."""
    return bool(a.dtype.kind == "c" and dtype.kind not in "cb")


def _as_array(a: Any) -> Any:
    """A NumPy scalar, lazy or not, as the 0-d array that NumPy's conversions make of it."""
    return _core.as_array(a) if is_lazy(a) else np.asarray(a)


@native("array")
def _array(real: Any, /, *args: Any, **kwargs: Any) -> Any:
    plain = len(args) in (1, 2) and not kwargs.keys() - {"dtype", "copy", "subok", "ndmin"}
    if not plain or not is_lazy(args[0]):
        return NotImplemented
    dtype = args[1] if len(args) == 2 else kwargs.get("dtype")
    copies, ndmin = kwargs.get("copy", True), kwargs.get("ndmin", 0)
    if dtype is not None:
        wanted = _dtype(dtype)
        if not _is_number(wanted) or _drops_imaginary(args[0], wanted):
            return NotImplemented
    is_same = dtype is None or _dtype(dtype) == args[0].dtype
    if type(ndmin) is not int or ndmin > 32 or (copies is not True and copies is not _IF_NEEDED):
        return NotImplemented
    a = _as_array(args[0])
    if not is_same:
        a = a.astype(dtype)
    elif copies is True:
        a = a.copy("K")
    return a if a.ndim >= ndmin else a[(None,) * (ndmin - a.ndim)]


# As an argument of np.array.
_IF_NEEDED = False if np.lib.NumpyVersion(np.__version__) < "2.0.0b1" else None


@native("ascontiguousarray", "asfortranarray")
def _contiguous(real: Any, /, *args: Any, **kwargs: Any) -> Any:
    if len(args) != 1 or kwargs or not is_lazy(args[0]) or args[0].ndim == 0:
        return NotImplemented
    flags = args[0].flags
    fortran = real.__name__ == "asfortranarray"
    if flags.f_contiguous if fortran else flags.c_contiguous:
        return args[0]
    return args[0].copy("F" if fortran else "C")


@native("copy")
def _copy(real: Any, /, a: Any, order: Any = "K", subok: bool = False) -> Any:
    if not is_lazy(a):
        return NotImplemented
    return _as_array(a).copy(order)


# Creation.


@native("arange")
def _arange(real: Any, /, *args: Any, **kwargs: Any) -> Any:
    if not 1 <= len(args) <= 3 or kwargs.keys() - {"dtype"}:
        return NotImplemented  # NumPy makes the array, which is traced from here on
    if float in map(type, args) or kwargs.get("dtype") is float:
        return _arange_of_floats(*args, **kwargs)
    # NumPy counts in floats, which know these integers.
    if not all(type(a) is int and abs(a) < 2**31 for a in args) or args[2:] == (0,):
        return NotImplemented
    dtype = _dtype(int if kwargs.get("dtype") is None else kwargs["dtype"])
    numbers = range(*args)
    first_two = (numbers.start, numbers.start + numbers.step)
    if dtype.kind not in "iu" or not _is_number(dtype):
        return NotImplemented
    if not all(np.iinfo(dtype).min <= number <= np.iinfo(dtype).max for number in first_two):
        return NotImplemented
    return _core.arange(numbers.start, numbers.step, len(numbers), dtype)


def _arange_of_floats(*args: Any, dtype: Any = float) -> Any:
    # NumPy adds multiples of the difference of the first two.
    start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    if not (dtype is None or dtype is float) or not _are_exact_floats(start, stop, step):
        return NotImplemented
    length = (stop - start) / step if abs(step) > _LEAST_STEP else 0
    if not 1 < length < 2**31:
        return NotImplemented
    places = _core.arange(0, 1, math.ceil(length), np.dtype(np.int64))
    start, second = float(start), float(start + step)
    if start == 0 and math.copysign(1, start) < 0:
        return NotImplemented  # the first one has no sign below
    made = places.astype(np.float64) * (second - start) + start
    return made if start + (second - start) == second else _core.where(places == 1, second, made)


def _are_exact_floats(*numbers: Any) -> bool:
    """Whether numbers of Python's are floats, or would be without rounding."""
    return all(type(number) in (int, float) and abs(number) < 2**53 for number in numbers)


_LEAST_STEP = 1e-290  # of whose multiples none is too small for a float, which may warn


@native("linspace")
def _linspace(real: Any, /, *args: Any, **kwargs: Any) -> Any:
    # Of two numbers, by the steps that NumPy's Python takes: its converter of arguments is in C.
    named = dict(zip(("start", "stop", "num"), args, strict=False)) | kwargs
    once = len(named) == len(args) + len(kwargs)
    ends = [named.pop(name, None) for name in ("start", "stop")]
    num, has_end = named.pop("num", 50), named.pop("endpoint", True)
    known = _are_exact_floats(*ends) and type(num) is int and 2 <= num < 2**31
    known = known and type(has_end) is bool
    if once and known and not named:
        start, stop = map(float, ends)
        step = (stop - start) / (num - has_end)
        if abs(step) > _LEAST_STEP:
            places = _core.arange(0, 1, num, np.dtype(np.int64))
            made = places.astype(np.float64) * step + start
            if has_end:
                made = _core.where(places == num - 1, stop, made)
            return made.reshape(-1)  # NumPy's is a view, too
    if not any(map(is_lazy, (*args, *kwargs.values()))):
        return NotImplemented
    from . import twin

    return twin.twin_of(getattr(real, "__wrapped__", real)).function(*args, **kwargs)


_FILLS = {"zeros": 0, "ones": 1, "empty": None}


@native("zeros", "ones", "empty")
def _filled(
    real: Any, /, shape: Any, dtype: Any = None, order: Any = "C", *args: Any, **kwargs: Any
) -> Any:
    chosen = _dtype(float if dtype is None else dtype)
    if args or kwargs or order != "C" or not _is_number(chosen):
        return NotImplemented
    return _core.full(shape, _FILLS[real.__name__], chosen)


@native("ndarray")
def _ndarray(real: Any, /, *args: Any, **kwargs: Any) -> Any:
    if len(args) in (1, 2) and not kwargs.keys() - {"dtype"} and len(args) + len(kwargs) <= 2:
        chosen = _dtype(args[1] if len(args) == 2 else kwargs.get("dtype", float))
        if _is_number(chosen) and isinstance(args[0], (int, tuple)):
            return _core.full(args[0], None, chosen)
    return _core.call_real(real, *args, **kwargs)


def _dtype_of(value: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = value.dtype if is_lazy(value) else np.asarray(value).dtype
    return dtype


def _casts_in_silence(value: Any, dtype: np.dtype[Any]) -> bool:
    # Warnings of casts name a line of NumPy's own function, which is traced where there may be any.
    return np.can_cast(_dtype_of(value), dtype)


@native("full")
def _full(
    real: Any, /, shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", **kwargs: Any
) -> Any:
    scalar = np.ndim(fill_value) == 0 if not is_lazy(fill_value) else fill_value.ndim == 0
    if kwargs or order != "C" or not scalar or not (dtype is None or _is_number(_dtype(dtype))):
        return NotImplemented
    if dtype is None:
        dtype = _dtype_of(fill_value)
    elif not _casts_in_silence(fill_value, _dtype(dtype)):
        return NotImplemented
    return _core.full(shape, fill_value, _dtype(dtype))


@native("zeros_like", "ones_like", "empty_like", "full_like")
def _filled_like(real: Any, /, a: Any, *args: Any, **kwargs: Any) -> Any:
    fill: Any = _FILLS.get(real.__name__.removesuffix("_like"))
    if real.__name__ == "full_like" and args:
        fill, args = args[0], args[1:]
    elif real.__name__ == "full_like":
        return NotImplemented
    plain = len(args) <= 1 and not kwargs.keys() - {"dtype"} and (not args or not kwargs)
    if not plain or not is_lazy(a) or not a.flags.c_contiguous:
        return NotImplemented
    if np.ndim(fill) if not is_lazy(fill) else fill.ndim:
        return NotImplemented
    dtype = args[0] if args else kwargs.get("dtype")
    dtype = _dtype(a.dtype if dtype is None else dtype)
    if real.__name__ == "full_like" and not _casts_in_silence(fill, dtype):
        return NotImplemented
    return _core.full(a.shape, fill, dtype)


@native("eye")
def _eye(
    real: Any, /, N: Any, M: Any = None, k: Any = 0, dtype: Any = float, order: Any = "C"
) -> Any:
    return _by_distance(N, M, k, dtype, lambda d: d == 0) if order == "C" else NotImplemented


@native("identity")
def _identity(real: Any, /, n: Any, dtype: Any = None) -> Any:
    return _by_distance(n, None, 0, float if dtype is None else dtype, lambda d: d == 0)


@native("tri")
def _tri(real: Any, /, N: Any, M: Any = None, k: Any = 0, dtype: Any = float) -> Any:
    return _by_distance(N, M, k, dtype, lambda d: d <= 0)


def _by_distance(rows: Any, columns: Any, k: Any, dtype: Any, is_one: Callable[[Any], Any]) -> Any:
    """An array of ones and zeros, by the places' distance from the k-th diagonal."""
    columns = rows if columns is None else columns
    if not all(type(n) is int and abs(n) < 2**31 for n in (rows, columns, k)) or dtype is None:
        return NotImplemented
    if min(rows, columns) < 0 or not _is_number(_dtype(dtype)):
        return NotImplemented
    integers = np.dtype(np.int64)
    across = _core.arange(-k, 1, columns, integers)
    return is_one(across - _core.arange(0, 1, rows, integers)[:, None]).astype(_dtype(dtype))


@native("diag")
def _diag(real: Any, /, v: Any, k: Any = 0) -> Any:
    if not is_lazy(v) or type(k) is not int or abs(k) >= 2**31 or not v.size:
        return NotImplemented
    if v.ndim == 2:
        return _diagonal(real, v, k)
    if v.ndim != 1 or not _is_number(v.dtype):
        return NotImplemented
    n = v.size + abs(k)
    made = _core.full((n, n), 0, v.dtype)
    first = k if k >= 0 else -k * n
    made.reshape(-1)[first : first + v.size * (n + 1) : n + 1] = v
    return made


@native("diagonal")
def _diagonal(real: Any, /, a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    if not is_lazy(a) or a.ndim != 2 or not a.flags.c_contiguous or type(offset) is not int:
        return NotImplemented
    rows, columns = a.shape
    length = min(rows, rows + offset, columns, columns - offset)
    axes = (axis1, axis2) if type(axis1) is type(axis2) is int else None
    if axes != (0, 1) or length < 2:
        return NotImplemented
    first = offset if offset >= 0 else -offset * columns
    picked = a.reshape(-1)[first : first + (length - 1) * (columns + 1) + 1 : columns + 1]
    return _core.broadcast_to(picked, (length,))  # a view that must not be written to


@native("copyto")
def _copyto(real: Any, /, dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> Any:
    if is_lazy(dst):
        return _core.copyto(dst, src, casting, where)
    return NotImplemented


# Views and choices.


# Of more arrays than these, NumPy's one call takes less time than their loops.
_MOST_PARTS = 8


@native("concatenate", "concat")
def _concatenate(
    real: Any,
    /,
    arrays: Any,
    axis: Any = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: Any = "same_kind",
) -> Any:
    plain = out is None and dtype is None and casting == "same_kind"
    if not plain or type(arrays) not in (list, tuple) or not 0 < len(arrays) <= _MOST_PARTS:
        return NotImplemented
    are_arrays = all(is_lazy(a) or type(a) is np.ndarray for a in arrays)
    if not are_arrays or not any(map(is_lazy, arrays)):
        return NotImplemented
    first, ndim = arrays[0], arrays[0].ndim
    if not _is_number(first.dtype) or type(axis) is not int or not -ndim <= axis < ndim:
        return NotImplemented
    axis %= ndim
    if not all(a.ndim == ndim and a.dtype == first.dtype and _goes_by_rows(a) for a in arrays):
        return NotImplemented
    shapes = [(*a.shape[:axis], *a.shape[axis + 1 :]) for a in arrays]
    if any(shape != shapes[0] for shape in shapes):
        return NotImplemented
    shape = list(first.shape)
    shape[axis] = sum(a.shape[axis] for a in arrays)
    made = _core.full(tuple(shape), None, first.dtype)
    place = 0
    for a in arrays:
        made[(*(slice(None),) * axis, slice(place, place + a.shape[axis]))] = a
        place += a.shape[axis]
    return made


def _goes_by_rows(a: Any) -> bool:
    """Whether NumPy would make a result like this array with its last axis in one run."""
    steps = [abs(s) for s, extent in zip(a.strides, a.shape, strict=True) if extent != 1]
    return 0 not in a.shape and steps == sorted(steps, reverse=True)


@native("where")
def _where(real: Any, /, *args: Any, **kwargs: Any) -> Any:
    if len(args) == 3 and not kwargs and any(map(is_lazy, args)):
        return _core.where(*args)
    if len(args) == 1 and not kwargs and is_lazy(args[0]):
        return _as_array(args[0]).nonzero()
    return NotImplemented


@native("argwhere")
def _argwhere(real: Any, /, a: Any) -> Any:
    return _core.argwhere(a) if is_lazy(a) and a.ndim > 0 else NotImplemented


@native("bincount")
def _bincount(real: Any, /, x: Any, weights: Any = None, minlength: Any = 0) -> Any:
    if not is_lazy(x) or not (weights is None or is_lazy(weights)):
        return NotImplemented
    return _core.bincount(x, weights, minlength)


@native("count_nonzero")
def _count_nonzero(real: Any, /, a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    if not is_lazy(a):
        return NotImplemented
    if axis is None and keepdims is False:
        # Before NumPy 2.4 it is a number of Python's, which C counts.
        return NotImplemented if _COUNTS_IN_PYTHON else (a if a.dtype == bool else a != 0).sum()
    from . import twin

    return twin.twin_of(getattr(real, "__wrapped__", real)).function(a, axis, keepdims=keepdims)


_COUNTS_IN_PYTHON = type(np.count_nonzero([1])) is int


@native("broadcast_to")
def _broadcast_to(real: Any, /, array: Any, shape: Any, subok: bool = False) -> Any:
    if isinstance(array, (np.number, np.bool_)) and _is_number(array.dtype):
        array = _core.full((), array, array.dtype)
    if is_lazy(array):
        return _core.broadcast_to(array, shape)
    return NotImplemented


@native("expand_dims")
def _expand_dims(real: Any, /, a: Any, axis: Any) -> Any:
    if is_lazy(a):
        return _core.expand_dims(a, axis)
    return NotImplemented


@native("result_type", "can_cast", "min_scalar_type", "promote_types", "common_type")
def _on_dtypes(real: Any, /, *args: Any, **kwargs: Any) -> Any:
    given = (*args, *kwargs.values())
    lazies = [a for a in given if is_lazy(a)]
    if all(a.ndim > 0 for a in lazies) and all(is_lazy(a) or _is_fixed(a) for a in given):
        # The same in each call that goes this way. NumPy's own call words errors.
        with contextlib.suppress(Exception):
            return real(*map(_stand_in, args), **{k: _stand_in(a) for k, a in kwargs.items()})
    return NotImplemented


_CASTINGS = {"no", "equiv", "safe", "same_kind", "unsafe"}


def _is_fixed(a: Any) -> bool:
    """Whether an argument says the same in each call, and is none of which NumPy warns."""
    is_casting = type(a) is str and a in _CASTINGS
    return type(a) in _NUMBERS or _names_dtype(a) or is_casting


def _stand_in(a: Any) -> Any:
    """Instead of a lazy array one of the same dtype and shape, without memory of its own."""
    return np.broadcast_to(np.empty((), a.dtype), a.shape) if is_lazy(a) else a


class ArrayConverter:
    """``_array_converter`` of NumPy 2: arrays for some functions' arguments, and back again."""

    def __new__(cls, *args: Any) -> Any:
        if not any(map(is_lazy, args)):
            return _umath._array_converter(*args)
        return super().__new__(cls)

    def __init__(self, *args: Any) -> None:
        self._given = args
        self._arrays = tuple(_as_array(a) if is_lazy(a) else np.asanyarray(a) for a in args)
        self.scalar_input = tuple(a.ndim == 0 and not isinstance(a, np.ndarray) if is_lazy(a)
                                  else not isinstance(a, (np.ndarray, list, tuple))
                                  for a in args)  # fmt: skip

    def __len__(self) -> int:
        return len(self._arrays)

    def __getitem__(self, item: Any) -> Any:
        return self._arrays[item]

    def __iter__(self) -> Any:
        return iter(self._arrays)

    def as_arrays(self, *, subok: bool = True, pyscalars: str = "convert_if_no_array") -> Any:
        weak = pyscalars == "preserve" or (
            pyscalars == "convert_if_no_array"
            and not all(type(g) in (int, float, complex) for g in self._given)
        )
        return tuple(
            given if weak and type(given) in (int, float, complex) else array
            for given, array in zip(self._given, self._arrays, strict=True)
        )

    def result_type(self, extra_dtype: Any = None, ensure_inexact: bool = False) -> Any:
        real = _umath._array_converter(
            *(_stand_in(array) if is_lazy(given) else given
              for given, array in zip(self._given, self._arrays, strict=True))
        )  # fmt: skip
        return real.result_type(extra_dtype=extra_dtype, ensure_inexact=ensure_inexact)

    def wrap(self, arr: Any, /, to_scalar: bool | None = None) -> Any:
        if to_scalar is None:
            to_scalar = all(self.scalar_input)
        return arr[()] if to_scalar and arr.ndim == 0 else arr


def _wrapfunc(obj: Any, method: str, *args: Any, **kwds: Any) -> Any:
    """NumPy's ``_wrapfunc``: a method of a real array cannot write to a lazy one."""
    real = _core_package.fromnumeric._wrapfunc
    if not is_lazy(obj) and is_lazy(kwds.get("out")):
        return _core.numpy_call(real, (obj, method, *args), kwds, "dtype", False)
    from . import twin

    return twin.twin_of(real).function(obj, method, *args, **kwds)


# Functions that count Python's frames, of which this package's own must not be counted.


def _warn(
    real: Any,
    /,
    message: Any,
    category: Any = None,
    stacklevel: Any = 1,
    source: Any = None,
    **others: Any,
) -> Any:
    if type(stacklevel) is not int:
        return NotImplemented
    level = _core.frames_to(max(stacklevel, 1))
    return _core.call_numpy(real, "flush", False, message, category, level, source, **others)


def _frame(real: Any, depth: Any = 0, /) -> Any:
    if type(depth) is not int:
        return NotImplemented
    return real(_core.frames_to(max(depth, 0) + 1) - 1)


FRAME_COUNTERS: dict[Any, Handler] = {warnings.warn: _warn, sys._getframe: _frame}


def _copied_deeply(real: Any, x: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Copy an object with the values that are pending for the arrays in it."""
    if is_lazy(x):
        return real(x, *args, **kwargs)
    return _core.call_numpy(real, "user_call", False, x, *args, **kwargs)


@functools.cache
def table() -> dict[Any, Any]:
    """NumPy's functions and classes with a stand-in of their own."""
    found: dict[Any, Any] = {warnings.catch_warnings: filters.CatchWarnings}
    setter: Any
    for setter in (warnings.simplefilter, warnings.filterwarnings, warnings.resetwarnings):
        found[setter] = callees.Handled(setter, functools.partial(filters.set_filters, setter))
    for setter in (np.seterr, np.seterrcall, np.setbufsize):
        found[setter] = callees.caller(setter, "flush", pure=False)
    for counter, handler in FRAME_COUNTERS.items():
        stand_in = functools.partial(_worded_by_numpy(handler), counter)
        found[counter] = callees.Handled(counter, stand_in)
    for copier in (copy.deepcopy, dataclasses.asdict, dataclasses.astuple):
        found[copier] = callees.Handled(copier, functools.partial(_copied_deeply, copier))
    for name in _PLAIN:
        function = getattr(_umath, name, None)
        if function is not None:
            found[function] = function
    found[_core_package.fromnumeric._wrapfunc] = _wrapfunc
    if hasattr(_umath, "_array_converter"):
        found[_umath._array_converter] = ArrayConverter
    for name, handler in _native.items():
        for place in (np, _umath):
            real = getattr(place, name, None)
            if real is None:
                continue
            found[real] = callees.Handled(real, functools.partial(handler, real))
            implementation = getattr(real, "__wrapped__", None)
            if implementation is not None:
                found[implementation] = callees.Handled(
                    implementation, functools.partial(handler, implementation)
                )
    return found
