"""Are functions that read and assign attributes of objects traced, and are the objects what they
would be in plain NumPy, after the call and for anybody who looks in between?
"""

import collections
import copy
import dataclasses
import functools
import gc
import operator
import pickle
import threading
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import ufuse
from same import same

BACKENDS = ["compiled"]

LIMIT = 3
BUFFER = np.zeros(4)


class Base:
    def __init__(self) -> None:
        self.u = np.linspace(0.0, 1.0, 12).reshape(3, 4)
        self.v = self.u * 2
        self.__hidden = self.u + 1
        self.history: list[Any] = []
        self.table: dict[str, Any] = {"w": self.u - 1, "n": 0}
        self.pair = (self.u, self.v)
        self.steps = 0
        self.dt = 0.1
        self.alias = self.u
        self.row = self.v[1]

    def lap(self, u: Any) -> Any:
        return np.roll(u, 1, 0) - 2 * u + np.roll(u, -1, 0)

    def hide(self, x: Any) -> Any:
        self.__hidden = self.__hidden + x
        self.__hidden += 1
        return self.__hidden * 2


class Inner:
    def __init__(self, data: Any) -> None:
        self.data = data


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self) -> None:
        self.a = np.arange(4.0)
        self.b: Any = None


class Watched:
    """Assigning an attribute runs code."""

    def __init__(self) -> None:
        object.__setattr__(self, "log", [])
        object.__setattr__(self, "a", np.arange(4.0))

    def __setattr__(self, name: str, value: Any) -> None:
        self.log.append((name, type(value).__name__))
        object.__setattr__(self, name, value)


@dataclasses.dataclass
class Record:
    a: Any
    b: Any = None


class Model(Base):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner(self.u + 3)
        self.others = [Inner(self.u), Inner(self.v)]
        self.slotted = Slotted()
        self.watched = Watched()
        self.record = Record(self.u * 5)
        self.space = types.SimpleNamespace(a=self.u + 7)

    @property
    def scaled(self) -> Any:
        return self.v * self.dt

    @scaled.setter
    def scaled(self, value: Any) -> None:
        self.v = value / self.dt
        self.steps += 1


def steps(m: Any) -> Any:
    m.u = m.u + m.dt * m.lap(m.u)
    m.steps += 1
    return m.u


def in_place(m: Any) -> Any:
    y = m.u * 2
    m.u[1:-1] = m.v[1:-1] + y[1:-1]
    m.u += 1
    m.v *= m.u
    m.row[...] = 5
    return y, m.alias + m.v, m.row.sum()


def two_at_once(m: Any) -> Any:
    m.u, m.v = m.v + 1, m.u - 1
    (m.a, *m.rest) = m.u
    m.x = m.y = m.u * m.v
    return m.x is m.y, len(m.rest)


def in_a_loop(m: Any) -> Any:
    for m.i in range(LIMIT):
        m.u = m.u * 0.5 + m.i
    with np.errstate(all="ignore") as m.state:
        m.u = m.u + 1
    return m.i


def keeps(m: Any) -> None:
    m.history.append(m.u * 2)
    m.history.append((m.v + 1, {"a": m.u + 2}))
    m.table["w"] = m.table["w"] * 2
    m.table["n"] += 1
    m.table.setdefault("q", m.u + 4)
    m.pair = (m.pair[1] + 1, m.pair[0])


def inside(m: Any) -> Any:
    m.inner.data = m.inner.data * 2
    m.inner.data[0] = 1
    for each in m.others:
        each.data = each.data + 1
    m.others[0].data += m.others[1].data
    return m.others[0].data.sum()


def by_property(m: Any) -> Any:
    m.scaled = m.scaled + 1
    m.scaled += 1
    return m.scaled, m.steps


def of_other_kinds(m: Any) -> Any:
    m.slotted.b = m.slotted.a * 2
    m.slotted.a += 1
    m.watched.a = m.watched.a + 1
    m.watched.a *= 2
    m.record.b = m.record.a + 1
    m.space.a = m.space.a * 2
    m.space.a -= 1
    return repr(m.record.b), m.watched.log


