"""The programs of a checkout of NPBench (github.com/spcl/npbench), as its ``bench_info`` says.

Nothing of it is imported but the NumPy version of each program and the code that makes its data.
"""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.programs import Program


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"no Python module: {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _program(root: Path, info: dict[str, Any], preset: str) -> Program:
    folder = root / "npbench" / "benchmarks" / info["relative_path"]
    name = info["module_name"]
    function = getattr(_module(folder / f"{name}_numpy.py"), info["func_name"])

    def arguments() -> tuple[Any, ...]:
        values = dict(info["parameters"][preset])
        if info.get("init"):
            init = info["init"]
            make = getattr(_module(folder / f"{name}.py"), init["func_name"])
            made = make(*(values[argument] for argument in init["input_args"]))
            names = init["output_args"]
            values.update(zip(names, made if len(names) > 1 else (made,), strict=True))
        return tuple(values[argument] for argument in info["input_args"])

    return Program(info["short_name"], lambda decorate: decorate(function), arguments)


def programs(root: Path, preset: str) -> dict[str, Program]:
    """All programs of the checkout, with the data of this preset ("S", "M", "L" or "paper")."""
    found = {}
    for path in sorted((root / "bench_info").glob("*.json")):
        program = _program(root, json.loads(path.read_text())["benchmark"], preset)
        found[program.name] = program
    return found
