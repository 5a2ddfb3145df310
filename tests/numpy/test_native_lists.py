"""Do native loops do with lists what Python does?

Lists of numbers, of lists, of one type and of several, that others have as well, that grow while a
loop goes over them. As in test_native_loops, programs exit after each number of statements.
"""

import gc
import math
import threading
import time

import numpy as np
import pytest
from test_native_loops import check, check_native, looped, told
from ufuse.source import heads

NAN = float("nan")


def squares(values):
    s = 0.0
    for x in values:
        s += x * x
    return s, x


def nested(g):
    s = 0
    out = []
    for row in g:
        t = 0
        for v in row:
            if v > 3:
                continue
            t += v
            if t > 1000:
                break
        else:
            out.append(t)
        s += t
    return s, out, row


def rounds_of_rounds(values):
    s = 0
    for _ in range(3):
        for x in values:
            s = s + x
    return s


def grows(values):
    n = 0
    for x in values:
        if x < 50:
            values.append(x + 7)
        n += 1
    return n, values


def grows_inside(values):
    n = 0
    for k in range(3):
        for x in values:
            if x < 50 * k:
                values.append(x + 7)
            n += 1
    return n, values


def near_pairs(values):
    c = 0
    for i in range(len(values)):
        for j in range(i + 1, len(values)):
            d = values[i][0] - values[j][0], values[i][1] - values[j][1]
            if d[0] * d[0] + d[1] * d[1] < 0.1:
                c += 1
    return c


def from_the_end(values):
    for i in range(len(values)):
        values[-i - 1] = values[i] + values[-1]
    return values


def past_the_end(values, n):
    s = 0
    for i in range(n):
        s += values[i]
    return s


def exchanged_rows(g):
    p, q = g[0], g[1]
    for i in range(len(g[0])):
        p[i], q[i] = q[i], p[i]
        p, q = q, p
    return g, p is g[0]


def two_names(a, b):
    for i in range(1, len(a)):
        a[i] = b[i - 1] + 1
        b[0] += a[i]
    return a, b


def position(values, x):
    for i in range(len(values)):
        if values[i] == x:
            return i, values
    return -1, values


def while_items(values):
    i = 0
    while values and i < 100 and values[i % len(values)] >= 0:
        values[i % len(values)] -= 1
        i += 1
    return i, values


def doubled(values, i):
    return values[i] * 2


def calls_functions(values):
    s = 0
    for i in range(len(values)):
        s += doubled(values, i)
    return s


def set_to_zero(values, i):
    values[i] = 0


def changed_by_functions(values):
    for i in range(len(values)):
        set_to_zero(values, i)
    return values


def truths(values):
    n = 0
    for b in values:
        if not b:
            n += 1
    return n, b


def complex_numbers(values):
    s = 0j
    for z in values:
        s += z * z
    for i in range(len(values)):
        values[i] = values[i] * 2
    return s, values


def lists_in_tuples(t):
    a, b = t
    for i in range(len(a)):
        a[i], b[i] = b[i], a[i] + 1
    return t


def kept_floats(values):
    x = values[0]
    for i in range(len(values)):
        y = values[i]
        values[i] = y + x
        x = y
    return values, x, y


def appended(values, x):
    out = []
    for i in range(len(x)):
        if x[i] > 0.5:
            out.append(x[i])
        values.append(i)
    return out, values


def filled(x):
    out = [0] * len(x)
    for i in range(len(x)):
        out[i] = x[i] * 2
        if i > 0:
            out[i] = out[i] + out[i - 1]
    return out


def put_in_order(values):
    for i in range(len(values)):
        for j in range(len(values) - 1 - i):
            if values[j] > values[j + 1]:
                values[j], values[j + 1] = values[j + 1], values[j]
    return values, NAN in values


def twice_the_same(values, i, j):
    for k in range(3):
        values[i], values[j] = values[j] + 1, values[i] - k
        values[i] += values[j]
        values[i], values[i] = k, values[i]
    return values


def lengths(rows):
    n = 0
    while rows and n < 20:
        for row in rows:
            n += len(row)
            if not row:
                n += 1
    return n, row


def to_the_element(values, x):
    for i in range(len(values)):
        x[i] = values[i]
        values[i] = x[i]
    return values, x


def later(rows):
    first, second = rows[0], rows[1]
    for i in range(3):
        for x in first:
            second.append(x + i)
        first, second = second, first
        if len(first) > 12:
            break
    return rows, first is rows[0]


def exchange(values, i, j):
    if i != j:
        tmp = values[i]
        values[i] = values[j]
        values[j] = tmp


