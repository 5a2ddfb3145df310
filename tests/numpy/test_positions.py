"""Elements at positions and under masks: are reads, writes, orders, layouts and errors NumPy's?"""

import numpy as np
import pytest
import ufuse
from arrays import DTYPES, LAYOUTS, array
from same import check, check_all
from texts import function_of

RNG = np.random.default_rng(5)


def positions(shape, extent, dtype="l"):
    """Positions within an axis, negative ones among them, most of them more than once."""
    return RNG.integers(-extent, extent, shape).astype(dtype)


# By name: of an array `x` of shape (6, 7), and values `v` that have elements enough.
GIVEN = {
    "i": positions(9, 6),
    "j": positions(9, 7),
    "small": positions(4, 6, "b"),
    "half": positions(5, 6, "i"),
    "unsigned": np.array([5, 0, 5, 2], "B"),
    "wide": np.array([5, 0, 5, 2], "L"),
    "grid": positions((3, 4), 6),
    "turned": positions((4, 3), 6).T,
    "cut": positions((6, 8), 6)[::2, ::2],
    "back": positions(9, 6)[::-1],
    "backj": positions(9, 7)[::-1],
    "backgrid": positions((3, 4), 6)[::-1, ::-1],
    "column": positions((5, 1), 6),
    "row": positions((1, 4), 7),
    "none": np.zeros(0, "l"),
    "m": RNG.random((6, 7)) < 0.4,
    "mt": (RNG.random((7, 6)) < 0.4).T,
    "all_of": np.ones((6, 7), bool),
    "no": np.zeros((6, 7), bool),
    "m0": np.array([True, False, True, True, False, False]),
    "m1": np.array([True, False, True, False, False, True, False]),
}

KEYS = """
i; small; half; unsigned; wide; grid; turned; cut; back; backgrid; none; m; mt; all_of; no; m0
i, j; back, backj; i, 2; 2, i; -1, i; column, row; column, 3; row * 0, column; grid, 1; turned, grid
i, slice(None); slice(None), j; slice(1, 4), j; slice(None, None, -1), j; i, slice(None, None, 2)
i, slice(2, 3); slice(2, 3), j; ..., j; i, ...; None, i; i, None; i, None, j; None, i, j; i, j, None
..., i, j; i, ..., j; i, slice(None), None; slice(None), None, j; m0, slice(None); slice(None), m1
m0, m1 * 0 > 1; m0, 2; 2, m1; m0, j[:3]; i[:3], m1; m1.nonzero()[0]; m0.nonzero()[0], 1; grid, None, row
"""
KEYS = [key.strip() for line in KEYS.split("\n") for key in line.split(";") if key.strip()]
WRONG_KEYS = """
i + 6; i - 20; grid + 9; i, j + 7; i, j, i; i[:3], j[:2]; m1; m[:5]; m[:, :5]; i.astype('d'); m0[:3], j
slice(None), i + 7; i + 6, slice(None); i.astype('c'); m, 1; slice(None), m; column + 9, row; 9, j; i, 9
"""
WRONG_KEYS = [key.strip() for line in WRONG_KEYS.split("\n") for key in line.split(";")]
WRONG_KEYS = [key for key in WRONG_KEYS if key]


def fits(key):
    """Whether NumPy takes the key."""
    try:
        np.zeros((6, 7))[eval(key, dict(GIVEN))]
    except IndexError:
        return False
    return True


def on(text, *names):
    """A function of arrays with these names, and of all that are given."""
    arguments = ", ".join([*names, *GIVEN])
    lines = "".join(f"    {line}\n" for line in text.split("\n"))
    return function_of(f"def function({arguments}):\n{lines}", {"np": np})


@pytest.mark.parametrize("key", KEYS + WRONG_KEYS)
def test_read(key):
    function = on(f"return x[{key}]", "x")
    for layout in LAYOUTS:
        shape = (0, 7) if layout == "empty" else (6, 7)
        if layout != "zero_d":
            check(function, array("d", layout, shape), *GIVEN.values())
    check(on(f"y = x * 2\nreturn y[{key}] + 1", "x"), array("d"), *GIVEN.values())


@pytest.mark.parametrize("dtype", DTYPES)
def test_read_of_every_dtype(dtype):
    text = ", ".join(f"x[{key}]" for key in KEYS if fits(key))
    check(on(f"return {text}", "x"), array(dtype), *GIVEN.values())


