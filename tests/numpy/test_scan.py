"""Does the scan find every way in which a lazy array could leave a function unseen?"""

import warnings

import numpy as np
import pytest
from ufuse.scan import scan

KEPT = []
TABLE = {}
OUTSIDE = np.zeros(3)
STEPS = 3


@pytest.fixture(autouse=True, name="backend")
def no_backend():
    """The scan runs nothing: one round is enough."""


def stores_attribute(self, x):
    self.y = x


def stores_in_global_list(x):
    KEPT.append(x)


def stores_in_alias(x):
    kept = KEPT
    kept.append(x)


def stores_in_global_dict(x):
    TABLE["x"] = x


def stores_global(x):
    global KEPT
    KEPT = x


def stores_in_attribute(self, x):
    self.rows[0] = x


def appends_to_attribute(self, x):
    self.rows.append(x)


def generates(x):
    yield x


async def waits(x):
    return x


def executes(x):
    exec("y = x")


def walks_memory(x):
    for v in np.nditer(x, op_flags=["readwrite"]):
        v[...] = 0


def makes_class(x):
    class Holder:
        value = x

    return Holder


def writes_global_array(x):
    OUTSIDE[...] = 0
    return x


def writes_global_in_place(x):
    outside = OUTSIDE
    outside += 1
    return x


def writes_kept_array(x):
    KEPT[0][1:] += 1
    return x


def fills_attribute(self, x):
    self.y.fill(0)
    return x


def writes_out(x):
    np.add(1, 2, out=OUTSIDE)
    return x


def changes_filters(x):
    with warnings.catch_warnings():
        return np.log(x)


def changes_error_state(x):
    np.seterr(all="ignore")
    return np.log(x)


def shuffles(x, generator):
    y = x + 1
    generator.shuffle(y)
    return y


def shuffles_by_another_name(x):
    shuffle = np.random.default_rng(1).shuffle
    shuffle(x)


def draws_into(x, generator):
    generator.random(out=x)


def shuffles_globally(x):
    np.random.shuffle(x)


def outer():
    n = 0

    def stores_outer(x):
        nonlocal n
        n = x

    return stores_outer


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (stores_attribute, "store_attribute"),
        (stores_in_global_list, "store_in_container"),
        (stores_in_alias, "store_in_container"),
        (stores_in_global_dict, "store_in_container"),
        (stores_global, "store_global"),
        (stores_in_attribute, "store_in_container"),
        (appends_to_attribute, "store_in_container"),
        (generates, "generator"),
        (waits, "generator"),
        (executes, "reflection"),
        (walks_memory, "memory_exposed"),
        (makes_class, "class_body"),
        (shuffles, "memory_exposed"),
        (shuffles_by_another_name, "memory_exposed"),
        (draws_into, "memory_exposed"),
        (shuffles_globally, None),
        (writes_global_array, "store_in_container"),
        (writes_global_in_place, "store_in_array"),
        (writes_kept_array, "store_in_array"),
        (fills_attribute, "store_in_array"),
        (writes_out, "store_in_array"),
        (changes_filters, "error_state"),
        (changes_error_state, "error_state"),
        (outer(), "store_outer"),
    ],
)
def test_found(function, reason):
    assert scan(function).reason == reason


def writes_argument(u, e):
    u[1:-1] = e
    u[0 if e else 1] = 3
    v = u[2:]
    v += 1
    for i in range(3):
        v[i] = u[i] + 1
    return v


def local_containers(x, y):
    rows, seen = [], {}
    for i in range(len(x)):
        rows.append(x[i] * 2)
        seen[i] = x
        seen[i] += 1
    with np.errstate(all="ignore"):
        z = np.sin(x)
    try:
        z[0] = 1
    except ValueError:
        z[1] = 2
    return rows, seen, [row * 2 for row in rows], sum(row for row in rows)


def loops_and_unpacking(x, n):
    while n > 0:
        x = x * 2
        n -= 1
        if x[0] > 3:
            break
    else:
        x[1] = 3
    y = [a for a in x]
    y[0] = x
    (p, _q), *_r = y, 1
    p[0] = 5
    return {k: v for k, v in zip(x, y)}


def inner_state(x):
    m = 0

    def deep():
        nonlocal m
        m = x

    deep()
    return m


def counts_in_table(x):
    TABLE["calls"] = 1
    n = x.shape[0]
    n -= 1
    steps = STEPS
    steps *= 2
    return x * n


@pytest.mark.parametrize(
    ("function", "mutated"),
    [
        (counts_in_table, set()),
        (writes_argument, {"u"}),
        (local_containers, set()),
        (loops_and_unpacking, {"x", "n"}),
        (inner_state, set()),
    ],
)
def test_traceable(function, mutated):
    found = scan(function)
    assert found.reason is None
    assert found.mutated == mutated


def test_line():
    assert scan(stores_attribute).line == stores_attribute.__code__.co_firstlineno + 1


def test_pure():
    assert scan(lambda x: np.sin(x) + len(x)).pure
    assert not scan(lambda x: print(x)).pure
    assert not scan(lambda x: x + np.random.rand()).pure
