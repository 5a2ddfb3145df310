"""Do random loops that have become native do what Python does?

Programs are made from seeds: nests of `for` and `while` with branches, jumps, numbers of Python's
and NumPy's, elements of arrays of all dtypes, divisions by zero, overflows, indices out of bounds;
those with an odd seed have lists as well, which grow while loops go over them, one in three has
objects with attributes and methods, and one in five draws random numbers.
Each runs plainly, with programs from the first round on, and with programs that exit after some
statements. `UFUSE_TEST_LOOPS=5000` tries so many; `UFUSE_TEST_LOOPS_FIRST` says from which seed on.
"""

import linecache
import os
import random
import sys

import numpy as np
import pytest
from test_native_loops import check

sys.set_int_max_str_digits(0)  # numbers are compared as texts
COUNT = int(os.environ.get("UFUSE_TEST_LOOPS", "40"))
FIRST = int(os.environ.get("UFUSE_TEST_LOOPS_FIRST", "0"))
DTYPES = ["f8", "f8", "f8", "i8", "i8", "f4", "i4", "u1", "i2", "?"]


class Thing:
    """An object whose attributes loops assign."""

    def __init__(self, a, b, u):
        self.a, self.b, self.u = a, b, u

    def __repr__(self):
        return repr(
            [(name, type(each), np.asarray(each).tolist()) for name, each in vars(self).items()]
        )

    def grow(self, by):
        self.a = self.a + by
        self.u[1] = self.u[0]
        self.b -= self.u[2]
        return self.b

    def swap(self, c):
        self.a, self.b = self.b, self.a
        if self.a > c:
            return self.a / (self.b - c)
        return c

    def renew(self):
        v = self.u + self.a
        self.u = v
        return v[0]