def deletes(m: Any) -> Any:
    m.temporary = m.u * 2
    y = m.temporary + 1
    del m.temporary
    return y, hasattr(m, "temporary")


def by_name(m: Any) -> Any:
    m.u = m.u + 1
    y = m.u
    for name in ("u", "v"):
        y = y + getattr(m, name)
    return y, getattr(m, "nothing", None)


def is_identical(m: Any) -> Any:
    old = m.u
    m.u = m.u + 1
    kept = m.u
    return m.alias is old, m.u is kept, m.u is old, m.alias is m.u, kept


def shows_others(m: Any) -> Any:
    m.u = m.u + 1
    text = pickle.dumps(m.u * 2)
    twin = copy.copy(m)
    deep = copy.deepcopy(m.inner)
    return text, twin.u, deep.data, str(m.u), f"{m.u.sum()}"


def raises(m: Any) -> Any:
    m.u = m.u + 1
    m.history.append(m.u)
    m.table["w"] = m.u * 3
    raise ValueError(m.u.sum())


def catches(m: Any) -> Any:
    try:
        m.u = m.u * 2
        m.v = m.v + m.u[:, :2]
    except ValueError as error:
        m.error = str(error)
    return m.u


def makes_objects(m: Any) -> Any:
    made = Inner(m.u + 1)
    made.data = made.data * 2
    m.made = made
    other = Record(m.u, b=made)
    return other.b.data, made


def hidden(m: Any) -> Any:
    return m.hide(m.u)


def items_in_place(m: Any) -> Any:
    y, z = m.table["w"] + 1, m.others[0].data * 3
    m.table["w"] *= 2
    m.table["w"] -= y
    m.rows = [m.u, m.v * 2, m.table["w"]]
    m.rows[0] += 1
    m.rows[1] /= y + 3
    m.rows[0][1:] *= 2
    m.rows[1:] = [m.rows[1] + 1, (m.u * 2, {"b": m.v - 1})]
    m.rows[-1][1]["b"] += m.u
    m.table["rows", 0] = m.rows
    del m.rows[0]
    try:
        m.rows[7] += 1
    except IndexError as error:
        m.text = str(error)
    return y, z, m.rows


def through_a_list(m: Any) -> Any:
    y = m.u * 2
    for each in [m.alias, m.row]:
        each[...] = 3
        each += 1
    for name, value in m.table.items():
        if name == "w":
            value -= 1
            y = y + 2 * value - value / 2
            np.add(value, 1, out=value)
            y = y + -value
    return y, m.u + 1, m.table["w"]


FUNCTIONS: list[Callable[..., Any]] = [
    *(steps, in_place, two_at_once, in_a_loop, keeps, inside, by_property, of_other_kinds),
    *(deletes, by_name, is_identical, shows_others, raises, catches, makes_objects, hidden),
    *(through_a_list, items_in_place),
]


def flat(value: Any, seen: dict[int, int]) -> Any:
    """All that can be reached, in an order, with types, bytes, and what is one object."""
    if id(value) in seen:
        return "again", seen[id(value)]
    if isinstance(value, (np.ndarray, list, tuple, dict)) or hasattr(value, "__dict__"):
        seen[id(value)] = len(seen)
    if isinstance(value, np.ndarray):
        base = None if value.base is None else flat(value.base, seen)
        return type(value), value.dtype, value.strides, value.shape, value.tobytes(), base
    if isinstance(value, (list, tuple)):
        return type(value), [flat(each, seen) for each in value]
    if isinstance(value, dict):
        return [(key, flat(each, seen)) for key, each in value.items()]
    if isinstance(value, Slotted):
        return flat((value.a, value.b), seen)
    if hasattr(value, "__dict__") and not isinstance(value, type):
        return type(value), flat(vars(value), seen)
    return type(value), repr(value)


