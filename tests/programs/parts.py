"""What do all random programs begin with? Helpers and classes, from which each takes its own.

The texts have places like those in ``expressions``. Helpers are called ``twice(e, scale)`` and the
like whatever they do; all classes have the same attributes and methods, done in different ways.
"""

IMPORTS = """
import collections
import contextlib
import copy
import dataclasses
import functools
import itertools
import math
import operator
import pickle
import types
import warnings

import numpy as np
from scipy import linalg, ndimage, signal, special

SCALE = 2.0
TABLE = np.array([0.5, -1.0, 2.0])
STATE = {"n": 2}
LOG = []
KEPT = {}
QUEUE = collections.deque(maxlen=3)
COUNT = 0
LAST = np.ones(1)
"""

# One of each group stands in each program. A row with `{BLOCK}` is filled with statements.
HELPERS = {
    "twice": [
        "def twice(e, scale=2.0):\n    return e * scale",
        "def twice(e, scale=2.0):\n    {BLOCK}\n    return e * scale + SCALE",
        "def twice(e, /, scale=2.0):\n    return np.where(e > 0, e, e * scale)",
        "twice = lambda e, scale=2.0: e * scale - 1",
        "@jit\ndef twice(e, scale=2.0):\n    return e * scale + 1",
        "def twice(e, scale=2.0):\n    if scale > 2:\n        return e\n    return e + scale",
        "def twice(e, scale=2.0, *more, **named):\n    return e * scale + len(more) + len(named)",
        "twice = functools.partial(lambda e, g, scale=2.0: e * scale + g.sum(), g=TABLE)",
    ],
    "third": [
        "def third(e, scale=0.5):\n    {BLOCK}\n    return e - scale",
        "@jit\ndef third(e, scale=0.5):\n    {BLOCK}\n    return e - scale",
        "def third(e, scale=0.5):\n    return twice(e, scale) + e",
        "def third(e, scale=0.5, memo={}):\n"
        "    memo['calls'] = memo.get('calls', 0) + 1\n    return e * scale + memo['calls']",
        "class Third:\n    def __init__(self):\n        self.offset = 1.0\n"
        "    def __call__(self, e, scale=0.5):\n        self.offset += 1\n"
        "        return e * scale + self.offset\n\nthird = Third()",
    ],
    "mixed": [
        "def mixed(e, g, *, part=0.5):\n    return e * part + g * (1 - part)",
        "def mixed(e, g, *, part=0.5):\n    {BLOCK}\n    return e - g * part",
        "def mixed(e, g, part=0.5):\n    g = g + e\n    g *= part\n    return g",
    ],
    "total": [
        "def total(*parts, scale=1.0):\n    return sum(parts) * scale",
        "def total(first, *parts, scale=1.0):\n    made = first.copy()\n"
        "    for e in parts:\n        made += e\n    return made * scale",
    ],
    "both": [
        "def both(e):\n    return e - e.mean(), e.sum()",
        "def both(e):\n    {BLOCK}\n    return e, e.max()",
        "@jit\ndef both(e):\n    return e * 2, e.min()",
    ],
    "changed": [
        "def changed(e):\n    e += 1\n    return e",
        "def changed(e):\n    e[0] = e[-1]\n    return e[::-1]",
        "@jit\ndef changed(e):\n    e *= 0.5\n    return e",
        "def changed(e):\n    np.negative(e, out=e)\n    return e + 1",
    ],
    "returned": [
        "def returned(e):\n    return e",
        "def returned(e):\n    return e[:]",
        "@jit\ndef returned(e):\n    return e",
    ],
    "deeper": [
        "def deeper(e, rounds):\n    rounds = abs(rounds) % 4\n"
        "    return e if rounds == 0 else deeper(e * 0.5 + 1, rounds - 1)",
    ],
    "produced": [
        "def produced(e, rounds):\n    for k in range(abs(rounds) % 3 + 1):\n"
        "        e = e * 2 + k\n        yield e",
        "def produced(e, rounds):\n    try:\n        yield e + 1\n        yield e + rounds\n"
        "    finally:\n        LOG.append('closed')",
    ],
    "compose": [
        "def compose(f, g):\n    def both_of_them(e, scale=1.0):\n"
        "        return f(g(e)) * scale\n    return both_of_them",
        "def compose(f, g):\n    return lambda e, scale=1.0: f(g(e), scale)",
    ],
    "maker": [
        "def maker(start):\n    calls = 0\n    def made(e, scale=1.0):\n        nonlocal calls\n"
        "        calls += 1\n        return e * scale + start * calls\n    return made",
        "def maker(start):\n    seen = []\n    def made(e, scale=1.0):\n"
        "        seen.append(e)\n        return seen[0] * scale + start\n    return made",
        "def maker(start):\n"
        "    return functools.partial(lambda g, e, scale=1.0: e * scale + g, start)",
    ],
    "watched": [
        "def counted(f):\n    @functools.wraps(f)\n    def inner(*args, **kwargs):\n"
        "        counted.calls += 1\n        return f(*args, **kwargs) + counted.offset\n"
        "    return inner\n\ncounted.calls = 0\ncounted.offset = 0.0\n\n\n"
        "@counted\ndef watched(e):\n    return np.sqrt(e * e + 1)",
        "def counted(f):\n    return f\n\ncounted.calls = 0\ncounted.offset = 1.0\n\n\n"
        "@jit\n@counted\ndef watched(e):\n    return e * counted.offset",
    ],
    "cached": [
        "@functools.lru_cache(maxsize=None)\ndef cached(n):\n    LOG.append(n)\n    return n * 0.5",
        "@functools.cache\ndef cached(n):\n    return math.sqrt(abs(n) + 1.0)",
    ],
    "managed": [
        "@contextlib.contextmanager\ndef managed(e):\n    LOG.append('in')\n    try:\n"
        "        yield e * 2\n    finally:\n        LOG.append('out')",
        "class managed:\n    def __init__(self, e):\n        self.e = e\n"
        "    def __enter__(self):\n        self.e = self.e + 1\n        return self.e\n"
        "    def __exit__(self, kind, error, traceback):\n        LOG.append(kind)\n"
        "        return kind is ValueError",
    ],
    "remember": [
        "def remember(e):\n    global LAST\n    LAST = e",
        "def remember(e):\n    KEPT['last'] = e",
        "def remember(e, kept=[]):\n    kept.append(e)\n    if len(kept) > 3:\n        del kept[0]",
        "def remember(e):\n    remember.last = e",
    ],
    "noted": [
        "def noted(e):\n    LOG.append(float(e.sum()))",
        "def noted(e):\n    STATE.setdefault('notes', []).append((len(e), e.max()))",
        "def noted(e):\n    print('noted', e.shape, e.sum())",
    ],
    "say": [
        "def say(e):\n    warnings.warn(f'said {len(e)}', UserWarning, stacklevel=2)",
        "def say(e):\n    if e.sum() > 0:\n        warnings.warn('positive', RuntimeWarning)",
    ],
    "failing": [
        "def failing(e, n):\n    if n % 2:\n        raise ValueError(f'odd {n:d}', e)\n"
        "    return e + n",
        "def failing(e, n):\n    e[0] += 1\n    return e / n + e[n]",
        "@jit\ndef failing(e, n):\n    made = e * 2\n    made[n] = 1\n    return made",
        "def failing(e, n):\n    with np.errstate(invalid='raise', divide='raise'):\n"
        "        return np.log(e - n)",
    ],
    "Trouble": [
        "class Trouble(Exception):\n    def __init__(self, value, n):\n"
        "        super().__init__(n)\n        self.value = value",
        "class Trouble(ValueError):\n    def __init__(self, value, n):\n"
        "        super().__init__(value, n)\n        self.value = value * 2",
    ],
}