class Writer:
    """One random function, as text."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lines = []
        self.depth = 1
        self.loops = 0
        self.counters = []
        self.numbers = ["a", "b", "c"]
        self.lists = seed % 2 == 1
        self.things = seed % 3 == 1
        self.draws = seed % 5 == 2
        self.generator = generator(seed)

    def pick(self, *choices):
        return self.rng.choice(choices)

    def line(self, text):
        self.lines.append("    " * self.depth + text)

    def index(self):
        simple = [*self.counters, str(self.rng.randint(-3, 3))]
        text = self.rng.choice(simple)
        if self.counters and self.rng.random() < 0.3:
            text = f"{text} {self.pick('+', '-')} {self.rng.randint(0, 2)}"
        return text

    def item(self):
        if self.rng.random() < 0.6:
            return f"{self.pick('p', 'p', 'q')}[{self.index()}]"
        return f"g[{self.index()}][{self.index()}]"

    def attribute(self):
        return self.pick("s.a", "s.b", "t.a", f"s.u[{self.index()}]")

    def change(self):
        target = self.attribute()
        self.line(
            self.pick(
                f"{target} = {self.number()}",
                f"{target} {self.pick('+', '-', '*')}= {self.number()}",
                f"s.a, t.a = t.a, {self.attribute()}",
                f"a = s.grow({self.number()}) + s.a",
                f"b = {self.pick('s', 't')}.swap({self.number()})",
                "s.u = s.u * 0.5",
                "s.u[1:3] += t.u[:2]",
                "c = s.u[0] + s.renew() + s.u[0]",
                f"if s.swap({self.number()}) > 1: t.b = s.a",
            )
        )

    def element(self):
        if self.lists and self.rng.random() < 0.7:
            return self.item()
        if self.rng.random() < 0.7:
            return f"{self.pick('x', 'y')}[{self.index()}]"
        return f"m[{self.index()}, {self.index()}]"

    def drawn(self):
        texts = {
            "Generator": (
                "r.integers(-3, 5)",
                "r.integers(c)",
                "r.uniform(-1, b)",
                "r.normal(a)",
                "r.random(3)[1]",
            ),
            "RandomState": (
                "r.randint(5)",
                "r.randint(a, 4)",
                "r.rand()",
                "r.uniform(b)",
                "r.normal(c, 2)",
                "r.rand(2)[0]",
            ),
            "Random": ("r.randint(0, 4)", "r.randrange(3)", "r.uniform(a, 2)", "r.random()"),
        }
        return self.pick("r.random()", *texts[type(self.generator).__name__])

    def number(self, depth=0):
        kind = self.rng.random()
        if self.draws and self.rng.random() < 0.2:
            return self.drawn()
        if depth > 2 or kind < 0.25:
            return self.rng.choice(self.numbers)
        if kind < 0.35:
            return self.pick("0", "1", "2", "-3", "0.5", "1.5", "7", "True", "1e300", "255")
        if kind < 0.5:
            is_of_thing = self.things and self.rng.random() < 0.4
            return self.attribute() if is_of_thing else self.element()
        if kind < 0.55 and self.counters:
            return self.rng.choice(self.counters)
        if kind < 0.6:
            function = self.pick("abs", "float", "int", "np.sqrt", "math.floor", "np.exp", "bool")
            return f"{function}({self.number(depth + 1)})"
        if kind < 0.64:
            pair = f"{self.number(depth + 1)}, {self.number(depth + 1)}"
            return f"{self.pick('min', 'max', 'np.maximum')}({pair})"
        if kind < 0.68:
            return f"({self.number(depth + 1)} if {self.truth(depth + 1)} else {self.number(depth + 1)})"
        if kind < 0.72:
            return f"(-{self.number(depth + 1)})"
        op = self.pick("+", "+", "-", "-", "*", "*", "/", "//", "%", "&", "^", ">>")
        return f"({self.number(depth + 1)} {op} {self.number(depth + 1)})"

    def truth(self, depth=0):
        kind = self.rng.random()
        if depth < 2 and kind < 0.15:
            return f"({self.truth(depth + 1)} {self.pick('and', 'or')} {self.truth(depth + 1)})"
        if kind < 0.2:
            return f"(not {self.truth(depth + 1)})"
        if kind < 0.3:
            return self.number(depth + 1)
        op = self.pick("<", "<=", ">", ">=", "==", "!=")
        text = f"{self.number(depth + 1)} {op} {self.number(depth + 1)}"
        if self.rng.random() < 0.1:
            text += f" {self.pick('<', '>=')} {self.number(depth + 1)}"
        return text

    def statement(self):
        if self.things and self.rng.random() < 0.25:
            return self.change()
        if self.lists and self.rng.random() < 0.05:
            self.line("if len(p) < 9:")
            return self.line(f"    p.append({self.number()})")
        if self.lists and self.rng.random() < 0.1:
            return self.line(
                self.pick(
                    f"{self.item()}, {self.item()} = {self.item()}, {self.number()}",
                    "p, q = q, p",
                    f"q = g[{self.index()}]",
                )
            )
        kind = self.rng.random()
        if kind < 0.3:
            self.line(f"{self.rng.choice(self.numbers)} = {self.number()}")
        elif kind < 0.45:
            op = self.pick("+", "-", "*", "/", "//", "%")
            self.line(f"{self.rng.choice(self.numbers)} {op}= {self.number()}")
        elif kind < 0.6:
            self.line(f"{self.element()} = {self.number()}")
        elif kind < 0.7:
            self.line(f"{self.element()} {self.pick('+', '-', '*')}= {self.number()}")
        elif kind < 0.74:
            self.line("a, b = b, a")
        elif kind < 0.86:
            self.line(f"if {self.truth()}:")
            self.block(self.rng.randint(1, 2))
            if self.rng.random() < 0.5:
                self.line("else:")
                self.block(self.rng.randint(1, 2))
        elif kind < 0.9 and self.counters:
            self.line(f"if {self.truth()}:")
            self.depth += 1
            self.line(self.pick("break", "continue", "return a, b, c", "continue"))
            self.depth -= 1
        elif self.loops < 4 and len(self.counters) < 3:
            self.loop()
        else:
            self.line("pass")

    def block(self, count):
        self.depth += 1
        for _ in range(count):
            self.statement()
        self.depth -= 1

    def goes_over(self):
        return self.pick("p", "q", "g[0]") if self.lists else self.pick("x", "m[1]", "m[:, 0]")

    def loop(self):
        self.loops += 1
        name = f"i{self.loops}"
        if self.rng.random() < 0.75:
            n = self.pick("4", "5", "n", "len(x)", "m.shape[0]", "1, 5", "4, -1, -1", "0, 6, 2")
            over = f"range({n})" if self.rng.random() < 0.85 else self.goes_over()
            if self.lists and self.rng.random() < 0.4:
                head = self.pick(
                    f"{name}, a in enumerate({over})",
                    f"{name}, (b, c) in enumerate(zip({over}, {self.goes_over()}), {self.index()})",
                    f"{name}, b in zip(range({self.pick('2', '9', 'n')}), {over})",
                    f"{name} in reversed(range({self.pick('4', 'n', '1, 9, 3')}))",
                )
                self.line(f"for {head}:")
                self.counters.append(name)
            else:
                self.line(f"for {name} in {over}:")
                self.counters.append(name if over.startswith("range") else "0")
            self.block(self.rng.randint(2, 4))
        else:
            self.line(f"{name} = 0")
            self.line(f"while {name} < {self.rng.randint(2, 5)}:")
            self.counters.append(name)
            self.depth += 1
            self.line(f"{name} += 1")
            self.depth -= 1
            self.block(self.rng.randint(1, 3))
        self.counters.pop()
        if self.rng.random() < 0.15:
            self.line("else:")
            self.block(1)

    def text(self):
        more = ", p, q, g" if self.lists else ""
        things, drawn = ", s, t" if self.things else "", ", r" if self.draws else ""
        self.lines.append(f"def f(x, y, m, n, a, b, c{more}{things}{drawn}):")
        self.loop()
        self.loop()
        self.line(f"return a, b, c, i1{more}")
        return "\n".join(self.lines) + "\n"


def arguments(seed):
    rng = np.random.default_rng(seed)
    pick = random.Random(seed + 1)

    def array(*shape):
        dtype = np.dtype(pick.choice(DTYPES))
        if dtype.kind == "f":
            return rng.normal(0, 3, shape).astype(dtype)
        return rng.integers(0, 2 if dtype.kind == "b" else 9, shape).astype(dtype)

    numbers = [0, 1, -2, 0.5, -1.25, True, np.float64(0.25), np.int64(3), np.float32(1.5), 2**62]
    arrays = (array(6), array(7), array(5, 6), 5, *(pick.choice(numbers) for _ in range(3)))

    def thing():
        return Thing(
            pick.choice(numbers[:7]), pick.choice([0.5, 1.0, 2, 0.25]), rng.normal(0, 3, 6)
        )

    things = (thing(), thing()) if seed % 3 == 1 else ()
    drawn = (generator(seed),) if seed % 5 == 2 else ()
    return arrays + (lists(seed) if seed % 2 else ()) + things + drawn


def generator(seed):
    kinds = np.random.default_rng, np.random.RandomState, random.Random
    return kinds[seed // 5 % 3](seed)


def lists(seed):
    pick = random.Random(seed + 2)

    def items(kind, count):
        made = [
            {"int": pick.randint(-3, 9), "float": pick.uniform(-3, 9), "bool": pick.random() < 0.5}[
                kind
            ]
            for _ in range(count)
        ]
        if pick.random() < 0.1:
            made[pick.randrange(count)] = pick.choice(
                [float("nan"), 2**70, 1.5, True, None, np.float64(2)]
            )
        return made

    kinds = ["int", "float", "float", "int", "bool"]
    p, q = items(pick.choice(kinds), 6), items(pick.choice(kinds), 5)
    rows = [items(pick.choice(kinds[:2]), 5) for _ in range(5)]
    if pick.random() < 0.3:
        rows[1] = rows[0]
    return p, p if pick.random() < 0.2 else q, rows


def compiled(seed):
    text = Writer(seed).text()
    name = f"<loop {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {"np": np, "math": __import__("math"), "__name__": __name__}
    exec(compile(text, name, "exec"), names)
    return names["f"], text


@pytest.mark.parametrize("backend", ["compiled"], indirect=True)
@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_random_loop(seed):
    function, text = compiled(seed)
    try:
        check(function, *arguments(seed), native=False, most=8, name=f"<loop {seed}>")
    except BaseException:
        print(text)
        raise
