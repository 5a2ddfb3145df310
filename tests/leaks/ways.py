"""Ways in which calls are answered: each makes many calls in a process of its own.

``python ways.py NAME`` makes the calls of one way and prints what the process holds, again and
again between them, a line of JSON each; the last line tells of references. ``test_leaks.py`` reads
it. A function below makes what the calls of a way need, and returns what makes the next call, which
is given the call's number. The first calls are not counted: caches fill until they are full. None
calls ``np.empty`` or its like without a dtype: NumPy 2 itself does not give back a reference there.
"""

import contextlib
import functools
import gc
import json
import linecache
import sys
import threading
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import ufuse
import ufuse.numpy as lazy
from held import References, amounts
from ufuse import _core
from ufuse.tracing import loops

WAYS = {}
LOOKS = 20


class Way(NamedTuple):
    """How calls are made.

    Attributes
    ----------
    make : ``make()(number)`` is a call, or a few
    answered : which of the counts in ``stats()`` has each call in it; none where nothing is counted
    calls : how many are looked at
    warm_up : how many come before them
    """

    make: Callable[[], Callable[[int], object]]
    answered: str | None
    calls: int
    warm_up: int


def way(answered=None, calls=10_000, warm_up=1000):
    def add(make):
        WAYS[make.__name__] = Way(make, answered, calls, warm_up)
        return make

    return add


# Where a call takes milliseconds: Python compiles, or all objects are searched.
FEW = {"calls": 2000, "warm_up": 500}


@way("replayed")
def replayed():
    """With another number, and another array, each time."""
    step = ufuse.jit(lambda x, dt: x + 0.5 * dt * x)
    arrays = [np.arange(10.0), np.arange(10.0)]
    return lambda k: step(arrays[k % 2], k * 0.1)


@way("replayed")
def replayed_by_the_interpreter():
    step = ufuse.jit(lambda x: np.sqrt(x * x + 1).sum(axis=0))
    x = np.arange(20.0).reshape(5, 4)

    def call(k):
        with _core.backend("interpreted"):
            return step(x)

    return call


@way("replayed")
def replayed_with_containers():
    """Tuples, lists and dicts of arrays, in and out."""
    f = ufuse.jit(lambda pair, more: {"sum": [pair[0] + more["x"], pair[1]], "views": pair[1][1:]})
    x, y = np.arange(10.0), np.arange(10.0)
    return lambda k: f((x, y), {"x": y})


@way("replayed")
def replayed_in_place():
    def change(x, out):
        x *= -1
        x[1:-1] = x[2:] + 1
        np.add(x, 1.0, out=out)
        return out[2:], x

    native, x, out = ufuse.jit(change), np.arange(10.0), np.zeros(10)
    return lambda k: native(x, out)


@way("replayed")
def replayed_with_large_results():
    """Their memory is kept for the next ones."""
    f = ufuse.jit(lambda x: (x * 2, (x + 1)[::2]))
    x = np.arange(float(1 << 15))
    return lambda k: f(x)


@way("replayed")
def replayed_with_new_arguments():
    f = ufuse.jit(lambda x, y: np.maximum(x.T, y.T).T.sum(axis=1))
    x, y = np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(4, 3).T
    return lambda k: f(x.copy(), y * k)


@way("traced")
def traced():
    """It changes a list, so Python runs at each call."""
    seen = [None]

    def f(x):
        seen[0] = float(x[0])
        y = x * 2
        return y[1:] + y[:-1], np.float32(3)

    native, x = ufuse.jit(f), np.arange(10.0)
    return lambda k: native(x)


@way()
def plain():
    """It binds a global name by a statement."""

    def f(x):
        global last
        match x + 1:
            case last:
                return last

    native, x = ufuse.jit(f), np.arange(10.0)
    return lambda k: native(x)


@way()
def assigns_global_names():
    def f(x):
        global last, kept
        last, kept = x + 1, [x, x * 2]
        last += 1
        return last

    native, x = ufuse.jit(f), np.arange(10.0)
    return lambda k: native(x)


@way()
def plain_because_disabled():
    native, x = ufuse.jit(lambda x: x + 1), np.arange(10.0)

    def call(k):
        with ufuse.disabled():
            return native(x)

    return call


@way("plain")
def plain_because_faster():
    """The clock decides; the plain function is faster."""
    _core.choose_by("clock")
    native, x = ufuse.jit(lambda x, dt: np.sort(x * dt)), np.arange(3.0)
    return lambda k: native(x, 0.5)


