"""Are views, copies, basic and advanced indexing, and shape functions NumPy's, aliasing included?"""

import numpy as np
import pytest
import ufuse
from arrays import LAYOUTS, array
from same import check
from texts import function_of

READS = [
    "\nx[0]",
    "x[-1]",
    "x[1, 2]",
    "x[...]",
    "x[()]",
    "x[..., 0]",
    "x[0, ...]",
    "x[None]",
    "x[:, None, ::2]",
    "x[1:4]",
    "x[::-1]\nx[::-2, 1:5:2]",
    "x[5:2]",
    "x[5:2:-1]",
    "x[100:]",
    "x[-100:3]",
    "x[[0, 2]]",
    "x[[0, 2], 1]",
    "x[:, [1, 1]]\nx[x > 0]",
    "x[x[:, 0] > 0]",
    "x[np.array([2, 0])]",
    "x[np.array([[0, 1], [1, 0]]), 0]",
    "x[True]",
    "x[np.True_]",
    "x[0, 0][np.True_]",
    "x[False]\nx[np.int64(1)]",
    "x[np.arange(3), np.arange(3)]",
    "x[1][2]",
    "x[1:][1:]",
    "x.T[1:]",
    "x.T[0]",
    "x[0][::2][::-1]\nx.T",
    "x.real",
    "x.imag",
    "x.flat[3]",
    "x.ravel()",
    "x.ravel('F')",
    "x.flatten()",
    "x.reshape(-1)",
    "x.reshape(7, 6)\nx.reshape(2, 3, 7)",
    "x.reshape(3, -1)",
    "x.T.reshape(-1)",
    "x.reshape(7, 6, order='F')",
    "x[:, :1].squeeze()\nx[None].squeeze(0)",
    "x.swapaxes(0, 1)",
    "x.transpose(1, 0)",
    "x.transpose()",
    "x.copy()",
    "x.copy('F')\nx.T.copy('K')",
    "x.T.copy()",
    "x.astype('f4')",
    "x.astype('i8')",
    "x.astype(x.dtype)",
    "x.astype(x.dtype, copy=False)\nx.astype('D')",
    "x.astype(bool)",
    "x.view()",
    "x.diagonal()",
    "x.take([1, 0])",
    "x.repeat(2, 0)\nnp.expand_dims(x, 0)",
    "np.expand_dims(x, (0, 2))",
    "np.moveaxis(x, 0, 1)",
    "np.rollaxis(x, 1)\nnp.broadcast_to(x, (2, 6, 7))",
    "np.broadcast_to(x[:, :1], (6, 7)) + x",
    "np.atleast_3d(x)\nnp.flip(x)",
    "np.roll(x, 2)",
    "np.rot90(x)",
    "np.concatenate([x, x * 2])",
    "np.stack([x, x + 1], 1)",
    "np.split(x, 2)\nlen(x)",
    "x.shape",
    "x.strides",
    "x.size",
    "x.ndim",
    "x.dtype",
    "x.itemsize",
    "x.nbytes",
    "x.flags.writeable",
    "x.tolist()\nx[0].tolist()",
    "x.item(3)",
    "x[1, 1].item()",
    "list(x[0])",
    "[r.sum() for r in x]",
    "x[2:4][0, 1]\n",
]
READS = [text.strip() for line in READS for text in line.split("\n") if text.strip()]


@pytest.mark.parametrize("text", READS)
def test_read(text):
    function = eval(f"lambda x: {text}", {"np": np})
    check(function, array("d"))
    check(function, array("l", "transposed"))


@pytest.mark.parametrize("text", READS[:40])
def test_read_of_a_temporary(text):
    function = eval(f"lambda y: (lambda x: {text})(y * 2 + 1)", {"np": np})
    check(function, array("d"))


