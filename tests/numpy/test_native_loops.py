"""Do loops that have become native do what Python does, wherever they begin and wherever they exit?

Each function runs plainly and looped (`ufuse.source.heads`), with a program from the first round that
can have one, and once more for each number of statements after which the program is told to exit.
Results, arguments, warnings and exceptions are compared.
"""

import collections
import contextlib
import copy
import functools
import gc
import inspect
import itertools
import linecache
import math
import random
import sys
import textwrap
import threading
import time
import warnings
import weakref

import numpy as np
import pytest
import ufuse
from same import same
from texts import function_of
from ufuse import _core
from ufuse.source import heads
from ufuse.tracing.loops import looped


@contextlib.contextmanager
def told(**options):
    before = _core.choose_programs(**options)
    try:
        yield
    finally:
        _core.choose_programs(*before)


GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)


def state_of(generator):
    """What a random generator draws next."""
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return repr(generator.get_state(legacy=False))
    return repr(generator.bit_generator.state)


def copied(argument):
    if isinstance(argument, np.ndarray):
        return argument.copy()
    is_object = type(argument).__module__.startswith("test_") or isinstance(argument, GENERATORS)
    return copy.deepcopy(argument) if is_object or isinstance(argument, (list, tuple)) else argument


def outcome(function, args, name=__file__):
    """What a call gives, leaves and tells."""
    args = [copied(each) for each in args]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            result = function(*args)
        except Exception as error:
            frames = []
            trace = error.__traceback__
            while trace is not None:
                if trace.tb_frame.f_code.co_filename == name:
                    frames.append(trace.tb_lineno)
                trace = trace.tb_next
            result = type(error), str(error), frames[-1]
    return result, args, [(each.category, str(each.message), each.lineno) for each in told]


def alike(ours, theirs):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(b, (tuple, list)):
            assert type(a) is type(b)
            alike(a, b)
        elif isinstance(b, (np.ndarray, np.generic)):
            same(a, b)
        elif isinstance(b, GENERATORS):
            assert state_of(a) == state_of(b)
        else:
            assert type(a) is type(b)
            assert repr(a) == repr(b)


def check(function, *args, native=True, most=60, name=__file__):
    expected = outcome(function, args, name)
    made = looped(function)
    assert made is not None, "it has no loop that can be read"
    loops = heads.loops_of(made.__code__)
    with told(eager=True):
        alike(outcome(made, args, name), expected)
        facts = [each.facts for each in loops]
        assert not any("compiler" in each["why_not"] for each in facts), facts
        if native:
            assert any(each["versions"] for each in facts), [each["why_not"] for each in facts]
        for statements in range(1, most):
            with told(eager=True, exits_after=statements):
                alike(outcome(made, args, name), expected)


def check_native(function, cases):
    """A loop of a function becomes native for the first of its cases."""
    made = looped(function)
    args = next(case[1:] for case in cases if case[0] is function)
    with told(eager=True):
        made(*map(copied, args))
    facts = [loop.facts for loop in heads.loops_of(made.__code__)]
    assert any(each["versions"] for each in facts), [each["why_not"] for each in facts]


NUMBERS = itertools.count()
RNG = np.random.default_rng(5)
X = RNG.random(30)
M = RNG.random((6, 7))
I = RNG.integers(-5, 6, 20)


def total(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i]
    return s


def total_of_int(x):
    s = 0
    for v in x:
        s += v
    return s, v


def by_turns_of_python_and_numpy(x, b):
    c = d = 0
    for i in range(3):
        for j in range(2):
            b *= x[j]
            if j > i:
                d = b
        c = b
        if i == 1:
            b = 0.5
    return b, c, d


def prefix(x):
    for i in range(1, x.shape[0]):
        x[i] = x[i] + x[i - 1] * 0.5
    return x


def rows(m):
    out = np.zeros(m.shape[0])
    for i in range(m.shape[0]):
        s = 0
        for j in range(m.shape[1]):
            if m[i, j] < 0.2:
                continue
            if m[i, j] > 0.95:
                break
            s += m[i, j]
        else:
            s = -s
        out[i] = s
    return out, i, j, s


def count_while(x):
    i, n = 0, 0
    while i < len(x) and x[i] < 0.9:
        if x[i] > 0.5:
            n += 1
        i += 1
    return i, n


