"""What can a program see? ``described(roots)`` lists it, so that two lists can be compared.

Each object that can be reached is a row: its path, and its type and value; of an array also its
dtype, shape, strides, flags and bytes, and where its memory lies in that of the arrays before it.
An object that stands at a second place is named there by its first. Rows of two runs that are equal
mean equal values, identities and sharing.
"""

import collections
import functools
import re
import types

import numpy as np
from ufuse.function import Function
from ufuse.tracing import tree

ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_PLAIN = frozenset([type(None), bool, int, float, complex, str, bytes, range, slice, type(...)])
_SEQUENCES = (tuple, list, collections.deque)
_METHODS = (types.MethodType, types.BuiltinMethodType)


class LazyArrayFound(AssertionError):
    """A lazy array of ufuse's can be reached after a call."""


class Description:
    """A walk over objects.

    Parameters
    ----------
    file : str
        The program's file: of its functions also the variables and attributes are looked at.
    """

    def __init__(self, file):
        self.file = file
        self.rows = []
        self._places = {}
        self._keep = []
        self._memory = []

    def add(self, path, value):
        """Note ``value`` and what can be reached from it."""
        waiting = collections.deque([(path, value)])
        note = self.rows.append
        while waiting:
            path, value = waiting.popleft()
            kind = type(value)
            if kind in _PLAIN:
                note((path, kind.__name__, repr(value)))
                continue
            if tree.is_lazy(value):
                raise LazyArrayFound(f"{path} is a lazy array")
            if kind is Function:
                value = value.__wrapped__
                kind = type(value)
            if _is_constant(value):
                note((path, kind.__name__, repr(value)))
                continue
            if id(value) in self._places:
                note((path, "is", self._places[id(value)]))
                continue
            self._places[id(value)] = path
            self._keep.append(value)
            told, inner = self._parts(path, value)
            note((path, kind.__module__, kind.__qualname__, *told))
            waiting.extend((path + place, each) for place, each in inner)

    def _parts(self, path, value):
        """What is told of a value itself, and what it holds."""
        if isinstance(value, np.ndarray):
            return self._array(path, value)
        if isinstance(value, np.generic):
            return (value.dtype.str, Bits(value)), []
        if isinstance(value, _SEQUENCES):
            inner = [(f"[{i}]", each) for i, each in enumerate(value)]
            return (len(value),), inner + _attributes(value)
        if isinstance(value, dict | types.MappingProxyType):
            keys = list(map(repr, value))
            inner = [(f"[{key!r}]", each) for key, each in value.items()]
            return (scrubbed(str(keys)),), inner + _attributes(value)
        if isinstance(value, types.FunctionType):
            return (value.__qualname__,), self._function(value)
        if isinstance(value, _METHODS):
            return (value.__name__,), [(".__self__", value.__self__)]
        if isinstance(value, functools.partial):
            inner = [(".func", value.func), (".args", value.args), (".keywords", value.keywords)]
            return (), inner
        if isinstance(value, functools._lru_cache_wrapper):
            return (str(value.cache_info()),), [(".__wrapped__", value.__wrapped__)]
        if isinstance(value, type):
            own = value.__module__.startswith("program_")
            return (), _of_class(value) if own else []
        if isinstance(value, BaseException):
            inner = [(".args", value.args), (".__cause__", value.__cause__)]
            return (), [*inner, (".__context__", value.__context__), *_attributes(value)]
        if isinstance(value, np.random.Generator):
            return (str(value.bit_generator.state),), []
        if isinstance(value, np.dtype):
            return (str(value),), []
        if isinstance(value, property):
            return (), [(".fget", value.fget), (".fset", value.fset)]
        if isinstance(value, staticmethod | classmethod):
            return (), [(".__func__", value.__func__)]
        if type(value).__module__.startswith("program_"):
            return (), _attributes(value)
        return (), []

    def _array(self, path, x):
        flags = x.flags
        low, high = _bounds(x, flags.c_contiguous or flags.f_contiguous)
        inside = None
        for first, last, place in self._memory:
            if low < last and first < high:
                inside = (place, low - first)
                break
        else:
            if low < high:
                self._memory.append((low, high, path))
        steps = x.strides if x.ndim == 1 and x.size > 1 else _steps(x)
        told = (x.dtype.str, x.shape, steps, flags.writeable, flags.owndata, inside)
        held = [] if x.base is None else [(".base", x.base)]
        if x.dtype.hasobject:
            return told, [(".tolist()", x.tolist()), *held]
        return (*told, Bits(x)), held

    def _function(self, f):
        if f.__code__.co_filename != self.file:
            return []
        inner = [(".__defaults__", f.__defaults__), (".__kwdefaults__", f.__kwdefaults__)]
        inner += [(f".{name}", value) for name, value in vars(f).items()]
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            try:
                inner.append((f".<{name}>", cell.cell_contents))
            except ValueError:
                continue
        return inner


# In NumPy 1 it stands elsewhere.
_byte_bounds = getattr(np.lib, "array_utils", np).byte_bounds


def scrubbed(text):
    """A text without addresses."""
    return ADDRESS.sub("0x", text)


def _bounds(x, is_contiguous):
    """The first address of an array's memory, and the one behind it."""
    low = x.__array_interface__["data"][0]
    if is_contiguous:
        return low, low + x.nbytes
    return _byte_bounds(x) if x.size else (low, low)


def _steps(x):
    """Strides where they mean something: not along axes of one element, not of empty arrays."""
    return tuple(s for s, n in zip(x.strides, x.shape, strict=True) if n > 1) if x.size else ()


class Bits:
    """The bytes of an array; which NaN one is, is the C compiler's choice, also inside NumPy."""

    __slots__ = ("bytes", "dtype")

    def __init__(self, x):
        self.bytes, self.dtype = x.tobytes(), x.dtype

    def __eq__(self, other):
        return self.bytes == other.bytes or self.with_one_nan() == other.with_one_nan()

    __hash__ = None

    def __repr__(self):
        return repr(np.frombuffer(self.bytes, self.dtype).tolist())

    def with_one_nan(self):
        x = np.frombuffer(bytearray(self.bytes), self.dtype)
        if x.dtype.kind in "fc":
            for part in [x] if x.dtype.kind == "f" else [x.real, x.imag]:
                part[np.isnan(part)] = np.nan
        return x.tobytes()


def _is_constant(value):
    """Whether a compiler may make two of it one: it holds no array."""
    return type(value) in _PLAIN or (type(value) is tuple and all(map(_is_constant, value)))


def _attributes(value):
    return [(f".{name}", each) for name, each in getattr(value, "__dict__", {}).items()]


def _of_class(kind):
    return [
        (f".{name}", each)
        for name, each in vars(kind).items()
        if not name.startswith("__") or isinstance(each, types.FunctionType | Function)
    ]


def described(file, **roots):
    """The rows of all that can be reached from some objects."""
    found = Description(file)
    for name, value in roots.items():
        found.add(name, value)
    return found.rows
