"""Is each kind of syntax read as what it does with values, whoever of scan and parameters asks?"""

import sys
import weakref

import numpy as np
import pytest
from texts import function_of
from ufuse.tracing import twin
from ufuse.tracing.parameters import parameters
from ufuse.tracing.twin import scanned

print_it = print  # another name for what is not pure


@pytest.fixture(autouse=True, name="backend")
def no_backend():
    """Nothing runs: one round is enough."""


def made(text, **names):
    """A function of x, a and n with a body."""
    text = "def f(x, a=1, n=2):\n" + "".join(f"    {line}\n" for line in text.splitlines())
    return function_of(
        text,
        {"np": np, "sys": sys, "getrefcount": sys.getrefcount, "print_it": print_it}
        | {"weakref": weakref, "ref": weakref.ref, **names},
    )


# What a body does, and the reason why it must run as plain NumPy.
REASONS = [
    # Names are assigned by many statements.
    ("global g\ng = x", None),
    ("global g\ng += x", None),
    ("global g\nfor g in x: pass", "store_global"),
    ("global g\nwith a as g: pass", "store_global"),
    ("global g\nimport os as g", "store_global"),
    ("global g\nfrom os import path as g", "store_global"),
    ("global g\n(g := x)", None),
    ("global g\n[(g := y) for y in x]", None),
    ("global g\ndel g", "store_global"),
    ("global g\ntry: pass\nexcept ValueError as g: pass", "store_global"),
    ("global g\nmatch x:\n    case [g, *_]: pass", "store_global"),
    ("global g\nmatch x:\n    case {'k': 1, **g}: pass", "store_global"),
    ("global g\na, (n, *g) = x", None),
    ("global g\ndef g(): pass", "store_global"),
    ("global g\nx.data = g", None),
    ("def inner():\n    global g\n    g = x\ninner()", None),
    ("def inner():\n    nonlocal n\n    n = x\ninner()", None),
    ("g = 1\ndef inner():\n    g = x\ninner()", None),
    # A builtin that sees names, wherever an expression may stand.
    ("return eval(x)", "reflection"),
    ("return lambda v=eval(x): v", "reflection"),
    ("return (lambda v: eval(v))(x)", "reflection"),
    ("return [eval(v) for v in x]", "reflection"),
    ("return {k: eval(v) for k, v in zip(a, x)}", "reflection"),
    ("return sum(eval(v) for w in x for v in w)", "reflection"),
    ("return [v for v in x if eval(v)]", "reflection"),
    ("def inner(v: eval(x)): pass", "reflection"),
    ("def inner(*, v=eval(x)): pass", "reflection"),
    ("@a(eval(x))\ndef inner(): pass", "reflection"),
    ("def inner():\n    return lambda: eval(x)", "reflection"),
    ("return f'{eval(x)}'", "reflection"),
    ("return f'{n:{eval(x)}}'", "reflection"),
    ("return a(*eval(x))", "reflection"),
    ("return a(**eval(x))", "reflection"),
    ("return a[eval(x):]", "reflection"),
    ("return (x if n else eval(x)).y", "reflection"),
    ("return 0 < n < eval(x)", "reflection"),
    ("assert n, eval(x)", "reflection"),
    ("raise a from eval(x)", "reflection"),
    ("del eval(x)[0]", "reflection"),
    ("eval(x)[0] = 1", "reflection"),
    ("eval(x).y += 1", "reflection"),
    ("x[eval(x)] += 1", "reflection"),
    ("y: int = eval(x)", "reflection"),
    ("y: eval(x) = 1", None),
    ("eval(x).y: int", "reflection"),
    ("if (y := eval(x)) is not None: pass", "reflection"),
    ("with eval(x): pass", "reflection"),
    ("try: pass\nfinally: eval(x)", "reflection"),
    ("try: pass\nexcept eval(x): pass", "reflection"),
    ("try: pass\nexcept* a(eval(x)): pass", "reflection"),
    ("for v in x: pass\nelse: eval(x)", "reflection"),
    ("while eval(x): pass", "reflection"),
    ("match eval(x):\n    case _: pass", "reflection"),
    ("match x:\n    case y if eval(y): pass", "reflection"),
    ("match x:\n    case [_, {'k': y}]: return eval(y)", "reflection"),
    ("import sys\nreturn sys.getrefcount(x)", None),
    ("return sys.getrefcount(x)", "reflection"),
    ("return getrefcount", "reflection"),
    ("return ref(x)", "reflection"),
    ("return weakref.proxy(x)", "reflection"),
    ("weakref.finalize(x, print_it)", "reflection"),
    ("return weakref.WeakSet()", None),
    # Flags of arrays.
    ("x.flags.writeable = n", "memory_exposed"),
    ("x.flags['WRITEABLE'] = n", "memory_exposed"),
    ("x.T.flags.aligned = n", "memory_exposed"),
    ("setattr(x.flags, 'writeable', n)", "memory_exposed"),
    ("setattr(x, 'flags', n)", None),
    ("x.data = n", None),
    ("x.resize(n)", "memory_exposed"),
    ("return np.resize(x, n)", None),
    # Who sees names.
    ("return eval('x')", "reflection"),
    ("return [locals() for _ in x]", "reflection"),
    ("return lambda: vars()", "reflection"),
    ("eval = 1\nreturn eval", None),
    ("return [eval for eval in x]", None),
    ("return [eval for eval in x], eval('x')", "reflection"),
    ("return lambda eval: eval", None),
    ("class A: pass", "class_body"),
    ("def inner():\n    class A: pass", "class_body"),
    ("def inner():\n    yield x\nreturn list(inner())", None),
    ("yield x", "generator"),
]


