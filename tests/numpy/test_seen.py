"""Can the user see what happened: explain, source, logs, profiles, magics, the doctor?"""

import functools
import io
import json
import os
import re
import subprocess
import sys
import threading
from typing import NamedTuple

import numpy as np
import pytest
import ufuse
from ufuse import _core, compare, copies
from ufuse.tracing import callees, handlers

BACKENDS = ["compiled"]

X = np.linspace(0.0, 1.0, 24).reshape(4, 6)


class Said(NamedTuple):
    out: str
    err: str


def ask_another_process(code, **environment):
    """What a program, or the doctor, prints with these environment variables."""
    what = (
        ["-m", "ufuse", "doctor"] if code is None else ["-c", f"import numpy as np, ufuse\n{code}"]
    )
    done = subprocess.run(
        [sys.executable, *what], capture_output=True, text=True, env={**os.environ, **environment}
    )
    return Said(done.stdout, done.stderr)


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

    @pytest.mark.parametrize("tool", ["explain", "source", "warmup"])
    def test_methods_need_their_object(self, tool):
        class Model:
            @ufuse.jit
            def apply(self, x):
                return x + "a" if type(x) is str else x + 1

        with pytest.raises(TypeError, match="missing 1 required positional argument") as caught:
            getattr(Model().apply, tool)(X)
        (note,) = caught.value.__notes__
        assert note.endswith(f"Model.apply.{tool}(self, ...)")
        assert [entry.path.name for entry in caught.traceback][-1] == "test_seen.py"
        getattr(Model.apply, tool)(Model(), X)
        with pytest.raises(TypeError, match="unsupported operand") as caught:
            getattr(Model.apply, tool)(Model(), None)
        assert not hasattr(caught.value, "__notes__")

    def test_notes_have_lines(self):
        def f(x):
            y = np.sort(x * 2)
            return y if y[0, 0] > 0 else -y

        notes = ufuse.jit(f).explain(X).notes
        first = f.__code__.co_firstlineno
        assert [(n.kind, n.line) for n in notes if n.file == __file__][-1] == ("force", first + 2)
        assert any(n.kind == "numpy_call" and n.detail == "sort" for n in notes)
        assert all(n.sentence.endswith(".") for n in notes)

    def test_of_many_operations_the_first_are_named(self):
        def f(x):
            for i in range(1, 9):
                x = np.sqrt(x + i) * i
            return x

        found = ufuse.jit(f).explain(abs(X))
        assert len(found.groups[0].ops) == 24
        assert "1. add sqrt multiply add" in str(found)
        assert "multiply ... (24 operations)" in str(found)
        assert "multiply ... (24 operations)" in found._repr_html_()

    def test_plain(self):
        def f(x):
            global KEPT
            for KEPT in (x,):  # noqa: B007
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

    @pytest.mark.parametrize(
        "function",
        [softmax, np.sin, lambda x: x.mean(), lambda x: np.sort(x), lambda x: float(x.sum())],
    )
    def test_the_mode_is_what_happens(self, function):
        f = ufuse.jit(function)
        found = f.explain(X)
        assert (found.reason == "") == (found.mode == "replayed")
        before = f._dispatcher.counts[0] if f._dispatcher else 0
        f(X)
        assert (found.mode == "replayed") == bool(
            f._dispatcher and f._dispatcher.counts[0] > before
        )

    def test_times_are_of_this_call(self, backend):
        f = ufuse.jit(lambda x: np.tanh(x) * 3 + np.cos(x))
        first, second = f.explain(X), f.explain(X)
        assert 0 < first.compile_seconds + first.run_seconds <= first.seconds
        assert 0 < second.compile_seconds + second.run_seconds <= second.seconds
        if backend == "compiled":
            assert first.groups[0].fresh
            assert not second.groups[0].fresh
            assert second.groups[0].whence == "in use since an earlier call"
            assert second.groups[0].whence in str(second)
            assert second.compile_seconds * 1e3 < second.groups[0].compile_ms

    def test_what_repeats_is_counted(self):
        def f(x):
            for _ in range(5):
                x[1:] = x[:-1] * 2
            return x

        found = ufuse.jit(f).explain(X)
        assert [(g.ops, g.runs) for g in found.groups] == [(("multiply",), 5)]
        assert [note.times for note in found.notes] == [5]
        assert "(5 times)" in str(found)

    def test_names(self):
        class Model:
            def __call__(self, x):
                return x

        assert ufuse.jit(functools.partial(softmax, X)).explain().name == "partial of softmax"
        assert "Model" in ufuse.jit(Model()).explain(X).name

    def test_strict_error_state_is_plain(self):
        with np.errstate(all="raise"):
            found = ufuse.jit(softmax).explain(X)
        assert found.mode == "plain"
        assert "np.errstate" in found.reason

    @pytest.mark.parametrize("ask", ["explain", "source"])
    def test_exceptions_have_no_frames_of_ours(self, ask):
        def f(x):
            return x + np.ones(99)

        with pytest.raises(ValueError, match="broadcast") as caught:
            getattr(ufuse.jit(f), ask)(X)
        names = [entry.name for entry in caught.traceback]
        assert names == ["test_exceptions_have_no_frames_of_ours", "f"]

    def test_why_it_was_not_compiled(self, monkeypatch):
        found = ask_another_process(
            "print(ufuse.jit(lambda x: np.sin(x) + 1).explain(np.arange(5.0)))",
            UFUSE_CXX="/nonexistent",
        )
        assert "sin add  [interpreter: no C++ compiler was found (tried: /nonexistent)" in found.out

    def test_source(self, backend):
        source = ufuse.jit(softmax).source(X)
        assert ('extern "C"' in source) == (backend == "compiled")

    def test_schedule(self, backend):
        found = ufuse.jit(softmax).explain(X)
        assert ("elements written out" in found.schedule) == (backend == "compiled")
        assert ("<summary>schedule</summary>" in found._repr_html_()) == (backend == "compiled")


