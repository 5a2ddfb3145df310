"""What can be jitted, and does the result still look like the function that it was?"""

import copy
import datetime
import decimal
import functools
import hashlib
import inspect
import io
import json
import pickle
import sys
import threading
import time
import traceback
import types
import typing
import zlib
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
import ufuse
from same import check, jitted, same

BACKENDS = ["compiled"]

Pair = namedtuple("Pair", "left right")
X = np.linspace(-2.0, 3.0, 24).reshape(4, 6)
SUM = np.ndarray.sum


@ufuse.jit
def scaled(x, factor=2.0, *, shift=1.0):
    """Scale and shift."""
    return x * factor + shift


class Model:
    weight = np.arange(6.0)

    def __init__(self):
        self.bias = np.float64(0.5)

    @ufuse.jit
    def apply(self, x):
        return np.tanh(x * self.weight) + self.bias

    @staticmethod
    @ufuse.jit
    def static(x):
        return x + 1

    @ufuse.jit
    @staticmethod
    def static_outside(x):
        return x + 1

    @classmethod
    @ufuse.jit
    def of_class(cls, x):
        return x * cls.weight

    @ufuse.jit
    @property
    def doubled(self):
        """Twice the weight."""
        return self.weight * 2

    @ufuse.jit
    def remember(self, x):
        self.last = x * 2
        return self.last

    def __call__(self, x):
        return np.sqrt(x * x + self.bias)


def plain_sum(x):
    return x + x.sum()


class TestLooks:
    def test_metadata(self):
        assert scaled.__name__ == "scaled"
        assert scaled.__doc__ == "Scale and shift."
        assert scaled.__module__ == __name__
        assert scaled.__qualname__ == "scaled"
        assert str(inspect.signature(scaled)) == "(x, factor=2.0, *, shift=1.0)"
        assert scaled.__wrapped__(1) == 3

    def test_pickled_by_reference(self):
        assert pickle.loads(pickle.dumps(scaled)) is scaled

    def test_annotations(self):
        def f(x: np.ndarray, n: int = 3) -> np.ndarray:
            return x * n

        assert typing.get_type_hints(ufuse.jit(f)) == typing.get_type_hints(f)
        assert ufuse.jit(lambda x: x).__annotations__ == {}
        assert ufuse.jit(np.sin).__annotations__ == {}

        @functools.singledispatch
        def dispatched(x):
            return None

        dispatched.register(ufuse.jit(f))
        same(dispatched(X), X * 3)

    def test_pickled_with_the_original(self):
        for f in (
            ufuse.jit(np.linalg.norm),
            ufuse.jit(plain_sum),
            ufuse.jit(functools.partial(plain_sum)),
            ufuse.jit(Model().__call__),
        ):
            again = pickle.loads(pickle.dumps(f))
            assert type(again) is type(f)
            assert again._options == f._options
            same(again(X), f(X))
            same(copy.deepcopy(f)(X), f(X))
        assert (
            pickle.loads(pickle.dumps(ufuse.jit(plain_sum, numerics="fast")))._options[0] == "fast"
        )

    def test_jitted_twice(self):
        f = ufuse.jit(ufuse.jit(plain_sum), numerics="fast")
        assert f.__wrapped__ is plain_sum
        assert f._options.numerics == "fast"

    def test_state_of_a_callable_object_is_its_own(self):
        class Odd:
            def __init__(self):
                self._plan = self._dispatcher = self._options = self.explain = "mine"

            def __call__(self, x):
                return x * 2

        f = ufuse.jit(Odd())
        same(f(X), X * 2)
        assert f.explain(X).mode == "replayed"

    def test_options(self):
        f = ufuse.jit(numerics="fast")(plain_sum)
        np.testing.assert_allclose(f(X), plain_sum(X))
        with pytest.raises(ValueError, match="numerics"):
            ufuse.jit(numerics="sloppy")
        with pytest.raises(TypeError, match="callable"):
            ufuse.jit(3)
        with pytest.raises(TypeError, match="not the class 'Model'; decorate its methods"):
            ufuse.jit(Model)

    def test_wrong_arguments(self):
        check(lambda: scaled.__wrapped__(), _jitted=lambda: scaled())
        check(lambda: scaled.__wrapped__(X, oops=1), _jitted=lambda: scaled(X, oops=1))


