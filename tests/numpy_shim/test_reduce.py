"""Reductions: dtype, layout and type of the result, and the order of combination to the bit.

The order is checked without any compiled code: `evaluate` below follows the meaning of a Reduce
node element by element.
"""

import itertools
import warnings

import numpy as np
import pytest
from shim_client import NATIVE, ask, described, dims, random_layout, random_layouts, word

REDUCTIONS = ["add", "multiply", "minimum", "maximum", "logical_or", "logical_and", "logical_xor"]
REDUCTIONS += ["bitwise_and", "bitwise_or", "bitwise_xor", "fmax", "fmin"]


def question(name, x, axis=None, keepdims=False, dtype=None, initial=None, where=None):
    axes = dims((axis,) if isinstance(axis, int) else axis)
    extra = [word(e) if e is not None else "None" for e in (initial, where)]
    return f"reduce {name} {int(keepdims)} {axes} {dtype} {' '.join(extra)} {word(x)}"


def numpy_answer(name, x, axis, **options):
    options = {k: v for k, v in options.items() if v is not None}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return getattr(np, name).reduce(x, axis=axis, **options)
        except (TypeError, ValueError):
            return None


def subsets(ndim):
    yield None
    for k in range(ndim + 1):
        yield from itertools.combinations(range(ndim), k)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_dtype_of_the_accumulator(name):
    cases = [(code, dtype) for code in NATIVE for dtype in [None, *NATIVE]]
    arrays = [np.ones((2, 3), code) for code, _ in cases]
    answers = ask([question(name, x, 0, dtype=d) for x, (_, d) in zip(arrays, cases, strict=True)])
    missed = set()
    for x, (code, dtype), answer in zip(arrays, cases, answers, strict=True):
        want = numpy_answer(name, x, 0, dtype=dtype)
        if answer.startswith("unsupported"):
            if want is not None and "unsafe_cast" not in answer:
                missed.add(("logical" in answer, code if dtype is None else dtype))
        else:
            assert want is not None, (name, code, dtype)
            assert answer.split()[0] == described(want), (name, code, dtype)
    # NumPy only: complex products and extrema, those of longdouble, extrema that skip NaN, dtype=
    # in logical ones.
    inexact = "efdgFDG" if name in ("fmax", "fmin") else "FDG"
    if name in ("maximum", "minimum"):
        inexact += "g"
    assert all(logical or dtype in inexact for logical, dtype in missed), missed


@pytest.mark.parametrize("dtype", ["d", "i"])
@pytest.mark.parametrize("name", REDUCTIONS[:6])
def test_layout_of_the_result(name, dtype):
    rng = np.random.default_rng(7)
    cases = []
    for x in random_layouts(rng, 1000, dtype):
        mask = random_layout(rng, x.shape, "?") if rng.random() < 0.3 else None
        for axis in subsets(x.ndim):
            initial = 2 if rng.random() < 0.2 or mask is not None else None
            cases.append((x, axis, bool(rng.random() < 0.4), initial, mask))
    answers = ask([question(name, x, a, k, initial=i, where=mask) for x, a, k, i, mask in cases])
    for (x, axis, keepdims, initial, mask), answer in zip(cases, answers, strict=True):
        want = numpy_answer(name, x, axis, keepdims=keepdims, initial=initial, where=mask)
        context = (name, word(x), axis, keepdims, initial, mask is not None and word(mask), answer)
        if answer.startswith("unsupported"):
            allowed = "pairwise" in answer or ("nothing to reduce" in answer and x.size == 0)
            assert want is None or allowed, context
        else:
            assert want is not None, context
            assert answer.split()[0] == described(want), (context, described(want))


