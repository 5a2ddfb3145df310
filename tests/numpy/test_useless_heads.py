"""Do loops that no program can run cost nothing in the long run?

The head of a loop takes as long as a round or two. Where it has been of no use for a millisecond in
all, the functions do without it.
"""

import gc
import sys
import weakref

import numpy as np
import pytest
import ufuse
from ufuse import _core
from ufuse.source import heads
from ufuse.tracing import loops

BACKENDS = ["interpreted"]


def letters(text):
    """Beside the loop over a text there is one that may become native."""
    kept, total = "", 0
    for letter in text:
        if letter.isalpha():
            kept += letter
    else:
        kept += text
    for i in range(3000):
        total += i
    return kept, total


def taken(values):
    todo, kept = list(values), {}
    while todo:
        value = todo.pop()
        if value == 3:
            continue
        kept[value] = len(todo)
        if value == 1:
            break
    else:
        kept[0] = 0
    return kept


def neighbours(x, y):
    found = []
    for dx, dy in ((0, 1), (1, 0), (0, -1), (-1, 0)):
        found.append((x + dx, y + dy))
    return found


def refused(words):
    counts = {}
    for i in range(len(words)):
        counts[words[i]] = counts.get(words[i], 0) + i
    return counts


CASES = {
    letters: ("ab-d",),
    taken: ([1, 2, 3, 4],),
    neighbours: (3, 4),
    refused: (["a", "b", "a"] * 8,),
}
LEFT = {letters: [letters.__code__.co_firstlineno + 8]}


def lines_of(function):
    return [loop.facts["line"] for loop in heads.loops_of(function.__code__)]


def lines_after(function, *args, most=40_000):
    """The lines of the loops that have heads, when some have gone."""
    before = lines_of(function)
    for _ in range(most):
        function(*args)
        if lines_of(function) != before:
            break
    return lines_of(function)


@pytest.mark.parametrize("of", CASES)
def test_heads_go(of):
    fresh = type(of)(of.__code__.replace(), globals(), of.__name__)
    looped = loops.looped(fresh)
    assert lines_of(looped)
    assert lines_after(looped, *CASES[of]) == LEFT.get(of, [])
    assert looped(*CASES[of]) == of(*CASES[of])
    assert looped.__code__.co_filename == of.__code__.co_filename
    again = loops.looped(fresh)  # as for another function of the same code
    assert again is None if of not in LEFT else lines_of(again) == LEFT[of]


def test_explain_knows_them():
    fresh = type(letters)(letters.__code__.replace(), globals(), "letters")
    jitted = ufuse.jit(fresh)
    looped = loops.looped(fresh)
    before = [each.line for each in jitted.explain("ab-d").loops]
    lines_after(looped, "ab-d")
    found = jitted.explain("ab-d").loops
    assert [each.line for each in found] == before
    assert (
        found[0].reason == "it goes over something else than a range, an array or a list of numbers"
    )


def test_a_loop_of_numbers_keeps_its_head():
    def total(x):
        s = 0.0
        for i in range(x.size):
            s += x[i] * 2
        return s

    looped = loops.looped(total)
    long, short = np.linspace(0, 1, 300_000), np.ones(3)
    for _ in range(3):
        for _ in range(9000):
            looped(short)
        assert looped(long) == total(long)
        assert lines_of(looped)


def test_closures_of_one_text():
    def made(n):
        def inner(text):
            k = 0
            for letter in text:
                k += letter.isalpha()
            return k + n

        return inner

    originals = made(1), made(2)
    one, other = map(loops.looped, originals)
    assert lines_after(one, "abcabc") == lines_of(other) == []
    assert (one("aa-"), other("aa-")) == (3, 4)


def test_errors_name_the_users_line():
    def f(items):
        found = 0
        for item in (1, 2):
            found += items[item]

    looped = loops.looped(f)
    assert lines_after(looped, {1: 1, 2: 2}) == []
    with pytest.raises(KeyError) as raised:
        looped({})
    last = raised.traceback[-1]
    assert (str(last.path), last.lineno) == (__file__, f.__code__.co_firstlineno + 2)


def test_a_running_call_goes_on():
    def f(text, depth):
        found = []
        for letter in text:
            found.append(letter)
            if depth == 1:
                found.append(lines_after(looped, text, 0))
        return found

    looped = loops.looped(f)
    assert looped("ab", 1) == ["a", [], "b", []]


def test_nothing_is_kept():
    class Marked:
        pass

    def made(mark):
        def inner(text):
            k = mark
            for letter in text:
                k = letter.upper()
            return k

        return inner

    mark = Marked()
    gone = weakref.ref(mark)
    looped = loops.looped(made(mark))
    lines_after(looped, "abc")
    del looped, mark
    gc.collect()
    assert gone() is None


def test_recursion_is_endless_as_in_python():
    """There is no call of Python's between a jitted function and itself that it would name."""
    namespace = {}
    for name in ("plain", "jitted"):
        exec(f"def {name}(n):\n    return {name}(n + 1)", namespace)  # no source: it is not traced
    namespace["jitted"] = ufuse.jit(namespace["jitted"])
    texts = []
    for name in ("plain", "jitted"):
        with pytest.raises(RecursionError) as raised:
            namespace[name](0)
        texts.append(str(raised.value))
    assert texts[0] == texts[1]


def test_jitted_functions_are_called_at_once():
    have_vectorcall = 1 << 11  # Py_TPFLAGS_HAVE_VECTORCALL
    assert type(ufuse.jit(letters)).__flags__ & have_vectorcall
    assert _core.Jitted.__flags__ & _core.Answered.__flags__ & have_vectorcall
    with pytest.raises(TypeError, match="a class that is called as Answered is"):
        _core.call_as_base(dict)

    class Derived(type(ufuse.jit(letters))):
        pass

    assert Derived(letters, ufuse.jit(letters)._options)("ab") == letters("ab")
    assert sys.getrefcount(Derived) < 20
