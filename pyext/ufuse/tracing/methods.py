"""Which methods of a lazy array are written in Python, or are none of its own?

``install()`` adds them to ``ufuse.ndarray`` when the package is imported: twins of the Python
functions that NumPy's C methods call, real NumPy calls for what has no native form, and what
``pickle`` asks for. The other methods are native (``bind/``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ufuse import _core

from . import handlers, twin


def _array_wrap(self: Any, arr: Any, /, context: Any = None, return_scalar: bool = False) -> Any:
    """What NumPy's ``ndarray.__array_wrap__`` gives for an exact ndarray: the array itself."""
    return arr[()] if return_scalar and arr.ndim == 0 else arr


def _reduced(self: Any, protocol: Any, /) -> Any:
    """Pickling: a lazy array is pickled as the real one."""
    return _core.unwrap(self).__reduce_ex__(protocol)


def _twin_method(method: str, name: str) -> Callable[[], Any]:
    """Gives the twin of a function in NumPy's ``_methods.py``, and puts it into the type."""

    def resolve() -> Any:
        function = twin.twin_of(getattr(handlers.numpy_methods, name)).function
        setattr(_core.ndarray, method, function)
        return function

    return resolve


def _of_float(name: str) -> Callable[[Any], Any]:
    """A method of Python's float, which functions of ``math`` look for."""

    def method(self: Any) -> Any:
        return getattr(float(self), name)()

    return method


def _of_scalar(name: str) -> Callable[..., Any]:
    """A method that gives a scalar also where it has written the result into ``out``."""
    numpys = getattr(np.generic, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) > 2 or kwargs.get("out") is not None:
            return _core.numpy_call(numpys, (self, *args), kwargs, "arguments", True)
        return getattr(_core.ndarray, name)(self, *args, **kwargs)  # it is a twin by now

    return method


def install() -> None:
    """Give ``ufuse.ndarray`` the methods that are not native; those it has stay."""
    for name, method in _table().items():
        if name not in _core.ndarray.__dict__:
            setattr(_core.ndarray, name, method)
    for real, lazy in _core.lazy_scalars.items():
        for name in ("__trunc__", "__floor__", "__ceil__"):
            if hasattr(real, name):  # np.float64, which is a Python float
                setattr(lazy, name, _of_float(name))
        for name in ("mean", "var", "std", "clip"):
            setattr(lazy, name, _of_scalar(name))


def _table() -> dict[str, Any]:
    names = {"mean": "_mean", "var": "_var", "std": "_std", "clip": "_clip"}
    if callable(getattr(np.ndarray, "ptp", None)):  # early NumPy 2: an attribute that raises
        names["ptp"] = "_ptp"
    made: dict[str, Any] = {
        method: _core.instance_method(
            functools.partial(_core.call_late, _twin_method(method, name))
        )
        for method, name in names.items()
    }
    made.update(_core.numpy_methods())
    made["__array_wrap__"] = _array_wrap
    made["__reduce_ex__"] = _reduced
    if hasattr(np.ndarray, "__array_prepare__"):
        made["__array_prepare__"] = _array_wrap
    return made
