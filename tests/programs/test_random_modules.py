"""Random modules: does ufuse.jit change anything that their callers can see?

A failure prints the program and where it differs first; ``run.py`` prints it shortened. ``SEED``
and ``PROGRAMS`` in the environment choose other programs.
"""

import os

import pytest
from run import differing
from writer import written

SEED = int(os.environ.get("SEED", "0"))
PROGRAMS = int(os.environ.get("PROGRAMS", "40"))


@pytest.mark.parametrize("seed", range(SEED, SEED + PROGRAMS))
def test_program(seed):
    found = differing(seed)
    if found is not None:
        print(written(seed))
        pytest.fail(f"seed {seed}, {found}", pytrace=False)
