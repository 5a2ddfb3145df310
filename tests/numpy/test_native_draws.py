"""Do native loops draw the random numbers that Python's calls would draw, and no others?"""

import ast
import itertools
import math
import random
import signal
import threading
import time

import numpy as np
import pytest
import ufuse
from test_native_loops import alike, outcome, state_of, told
from test_native_loops import check as every_exit
from texts import function_of
from ufuse.source import draws, heads
from ufuse.tracing.loops import looped

BACKENDS = ["compiled"]
KINDS = {
    "Generator": np.random.default_rng,
    "Philox": lambda seed: np.random.Generator(np.random.Philox(seed)),
    "MT19937": lambda seed: np.random.Generator(np.random.MT19937(seed)),
    "RandomState": np.random.RandomState,
    "Random": random.Random,
}
NAMES = {"np": np, "math": math, "random": random}

# Statements in a loop over `i`; `r` draws, `x` and `l` have few items, so that some do not exist.
STATEMENTS = [
    "s = r.random()",
    "s = s + 2 * r.random()",
    "s += r.random()",
    "k += r.random() < 0.5",
    "x[i] = r.random()",
    "x[i] += r.random()",
    "x[i] = x[i] * r.random() + r.random()",
    "l[i] = r.random()",
    "l[i] += i * r.random()",
    "l.append(r.uniform(0, i))",
    "s, x[i] = r.random(), s",
    "x[int(4 * r.random())] = i",
    "x[int(6 * r.random())] += r.random()",
    "x[:2] = x[1:3] * r.random()",
    "x += r.random()",
    "x = x + r.random() * x[i]",
    "if r.random() < 0.5: s += 1",
    "if i > 2 or r.random() < x[i]: s += 1",
    "if i < 3 and not (r.random() < 0.3 or r.random() > s): k += 1",
    "s = r.random() if i % 2 else x[i]",
    "s = x[i] if r.random() < 0.5 else r.random()",
    "s = math.sqrt(r.random()) + np.exp(r.random())",
    "s = max(r.random(), float(x[i]))",
    "s = (i > 1 and r.random()) + 1",
    "s = 0 <= r.random() < 0.7",
    "s = half(r.random()) + x[i]",
    "s = s * scaled(r) + k",
    "s = drawn(r) + s",
    "x[i] = drawn(r)",
    "s = total(r, 2)",
    "s = r.uniform()",
    "s = r.uniform(s, 2)",
    "s = r.uniform(r.random(), x[i])",
    "while r.random() < 0.6: s += 1",
    "for j in range(int(3 * r.random())): x[j] = r.random()",
    "k = (k + 1) * 2**40 + (r.random() < 0.5)",
    "s = 1 / (r.random() - r.random()) + 1 / (i - 4)",
    "assert r.random() < 0.9",
    "r.random()",
]
OF_NUMPY = [
    "s = r.uniform(low=x[i])",
    "x[i] = r.uniform(1, high=3)",
    "s = r.normal()",
    "s = s * r.standard_normal() + r.normal(k, 2)",
    "x[i] += r.exponential(i) - r.standard_exponential()",
    "k += r.poisson(i - 1) + r.geometric(0.5)",
    "x[i] = r.gamma(x[i], 2) + r.beta(i, 2 - i)",
    "s = r.normal(i, 3.5 - 2 * i)",
    "x = x + r.random(4)",
    "x[:] = r.random(size=4) * x[i]",
    "x = np.sqrt(r.random((2, 2)))[0]",
    "x = r.uniform(-1, 1, 3)",
    "x = r.uniform(0, i, size=(i + 1)) * i",
    "x = r.random(2 - i)",
    "x = x * r.random(i)",
    "s = r.random(None) + r.uniform(0, 1, None)",
]
OF_GENERATORS = [
    "k = r.integers(3)",
    "x[r.integers(0, 6)] = r.integers(-2, i + 1)",
    "k += r.integers(0, 10, endpoint=True) * r.integers(7)",
    "k = r.integers(i, 3)",
    "x = r.integers(0, 9, 5)",
    "x = r.standard_normal(4) + r.normal(0, 2, 4)",
    "x = r.exponential(x[i], size=(2, 4))[1] * r.standard_exponential(4)",
    "s = r.normal(loc=s) + r.normal(scale=2) + r.exponential(scale=i)",
    "x = x[r.integers(0, 4, size=3)] * 2",
    "x = x[r.integers(3, size=(2, i))][0]",
    "k = r.integers(x[i] > 0, 3)",
]
OF_STATES = [
    "k = r.randint(3) + 2**62 * r.randint(0, 3)",
    "s = r.rand() - r.random_sample()",
    "s = r.rand(size=i)",
    "x = r.randn(size=3)",
    "s = r.standard_normal(size=None) + r.rand(size=2)",
    "s = r.randn() + r.rand(3)[1]",
    "x = r.rand(2, 3)[1] - x[i]",
    "x = r.randint(0, 6, 5)",
    "x = r.randn(3) * r.randn() + r.rand()",
    "s = r.randn() * r.normal(0, 1) + (r.gamma(2.5) if r.rand() < 0.3 else r.standard_normal())",
    "x = r.standard_normal((3, 3))[0] * r.normal(i, 1, 3)",
    "s = r.exponential() + r.exponential(2) * r.standard_exponential()",
]
OF_PYTHONS = [
    "s = r.gauss(0, 1)",
    "x[i] = r.gauss(s, 1 + i) + r.gauss()",
    "s = r.gauss(0, s) * r.random()",
    "x[i] = r.gauss(0, x[i])",
    "k = r.randint(0, i) + 2**61 * r.randint(0, 4)",
    "k = r.randrange(i, 9) % 4",
]


