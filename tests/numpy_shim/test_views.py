"""Views: shape, strides and offset as NumPy's; the same elements when the steps are replayed."""

import numpy as np
from shim_client import ask, dims, random_layouts, word


def replay(x, steps):
    """The steps of a view applied to an array, as the nodes of those names mean them."""
    for step in steps:
        op, shape, ints = step.split(":")
        shape, ints = (
            [int(v) for v in part.split(",")] if part != "-" else [] for part in (shape, ints)
        )
        if op == "transpose":
            x = x.transpose(ints)
        elif op == "reshape":
            x = x.reshape(shape)
        elif op == "slice":
            starts, strides = ints[: len(shape)], ints[len(shape) :]
            for axis, (start, stride, n) in enumerate(zip(starts, strides, shape, strict=True)):
                x = np.take(x, [start + stride * k for k in range(n)], axis)
        else:
            assert op == "broadcast"
            x = np.broadcast_to(x.reshape([x.shape[a] if a >= 0 else 1 for a in ints]), shape)
    return x


def check(cases):
    """Cases are (question's words, array, function that makes NumPy's view or raises)."""
    answers = ask([f"view {name} {word(x)} {args}".strip() for name, x, args, _ in cases])
    seen = {"view": 0, "copy": 0, "unsupported": 0}
    for (name, x, args, make), answer in zip(cases, answers, strict=True):
        context = (name, word(x), args, answer)
        kind = answer.split()[0] if answer.startswith(("copy", "unsupported")) else "view"
        seen[kind] += 1
        try:
            view = make(x)
        except (IndexError, ValueError):
            assert kind == "unsupported", context
            continue
        if kind == "copy":
            assert view.flags.owndata or (view.base is not x and not np.shares_memory(view, x)), (
                context
            )
            continue
        assert kind == "view", context
        layout, offset, *steps = answer.split()
        assert layout == f"{view.dtype.char}:{dims(view.shape)}:{dims(view.strides)}", context
        start = view.__array_interface__["data"][0] - x.__array_interface__["data"][0]
        assert int(offset) == start, (*context, start)
        assert np.array_equal(replay(x, steps), view), context
    return seen


def numbered(rng, count):
    """Random layouts whose elements are all different where memory is."""
    for x in random_layouts(rng, count, "l"):
        if x.flags.writeable and x.size and 0 not in x.strides:
            x[...] = rng.permutation(x.size).reshape(x.shape)
        yield x


def random_index(rng, ndim):
    def bound():
        return None if rng.random() < 0.4 else int(rng.integers(-7, 8))

    items = []
    for _ in range(int(rng.integers(0, ndim + 2))):
        kind = rng.choice(["slice", "integer", "newaxis", "..."], p=[0.55, 0.25, 0.12, 0.08])
        if kind == "slice":
            step = int(rng.choice([1, 2, -1, -2, 3]))
            items.append(slice(bound(), bound(), None if rng.random() < 0.5 else step))
        else:
            items.append({"integer": int(rng.integers(-4, 4)), "newaxis": None, "...": ...}[kind])
    return tuple(items)


def index_words(index):
    words = {None: "newaxis", ...: "..."}
    return " ".join(
        f"{i.start}:{i.stop}:{i.step}" if isinstance(i, slice) else words.get(i, str(i))
        for i in index
    )


def test_basic_indexing():
    rng = np.random.default_rng(1)
    cases = []
    for x in numbered(rng, 6000):
        index = random_index(rng, x.ndim)
        # An array, not a scalar, also where every axis is indexed by an integer.
        as_array = index if ... in index else (*index, ...)
        cases.append(("index", x, index_words(index), lambda x, i=as_array: x[i]))
    seen = check(cases)
    assert seen["view"] > 2000
    assert seen["unsupported"] > 500


def test_extreme_steps():
    x = np.arange(5)
    big = 2**63 - 1
    slices = [
        slice(None, None, big),
        slice(None, None, -big),
        slice(-big, big, 2),
        slice(3, -big, -big),
    ]
    check([("index", x, index_words((s,)), lambda x, s=s: x[s]) for s in slices])


def test_axes():
    rng = np.random.default_rng(2)
    cases = []
    for x in numbered(rng, 3000):
        n = x.ndim
        perm = [int(a) - (n if rng.random() < 0.3 else 0) for a in rng.permutation(n)]
        some = sorted({int(a) for a in rng.integers(-n - 1, n + 1, 2)})
        cases.append(("transpose", x, "None", lambda x: x.transpose()))
        cases.append(("transpose", x, dims(perm), lambda x, p=tuple(perm): np.transpose(x, p)))
        cases.append(("squeeze", x, "None", lambda x: x.squeeze()))
        cases.append(("squeeze", x, dims(some), lambda x, a=tuple(some): x.squeeze(a)))
        cases.append(("expand_dims", x, dims(some), lambda x, a=tuple(some): np.expand_dims(x, a)))
        a, b = (int(v) for v in rng.integers(-n - 1, n + 1, 2))
        cases.append(("swapaxes", x, f"{a} {b}", lambda x, a=a, b=b: x.swapaxes(a, b)))
    seen = check(cases)
    assert seen["view"] > 8000


def test_broadcast_to():
    rng = np.random.default_rng(3)
    cases = []
    for x in numbered(rng, 4000):
        shape = [n if n != 1 or rng.random() < 0.5 else int(rng.integers(0, 4)) for n in x.shape]
        shape = [int(rng.integers(0, 3)) for _ in range(rng.integers(0, 3))] + shape
        if shape and rng.random() < 0.1:
            shape[rng.integers(len(shape))] += 1
        cases.append(
            ("broadcast_to", x, dims(shape), lambda x, s=tuple(shape): np.broadcast_to(x, s))
        )
    check(cases)


def random_shape(rng, size):
    """A shape of about this many elements, sometimes with a -1 or one that does not fit."""
    shape, rest = [], max(size, 1)
    while rest > 1:
        divisors = [d for d in range(1, rest + 1) if rest % d == 0]
        shape.append(int(rng.choice(divisors)))
        rest //= shape[-1]
    shape += [1] * int(rng.integers(0, 2)) + ([0] if size == 0 else [])
    shape = [shape[i] for i in rng.permutation(len(shape))]
    if shape and rng.random() < 0.3:
        shape[rng.integers(len(shape))] = -1
    if shape and rng.random() < 0.05:
        shape[rng.integers(len(shape))] += 1
    return tuple(shape)


def test_reshape():
    rng = np.random.default_rng(4)
    cases = []
    for x in numbered(rng, 8000):
        shape, order = random_shape(rng, x.size), rng.choice(["C", "F"])
        make = lambda x, s=shape, o=order: x.reshape(s, order=o)  # noqa: E731
        cases.append(("reshape", x, f"{dims(shape)} {order}", make))
    seen = check(cases)
    assert seen["view"] > 2000
    assert seen["copy"] > 300