# The methods that all classes have; `{BLOCK}` as above.
METHODS = {
    "step": [
        "def step(self, e):\n    return e + self.k * self.u",
        "def step(self, e):\n    {BLOCK}\n    return e * self.k - self.u.mean()",
        "@jit\ndef step(self, e):\n    return (e - self.u) * self.k",
        "@jit\ndef step(self, e):\n    {BLOCK}\n    return e + self.k",
        "def step(self, e):\n    self.last = e\n    return np.maximum(e, self.u)",
    ],
    "advance": [
        "def advance(self, dt=0.1):\n    self.u = self.u + dt * (np.roll(self.u, 1) - self.u)",
        "@jit\ndef advance(self, dt=0.1):\n"
        "    self.u = self.u + dt * (np.roll(self.u, 1) - self.u)\n    self.k += 1",
        "def advance(self, dt=0.1):\n    self.u += dt\n    self.history.append(self.u)",
        "def advance(self, dt=0.1):\n    old = self.u.copy()\n    self.u[1:] += dt * old[:-1]\n"
        "    self.table['old'] = old",
        "@jit\ndef advance(self, dt=0.1):\n    old = self.u\n    self.u = old * (1 - dt)\n"
        "    self.change = self.u - old\n    return self.change",
    ],
    "energy": [
        "@property\ndef energy(self):\n    return (self.u ** 2).sum()",
        "@property\n@jit\ndef energy(self):\n    return 0.5 * (self.u @ self.u)",
        "@property\ndef energy(self):\n    self.asked = getattr(self, 'asked', 0) + 1\n"
        "    return self.u.sum() + self.asked",
    ],
    "half": [
        "@property\ndef half(self):\n    return self.u * 0.5\n\n"
        "@half.setter\ndef half(self, value):\n    self.u = value * 2",
        "@property\ndef half(self):\n    return self.u\n\n"
        "@half.setter\ndef half(self, value):\n    self.u[...] = value",
    ],
    "__call__": [
        "def __call__(self, e):\n    return self.step(e) + self.shared",
        "@jit\ndef __call__(self, e):\n    return e * self.k",
        "def __call__(self, e):\n    self.k += 0.5\n    return e - self.k",
    ],
    "weighted": [
        "def weighted(self, e, *, by=1.0):\n    return e * by + self.u",
        "def weighted(self, e, *, by=1.0):\n    {BLOCK}\n    return self(e) * by",
    ],
    "__getitem__": [
        "def __getitem__(self, i):\n    return self.u[i]",
        "def __getitem__(self, i):\n    return (self.u * 2)[i]",
        "@jit\ndef __getitem__(self, i):\n    return self.u[i] + self.k",
    ],
    "__setitem__": [
        "def __setitem__(self, i, value):\n    self.u[i] = value",
        "def __setitem__(self, i, value):\n    self.u = self.u.copy()\n    self.u[i] = value\n"
        "    self.history.append((i, value))",
    ],
    "__mul__": [
        "def __mul__(self, other):\n    return self.u * other\n\n"
        "def __rmul__(self, other):\n    return other * self.u",
        "def __mul__(self, other):\n    self.history.append((type(other), other))\n"
        "    return self.u * self.k\n\n__rmul__ = __mul__",
        "def __mul__(self, other):\n    self.last = other\n    return self.u + len(repr(other))\n\n"
        "def __rmul__(self, other):\n    return NotImplemented",
        "@jit\ndef __mul__(self, other):\n    return self.u * other + self.k\n\n"
        "def __rmul__(self, other):\n    return self * other",
        "def __mul__(self, other):\n    return self.u[:1] * sum(range(int(other.real) % 5))\n\n"
        "__rmul__ = __mul__",
    ],
    "__imul__": [
        "def __imul__(self, other):\n    self.u = self.u * other\n    return self",
        "def __imul__(self, other):\n    self.history.append((type(other), other))\n"
        "    return self",
        "def __imul__(self, other):\n    self.k = other\n    return self",
    ],
    "__lt__": [
        "def __lt__(self, other):\n    return self.k < other",
        "def __lt__(self, other):\n    self.history.append(other)\n"
        "    return isinstance(other, float)",
    ],
    "__contains__": [
        "def __contains__(self, value):\n    return value in self.u.tolist()",
        "def __contains__(self, value):\n    return type(value) is int",
    ],
    "__len__": ["def __len__(self):\n    return len(self.u)"],
    "__enter__": [
        "def __enter__(self):\n    return self.u\n\n"
        "def __exit__(self, kind, error, traceback):\n    self.k = 1.0",
        "def __enter__(self):\n    self.saved = self.u.copy()\n    return self.u * 2\n\n"
        "def __exit__(self, kind, error, traceback):\n    self.u = self.saved\n    return False",
    ],
    "made": [
        "@classmethod\ndef made(cls, e):\n    return cls(e * 2, k=cls.shared)",
        "@classmethod\ndef made(cls, e):\n    self = cls(e)\n    self.note = e\n    return self",
    ],
    "plain": [
        "@staticmethod\ndef plain(e):\n    return e + 1",
        "@staticmethod\n@jit\ndef plain(e):\n    return np.cos(e)",
    ],
    "more": [
        "def __eq__(self, other):\n    return self is other\n\n__hash__ = object.__hash__",
        "def __eq__(self, other):\n    return np.array_equal(self.u, other.u)\n\n__hash__ = None",
        "def __add__(self, other):\n    return self.u + other\n\n"
        "def __iter__(self):\n    return iter(self.u)",
    ],
}

