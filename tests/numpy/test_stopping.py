"""Where tracing stops in the middle of a call, does the rest of it do what NumPy does?

Recording stops where it costs more than it can win: real arrays take the places of lazy ones, and
plain Python goes on. Here it stops after each number of operations, whatever they cost.
"""

import gc
import math
import sys
import warnings

import numpy as np
import pytest
import ufuse
from same import check
from scipy import linalg, signal
from ufuse import _core
from ufuse.tracing import tree

BACKENDS = ["interpreted"]
X = np.linspace(-1.0, 2.0, 7)

knows_who_has_containers = pytest.mark.skipif(
    sys.version_info >= (3, 14),
    reason="Python's stack is not counted among those who have a container, so tracing goes on",
)


class Model:
    def __init__(self, u):
        self.u = u
        self.history = []

    def step(self, dt):
        self.u = self.u + dt * np.gradient(self.u)
        self.u += dt
        self.history.append(self.u * 2)
        return self

    @property
    def energy(self):
        return float((self.u * self.u).sum())


def elements(x):
    made = np.zeros_like(x)
    for i in range(1, len(x)):
        made[i] = made[i - 1] + x[i] * 0.5 if x[i] > 0 else max(made[i - 1], x[i])
    return made, made[-1]


def in_place(x):
    view = x[1:]
    for k in range(4):
        view *= 0.5
        x[0] += view.sum() * k
        x += x[::-1]
    return x, view


def containers(x):
    values, named = [x + 1], {"a": x * 2}
    for k in range(3):
        values.append(values[-1] * named["a"])
        named[k] = values[0] - x
        first, *rest = values
    return values, named, (first, rest), values[0] is first


def closures(x):
    total = x * 0

    def add(y, by=x + 1):
        nonlocal total
        total = total + y * by
        return total

    for k in range(4):
        add(x * k)
    return total, add(x), [f(x) for f in (lambda y: y + total, np.sqrt)]


def generators(x):
    def halves(y):
        while y.max() > 0.1:
            yield y
            y = y * 0.5

    return [h.sum() for h in halves(x)], sum(y * y for y in x), {k: x * k for k in range(3)}


# Tracing stops while Python, or NumPy's own code, fills a tuple.
def tuples_one_by_one(x):
    y = x + 1
    parts = tuple(np.sqrt(part * k) for k, part in enumerate([y, x * 0 + 2, y * y, y - y[0]]))
    return parts, tuple(map(np.negative, parts)), np.meshgrid(y, x * 2, sparse=True)


def recursive(x, depth=4):
    y = x * 2 - depth
    return y if depth == 0 else y + recursive(y * 0.1, depth - 1) * (y > 0)


def fails(x):
    y = x * 2
    x += 1
    z = y + x
    z[:3] = y[:4]


def fails_inside(x):
    try:
        fails(x)
    except ValueError as error:
        return str(error), x * 2


def warns(x):
    y = np.sqrt(x)
    warnings.warn("of the user's", stacklevel=2)
    return y / (x * 0), np.log(x)


