"""Does the count of instructions see loops alone, and does it go red where a number has grown?"""

import json
import sys

import pytest

from bench import instructions

CALLGRIND = """\
desc: Trigger: Client Request: kmeans, 1024
ob=(1) /usr/lib/libpython3.11.so
fn=(1) call
12 1000
cob=(2) ???
cfn=(2)
calls=4 0
13 700
ob=(2)
fn=(2)
0 300
+1 20
cob=(3) /usr/lib/numpy.so
calls=1 0
* 380
ob=(3)
0 380
totals: 1700
"""


def test_loops_are_the_code_of_no_file():
    assert instructions.of_loops(CALLGRIND) == 320
    assert instructions.of_all(CALLGRIND) == 1700


@pytest.mark.parametrize(
    ("name", "factor", "status"),
    [
        ("kmeans", 1.01, 0),
        ("kmeans", 1.03, 1),
        ("a call replayed", 1.04, 0),
        ("a call replayed", 1.06, 1),
        ("a call replayed", 0.5, 0),
    ],
)
def test_status_tells_whether_a_number_has_grown(name, factor, status, tmp_path, monkeypatch):
    counted = dict.fromkeys(instructions.COUNTED, 100.0)
    known = tmp_path / "instructions.json"
    known.write_text("{}")
    monkeypatch.setattr(instructions, "KNOWN", known)
    monkeypatch.setattr(instructions, "counts", lambda: counted)
    monkeypatch.setattr(instructions, "has_such_cpu", lambda: True)
    monkeypatch.setattr(sys, "argv", ["instructions"])
    assert instructions.main() == 0  # there is nothing to compare with
    monkeypatch.setattr(sys, "argv", ["instructions", "--write"])
    assert instructions.main() == 0
    assert {each for numbers in json.loads(known.read_text()).values() for each in numbers} == {
        *instructions.COUNTED
    }
    counted[name] *= factor
    monkeypatch.setattr(sys, "argv", ["instructions"])
    assert instructions.main() == status
