"""Do arrays share memory exactly where NumPy's do, and is every write seen where NumPy's is?

Views that are returned, ``out=`` and slice assignments onto their own input, views that may not be
written, and how long memory lives. Memory that has two names: test_two_names.py.
"""

import operator

import numpy as np
import pytest
import ufuse
from same import check, copied, jitted, same
from ufuse import _core

X = np.random.default_rng(0).normal(size=(6, 8))
V = np.random.default_rng(1).normal(size=13)


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


STRIDED = [
    *[((1,), (16,)), ((1,), (-8,)), ((1,), (0,)), ((0,), (16,)), ((4,), (8,)), ((2,), (-8,))],
    *[((1, 1), (16, 24)), ((1, 1), (0, 0)), ((1, 3), (800, 8)), ((1, 3), (8, 16))],
    *[((3, 1), (8, 800)), ((3, 1), (16, 8)), ((2, 1), (8, -8)), ((1, 4), (-8, 8))],
    *[((1, 0), (24, 16)), ((0, 3), (8, 8)), ((2, 1, 2), (16, 400, 8)), ((2, 3), (24, 8))],
]


@pytest.mark.parametrize(("shape", "strides"), STRIDED, ids=str)
@pytest.mark.parametrize(
    "views",
    [
        lambda x: (np.ravel(x), x.reshape(-1), x.reshape(1, -1), x.reshape(-1, 1)),
        lambda x: (x.reshape(x.shape), x.T, x[...], np.squeeze(x), np.atleast_2d(x)),
        lambda x: (x.flatten(), x.copy(), (x + 1).ravel(), (x * 2).reshape(-1)),
        lambda x: (x[None], np.moveaxis(x, 0, -1), x[::-1], np.ascontiguousarray(x)),
    ],
    ids=["flat", "same", "copies", "moved"],
)
def test_strides_that_lead_nowhere(views, shape, strides):
    """NumPy keeps those of axes with one element or none in some views, and not in others."""
    x = np.lib.stride_tricks.as_strided(np.arange(200.0)[100:], shape, strides)
    check(views, x)
    assert [each.strides for each in jitted(views)(x)] == [each.strides for each in views(x)]


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


def spread(x):
    x[::2] = x[: (len(x) + 1) // 2]


def gather(x):
    n = len(x) // 2
    x[-n:] = x[-1 : -2 * n - 1 : -2]
    x[:n] = x[: 2 * n : 2]


def row_into_column(x):
    n = min(x.shape)
    for i in range(n):
        x[:n, i] = x[n - 1 - i, :n] if x.ndim == 2 else 1


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
    spread,
    gather,
    row_into_column,
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


def add_up(x):
    np.cumsum(x, axis=0, out=x)


def add_up_parts(x):
    y = np.empty(x.shape, x.dtype)
    y[0] = 1
    y[1:] = x[1:]
    return np.cumsum(y, axis=-1, out=y)


def largest_so_far(x):
    return np.maximum.accumulate(x, axis=0, out=x)


@pytest.mark.parametrize("function", [add_up, add_up_parts, largest_so_far])
@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f8", "c16"])
def test_long_scans_onto_themselves(function, dtype):
    x = np.random.default_rng(2).integers(-9, 9, 40_000).astype(dtype)
    for given in (x, x[::-3], x.reshape(-1, 4), x.reshape(4, -1)):
        for _ in range(3):
            check(function, given)


@pytest.mark.parametrize(
    "function", [transpose_onto_itself, add_transposed], ids=lambda f: f.__name__
)
def test_transposed_onto_itself(function):
    for x in (X, X.T, np.asfortranarray(X), np.tile(X, (20, 20))):
        check(function, x)


def doubled_before(x):
    x += x
    return (lambda: x + x), (lambda: x.copy()), (lambda: x[::-1]), (lambda: x * 1.0)


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize(
    "function", [np.hypot, np.arctan2, np.fmod, np.add, np.power], ids=lambda f: f.__name__
)
def test_operands_of_what_is_written_first(function, place):
    """NumPy's inner loops read memory: what is pending for one operand is written before, and the
    other one is what it was."""

    def before(x):
        return function(doubled_before(x)[place](), x), x

    def after(x):
        return function(x, doubled_before(x)[place]()), x

    def copied(x):
        old = x.copy()
        x += 1
        return function(old, x), old, x

    for x in (V, V[::-1], V[::2], V[1:]):
        for each in (before, after, copied):
            check(each, x)


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


@pytest.mark.parametrize("pending", [False, True])
def test_views_of_views_of_views(pending):
    def f(x):
        y = x * 2 if pending else x
        z = y
        while z.size > 2:
            z[0], z[-1] = z[-1], z[0]
            z = z[1:-1] if z.size % 2 else z[::-1][1:]
            z = z.reshape(1, -1)[0]
        total = z + y[: z.size]
        z += 1
        return y, z, total

    x, theirs = np.arange(300.0), np.arange(300.0)
    same(ufuse.jit(f)(x), f(theirs))
    same(x, theirs)


def _copy_before_write(x, w):
    y = x.copy()
    x += 1
    return y


def _copy_into_other(x, w):
    w[:] = x
    x += 1


def _swap(x, w):
    t = x.copy()
    x[:] = w
    w[:] = t


def _reversed_before_write(x, w):
    y, z = x[::-1].copy(), x.reshape(2, -1).T.copy()
    x *= w
    return y, z, w


@pytest.mark.parametrize("by", ["numpy", "deferred"])
@pytest.mark.parametrize(
    "function", [_copy_before_write, _copy_into_other, _swap, _reversed_before_write]
)
def test_copies_that_numpy_makes_while_their_source_is_written(function, by):
    """A request that is left to NumPy: no loops, or loops that are still being compiled."""
    with _core.backend(by):
        for size in (10, 300_000):
            x, w = np.arange(float(size)), np.arange(float(size)) + 0.5
            ours, theirs = (x.copy(), w.copy()), (x.copy(), w.copy())
            same(ufuse.jit(function)(*ours), function(*theirs))
            same(ours, theirs)
