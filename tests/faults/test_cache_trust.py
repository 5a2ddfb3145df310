"""Is code that somebody else put into the cache ever run, and do strange files there do harm?

Each case is a process of its own with a cache folder that was tampered with. A planted entry is
sound in every respect, only that it holds the code of another function: whoever loads it gives a
wrong number.
"""

import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
SOMEBODY = 12345

BEGIN = """
import os, sys
import numpy as np, ufuse
from ufuse import _core

x = np.linspace(0.0, 1.0, 4000)

def one(x): return x * 3.0 + 1.0
def two(x): return x * 5.0 - 2.0

def check(*functions):
    for function in functions:
        assert ufuse.jit(function)(x).tobytes() == function(x).tobytes(), function.__name__
    return [row["groups"][0]["origin"] for row in _core.reports()]
"""


class Machine:
    """Folders of its own for a program that calls jitted functions."""

    def __init__(self, folder):
        self.cache = folder / "cache"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.variables = {
            **os.environ,
            "UFUSE_CACHE_DIR": str(self.cache),
            "TMPDIR": str(self.temporary),
            "UFUSE_BACKEND": "compiled",
            "OMP_NUM_THREADS": "1",
        }
        for name in ("CXX", "UFUSE_CXX", "UFUSE_CACHE_SIZE", "UFUSE_LOGS", "UFUSE_DEBUG"):
            self.variables.pop(name, None)

    def start(self, program, **variables):
        return subprocess.Popen(
            [sys.executable, "-c", BEGIN + program],
            env={**self.variables, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, program, **variables):
        """What the program prints; asserts that it succeeds in silence."""
        process = self.start(program, **variables)
        try:
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
        assert (process.returncode, err) == (0, "")
        return out

    def kernels(self):
        """The entries that hold machine code; the other one tells of the compiler."""
        return {f for f in self.cache.glob("*.so") if f.read_bytes().startswith(b"\x7fELF")}


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A cache folder, and the names of the entries of `one` and `two` in it."""
    machine = Machine(tmp_path_factory.mktemp("filled"))
    machine.run("check(one)")
    [one] = machine.kernels()
    machine.run("check(two)")
    [two] = machine.kernels() - {one}
    return machine.cache, one.name, two.name


@pytest.fixture
def entries(machine, filled):
    """The entries of `one` and `two` in the machine's cache folder."""
    shutil.copytree(filled[0], machine.cache)
    return machine.cache / filled[1], machine.cache / filled[2]


def parts(entry):
    """Payload and key of an entry."""
    text = entry.read_bytes()
    magic, version, payload, key = struct.unpack("<8sQQQ", text[-48:-16])
    assert (magic, version) == (b"ufusekrn", 2)
    return text[:payload], text[payload : payload + key]


def whole(payload, key):
    """An entry of these, with the payload's checksum (FNV-1a of 128 bits)."""
    value, prime = 0x6C62272E07BB014262B821756295C58D, (1 << 88) + 0x13B
    for byte in payload:
        value = (value ^ byte) * prime & (1 << 128) - 1
    sizes = struct.pack("<8sQQQ", b"ufusekrn", 2, len(payload), len(key))
    return payload + key + sizes + struct.pack("<QQ", value >> 64, value & (1 << 64) - 1)


@pytest.fixture
def planted(entries):
    """The entry of `one`, and its text with the code of `two`."""
    one, two = entries
    assert whole(*parts(one)) == one.read_bytes()
    return one, whole(parts(two)[0], parts(one)[1])


def test_code_of_another_source_is_not_run(machine, planted):
    entry, text = planted
    entry.write_bytes(text)
    machine.run("assert check(one) == ['compiled']")
    machine.run("assert check(one) == ['disk cache']")


@needs_root
def test_files_of_other_users_are_not_used(machine, planted):
    entry, text = planted
    entry.write_bytes(text)
    for mode in (0o600, 0o755):
        os.chown(entry, SOMEBODY, SOMEBODY)
        entry.chmod(mode)
        assert machine.run("check(one); print(*check(two))").split() == ["disk", "cache"]
        assert entry.stat().st_uid == 0, "it was not replaced by ours"


def test_files_that_others_can_write_are_not_used(machine, planted):
    entry, text = planted
    entry.write_bytes(text)
    entry.chmod(0o666)
    machine.run("assert check(one) == ['compiled']")


def test_a_folder_that_others_can_write_is_to_be_removed_not_closed(machine):
    machine.cache.mkdir()
    machine.cache.chmod(0o777)
    note = machine.run("check(one); print(_core.jit_statistics()['cache_note'])")
    assert "remove it" in note
    assert "chmod" not in note
    assert not list(machine.cache.iterdir())


def test_a_folder_in_one_that_others_can_write_is_not_used(machine, tmp_path):
    parent = tmp_path / "open"
    parent.mkdir()
    parent.chmod(0o777)
    folder = parent / "cache"
    machine.variables["UFUSE_CACHE_DIR"] = str(folder)
    note = machine.run("check(one); print(_core.jit_statistics()['cache_note'])")
    assert f"{parent} can be written by other users" in note
    assert not folder.exists()
    parent.chmod(0o1777)
    assert machine.run("check(one); print(_core.jit_statistics()['cache_note'])") == "\n"
    assert folder.is_dir()


def test_a_folder_put_in_its_place_later_is_not_loaded_from(machine, planted):
    entry, text = planted
    away = machine.cache.with_name("away")
    process = machine.start("check(two); print('ready', flush=True); input(); check(one)")
    assert process.stdout.readline() == "ready\n"
    machine.cache.rename(away)
    machine.cache.mkdir(mode=0o700)
    entry.write_bytes(text)
    assert process.communicate("\n", timeout=60) == ("", "")
    assert process.returncode == 0
    assert entry.read_bytes() == text, "the folder in its place was touched"


def make_pipe(path):
    """Whoever opens it waits until somebody writes, for good."""
    os.mkfifo(path, 0o600)


def make_socket(path):
    folder = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{folder}/{path.name}")  # a short name of the same
    os.close(folder)


def make_link(path):
    path.symlink_to("/dev/zero")


def make_device(path):
    """Whoever reads it never comes to its end."""
    if os.geteuid() == 0:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))