VALUES = {
    "v": "a number for each",
    "v.T.copy().T": "of another order",
    "v[::-1]": "backwards",
    "2.75": "one for all",
    "v.reshape(-1)[:1]": "one in an array",
    "v[None]": "an axis more",
    "np.float32(1.5)": "a scalar",
    "v.astype('f')": "of another dtype",
}


def shape_at(key):
    return np.zeros((6, 7))[eval(key, dict(GIVEN))].shape


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("key", [key for key in KEYS if fits(key)])
def test_write(key, value):
    shape = shape_at(key)
    values = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    if value == "v[::-1]" and not shape:
        return
    function = on(f"x[{key}] = {value}\nreturn x + 1", "x", "v")
    for layout in ("contiguous", "transposed", "strided", "reversed"):
        check(function, array("d", layout), values, *GIVEN.values(), _text=False)
    check(on(f"y = x * 2\ny[{key}] = {value}\nreturn y", "x", "v"), array("d"), values,
          *GIVEN.values(), _text=False)  # fmt: skip


@pytest.mark.parametrize("key", WRONG_KEYS)
def test_write_at_wrong_positions(key):
    function = on(f"x[{key}] = 5\nreturn x", "x")
    check(function, array("d"), *GIVEN.values())


def test_write_what_does_not_fit():
    for key in ("i", "i, j", "m", "m0", "slice(None), j"):
        for value in ("np.ones(5)", "np.ones((3, 3, 3))", "x * 1j", "np.ones((2, 1))"):
            check(on(f"x[{key}] = {value}\nreturn x", "x"), array("d"), *GIVEN.values())


@pytest.mark.parametrize("dtype", DTYPES)
def test_write_of_every_dtype(dtype):
    keys = ["i", "i, j", "slice(None), j", "m", "m0", "turned"]
    for key in keys:
        values = array(dtype, shape=shape_at(key), seed=3)
        check(on(f"x[{key}] = v\nreturn x", "x", "v"), array(dtype), values, *GIVEN.values())
    writes = "\n".join(f"x[{key}] = 1\nx[{key}] += 1" for key in keys)
    check(on(f"{writes}\nreturn x", "x"), array(dtype), *GIVEN.values())


AUGMENTED = ["+= 1", "*= 2.5", "-= v", "+= x.sum()", "**= 2"]


@pytest.mark.parametrize("change", AUGMENTED)
@pytest.mark.parametrize("key", [key for key in KEYS if fits(key)])
def test_augmented(key, change):
    values = np.linspace(1, 2, int(np.prod(shape_at(key)))).reshape(shape_at(key))
    function = on(f"x[{key}] {change}\nreturn x * 2", "x", "v")
    x = np.linspace(-3, 3, 42).reshape(6, 7)
    check(function, x, values, *GIVEN.values())
    check(on(f"y = x * 2\ny[{key}] {change}\nreturn y, x", "x", "v"), x, values, *GIVEN.values())