class TestKinds:
    def test_function_with_keywords(self):
        check(scaled.__wrapped__, X, _jitted=scaled)
        check(scaled.__wrapped__, X, 3, shift=2, _jitted=scaled)

    def test_lambda(self):
        check(lambda x: (x > 0) * x, X)

    def test_binding_as_of_functions(self):
        class Model:
            @ufuse.jit
            def apply(self, x):
                return x + self.shift

            shift = 3
            kept = staticmethod(ufuse.jit(lambda x: x - 1))

        jitted = vars(Model)["apply"]
        model, x = Model(), np.arange(3.0)
        assert Model.apply is jitted
        assert jitted.__get__(None, Model) is jitted
        assert type(model.apply) is types.MethodType
        assert model.apply.__self__ is model
        assert model.apply.__func__ is jitted
        assert model.apply == model.apply
        for _ in range(3):
            same(model.apply(x), x + 3)
            same(Model.apply(model, x), x + 3)
            same(model.apply(x=x), x + 3)
            same(model.kept(x), x - 1)
        model.apply = ufuse.jit(lambda x: x)  # of the object: not bound
        same(model.apply(x), x)
        with pytest.raises(TypeError):
            jitted.__get__(None, None)

    def test_method(self):
        model = Model()
        same(model.apply(X), np.tanh(X * Model.weight) + model.bias)
        same(Model.apply(model, X), np.tanh(X * Model.weight) + model.bias)
        same(Model.static(X), X + 1)
        same(Model().static(X), X + 1)
        same(Model.static_outside(X), X + 1)
        same(Model.of_class(X), X * Model.weight)
        same(model.doubled, Model.weight * 2)
        assert Model.doubled.__doc__ == "Twice the weight."

    def test_attribute_is_stored(self):
        model = Model()
        result = model.remember(X)
        assert type(model.last) is np.ndarray
        assert model.last is result
        assert model.remember.explain(model, X).mode == "replayed"

    def test_closure(self):
        factor = np.arange(6.0)

        def helper(x):
            return x * factor

        check(lambda x: helper(x) + 1, X)

    def test_closure_that_changes(self):
        k = 1

        @ufuse.jit
        def f(x):
            return x * k

        same(f(X), X * 1)
        k = 5
        same(f(X), X * 5)

    def test_partial(self):
        f = functools.partial(scaled.__wrapped__, factor=5.0)
        check(f, X, _jitted=ufuse.jit(f))
        check(f, X, factor=1.0, _jitted=ufuse.jit(f))

    def test_callable_object(self):
        model = Model()
        check(model, X, _jitted=ufuse.jit(model))
        check(model.__call__, X, _jitted=ufuse.jit(model.__call__))

    def test_function_of_numpy(self):
        check(np.linalg.norm, X, axis=1, _jitted=ufuse.jit(np.linalg.norm))
        check(np.hypot, X, X, _jitted=ufuse.jit(np.hypot))

    def test_nested(self):
        check(lambda x: scaled(x) * scaled(x, 3.0), X)
        assert ufuse.jit(lambda x: scaled(x) * 2).explain(X).mode != "plain"

    def test_recursion(self):
        @ufuse.jit
        def power(x, n):
            return x if n == 1 else x * power(x, n - 1)

        same(power(X, 4), X * (X * (X * X)))

    def test_generator_runs_plain(self):
        def generate(x):
            yield x * 2
            yield x * 3

        for ours, theirs in zip(ufuse.jit(generate)(X), generate(X)):
            same(ours, theirs)

    def test_returned_closure(self):
        def make(x):
            y = x * 2
            return lambda z: y + z

        same(ufuse.jit(make)(X)(X), X * 2 + X)


