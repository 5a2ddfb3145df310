"""Do loops in functions that a function calls go on natively, and is all the rest as in Python?

Where no call is traced, and where tracing has stopped in the middle of one.
"""

import functools
import sys
import types

import numpy as np
import pytest
import ufuse
from test_native_loops import alike, outcome, told
from ufuse import _core
from ufuse.source import heads
from ufuse.tracing import loops

X = np.linspace(-1.0, 2.0, 20)


def decayed(x, by=0.5):
    for i in range(1, len(x)):
        x[i] += x[i - 1] * by
    return x


def twice(x):
    return decayed(decayed(x), by=0.25)


def around(x):
    y = twice(x * 2)
    return decayed(y, 2.0) + 1


def named(x):
    return decayed(by=3.0, x=x) - decayed(*[x], **{"by": 0.1})


def halves(x):
    if len(x) < 3:
        return x
    return np.concatenate([halves(decayed(x[: len(x) // 2])), halves(decayed(x[len(x) // 2 :]))])


def ping(x, n):
    return decayed(x) if n == 0 else pong(x, n - 1)


def pong(x, n):
    return x if n == 0 else ping(x * 2, n - 1)


def in_a_comprehension(x):
    parts = [twice(x) for _ in range(2)]
    return parts, decayed(x)


def in_an_expression(x):
    return twice(x).sum() if twice(x)[0] < 5 else -1.0


def collected(x):
    found = []
    for k in range(len(x)):
        found.append(str(k))
        x[k] = decayed(x)[k]
    return found, x


def raises(x):
    for i in range(len(x) + 1):
        x[i] = i
    return x


def caught(x):
    try:
        return raises(x)
    except IndexError as error:
        return str(error), decayed(x)


def uncaught(x):
    decayed(x)
    return raises(x)


def divides(x):
    for i in range(len(x)):
        x[i] = x[i] / x[0]
    return x


def warns(x):
    x[0] = 0
    return divides(x), twice(x)


class Model:
    rate = 0.5

    def __init__(self, u):
        self.u = u

    def step(self):
        for i in range(1, len(self.u)):
            self.u[i] -= self.u[i - 1] * self.rate
        return self

    def run(self):
        return self.step().step().__mangled()

    def __mangled(self):
        return self.scaled(self.u, 3), Model.total(self.u)

    @staticmethod
    def scaled(u, by):
        for i in range(len(u)):
            u[i] *= by
        return u

    @classmethod
    def total(cls, u):
        s = cls.rate
        for each in u:
            s += each
        return s


class Faster(Model):
    def step(self):
        for i in range(len(self.u)):
            self.u[i] += 1.0
        return super().step()


def of_a_model(u):
    return Model(u).run(), Faster(u).run()


def closed_over(x):
    k = 2.0

    def inner(y):
        for i in range(len(y)):
            y[i] *= k
        return y

    return inner(x) + decayed(inner(x))


def rounds(x):
    for i in range(len(x)):
        x[i] += 1
        yield x[i]


def generated(x):
    return sum(rounds(x)), decayed(x)


def names_of_frames():
    frame = sys._getframe(1)
    return frame.f_code.co_name, frame.f_lineno, len(frame.f_locals["x"])


def looks_at_frames(x):
    for i in range(len(x)):
        x[i] *= 2
    return names_of_frames()


def with_frames(x):
    return looks_at_frames(x), twice(x)


FUNCTIONS = [
    *(twice, around, named, halves, in_a_comprehension, in_an_expression, collected, caught),
    *(uncaught, warns, of_a_model, closed_over, generated, with_frames),
]


def native_loops(function):
    """The names of functions with a native loop, of those that a function leads to."""
    found = set()
    for one in loops.functions_around(function):
        for code in loops.codes_with_heads(one):
            if any(loop.facts["versions"] for loop in heads.loops_of(code)):
                found.add(one.__qualname__)
    return found


@pytest.mark.parametrize("function", FUNCTIONS)
def test_helpers_of_a_plain_function(function):
    made = loops.looped(function)
    assert made is not None
    for exits in (0, 3, 8):
        with told(eager=True, exits_after=exits):
            alike(outcome(made, [X]), outcome(function, [X]))
    assert native_loops(function)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_helpers_where_tracing_has_stopped(function):
    made = ufuse.jit(function)
    for exits in (0, 3, 8):
        with told(eager=True, exits_after=exits):
            alike(outcome(made, [X]), outcome(function, [X]))


def test_functions_that_call_each_other():
    for n in range(5):
        with told(eager=True):
            alike(outcome(loops.looped(ping), [X, n]), outcome(ping, [X, n]))
    assert native_loops(ping) == {"decayed"}


def test_all_helpers_are_native():
    """Also those that are called after a loop of another one has gone on natively."""

    def first(x):
        for i in range(1, len(x)):
            x[i] += x[i - 1] * 0.5
        return x

    def second(x):
        for i in range(len(x)):
            x[i] = x[i] / x[0]
        return x

    def f(x):
        return first(second(first(x) + 2.0))

    x = np.linspace(1.0, 2.0, 2000)
    with told(eager=True):
        np.testing.assert_array_equal(ufuse.jit(f)(x.copy()), f(x.copy()))
    assert {name.split(".")[-1] for name in native_loops(f)} == {"first", "second"}


def test_a_function_under_a_new_name():
    """What a global name holds is called, whatever it was when the code was made."""
    space = {"__name__": "m", "decayed": decayed}
    f = types.FunctionType(twice.__code__.replace(), space, "f")
    made = loops.looped(f)
    for helper in (decayed, divides_by(3.0), np.negative, functools.partial(decayed, by=9.0)):
        space["decayed"] = lambda x, by=1.0, helper=helper: helper(x) * by
        with told(eager=True):
            alike(outcome(made, [X]), outcome(f, [X]))
        space["decayed"] = helper
        with told(eager=True):
            alike(outcome(made, [X]), outcome(f, [X]))


def divides_by(number):
    def divided(x, by=1.0):
        for i in range(len(x)):
            x[i] /= number * by
        return x

    return divided


def test_a_function_that_changes():
    def helper(x, by=2.0):
        for i in range(len(x)):
            x[i] *= by
        return x

    def f(x):
        return helper(x) + 1.0

    made = loops.looped(f)
    with told(eager=True):
        alike(outcome(made, [X]), outcome(f, [X]))
        helper.__defaults__ = (5.0,)
        alike(outcome(made, [X]), outcome(f, [X]))
        helper.__code__ = divides.__code__.replace(co_freevars=())
        helper.__defaults__ = None
        alike(outcome(made, [X]), outcome(f, [X]))
        helper.mark = 1
        assert made(X.copy()) is not None


def test_functions_live_no_longer():
    def f(x):
        return helper(x)

    helper = divides_by(2.0)
    with told(eager=True):
        loops.looped(f)(X.copy())
    before = sys.getrefcount(helper)
    made = loops.looped(f)
    with told(eager=True):
        for _ in range(5):
            made(X.copy())
    assert sys.getrefcount(helper) <= before + 1


def test_nothing_is_asked_of_other_calls():
    """There are call sites for functions with loops only."""

    def without(x):
        return x + 1

    def f(x):
        return without(decayed(x)).max()

    made = loops.looped(f)
    assert made.__code__.co_consts.count(_core.plain_site) == 1
    assert loops.looped(without) is None
    with told(eager=True):
        alike(outcome(made, [X]), outcome(f, [X]))


def test_what_goes_wrong_with_a_helper_is_nobodys_error(monkeypatch):
    def helper(x):
        for i in range(len(x)):
            x[i] += 1
        return x

    def f(x):
        return helper(x)

    made = loops.looped(f)
    monkeypatch.setattr(loops.sites, "looped", len)  # which takes no such arguments
    alike(outcome(made, [X]), outcome(f, [X]))
    assert loops.plain(helper) is helper


def test_a_looped_function_is_left_alone():
    def helper(x):
        for i in range(len(x)):
            x[i] += 1
        return x

    helper = loops.looped(helper)

    def f(x):
        return helper(x)

    assert loops.of_helper(helper) is None
    assert loops.plain(f) is f


def test_endless_recursion_is_an_error():
    def f(x):
        decayed(x)
        return f(x)

    with pytest.raises(RecursionError):
        loops.looped(f)(X.copy())


def test_deep_recursion():
    """It is as deep as in Python, whose calls take nothing of the thread's stack."""

    def f(x, n):
        s = 0.0
        for i in range(len(x)):
            s += x[i]
        return s if n == 0 else f(x, n - 1) + s

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(50_000)
    try:
        assert loops.looped(f)(X[:2], 40_000) == f(X[:2], 40_000)
    finally:
        sys.setrecursionlimit(limit)


def test_explain_names_helpers():
    def f(x):
        return twice(x)

    made = ufuse.jit(f)
    with told(eager=True):
        made(X.copy())
        text = str(made.explain(X.copy()))
    assert "(decayed): native" in text


class Proxy:
    """It counts what it is asked for."""

    asked = 0

    def __getattr__(self, name):
        Proxy.asked += 1
        return decayed


PROXY = Proxy()


def of_a_proxy(x):
    return PROXY.step(twice(x))


def test_objects_are_not_asked_beforehand():
    Proxy.asked = 0  # pytest asks what it collects
    made = loops.looped(of_a_proxy)
    assert Proxy.asked == 0
    alike(outcome(made, [X]), outcome(of_a_proxy, [X]))
    assert Proxy.asked == 2
