"""Are two results the same, and if not, how far apart are they?

The strict answer (`identical`) is the promise of ufuse: equal bits, dtype, shape and Python type.
`compare` also tells "close" for peers that promise less.
"""

from typing import Any

import numpy as np


def identical(expected: Any, actual: Any) -> bool:
    """True when type, dtype, shape and every bit agree; tuples are compared item by item."""
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, tuple):
        return len(expected) == len(actual) and all(map(identical, expected, actual))
    if isinstance(expected, np.ndarray | np.generic):
        return (
            expected.dtype == actual.dtype
            and expected.shape == actual.shape
            and expected.tobytes() == actual.tobytes()
        )
    return bool(expected == actual)


def _close(expected: Any, actual: Any) -> bool:
    if isinstance(expected, tuple):
        return len(expected) == len(actual) and all(map(_close, expected, actual))
    expected, actual = np.asarray(expected), np.asarray(actual)
    if expected.shape != actual.shape:
        return False
    # Fit for a float32 accumulator or another order of summation, not for a wrong formula.
    return bool(np.allclose(expected, actual, rtol=1e-5, atol=1e-7, equal_nan=True))


def compare(expected: Any, actual: Any) -> str:
    """How ``actual`` relates to NumPy's result: "identical", "close" or "different"."""
    if identical(expected, actual):
        return "identical"
    return "close" if _close(expected, actual) else "different"
