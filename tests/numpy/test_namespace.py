"""Is ``import ufuse.numpy as np`` NumPy to those who look closer?

What the functions are equal to, what objects that NumPy asks see while a call is traced, and what
happens to lists and modules. (``test_seen.py`` has the plain calls and the check mode.)
"""

import pickle
import warnings

import numpy as np
import pytest
import ufuse
import ufuse.numpy as unp

BACKENDS = ["compiled"]

core, ours = (np._core, unp._core) if hasattr(np, "_core") else (np.core, unp.core)


def test_functions_are_equal_to_numpys():
    assert unp.sum == np.sum
    assert np.add == unp.add
    assert unp.add.reduce == np.add.reduce
    assert unp.add != np.subtract
    assert {np.sum: 1}[unp.sum] == 1
    assert [np.sin, np.cos].index(unp.cos) == 1
    assert unp.add is ours.umath.add
    assert unp.abs is unp.absolute
    assert pickle.loads(pickle.dumps(unp.sin)) is unp.sin


def test_tables_of_overrides():
    handled = {unp.sum: "sum", unp.concatenate: "concatenate"}

    class Duck:
        def __array_function__(self, func, types, args, kwargs):
            return handled.get(func, NotImplemented)

    assert unp.sum(Duck()) == "sum"
    assert unp.concatenate([Duck(), [1]]) == "concatenate"
    with pytest.raises(TypeError, match=r"no implementation found for 'numpy\.mean'"):
        unp.mean(Duck())


def test_functions_are_arguments():
    x = np.arange(6.0).reshape(2, 3)
    assert unp.apply_along_axis(unp.sum, 1, x).tolist() == [3.0, 12.0]
    assert unp.vectorize(unp.add)(x, 1).tolist() == (x + 1).tolist()
    assert unp.fromfunction(unp.add, (2, 2)).tolist() == [[0, 1], [1, 2]]


def test_objects_that_numpy_asks_have_real_arrays():
    seen = []

    class Convertible:
        def __array__(self, dtype=None, copy=None):
            seen.append(unp.zeros(3) + 1)
            return unp.multiply(seen[-1], 2)

    x = unp.add(Convertible(), np.arange(3))
    assert x.tolist() == [2.0, 3.0, 4.0]
    assert type(x) is type(seen[0]) is np.ndarray
    assert not ufuse._core.session_active()


def test_jitted_functions_may_use_it():
    f = ufuse.jit(lambda x: unp.sqrt(x) + unp.ones(3) * unp.sum(x))
    x = np.arange(3.0)
    assert f(x).tobytes() == (np.sqrt(x) + np.ones(3) * np.sum(x)).tobytes()


def test_lists_stay_the_callers():
    inner = []
    held = unp.array([inner, None], dtype=object)
    assert held[0] is inner


def test_a_call_that_fails_inside_leaves_nothing_open(monkeypatch):
    def fail(*_):
        raise RuntimeError("inside")

    with monkeypatch.context() as patched:
        patched.setattr(ufuse._core, "finish", fail)
        with pytest.raises(RuntimeError, match="inside"):
            unp.add(1, np.ones(3))
    assert not ufuse._core.session_active()
    assert unp.add(1, np.ones(1)).tolist() == [2.0]


def test_modules_hold_what_numpys_hold():
    ufuncs = [name for name, value in vars(core.umath).items() if isinstance(value, np.ufunc)]
    assert [name for name in ufuncs if not isinstance(vars(ours.umath)[name], np.ufunc)] == []
    assert unp.lib.stride_tricks.__name__ == "ufuse.numpy.lib.stride_tricks"


def test_deprecated_names_warn_each_time():
    told = []
    for module in (np, unp):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                getattr(module, "chararray", None)  # deprecated in NumPy 2.4
        told.append([str(w.message) for w in caught])
    assert told[0] == told[1]


