"""Do native loops over enumerate, zip and reversed ranges do what Python does?

Over lists, arrays and ranges of several lengths, in loops and inside of them, with lists that grow in
the meantime, and with iterators that somebody else has too.
"""

import itertools

import numpy as np
import pytest
import ufuse
from test_native_loops import alike, check, check_native, told
from ufuse import _core


def counted(x):
    s = 0
    for i, v in enumerate(x):
        s += i * v
    return s, i, v


def counted_from(x, k):
    s = 0
    for i, v in enumerate(x, k):
        s += i * v
    return s, i, v


def side_by_side(x, y):
    s = 0
    for a, b in zip(x, y):
        s += a * b
    return s, a, b


def three_side_by_side(x, y, n):
    s = 0
    for a, b, c in zip(x, range(n), y):
        s += a * b + c
    else:
        s = -s
    return s


def counted_pairs(x, y):
    s = 0.0
    for i, (a, b) in enumerate(zip(x, y)):
        if a > b:
            continue
        if i > 20:
            break
        s += a * i
    return s, i


def backwards(n):
    s = []
    for i in reversed(range(n)):
        s.append(i)
    for j in reversed(range(2, n, 3)):
        s.append(j)
    return s


def inside(x, y):
    s = 0
    for _ in range(3):
        for i, a in enumerate(x):
            for b, c in zip(y, reversed(range(i + 1))):
                s += a * b - c
    return s


def grow(x, y):
    n = 0
    for a, b in zip(x, y):
        if a < 5 and len(x) < 12:
            x.append(a + 1)
        if b < 5 and len(y) < 12:
            y.append(b + 2)
        n += 1
    return n, x, y


def grow_inside(x, y):
    n = 0
    for k in range(3):
        for i, a in enumerate(x):
            if a < 5 + k and len(x) < 12:
                x.append(a + 1)
            n += i
    return n, x


def somebody_has_it(x, y):
    z = zip(x, y)
    s = 0
    for a, b in z:
        s += a * b
        if s > 3:
            break
    for a, _ in z:
        s -= a
    return s, list(z)


def one_iterator_twice(x, y):
    s = 0
    it = iter(x)
    for a, b in zip(it, it):
        s += a - 2 * b
    return s, list(it)


def strict(x, y):
    s = 0
    for a, b in zip(x, y, strict=True):
        s += a * b
    return s


def strict_inside(x, y):
    s = t = 0
    for _ in range(3):
        for a, (k, b) in zip(x, enumerate(y), strict=True):
            s += a * b + k
        for a, b in zip(x, y, strict=False):
            t += a - b
    return s, t


def not_strict(x, y):
    s = 0
    for _ in range(2):
        for a, b in zip(x, y, strictly=True):
            s += a * b
    return s


def strict_while_it_grows(x, y):
    s = 0
    for a, b in zip(x, y, strict=True):
        s += a * b
        if a == 2:
            x.append(5)
    return s


def orbit(state, points):
    for k in range(len(points)):
        x, y, z = state
        state = np.array([y - x, x * (3.0 - z) - y, x * y - z]) * 0.1 + state
        points[k] = state
        p, q = points[:2]
        p[0], q[1] = q[2], k
    for x, (y, z) in zip(points[0], points[:, 1:], strict=True):
        state = state + x * y - z
    return state, points


def taken_apart(m):
    s = 0
    for a, b in m:
        s += a - b
    (a, b), (c, d) = m, m
    for a, b in m.T:
        s += (a * b).sum()
    return s, a, b, c, d


def taken_out(x, y):
    it = iter(x)
    s = 0
    for i, a in enumerate(it):
        s += a
        if i % 3 == 0:
            next(it, None)
    return s


def rows(m, y):
    s = 0.0
    for row, v in zip(m, y):
        for i, a in enumerate(row):
            s += a * v + i
    return s


def items_as_targets(x, y):
    out = [0] * (len(x) + 1)
    for i, out[i] in enumerate(x):  # noqa: B007
        pass
    for k, y[k] in enumerate(x):
        y[k] += 1
    return out, y


def one_tuple(x, y):
    s = 0
    for t in zip(x, y):
        s += t[0] * t[1]
    return s, t


def neighbours(g, h):
    n = len(g)
    for i in range(n):
        for j in range(n):
            s = 0
            for di in (-1, 0, 1):
                for dj in [-1, 0, 1]:
                    if di or dj:
                        s += g[(i + di) % n][(j + dj) % n]
            for a, b in ((0, 1), (1, 0)):
                s += g[a][b] * 2
            h[i][j] = s
    return h, di, dj, a, b


def written_tuples(x, k):
    s = 0
    for v in x:
        pair = (v, v + 1)
        for w in pair:
            v = 2 * w
            s += w
            if s > 100:
                break
        else:
            s += 1
        for i, w in enumerate((k, k, v)):
            s += i * w
    return s, v, w


