"""Does `python -m ufuse debug` find where numbers go wrong, and does it leave the script alone?"""

import dis
import importlib
import sys
import sysconfig
import warnings
from pathlib import Path

import numpy as np
import pytest
from ufuse.source.operations import marked
from ufuse.tools.debugging import Finder, Findings

BACKENDS = ["interpreted"]


def found(text, **names):
    """What is found in a program: line, kind and text."""
    findings = Findings()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(findings.compiled(text, "model.py"), {"np": np, **names})
    return [(each.operation.line, each.kind, each.text) for each in findings]


# A program, and the line, the kind and the text of what is found.
BIRTHS = [
    ("np.log(x)", "NaN", "NaN: 1 of 3, the first at [2], where x = -1.0"),
    ("np.log(x)", "infinity", "infinity: 1 of 3, the first at [1], where x = 0.0"),
    ("x / (x + 1)", "infinity", "infinity: 1 of 3, the first at [2], where x = -1.0, x + 1 = 0.0"),
    ("x[1] / x[1]", "NaN", "NaN, where x[1] = 0.0"),
    ("(lambda v: v**0.5)(x)", "NaN", "NaN: 1 of 3, the first at [2], where v = -1.0"),
    ("y = x * 1.0; y /= 0", "infinity", "infinity: 2 of 3, the first at [0], where y = 2.0"),
    ("y = x * 1.0; y[1:] /= 0", "NaN", "NaN: 1 of 2, the first at [0], where y[1:] = 0.0"),
    ("y = x * 1.0; np.log(y, out=y)", "NaN", "NaN: 1 of 3, the first at [2]"),
    ("x[:1].var(ddof=1)", "NaN", "NaN; x[:1] is float64 of shape (1,), from 2.0 to 2.0"),
    ("(x * 1e300).astype(np.float32)", "infinity", "infinity: 2 of 3, the first at [0], where "
     "x * 1e+300 = 2e+300"),
    ("1e308 * x[0]", "infinity", "infinity, where x[0] = 2.0"),
    ("5e307j * x[:1] * 10", "infinity", "infinity: 1 of 1, the first at [0], where "
     "5e+307j * x[:1] = 1e+308j"),
    ("np.array([x.sum() / 0, 1.0])", "infinity", "infinity, where x.sum() = 1.0"),
    ("np.fromstring('nan 1', sep=' ')", "NaN", "NaN: 1 of 2, the first at [0]"),
    ("[np.log(v) for v in x]", "NaN", "NaN, where v = -1.0"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "told"), BIRTHS, ids=[f"{a} {b}" for a, b, _ in BIRTHS])
def test_the_first_nan_is_found_with_its_operands(text, kind, told):
    births = [each for each in found(text, x=np.array([2.0, 0.0, -1.0])) if each[1] == kind]
    assert births == [(1, kind, told)]


NO_BIRTHS = [
    "y = x + 1; z = y.sum(); w = [y[0], z, -y]",
    "y = np.full(3, np.nan); y[1] = 2; y * 2",
    "y = np.where(np.isnan(x), 0, x)",
    "y = float('inf'); z = np.minimum(y, 1); w = min([y, 2.0])",
    "def f(v):\n    return v * 2\ny = f(x); z = f(f(y))",
    "y = {'a': x}; z = y['a'] * 1; w = y['a'].mean()",
    "y = np.array([v for v in x]); z = np.stack([x, x])",
    "y = x; y += 1; y[0] *= 2",
    "y = np.empty(4); z = y.copy()",
]


@pytest.mark.parametrize("text", NO_BIRTHS)
def test_a_nan_that_comes_from_an_operand_was_not_born_there(text):
    assert found(text, x=np.array([np.nan, np.inf, 1.0])) == []


def test_a_nan_beside_others_was_born_where_no_operand_has_one():
    text = "a = p * np.log(p)\nb = a + 1\nc = b - b[0]\nd = a.sum() * 1"
    births = found(text, p=np.array([np.inf, 0.0, np.nan]))
    assert births == [
        (1, "infinity", "infinity: 1 of 3, the first at [1], where p = 0.0"),
        (1, "NaN", "NaN: 1 of 3, the first at [1], where p = 0.0, np.log(p) = -inf"),
        (3, "NaN", "NaN: 1 of 3, the first at [0], where b = inf, b[0] = inf"),
    ]


def test_a_nan_from_a_function_is_told_where_the_function_makes_it():
    text = "def f(v):\n    return g(v)\ndef g(v):\n    return h(v)\ndef h(v):\n    return [v / 0]\n"
    births = found(text + "y = f(x)\nz = f(x)[0] + 1\n", x=np.ones(2))
    assert births == [(6, "infinity", "infinity: 2 of 2, the first at [0], where v = 1.0")]


