"""Do typical functions still become the requests, loops and C++ that somebody has read?

For each function of ``cases.py`` a file in ``functions/`` holds what a call of it becomes: what
interrupts its loops, and the requests that the tracer makes, each with its memory, its graph (what
the shim makes of NumPy's operations), its loops and its C++ text. ``make golden`` writes all files
anew: read the diff before you commit it.
"""

import difflib
import inspect
import os
import re
from pathlib import Path

import numpy as np
import pytest
import ufuse
from cases import CASES
from ufuse import _core
from ufuse.tools import requests

FOLDER = Path(__file__).with_name("functions")


@pytest.mark.parametrize("name", CASES)
def test_a_function_becomes_what_somebody_has_read(name):
    oldest = CASES[name].numpy
    if np.lib.NumpyVersion(np.__version__) < f"{oldest}.0":
        pytest.skip(f"the file holds for NumPy {oldest} and newer")
    if CASES[name].reuses and not numpy_reuses_temporaries():
        pytest.skip("NumPy does not write over temporaries here, as beside the sanitizers")
    path, made = FOLDER / f"{name}.golden", golden(name)
    if "UFUSE_TEST_UPDATE_GOLDEN" in os.environ:
        path.write_text(made)
    kept = path.read_text() if path.exists() else ""
    changes = difflib.unified_diff(kept.splitlines(), made.splitlines(), "kept", "now", lineterm="")
    assert kept == made, "\n".join([f"{path.name}: `make golden` writes it anew", *changes])


def test_each_file_has_a_function():
    assert {path.stem for path in FOLDER.glob("*.golden")} == CASES.keys()


def golden(name):
    """The text of a function's golden file, as it should be."""
    function, make = CASES[name][:2]
    native = ufuse.jit(function)
    arguments = inspect.signature(function).bind(*make()).arguments
    rows = []
    with requests.judged_by(rows.append), _core.backend("compiled"):
        native(*arguments.values())
    reports, interruptions = _core.reports(), interruptions_of(function)
    native(*arguments.values())
    later = "replayed" if native.stats().replayed else "traced"
    parts = [
        section("function", inspect.getsource(function)),
        section("call", "\n".join([*interruptions, f"later calls are {later}"])),
    ]
    ufuncs = {}
    for number, (row, report) in enumerate(zip(rows, reports, strict=True), 1):
        groups = report["groups"]
        parts += [
            section(f"request {number}: memory", memory(row, arguments)),
            section(f"request {number}: graph", with_stable_numbers(report["graph"], ufuncs)),
            section(
                f"request {number}: schedule", "\n".join(group["schedule"] for group in groups)
            ),
            section(f"request {number}: loops", "\n".join(group["loops"] for group in groups)),
            section(f"request {number}: cpp", "\n".join(group["source"] for group in groups)),
        ]
    return "\n".join(parts)


def numpy_reuses_temporaries():
    """Does ``a * b + c`` write its result over ``a * b``? NumPy looks at who calls it."""
    addresses = []

    def temporary():
        made = np.zeros(2**15)
        addresses.append(made.ctypes.data)
        return made

    return (temporary() + 1.0).ctypes.data == addresses[0]


def section(name, text):
    return f"[{name}]\n{text.rstrip()}\n"


def interruptions_of(function):
    """What interrupted the loops of the last call, line by line: where, what, and why."""
    code = function.__code__
    for event in _core.events():
        if event["kind"] != "run":
            inside = event["file"] == code.co_filename
            where = f"line {event['line'] - code.co_firstlineno + 1}" if inside else "in NumPy"
            yield f"{where}: {event['kind']} {event['reason']} {event['detail']}".rstrip()


def memory(row, arguments):
    """Operands, parameters and results of a request, line by line."""
    lines = []
    for i, (array, address) in enumerate(zip(row["operands"], row["operands_at"], strict=True)):
        lines.append(f"input {i}: {typed(array)} {place(address, arguments)}")
    for i, bits in enumerate(row["parameters"]):
        dtype = np.dtype(re.search(rf"= param {i} : (\w+)\[", row["graph"])[1])
        lines.append(f"param {i}: {dtype} {np.frombuffer(bits, dtype, 1)[0]!s}")
    results = zip(row["results"], row["overwritten"], row["results_at"], strict=True)
    for i, (array, overwritten, address) in enumerate(results):
        where = f"over input {overwritten}" if overwritten >= 0 else place(address, arguments)
        lines.append(f"output {i}: {typed(array)} strides {list(array.strides)} {where}")
    return "\n".join(lines)


def typed(array):
    return f"{array.dtype}{list(array.shape)}"


def place(address, arguments):
    """Where memory begins: in which argument, and at which of its bytes."""
    for name, value in arguments.items():
        if isinstance(value, np.ndarray) and 0 <= address - value.ctypes.data < value.nbytes:
            return f"in {name} from byte {address - value.ctypes.data}"
    return "in memory of its own"


def with_stable_numbers(graph, known):
    """A graph whose ufuncs have numbers from 0 on: others depend on what the process met before."""

    def renumbered(match):
        return f"ufunc {known.setdefault(match[1], len(known))}."

    return re.sub(r"\bufunc (\d+)\.", renumbered, graph)
