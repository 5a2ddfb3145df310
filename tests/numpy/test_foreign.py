"""Does code of other packages get real arrays, and leave them as it does in plain Python?

The packages decide what they do with an array: compiled code wants NumPy's own type, some functions
write into their arguments. Each call is made three times, the last ones perhaps by a recorded plan,
with the caller's own arrays and with arrays that are computed in the same function.
"""

import warnings

import foreign
import numpy as np
import pytest
from same import check
from texts import function_of

CASES = list(foreign.cases())
# What one and the same plain call does not always say, or says once in a process.
QUIET = {"_warnings": False}


@pytest.mark.parametrize(("text", "function"), CASES, ids=[text for text, _ in CASES])
def test_call(text, function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            check(function, *foreign.arguments(text), **QUIET)
        check(_on_computed(text, function), *foreign.arguments(text), **QUIET)


def _on_computed(text, function):
    names = foreign.NAMES
    computed = ", ".join(f"{name} + 0" for name in names.split(", "))
    space = dict(function.__globals__)
    del space["function"]
    return function_of(
        f"def computed({names}):\n    {names} = {computed}\n    return {text}\n", space
    )


def test_there_are_enough():
    assert len(CASES) > 250
    assert np.unique([text for text, _ in CASES]).size == len(CASES)
