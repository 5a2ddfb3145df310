"""Both ways of computing: every test here runs with compiled loops and with the interpreter.

A module whose tests are not about values, but about who sees what and when, says
``BACKENDS = ["compiled"]``.
"""

import pytest
from ufuse import _core

BOTH = ["compiled", "interpreted"]


@pytest.fixture(params=BOTH, autouse=True)
def backend(request):
    """The backend that is tried first."""
    with _core.backend(request.param):
        yield request.param


def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if _is_wanted(item)]


def _is_wanted(item):
    backends = getattr(item.module, "BACKENDS", None)
    return backends is None or item.callspec.params["backend"] in backends
