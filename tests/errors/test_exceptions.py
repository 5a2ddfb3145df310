"""Does an exception leave everything as NumPy leaves it?

Type and text, the user's lines in the traceback, the caller's arrays with all writes up to that
point and none after it, and how often user code ran. Each case runs twice, plain and jitted.
"""

import numpy as np
import pytest
import ufuse
from outcomes import STEPS, both, check, compare, run, step
from same import copied, jitted, same

X = np.random.default_rng(0).normal(size=(5, 6))


class OwnError(Exception):
    """An exception of the user's."""


# ---- writes that were pending when the exception came


def add_in_place(x):
    x += 1
    step("written")
    raise KeyError("stop")


def chain_in_place(x):
    x += 1
    x *= 2
    y = np.exp(x)
    x -= y
    step()
    raise OwnError(x.shape)


def assign_slices(x):
    x[1:] = x[:-1] * 2
    x[0] = -1
    x[:, ::2] += 0.5
    raise OwnError("stop")


def write_through_view(x):
    view = x[::-1, 1::2].T
    view *= 3
    view[0] = 7
    raise OwnError("stop")


def write_by_out(x):
    np.multiply(x, 2, out=x)
    np.add(x[0], 1, out=x[1])
    np.sqrt(np.abs(x), x)
    raise OwnError("stop")


def write_by_mask(x):
    x[x > 0] = -1
    x[[0, 2]] = x[[1, 3]]
    np.copyto(x, 9, where=x < -0.5)
    raise OwnError("stop")


def write_in_loop(x):
    for i in range(10):
        x += i
        x[i % 3] = x.sum(axis=0)
        step(i)
        if i == 6:
            raise StopIteration(i)


def write_in_helper(x):
    x *= 2
    raiser(x[1:], 3)
    x *= 1000


def raiser(x, depth):
    x += depth
    step(depth)
    if depth == 0:
        raise OwnError("deep")
    raiser(x[:, 1:], depth - 1)


@ufuse.jit
def inner_jitted(x):
    x += 1
    raise OwnError("inner")


def write_in_jitted(x):
    x *= 2
    inner_jitted(x)


def broadcast_after_write(x):
    x += 1
    step()
    y = x + np.ones(99)
    x += 1
    return y


def index_after_write(x):
    x[1:3] += 1
    step()
    return x[99]


def norm_after_write(x):
    x -= 4
    step()
    return np.linalg.norm(x, ord="bad")


def inverse_after_write(x):
    x[...] = 0
    step()
    return np.linalg.inv(x[:5, :5])


def value_decides(x):
    x /= 2
    if x.sum() < 1e9:
        x *= 3
        raise OwnError(f"{x.sum():.6f} {x[0, 0]}")
    x += 1


def assertion(x):
    x += 1
    if not (x > 100).all():  # an assert statement would get its text from pytest
        raise AssertionError(f"smallest is {x.min()}")


def second_array_is_untouched(x):
    y = x + 1
    y *= 2
    y[0] = 5
    raise OwnError(float(y[0, 0]))


def caught_inside(x):
    x += 1
    try:
        x *= 2
        x + np.ones(99)
        x *= 1000
    except ValueError as error:
        step(str(error))
        x -= 3
    return x


def finally_writes(x):
    try:
        x += 1
        raise OwnError("stop")
    finally:
        x *= 2


def raised_while_handling(x):
    try:
        x += 1
        x.reshape(99)
    except ValueError as error:
        x += 1
        raise OwnError("second") from error


def system_exit(x):
    x += 1
    raise SystemExit(3)


def interrupt(x):
    x += 1
    raise KeyboardInterrupt


PENDING = [
    add_in_place,
    chain_in_place,
    assign_slices,
    write_through_view,
    write_by_out,
    write_by_mask,
    write_in_loop,
    write_in_helper,
    write_in_jitted,
    broadcast_after_write,
    index_after_write,
    norm_after_write,
    inverse_after_write,
    value_decides,
    assertion,
    second_array_is_untouched,
    caught_inside,
    finally_writes,
    raised_while_handling,
    system_exit,
    interrupt,
]


@pytest.mark.parametrize("shape", [(5, 6), (300, 41)], ids=["small", "large"])
@pytest.mark.parametrize("function", PENDING, ids=lambda f: f.__name__)
def test_pending_writes(function, shape):
    check(function, np.random.default_rng(1).normal(size=shape))


@pytest.mark.parametrize("function", PENDING, ids=lambda f: f.__name__)
def test_pending_writes_through_strides(function):
    base = np.random.default_rng(2).normal(size=(12, 20))
    check(function, base[::-2, 1::3])


def test_writes_into_two_arguments_that_overlap():
    def function(x, y):
        x += 1
        y *= 2
        x[0] = y[-1]
        raise OwnError("stop")

    base = np.arange(12.0)
    check(function, base[:8], base[4:])


# ---- what an exception carries


def test_arrays_in_the_exception_are_real():
    def function(x):
        raise OwnError(x + 1, x, x.sum())

    theirs, ours = both(function, X)
    same(ours.error.args, theirs.error.args)
    x = X.copy()
    trail = run(jitted(function), (x,))
    assert trail.error.args[1] is x


def test_cause_context_and_notes():
    def function(x):
        try:
            x.reshape(99)
        except ValueError as error:
            failure = OwnError("second")
            failure.add_note("a note")
            raise failure from error

    theirs, ours = both(function, X)
    compare(theirs, ours)
    assert str(ours.error.__cause__) == str(theirs.error.__cause__)
    assert ours.error.__context__ is ours.error.__cause__
    assert ours.error.__notes__ == ["a note"]


def test_no_context_is_made_up():
    theirs, ours = both(broadcast_after_write, X)
    assert theirs.error.__context__ is None
    assert ours.error.__context__ is None
    assert ours.error.__cause__ is None


def test_an_error_of_a_callback():
    def function(x):
        x += 1
        return np.apply_along_axis(lambda row: 1 / step(0), 0, x)

    check(function, X)


def test_calls_after_an_exception_are_sound():
    function = jitted(chain_in_place)
    for _ in range(3):
        x = X.copy()
        with pytest.raises(OwnError):
            function(x)
        same(ufuse.jit(lambda x: x * 2 + 1)(X), X * 2 + 1)


def test_exception_in_one_of_nested_calls():
    def function(x):
        x += 1
        try:
            inner_jitted(x)
        except OwnError:
            step("caught")
        x *= 2
        return x

    check(function, X)
    assert STEPS == ["caught"]


def test_containers_of_arrays():
    def function(arrays, table):
        arrays[0] += 1
        arrays.append(arrays[0] * 2)
        table["new"] = arrays[0].sum()
        del table["old"]
        raise OwnError("stop")

    check(function, [X, 3], {"old": 1})


def test_arguments_that_do_not_fit():
    def function(x, *, flag):
        return x

    for args, kwargs in [((), {}), ((X,), {}), ((X, X), {"flag": 1}), ((X,), {"other": 1})]:
        with pytest.raises(TypeError) as theirs:
            function(*copied(args), **kwargs)
        with pytest.raises(TypeError) as ours:
            jitted(function)(*copied(args), **kwargs)
        assert str(ours.value) == str(theirs.value)