def collatz(n):
    longest = best = 0
    for k in range(1, n):
        steps, m = 0, k
        while m != 1:
            m = m // 2 if m % 2 == 0 else 3 * m + 1
            steps += 1
        if steps > longest:
            longest, best = steps, k
    return longest, best


def mandelbrot(n):
    count = 0
    for i in range(n):
        for j in range(n):
            c = complex(-2 + 3 * i / n, -1.5 + 3 * j / n)
            z = 0j
            for k in range(20):
                if abs(z) > 2 or k == 19:
                    count += k
                    break
                z = z * z + c
    return count, z


def swap(a):
    n = len(a)
    for i in range(n):
        for j in range(0, n - i - 1):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


def kept_before_it_changes(x, y):
    s = 0.5
    for i in range(len(x)):
        s, x[i] = x[i] * 2, s
        y[i], s, x[i - 1] = s, y[i], s
    return s, x, y


def beside_a_truth(x, c):
    for i in range(len(x)):
        x[i] = np.maximum(True, x[i]) + np.minimum(i > c, x[i])
    return x


def match(a, b):
    if a + b == 3:
        return 1
    return 0


def nussinov(seq):
    n = len(seq)
    table = np.zeros((n, n), np.int32)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if j - 1 >= 0:
                table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < n:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < n:
                if i < j - 1:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1] + match(seq[i], seq[j]))
                else:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


def crc(data, poly=0x8408):
    crc = 0xFFFF
    for b in data:
        cur = 0xFF & b
        for _ in range(0, 8):
            if (crc & 0x0001) ^ (cur & 0x0001):
                crc = (crc >> 1) ^ poly
            else:
                crc >>= 1
            cur >>= 1
    crc = ~crc & 0xFFFF
    return (crc << 8) | ((crc >> 8) & 0xFF)


def warns(x):
    s = 0.0
    for i in range(len(x)):
        s = s + 1 / (x[i] - x[3])
    return s


def raises(x, n):
    s = 0.0
    for i in range(n):
        s += x[i]
        x[i] = s
    return s


def divides(n):
    s = 0
    for i in range(-5, n):
        s += 10 // i
    return s


def grows(n):
    s = 1
    for i in range(1, n):
        s *= i
    return s


def returns(m):
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            if m[i, j] > 0.9:
                return i, j, m[i, j]
    return None


def rows_as_views(m):
    s = 0.0
    for row in m:
        for v in row:
            s += v
        row[0] = s
    return s, row


def slices(m):
    s = 0.0
    for i in range(1, m.shape[0]):
        part = m[i, :i]
        for v in part:
            s += v * 2
        back = m[::-1, i]
        s -= back[0] + len(back)
    return s, part, back


def functions(x):
    s = 0.0
    for v in x:
        s += math.sqrt(v) + np.exp(v) + math.sin(v) ** 2 + abs(-v) + float(np.sqrt(v))
    return s


def unbound(x):
    for i in range(len(x)):
        if x[i] > 2:
            y = i
    return y


def unbound_late(x):
    for i in range(len(x)):
        if i > 10:
            y = x[i]
        if i > 8:
            x[i] = y
    return x


def nothing_at_first(x):
    best = None
    at = 0
    for i in range(len(x)):
        if i == 0:
            best = x[i]
        if x[i] > best:
            best = x[i]
            at = i
    return best, at


def powers(n):
    s = 0.0
    for i in range(n):
        s += (i * 0.1) ** 2 + 2**i % 7 + i**0.5
    return s


def shifts(n):
    h = 1469598103934665603
    for i in range(n):
        h = ((h ^ i) * 31) & 0xFFFFFFFF
        h = (h << 3 | h >> 29) & 0xFFFFFFFF
    return h


def modulo(n):
    a, b = 0.0, 0
    for i in range(-n, n):
        a += (i * 0.37) % 1.5 - (i * 0.37) // -0.7
        b += i % 7 - i // 3
    return a, b


def small_types(a, b):
    for i in range(len(a)):
        a[i] = a[i] + b[i]
    return a


@ufuse.jit
def blended(a, b):
    return a * 0.75 + b * WEIGHT


WEIGHT = 0.25


@ufuse.jit(numerics="fast")
def clipped(a):
    return blended(a, 1.0) if a > 0.5 else a


def jitted_helpers(x):
    s = 0.0
    for i in range(len(x)):
        s = blended(s, clipped(x[i]))
    return s


def weighted(a, b, weight=0.5, shift=None):
    return a * weight + b if shift is None else a * weight + b - shift