@pytest.mark.parametrize(("text", "reason"), REASONS, ids=[text for text, _ in REASONS])
def test_reasons(text, reason):
    assert scanned(made(text)).reason == reason


# What a body does, and whether it is pure.
PURE = [
    ("return np.sin(x) + len(x)", True),
    ("print_it(x)", False),
    ("return [print_it for _ in x]", False),
    ("return lambda: print_it", False),
    ("def inner(v=print_it): pass", False),
    ("def inner(v: print_it): pass", False),
    ("@print_it\ndef inner(): pass", False),
    ("match x:\n    case print_it.a: pass", False),
    ("print_it = x\nreturn print_it", True),
    ("return [print_it for print_it in x]", True),
    ("return [print_it for print_it in x], print_it", False),
    ("return [a for a in x for print_it in print_it]", None),
    ("return (lambda print_it: print_it)(x)", True),
    ("return (lambda print_it=print_it: print_it)(x)", False),
    ("def inner():\n    print_it = 1\nreturn print_it", False),
    ("[(print_it := y) for y in x]\nreturn print_it", True),
    ("try: pass\nexcept ValueError as print_it: print_it", True),
    ("import math\nreturn math", False),
    ("return np.random.rand()", False),
    ("return x if __debug__ else a", True),
]


@pytest.mark.parametrize(("text", "pure"), PURE, ids=[text for text, _ in PURE])
def test_pure(text, pure):
    found = scanned(made(text))
    assert found.reason is None
    if pure is not None:
        assert found.pure == pure


def outer():
    n = 0

    def deletes(x):
        nonlocal n
        del n

    def assigns_inside(x):
        def inner():
            nonlocal n
            n = x

        return inner

    def has_its_own(x):
        def inner():
            n = x
            return n

        return inner, n, [n for n in x]

    return [deletes, assigns_inside, has_its_own]


def test_variables_of_enclosing_functions():
    reasons = [scanned(function).reason for function in outer()]
    assert reasons == ["store_outer", None, None]


__secret = print_it


class Owner:
    """Names with two underscores are others inside of a class."""

    def reads(self, x):
        return __secret

    def binds(self, x):
        __secret = x
        return __secret, (lambda __secret: __secret)(x)

    def declares(self, x):
        global __secret
        __secret = x
        del __secret


def test_private_names():
    space = vars(sys.modules[__name__])
    assert scanned(Owner.reads).pure  # there is no `_Owner__secret`
    space["_Owner__secret"] = print_it
    assert not scanned(Owner.reads).pure
    assert scanned(Owner.binds).pure
    found = scanned(Owner.declares)
    assert (found.reason, found.line) == (
        "store_global",
        Owner.declares.__code__.co_firstlineno + 3,
    )
    assert "_Owner__secret" in found.detail
    del space["_Owner__secret"]


