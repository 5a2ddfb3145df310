"""What every case here begins with."""

import pytest
from place import Place


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)
