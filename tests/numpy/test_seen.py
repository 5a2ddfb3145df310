"""Can the user see what happened: explain, source, logs, profiles, magics, the doctor?"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import ufuse
from ufuse import compare, copies

X = np.linspace(0.0, 1.0, 24).reshape(4, 6)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


class TestExplain:
    def test_traced(self):
        found = ufuse.jit(softmax).explain(X)
        assert found.mode == "replayed"
        assert len(found.groups) == 1
        assert found.notes == ()
        assert found.bytes_minimum >= X.nbytes
        assert "softmax: replayed" in str(found)
        assert "<table>" in found._repr_html_()

    def test_numbers_among_themselves_need_no_values(self):
        found = ufuse.jit(lambda x: np.var(x)).explain(X.ravel())
        assert found.mode == "replayed"
        assert len(found.groups) == 1

    def test_notes_have_lines(self):
        def f(x):
            y = np.sort(x * 2)
            return y if y[0, 0] > 0 else -y

        notes = ufuse.jit(f).explain(X).notes
        first = f.__code__.co_firstlineno
        assert [(n.kind, n.line) for n in notes if n.file == __file__][-1] == ("force", first + 2)
        assert any(n.kind == "numpy_call" and n.detail == "sort" for n in notes)
        assert all(n.sentence.endswith(".") for n in notes)

    def test_plain(self):
        def f(x):
            global KEPT
            KEPT = x
            return x

        found = ufuse.jit(f).explain(X)
        assert found.mode == "plain"
        assert "global" in found.reason
        assert f":{f.__code__.co_firstlineno + 2}:" in found.reason

    def test_arguments_are_not_touched(self):
        def f(x):
            x += 1
            return x

        x = X.copy()
        ufuse.jit(f).explain(x)
        assert (x == X).all()

    def test_source(self, backend):
        source = ufuse.jit(softmax).source(X)
        assert ('extern "C"' in source) == (backend == "compiled")


class TestLogs:
    def run(self, logs):
        code = (
            "import numpy as np, ufuse\n"
            "f = ufuse.jit(lambda x: np.sort(np.sqrt(x) + 1))\n"
            "f(np.arange(5.0))\n"
        )
        environment = {**os.environ, "UFUSE_LOGS": logs}
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment
        ).stderr

    def test_categories(self, backend):
        if backend != "compiled":
            pytest.skip("a process of its own")
        assert "sort" in self.run("fallbacks")
        assert 'extern "C"' in self.run("output_code")
        assert "sqrt" in self.run("fusion,cache")
        assert self.run("") == ""
        assert "nonsense is none of" in self.run("nonsense")


def test_profile(tmp_path):
    f = ufuse.jit(softmax)
    with ufuse.profile(tmp_path / "trace.json") as events:
        f(X)
        f(X)
    written = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert written == events
    assert [e["name"] for e in written if e["cat"] == "call"] == ["softmax"] * 2


def test_doctor(backend):
    if backend != "compiled":
        pytest.skip("a process of its own")
    found = subprocess.run(
        [sys.executable, "-m", "ufuse", "doctor"], capture_output=True, text=True
    )
    assert "versions" in found.stdout
    assert "same bits as NumPy" in found.stdout


def test_magics(capsys):
    testing = pytest.importorskip("IPython.testing.globalipapp")
    shell = testing.start_ipython() or testing.get_ipython()
    shell.run_line_magic("load_ext", "ufuse")
    shell.run_cell("import numpy as np")
    shell.run_cell_magic("ufuse", "", "def double(x):\n    return x * 2\n")
    shell.run_cell("y = double(np.arange(3.0))")
    assert "double: same as NumPy" in capsys.readouterr().out
    shell.run_line_magic("ubench", "--seconds 0.01 double(np.arange(3.0))")
    assert "ratio" in capsys.readouterr().out


class TestNamespace:
    def test_calls(self):
        import ufuse.numpy as unp
        import ufuse.numpy.linalg as ula
        from ufuse.numpy.fft import fft

        assert (unp.sin(X) == np.sin(X)).all()
        assert (unp.add.reduce(X) == np.add.reduce(X)).all()
        assert (ula.norm(X, axis=1) == np.linalg.norm(X, axis=1)).all()
        assert (fft(X) == np.fft.fft(X)).all()
        assert type(unp.zeros(3)) is np.ndarray
        assert unp.float64 is np.float64
        assert unp.pi == np.pi
        assert set(dir(np)) <= set(dir(unp))

    def test_errors_are_numpys(self):
        import ufuse.numpy as unp

        with pytest.raises(ValueError, match="cannot reshape array of size 24"):
            unp.reshape(X, (5, 5))

    def test_check_mode(self, monkeypatch):
        import ufuse.numpy as unp
        from ufuse import namespace

        monkeypatch.setenv("UFUSE_DEBUG", "check")
        unp.linalg.norm(X, axis=0)
        unp.copyto(X.copy(), 3)
        monkeypatch.setattr(namespace.Eager, "_run", lambda self, args, kwargs: np.float64(1.5))
        with pytest.raises(namespace.Mismatch, match=r"numpy\.sum\(<float64 \(4, 6\)") as caught:
            unp.sum(X)
        assert f"{__file__}:" in str(caught.value)


def test_compare():
    assert compare.difference([1, (X, 2.0)], [1, (X.copy(), 2.0)]) is None
    assert "type" in compare.difference(np.float64(1), 1.0)
    assert "dtype" in compare.difference(X, X.astype("f"))
    assert "(1, 2)" in compare.difference(X, np.where(np.arange(24).reshape(4, 6) == 8, -1.0, X))
    assert compare.difference(0.0, -0.0) is not None


def test_copies_share_as_the_originals_do():
    a, b, c = copies.copied((X, X[::-1, ::2], np.broadcast_to(X[0], (3, 6))))
    assert b.strides == X[::-1, ::2].strides
    assert c.strides == (0, 8)
    assert np.may_share_memory(a, b)
    assert np.may_share_memory(a, c)
    assert not np.may_share_memory(a, X)
    assert (a == X).all()
    assert (b == X[::-1, ::2]).all()


def test_import_is_quick():
    code = (
        "import time, numpy; t = time.perf_counter(); import ufuse; print(time.perf_counter() - t)"
    )
    times = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout)
        for _ in range(3)
    ]
    assert min(times) < 0.06