@way()
def plain_because_under_a_strict_error_state():
    native, x = ufuse.jit(lambda x: x + 1), np.arange(10.0)

    def call(k):
        with np.errstate(all="raise"):
            return native(x)

    return call


@way("replayed")
def forced():
    """Python is told values, and goes on in other ways."""

    def f(x):
        y = x - 5
        if y.sum() > 0:
            y = y * 2
        n = int(np.abs(x).max()) % 3
        while n > 0:
            y = y + n
            n -= 1
        return y, float(y[0])

    native = ufuse.jit(f)
    arrays = [np.arange(8.0) + k for k in range(5)]
    return lambda k: native(arrays[k % 5])


@way("replayed")
def calls_of_numpy():
    def f(x):
        y = np.sort(x * 2)
        return y[y > 3] + 1, np.linalg.inv(np.diag(y + 1)), np.concatenate([x, y], axis=0)

    native, x = ufuse.jit(f), np.arange(6.0)
    return lambda k: native(x)


@way("traced")
def calls_of_numpy_that_warn():
    """They are recorded, and never repeated."""

    def f(x):
        with np.errstate(over="ignore"):
            y = np.sort(x * 2)
        return (y * 1e200) @ (y * 1e200), np.linalg.eigh(np.diag(y)), {"x": np.repeat(y, 2)}

    native, x = ufuse.jit(f), np.arange(6.0)
    return lambda k: native(x)


@way("traced")
def exceptions():
    """NumPy's, the user's, and some that the function catches, while operations are pending."""

    def fails(x, k):
        y = x * 0.5
        x[...] = y + 1
        if k == 0:
            return y + np.arange(7.0)
        if k == 1:
            raise KeyError(y)
        try:
            y.reshape(7)
        except ValueError as error:
            message = str(error)
        try:
            return y[:, 1]
        finally:
            x -= len(message) > 0

    native, x = ufuse.jit(fails), np.arange(10.0)

    def call(k):
        try:
            native(x, k % 3)
        except (ValueError, KeyError, IndexError):
            return
        raise AssertionError("it raises")

    return call


@way("replayed")
def objects():
    """Attributes are read and assigned."""

    class Model:
        def __init__(self):
            self.state = np.zeros(10)
            self.rate = 0.5

        def advance(self, x):
            self.state = self.state * self.rate + x
            return self.state.sum()

    native, model, x = ufuse.jit(Model.advance), Model(), np.arange(10.0)
    return lambda k: native(model, x)


class Walker:
    def __init__(self, x):
        self.x = x
        self.me = self

    def step(self, dt):
        self.speed = self.x * dt
        return self

    def __add__(self, other):
        return Walker(self.x + other.x)


@way("traced")
def new_objects():
    """They refer to themselves, and have methods and operators."""

    def f(walker, dt):
        return (walker.step(dt) + Walker(walker.speed)).x

    native, x = ufuse.jit(f), np.arange(10.0)
    return lambda k: native(Walker(x), 0.5)


@way(warm_up=5000)
def new_shapes():
    """A size that no call had before: more of them than what was made for sizes is kept of."""
    native = ufuse.jit(lambda x: (np.exp(x - x.max()) + x.sum()) * 2)
    return lambda k: native(np.arange(20.0 + k))


@way(warm_up=6000)
def recurring_shapes():
    """More of them than a function has recordings.

    NumPy keeps freed blocks of each size up to 1,024 bytes for later, so these are longer; malloc
    keeps some too, so there are many first calls.
    """
    native = ufuse.jit(lambda x: (np.exp(x - x.max()) + x.sum()) * 2)
    return lambda k: native(np.arange(130.0 + k % 300))