def half(a):
    return a / 2


def scaled(r):
    return 1 - 0.5 * r.random()


def drawn(r):
    return 1 - r.random() ** 2


def total(r, n):
    s = 0.0
    for _ in range(n):
        s += r.random()
    return s


HELPERS = {"half": half, "scaled": scaled, "drawn": drawn, "total": total}
# A power might fail behind the draw, and so might the second round of a loop in a function.
LEFT_TO_PYTHON = (
    *("s = drawn(r)", "x[i] = drawn(r)", "s = total(r", "k = r.integers(x[i] > 0"),
    *("s = r.rand(size", "x = r.randn(size", "s = r.standard_normal(size=N"),
    *("s = r.uniform()", "s = r.uniform(r.random(), x[i])", "x[i] = r.gauss(0, x[i])"),
)


def in_a_loop(statement):
    text = f"def f(r, x, l, s, k):\n    for i in range(5):\n        {statement}\n    return x, l, s, k\n"
    return function_of(text, {**NAMES, **HELPERS})


def statements_of(kind):
    more = {"RandomState": OF_NUMPY + OF_STATES, "Random": OF_PYTHONS}
    return STATEMENTS + more.get(kind, OF_NUMPY + OF_GENERATORS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_statement(kind):
    for number, statement in enumerate(statements_of(kind)):
        generator = KINDS[kind](number)
        may_be = LEFT_TO_PYTHON if kind == "Random" else LEFT_TO_PYTHON[:7]
        native = not statement.startswith(may_be)
        every_exit(
            in_a_loop(statement), generator, np.ones(4), [0.5, 1.5], 0.25, 1, native=native, most=8
        )


BOUNDS = [0, 1, 2, 9, 255, 2**31, 2**32 - 2, 2**32 - 1, 2**32, 2**40 + 5, 2**62, 2**63 - 2]


def between(r, low, high, n, x):
    for i in range(n):
        x[i] = r.integers(low, high)
    return x


def up_to(r, low, high, n, x):
    for i in range(n):
        x[i] = r.integers(low, high, endpoint=True)
    return x


def of_a_state(r, low, high, n, x):
    for i in range(n):
        x[i] = r.randint(low, high)
    return x


@pytest.mark.parametrize("function", [between, up_to, of_a_state])
def test_integers(function):
    kinds = ["RandomState", "Random"] if function is of_a_state else ["Generator", "MT19937"]
    made = looped(function)
    for kind, bound, low in itertools.product(kinds, BOUNDS, [0, 1, -7, -(2**63)]):
        high = low + bound
        for given in [high, np.int64(high)] if kind != "Random" else [high]:
            args = (KINDS[kind](bound % 97), low, given, 40, np.zeros(40, np.int64))
            with told(eager=True):
                alike(outcome(made, args), outcome(function, args))
    (loop,) = heads.loops_of(made.__code__)
    assert loop.facts["versions"]


def of_numpys_module(n):
    np.random.seed(7)
    inside = 0
    for _ in range(n):
        u, v = np.random.rand(), np.random.uniform(-1, 1)
        inside += u * u + v * v < np.random.random()
        inside += np.random.randint(0, 3)
    return inside, np.random.rand()


def of_pythons_module(n):
    random.seed(7)
    inside = 0
    for _ in range(n):
        u, v = random.random(), random.uniform(-1, 1)
        inside += random.randint(0, 3) if u * u + v * v < 1 else random.randrange(2)
    return inside, random.random()


class Walker:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.x = 0.0

    def step(self, size):
        self.x += size * (self.rng.random() - 0.5)
        return self.x

    def walk(self, n):
        for _ in range(n):
            if self.step(2.0) > 3:
                self.x = 0.0
        return self.x, self.rng.random()


@pytest.mark.parametrize("function", [of_numpys_module, of_pythons_module])
def test_generators_of_modules(function):
    every_exit(function, 12, most=20)


def test_a_generator_in_an_attribute():
    expected = Walker(3).walk(400)
    function = looped(Walker.walk)
    with told(eager=True):
        alike(function(Walker(3), 400), expected)
        (loop,) = heads.loops_of(function.__code__)
        assert loop.facts["versions"], loop.facts
        # The methods are the same, the generator is another one.
        alike(function(Walker(4), 30), Walker(4).walk(30))


class Own(np.random.Generator):
    def random(self):
        return 0.5


def test_a_class_of_the_users_own():
    function = in_a_loop("s += r.random()")
    with told(eager=True):
        made = looped(function)
        assert made(Own(np.random.PCG64(1)), 0, 0, 0.0, 0)[2] == 2.5


@pytest.mark.parametrize("name", ["random", "getrandbits", "gauss"])
def test_methods_of_the_users_own(name, monkeypatch):
    """Of one generator, and of all."""
    function = in_a_loop("s += r.random() + r.gauss(0, 1) + r.randint(0, 5)")
    made = looped(function)
    with told(eager=True):
        made(random.Random(1), 0, 0, 0.0, 0)
        (loop,) = heads.loops_of(made.__code__)
        assert loop.facts["versions"]
        for is_of_class in (False, True):
            plain, ours = random.Random(2), random.Random(2)
            for each in [random.Random] if is_of_class else [plain, ours]:
                monkeypatch.setattr(each, name, lambda *_: 3 if name == "getrandbits" else 0.5)
            assert made(ours, 0, 0, 0.0, 0) == function(plain, 0, 0, 0.0, 0)
            assert state_of(ours) == state_of(plain)


def count_up(r, n):
    s = 0
    for _ in range(n):
        s += r.random() < 0.5
    return s


@pytest.mark.parametrize("kind", ["Generator", "RandomState", "Random"])
def test_other_threads_draw_from_the_same_generator(kind, by_clock):
    """Whoever draws, each number is drawn once."""
    shared, others = KINDS[kind](5), []
    is_over = threading.Event()

    def draw():
        while not is_over.is_set():
            if kind == "Random":
                others.append(len([shared.random() for _ in range(50)]))
            else:
                others.append(shared.random(20_000).size)

    function = looped(count_up)
    with told(eager=True):
        function(KINDS[kind](5), 10)
        thread = threading.Thread(target=draw)
        thread.start()
        rounds, end = 0, time.monotonic() + 0.4
        while time.monotonic() < end or not others:
            function(shared, 100_000)
            rounds += 100_000
        is_over.set()
        thread.join()
    alone, count = KINDS[kind](5), sum(others) + rounds
    if kind == "Random":
        count_up(alone, count)
    else:
        alone.random(count)
    assert state_of(alone) == state_of(shared)


def test_a_handler_draws(by_clock):
    """A signal's handler finds the generator as the loop has left it."""
    function, shared, seen = looped(count_up), np.random.RandomState(2), []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(shared.random()))
    rounds = 0
    try:
        with told(eager=True):
            function(np.random.RandomState(1), 10)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            end = time.monotonic() + 60
            while not seen and time.monotonic() < end:
                function(shared, 1_000_000)
                rounds += 1_000_000
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    alone = np.random.RandomState(2)
    assert seen[0] in alone.random(rounds + 1)
    assert state_of(alone) == state_of(shared)


