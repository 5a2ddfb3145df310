"""Are the user's objects asked only what the user's code asks them?

Proxies of other packages answer for the object they stand for, also with its ``__class__``. Objects
that load something when they are asked, or that write down who asked, must not notice that a
function is traced.
"""

import contextlib
import functools
import inspect
import operator
import types
import warnings

import numpy as np
import pytest
import ufuse
from texts import function_of

BACKENDS = ["interpreted"]
CALLS = 4


class Proxy:
    """Stands for another object, as those of wrapt and werkzeug do."""

    def __init__(self, target):
        object.__setattr__(self, "_target", target)

    @property
    def __class__(self):
        return type(self._target)

    def __getattr__(self, name):
        return getattr(self._target, name)

    def __setattr__(self, name, value):
        setattr(self._target, name, value)

    def __call__(self, *args):
        return self._target(*args)

    def __getitem__(self, item):
        return self._target[item]

    def __iter__(self):
        return iter(self._target)

    def __rmul__(self, other):
        return other * self._target

    def __enter__(self):
        return self._target.__enter__()

    def __exit__(self, *error):
        return self._target.__exit__(*error)


class Model:
    k = 2.0

    def __init__(self):
        self.u = np.ones(3)

    def step(self, x):
        self.u = self.u + x
        return self.u * 2


class Unbound(Model):
    """A proxy that stands for nothing yet."""

    @property
    def __class__(self):
        raise RuntimeError("outside of a context")


def tripled(x):
    return x * 3


OBJECTS = {
    "array": lambda: Proxy(np.arange(3.0)),
    "list": lambda: Proxy([np.arange(3.0), 2]),
    "dict": lambda: Proxy({0: np.arange(3.0)}),
    "tuple": lambda: Proxy((np.arange(3.0), 1)),
    "function": lambda: Proxy(tripled),
    "jitted": lambda: Proxy(ufuse.jit(tripled)),
    "partial": lambda: Proxy(functools.partial(tripled)),
    "method": lambda: Proxy(Model().step),
    "ufunc": lambda: Proxy(np.sin),
    "module": lambda: Proxy(np),
    "number": lambda: Proxy(2.0),
    "model": lambda: Proxy(Model()),
    "manager": lambda: Proxy(contextlib.nullcontext()),
    "nothing": Unbound,
}
THE = None  # what the functions below find in a global; see `own`


def multiplied(x, p):
    return x * p + 1


def called(x, p):
    return p(x) + 1


def called_by_name(x, p):
    return THE(x) + 1


def returned(x, p):
    return [p, x * 2], {"a": (p, x + 1)}, THE


def iterated(x, p):
    return [each * x for each in p]


def has_attributes(x, p):
    p.made = x * p.k
    return p.made + 1, p.step(x)


def of_a_module(x, p):
    return p.sin(x) + 1


def asked_for_its_class(x, p):
    return isinstance(p, np.ndarray), isinstance(p, list), x + 1


def managed(x, p):
    with p:
        return x * 2


FUNCTIONS = [
    *[multiplied, called, called_by_name, returned, iterated, has_attributes, of_a_module],
    *[asked_for_its_class, managed],
]


def plain(value):
    """What a value is, with the proxies and models in it told by their contents."""
    kind = type(value)
    if kind is Proxy:
        return kind, plain(object.__getattribute__(value, "_target"))
    if kind in (Model, Unbound):
        return kind, {name: plain(each) for name, each in vars(value).items()}
    if kind in (list, tuple):
        return kind, [plain(each) for each in value]
    if kind is dict:
        return kind, {name: plain(each) for name, each in value.items()}
    if kind is np.ndarray:
        return kind, value.dtype, value.tolist()
    return kind, value if kind in (int, float, bool) else None


def own(function, p):
    """The function as if nobody had looked at its text yet, with ``THE`` as its global."""
    return function_of(inspect.getsource(function), {"np": np, "THE": p})


