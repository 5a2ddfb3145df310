"""How is a random program written? ``written(seed)`` gives the text of a module.

The module has helpers and classes (``parts``), functions marked ``@jit``, arguments
(``inputs(k)``), calls (``CALLS``) and what is changed between calls (``CHANGES``). What functions
say are rows of ``expressions`` and ``statements``, whose places are filled here. Programs are valid
Python, and most of their calls end without an exception.
"""

import functools
import random
import re

import parts
from expressions import EXPRESSIONS, LEAVES
from statements import CHANGES, KINDS, RETURNS, RISKS, STATEMENTS

PLACE = re.compile(r"\{(\+?)([A-Za-z])(=?)\}")
ROUNDS = 3
# How many statements stand in a body.
FUNCTION, SHORT, HELPER, BLOCK = (5, 11), (2, 6), (1, 2), (1, 3)
# An expression holds others down to this depth; those that have names are likelier to be one.
DEPTH = 3
NAMED = 0.45

# What helpers and methods leave to others: a method could call itself through any object.
OBJECTS = ("{O}", "{o}", "{C}")
METHODS = (*OBJECTS, "nonlocal")  # `self.u` is no variable
SELF = [("V", "self.u"), ("F", "self.k"), ("L", "self.history"), ("D", "self.table")]
# Parameters of functions: name, kind, and what of `inputs(k)` is given for it.
PARAMETERS = [
    ("x", "V", "given.a"),
    ("y", "V", "given.b"),
    ("z", "V", "given.v"),
    ("p", "M", "given.m"),
    ("c", "V", "given.c"),
    ("n", "I", "given.n"),
    ("s", "F", "given.s"),
    ("items", "L", "given.items"),
    ("table", "D", "given.table"),
    ("model", "O", "given.model"),
    ("other", "O", "given.other"),
    ("fn", "N", "given.fn"),
    ("rng", "G", "given.rng"),
]
DIRECT = [
    "given.model.step(given.b)",
    "given.model.advance(given.s)",
    "given.other.step(given.a)",
    "given.other(given.v)",
    "given.model.plain(given.b)",
    "given.other.weighted(given.b, by=given.s)",
    "twice(given.a, given.s)",
    "changed(given.v)",
    "both(given.b)",
    "returned(given.a)",
    "failing(given.a, given.n)",
    "watched(given.a)",
]


class Scope:
    """Which names are known at a place in the text.

    Attributes
    ----------
    known : dict
        Of each kind, the texts that are such a value.
    own : set of str
        Those that are variables of the function, which it may assign.
    returns : str
        What a ``return`` may give: "anything", "vector" or nothing at all.
    outer : set of str or None
        Globals that the function assigns; None where it must not.
    without : tuple of str
        What it does not use, so that no helper calls itself without end.
    """

    def __init__(self, known, own, returns, outer, without=()):
        self.known = {kind: list(texts) for kind, texts in known.items()}
        self.own = set(own)
        self.returns, self.outer, self.without = returns, outer, without

    def inner(self):
        """The scope of a block."""
        return Scope(self.known, self.own, self.returns, self.outer, self.without)

    def nested(self, returns):
        """The scope of a function that is defined here, with a parameter ``e``."""
        made = Scope(self.known, ["e"], returns, None, self.without)
        made.add("V", "e")
        return made

    def add(self, kind, name):
        self.known.setdefault(kind, []).append(name)
        self.own.add(name)


