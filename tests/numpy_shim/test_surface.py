"""Is surface.def complete for this NumPy, and does it agree with the tables it refers to?"""

import importlib
import pathlib
import re
import types

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROW = re.compile(r'^SURFACE\("([^"]+)",\s*"([^"]+)",\s*(\w+),\s*"([^"]+)"\)$', re.MULTILINE)
ROWS = ROW.findall((ROOT / "numpy_shim/surface.def").read_text())
KNOWN = {(module, name) for module, name, _, _ in ROWS}


def c_functions(module):
    """Public functions without Python source (an array_function dispatcher may hide one)."""
    for name, value in vars(importlib.import_module(module)).items():
        code = getattr(value, "__wrapped__", value)
        plain = (types.FunctionType, types.ModuleType, type, np.ufunc)
        if not name.startswith("_") and callable(value) and not isinstance(code, plain):
            yield name


@pytest.mark.parametrize("module", ["numpy", "numpy.linalg", "numpy.fft", "numpy.random"])
def test_every_c_function_has_a_row(module):
    if (module, "*") not in KNOWN:
        assert [name for name in c_functions(module) if (module, name) not in KNOWN] == []


def test_every_method_has_a_row():
    methods = {n for n, v in vars(np.ndarray).items() if callable(v) and not n.startswith("_")}
    assert sorted(methods - {name for module, name in KNOWN if module == "ndarray"}) == []


def test_rows_are_well_formed():
    written = (ROOT / "numpy_shim/surface.def").read_text().count("\nSURFACE(")
    assert len(ROWS) == written == len(KNOWN)
    assert {form for _, _, form, _ in ROWS} == {"Native", "Twin", "NumPy"}


def test_reasons_are_rows_of_the_table_of_reasons():
    reasons = set(re.findall(r"^REASON\((\w+),", (ROOT / "tracer/reasons.def").read_text(), re.M))
    assert {what for _, _, form, what in ROWS if form == "NumPy"} <= reasons
    sources = (path.read_text() for path in (ROOT / "numpy_shim").glob("*.cpp"))
    thrown = {r for text in sources for r in re.findall(r'Unsupported\("(\w+)"', text)}
    assert thrown
    assert thrown <= reasons


def test_handlers_of_the_package_are_native():
    text = (ROOT / "pyext/ufuse/tracing/handlers.py").read_text()
    names = {
        n for args in re.findall(r"@native\(([^)]*)\)", text) for n in re.findall(r'"(\w+)"', args)
    }
    native = {name for module, name, form, _ in ROWS if module == "numpy" and form == "Native"}
    assert names <= native
