"""Do `f.stats()`, `f.warmup()` and `ufuse.disabled()` say and do what they promise?"""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import ufuse
from same import same

BACKENDS = ["compiled"]


def double(x):
    return x * 2 + 1


def test_stats_count_the_ways(by_clock):
    f = ufuse.jit(double)
    assert f.stats() == (0, 0, 0, 0.0, 0.0, 0, ())
    x = np.arange(6.0)
    for calls in range(1, 200):
        same(f(x), double(x))
        found = f.stats()
        assert found.replayed + found.traced + found.plain == calls
    assert found.traced >= 1
    assert found.plain >= 1, "the plain function was timed, too"
    [choice] = [choice for choice in found.choices if choice.ours]
    assert choice.numpy > 0
    assert choice.way in ("replayed", "plain")
    assert (choice.way == "plain") == f._dispatcher.prefers_plain(x)
    assert found.numpy > 0
    assert found.regret >= 0
    text = str(found)
    assert f"{found.replayed} calls replayed" in text
    assert "regret" in text
    assert "NumPy" in text


@pytest.mark.parametrize("is_pure", [True, False])
def test_new_code_and_defaults_where_the_plain_function_answers(by_clock, is_pure):
    seen = []

    def total(x, by=1.0):
        if not is_pure:
            seen.append(by)
        for i in range(len(x)):
            by += x[i]
        return by

    def product(x, by=1.0):
        if not is_pure:
            seen.append(by)
        for i in range(len(x)):
            by *= x[i]
        return by

    x = np.array([2.0, 3.0])
    f = ufuse.jit(total)
    for _ in range(200):
        same(f(x), total(x))
    total.__defaults__ = (10.0,)
    for _ in range(100):
        same(f(x), np.float64(15.0))
    total.__code__ = product.__code__
    for _ in range(100):
        same(f(x), np.float64(60.0))


def test_warmup_leaves_everything_ready():
    f = ufuse.jit(double)
    x = np.arange(7.0)
    f.warmup(x)
    assert f.stats().building == 0
    same(f(x), double(x))
    assert f.stats().replayed == 1

    def writes(x):
        x += 1
        raise KeyError("no")

    with pytest.raises(KeyError):
        ufuse.jit(writes).warmup(x)
    assert x.tobytes() == np.arange(7.0).tobytes()


def test_disabled_is_of_a_thread_and_nests():
    f = ufuse.jit(double)
    x = np.arange(5.0)
    with ufuse.disabled():
        same(f(x), double(x))
        with ufuse.disabled():
            same(f(x), double(x))
        same(f(x), double(x))
        assert f.stats().traced == 0
        other = threading.Thread(target=f, args=(x,))
        other.start()
        other.join()
        assert f.stats().traced == 1
    same(f(x), double(x))
    assert f.stats().replayed == 1


def test_disabled_in_a_process(tmp_path):
    program = """
import threading
import numpy as np, ufuse
def function(x):
    return type(x), x + 1
f = ufuse.jit(function)
f(np.ones(3))
thread = threading.Thread(target=f, args=(np.ones(3),))
thread.start()
thread.join()
print(f.stats().traced, f.explain(np.ones(3)).mode, f.__name__)
"""
    for switch, said in (("1", "0 "), ("0", "2 "), ("yes", "2 ")):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "UFUSE_DISABLE": switch, "UFUSE_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.startswith(said), done
        assert ("neither 0 nor 1" in done.stderr) == (switch == "yes")


SCALE = 2.0


def scaled(x):
    return x * SCALE


def test_stats_go_on_when_a_name_changes(by_clock, monkeypatch):
    f = ufuse.jit(scaled)
    x = np.arange(6.0)
    for _ in range(30):
        f(x)
    before = f.stats()
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    same(f(x), scaled(x))
    found = f.stats()
    assert found.calls == before.calls + 1 == 31
    assert found.numpy >= before.numpy


def test_explain_says_how_earlier_calls_were_answered():
    f = ufuse.jit(double)
    x = np.arange(6.0)
    assert "calls so far" not in str(f.explain(x))
    f(x)
    found = f.explain(x)
    assert found.stats.calls == 2
    assert f"calls so far: {found.stats}" in str(found)
    assert "calls so far" in found._repr_html_()


def test_calls_that_wait_have_their_loops():
    """Otherwise something else would answer the first of them."""

    def function(x):
        return np.floor(x * 3.25 - 1) // (x + 7) % 5

    x = np.arange(50.0)
    f = ufuse.jit(function, compile="wait")
    with ufuse._core.backend("deferred"):
        same(f(x), function(x))
    assert f.stats().traced == 1
    assert f.stats().building == 0
    origins = {group["origin"] for row in ufuse._core.reports() for group in row["groups"]}
    assert origins <= {"compiled", "disk cache", "memory cache"}, origins


def test_there_are_two_ways_to_compile():
    with pytest.raises(ValueError, match="compile must be 'background' or 'wait', not 'never'"):
        ufuse.jit(compile="never")