# What a body does, and whether the value of `a` may be another one in a recorded call.
OPERANDS = [
    ("return x * a", True),
    ("return x * -a + ~a - +a", True),
    ("return x @ a", False),
    ("return a @ x", False),
    ("return a % 3 * x", True),
    ("return x % a", False),
    ("x %= a", False),
    ("x @= a", False),
    ("x -= a", True),
    ("x.y -= a", True),
    ("x[0] -= a", True),
    ("x[a] -= 1", False),
    ("x[a:] = 1", False),
    ("x[0] = a", False),
    ("x.y = a", True),
    ("x.y += a", True),
    ("x.y = x[0] = a", False),
    ("a.y = x", False),
    ("a = a + 1\nreturn x * a", True),
    ("a += 1\nreturn x * a", True),
    ("a += 1\nreturn a", False),
    ("b = a\nreturn [b]", False),
    ("b = a * 2\nc = b + 1\nreturn c", True),
    ("b, c = a, 2\nreturn x * b * c", True),
    ("b, c = a, 2\nreturn b", False),
    ("b, a = a, b = 1, 2\nreturn x * a", True),
    ("b, a = a, 1\nb, a = a, b\nreturn x * a", True),
    ("b, *c = a, 2\nreturn x * b", False),
    ("d = b, c = a, 2\nreturn d", False),
    ("return x * (b := a) + b", True),
    ("return x * (b := a), b", False),
    ("if a: return x", True),
    ("if not a and n: return x", True),
    ("while a > 3 or a < 2: a = a * 2", True),
    ("return x if a else x + 1", True),
    ("return x * (a if n else 1)", False),
    ("return x * (a or 1)", False),
    ("return x * (1 if a is None else a.real)", False),
    ("return x * (1 if a is None else 2) * a", True),
    ("return x if a is n else 3", False),
    ("return a in x", False),
    ("return x < a", True),
    ("return 0 < a < x", False),
    ("return 0 < n < a", True),
    ("return a < n is not x", False),
    ("return 0 < n is not None is a", False),
    ("return a is not None", True),
    ("del a", False),
    ("return np.maximum(x, a)", True),
    ("return np.maximum(x, a, out=x)", False),
    ("return np.maximum(*(x, a))", False),
    ("return np.sum(a)", False),
    ("return given(x, a)", True),
    ("return given(x, b=a)", True),
    ("return given(a, 1)", False),
    ("return given(x, c=a)", False),
    ("return given(*x, a)", False),
    ("return given(x, **a)", False),
    ("return given(x, a, a)", False),
    ("return [a * v for v in x]", False),
    ("return [v for v in a]", False),
    ("return [a for a in x]", True),
    ("return x * a, [lambda a: a]", True),
    ("return (lambda: a)()", False),
    ("def inner(): return x * a\nreturn inner()", False),
    ("def inner(b=a): pass", False),
    ("def inner(a): return a\nreturn inner(x)", True),
    ("for a in x: pass\nreturn a", False),
    ("for _ in range(a): pass", False),
    ("return f'{a}'", False),
    ("raise ValueError(a)", False),
    ("assert a > 3, 'text'", True),
    ("with a: pass", False),
    ("match a:\n    case 1: return x", False),
    ("match x:\n    case _ if a > 1: return x * a", True),
    ("try: b = 1 / a\nexcept ZeroDivisionError: b = 2\nfinally: b = x * a\nreturn b * x", True),
    ("return x * {1: a}[1]", False),
    ("return x, (a,)", False),
    ("a", True),
    ("a * 2", True),
    ("return a.real", False),
]


@pytest.mark.parametrize(("text", "operand"), OPERANDS, ids=[text for text, _ in OPERANDS])
def test_operands(text, operand):
    helper = function_of("def given(x, b, *rest): return x * b, x[0], [x]", {})
    assert ("a" in parameters(made(text, given=helper)).names) == operand


def operations(function):
    """The texts of the operations whose results stay numbers, in the order of the text."""
    code = twin.instrumented(function).code
    lines = sys.modules["linecache"].getlines(code.co_filename)
    positions = list(code.co_positions())
    found = set()
    for at, offset in parameters(function).sites:
        if at is code:
            line, _, start, end = positions[offset // 2]
            found.add((line, start, lines[line - 1][start:end]))
    return [text for *_, text in sorted(found)]


SITES = [
    ("return x * (a * 2)", ["a * 2"]),
    ("return x * (a * 2 + 1) - (a * 2 - 3)", ["a * 2", "a * 2 + 1", "a * 2", "a * 2 - 3"]),
    ("return x * ((a + n)), (a + n)", ["a + n"]),
    ("b = -a; c = b * b\nreturn x * c", ["-a", "b * b"]),
    ("a += n\nreturn x * a", ["a += n"]),
    ("a += n * 2\nreturn x * a", ["a += n * 2", "n * 2"]),
    ("b = a * 2\nreturn b", []),
    ("return [x * (a * 2) for _ in x]", []),
    ("return (lambda: x * (a * 2))()", []),
    ("return x * (a * 2 if n else a * 3)", []),
    ("try: pass\nfinally: x *= a * 2\nreturn x[0]", ["a * 2"]),
    ("x.y += a * 2", ["a * 2"]),
    ("return x[a * 2] * (a * 3)", ["a * 3"]),
    ("return 'ä', x * (a * 2)", ["a * 2"]),
]


@pytest.mark.parametrize(("text", "wanted"), SITES, ids=[text for text, _ in SITES])
def test_sites(text, wanted):
    function = made(text.replace("ä", "a"))
    found = [each for each in operations(function) if not each.startswith("x * ")]
    assert [each for each in wanted if each not in found] == []
    numbers_only = [each for each in found if "x" not in each]
    assert sorted(numbers_only) == sorted(each for each in wanted if "x" not in each)


def test_closures_are_helpers():
    def helper(x, b):
        return x * b

    def calls(x, a):
        return helper(x, a)

    def hands_on(x, a):
        return known(x, a)

    known = np.sort
    assert "a" in parameters(calls).names
    assert "a" not in parameters(hands_on).names
