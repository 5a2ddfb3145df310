"""ufuse runs plain NumPy functions as fused OpenMP loops, with NumPy's own bits.

``ufuse.jit`` decorates a function::

    @ufuse.jit
    def distances(x, y):
        return np.sqrt(((x - y) ** 2).sum(axis=-1))

``distances.explain(x, y)`` tells what ran as loops and what did not. ``ufuse.numpy`` stands in for
NumPy in a whole module, and ``%load_ext ufuse`` gives a notebook ``%%ufuse``, ``%ubench`` and
``%%udebug``.
"""

import atexit
import importlib
import os
from typing import TYPE_CHECKING

try:
    from . import _core
except ImportError as error:
    from .loading import explained

    raise explained(error) from None

from . import environment
from ._core import InternalError, ndarray
from .compare import Mismatch
from .function import Function
from .jit import disabled, jit
from .threads import get_num_threads, set_num_threads
from .tracing import callees, escape, handlers, loops, methods
from .tracing.watchers import plain_for_ever

if TYPE_CHECKING:  # at run time `__getattr__` imports these
    from .tools.config import config
    from .tools.profiling import profile
    from .tools.stance import FallbackError, RecompileError, stance

__version__ = _core.__version__
__all__ = [
    "FallbackError",
    "Function",
    "InternalError",
    "Mismatch",
    "RecompileError",
    "config",
    "disabled",
    "get_num_threads",
    "jit",
    "ndarray",
    "profile",
    "set_num_threads",
    "stance",
]

environment.check()  # before a loop starts libomp, which does not survive every OMP_NUM_THREADS
_core.set_backend(environment.backend())
_core.choose_by(environment.choices())
callees.set_handlers(handlers.table)
_core.set_callees(callees.stand_in)
_core.set_plain_callees(loops.of_helper)
_core.set_drop_heads(loops.drop_heads)
_core.set_frame_counters(tuple(handlers.FRAME_COUNTERS))
_core.set_others(callees.is_other)
_core.set_harmless(callees.is_harmless_code)
_core.set_replacer(escape.replace)
_core.set_filler(escape.make_real_inside)
_core.set_array_function(callees.array_function)
methods.install()
# A thread that is in the compiler's way at the end would leave its files behind; two seconds are
# enough for some twenty loops, which the next process then finds in the disk cache.
atexit.register(_core.finish_builds, 2.0)
if environment.is_disabled():
    plain_for_ever()
if "requests" in environment.debug_words():
    from .tools import requests

    requests.watch()
if "UFUSE_LOGS" in os.environ:
    from .tools import logs

    logs.start()


# What is imported when somebody asks for it, and where it is.
_LATE = {
    "FallbackError": ".tools.stance",
    "RecompileError": ".tools.stance",
    "config": ".tools.config",
    "profile": ".tools.profiling",
    "stance": ".tools.stance",
}


def __getattr__(name: str) -> object:
    if name in _LATE:
        return getattr(importlib.import_module(_LATE[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return ["__version__", *__all__]


def load_ipython_extension(shell: object) -> None:
    """Give a notebook its magics; called by ``%load_ext ufuse``."""
    from .tools.ipython import load

    load(shell)
