"""How are a call's arguments copied so that a second run meets the same arrays?

Same values, dtype, shape, strides and alignment, and arrays that share memory share it again. Used
by ``explain`` and by ``UFUSE_DEBUG=check``, which run a function beside the caller's own arrays.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np


def copied(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """``value`` with copies of the arrays in it, through tuples, lists and dicts.

    Parameters
    ----------
    value : object
        Anything; what is no array and no container is returned as it is.
    memo : dict, optional
        What has been copied already, by address of the memory.
    """
    memo = {} if memo is None else memo
    if isinstance(value, np.ndarray):
        return _copied_array(value, memo)
    if isinstance(value, tuple):
        items = [copied(item, memo) for item in value]
        if type(value) is tuple:
            return tuple(items)
        return tuple.__new__(type(value), items) if hasattr(value, "_fields") else value
    if type(value) is list:
        return [copied(item, memo) for item in value]
    if type(value) is dict:
        return {key: copied(item, memo) for key, item in value.items()}
    return value


def _copied_array(x: Any, memo: dict[int, Any]) -> Any:
    if type(x) is not np.ndarray or x.dtype.hasobject:
        return copy.deepcopy(x)
    owner = x
    while type(owner.base) is np.ndarray:
        owner = owner.base
    if id(owner) not in memo:
        low, size = _extent(owner)
        buffer = np.empty(size + 64, np.uint8)
        start = (low - buffer.__array_interface__["data"][0]) % 64
        whole = np.ndarray(
            owner.shape, owner.dtype, buffer, start + _address(owner) - low, owner.strides
        )
        whole[...] = owner
        memo[id(owner)] = (buffer, start - low, owner)
    buffer, shift, _ = memo[id(owner)]
    made: Any = np.ndarray(x.shape, x.dtype, buffer, shift + _address(x), x.strides)
    made.flags.writeable = x.flags.writeable
    return made


def _address(x: Any) -> int:
    address = x.__array_interface__["data"][0]
    assert isinstance(address, int)
    return address


def _extent(x: Any) -> tuple[int, int]:
    """Address of the first byte an array touches, and how many bytes there are to its last."""
    low = high = _address(x)
    if x.size == 0:
        return low, 0
    for size, stride in zip(x.shape, x.strides, strict=True):
        low += min(0, (size - 1) * stride)
        high += max(0, (size - 1) * stride)
    return low, high + x.itemsize - low