KINDS = [make_pipe, make_socket, make_link], [make_link, make_device, make_pipe]


@pytest.mark.parametrize("kinds", KINDS, ids=lambda kinds: kinds[0].__name__)
def test_an_entry_that_is_no_file(machine, entries, kinds):
    """Those of two kernels, and the one that tells of the compiler."""
    for entry, make in zip(sorted(machine.cache.glob("*.so")), kinds, strict=True):
        entry.unlink()
        make(entry)
    machine.run("check(one, two)")
    machine.run("assert check(one) + check(two) == ['disk cache'] * 2")
    assert all(entry.is_file() for entry in machine.cache.iterdir())


@pytest.mark.parametrize("make", [make_pipe, make_socket, make_link, make_device, os.mkdir])
def test_locks_that_cannot_be_had(machine, make):
    """Then each process compiles for itself."""
    machine.cache.mkdir(mode=0o700)
    make(machine.cache / "ufuse-claims")
    machine.run("assert check(one) + check(two) == ['compiled'] * 2")
    machine.run("assert check(one) + check(two) == ['disk cache'] * 2")


def test_a_size_of_nothing_keeps_nothing(machine, filled):
    program = "check(one, two); print(_core.jit_statistics()['cache_note'])"
    assert "UFUSE_CACHE_SIZE is 0" in machine.run(program, UFUSE_CACHE_SIZE="0")
    assert not machine.cache.exists()
    shutil.copytree(filled[0], machine.cache)
    kept = {entry: entry.stat().st_mtime_ns for entry in machine.cache.iterdir()}
    machine.run(program, UFUSE_CACHE_SIZE="0")
    assert {entry: entry.stat().st_mtime_ns for entry in machine.cache.iterdir()} == kept


def test_a_program_that_closes_all_files(machine, tmp_path):
    """As daemons do; the number of the folder's descriptor is then that of another folder."""
    other = tmp_path / "other"
    other.mkdir()
    machine.run(
        "check(one)\n"
        "os.closerange(3, 200)\n"
        f"for _ in range(50): os.open({str(other)!r}, os.O_RDONLY)\n"
        "check(two)"
    )
    assert not list(other.iterdir())


@pytest.fixture
def slow(machine, tmp_path):
    """A compiler that waits for a file to appear before it compiles."""
    compiler, go = tmp_path / "compiler", tmp_path / "go"
    compiler.write_text(
        '#!/bin/sh\ncase "$*" in *"-###"*) g++ "$@" 2>&1 | sed s/cc1plus/other/ >&2; exit;; esac\n'
        f'while [ ! -e {go} ]; do sleep 0.05; done; exec g++ "$@"\n'
    )
    compiler.chmod(0o755)
    machine.variables["UFUSE_CXX"] = str(compiler)
    return go


def work_folders(machine):
    return sorted(machine.temporary.glob("ufuse-*"))


def wait_until(condition):
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come about within a minute")


def test_work_folders_of_killed_processes_are_removed(machine, slow):
    killed = machine.start("check(one)")
    wait_until(lambda: any((f / "kernel.cpp").exists() for f in work_folders(machine)))
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=60)
    left = work_folders(machine)
    assert len(left) == 1

    alive = machine.start("check(one)")
    wait_until(lambda: not left[0].exists() and work_folders(machine))
    in_use = work_folders(machine)
    machine.run("check(one)", UFUSE_CXX="g++")  # has finished, and leaves the other's folder alone
    assert work_folders(machine) == in_use
    slow.touch()
    assert alive.communicate(timeout=60) == ("", "")
    assert alive.returncode == 0
    assert not work_folders(machine)