def positional(a, /, b=3):
    return a - b


def default_values(x):
    s = 0.0
    for v in x:
        s = weighted(s, v) + weighted(v, b=s, weight=WEIGHT) + weighted(shift=v, b=1, a=s)
        s += positional(v) - positional(v, b=s)
    return s


def taken_functions(x, f, g, module):
    s = 0.0
    for v in x:
        s += f(v) + g(v, s) + module.sqrt(v)
        s += applied(f, v) + applied(math.sin, v)
    return s, f, g


def applied(f, v):
    return f(v) + 1


def closures(x, k):
    def inner(v, times=k):
        return v * k + times

    def outer(v, c=0.25):
        return inner(v) * c + power(v, 1)

    power = lambda v, by: v**2 + by  # noqa: E731
    s = 0.0
    for v in x:
        s += outer(v) + outer(v, c=s) - power(v, k)
    return s


def complex_beside_numpy(x):
    s = 0j
    for v in x:
        s = 1j * v + s
        s -= v
        a, b, c = s == v, v != 1j, v == 2j
    return s, a, b, c, v * s


def not_given(x, y=None):
    best = None
    n = 0
    for v in x:
        if y is None:
            n += 1
        elif y is not None:
            n -= y
        if best is None or v > best:
            best = v
        n += (y is None) + (2 if not y is None else 3)  # noqa: E714
    return n, best


def tuple_variables(x, m):
    s = 0.0
    pair = (0.0, 1)
    for i in range(len(x)):
        at = i % 3, (i * 2) % 4
        s += m[at]
        pair = (pair[0] + x[i], pair[1] * 2 % 7)
        pair = pair[0], pair[1] + at[0]
        other = at
        at = (at[1] % 3, at[0])
        m[at] += s
        m[other] -= pair[0]
    return s, pair, at, other


def tuples_of_arrays(x, n):
    state = np.zeros(n), np.ones(n), 0
    for i in range(len(x)):
        a, b, k = state
        state = (b + x[i], a * 0.5, k + 1)
        kept = state
        state[0][k % n] = i
    return state, kept, state[0] is kept[0]


def tuples_of_several_kinds(x):
    t = (1, 2.0)
    for i in range(len(x)):
        if i % 2:
            t = (i, x[i])
        else:
            t = (x[i], i, None)
    return t


def written_arrays(x, f, n, z):
    s = np.zeros(2)
    grid = np.zeros((2, 3))
    for i in range(len(x)):
        a = np.array([x[i], s[1]])
        b = np.array([[x[i], 1, i], (i, 2.5, n)])
        s = s + a * np.asarray((i, f[i % 3])) + np.array([i, i + 1])
        c = np.array(a)
        c[0] = 5
        grid += b
    return s, a, b, c, grid


def dtypes_of_written_arrays(x, f, n, z):
    for i in range(len(x)):
        a, b = np.array([i, n]), np.array([True, False])
        c, d = np.array([f[0], f[1]]), np.array([f[0], i])
        e, g = np.array([x[i] > 0.5, i]), np.array([z, 1.5])
        h, j = np.array([n, 1], dtype=float), np.array([[[i, 1]], [[2, 3.5]]])
        k, m = np.concatenate([c, c]), np.zeros([2, n])
    return a, b, c, d, e, g, h, j, k, m


def written_arrays_of_others(x, f):
    for _ in x:
        a, b = np.array([f[0], f[1]], dtype=np.float64), np.array([f[0], 2.5], float)
    return a, b


def copied_arrays(x, m):
    for i in range(len(x)):
        a = np.array(m)
        a[0, 0] = i
        b = np.asarray(m)
        b[1, 1] += 1
        c = np.array(m * 2)
    return a, b, c, b is m


def chained(x):
    n = 0
    for v in x:
        if 0.2 < v <= 0.6 or not v < 0.9:
            n += 1
    return n


def else_of_while(n):
    i, s = 0, 0
    while i < n:
        i += 1
        if i == 13:
            break
        s += i
    else:
        s = -s
    return i, s


def halves_and_adds(n):
    i, s = 0, 0.0
    while i < n:
        s = s * 0.5 + i
        i += 1
    return s


def through_integers(x, whole):
    for i in range(len(x)):
        x[i] = float(int(x[i])) + float(np.int32(x[i]))
        whole[i] = x[i] - 0.75
        x[i] = whole[i]
    return x


