"""Does a garbage collection at any moment do harm, whatever others have it call?

Up to Python 3.11 the collector runs wherever an object is made, also in the middle of our own work,
and calls `gc.callbacks` and finalizers there. In a process of its own it runs at each of them.
"""

import subprocess
import sys

import pytest

PROGRAM = """
import collections, contextvars, gc
import numpy as np, ufuse

log = []
Point = collections.namedtuple("Point", "x y")

def told(phase, info):
    log.append([phase])

class Teller:
    def tells(self, phase, info):
        log.append(Point(phase, info))

    def __call__(self, phase, info):
        self.tells(phase, info)

class Cycle:
    def __init__(self, *held):
        self.me, self.held = self, held

    def __del__(self):
        log.append(len(self.held))

class Holder:
    pass

class Row:
    def __init__(self, x):
        self.x = x

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i]

def holds(x):
    places = collections.deque([x * 2, x + 1])
    holder = Holder()
    holder.point = Point(x * 3, [x, x - 1])
    holder.more = {"a": x * 4, "b": [x * 5]}
    a = np.concatenate(Point(x * 6, x))
    b = np.sort(np.stack(list(places)))
    for i in range(20):
        b = b + np.sort(collections.deque([x * i, x + i])) + np.median(Row(x - i))
    c = np.lexsort(Point(holder.point.x, holder.more["a"]))
    return a.sum() + b[0].sum() + c[0] + holder.point.y[1], holder.more

def changes_the_error_state(x):
    total = x * 0
    for i in range(30):
        with np.errstate(divide="ignore", invalid="ignore"):
            total = total + np.log(x - 1) / (x * i)
            Cycle(x)
            if total[0] > 5:
                total = total * 1.5
        total = total * 1.25
    with np.errstate(all="ignore"):
        return np.sqrt(total), x / 0

def leaves_cycles(x):
    total = x * 0
    for i in range(8):
        Cycle(x * i, total)
        total += np.median(x) * i
        total[1:] += x[:-1]
    return total

def is_called_back(x):
    found = np.apply_along_axis(lambda row: row.sum() * 2, 1, x[:, None] + x)
    return np.piecewise(found, [found < 0, found >= 0], [lambda v: -v, lambda v: v * 2])

others = [contextvars.ContextVar(f"v{i}") for i in range(40)]  # beside NumPy's error state
for each in others:
    each.set(1)
teller = Teller()
x = np.linspace(0.5, 9.0, 12)
for callbacks in ([], [told], [teller.tells], [teller]):
    gc.callbacks[:] = callbacks
    for plain in (holds, changes_the_error_state, leaves_cycles, is_called_back):
        gc.set_threshold(100_000)
        expected = repr(plain(x.copy()))
        jitted = ufuse.jit(plain)
        gc.set_threshold(1)
        for _ in range(5):
            assert repr(jitted(x.copy())) == expected, plain
        gc.set_threshold(100_000)
print("as without", len(log) > 100)
"""


@pytest.mark.parametrize("debug", ["", "requests"])
@pytest.mark.parametrize("backend", ["interpreted", "compiled"])
def test_collections_at_every_moment(backend, debug, monkeypatch, tmp_path):
    monkeypatch.setenv("UFUSE_DEBUG", debug)
    monkeypatch.setenv("UFUSE_BACKEND", backend)
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=300)
    assert done.stdout == "as without True\n", (done.returncode, done.stderr[-2000:])
