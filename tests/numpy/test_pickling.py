"""Does a jitted function get into another process, or through ``copy``, as the plain one does?

``elsewhere`` unpickles in a process of its own, in which nothing of this one is known.
"""

import asyncio
import copy
import functools
import inspect
import io
import linecache
import pickle
import pickletools
import subprocess
import sys
import textwrap
import threading
import types

import numpy as np
import pytest
import ufuse
from same import same

X = np.arange(5.0)
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
LOAD = """
import asyncio, inspect, pickle, sys
import numpy as np, ufuse
X = np.arange(5.0)
got = pickle.loads(sys.stdin.buffer.read())
answer = {}
sys.stdout.buffer.write(pickle.dumps(answer))
"""
# What a function from nowhere looks like: the text is in the memory of this process only.
NOTEBOOK = """
import numpy as np, ufuse
from functools import partial

SCALE = 3.0

def helper(x):
    return np.tanh(x) + SCALE

ACTIVATIONS = {"helper": helper}

@ufuse.jit
def f(x):
    return helper(x) * 2

@ufuse.jit
def by_table(x):
    return ACTIVATIONS["helper"](x) * 2

one, other = ufuse.jit(lambda x: helper(x) * 2), ufuse.jit(lambda x: x * 5)

@ufuse.jit(numerics="fast")
def power(x, n):
    return x if n == 1 else x * power(x, n - 1)

class Model:
    def __init__(self):
        self.weight = 2.0

    @ufuse.jit
    def apply(self, x):
        return self.shifted(x) * self.weight + len(Model.__name__)

    def shifted(self, x):
        return np.roll(x, 1)
"""


@ufuse.jit
def doubled(x):
    return x * 2


@ufuse.jit
def replaced(x):
    return x * 3


first = replaced


@ufuse.jit
def replaced(x):
    return x * 4


def plain(x, factor=2.0):
    return x * factor


class Model:
    @ufuse.jit
    def apply(self, x):
        return x + 1


class Special(type(doubled)):
    """A jitted function of the user's own kind."""


def elsewhere(data, answer):
    """The value of an expression of ``got``, what was pickled, in a process that knows nothing."""
    run = subprocess.run(
        [sys.executable, "-c", LOAD.format(answer)], input=data, capture_output=True, timeout=100
    )
    assert run.returncode == 0, run.stderr.decode()
    return pickle.loads(run.stdout)


@pytest.fixture(autouse=True)
def backend():
    """The one that everybody has: what is pickled does not depend on it."""


@pytest.fixture
def cloudpickle():
    return pytest.importorskip("cloudpickle")


@pytest.fixture(scope="module")
def notebook():
    """Functions of ``__main__`` whose text no other process can read."""
    main, name = sys.modules["__main__"], "<a cell>"
    lines = NOTEBOOK.splitlines(keepends=True)
    linecache.cache[name] = (len(NOTEBOOK), None, lines, name)
    kept = dict(vars(main))
    exec(compile(NOTEBOOK, name, "exec"), vars(main))
    yield main
    vars(main).clear()
    vars(main).update(kept)
    del linecache.cache[name]


