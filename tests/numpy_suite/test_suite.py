"""Do NumPy's own tests pass with ``ufuse.numpy``?

The modules on ufuncs, indexing, reductions, shapes and the protocols; README.md tells how to run
all of them.
"""

import pytest
import suite

MODULES = [
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


@pytest.mark.parametrize("module", MODULES)
def test_numpys_own(module, record_property):
    if suite.path_of(module) is None:
        pytest.skip("this NumPy has no such tests")
    found = suite.compare(module)
    record_property("told", str(found))
    if problems := found.problems():
        pytest.fail("\n\n".join(problems), pytrace=False)
    assert found.passed
