"""Are calls with objects replayed, and is a replay never taken for another call's: what stood in
the attributes, what their class was, what the call did to them?
"""

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import ufuse
from same import same
from test_objects import flat, is_lazy

BACKENDS = ["compiled"]

SHARED = np.ones(4)


class Part:
    def __init__(self, size: int) -> None:
        self.data = np.arange(float(size))
        self.scale = 2.0


class Model:
    unit = 3.0
    table: Any = {"a": 1}  # noqa: RUF012 - a mutable attribute of the class is what is tested

    def __init__(self, size: int = 4) -> None:
        self.u = np.linspace(0.0, 1.0, size)
        self.v = np.arange(size) * 0.5
        self.w = np.full(size, 2.0)
        self.dt = 0.1
        self.t = 0.0
        self.count = 0
        self.name = "first"
        self.flag = True
        self.number = np.float64(1.5)
        self.part = Part(size)
        self.parts = [Part(size), Part(size)]
        self.arrays = {"a": self.u + 1, "b": self.v + 2}
        self.weights = (1.0, np.float32(2))
        self.function: Any = np.sin
        self.dtype = np.float32
        self.me = self

    def rate(self, x: Any) -> Any:
        return x * self.dt + self.unit

    @property
    def energy(self) -> Any:
        return (self.u * self.u).sum() + self.dt

    @staticmethod
    def doubled(x: Any) -> Any:
        return x * 2

    @classmethod
    def zeros(cls, x: Any) -> Any:
        return x * 0


class Derived(Model):
    def rate(self, x: Any) -> Any:
        return super().rate(x) * 2


# What a function does with a model.


def assigns(m: Any) -> Any:
    m.u = m.u + m.dt * m.v
    m.v, m.w = m.w * 2, m.v
    return m.u


def in_place(m: Any) -> Any:
    m.u += m.v
    m.v *= 2
    return m.u.sum()


def calls_methods(m: Any) -> Any:
    m.u = m.rate(m.u) + m.doubled(m.v) + m.zeros(m.w)
    return m.energy


def looks(m: Any) -> Any:
    if m.flag and m.name == "first":
        return m.u * m.number * m.weights[0] + m.weights[1]
    return m.v - m.count


def nested(m: Any) -> Any:
    m.part.data = m.part.data * m.part.scale
    for part in m.parts:
        part.data = part.data + m.u
    return m.arrays["a"] + m.parts[0].data, m.me.u + m.me.me.v


def by_function(m: Any) -> Any:
    m.u = m.function(m.u) + 1
    return m.u.astype(m.dtype)


def new_attributes(m: Any) -> Any:
    m.first = m.u + 1
    m.second = m.first * 2
    m.first = m.second - 1
    m.flag = True
    m.both = [m.first, (m.second, m)]
    return m


def only_says(m: Any) -> Any:
    m.flag = False
    m.name = "said"
    return m.u + 1


def keeps_old(m: Any) -> Any:
    old = m.u
    m.u = m.u + 1
    m.v = old
    return m.u - old, m.v is old


def goes_on(m: Any) -> Any:
    m.t = m.t + m.dt
    m.count += 1
    k = m.dt * 2 if m.t < 1.0 else 0.5
    m.u = m.u + k * m.t
    m.energy_now = (m.u * m.t).sum()
    m.last, m.t = m.t, m.t * 1.5 - m.dt
    return m.u * m.count - m.last


def asks(m: Any) -> Any:
    return hasattr(m, "extra"), isinstance(m, Derived), m.__class__.__name__, m.u * 2


def takes_default(m: Any, x: Any = SHARED) -> Any:
    m.u = m.u + x
    return m.u


REPLAYED = [assigns, in_place, calls_methods, looks, nested, by_function, new_attributes]
REPLAYED += [only_says, keeps_old, goes_on]

# What cannot be repeated by a plan, or need not be.


def appends(m: Any) -> Any:
    m.parts.append(m.u + 1)
    m.arrays["c"] = m.v * 2
    m.arrays["n"] = m.arrays.get("n", 0) + 1
    return len(m.parts)


def counts(m: Any) -> Any:
    m.count += 1
    m.u = m.u + m.count
    return m.count


def shows_numbers(m: Any) -> Any:
    m.t += m.dt
    text = f"{m.t:.3f} {m.count}"
    m.count = m.count * 2 + 1
    m.name = text
    return m.u[: m.count % 3] * m.t, m.t, [m.count], range(m.count % 5), -m.t


def by_dictionary(m: Any) -> Any:
    vars(m)["u"] = m.u + 1
    m.__dict__["v"] = m.v + 1
    for name in ("w",):
        setattr(m, name, m.w + 1)
    object.__setattr__(m, "x", m.u)
    name = "u"
    return getattr(m, name) + getattr(m, "nothing", 1)


