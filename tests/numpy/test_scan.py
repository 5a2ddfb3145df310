"""Does the scan find every way in which a lazy array could leave a function unseen?"""

import numpy as np
import pytest
from ufuse.scan import scan

KEPT = []
TABLE = {}


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


@pytest.mark.parametrize(
    ("function", "mutated"),
    [
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