def outcome(function: Callable[..., Any], model: Any) -> Any:
    try:
        result = function(model)
    except ValueError as error:
        result = type(error), error.args
    return flat((result, model), {})


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_objects_are_what_they_would_be(function: Callable[..., Any]) -> None:
    jitted = ufuse.jit(function)
    plain, ours = Model(), Model()
    for _ in range(4):
        assert outcome(jitted, ours) == outcome(function, plain)
    left = [each for each in gc.get_objects() if is_lazy(each)]
    reached = gc.get_referrers(*left) if left else []
    assert not [each for each in reached if isinstance(each, (dict, list, tuple)) and each]


def is_lazy(value: Any) -> bool:
    return type(value).__base__ is ufuse._core.ndarray


def test_steps_are_fused() -> None:
    found = ufuse.jit(steps).explain(Model())
    assert found.mode == "traced"
    assert max(len(group.ops) for group in found.groups) >= 4


def test_another_thread_sees_arrays() -> None:
    model = Model()
    seen: list[Any] = []
    go, done = threading.Event(), threading.Event()

    def looks() -> None:
        go.wait()
        seen.extend([model.u + 0, model.u.sum(), np.asarray(model.u).tobytes()])
        done.set()

    def f(m: Any) -> Any:
        m.u = m.u + 1
        go.set()
        done.wait()
        m.u = m.u * 2
        return m.u

    thread = threading.Thread(target=looks)
    thread.start()
    result = ufuse.jit(f)(model)
    thread.join()
    expected = Model().u + 1
    same(seen[0], expected)
    assert seen[2] == expected.tobytes()
    same(result, expected * 2)


def test_many_threads_step_objects_of_their_own() -> None:
    def f(m: Any) -> Any:
        for _ in range(20):
            m.u = m.u + 0.5 * m.lap(m.u)
        return m.u

    models = [Model() for _ in range(8)]
    jitted = ufuse.jit(f)
    threads = [threading.Thread(target=jitted, args=(m,)) for m in models]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    plain = Model()
    f(plain)
    for m in models:
        same(m.u, plain.u)


def buffer() -> Any:
    return BUFFER


def test_memory_under_another_name() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        buffer()[...] = 7
        z = x + 1
        x[:] = x * 3
        return y, z, BUFFER[0], BUFFER[1:] * 1, -BUFFER

    expected = []
    for function in (f, ufuse.jit(f), ufuse.jit(f)):
        BUFFER[:] = np.arange(4.0)
        expected.append(flat(function(BUFFER), {}))
    assert expected[0] == expected[1] == expected[2]


def test_a_class_steps_a_thousand_times() -> None:
    class Sim:
        def __init__(self) -> None:
            for i in range(10):
                setattr(self, f"a{i}", np.linspace(0, 1, 50) + i)

        def step(self) -> None:
            self.a0 = self.a0 + 0.01 * (np.roll(self.a1, 1) - self.a0)
            self.a1 = self.a1 * 0.99 + self.a2 * 0.01
            self.a2 = np.sin(self.a3) + self.a4
            self.a3 = self.a3 * 0.5
            self.a4 += self.a5 * 0.001
            self.a5, self.a6 = self.a6, self.a5
            self.a7[1:-1] = self.a8[2:] - self.a8[:-2]
            self.a9 = np.where(self.a7 > 0, self.a9, self.a8)

    plain, ours = Sim(), Sim()
    step = ufuse.jit(Sim.step)
    for _ in range(1000):
        plain.step()
        step(ours)
    for i in range(10):
        same(getattr(ours, f"a{i}"), getattr(plain, f"a{i}"))
    assert not [each for each in gc.get_objects() if is_lazy(each)]


class Kept:
    """Others assign to its attributes, or it does so where Python calls it."""

    def __init__(self, k: Any, u: Any) -> None:
        self.k, self.u, self.todo = k, u, ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        self.k, self.u = self.todo