# How classes begin. The first is called Model, the second Grid, and others need what is above them.
CLASSES = {
    "Model": [
        "class Model:\n    shared = 0.5\n\n    def __init__(self, u, k=1.5):\n"
        "        self.u = u\n        self.k = k\n"
        "        self.history = []\n        self.table = {}",
        "class Model:\n    shared = 0.5\n    history = []\n\n    def __init__(self, u, *, k=1.5):\n"
        "        self.u, self.k = u * 1.0, k\n        self.table = {'u': u}",
        "@dataclasses.dataclass(eq=False)\nclass Model:\n    u: object\n    k: float = 1.5\n"
        "    history: list = dataclasses.field(default_factory=list)\n"
        "    table: dict = dataclasses.field(default_factory=dict)\n"
        "    shared = 0.5",
        "class Root:\n    def __init__(self, u, k):\n        self.u = np.asarray(u)\n"
        "        self.k = k\n        self.history = [self.u]\n\n"
        "    def step(self, e):\n        return e - self.u\n\n\n"
        "class Model(Root):\n    shared = 0.5\n\n    def __init__(self, u, k=1.5):\n"
        "        super().__init__(u, k)\n        self.table = {}",
        "class Model:\n    shared = 0.5\n\n    @jit\n    def __init__(self, u, k=1.5):\n"
        "        self.u = u + 1\n        self.k = k\n        self.history, self.table = [u], {}",
    ],
    "Grid": [
        "class Grid(Model):\n    def step(self, e):\n        return super().step(e) * 0.5",
        "class Grid(Model):\n    shared = 1.5\n\n    def advance(self, dt=0.1):\n"
        "        super().advance(dt)\n        self.u = self.u + 1\n\n"
        "    @property\n    def energy(self):\n        return super().energy + 1",
        "class Grid(Model):\n    @jit\n    def step(self, e):\n"
        "        return super().step(e) - self.u",
        "class Grid(Model):\n    def __init__(self, u, k=2.0):\n        super().__init__(u, k=k)\n"
        "        self.inner = Model(u * 2)\n\n    def __call__(self, e):\n"
        "        return self.inner.step(e) + self.k",
    ],
}

