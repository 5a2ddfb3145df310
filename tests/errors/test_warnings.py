"""Does a jitted function warn as NumPy does: in text, category, file, line, number and order?

Under the filters of the ``warnings`` module, for arrays of every size and layout, in fused
expressions, and when the value that warns is never used.
"""

import contextlib
import operator
import pickle
import re
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
import ufuse
from outcomes import check, compare, run, step
from same import copied, jitted, same
from warners import (
    PROGRAMS,
    SIZES,
    helper,
    in_a_helper,
    in_place,
    layouts,
    many_lines,
    numbers,
    through_numpys_source,
)

EXPRESSIONS = {
    "log": lambda x, y: np.log(x),
    "log1p": lambda x, y: np.log1p(x - 1),
    "sqrt": lambda x, y: np.sqrt(x),
    "divide": lambda x, y: x / y,
    "zero by zero": lambda x, y: (x * 0) / (y * 0),
    "one by x": lambda x, y: 1 / x,
    "by a Python zero": lambda x, y: x / 0,
    "by an integer zero": lambda x, y: x / np.int64(0),
    "overflow": lambda x, y: x * x * 1e10,
    "overflow in exp": lambda x, y: np.exp(x),
    "overflow in a sum": lambda x, y: x + x,
    "overflow in power": lambda x, y: x**3,
    "square": lambda x, y: x**2,
    "inverse power": lambda x, y: x**-1,
    "root power": lambda x, y: x**0.5,
    "invalid minus": lambda x, y: np.exp(x) - np.exp(x),
    "invalid sine": lambda x, y: np.sin(x / 0),
    "floor divide": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "arcsin": lambda x, y: np.arcsin(x),
    "hypot": lambda x, y: np.hypot(x, x),
    "logaddexp": lambda x, y: np.logaddexp(x, y),
    "where": lambda x, y: np.where(y != 0, x / y, 0),
    "where of two": lambda x, y: np.where(x > 0, np.log(x), np.sqrt(x)),
    "fused": lambda x, y: np.sqrt(np.log(x) + 1) / y,
    "two on a line": lambda x, y: (np.log(x), 1 / y, np.log(x)),
    "used twice": lambda x, y: (lambda z: z + z * 2)(np.log(x)),
    "never used": lambda x, y: (np.log(x), y + 1)[1],
    "mask afterwards": lambda x, y: np.log(x)[y > 0],
    "maximum": lambda x, y: np.maximum(np.log(x), y),
    "compare": lambda x, y: x / y > 0,
    "sum": lambda x, y: (x / y).sum(),
    "mean of rows": lambda x, y: np.log(x).mean(axis=0),
    "sum overflows": lambda x, y: (np.abs(x) * 1e5).sum(),
    "std": lambda x, y: (x / y).std(),
    "norm": lambda x, y: np.linalg.norm(x / y, axis=-1),
    "norm overflows": lambda x, y: np.linalg.norm(x * 1e3, axis=-1),
    "extreme": lambda x, y: np.log(x).max(),
    "position": lambda x, y: np.log(x).argmin(axis=0),
    "cumulative": lambda x, y: np.cumsum(x / y),
    "cast": lambda x, y: x.astype(np.int32),
    "cast down": lambda x, y: (x * 1e300).astype(np.float32) if x.dtype == "f8" else x,
    "slice": lambda x, y: np.log(x[1:]) - np.log(x[:-1]),
    "scalar": lambda x, y: x.ravel()[0] / x.ravel()[1],
    "scalar log": lambda x, y: np.log(x.ravel()[0]),
    "modf": lambda x, y: np.modf(x / y),
    "complex": lambda x, y: 1 / (x + 0j),
    "imaginary parts": lambda x, y: (np.asarray(x + 1j, float), np.array(y + 1j, dtype="f4")),
    "out": lambda x, y: np.log(x, out=y),
    "where argument": lambda x, y: np.log(x, where=x > 0, out=y),
    "reduce with where": lambda x, y: np.add.reduce(x / y, where=np.isfinite(y)),
    "none": lambda x, y: np.where(y != 0, x * 2, 0),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions(name, size):
    kinds = ("f8", "f4") if size == "block" else ("f8",)
    for kind in kinds:
        for layout, x in layouts(SIZES[size], kind):
            if kind == "f4" and layout != "contiguous":
                continue
            check(EXPRESSIONS[name], x, x[::-1].copy() if x.ndim == 1 else x)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(program, size):
    for layout, x in layouts(SIZES[size]):
        if layout in ("columns", "reversed"):
            continue
        trail = check(program, x, x[::-1].copy())
        assert trail.warnings, "a program that does not warn tests nothing"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("code", "?bhilBHILefdgFDG")
def test_casts(code):
    """Between all dtypes: which of them warn is NumPy's affair, and depends on both."""
    dtype, targets = np.dtype(code), "?bhilBHILefdgFDG"
    if dtype.kind in "fc":
        targets = targets.replace(
            "I", ""
        )  # out of range its bits are not followed (ir/SEMANTICS.md)
        info = np.finfo(dtype)
        values = [0, -1.5, 7, info.max, -info.max, info.tiny, np.inf, np.nan]
    else:
        values = [0, 1] if code == "?" else [0, 1, np.iinfo(dtype).min, np.iinfo(dtype).max]
    x = np.array(values, dtype)
    for n in (len(x), 300):
        many = np.resize(x, n)
        check(lambda x, targets: [x.astype(c) for c in targets], many, targets)
        check(lambda x: [x[1:].astype("e"), x.astype("i").astype("e")], many)


def casts_its_output(x, y):
    x += y
    y[0] = np.inf
    np.subtract(y, [np.inf, -1e308, 1.0], out=x, casting="same_kind")
    np.square(y * 1e5, out=x, casting="same_kind")
    x *= y[1]
    np.cumsum(y, out=x)
    np.add.reduce([y, y], axis=0, out=x)
    x[...] = 0
    np.clip(y, 0, 1e250, out=x, casting="same_kind")
    x[1:] = y[1:] + 1
    x[:2] -= y[1:]
    return x


def test_a_function_warns_of_casts_of_its_output_in_its_own_name():
    check(casts_its_output, np.ones(3, "f4"), np.array([1e200, 1e300, 1e10]))


def logs_twice(x):
    return helper(x) - helper(x)


def logs_in_a_loop(x):
    return [np.log(x) for _ in range(3)]


def logs_again_later(x):
    a = np.log(x)
    step(float(a[1]))
    b = np.log(x)
    return a + b


def looks_at_the_second(x):
    a = 1 / x
    b = np.log(x)
    return a if b[-1] > 0 else b


def logs_and_looks(x):
    return [float(np.log(x).max()) for _ in range(3)]


def logs_and_copies(x):
    y = np.log(x)
    return y.copy(), np.array(y), np.asarray(y, float), y.astype(float), y.flatten(), y


AGAIN = [
    logs_twice,
    logs_in_a_loop,
    logs_again_later,
    looks_at_the_second,
    logs_and_looks,
    logs_and_copies,
]


@pytest.mark.parametrize("program", AGAIN, ids=lambda f: f.__name__)
def test_one_line_is_reached_again_with_equal_values(program):
    check(program, numbers(12))


def assigns_a_part_that_warns(x, y):
    a = np.log(x)
    y[1:3] = y[1:3] / 0
    return a


def assigns_an_element_that_warns(x, y):
    unused = np.log(x)
    y[1] = y[1] / 0
    y[2:] = 1 / (y[2:] - y[2])
    del unused


@pytest.mark.parametrize("program", [assigns_a_part_that_warns, assigns_an_element_that_warns])
def test_what_stands_before_a_part_that_is_assigned_warns_before(program):
    check(program, -numbers(12), numbers(12))


def test_methods_without_native_form():
    z = numbers(12) + 1j
    with np.errstate(all="ignore"):
        z = z / 0
    check(lambda z: (z.prod(axis=0), z.sum(dtype=np.complex64), np.prod(z)), z)


def test_reversed_in_place():
    check(lambda x: np.log(x, out=x), np.random.default_rng(0).normal(size=256)[::-1])


def ignored_inside(x, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a = np.log(x)
    return a / y


def recorded_inside(x, y):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        a = np.log(x)
        step(len(seen))
        b = a / y
    step([(str(w.message), w.lineno) for w in seen])
    return b


def error_inside(x, y):
    a = 1 / y
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            x += 1
            step("before")
            np.log(-x * x)
            step("after")
        except RuntimeWarning as error:
            step(str(error))
            x += 1
    return a / y


def error_in_a_helper(x, y):
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=RuntimeWarning)
        a = many_lines(x, y)
        step("after")
    return a


def shown_by_a_function(x, y):
    seen, before = [], warnings.showwarning
    a = np.log(x)
    warnings.showwarning = lambda *given: seen.append(str(given[0]))
    try:
        b = a / y
        step(list(seen))
    finally:
        warnings.showwarning = before
    c = np.sqrt(x) - b
    step(seen)
    return c


@contextlib.contextmanager
def recording():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield seen


def recorded_by_a_generator(x, y):
    with recording() as seen, np.errstate(invalid="ignore"):
        a = np.log(x)
        step([str(w.message) for w in seen])
        b = a / y
    step([str(w.message) for w in seen])
    return np.log(x) * b


def strict_in_a_block(x, y):
    a = np.log(x)
    with contextlib.suppress(RuntimeWarning), warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("error")
        step("before")
        a = a / y
        step("after")
    return a * np.log(x)


INSIDE = [(f, a) for f in (ignored_inside, error_inside) for a in ("always", "default", "ignore")]
OBSERVED = [
    (f, "always")
    for f in (
        *(recorded_inside, error_in_a_helper, shown_by_a_function, recorded_by_a_generator),
        strict_in_a_block,
    )
]


@pytest.mark.parametrize(
    ("program", "action"),
    [
        *INSIDE,
        *[(f, "error") for f in (ignored_inside, recorded_inside, error_inside, error_in_a_helper)],
        *OBSERVED,
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_filters_inside(program, action):
    check(program, numbers(40), numbers(40)[::-1].copy(), action=action)


@pytest.mark.parametrize("action", ["error", "once", "default", "module", "ignore", "always"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_filters(program, action):
    check(program, numbers(40), numbers(40)[::-1].copy(), action=action)


INTEGERS = {
    "floor divide": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "both": lambda a, b: divmod(a, b),
    "true divide": lambda a, b: a / b,
    "in place": lambda a, b: operator.ifloordiv(a, b),
    "fused": lambda a, b: (a + 1) // (b * 2) + a % b,
    "where": lambda a, b: np.where(b != 0, a // b, 0),
    "by a Python zero": lambda a, b: a // 0,
    "smallest by -1": lambda a, b: a // -1,
    "fmod": lambda a, b: np.fmod(a, b),
    "scalars": lambda a, b: a[0] // b[0],
    "scalars overflow": lambda a, b: a[0] * a[0] * a[0],
    "scalars add": lambda a, b: np.iinfo(a.dtype).max + a[1],
    "scalar minus": lambda a, b: -a[0],
    "absolute": lambda a, b: abs(a[0]),
    "logarithm": lambda a, b: np.log(b),
    "reciprocal": lambda a, b: np.reciprocal(b),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name, size):
    n = SIZES[size]
    for kind in ("i8", "i4", "i1", "u2") if size != "large" else ("i8",):
        a = np.arange(n).astype(kind)
        a[0], a[1] = np.iinfo(kind).min, np.iinfo(kind).max
        b = (np.arange(n) % 3).astype(kind)
        check(INTEGERS[name], a, b)
        check(INTEGERS[name], np.repeat(a, 2)[::2], np.repeat(b, 3)[::3])


@pytest.mark.parametrize("kind", "efd")
@pytest.mark.parametrize("divide", [operator.floordiv, operator.mod, divmod])
def test_scalars_by_zeros(divide, kind):
    values = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], kind)
    for x in values:
        for y in values[:2]:
            check(lambda a: divide(a[0], a[1]), np.array([x, y]))


# ---- the registry of warnings that were shown


def shown(calls, action):
    """The lines at which warnings are shown when functions are called one after the other."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        warnings.onceregistry.clear()
        for function, args in calls:
            function(*copied(args))
    return [(w.lineno, str(w.message)) for w in caught]


@pytest.mark.parametrize("action", ["default", "once", "module", "always"])
def test_a_line_is_shown_as_often_as_in_numpy(action):
    x = numbers(12)
    for program in (helper, in_a_helper, many_lines, through_numpys_source):
        args = (x,) if program is helper else (x, x[::-1])
        jit = jitted(program)
        theirs = shown([(program, args)] * 3, action)
        assert shown([(jit, args)] * 3, action) == theirs
        assert shown([(program, args), (jit, args), (program, args)], action) == theirs
        if action != "always":
            assert shown([(jit, args), (program, args)], action) == theirs


def test_filters_by_module_and_message():
    x = numbers(12)
    for rule in [
        {"module": helper.__module__.replace(".", r"\.")},
        {"module": "no_such_module"},
        {"message": "divide by zero"},
        {"message": "invalid"},
        {"category": RuntimeWarning},
        {"category": UserWarning},
        {"category": RuntimeWarning, "lineno": helper.__code__.co_firstlineno + 1},
    ]:
        seen = []
        for function in (in_a_helper, jitted(in_a_helper)):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                warnings.filterwarnings("ignore", **rule)
                function(x, x[::-1])
            seen.append([(str(w.message), w.lineno) for w in caught])
        assert seen[0] == seen[1], rule


def test_only_one_category_is_an_error():
    for rule in [
        {"message": "invalid"},
        {"message": "divide"},
        {"module": "no_such_module"},
        {"category": DeprecationWarning},
    ]:

        def call(function, rule=rule):
            def inner(*arrays):
                with warnings.catch_warnings():
                    warnings.filterwarnings("error", **rule)
                    return function(*arrays)

            return inner

        for program in (many_lines, in_place):
            args = (numbers(12), numbers(12))
            theirs = run(call(program), copied(args))
            ours = run(call(jitted(program)), copied(args))
            compare(theirs, ours)


SCRIPT = """
    import sys
    import numpy as np

    if sys.argv[1] == "jitted":
        import ufuse
        jit = ufuse.jit
    else:
        jit = lambda function: function

    @jit
    def function(x, y):
        print("begins", flush=True)
        a = np.log(x)
        print("log is taken", flush=True)
        x += 1
        b = a / y
        return b - b

    x = np.array([0.0, 1.0, -1.0, 2.0])
    for _ in range(3):
        try:
            print(function(x, x * 0))
        except RuntimeWarning as error:
            print("raised", error)
        print(x, flush=True)
"""


@pytest.mark.parametrize("option", ["error", "once", "default", "always", "ignore", None])
def test_command_line(option, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    outputs = []
    for how in ("plain", "jitted"):
        filters = [] if option is None else ["-W", option]
        done = subprocess.run(
            [sys.executable, *filters, str(script), how],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        outputs.append((done.returncode, done.stdout, done.stderr))
    assert outputs[1] == outputs[0]


def test_nothing_is_printed_by_a_quiet_function(capfd):
    function = ufuse.jit(lambda x: np.sqrt(x * x + 1).sum(axis=0))
    same(function(numbers(12) * 0), np.sqrt(numbers(12) * 0 + 1).sum(axis=0))
    assert capfd.readouterr() == ("", "")


def test_others_can_read_and_send_the_filters_during_a_call():
    """scikit-learn takes the patterns of the filters to other threads and processes."""

    def filters(x):
        y = x * 2
        sent = pickle.loads(pickle.dumps(warnings.filters))
        return y, [row[1] for row in [*warnings.filters, *sent] if row[1] is not None]

    _, patterns = ufuse.jit(filters)(np.ones(3))
    assert patterns
    for each in patterns:
        assert re.match(each.pattern, "a text") is None or each.match("a text")


@pytest.mark.parametrize("first", [0, 1])
def test_results_of_one_call_that_are_needed_apart(first):
    """NumPy warns once for all results of a call, whichever of them is needed first."""

    def function(x, y):
        results = np.divmod(x, y)
        found = int(results[first][1])
        return found, x - x, results[1 - first]

    for divisor in (2.0, 0.0):
        check(function, np.array([np.inf, 2.0, 0.0, -1.0]), np.full(4, divisor))


def test_one_result_of_a_call_that_is_needed():
    def function(x):
        steps = int(np.argmax(np.divmod(x, 2.0)[1])) % 4
        return x + steps

    check(function, np.array([np.inf, 2.0, 3.0]))
