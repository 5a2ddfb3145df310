"""Small programs that once gave another answer than NumPy, each for a reason of its own.

Each is called once, twice, three and twenty times with each of its arguments in turn: traced,
recorded, replayed along another call's recording, and answered by the plain function.
"""

import numpy as np
import pytest
import ufuse
from same import check

OFTEN = pytest.mark.parametrize("calls", [1, 2, 3, 20])


def each_often(function, calls, *cases):
    """Check one jitted function ``calls`` times with each set of arguments."""
    jitted = ufuse.jit(function)
    for case in cases:
        for _ in range(calls):
            check(function, *case, _jitted=jitted)


@OFTEN
def test_results_that_are_one_object_of_numpys_are_told_apart(calls):
    """There is one ``np.True_``: two results that are both true stand in different places."""

    def of_truth(x):
        return x.any(), x.all()

    def nested(x):
        return [x.all(), {"any": x.any()}], (x.any(), x.all(), x.all())

    for function in (of_truth, nested):
        cases = [(np.array(values),) for values in ([1.0, 1.0], [1.0, 0.0], [0.0, 0.0])]
        each_often(function, calls, *cases)


def test_what_is_returned_stays_one_object_where_it_was_one():
    def twice(x):
        made = [x.any()]
        return made, made, x

    jitted = ufuse.jit(twice)
    x = np.ones(2)
    for _ in range(3):
        first, second, third = jitted(x)
        assert first is second
        assert third is x


@OFTEN
def test_flags_of_arguments_are_part_of_what_a_recording_is_for(calls):
    """Whether an array owns its memory is seen by those calls that ask for it."""

    def by_owner(x):
        return x * 2 if x.flags.owndata else x * 3

    def when_positive(x):
        if x.sum() > 0 and not x.flags.owndata:
            return x - 1
        return x + 1

    for function in (by_owner, when_positive):
        jitted = ufuse.jit(function)
        base = np.arange(1.0, 9.0)
        for _ in range(calls):
            for x in (np.arange(1.0, 5.0), base[:4], -base[:4], base[4:], np.full(4, -1.0)):
                assert np.array_equal(jitted(x), function(x))


def test_flags_that_nobody_asks_for_do_not_part_calls():
    jitted = ufuse.jit(lambda x: x * 2)
    base = np.ones(8)
    for x in (base, base[:], base, base[:]):
        jitted(x)
    assert jitted._dispatcher.counts[1] == 1
