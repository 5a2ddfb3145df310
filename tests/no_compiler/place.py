"""A place that may be broken: an environment for a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs.py")


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

    def run(self, *arguments, **variables):
        """The origins of the loops that ran; asserts equal bits and silence."""
        report = json.loads(self._run(str(PROGRAMS), *map(str, arguments), **variables))
        assert report["wrong"] == []
        return set(report["origins"])

    def program(self, text):
        """Run a program; asserts that it succeeds in silence."""
        assert self._run("-c", text) == ""

    def _run(self, *arguments, **variables):
        done = subprocess.run(
            [sys.executable, *arguments],
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
        """The files in the cache folder."""
        return sorted(self.cache.iterdir()) if self.cache.is_dir() else []

    def script(self, text):
        """A program that stands for the compiler."""
        path = self.folder / "compiler"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return str(path)
