"""Where NumPy's and SciPy's own tests tell ufuse from NumPy: test ids by reason.

``SWAPPED`` is about tests with ``ufuse.numpy`` in NumPy's place, ``JITTED`` about test functions
under ``ufuse.jit``.

A row stands for a module, a class, a test or one parameter set; "NumPy 1: ", "NumPy 2: " or
"NumPy 2.5: " before it says that the row is for such versions only. A row whose tests do not differ
makes the run fail.
"""

SWAPPED: dict[str, list[str]] = {
    "counts references to a class or dtype, which a recorded call holds": [
        "core/test_api.py::test_array_array",
    ],
    "asks `is` of a function or module: ufuse.numpy's stands for NumPy's and is equal to it": [
        "NumPy 1: core/test_multiarray.py::TestBinop::test_pow_override_with_errors",
        "NumPy 2.2: core/test_multiarray.py::TestBinop::test_pow_override_with_errors",
        "core/test_overrides.py::TestArrayLike",
        "core/test_overrides.py::test_function_like",
        "core/test_records.py::TestRecord::test_pickle_void",
        "core/test_regression.py::TestRegression::test__array_namespace__",
        "core/test_regression.py::TestRegression::test_load_ufunc_pickle",
        "core/test_scalar_methods.py::TestDevice::test___array_namespace__",
        "core/test_ufunc.py::TestUfunc::test_pickle_withstring",
        "core/test_umath.py::TestSpecialMethods::test_wrap",
    ],
    "looks into a function that is C code in NumPy": [
        "core/test_multiarray.py::TestTextSignatures::test_c_func_dispatcher_text_signature",
        "NumPy 2: core/test_umath.py::TestSpecialMethods::test_ufunc_docstring",
    ],
    "puts another thing in the place of something of NumPy's, which ufuse.numpy does not see": [
        "core/test_custom_dtypes.py::TestSFloat::test_np_save_load",
        "core/test_custom_dtypes.py::test_type_pickle",
        "core/test_multiarray.py::TestCTypes::test_ctypes_is_not_available",
        "core/test_ufunc.py::TestUfunc::test_pickle_name_is_qualname",
        "NumPy 2.5: core/test_umath.py::TestReplaceLoopBySignature",
    ],
    "looks up names in its caller's frame, where ufuse's own stands": [
        "matrixlib/test_defmatrix.py::TestCtor::test_basic",
        "matrixlib/test_defmatrix.py::TestCtor::test_bmat_nondefault_str",
    ],
}

JITTED: dict[str, list[str]] = {
    "replaces a ufunc's loop by C code, which compiled loops do not see": [
        "NumPy 2.5: core/test_umath.py::TestReplaceLoopBySignature",
    ],
}
