"""What does a native loop do about what others change while it runs: threads, handlers of signals?

A program reads attributes, globals and the like once. Where one of them changes, Python goes on.
"""

import _thread
import signal
import threading
import time

import numpy as np
import pytest
from test_native_loops import told
from ufuse.source import heads
from ufuse.tracing.loops import looped

BACKENDS = ["interpreted"]
RUNNING = True


def attribute(state, out):
    n = m = 0
    while state.running:
        n += 1
        m += 2
    return n, m


def left_by_break(state, out):
    n = m = 0
    for _ in range(10**15):
        if not state.running:
            break
        n += 1
        m += 2
    return n, m


def inner_while(state, out):
    n = m = 0
    for r in range(3):
        while state.running:
            n += 1
            m += 2
        out[r] = n
    return n, m


def inner_for(state, out):
    n = m = 0
    for r in range(2):
        for _k in range(10**14):
            if not state.running:
                break
            n += 1
            m += 2
        out[r] = n
    return n, m


# Python does the whole statement again then, as if it had begun after the change.


def waiting(state, n):
    while state.running:
        n += 1
    return n


def in_a_helper(state, out):
    n = 0
    for r in range(2):
        n = waiting(state, n)
        out[r] = n
    return n, n * 2


def written_in_a_helper(state, out):
    n = 0
    for _r in range(2):
        n = counted(state, out, n)
    return n, n * 2


def counted(state, out, n):
    out[0] += 1
    while state.running:
        out[1] += 1
        n += 1
    return n


def global_name(state, out):
    n = m = 0
    while RUNNING:
        n += 1
        m += 2
    return n, m


def array(state, out):
    n = m = 0
    while state.flags[0] == 0:
        n += 1
        m += 2
    return n, m


def item_of_a_list(state, out):
    items = state.items
    n = m = 0
    while items[0] < 1:
        n += 1
        m += 2
    return n, m


def another_type(state, out):
    n = m = 0
    while state.level < 1:
        n += 1
        m += 2
    return n, m


def another_array(state, out):
    n = m = 0
    while state.grid[0] < 1:
        n += 1
        m += 2
    return n, m


def variable_of_its_own(state, out):
    running = True

    def stop():
        nonlocal running
        running = False

    state.stop = stop
    n = m = 0
    while running:
        n += 1
        m += 2
    return n, m


def variable_of_its_own_inside(state, out):
    running = True

    def stop():
        nonlocal running
        running = False

    state.stop = stop
    n = m = 0
    for r in range(3):
        for _ in range(10**14):
            if not running:
                break
            n += 1
            m += 2
        while running:
            n += 1
            m += 2
        out[r] = n
    return n, m


CASES = [
    variable_of_its_own,
    variable_of_its_own_inside,
    attribute,
    left_by_break,
    inner_while,
    inner_for,
    in_a_helper,
    written_in_a_helper,
    global_name,
    array,
    item_of_a_list,
    another_type,
    another_array,
]
AGAIN = [in_a_helper, written_in_a_helper]


class State:
    def __init__(self):
        self.running, self.level = True, 0
        self.stop = int
        self.flags, self.items, self.grid = np.zeros(1), [0], np.zeros(3)

    def change(self, *_):
        global RUNNING
        self.running, self.level, RUNNING = False, 2.5, False
        self.stop()
        self.flags[0], self.items[0] = 1, 1
        self.grid = np.ones(4, dtype=np.float32)


@pytest.fixture
def state():
    global RUNNING
    RUNNING = True
    guard = threading.Timer(30, _thread.interrupt_main)
    guard.start()
    yield State()
    guard.cancel()


def check(function, state):
    out = np.zeros(3)
    made = looped(function)
    with told(eager=True):
        n, m = made(state, out)
    assert m == 2 * n
    assert n > 1000 or function in AGAIN
    assert out[1] in (0, n)
    assert out[0] == 2 or function is not written_in_a_helper
    facts = [each["versions"] for each in (loop.facts for loop in heads.loops_of(made.__code__))]
    assert any(version["native_ns"] > 0 for each in facts for version in each)


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_a_thread_changes_it(function, state):
    other = threading.Timer(0.5, state.change)
    other.start()
    check(function, state)
    other.join()


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_a_handler_changes_it(function, state):
    before = signal.signal(signal.SIGALRM, state.change)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        check(function, state)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_variable_of_the_function_around_changes(state):
    running = True

    def counted(n):
        while running:
            n += 1
        return n

    def stop():
        nonlocal running
        running = False

    made = looped(counted)
    other = threading.Timer(0.5, stop)
    other.start()
    with told(eager=True):
        assert made(0) > 1000
    (facts,) = (loop.facts for loop in heads.loops_of(made.__code__))
    assert facts["versions"][0]["native_ns"] > 0
    other.join()


def test_what_changes_all_the_time(state):
    """A counter of another thread's: the program runs again and again, and Python in between."""

    def count():
        while not done.is_set():
            state.level += 1
            time.sleep(0.001)

    def seen(state, n):
        levels = total = 0
        last = -1
        for i in range(n):
            if state.level != last:
                last = state.level
                levels += 1
            total += i
        return levels, total

    done = threading.Event()
    other = threading.Thread(target=count)
    other.start()
    n = 50_000_000
    with told(eager=True):
        levels, total = looped(seen)(state, n)
    done.set()
    other.join()
    assert total == n * (n - 1) // 2
    assert levels >= 2


def test_nothing_changes(state):
    """Values that are equal but made anew each time are no reason to exit."""

    def steps(scale, n):
        x = 0.5
        for _ in range(n):
            x = x * scale.a + scale.b
        return x

    state.a, state.b = 0.999, 1e-3
    made = looped(steps)
    with told(eager=True):
        result = made(state, 30_000_000)
    assert type(result) is float
    (facts,) = (loop.facts for loop in heads.loops_of(made.__code__))
    assert [version["exits"] for version in facts["versions"]] == [0]
