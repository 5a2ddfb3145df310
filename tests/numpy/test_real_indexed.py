"""A real array that has an index which is lazy: is it NumPy's answer?

What calls of NumPy give may be real arrays in the middle of a traced function. NumPy takes an index
that is no array of its own for a list, whose numbers it looks at in another way.
"""

import numpy as np
import pytest
from same import check

X = np.arange(1.0, 7.0)


def real(x):
    """A real array of the numbers of ``x``, in traced code as well."""
    return np.minimum.reduce([x, x])


def write(index, value):
    def function(x):
        made = real(x)
        made[index(x)] = value(x)
        return made

    return function


FUNCTIONS = {
    "floats": lambda x: real(x)[x],
    "no floats": lambda x: real(x)[x[:0]],
    "a float": lambda x: real(x)[x[0]],
    "mask": lambda x: real(x)[x > 2],
    "positions": lambda x: real(x)[np.argsort(-x)],
    "position": lambda x: real(x)[x.argmax()],
    "from a position": lambda x: real(x)[x.argmin() : x.argmax()],
    "position and all": lambda x: real(x)[x.argmax(), ...],
    "mask and axis": lambda x: real(x)[x > 2, None],
    "a truth": lambda x: real(x)[x[0] > 2],
    "write at floats": write(lambda x: x, lambda x: x),
    "write at no floats": write(lambda x: x[:0], lambda x: 1.0),
    "write at a mask": write(lambda x: x > 2, lambda x: -1.0),
    "write at a truth": write(lambda x: x[0] < 2, lambda x: x * 2),
    "write at a position": write(lambda x: x.argmax(), lambda x: x.sum()),
    "write a slice": write(lambda x: slice(1, 3), lambda x: x[:2] * 2),
    "write too much": write(lambda x: slice(1, 3), lambda x: x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_real_array_with_a_lazy_index(name):
    for _ in range(3):
        check(FUNCTIONS[name], X)
