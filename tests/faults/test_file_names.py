"""Does a program run, and explain itself, whose file's name is no UTF-8?"""

import os
import subprocess
import sys

import pytest

PROGRAM = b"""
import sys
import numpy as np, ufuse

class Odd:
    def __call__(self, x):
        return np.asarray(x).max()

def f(x, g):
    y = np.sqrt(x * x + 1.0)
    if y.sum() > 0:
        y = y / (x - x)
    return np.median(y) + g(y)

x = np.linspace(0.0, 1.0, 4000)
sys.modules[__name__].f = f
jitted = ufuse.jit(f)
with np.errstate(all="ignore"):
    assert jitted(x, np.max).tobytes() == f(x, np.max).tobytes()
    found = jitted.explain(x, np.max)
assert str(found)
assert found._repr_html_()
places = [note.place for note in found.notes]
assert any("caf\\\\xe9" in place or "caf\\\\udce9" in place for place in places), places
assert any(note.file == __file__ for note in found.notes), [note.file for note in found.notes]
str(found).encode("utf-8")
"""


@pytest.fixture
def run(tmp_path):
    """Run a program in a file whose name, and so its module's, is no UTF-8."""
    path = os.fsencode(tmp_path) + b"/caf\xe9.py"

    def run(text, *options, **variables):
        try:
            with open(path, "wb") as file:
                file.write(text)
        except OSError:
            pytest.skip("the file system takes UTF-8 only")
        return subprocess.run(
            [sys.executable, *options, path],
            env={**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", ""), **variables},
            capture_output=True,
            timeout=100,
        )

    return run


def test_explain(run):
    done = run(PROGRAM)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("logs", ["all", "fallbacks"])
def test_logs(run, logs):
    done = run(PROGRAM, UFUSE_LOGS=logs)
    assert done.returncode == 0, done.stderr
    assert b"caf\\udce9.py:" in done.stderr
    assert b"Error" not in done.stderr


def test_warnings(run):
    done = run(
        b"import numpy as np, ufuse\n"
        b"x = np.zeros(4000)\n"
        b"f = lambda x: 1.0 / x\n"
        b"for _ in range(3): ufuse.jit(f)(x)\n"
        b"f(x)\n",
        "-W",
        "always",
    )
    assert done.returncode == 0, done.stderr
    place = b"caf\\udce9.py:3: RuntimeWarning: divide by zero"
    assert done.stderr.count(place) == 4, done.stderr


def test_names_that_are_no_text(run):
    """A module, a function, an attribute and an argument with half of a surrogate pair."""
    done = run(
        b"import sys, types\n"
        b"import numpy as np, ufuse\n"
        b"sys.modules['caf\\udce9'] = types.ModuleType('caf\\udce9')\n"
        b"def f(x, g): return g(x * 2.0) + 1.0\n"
        b"def mean(x): return np.asarray(x).mean()\n"
        b"mean.__name__ = mean.__qualname__ = f.__name__ = f.__qualname__ = 'caf\\udce9'\n"
        b"f.__globals__['__name__'] = 'caf\\udce9'\n"
        b"x = np.linspace(0.0, 1.0, 4000)\n"
        b"jitted = ufuse.jit(f)\n"
        b"assert jitted(x, mean).tobytes() == f(x, mean).tobytes()\n"
        b"str(jitted.explain(x, mean))\n"
        b"for wrong in (lambda x: getattr(x * 2, 'caf\\udce9'),\n"
        b"              lambda x: (x * 2).astype(int, casting='caf\\udce9'),\n"
        b"              lambda x: np.add(x, x, **{'caf\\udce9': 1})):\n"
        b"    said = []\n"
        b"    for way in (wrong, ufuse.jit(wrong)):\n"
        b"        try: way(x)\n"
        b"        except Exception as error: said.append((type(error), str(error)))\n"
        b"    assert len(said) == 2 and said[0] == said[1], ascii(said)\n"
    )
    assert (done.returncode, done.stderr) == (0, b"")