def deletes(m: Any) -> Any:
    m.extra = m.u
    del m.extra
    m.extra = m.v * 2
    return m.extra


def of_the_class(m: Any) -> Any:
    type(m).unit = m.unit + 1
    m.__class__.table["a"] += 1
    return m.u * m.unit + m.table["a"]


def reads_the_class(m: Any) -> Any:
    return m.u * type(m).table["a"] + m.__class__.unit + m.doubled.__name__.__len__()


def matches(m: Any) -> Any:
    match m:
        case Model(dt=dt, count=0):
            return m.u * dt
        case Model(t=t):
            return m.u * 3 + t


def is_unpacked(m: Any) -> Any:
    return dict(**m.arrays)["a"] + {**m.arrays}["b"], np.mean(m.u), np.shape(m.v)


def grows(m: Any) -> Any:
    if not hasattr(m, "long"):
        m.long = [1.0] * 300
    m.long.append(m.dt)
    return m.u + m.long[-1] + sum(m.long)


def makes(m: Any) -> Any:
    other = type(m.part)(4)
    other.data = other.data + m.u
    m.part = other
    return other


def says_where(m: Any) -> Any:
    return f"{m}" == repr(m), "%s" % m == str(m), m.u + 1  # noqa: UP031 - the other way


def identical(m: Any) -> Any:
    return m.me is m, m.parts[0] is m.parts[1], m == m.me, m.u + 1


TRACED = [
    asks,
    takes_default,
    appends,
    counts,
    shows_numbers,
    by_dictionary,
    deletes,
    of_the_class,
    makes,
]
TRACED += [says_where, identical, reads_the_class, matches, is_unpacked, grows]

# What happens between two calls.


def nothing(m: Any) -> None:
    """The same again."""


def other_arrays(m: Any) -> None:
    m.u = np.linspace(2.0, 3.0, len(m.u))
    m.arrays["a"] = m.u * 3


def other_sizes(m: Any) -> None:
    size = 4 + len(m.u) % 5
    m.u, m.v, m.w = np.linspace(0.0, 1.0, size), np.arange(size) * 0.5, np.full(size, 2.0)
    for part in (m.part, *m.parts):
        if isinstance(part, Part):
            part.data = np.arange(float(size))
    m.arrays = {"a": m.u + 1, "b": m.v + 2}


def other_types(m: Any) -> None:
    kind = np.float32 if m.u.dtype == np.float64 else np.float64
    m.u, m.v = m.u.astype(kind), m.v[::-1].astype(kind)[::-1]


def other_numbers(m: Any) -> None:
    m.dt, m.number = m.dt * 2, np.float64(m.number + 1)
    m.t = {0.0: 3, 3: 2.5}.get(m.t, 1.0)
    m.weights = (m.weights[0] + 1, np.float32(3))
    m.part.scale += 1


def other_words(m: Any) -> None:
    m.name, m.flag = ("second", True) if m.name == "first" else ("first", not m.flag)


def same_memory(m: Any) -> None:
    m.v = m.u[: len(m.v)]


def same_array(m: Any) -> None:
    m.v = m.u if m.v is not m.u else m.u.copy()


def read_only(m: Any) -> None:
    m.u = m.u.copy()
    m.u.flags.writeable = False


def other_class(m: Any) -> None:
    m.__class__ = m.kinds[type(m) is m.kinds[0]]


def own_method(m: Any) -> None:
    if "rate" in vars(m):
        del m.rate
    else:
        m.rate = lambda x: x - 1


def other_function(m: Any) -> None:
    m.function = {np.sin: np.cos, np.cos: abs, abs: np.negative}.get(m.function, np.sin)
    m.dtype = np.float64 if m.dtype is np.float32 else np.float32


def other_objects(m: Any) -> None:
    m.parts = list(reversed(m.parts))
    m.part = m.parts[0]


def fewer(m: Any) -> None:
    for name in ("first", "second", "both", "extra"):
        vars(m).pop(name, None)


CHANGES = [nothing, other_arrays, other_sizes, other_types, other_numbers, other_words]
CHANGES += [same_memory, same_array, read_only, other_class, own_method, other_function]
CHANGES += [other_objects, fewer]


def made() -> Any:
    """A model with classes of its own, for some functions change them."""
    kinds = [type(each.__name__, (each,), {"table": {"a": 1}}) for each in (Model, Derived)]
    model = kinds[0]()
    model.kinds = tuple(kinds)
    return model


def outcome(function: Callable[..., Any], model: Any) -> Any:
    try:
        result = function(model)
    except Exception as error:
        result = type(error), str(error)
    return flat((result, model), {})


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("function", REPLAYED + TRACED, ids=lambda f: f.__name__)
def test_calls_between_changes(function: Callable[..., Any], change: Callable[..., Any]) -> None:
    jitted = ufuse.jit(function)
    plain, ours = made(), made()
    for i in range(9):
        seen = outcome(jitted, ours)
        expected = outcome(function, plain)
        assert str(seen).replace(hex(id(ours)), "") == str(expected).replace(hex(id(plain)), "")
        if i % 3 == 2:
            change(plain)
            change(ours)
    assert not [each for each in gc.get_objects() if is_lazy(each)]


