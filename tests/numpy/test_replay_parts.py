"""Are calls that assign to parts of arrays replayed, with every write where NumPy's stands?

Each function is called several times with arguments that change on the way: other values, values
that raise warnings (shown or turned into exceptions), ties, values that lead Python another way. It
is compared with the plain function each time, arguments included.
"""

import contextlib
import warnings

import numpy as np
import pytest
import ufuse
from same import check, copied, same
from ufuse import _core

N = 12
NO_LIMIT = 1 << 40


def diffuse(u, v):
    u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    u[0] = 0
    u[-1] = v[0]


def two_fields(u, v):
    v[1:-1] = (u[2:] + u[:-2]) / 2
    u[1:-1] = (v[2:] + v[:-2]) / 2
    return u.sum(), v[2:5]


def rolled(u, v):
    return np.roll(u, 3) * v - np.roll(v, -1)


def fresh(u, v):
    y = np.empty_like(u)
    y[0] = v[1]
    y[1:-1] = u[1:-1] * v[2:]
    y[-1] = y[1]
    return y


def zeros_in_two(u, v):
    y = np.zeros((2, u.size))
    y[0] = u
    y[1, ::2] = v[::2]
    y[:, 3] /= v[3]
    return y.T


def view_first(u, v):
    part = u[2:7]
    old = part * 1
    part *= v[2:7]
    u[3:5] = part[:2]
    return part, old


def told_after_writes(u, v):
    u[1:-1] = u[1:-1] * v[1:-1]
    if u[3] > 1:
        v[:3] = u[:3]
        return 1
    v[3:] = u[3:]
    if (v > 0).all():
        u[:] = 7
    return u * 2


def limited(u, v):
    for _ in range(3):
        u[1:] = u[1:] * 0.5 + v[:-1]
        if u.max() > 4:
            u[:2] = -1
            break
    return u.min()


def warns_late(u, v):
    u[:4] = v[:4] * 2
    v[2:] = u[2:] / v[2:]
    return np.sqrt(v) + u


def warns_in_place(u, v):
    u[::2] /= v[::2]


def warns_once(u, v):
    u[2:-2] = v[2:-2] / v[:-4]


def ties(u, v):
    v[:5] = u[:5] + 1
    u[1:3] = np.maximum(u, v).max()
    return np.minimum(v, 0.0).min()


def cast_into(u, v):
    k = np.zeros(u.size, np.int32)
    k[2:] = np.where(np.abs(u[2:]) < 1e6, u[2:] * 4, 0)
    u[:] = k
    v[k.size - 3 :] = k[:3]
    return k


def square(u, v):
    A = np.empty((u.size, 3))
    A[:, 0] = u
    A[:, 1] = v * u
    A[:, 2] = A[:, 0] - A[:, 1]
    A[1:-1, :2] *= 2
    return A, A[1:-1, ::2]


def of_one_element(u, v):
    for i in range(4):
        u[i] = u[i + 1] + v[i]
    return u


FUNCTIONS = [
    *(diffuse, two_fields, rolled, fresh, zeros_in_two, view_first, told_after_writes, limited),
    *(warns_late, warns_in_place, warns_once, ties, cast_into, square, of_one_element),
]


def pairs():
    """Arguments in the order of the calls: equal kinds in a row, so that they meet a recording."""
    random = np.random.default_rng(7)
    u, v = random.random(N) + 0.5, random.random(N) + 0.5
    yield from [(u, v)] * 3
    yield -u, v
    yield u * 10, v
    yield u, np.where(np.arange(N) % 5 == 3, 0.0, v)  # divides by zero
    yield u * 1e200, v * 1e200  # overflows
    yield np.where(np.arange(N) == 4, np.nan, u), v
    yield np.zeros(N), -np.zeros(N)
    yield -np.zeros(N), np.zeros(N)
    yield np.full(N, np.nan), v
    yield u, v


