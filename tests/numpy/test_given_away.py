"""What do others get to see of values and containers that traced code gives them?

Other packages' functions, and Python code without call sites (an operator's method, a key function,
a generator that goes on), get real arrays. Lists and dicts stay the objects that they are, whoever
made them: others may keep and change them, and so may the function afterwards.
"""

import collections
import functools
import importlib
import itertools
import operator
import queue
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import ufuse
from test_objects import flat

BACKENDS = ["compiled"]

PACKAGE = """
import numpy as np

ours, kept = [], []


def begin():
    ours[:] = [np.ones(3), [np.zeros(2), 1], {"a": np.arange(3.0)}]


def is_array(value):
    return type(value) is np.ndarray


def append(values, x):
    values.append(is_array(x))
    values.append(x + 1)


def change(table, x):
    table["a"][0] = 7
    table["b"] = x


def deep(pair, x):
    pair[0].append(pair[1])
    pair[1]["a"].append(x)
    pair[1]["n"] = pair[0].pop(0)


def keep(values):
    kept.append(values)
    return len(kept)


def same(value):
    return value


def pop(values):
    return values.pop()


def all_of_ours():
    return ours


def types_in(values):
    return [type(each).__mro__[0] is type(np.add(each, 0)) for each in values]


class Keeper:
    def __init__(self):
        self.items = {}

    def __setitem__(self, key, value):
        self.items[key] = value

    def __getitem__(self, key):
        return self.items[key]


class Answers:
    def __init__(self):
        self.seen = []

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        self.seen.append([is_array(each) for each in inputs])
        return self
"""


