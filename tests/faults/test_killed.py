"""What is left when the process, or the compiler it runs, is killed in the middle of its work?

The next process must find a cache that is sound, and a process whose compiler is killed answers all
the same. The moments are random; a round is one of them.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from place import PROGRAMS, needs_compiler, rounds

pytestmark = needs_compiler

COMPILERS = {"cc1plus", "as", "ld", "collect2", "g++", "clang++", "c++"}


def start(place, *arguments, **variables):
    """The programs in a process of its own, without waiting for it."""
    return subprocess.Popen(
        [sys.executable, str(PROGRAMS), *arguments],
        env={**place.variables, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def compilers_of(pid):
    """The processes below ``pid`` that compile."""
    parents, names = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, _, rest = stat.read_text().partition(" (")
        except OSError:
            continue  # has ended
        name, _, fields = rest.rpartition(") ")
        parents[int(number)] = int(fields.split()[1])
        names[int(number)] = name

    def is_below(process):
        while process in parents and process != pid:
            process = parents[process]
        return process == pid

    return [p for p in parents if p != pid and names[p] in COMPILERS and is_below(p)]


def wait_for_compilers(process):
    """Those that run; none when the process has ended."""
    while process.poll() is None:
        if found := compilers_of(process.pid):
            return found
        time.sleep(0.001)
    return []


def kill(process):
    with contextlib.suppress(ProcessLookupError):  # has just ended
        os.kill(process, signal.SIGKILL)


def test_process_killed_while_it_compiles(place):
    left_behind = place.home / "tmp"
    left_behind.mkdir()
    for _ in range(rounds(4)):
        process = start(place, TMPDIR=str(left_behind))
        wait_for_compilers(process)
        time.sleep(random.uniform(0, 0.5))
        if random.random() < 0.5:
            process.kill()  # its compilers go on
        else:
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=100)
    place.run()
    assert "compiled" not in place.run()


def test_compiler_killed(place):
    for _ in range(rounds(1)):
        process = start(place)
        for _ in range(3):
            time.sleep(random.uniform(0, 0.1))
            for compiler in wait_for_compilers(process):
                kill(compiler)
        out, err = process.communicate(timeout=100)
        assert (process.returncode, err) == (0, "")
        assert json.loads(out)["wrong"] == []
    place.run()
    assert "compiled" not in place.run()


def test_every_compiler_killed(place):
    process = start(place, "chain", "kmeans")
    while found := wait_for_compilers(process):
        for compiler in found:
            kill(compiler)
    out, err = process.communicate(timeout=100)
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["wrong"] == []
    assert "compiled" in place.run("chain", "kmeans")