class Assigns:
    def __init__(self, kept: Any, values: Any) -> None:
        self.kept, self.values = kept, values

    def assign(self, *_: Any) -> Any:
        self.kept.k, self.kept.u = self.values
        return 1

    __len__ = __eq__ = __add__ = __iadd__ = __contains__ = __getitem__ = assign
    __call__ = __neg__ = __index__ = __hash__ = assign  # type: ignore[assignment]
    value = property(assign)

    def __bool__(self) -> bool:
        return self.assign() == 1

    def __iter__(self) -> Any:
        self.assign()
        return iter([1])

    def __format__(self, _: str) -> str:
        self.assign()
        return ""

    def __getattr__(self, _: str) -> Any:
        return self.assign()


class AssignsInTheEnd(Assigns):
    def __del__(self) -> None:
        self.assign()


def assign_attributes(m: Any, k: Any, u: Any) -> None:
    m.k, m.u = k, u


def assign_by_dict(m: Any, k: Any, u: Any) -> None:
    m.__dict__["k"] = k
    m.__dict__["u"] = u


def assign_by_update(m: Any, k: Any, u: Any) -> None:
    m.__dict__.update(k=k, u=u)


def assign_by_vars(m: Any, k: Any, u: Any) -> None:
    vars(m).update(k=k, u=u)


def assign_by_text(m: Any, k: Any, u: Any) -> None:
    exec("m.k, m.u = k, u", {"m": m, "k": k, "u": u})


def assign_by_setattr(m: Any, k: Any, u: Any) -> None:
    setattr(m, "k", k)  # noqa: B010
    object.__setattr__(m, "u", u)


def assign_by_partial(m: Any, k: Any, u: Any) -> None:
    list(map(functools.partial(setattr, m, "k"), [k]))
    functools.partial(setattr, m, "u")(u)


def assign_by_manager(m: Any, k: Any, u: Any) -> None:
    m.todo = k, u
    with m:
        pass


def assign_by_deleting(m: Any, k: Any, u: Any) -> None:
    del m.k
    delattr(m, "u")
    m.k, m.u = k, u


def assign_by_key(m: Any, k: Any, u: Any) -> None:
    sorted([2, 1], key=Assigns(m, (k, u)).assign)


def assign_by_generator(m: Any, k: Any, u: Any) -> None:
    def values() -> Any:
        m.k, m.u = k, u
        yield 1

    list(values())


def assign_by_the_end(m: Any, k: Any, u: Any) -> None:
    made = AssignsInTheEnd(m, (k, u))
    del made


def assign_by_unpacking(m: Any, k: Any, u: Any) -> None:
    (_,) = Assigns(m, (k, u))


def assign_by_item(m: Any, k: Any, u: Any) -> None:
    Assigns(m, (k, u))[0]


def assign_by_truth(m: Any, k: Any, u: Any) -> None:
    if Assigns(m, (k, u)):
        pass


def assign_by_operator(m: Any, k: Any, u: Any) -> None:
    made = Assigns(m, (k, u))
    made += 1


def assign_by_comparison(m: Any, k: Any, u: Any) -> None:
    Assigns(m, (k, u)) == 1  # noqa: B015


def assign_by_property(m: Any, k: Any, u: Any) -> None:
    Assigns(m, (k, u)).value  # noqa: B018


def assign_by_missing(m: Any, k: Any, u: Any) -> None:
    Assigns(m, (k, u)).anything  # noqa: B018


def assign_by_format(m: Any, k: Any, u: Any) -> None:
    f"{Assigns(m, (k, u))}"  # noqa: B021


def assign_by_call(m: Any, k: Any, u: Any) -> None:
    Assigns(m, (k, u))()


def assign_by_hash(m: Any, k: Any, u: Any) -> None:
    {Assigns(m, (k, u))}


ASSIGN = [value for name, value in list(globals().items()) if name.startswith("assign_")]


def read_before_and_after(assign: Callable[..., Any]) -> Callable[..., Any]:
    def f(m: Any, x: Any) -> Any:
        before = x * m.k + m.u
        assign(m, m.k + 1, x * 3)
        return before, x * m.k, m.k, m.u + 1

    return f


def read_after(assign: Callable[..., Any]) -> Callable[..., Any]:
    def f(m: Any, x: Any) -> Any:
        assign(m, 4.0, x * 3)
        return x * m.k, m.u

    return f