FUNCTIONS = """
x.take(i); x.take(grid); x.take(i, 0); x.take(grid, 1); x.take(j, axis=-1); x.take(3); x.take(3, 1); x.take(-43)
x.take(i + 6, 0); x.take(i + 6, 0, mode='wrap'); x.take(i * 9, 1, mode='clip'); x.take(i - 99, mode='wrap')
x.take(i.astype('d')); x.take(unsigned, 0); x.take(wide, 0); x.take(m0, 0); x.take([1, 2]); np.take(x, i, 2)
np.take(x, i, 0, mode='clip'); np.take(x, none); x[:0].take(i); x[:0].take(none); x.take(i, out=np.zeros(9))
x.compress(m0, 0); x.compress(m1, 1); x.compress(m1); x.compress(m, 0); np.compress(m0, x, axis=0)
x.compress(m1, 0); x.compress([True, False, True], 0); x.compress(x[0] > 0, 1); np.extract(m, x)
x.nonzero(); m.nonzero(); np.nonzero(m); np.nonzero(x > 0); np.where(m); np.where(x > 1e9); np.nonzero(x[0, 0])
np.where(m0)[0]; np.flatnonzero(x > 0); np.argwhere(m); np.argwhere(x > 0); np.argwhere(m0); np.argwhere(x[0, 0])
np.take_along_axis(x, np.argsort(x, 0), 0); np.take_along_axis(x, grid[:, :1] % 3, 0); m.nonzero()[1][::-1]
np.take_along_axis(x, x.argmin(1)[:, None], 1); x[x.argmax(0), np.arange(7)]; x[np.arange(6), x.argmin(1)]
np.bincount(i + 6); np.bincount(i); np.bincount(i + 6, minlength=40); np.bincount(i + 6, weights=x[0, :1]);
np.bincount(i + 6, x.reshape(-1)[:9]); np.bincount(i + 6, m.reshape(-1)[:9]); np.bincount(none, minlength=3)
np.bincount(grid); np.bincount(i + 6, minlength=-1); np.bincount(i + 6, x.reshape(-1)[:9] * 1j); x[x > 0].sum()
np.bincount(i + 6.5); np.bincount(m0); x[m].mean(); x[m][::2]; x[i][::-1]; (x[m] * 2)[:3]; x[m].size; len(x[m0])
x[i].sum(axis=1); x[i].T @ x[i]; x[i, j].cumsum(); x[i].shape; x[i].strides; x[:, j].strides; x[:, j].flags
x[i].base is None; x[:, j].base is None; x[np.newaxis, i].strides; x[turned].strides; x[m0].strides
np.choose(m0 * 1, [x[:, 0], x[:, 1]]); x[tuple(np.argwhere(m).T)]; x[m.nonzero()]; x[np.ix_(m0, m1)]
x[np.ix_(i, j)]; np.select([m, ~m], [x, -x]); x[i][j[:3]]; x[i[j - 7]]; x[i[m0.nonzero()[0]]]; np.place(x, m, [1, 2])
np.put_along_axis(x, x.argmax(1)[:, None], 0, 1); np.copyto(x, 0, where=m); np.copyto(x, x * 2, where=m)
np.putmask(x, m, 7); np.count_nonzero(m); np.count_nonzero(x[m0]); np.trim_zeros(x[0] * (x[0] > 0)); np.unique(i)
"""
FUNCTIONS = [text.strip() for line in FUNCTIONS.split("\n") for text in line.split(";")]
FUNCTIONS = [text for text in FUNCTIONS if text]


@pytest.mark.parametrize("text", FUNCTIONS)
def test_function(text):
    function = on(f"result = {text}\nreturn result, x", "x")
    for layout in ("contiguous", "transposed", "strided", "reversed"):
        for _ in range(2):
            check(function, array("d", layout) * 1, *GIVEN.values())
    check(on(f"x = x - 0.25\nreturn {text}", "x"), array("d"), *GIVEN.values())


PUTS = """
x.put(i, 5); x.put(i, [1, 2]); x.put(i, v); x.put(grid, v); x.put(i + 99, 1); x.put(i + 99, v, 'wrap')
x.put(i * 99, v, mode='clip'); np.put(x, i, v); x.put(i, v[:0]); x.put(none, v); x.put(i.astype('d'), 1)
x.put(i, v * 1j); x.put(i, np.float64(2.5)); x.T.put(i, v); x[1:4].put(i, v); x[:, ::2].put(i, v); x.put(x.argmax(), 0)
"""
PUTS = [text.strip() for line in PUTS.split("\n") for text in line.split(";") if text.strip()]


@pytest.mark.parametrize("text", PUTS)
def test_put(text):
    for dtype in "dlfD":
        check(on(f"{text}\nreturn x * 2", "x", "v"), array(dtype, shape=(6, 7)),
              np.arange(1.0, 8), *GIVEN.values())  # fmt: skip


@pytest.mark.parametrize("ufunc", ["add", "subtract", "multiply", "divide", "maximum", "minimum",
                                   "logical_or", "bitwise_xor", "power", "hypot", "less", "negative",
                                   "sqrt", "arctan2", "left_shift", "floor_divide"])  # fmt: skip
def test_at(ufunc):
    function = getattr(np, ufunc)
    given = list(GIVEN.values())
    for dtype in DTYPES:
        for key in ("i", "grid", "i, j", "slice(None), j", "m0", "back, 1", "m"):
            x = array(dtype, shape=(6, 7))
            if function.nin == 1:
                check(on(f"np.{ufunc}.at(x, ({key}))\nreturn x", "x"), abs(x), *given, _text=False)
                continue
            v = array(dtype, shape=shape_at(key), seed=4)
            if ufunc in ("power", "left_shift", "floor_divide"):
                x, v = abs(x) % 3, abs(v) % 3 + v.dtype.type(1)
            check(
                on(f"np.{ufunc}.at(x, ({key}), v)\nreturn x", "x", "v"), x, v, *given, _text=False
            )