@pytest.mark.parametrize("function", REPLAYED, ids=lambda f: f.__name__)
def test_calls_are_replayed(function: Callable[..., Any]) -> None:
    jitted = ufuse.jit(function)
    model = Model()
    for _ in range(6):
        jitted(model)
    assert jitted.explain(model).mode == "replayed"


FACTOR = 2.0


class Calls:
    """Methods that are jitted themselves, and what they lean on."""

    def __init__(self) -> None:
        self.u = np.arange(4.0)

    @ufuse.jit
    def scaled(self, x: Any) -> Any:
        return x * FACTOR

    @ufuse.jit
    def step(self) -> Any:
        self.u = self.scaled(self.u) + 1
        return self.u


def test_jitted_methods_that_call_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    global FACTOR
    ours, u = Calls(), np.arange(4.0)
    for i in range(12):
        FACTOR = 2.0 if i % 6 < 4 else 3.0
        u = u * FACTOR + 1
        same(ours.step(), u)
    monkeypatch.setattr(Calls, "scaled", lambda self, x: x - 1)
    for _ in range(3):
        u = u - 1 + 1
        same(ours.step(), u)


def both(a: Any, b: Any) -> Any:
    a.u = a.u + b.v
    b.u, b.v = a.v * 2, a.u
    return a, b, a.u is b.v


def test_two_objects() -> None:
    jitted = ufuse.jit(both)
    plain, ours = [Model() for _ in range(3)], [Model() for _ in range(3)]
    for i, j in [(0, 1), (0, 1), (1, 0), (0, 0), (0, 0), (1, 2), (0, 1), (2, 2), (1, 1)] * 3:
        seen = flat((jitted(ours[i], ours[j]), ours), {})
        assert seen == flat((both(plain[i], plain[j]), plain), {})


def test_threads_with_objects_of_their_own() -> None:
    jitted = ufuse.jit(assigns)
    plain, ours = Model(), [Model() for _ in range(4)]
    for _ in range(200):
        assigns(plain)

    def steps(model: Any) -> None:
        for _ in range(200):
            jitted(model)

    threads = [threading.Thread(target=steps, args=(model,)) for model in ours]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [flat(each, {}) for each in ours] == [flat(plain, {})] * 4


class Loop:
    """A simulation: ten arrays, methods that call each other."""

    def __init__(self) -> None:
        random = np.random.default_rng(1)
        for name in "abcdefghij":
            setattr(self, name, random.random((6, 7)))
        self.dt, self.t, self.steps = 0.01, 0.0, 0

    def wave(self, x: Any) -> Any:
        return np.sin(x) * self.dt

    def step(self) -> Any:
        self.a = self.a + self.dt * (self.b - self.a)
        self.b = self.b + self.wave(self.c)
        self.c = self.c * 0.99 + self.d * self.dt
        self.d += self.dt * self.e
        self.e = np.where(self.f > 0.5, self.e, self.f)
        self.f -= self.dt * self.g
        self.g = self.h
        self.h = self.h + self.dt
        self.i, self.j = self.j + 1, self.i * 0.5
        self.t += self.dt
        self.steps += 1
        self.h = np.where(self.h > self.t, self.h, 1.0) + self.steps * self.dt
        return self.a.sum(axis=0)


def test_a_thousand_steps() -> None:
    jitted = ufuse.jit(Loop.step)
    plain, ours = Loop(), Loop()
    for _ in range(1000):
        assert flat((jitted(ours), ours), {}) == flat((plain.step(), plain), {})
    assert jitted._dispatcher.counts[1] < 10
    assert not [each for each in gc.get_objects() if is_lazy(each)]


def test_classes_can_be_freed() -> None:
    def make() -> weakref.ref[type]:
        class Local:
            def __init__(self) -> None:
                self.u = np.ones(3)

            @ufuse.jit
            def step(self) -> None:
                self.u = self.u + 1

        model = Local()
        for _ in range(4):
            model.step()
        return weakref.ref(Local)

    local = make()
    gc.collect()
    assert local() is None


class Solver:
    """Its function is another one each time, and holds a pool, a file or a socket."""

    def __init__(self, resource: Any) -> None:
        self.apply = lambda x: x * resource[0]
        self.parts = [resource, np.ones(3)]

    def through_attribute(self, x: Any) -> Any:
        return self.apply(x).sum()

    def in_a_helper(self, x: Any) -> Any:
        return (lambda y: self.apply(y) + y)(x)

    def assigned(self, x: Any) -> Any:
        self.last = self.apply(x)
        return self.last * 2

    def raising(self, x: Any) -> Any:
        raise ValueError(self.apply(x))


