"""Which arrays do the tests run on? Every dtype in every layout, with the values that matter."""

import numpy as np

INTEGERS = "bhilBHIL"
FLOATS = "efdg"
COMPLEXES = "FDG"
DTYPES = "?" + INTEGERS + FLOATS + COMPLEXES
LAYOUTS = (
    "contiguous",
    "transposed",
    "strided",
    "reversed",
    "broadcast",
    "zero_d",
    "empty",
    "unaligned",
    "swapped",
)
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-310, 1e300, -1e300, 0.5)


def values(dtype, shape, seed=0):
    """Random values of a dtype with the special ones strewn in."""
    rng = np.random.default_rng([seed, *map(ord, np.dtype(dtype).char)])
    dtype = np.dtype(dtype)
    size = int(np.prod(shape))
    if dtype.kind == "b":
        return (rng.random(shape) < 0.5).astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        small = rng.integers(max(info.min, -9), 10, shape).astype(dtype)
        flat = small.reshape(-1)
        flat[:: max(1, size // 3)] = info.max
        flat[1 :: max(1, size // 3)] = info.min
        return small
    real = rng.normal(size=shape) * 3
    if dtype.kind == "c":
        real = real + 1j * rng.normal(size=shape) * 3
    made = real.astype(dtype)
    flat = made.reshape(-1)
    with np.errstate(all="ignore"):
        for k, special in enumerate(SPECIAL):
            if size > 2 * k + 1:
                flat[2 * k + 1] = special
    return made


def array(dtype, layout="contiguous", shape=(6, 7), seed=0):
    """An array of a dtype in a layout."""
    if layout == "contiguous":
        return values(dtype, shape, seed)
    if layout == "transposed":
        return values(dtype, shape[::-1], seed).T
    if layout == "strided":
        return values(dtype, tuple(2 * n for n in shape), seed)[::2, 1::2]
    if layout == "reversed":
        return values(dtype, shape, seed)[::-1, ::-1]
    if layout == "broadcast":
        return np.broadcast_to(values(dtype, shape[1:], seed), shape)
    if layout == "zero_d":
        return values(dtype, (), seed)
    if layout == "empty":
        return values(dtype, (0, *shape[1:]), seed)
    if layout == "unaligned":
        itemsize = np.dtype(dtype).itemsize
        raw = np.empty(int(np.prod(shape)) * itemsize + 1, np.uint8)
        made = raw[1:].view(dtype).reshape(shape)
        made[...] = values(dtype, shape, seed)
        return made
    assert layout == "swapped"
    made = values(dtype, shape, seed)
    return made.astype(made.dtype.newbyteorder())