WRITES = """
x[0] = 5; x[1:4] = y[1:4]; x[::2] *= 3; x[:, 0] += y[:, 1]; x[...] = 0; x[()] = y; x[x > 0] = -1
x[x > 0] += 1; x[[0, 2]] = 7; x[0, 0] = 3.9; x[1:] = x[:-1]; x[:-1] = x[1:]; x[::-1] = x; x += x[::-1]
x += 1; x -= y; x *= 2; x /= 3; x //= 2; x %= 3; x **= 2; x += x; x = x + 1; x[0] = x[1] + x[2]
x[None] = 4; x.T[0] = 1; x.ravel()[3] = 9; x.reshape(7, 6)[2] = 5; x.fill(2); x.sort(); x.sort(axis=0)
x.flat[2] = 8; x.T[1:3, 2] = y[2, 1:3]; x[:, ::-2] = 1; np.copyto(x, y); np.add(x, y, out=x)
np.multiply(x, 2, out=x[:, :]); np.sqrt(np.abs(x), out=x); np.add(x[1:], 1, out=x[:-1]); x[y > 0] = y[y > 0]
x[1] = x[0] = 3; x[0], x[1] = x[1], x[0]; x[0, :] = [1, 2, 3, 4, 5, 6, 7]; x[...] = y.T.reshape(6, 7)
x[2:4] = 1 if x.sum() > 0 else 2; x[...] = np.arange(7); x[0] = np.nan; x[0] = True; x[1:3][0] = 4
x.put([0, 1], [9, 9]); np.place(x, x > 0, [1, 2]); np.putmask(x, x < 0, y); x[5] = 2 ** 40
np.fill_diagonal(x, 1); x.partition(2); x.real[0] = 5; x.real += 1; x[100] = 1; x[0] = np.ones(3)
v = x[2]; v += 10; v[0] = -1; w = x.T; w[0, 0] = 5; x[1] = v; w *= 2; v = v * 2; v[1] = 3
a = x * 2; b = a[1]; b += 5; a[0] = b; x[3] = a[0]; c = x[1:3]; x[1] = 0; d = c.sum(); x[4] = d
""".replace("\n", " ; ").split(";")
PAIRS = [text.strip() for text in WRITES if text.strip()]
LONG = [
    "v = x[2]; v += 10; v[0] = -1; w = x.T; w[0, 0] = 5; x[1] = v; w *= 2; v = v * 2; v[1] = 3",
    "a = x * 2; b = a[1]; b += 5; a[0] = b; x[3] = a[0]; c = x[1:3]; x[1] = 0; d = c.sum(); x[4] = d",
    "a = x[1:]; x[0] = 7; b = a * 2; x[1] = 8; c = a * 2; x[2:4] = (b - c)[:2]",
    "a = x + y; x += 1; b = x + y; y[0] = 0; c = a + b + y; x[...] = c",
    "z = np.zeros_like(x); z[1:-1] = x[1:-1] * 2; z[0] = z[-1]; x[...] = z",
    "z = np.empty(x.shape); z[:3] = 1; z[3:] = x[3:]; z /= 2; x[...] = z",
]
SINGLE = [text for text in PAIRS if text.split(" ")[0][0] in "xn"]


def _writer(text):
    return function_of(f"def function(x, y):\n    {text}\n    return x\n", {"np": np})


@pytest.mark.parametrize("dtype", ["d", "l", "f", "D", "B"])
@pytest.mark.parametrize("text", SINGLE + LONG)
def test_write(text, dtype):
    check(_writer(text), array(dtype), array(dtype, seed=1))


@pytest.mark.parametrize("layout", LAYOUTS[1:5])
@pytest.mark.parametrize("text", SINGLE[:12] + LONG)
def test_write_layouts(text, layout):
    x = array("d", layout).copy() if layout == "broadcast" else array("d", layout)
    check(_writer(text), x, array("d", seed=1))


def written_below(z):
    parts = [z.real, z.imag, (z * 2).real]
    z[...] = z * 1j + 1
    return [part + 0 for part in parts], parts


def written_parts(z):
    t = z * 3
    r, i = t.real, t.imag
    r *= 2
    i[...] = r + i
    z.real[...] = z.imag * 2
    z.imag[1:, ::2] = 5
    z.real += z.imag
    np.maximum(z.real, 0.5, out=z.imag)
    t.real[t.imag > 0] = 0
    return t, r, i, t.real.base is i.base, z.real.base is z


