"""Is a call whose Python is told values on the way replayed along the way that Python would go?

Each function is called with arguments that lead it along all its paths, several times and in a
mixed order, and compared with the plain function each time.
"""

import tracemalloc
import warnings

import numpy as np
import pytest
import ufuse
from same import check, same

BACKENDS = ["compiled"]

X = np.linspace(0.5, 2.0, 12).reshape(3, 4)
SCALES = (1.0, -1.0, 0.0, -0.0, 4.0, float("nan"), 0.3, -7.5)


def sign(x):
    return x + 1 if x.sum() > 0 else x - 1


def nested(x):
    y = x * 2
    if y.any() and (y > 1).all():
        return y, x
    z = y + 1
    if not z.max() > 2:
        return z, y, x
    return (z - y.mean(),)


def halves(x):
    n = 0
    while np.abs(x).max() > 0.75 and n < 9:
        x = x / 2
        n += 1
    return x, n


def newton(x):
    y = x * x + 2
    for _ in range(10):
        step = (y * y - 2) / (2 * y)
        y = y - step
        if np.abs(step).max() < 1e-8:
            break
    return y


def whole(x):
    return x * int(x[0, 0])


def whole_shape(x):
    n = int(np.abs(np.nan_to_num(x)).max()) % 3 + 1
    return np.ones((n, 2)) * x.mean()


def fraction(x):
    return x * float(x[1, 1]), x.max().item()


def index(x):
    return x[np.argmax(x) % 3] * 2


def choice(x):
    i = x.argmin()
    return [x * 2, x * 3][int(i) % 2]


def both(x):
    low, high = x.min(), x.max()
    if low < -1 or high > 3:
        return (x - low) / 8
    return x * high


def larger(x):
    return max(x.sum(), x.mean()) * x


def allclose(x):
    return x if np.allclose(x, 1, atol=0.6) else x * 0.5


def early(x):
    if x.size > 3 and x[0, 0] > 0:
        return None
    return x.sum()


def truth_of_element(x):
    return x * 2 if x[0, :1] else x * 3


def raises(x):
    if x.sum() < 0:
        raise ValueError("negative")
    return np.sqrt(x)


def caught(x):
    try:
        n = int(x.sum())
    except Exception:
        n = -5
    return x * n


def writes_last(x):
    if x[0, 0] > 1:
        x += 1
    else:
        x *= x[0, 0]
    return x.sum()


def writes_first(x):
    x *= 2
    return x + 1 if x.sum() > 0 else x - 1


def writes_part(x):
    if x.sum() > 0:
        x[1:] = x[:-1]
    return x * 2


def writes_between(x):
    if x.sum() > 0:
        x += 1
        if x.max() > 3:
            x += 1
    return x * 2


def temporary_in_place(x):
    y = x * 2
    while y.max() > 1 and y.max() < 100:
        y /= 2
    return y


def warns(x):
    y = np.log(x)
    if y.sum() > 0:
        return 1 / x
    return np.sqrt(x - 1)


def of_helper(x):
    return sign(x) if truth_of_element(x).sum() > 3 else nested(x)


FUNCTIONS = [sign, nested, halves, newton, whole, whole_shape, fraction, index, choice, both]
FUNCTIONS += [larger, allclose, early, truth_of_element, raises, caught, writes_last]
FUNCTIONS += [writes_first, writes_part, writes_between, temporary_in_place, warns, of_helper]


def with_number(x, a):
    if x.sum() > a:
        return x * a
    return x - a if a > 0 else x


def with_scalar(x, k):
    if k:
        return x * k
    return x + float(k)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "c16", "?"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore")
def test_paths(function, dtype):
    order = np.random.default_rng(7).permutation(SCALES * 3)
    for scale in (*SCALES, *order):
        check(function, (X * scale).astype(dtype))
        check(function, (X * scale).astype(dtype)[::-1, ::-1])


