"""ufuse runs plain NumPy functions as fused OpenMP loops, with NumPy's own bits."""

from . import _core
from ._core import InternalError, get_num_threads, ndarray, set_num_threads
from .jit import jit

__version__ = _core.__version__
__all__ = [
    "InternalError",
    "get_num_threads",
    "jit",
    "ndarray",
    "profile",
    "set_num_threads",
]


def __getattr__(name: str) -> object:
    if name == "profile":
        from .profiling import profile

        return profile
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(shell: object) -> None:
    """Give a notebook ``%%ufuse`` and ``%ubench``; called by ``%load_ext ufuse``."""
    from .ipython import load

    load(shell)