class Writer:
    """Writes one program.

    Parameters
    ----------
    seed : int
        Decides everything.
    """

    def __init__(self, seed):
        self.seed = seed
        self.choose = random.Random(seed)
        self.names = 0
        # What the program leaves out.
        kind = self.choose.choice(["pure"] * 4 + ["inward"] * 3 + ["any"] * 3)
        self.without = KINDS[kind]
        self.depth, self.size = (2, SHORT) if kind == "pure" else (DEPTH, FUNCTION)
        self.modules = {"N": ["twice", "third"], "C": ["Model", "Grid"]}

    # Expressions.

    def text(self, kind, scope, depth):
        """An expression of a kind."""
        known = scope.known.get(kind, [])
        rows = EXPRESSIONS.get(kind)
        if known and (depth <= 0 or rows is None or self.choose.random() < NAMED):
            return self.choose.choice(known[-6:])
        if depth <= 0 or rows is None:
            row = LEAVES[kind]
        else:
            row = self.choose.choice(self.possible(rows, scope))
        text = self.filled(row, scope, depth - 1, {})
        return f"({text})" if _is_open(text) else text

    def filled(self, row, scope, depth, last):
        """A line of a row with its places filled."""
        if 'f"' in row:
            depth = 0  # a text in a text would need other quotes

        def fill(place):
            new, letter, again = place.groups()
            kind = letter.upper()
            if again:
                return last[letter]
            if new:
                made = self.name(kind)
                last.setdefault("new", []).append((kind, made))
            elif letter.islower():
                made = self.variable(kind, scope)
            else:
                made = self.text(kind, scope, depth)
            last[letter.lower() if new else letter] = made
            return made

        return PLACE.sub(fill, row)

    def name(self, kind):
        self.names += 1
        return f"{kind.lower()}{self.names}"

    def variable(self, kind, scope):
        """A variable of the function."""
        own = [name for name in scope.known[kind] if name in scope.own]
        return self.choose.choice(own[-6:])

    # Statements.

    def possible(self, rows, scope):
        """Those rows for which there are variables."""
        kinds = {kind for kind, texts in scope.known.items() if scope.own.intersection(texts)}
        return [
            row
            for row in rows
            if _variables(row) <= kinds and not any(name in row for name in scope.without)
        ]

    def statement(self, scope):
        """The lines of a statement that its function may have."""
        rows = self.possible(STATEMENTS, scope)
        while True:
            row = self.choose.choice(rows)
            if "return" in row and "def " not in row and not self.may_return(row, scope):
                continue
            if row.startswith("global "):
                if scope.outer is None:
                    continue
                declared, _, row = row.partition("; ")
                scope.outer.add(declared.removeprefix("global "))
            return self.rows(row, scope)

    def may_return(self, row, scope):
        if scope.returns == "vector":
            return "return {V}" in row and "return {V}," not in row
        return scope.returns == "anything"

    def rows(self, row, scope):
        """The lines of a row, whose blocks are written here."""
        lines, last = [], {}
        inside = scope
        for line in row.splitlines():
            indent = line[: len(line) - len(line.lstrip())]
            if line.strip() in ("{BLOCK}", "{RISK}"):
                lines += [indent + each for each in self.block(line.strip(), inside)]
                continue
            last["new"] = []
            lines.append(self.filled(line, scope, self.depth, last))
            if line.lstrip().startswith("def "):
                inside = scope.nested(None)  # which does not call itself
            for kind, name in last["new"]:
                scope.add(kind, name)
            if not line.lstrip().startswith("def "):
                inside = scope.inner()
        return lines

    def block(self, place, scope):
        if place == "{RISK}":
            return self.rows(self.choose.choice(self.possible(RISKS, scope)), scope.inner())
        return self.body(BLOCK, scope.inner())

    def body(self, how_many, scope):
        lines = []
        for _ in range(self.choose.randint(*how_many)):
            lines += self.statement(scope)
        return lines

    # Functions and classes.

    def part(self, text, without, own=()):
        """A helper, a method or the head of a class: ``{BLOCK}`` becomes statements."""
        lines = []
        for line in text.splitlines():
            if line.strip() != "{BLOCK}":
                lines.append(line)
                continue
            indent = line[: len(line) - len(line.lstrip())]
            returns = None if "both(e)" in text else "vector"
            scope = Scope({}, [], returns, set(), (*without, *self.without))
            for function in ("twice", "third"):
                if f"{function}(" not in without:
                    scope.known.setdefault("N", []).append(function)
            scope.add("V", "e")
            for kind, name in own:
                scope.add(kind, name)
            body = self.body(HELPER, scope)
            if scope.outer:
                body.insert(0, f"global {', '.join(sorted(scope.outer))}")
            lines += [indent + each for each in body]
        return lines

    def classes(self):
        lines = []
        for heads in parts.CLASSES.values():
            head = self.choose.choice(heads)
            lines += ["", "", *head.splitlines()]
            first = "(Model)" not in head
            for name, ways in parts.METHODS.items():
                if f"def {name}(" in head.split("class Model")[-1]:
                    continue
                if first and "class Root" in head and name == "step":
                    continue
                if first or self.choose.random() < 0.2:
                    method = self.part(self.choose.choice(ways), METHODS, SELF)
                    lines += ["", *(f"    {line}" if line else "" for line in method)]
        return lines

    def function(self, name):
        """A function marked for ``jit``, and the text of a call of it."""
        possible = [
            each
            for each in PARAMETERS
            if f"{{{each[1]}}}" not in self.without and each[2] not in self.without
        ]
        chosen = self.choose.sample(possible, self.choose.randint(2, 5))
        if not any(kind == "V" for _, kind, _ in chosen):
            chosen.append(PARAMETERS[self.choose.randrange(3)])
        scope = Scope(self.modules, [], "anything", set(), self.without)
        heads, given = [], []
        starred = self.choose.choice([None, None, None, "*", "*rest"])
        split = self.choose.randint(1, len(chosen))
        for at, (parameter, kind, value) in enumerate(chosen):
            scope.add(kind, parameter)
            if at == split and starred is not None:
                heads.append(starred)
                if starred == "*rest":
                    scope.known.setdefault("L", []).append("list(rest)")
                    given += self.choose.choice([[], ["given.b"], ["given.a", "given.v"]])
            by_name = at >= split and (starred is not None or self.choose.random() < 0.5)
            if kind in "IF" and at >= split:
                default = self.choose.choice(["2", "1.5", "0"])
                heads.append(f"{parameter}={default}")
                if starred is None or starred == "*":
                    by_name = True
                if self.choose.random() < 0.3:
                    continue
            elif at >= split and starred is None:
                heads.append(f"{parameter}=None")
                by_name = True
            else:
                heads.append(parameter)
            given.append(f"{parameter}={value}" if by_name else value)
        if self.choose.random() < 0.1:
            heads.append("**named")
            given.append("extra=given.b")
            scope.known.setdefault("V", []).append("named['extra']")
        given.sort(key=lambda each: "=" in each)
        body = self.body(self.size, scope)
        body += self.rows(self.choose.choice(self.possible(RETURNS, scope)), scope)
        if scope.outer:
            body.insert(0, f"global {', '.join(sorted(scope.outer))}")
        lines = ["@jit", f"def {name}({', '.join(heads)}):", *(f"    {line}" for line in body)]
        return lines, f"{name}({', '.join(given)})"

    def inputs(self):
        text = parts.INPUTS.replace("{SEED}", str(self.seed))
        for place, ways in parts.PLACES.items():
            text = text.replace(f"{{{place}}}", self.choose.choice(ways))
        return text.strip("\n").splitlines()

    def changes(self):
        """Functions that change something between rounds, and the rows that name them."""
        lines, plan = [], []
        for at in range(ROUNDS - 1):
            rows = self.choose.sample(CHANGES, self.choose.randint(0, 3))
            names = []
            for row in rows:
                names.append(f"change_{at}_{len(names)}")
                lines += ["", "", f"def {names[-1]}(given):"]
                lines += [f"    {each}" for each in row.split("; ")]
            plan.append(f"[{', '.join(names)}]")
        return [*lines, "", "", f"CHANGES = [{', '.join(plan)}, []]"]

    def module(self):
        """The text of the program."""
        lines = parts.IMPORTS.strip("\n").splitlines()
        lines += ["", "", "def itself(f):", '    return getattr(f, "__wrapped__", f)']
        for at, ways in enumerate(parts.HELPERS.values()):
            later = [f"{name}(" for name in list(parts.HELPERS)[at:]]
            ways = [way for way in ways if not any(row in way for row in self.without)] or ways
            lines += ["", "", *self.part(self.choose.choice(ways), (*OBJECTS, *later))]
        lines += self.classes()
        calls = []
        for at in range(self.choose.randint(1, 2)):
            made, call = self.function(f"f{at}")
            lines += ["", "", *made]
            calls.append(call)
        if self.choose.random() < 0.4:
            calls.append(self.choose.choice(DIRECT))
        lines += ["", "", *self.inputs(), *self.changes()]
        for at, call in enumerate(calls):
            lines += ["", "", f"def call_{at}(given):", f"    return {call}"]
        lines += ["", "", f"CALLS = [{', '.join(f'call_{at}' for at in range(len(calls)))}]"]
        lines.append(f"LONG = {self.choose.randrange(ROUNDS)}")
        lines.append(f"FRESH = {self.choose.random() < 0.6}")
        return "\n".join(lines) + "\n"


@functools.cache
def _variables(row):
    """The kinds of variables that a row needs."""
    return {
        letter.upper() for _, letter, again in PLACE.findall(row) if letter.islower() and not again
    }


def _is_open(text):
    """Whether an expression needs parentheses where an operator stands beside it."""
    depth = 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0 and letter in " ,~-":
            return True
    return False


def written(seed):
    """The text of the program with this seed."""
    return Writer(seed).module()