class TestLogs:
    def run(self, logs, tmp_path):
        code = (
            "f = ufuse.jit(lambda x: np.sort(np.sqrt(x) + 1))\n"
            "for x in (np.arange(5.0), np.arange(5.0), np.arange(6, dtype='f')): f(x)\n"
            "g = ufuse.jit(lambda x: x * 2)\n"
            "g(x); g(x)\n"
            "def h(x):\n"
            "    global k\n"
            "    for k in (x,): pass\n"
            "ufuse.jit(h)(x)"
        )
        return ask_another_process(code, UFUSE_LOGS=logs, UFUSE_CACHE_DIR=str(tmp_path)).err

    def test_compared_calls(self):
        code = (
            "f = ufuse.jit(lambda x: x + 1, verify=1)\n"
            "g = ufuse.jit(lambda x: print(x), verify=1)\n"
            "f(np.ones(3)); f(np.ones(3)); g(3)"
        )
        assert ask_another_process(code, UFUSE_LOGS="verify").err.splitlines() == [
            "[ufuse.verify] <lambda>: call 1: same as NumPy",
            "[ufuse.verify] <lambda>: call 1: not compared with NumPy: <string>:3: `print` may do "
            "what others see",
        ]

    def test_categories(self, tmp_path):
        os.chmod(tmp_path, 0o700)
        text = self.run("all", tmp_path)
        lines = text.splitlines()
        for category in ("graph", "fusion", "output_code", "recompiles", "cache", "fallbacks"):
            assert f"[ufuse.{category}] " in text
        assert sum("NumPy call sort" in line for line in lines) == 2
        assert [line.partition(": ")[0] for line in lines if "ufuse.recompiles" in line] == [
            "[ufuse.recompiles] <lambda>(float64[5])",
            "[ufuse.recompiles] <lambda>(float32[6])",
            "[ufuse.recompiles] <lambda>(float32[6])",
        ]
        assert "[ufuse.cache] <lambda>: replayed" in lines
        assert f"[ufuse.cache] folder: {tmp_path}" in lines
        assert any(line.startswith("[ufuse.fallbacks] h: plain: ") for line in lines)
        assert text.count('extern "C"') == 3
        assert "= ufunc" not in self.run("output_code", tmp_path)

    def test_passes(self):
        code = "ufuse.jit(lambda x: np.exp(x) + 1)(np.arange(999.0))"
        text = ask_another_process(code, UFUSE_LOGS="passes", UFUSE_BACKEND="compiled").err
        assert "after lower:" in text
        assert "after segment:" in text
        assert "after collapse:" not in text  # there is one loop

    def test_passes_that_are_left_out(self):
        code = "print(ufuse.jit(lambda x: np.exp(x) + 1).source(np.arange(999.0)))"
        assert "+= 256" in ask_another_process(code, UFUSE_LEAVE_OUT="rows, nonsense").out
        text = ask_another_process(code, UFUSE_LEAVE_OUT="rows,block").out
        assert "exp" in text
        assert "+= 256" not in text

    def test_programs(self):
        code = (
            "def f(n, taken):\n"
            "    s = 0.0\n"
            "    for i in range(n):\n"
            "        s += i % 7\n"
            "    for i in range(n // 50):\n"
            "        taken.add(i)\n"
            "    return s\n"
            "f = ufuse.jit(f)\n"
            "f(10, set()); f(5_000_000, set()); f(5_000_000, set()); f(5_000_000, set())"
        )
        lines = ask_another_process(code, UFUSE_LOGS="programs").err.splitlines()
        told = [line for line in lines if line.startswith("[ufuse.programs] ")]
        assert any(": line 4: native" in line for line in told), lines
        assert any(": line 6: Python: line 7: `add` is called" in line for line in told), lines
        assert any("float64" in line for line in lines)  # the types of the program's variables

    def test_names_that_do_not_exist(self, tmp_path):
        assert self.run("", tmp_path) == ""
        text = self.run("nonsense,fallbacks", tmp_path)
        assert "UFUSE_LOGS: nonsense is none of output_code, graph" in text
        assert "NumPy call sort" in text


def traced_events(folder, use):
    """The events that a profile of ``use()`` has written, and those that it gave."""
    with ufuse.profile(folder / "trace.json") as events:
        use()
    written = json.loads((folder / "trace.json").read_text())["traceEvents"]
    assert [e for e in written if e["ph"] != "M"] == events
    return written, events


def inside(events, outer):
    """The slices of a thread that lie in one of them."""
    return [
        e
        for e in events
        if e is not outer
        and (e["ph"], e["tid"]) == ("X", outer["tid"])
        and outer["ts"] <= e["ts"]
        and e["ts"] + e["dur"] <= outer["ts"] + outer["dur"] + ROUNDING
    ]


ROUNDING = 0.001  # microseconds: of the time that a machine is up, in floating point


def test_profile(tmp_path):
    f, g = ufuse.jit(softmax), ufuse.jit(lambda x: np.sort(x + 2))
    h = ufuse.jit(lambda x: x + np.ones(99))

    def use():
        f(X)
        f(X)
        g(X)
        with pytest.raises(ValueError, match="broadcast"):
            h(X)

    _, events = traced_events(tmp_path, use)
    seen = len(events)
    f(X)
    assert len(events) == seen
    calls = [e for e in events if e["cat"] == "call"]
    assert [e["args"]["mode"] for e in calls] == ["traced", "replayed", "traced", "traced"]
    assert calls[0]["args"]["call"] == "softmax(float64[4, 6])"
    assert any("NumPy call sort" in note for note in calls[2]["args"]["interruptions"])
    parts = [[(e["cat"], e["name"].split()[0]) for e in inside(events, call)] for call in calls]
    assert [row[-1:] for row in parts[:2]] == [[("loops", "maximum.reduce")]] * 2
    assert parts[2][-2:] == [("loops", "add"), ("interruption", "sort")]
    assert ("loops", "copy") in parts[3]  # np.ones is due where the exception ends the call
    loops = [e for e in events if e["cat"] == "loops"]
    assert all(e["args"]["bytes_moved"] >= e["args"]["bytes_minimum"] > 0 for e in loops)