def pairwise(v):
    """A 1-d run as NumPy's inner loop adds it; complex numbers count twice in its block sizes."""
    n = len(v) * (2 if v.dtype.kind == "c" else 1)
    if n < 8:
        r = v.dtype.type(complex(-0.0, -0.0) if v.dtype.kind == "c" else -0.0)
        for e in v:
            r = r + e
        return r
    lanes = 4 if v.dtype.kind == "c" else 8
    if n <= 128:
        r = v[:lanes].copy()
        whole = len(v) - len(v) % lanes
        for i in range(lanes, whole, lanes):
            r += v[i : i + lanes]
        while len(r) > 1:
            r = r[::2] + r[1::2]
        s = r[0]
        for e in v[whole:]:
            s = s + e
        return s
    half = n // 2
    half -= half % 8
    half //= n // len(v)
    return pairwise(v[:half]) + pairwise(v[half:])


def evaluate(answer, x, name, initial=None):
    """What the Reduce node means: `answer` names its order; the kept axes come first, C order."""
    dtype, (_, order, axes, run_axes, chunk) = answer.split()[0][0], answer.split()[1:]
    axes = [int(a) for a in axes.split(",")] if axes != "-" else []
    x = x.astype(dtype)
    axes = [a for a in axes if a < x.ndim]
    kept = [a for a in range(x.ndim) if a not in axes]
    shape = [x.shape[a] for a in kept]
    rows = x.transpose(kept + axes).reshape(int(np.prod(shape)), -1)
    combine = getattr(np, name)
    start = {"add": 0, "multiply": 1}.get(name) if initial is None else initial
    if order == "pairwise":
        run = int(np.prod([x.shape[a] for a in axes[len(axes) - int(run_axes) :]]))
        step = min(int(chunk) or run, run)
        out = np.full(len(rows), start, dtype)
        for row in range(len(rows)):
            for begin in range(0, rows.shape[1], run):
                for at in range(begin, begin + run, step):
                    out[row] += pairwise(rows[row, at : min(at + step, begin + run)])
    else:
        out = rows[:, 0].copy() if start is None else np.full(len(rows), start, dtype)
        for column in rows.T[int(start is None) :]:
            out = combine(out, column)
    return out.reshape(shape)


def noise(rng, shape, dtype):
    x = rng.normal(size=shape) * np.exp(rng.normal(size=shape) * 3)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    if np.dtype(dtype).kind in "iu":
        x = x * 1000
    return x.astype(dtype)


def layouts_to_sum(rng, dtype):
    """Long and short runs, gaps, transposes, broadcasts, and what does not fit one buffer."""
    a, b = noise(rng, (300, 257), dtype), noise(rng, (40, 33, 29), dtype)
    c, d = noise(rng, (30000,), dtype), noise(rng, (2000, 2), dtype)
    e, f, g = (noise(rng, s, dtype) for s in [(6, 5, 4, 7), (3, 20000), (20, 9000)])
    h = noise(rng, (2, 3, 40, 130), dtype)
    yield from (c, c[::3], c[::-1], c[:8192], c[:8193], c[:127], c[:7], c[:1])
    yield from (a, np.asfortranarray(a), a[:, :200], a[:, ::2], a.T[:100], a[::-1, ::-1], a[:, 3:4])
    yield from (a[5:6], b, b.transpose(1, 2, 0), b[:, :20, ::2], b[:, :, :20], d, d.T.copy(), e)
    yield from (
        b.transpose(2, 0, 1)[:20],
        f,
        f[:, :15000],
        g,
        g[:, :8500:2],
        f.reshape(3, 20, 1000),
    )
    yield np.broadcast_to(a[:1], (300, 257))
    yield np.broadcast_to(a[:, :1], (300, 257))
    yield from (
        h,
        h[:, :, :, :128],
        h[:, :, ::2],
        h.transpose(3, 1, 0, 2),
        h[:, ::-1],
        h[:, :, 1:2],
    )


SUMS = [("add", d, None) for d in "fdFD"] + [
    ("add", "f", "d"),
    ("add", "i", "d"),
    ("add", "B", "f"),
]
SUMS += [("add", "?", "d"), ("add", "d", "f"), ("add", "f", "D"), ("multiply", "d", None)]


