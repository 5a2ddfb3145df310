"""A place that may be broken: an environment for a process of its own."""

import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("programs.py")

# The one that compiles the loops here; None: there is none.
COMPILER = shutil.which("g++") or shutil.which("clang++")
needs_compiler = pytest.mark.skipif(not COMPILER, reason="there is no compiler to break")

# Root may write everywhere, but not without these.
WITHOUT_PRIVILEGES = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"]
# A namespace in which something is mounted on the folder "$1"; it goes with the process.
MOUNTED = ["unshare", "--mount", "sh", "-c", 'mount {} "$1" && shift && exec "$@"', "sh"]


def rounds(short):
    """How many random rounds a test makes: $UFUSE_TEST_FAULT_ROUNDS, or its own short number."""
    return int(os.environ.get("UFUSE_TEST_FAULT_ROUNDS") or short)


@functools.cache
def works(*command):
    """Whether a command exists and succeeds."""
    return shutil.which(command[0]) is not None and not subprocess.call(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def libraries_in(folder):
    """The names of entries that hold loops which were compiled together.

    They are looked at where the entry of a loop leads to them, and a damaged one leads nowhere.
    """
    contents = {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}
    return {name for name, text in contents.items() if b"ELF" in text and b"ufuse library" in text}


class Place:
    """An environment with folders of its own, in which calls wait for the compiler."""

    def __init__(self, folder):
        self.folder = folder
        self.cache = folder / "cache"
        self.home = folder / "home"
        self.temporary = folder / "tmp"
        for made in (self.home, self.temporary):
            made.mkdir()
        self.variables = {
            **os.environ,
            "UFUSE_CACHE_DIR": str(self.cache),
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "UFUSE_BACKEND": "compiled",
        }
        for name in ("CXX", "UFUSE_CXX", "UFUSE_LOGS", "UFUSE_DEBUG", "XDG_CACHE_HOME"):
            self.variables.pop(name, None)
        self.prefix = []  # what runs the process

    def drop_privileges(self):
        """Let the modes of files and folders hold for root as well."""
        if os.geteuid() == 0:
            if not works(*WITHOUT_PRIVILEGES, "true"):
                pytest.skip("root may write everywhere, and setpriv cannot take that away")
            self.prefix = WITHOUT_PRIVILEGES

    def mount(self, what, folder):
        """Run processes with a file system of their own on ``folder``."""
        if not works("unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", str(self.home)):
            pytest.skip("file systems cannot be mounted here")
        self.prefix = [part.format(what) for part in MOUNTED] + [str(folder)]

    def run(self, *arguments, **variables):
        """The origins of the loops that ran; asserts equal bits and silence.

        ``arguments`` are those of programs.py: names of functions, where not all are to run.
        """
        report = json.loads(self._run(str(PROGRAMS), *map(str, arguments), **variables))
        assert report["wrong"] == []
        return set(report["origins"])

    def program(self, text):
        """Run a program; asserts that it succeeds in silence."""
        assert self._run("-c", text) == ""

    def _run(self, *arguments, **variables):
        done = subprocess.run(
            [*self.prefix, sys.executable, *arguments],
            env={**self.variables, **variables},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        assert not list(self.temporary.glob("ufuse-work-*")), "a work folder was left behind"
        return done.stdout

    def entries(self):
        """The files in the cache folder, but for the one that locks are on."""
        return sorted(file for file in self.cache.glob("*") if file.name != "ufuse-claims")

    def script(self, text):
        """A program that stands for the compiler."""
        path = self.folder / "compiler"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return str(path)
