"""Can a compiler be named whatever its path is, and do kernels stay clear of C++'s library?"""

import os
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++")

PROGRAM = """
import numpy as np, ufuse
from ufuse import _core

x = np.linspace(0.0, 1.0, 4000)
f = lambda x: x * 3.0 + 1.0
assert ufuse.jit(f)(x).tobytes() == f(x).tobytes()
[row] = _core.reports()
print(row["groups"][0]["origin"], "|", _core.jit_statistics()["compiler"])
print(row["groups"][0]["note"])
"""


@pytest.fixture
def compile_with(tmp_path):
    """Where the loop came from, the compiler that made it, and what went wrong."""

    def compile_with(compiler, program=PROGRAM, **variables):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={
                **os.environ,
                "UFUSE_CACHE_DIR": str(tmp_path / "cache"),
                "UFUSE_BACKEND": "compiled",
                "UFUSE_CXX": compiler,
                **variables,
            },
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return compile_with


@pytest.fixture
def script(tmp_path):
    """A g++ in a folder with spaces, which notes its first argument."""

    def script(name):
        path = tmp_path / "my compilers" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/sh\necho "$1" >>"{tmp_path}/noted"\nexec g++ "$@"\n')
        path.chmod(0o755)
        return path

    return script


@pytest.mark.parametrize(
    "name", ["g++", "g++ -12", "it's g++", 'quoted "g++"', "back\\slash", "$HOME;`false`"]
)
def test_the_whole_path_of_a_program(compile_with, script, name):
    out = compile_with(str(script(name)))
    assert out.startswith("compiled | ")
    assert name in out


@pytest.mark.parametrize(
    "form",
    ["'{}' -g0", '"{}" -g0', "{escaped} -g0", "  '{}'\t-g0  ", "'{}' \"-g\"'0'"],
)
def test_a_program_and_its_first_arguments(compile_with, script, tmp_path, form):
    path = script("g++")
    named = form.format(path, escaped=str(path).replace(" ", "\\ "))
    out = compile_with(named)
    assert out.startswith("compiled | ")
    assert (tmp_path / "noted").read_text().startswith("-g0\n")


def test_a_program_of_the_path_and_its_arguments(compile_with):
    assert compile_with("g++ -g0").startswith("compiled | ")


def test_a_quotation_mark_that_is_not_closed(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "ufuse", "doctor"],
        env={**os.environ, "UFUSE_CACHE_DIR": str(tmp_path / "cache"), "UFUSE_CXX": "'g++ -g0"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "BAD compiler" in done.stdout
    for said in (done.stdout, done.stderr):
        assert 'UFUSE_CXX: "\'g++ -g0" has a quotation mark that is not closed' in said


DRIVER = """#!/bin/sh
case "$*" in *"-###"*) g++ "$@" 2>&1 | sed s/cc1plus/other/ >&2; exit;; esac
exec g++ "$@" -static-libgcc -static-libstdc++
"""


def test_a_driver_that_links_the_cpp_library_statically(compile_with, tmp_path):
    """Kernels need nothing of it, so there is nothing of it in them."""
    compiler = tmp_path / "static-g++"
    compiler.write_text(DRIVER)
    compiler.chmod(0o755)
    assert compile_with(str(compiler)).startswith("compiled | ")
    kernels = [
        file.read_bytes()
        for file in (tmp_path / "cache").glob("*.so")
        if file.read_bytes().startswith(b"\x7fELF")
    ]
    assert kernels
    for kernel in kernels:
        assert b"libstdc++" not in kernel.partition(b"ufuse kernel")[0]
        assert b"_ZNSt6locale" not in kernel
