"""Do all includes and imports follow the arrows between the folders?

``pyext -> tracer -> numpy_shim -> ir <- codegen <- pyext``: the table below says what each folder
may include; only pyext sees Python, NumPy's headers or pybind11. Within ir, the interpreter builds
on the rest and not the other way round, and the scalar semantics, which kernels start with as a
text, include nothing. Within the Python package, ``tools -> tracing -> source``;
only tools may import what stands beside these rooms, other than ``_core``. Run by `make lint` and
.ci/run; tests/house/test_lint_layers.py shows that it fails where it should.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

MAY_INCLUDE = {
    "ir": {"ir", "ir/scalar"},
    "ir/scalar": set(),
    "ir/interp": {"ir", "ir/interp", "ir/scalar"},
    "numpy_shim": {"ir", "numpy_shim"},
    "tracer": {"ir", "numpy_shim", "tracer"},
    # "embedded" holds the texts that cmake/UfuseEmbedText.cmake generates.
    "codegen": {"ir", "codegen", "embedded"},
    "pyext": {"ir", "ir/interp", "numpy_shim", "tracer", "codegen", "pyext", "embedded"},
    "tests": {
        "ir",
        "ir/interp",
        "ir/scalar",
        "numpy_shim",
        "tracer",
        "codegen",
        "tests",
        "embedded",
    },
}
# Of the rooms of the Python package.
PACKAGE = "pyext/ufuse"
MAY_IMPORT = {"source": {"source"}, "tracing": {"source", "tracing"}}
SUFFIXES = {".h", ".hpp", ".cpp", ".def", ".inc"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
PYTHON_HEADER = re.compile(r"^(Python\.h|numpy/|pybind11/)")
IMPORT = re.compile(r"^\s*(?:from ufuse(?:\.(\w+))?\S* import (.+)|import (ufuse\b.*))")
XTENSOR_HEADER = re.compile(r"^(xtensor|xtl|xsimd)/")


def layer_of(path: str) -> str | None:
    """The row of MAY_INCLUDE a path belongs to (relative to the root); None outside our folders."""
    return max((name for name in MAY_INCLUDE if path.startswith(name + "/")), key=len, default=None)


def complaint(source: str, bracket: str, header: str) -> str | None:
    """What is wrong with one include of one file, or None."""
    layer = layer_of(source)
    assert layer is not None
    if layer == "ir/scalar":
        return "the scalar semantics include nothing: kernels start with their text"
    if PYTHON_HEADER.match(header):
        return None if layer == "pyext" else "only pyext may include Python, NumPy or pybind11"
    if XTENSOR_HEADER.match(header):
        return None if layer in ("ir/interp", "pyext") else "only ir/interp may include xtensor"
    target = "embedded" if header.startswith("embedded/") else layer_of(header)
    if bracket == "<":
        return None if target is None else "headers of the project are included with quotes"
    if target is None:
        return "headers of the project are named from the repository's root"
    if target not in MAY_INCLUDE[layer]:
        return f"{layer} may not include {target}"
    return None


def wrong_import(room: str, line: str) -> str | None:
    """What is wrong with a line of a file in one of the package's rooms, or None."""
    found = IMPORT.match(line)
    if found is None or room not in MAY_IMPORT:
        return None
    imported = {found[1]} if found[1] else set(re.findall(r"\w+", found[2] or found[3]))
    wrong = imported - MAY_IMPORT[room] - {"_core"}
    return f"{room} may not import {', '.join(sorted(wrong))}" if wrong else None


def violations(root: Path) -> Iterator[str]:
    """One ``file:line: text`` for each include or import under ``root`` that breaks a rule."""
    for folder in sorted({name.split("/")[0] for name in MAY_INCLUDE}):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            source = path.relative_to(root).as_posix()
            for number, line in enumerate(path.read_text().splitlines(), start=1):
                found = INCLUDE.match(line)
                wrong = found and complaint(source, found[1], found[2])
                if found and wrong:
                    yield f"{source}:{number}: {wrong}: {found[2]}"
    for path in sorted((root / PACKAGE).rglob("*.py")):
        room = path.relative_to(root / PACKAGE).parts[0]
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            if complained := wrong_import(room, line):
                yield f"{path.relative_to(root).as_posix()}:{number}: {complained}"


def main(root: Path) -> int:
    found = list(violations(root))
    print("\n".join(found) if found else "arrows of includes and imports: all as designed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1]))