def test_the_mode_of_a_call_is_told():
    made = ufuse.jit(count_up)
    with told(eager=True):
        made(np.random.default_rng(1), 50)
    assert "native" in str(made.explain(np.random.default_rng(1), 50))


# ---- The order in which things are evaluated ----


class Told:
    """A value that tells what is done with it, and raises when it is its turn."""

    def __init__(self, log, name, raises):
        self.log, self.name, self.raises = log, name, raises

    def tell(self, what, *with_):
        self.log.append(f"{self.name}.{what}{with_}")
        if len(self.log) == self.raises:
            raise KeyError(len(self.log))
        return Told(self.log, f"v{len(self.log)}", self.raises)

    def __repr__(self):
        return self.name

    def __bool__(self):
        self.tell("bool")
        return sum(map(len, self.log)) % 3 > 0

    def __index__(self):
        self.tell("index")
        return 1

    def __setitem__(self, key, value):
        self.tell("setitem", key, value)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.tell("get " + name)

    def __iter__(self):
        self.tell("iter")
        return iter([self.tell("next")])


def _telling(name):
    return lambda self, *with_: self.tell(name, *with_)


for _name in (
    *(
        [
            "call",
            "getitem",
            "add",
            "radd",
            "sub",
            "rsub",
            "mul",
            "rmul",
            "truediv",
            "rtruediv",
            "pow",
            "rpow",
            "iadd",
            "mod",
            "rmod",
        ]
    ),
    *(["lt", "le", "gt", "ge", "eq", "ne", "neg"]),
):
    setattr(Told, f"__{_name}__", _telling(_name))