@pytest.mark.parametrize("name", ["through_attribute", "in_a_helper", "assigned", "raising"])
def test_attributes_live_no_longer_than_the_object(name: str) -> None:
    class Resource(list[float]):
        pass

    jitted = ufuse.jit(getattr(Solver, name))
    gc.disable()  # only what nothing refers to goes
    try:
        for turn in range(14):
            resource = Resource([2.0])
            known, solver = weakref.ref(resource), Solver(resource)
            for _ in range(1 + turn % 3):
                try:
                    jitted(solver, np.arange(5.0))
                except ValueError:
                    assert name == "raising"
            del resource, solver
            assert known() is None, turn
    finally:
        gc.enable()


def generator_of(resource: Any) -> Any:
    def each(x: Any) -> Any:
        for factor in resource:
            yield x * factor

    return each


def without_source(resource: Any) -> Any:
    space: dict[str, Any] = {}
    exec("def make(r):\n    def f(x): return [x * r[0]]\n    return f", space)
    return space["make"](resource)


def class_of(resource: Any) -> Any:
    class Doubled:
        def __init__(self, x: Any) -> None:
            self.value = x * resource[0]

        def __iter__(self) -> Any:
            return iter([self.value])

    return Doubled


def callable_of(resource: Any) -> Any:
    class Doubling:
        def __call__(self, x: Any) -> Any:
            return [x * resource[0]]

    return Doubling()


def ufunc_of(resource: Any) -> Any:
    return np.frompyfunc(lambda x: x * resource[0], 1, 1)


@pytest.mark.parametrize(
    "make",
    [generator_of, without_source, class_of, callable_of, ufunc_of],
    ids=lambda f: f.__name__,
)
def test_callables_can_be_freed(make: Callable[[Any], Any]) -> None:
    class Resource(list[float]):
        pass

    jitted = ufuse.jit(lambda f, x: sum(f(x * 2)) + 1)
    for turn in range(14):
        resource = Resource([2.0])
        known, given = weakref.ref(resource), make(resource)
        for _ in range(1 + turn % 3):
            jitted(given, np.arange(5.0))
        del resource, given
        gc.collect()
        assert known() is None, turn


def test_numbers_given_and_kept() -> None:
    def f(m: Any, x: Any, k: Any) -> Any:
        m.t, m.dt = k * 2, m.t + 1
        return x * k + m.dt * m.t

    jitted = ufuse.jit(f)
    plain, ours = Model(), Model()
    for k in (1.0, 1.0, 2.5, 3, 3, 4, 1j, True, np.float64(2)) * 2:
        seen = flat((jitted(ours, ours.u, k), ours), {})
        assert seen == flat((f(plain, plain.u, k), plain), {})
    assert jitted._dispatcher.counts[0] > 3


def keeps(model: Any, given: Any) -> Any:
    model.t = given


def keeps_part(model: Any, given: Any) -> Any:
    model.t = [given[-1]]
    return model.t


def returns_what_is_kept(model: Any, given: Any) -> Any:
    model.t, model.name = given, [given, 2.0]
    return model.u * 2, model.t, {"kept": model.name}


@pytest.mark.parametrize("f", [keeps, keeps_part, returns_what_is_kept, lambda m, given: given])
@pytest.mark.parametrize(
    "make",
    [
        lambda: tuple([1.0, 2.0]),
        lambda: [1.0, 2.0],
        lambda: tuple([1, tuple(["a", 2.0])]),
        lambda: ([3, 4], {"a": 1.0}),
        lambda: (np.arange(3.0), tuple([5.0, 6.0])),
        lambda: [[np.arange(3.0), 1], [7, 8]],
    ],
    ids=lambda make: repr(make()),
)
def test_the_callers_containers_stay_the_objects_that_they_are(
    f: Callable[..., Any], make: Callable[[], Any]
) -> None:
    native = ufuse.jit(f)
    for _ in range(4):
        ours, plain, given = Model(), Model(), make()
        same(
            flat((given, native(ours, given), ours), {}), flat((given, f(plain, given), plain), {})
        )


HELD = (1.0, ("a", 2))


def test_tuples_that_names_stand_for_stay_the_objects_that_they_are() -> None:
    in_a_variable = (3, "c")

    def f(model: Any, default: Any = (4.0, None)) -> Any:
        model.t, model.name = HELD, default
        return in_a_variable, model.u * 2

    native = ufuse.jit(f)
    for _ in range(4):
        model = Model()
        result = native(model)
        assert model.t is HELD
        assert model.name is f.__defaults__[0]
        assert result[0] is in_a_variable
    assert native._dispatcher.counts[0] > 1