class TestByName:
    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_of_a_module(self, protocol):
        for f in (doubled, Model.apply):
            assert pickle.loads(pickle.dumps(f, protocol)) is f

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_of_main(self, notebook, protocol):
        for f in (notebook.f, notebook.Model.apply):
            assert pickle.loads(pickle.dumps(f, protocol)) is f
            written = io.BytesIO()
            pickle._Pickler(written, protocol).dump([f, {"again": f}])
            again = pickle._loads(written.getvalue())
            assert again[0] is f
            assert again[1]["again"] is f

    def test_a_module_of_ours_is_as_short_as_a_plain_function(self, cloudpickle):
        assert len(pickle.dumps(doubled)) == len(pickle.dumps(plain)) + 2
        assert len(cloudpickle.dumps(doubled)) == len(cloudpickle.dumps(plain)) + 2

    def test_bound_method(self):
        same(pickle.loads(pickle.dumps(Model().apply))(X), X + 1)

    def test_name_that_leads_elsewhere(self):
        with pytest.raises(pickle.PicklingError, match="not the same object"):
            pickle.dumps(first)

    def test_name_that_changes(self, notebook):
        f = notebook.one
        with pytest.raises(pickle.PicklingError):
            pickle.dumps(f)
        f.__qualname__ = "one"
        assert pickle.loads(pickle.dumps(f)) is f
        f.__qualname__, notebook.uno = "uno", f
        del notebook.one
        assert pickle.loads(pickle.dumps(f)) is f
        f.__qualname__, notebook.one = "<lambda>", f

    @pytest.mark.parametrize("method", ["spawn", "forkserver"])
    def test_processes_that_run_the_script_again(self, tmp_path, method):
        script = tmp_path / "script.py"
        script.write_text(
            textwrap.dedent(f"""
            import multiprocessing, numpy as np, ufuse
            X = np.arange(5.0)

            @ufuse.jit
            def f(x):
                return np.sin(x) * 2

            class Model:
                @ufuse.jit
                def apply(self, x):
                    return x + 1

            if __name__ == "__main__":
                with multiprocessing.get_context("{method}").Pool(1) as pool:
                    got = pool.map(f, [X]) + pool.map(Model().apply, [X])
                    assert pool.apply(getattr, (Model, "apply")) is Model.apply
                assert (got[0] == np.sin(X) * 2).all() and (got[1] == X + 1).all()
                print("done")
            """)
        )
        run = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=100)
        assert run.stdout == "done\n", run.stderr

    def test_by_many_threads_at_once(self, notebook):
        seen = []

        def work():
            seen.append(all(pickle.loads(pickle.dumps(notebook.one)) for _ in range(20)))

        notebook.one.__qualname__ = "one"  # no way to it has been made yet
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        notebook.one.__qualname__ = "<lambda>"
        assert seen == [True] * 4