@way("replayed")
def new_dtypes_and_ranks():
    native = ufuse.jit(lambda x: (x + x).sum(axis=0) + 1)
    arrays = [np.ones((2, 3, 4)[: 1 + k % 3], "bhilfdFD"[k // 3]) for k in range(24)]
    return lambda k: native(arrays[k % 24])


@way("traced")
def callbacks():
    """Others call what the function hands them, in Python and in C."""

    def f(x):
        total = functools.reduce(lambda a, b: a + b, map(lambda row: row * 2, x))
        ordered = sorted([2, 0, 1], key=lambda i: float(x[i, 0]))
        return total, [x[i] for i in ordered], np.vectorize(lambda v: v + 1)(x[0])

    native, x = ufuse.jit(f), np.arange(12.0).reshape(3, 4)
    return lambda k: native(x)


@way("traced", **FEW)
def closures():
    """Functions that are made and returned by the call."""

    def f(x):
        y = x * 2

        def inner(z=y):
            return z + y

        return inner, inner()

    native, x = ufuse.jit(f), np.arange(10.0)
    return lambda k: native(x)[0]()


@way()
def loops_of_helpers():
    """They go on natively from their first round on; one of the helpers is a new one each time."""
    _core.choose_programs(eager=True)

    def total(x):
        s = 0.0
        for i in range(len(x)):
            s += x[i]
        return s

    def make(by):
        def scaled(x):
            for i in range(len(x)):
                x[i] *= by
            return x

        return loops.plain(lambda x: total(x) + total(scaled(x[1:])))

    f, x = make(1.0), np.arange(10.0)
    return lambda k: (f(x), make(1.0)(x))


@way()
def new_functions():
    """Each is made, called three times, and forgotten."""
    x = np.arange(10.0)

    def call(k):
        native = ufuse.jit(lambda x, dt=0.5: x * k + dt)
        native.last = native
        return [native(x) for _ in range(3)]

    return call


@way(**FEW)
def new_sources():
    """A cell of a notebook that is run again and again: each time its text is compiled anew."""
    names, x = {"np": np}, np.arange(10.0)

    def call(k):
        file, text = f"<cell {k}>", "def f(x):\n    return x * 2 + 1\n"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        exec(compile(text, file, "exec"), names)
        ufuse.jit(names["f"])(x)
        del linecache.cache[file]

    return call


@way(**FEW)
def new_recursive_functions():
    x = np.arange(10.0)

    def call(k):
        def powers(x, n):
            return [x] if n == 0 else [x, *powers(x * x, n - 1)]

        return ufuse.jit(powers)(x, 2)

    return call


@way("traced", **FEW)
def stopped_in_the_middle():
    """Tracing ends after some operations, and the rest runs as plain Python."""

    def f(x):
        for k in range(10):
            x = x + k
        return x, [x] * 2

    native, x = ufuse.jit(f), np.arange(10.0)

    def call(k):
        with _core.most_operations(5):
            return native(x)

    return call


@way("traced")
def warned():
    def f(x):
        return np.log(x) / 0.0

    native, x = ufuse.jit(f), np.arange(10.0) - 2

    def call(k):
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            return native(x)

    return call


@way("traced")
def escaped():
    """Arrays that are kept by others, and by a traceback."""
    kept = {}

    def f(x):
        kept["y"] = y = x * 2
        kept["cycle"] = [y + 1, kept]
        raise RuntimeError(y * 3)

    native, x = ufuse.jit(f), np.arange(10.0)

    def call(k):
        try:
            native(x)
        except RuntimeError as error:
            kept["error"] = error

    return call


@way()
def coroutines_and_generators():
    async def f(x):
        return x + 1

    def g(x):
        yield x + 1
        yield x + 2

    awaited, iterated, x = ufuse.jit(f), ufuse.jit(g), np.arange(10.0)

    def call(k):
        with contextlib.suppress(StopIteration):
            awaited(x).send(None)
        return next(iterated(x))

    return call


@way("replayed")
def threads():
    """Each call in a thread of its own."""
    native, x = ufuse.jit(lambda x: (x * 2).sum()), np.arange(10.0)

    def call(k):
        thread = threading.Thread(target=native, args=(x,))
        thread.start()
        thread.join()

    return call


@way()
def one_by_one():
    """``import ufuse.numpy as np``."""
    x = np.arange(12.0).reshape(3, 4)
    return lambda k: lazy.sum(lazy.sqrt(x + 1), axis=0) + lazy.where(x > 3, x, 0)[0]


def main(name):
    make, answered, calls, warm_up = WAYS[name]
    with _core.backend("compiled"):
        call = make()
        for number in range(warm_up):
            call(number)
        references = References()
        for number in range(calls):
            if number % (calls // LOOKS) == 0:
                print(json.dumps(amounts()))
            if number == calls // 2:
                references.count()
            call(warm_up + number)
    changes = references.changes(least=calls // 10)
    if answered is not None:
        kind = type(ufuse.jit(len))
        found = [each.stats() for each in gc.get_objects() if type(each) is kind]
        assert sum(getattr(stats, answered) for stats in found) >= calls // 2, found
    print(json.dumps(changes))


if __name__ == "__main__":
    main(sys.argv[1])