def read_in_a_loop(assign: Callable[..., Any]) -> Callable[..., Any]:
    def f(m: Any, x: Any) -> Any:
        for i in range(4):
            x = x * m.k + m.u
            assign(m, float(i), x)
        return x, m.k * x

    return f


def compare_calls(function: Callable[..., Any]) -> None:
    jitted = ufuse.jit(function)
    for k in (1.5, 1.5, 2.5, 3.5, 3.5):
        plain, ours = Kept(k, np.arange(3.0)), Kept(k, np.arange(3.0))
        same(jitted(ours, np.ones(3)), function(plain, np.ones(3)))
        same(vars(ours), vars(plain))


@pytest.mark.parametrize("kind", [read_before_and_after, read_after, read_in_a_loop])
@pytest.mark.parametrize("assign", ASSIGN, ids=lambda f: f.__name__)
def test_whoever_assigns(assign: Callable[..., Any], kind: Callable[..., Any]) -> None:
    compare_calls(kind(assign))


def test_assigned_in_the_dictionary() -> None:
    def f(m: Any, x: Any) -> Any:
        m.__dict__["k"] = 4.0
        m.__dict__.update(u=x + 1)
        return x * m.k, m.u

    compare_calls(f)


class Marked(collections.namedtuple("Marked", "left right")):
    """A named tuple that has attributes as well."""

    def __init__(self, left: Any, right: Any) -> None:
        self.sum = left + right


Bare = collections.namedtuple("Bare", "left right")


def reads_attribute(marked: Any, owner: Any) -> Any:
    return marked.left * marked.sum + marked.right


def writes_attribute(marked: Any, owner: Any) -> Any:
    marked.more = marked.left + 1
    return marked.right * 2


def returns_marked(marked: Any, owner: Any) -> Any:
    return Marked(marked.left * 2, marked.right + 1)


def adds_attribute(marked: Any, owner: Any) -> Any:
    made = Marked(marked.left * 2, marked.right + 1)
    made.more = [made.left - 3]
    return {"made": made}


def returns_what_is_kept(marked: Any, owner: Any) -> Any:
    owner.kept = Marked(marked.left * 2, marked.right + 1)
    return owner.kept


def returns_bare_that_is_kept(marked: Any, owner: Any) -> Any:
    owner.kept = Bare(marked.left * 2, [marked.right + 1])
    return owner.kept


class Pair(tuple):
    pass


class Items(list):
    pass


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize(
    "kind",
    [Pair, Items, Point._make, collections.deque, collections.UserList],
    ids=["tuple", "list", "namedtuple", "deque", "UserList"],
)
@pytest.mark.parametrize(
    "use",
    [
        np.concatenate,
        np.hstack,
        np.lexsort,
        lambda pair: np.ravel_multi_index(pair, (5, 5)),
        lambda pair: np.sum(pair, axis=0),
        lambda pair: np.maximum.reduce(pair),
        lambda pair: np.select([pair[0] > 1, pair[1] > 2], pair),
        lambda pair: np.block([pair[0], pair[1]]),
        lambda pair: np.array(pair),
    ],
)
def test_numpy_is_given_sequences_of_other_classes(
    use: Callable[..., Any], kind: Callable[..., Any]
) -> None:
    def function(x: Any) -> Any:
        pair = kind([x * 2, x + 1])
        return use(pair), pair[0] + pair[1]

    x = np.arange(3)
    try:
        expected = function(x)
    except TypeError:
        pytest.skip("NumPy refuses them")
    native = ufuse.jit(function)
    for _ in range(3):
        same(native(x), expected)