X = [float(i) for i in range(30)]
A = np.arange(30.0)
M = np.arange(24.0).reshape(4, 6)
PAIRS = [
    (X, X[::-1]),
    (A, X),
    ([1, 2, 3], A),
    (X[:5], [1, 2, 3]),
    ([], X),
    (X, []),
    ([1, 2.5, 3], X),
    (X, [1, None, 2]),
    ([1, 2, 3], ["a", 2, 3]),
    ((1, 2, 3), X),
    (A.astype("f4"), A),
    ([2**62] * 3, [3, 4, 5]),
    ([1.0, float("nan"), 2.0], X),
    ([np.float64(1)] * 3, X),
]
OF_PAIRS = [
    *(side_by_side, counted_pairs, somebody_has_it, one_iterator_twice, strict, taken_out),
    *(one_tuple, strict_inside, strict_while_it_grows, not_strict),
]
CASES = [
    *((function, *pair) for function, pair in itertools.product(OF_PAIRS, PAIRS)),
    *((counted, pair[0]) for pair in PAIRS),
    *((three_side_by_side, *pair, n) for pair in PAIRS[:6] for n in (0, 4)),
    *((inside, pair[0][:4], pair[1][:4]) for pair in PAIRS),
    *((counted_from, X[:5], start) for start in (5, 2**63 - 2, np.int64(4), True, 2.5, 2**70)),
    (counted_from, A, -3),
    *((backwards, n) for n in (17, 5, 0)),
    (grow, [1, 2, 3], [4, 5]),
    (grow, [1.0], [2.0, 3.0]),
    (grow, [1, 2], [1, 2, 3, 4]),
    (grow_inside, [1, 2, 3], 0),
    (grow_inside, [1.5], 0),
    (orbit, np.array([1.0, 2.0, 3.0]), np.zeros((3, 3))),
    (orbit, np.array([1.0, 2.0, 3.0]), np.zeros((5, 3))),
    (orbit, np.array([1.0, 2.0]), np.zeros((3, 3))),
    (taken_apart, np.arange(4.0).reshape(2, 2)),
    (taken_apart, np.arange(8).reshape(4, 2)),
    (taken_apart, np.arange(6.0).reshape(2, 3)),
    (rows, M, X),
    (rows, M, A[:2]),
    (rows, [[1.0, 2], [3, 4]], X),
    (neighbours, [[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[0] * 3 for _ in range(3)]),
    (neighbours, [[1.5, 2], [4, 5.5]], [[0] * 2 for _ in range(2)]),
    (written_tuples, X, 2.5),
    (written_tuples, X, 2),
    (written_tuples, [1, 2, 3, 4], 2),
    (written_tuples, A, 2.0),
    (written_tuples, A, np.float64(3)),
    (written_tuples, [1, 2.5, None], 2.0),
    (items_as_targets, [1, 2, 3], [0] * 5),
    (items_as_targets, A[:3], [0.0] * 4),
]


@pytest.mark.parametrize("backend", ["compiled"], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_it_is_what_python_does(case):
    check(*case, native=False, most=12)


@pytest.mark.parametrize(
    "function",
    [
        side_by_side,
        counted_pairs,
        counted,
        backwards,
        inside,
        grow,
        rows,
        one_tuple,
        neighbours,
        written_tuples,
        strict,
        strict_inside,
        orbit,
        taken_apart,
    ],
)
def test_they_are_native(function):
    check_native(function, CASES)


def counted_up(x, y):
    s = 0.0
    for i, v in enumerate(x):
        if v > y[i]:
            y[i] += v * 0.5
        s += y[i]
    return s, y


def rows_side_by_side(x, y):
    m = np.outer(x[:40], y[:40])
    s = 0.0
    for row, v in zip(m, x[:40], strict=True):
        for k, e in enumerate(row):
            s += e * v + k
    return s, m


def in_reverse(x, y):
    z = x * 2
    for (i, v), w in zip(enumerate(z), reversed(range(len(x))), strict=False):
        y[w] = v + y[i]
    return y


@pytest.mark.parametrize("operations", [-1, 1, 7, 100])
@pytest.mark.parametrize("function", [counted_up, rows_side_by_side, in_reverse])
def test_loops_of_a_call_that_is_traced(function, operations):
    """Over lazy arrays: the loops go native, or on over real arrays, where tracing stops."""
    x, y = np.linspace(0.0, 2.0, 1500), np.linspace(1.0, 0.0, 1500)
    theirs, mine = (x.copy(), y.copy()), (x.copy(), y.copy())
    expected = function(*theirs)
    with told(eager=True), _core.most_operations(operations):
        result = ufuse.jit(function)(*mine)
    alike([result, *mine], [expected, *theirs])
    reasons = {note.reason for note in ufuse.jit(function).explain(x.copy(), y.copy()).notes}
    # The elements of rows are NumPy's numbers, and nothing is recorded of what is done with them.
    assert "native_loop" in reasons or function is rows_side_by_side