# Arguments of the program's calls: made anew by `inputs(k)`, of another kind in each round.
INPUTS = '''
def inputs(k):
    """What the calls of round ``k`` are given."""
    LOG.clear()
    n, dtype = {SIZES}[k], {DTYPES}[k]
    numbers = np.random.default_rng([{SEED}, k])
    given = types.SimpleNamespace()
    given.base = numbers.normal(size=4 * n).astype(dtype)
    given.a = {A}
    given.b = (numbers.normal(size=n) * 3).astype(dtype)
    given.v = {VIEW}
    given.m = {MATRIX}
    given.c = numbers.integers(-4, 5, size=n)
    given.n, given.s = {N}[k], {S}[k]
    given.pair = (given.a, given.v)
    given.items = {ITEMS}
    given.table = {TABLE}
    given.model = Model({FIRST})
    given.other = Grid({SECOND})
    given.fn = twice
    given.rng = np.random.default_rng(k)
    return given
'''
PLACES = {
    "SIZES": ["[6, 6, 6]", "[6, 6, 9]", "[6, 5, 6]", "[6, 40, 6]", "[3, 6, 1]"],
    "DTYPES": 5 * ['["d", "d", "d"]']
    + ['["d", "f", "d"]', '["d", "d", "l"]', '["f", "f", "d"]', '["d", "D", "d"]'],
    # Not every fourth element: NumPy 2.4 negates other ones than those in `np.negative(a, out=a)`.
    "A": ["given.base[:n]", "given.base[:n]", "given.base[: 3 * n : 3]", "given.base[n::-1][:n]"],
    "VIEW": ["given.a", "given.a[:]", "given.a[::-1]", "given.base[1 : n + 1]", "given.b[:]"]
    + ["given.base[3 * n :]"],
    "MATRIX": ["numbers.normal(size=(n, n)).astype(dtype)"]
    + ["numbers.normal(size=(n, n)).astype(dtype).T", "np.outer(given.a, given.b)"],
    "N": ["[2, 2, 2]", "[1, 2, 3]", "[0, 3, -1]"],
    "S": ["[0.5, 0.5, 0.5]", "[0.5, 1.5, -2.0]", "[1, 0.5, 2]", "[np.float64(1.5), 0.5, 0.25]"],
    "ITEMS": ["[given.a, given.b]", "[given.b, given.b, given.a * 2]", "[given.v, given.a]"]
    + ["list(given.m)"],
    "TABLE": ['{"u": given.a, "w": given.b}', '{"u": given.b * 2, "w": given.m[0]}']
    + ['{"u": given.a, "w": given.a, "deep": {"x": [given.b, (given.a, 2)]}}'],
    "FIRST": ["given.a", "given.b * 2", "given.v", "given.b, k=given.s"],
    "SECOND": ["given.b", "given.a[::-1]", "given.b * 0.5"],
}
