"""Do arrays share memory exactly where NumPy's do, and is every write seen where NumPy's is?

Views that are returned, arguments that overlap, ``out=`` and slice assignments onto their own input,
and arrays that user code reaches by another way than its arguments: globals, attributes, closures,
containers.
"""

import operator
import types

import numpy as np
import pytest
import ufuse
from same import check, copied, jitted, same

X = np.random.default_rng(0).normal(size=(6, 8))
V = np.random.default_rng(1).normal(size=13)
K = np.arange(12).reshape(3, 4)


def fresh(*arrays):
    return copied(arrays)


# ---- what is returned


def window(x):
    return np.lib.stride_tricks.sliding_window_view(x, 3, axis=0)


VIEWS = [
    lambda x: x[:],
    lambda x: x[...],
    lambda x: x[1:],
    lambda x: x[::-1],
    lambda x: x[1::2, ::-3],
    lambda x: x[2],
    lambda x: x[:, 3],
    lambda x: x[None],
    lambda x: x.T,
    lambda x: x.T[1:].T,
    lambda x: x.reshape(-1),
    lambda x: x.reshape(4, -1)[1:],
    lambda x: x.ravel(),
    lambda x: np.ravel(x),
    lambda x: x.swapaxes(0, 1),
    lambda x: np.moveaxis(x, 0, -1),
    lambda x: np.expand_dims(x, 1),
    lambda x: np.squeeze(x[None]),
    lambda x: np.broadcast_to(x, (2, *x.shape)),
    lambda x: np.broadcast_arrays(x, np.ones((2, 1, 1)))[0],
    lambda x: np.flip(x, 1),
    lambda x: np.rot90(x),
    lambda x: np.diagonal(x),
    lambda x: np.atleast_3d(x),
    lambda x: np.asarray(x),
    lambda x: np.ascontiguousarray(x),
    lambda x: np.array(x, copy=None) if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else x,
    lambda x: x.view(),
    lambda x: x.view(np.int64),
    lambda x: x.real,
    lambda x: np.split(x, 2),
    lambda x: np.array_split(x, 4, axis=1),
    lambda x: list(x),
    lambda x: [row[1:] for row in x],
    window,
    lambda x: x.astype(float, copy=False),
    lambda x: x.astype(float),
    lambda x: x.copy(),
    lambda x: x.flatten(),
    lambda x: x.T.ravel(),
    lambda x: x.T.reshape(-1),
    lambda x: +x,
    lambda x: x * 1,
    lambda x: x[[0, 1]],
    lambda x: x[x > 0],
    lambda x: np.abs(x),
    lambda x: x.conj(),
    lambda x: np.real(x),
    lambda x: np.positive(x),
    lambda x: np.where(True, x, x),
    lambda x: (x, x),
    lambda x: (x, x[1:], x.T, x[1:][1:]),
    lambda x: [x[0], {"row": x[0]}],
    lambda x: (x * 2,) * 2,
    lambda x: (lambda y: (y, y[1:], y.T))(x * 2),
    lambda x: (lambda y: (y[::2], y[1::2]))(x * 2),
    lambda x: (x + 1, x + 1),
]


@pytest.mark.parametrize("function", VIEWS)
@pytest.mark.parametrize("layout", ["whole", "view", "fortran"])
def test_results(function, layout):
    make = {
        "whole": lambda: X.copy(),
        "view": lambda: np.tile(X, (3, 2))[1:14:2, 2:14],
        "fortran": lambda: np.asfortranarray(X),
    }[layout]
    theirs_x, ours_x = make(), make()
    try:
        theirs = function(theirs_x)
    except ValueError:
        check(function, theirs_x)
        return
    ours = jitted(function)(ours_x)
    same(ours, theirs)
    theirs, ours = ([*arrays_in(r)] for r in (theirs, ours))
    for t, o in zip(theirs, ours, strict=True):
        assert np.shares_memory(o, ours_x) == np.shares_memory(t, theirs_x)
        assert (o is ours_x) == (t is theirs_x)
        assert (o.base is None) == (t.base is None) or not np.shares_memory(t, theirs_x)
        if np.shares_memory(t, theirs_x):
            assert offset(o, ours_x) == offset(t, theirs_x)
            assert o.strides == t.strides
        assert o.flags.writeable == t.flags.writeable
    for i in range(len(ours)):
        for j in range(i):
            assert (ours[i] is ours[j]) == (theirs[i] is theirs[j])
            assert np.shares_memory(ours[i], ours[j]) == np.shares_memory(theirs[i], theirs[j])
    # And the proof: what is written into a result is seen in the argument.
    for t, o in zip(theirs, ours, strict=True):
        if t.flags.writeable:
            t[...] = o[...] = 7
            same(ours_x, theirs_x)


def arrays_in(value):
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict):
        yield from arrays_in(list(value.values()))
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from arrays_in(item)


def offset(view, x):
    return view.__array_interface__["data"][0] - x.__array_interface__["data"][0]