def parts_of_parts(z):
    rows = (z + 1).real[::-1, 1:]
    return (
        rows,
        rows.T * 2,
        z.imag.reshape(-1)[3:],
        z.real.real,
        np.real(z.T).imag + 1,
        rows.base is None,
    )


PARTS = [
    lambda z: z.real + z.imag,
    lambda z: (z * z.conj()).real,
    lambda z: ((z * 2).imag, z.real, (z + 1).real.copy()),
    lambda z: np.exp(z.real) * np.cos((z * 2).imag),
    lambda z: ((z + 1).real.sum(axis=0), z.imag.mean(), (z * z).real.max(axis=1)),
    lambda z: (z.real.argmin(axis=1), np.cumsum((z + 1).imag, axis=0), z.real.std()),
    lambda z: (z.real**2 + z.imag**2, np.hypot(z.real, z.imag), np.arctan2(z.imag, z.real)),
    lambda z: (z.real[z.real > 0], np.where(z.imag < 0, z.real, 1), np.sort((z * 1).real)),
    lambda z: (z[0, 1].real, (z * 2)[0, 1].imag, z.sum().real, z.real[1, 1], z[0].real / 0),
    written_below,
    written_parts,
    parts_of_parts,
]


@pytest.mark.parametrize("layout", LAYOUTS[:4] + LAYOUTS[7:])
@pytest.mark.parametrize("dtype", ["F", "D"])
@pytest.mark.parametrize("f", PARTS)
def test_parts_of_complex_numbers(f, dtype, layout):
    for seed in range(3):
        with np.errstate(all="ignore"):
            check(f, array(dtype, layout, seed=seed))


def test_parts_do_not_interrupt_loops():
    @ufuse.jit(compile="wait")
    def power(z, w):
        return (z * w.conj()).real.sum(axis=0) + np.abs(z.imag).max()

    z = np.linspace(0, 1, 600).reshape(20, 30) * (1 + 2j)
    for _ in range(3):
        assert power(z, z).tobytes() == power.__wrapped__(z, z).tobytes()
    assert list(power.explain(z, z).notes) == []


def test_read_only():
    x = array("d", "broadcast")
    check(_writer("x[0] = 1"), x, x)
    check(_writer("x += 1"), x, x)


def test_arguments_that_overlap():
    x = np.arange(20.0)

    def shift(a, b):
        a[...] = b + 1
        b *= 2
        return a + b

    check(shift, x[:-1], x[1:])
    check(shift, x[1:], x[:-1])
    check(shift, x, x)
    check(shift, x[::2], x[1::2])


def test_returned_views():
    def views(x):
        y = x * 2
        return x, x[1:], x.T, y, y[0], y.T, x[0, 0], x.reshape(-1), y.reshape(-1), x[...], y[()]

    check(views, array("d"))
    check(views, array("d", "transposed"))


def test_writes_after_capture():
    def f(x):
        a = x[:2] + 1
        x[:2] = 100
        b = x[:2] + 1
        return a, b, x

    check(f, array("d"))


@pytest.mark.parametrize(
    "function",
    [
        lambda n: np.zeros(n),
        lambda n: np.ones((n, 2), int),
        lambda n: np.full((2, n), 7),
        lambda n: np.full(n, 1.5, "f4"),
        lambda n: np.arange(n),
        lambda n: np.arange(1.0, n, 0.5),
        lambda n: np.linspace(0, 1, n),
        lambda n: np.eye(n),
        lambda n: np.identity(n),
        lambda n: np.zeros_like(np.arange(n)) + 1,
        lambda n: np.array([1, 2.5, n]),
        lambda n: np.array([[n] * 3] * 2, "f4"),
        lambda n: np.zeros((n, n), order="F"),
        lambda n: np.indices((n, 2)).sum(0),
        lambda n: np.fromfunction(lambda i, j: i * j, (n, 3)),
        lambda n: np.tri(n),
        lambda n: np.meshgrid(np.arange(n), np.arange(2.0)),
        lambda n: np.full((2, 2), np.nan),
        lambda n: np.ones(n, bool),
        lambda n: np.zeros(n, [("a", "f8")]),
        lambda n: np.zeros((n,), "U3"),
        lambda n: np.logspace(0, 2, n),
        lambda n: np.empty((n, 0)),
        lambda n: np.asarray(n),
        lambda n: np.asarray([n, n + 1.0]) * 2,
        lambda n: np.zeros(()) + n,
        lambda n: np.ones(3)[:, None] * np.arange(n),
    ],
)
def test_creation(function):
    check(function, 5)