@pytest.mark.parametrize(
    ("function", "traced"),
    [(sign, 2), (nested, 3), (halves, 5), (newton, None), (both, 3), (larger, 2)]
    + [(writes_last, 2), (truth_of_element, 1)],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_python_runs_once_for_each_path(function, traced):
    native = ufuse.jit(function)
    for scale in (1.0, -1.0, 4.0, 0.2) * 4:
        same(native(X * scale), function(X * scale))
        if native._dispatcher.prefers_plain(X):
            break
    replayed, recorded, plans = native._dispatcher.counts
    assert recorded == plans
    assert recorded <= (traced or 8)
    assert replayed > 0 or native._dispatcher.prefers_plain(X)
    assert native.explain(X).mode == "replayed" or native._dispatcher.prefers_plain(X)


@pytest.mark.parametrize("function", [writes_first, writes_between, writes_part])
def test_memory_that_is_written_before_python_is_told(function):
    """It gets its old contents back where such a call is begun anew."""
    native = ufuse.jit(function)
    for _ in range(3):
        native(X * 2)
    assert native._dispatcher.counts[1] == 1  # Python ran once
    for scale in (2, -1.0, 0.0, 2, float("nan"), 1e-9, 2):
        check(function, X * scale, _jitted=native)


def test_numbers_and_values_steer_together():
    for a in (0.5, 10, 2, -1.0, 0, 3.5, 12.0, 0.25) * 2:
        for scale in (1.0, -1.0):
            check(with_number, X * scale, a)
            check(with_scalar, X * scale, np.float32(a))
            check(with_scalar, X * scale, np.int16(a))


def test_values_that_are_never_the_same():
    """What Python is told is no choice between a few: it is traced, and its paths are dropped."""
    native = ufuse.jit(fraction)
    x = np.ones((200, 200))
    for turn in range(60):
        same(native(x * turn), fraction(x * turn))
    replayed, _, plans = native._dispatcher.counts
    assert plans == 1
    assert replayed == 0


def test_warnings_come_in_order_at_each_call():
    for _ in range(3):
        for scale in (1.0, -1.0, 0.0, 4.0):
            check(warns, X * scale)
    native = ufuse.jit(warns)
    for scale in (2.0, 4.0):
        native(X * scale)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        native(X * 0)
    assert [str(w.message) for w in told] == [
        "divide by zero encountered in log",
        "invalid value encountered in sqrt",
    ]


def test_error_states():
    native = ufuse.jit(warns)
    with np.errstate(all="ignore"):
        for scale in (2.0, 4.0, 0.5):
            same(native(X * scale), warns(X * scale))
    for scale in (2.0, 4.0, 0.5):
        check(warns, X * scale, _jitted=native)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        native(X * 0)


def test_what_is_not_needed_any_more_is_let_go():
    def many(x):
        for _ in range(20):
            x = x * 1.5
            if x.max() < 0:
                return x
        return x

    native = ufuse.jit(many)
    x = np.ones(200_000)
    for _ in range(3):
        native(x)
    assert native._dispatcher.counts[0] > 0
    tracemalloc.start()
    try:
        native(x)
        assert tracemalloc.get_traced_memory()[1] < 5 * x.nbytes
    finally:
        tracemalloc.stop()


def test_long_loops_that_are_flushed():
    def march(x, dt):
        for _ in range(60):
            x = x + dt * (np.roll(x, 1) - 2 * x + np.roll(x, -1))
        return x

    for dt in (0.1, 0.2, 0.1, 0.25):
        check(march, X, dt)
        check(march, X[::-1], dt)


def test_random_walks():
    """Programs that draw their next step from what they have been told."""

    def walk(x, steps):
        y = x
        for _ in range(steps):
            total = y.sum()
            if total > 4:
                y = y - 1
            elif total < -4:
                y = y * -0.5
            elif y[0, 0] > 0.1:
                y = y * 1.5 + x
            else:
                y = x - y.T.reshape(3, 4)
        return y

    rng = np.random.default_rng(3)
    for _ in range(60):
        check(walk, rng.integers(-3, 4, (3, 4)) / 4, int(rng.integers(1, 4)))
