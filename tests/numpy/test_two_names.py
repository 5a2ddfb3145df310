"""Is a write through one name seen through every other name of the same memory?

Arguments that overlap, and arrays that user code reaches by another way than its arguments: globals,
attributes, closures, containers.
"""

import types

import numpy as np
import pytest
import ufuse
from same import copied, jitted, same

X = np.random.default_rng(0).normal(size=(6, 8))
V = np.random.default_rng(1).normal(size=13)


def fresh(*arrays):
    return copied(arrays)


# ---- arguments that overlap


def write_first(x, y):
    x += 1
    return x + y


def write_first_read_late(x, y):
    z = y * 2
    x += z
    x[...] = y + x
    return z + y


def write_both(x, y):
    x *= 2
    y += 1
    x -= y
    return x.sum(), y.sum()


def assign(x, y):
    x[...] = y


def assign_reversed(x, y):
    x[::-1] = y


def out_argument(x, y):
    np.subtract(x, y, out=x)
    np.add(x, y, out=y)
    return np.sqrt(np.abs(x), out=y)


def only_read(x, y):
    return x * y + x


def returned(x, y):
    x += 1
    return x, y, x[1:], y[1:]


OVERLAPS = {
    "same array": lambda: (lambda a: (a, a))(np.arange(1.0, 13)),
    "same memory": lambda: (lambda a: (a[:], a[:]))(np.arange(1.0, 13)),
    "shifted by one": lambda: (lambda a: (a[1:], a[:-1]))(np.arange(1.0, 13)),
    "shifted back": lambda: (lambda a: (a[:-1], a[1:]))(np.arange(1.0, 13)),
    "reversed": lambda: (lambda a: (a, a[::-1]))(np.arange(1.0, 13)),
    "interleaved": lambda: (lambda a: (a[::2], a[1::2]))(np.arange(1.0, 13)),
    "halves": lambda: (lambda a: (a[:6], a[6:]))(np.arange(1.0, 13)),
    "strides": lambda: (lambda a: (a[:6], a[::2]))(np.arange(1.0, 13)),
    "transposed": lambda: (lambda a: (a, a.T))(np.arange(1.0, 17).reshape(4, 4)),
    "row of a table": lambda: (lambda a: (a, a[2]))(np.arange(1.0, 17).reshape(4, 4)),
    "columns": lambda: (lambda a: (a[:, :3], a[:, 1:]))(np.arange(1.0, 17).reshape(4, 4)),
    "broadcast": lambda: (lambda a: (a[0], np.broadcast_to(a[0], (3, 4))[1]))(np.ones((2, 4))),
    "another dtype": lambda: (lambda a: (a, a.view(np.int64)))(np.arange(1.0, 13)),
    "large": lambda: (lambda a: (a[1:], a[:-1]))(np.arange(1.0, 20_000)),
    "middle misses": lambda: (lambda a: (a[::3], a[1::3]))(np.arange(1.0, 13)),
}
TWO = [
    write_first,
    write_first_read_late,
    write_both,
    assign,
    assign_reversed,
    out_argument,
    only_read,
    returned,
]


@pytest.mark.parametrize("name", OVERLAPS)
@pytest.mark.parametrize("function", TWO, ids=lambda f: f.__name__)
def test_arguments_that_overlap(function, name):
    runs = []
    for f in (function, jitted(function), jitted(function)):
        x, y = OVERLAPS[name]()
        with np.errstate(all="ignore"):
            try:
                result = f(x, y)
            except (ValueError, TypeError) as error:
                result = type(error).__name__, str(error)
        runs.append((result, x, y))
    for run in runs[1:]:
        same(run, runs[0])


def test_overlap_comes_and_goes():
    """One function: a plan made without overlap must not be used with it."""
    f = ufuse.jit(write_first_read_late)
    for name in ("halves", "shifted by one", "same array", "halves", "reversed", "halves"):
        theirs, ours = OVERLAPS[name](), OVERLAPS[name]()
        same(f(*ours), write_first_read_late(*theirs))
        same(ours, theirs)


@pytest.mark.parametrize("function", TWO, ids=lambda f: f.__name__)
def test_overlap_comes_and_goes_in_one_signature(function):
    """Where only the addresses differ, they alone tell that there is overlap."""
    f = ufuse.jit(function)
    with np.errstate(all="ignore"):
        for starts in ((0, 6), (0, 6), (1, 0), (0, 6), (0, 0), (0, 1), (6, 0), (3, 0)):
            theirs, ours = ([a[at : at + 6] for at in starts] for a in (V.copy(), V.copy()))
            same(f(*ours), function(*theirs))
            same(ours, theirs)


def test_the_same_array_or_another():
    def function(x, y):
        x *= 2
        return x is y, x + y

    f = ufuse.jit(function)
    for _ in range(2):
        a, b = fresh(V, V)
        same(f(a, b), function(*fresh(V, V)))
        a, b = V.copy(), V.copy()
        same(f(a, a), function(b, b))
        same(a, b)


def test_containers_that_hold_an_argument():
    def function(x, arrays):
        arrays[0] += 1
        x *= 2
        arrays.append(x)
        return arrays[0] is x

    for f in (function, ufuse.jit(function)):
        x = V.copy()
        arrays = [x]
        assert f(x, arrays) is True
        assert arrays[1] is x
        same(x, (V + 1) * 2)


# ---- arrays that are reached by another way


OUTSIDE = np.arange(8.0)
HOLDER = types.SimpleNamespace(array=np.arange(8.0), gain=2.0)


def reads_a_global(x):
    y = x + OUTSIDE
    OUTSIDE[...] = 0
    z = x + OUTSIDE
    OUTSIDE[2] = 5
    return y, z, OUTSIDE + x