def test_what_is_set_on_a_function_is_set_on_numpys():
    def helper():
        """Of NumPy's kind."""

    from ufuse.namespace import Eager

    made = Eager(helper, "helper")
    made.__doc__ = "New."
    assert helper.__doc__ == made.__doc__ == "New."
    made.extra = 1
    assert helper.extra == made.extra == 1
    del made.extra
    assert not hasattr(helper, "extra")


def test_calls_are_replayed():
    x = np.arange(6.0)
    calls = unp.multiply._dispatcher.counts[0]
    for n in range(20):
        found = unp.multiply(x, n % 3)
        assert found.tobytes() == (x * (n % 3)).tobytes()
        assert found is not x
        x[0] += 1
    assert unp.multiply._dispatcher.counts[0] >= calls + 17


@pytest.mark.parametrize("give", ["out", "place"])
def test_replays_write_where_they_are_told(give):
    for _ in range(4):
        x, out = np.arange(4.0), np.full(4, 7.0)
        made = unp.add(x, 1, out=out) if give == "out" else unp.add(x, 1, out)
        assert made is out
        assert out.tolist() == [1.0, 2.0, 3.0, 4.0]
        assert unp.add(x, 1, out=out, where=x > 1) is out
        unp.copyto(out, 5, where=[True, False, True, False])
        assert out.tolist() == [5.0, 2.0, 5.0, 4.0]


def test_warnings_are_about_the_line_of_each_call():
    zeros = np.zeros(3)
    lines = []
    for _ in range(3):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            unp.divide(1.0, zeros)
            unp.divide(1.0, zeros)
            unp.mean(zeros[:0])
        assert {warning.filename for warning in seen[:2]} == {__file__}
        lines.append([warning.lineno for warning in seen[:2]])
        assert any("Mean of empty slice" in str(warning.message) for warning in seen)
    assert lines == [[lines[0][0], lines[0][0] + 1]] * 3
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        unp.divide(1.0, zeros)
    with np.errstate(divide="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert unp.isinf(unp.divide(1.0, zeros)).all()


def test_deprecations_of_numpys_own_functions_are_about_the_line_of_the_call():
    if not hasattr(np, "in1d"):
        pytest.skip("this NumPy has no such function any more")
    for _ in range(4):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            unp.in1d([1, 2], [2])
        assert {warning.filename for warning in seen} <= {__file__}


def test_functions_that_numpy_is_given_run_in_each_call():
    calls = []

    def total(row):
        calls.append(row.sum())
        return row.sum() + len(calls) * 100

    x = np.arange(6.0).reshape(2, 3)
    for n in range(5):
        assert unp.apply_along_axis(total, 1, x).tolist() == [
            3.0 + 100 * (2 * n + 1),
            12.0 + 100 * (2 * n + 2),
        ]
        assert unp.apply_along_axis(unp.sum, 1, x).tolist() == [3.0, 12.0]


def test_draws_and_clocks_go_on():
    unp.random.seed(3)
    ours = [float(unp.random.random()) for _ in range(5)]
    np.random.seed(3)
    assert ours == [np.random.random() for _ in range(5)]


def test_state_that_numpy_keeps_is_asked_for_each_time():
    for precision in (3, 5, 3):
        with unp.printoptions(precision=precision):
            assert unp.get_printoptions()["precision"] == precision
            assert unp.array2string(np.array([1 / 3])) == f"[{1 / 3:.{precision}f}]"
    for mode in ("ignore", "warn", "ignore"):
        with np.errstate(over=mode):
            assert unp.geterr()["over"] == mode


def test_errors_have_no_frames_of_ours():
    for _ in range(3):
        with pytest.raises(ValueError, match="broadcast") as caught:
            unp.add(np.ones(2), np.ones(3))
        assert [frame.path for frame in caught.traceback][-1].name == "test_namespace.py"


def test_functions_are_no_methods():
    class Model:
        total, absolute = unp.sum, unp.abs

    assert Model().absolute(-2) == 2
    assert Model.absolute(-2) == 2
