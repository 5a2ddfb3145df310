"""Does each C++ compiler of this machine compile all that kernels are made of, to NumPy's bits?

A text that one of them refuses would be noticed by nobody: the interpreter answers.
"""

import re
import shutil
from pathlib import Path

import pytest

FOUND = [
    path.name
    for folder in ("/usr/bin", "/usr/local/bin")
    for path in sorted(Path(folder).glob("*"))
    if re.fullmatch(r"(g|clang)\+\+(-\d+)?", path.name) and shutil.which(path.name) == str(path)
]

PROGRAM = """
import time
import numpy as np, ufuse
from ufuse import _core

NATIVE = {"compiled", "disk cache", "memory cache"}

def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)

def columns(x):
    return (x * 2).sum(axis=0), x.min(axis=0), np.argmax(x + 1, axis=0), x.std(axis=0)

def totals(x):
    return x.mean(), np.abs(x).max(), (x > 0.5).any(), np.argmin(x), (x * x).sum()

def chosen(x):
    return np.where(np.isnan(x) | (x < 0), -x, np.sqrt(x) // 0.25), ~np.isfinite(x / 2)

def whole(x):
    i = (x * 100).astype("i8")
    return i // 7 + i % 5 - (i << 2), (i & 6).sum(), np.maximum(i, 3).astype("u1").min()

def in_place(x):
    x[1:-1] = 0.5 * (x[:-2] + x[2:])
    x += 1
    return x.sum()

def plain(x):
    return (x * 3 + 1) / 7

rng = np.random.default_rng(0)
x = rng.normal(size=(70, 45))
x[3, 4] = np.nan
cases = [(f, x) for f in (softmax, columns, totals, chosen, whole, in_place)]
cases += [(f, x.astype("f2")) for f in (softmax, columns, totals, chosen)]
cases += [(f, x.astype("f4")) for f in (softmax, chosen)]
cases += [(f, np.nan_to_num(x).astype("f4")) for f in (columns, totals)]
cases += [(f, (x + 1j * x[::-1]).astype(t)) for f in (plain, in_place) for t in "FD"]
cases += [(f, x.astype("g")) for f in (plain, softmax)]
cases += [(plain, np.nan_to_num(x)[::2, ::-3])]
large = rng.normal(size=9_000_000)  # its results are written past the caches
cases += [(plain, large[1:]), (plain, large[: 1 << 25].astype("f4"))]

def parts(results):
    return results if isinstance(results, tuple) else (results,)

for function, argument in cases:
    ours, theirs = argument.copy(), argument.copy()
    with np.errstate(all="ignore"):
        expected = parts(function(theirs))
        end = time.monotonic() + 60
        while True:
            ours = argument.copy()
            found = parts(ufuse.jit(function)(ours))
            rows = [group for report in _core.reports() for group in report["groups"]]
            where = f"{function.__name__} of {argument.dtype}"
            for one, other in zip((ours, *found), (theirs, *expected), strict=True):
                assert type(one) is type(other), where
                assert np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"), where
            if {group["origin"] for group in rows} <= NATIVE:
                break
            # A slow compiler goes on while the interpreter answers.
            assert time.monotonic() < end and "failed" not in str(rows), (where, rows)
            time.sleep(0.2)
"""


@pytest.mark.parametrize("compiler", FOUND)
def test_it_compiles_everything(place, compiler):
    place.variables["UFUSE_CXX"] = compiler
    place.program(PROGRAM)
    assert not [entry for entry in place.entries() if "failed" in entry.name]
