"""Which functions run as plain NumPy, whatever they are called with, and which are pure?"""

import numpy as np
import pytest
from ufuse.tracing.twin import scanned

KEPT = []
TABLE = {}
OUTSIDE = np.zeros(3)
STEPS = 3


@pytest.fixture(autouse=True, name="backend")
def no_backend():
    """The scan runs nothing: one round is enough."""


def deletes_global(x):
    global KEPT
    del KEPT


def generates(x):
    yield x


async def waits(x):
    return x


def executes(x):
    exec("y = x")


def makes_class(x):
    class Holder:
        value = x

    return Holder


def sets_a_flag(x):
    x.flags.writeable = False


def outer():
    n = 0

    def counts_with_outer(x):
        nonlocal n
        for n in x:
            return n

    return counts_with_outer


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (deletes_global, "store_global"),
        (generates, "generator"),
        (waits, "generator"),
        (executes, "reflection"),
        (makes_class, "class_body"),
        (sets_a_flag, "memory_exposed"),
        (outer(), "store_outer"),
    ],
)
def test_found(function, reason):
    assert scanned(function).reason == reason


def stores_everywhere(self, x):
    self.y = x
    self.rows[0] = x
    self.rows.append(x)
    TABLE["calls"] = x
    KEPT[0][1:] += 1
    OUTSIDE[...] = 0
    np.add(1, 2, out=OUTSIDE)
    return x


def counts_in_table(x):
    TABLE["calls"] = 1
    n = x.shape[0]
    n -= 1
    steps = STEPS
    steps *= 2
    return x * n


def inner_state(x):
    m = 0

    def deep():
        nonlocal m
        m = x

    deep()
    return m


def looks_at_memory(self, x):
    self.data.shuffle(x)
    setattr(self, self.name, np.ndarray.sum(x.flat))
    return np.nditer(x), memoryview(x.T)


@pytest.mark.parametrize(
    "function", [counts_in_table, inner_state, stores_everywhere, looks_at_memory]
)
def test_traceable(function):
    assert scanned(function).reason is None


def test_line():
    assert scanned(deletes_global).line == deletes_global.__code__.co_firstlineno + 2


def test_pure():
    assert scanned(lambda x: np.sin(x) + len(x)).pure
    assert not scanned(lambda x: print(x)).pure
    assert not scanned(lambda x: x + np.random.rand()).pure
