"""Does a program do the same with ``ufuse.jit`` as without?

``first_difference(text)`` runs a module twice in worlds of their own: ``jit`` is ``ufuse.jit`` in
one, and leaves functions as they are in the other. Each round's calls are made 1, 2, 3 and, in one
of the rounds, 20 times. After each of them all is noted that the program and its caller can see
(``seen``), with what was printed, the warnings with their lines, and exceptions with the program's
lines. At the end no lazy array is left anywhere.
"""

import contextlib
import gc
import io
import itertools
import linecache
import sys
import traceback
import types
import warnings

import numpy as np
import seen
import ufuse
from ufuse.tracing import tree

TIMES = (1, 2, 3, 20)
# What is looked at after each call; functions and classes only after each round.
DATA = (np.ndarray, np.generic, int, float, list, dict)
# How deep Python may recurse depends on who calls. After a call that went as deep as it may, the
# program has come further or less far.
OUT_OF_STACK = ("error", "builtins", "RecursionError")
_numbers = itertools.count()


class World:
    """One module, run from a text.

    Parameters
    ----------
    code : types.CodeType
        The compiled text.
    jit : callable
        What the text calls ``jit``.
    """

    def __init__(self, code, jit):
        self.file = code.co_filename
        self.module = types.ModuleType(self.file[1:-1])
        self.names = vars(self.module)
        self.names["jit"] = jit
        self.results = []
        np.random.seed(1)
        sys.modules[self.module.__name__] = self.module
        exec(code, self.names)

    def notes(self, times):
        """What is noted after each call, with its name."""
        for k, changes in enumerate(self.names["CHANGES"]):
            given = self.names["inputs"](k)
            # Often in one round only, for the others say little more then.
            for at in range(times if k == self.names["LONG"] else min(times, 3)):
                if self.names["FRESH"] and at:
                    given = self.names["inputs"](k)
                for call in self.names["CALLS"]:
                    yield f"round {k}, time {at}, {call.__name__}", self.note(call, given)
            for change in changes:
                yield f"round {k}, {change.__name__}", self.note(change, given)
            yield f"after round {k}", seen.described(self.file, globals=self.globals())
        yield "at the end", seen.described(self.file, results=self.results)

    def note(self, call, given):
        """One call, and everything that can be seen after it."""
        result = error = None
        printed = io.StringIO()
        with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(printed):
            warnings.simplefilter(self.names.get("FILTER", "always"))
            try:
                result = call(given)
            except Exception as raised:
                error = raised
        told = [(w.category.__name__, str(w.message), w.filename, w.lineno) for w in caught]
        self.results.append((result, list(self.names.get("LOG", ()))))
        rows = seen.described(
            self.file,
            result=result,
            error=error,
            given=vars(given),
            globals=self.globals(DATA),
        )
        lines = [("warnings", told), ("printed", seen.scrubbed(printed.getvalue()))]
        return [*lines, *_lines_of(error, self.file), *rows]

    def globals(self, kinds=object):
        """The module's own names."""
        return {
            name: value
            for name, value in self.names.items()
            if isinstance(value, kinds) and not name.startswith("__") and not _is_ours(value)
        }

    def close(self):
        sys.modules.pop(self.module.__name__, None)


def _is_ours(value):
    return isinstance(value, types.ModuleType) or value is ufuse.jit or value is _unchanged


def _unchanged(function):
    return ufuse.jit() if function is None else function  # a decorator, as there


def _lines_of(error, file):
    """The text of an exception and of those before it, and the program's lines that they passed."""
    while error is not None:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [(frame.name, frame.lineno) for frame in frames if frame.filename == file]
        # In code that has run often, Python takes a variable that is not there for the one of the
        # line before.
        lines = [] if isinstance(error, (RecursionError, UnboundLocalError)) else lines
        yield ("exception", seen.scrubbed(str(error)), lines)
        error = error.__cause__ or error.__context__


def compiled(text):
    """The code of a text, whose source is known as that of a notebook's cell is."""
    file = f"<program_{next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return compile(text, file, "exec")


def first_difference(text, times=TIMES):
    """How ``ufuse.jit`` differs from plain Python first; None where it does not."""
    code = compiled(text)
    gc.freeze()  # so that what is left can be told from what was there
    try:
        for each in times:
            if found := _difference(code, each):
                return f"called {each} times, {found}"
        gc.collect()
        left = [x for x in _all_objects() if tree.is_lazy(x)]
        return f"lazy arrays are left: {len(left)}" if left else None
    finally:
        gc.unfreeze()
        linecache.cache.pop(code.co_filename, None)


def _all_objects():
    """The objects made since ``gc.freeze``, and what they hold."""
    known = gc.get_objects()
    return itertools.chain(known, gc.get_referents(*known))


def _difference(code, times):
    worlds = []
    try:
        plain = World(code, _unchanged)
        worlds.append(plain)
        theirs = list(plain.notes(times))
        jitted = World(code, ufuse.jit)
        worlds.append(jitted)
        notes = jitted.notes(times)
        for where, expected in theirs:
            try:
                _, found = next(notes)
            except seen.LazyArrayFound as error:
                return f"{where}: {error}"
            if OUT_OF_STACK in expected and OUT_OF_STACK in found:
                return None
            if found != expected:
                return f"{where}: {_first(found, expected)}"
        return None
    finally:
        for world in worlds:
            world.close()


def _first(found, expected):
    for ours, theirs in itertools.zip_longest(found, expected):
        if ours != theirs:
            texts = repr(ours), repr(theirs)
            same = sum(
                1
                for _ in itertools.takewhile(
                    lambda pair: pair[0] == pair[1], zip(*texts, strict=False)
                )
            )
            return "".join(
                f"\n  {who}: {_part(text, same)}"
                for who, text in zip(("ufuse", "plain"), texts, strict=True)
            )
    return ""


def _part(text, at):
    """A long text's beginning, and what stands around a place."""
    if len(text) < 600:
        return text
    first = max(at - 200, 60)
    return f"{text[:60]} ... {text[first : at + 300]}"