class TestNames:
    def test_helper_that_is_replaced(self, monkeypatch):
        f = ufuse.jit(uses_helper)
        same(f(X), X + 1)
        monkeypatch.setattr(sys.modules[__name__], "helper", lambda x: x * 10)
        same(f(X), X * 10)

    def test_global_number_that_changes(self, monkeypatch):
        f = ufuse.jit(uses_number)
        same(f(X), X * 2)
        monkeypatch.setattr(sys.modules[__name__], "NUMBER", 7)
        same(f(X), X * 7)

    def test_why_it_is_plain_is_looked_at_again(self, monkeypatch):
        f = ufuse.jit(uses_locals)
        same(f(X), X * 2 + 2)
        assert f.explain(X).mode == "plain"
        monkeypatch.setattr(sys.modules[__name__], "NUMBER", 7)
        same(f(X), X * 2 + 7)
        monkeypatch.setattr(sys.modules[__name__], "locals", dict, raising=False)
        with pytest.raises(KeyError):
            f(X)
        monkeypatch.setattr(sys.modules[__name__], "locals", lambda: {"x": ARRAY}, raising=False)
        same(f(X), ARRAY * 2 + 7)
        assert f.explain(X).mode == "traced"
        uses_locals.__code__, kept = uses_number.__code__, uses_locals.__code__
        same(f(X), X * 7)
        uses_locals.__code__ = kept

    def test_global_changed_during_the_call(self):
        check(counts_calls, X)

    def test_global_array_written_between_calls(self):
        f = ufuse.jit(uses_array)
        same(f(X), X + ARRAY)
        ARRAY[2] = 99
        same(f(X), X + ARRAY)

    def test_import_inside(self):
        def f(x):
            import numpy.linalg as la
            from numpy import sin

            return sin(la.norm(x, axis=1))

        check(f, X)

    def test_unknown_name(self):
        check(lambda x: x * no_such_name, X)  # noqa: F821


def helper(x):
    return x + 1


def uses_helper(x):
    return helper(x)


NUMBER = 2
COUNT = [0]
ARRAY = np.arange(6.0)


def uses_locals(x):
    return locals()["x"] * 2 + NUMBER


def uses_number(x):
    return x * NUMBER


def counts(x):
    global CALLS
    CALLS = globals().get("CALLS", 0) + 1
    return x


def counts_calls(x):
    before = globals_of_counts()
    counts(x)
    counts(x)
    return x * (globals_of_counts() - before)


def globals_of_counts():
    return globals().get("CALLS", 0)


def uses_array(x):
    return x + ARRAY


class TestContainers:
    def test_arguments(self):
        check(lambda t: t[0] + t[1], (X, X * 2))
        check(lambda p: p.left - p.right, Pair(X, X + 1))
        check(lambda l: [l[0] * 2, l], [X, 3])
        check(lambda d: {"z": d["x"] * d["y"], **d}, {"x": X, "y": 2.0})
        check(lambda n: n["a"][0][1] + n["b"].left, {"a": [(1, X)], "b": Pair(X, 0)})

    def test_results(self):
        check(lambda x: (x, [x * 2, {"k": (x + 1, None, "text")}], Pair(x, x - 1)), X)
        check(lambda x: OrderedDict(a=x * 2), X)
        check(lambda x: (), X)
        check(lambda x: None, X)

    def test_identity(self):
        f = ufuse.jit(lambda x, l: (x, l, [l], x.T, [x * 2] * 2))
        given = [X, 1]
        x, l, nested, view, twice = f(X, given)
        assert x is X
        assert l is given
        assert nested[0] is given
        assert view.base is X or view.base is X.base
        assert twice[0] is twice[1]

    def test_mutated_containers(self):
        def f(l, d):
            l.append(l[0] * 2)
            l[0] = l[0] + 1
            d["new"] = d["x"].sum()
            del d["y"]

        check(f, [X, 3], {"x": X, "y": 1})

    def test_mutated_containers_then_exception(self):
        def f(l):
            l.append(l[0] * 2)
            l[0] += 5
            raise KeyError("stop")

        check(f, [X])

    def test_outside_containers(self):
        kept = []

        def f(x):
            kept.append(x * 2)
            return x + 1

        same(ufuse.jit(f)(X), X + 1)
        assert type(kept[0]) is np.ndarray
        same(kept[0], X * 2)

    def test_other_objects_pass(self):
        class Config:
            gain = 3

        check(lambda x, c, s: (x * c.gain, s.upper(), type(c)), X, Config, "abc")