AT = """
np.add.at(x, i, 1); np.add.at(x, i, 1.5); np.add.at(x, i, v); np.add.at(x, i, v[:1]); np.add.at(x, (i, j), v[0])
np.add.at(x, i, True); np.add.at(x, i, np.float32(1.1)); np.add.at(x, i + 6, 1); np.add.at(x, 2, 1); np.add.at(x, m, 2)
np.add.at(x, i, np.ones(5)); np.add.at(x, i, 1j); np.add.at(x, slice(1, 3), 1); np.add.at(x[:, 2], i, 3)
np.add.at(x, (slice(None), j), v[0]); np.multiply.at(x, (i, 0), 1 + x[0, 0]); np.add.at(x, i)
"""
AT = [text.strip() for line in AT.split("\n") for text in line.split(";") if text.strip()]


@pytest.mark.parametrize("text", AT)
def test_at_with_mixed_dtypes(text):
    for dtype in "dflihbD?":
        check(on(f"{text}\nreturn x * 2", "x", "v"), array(dtype), array("d", shape=(9, 7), seed=2),
              *GIVEN.values(), _text=False)  # fmt: skip


def test_an_error_is_raised_where_it_stands():
    def function(x, i):
        try:
            y = x[i]
        except IndexError as error:
            return str(error), x * 2
        return y, x * 3

    check(function, np.arange(5.0), np.array([0, 4, -5]))
    check(function, np.arange(5.0), np.array([0, 5, -5]))
    check(function, np.arange(5.0), np.array([0, 4, -6]))


def test_an_error_leaves_what_was_written():
    def function(x, i):
        x[0] = 7
        y = x * 2
        x[i] = y[i] + 1
        x[1] = 8
        return y

    for given in ([1, 2], [1, 9], [2, 2], [-9], [1, 2]):
        check(function, np.arange(5.0), np.array(given))


def test_replay_with_other_positions():
    @ufuse.jit(compile="wait")
    def function(x, i, w):
        y = x[i] * w
        x[i] += 1
        return y.sum(), y

    for seed in range(12):
        rng = np.random.default_rng(seed)
        x, i, w = rng.normal(size=50), rng.integers(-50, 50, 200), rng.normal(size=200)
        if seed == 7:
            i[100] = 50
        plain = lambda x, i, w: function.__wrapped__(x, i, w)  # noqa: E731
        check(plain, x, i, w, _jitted=function)


