"""What is in a global name, or one of an enclosing function, that a jitted function assigns?

Each function is called several times, plainly and jitted, from the same beginning. After each call
results, names and arguments are compared: type, bits, and which objects are the same.
"""

import functools

import numpy as np
import pytest
import ufuse
from same import same

BEGINNING = {"g": 0, "h": None, "kept": [], "scale": 2.0}
globals().update(BEGINNING)
seen = []


def look(_):
    """What untraced code sees: functools.reduce calls it."""
    seen.append((type(g), np.array(g), type(h)))
    return 1.0


def assigned(x):
    global g
    g = x * 2
    y = g + 1
    return y.sum(), g.mean()


def changed_in_place(x):
    global g
    g = x * 2
    y = g
    g += 1
    g *= y
    y[0] = 7
    return g is y, g.sum()


def argument(x):
    global h
    h = x
    h += 1
    h **= 2
    return h is x


def several(x):
    global g, h
    g, h = x + 1, [x * 3, x]
    same_list = h
    same_list.append(x - 1)
    h[0] += 1
    return len(h), h is same_list, sum(a.sum() for a in h)


def taken_apart(x):
    global g, h
    g, *h = x * 2
    return g, h


def chained(x):
    global h
    h = y = x * 1.5
    y += 1
    return h is y, h.sum()


def extended(x):
    global kept
    kept += [x * 2]
    return len(kept)


def named(x):
    global g
    if (g := x.sum() * scale) > 20:
        return g
    return x


def in_comprehension(x):
    global g
    return [(g := x + k) for k in range(3)][1]


def counted(x):
    global g, scale
    g = g + 1 if isinstance(g, int) else 0
    scale *= 0.5
    return x * g * scale


def helper(x):
    global g
    g = x * 5
    return g + 1


def by_a_helper(x):
    y = helper(x + 1)
    return np.sqrt(y * y).sum(), g.sum()


def seen_by_others(x):
    global g, h
    g = x * 2
    h = {"x": x + 1}
    g += 1
    n = functools.reduce(lambda total, each: total + look(each), [1, 2], 0.0)
    return g * n


def by_an_inner_function(x):
    def inner(y):
        global g
        g = y * 2
        return y + 1

    z = inner(x * 3)
    return z + g


def raises(x):
    global g
    g = x * 2
    g += 1
    raise ValueError(str(x.shape))


def kept_view(x):
    global g
    y = x * 2
    g = y[1:]
    y += 1
    return g.base is not None, g.sum()


CASES = [
    *(assigned, changed_in_place, argument, several, taken_apart, chained, extended, named),
    *(in_comprehension, counted, by_a_helper, seen_by_others, by_an_inner_function, raises),
    kept_view,
]


def outcomes(function):
    globals().update(BEGINNING, kept=[])
    seen.clear()
    found = []
    for k in range(4):
        x = np.arange(5.0) + k
        try:
            result = function(x)
        except ValueError as error:
            result = str(error)
        names = {name: globals()[name] for name in BEGINNING}
        found.append((result, {**names, "kept": list(kept)}, x.copy(), h is x, result is g))
    return found, list(seen)


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_global_names(function):
    jitted = ufuse.jit(function)
    expected = outcomes(function)
    same(outcomes(jitted), expected)
    if function is not raises:
        assert jitted.explain(np.arange(5.0)).mode == "traced"


def running_mean():
    count, mean = 0, None

    def add(x):
        nonlocal count, mean
        count += 1
        mean = x * 1.0 if mean is None else mean + (x - mean) / count
        return mean - x

    def state():
        return count, mean

    return add, state


def test_names_of_enclosing_functions():
    add, state = running_mean()
    add_here, state_here = running_mean()
    jitted = ufuse.jit(add_here)
    for k in range(5):
        x = np.arange(6.0) ** k
        same(jitted(x), add(x))
        same(state_here(), state())


def test_what_a_method_assigns():
    class Steps:
        def step(self, x):
            global g
            self.x = x + g
            g = self.x.sum()
            return self.x

    def run(step_of):
        globals().update(BEGINNING)
        steps = Steps()
        return [(step_of(steps)(np.arange(3.0)), g, vars(steps)) for _ in range(3)]

    step = ufuse.jit(Steps.step)
    same(run(lambda steps: functools.partial(step, steps)), run(lambda steps: steps.step))