Told.__hash__ = None

# Methods of lists and generators are looked up behind the draws that are their arguments.
WRITTEN = [
    *(each for each in STATEMENTS if "append" not in each and "(r.random()," not in each),
    *OF_NUMPY,
    *OF_GENERATORS,
    *OF_STATES,
    "x[s, i:k] = x.y + r.random() * x.z(k)",
    "x[s, i:k] += r.random()",
    "x[r.random()] += s",
    "x[s][r.random() + k] = i",
    "x.y += r.random() + s",
    "x.y.z += r.random()",
    "x.f(s, r.random(), k=x[i], q=r.rand()).g(r.random())",
    "s = [x[i], r.random(), s]",
    "s = x[i], r.random(), [s, r.random()]",
    "s = x[i] < r.random() < k",
    "s = x[i] < k < r.random()",
    "s = x or s and r.random() or k",
    "s = not (x and r.random())",
    "s = -r.random() if x or r.random() else k if r.random() else x[r.random()]",
    "s = (lambda: r.random())() + r.random()",
    "s = [r.random() for _ in x] + r.random()",
    "s = r.uniform(*x) + r.random()",
    "s = r.uniform(x, r.random(), **k)",
    "for s in r.random(): k = r.random()",
    "while not (x and r.random()):\n            k -= r.random()\n            if k: break",
    "if x[i]: s = r.random()\n        elif r.random(): s = x[i] + r.random()\n        else: k = x[r.random()]",
    "s: int = x + r.random()",
    "return x + r.random()",
    "if i and s: t = k\n        s = x + t + r.random()",
    "if i: t += r.random()\n        elif s: t = 1",
    "if s: t = 1\n        s = t + r.random()",
    "s = k = x + r.random()",
    "s = x @ r.random()",
]


def changed(text):
    """The function of a text whose loop has been split, and whether anything has been."""
    tree = ast.parse(text)
    definition = tree.body[0]
    local = frozenset("rxslkit")
    new = draws.split(definition.body[0], local)
    ast.fix_missing_locations(tree)
    names = dict(NAMES)
    exec(compile(tree, "<split>", "exec"), names)
    return names["f"], new


@pytest.mark.parametrize("statement", WRITTEN)
def test_the_order_of_evaluation_stays(statement):
    text = f"def f(r, x, l, s, k):\n    for i in range(2):\n        {statement}\n    return s, k\n"
    names = {**NAMES, **HELPERS}
    exec(text, names)
    function, _ = changed(text)
    function.__globals__.update(HELPERS)
    for raises in range(60):

        def run(f, raises=raises):
            log = []
            values = [Told(log, name, raises) for name in "rxlsk"]
            try:
                f(*values)
            except (KeyError, TypeError, UnboundLocalError, AssertionError) as error:
                log.append((type(error), str(error)))
            return log[:300]

        expected = run(names["f"])
        assert run(function) == expected
        if len(expected) < raises:
            break


def test_statements_are_split():
    for statement in STATEMENTS:
        text = f"def f(r, x, l, s, k):\n    for i in range(2):\n        {statement}\n"
        bare = statement in (
            *("s = r.random()", "r.random()", "s = r.uniform()", "s = r.uniform(s, 2)"),
            "s = total(r, 2)",
        )
        in_function = "drawn(r)" in statement or "scaled(r)" in statement
        assert bool(changed(text)[1]) != (bare or in_function), statement
