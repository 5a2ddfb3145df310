"""The loop NumPy chooses: result dtypes of every ufunc for all dtypes and Python numbers.

The shim may call something unsupported although NumPy answers; what it does so for is named here,
so that the list cannot grow unseen. It must never answer where NumPy raises, and never with another
dtype.
"""

import itertools
import warnings

import numpy as np
import pytest
from shim_client import NATIVE, NUMPY_VERSION, ask, described, word

UMATH = np._core.umath if hasattr(np, "_core") else np.core.umath
VALUES = [1, 1.0, 1j]

# A decision, not a gap: the integer power raises while it runs, casts to integers warn.
DELIBERATE = {"integer_power", "unsafe_cast", "generalized_ufunc"}
# NumPy 2.5 has ufuncs of these names for its own use; `np.real` and `np.imag` are functions.
INTERNAL = {"real", "imag"}


def ufuncs():
    """NumPy's ufuncs by name, each once."""
    found = {}
    for name in dir(UMATH):
        ufunc = getattr(UMATH, name)
        if isinstance(ufunc, np.ufunc) and not name.startswith("_") and name not in INTERNAL:
            found[ufunc.__name__] = ufunc
    return found


def registration(ufunc, of_numpy=1):
    types = ",".join(t.replace("->", "") for t in ufunc.types)
    elementwise = int(ufunc.signature is None)
    return f"ufunc {ufunc.__name__} {of_numpy} {ufunc.nin} {ufunc.nout} {elementwise} {types}"


def numpy_answer(ufunc, args, **options):
    """The results as the probe words them, or None where NumPy raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            results = ufunc(*args, **options)
        except (TypeError, ValueError, OverflowError):
            return None
    return [described(r) for r in (results if ufunc.nout > 1 else [results])]


def compare(ufunc, cases, of_numpy=1, casting="same_kind", **options):
    """Asks for all cases; returns those that NumPy answers natively and the shim does not."""
    dtype = options.get("dtype", "None")
    questions = [registration(ufunc, of_numpy)]
    questions += [
        f"call {ufunc.__name__} {dtype} {casting} {' '.join(map(word, case))}" for case in cases
    ]
    missed = []
    if casting != "same_kind":
        options["casting"] = casting
    for case, answer in zip(cases, ask(questions)[1:], strict=True):
        want = numpy_answer(ufunc, case, **options)
        context = (ufunc.__name__, [word(x) for x in case], options, answer, want)
        if answer.startswith("unsupported"):
            native = want is not None and all(w[0] in NATIVE for w in want)
            if native and answer.split()[1].rstrip(":") not in DELIBERATE:
                missed.append(context)
        else:
            assert answer.split()[1:] == want, context
    return missed


ARRAYS = [np.ones(2, c) for c in NATIVE]


@pytest.mark.parametrize("name", sorted(ufuncs()))
def test_dtypes_of_arrays(name):
    ufunc = ufuncs()[name]
    choices = ARRAYS if ufunc.nin < 4 else ARRAYS[:1]
    cases = list(itertools.product(choices, repeat=ufunc.nin))
    assert compare(ufunc, cases) == []


# NumPy 1.x's preview of NEP 50 is wrong for three operands.
@pytest.mark.parametrize(
    "name", sorted(n for n, u in ufuncs().items() if u.nin < (3 if NUMPY_VERSION < (2, 0) else 4))
)
def test_python_numbers(name):
    ufunc = ufuncs()[name]
    cases = []
    for at in range(ufunc.nin):
        others = [ARRAYS + VALUES if i != at else VALUES for i in range(ufunc.nin)]
        cases += itertools.product(*others)
    assert compare(ufunc, cases) == []


@pytest.mark.parametrize("casting", ["same_kind", "unsafe"])
@pytest.mark.parametrize("name", sorted(n for n, u in ufuncs().items() if u.nin < 3))
def test_dtype_argument(name, casting):
    ufunc = ufuncs()[name]
    missed = []
    for dtype in NATIVE:
        cases = list(itertools.product(ARRAYS, repeat=ufunc.nin))
        missed += compare(ufunc, cases, casting=casting, dtype=dtype)
    assert missed == []


SPECIAL = ["erf", "gammaln", "expit", "jv", "xlogy", "betainc", "ellipj", "binom", "eval_legendre"]


@pytest.mark.parametrize("name", SPECIAL)
def test_scipy_special(name):
    ufunc = getattr(pytest.importorskip("scipy.special"), name)
    choices = ARRAYS if ufunc.nin < 3 else ARRAYS[::3]
    cases = list(itertools.product(choices, repeat=ufunc.nin))
    if ufunc.nin == 2:
        cases += itertools.product(ARRAYS, VALUES)
        cases += itertools.product(VALUES, ARRAYS + VALUES)
    assert compare(ufunc, cases, of_numpy=0) == []
