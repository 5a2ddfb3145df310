"""Is surface.def complete for this NumPy, and does it agree with the tables it refers to?"""

import contextlib
import importlib
import pathlib
import re
import types

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROW = re.compile(
    r'^SURFACE\("([^"]+)",\s*"([^"]+)",\s*(\w+),\s*"([^"]+)",\s*(\w+\(\d?\))\)', re.MULTILINE
)
ROWS = ROW.findall((ROOT / "numpy_shim/surface.def").read_text())
KNOWN = {(module, name) for module, name, *_ in ROWS}


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


def test_every_place_of_out_is_told():
    """As the methods' documentation has it; the array itself stands at 0."""
    writes = {name: each for module, name, _, _, each in ROWS if module == "ndarray"}
    looked_at = 0
    for name, method in vars(np.ndarray).items():
        arguments = re.search(r"\(([^)]*)\)", getattr(method, "__doc__", None) or "")
        names = re.findall(r"(\w+)(?:=[^,]*)?(?:,|$)", arguments[1]) if arguments else []
        if callable(method) and "out" in names:
            assert writes[name] == f"out({names.index('out') + 1})", name
            looked_at += 1
    assert looked_at > 15


def test_what_writes_to_its_array_is_told():
    def arguments(name):
        return {
            "fill": (7,),
            "put": (0, 7),
            "itemset": (0, 7),
            "partition": (2,),
            "byteswap": (True,),
            "setfield": (7, float),
            "resize": ((2,),),
        }.get(name, ())

    told = {
        name for module, name, _, _, each in ROWS if (module, each) == ("ndarray", "an_argument()")
    }
    written = set()
    for name in sorted({name for module, name, *_ in ROWS if module == "ndarray"} - {"setflags"}):
        x = np.array([3.0, 2.0, 1.0])
        with contextlib.suppress(AttributeError, TypeError, ValueError):
            getattr(x, name)(*arguments(name))
        if x.tolist() != [3.0, 2.0, 1.0]:
            written.add(name)
    assert written <= told
    assert told - written <= {"setflags", "itemset"}  # NumPy 2 has no itemset


def test_rows_are_well_formed():
    written = (ROOT / "numpy_shim/surface.def").read_text().count("\nSURFACE(")
    assert len(ROWS) == written == len(KNOWN)
    assert {form for _, _, form, *_ in ROWS} == {"Native", "Twin", "NumPy", "Repeated"}


def test_reasons_are_rows_of_the_table_of_reasons():
    rows = re.findall(
        r"^REASON\((\w+), (\w+),", (ROOT / "ir/support/reasons.def").read_text(), re.MULTILINE
    )
    reasons = {name for _, name in rows}
    assert [(words.title().replace("_", ""), words) for _, words in rows] == rows
    assert {what for _, _, form, what, _ in ROWS if form in ("NumPy", "Repeated")} <= reasons


def test_handlers_of_the_package_are_native():
    text = (ROOT / "pyext/ufuse/tracing/handlers.py").read_text()
    names = {
        n for args in re.findall(r"@native\(([^)]*)\)", text) for n in re.findall(r'"(\w+)"', args)
    }
    native = {name for module, name, form, *_ in ROWS if module == "numpy" and form == "Native"}
    assert names <= native