def test_profile_of_a_program_and_its_compiler(tmp_path):
    code = (
        "import threading\n"
        "@ufuse.jit\n"
        "def f(n):\n"
        "    s = 0.0\n"
        "    for i in range(n):\n"
        "        s += i % 7\n"
        "    return s\n"
        "with ufuse.profile(PATH) as events:\n"
        "    for _ in range(300):  # until the program is there\n"
        "        f(3_000_000)\n"
        "        if any(event['cat'] == 'program' for event in events): break\n"
        "print(threading.get_native_id())"
    ).replace("PATH", repr(str(tmp_path / "trace.json")))
    thread = int(ask_another_process(code, UFUSE_CACHE_DIR=str(tmp_path / "loops")).out)
    written = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    calls = [e for e in written if e["cat"] == "call"]
    parts = [(e["cat"], e["name"]) for e in inside(written, calls[-1])]
    assert ("program", "loop in line 6") in parts
    compiled = [e for e in written if e["cat"] == "compile"]
    assert [e["name"] for e in compiled] == ["native program of a loop"]
    names = {e["tid"]: e["args"]["name"] for e in written if e["name"] == "thread_name"}
    assert names == {thread: "MainThread", compiled[0]["tid"]: "ufuse compiler"}


def test_rules_of_traces(tmp_path):
    f = ufuse.jit(lambda x: np.sort(softmax(x) + 2))
    g = ufuse.jit(lambda x: list(map(f, [x, x + 1])))

    def use():
        threads = [threading.Thread(target=g, args=(X,), name=f"thread {i}") for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        g(X)

    written, events = traced_events(tmp_path, use)
    assert {e["ph"] for e in written} == {"X", "M"}
    for e in written:
        assert isinstance(e["name"], str)
        assert e["pid"] == os.getpid()
        assert isinstance(e["tid"], int)
        assert isinstance(e["args"], dict)
    named = {e["tid"] for e in written if e["name"] == "thread_name"}
    assert named >= {e["tid"] for e in events}
    for e in events:
        assert e["ts"] > 0
        assert e["dur"] >= 0
        for other in events:  # slices of a thread are apart, or one is in the other
            if e["tid"] == other["tid"] and e["ts"] < other["ts"] < e["ts"] + e["dur"] - ROUNDING:
                assert other["ts"] + other["dur"] <= e["ts"] + e["dur"] + ROUNDING


def test_profiles_within_each_other(tmp_path):
    f = ufuse.jit(softmax)
    with ufuse.profile(tmp_path / "a.json") as outer:
        f(X)
        with ufuse.profile(tmp_path / "b.json") as inner:
            f(X)
        f(X)
    kinds = [[e["cat"] for e in events if e["cat"] != "compile"] for events in (outer, inner)]
    assert kinds[0].count("call") == 3
    assert kinds[0].count("loops") == 3
    assert kinds[1] == ["call", "loops"]


def test_profile_as_a_table(tmp_path):
    f, x = ufuse.jit(softmax), np.ones((300, 400))
    with ufuse.profile(tmp_path / "trace.json") as trace:
        for _ in range(3):
            f(x)
    rows = {row.mode: row for row in trace.table()}
    assert {mode: row.calls for mode, row in rows.items()} == {"traced": 1, "replayed": 2}
    traced = rows["traced"]
    assert 0 < traced.loops < traced.loops + traced.compiling < traced.total
    assert 0 < rows["replayed"].loops < rows["replayed"].total
    assert rows["replayed"].compiling == rows["replayed"].interruptions == 0
    assert traced.bytes_moved >= 2 * x.nbytes
    head, *lines = str(trace.table()).splitlines()
    assert head.split()[:3] == ["function", "answered", "calls"]
    assert sorted(line.split()[:3] for line in lines) == [
        ["softmax", "replayed", "2"],
        ["softmax", "traced", "1"],
    ]
    assert "<table>" in trace.table()._repr_html_()


def test_profile_that_cannot_be_written(tmp_path):
    computed = []
    with pytest.raises(FileNotFoundError), ufuse.profile(tmp_path / "nowhere" / "trace.json"):
        computed.append("for nothing")
    assert not computed


class TestDoctor:
    def ask(self, **environment):
        return ask_another_process(None, **environment).out

    def test_good(self):
        found = self.ask()
        assert "ok  versions" in found
        assert "same bits as NumPy" in found
        assert "ok  OpenMP" in found
        assert "libomp" in found

    def test_no_compiler(self):
        found = self.ask(UFUSE_CXX="/nonexistent")
        assert "BAD compiler  none that works" in found
        assert "tried: /nonexistent" in found

    def test_folders_that_are_not_used(self, tmp_path):
        (tmp_path / "file").write_text("")
        (tmp_path / "open").mkdir()
        os.chmod(tmp_path / "open", 0o777)
        for folder, words in [
            (tmp_path / "file", "is not a folder"),
            (tmp_path / "open", "is open to other users"),
            (tmp_path / "open" / "inner", f"{tmp_path / 'open'} can be written by other users"),
        ]:
            found = self.ask(UFUSE_CACHE_DIR=str(folder))
            assert "BAD cache" in found
            assert words in found
            assert "same bits as NumPy" in found

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("OMP_NUM_THREADS", "abc"),
            ("OMP_NUM_THREADS", "-3"),
            ("OMP_NUM_THREADS", "99999999999"),
            ("UFUSE_CACHE_SIZE", "big"),
            ("UFUSE_PATIENCE", "5 s"),
            ("UFUSE_DEBUG", "chekc"),
            ("UFUSE_LOGS", "nonsense"),
        ],
    )
    def test_variables(self, name, value):
        found = self.ask(**{name: value})
        assert "BAD variables" in found
        assert f"{name}: " in found
        assert "same bits as NumPy" in found


