"""How do the tests of numpy_shim talk to it? Words for arrays, and a batch of questions at a time.

The answers come from `ufuse_shim_probe` (probe.cpp beside this file). It links no Python, so one
build serves every NumPy: run `pytest tests/numpy_shim` with the interpreter of the NumPy to compare
with.
"""

import os
import pathlib
import subprocess

import numpy as np
import pytest

NATIVE = "?bhilBHILefdgFDG"
NUMPY_VERSION = tuple(int(part) for part in np.__version__.split(".")[:2])
_ROOT = pathlib.Path(__file__).resolve().parents[2]
_PROBE = pathlib.Path(
    os.environ.get("UFUSE_TEST_SHIM_PROBE", _ROOT / "build/dev/tests/ufuse_shim_probe")
)


def ask(questions):
    """The answers to a list of questions, in order; an error of the shim's own fails the test."""
    if not _PROBE.exists():
        pytest.skip(f"{_PROBE} is not built (make test-cpp)")
    text = "\n".join([f"numpy {np.__version__}", *questions]) + "\n"
    done = subprocess.run([_PROBE], input=text, capture_output=True, text=True, check=True)
    answers = done.stdout.splitlines()[1:]
    assert len(answers) == len(questions)
    errors = [answer for answer in answers if answer.startswith("error ")]
    assert not errors, errors[:5]
    return answers


def dims(values):
    """A tuple of integers as one word; None stays None."""
    if values is None:
        return "None"
    return ",".join(map(str, values)) if len(values) else "-"


def word(x):
    """An operand as one word: an array, a NumPy scalar, or a Python number."""
    if isinstance(x, (bool, np.generic)):
        x = np.asarray(x)
        return f"{x.dtype.char}:-:-:s"
    if isinstance(x, int):
        return f"i={x}"
    if isinstance(x, float):
        return f"f={x.hex()}"
    if isinstance(x, complex):
        return f"c={x.real.hex()},{x.imag.hex()}"
    return f"{x.dtype.char}:{dims(x.shape)}:{dims(x.strides)}"


def described(x):
    """NumPy's result as the probe words it."""
    return (
        word(x)
        if isinstance(x, np.generic)
        else f"{x.dtype.char}:{dims(x.shape)}:{dims(x.strides)}"
    )


def random_layouts(rng, count, dtype="d", sizes=(1, 1, 2, 3, 4, 5), empty=0.05):
    """Arrays permuted, sliced, reversed, broadcast, overlapping; some axes of size 1 or 0."""
    for _ in range(count):
        if rng.random() < 0.05:  # axes of equal strides
            line = np.lib.stride_tricks.sliding_window_view(np.ones((3, 9), dtype), 4, axis=1)
            yield line.transpose(rng.permutation(3))
            continue
        ndim = int(rng.integers(0, 5))
        shape = [int(n) for n in rng.choice(sizes, ndim)]
        if ndim and rng.random() < empty:
            shape[rng.integers(ndim)] = 0
        yield random_layout(rng, tuple(shape), dtype)


def random_layout(rng, shape, dtype="d", broadcast=True):
    """One array of this shape whose memory is permuted, sliced, reversed or broadcast by chance."""
    perm = rng.permutation(len(shape)) if rng.random() < 0.6 else np.arange(len(shape))
    steps = [int(rng.choice([1, 1, 1, 1, 2, -1, -2])) for _ in shape]
    stretched = [broadcast and rng.random() < 0.1 for _ in shape]
    base_shape = [1 if b else n * abs(s) for n, s, b in zip(shape, steps, stretched, strict=True)]
    base = np.ones([base_shape[p] for p in perm], dtype).transpose(np.argsort(perm))
    slices = [slice(None, None, 1 if b else s) for s, b in zip(steps, stretched, strict=True)]
    view = base[(*slices, ...)]
    return np.broadcast_to(view, shape) if any(stretched) else view
