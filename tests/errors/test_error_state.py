"""Does a jitted function heed NumPy's error state as NumPy does?

``np.errstate`` and ``np.seterr`` around the call and inside of it: which flags warn, raise, call
somebody or pass.
"""

import contextlib

import numpy as np
import pytest
from outcomes import check, step
from warners import PROGRAMS, SIZES, helper, numbers

STATES = [
    {"all": "ignore"},
    {"all": "warn"},
    {"all": "raise"},
    {"divide": "raise"},
    {"invalid": "raise"},
    {"over": "raise"},
    {"divide": "ignore"},
    {"divide": "ignore", "over": "ignore"},
    {"under": "warn"},
    {"under": "raise"},
    {"divide": "raise", "invalid": "ignore"},
]


@pytest.mark.parametrize("state", STATES, ids=str)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_error_state_of_the_caller(program, state):
    x = numbers(40)
    y = x[::-1] * 1e-300
    before = np.geterr()
    with np.errstate(**state):
        check(program, x, y)
    assert np.geterr() == before


def state_inside(x, y):
    x += 1
    step(1)
    with np.errstate(divide="raise"):
        step(2)
        y += 1
        a = x / (y * 0)
        step(3)
        y += 1
    return a


def state_caught(x, y):
    try:
        with np.errstate(all="raise"):
            x *= 2
            np.log(x)
            x *= 1000
    except FloatingPointError as error:
        step(str(error))
    x += 1
    return x, np.geterr()["divide"]


def state_set(x, y):
    old = np.seterr(all="ignore")
    a = np.log(x)
    np.seterr(**old)
    return a, np.log(y)


def state_called(x, y):
    with np.errstate(all="call", call=lambda kind, flag: step((kind, flag))):
        a = np.log(x)
        b = a / y
    return b


@np.errstate(divide="ignore")
def state_decorates(x, y):
    return np.log(x) + 1 / y


def state_of_helper(x, y):
    return state_decorates(x, y) + 1 / x


@np.errstate(divide="raise")
def state_raises(x, y):
    step("before")
    return 1 / x


def state_of_helper_raises(x, y):
    a = np.log(y)
    try:
        state_raises(x, y)
    except FloatingPointError as error:
        step(str(error))
    return a + np.log(x)


@contextlib.contextmanager
def quietly():
    with np.errstate(all="ignore"):
        yield


def state_of_a_manager(x, y):
    with quietly():
        a = np.log(x)
    return a + np.log(y)


def state_asked(x, y):
    with np.errstate(over="ignore", divide="raise"):
        return sorted(np.geterr().items())


@pytest.mark.parametrize(
    "program",
    [
        state_inside,
        state_caught,
        state_set,
        state_called,
        state_decorates,
        state_of_helper,
        state_raises,
        state_of_helper_raises,
        state_of_a_manager,
        state_asked,
    ],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("size", SIZES)
def test_error_state_inside(program, size):
    before = np.geterr()
    x = numbers(SIZES[size])
    check(program, x, x[::-1].copy())
    assert np.geterr() == before


def test_error_state_changes_between_calls():
    for mode in ("ignore", "warn", "ignore", "raise", "warn"):
        with np.errstate(divide=mode):
            check(helper, np.zeros(3))


def test_error_state_is_restored_after_an_exception():
    def function(x):
        with np.errstate(all="ignore"):
            x.reshape(99)

    before = np.geterr()
    check(function, np.ones(3))
    assert np.geterr() == before
