"""Which Python packages does a virtual environment of this project need?

Prints the requirements that pyproject.toml names, one per line, for ``pip install -r``. The
arguments say which: ``build`` (the build system's), ``run`` (the package's own) or the name of an
extra. The Makefile calls it; no list of packages stands anywhere else.
"""

import sys
import tomllib
from pathlib import Path


def requirements(names: list[str]) -> list[str]:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    groups = {
        "build": project["build-system"]["requires"],
        "run": project["project"]["dependencies"],
        **project["project"]["optional-dependencies"],
    }
    return [line for name in names for line in groups[name]]


if __name__ == "__main__":
    print("\n".join(requirements(sys.argv[1:])))
