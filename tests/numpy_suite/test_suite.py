"""Do NumPy's own tests pass with ``ufuse.numpy``, and those of NumPy and SciPy under ``ufuse.jit``?

The modules on ufuncs, indexing, reductions, shapes and the protocols, of those with many tests one
test in four; README.md tells how to run all of them.
"""

import pytest
import suite

SWAPPED = [
    "core/test_multiarray.py",
    "core/test_umath.py",
    "lib/test_function_base.py",
    "core/test_ufunc.py",
    "core/test_numeric.py",
    "core/test_overrides.py",
    "core/test_indexing.py",
    "core/test_regression.py",
    "core/test_scalarmath.py",
    "core/test_shape_base.py",
    "core/test_item_selection.py",
    "core/test_array_coercion.py",
    "core/test_nep50_promotions.py",
    "core/test_errstate.py",
    "core/test_api.py",
    "core/test_einsum.py",
    "lib/test_arraysetops.py",
    "lib/test_shape_base.py",
    "lib/test_nanfunctions.py",
    "lib/test_twodim_base.py",
    "lib/test_stride_tricks.py",
    "lib/test_type_check.py",
    "lib/test_ufunclike.py",
    "linalg/test_linalg.py",
    "fft/test_helper.py",
]


SHARE = 4
JITTED = [
    "core/test_numeric.py",
    "core/test_indexing.py",
    "core/test_shape_base.py",
    "lib/test_twodim_base.py",
    "lib/test_stride_tricks.py",
    "polynomial/test_chebyshev.py",
    "scipy.signal/test_windows.py",
]


@pytest.mark.parametrize("module", SWAPPED)
def test_with_ufuse_numpy(module, record_property):
    check(module, "swapped", record_property)


@pytest.mark.parametrize("module", JITTED)
def test_decorated(module, record_property):
    check(module, "jitted", record_property)


def check(module, way, record_property):
    if suite.path_of(module) is None:
        pytest.skip("there are no such tests here")
    found = suite.compare(module, way, share=SHARE)
    record_property("told", f"{way}: {found}")
    if problems := found.problems():
        pytest.fail("\n\n".join(problems), pytrace=False)
    assert found.passed
