"""Which promotion does NumPy 1 follow while the shim is compared with it?"""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def nep50():
    """NEP 50, which is what the shim follows on every NumPy; NumPy 1 has it behind a switch."""
    if not hasattr(np, "_set_promotion_state"):
        yield
        return
    before = np._get_promotion_state()
    np._set_promotion_state("weak")
    yield
    np._set_promotion_state(before)
