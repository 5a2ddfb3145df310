"""Does every function of NumPy give its own answer inside a jitted function?"""

import numpy as np
import pytest
from functions import cases
from same import check

CASES = list(cases())


@pytest.mark.parametrize(
    ("function", "arguments"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_function(function, arguments):
    check(function, *arguments)


def test_random_generators():
    """They look into memory by themselves, so they get real arrays."""

    def module(x):
        np.random.seed(3)
        y = x * 2
        np.random.shuffle(y)
        z = y + np.random.permutation(x) + np.random.normal(y)
        np.random.shuffle(x)
        return y, z, np.random.choice(y[0], 3)

    def generator(x, out):
        rng = np.random.default_rng(3)
        y = x * 2
        rng.shuffle(y)
        rng.standard_normal(out=out)
        rng.shuffle(x, axis=1)
        return y, out + 1, rng.permuted(y), rng.choice(y, 2), rng.normal(y)

    x = np.random.default_rng(0).normal(size=(6, 4))
    check(module, x)
    check(generator, x, np.zeros(5))
