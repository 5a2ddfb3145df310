"""What does this process hold: objects, memory, and references to what it has long had?"""

import array
import ctypes
import gc
import os
import sys

import numpy as np


class _Mallinfo(ctypes.Structure):
    """glibc's ``struct mallinfo2``."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


_mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None)  # of glibc from 2.33 on
if _mallinfo is not None:
    _mallinfo.restype = _Mallinfo


def amounts():
    """How much there is of each kind.

    Returns
    -------
    dict of str to int
        ``objects`` that the garbage collector knows; ``blocks`` of Python's allocator; ``bytes``
        that C and C++ have from malloc, where that can be told; ``resident`` bytes of the process.
    """
    gc.collect()
    found = {"objects": len(gc.get_objects()), "blocks": sys.getallocatedblocks()}
    if _mallinfo is not None:
        info = _mallinfo()
        found["bytes"] = info.uordblks + info.hblkhd
    with open("/proc/self/statm") as file:
        found["resident"] = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return found


class References:
    """How many references has each object that was there when this one was made?

    A reference that is not given back, or given back twice, shows here though no object is new:
    the caller's argument, ``None`` or a dtype has one more, or one less, after each call.
    """

    def __init__(self):
        tracked = gc.get_objects()
        dtypes = [np.dtype(each) for each in np.sctypeDict.values()]
        known = {id(each): each for each in [*tracked, *dtypes, *gc.get_referents(*tracked)]}
        self._objects = list(known.values())
        del tracked, dtypes, known
        self.count()

    def count(self):
        """What changes from now on is told: caches may still have forgotten what is held here."""
        self._counts = self._now()

    def _now(self):
        gc.collect()
        # No list: it would hold references to small numbers.
        return array.array("q", map(sys.getrefcount, self._objects))

    def changes(self, least):
        """Objects that have got, or lost, at least so many: as text, with the number."""
        pairs = zip(self._objects, self._counts, self._now(), strict=True)
        return {
            f"{type(each).__name__} {each!r:.80}": now - before
            for each, before, now in pairs
            if abs(now - before) >= least
        }