def test_the_argument_is_the_result():
    x, row = X.copy(), X[0].copy()
    assert jitted(lambda x: x)(x) is x
    assert ufuse.jit(lambda x, y: (y, x))(x, row)[0] is row
    assert ufuse.jit(lambda x: [x, x])(x)[1] is x
    assert ufuse.jit(lambda x: x.__iadd__(1))(x) is x
    assert ufuse.jit(lambda x: np.sqrt(np.abs(x), out=x))(x) is x
    assert ufuse.jit(lambda x: x.T.T)(x) is not x
    assert ufuse.jit(lambda x: x[1:])(x).base is x
    assert ufuse.jit(lambda x: x[1:].T[2:])(x).base is x
    view = x[1:]
    assert ufuse.jit(lambda v: v[1:])(view).base is x


@pytest.mark.parametrize("function", [np.exp, np.log, np.tanh, np.sin], ids=lambda f: f.__name__)
def test_functions_of_views(function):
    """Their bits depend on the stride that NumPy's inner loop is handed."""
    with np.errstate(all="ignore"):
        for view in (X[::-1], X[:, ::-1], X[::-1, ::2], X[::2, ::-1].T, X.T[::-1], X[::-2, ::-3]):
            check(lambda x: function(x) - 1.0, view)
            check(lambda x: function(x), view)


# ---- writes onto what is read


def later_into_earlier(x):
    x[:-1] = x[1:]


def earlier_into_later(x):
    x[1:] = x[:-1]


def add_shifted(x):
    x[1:] += x[:-1]


def add_shifted_back(x):
    x[:-1] += x[1:] * 2


def reverse(x):
    x[...] = x[::-1]


def reverse_in_place(x):
    x[::-1] = x


def add_reversed(x):
    x += x[::-1]


def transpose_onto_itself(x):
    n = min(x.shape)
    x[:n, :n] = x[:n, :n].T


def add_transposed(x):
    n = min(x.shape)
    square = x[:n, :n]
    square += square.T


def swap_rows(x):
    x[0], x[1] = x[1], x[0]


def swap_rows_by_copy(x):
    x[0], x[1] = x[1].copy(), x[0].copy()


def swap_rows_by_index(x):
    x[[0, 1]] = x[[1, 0]]


def swap_by_three(x):
    t = x[0] + 0
    x[0] = x[1]
    x[1] = t


def row_from_all(x):
    x[0] = x.sum(axis=0)
    x[1] = x.sum(axis=0)


def subtract_a_row(x):
    x -= x[0]


def divide_by_the_largest(x):
    x /= x.max()


def divide_by_an_element(x):
    x /= x[0, 0] if x.ndim == 2 else x[0]


def broadcast_onto_itself(x):
    x[...] = x[:1]


def even_from_odd(x):
    n = len(x) // 2
    x[: 2 * n : 2] += x[1 : 2 * n : 2]
    x[1 : 2 * n : 2] = x[: 2 * n : 2] * 0.5


def view_taken_before(x):
    view = x[1:]
    old = x + 0
    x += 1
    view *= 2
    x[0] = view[0]
    return old, view, x


def view_of_view_written(x):
    a = x[1:]
    b = a[::2]
    c = b[..., ::-1]
    c += 1
    a *= 2
    return a, b, c


def old_value_is_kept(x):
    y = x * 1
    z = x[::-1]
    x[...] = 0
    return y, z


def lazy_value_of_old_contents(x):
    y = np.sqrt(np.abs(x))
    x[...] = 0
    z = np.cos(x)
    return y - z


def out_shifted(x):
    np.add(x[1:], x[:-1], out=x[1:])


def out_shifted_back(x):
    np.add(x[1:], x[:-1], out=x[:-1])


def out_reversed(x):
    np.multiply(x, 2, out=x[::-1])


def out_of_exp(x):
    np.exp(x[:-1] * 0.1, out=x[1:])


def out_of_sum(x):
    np.sum(x, axis=0, out=x[0] if x.ndim == 2 else x[:1].reshape(()))


def out_of_cumsum(x):
    np.cumsum(x, axis=0, out=x)


def out_twice(x):
    np.modf(x, out=(x, np.empty_like(x)))


def copyto_shifted(x):
    np.copyto(x[1:], x[:-1])


def where_onto_itself(x):
    x[1:] = np.where(x[1:] > 0, x[:-1], x[1:])


def mask_from_itself(x):
    x[x > 0] = x[x > 0] * 2
    x[x < 0] -= 1
    x[x > 1] = x.ravel()[0]


def stencil_in_place(x):
    x[1:-1] = (x[:-2] + x[2:]) / 2
    x[1:-1] += x[:-2] + x[2:]


def long_chain_in_place(x):
    for k in range(5):
        x[k % 3 :] += x[: len(x) - k % 3]
        x *= 0.5
        x[::2] -= x[::-2][: len(x[::2])]


