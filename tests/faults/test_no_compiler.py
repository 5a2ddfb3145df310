"""Does a call still answer, and silently, when the compiler, the cache or the disk fails?

Each case prepares a broken environment and runs programs.py in it several times: cold, warm, and
cold again after the cache has been damaged or removed. Results must be NumPy's to the bit, and
nothing may be printed.
"""

import itertools
import json
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from place import PROGRAMS, Place

NATIVE = {"compiled", "disk cache", "memory cache"}


@pytest.fixture
def not_root():
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")


needs_compiler = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="there is no compiler to break"
)


@needs_compiler
def test_cold_warm_and_cold_again(place):
    assert "compiled" in place.run()
    kept = place.entries()
    assert kept
    assert stat.S_IMODE(place.cache.stat().st_mode) == 0o700
    assert "compiled" not in place.run()
    assert place.entries() == kept
    shutil.rmtree(place.cache)
    assert "compiled" in place.run()
    assert [e.name for e in place.entries()] == [e.name for e in kept]


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
        origins = place.run(UFUSE_CXX=COMPILERS[name])
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
    assert not place.run(UFUSE_CXX=place.script(SCRIPTS[name])) & NATIVE


def test_compiler_that_hangs(place):
    started = time.monotonic()
    assert not place.run(UFUSE_CXX=place.script("sleep 2; exit 1")) & NATIVE
    assert time.monotonic() - started < 60


@needs_compiler
def test_compiler_that_identifies_itself_and_then_fails(place):
    real = shutil.which("g++") or shutil.which("clang++")
    script = place.script(
        f'case "$*" in *--version*|*-dump*|*-print*|*-###*) exec {real} "$@";; esac\nexit 1\n'
    )
    place.run(UFUSE_CXX=script)
    assert place.run(UFUSE_CXX=script)


@needs_compiler
def test_compiler_that_breaks_between_two_processes(place):
    assert "compiled" in place.run()
    assert not place.run(UFUSE_CXX="/bin/false") & NATIVE
    assert "compiled" not in place.run()
    assert not place.run(PATH="") & {"compiled"}


@pytest.mark.parametrize("path", ["", "/nonexistent"])
def test_no_path(place, path):
    assert not place.run(PATH=path) & NATIVE


@needs_compiler
def test_compiler_proper_is_not_on_the_path(place):
    """g++ alone, without the folder in which it finds as and ld by name."""
    tools = place.folder / "tools"
    tools.mkdir()
    (tools / "g++").symlink_to(Path(shutil.which("g++") or "/bin/false").resolve())
    place.run(PATH=str(tools))


# ---- the cache folder


def unwritable(place):
    place.cache.mkdir(mode=0o500)
    place.cache.chmod(0o500)


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


def device(place):
    place.variables["UFUSE_CACHE_DIR"] = "/dev/null"


def kernel_file_system(place):
    place.variables["UFUSE_CACHE_DIR"] = "/proc/self/ufuse"


def name_too_long(place):
    place.variables["UFUSE_CACHE_DIR"] = str(place.folder / ("x" * 300))


def relative(place):
    place.variables["UFUSE_CACHE_DIR"] = "../no/such/../folder"


def nowhere(place):
    for name in ("UFUSE_CACHE_DIR", "HOME"):
        del place.variables[name]


FOLDERS = [
    unwritable,
    file_instead_of_folder,
    below_a_file,
    group_writable,
    world_writable,
    link_to_nowhere,
    device,
    kernel_file_system,
    name_too_long,
    nowhere,
]
NEVER_USED = [file_instead_of_folder, below_a_file, group_writable, world_writable, device]


@needs_compiler
@pytest.mark.parametrize("prepare", FOLDERS, ids=lambda f: f.__name__)
def test_cache_folder(place, prepare):
    prepare(place)
    before = place.entries()
    assert "compiled" in place.run()
    if prepare in NEVER_USED:
        assert place.entries() == before, "a folder that is not to be trusted was written to"


@needs_compiler
def test_home_that_cannot_be_written(place, not_root):
    place.home.chmod(0o500)
    del place.variables["UFUSE_CACHE_DIR"]
    assert "compiled" in place.run()


@needs_compiler
def test_home_without_a_folder(place):
    del place.variables["UFUSE_CACHE_DIR"]
    place.variables["HOME"] = "/nonexistent/home"
    place.run()
    place.variables["HOME"] = str(place.home)
    assert "compiled" in place.run()
    assert (place.home / ".cache" / "ufuse").is_dir()


@needs_compiler
def test_no_temporary_folder(place):
    place.run(TMPDIR="/nonexistent")


# ---- entries that are not what was written


def emptied(file):
    file.write_bytes(b"")


def cut(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def cut_by_one(file):
    file.write_bytes(file.read_bytes()[:-1])


def garbage(file):
    file.write_bytes(b"\x7fELF" + os.urandom(5000))


def flipped(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 0xFF
    file.write_bytes(bytes(content))


def appended(file):
    file.write_bytes(file.read_bytes() + b"more")


def zeroed(file):
    file.write_bytes(bytes(file.stat().st_size))


def made_a_folder(file):
    file.unlink()
    file.mkdir()


def made_a_link(file):
    file.unlink()
    file.symlink_to("/nonexistent")


def made_text(file):
    file.write_text("hello\n")


DAMAGES = [
    [emptied, cut, garbage, flipped, zeroed],
    [cut_by_one, appended, made_a_folder, made_a_link, made_text],
]


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A cache folder with entries, to be copied."""
    place = Place(tmp_path_factory.mktemp("warm"))
    place.run()
    return place.cache


@needs_compiler
@pytest.mark.parametrize("damages", DAMAGES, ids=lambda d: d[0].__name__)
def test_damaged_entries(place, warm, damages):
    """Each entry is damaged in another way; they are made anew where that is possible."""
    shutil.copytree(warm, place.cache)
    assert len(place.entries()) >= len(damages)
    for entry, damage in zip(place.entries(), itertools.cycle(damages), strict=False):
        damage(entry)
    assert "compiled" in place.run()
    if made_a_folder not in damages:
        assert "compiled" not in place.run(), "the entries were not written anew"


@needs_compiler
def test_entries_of_each_other(place, warm):
    shutil.copytree(warm, place.cache)
    entries = place.entries()
    contents = [entry.read_bytes() for entry in entries]
    for entry, content in zip(entries, contents[1:] + contents[:1], strict=True):
        entry.write_bytes(content)
    assert "compiled" in place.run()


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
    place.run(most)
    assert all(entry.stat().st_size <= most for entry in place.entries())
    place.run()