class TestByValue:
    @pytest.mark.parametrize("name", ["f", "by_table", "one"])
    def test_of_main_with_its_source(self, notebook, cloudpickle, name):
        data = cloudpickle.dumps(vars(notebook)[name])
        value, mode, again = elsewhere(
            data, "(got(X), got.explain(X).mode, type(got.__wrapped__).__name__)"
        )
        same(value, vars(notebook)[name](X))
        assert mode in ("traced", "replayed")
        assert again == "function"

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_in_any_protocol(self, notebook, cloudpickle, protocol):
        got = pickle.loads(cloudpickle.dumps(notebook.f, protocol))
        assert got is not notebook.f
        same(got(X), notebook.f(X))

    def test_two_on_a_line(self, notebook, cloudpickle):
        got = elsewhere(cloudpickle.dumps([notebook.one, notebook.other]), "[f(X) for f in got]")
        same(got, [notebook.one(X), notebook.other(X)])

    def test_names_itself(self, notebook, cloudpickle):
        power = notebook.power
        told = "(got(X, 3), got.__wrapped__.__globals__['power'] is got, got._options.numerics)"
        same(elsewhere(cloudpickle.dumps(power), told), (X * X * X, True, "fast"))
        told = "(got(X, 3), got.__globals__['power'].__wrapped__ is got)"
        same(elsewhere(cloudpickle.dumps(power.__wrapped__), told), (X * X * X, True))
        told = "(got[0] is got[1]['again'], got[2] is got[0].__wrapped__)"
        data = cloudpickle.dumps([power, {"again": power}, power.__wrapped__])
        assert elsewhere(data, told) == (True, True)

    def test_class_and_objects(self, notebook, cloudpickle):
        model = notebook.Model()
        told = "(got.apply(X), type(got).apply.explain(got, X).mode, type(got).apply.__qualname__)"
        expected = (model.apply(X), "traced", "Model.apply")
        same(elsewhere(cloudpickle.dumps(model), told), expected)
        same(elsewhere(cloudpickle.dumps(model.apply), "got(X)"), model.apply(X))

    def test_closure(self, cloudpickle):
        def outer(factor):
            @ufuse.jit
            def inner(x):
                return x * factor

            return inner

        same(elsewhere(cloudpickle.dumps(outer(4.0)), "got(X)"), X * 4.0)

    def test_name_that_leads_elsewhere(self, notebook, cloudpickle):
        old = notebook.f
        notebook.f = None
        try:
            expected = old(X)
            same(elsewhere(cloudpickle.dumps(old), "got(X)"), expected)
        finally:
            notebook.f = old

    def test_registered_module(self, cloudpickle, tmp_path, monkeypatch):
        (tmp_path / "far_away.py").write_text(
            "import ufuse\n@ufuse.jit\ndef f(x):\n    return helper(x) * 2\n"
            "def helper(x):\n    return x + 1\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        import far_away

        assert b"helper" not in cloudpickle.dumps(far_away.f)
        cloudpickle.register_pickle_by_value(far_away)
        try:
            data = cloudpickle.dumps(far_away.f)
            assert pickle.loads(pickle.dumps(far_away.f)) is far_away.f
        finally:
            cloudpickle.unregister_pickle_by_value(far_away)
        (tmp_path / "far_away.py").unlink()
        value, mode, known = elsewhere(
            data, "(got(X), got.explain(X).mode, 'far_away' in sys.modules)"
        )
        same(value, (X + 1) * 2)
        assert mode in ("traced", "replayed")
        assert not known

    def test_without_source(self, cloudpickle):
        space = {"__name__": "__main__"}
        exec("def f(x):\n    return x + 1", space)
        f = ufuse.jit(space["f"])
        value, mode, reason = elsewhere(
            cloudpickle.dumps(f), "(got(X), got.explain(X).mode, got.explain(X).reason)"
        )
        same(value, X + 1)
        assert mode == "plain"
        assert "source of the function is not known" in reason

    def test_text_of_others_under_the_same_name(self, cloudpickle):
        made = []
        for text in ("def f(x):\n    return x + 1\n", "\ndef f(x):\n    return x * 7\n"):
            linecache.cache["<shared>"] = (len(text), None, text.splitlines(True), "<shared>")
            space = {"__name__": "__main__"}
            exec(compile(text, "<shared>", "exec"), space)
            made.append(cloudpickle.dumps(ufuse.jit(space["f"])))
        del linecache.cache["<shared>"]
        got = [pickle.loads(data) for data in made]
        again = pickle.loads(cloudpickle.dumps(got))
        for f, expected in zip(got + again, (X + 1, X * 7) * 2):
            same(f(X), expected)
            assert f.explain(X).mode != "plain"

    def test_own_attributes_and_kind(self, notebook, cloudpickle):
        notebook.f.calls = [3]
        try:
            assert elsewhere(cloudpickle.dumps(notebook.f), "got.calls") == [3]
        finally:
            del notebook.f.calls
        special = Special(plain, doubled._options)
        special.note = "mine"
        got = pickle.loads(pickle.dumps(special))
        assert type(got) is Special
        assert got.note == "mine"
        assert got.__wrapped__ is plain
        same(got(X), X * 2.0)

    def test_same_bytes_each_time(self, notebook, cloudpickle):
        for f in (notebook.f, notebook.power, doubled):
            assert cloudpickle.dumps(f) == cloudpickle.dumps(f)

    def test_joblib(self, tmp_path):
        pytest.importorskip("joblib")
        script = tmp_path / "script.py"
        script.write_text(
            textwrap.dedent("""
            import joblib, numpy as np, ufuse
            X = np.arange(5.0)

            def helper(x):
                return np.sin(x) + 1

            @ufuse.jit(numerics="fast")
            def f(x):
                return helper(x) * 2

            def task(f, x):
                return f(x), f.explain(x).mode, f._options.numerics

            # Without `if __name__ == "__main__"`: nothing runs this script again.
            functions = [f, ufuse.jit(lambda x: helper(x) - 1)]
            calls = [joblib.delayed(task)(each, X) for each in functions]
            for (ours, mode, numerics), each in zip(joblib.Parallel(2)(calls), functions):
                assert (ours == each.__wrapped__(X)).all() and mode != "plain"
                assert numerics == each._options.numerics
            back = joblib.Parallel(2)([joblib.delayed(lambda f: f)(f)])[0]
            assert (back(X) == f(X)).all()
            assert joblib.hash(f) == joblib.hash(f)
            print("done")
            """)
        )
        run = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=100)
        assert run.stdout == "done\n", run.stderr


class TestCopies:
    def test_of_functions_are_themselves(self):
        for f in (doubled, Model.apply, ufuse.jit(lambda x: x), ufuse.jit(np.sin)):
            assert copy.copy(f) is f
            assert copy.deepcopy(f) is f
            assert copy.deepcopy({"f": [f]})["f"][0] is f

    def test_of_partials_are_new(self):
        bound = [2.0]
        f = ufuse.jit(functools.partial(lambda x, by: x * by[0], by=bound), numerics="fast")
        f.note = ["mine"]
        deep, shallow = copy.deepcopy(f), copy.copy(f)
        bound[0] = 5.0
        same([deep(X), shallow(X)], [X * 2.0, X * 5.0])
        assert deep._options.numerics == "fast"
        assert deep.note == ["mine"]
        assert deep.note is not f.note
        assert shallow.note is f.note