@pytest.mark.parametrize(("name", "dtype", "accumulator"), SUMS)
def test_order_of_sums_and_products(name, dtype, accumulator):
    rng = np.random.default_rng(11)
    cases = [(x, axis) for x in layouts_to_sum(rng, dtype) for axis in subsets(x.ndim)]
    if name == "multiply":
        cases = [(x / abs(x) * 1.1, axis) for x, axis in cases if x.size < 5000]
    check_bits(name, cases, accumulator)


@pytest.mark.parametrize("dtype", "fd")
def test_order_in_random_layouts(dtype):
    rng = np.random.default_rng(13)
    cases = []
    for _ in range(300):
        shape = tuple(int(n) for n in rng.choice([1, 2, 3, 7, 9, 16, 40, 130], rng.integers(1, 5)))
        if np.prod(shape) < 50000:
            x = random_layout(rng, shape, dtype, broadcast=False)
            x[...] = noise(rng, shape, dtype)
            cases += [(x, axis) for axis in subsets(x.ndim)]
    check_bits("add", cases, None)
    check_bits("add", cases, "d" if dtype == "f" else "f")


@pytest.mark.parametrize("name", ["minimum", "maximum"])
@pytest.mark.parametrize("dtype", "fd")
def test_signs_of_zeros_in_extrema(name, dtype):
    rng = np.random.default_rng(17)
    cases = []
    for x in random_layouts(rng, 200, dtype, sizes=(1, 2, 9, 40), empty=0):
        if x.flags.writeable and 0 not in x.strides:
            x[...] = np.where(rng.random(x.shape) < 0.5, 0.0, -0.0)
            cases += [(x, axis) for axis in subsets(x.ndim)]
    check_bits(name, cases, None)


def test_initial_value_starts_the_sum():
    rng = np.random.default_rng(19)
    x = noise(rng, (30, 40), "d")
    check_bits("add", [(x, a) for a in (None, 0, 1, ())], None, initial=0.1)
    check_bits("add", [(np.array([-0.0]), 0)], None, initial=-0.0)
    check_bits("maximum", [(x, a) for a in (0, ())], None, initial=0.1)


def check_bits(name, cases, accumulator, initial=None):
    answers = ask(
        [question(name, x, axis, dtype=accumulator, initial=initial) for x, axis in cases]
    )
    compared = 0
    for (x, axis), answer in zip(cases, answers, strict=True):
        if answer.startswith("unsupported"):
            assert "unsafe_cast" in answer, answer
            continue
        if answer.split()[2] == "extremum":
            continue  # the order is NumPy's vector order, which the run-time check replaces
        options = {} if initial is None else {"initial": initial}
        want = getattr(np, name).reduce(x, axis=axis, dtype=accumulator, **options)
        got = evaluate(answer, x, name, initial)
        bits = np.asarray(want).tobytes(), got.astype(want.dtype).tobytes()
        assert bits[0] == bits[1], (name, word(x), axis, accumulator, answer)
        compared += 1
    assert compared > len(cases) // 2 or name in ("minimum", "maximum")


def test_arg_reductions():
    rng = np.random.default_rng(23)
    cases = []
    for x in random_layouts(rng, 2000):
        for axis in [None, *range(-x.ndim, x.ndim)]:
            cases.append((x, axis, bool(rng.random() < 0.5)))
    answers = ask([f"arg_reduce 0 {a} {int(k)} {word(x)}" for x, a, k in cases])
    for (x, axis, keepdims), answer in zip(cases, answers, strict=True):
        try:
            want = described(np.argmin(x, axis=axis, keepdims=keepdims))
        except ValueError:
            want = "unsupported reduction: nothing to reduce"
        assert answer == want, (word(x), axis, keepdims)
