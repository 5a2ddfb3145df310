"""Does the lint over the arrows of includes and imports go red where it should, and only there?"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    script = ROOT / ".ci" / "lint_layers.py"
    return subprocess.run(
        [sys.executable, str(script), str(root)], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("ir/graph.cpp", '#include "numpy_shim/promote.h"'),
        ("ir/support/strides.cpp", '#include "ir/interp/interp.h"'),
        ("ir/scalar/prelude.h", "#include <cmath>"),
        ("ir/scalar/prelude.h", '#include "ir/dtype.h"'),
        ("ir/graph.cpp", "#include <xtensor/xarray.hpp>"),
        ("ir/graph.cpp", '#include "codegen/runtime/folds.h"'),
        ("ir/graph.cpp", '#include "graph.h"'),
        ("ir/graph.cpp", "#include <ir/graph.h>"),
        ("numpy_shim/ufunc.cpp", '#include "tracer/storage.h"'),
        ("numpy_shim/ufunc.cpp", "#include <numpy/arrayobject.h>"),
        ("tracer/session.cpp", '  #  include "codegen/compile.h"'),
        ("tracer/session.h", "#include <Python.h>"),
        ("codegen/compile.cpp", '#include "tracer/session.h"'),
        ("codegen/runtime/launch.cpp", "#include <pybind11/pybind11.h>"),
        ("tests/cpp/test_graph.cpp", '#include "pyext/bind/module.h"'),
        ("pyext/ufuse/source/text.py", "from ufuse.tracing import twin"),
        ("pyext/ufuse/tracing/run.py", "    from ufuse import _core, jit"),
        ("pyext/ufuse/tracing/run.py", "from ufuse.tools.explain import Note"),
    ],
)
def test_forbidden_include_is_reported(tmp_path: Path, source: str, line: str) -> None:
    path = tmp_path / source
    path.parent.mkdir(parents=True)
    path.write_text(f"// a comment\n{line}\n")
    result = lint(tmp_path)
    assert result.returncode == 1
    assert result.stdout.startswith(f"{source}:2: ")


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("ir/graph.cpp", '#include "ir/support/hash.h"'),
        ("ir/inner_loops.cpp", '#include "ir/scalar/prelude.h"'),
        ("ir/interp/interp.cpp", "#include <xtensor/xarray.hpp>"),
        ("ir/interp/interp.cpp", '#include "ir/graph.h"'),
        ("tracer/session.cpp", '#include "numpy_shim/promote.h"'),
        ("codegen/emit/cpp.cpp", '#include "embedded/prelude.h"'),
        ("pyext/bind/module.cpp", "#include <pybind11/pybind11.h>"),
        ("pyext/bind/module.cpp", '#include "codegen/compile.h"'),
        ("tests/cpp/test_graph.cpp", "#include <doctest/doctest.h>"),
        ("pyext/ufuse/tracing/run.py", "from ufuse import _core"),
        ("pyext/ufuse/tracing/run.py", "from ufuse.source.text import nested"),
        ("pyext/ufuse/tools/verify.py", "from ufuse.function import Function"),
    ],
)
def test_allowed_include_passes(tmp_path: Path, source: str, line: str) -> None:
    path = tmp_path / source
    path.parent.mkdir(parents=True)
    path.write_text(f"{line}\n")
    assert lint(tmp_path).returncode == 0


def test_this_checkout_follows_the_arrows() -> None:
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout
