"""Strides of what NumPy allocates, exactly: results of ufuncs, copies; and contiguity flags."""

import numpy as np
import pytest
from shim_client import ask, described, dims, random_layout, random_layouts, word

UMATH = np._core.umath if hasattr(np, "_core") else np.core.umath
UFUNCS = {1: np.negative, 2: np.add, 3: UMATH.clip}
REGISTER = [
    "ufunc negative 1 1 1 1 dd",
    "ufunc add 1 2 1 1 ddd",
    "ufunc clip 1 3 1 1 dddd",
    "ufunc modf 1 1 2 1 ddd",
]
CASES = 20000


def broadcastable(rng, count):
    """`count` arrays that broadcast: a common shape with axes left out or of size 1."""
    ndim = int(rng.integers(0, 5))
    shape = [int(n) for n in rng.choice([1, 2, 3, 4], ndim)]
    if ndim and rng.random() < 0.04:
        shape[rng.integers(ndim)] = 0
    same = rng.random() < 0.4
    for _ in range(count):
        own = [n if same or rng.random() < 0.8 else 1 for n in shape]
        first = 0 if same or rng.random() < 0.8 else int(rng.integers(0, ndim + 1))
        code = "d" if rng.random() < 0.8 else "i"
        yield random_layout(rng, tuple(own[first:]), code)


def test_results_of_ufuncs():
    rng = np.random.default_rng(20240601)
    questions, want = [*REGISTER], ["ok"] * len(REGISTER)
    for _ in range(CASES):
        count = int(rng.integers(1, 4))
        arrays = list(broadcastable(rng, count))
        ufunc = UFUNCS[count]
        if all(a.dtype == "i" for a in arrays):
            arrays[0] = arrays[0].astype("d")
        questions.append(f"call {ufunc.__name__} None same_kind {' '.join(map(word, arrays))}")
        want.append(described(ufunc(*arrays)))
    answers = ask(questions)
    wrong = [
        (question, answer, expected)
        for question, answer, expected in zip(questions, answers, want, strict=True)
        if answer.split(" ")[-1] != expected
    ]
    assert not wrong, (len(wrong), wrong[:5])


def test_results_of_ufuncs_of_overlapping_axes():
    rng = np.random.default_rng(5)
    pairs = [(x, random_layout(rng, x.shape)) for x in random_layouts(rng, 3000)]
    pairs += [(y, x) for x, y in pairs]
    answers = ask(REGISTER + [f"call add None same_kind {word(x)} {word(y)}" for x, y in pairs])
    for (x, y), answer in zip(pairs, answers[len(REGISTER) :], strict=True):
        assert answer.split(" ")[-1] == described(np.add(x, y)), (word(x), word(y))


def test_results_of_ufuncs_with_two_outputs():
    rng = np.random.default_rng(2)
    arrays = list(random_layouts(rng, 3000))
    answers = ask(REGISTER + [f"call modf None same_kind {word(x)}" for x in arrays])
    for x, answer in zip(arrays, answers[len(REGISTER) :], strict=True):
        assert answer.split(" ")[1:] == [described(y) for y in np.modf(x)], word(x)


def test_copies_and_flags():
    rng = np.random.default_rng(3)
    arrays = list(random_layouts(rng, 10000))
    copies = ask([f"like {word(x)}" for x in arrays])
    flags = ask([f"contiguous {word(x)}" for x in arrays])
    for x, strides, contiguous in zip(arrays, copies, flags, strict=True):
        assert strides == dims(np.empty_like(x, order="K").strides), word(x)
        assert contiguous == f"{int(x.flags.c_contiguous)}{int(x.flags.f_contiguous)}", word(x)


OPERATORS = {
    "add": lambda a, b: a() + b(),
    "subtract": lambda a, b: a() - b(),
    "multiply": lambda a, b: a() * b(),
    "divide": lambda a, b: a() / b(),
    "floor_divide": lambda a, b: a() // b(),
    "bitwise_xor": lambda a, b: a() ^ b(),
}


def reuses_temporaries():
    """Whether NumPy finds its operators' callers on the C stack; a sanitizer hides them from it."""
    addresses = []

    def temporary():
        made = np.ones(100_000)
        addresses.append(made.ctypes.data)
        return made

    return (temporary() + 1.0).ctypes.data == addresses[0]


@pytest.mark.skipif(not reuses_temporaries(), reason="NumPy does not reuse temporaries here")
def test_large_temporaries_keep_their_layout():
    rng = np.random.default_rng(6)
    questions, want = [], []
    for name in OPERATORS:
        types = ",".join(t.replace("->", "") for t in getattr(np, name).types)
        questions.append(f"ufunc {name} 1 2 1 1 {types}")
        want.append("ok")
    for _ in range(1500):
        name = str(rng.choice(list(OPERATORS)))
        codes = rng.choice(
            list("hil" if name == "bitwise_xor" else "ifdD"[: 3 if "fl" in name else 4]), 2
        )
        n = int(rng.choice([20, 60, 100]))
        shapes = [(n, 30, n), (n, 30, n) if rng.random() < 0.8 else (30, n)]
        arrays = [
            random_layout(rng, s, c, broadcast=False) for s, c in zip(shapes, codes, strict=True)
        ]
        temporary = [bool(rng.random() < 0.5) for _ in arrays]
        arrays = [x.copy("K") if t else x for x, t in zip(arrays, temporary, strict=True)]
        # Only a fresh copy on the interpreter's stack is a temporary; it has its array's layout.
        left, right = (
            (lambda x=x: x.copy("K")) if t else (lambda x=x: x)
            for x, t in zip(arrays, temporary, strict=True)
        )
        flags = " ".join(str(int(t)) for t in temporary)
        questions.append(f"operator {name} {flags} {' '.join(map(word, arrays))}")
        want.append(described(OPERATORS[name](left, right)))
    for question, answer, expected in zip(questions, ask(questions), want, strict=True):
        assert answer == expected, (question, expected)
