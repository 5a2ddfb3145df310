"""Is a wrong value noticed where it is made?

``UFUSE_DEBUG=requests`` compares what jitted functions compute with NumPy, request by request.
"""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from ufuse import _core
from ufuse.tools import requests

# Builds what it is given with other signs: every sum is a difference.
WRONG_COMPILER = """\
#!/bin/sh
case "$*" in
*-\\#\\#\\#*) g++ "$@" 2>&1 | sed 's/cc1plus/another/' >&2; exit 0 ;;
esac
for word in "$@"; do
  case "$word" in *kernel.cpp) sed -i 's/ = t0 + t1;/ = t0 - t1;/' "$word" ;; esac
done
exec g++ "$@"
"""


def run(text, folder, **environment):
    names = {
        "UFUSE_DEBUG": "requests",
        "UFUSE_BACKEND": "compiled",
        "UFUSE_CACHE_DIR": str(folder / "cache"),
        "TMPDIR": str(folder),
    }
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        env={**os.environ, **names, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_wrong_loop_is_reported(tmp_path):
    compiler = tmp_path / "g++-wrong"
    compiler.write_text(WRONG_COMPILER)
    compiler.chmod(0o700)
    ended = run(
        """
        import numpy as np, ufuse
        f = ufuse.jit(lambda x, y: x + y)
        try:
            print(f(np.arange(3.0), np.ones(3)))
        except ufuse.InternalError as error:
            print("found:", error)
        """,
        tmp_path,
        UFUSE_CXX=str(compiler),
    )
    assert "found: a request at <string>:3 gave another value than NumPy" in ended.stdout, ended
    assert "result 0: 3 of 3 elements differ in bits" in ended.stdout
    [folder] = tmp_path.glob("ufuse-wrong-*")
    report = (folder / "report.txt").read_text()
    assert "Run once more, the same loops give result 0: 3 of 3 elements differ" in report
    assert "Operands that were changed meanwhile: none." in report
    assert " = t0 + t1;" in report
    arrays = np.load(folder / "arrays.npz")
    assert arrays["expected_0"].tolist() == [1.0, 2.0, 3.0]
    assert arrays["results_0"].tolist() == arrays["again_0"].tolist() == [-1.0, 0.0, 1.0]


def test_right_requests_are_none_of_its_business(tmp_path):
    ended = run(
        """
        import numpy as np, ufuse
        from ufuse.tools import requests

        def steps(u, n, dt):
            for _ in range(n):
                u[1:-1] += dt * (u[2:] - 2 * u[1:-1] + u[:-2])
            return u.sum(), np.sqrt(u), u / 0.0, u.max()

        with np.errstate(all="ignore"):
            for n in (0, 1, 50):
                u = np.random.default_rng(4).normal(size=64)
                ufuse.jit(steps)(u, n, 0.1)
        print(requests.found)
        """,
        tmp_path,
    )
    assert (ended.stdout, ended.stderr) == ("[]\n", "")
    assert not list(tmp_path.glob("ufuse-wrong-*"))


def test_a_request_that_is_right_when_run_again_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    right, wrong = np.array([1.0, np.nan]), np.array([2.0, np.nan])
    row = {
        "file": "f.py",
        "line": 7,
        "graph": "return %0",
        "sources": ["text"],
        "origins": ["disk cache"],
        "operands": [right],
        "operands_now": [wrong],
        "parameters": [bytes(16)],
        "overwritten": [0],
        "operands_at": [64],
        "results_at": [64],
        "expected": [right],
        "results": [wrong],
        "again": lambda: [right],
    }
    known = len(requests.found)
    with pytest.raises(_core.InternalError, match=r"f\.py:7 gave another value than NumPy"):
        requests.judge(row)
    assert len(requests.found) == known + 1
    del requests.found[known:]
    [folder] = tmp_path.glob("ufuse-wrong-*")
    report = (folder / "report.txt").read_text()
    assert "Run once more, the same loops give NumPy's value." in report
    assert "changed meanwhile: operand 0: 1 of 2 elements differ" in report
    requests.judge({**row, "graph": "another", "results": [np.array([1.0, -np.nan])]})