WRITES = [
    later_into_earlier,
    earlier_into_later,
    add_shifted,
    add_shifted_back,
    reverse,
    reverse_in_place,
    add_reversed,
    swap_rows,
    swap_rows_by_copy,
    swap_rows_by_index,
    swap_by_three,
    row_from_all,
    subtract_a_row,
    divide_by_the_largest,
    divide_by_an_element,
    broadcast_onto_itself,
    even_from_odd,
    view_taken_before,
    view_of_view_written,
    old_value_is_kept,
    lazy_value_of_old_contents,
    out_shifted,
    out_shifted_back,
    out_reversed,
    out_of_exp,
    out_of_sum,
    out_of_cumsum,
    out_twice,
    copyto_shifted,
    where_onto_itself,
    mask_from_itself,
    stencil_in_place,
    long_chain_in_place,
]


@pytest.mark.parametrize("function", WRITES, ids=lambda f: f.__name__)
def test_writes_onto_what_is_read(function):
    for x in (V, X, X[::-1, ::2], X[::2], X.T[:, ::-1], np.tile(X, (20, 30))):
        for _ in range(3):  # traced, then replayed
            check(function, x)


@pytest.mark.parametrize(
    "function", [transpose_onto_itself, add_transposed], ids=lambda f: f.__name__
)
def test_transposed_onto_itself(function):
    for x in (X, X.T, np.asfortranarray(X), np.tile(X, (20, 20))):
        check(function, x)


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
    """One function, one signature: a plan made without overlap must not be used with it."""
    f = ufuse.jit(write_first_read_late)
    for name in ("halves", "shifted by one", "same array", "halves", "reversed", "halves"):
        theirs, ours = OVERLAPS[name](), OVERLAPS[name]()
        same(f(*ours), write_first_read_late(*theirs))
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


# ---- in-place on what cannot be written


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.broadcast_to(x, (3, *x.shape)).__iadd__(1),
        lambda x: np.broadcast_to(x[0, 0], 5).__setitem__(0, 1),
        lambda x: np.add(x, 1, out=np.broadcast_to(x, x.shape)),
        lambda x: operator.setitem(x.sum(), (), 1),
        lambda x: np.diagonal(x).__iadd__(1),
        lambda x: np.real(x).__iadd__(1),
        lambda x: x.flat.__setitem__(0, 5),
        lambda x: x.T.flat.__setitem__(slice(None), 5),
        lambda x: x.imag.__iadd__(1),
    ],
)
def test_views_that_may_not_be_written(function):
    check(function, X)


def test_writing_through_lists_of_numbers_is_not_seen():
    def function(x):
        rows = x.tolist()
        rows[0][0] = 99
        x[1] = rows[0]

    check(function, X)


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


def test_memory_that_numpy_did_not_allocate():
    raw = bytearray(V.tobytes())
    x = np.frombuffer(raw, float)

    @ufuse.jit
    def function(x):
        x += 1
        return x[::2]

    result = function(x)
    same(np.frombuffer(raw, float), V + 1)
    assert np.shares_memory(result, x)
    same(ufuse.jit(lambda x: x * 2)(np.frombuffer(V.tobytes(), float)), V * 2)


def test_results_do_not_change_later():
    @ufuse.jit
    def function(x):
        y = x * 2
        return y, y[1:], y.sum(axis=0)

    first = function(X)
    kept = copied(first)
    for k in range(5):
        function(X * k)
    same(first, kept)


def test_memory_is_freed():
    """No array outlives its last holder by being remembered in a plan."""
    import gc
    import weakref

    class Watched(np.ndarray):
        pass

    base = np.ones(1000).view(Watched)
    seen = weakref.ref(base)
    x = np.asarray(base)
    result = jitted(lambda x: x[1:] + 1)(x)
    jitted(lambda x: x * 0)(X)
    del x, base
    gc.collect()
    assert seen() is None
    assert result.sum() == 1998


def _place(x):
    y = x * 2
    np.place(x, x > 0, [1, 2])
    return y, x + 1


def _copy_onto_itself(x):
    np.copyto(x, x)
    return x + 1


def _assign_to_itself(x):
    x[1:] = x[1:]
    return x + 1


def _assign_nothing(x):
    x[:0] = x[:0]
    return x + 1


def test_writes_of_numpy_s_own_functions():
    check(_place, V)
    for writeable in (True, False):
        x = V.copy()
        x.flags.writeable = writeable
        for function in (_copy_onto_itself, _assign_to_itself, _assign_nothing):
            check(function, x)


def test_arrays_that_are_not_traced_write_into_arrays_that_are():
    unaligned = np.zeros(8 * 6 + 1, np.uint8)[1:].view("d")
    check(lambda x, out: np.take(x, [0, 1], out=out) + 1, unaligned, np.ones(2))
    check(lambda x, out: np.cumsum(x, out=out) + 1, unaligned, np.ones(6))
    check(lambda x, out: np.take(x, [0, 1], out=out) + 1, V[:6].astype(">f8"), np.ones(2))
