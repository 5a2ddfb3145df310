"""Does a value that nobody uses warn, where the memory that it would read is written meanwhile?

NumPy computes it at its line. A traced call computes it late, but not too late: with what
overwrites an argument that it reads.

And does it warn where only we could know that nobody uses it: an outer choice leaves out what an
inner one has chosen? A C++ compiler would leave such values out.
"""

import numpy as np
import pytest
from outcomes import check


def then_forced(x):
    np.log(x)
    x += 1
    return float(x.sum())


def between_two(x):
    np.log(x)
    float(x.sum())
    x += 1
    return float(x.sum())


def each_round(x):
    for _ in range(3):
        np.log(x)
        x += float(x.sum()) % 7
    return x


def of_numbers(x):
    isinstance(x.max() / (x.max() - x.max()), float)
    x *= int(x.sum()) % 5
    isinstance(x.max() / (x.max() - x.max()), float)
    x -= int(x.sum()) % 5
    return x, x.max()


def in_a_helper(x):
    y, _ = of_numbers(x)
    y[0] = 2
    return of_numbers(y)


def then_a_part(x):
    np.log(x)
    x[:2] = 1
    return x


def then_an_element(x):
    1 / x, np.sqrt(x)
    x[0] = 2


def then_a_part_in_place(x):
    np.sqrt(x)
    view = x[:1]
    view += np.log(x[1:2])
    return x


def of_what_is_made_of_it(x):
    y = x + 1
    np.sqrt(y)
    x[1:] = 3
    y += 1
    return y


def of_what_is_dropped(x):
    y = x + 1
    np.sqrt(y)
    x[1:] = 3
    del y
    return x


def of_what_was_computed(x):
    y = x + 1
    np.sqrt(y)
    float(y.sum())
    x[1:] = 3
    y += 1
    return y


def of_what_was_computed_and_dropped(x):
    y = x + 1
    np.sqrt(y)
    float(y[0])
    x[1:] = 3
    del y
    x[2:] = np.log(x[:-2])
    return x


def of_what_is_assigned_anew(x):
    y = x + 1
    np.sqrt(y)
    float(y.sum())
    y = x - 1
    x[:2] = y[2:4]
    return x, y


def of_what_was_computed_for_numpy(x):
    y = x - 1
    np.log(y)
    order = np.argsort(y)
    x += 5
    y[:] = 0
    return y, order


def of_a_view(x):
    y = x - 1
    np.log(y[1:])
    x[:] = y[::-1]
    y[1:] = 7
    return x, y


@pytest.mark.parametrize(
    "function",
    [
        of_what_is_made_of_it,
        of_what_is_dropped,
        of_what_was_computed,
        of_what_was_computed_and_dropped,
        of_what_is_assigned_anew,
        of_what_was_computed_for_numpy,
        of_a_view,
        then_forced,
        between_two,
        each_round,
        of_numbers,
        in_a_helper,
        then_a_part,
        then_an_element,
        then_a_part_in_place,
    ],
)
def test_unused_value_warns_before_its_memory_is_written(function):
    check(function, np.arange(-2.0, 4.0))


def chosen_within(x, m):
    return np.where(m, 1.0, np.where(m, x / 0, 2.0))


def chosen_within_by_the_opposite(x, m):
    return np.where(m, np.where(~m, x / 0, 2.0), 3.0)


def chosen_within_an_operand(x, m):
    return np.where(m, 1.0, np.sqrt(np.where(m, x / 0, 2.0)) + 1)


def chosen_two_levels_within(x, m):
    return np.where(m, 1.0, np.where(x > 7, np.where(m, x / 0, 2.0), 3.0))


def assigned_and_overwritten(x, m):
    x[m] = x[m] / 0
    x[m] = 1
    return x


@pytest.mark.parametrize("in_a_loop", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
@pytest.mark.parametrize(
    "function",
    [
        chosen_within,
        chosen_within_by_the_opposite,
        chosen_within_an_operand,
        chosen_two_levels_within,
        assigned_and_overwritten,
    ],
)
def test_value_that_is_never_chosen_warns(function, dtype, in_a_loop):
    def each_row(x, m):
        out = np.zeros_like(x)
        for i in range(len(x)):
            out[i] = function(x[i], m[i])
        return out

    x, m = np.linspace(1, 2, 60).astype(dtype), np.arange(60) % 2 == 0
    if in_a_loop:
        check(each_row, x.reshape(3, 20), m.reshape(3, 20))
    else:
        check(function, x, m)


@pytest.mark.parametrize("keepdims", [True, False])
def test_equal_sums_warn_each_time(keepdims):
    def function(x):
        for _ in range(3):
            y = x - x.sum(axis=1, keepdims=keepdims)
        return y

    check(function, np.array([[np.inf, -np.inf], [1.0, 2.0]]))
