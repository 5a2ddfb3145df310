"""How is the hand-written reference loop built and called?

Compiles reference.cpp for this CPU on first use and calls it through ctypes. It links libomp, as
ufuse's own loops do, so both start their threads alike.
"""

import ctypes
import functools
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

CHUNK = 1 << 16


@functools.cache
def _library() -> ctypes.CDLL:
    source = Path(__file__).with_name("reference.cpp")
    compiler = os.environ.get("UFUSE_CXX") or os.environ.get("CXX") or "g++"
    with tempfile.TemporaryDirectory() as folder:
        object_file, library = f"{folder}/reference.o", f"{folder}/reference.so"
        flags = ["-O3", "-march=native", "-std=c++20", "-fPIC", "-fopenmp"]
        subprocess.run([compiler, *flags, "-c", str(source), "-o", object_file], check=True)
        # Without -fopenmp here: g++ would add libgomp.
        subprocess.run(
            [compiler, "-shared", object_file, "-o", library, "-l:libomp.so.5"], check=True
        )
        loaded = ctypes.CDLL(library)
    loaded.same_traffic.argtypes = [
        *(2 * [ctypes.c_void_p]),
        *(2 * [ctypes.c_int64]),
        ctypes.c_int,
    ]
    loaded.same_traffic.restype = None
    return loaded


def available_threads() -> int:
    """The threads an OpenMP program gets here: OMP_NUM_THREADS, else the cores we may use."""
    return int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))


@functools.lru_cache(maxsize=1)
def _memory(n: int) -> np.ndarray:
    """The same memory for each call: page faults of fresh memory are no part of the limit."""
    return np.zeros(n, dtype=np.int64)


def same_traffic(X: np.ndarray, threads: int | None = None) -> np.ndarray:
    """Read the (n, 2) float64 array ``X`` once and write n int64; the values mean nothing."""
    if X.dtype != np.float64 or X.ndim != 2 or X.shape[1] != 2 or not X.flags.c_contiguous:
        raise ValueError("the reference loop takes a C-contiguous (n, 2) float64 array")
    out = _memory(X.shape[0])
    threads = threads or available_threads()
    _library().same_traffic(X.ctypes.data, out.ctypes.data, X.shape[0], CHUNK, threads)
    return out