LINES = """
0, 1, x.size
0.1, 0.7
-1, 5.5, num=x.size
5, -2, 9, endpoint=False
2.5, 3, endpoint=False, num=x.size + 1
start=1, stop=2
1e300, -1e300, 7
1e-320, 3e-320, 50
1, 1, 5
0, 5e-324, 5
3, 4, 1
3, 4, 0
3, 4, 2
3, 4, 1, endpoint=False
3, 4, True
0, np.inf, 4
np.nan, 0, 4
1.7e308, -1.7e308, 4
2**60, 2**60 + 9, 5
0, 1, -1
0, 1, 2.0
0, 1, 5, True, True
0, 1, 5, True, dtype=int
0, 3, 7, dtype="f4"
0, 1j, 5
True, 5, 5
np.float32(0.1), 1, 5
np.int8(3), np.float64(7), 5
x.min(), x.max(), 11
x.min(), 3
x[:3], x[3:6], 4
x[:3], 1, 4, axis=-1
0, 1, 5, endpoint=0
0, 1, 5, step=3
0, 1, 5, start=3
0
"""


@pytest.mark.parametrize("arguments", LINES.strip().splitlines())
def test_linspace(arguments):
    """Its result is a view, and the caller's to write to."""
    text = f"""
def function(x):
    line = np.linspace({arguments})
    first = line[0] if isinstance(line, tuple) else line
    total = first.sum()
    first[:1] = 7
    return line, total, first * 2, first.base is None, first.flags.owndata"""
    with np.errstate(all="ignore"):
        check(function_of(text, {"np": np}), np.linspace(-2.0, 3.0, 12))


RANGES = """
6.5
0, 6, 0.1
0.1, x.size
1, 0, -0.125
0.3, 5.1, 0.7
-7, 9.9, 1
5, dtype=float
3, 40, 7, dtype=float
0.0, 5, 1, dtype=None
0.0, 5, 1, dtype=int
0.0, 5, 1, "f4"
0, 5, 0.0
5.0, 0
0.0, 0.5
0, 1e-310, 1e-311
1e16, 1e16 + 50, 7.5
0.0, np.inf
0.0, np.nan, 1
2**60, 2**60 + 5.0
True, 5.0
0.0, 1e300
np.float32(0.5), 9
x.min(), x.max(), 0.25
"""


@pytest.mark.parametrize("arguments", RANGES.strip().splitlines())
def test_ranges_of_floats(arguments):
    function = function_of(f"def function(x):\n    return np.arange({arguments}) * 2", {"np": np})
    check(function, np.linspace(-2.0, 3.0, 12))


def test_random_ranges_of_floats():
    rng = np.random.default_rng(8)
    for _ in range(400):
        start, step = np.round(rng.normal(size=2) * 10 ** rng.integers(0, 4), rng.integers(0, 9))
        step = step or 0.25
        stop = start + step * rng.integers(2, 60) + rng.choice([0.0, step / 3])
        text = f"def function():\n    return np.arange({start!r}, {stop!r}, {step!r})"
        ours = ufuse.jit(function_of(text.replace("np.float64", ""), {"np": np}))()
        assert ours.tobytes() == np.arange(start, stop, step).tobytes(), text


JOINED = """
np.concatenate([x, y])
np.concatenate((x * 2, y, x + y), axis=-1)
np.concatenate([x, y], axis=None)
np.concatenate([x, y], dtype="f4")
np.concatenate([x, y], 1, None)
np.concatenate([x.T, y.T])
np.concatenate([x, y], 5)
np.concatenate([x, [1, 2]])
np.concatenate([x] * 9)
np.concatenate([])
np.concatenate(x)
np.concatenate([x, y], out=np.zeros((len(x) + len(y), *x.shape[1:])))
np.stack([x, y * 2])
np.stack([x, y], axis=-1).sum(axis=-1)
np.vstack([x, y])
np.hstack([x, y + 1])
np.dstack([x, y])
np.column_stack([x, y])
np.append(x, y)
np.append(x, y, axis=0)
np.block([[x, y], [y, x]])
np.r_[x, y]
np.c_[x, y]
"""