def manages(x):
    with np.errstate(all="ignore"):
        y = np.sqrt(x) / (x * 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = y + np.log(x)
    return y * 2, np.isnan(y).any()


@ufuse.jit
def jitted_helper(x):
    return np.tanh(x * 3) + 1


def nested(x):
    y = x + 1
    for _ in range(3):
        y = jitted_helper(y) * jitted_helper(x)
    return y


def methods(x):
    model = Model(x * 2)
    energies = [model.step(0.1).energy for _ in range(3)]
    return energies, model.u, model.history, model.u is model.history[-1]


def twice(x):
    return x * 2 + x.sum()


def on_pythons_stack(x):
    """Tracing stops in the second argument, when the first one is there already."""
    y = x + 3
    np.ndarray.__iadd__(y, np.ndarray.__add__(np.exp(-np.abs(y)), twice(x)))
    spread = signal.convolve(y, twice(y))
    both = np.outer(y, y) + np.eye(len(y)) * 9
    return y, spread, linalg.solve(both, twice(x)), math.hypot(y[0], twice(x)[0])


FUNCTIONS = [
    elements,
    on_pythons_stack,
    in_place,
    containers,
    closures,
    generators,
    tuples_one_by_one,
    recursive,
    fails,
    fails_inside,
    warns,
    manages,
    nested,
    methods,
]


@pytest.mark.parametrize("operations", [0, 1, 2, 3, 5, 8, 13, 21, 34])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_rest_is_plain(function, operations):
    with _core.most_operations(operations):
        check(function, X)


# Nobody has the text of this function, so it is called as one of another package is.
FOREIGN = {}
exec("def types_in(items):\n    return [type(each) for each in items]", FOREIGN)


class Times:
    def __init__(self, u):
        self.u = np.asarray(u)

    @ufuse.jit
    def __mul__(self, other):
        return self.u * other + 1.5

    def __rmul__(self, other):
        return self * other


def given_a_list(table, x):
    return FOREIGN["types_in"]([x, np.sqrt(x * x) + 1])


def given_a_variable(table, x):
    both = {"a": x, "b": 0.5 * Times(x) + 1}
    return FOREIGN["types_in"](both.values())


def given_an_entry(table, x):
    table["both"] = (x, np.sqrt(x * x) + 1)
    return FOREIGN["types_in"](table["both"])


def put_away_after_a_call(table, x):
    first, second = (x, np.sqrt(x * x) + 1)
    0.75 * Times(second)
    table["first"] = first
    return []


@pytest.mark.parametrize("operations", range(7))
@pytest.mark.parametrize(
    "function", [given_a_list, given_a_variable, given_an_entry, put_away_after_a_call]
)
def test_what_is_on_the_stack_is_seen_by_nobody(function, operations):
    """Where tracing stops in the middle of an expression, Python's stack holds lazy arrays."""
    table = {}
    with _core.most_operations(operations):
        types = ufuse.jit(function)(table, X.copy())
    assert all(each is np.ndarray for each in types)
    held = [each for value in table.values() for each in value] if types else table.values()
    assert all(type(each) is np.ndarray for each in held)


@pytest.mark.parametrize("operations", [1, 2, 4, 7, 12])
def test_what_the_caller_holds(operations):
    """Attributes and containers hold real arrays, and the caller's arrays are the caller's."""

    def step(model, kept, x):
        model.step(0.5)
        kept.append(model.u)
        kept.append(x)
        model.x = x
        return model.step(0.25).u * x

    with _core.most_operations(operations):
        model, kept, x = Model(X.copy()), [], X.copy()
        result = ufuse.jit(step)(model, kept, x)
    plain, expected, y = Model(X.copy()), [], X.copy()
    right = step(plain, expected, y)
    assert result.tobytes() == right.tobytes()
    assert model.u.tobytes() == plain.u.tobytes()
    assert model.x is x
    assert kept[1] is x
    assert kept[0].tobytes() == expected[0].tobytes()
    for array in (result, model.u, *model.history, *kept):
        assert type(array) is np.ndarray
    gc.collect()
    assert not [each for each in gc.get_objects() if tree.is_lazy(each)]


def layer(params, x, name):
    return np.tanh(x * params[name]) + params["b"]


def in_a_dict(params, x):
    for k in range(3):
        x = layer(params, x, "w")
        params["w"] = params["w"] * 0.5 + k
        params["b"] += x
    return x, params


def in_a_list(params, x):
    for k in range(3):
        params[0] = params[k % len(params)] * x
        params.append(params[0] + k)
        x = x + params[-1].sum()
    del params[1]
    return x, params[0]


def over_a_list(arrays, x):
    for array in arrays:
        x = np.tanh(x * array) + 1
        if len(arrays) < 6:
            arrays.append(x * 2)
    return x, arrays


def in_nested_ones(params, x):
    layers = params["layers"]
    for k in range(2):
        for weights, bias in layers:
            x = np.tanh(x * weights + bias)
        layers[k] = (x, layers[k][1] * 2)
        layers[k][1][0] = k
    return x, layers is params["layers"], params


def in_tuples(pair, x):
    first, second = pair
    for _ in range(3):
        first = first * second + x
        x = x + pair[1]
    return first, x, pair, pair[0] is first


def by_closures(params, x):
    def step(y):
        params["n"] = y * params["w"]
        return [np.exp(-np.abs(y * params[k])) for k in ("w", "n")]

    for _ in range(3):
        x = sum(step(x))
    return x, params


def kept_elsewhere(params, x):
    state = {"params": params, "x": x * 2}
    for k in range(3):
        state["params"]["w"] = state["x"] * k
        state["x"] = state["x"] + params["w"]
    return state["params"] is params, state


def while_it_is_changed(params, x):
    params["w"] += layer(params, x, "w")
    for name in params:
        params[name] = params[name] + x
        params[name] *= layer(params, x, name)
    for name, value in list(params.items()):
        params[name + name] = value * 2
    return x


def by_names(x, **params):
    for k in range(3):
        params["w"] = params["w"] * x + k
        x = layer(params, x, "w")
    return x, params


def fails_there(params, x):
    for k in range(4):
        params["w"] = params["w"] * x
        params["b"] = params["b"][k:] + x
    return params


class Trained:
    def __init__(self, params):
        self.params = params

    def step(self, x):
        self.params["w"] = self.params["w"] - 0.1 * x
        return layer(self.params, x, "b")


def in_an_attribute(params, x):
    model = Trained(params)
    for _ in range(3):
        x = model.step(x)
    return x, model.params is params


def a_dict():
    return {"w": X * 2, "b": X + 1}


OF_CONTAINERS = [
    (in_a_dict, a_dict),
    (in_a_list, lambda: [X + 1, X * 2]),
    (over_a_list, lambda: [X + 1, X * 2]),
    (in_nested_ones, lambda: {"layers": [(X * 2, X + 1), (X - 1, X * 0.5)], "n": X}),
    (in_tuples, lambda: (X * 2, X + 1)),
    (by_closures, a_dict),
    (kept_elsewhere, a_dict),
    (while_it_is_changed, a_dict),
    (fails_there, a_dict),
    (in_an_attribute, a_dict),
]


def outcome_of(call, given, x):
    """What a call gives, and what it leaves in its arguments; whether it gives these themselves."""
    try:
        result = call(given, x)
    except ValueError as error:
        result = str(error)
    places = [each is given for each in result] if type(result) is tuple else result is given
    return described((result, given, x, places))


def described(value):
    if isinstance(value, np.ndarray | np.generic):
        return type(value), value.dtype, value.shape, value.tobytes()
    if isinstance(value, list | tuple):
        return type(value), [described(each) for each in value]
    if isinstance(value, dict):
        return [(name, described(each)) for name, each in value.items()]
    return value


@pytest.mark.parametrize("operations", [*range(1, 12), 14, 18, 25])
@pytest.mark.parametrize(("function", "make"), OF_CONTAINERS, ids=lambda f: f.__name__)
def test_arguments_with_arrays_in_them(function, make, operations):
    right = outcome_of(function, make(), X.copy())
    with _core.most_operations(operations):
        assert outcome_of(ufuse.jit(function), make(), X.copy()) == right
    gc.collect()
    assert not [each for each in gc.get_objects() if tree.is_lazy(each)]


@pytest.mark.parametrize("operations", [1, 3, 6])
def test_arguments_by_name_with_arrays_in_them(operations):
    def call(given, x):
        return jitted(x, **given)

    jitted = by_names
    right = outcome_of(call, a_dict(), X.copy())
    jitted = ufuse.jit(by_names)
    with _core.most_operations(operations):
        assert outcome_of(call, a_dict(), X.copy()) == right


@knows_who_has_containers
@pytest.mark.parametrize(
    "function", [in_a_dict, in_a_list, over_a_list, in_tuples, by_closures, in_nested_ones]
)
def test_calls_with_containers_stop(function, unwatched):
    """Not only are the answers right."""
    make = dict(OF_CONTAINERS)[function]
    with _core.most_operations(3):
        found = ufuse.jit(function).explain(make(), X.copy())
    assert "slow_tracing" in {note.reason for note in found.notes}


@knows_who_has_containers
def test_a_long_loop_with_a_dict_of_arrays_stops(unwatched):
    def train(params, x):
        for k in range(3_000):
            i = k % 7
            params["w"][i] = params["w"][i] * 0.999 + x[i] * params["b"][i]
        return params["w"].sum()

    right = outcome_of(train, a_dict(), X.copy())
    jitted = ufuse.jit(train)
    assert outcome_of(jitted, a_dict(), X.copy()) == right
    stops_where_it_is_slow(ufuse.jit(train).explain(a_dict(), X.copy()))


def stops_where_it_is_slow(found):
    # There is no reason to stop where the loops have taken half as long as recording, which counts
    # from 50 ms on: with sanitizers they may.
    reasons = {note.reason for note in found.notes}
    assert reasons & {"slow_tracing", "native_loop"} or found.run_seconds > 0.025


def test_long_loops_over_elements_stop():
    """Where it is slow, by itself, and is said."""

    def longest(a, b):
        table = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
        for i in range(1, len(a) + 1):
            for j in range(1, len(b) + 1):
                if a[i - 1] == b[j - 1]:
                    table[i, j] = table[i - 1, j - 1] + 1
                else:
                    table[i, j] = max(table[i - 1, j], table[i, j - 1])
        return table

    numbers = np.random.default_rng(0)
    a, b = numbers.integers(0, 4, (2, 150))
    jitted = ufuse.jit(longest)
    assert jitted(a, b).tobytes() == longest(a, b).tobytes()
    stops_where_it_is_slow(ufuse.jit(longest).explain(a, b))


def test_tracing_stops_among_calls_that_are_no_operations():
    def sort(items):
        if len(items) < 2:
            return items
        less, more = [], []
        for item in items[1:]:
            (less if item < items[0] else more).append(item)
        return sort(less) + items[:1] + sort(more)

    items = np.random.default_rng(0).permutation(30_000).tolist()
    jitted = ufuse.jit(sort)
    given = list(items)
    assert jitted(given) == sorted(items)
    assert given == items
    assert "slow_tracing" in {note.reason for note in ufuse.jit(sort).explain(items).notes}