async def waits(x):
    return np.sin(x) * 2


async def gives_later(x):
    yield x * 2


def gives(x):
    yield x * 2


class TestCoroutines:
    @pytest.mark.parametrize(
        "f",
        [
            waits,
            gives_later,
            gives,
            plain,
            functools.partial(waits),
            functools.partial(gives),
            types.MethodType(waits, X),
            Model().apply,
            functools.partial(plain),
        ],
    )
    def test_are_known_for_what_they_are(self, f):
        ours = ufuse.jit(f)
        for question in (
            inspect.iscoroutinefunction,
            inspect.isgeneratorfunction,
            inspect.isasyncgenfunction,
            asyncio.iscoroutinefunction,
        ):
            assert question(ours) == question(f)
        assert inspect.signature(ours) == inspect.signature(f)

    def test_awaited(self, cloudpickle):
        f = ufuse.jit(waits)
        same(asyncio.run(f(X)), np.sin(X) * 2)

        class Service:
            @ufuse.jit
            async def answer(self, x):
                return doubled(await f(x))

        assert inspect.iscoroutinefunction(Service().answer)
        same(asyncio.run(Service().answer(X)), np.sin(X) * 2 * 2)
        same(asyncio.run(pickle.loads(cloudpickle.dumps(f))(X)), np.sin(X) * 2)

    def test_generators(self):
        async def collect():
            return [value async for value in ufuse.jit(gives_later)(X)]

        same(asyncio.run(collect()), [X * 2])
        same(list(ufuse.jit(gives)(X)), [X * 2])


def is_free_of_us(data):
    text = io.StringIO()
    pickletools.dis(data, text)
    return "ufuse" not in text.getvalue().replace(__file__, "this file")


class TestWhileTraced:
    """What traced code pickles and copies is what plain Python would."""

    def test_values(self):
        @ufuse.jit
        def f(x):
            y = x * 2
            copied = copy.deepcopy([y, x])
            sent = pickle.loads(pickle.dumps((y, {"x": x})))
            return copied[0] + sent[1]["x"], copied[1] is x

        for _ in range(3):
            same(f(X), (X * 3, False))

    def test_jitted_functions(self, cloudpickle):
        @ufuse.jit
        def f(x):
            there = pickle.loads(pickle.dumps(doubled)) is doubled
            return (
                there,
                cloudpickle.loads(cloudpickle.dumps(doubled))(x),
                copy.copy(plain) is plain,
            )

        for _ in range(3):
            same(f(X), (True, X * 2, True))

    def test_functions_that_it_makes(self, cloudpickle):
        def f(x):
            def inner(y):
                return np.sin(y) * 2 + x.sum()

            table = {"a": [lambda y: inner(y) + 1]}
            part = functools.partial(inner)
            data = cloudpickle.dumps([inner, table, part])
            sent, tables, parts = cloudpickle.loads(data)
            results = [g(x) for g in (sent, tables["a"][0], parts, inner, table["a"][0])]
            return is_free_of_us(data), copy.deepcopy(inner) is inner, results

        ours = ufuse.jit(f)
        for _ in range(3):
            same(ours(X), f(X))
        assert ours.explain(X).mode == "traced"

    def test_functions_that_it_makes_have_their_code(self):
        def f(x, seen):
            def one(y):
                return y * 2

            @functools.wraps(one)
            def two(y, *, by=3.0, _other=one):
                return _other(y) * by

            seen.append((one.__code__, two.__code__, two.__kwdefaults__))
            return two(one(x)), one is two.__wrapped__

        ours = ufuse.jit(f)
        for _ in range(3):
            mine, theirs = [], []
            same(ours(X, mine), f(X, theirs))
            assert mine[0][0] is theirs[0][0]
            assert mine[0][1] is theirs[0][1]
            assert mine[0][2]["by"] == 3.0

    def test_returned_functions(self, cloudpickle):
        @ufuse.jit
        def make(x):
            y = x * 2

            def other(z):
                return z + y

            def inner(z):
                return np.sin(other(z))

            return inner

        inner = make(X)
        assert is_free_of_us(cloudpickle.dumps(inner))
        same(cloudpickle.loads(cloudpickle.dumps(inner))(X), np.sin(X + X * 2))
