"""Are closures and partials replayed, and only as long as what they hold is what it was?"""

import functools

import numpy as np
import pytest
import ufuse
from same import check, same
from texts import function_of

BACKENDS = ["compiled"]

X = np.linspace(0.5, 2.0, 12).reshape(3, 4)
NOTES = []


def scaled(x, factor=2.0, *, shift=0.0):
    return x * factor + shift


def noisy(x):
    NOTES.append(1)
    return x


def replays(native):
    return native._dispatcher.counts[0] if native._dispatcher is not None else 0


def make(k):
    def inner(x):
        return x * k

    def set_to(value):
        nonlocal k
        k = value

    def unset():
        nonlocal k
        del k

    return inner, set_to, unset


@pytest.mark.parametrize(
    "value", [2, 2.5, 1j, True, np.float32(3), np.int8(5)], ids=lambda v: type(v).__name__
)
def test_closures_over_numbers_are_replayed(value):
    inner, set_to, _ = make(value)
    native = ufuse.jit(inner)
    for _ in range(3):
        same(native(X), inner(X))
    assert replays(native) == 2
    assert native.explain(X).mode == "replayed"
    set_to(7)
    for _ in range(3):
        same(native(X), X * 7)
    assert replays(native) == 2 + 1, "the old plan must not answer"


def test_closures_over_functions_and_modules_are_replayed():
    helper = scaled
    numpy = np

    def f(x):
        return numpy.sqrt(helper(x)) * len("ab")

    native = ufuse.jit(f)
    for _ in range(3):
        same(native(X), f(X))
    assert replays(native) == 2

    def other(x):
        return x - 1

    helper = other
    for _ in range(3):
        same(native(X + 1), f(X + 1))


@pytest.mark.parametrize(
    "held", [[2.0], {"k": 2.0}, np.arange(4.0), object()], ids=lambda v: type(v).__name__
)
def test_closures_over_what_may_change_are_traced(held):
    def f(x):
        if isinstance(held, list):
            return x * held[0]
        if isinstance(held, dict):
            return x * held["k"]
        if isinstance(held, np.ndarray):
            return x * held
        return x + 1

    native = ufuse.jit(f)
    for turn in range(3):
        same(native(X), f(X))
        if isinstance(held, (list, dict)):
            held[0 if isinstance(held, list) else "k"] = float(turn)
        elif isinstance(held, np.ndarray):
            held += 1
    assert replays(native) == 0
    assert "`held` of the enclosing function may change" in native.explain(X).reason


def test_values_that_come_and_go():
    inner, set_to, unset = make(2)
    native = ufuse.jit(inner)
    for value in (2, 3, np.arange(4.0), 4, scaled, 5.5, None, 6, 2):
        set_to(value)
        for _ in range(2):
            check(inner, X, _jitted=native)
    unset()
    check(inner, X, _jitted=native)
    set_to(8)
    same(native(X), X * 8)


def test_a_number_that_becomes_a_function_with_effects():
    call = 2

    def f(x):
        return x * call if isinstance(call, int) else call(x)

    native = ufuse.jit(f)
    same(native(X), X * 2)
    same(native(X), X * 2)
    call = noisy
    NOTES.clear()
    for _ in range(4):
        same(native(X), X)
    assert len(NOTES) == 4


def test_a_value_that_changes_at_each_call():
    inner, set_to, _ = make(0)
    native = ufuse.jit(inner)
    for value in range(50):
        set_to(value)
        same(native(X), X * value)
        same(native(X), X * value)


def test_globals_that_change_now_and_then_are_replayed_again():
    names = {"k": 2.0}
    f = function_of("def f(x):\n    return x * k\n", names)
    native = ufuse.jit(f)
    for names["k"] in (2.0, 3.0, 2.0):
        for _ in range(3):
            same(native(X), X * names["k"])
        assert replays(native) > 0


@pytest.mark.parametrize(
    ("partial", "args"),
    [
        (functools.partial(scaled), (X,)),
        (functools.partial(scaled, X), ()),
        (functools.partial(scaled, X, 3.0), ()),
        (functools.partial(scaled, factor=3.0), (X,)),
        (functools.partial(scaled, factor=X[0] + 1, shift=2), (X,)),
        (functools.partial(functools.partial(scaled, X), shift=np.float32(1)), (4.0,)),
        (functools.partial(ufuse.jit(scaled), shift=1.5), (X,)),
    ],
    ids=["bare", "array", "all", "named", "named array", "of a partial", "of a jitted one"],
)
def test_partials_are_replayed(partial, args):
    native = ufuse.jit(partial)
    for _ in range(3):
        same(native(*args), partial(*args))
    assert replays(native) == 2
    assert native.explain(*args).mode == "replayed"
    check(partial, *args, _jitted=native)
    check(partial, *args, shift=3.5, _jitted=native)
    check(partial, *args, nothing=1, _jitted=native)


def test_partials_whose_arguments_change():
    array, table = np.arange(4.0), [1.0, 2.0]
    partial = functools.partial(lambda a, t, x, *, k: x * a + t[0] * k, array, table, k=1.0)
    native = ufuse.jit(partial)
    for turn in range(8):
        same(native(X), partial(X))
        array += 1
        table[0] = float(turn // 2)
        partial.keywords["k"] = turn // 3
    partial.__setstate__((scaled, (), {"factor": 9.0}, {}))
    for _ in range(3):
        same(native(X), X * 9)


def test_methods_are_replayed():
    class Model:
        k = 2.0

        @ufuse.jit
        def apply(self, x):
            return x * self.k

    model = Model()
    for model.k in (2.0, 2.0, 3.0):
        same(model.apply(X), X * model.k)
    Model.k = 5.0
    del model.k
    same(model.apply(X), X * 5)
    assert Model.apply.explain(model, X).mode == "replayed"


@pytest.mark.parametrize("where", ["default", "tuple", "jitted partial"])
def test_functions_that_no_twin_stands_for_run_each_time(where):
    kept = (noisy,)
    if where == "default":
        f = eval("lambda x, g=noisy: g(x) * 2", {"noisy": noisy})
    elif where == "tuple":
        f = eval("lambda x: kept[0](x) * 2", {"kept": kept})
    else:
        f = eval("lambda x: g(x) * 2", {"g": ufuse.jit(functools.partial(noisy))})
    native = ufuse.jit(f)
    NOTES.clear()
    for _ in range(3):
        same(native(X), X * 2)
    assert len(NOTES) == 3
