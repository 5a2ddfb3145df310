"""Both ways of computing: every test here runs with compiled loops and with the interpreter."""

import pytest
from ufuse import _core


@pytest.fixture(params=["compiled", "interpreted"], autouse=True)
def backend(request):
    """The backend that is tried first."""
    with _core.backend(request.param):
        yield request.param
