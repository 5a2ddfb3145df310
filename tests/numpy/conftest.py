"""Both ways of computing: every test here runs with compiled loops and with the interpreter.

A module whose tests are not about values, but about who sees what and when, says
``BACKENDS = ["compiled"]``. Each loop takes a tenth of a second to compile: of tests that cross
many operations, dtypes and layouts a module says how many share one that runs compiled
(``SHARES``); ``--every`` runs them all.
"""

import zlib

import pytest
from ufuse import _core

BOTH = ["compiled", "interpreted"]


@pytest.fixture(params=BOTH, autouse=True)
def backend(request):
    """The backend that is tried first."""
    with _core.backend(request.param):
        yield request.param


def pytest_collection_modifyitems(config, items):
    every = config.getoption("every")
    items[:] = [item for item in items if _is_wanted(item, every)]


def _is_wanted(item, every):
    if not hasattr(item, "callspec"):
        return True
    backend = item.callspec.params.get("backend")
    backends = getattr(item.module, "BACKENDS", None)
    if backends is not None and backend not in backends:
        return False
    share = getattr(item.module, "SHARES", {}).get(item.originalname, 1)
    return every or backend != "compiled" or zlib.crc32(item.name.encode()) % share == 0