@contextlib.contextmanager
def errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("function", FUNCTIONS)
def test_parts(function):
    native = ufuse.jit(function)
    for pair in pairs():
        check(function, *pair, _jitted=native)
    for pair in pairs():  # where each warning is an exception
        ours, theirs = copied(pair), copied(pair)
        with errors():
            told = []
            for f, arguments in ((native, ours), (function, theirs)):
                try:
                    told.append(f(*arguments))
                except RuntimeWarning as warning:
                    told.append(str(warning))
        same(told[0], told[1])
        same(ours, theirs)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_parts_replay(function):
    native = ufuse.jit(function)
    random = np.random.default_rng(7)
    u, v = random.random(N) + 0.5, random.random(N) + 0.5
    native.warmup(u.copy(), v.copy())  # however long the compiler takes
    before = native._dispatcher.counts[1]
    with ufuse._core.backend("compiled"):
        for _ in range(5):
            native(u.copy(), v.copy())
    assert native._dispatcher.counts[1] <= before + 1  # Python ran once


def test_parts_of_large_arrays():
    def steps(u, v):
        v[1:-1, 1:-1] = (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]) / 4
        u[1:-1, 1:-1] = (v[2:, 1:-1] + v[:-2, 1:-1] + v[1:-1, 2:] + v[1:-1, :-2]) / 4
        u[0], u[:, -1] = 1, v[:, -2]

    native = ufuse.jit(steps)
    u, v = np.random.default_rng(3).random((2, 400, 300))
    ours, theirs = (u.copy(), v.copy()), (u.copy(), v.copy())
    for _ in range(6):
        native(*ours)
        steps(*theirs)
        same(ours, theirs)
    ours[0][7, 7] = 90
    for array in ours:
        array *= 1e306  # overflows in the second half
    check(steps, *ours, _jitted=native)


def test_other_names_of_the_same_memory():
    native = ufuse.jit(diffuse)
    x = np.random.default_rng(3).random(40)
    for start in (20, 20, 20, 5, 5, 0, 0, 20):  # apart first, then overlapping
        ours, theirs = x.copy(), x.copy()
        native(ours[:N], ours[start : start + N])
        diffuse(theirs[:N], theirs[start : start + N])
        same(ours, theirs)


def test_read_only_parts():
    native = ufuse.jit(diffuse)
    u, v = np.random.default_rng(3).random((2, N))
    for _ in range(3):
        check(diffuse, u, v, _jitted=native)
    u.flags.writeable = False
    for _ in range(3):
        check(diffuse, u, v, _jitted=native)


def test_many_steps():
    def steps(n, u, v):
        for _ in range(n):
            # A loop that could become native would end the recording.
            v[1:-1] = np.where(True, u[:-2] + u[1:-1] + u[2:], 0) / 3
            u[1:-1] = (v[:-2] + v[1:-1] + v[2:]) / 3
        return u.sum()

    native = ufuse.jit(steps)
    u, v = np.random.default_rng(3).random((2, 50))
    with _core.most_operations(NO_LIMIT):
        for n in (100, 100, 100, 1500, 1500, 2500, 2500, 100, 3000, 1500):
            ours, theirs = (u.copy(), v.copy()), (u.copy(), v.copy())
            same(native(n, *ours), steps(n, *theirs))
            same(ours, theirs)
    # Of more than 4,096 runs no plan is kept.
    assert native._dispatcher.counts[1] == 2 + 3
    with pytest.warns(RuntimeWarning, match="overflow"):
        native(100, u * 1e308, v)


def test_plans_of_many_runs_are_dropped_in_time():
    def steps(n, u):
        for _ in range(n):
            # A loop that could become native would leave few runs to each plan.
            u[1:] = np.where(True, u[:-1], 0) + 1

    native = ufuse.jit(steps)
    with _core.most_operations(NO_LIMIT):
        for n in range(2000, 2014):
            u = np.zeros(9)
            native(n, u)
            assert u.tolist() == list(range(9))
    assert 4 <= native._dispatcher.counts[2] <= 8