def test_variables_are_warned_of():
    code = "print((ufuse.jit(lambda x: x + 1)(np.ones(1000000)) == 2).all())"
    found = ask_another_process(code, OMP_NUM_THREADS="2x")
    assert found.out == "True\n"
    assert found.err == "OMP_NUM_THREADS: '2x' is no list of positive numbers; it is ignored\n"


class TestMagics:
    @pytest.fixture
    def shell(self):
        testing = pytest.importorskip("IPython.testing.globalipapp")
        shell = testing.start_ipython() or testing.get_ipython()
        shell.run_line_magic("load_ext", "ufuse")
        shell.run_cell("import numpy as np\nx = np.arange(3.0)")
        return shell

    def test_cell(self, shell, capsys):
        shell.run_cell("%%ufuse\ndef double(x):\n    return x * 2\ny = double(x)\n")
        assert "double: same as NumPy" in capsys.readouterr().out
        assert type(shell.user_ns["double"]) is ufuse.jit(len).__class__
        assert shell.user_ns["double"].explain(X).mode == "replayed"
        shell.run_cell("double(x)")
        assert "same as" not in capsys.readouterr().out
        assert "__ufuse_compiled__" not in shell.user_ns

    @pytest.mark.parametrize(
        "cell",
        [
            "import numpy as np, ufuse\n@ufuse.jit\ndef f(x):\n    return np.exp(x)",
            "import numpy as np, ufuse\nf = ufuse.jit(lambda x: np.exp(x))",
            "import numpy as np, ufuse\nif True:\n    import math\n"
            "    @ufuse.jit\n    def f(x):\n        return np.exp(x) * math.sqrt(2)",
        ],
    )
    def test_a_cell_may_import_what_its_functions_use(self, shell, cell):
        shell.run_cell(cell)
        assert shell.user_ns["f"].explain(X).mode == "replayed"

    def test_a_cell_is_debugged(self, shell, capsys):
        cell = (
            "def g(x):\n    return np.log(x) * 2\nwith np.errstate(all='ignore'):\n    y = g(x)\n"
        )
        shell.run_cell("def g(x): return 0")
        assert shell.run_cell(f"%%udebug\n{cell}y[1] + 1; y[2:] / y[1]").result.tolist() == [np.inf]
        text = capsys.readouterr().out
        assert re.search(r"Cell In\[.*\]:2: np.log\(x\)\n +infinity: 1 of 3, .* x = 0.0\n", text)
        assert ":5: y[2:] / y[1]\n    infinity: 1 of 1, the first at [0], where y[2:] = 1." in text
        shell.run_cell("with np.errstate(all='ignore'):\n    g(x - 1)")
        assert "NaN" not in capsys.readouterr().out.replace("nan", "")
        assert not shell.run_cell("%%udebug\nimport numpy as np\nnp.zeros(3)[7]").success
        text = capsys.readouterr().out
        assert "IndexError" in text
        assert "no NaN or infinity came up" in text
        assert "ufuse/tools" not in text
        shell.run_cell("%%udebug quickly\n1")
        assert "%%udebug takes no arguments" in "".join(capsys.readouterr())

    def test_differences_are_told(self, shell, capsys, monkeypatch):
        wrong = callees.Handled(np.where, lambda condition, x, y: _core.where(condition, y, x))
        monkeypatch.setitem(handlers.table(), np.where, wrong)
        _core.set_callees(callees.stand_in)
        shell.run_cell("%%ufuse\ndef odd(x):\n    return np.where(x > 1, x, 0)\nodd(x)\n")
        monkeypatch.undo()
        _core.set_callees(callees.stand_in)
        text = capsys.readouterr().out
        assert "odd: DIFFERS from NumPy: result: 2 of 3 elements" in text
        assert "The first operation that differs is `np.where(x > 1, x, 0)` at " in text

    @pytest.mark.parametrize(
        ("ahead", "body", "why"),
        [
            ("", "print('once')", "`print` may do what others see"),
            ("log = []", "log.append(x.sum())", "what is changed there may be `log`"),
            (
                "rng = np.random.default_rng(1)",
                "x = x + rng.random()",
                "`rng` may do what others see",
            ),
            ("import os", "os.listdir('.')", "`os.listdir` may do what others see"),
            ("total = np.zeros(3)", "add(total[:1], x)", "what is changed there may be `total`"),
            ("import itertools; count = itertools.count()", "x = x * next(count)", "`count`"),
        ],
    )
    def test_what_has_effects_runs_once(self, shell, capsys, ahead, body, why):
        shell.run_cell(f"{ahead}\ndef add(x, y):\n    x += y.sum()\n    return x\n")
        shell.run_cell(f"%%ufuse\ndef f(x):\n    {body}\n    return x\nf(x)\nf(x)\n")
        text = capsys.readouterr().out
        assert text.count("f: not compared with NumPy: ") == 1, text
        assert why in text
        assert "same as" not in text
        assert text.count("once") == (2 if "print" in body else 0)
        state = {"log": 2, "count": 2}
        for name in state.keys() & set(ahead.replace(";", " ").split()):
            value = shell.user_ns[name]
            assert (len(value) if name == "log" else next(value)) == state[name]
        if "rng" in ahead:
            expected = np.random.default_rng(1)
            expected.random(2)
            assert shell.user_ns["rng"].random() == expected.random()

    def test_streams_and_arguments_are_as_after_one_call(self, shell, capsys):
        shell.run_cell("np.random.seed(5); v = np.zeros(3)")
        shell.run_cell("%%ufuse\ndef f(x):\n    x += np.random.rand(3)\n    return x\nf(v)\n")
        assert "f: same as NumPy" in capsys.readouterr().out
        expected = np.random.RandomState(5)
        assert shell.user_ns["v"].tolist() == expected.rand(3).tolist()
        shell.run_cell("drawn = np.random.rand()")
        assert shell.user_ns["drawn"] == expected.rand()

    def test_a_cell_that_raises(self, shell, capsys):
        result = shell.run_cell("%%ufuse\ndef bad(x):\n    return nowhere + x\nbad(x)\n")
        assert not result.success
        text = capsys.readouterr()
        assert "name 'nowhere' is not defined" in text.out + text.err
        assert not shell.run_cell("%%ufuse\ndef bad(x)\n    return x\n").success
        shell.run_cell("def nowhere_near(x): return x")
        assert type(shell.user_ns["nowhere_near"]) is type(softmax)

    def test_bench(self, shell, capsys):
        shell.run_cell("%%ufuse --no-check\ndef triple(x):\n    return x * 3\n")
        shell.run_cell("%ubench --seconds 0.01 triple(x)")
        assert "x faster" in (out := capsys.readouterr().out) or "x slower" in out
        for line, words in [
            ("x", "needs a call"),
            ("np.sin(x)", "np.sin was not compiled"),
            ("triple(x", "was never closed"),
            ("--over n triple(np.ones(n))", "--over needs a name and whole numbers"),
            ("--over n=1,2.5 triple(np.ones(n))", "--over needs a name and whole numbers"),
        ]:
            assert not shell.run_cell(f"%ubench {line}").success
            assert words in capsys.readouterr().err

    def test_bench_over_sizes(self, shell, capsys):
        shell.run_cell("%%ufuse --no-check\ndef triple(x):\n    return x * 3\n")
        before = ufuse.get_num_threads()
        shell.run_cell("found = %ubench --seconds 0.01 --over n=10,2e4 triple(np.ones((n, 2)))")
        assert "2/2" in capsys.readouterr().out
        assert ufuse.get_num_threads() == before
        found = shell.user_ns["found"]
        assert "n" not in shell.user_ns
        assert [row.size for row in found.rows] == [10, 20_000]
        assert found.threads == ((1, before) if before > 1 else (1,))
        for row in found.rows:
            assert min(row.numpy, row.limit, *row.ours) > 0
            assert len(row.ours) == len(found.threads)
        assert found.rows[1].limit == pytest.approx(2000 * found.rows[0].limit)
        title, head, *lines = str(found).splitlines()
        assert title == "triple(np.ones((n, 2)))"
        assert head.split()[0] == "n"
        assert [line.split()[0] for line in lines] == ["10", "20,000"]
        shown = found._repr_html_()
        assert "<table>" in shown
        assert "<svg" in shown or "Matplotlib" in shown


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

    def checked(self, monkeypatch, function):
        """What the drop-in module has for one of NumPy's functions where calls are checked."""
        from ufuse import namespace

        monkeypatch.setenv("UFUSE_DEBUG", "check")
        return namespace.Eager(function, f"numpy.{function.__name__}")

    def test_check_mode(self, monkeypatch):
        from ufuse import namespace

        for _ in range(3):
            self.checked(monkeypatch, np.linalg.norm)(X, axis=0)
        self.checked(monkeypatch, np.copyto)(X.copy(), 3)
        monkeypatch.setattr(namespace.Eager, "_run", lambda self, *args, **kwargs: np.float64(1.5))
        total = self.checked(monkeypatch, np.sum)
        with pytest.raises(namespace.Mismatch, match=r"numpy\.sum\(<float64 \(4, 6\)") as caught:
            total(X)
        assert f"{__file__}:" in str(caught.value)
        with pytest.raises(namespace.Mismatch, match="a value is not AxisError: axis 5 is out"):
            total(X, axis=5)

    @pytest.mark.filterwarnings("error")
    def test_check_mode_where_warnings_are_errors(self, monkeypatch):
        with pytest.raises(RuntimeWarning, match="divide by zero encountered in log"):
            self.checked(monkeypatch, np.log)(X * 0)

    def test_check_mode_of_what_cannot_be_done_twice(self, monkeypatch):
        assert self.checked(monkeypatch, np.fromiter)((i for i in range(3)), float).tolist() == [
            0,
            1,
            2,
        ]
        file = io.BytesIO()
        self.checked(monkeypatch, np.save)(file, X)
        assert file.tell() == X.nbytes + 128
        with np.errstate():
            told = self.checked(monkeypatch, np.seterr)(divide="ignore")
            assert told == np.geterr() | {"divide": "warn"}
        with pytest.raises(ValueError, match="could not be broadcast"):
            self.checked(monkeypatch, np.add)(X, np.ones(99))

    def test_looks_like_numpy(self):
        import ufuse.numpy as unp

        for name in np.__all__:
            ours, theirs = getattr(unp, name), getattr(np, name)
            if type(theirs) is type(np):
                continue
            assert repr(ours) == repr(theirs)
            assert getattr(ours, "__module__", None) == getattr(theirs, "__module__", None)
            assert isinstance(ours, np.ufunc) == isinstance(theirs, np.ufunc)
            assert ours.__doc__ == theirs.__doc__


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


def test_copies_are_what_the_originals_are():
    x = np.arange(12.0).reshape(3, 4).copy("F")
    x.flags.writeable = False
    a, b, c, d = copies.copied((x, [x], x[1:], X[:, 1]))
    assert b[0] is a
    assert c.base is a
    assert a.flags.owndata
    assert a.strides == x.strides
    assert [each.flags.writeable for each in (a, c)] == [False, False]
    assert not d.flags.owndata
    assert (a == x).all()
    assert (c == x[1:]).all()
    spread = np.ndarray((3,), "f8", np.zeros(100, np.uint8), 3, (16,))
    (e,) = copies.copied((spread,))
    assert e.strides == (16,)
    assert not e.flags.aligned
    empty = np.empty((0, 3))
    assert copies.copied((empty, empty[:, 1]))[1].shape == (0,)
