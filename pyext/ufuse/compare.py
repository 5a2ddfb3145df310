"""What is the first difference between two values that should be NumPy's?

``difference`` looks at bits, dtype, shape and Python type, through tuples, lists, dicts and what
``copies`` copies. Used wherever ufuse and NumPy run side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import copies

_LONGEST_NAME = 400


class Mismatch(AssertionError):
    """ufuse and NumPy gave different answers; the message names the call and the difference."""


def difference(ours: Any, theirs: Any, where: str = "result", layout: bool = False) -> str | None:
    """A sentence about the first difference, or None when there is none.

    Parameters
    ----------
    ours, theirs : object
        The value to judge and NumPy's.
    where : str
        Name of the value in the sentence.
    layout : bool
        Whether arrays must also agree in their strides and in whether they can be written.

    Examples
    --------
    >>> difference(np.float64(0.0), np.float64(-0.0))
    'result: 0.0 is not -0.0'
    >>> difference([1, np.arange(3)], [1, np.arange(3)]) is None
    True
    """
    met: dict[tuple[int, int], Any] = {}  # with the values themselves: some are made here
    pairs = [(ours, theirs, where)]
    while pairs:
        ours, theirs, where = pairs.pop()
        if type(ours) is type(theirs) and not isinstance(theirs, (np.ndarray, np.generic)):
            if (id(ours), id(theirs)) in met:  # shared, or a container in itself
                continue
            met[id(ours), id(theirs)] = ours, theirs
        found = _own_difference(ours, theirs, where)
        if found is None and layout and isinstance(theirs, np.ndarray):
            found = _layout_difference(ours, theirs, where)
        if found is not None:
            return found
        pairs.extend(reversed(_inner_pairs(ours, theirs, where)))
    return None


def _inner_pairs(ours: Any, theirs: Any, where: str) -> list[tuple[Any, Any, str]]:
    """What two containers of the same form hold. The name of a deep place keeps its end only."""
    if isinstance(theirs, (tuple, list, dict)) and len(where) > _LONGEST_NAME:
        where = "..." + where[-_LONGEST_NAME // 2 :]
    if isinstance(theirs, (tuple, list)):
        pairs = zip(ours, theirs, strict=True)
        return [(a, b, f"{where}[{i}]") for i, (a, b) in enumerate(pairs)]
    if isinstance(theirs, dict):
        return [(ours[key], theirs[key], f"{where}[{key!r}]") for key in theirs]
    if isinstance(theirs, copies.GENERATORS):
        return [(copies.state_of(ours), copies.state_of(theirs), f"state of {where}")]
    if copies.is_copied_object(theirs):
        return [(vars(ours), vars(theirs), where)]
    return []


def _own_difference(ours: Any, theirs: Any, where: str) -> str | None:
    """The same for two values, whatever stands in them."""
    if type(ours) is not type(theirs):
        return f"{where}: type {_name(ours)} is not {_name(theirs)}"
    if isinstance(theirs, (np.ndarray, np.generic)):
        return _array_difference(ours, theirs, where)
    if isinstance(theirs, (tuple, list)) and len(ours) != len(theirs):
        return f"{where}: {len(ours)} items instead of {len(theirs)}"
    if isinstance(theirs, dict) and list(ours) != list(theirs):
        return f"{where}: keys {list(ours)} are not {list(theirs)}"
    if isinstance(theirs, (float, complex)):
        return _array_difference(np.array(ours), np.array(theirs), where)
    if isinstance(theirs, (int, str, bytes, np.dtype)) and ours != theirs:
        return f"{where}: {ours!r} is not {theirs!r}"
    return None


def _layout_difference(ours: Any, theirs: Any, where: str) -> str | None:
    if _order(ours) != _order(theirs):
        return f"{where}: strides {ours.strides} are not {theirs.strides}"
    if ours.flags.writeable != theirs.flags.writeable:
        return f"{where}: it can be written: {ours.flags.writeable}, not {theirs.flags.writeable}"
    return None


def _order(x: Any) -> list[int]:
    """Strides, but for axes of one element and empty arrays, whose strides mean nothing."""
    return [s for s, n in zip(x.strides, x.shape, strict=True) if n > 1] if x.size else []


def _name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _array_difference(ours: Any, theirs: Any, where: str) -> str | None:
    if ours.dtype != theirs.dtype:
        return f"{where}: dtype {ours.dtype} is not {theirs.dtype}"
    if ours.shape != theirs.shape:
        return f"{where}: shape {ours.shape} is not {theirs.shape}"
    if theirs.dtype.hasobject:
        return difference(ours.tolist(), theirs.tolist(), where)
    a, b = _value_bytes(ours), _value_bytes(theirs)
    if np.array_equal(a, b):
        return None
    if theirs.ndim == 0:
        return f"{where}: {ours[()]} is not {theirs[()]}"
    bad = np.flatnonzero((a != b).any(axis=1))
    index = tuple(int(i) for i in np.unravel_index(bad[0], theirs.shape))
    return (
        f"{where}: {len(bad)} of {theirs.size} elements differ in bits, first {index}: "
        f"{ours[index]!r} is not {theirs[index]!r}"
    )


def _value_bytes(x: Any) -> Any:
    """The bytes of each element that carry its value, a row each: ten of the sixteen of x86's long
    double. All NaN are taken for the same one: which of two NaN an operation gives is the choice of
    the C compiler, also inside NumPy.
    """
    if x.size == 0:
        return np.empty((0, x.itemsize), np.uint8)
    x = _with_one_nan(x)
    rows = np.frombuffer(x.tobytes(), np.uint8).reshape(x.size, x.itemsize)
    if x.dtype.char in "gG" and np.finfo(x.dtype).nmant == 63:
        rows = rows.reshape(x.size, -1, 16)[:, :, :10].reshape(x.size, -1)
    return rows


def _with_one_nan(x: Any) -> Any:
    if x.dtype.kind not in "fc" or not np.isnan(x).any():
        return x
    x = np.array(x)
    for part in (x.real, x.imag) if x.dtype.kind == "c" else (x,):
        part[np.isnan(part)] = np.nan
    return x
