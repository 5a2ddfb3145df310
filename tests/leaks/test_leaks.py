"""Do calls leave anything behind? Objects, memory and references after thousands of each kind.

Each way of ``ways.py`` runs in a process of its own, so that nothing else comes and goes there.
"""

import itertools
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from ways import WAYS

# How much more the second half of the calls may hold than the first: what one call in ten leaves
# behind is more.
SLACK = {"objects": 50, "blocks": 250, "bytes": 4 << 10, "resident": 256 << 10}
# malloc keeps up to 250 KB of freed pieces for each thread, and counts them as not freed: they grow
# as long as pieces have sizes that no earlier ones had.
EXACT = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
LEAKS = {
    "new_recursive_functions": "a twin holds what its function's variables hold, here the function"
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xfail(reason=LEAKS[name]) if name in LEAKS else ())
        for name in WAYS
    ],
)
def test_calls_leave_nothing_behind(name):
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("ways.py"), name],
        env=os.environ | {"UFUSE_CHOICES": "ours"} | EXACT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    *looks, references = map(json.loads, done.stdout.splitlines())
    complaints = [f"{change:+} references to {each}" for each, change in references.items()]
    for kind, slack in SLACK.items():
        amounts = [look[kind] for look in looks if kind in look]
        if amounts and growth(amounts) > slack:
            complaints.append(f"{kind} grow: {amounts}")
    assert not complaints, "\n".join(complaints)


def growth(amounts):
    """By how much calls made an amount grow from the first to the second half of its looks.

    Neither one step, as when a table gets larger, nor the ups and downs of a cache are growth: it
    shows in the most that was held, and between most looks.
    """
    half = len(amounts) // 2
    steps = [after - before for before, after in itertools.pairwise(amounts[half:])]
    return min(max(amounts[half:]) - max(amounts[:half]), statistics.median(steps) * half)


def test_growth_is_told_from_steps_and_waves():
    assert growth([7] * 20) == 0
    assert growth([7] * 12 + [900] * 8) == 0
    assert growth([0, 300, 600, 900] * 5) == 0
    assert growth(range(0, 2000, 100)) == 1000
