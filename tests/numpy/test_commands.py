"""Do `python -m ufuse explain script.py`, `debug script.py` and `bench` say what happened?"""

import re
import subprocess
import sys

import pytest

BACKENDS = ["compiled"]
SCRIPT = """\
import os, sys
import numpy as np, ufuse

@ufuse.jit
def sorts(x):
    return np.sort(x * 2) + 1

@ufuse.jit
def sees_itself(x):
    return eval("x")

if __name__ == "__main__":
    print(sys.argv[1:], os.path.basename(sys.path[0]))
    for _ in range(3):
        sorts(np.arange(10.0))
    sees_itself(1)
"""


@pytest.fixture
def explained(tmp_path):
    """What the command prints of a script, and its status."""

    def explained(text, *arguments, command="explain"):
        folder = tmp_path / "scripts"
        folder.mkdir(exist_ok=True)
        (folder / "script.py").write_text(text)
        return asked(command, "scripts/script.py", *arguments, cwd=tmp_path)

    return explained


def asked(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "ufuse", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_script_runs_as_it_does_alone_and_is_explained(explained):
    done = explained(SCRIPT, "--size", "3")
    assert done.stdout == "['--size', '3'] scripts\n"
    lines = done.stderr.splitlines()
    assert re.fullmatch(r"sorts: 3 calls in .*s: .*traced.*", lines[0])
    assert "scripts/script.py:6: NumPy call sort: This NumPy function has no native" in lines[1]
    assert re.fullmatch(r"sees_itself: 1 call in .*s: 1 plain", lines[2])
    assert "scripts/script.py:10: " in lines[3]
    assert "eval" in lines[3]
    assert done.returncode == 0


def test_a_script_is_debugged_with_plain_numpy(explained, tmp_path):
    text = SCRIPT.replace("import os, sys", "import os, sys, beside") + "    beside.half([1, 0])\n"
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "beside.py").write_text(
        "import numpy as np\n\ndef half(x):\n    return 0.5 / np.array(x)\n"
    )
    done = explained(text, "--size", "3", command="debug")
    assert done.stdout == "['--size', '3'] scripts\n"
    warned, _, report = done.stderr.partition("\nNaN")
    assert "scripts/beside.py:4: RuntimeWarning: divide by zero encountered" in warned
    lines = report.splitlines()
    assert lines[1].endswith("scripts/beside.py:4: 0.5 / np.array(x)")
    told = "infinity: 1 of 2, the first at [1], where np.array(x) = 0"
    assert [line.strip() for line in lines[2:]] == [told]


@pytest.mark.parametrize(
    ("command", "report"), [("explain", "sorts: 3 calls"), ("debug", "no NaN or infinity")]
)
def test_the_traceback_of_a_script_is_its_own(explained, command, report):
    done = explained(SCRIPT + "    raise KeyError('mine')\n", command=command)
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "script.py" in lines[1]
    assert lines[3] == "KeyError: 'mine'"
    assert lines[4].startswith(report)
    assert done.returncode == 1


def test_the_status_of_a_script_is_its_own(explained):
    done = explained("import sys\nsys.exit(7)\n")
    assert (done.returncode, done.stderr) == (7, "no jitted function was called\n")


def test_a_script_that_is_not_there(tmp_path):
    done = asked("explain", "no.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "there is no file 'no.py'\n")


def test_times_beside_numpy():
    done = asked("bench", "--seconds", "0.01")
    names = [line.split()[0] for line in done.stdout.splitlines()[2:]]
    assert names == ["kmeans", "softmax", "diffusion", "masked_mean", "recurrence"]
    assert len(re.findall(r"x (?:faster|slower) ", done.stdout)) == len(names)
    assert (done.stderr, done.returncode) == ("", 0)
