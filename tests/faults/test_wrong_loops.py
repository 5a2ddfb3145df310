"""Is a wrong loop found by comparing a call with plain NumPy, and the operation named?

``numpy/test_verify.py`` has everything else about ``jit(verify=N)``.
"""

import os
import subprocess
import sys

# Builds loops in which sums are differences: all of them, or those that `{where}` leaves.
WRONG_COMPILER = r"""#!/bin/sh
case "$*" in
*-\#\#\#*) g++ "$@" 2>&1 | sed 's/cc1plus/another/' >&2; exit 0 ;;
esac
for word in "$@"; do
  case "$word" in
  *kernel.cpp) {where} sed -i 's/ = \(t[0-9]*\) + \(t[0-9]*\);/ = \1 - \2;/' "$word" ;;
  esac
done
exec g++ "$@"
"""
PROGRAM = """\
import numpy as np, ufuse
@ufuse.jit(verify=2)
def f(x, y):
    z = np.abs(y)
    return (x + z) * 2.0
try:
    f(np.arange(3.0), np.ones(3))
except ufuse.Mismatch as error:
    print(error)
"""


def run(folder, where, **environment):
    compiler = folder / "g++-wrong"
    compiler.write_text(WRONG_COMPILER.format(where=where))
    compiler.chmod(0o700)
    (folder / "program.py").write_text(PROGRAM)
    given = {
        **os.environ,
        "UFUSE_CXX": str(compiler),
        "UFUSE_BACKEND": "compiled",
        "UFUSE_CACHE_SIZE": "0",
        **environment,
    }
    program = [sys.executable, "program.py"]
    return subprocess.run(
        program, cwd=folder, env=given, capture_output=True, text=True, timeout=300, check=False
    )


def test_a_wrong_loop(tmp_path):
    ended = run(tmp_path, "")
    assert "f, call 1: result: 3 of 3 elements differ in bits" in ended.stdout, ended
    assert "operation that differs is `x + z` at" in ended.stdout
    assert "program.py:5\nvalue: 3 of 3 elements" in ended.stdout


def test_a_loop_that_is_wrong_only_when_fused(tmp_path):
    # Where each value is looked at, they all are results: such a loop has a second one.
    ended = run(tmp_path, 'grep -q "out1" "$word" ||')
    assert "f, call 1: result: 3 of 3 elements differ in bits" in ended.stdout, ended
    assert "there is no difference. The loops that run at" in ended.stdout
