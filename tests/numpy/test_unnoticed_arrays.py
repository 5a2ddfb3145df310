"""Is a real array that traced code got unnoticed read after what was written to it?

What a context manager hands over, for example, comes from Python itself: no call of traced code
gives it. Such an array, and what its operators give, stay real; writes to them are recorded.
"""

import contextlib
import importlib.util

import numpy as np
import pytest
import ufuse

BACKENDS = ["compiled", "interpreted"]

WRITES = [
    *("v[[0, -1]] = -2.0", "v[0] = -2.0", "v[1:] = -2.0", "v[:2] += 3", "v[[0, 1, 0]] += 3"),
    *("v[v > 1] = 0", "v.fill(2)", "v[...] = np.sqrt(c)", "v += 1", "v[:] = v[::-1]"),
    *("np.copyto(v, 3.0)", "np.add(v, 1, out=v)", "np.put(v, [0], 4.0)", "np.add.at(v, [0], 4.0)"),
    *("v.sort()", "v[:2] += v[1:3]", "v[1:] *= np.sqrt(c[1:])", "np.sqrt(c, out=v)"),
    *("w = v[1:]; w += np.sqrt(c[1:])", "w = np.sqrt(c); v += w", "v.flat[0] = 7"),
    *("np.place(v, v > 1, [9.0])", "v[0], v[1] = np.sqrt(c)[:2]", "(v := v)[1] = np.sqrt(c)[0]"),
]
READS = [
    *("u += v; r = u", "r = u + v", "r = v * 2", "r = -v", "r = v @ u", "r = v > u"),
    *("r = v.sum()", "r = float(v[0])", "r = v.tolist()", "r = str(v)", "r = [x for x in v]"),
    *("u[:] = v; r = u", "r = u[v > 1]", "r = bool(v[0] > 0)", "r = divmod(v, 2)[0]"),
]
TEXT = """
def f(managed, c):
    with managed(c) as u:
        pass
    v = u * 0.5 + 1
    {}
    {}
    return r
"""


@contextlib.contextmanager
def managed(e):
    yield e * 2


@pytest.mark.parametrize("write", WRITES)
def test_written_and_read(write, tmp_path):
    for k, read in enumerate(READS):
        file = tmp_path / f"unnoticed_{k}.py"
        file.write_text("import numpy as np\n" + TEXT.format(write, read))
        spec = importlib.util.spec_from_file_location(file.stem, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        jitted = ufuse.jit(module.f)
        for _ in range(2):
            ours = jitted(managed, np.arange(6.0) + 1)
            assert repr(ours) == repr(module.f(managed, np.arange(6.0) + 1)), read
