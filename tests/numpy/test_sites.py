"""Do names mean in a traced function what they mean in plain Python?

Each call site asks what to run, by what is called and not by its name: identities, tables of
functions, attributes and changes from outside are as in plain Python, and a function without known
source is plain NumPy.
"""

import functools
import importlib
import linecache
import logging
import math
import os
import subprocess
import sys
import threading
import types
from unittest import mock

import numpy as np
import pytest
import ufuse
from same import check, same
from texts import function_of
from ufuse import _core
from ufuse.source import sites, text
from ufuse.tracing import callees, twin
from ufuse.tracing.run import Options, run

BACKENDS = ["compiled"]

X = np.arange(6.0).reshape(2, 3)


def relu(x):
    return np.maximum(x, 0)


def scaled(x):
    return x * scaled.factor


scaled.factor = 2.0
TABLE = {relu: 1.0, np.tanh: 2.0, np.dot: 3.0}


class Layer:
    array = X

    def __init__(self, weight):
        self.weight = weight

    def apply(self, x, act=relu):
        return act(x * self.weight)

    def __call__(self, x):
        return self.apply(x) + 1

    @staticmethod
    def twice(x):
        return x * 2

    @classmethod
    def made(cls, x):
        return cls(x).weight + 1

    @property
    def doubled(self):
        return self.weight * 2


class Derived(Layer):
    def __init__(self, weight):
        super().__init__(weight)
        self.__hidden = 3.0

    def apply(self, x, act=relu):
        return super().apply(x, act) + self.__hidden


def keywords(a, /, b, *args, c=2.0, **more):
    return a + b * c + sum(args) + sum(more.values())


def fib(n, x):
    return x if n < 2 else fib(n - 1, x) + fib(n - 2, x * 2)


@functools.lru_cache
def cached(n):
    return np.arange(n)