def parted(values):
    size = len(values)
    val = values[size // 2]
    exchange(values, size // 2, size - 1)
    idx = size - 2
    i = 0
    while i <= idx:
        if values[i] > val:
            while values[idx] > val and idx > i:
                idx = idx - 1
            if idx != i:
                exchange(values, i, idx)
                idx = idx - 1
            else:
                break
        i = i + 1
    exchange(values, i, size - 1)
    return i, values


def put_twice(out, v):
    out.append(v)
    out.append(v * 2)
    return len(out)


def filled_by_function(out, x):
    n = 0
    for v in x:
        n += put_twice(out, v)
        out[0] += 1
    return n, out


def relaxed(g, h, n):
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            h[i][j] = (g[i - 1][j] + g[i + 1][j] + g[i][j - 1] + g[i][j + 1]) / 4
    return h[1][1]


def relaxed_steps(g, h, n):
    s = 0
    for _ in range(3):
        s += relaxed(g, h, n)
        g, h = h, g
    return s, g, h


def changes_and_fails(values, i):
    values[0] = values[0] + 1
    values[1], values[0] = values[0], values[i]
    values.append(7)
    return values[i + 1] + 1 // (values[0] - 5)


def functions_that_fail(values, n):
    s = 0
    for i in range(n):
        s += changes_and_fails(values, i)
    return s, values


def counted_up(c):
    c[0] += 1
    return c[0]


def changes_in_conditions(c, n):
    k = 0
    while counted_up(c) < n:
        if counted_up(c) % 3 == 0 and counted_up(c) > 4:
            k += counted_up(c)
    return k, c


def tuples(pairs, counts):
    for u, v in pairs:
        counts[u] += 1
        counts[v] += u
    for i in range(len(pairs)):
        counts[0] += pairs[i][0] * pairs[-i][1]
    last = pairs[0]
    for pair in pairs:
        if pair[0] > last[0]:
            last = pair
    return counts, last


X = np.random.default_rng(3).random(6)
SAME_ROW = (lambda row: [row, row])([1.0, 2.0, 3.0])

CASES = [
    *(
        (squares, values)
        for values in (
            [1.5, 2.0, 3.0] * 7,
            [1, 2, 3],
            [1.5, 2, 3.0],
            [1.5, NAN, 2.0],
            [1.0, "x"],
            [],
            [2**70, 1],
            [1, 2**70],
            [True, 2.0],
            list(X),
            [np.float32(1), np.float32(2.5), np.float64(1)],
            [np.int8(100)] * 3,
        )
    ),
    *(
        (nested, rows)
        for rows in (
            [[1, 2, 3, 4, 5]] * 5,
            [[1, 2.5], [3]],
            [[1], [], [2, 900, 2000]],
            [[1], 5],
            [[1], [2], None],
            [[3, True], [2]],
            [[900], [2000, 1]],
            [list(X * 5), list(X)],
        )
    ),
    *(
        (rounds_of_rounds, values)
        for values in (
            [1, 2.5, 3],
            [1, 2, 3],
            [1, 2, 3, 1j],
            [1.0, np.float64(2)],
            [1, np.int64(4)],
            [np.int64(3), 4],
        )
    ),
    (grows, [1, 2, 3]),
    (grows, [1.5, 2]),
    (grows_inside, [1, 2, 3]),
    (grows_inside, [1.5, 2.0]),
    (near_pairs, [[i * 0.1, i * 0.2] for i in range(8)]),
    (near_pairs, [(i * 0.1, i * 0.2) for i in range(8)]),
    *(
        (from_the_end, values)
        for values in (
            [1, 2, 3, 4],
            [1.0, 2.0],
            [2**62] * 4,
            [NAN, 1.0],
            [1.0, NAN, 3.0],
            [np.float64(1)] * 3,
        )
    ),
    (past_the_end, [1, 2, 3], 5),
    (past_the_end, [1.0, None], 2),
    (past_the_end, [1, "a"], 2),
    (exchanged_rows, [[1, 2, 3], [4, 5, 6]]),
    (exchanged_rows, [[1.0, 2, 3], [4, 5, 6]]),
    (exchanged_rows, SAME_ROW),
    (two_names, *SAME_ROW),
    (two_names, [1, 2, 3], [4, 5, 6]),
    (two_names, [1, 2, 3], [4.5, 5, 6]),
    (position, [1, 2, 3], 3),
    (position, [1, 2, 3], 3.0),
    (position, [1.5], NAN),
    (position, [[1]], 1),
    (while_items, [3, 3]),
    (while_items, []),
    (while_items, [2.5, 1]),
    (calls_functions, [1, 2, 3]),
    (calls_functions, [1.5, 2]),
    (truths, [True, False]),
    (truths, [True, 0]),
    (truths, [1, True]),
    (truths, [np.True_, np.False_]),
    (complex_numbers, [1j, 2 + 1j]),
    (complex_numbers, [1j, 2.0]),
    (complex_numbers, [np.complex64(1 + 1j)] * 3),
    (lists_in_tuples, ([1.0, 2.0], [3.0, 4.0])),
    (lists_in_tuples, ([1, 2], [3.0, 4.0])),
    (kept_floats, [float(i) for i in range(8)]),
    (kept_floats, [1.0] * 5),
    (kept_floats, [1, 1.0]),
    (appended, [], X),
    (appended, [1], list(X)),
    (appended, ["text"], X * 2),
    (filled, X),
    (filled, list(range(5))),
    (filled, [1.5, 2, NAN, 3.0]),
    (put_in_order, [3, 1, 2, 0]),
    (put_in_order, [3.5, NAN, 2.0, 0.5]),
    (put_in_order, list(X)),
    (put_in_order, [2, 1.5, True]),
    (twice_the_same, [1.0, 2.0, 3.0], 0, 1),
    (twice_the_same, [1.0, 2.0, 3.0], 1, -2),
    (twice_the_same, [1, 2, 3], 2, 5),
    (lengths, [[1], [], [2, 3]]),
    (lengths, [[], [1]]),
    (lengths, [[1.0], (2, 3)]),
    (to_the_element, [1.5, 2.5], np.zeros(3)),
    (to_the_element, [1, 2], np.zeros(3, "i2")),
    (later, [[1, 2], []]),
    (later, [[1.5], [2, 3]]),
    (changed_by_functions, [1, 2, 3]),
    *(
        (parted, values)
        for values in ([5, 3, 8, 1, 9, 2, 7], [2.5, 1.0, 3.0, 0.5], [1, 2.5, 3, 0], [3, 3, 3])
    ),
    (filled_by_function, [0], [1, 2, 3]),
    (filled_by_function, [0.5], [1.5, 2]),
    (filled_by_function, [], [1]),
    (filled_by_function, [1], [1, 2.5, "a"]),
    (
        relaxed_steps,
        [[float(i * j % 5) for i in range(6)] for j in range(6)],
        [[0.0] * 6 for _ in range(6)],
        6,
    ),
    (
        relaxed_steps,
        [[i * j % 5 for i in range(5)] for j in range(5)],
        [[0] * 5 for _ in range(5)],
        5,
    ),
    (relaxed_steps, [[0.5] * 6 for _ in range(5)], [[0.0] * 6 for _ in range(6)], 6),
    (functions_that_fail, [1, 2, 3, 4, 5, 6, 7, 8], 6),
    (functions_that_fail, [1.5, 2, 3, 4], 5),
    (functions_that_fail, [5, 5, 5, 5], 3),
    (functions_that_fail, [5.0, 6.0, 7.0, 1.0, 2.0], 4),
    (changes_in_conditions, [0], 20),
    (changes_in_conditions, [0.5], 17),
    *(
        (tuples, pairs, counts)
        for counts in ([0] * 4, [0.5] * 4, list(np.zeros(4, int)))
        for pairs in (
            [(1, 2), (3, 0), (2, 2)],
            [(1, 2), (3, 0.5)],
            [(1, 2), (1, 2, 3)],
            [(1, 2), [3, 1]],
            [(1, 4)],
            [(True, 2), (1, 2)],
            [(np.int64(1), 2), (np.int64(3), 1)],
            [(1, (2, 3))],
            [(1, NAN)],
            [()],
        )
    ),
]


@pytest.mark.parametrize("backend", ["compiled"], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_it_is_what_python_does(case):
    check(*case, native=False, most=25)


@pytest.mark.parametrize(
    "function",
    [squares, nested, grows, exchanged_rows, appended, put_in_order, parted],
)
def test_they_are_native(function):
    check_native(function, CASES)


def other_thread(work):
    def run():
        time.sleep(0.05)
        work()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def waits(rows):
    n = 0
    while rows[0][0] == 0.0 and n < 1_000_000_000:
        n += 1
    return n


def test_what_other_threads_put_into_a_list_is_seen():
    made = looped(waits)
    rows = [[1.0]]
    with told(eager=True):
        assert made(rows) == 0
        rows = [[0.0]]
        thread = other_thread(lambda: rows.__setitem__(0, [1.0]))
        assert 0 < made(rows) < 1_000_000_000
        thread.join()


def reads_a_row(rows, stop):
    row = rows[0]
    s = 0.0
    n = 0
    while stop[0] == 0:
        s += row[n % 3]
        n += 1
    return s == n


def reads_rows(rows, stop):
    s = 0.0
    n = 0
    while stop[0] == 0:
        for row in rows:
            for x in row:
                s += x
                n += 1
    return s == n


@pytest.mark.parametrize("function", [reads_a_row, reads_rows])
def test_lists_that_other_threads_take_away_live_on(function):
    made = looped(function)
    with told(eager=True):
        stop = [1]
        made([[1.0] * 3], stop)
        stop[0] = 0
        rows = [[1.0] * 3 for _ in range(4)]

        def work():
            for k in range(20):
                rows[k % 4] = [float(1)] * 3
                gc.collect()
                kept = [[math.pi] * 3 for _ in range(1000)]
                time.sleep(0.005)
            assert kept
            stop[0] = 1

        thread = other_thread(work)
        assert made(rows, stop) is True
        thread.join()
    assert any(loop.facts["versions"] for loop in heads.loops_of(made.__code__))
