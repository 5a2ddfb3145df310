"""Does a call still answer, and silently, when the compiler, the cache or the disk fails?

Each case prepares a broken environment and runs programs.py in it: cold, warm, and cold again after
the cache has been removed. Results must be NumPy's to the bit, and nothing may be printed.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from place import COMPILER, PROGRAMS, libraries_in, needs_compiler

NATIVE = {"compiled", "disk cache", "memory cache"}


@needs_compiler
def test_cold_warm_and_cold_again(place):
    assert "compiled" in place.run()
    kept = place.entries()
    assert kept
    own = {entry.name for entry in kept} - libraries_in(place.cache)
    assert stat.S_IMODE(place.cache.stat().st_mode) == 0o700
    assert "compiled" not in place.run()
    assert place.entries() == kept
    shutil.rmtree(place.cache)
    assert "compiled" in place.run()
    assert {entry.name for entry in place.entries()} - libraries_in(place.cache) == own
    assert "compiled" not in place.run()


COMPILERS = {
    "missing": "/nonexistent",
    "fails": "/bin/false",
    "succeeds without output": "/bin/true",
    "a folder": "/tmp",
    "not executable": "/etc/passwd",
    "empty": "",
    "arguments": "g++ --no-such-option",
}


@pytest.mark.parametrize("name", COMPILERS)
def test_compiler_that_does_not_work(place, name):
    for _ in range(2 if name == "missing" else 1):
        origins = place.run("chain", "kmeans", UFUSE_CXX=COMPILERS[name])
        if name != "empty":  # is as if it were not set
            assert not origins & NATIVE
            assert origins, "nothing was computed by ufuse"


SCRIPTS = {
    "garbage": "echo '%&/()=' ; echo 'garbage: error' >&2; exit 0",
    "garbage and failure": "echo garbage >&2; exit 7",
    "binary garbage": "head -c 3000 /dev/urandom; head -c 3000 /dev/urandom >&2",
    "dies": "kill -SEGV $$",
    "closes its output": "exec >&- 2>&-; exit 1",
    "reads its input": "cat; exit 1",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_compiler_that_prints_garbage(place, name):
    assert not place.run("chain", "kmeans", UFUSE_CXX=place.script(SCRIPTS[name])) & NATIVE


def test_compiler_that_hangs(place):
    started = time.monotonic()
    assert not place.run("chain", UFUSE_CXX=place.script("sleep 2; exit 1")) & NATIVE
    assert time.monotonic() - started < 60


@needs_compiler
def test_compiler_that_identifies_itself_and_then_fails(place):
    script = place.script(
        f'case "$*" in *--version*|*-dump*|*-print*|*-###*) exec {COMPILER} "$@";; esac\nexit 1\n'
    )
    for _ in range(2):
        assert place.run("chain", UFUSE_CXX=script)


@needs_compiler
def test_compiler_that_breaks_between_two_processes(place):
    assert "compiled" in place.run("chain")
    assert not place.run("chain", UFUSE_CXX="/bin/false") & NATIVE
    assert "compiled" not in place.run("chain")
    assert not place.run("chain", PATH="") & {"compiled"}


@pytest.mark.parametrize("path", ["", "/nonexistent"])
def test_no_path(place, path):
    assert not place.run("chain", "kmeans", PATH=path) & NATIVE


@needs_compiler
def test_compiler_proper_is_not_on_the_path(place):
    """g++ alone, without the folder in which it finds as and ld by name."""
    tools = place.folder / "tools"
    tools.mkdir()
    (tools / "g++").symlink_to(Path(shutil.which("g++") or "/bin/false").resolve())
    place.run("chain", PATH=str(tools))


# ---- the cache folder


def unwritable(place):
    place.drop_privileges()
    place.cache.mkdir(mode=0o500)


def closed(place):
    place.drop_privileges()
    place.cache.mkdir(mode=0)


def below_an_unwritable_folder(place):
    place.drop_privileges()
    place.home.chmod(0o500)
    place.variables["UFUSE_CACHE_DIR"] = str(place.home / "missing" / "cache")


def owned_by_somebody_else(place):
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    place.cache.mkdir(mode=0o700)
    os.chown(place.cache, 65534, 65534)


def read_only_file_system(place):
    place.cache.mkdir(mode=0o700)
    place.mount("-t tmpfs -o ro,mode=700 tmpfs", place.cache)


def full_file_system(place):
    place.cache.mkdir(mode=0o700)
    place.mount("-t tmpfs -o size=16k,mode=700 tmpfs", place.cache)


def nearly_full_file_system(place):
    place.cache.mkdir(mode=0o700)
    place.mount("-t tmpfs -o size=64k,mode=700 tmpfs", place.cache)


def file_instead_of_folder(place):
    place.cache.write_text("not a folder")


def below_a_file(place):
    (place.folder / "file").write_text("")
    place.variables["UFUSE_CACHE_DIR"] = str(place.folder / "file" / "cache")


def group_writable(place):
    place.cache.mkdir()
    place.cache.chmod(0o770)


def world_writable(place):
    place.cache.mkdir()
    place.cache.chmod(0o777)


def link_to_nowhere(place):
    place.cache.symlink_to(place.folder / "nowhere" / "at all")


def link_to_itself(place):
    place.cache.symlink_to(place.cache)


def link_to_a_folder(place):
    (place.folder / "elsewhere").mkdir(mode=0o700)
    place.cache.symlink_to(place.folder / "elsewhere")


def device(place):
    place.variables["UFUSE_CACHE_DIR"] = "/dev/null"


def kernel_file_system(place):
    place.variables["UFUSE_CACHE_DIR"] = "/proc/self/ufuse"


def name_too_long(place):
    place.variables["UFUSE_CACHE_DIR"] = str(place.folder / ("x" * 300))


def relative(place):
    place.variables["UFUSE_CACHE_DIR"] = os.path.relpath(place.cache)


def nowhere(place):
    for name in ("UFUSE_CACHE_DIR", "HOME"):
        del place.variables[name]


FOLDERS = [
    unwritable,
    closed,
    below_an_unwritable_folder,
    owned_by_somebody_else,
    read_only_file_system,
    full_file_system,
    nearly_full_file_system,
    file_instead_of_folder,
    below_a_file,
    group_writable,
    world_writable,
    link_to_nowhere,
    link_to_itself,
    link_to_a_folder,
    device,
    kernel_file_system,
    name_too_long,
    relative,
    nowhere,
]
NEVER_USED = [
    unwritable,
    owned_by_somebody_else,
    file_instead_of_folder,
    below_a_file,
    group_writable,
    world_writable,
    device,
]


@needs_compiler
@pytest.mark.parametrize("prepare", FOLDERS, ids=lambda f: f.__name__)
def test_cache_folder(place, prepare):
    prepare(place)
    before = place.entries()
    assert "compiled" in place.run("chain")
    if prepare in NEVER_USED:
        assert place.entries() == before, "a folder that is not to be trusted was written to"


@needs_compiler
def test_home_that_cannot_be_written(place):
    place.drop_privileges()
    place.home.chmod(0o500)
    del place.variables["UFUSE_CACHE_DIR"]
    assert "compiled" in place.run("chain")


@needs_compiler
def test_home_without_a_folder(place):
    del place.variables["UFUSE_CACHE_DIR"]
    place.variables["HOME"] = "/proc/nonexistent/home"
    place.run("chain")
    place.variables["HOME"] = str(place.home)
    assert "compiled" in place.run("chain")
    assert (place.home / ".cache" / "ufuse").is_dir()


@needs_compiler
def test_no_temporary_folder(place):
    place.run("chain", TMPDIR="/nonexistent")


# ---- several processes


@needs_compiler
def test_two_processes_at_once(place):
    running = [
        subprocess.Popen(
            [sys.executable, str(PROGRAMS)],
            env=place.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in running:
        out, err = process.communicate(timeout=100)
        assert (process.returncode, err) == (0, "")
        assert json.loads(out)["wrong"] == []
    assert "compiled" not in place.run()


# ---- the disk


@pytest.mark.parametrize("most", [0, 4096, 20_000])
def test_full_disk(place, most):
    """RLIMIT_FSIZE makes every write beyond it fail, in the compiler as well."""
    place.run("--file-size", most, "chain", "kmeans")
    assert all(entry.stat().st_size <= most for entry in place.entries())
    place.run("chain", "kmeans")