def wrapped(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        return f(*args, **kwargs) + 1

    return inner


@wrapped
def decorated(x):
    return np.sqrt(np.abs(x))


def counted(x):
    total = 0.0

    def add(y):
        nonlocal total
        total = total + y.sum()
        return lambda: total + y

    later = [add(x * i) for i in range(3)]
    return [f() for f in later], {k: v for k, v in zip("ab", (x + 1, x + 2), strict=True)}


FUNCTIONS = {
    "identity of a function": lambda x, act=relu: act(x) if act is relu else -x,
    "identity of a module": lambda x, mod=np: (x * 2, mod is np, mod.sin is np.sin),
    "tables of functions": lambda x: (x * TABLE[relu], x * TABLE[np.tanh], x * TABLE[np.dot]),
    "attribute of a function": scaled,
    "identity of arrays": lambda x: (x is X, X is Layer.array, (x + 1) is x, x.T.base is x),
    "class": lambda x: Layer(x).apply(x - 2),
    "class that is callable": lambda x: Layer(x)(x - 2),
    "inherited": lambda x: Derived(x).apply(x - 2),
    "other methods": lambda x: (Layer.twice(x), Layer.made(x), Layer(x).doubled),
    "keywords": lambda x: keywords(x, 2, 3.0, x, c=x, d=1),
    "star": lambda x: keywords(*[x, 1], **{"c": 5.0}),
    "recursion": lambda x: fib(6, x),
    "partial": lambda x: functools.partial(keywords, x)(b=2),
    "lru_cache": lambda x: x[:, cached(2)],
    "decorated": decorated,
    "nested": counted,
    "two on a line": lambda x: (lambda y: y + 1)(x) * (lambda y: y + 1)(x),
    "called back": lambda x: (
        list(map(relu, x)),
        sorted(x.ravel(), key=np.cos),
        max(x[0], key=abs),
    ),
    "reduced": lambda x: functools.reduce(np.add, [x, x, x]),
    "types": lambda x: (type(x) is np.ndarray, type(x.sum()) is np.float64, isinstance(x, Layer)),
    "chosen at run time": lambda x: [getattr(np, name)(x) for name in ("sin", "cos")],
    "a method of an array": lambda x: [f(axis=0) for f in (x.sum, x.mean)],
    "imported inside": lambda x: __import__("numpy").exp(x),
    "scalar types": lambda x: (np.float32(x.sum()), np.float64(x[0, 0]), x.dtype.type(3)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_in_plain_python(name):
    for _ in range(4):
        check(FUNCTIONS[name], X)


def test_ways_into_results():
    x = X.copy()
    native = ufuse.jit(lambda x: counted(x)[0])
    found, wanted = native(x), counted(x)[0]
    assert all(type(a) is np.ndarray and (a == b).all() for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize(
    ("function", "place", "name", "value"),
    [
        (scaled, scaled, "factor", 10.0),
        (lambda x: x * np.some_number, np, "some_number", 3.0),
        (lambda x: x * math.some_number, math, "some_number", 3.0),
        (lambda x: np.mean(x) + 0, np, "mean", lambda x: 99.0),
        (lambda x: x * abs(-2), __builtins__, "abs", lambda x: 7),
        (lambda x: relu(x), None, "relu", lambda x: x - 1),
    ],
    ids=["function", "numpy", "math", "a function of numpy", "builtin", "global"],
)
def test_what_changes_between_calls(function, place, name, value):
    place = globals() if place is None else place
    with (
        mock.patch.object(np, "some_number", 1.0, create=True),
        mock.patch.object(math, "some_number", 1.0, create=True),
    ):
        native = ufuse.jit(function)
        for _ in range(3):
            np.testing.assert_array_equal(native(X), function(X))
        with _patched(place, name, value):
            np.testing.assert_array_equal(native(X), function(X))
        np.testing.assert_array_equal(native(X), function(X))


def _patched(place, name, value):
    if isinstance(place, dict):
        return mock.patch.dict(place, {name: value})
    return mock.patch.object(place, name, value)


class Remembering:
    """Reads and writes its array by its own name for it."""

    def __init__(self, array):
        self.array = array

    def fill(self, value):
        np.asarray(self.array)[...] = value

    def first(self):
        return float(self.array.flat[0])


def test_an_object_changes_an_array():
    def function(x, seen):
        before = x * 2
        seen.fill(7.0)
        return before, x * 2

    x, y = np.zeros(3), np.zeros(3)
    found = ufuse.jit(function)(x, Remembering(x))
    wanted = function(y, Remembering(y))
    np.testing.assert_array_equal(found, wanted)


def test_an_object_looks_at_an_array():
    def function(x, seen):
        x[...] = 3
        return seen.first()

    x = np.zeros(3)
    assert ufuse.jit(function)(x, Remembering(x)) == 3.0


def test_locks():
    lock = threading.Lock()

    def add(total, x):
        with lock:
            total += x

    total, native = np.zeros(100_000), ufuse.jit(add)
    one = np.ones_like(total)
    threads = [
        threading.Thread(target=lambda: [native(total, one) for _ in range(20)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (total == 80).all()


def test_other_threads_see_what_was_written():
    def function(x, ready, seen):
        x[:] = 7
        ready.set()
        return seen.wait(20)

    x, ready, seen, found = np.zeros(2), threading.Event(), threading.Event(), []
    watcher = threading.Thread(
        target=lambda: (ready.wait(20), found.append(x.copy()), seen.set()), daemon=True
    )
    watcher.start()
    assert ufuse.jit(function)(x, ready, seen)
    watcher.join()
    assert (found[0] == 7).all()


def test_iterators_read_when_they_are_asked():
    def function(x):
        pairs, numbers, doubled = zip(x, x, strict=True), map(float, x), (v * 2 for v in x)
        next(pairs)
        x[...] = 7
        return float(next(pairs)[0]), next(numbers), float(next(doubled))

    assert ufuse.jit(function)(np.arange(3.0)) == (7.0, 7.0, 14.0)


PACKAGE = """
import numpy as np

seen = []


def helper(x):
    seen.append(type(x) is np.ndarray)
    return x * 2


def outer(x):
    return helper(x) + 1
"""


def test_other_packages_get_real_arrays_unless_they_are_jitted(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    name = f"installed_{tmp_path.name}"
    (folder / f"{name}.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(folder)
    package = importlib.import_module(name)
    native = ufuse.jit(lambda x: package.outer(x) * 2)
    np.testing.assert_array_equal(native(X), (X * 2 + 1) * 2)
    assert any("outer" in note.detail for note in native.explain(X).notes)
    ufuse.jit(package.outer)
    assert not any("outer" in note.detail for note in native.explain(X).notes)
    np.testing.assert_array_equal(native(X), (X * 2 + 1) * 2)
    assert all(package.seen)


def test_there_is_one_true_and_one_false():
    def function(x):
        same = (x > 0).any() is (x > -1).any()
        return x * 2 if x.any() is np.True_ else x - 1, same

    for value in (1.0, 0.0, 1.0, 0.0, 0.0):
        check(function, np.full(3, value))


class Keeper:
    """Stands for one function, and alone keeps another one alive."""

    def __init__(self, kept):
        self.kept = kept

    def __call__(self, *args):
        return args


def test_what_is_known_of_functions_is_forgotten_all_at_once():
    kept, callers = ([lambda v: v for _ in range(200)] for _ in range(2))
    keepers = {id(f): Keeper(g) for f, g in zip(callers, kept)}

    def twin():
        for each in (*kept, *callers):
            _core.site(each, 1.0)

    try:
        _core.set_callees(lambda f: keepers.get(id(f)))
        run(twin, (), {}, Options())
        kept.clear()
        keepers.clear()
    finally:
        _core.set_callees(callees.stand_in)


# Source.


def test_without_source():
    space = {"np": np}
    exec("def function(x):\n    return np.sin(x) + 1\n", space)
    native = ufuse.jit(space["function"])
    np.testing.assert_array_equal(native(X), np.sin(X) + 1)
    found = native.explain(X)
    assert found.mode == "plain"
    assert "source" in found.reason


class Made:
    __factor = 3.0
    functions = tuple(lambda x, n=n: x * (n + Made.__factor) for n in range(2))

    def of_comprehensions(self):
        here = [lambda x, n=n: x * n + self.__factor for n in range(2)]
        return [*here, *(lambda x, n=n: x - n for n in range(2))]


def test_functions_made_in_comprehensions_have_source():
    for function in (*Made.functions, *Made().of_comprehensions()):
        assert twin.scanned(function).reason is None
        same(ufuse.jit(function)(np.arange(3.0)), function(np.arange(3.0)))


def test_a_source_is_looked_for_once(monkeypatch):
    """There may be thousands of functions with the same code."""
    names = {}
    exec("def made():\n    return lambda x: x + 1", names)
    assert twin.scanned(names["made"]()).reason == "no_source"
    monkeypatch.setattr(sites, "source_of", None)
    assert twin.scanned(names["made"]()).reason == "no_source"


def test_a_source_that_has_changed():
    function = function_of("def function(x):\n    return x + 1\n", {})
    name = function.__code__.co_filename
    size, time, _, _ = linecache.cache[name]
    linecache.cache[name] = size, time, ["def function(x):\n", "    return x + 2\n"], name
    native = ufuse.jit(function)
    np.testing.assert_array_equal(native(X), X + 1)
    assert "is not what was imported" in native.explain(X).reason


PROGRAM = """
import module, numpy as np, ufuse
from ufuse.source import text

if {unreadable}:
    text._lines = lambda function: []
for each in (module.function, module.Class().method, module.nested(2.0)):
    native = ufuse.jit(each)
    x = np.arange(6.0)
    assert native(x).tobytes() == each(x).tobytes()
    found = native.explain(x)
    assert (found.mode == "plain") == {plain} and not found.notes, found
"""
MODULE = """
import numpy as np

def function(x, scale=3.0):
    return np.tanh(x * scale) + np.linalg.norm(x, axis=0)

class Class:
    def method(self, x):
        return [relu(each) for each in (x, -x)][0] * self.__half()

    def __half(self):
        return 0.5

def relu(x):
    return np.maximum(x, 0)

def nested(factor):
    return lambda x: x * factor
"""


def test_a_later_process_reads_no_source(tmp_path):
    (tmp_path / "module.py").write_text(MODULE)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    environment["UFUSE_CACHE_DIR"] = str(tmp_path / "cache")

    def run(unreadable, plain):
        program = PROGRAM.format(unreadable=unreadable, plain=plain)
        subprocess.run([sys.executable, "-c", program], env=environment, check=True)

    run(unreadable=True, plain=True)
    run(unreadable=False, plain=False)
    run(unreadable=True, plain=False)
    text_of_module = MODULE.replace("3.0", "4.0").replace("x * factor", "x / factor")
    (tmp_path / "module.py").write_text(text_of_module)
    run(unreadable=False, plain=False)


def test_most_of_numpy_has_source():
    functions = [
        f for f in vars(np).values() if isinstance(getattr(f, "__wrapped__", f), types.FunctionType)
    ]
    functions = [getattr(f, "__wrapped__", f) for f in functions]
    functions = [f for f in functions if not f.__code__.co_filename.startswith("<")]
    found = 0
    for function in functions:
        try:
            text.source_of(function)
            found += 1
        except text.NoSource:
            continue
    assert found > 0.98 * len(functions) > 100


def test_made_code_is_known_and_looks_like_its_original():
    hooks = sites.Hooks(lambda f, *a, **k: f(*a, **k), lambda a, b: a is b, lambda c: c, None)
    made = sites.instrumented(counted, hooks).code
    assert sites.is_made(made)
    assert not sites.is_made(counted.__code__)
    assert made.co_filename == __file__
    assert made.co_firstlineno == counted.__code__.co_firstlineno
    assert made.co_qualname == "counted"


def test_tracebacks_and_warnings_show_the_users_lines():
    def function(x):
        y = x.sum() + 1
        return y + np.ones((7, 5)) @ x

    check(function, X)
    check(lambda x: np.log(x - 9) + Layer(x).nothing, X)


def never_last(x):
    return x + 1, ((lambda e: e * 3) if (not True) else len)(x)


def never_in_a_helper(x):
    def helper(e):
        def inner(e):
            return e * 2
            return lambda: e

        return (lambda e: e + 1)(inner(e)), ((lambda e: e) if False else inner)(e)

    return helper(x)


def never_of_two(x):
    return (lambda e: e + 1)(x), ((lambda e: e - 1) if 0 else (lambda e: e * 2))(x)


def never_first(x):
    if not 1:
        return lambda e: e + 1
    return (lambda e: e * 2)(x + 1)


@pytest.mark.parametrize(
    "function", [never_last, never_in_a_helper, never_of_two, never_first], ids=lambda f: f.__name__
)
def test_code_that_is_never_reached(function):
    """Python leaves it out, but only what stands last: in the code with call sites it may stay."""
    jitted = ufuse.jit(function)
    x = np.arange(4.0)
    for _ in range(3):
        same(jitted(x), function(x))
    assert jitted.explain(x).mode != "plain"


def test_functions_beside_a_loop_in_a_try():
    def function(x):
        try:
            for _ in range(2):  # its head may return, which runs what stands behind `finally`
                x = x + 1
            total = sum(float(e) for e in x.cumsum())
        finally:
            text = " ".join(f"{e:.3g}" for e in x)
            best = max([x, x * 2], key=lambda e: e.sum())
        return total, text, best, sorted([3, 1, 2], key=lambda e: -e)

    check(function, np.arange(4.0))


def test_a_defect_of_the_rewriting_is_no_error_of_the_users(monkeypatch):
    def defect(*_):
        raise KeyError("something that nobody thought of")

    def function(x):
        return x * 2 + 1

    # What is raised in another file would be a signal handler's exception.
    defect.__code__ = defect.__code__.replace(co_filename=sites.__file__)
    monkeypatch.setattr(sites, "instrumented", defect)
    x = np.arange(4.0)
    jitted = ufuse.jit(function)
    same(jitted(x), function(x))
    found = jitted.explain(x)
    assert found.mode == "plain"
    assert "A defect of ufuse" in found.reason
    assert "something that nobody thought of" in found.reason
    with pytest.raises(ufuse.InternalError, match="something that nobody thought of"):
        ufuse.jit(function, debug=True)(x)


def spread_calls(x, which):
    def given(*args, k=0, **rest):
        return args, k, rest

    def grown(values):
        values.append(x * 3)
        return {"k": 1}

    values = [x * 2]
    calls = [
        lambda: given(*values, **grown(values)),
        lambda: given(*(v * 2 for v in x), **{"k": x}),
        lambda: (np.add(*[x, x], **{"out": x}), x.reshape(*(1, 3)), x.sum(*(0,), **{})),
        lambda: print(*x.sum()),
        lambda: print(1, *x.sum()),
        lambda: dict(**x),
        lambda: x.sum(**x),
        lambda: dict(a=1, **{"a": x}),
        lambda: given(**{"k": 1}, **{"k": 2}),
        lambda: given(**{1: x}),
        lambda: np.add(*x.sum(), **3),
        lambda: given(*x.missing),
        lambda: [].append(*None),
        lambda: x(*x),
    ]
    return calls[which]()


@pytest.mark.parametrize("which", range(14))
def test_stars_in_calls(which):
    """Errors name what is called, and the arguments are taken apart when all are known."""
    for _ in range(3):
        check(spread_calls, X[:3], which)


# The stack.


def stack():
    """The functions that run, with the lines where they are, from the innermost one on."""
    frame, found = sys._getframe(1), []
    while frame.f_code is not called_with_a_stack.__code__:
        found.append((frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno))
        frame = frame.f_back
    return found


class Stacked:
    def __init__(self, x):
        self.found, self.x = stack(), x * 2

    def method(self, x):
        return x + 1, stack()

    def __call__(self, x):
        return x + 2, stack()

    @property
    def found_again(self):
        return stack()

    @classmethod
    def made(cls, x):
        return cls(x + 1)


def helper(x):
    return x + 1, stack()


jitted_helper = ufuse.jit(helper)


def looks_at_callbacks(x):
    found = []

    def key(value):
        found.append(stack())
        return value

    sorted([2, 1], key=key)
    np.apply_along_axis(lambda row: (found.append(stack()), row)[1], 0, x)
    list(map(key, [1]))
    return x * 2, found


STACKS = [
    lambda x: (x + 1, stack()),
    lambda x: helper(x * 2),
    lambda x: jitted_helper(x * 2),
    lambda x: (lambda made: (made.x, made.found, made.found_again))(Stacked(x)),
    lambda x: (lambda made: (made.x, made.found))(Stacked.made(x)),
    lambda x: Stacked(x).method(x),
    lambda x: Stacked(x)(x),
    lambda x: [(y.sum(), stack()) for y in (x, x + 1)],
    lambda x: (float(x.sum()), stack(), x.max() > 0 and stack()),
    looks_at_callbacks,
]


def called_with_a_stack(function, x):
    return function(x)


@pytest.mark.parametrize("function", STACKS, ids=range(len(STACKS)))
def test_the_stack_is_that_of_plain_python(function):
    native = ufuse.jit(function)
    expected = called_with_a_stack(function, X)
    for _ in range(3):
        answer = called_with_a_stack(native, X)
        assert repr(answer) == repr(expected)


def test_the_line_of_a_log_is_the_caller_s(caplog):
    def function(x):
        logging.getLogger("stacks").warning("here", stacklevel=2)
        return x + 1

    called_with_a_stack(ufuse.jit(function), X)
    assert [record.funcName for record in caplog.records] == ["called_with_a_stack"]
