"""Does every function of NumPy give its own answer inside a jitted function?"""

import pytest
from functions import cases
from same import check

CASES = list(cases())


@pytest.mark.parametrize(
    ("function", "arguments"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_function(function, arguments):
    check(function, *arguments)