class TestPython:
    def test_branches_and_loops(self):
        def f(x, n):
            total = 0.0
            for i in range(n):
                if x[i % len(x)].sum() > 0:
                    x = x + 1
                elif i == 3:
                    continue
                total += float(x[0, 0])
                if total > 20:
                    break
            else:
                total = -total
            return x, total

        for n in (0, 1, 5, 30):
            check(f, X, n)

    def test_try_and_with(self):
        def f(x):
            try:
                x = x + np.ones((99, 99))
            except ValueError as error:
                message = str(error)
            finally:
                x = x * 2
            with np.errstate(all="ignore"):
                y = np.log(x)
            return x, y, message

        check(f, X)

    def test_comprehensions_and_unpacking(self):
        def f(x):
            a, *b = x
            rows = [r * 2 for r in x if r[0] > -1]
            return a, b, rows, {i: r.sum() for i, r in enumerate(x)}, sum(r[0] for r in x)

        check(f, X)

    def test_printing(self, capsys):
        def f(x):
            y = x[0] * 2
            print(y, f"{y[0]:.2f}", y.sum())
            return y

        f(X)
        theirs = capsys.readouterr().out
        ufuse.jit(f)(X)
        assert capsys.readouterr().out == theirs

    def test_match(self):
        def f(x):
            match x:
                case np.ndarray(ndim=2):
                    return x * 2
            return None

        check(f, X)

    @pytest.mark.parametrize(
        "function",
        [
            lambda x: json.dumps({"sum": x.sum(), "all": x.tolist()}),
            lambda x: time.gmtime(x.sum() * 1e3),
            lambda x: hashlib.sha256(x * 2).hexdigest(),
            lambda x: zlib.crc32(x),
            lambda x: datetime.timedelta(seconds=x.sum()) + datetime.timedelta(seconds=1),
            lambda x: decimal.Decimal(x[0, 0]),
            lambda x: io.BytesIO(x * 2).read(),
            lambda x: (bytes(x), bytearray(x)),
            lambda x: (complex(x.sum()), complex(x[0, 0])),
        ],
    )
    def test_standard_code_that_looks_at_types(self, function):
        check(function, X)

    @pytest.mark.parametrize(
        "function",
        [
            lambda x: np.ndarray.mean(x * 2, axis=0),
            lambda x: list(map(np.ndarray.sum, x)),
            lambda x: np.ndarray.__add__(x, 1),
            lambda x: np.ndarray.T.__get__(x),
            lambda x: float.is_integer(x.sum()),
            lambda x: SUM(x + 1, axis=1) * 2,
        ],
    )
    def test_methods_of_classes(self, function):
        check(function, X)

    def test_jitted_methods_of_classes(self):
        check(np.ndarray.sum, X, _jitted=ufuse.jit(np.ndarray.sum))
        check(float.__add__, 1.0, np.float64(2), _jitted=ufuse.jit(float.__add__))

    def test_copies(self):
        check(lambda x: (copy.copy(x + 1), copy.deepcopy([x * 2, x])), X)

    def test_runs_once(self):
        seen = []

        def f(x):
            seen.append(1)
            return x + np.ones(5)

        g = ufuse.jit(f)
        with pytest.raises(ValueError, match="broadcast"):
            g(X)
        assert len(seen) == 1

    def test_threads(self):
        f = ufuse.jit(lambda x: np.sqrt(x * x + 1).sum(axis=1))
        results = [None] * 8

        def work(k):
            for _ in range(20):
                results[k] = f(X * k)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for k, result in enumerate(results):
            same(result, np.sqrt((X * k) * (X * k) + 1).sum(axis=1))


class TestExceptions:
    def test_traceback_is_the_users(self):
        def f(x):
            y = x * 2
            return y + np.ones(5)

        try:
            ufuse.jit(f)(X)
        except ValueError as error:
            entries = traceback.extract_tb(error.__traceback__)
        assert [entry.name for entry in entries] == ["test_traceback_is_the_users", "f"]
        assert entries[-1].line == "return y + np.ones(5)"

    def test_cause_and_context_stay(self):
        def f(x):
            try:
                raise KeyError("first")
            except KeyError as error:
                raise RuntimeError("second") from error

        with pytest.raises(RuntimeError) as caught:
            ufuse.jit(f)(X)
        assert isinstance(caught.value.__cause__, KeyError)

    def test_arrays_are_as_numpy_leaves_them(self):
        def f(x, y):
            x += 1
            y[1:] = x[1:] * 2
            x[0] = np.nan
            raise RuntimeError("stop")

        check(f, X, X * 0)

    def test_no_memory(self, monkeypatch):
        noise = []
        monkeypatch.setattr(sys, "unraisablehook", noise.append)

        def f(x, out):
            out += x
            return np.zeros((10**9, 10**9)) + out[0, 0]

        out = X.copy()
        with pytest.raises(MemoryError, match="Unable to allocate"):
            ufuse.jit(f)(X, out)
        same(out, X + X)
        assert noise == []

    @pytest.mark.parametrize(
        "function",
        [
            lambda x: x + np.ones(5),
            lambda x: x.sum(axis=2),
            lambda x: x.sum(axis=(0, 0)),
            lambda x: np.argmin(x, axis=-3),
            lambda x: x.reshape(7, 7),
            lambda x: x[10],
            lambda x: x[:, 1, 2],
            lambda x: np.sin(x, x, x),
            lambda x: np.add(x),
            lambda x: x @ x,
            lambda x: bool(x),
            lambda x: int(x),
            lambda x: x.no_such_attribute,
            lambda x: np.no_such_function(x),
            lambda x: np.linalg.inv(x),
            lambda x: np.concatenate([x, x[0]]),
            lambda x: hash(x),
            lambda x: {x: 1},
            lambda x: x.transpose(0, 0),
            lambda x: x.squeeze(axis=0),
            lambda x: np.zeros(-1) + x,
            lambda x: np.mean(x, axis=5),
            lambda x: x << 1,
            lambda x: x["field"],
            lambda x: x.astype("no such dtype"),
            lambda x: np.broadcast_to(x, (3, 3)),
            lambda x: len(x.sum()),
            lambda x: iter(x.sum()),
        ],
    )
    def test_numpy_words_the_error(self, function):
        check(function, X)

    @pytest.mark.parametrize("mode", ["raise", "call", "print", "log"])
    def test_error_state_of_the_caller(self, mode):
        def f(x):
            return np.log(x)

        seen = []
        with np.errstate(all=mode, call=lambda *a: seen.append(a) if mode == "call" else None):
            if mode == "log":
                return
            if mode == "raise":
                with pytest.raises(FloatingPointError):
                    jitted(f)(X)
            else:
                jitted(f)(X)