@pytest.mark.parametrize(
    "f",
    [
        reads_attribute,
        writes_attribute,
        returns_marked,
        adds_attribute,
        returns_what_is_kept,
        returns_bare_that_is_kept,
    ],
)
def test_named_tuples_keep_their_attributes(f: Callable[..., Any]) -> None:
    def outcome(function: Callable[..., Any]) -> Any:
        marked = Marked(np.linspace(0, 1, 5), np.arange(5.0))
        owner = types.SimpleNamespace(kept=None)
        result = function(marked, owner)
        inside = result["made"] if type(result) is dict else result
        return (
            result,
            dict(getattr(inside, "__dict__", {})),
            dict(vars(marked)),
            owner.kept,
            inside is owner.kept,
        )

    native = ufuse.jit(f)
    for _ in range(3):
        same(outcome(native), outcome(f))


class Quantity:
    """Whose methods Python and NumPy call themselves, and are particular about what they get."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([self.value, 2.0]) * 2

    def __float__(self) -> Any:
        return np.sqrt(self.value)

    def __index__(self) -> Any:
        return np.add(1, 1)

    def __bool__(self) -> Any:
        return np.greater(self.value, 0)

    def __lt__(self, other: Any) -> Any:
        return np.sqrt(self.value) < other.value


JittedQuantity: Any = type(
    "Quantity",
    (Quantity,),
    {
        name: ufuse.jit(each)
        for name, each in vars(Quantity).items()
        if type(each) is types.FunctionType
    },
)


def as_array(quantity: Quantity, dtype: Any = None, copy: Any = None) -> Any:
    return np.array([quantity.value, 2.0]) * 2


def root(quantity: Quantity) -> Any:
    return np.sqrt(quantity.value)


# Its functions have other names than its methods.
RenamedQuantity: Any = type(
    "Quantity",
    (JittedQuantity,),
    {"__array__": ufuse.jit(as_array), "__float__": ufuse.jit(root)},
)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of numbers that are not quite Python's
@pytest.mark.parametrize(
    "f",
    [
        lambda q, x: np.array(q) + x,
        lambda q, x: np.add(x, q),
        lambda q, x: np.sqrt(x) * q,
        lambda q, x: x + float(q),
        lambda q, x: x[q:] * 2,
        lambda q, x: (x + 1) if q else (x - 1),
        lambda q, x: sorted([q, type(q)(1.0)])[0].value * x,
    ],
)
def test_methods_that_python_and_numpy_call(f: Callable[..., Any]) -> None:
    def outcome(function: Callable[..., Any], quantity: Any) -> Any:
        try:
            return function(quantity(4.0), np.array([1.0, 4.0]))
        except TypeError as error:
            return str(error)

    native = ufuse.jit(f)
    for _ in range(3):
        expected = outcome(f, Quantity)
        same(outcome(native, Quantity), expected)
        same(outcome(native, JittedQuantity), expected)
        same(outcome(native, RenamedQuantity), expected)


Pair = collections.namedtuple("Pair", ["first", "second"])


def sets_attribute(owner: Any, given: Any) -> None:
    setattr(owner, "kept", Pair(1, given))  # noqa: B010 - a call of C is what is tested


def sets_item(owner: Any, given: Any) -> Any:
    owner.table["pair"] = Pair(given[1] * 2, given)
    return owner.table["pair"].second


def sets_item_by_a_function(owner: Any, given: Any) -> None:
    operator.setitem(owner.table, "pair", Pair(1, given))


def appends(owner: Any, given: Any) -> None:
    owner.items.append([Pair(given, [given])])


@pytest.mark.parametrize("f", [sets_attribute, sets_item, sets_item_by_a_function, appends])
@pytest.mark.parametrize(
    "make",
    [
        lambda: [3.0, np.arange(2.0)],
        lambda: (3.0, np.arange(2.0)),
        lambda: {0: 3.0, 1: np.arange(2.0)},
    ],
)
def test_named_tuples_hold_the_callers_containers(
    f: Callable[..., Any], make: Callable[[], Any]
) -> None:
    native = ufuse.jit(f)
    for _ in range(3):
        given = make()
        owners = [types.SimpleNamespace(table={}, items=[], kept=None) for _ in range(2)]
        same(
            flat((given, native(owners[0], given), vars(owners[0])), {}),
            flat((given, f(owners[1], given), vars(owners[1])), {}),
        )
