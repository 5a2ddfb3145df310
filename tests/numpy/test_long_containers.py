"""Are long lists, tuples and dicts compared and searched as Python does it, and only as far?

Python compares containers item by item. Traced code must see to it that real arrays in them do not
meet lazy ones, but may not look through a long container each time: a loop that asks whether a key
is in a dict would take a time that grows with the square of the rounds.
"""

import math
import pickle
import types

import numpy as np
import pytest
import ufuse
from same import check
from texts import function_of
from ufuse import _core

NAN = math.nan
# Twenty items and more, so that nobody looks through them beforehand.
CONTAINERS = {
    "ints": "list(range(20))",
    "floats": "[k / 4 for k in range(20)]",
    "texts": "[str(k) for k in range(20)]",
    "mixed": "[1, 'a', None, 2.5, True, 3j, b'x', (1, 2)] * 4",
    "nan": "[nan] * 20",
    "nested": "[[k, k + 1] for k in range(20)]",
    "tuple": "tuple(range(20))",
    "pairs": "tuple((k, k * k) for k in range(20))",
    "dict": "{k: k * k for k in range(20)}",
    "named": "{str(k): k for k in range(20)}",
    "lazy": "[x * k for k in range(20)]",
    "lazy_last": "[*range(20), x * 2]",
    "lazy_values": "{k: x * k for k in range(20)}",
    "scalars": "[x[k % 3] for k in range(20)]",
    "real": "loads(real)",
    "real_values": "loads(real_values)",
    "namespaces": "[Namespace(a=k) for k in range(20)]",
    "objects": "[Equal(k) for k in range(20)]",
}
EXPRESSIONS = {
    "in": ["3 in c", "'3' in c", "77 in c", "None in c", "2.5 in c", "nan in c", "(1, 2) in c"],
    "not_in": ["3 not in c", "True not in c", "[3, 4] not in c"],
    "lazy_in": ["x[1] in c", "x.sum() in c", "x in c", "n in c", "n + 1 in c", "Equal(3) in c"],
    "equal": ["c == []", "c != ()", "c == {}", "c == d", "c != d", "d == c", "c == c"],
    "shorter": [
        "c == d[:5] if type(d) is list else c == 1",
        "c == [1]",
        "c == (1,)",
        "c == {1: 1}",
    ],
    "ordered": ["c < d", "c >= d", "c < [1]", "c < (1,)", "c < 3"],
    "other": ["c == x[1]", "c == n", "c is d", "not c", "c == 'a'", "[] == c", "() != c"],
}
TEXT = """
def f(x, n):
    c = {container}
    d = {container}
    out = []
    for k in range(2):
        try:
            out.append({expression})
        except (TypeError, ValueError) as error:
            out.append((type(error).__name__, str(error)))
    return out
"""


class Equal:
    def __init__(self, k):
        self.k = k

    def __eq__(self, other):
        return self.k == getattr(other, "k", other)

    __hash__ = None


SPACE = {
    "np": np,
    "nan": NAN,
    "loads": pickle.loads,
    "real": pickle.dumps([np.arange(3.0)] * 20),
    "real_values": pickle.dumps({k: np.arange(3.0) for k in range(20)}),
    "Namespace": types.SimpleNamespace,
    "Equal": Equal,
}


@pytest.mark.parametrize("expressions", EXPRESSIONS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_as_python_does(container, expressions):
    for expression in EXPRESSIONS[expressions]:
        text = TEXT.format(container=CONTAINERS[container], expression=expression)
        function = function_of(text, dict(SPACE))
        for n in (3, 2.5):
            check(function, np.arange(3.0), n)


def keys(x, rounds):
    known = {}
    for k in range(rounds):
        if k in known or k + 1 not in known:
            known[k] = k
    return x + len(known)


def values(x, rounds):
    known = list(range(rounds))
    found = 0
    for _ in range(rounds):
        if 0 in known and known != []:
            found += 1
    return x + found


def steps(x, rounds):
    known = ["a"] * rounds
    while known != []:
        known.pop()
    return x + len(known)


@pytest.mark.parametrize("function", [keys, values, steps])
def test_not_looked_through_each_time(function):
    """What is looked at grows no faster than the rounds."""

    def looked_at(rounds):
        before = _core.walked()
        ufuse.jit(function)(np.arange(3.0), rounds)
        return _core.walked() - before

    few, many = looked_at(200), looked_at(2000)
    assert many <= 20 * (few + 100)


def quadratic(x, rounds):
    known = [(0, 0)] * rounds
    found = 0
    for _ in range(rounds):
        if (0, 0) in known:
            found += 1
    return x + found


def test_tracing_stops_where_much_is_looked_at():
    """No call and no operation of NumPy's stands in the loop: the operands are asked for."""
    before = _core.walked()
    check(quadratic, np.arange(3.0), 20_000)
    assert _core.walked() - before < 20_000**2 / 4


def texts(x, rounds):
    parts = []
    for k in range(rounds):
        parts.append(str(k))
        parts[-1] = parts[-1].zfill(5).replace("0", "o")
        if parts[-1].endswith(("7", "8")):
            parts[-1] = "-".join([parts[-1], "x"])
    return x * len(parts), "".join(parts)


def test_methods_of_texts():
    check(texts, np.arange(3.0), 30)