def test_names_that_are_shown():
    @ufuse.jit
    def f(x):
        """Twice."""
        return x * 2

    f.of_users = 1
    own = {"__wrapped__", "explain", "source", "stats", "warmup", "of_users"}
    assert set(dir(f)) - set(dir(f.__wrapped__)) == own
    assert all(hasattr(f, name) for name in dir(f))
    assert {"of_users", "__doc__", "__name__"} < set(dir(f))
    assert set(dir(ufuse)) == {*ufuse.__all__, "__version__"}
    assert all(hasattr(ufuse, name) for name in dir(ufuse))


@pytest.mark.parametrize("options", [{}, {"verify": 1}])
def test_what_wraps_it_is_given_what_a_plain_function_gives(options):
    """An object may have attributes of any other names, and is pickled with what it holds."""

    class Wrapper:
        def __init__(self, function):
            self._function = self._options = "its own"
            functools.update_wrapper(self, function)

    f = ufuse.jit(plain_sum, **options)
    f.of_users = 1
    f(X)
    given = vars(Wrapper(f))
    assert given.pop("of_users") == 1
    assert given.keys() == vars(Wrapper(plain_sum)).keys()
    assert given["_function"] == given["_options"] == "its own"


def test_fast_numerics_contract_and_only_where_asked():
    def madd(x, y, z):
        return x * y + z

    args = np.random.default_rng(3).normal(size=(3, 10000))
    check(madd, *args)
    fast = ufuse.jit(madd, numerics="fast")(*args)
    assert np.abs(fast - madd(*args)).max() <= np.spacing(np.abs(args).max() ** 2) * 2


class TestManyCalls:
    """Small calls are answered by whichever way is faster, so each way has its turn."""

    def test_of_a_method_with_a_state(self):
        model = Model()
        model.count = 0

        def step(self, x):
            self.count += 1
            return x * self.count + self.bias

        native = ufuse.jit(step)
        for number in range(1, 60):
            same(native(model, X), X * number + model.bias)
            assert model.count == number

    def test_of_a_generator_of_random_numbers(self):
        ours, theirs = np.random.default_rng(0), np.random.default_rng(0)
        native = ufuse.jit(lambda rng, x: rng.normal(size=x.shape) + x)
        for _ in range(60):
            same(native(ours, X), theirs.normal(size=X.shape) + X)

    def test_that_raise_now_and_then(self):
        def f(x, rows):
            return np.sort(x.reshape(rows, -1)) * 2

        native = ufuse.jit(f)
        for number in range(60):
            if number % 3:
                same(native(X.ravel(), 2), f(X.ravel(), 2))
                continue
            with pytest.raises(ValueError, match="cannot reshape"):
                native(X.ravel(), 7)

    def test_of_ever_new_shapes_and_numbers(self):
        native = ufuse.jit(lambda x, k: np.sort(x) * k)
        for number in range(1, 150):
            x = np.linspace(1, 0, number)
            same(native(x, 0.5 * number), np.sort(x) * (0.5 * number))
        assert native._dispatcher.counts[2] < 30, "not each of them is kept"
