"""Do type checkers know what ``ufuse.jit`` makes, and do the README's examples pass them?"""

import re
import shutil
import sys
from pathlib import Path

import pytest

api = pytest.importorskip("mypy.api")
ROOT = Path(__file__).parents[2]
README = """\
import numpy as np
import ufuse
x = X = means = np.ones((3, 2))
"""


@pytest.fixture(scope="module")
def complaints(tmp_path_factory):
    """What mypy says of a file, by a user's settings: files of the package are not looked at."""
    folder = tmp_path_factory.mktemp("types")
    config = folder / "mypy.ini"
    config.write_text(f"[mypy]\nmypy_path = {ROOT / 'pyext'}\nfollow_imports = silent\n")
    kept = ["--cache-dir", str(folder / "cache"), "--config-file", str(config)]

    def say(path, *options):
        limit = sys.getrecursionlimit()
        out, err, _ = api.run([*kept, *options, str(path)])
        sys.setrecursionlimit(limit)  # mypy's is higher
        return [line for line in (out + err).splitlines() if not line.startswith("Success")]

    yield say
    shutil.rmtree(folder)


def test_jitted_functions(complaints):
    assert complaints(ROOT / "tests" / "house" / "typed_uses.py", "--strict") == []


def test_readme(complaints, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    examples = tmp_path / "examples.py"
    examples.write_text(README + "\n".join(blocks))
    assert complaints(examples, "--check-untyped-defs") == []
