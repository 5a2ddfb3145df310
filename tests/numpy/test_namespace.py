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