def outcomes(wrap, function, p):
    function = wrap(own(function, p))
    x = np.arange(3.0)
    found = []
    for _ in range(CALLS):
        try:
            result = plain(function(x, p))
        except Exception as error:
            result = type(error), str(error)
        found.append((result, x.tolist(), plain(p)))
    return found


@pytest.mark.parametrize("make", OBJECTS.values(), ids=OBJECTS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_proxies(function, make):
    ours, theirs = (outcomes(wrap, function, make()) for wrap in (ufuse.jit, lambda f: f))
    same = ours == theirs  # in an assertion pytest would print the objects, and so ask them
    assert same


ASKED = []


class Attributes:
    k = 2.0

    def __getattribute__(self, name):
        ASKED.append(name)
        return object.__getattribute__(self, name)

    def __call__(self, x):
        return x + 1

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def step(self, x):
        return x * 2


class Missing:
    __slots__ = ("made",)

    def __getattr__(self, name):
        ASKED.append(name)
        if name.startswith("_"):
            raise AttributeError(name)
        return (lambda x: x * 2) if name == "step" else 3.0

    __call__, __enter__, __exit__ = Attributes.__call__, Attributes.__enter__, Attributes.__exit__


def derived(kind, *names):
    """A class derived from a container of Python's, whose methods write down that they ran."""

    def asked(name, method):
        def call(self, *args):
            ASKED.append(name)
            return method(self, *args)

        return call

    own = ("k", "step", "__call__", "__enter__", "__exit__")
    members = {name: vars(Attributes)[name] for name in own}
    members |= {name: asked(name, getattr(kind, name)) for name in ("__iter__", "__len__", *names)}
    members["__eq__"] = asked("__eq__", operator.is_)
    members["__hash__"] = asked("__hash__", lambda self: 1)
    return type(kind.__name__.title(), (kind,), members)


Row = derived(list, "__getitem__", "__setitem__")
Pair = derived(tuple, "__getitem__")
Table = derived(dict, "__setitem__", "values", "items")


def held(x, p):
    y = x * 2
    items = [y, p]
    return items, {"a": p}, items[0] + 1


def gets_a_result(x, p):
    if isinstance(p, list):
        list.append(p, x * 2)
    elif isinstance(p, dict):
        dict.__setitem__(p, "made", x * 2)
    return p


@pytest.mark.parametrize("make", [Attributes, Missing, Row, Pair, Table])
@pytest.mark.parametrize("function", [*FUNCTIONS, held, gets_a_result])
def test_nobody_else_asks(function, make):
    def asked(wrap):
        p = make()
        called = wrap(own(function, p))
        found = []
        for _ in range(CALLS):
            ASKED.clear()
            with contextlib.suppress(TypeError, AttributeError, ValueError):
                called(np.arange(3.0), p)
            found.append(list(ASKED))
        return found

    assert asked(ufuse.jit) == asked(lambda f: f)


LATE = types.ModuleType("late")


def late(name):
    if name != "k":
        raise AttributeError(name)
    ASKED.append(name)
    warnings.warn(f"{name} is deprecated", stacklevel=2)
    return 3.0


LATE.__getattr__ = late


def of_a_late_module(x):
    return x * LATE.k + 1


def of_numpy(x):
    return np.core.numeric.ones(3) + x


# What a module makes when it is asked for is asked for once, and warns of the user's line.
@pytest.mark.parametrize("function", [of_a_late_module, of_numpy])
def test_modules_are_asked_once(function):
    def seen(called):
        found = []
        for _ in range(CALLS):
            ASKED.clear()
            with warnings.catch_warnings(record=True) as record:
                warnings.simplefilter("always")
                called(np.arange(3.0))
            found.append((list(ASKED), [(str(w.message), w.filename, w.lineno) for w in record]))
        return found

    assert seen(ufuse.jit(function)) == seen(function)