def kept_from_before(x, last, stop):
    for v in x:
        if v > stop:
            break
        last, w = v * 2.0, v
        for w in range(int(v)):
            last = w
    return last


CASES = [
    (total, X),
    (kept_from_before, X, "text", -1.0),
    (kept_from_before, X * 4, X, 3.0),
    (through_integers, X * 3 - 1.5, np.zeros(30, "i8")),
    (through_integers, X * 3 - 1.5, np.zeros(30, "i2")),
    (total, X.astype("f4")),
    (by_turns_of_python_and_numpy, np.array([True, False]), 0.5),
    (by_turns_of_python_and_numpy, np.array([0.5, 3.0]), 2.0),
    (kept_before_it_changes, X, X * 3),
    (kept_before_it_changes, I, X.astype("f4")),
    (beside_a_truth, I.astype("i4"), 3),
    (beside_a_truth, I.astype("u1"), 3),
    (beside_a_truth, X.astype("f4"), 3),
    (total_of_int, X),
    (total_of_int, I),
    (prefix, X),
    (rows, M),
    (count_while, X),
    (collatz, 30),
    (mandelbrot, 6),
    (swap, X),
    (swap, I),
    (nussinov, RNG.integers(0, 4, 9)),
    (crc, RNG.integers(0, 256, 20).astype("u1")),
    (warns, X),
    (raises, X, 40),
    (divides, 5),
    (grows, 40),
    (returns, M),
    (returns, M * 0.5),
    (rows_as_views, M),
    (slices, M),
    (functions, X),
    (unbound, X),
    (unbound_late, X),
    (nothing_at_first, X),
    (powers, 40),
    (shifts, 40),
    (modulo, 20),
    (small_types, np.arange(100, 120, dtype="i1"), np.arange(20, dtype="i1")),
    (jitted_helpers, X),
    (complex_beside_numpy, X),
    (not_given, X),
    (not_given, X, 2.5),
    (written_arrays, X, np.arange(3, dtype="f4"), np.int16(4), np.complex64(1 + 2j)),
    (written_arrays, X, np.arange(3), 3, 2j),
    (dtypes_of_written_arrays, X, np.arange(3, dtype="f4"), np.int16(4), np.complex64(1 + 2j)),
    (dtypes_of_written_arrays, X, np.arange(3), 3, 2j),
    (tuple_variables, X, M),
    (tuples_of_arrays, X, 3),
    (written_arrays_of_others, X, np.arange(3, dtype="f4")),
    (copied_arrays, X, M),
    (copied_arrays, X, M.T),
    (copied_arrays, X, M[::2, ::-2]),
    (default_values, X),
    (taken_functions, X, math.exp, blended, math),
    (taken_functions, X, np.sqrt, weighted, np),
    (taken_functions, X, lambda v: v * 0.5, lambda a, b: a - b, np),
    (taken_functions, X, float, max, math),
    (closures, X, 3),
    (closures, X, 2.5),
    (chained, X),
    (else_of_while, 10),
    (else_of_while, 20),
]


class Base:
    factor = 0.5

    def scaled(self, a, by=2):
        return a * by * self.factor


class Model(Base):
    def __init__(self, k=3, table=None):
        self.k = k
        self.table = np.arange(5.0) if table is None else table
        self.written = np.zeros(5)
        self.function = math.sin

    def step(self, i, a):
        return self.scaled(a, by=self.k) + self.table[i % 5]

    @ufuse.jit
    def jitted(self, a):
        return a - self.k

    @property
    def computed(self):
        return self.k


class Slotted:
    __slots__ = ("k",)

    def __init__(self, k):
        self.k = k


class Answering(Model):
    def __getattr__(self, name):
        return 7


Point = collections.namedtuple("Point", "x y")


def of_object(x, m):
    s = 0.0
    for i in range(len(x)):
        s += m.step(i, x[i]) * m.k + m.factor + m.jitted(s) + m.function(s)
        m.table[i % 5] -= x[i]
        m.written[i % 5] += m.table[i % 5]
    return s, m.table, m.written


def of_slots(x, m):
    s = 0.0
    for v in x:
        s += v * m.k
    return s


def of_fields(x, p):
    s = 0.0
    for v in x:
        s += v * p.x - p.y[1]
    return s


def by_property(x, m):
    s = 0.0
    for v in x:
        s += v * m.computed
    return s