@pytest.fixture
def others(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A package that is installed."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    name = "others_" + "".join(each for each in tmp_path.name if each.isalnum())
    (folder / f"{name}.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(folder)
    return importlib.import_module(name)


class Pair(NamedTuple):
    first: Any
    second: Any = None


def list_is_appended_to(others: Any, x: Any) -> Any:
    values = [x * 2]
    others.append(values, x)
    return values, values[-1] * 2


def dict_is_changed(others: Any, x: Any) -> Any:
    table = {"a": x * 2}
    others.change(table, x)
    table["a"] += 1
    return table, table["b"] is x


def containers_in_containers_are_changed(others: Any, x: Any) -> Any:
    pair = ([x * 2, x], {"a": [x + 1]})
    others.deep(pair, x)
    return pair, pair[0][-1] is pair[1]


def list_is_kept_and_goes_on(others: Any, x: Any) -> Any:
    values = [x * 2]
    others.keep(values)
    values.append(x)
    values[0] = values[0] * 3
    return others.kept[-1] is values, others.kept.pop()


def list_waits_in_a_queue(others: Any, x: Any) -> Any:
    waiting: Any = queue.Queue()
    values = [x * 2]
    waiting.put(values)
    values.append(x)
    got = waiting.get()
    return got is values, got


def list_comes_back(others: Any, x: Any) -> Any:
    values, pair = [x * 2], (x, [x + 1])
    same = others.same(values)
    same.append(1)
    return same is values, others.same(pair) is pair, values


def list_is_popped(others: Any, x: Any) -> Any:
    values = [x, x + 1]
    last = others.pop(values)
    return last, values


def list_is_put_into_anothers_object(others: Any, x: Any) -> Any:
    keeper, values = others.Keeper(), [x * 2]
    keeper["a"] = values
    keeper.b = values
    values.append(x + 1)
    return keeper["a"] is values, keeper.b is values, keeper


def others_lists_are_changed(others: Any, x: Any) -> Any:
    first, inner, table = others.all_of_ours()
    first += x
    inner.append(x * 2)
    table["n"] = inner[0] + 1
    inner[0] += 1
    return others.ours[1] is inner, others.all_of_ours() is others.ours, len(inner)


@functools.lru_cache
def table_of(size: int) -> Any:
    return [np.arange(float(size)), (np.ones(2), [np.zeros(1)])]


def cached_list_is_changed(others: Any, x: Any) -> Any:
    table = table_of(3)
    table.append(x * 2)
    table[1][1].append(1)
    table[0] += 1
    return len(table_of(3)), table_of(3) is table, len(table_of(3)[1][1])


def list_is_found_by_an_itemgetter(others: Any, x: Any) -> Any:
    table = {"a": [x]}
    operator.itemgetter("a")(table).append(x * 2)
    return table


def views_of_a_changed_dict(others: Any, x: Any) -> Any:
    table = {"a": x * 2}
    items, values = table.items(), table.values()
    others.change(table, x)
    return list(items), list(values)


def iterator_of_a_changed_list(others: Any, x: Any) -> Any:
    values = [x * 2, x]
    left = iter(values)
    others.append(values, x)
    return list(left)


def containers_of_the_library(others: Any, x: Any) -> Any:
    y = x * 2
    table: Any = collections.defaultdict(list)
    table["a"].append(y)
    held = (
        *(collections.deque([y]), collections.OrderedDict(a=y).values(), Pair(y, x), [[y]][0]),
        *(iter([y]), table["a"], functools.partial(np.add, y).args, ValueError(y, x).args),
        *({y.sum()}, types.SimpleNamespace(y=y).__dict__.values(), {"a": y}.values(), zip([y])),
    )
    seen = [others.types_in(each) for each in held[:-1]]
    appended = collections.deque([y])
    others.append(appended, x)
    return seen, appended, others.same(Pair(y, [x])), y


FUNCTIONS = [
    list_is_appended_to,
    dict_is_changed,
    containers_in_containers_are_changed,
    list_is_kept_and_goes_on,
    list_waits_in_a_queue,
    list_comes_back,
    list_is_popped,
    list_is_put_into_anothers_object,
    others_lists_are_changed,
    cached_list_is_changed,
    list_is_found_by_an_itemgetter,
    views_of_a_changed_dict,
    iterator_of_a_changed_list,
    containers_of_the_library,
]


def results(function: Callable[..., Any], others: Any, calls: int) -> Any:
    table_of.cache_clear()
    others.begin()
    x = np.arange(1.0, 4.0)
    return [flat((function(others, x), x, others.ours, table_of(3)), {}) for _ in range(calls)]


@pytest.mark.parametrize("calls", [1, 3, 20])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_containers_are_the_same_for_others(
    function: Callable[..., Any], calls: int, others: types.ModuleType
) -> None:
    jitted = ufuse.jit(function)
    assert results(jitted, others, calls) == results(function, others, calls)


class Untraced:
    """Its methods have no call sites: they note what they are given, and write to its memory."""

    def __init__(self, data: Any) -> None:
        self.data, self.seen = data, []

    def __call__(self, value: Any, other: Any = 0) -> Any:
        result = value + other
        self.seen.append((type(value) is np.ndarray, value is self.data))
        self.data[0] += 1
        return float(np.sum(result))

    __matmul__ = __getitem__ = __lt__ = __call__

    def __iadd__(self, value: Any) -> Any:
        self(value)
        return self

    def __eq__(self, other: Any) -> Any:
        return self(other)

    def __contains__(self, value: Any) -> bool:
        return self(value) > 3

    def __setitem__(self, index: int, value: Any) -> None:
        self.seen.append(self(value))


def goes_on(data: Any) -> Iterator[Any]:
    seen: list[Any] = []
    while True:
        try:
            value = yield seen
        except ValueError as error:
            value = error.args[0]
        result = value + 0
        seen.append((type(value) is np.ndarray, value is data))
        data[0] += 1
        seen.append(float(result.sum()))


WAYS = {
    "map": lambda o, x: list(map(o, [x, x * 2])),
    "starmap": lambda o, x: list(itertools.starmap(o, [(x,), (x, x)])),
    "accumulate": lambda o, x: list(itertools.accumulate([x, x * 2], o)),
    "groupby": lambda o, x: [key for key, _ in itertools.groupby([x, x * 2], o)],
    "filter": lambda o, x: len(list(filter(o, [x, x * 2]))),
    "reduce": lambda o, x: functools.reduce(o, [x, x * 2, x]),
    "key": lambda o, x: (sorted([x * 2, x], key=o)[0], max([x, x * 2], key=o)),
    "operator.call": lambda o, x: operator.call(o, x * 2),
    "operators": lambda o, x: (o @ x, o < x * 2, o[x], o == x, x * 2 in o),
    "module operator": lambda o, x: (operator.matmul(o, x), operator.getitem(o, x * 2)),
    "methodcaller": lambda o, x: operator.methodcaller("__matmul__", x * 2)(o),
    "partial": lambda o, x: functools.partial(o, x * 2)(x),
}


def sorts_in_place(o: Any, x: Any) -> Any:
    values = [x * 3, x, x * 2]
    values.sort(key=o)
    values.sort(key=lambda value: (type(value) is np.ndarray, -value.sum()))
    return values


def adds_in_place(o: Any, x: Any) -> Any:
    o += x
    o += x * 2
    o[0] = x
    return o is not None


def sends(o: Any, x: Any) -> Any:
    generator: Any = goes_on(x)
    seen = next(generator)
    generator.send(x)
    generator.send(x * 2)
    generator.throw(ValueError(x))
    generator.send(x[::2])
    return seen


UNTRACED = {**WAYS, "sort": sorts_in_place, "in place": adds_in_place, "send": sends}


@pytest.mark.parametrize("way", UNTRACED)
def test_untraced_code_works_on_memory_as_it_is(way: str) -> None:
    function = UNTRACED[way]
    jitted = ufuse.jit(function)

    def outcome(called: Callable[..., Any]) -> Any:
        x = np.arange(1.0, 7.0)
        held = Untraced(x)
        return flat((called(held, x), x, held.seen), {})

    for _ in range(3):
        assert outcome(jitted) == outcome(function)


class Buffered:
    def __init__(self) -> None:
        self.last: Any = collections.deque(maxlen=2)
        self.table: Any = collections.OrderedDict()
        self.seen: list[Any] = []

    def __len__(self) -> int:
        """Untraced."""
        self.seen.append([type(each) is np.ndarray for each in self.last])
        self.seen.append([type(each) is np.ndarray for each in self.table.values()])
        return len(self.last)

    def step(self, x: Any) -> Any:
        self.last.append(x * 2)
        self.table["a"] = x * 3
        first = len(self)
        self.last.append(x)
        self.last += [x + first]
        self.table["b"] = self.last[0] + 1
        return len(self), self.last[-1] * 2


def test_untraced_code_finds_real_arrays_in_containers_of_the_library() -> None:
    jitted = ufuse.jit(Buffered.step)
    ours, plain = Buffered(), Buffered()
    for _ in range(3):
        x = np.arange(4.0)
        assert flat((jitted(ours, x), ours), {}) == flat((plain.step(x), plain), {})
        assert ours.seen == plain.seen


def test_containers_of_the_library_die_when_they_would() -> None:
    def function(x: Any) -> Any:
        last: Any = collections.deque()
        alive = weakref.ref(last)
        last.append(x * 2)
        del last
        other: Any = collections.deque()
        other.append(x * 3)
        return alive() is None, other

    jitted = ufuse.jit(function)
    for _ in range(3):
        assert flat(jitted(np.ones(3)), {}) == flat(function(np.ones(3)), {})


class Counting(dict[Any, Any]):
    """Notes what is assigned, and by whose order it is gone through."""

    def __init__(self) -> None:
        super().__init__()
        self.assigned: list[Any] = []

    def __setitem__(self, key: Any, value: Any) -> None:
        self.assigned.append(key)
        super().__setitem__(key, value)

    def items(self) -> Any:
        return reversed(super().items())


class Noting(list[Any]):
    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, value)
        self.append(index)


def test_methods_of_the_users_containers_are_not_called_unasked() -> None:
    def function(x: Any) -> Any:
        table, values = Counting(), Noting([x * 2, x])
        table["a"] = x * 2
        table.update(b=x * 3)
        values.append(x + 1)
        first = functools.partial(dict.get, table)("a")
        values[0] = first * 2
        return table, table.assigned, values, sorted(table), list(table.items())

    jitted = ufuse.jit(function)
    for _ in range(3):
        assert flat(jitted(np.ones(3)), {}) == flat(function(np.ones(3)), {})


SHARED = np.zeros(4)


def iterates(x: Any) -> Any:
    left, pairs = iter(SHARED), zip(SHARED, x)
    numbered, flat = enumerate(SHARED), SHARED.flat
    backwards, last = reversed(SHARED), itertools.chain(SHARED, x)
    SHARED[:] = SHARED + x
    first = next(left), next(pairs), next(numbered), flat[1], next(backwards), next(last)
    x += 1
    return first, next(left), next(pairs), list(numbered), list(backwards), list(last)


def goes_over_a_global(x: Any) -> Any:
    seen = []
    for value in SHARED:
        SHARED[:] = SHARED + x
        seen.append(value * 2)
    for at, value in enumerate(SHARED):
        SHARED[-1] = SHARED[at] * 2
        seen.append(value)
    return seen + [(SHARED.fill(value), value) for value in SHARED]


@pytest.mark.parametrize("function", [iterates, goes_over_a_global])
def test_iterators_read_what_was_written_since(function: Callable[..., Any]) -> None:
    jitted = ufuse.jit(function)
    for _ in range(3):
        outcomes = []
        for called in (function, jitted):
            SHARED[:] = [1, 2, 3, 4]
            x = np.arange(4.0)
            outcomes.append(flat((called(x), x, SHARED), {}))
        assert outcomes[0] == outcomes[1]


def test_operands_of_a_ufunc_that_somebody_else_answers_are_real(others: types.ModuleType) -> None:
    def function(o: Any, x: Any) -> Any:
        return np.add(o, x * 2) is o, np.sqrt(o) is o, np.multiply(x, o) is o, x + o is o

    jitted = ufuse.jit(function)
    for _ in range(3):
        answers = [others.Answers(), others.Answers()]
        assert jitted(answers[0], np.ones(3)) == function(answers[1], np.ones(3))
        assert answers[0].seen == answers[1].seen