def laid_out(rng, like=None):
    """An array of one of many layouts, most often one that can stand beside another one."""
    shape = rng.integers(1, 5, rng.integers(1, 4)) if like is None else like.shape
    x = (rng.random([2 * n for n in shape]) * 50).astype(rng.choice(["d", "d", "l", "D"]))
    part = x[tuple(slice(n) for n in shape)]
    ways = [part, part.copy(), np.asfortranarray(part), part[::-1], part[:0], part[:1]]
    return [*ways, x[tuple(slice(None, None, 2) for _ in shape)]][rng.integers(0, 7)]


@pytest.mark.parametrize("text", JOINED.strip().splitlines())
def test_joined(text):
    function = function_of(f"def function(x, y):\n    return {text}", {"np": np})
    rng = np.random.default_rng(len(text))
    for _ in range(25):
        x = laid_out(rng)
        check(function, x, laid_out(rng, x))


def test_parts_are_computed_where_they_stand():
    @ufuse.jit(compile="wait")
    def joined(x, y):
        return np.concatenate([x * 2, np.sqrt(y), x[:1] + y[1:2]])

    x, y = np.linspace(0, 1, 9000).reshape(2, 90, 50)
    for _ in range(3):
        assert joined(x, y).tobytes() == joined.__wrapped__(x, y).tobytes()
    assert len(joined.explain(x, y).groups) == 3


@pytest.mark.parametrize("truth", [True, False, np.True_, np.False_])
def test_indices_that_are_no_integers(truth):
    x = np.arange(6.0).reshape(2, 3)
    check(lambda x: (x[truth], x[truth, 0], x[None, truth]), x)

    def assign(x):
        x[truth] = 7
        return x

    check(assign, x)


INTO_ONE_ELEMENT = """
x[-1] = np.array([2.0]) * x[:1]
x[-1] = x[:1].copy()
x[0] = x[:1] * 2
x[0] = np.dot(x.sum() * np.array(1.0), x[:1])
x[0] = np.dot(np.squeeze(x[:1]), np.interp(x[:1], [0, 1.0], [0, 3.0]))
x[0] = [2.0]
x[0] = (2.0,)
x[0] = np.array([[2.0]])
x[0] = np.array(2.0) * 3
x[np.int64(0)] = x[:1]
x[np.array(0)] = x[:1]
x[np.array([0])] = x[:1] + 1
x[0:1] = x[:1] * 2
x[0, ...] = x[:1] + 1
x.flat[0] = x[:1]
x.fill(x[:1] * 2)
x[-1] += x[:1]
m = np.outer(x, x); m[0, 0] = x[:1]; x[0] = m.sum()
m = np.outer(x, x); m[0, 0] += x[:1]; x[0] = m.sum()
y = np.array(x.sum()); y[()] = x[:1]; x[0] = y
y = np.array(x.sum()); y[...] = x[:1]; x[0] = y
for i in range(len(x)): x[i] = x[:1]
for i in range(len(x)): x[i] += x[:1]
"""


@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("text", INTO_ONE_ELEMENT.strip().splitlines())
def test_sequences_for_one_element(text, length):
    """NumPy refuses them or warns, depending on its version, even where they have one element."""
    jitted = ufuse.jit(written := _writer(text))
    for _ in range(5):
        check(written, np.arange(1.0, length + 1), np.ones(1), _jitted=jitted)


def test_what_is_assigned_to_nothing_is_not_converted():
    x = np.array([1e300, 2.0**40])

    def assign(x, out, small):
        out[:0] = x[:1]
        small[2:1] = x[0]
        out[0:0] += x[:1]
        return out, small

    check(assign, x, np.zeros(2, "f4"), np.zeros(2, "i1"))
    check(lambda x, out: out.__setitem__(slice(0, 0), x), x, np.zeros(2, "f4"))
    check(lambda x, out: out.__setitem__(slice(0, 0), x[:0]), x, np.zeros(2, "f4"))