WRAPPED = [
    ("x + x", "uint8: 1 of 2, the first at [0], where x = 200: 400 became 144"),
    ("x * 2", "uint8: 1 of 2, the first at [0], where x = 200: 400 became 144"),
    ("np.subtract(x, 100)", "uint8: 1 of 2, the first at [1], where x = 1: -99 became 157"),
    ("-x", "uint8: 2 of 2, the first at [0], where x = 200: -200 became 56"),
    ("x += 100", "uint8: 1 of 2, the first at [0], where x = 200: 300 became 44"),
    ("x.astype(np.int8)", "int8: 1 of 2, the first at [0], where x = 200: 200 became -56"),
    ("x << 1", "uint8: 1 of 2, the first at [0], where x = 200: 400 became 144"),
    ("y = x.astype(np.int64) << 55; y + y", "int64: 1 of 2, the first at [0], where y = "
     "7205759403792793600: 1.4411518807585587e+19 became -4035225266123964416"),
    ("x // 2 + x % 7", None),
    ("x.astype(np.int64) * 2**61", "int64: 1 of 2, the first at [0], where x.astype(np.int64) "
     "= 200, 2 ** 61 = 2305843009213693952: 4.6116860184273879e+20 became 0"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "told"), WRAPPED, ids=[text for text, _ in WRAPPED])
def test_integers_that_wrap_around_are_found(text, told):
    notes = [each for each in found(text, x=np.array([200, 1], np.uint8)) if each[1] == "wrapped"]
    assert notes == ([] if told is None else [(1, "wrapped", told)])


def test_dtypes_that_become_larger_are_found():
    f, i, u = np.ones(3, np.float32), np.arange(3), np.arange(3, dtype=np.uint64)
    told = {
        "f * i": "float32 with int64 gives float64",
        "u + i": "uint64 with int64 gives float64, which holds whole numbers up to 2**53 only",
        "np.add(i, f)": "int64 with float32 gives float64",
    }
    quiet = [
        "np.add(i, f, dtype=float)",
        "np.add(i, f, out=np.zeros(3))",
        "f * 2.0",
        "i * 2",
        "f * f",
        "i * 0.5",
        "i + np.ones(3)",
        "f > 0",
        "f * np.float32(2)",
    ]
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        told["f * k"] = (
            "float32 with the NumPy scalar k of float64 gives float64; "
            "with float(k) it stays float32"
        )
    for text in [*told, *quiet]:
        notes = [each[2] for each in found(text, f=f, i=i, u=u, k=np.float64(2))]
        assert notes == [told[text]] if text in told else notes == []


def test_a_program_goes_on_where_an_operation_cannot_be_looked_at(monkeypatch):
    def fails(*_):
        raise OSError("no")

    findings = Findings()
    monkeypatch.setattr(Findings, "_integers", fails)
    space = {"np": np}
    exec(findings.compiled("x = np.arange(3)\ny = x + 1", "model.py"), space)
    assert space["y"].tolist() == [1, 2, 3]
    assert str(findings).splitlines()[1:] == [
        "Could not be looked at:",
        "  model.py:1: np.arange(3): OSError: no",
        "  model.py:2: x + 1: OSError: no",
    ]


REPORT = """\
NaN and infinity, in the order in which they appeared:
  model.py:2: 1.0 / x
    infinity: 1 of 2, the first at [0], where x = 0.0 (3 times)
Integers that wrapped around:
  model.py:3: u + 1
    uint8: 1 of 1, the first at [0], where u = 255: 256 became 0
Dtypes that became larger:
  model.py:4: u * f
    uint64 with float32 gives float64"""


def test_the_report_says_each_thing_once():
    findings = Findings()
    assert str(findings).startswith("no NaN or infinity came up, no integer")
    text = "for _ in range(3):\n    1.0 / x\nu + 1; u = u.astype(np.uint64)\nu * f"
    names = {"x": np.arange(2.0), "u": np.array([255], np.uint8), "f": np.ones(1, np.float32)}
    with np.errstate(all="ignore"):
        exec(findings.compiled(text, "model.py"), {"np": np, **names})
    assert str(findings) == REPORT