def test_replay_with_other_masks():
    @ufuse.jit(compile="wait")
    def function(x, m):
        y = x[m]
        x[m] = y * 2
        return y, y.sum(), np.nonzero(m)

    for seed in range(12):
        rng = np.random.default_rng(seed // 2)
        x, m = rng.normal(size=60), np.zeros(60, bool)
        m[rng.permutation(60)[: 20 + seed // 4]] = True
        check(lambda x, m: function.__wrapped__(x, m), x, m, _jitted=function)


def test_elements_of_what_is_overwritten_later():
    def function(x, i, m):
        a = x[i]
        b = x[m]
        x *= 2
        c = x[i]
        x[i] = 0
        return a, b, c, x[m]

    check(function, np.arange(8.0), np.array([1, 1, -2]), np.arange(8) % 3 == 0)


def test_positions_that_are_overwritten_later():
    def function(x, i):
        y = x[i]
        i += 1
        z = x[i]
        i[i > 2] = 0
        return y, z, x[i], i

    check(function, np.arange(8.0), np.array([1, 3, -2]))


OVERLAPS = """
x[x] = 7; x[x] = x[::-1]; x[x[:3]] += x[:3]; x[i] = x[:3]; x[1:][i] = x[:3]; x[m] = x[:3]; x[m] = x[1:4]
x[m] = x[m]; x[m] = x[m][::-1]; x[i] = x[i] * 2; x[m] = x[2:3]; np.add.at(x, x, x); np.add.at(x, i, x[1:4])
x.put(i, x[1:4]); x.put(x, x[::-1]); x[i] = x; x[x > 1] = x[:3]; x[m] = x[::-1][:3]; x[1:][m[1:]] = x[:3]
np.copyto(x, x[::-1], where=m); x[i] = x[0]; x[:] = x[i[0] + np.zeros(5, int)]; x[m] += x[m]
"""


@pytest.mark.parametrize(
    "text", [t.strip() for t in OVERLAPS.replace("\n", ";").split(";") if t.strip()]
)
def test_all_in_one_memory(text):
    """NumPy copies what overlaps, or does not, as it did before some versions."""
    function = function_of(f"def function(x, i, m):\n    {text}\n    return x * 2\n", {"np": np})
    i, m = np.array([3, 1, 2]), np.array([True, False, True, False, True])
    check(function, np.array([3, 0, 2, 1, 4]), i, m)
    check(function, np.array([3, 0, 0, 2, 0, 1, 0, 1, 4, 1])[::2], i, m)


@pytest.mark.parametrize("dtype", "dfl")
def test_warnings_of_what_is_gathered(dtype):
    def function(x, i):
        y = np.sqrt(x)[i] / 0
        x[i] = y
        np.add.at(x, i, x)
        return y

    check_all(function, [(array(dtype, shape=(7,)), np.array([1, 1, 3]))])


@pytest.mark.parametrize("count", [31, 32])
def test_most_arrays(count):
    """NumPy 1 raises where there are 32."""

    def function(x):
        return x[(np.array([0]),) * count]

    check_all(function, [(np.ones((1,) * count),)])


def random_key(rng, shape):
    """A key of an array of this shape, at random: arrays in all layouts among other items."""
    index_shape = tuple(int(n) for n in rng.choice([1, 2, 3, 4], rng.integers(1, 4)))
    items = []
    axes = list(shape)
    while axes:
        kind = rng.random()
        extent = axes.pop(0)
        if kind < 0.5:
            keep = rng.integers(0, len(index_shape))
            own = tuple(1 if rng.random() < 0.2 else n for n in index_shape[keep:])
            items.append(random_positions(rng, own, extent))
        elif kind < 0.6 and extent:
            items.append(int(rng.integers(-extent, extent)))
        elif kind < 0.7 and axes and rng.random() < 0.5:
            items.append(rng.random((extent, axes.pop(0))) < 0.5)
        elif kind < 0.9:
            step = int(rng.choice([1, 1, 2, -1]))
            items.append(slice(None, None, step))
        elif rng.random() < 0.5:
            items.extend([None, slice(0, 1)])
        else:
            break
    if rng.random() < 0.2 and not any(item is ... for item in items):
        items.insert(int(rng.integers(0, len(items) + 1)), ...)
    return tuple(items)


def random_positions(rng, shape, extent):
    order = rng.permutation(len(shape))
    steps = [int(rng.choice([1, 1, 2, -1])) for _ in shape]
    base = rng.integers(-extent, extent, [shape[a] * abs(steps[a]) for a in order])
    turned = base.transpose(np.argsort(order)).astype(rng.choice(["l", "l", "i", "b"]))
    return turned[tuple(slice(None, None, step) for step in steps)]


def random_array(rng, shape):
    order = rng.permutation(len(shape))
    made = np.empty([shape[a] for a in order]).transpose(np.argsort(order))
    made[...] = rng.normal(size=shape)
    return made[tuple(slice(None, None, int(rng.choice([1, 1, -1]))) for _ in shape)]


@pytest.mark.parametrize("seed", range(8))
def test_random_keys(seed, backend):
    """Layouts of what is read; which of equal positions is written last."""
    if backend == "compiled":
        pytest.skip("a loop for each key")

    @ufuse.jit
    def read(x, *key):
        return x[key], (x * 2)[key].strides

    @ufuse.jit
    def write(x, v, *key):
        x[key] = v
        return x * 1

    rng = np.random.default_rng(seed)
    done = 0
    while done < 60:
        shape = tuple(int(n) for n in rng.choice([1, 2, 3, 4], rng.integers(1, 5)))
        x, key = random_array(rng, shape), random_key(rng, shape)
        try:
            result = x[key]
        except IndexError:
            continue
        if not any(isinstance(item, np.ndarray) for item in key):
            continue
        done += 1
        for ours, theirs in ((read(x, *key)[0], result), (read(x * 2, *key)[0], (x * 2)[key])):
            assert ours.strides == theirs.strides, (x.strides, key)
            assert (ours.base is None) == (theirs.base is None), (x.strides, key)
        for v in (random_array(rng, result.shape), rng.normal(size=result.shape[-1:]), 7.5):
            check(lambda x, v, *key: write.__wrapped__(x, v, *key), x, v, *key, _jitted=write)


@pytest.mark.parametrize("dtype", "dflD")
@pytest.mark.parametrize("ufunc", [np.maximum, np.minimum, np.fmax, np.fmin, np.add])
def test_comparisons_with_nan_at_positions(ufunc, dtype):
    """Some of NumPy's loops for single positions warn."""

    def function(x, value):
        ufunc.at(x, [0, 1, 0], value)
        return x

    for value in (3, 0.5, np.nan) if dtype != "l" else (3, 0):
        check(function, np.linspace(-1, 3, 6).astype(dtype), np.dtype(dtype).type(value))