def writes_a_global(x):
    global OUTSIDE
    OUTSIDE += x[0]
    first = OUTSIDE * 2
    OUTSIDE[1:] = OUTSIDE[:-1]
    return first, OUTSIDE.sum()


def rebinds_a_global(x):
    global OUTSIDE
    before = OUTSIDE + 1
    OUTSIDE = OUTSIDE * 2
    return before, OUTSIDE + x


def reads_an_attribute(x):
    y = x * HOLDER.array
    HOLDER.array[::2] = -1
    z = x * HOLDER.array
    HOLDER.array += 1
    return y, z, HOLDER.array - x


def rebinds_an_attribute(x):
    HOLDER.array = x[0] * 2
    HOLDER.array += 1
    HOLDER.gain = x.sum()
    return HOLDER.array * HOLDER.gain


def through_a_list(x, kept=[OUTSIDE]):  # noqa: B006
    y = x + kept[0]
    kept[0][...] = 3
    return y, x + kept[0]


OTHER_WAYS = [
    reads_a_global,
    writes_a_global,
    rebinds_a_global,
    reads_an_attribute,
    rebinds_an_attribute,
]


@pytest.mark.parametrize("function", OTHER_WAYS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("large", [False, True])
def test_arrays_of_globals_and_attributes(function, large, monkeypatch):
    n = 30_000 if large else 8
    x = np.random.default_rng(2).normal(size=(3, n))
    runs = []
    for f in (function, jitted(function), jitted(function)):
        outside = np.arange(float(n))
        monkeypatch.setitem(globals(), "OUTSIDE", outside)
        HOLDER.array, HOLDER.gain = np.arange(float(n)), 2.0
        result = f(x.copy())
        runs.append((result, outside, OUTSIDE, HOLDER.array, HOLDER.gain))
        assert type(OUTSIDE) is np.ndarray
        assert type(HOLDER.array) is np.ndarray
    for run in runs[1:]:
        same(run, runs[0])


def test_array_in_a_default_argument():
    theirs = OUTSIDE.copy()
    expected = through_a_list(X, [theirs])
    ours = OUTSIDE.copy()
    same(ufuse.jit(through_a_list)(X, [ours]), expected)
    same(ours, theirs)
    before = OUTSIDE.copy()
    expected = through_a_list(X)
    OUTSIDE[...] = before
    same(ufuse.jit(through_a_list)(X), expected)
    OUTSIDE[...] = before


def argument_written_then_global_read(x):
    y = OUTSIDE + 0.5
    x[...] = 1
    return y, OUTSIDE + x


def global_written_then_argument_read(x):
    y = x + 1
    OUTSIDE[...] = 0
    return y, x + 2


def attribute_written_then_argument_read(x):
    y = x + 1
    HOLDER.array[...] = 0
    return y, x + 2


def container_written_then_argument_read(x):
    y = x + 1
    KEPT[0][1:] += 5
    return y, x + 2


def other_view_written(x):
    y = x.sum()
    OUTSIDE[::2] += 1
    return y, x * 1


KEPT = {0: OUTSIDE}


@pytest.mark.parametrize("part", [slice(None), slice(2, 7)], ids=["whole", "part"])
@pytest.mark.parametrize(
    "function",
    [
        argument_written_then_global_read,
        global_written_then_argument_read,
        attribute_written_then_argument_read,
        container_written_then_argument_read,
        other_view_written,
    ],
    ids=lambda f: f.__name__,
)
def test_an_argument_that_has_another_name(function, part, monkeypatch):
    runs = []
    for f in (function, jitted(function)):
        outside = np.arange(8.0)
        monkeypatch.setitem(globals(), "OUTSIDE", outside)
        monkeypatch.setattr(HOLDER, "array", outside)
        monkeypatch.setitem(KEPT, 0, outside)
        try:
            result = copied(f(outside[part]))
        except ValueError as error:
            result = str(error)
        runs.append((result, outside))
    same(runs[1], runs[0])


def closures():
    kept = np.arange(8.0)
    count = 0

    def reads(x):
        y = x + kept
        kept[...] = 1
        return y, x + kept

    def writes(x):
        nonlocal count
        count += 1
        kept[count] = 99
        y = kept * x
        kept[...] += 1
        return y, count

    def rebinds(x):
        nonlocal kept
        kept = kept + x[0]
        first = kept * 1
        kept += 1
        return first, kept

    def calls(x):
        return reads(x), writes(x), rebinds(x), reads(x)

    def state():
        return kept, count

    return {"reads": reads, "writes": writes, "rebinds": rebinds, "calls": calls}, state


@pytest.mark.parametrize("name", ["reads", "writes", "rebinds", "calls"])
def test_closures_over_arrays(name):
    outcomes = []
    for wrap in (lambda f: f, ufuse.jit):
        functions, state = closures()
        f = wrap(functions[name])
        outcomes.append([copied(f(X)), copied(f(X)), copied(state())])
        assert type(state()[0]) is np.ndarray
    same(outcomes[1], outcomes[0])


def test_methods_that_keep_state():
    class Filter:
        def __init__(self):
            self.mean = np.zeros(8)
            self.steps = 0
            self.history = []

        def step(self, x):
            self.mean *= 0.5
            self.mean += x.mean(axis=0)
            self.steps += 1
            self.history.append(self.mean.copy())
            x -= self.mean
            return self.mean

    theirs, ours = Filter(), Filter()
    jit = ufuse.jit(Filter.step)
    a, b = X.copy(), X.copy()
    for _ in range(3):
        assert theirs.step(a) is theirs.mean
        assert jit(ours, b) is ours.mean
    same(b, a)
    same(vars(ours), vars(theirs))
