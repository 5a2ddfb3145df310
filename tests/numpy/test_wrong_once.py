"""Small programs that once gave another answer than NumPy, each for a reason of its own.

Each is called once, twice, three and twenty times with each of its arguments in turn: traced,
recorded, replayed along another call's recording, and answered by the plain function.
"""

import array
import io
import math
import sqlite3
import struct
import sys
import traceback
import warnings

import numpy as np
import pytest
import ufuse
from same import check

BACKENDS = ["compiled"]

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


def heard(function, *args, action="always"):
    """The warnings of a call with their lines, or the exception that one of them became."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        try:
            function(*args)
        except Warning as error:
            return [repr(error)]
    return [(w.category, str(w.message), w.filename, w.lineno) for w in caught]


HUNDRED = np.int8(100)
NOTHING = np.float64(0.0)


def adds_constants(x):
    return x + (HUNDRED + HUNDRED)


def calls_on_constants(x):
    return x * np.log(-1.0 - len(x) * 0)


@OFTEN
@pytest.mark.parametrize("function", [adds_constants, calls_on_constants])
@pytest.mark.parametrize("quiet", ["ignore", "default"])
def test_arithmetic_of_constants_warns_in_each_call(function, quiet, calls):
    jitted = ufuse.jit(function)
    for x in (np.ones(4), np.ones(20000), np.ones((2, 3))):
        with warnings.catch_warnings():
            warnings.simplefilter(quiet)
            for _ in range(calls):
                jitted(x)
        for action in ("always", "error"):
            assert heard(jitted, x, action=action) == heard(function, x, action=action) != []


def divides_and_then_constants(x):
    return x / x, NOTHING / NOTHING


def constants_and_then_divides(x):
    return NOTHING / NOTHING, x / x


def divides_around_a_call(x):
    first = x / 0
    second = np.log(-1.0)
    return first, second, x / x


@OFTEN
@pytest.mark.parametrize(
    "function", [divides_and_then_constants, constants_and_then_divides, divides_around_a_call]
)
def test_warnings_come_in_the_programs_order(function, calls):
    each_often(function, calls, (np.zeros(2),), (np.array([0.0, 1.0, np.inf]),), (np.zeros(9000),))


def test_pythons_filters_are_left_as_they_were():
    before = list(warnings.filters)
    jitted = ufuse.jit(divides_and_then_constants)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inside = list(warnings.filters)
        jitted(np.zeros(2))
        assert warnings.filters == inside
    assert list(map(id, warnings.filters)) == list(map(id, before))


def says_so(x):
    if x.shape[0] == 1:
        warnings.warn("one only", stacklevel=1)
    return x * 2


def test_what_one_call_warns_of_is_no_reason_to_trace_others():
    jitted = ufuse.jit(says_so)
    heard(jitted, np.ones(1))
    for _ in range(4):
        jitted(np.ones(3))
    assert jitted._dispatcher.counts[0] >= 0


RESHAPES = {
    "scalar": lambda x: x[0, 0].reshape(1),
    "scalar to two axes": lambda x: x.sum().reshape(1, 1),
    "Fortran's order": lambda x: x.reshape(-1, order="F"),
    "transposed": lambda x: x.T.reshape(-1),
    "of a result": lambda x: (x * 2).T.reshape(6),
    "ravel": lambda x: x.T.ravel(),
    "flatten": lambda x: x.flatten(),
    "all of a result": lambda x: (x * 2)[:],
    "view": lambda x: x.reshape(3, 2),
    "and on": lambda x: x.T.reshape(-1)[1:] + 1,
    "view of it": lambda x: x.T.reshape(-1)[1:],
}


@OFTEN
@pytest.mark.parametrize("name", RESHAPES)
def test_what_numpy_reshapes_is_a_view_of_what_it_copies(name, calls):
    function = RESHAPES[name]
    jitted = ufuse.jit(function)
    for x in (np.arange(6.0).reshape(2, 3), np.ones((2, 3), order="F")):
        for _ in range(calls):
            ours, theirs = jitted(x), function(x)
            assert np.array_equal(ours, theirs)
            assert ours.flags.owndata == theirs.flags.owndata
            assert (ours.base is None) == (theirs.base is None)
            if theirs.base is not None:
                assert (ours.base is x) == (theirs.base is x)
                assert ours.base.shape == theirs.base.shape
    assert check(lambda x: function(x).flags.owndata, x) == function(x).flags.owndata


def as_parameter_of_sql(x):
    connection = sqlite3.connect(":memory:")
    connection.execute("create table t(a)")
    connection.execute("insert into t values (?)", (x.sum(),))
    found = connection.execute("select a from t").fetchone()
    connection.close()
    return found


MADE_OF_MEMORY = {
    "write": lambda x: io.BytesIO().write(x * 2),
    "readinto": lambda x: io.BytesIO(b"12345678").readinto(x * 2),
    "join": lambda x: b"".join([x * 2]),
    "extend": lambda x: bytearray(b"1") + bytearray(x * 2),
    "unpack": lambda x: struct.unpack("d", (x * 2)[:1]),
    "pack_into": lambda x: struct.pack_into("d", x, 0, 7.0),
    "sqlite": as_parameter_of_sql,
    "trunc": lambda x: math.trunc(x.sum() + 0.5),
    "floor": lambda x: (math.floor(x.sum() - 0.5), math.ceil(x.mean() + 0.5)),
    "floor of float32": lambda x: math.floor(x.astype(np.float32).sum()),
    "format": lambda x: str.format("{} {:.3f}", x * 2, x.sum()),
    "array": lambda x: array.array("d", x * 2),
}


@OFTEN
@pytest.mark.parametrize("name", MADE_OF_MEMORY)
def test_code_in_c_is_given_real_objects(name, calls):
    each_often(MADE_OF_MEMORY[name], calls, (np.ones(2),), (np.arange(2.0),), (np.full(2, 7.0),))


def unpacked(x):
    a, b = x.sum()
    return a, b


def as_context(x):
    with x:
        pass


COMPLAINTS = {
    "called": lambda x: x.sum()(),
    "called array": lambda x: x(),
    "next": lambda x: next(x),
    "percent": lambda x: "%d" % x,  # noqa: UP031
    "join": lambda x: "a".join([x]),
    "three arguments": lambda x: pow(x, 2, 3),
    "float as index": lambda x: [1, 2][x.sum()],
    "array as index": lambda x: [1, 2][x],
    "reversed": lambda x: reversed(x.sum()),
    "unpacked": unpacked,
    "with": as_context,
    "pack": lambda x: struct.pack("i", x.sum()),
    "no index": lambda x: x.sum().__index__(),
    "length": lambda x: len(x.sum()),
    "iterated": lambda x: list(x.sum()),
    "contains": lambda x: 1 in x.sum(),
    "item": lambda x: x.sum().__setitem__(0, 1),
    "trunc": lambda x: math.trunc(x.astype(np.float32).sum()),
    "trunc of array": lambda x: math.trunc(x),
    "attribute": lambda x: x.sum().nothing,
    "bool index": lambda x: [1, 2][x.any()],
}


@OFTEN
@pytest.mark.parametrize("name", COMPLAINTS)
def test_complaints_name_the_types_that_the_program_has(name, calls):
    each_often(COMPLAINTS[name], calls, (np.ones(2),), (np.zeros(3),))


def test_integers_still_index():
    check(lambda x: [1, 2, 3][x.sum()], np.ones(2, np.int64))
    check(lambda x: (range(9)[x[0] : x.max()], "ab" * x[1]), np.array([1, 2, 5]))


def of_special(x):
    import scipy.special

    with scipy.special.errstate(all="warn"):
        return scipy.special.psi(x)


def special_after_division(x):
    import scipy.special

    y = x / x
    with scipy.special.errstate(all="warn"):
        z = scipy.special.psi(x)
    return y, z, scipy.special.psi(x)


@OFTEN
@pytest.mark.parametrize("function", [of_special, special_after_division])
def test_special_functions_warn_where_they_are_told_to(function, calls):
    pytest.importorskip("scipy.special")
    each_often(function, calls, (np.zeros(2),), (np.ones(3),))


def test_special_functions_heed_the_callers_state():
    special = pytest.importorskip("scipy.special")
    jitted = ufuse.jit(lambda x: special.psi(x) + 1)
    for _ in range(3):
        jitted(np.zeros(2))
    with special.errstate(all="raise"):
        for _ in range(3):
            with pytest.raises(special.SpecialFunctionError):
                jitted(np.zeros(2))
    assert np.array_equal(jitted(np.zeros(2)), special.psi(np.zeros(2)) + 1)


def tells_its_caller(x):
    warnings.warn("old", stacklevel=2)
    return x * 2


def helper_tells(x):
    return tells_its_caller(x) + 1


def names_frames(x):
    return sys._getframe().f_code.co_name, sys._getframe(1).f_code.co_name, x * 2


@OFTEN
def test_frames_of_the_package_are_not_counted(calls):
    each_often(tells_its_caller, calls, (np.ones(1),))
    each_often(helper_tells, calls, (np.ones(1),))
    jitted = ufuse.jit(names_frames)
    for _ in range(calls):
        ours = jitted(np.ones(2))
        assert ours[:2] == ("names_frames", "test_frames_of_the_package_are_not_counted")


def divides(x, n):
    return x / n


@pytest.mark.parametrize("calls", [1, 2, 3, 20])
def test_an_exception_out_of_a_recorded_call_names_the_users_frames(calls):
    jitted = ufuse.jit(divides)
    for _ in range(calls):
        jitted(np.ones(20000), 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(calls):
            with pytest.raises(RuntimeWarning) as caught:
                jitted(np.ones(20000), 0)
            assert "divides" in [frame.name for frame in traceback.extract_tb(caught.tb)]


@OFTEN
@pytest.mark.parametrize("dtype", ["?", "i1", "f2", "f4", "f8", "g", "F", "D", "G"])
def test_truth_of_one_element_is_read_as_its_dtype_has_it(dtype, calls):
    def by_truth(x):
        return x * 2 if x[:1] else x + x

    cases = [(np.array(values, dtype),) for values in ([0, 1], [1, 1], [0, 0], [0, 0])]
    cases[-1][0][:] = -cases[-1][0] if dtype not in "?" else cases[-1][0]
    each_often(by_truth, calls, *cases)


def test_one_list_in_two_places_is_one():
    def twice(x):
        made = [x * 2]
        return made, made

    jitted = ufuse.jit(twice)
    for _ in range(5):
        first, second = jitted(np.ones(2))
        assert first is second


def test_a_result_that_holds_itself():
    def endless(x):
        made = [x * 2]
        made.append(made)
        return made

    jitted = ufuse.jit(endless)
    for _ in range(5):
        made = jitted(np.ones(2))
        assert made[1] is made
        assert type(made[0]) is np.ndarray


def test_lists_that_are_nested_deep():
    nest = [np.ones(1)]
    for _ in range(400):
        nest = [nest]
    jitted = ufuse.jit(lambda x: len(x))
    assert [jitted(nest) for _ in range(3)] == [1, 1, 1]


def test_a_closure_that_names_itself():
    def outer(x):
        def fibonacci(n):
            return x if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

        return fibonacci

    jitted = ufuse.jit(outer)
    for _ in range(3):
        assert jitted(np.ones(1))(3) == 3


def test_ctrl_c_at_any_call_leaves_no_session_open():
    def function(x):
        return np.zeros(3) + x

    jitted = ufuse.jit(function)
    for at in range(1, 40):
        left = at

        def profile(frame, event, argument):
            nonlocal left
            left -= 1
            if left == 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

        sys.setprofile(profile)
        try:
            jitted(np.ones(at))
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
        assert not ufuse._core.session_active()
        assert type(jitted(np.ones(3))) is np.ndarray


def test_array_ufunc_is_asked_by_hand():
    check(lambda x: x.__array_ufunc__(np.add, "__call__", x, x), np.ones(2))
    with pytest.raises(TypeError):
        ufuse.jit(lambda x: x.__array_ufunc__(np.add, 3, x))(np.ones(1))


def test_ufuncs_of_numba():
    numba = pytest.importorskip("numba")
    thrice = numba.vectorize(lambda a: a * 3)
    jitted = ufuse.jit(lambda x: thrice(x) + 1)
    for _ in range(3):
        assert np.array_equal(jitted(np.ones(2)), [4.0, 4.0])