LANGUAGE = '''
"""A docstring."""
from __future__ import annotations
import asyncio, contextlib, dataclasses

class Base:
    """Has one."""
    def __init__(self, a: int = 1 + 2, /, *rest: "int", key: list[int] = [3], **more) -> None:
        super().__init__()
        self.a = a + key[0]
        self.__hidden = rest[0] * 2 if rest else -1

    @property
    def hidden(self) -> int: return self.__hidden

    def __matmul__(self, other): return self.a * other.a

@dataclasses.dataclass
class Point(Base):
    x: float
    y: float = 1.5 * 2

    def __post_init__(self):
        super().__init__(1, 2)
        self.x += self.y

def generated(n):
    got = 0
    for i in range(n):
        got = (yield i * 2) or got + 1
    return got

def outer():
    count = 0
    def inner(*args, **kwargs):
        nonlocal count
        count += len(args) + len(kwargs)
        return count
    return inner

async def later(x):
    await asyncio.sleep(0)
    return x * 2

def matches(value):
    match value:
        case [a, *others] if len(others) > 1: return a + others[0]
        case {"k": v, **more}: return v * len(more)
        case Point(x=x): return x - 1
        case -1 | 2.5: return "number"
        case str() as s: return s.upper()
    return None

class Counter:
    reads = 0
    @property
    def items(self):
        Counter.reads += 1
        return [1, 2, 3]

log = []
def noted(x):
    log.append(x)
    return x

p = Point(1.0)
inner = outer()
inner(1, 2, k=3)
c = Counter()
c.items[noted(0)] += 1
d = {"k": [1, 2]}
d["k"][noted(1)] += 5
d["k"][-1] *= 2
a = b = 3
a, (b, *rest) = noted(4) + 1, "xyz"
if (n := len(rest)) > 1: a += n
with contextlib.suppress(ZeroDivisionError):
    1 / (a - a)
try:
    [][noted(5)]
except IndexError as error:
    log.append(str(error) + repr(error.__traceback__.tb_lineno))
else:
    log.append("no")
finally:
    log.append(f"{a + 1:>{2 + 2}}{b!r}{p.x=}")
g = generated(3)
log += [next(g), g.send(7), list(g)]
log.append([x + y for x in range(3) if x % 2 for y in (x * 2,)])
log.append({x: -x for x in range(2)} | {"s": {x**2 for x in (1, 2)}})
log.append(sorted(map(lambda v, k=2 * 3: -v * k, range(3)), key=lambda v: -v))
log.append([matches(v) for v in ([1, 2, 3], {"k": 2, "o": 1}, p, -1, 2.5, "s", None)])
log.append(asyncio.run(later(4)))
log += [p @ p, p.hidden, Counter.reads, d, not a, ~b.count("x"), 1 < a < 10, a if b else 0]
del d["k"][0], rest
log += [Base.__init__.__annotations__, Point.__annotations__, Base.__doc__, later.__qualname__]
log.append(print.__name__ + "".join(*[["a", "b"]], **{}))
'''


def test_a_program_runs_as_it_does_alone():
    alone, watched = ({"__name__": "program"} for _ in range(2))
    sys.modules["program"] = type(sys)("program")
    try:
        exec(compile(LANGUAGE, "program.py", "exec"), alone)
        exec(Findings().compiled(LANGUAGE, "program.py"), watched)
    finally:
        del sys.modules["program"]
    assert alone.keys() == watched.keys()
    assert repr(alone["log"]) == repr(watched["log"])
    assert len(alone["log"]) > 20
    assert alone["__doc__"] == watched["__doc__"]


def test_lines_and_columns_are_those_of_the_text():
    def places(code):
        yield from (each.positions for each in dis.get_instructions(code) if each.opname == "CALL")
        for each in code.co_consts:
            if hasattr(each, "co_code"):
                yield from places(each)

    plain = compile(LANGUAGE, "program.py", "exec")
    made = marked(LANGUAGE, "program.py", lambda v, _: v, lambda v, _: None)
    assert {*places(plain)} <= {*places(made)}


def test_every_module_of_the_standard_library_can_be_watched():
    folder = Path(sysconfig.get_path("stdlib"))
    for file in [*folder.glob("*.py"), *folder.glob("asyncio/*.py")]:
        text = file.read_bytes()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = marked(text, str(file), lambda value, _: value, lambda value, _: None)
        assert code.co_name == "<module>"


def test_what_python_warns_of_is_warned_of_once():
    with pytest.warns(SyntaxWarning) as told:
        marked("x = 1\nx is 1", "model.py", lambda value, _: value, lambda value, _: None)
    assert [each.lineno for each in told] == [2]
    with pytest.raises(SyntaxError, match="invalid syntax"):
        marked("x = = 1", "model.py", lambda value, _: value, lambda value, _: None)


def test_modules_of_the_scripts_folder_are_watched(tmp_path, monkeypatch):
    (tmp_path / "ufuse_test_beside").mkdir()
    (tmp_path / "ufuse_test_beside" / "__init__.py").write_text("def f(x):\n    return 1.0 / x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    findings = Findings()
    monkeypatch.setattr(sys, "meta_path", [Finder(findings, str(tmp_path)), *sys.meta_path])
    beside = importlib.import_module("ufuse_test_beside")
    monkeypatch.delitem(sys.modules, "ufuse_test_beside")
    with np.errstate(all="ignore"):
        beside.f(np.arange(2.0))
    (only,) = findings
    assert only.operation.file == str(tmp_path / "ufuse_test_beside" / "__init__.py")
    assert not list(tmp_path.rglob("*.pyc"))