def by_getattr(x, m):
    s = 0.0
    for v in x:
        s += v * m.k + m.missing
    return s


def bound_method(x, f):
    s = 0.0
    for i in range(len(x)):
        s += f(i, x[i])
    return s


@pytest.mark.parametrize("backend", ["compiled"], indirect=True)
@pytest.mark.parametrize(
    ("function", "make", "native"),
    [
        (of_object, Model, True),
        (of_object, lambda: Model(2.5, np.arange(5)[::-1].astype("f4")), True),
        (of_slots, lambda: Slotted(3), True),
        (of_slots, lambda: Model(np.float32(3)), True),
        (of_fields, lambda: Point(2.5, np.arange(3)), True),
        (bound_method, lambda: Model().step, True),
        (by_property, Model, False),
        (by_getattr, Answering, False),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_attributes_of_objects(function, make, native):
    made = looped(function)
    loops = heads.loops_of(made.__code__)
    expected = function(X, make())
    for statements in range(20):
        with told(eager=True, exits_after=statements):
            alike([made(X, make())], [expected])
        if statements == 0:
            assert bool(loops[0].facts["versions"]) == native, loops[0].facts["why_not"]


def test_objects_may_change():
    def run(x, m):
        s = 0.0
        for i in range(len(x)):
            s += m.scaled(x[i]) + m.k
        return s

    made = looped(run)
    (loop,) = heads.loops_of(made.__code__)

    class Changing(Model):
        pass

    def agree(m):
        for _ in range(2):
            alike([made(X, m)], [run(X, m)])

    with told(eager=True):
        m = Changing()
        agree(m)
        assert loop.facts["versions"]
        m.k = 2.5
        agree(m)
        Changing.factor = 3
        agree(m)
        m.factor = np.int8(2)
        agree(m)
        Changing.scaled = lambda self, a: a - self.factor
        agree(m)
        m.scaled = lambda a: a + 1
        agree(m)
        del m.scaled
        Changing.k = property(lambda self: 11)
        agree(m)
        del Changing.k
        agree(m)
        Changing.__getattr__ = lambda self, name: 5
        del m.k
        agree(m)
        del Changing.__getattr__
        Changing.__getattribute__ = lambda self, name: 3 if name == "k" else (lambda a: a)
        agree(m)
        agree(Model())
        agree(type("Other", (Model,), {"factor": 4})())


def test_objects_are_not_kept_alive():
    made = looped(of_slots)
    with told(eager=True):
        m = Model()
        table = weakref.ref(m.table)
        made(X, m)
        del m
        gc.collect()
        assert table() is None


@pytest.mark.parametrize("backend", ["compiled"], indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].__name__}")
def test_it_is_what_python_does(case):
    check(*case)


def with_helper(x):
    s = 0.0
    for v in x:
        s += helper(v)  # noqa: F821
    return s


def never_run(function=total, space=None):
    """A function, the same with a head, and its outermost loop, of which nothing is known yet.

    What is known of a loop belongs to its text and file, so each has a file of its own.
    """
    name = f"<never run {next(NUMBERS)}>"
    text = function if isinstance(function, str) else inspect.getsource(function)
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {} if space is None else space
    exec(compile(text, name, "exec"), space)
    function = space["function" if isinstance(function, str) else function.__name__]
    made = looped(function)
    loop = min(heads.loops_of(made.__code__), key=lambda each: each.facts["line"])
    return function, made, loop


def test_helpers_that_others_change():
    @ufuse.jit
    def helper(a):
        return a + 1

    def other(a):
        return a - 1

    space = {"helper": helper}
    function, made, loop = never_run(with_helper, space)
    x = np.arange(30.0)
    with told(eager=True):
        assert made(x) == function(x) == 465
        assert loop.facts["versions"]
        helper.__wrapped__.__code__ = other.__code__
        assert made(x) == function(x) == 405
        space["helper"] = ufuse.jit(functools.partial(pow, 2.0))
        assert made(x) == function(x) == 2.0**30 - 1


def made_by(weight, shift):
    def helper(a, by=shift):
        return a * weight + by

    return helper


def test_what_helpers_see_may_change():
    space = {"helper": made_by(2, 1.5)}
    function, made, loop = never_run(with_helper, space)
    x = np.arange(30.0)
    with told(eager=True):
        for weight, shift in [(2, 1.5), (3, 0.5), (2.5, 1), (True, np.float32(3)), (2**70, 1)]:
            space["helper"] = made_by(weight, shift)
            for _ in range(2):
                assert repr(made(x)) == repr(function(x))
            assert bool(loop.facts["versions"]) == (weight < 2**70)


def test_values_of_global_names_may_change():
    def function(n):
        s = 0
        for i in range(n):
            s += FACTOR * i + TABLE[i % 3]  # noqa: F821
        return s

    text = textwrap.dedent(inspect.getsource(function))
    space = {"FACTOR": 2, "TABLE": np.arange(3)}
    function, made, loop = never_run(text, space)
    with told(eager=True):
        for factor in (2, 3, 2.5, True, np.int8(3), 1j, np.float32(0.1)):
            for table in (np.arange(3), np.arange(3.0), np.arange(6)[::2], np.eye(3)[1]):
                space.update(FACTOR=factor, TABLE=table)
                assert repr(made(20)) == repr(function(20))
        assert loop.facts["versions"]


def test_functions_are_not_kept_alive():
    def run(x, f):
        s = 0.0
        for v in x:
            s += f(v)
        return s

    big = np.ones(1000)
    alive = weakref.ref(big)
    made = looped(run)
    (loop,) = heads.loops_of(made.__code__)
    with told(eager=True):
        assert made(X, lambda v, k=big[0], c=big: v * k) == run(X, lambda v: v * 1.0)
        assert loop.facts["versions"]
        held = [big]
        del big
        assert made(X, lambda v: v * held[0][3]) == run(X, lambda v: v * 1.0)
        held.clear()
        gc.collect()
        assert alive() is None


def test_tuples_of_several_kinds_stay_pythons():
    check(tuples_of_several_kinds, X, native=False)


def test_a_function_that_calls_itself_stays_pythons():
    def count(n):
        return 0 if n < 1 else 1 + count(n - 1)

    def run(x):
        s = 0
        for i in range(len(x)):
            s += count(i)
        return s

    check(run, X, native=False, most=2)


def test_one_kind_of_arguments_does_not_close_the_loop_to_others():
    add, made, loop = never_run()
    with told(eager=True):
        assert made(np.array([1, 2], object)) == 3
        assert loop.facts["why_not"]
        assert not loop.facts["versions"]
        assert made(X) == add(X)
    assert loop.facts["versions"]
    assert not loop.facts["why_not"]


def test_what_no_round_reads_needs_no_program_of_its_own():
    function, made, loop = never_run(kept_from_before)
    with told(eager=True):
        for last in (None, 1, 2.5, "text", X, np.float32(1), (1, X)):
            for x, stop in ((X, -1.0), (X * 4, 3.0), (X, 2.0), (X[:0], 0.0)):
                alike([made(x, last, stop)], [function(x, last, stop)])
    assert len(loop.facts["versions"]) == 1
    assert not loop.facts["why_not"]


def begins_as_an_integer(x, rounds):
    step = 1
    while rounds > 0:
        step = step * 0.5 + x[rounds % 3]
        rounds -= 1
    return step


def test_a_first_round_of_other_types_does_not_close_the_loop():
    made = looped(begins_as_an_integer)
    [loop] = heads.loops_of(made.__code__)
    with told(eager=True):
        for rounds in range(200):
            alike([made(X, rounds)], [begins_as_an_integer(X, rounds)])
        before = loop.facts["versions"][0]["native_ns"]
        made(X, 200)
    assert loop.facts["versions"][0]["native_ns"] > before
    assert not loop.facts["why_not"]


class Counter:
    def __init__(self):
        self.sum = 0


def adds_halves(counter, rounds):
    for _ in range(rounds):
        counter.sum += 0.5
    return counter.sum


def test_a_first_round_of_another_attribute_leaves_later_rounds_native():
    made = looped(adds_halves)
    [loop] = heads.loops_of(made.__code__)
    taken = []
    with told(eager=True):
        for _ in range(20):
            alike([made(Counter(), 20_000)], [adds_halves(Counter(), 20_000)])
            taken.append(sum(each["native_ns"] for each in loop.facts["versions"]))
    # In most calls a program ran: where none does, the time stays what it was.
    assert sum(now != before for before, now in itertools.pairwise(taken)) > 10


def test_a_faster_program_is_kept():
    add, made, loop = never_run()
    x = np.resize(X, 20_000)
    expected = add(x)
    end = time.monotonic() + 60
    while not any(each["ready"] for each in loop.facts["versions"]):
        assert made(x) == expected
        assert time.monotonic() < end
    for _ in range(30):  # now and then Python's rounds are tried beside it
        assert made(x) == expected
    assert not loop.facts["why_not"]


def test_a_while_loop_is_native_in_later_calls_as_well():
    """Nobody knows how many rounds it will have: it has to begin as Python's."""
    made = looped(halves_and_adds)
    [loop] = heads.loops_of(made.__code__)
    end = time.monotonic() + 60
    while not any(each["ready"] for each in loop.facts["versions"]):
        made(30_000)
        assert time.monotonic() < end, loop.facts
    before = loop.facts["versions"][0]["native_ns"]
    alike([made(30_000)], [halves_and_adds(30_000)])
    assert loop.facts["versions"][0]["native_ns"] > before


def rounds_until(stop):
    n = 0
    while stop[0] == 0 and n < 3_000_000_000:
        n += 1
    return n


@pytest.mark.parametrize("interval", [0.005, 0.02])  # the first is Python's own
def test_other_threads_get_their_turns(interval):
    """A program that gives Python's lock away too often never gives it to anybody."""
    made = looped(rounds_until)
    turns = []

    def other():
        for _ in range(20):
            time.sleep(0.001)
            turns.append(time.monotonic())
        stop[0] = 1

    before = sys.getswitchinterval()
    try:
        sys.setswitchinterval(interval)
        with told(eager=True):
            stop = np.ones(1)
            assert made(stop) == 0
            stop[0] = 0
            thread = threading.Thread(target=other)
            thread.start()
            assert made(stop) > 0
            thread.join()
    finally:
        sys.setswitchinterval(before)
    [loop] = heads.loops_of(made.__code__)
    assert loop.facts["versions"][0]["native_ns"] > 1e7
    assert max(b - a for a, b in itertools.pairwise(turns)) < 1


def members(x, n):
    found = []
    for i in range(n):
        v = x[i]
        a = v in (1, 2.0, True)
        b = v not in [3]
        c = i in {0, 2, 5}
        if v in (2, 4) or not (i not in (1, 3)):
            found.append(i)
        x[i] = 7 if a else 8 if b else 9
    return found, a, b, c, x


@pytest.mark.parametrize(
    "x",
    [np.arange(6.0), np.arange(6), np.array([1, np.nan, 2, 3, np.inf, -0.0]), [1, 2, 3, 4.0, 5]],
    ids=str,
)
def test_members_of_what_is_written(x):
    check(members, x, 5, name=__file__)


def lives(n, seen):
    a = np.zeros(1000)
    seen.append(weakref.ref(a))
    s = 0.0
    for i in range(n):
        s += a[i % 1000]
    a = None
    return s, [ref() is None for ref in seen]


def lives_in_what_it_goes_over(n, seen):
    s = 0.0
    for x in [np.zeros(10) + k for k in range(3)]:
        seen.append(weakref.ref(x))
        for i in range(n):
            s += x[i % 10]
    for y in np.arange(5.0) + n:
        s += y
    for z in np.zeros((3, 4)) + n:
        seen.append(weakref.ref(z.base))
    x = y = z = None
    return s, [ref() is None for ref in seen], x, y, z


@pytest.mark.parametrize("function", [lives, lives_in_what_it_goes_over])
@pytest.mark.parametrize("eager", [False, True])
def test_nothing_lives_longer_than_in_python(function, eager):
    """Neither variables nor what a loop has gone over."""
    expected = function(3000, [])
    assert all(expected[1])
    with told(eager=eager):
        for _ in range(3):
            alike(looped(function)(3000, []), expected)


STORED = [0, 1, -1, 100, -100, 200, 300, -300, 40_000, 2**31 - 1, 2**31 + 5, -(2**31), 2**40]


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
@pytest.mark.parametrize("backend", ["compiled"], indirect=True)
def test_elements_of_other_dtypes_are_stored(dtype):
    text = "def f(x, y):\n    for i in range(len(y)):\n        x[i] = y[i]\n    return x\n"
    for given in ["i1", "i4", "i8", "u1", "u4", "u8", "f8"]:
        values = np.array([*STORED, 2**63 - 1, -(2**63)], np.int64).astype(given)
        function = function_of(text, {})
        for first in range(len(values)):
            rest = values[first:]
            check(function, np.zeros(len(rest), dtype), rest, native=dtype != "u8", most=2)
