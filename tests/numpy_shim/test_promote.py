"""Promotion, casting rules and the conversion of Python numbers, against NumPy: every pair."""

import itertools
import warnings

import numpy as np
import pytest
from shim_client import NATIVE, NUMPY_VERSION, ask, word

INTEGERS = [0, 1, -1, 5, 127, 128, -128, -129, 255, 256, 65535, 2**31, -(2**31) - 1, 2**32]
INTEGERS += [2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 16777217]
FLOATS = [0.0, -0.0, 1.5, 1 / 3, 1e-300, 1e300, 3.4028235677973366e38, 3.4028234e38, np.inf, np.nan]


def test_promote_types():
    pairs = list(itertools.product(NATIVE, NATIVE))
    want = [np.promote_types(a, b).char for a, b in pairs]
    assert ask([f"promote {a} {b}" for a, b in pairs]) == want


def test_can_cast():
    pairs = list(itertools.product(NATIVE, NATIVE))
    want = [f"{int(np.can_cast(a, b))}{int(np.can_cast(a, b, 'same_kind'))}" for a, b in pairs]
    assert ask([f"can_cast {a} {b}" for a, b in pairs]) == want


@pytest.mark.skipif(NUMPY_VERSION < (2, 0), reason="np.result_type follows NEP 50 from 2.0 on")
def test_result_type_with_weak_scalars():
    choices = [np.ones(2, c) for c in NATIVE] + [1, 1.5, 1j]
    cases = list(itertools.product(choices, repeat=2)) + list(itertools.product(choices, repeat=3))
    want = [np.result_type(*case).char for case in cases]
    assert ask([f"result_type {' '.join(map(word, case))}" for case in cases]) == want


NUMBERS = [0, 1, -1, 100, 200, -129, 40000, -40000, 3 * 10**9, 2**62, -(2**63)]
NUMBERS += [0.5, 1e5, 1e300, np.inf, np.nan, 1j, 1e5j, 1e300 + 1j]


def valued_words():
    """Numbers, and NumPy scalars of each dtype, beside the words for their values."""
    yield from ((value, word(value)) for value in NUMBERS)
    for code, value in itertools.product(NATIVE, NUMBERS):
        kinds = "biufc"
        kind = np.result_type(type(value)).kind
        if kinds.index(np.dtype(code).kind) < kinds.index(kind) and code != "?":
            continue
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                made = np.array([value]).astype(code)[0]
            except OverflowError:
                continue
        python = made.item() if code not in "gG" else type(value)(value)
        if code in "efFdDgG" or python == value:
            yield made, word(int(python) if code == "?" else python)


@pytest.mark.skipif(NUMPY_VERSION >= (2, 0), reason="NumPy 2 promotes without values")
def test_promotion_by_values():
    np._set_promotion_state("legacy")
    rng = np.random.default_rng(3)
    valued = list(valued_words())
    arrays = [(np.ones(2, code), "None") for code in NATIVE]
    cases = [(a, b) for a in arrays for b in valued] + [(b, a) for a in arrays for b in valued]
    pool = [*arrays, *valued]
    cases += [tuple(pool[i] for i in rng.integers(len(pool), size=3)) for _ in range(4000)]
    operands = [" ".join(word(x) for x, _ in case) for case in cases]
    known = [" ".join(value for _, value in case) for case in cases]
    nothing = [" ".join("None" for _ in case) for case in cases]
    by_type = ask([f"result_type {each}" for each in operands])
    told = ask([f"promotes_alike {a} | {b}" for a, b in zip(operands, known, strict=True)])
    untold = ask([f"promotes_alike {a} | {b}" for a, b in zip(operands, nothing, strict=True)])
    for case, dtype, answer, guess in zip(cases, by_type, told, untold, strict=True):
        given = [x for x, _ in case]
        assert answer == str(int(np.result_type(*given).char == dtype)), given
        assert guess in ("None", answer), given


@pytest.mark.skipif(NUMPY_VERSION < (2, 0), reason="NumPy 1.x wraps instead of raising")
def test_conversion_of_python_numbers():
    values = [*INTEGERS, *FLOATS, 1 + 2j, complex(-0.0, 1e300), complex(1e-50, -0.0)]
    cases = [(value, code) for value in values for code in NATIVE[1:]]
    answers = ask([f"convert {word(value)} {code}" for value, code in cases])
    for (value, code), answer in zip(cases, answers, strict=True):
        want = numpy_conversion(value, code)
        # NumPy 1 and 2 make a clongdouble of other digits; so NumPy itself does.
        left_to_numpy = code == "G" and type(value) is int and float(value) != value
        if want is None or left_to_numpy:
            assert answer.startswith("unsupported"), (value, code)
        else:
            assert answer == want, (value, code)


def numpy_conversion(value, code):
    """The bits of the value as an array element; None where NumPy raises or warns."""
    kind_of_value = {int: 0, float: 1, complex: 2}[type(value)]
    if {"i": 0, "u": 0, "f": 1, "c": 2}[np.dtype(code).kind] < kind_of_value:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            element = np.array(value, code)
        except (OverflowError, RuntimeWarning):
            return None
    raw = element.tobytes().ljust(32, b"\0")
    words = [int.from_bytes(raw[i : i + 8], "little") for i in range(0, 32, 8)]
    if code in "gG":  # ten bytes of each sixteen carry the value
        words[1], words[3] = words[1] & 0xFFFF, words[3] & 0xFFFF
    return " ".join(f"{word:x}" for word in words)
