"""Does a package whose compiled module cannot be loaded say what is wrong and what helps?"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import ufuse

PACKAGE = Path(ufuse.__file__).parent
VERSION = f"Python {sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def copy(tmp_path):
    """A copy of the package without its module."""
    folder = tmp_path / "ufuse"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("_core*.so", "__pycache__"))
    return folder


def asked(copy, *arguments):
    """What Python prints, the last line of its errors, and its status."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={"PYTHONPATH": str(copy.parent), "PATH": "/usr/bin:/bin"},
        cwd=copy.parent,
        capture_output=True,
        text=True,
    )
    return done.stdout, "".join(done.stderr.splitlines()[-1:]), done.returncode


def test_no_module(copy):
    assert asked(copy, "-c", "import ufuse")[1] == (
        "ImportError: the compiled module of ufuse cannot be loaded: "
        f"{copy} has none for {VERSION}. Install ufuse with this Python."
    )


def test_the_module_of_another_python(copy):
    (copy / "_core.cpython-39-x86_64-linux-gnu.so").write_bytes(b"")
    told = asked(copy, "-c", "import ufuse")[1]
    assert f"has none for {VERSION}, only _core.cpython-39-x86_64-linux-gnu.so. " in told


def test_a_damaged_module(copy):
    (copy / "_core.so").write_bytes(b"damaged")
    told = asked(copy, "-c", "import ufuse")[1]
    assert "_core.so" in told
    assert told.endswith("It may be damaged: pip install --force-reinstall ufuse")


def test_a_library_that_is_missing(copy):
    (copy / "_core.py").write_text("raise ImportError('libomp.so.5: cannot open shared object')")
    told = asked(copy, "-c", "import ufuse")[1]
    assert told.endswith("apt-get install libomp-dev")


def test_no_numpy(copy):
    (copy / "_core.py").write_text("import numpy.nothing_of_this_name")
    assert asked(copy, "-c", "import ufuse")[1].endswith("pip install 'numpy>=1.24'")


def test_the_doctor(copy):
    out, told, status = asked(copy, "-m", "ufuse", "doctor")
    assert out.splitlines() == [
        f"BAD module    {copy} has none for {VERSION}",
        "              Install ufuse with this Python.",
    ]
    assert (told, status) == ("", 1)
