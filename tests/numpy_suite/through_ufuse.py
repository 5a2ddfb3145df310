"""How does a test module of NumPy or SciPy come to test ufuse?

A pytest plugin (``-p through_ufuse``) with two ways. "swapped": while NumPy's test modules are
imported, what they import from ``numpy`` comes from ``ufuse.numpy``; ``numpy.testing`` and the
compiled helpers stay NumPy's. "jitted": each test function is decorated with ``ufuse.jit`` and
called several times. What became of each test is written to a file, line by line, so that a crash
leaves its place behind. ``suite.py`` starts such a pytest, tells it what to do by ``NUMPY_SUITE``
and reads the file.
"""

import ast
import gc
import itertools
import json
import os
import sys
import zlib
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path

import numpy as np
import pytest
import ufuse

# {"way": "plain", "swapped" or "jitted", "calls": how often each test function is called,
#  "log": file to write, "only": test ids or None for all, "share": one in how many of a module with
#  many tests}
TASK = json.loads(os.environ["NUMPY_SUITE"])
NUMPY = Path(np.__file__).parent
MANY = 400  # tests of a module
COLLECT_EACH = 50  # tests
STARTED = itertools.count(1)


class Imports(ast.NodeTransformer):
    """``numpy`` becomes ``ufuse.numpy`` in import statements, wherever they stand."""

    def visit_Import(self, node):
        """``import numpy as np``, ``import numpy._core.umath as ncu``, ``import numpy.linalg``."""
        made = []
        for alias in node.names:
            if not _is_numpy(alias.name):
                made.append(ast.Import([alias]))
            elif alias.asname:
                made.append(ast.Import([ast.alias(f"ufuse.{alias.name}", alias.asname)]))
            else:  # binds the first part of the name
                made.append(ast.Import([ast.alias(f"ufuse.{alias.name}", "_")]))
                made.append(ast.Import([ast.alias("ufuse.numpy", "numpy")]))
        return [ast.copy_location(statement, node) for statement in made]

    def visit_ImportFrom(self, node):
        """``from numpy import arange``."""
        if node.level == 0 and _is_numpy(node.module):
            node.module = f"ufuse.{node.module}"
        return node


def _is_numpy(module):
    return module.partition(".")[0] == "numpy" and not module.startswith("numpy.testing")


class Loader(SourceFileLoader):
    """Compiles a test module with other imports, and keeps no byte code of it."""

    def source_to_code(self, data, path, *, _optimization=-1):
        tree = Imports().visit(ast.parse(data, path))
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)

    def path_stats(self, path):
        raise OSError("the byte code of the file itself is not what is asked for")


class Finder:
    """Finds NumPy's test modules."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if not name.rpartition(".")[2].startswith("test_"):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin is None or not spec.origin.startswith(str(NUMPY)):
            return None
        spec.loader = Loader(name, spec.origin)
        return spec


def id_of(item):
    """``core/test_umath.py::TestLog::test_log``: the same for all versions and places.

    Of SciPy: ``scipy.signal/test_windows.py::TestKaiser::test_basic``.
    """
    package = item.path.parent.parent
    folder = package.name.removeprefix("_")
    if NUMPY not in item.path.parents:
        folder = f"{package.parent.name}.{folder}"
    # A parameter that is a module shows its name there.
    rest = [part.replace("ufuse.numpy", "numpy") for part in item.nodeid.split("::")[1:]]
    return "::".join([f"{folder}/{item.path.name}", *rest])


def _note(**what):
    with open(TASK["log"], "a") as log:
        log.write(json.dumps(what) + "\n")


def pytest_configure(config):
    if TASK["way"] == "swapped":
        sys.meta_path.insert(0, Finder)
    # Some tests count references: garbage of earlier ones is collected between tests only.
    gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    function = pyfuncitem.obj
    if TASK["way"] == "jitted":
        function = ufuse.jit(function)
    names = pyfuncitem._fixtureinfo.argnames
    for _ in range(TASK["calls"]):
        function(**{name: pyfuncitem.funcargs[name] for name in names})
    return True


def pytest_collection_modifyitems(config, items):
    for item in items:
        item.user_properties.append(("id", id_of(item)))
    if len(items) > MANY and TASK["share"] > 1:
        items[:] = [item for item in items if _number(item) % TASK["share"] == 0]
    if TASK["only"] is not None:
        only = set(TASK["only"])
        items[:] = [item for item in items if dict(item.user_properties)["id"] in only]


def _number(item):
    """The same in each process, and in each version of NumPy that has the test."""
    return zlib.crc32(dict(item.user_properties)["id"].encode())


def pytest_collectreport(report):
    if report.failed:
        _note(error=report.longreprtext)
    elif report.skipped:
        _note(skipped=str(report.longrepr[-1]))


def pytest_runtest_setup(item):
    _note(start=dict(item.user_properties)["id"])
    if next(STARTED) % COLLECT_EACH == 0:
        gc.collect()


def pytest_runtest_logreport(report):
    # A test has passed when it was called; set-up and tear-down count where they go wrong.
    if report.when == "call" or not report.passed:
        text = report.longreprtext if report.failed else ""
        _note(id=dict(report.user_properties)["id"], outcome=report.outcome, text=text)
