"""Are Python numbers taken anew by a recorded call exactly where their values do not matter?

Each function is called with many numbers, in an order that lets a plan of one meet the others.
"""

import collections
import itertools
import operator
import re
import types

import numpy as np
import pytest
import ufuse
from same import check, same
from ufuse.tracing.parameters import parameters

BACKENDS = ["compiled"]

X = np.linspace(0.5, 2.0, 12).reshape(3, 4)
FLOATS = (0.5, 2.0, -1.5, 0.0, -0.0, float("nan"), float("inf"), 1e300, 1e-320, 3.25)
INTS = (1, 2, 3, -1, 0, 255, 256, -129, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63), 10**30)
OTHERS = (1j, 2.5 - 1j, True, False)
TEXT = "%s"
NEP50 = int(np.__version__.split(".")[0]) >= 2


def step(x, dt):
    return x + dt / 2 * x - dt


def helper_with_names(x, *, k, n=3):
    return x * k + n


def plain(x, a):
    return x * a + 1


def worked_out(x, a):
    return x + 0.5 * a * a * x - -a


def both_sides(x, a):
    return (a - x) / (x + a), x < a, a >= x


def in_place(x, a):
    x += a
    x *= a
    return x.sum()


def power(x, a):
    return x**a


def power_of_number(x, a):
    return a**x


def power_ufunc(x, a):
    return np.power(x, a)


def ufuncs(x, a):
    return np.maximum(x, a), np.hypot(a, x), np.multiply(a, x)


def ufunc_of_number(x, a):
    return x * np.sqrt(a)


def floor_and_rest(x, a):
    return x // a, a // x, a % x


def branches(x, a):
    if a > 1:
        return x * a
    return x - a if a else x + 10


def chained(x, a):
    return x * a if 0 < a < 3 else x


def caught(x, a):
    try:
        k = 1 / a
    except Exception:
        k = 7
    return x * k


def through_helpers(x, a):
    return step(step(x, a), a * 2) + helper_with_names(x, k=a)


def in_a_loop(x, a):
    t = a
    for _ in range(3):
        x = x * t + a
        t = t + 1
    return x


def rebinds(x, a):
    a = a + 1
    return x * a


def beside_numpy_scalars(x, a):
    return x * (np.float32(2) * a), x.mean() * a, a + np.finfo(float).eps


def bits(x, a):
    return x & a, x | a, x ^ a, ~a


OPERANDS = [plain, worked_out, both_sides, in_place, power, power_of_number, power_ufunc, ufuncs]
OPERANDS += [ufunc_of_number, floor_and_rest, branches, caught, through_helpers, in_a_loop]
OPERANDS += [rebinds, beside_numpy_scalars, bits]


def repeats_a_list(x, a):
    return [] * a, x * a


def adds_to_a_list(x, a):
    kept = [1]
    kept += a
    return x, kept


def adds_to_none(x, a):
    return x * (None + a)


OPERANDS += [repeats_a_list, adds_to_a_list, adds_to_none]


def returned(x, a):
    return x * a, a


def stored(x, a):
    return {"a": a, "x": x * a}


def index(x, a):
    return x[a]


def bound(x, a):
    return x[:a] * a


def size(x, a):
    return np.zeros(a) + a


def shape(x, a):
    return x.reshape(a, -1)


def axis(x, a):
    return x.sum(axis=a)


def rest(x, a):
    return x % a


def of_type(x, a):
    return x * (2 if type(a) is int else 3)


def of_kind(x, a):
    return x + isinstance(a, int)


def identity(x, a):
    return x * (1 if a is None else 2) * a


def attribute(x, a):
    return x * a.real


def text(x, a):
    return x, TEXT % a, f"{a}"


def through_a_name(x, a):
    b = a
    return x * a, [b]


def conditional(x, a):
    # Long enough that no version of CPython copies what follows into both branches.
    return x * (a if x.ndim == 2 else 1) + x * 2 - x / 3


def member(x, a):
    return x * a if a in (1, 2.0) else x


def counted(x, a):
    for _ in range(a):
        x = x + a
    return x


def given_on(x, a):
    return round(a) * x


def nested(x, a):
    return [x * a for _ in range(2)][1]


def starred(x, *a):
    return x * a[0]


LOOKS = [returned, stored, index, bound, size, shape, axis, of_type, of_kind, attribute, text]
LOOKS += [rest, through_a_name, conditional, member, counted, given_on, chained]


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1", "i8", "?", "c16"])
@pytest.mark.parametrize("function", OPERANDS, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore")
def test_operands(function, dtype):
    assert function.__code__.co_varnames[1] in parameters(function).names
    x = (X * 3).astype(dtype)
    # NumPy 1 takes large integers to powers as Python does, without end.
    ints = [a for a in INTS if "power" not in function.__name__ or abs(a) < 300]
    for a in (*ints, *FLOATS, *OTHERS, *ints[::-1], *FLOATS[::-1]):
        check(function, x, a)


@pytest.mark.parametrize("function", LOOKS, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore")
def test_values_that_are_looked_at(function):
    assert "a" not in parameters(function).names
    for a in (0, 1, 2, 1, 0, 3, 3.0, 1.0, -1, 2.0, True, 1):
        check(function, X, a)


@pytest.mark.parametrize("function", [identity, nested, starred], ids=lambda f: f.__name__)
def test_other_uses(function):
    for a in (1, 2, 3, 1.0, 2.5, 1):
        check(function, X, a)


@pytest.mark.parametrize(
    ("function", "numbers", "traced"),
    [
        (plain, (0.1, 0.2, 0.3, 0.4), 1),
        (plain, (1, 2, 3, 4), 1),
        (plain, (1, 0.1, 2, 0.2), 2),
        (worked_out, (0.1, 0.2, 0.3), 1),
        (branches, (2.0, 3.0, 4.0, 0.5, 0.25, 0.0, 0.125), 3),
        (power, (2.5, 3.5, 4.5, 2.0, 5.5), 2),
        (caught, (1, 2, 3, 0, 4, 0), 2),
        (through_helpers, (0.1, 0.2, 0.3), 1),
        (in_a_loop, (0.1, 0.2, 0.3), 1),
        (ufuncs, (0.1, 0.2, 0.3), 1),
        (rebinds, (1, 2, 3), 1),
        (returned, (0.1, 0.2, 0.3), 3),
        (ufunc_of_number, (0.1, 0.2, 0.1), 2),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_python_runs_only_where_it_may_go_another_way(function, numbers, traced):
    native = ufuse.jit(function)
    for a in numbers:
        same(native(X.copy(), a), function(X.copy(), a))
    replayed, recorded, _ = native._dispatcher.counts
    assert recorded == traced
    assert replayed == len(numbers) - traced


def test_keywords_and_defaults():
    native = ufuse.jit(helper_with_names)
    for k, n in itertools.product((1.0, 2.0, 3.0), (None, 1, 2)):
        named = {"k": k} if n is None else {"k": k, "n": n}
        same(native(X, **named), helper_with_names(X, **named))
        same(native(X, **dict(reversed(named.items()))), helper_with_names(X, **named))
    assert native._dispatcher.counts[1] <= 3


def test_a_changing_number_evicts_nothing():
    native = ufuse.jit(plain)
    for a in range(300):
        same(native(X, a), X * a + 1)
    assert native._dispatcher.counts[1:] == (1, 1)


def test_numbers_out_of_range():
    native = ufuse.jit(plain)
    x = np.arange(5, dtype="u1")
    for a in (1, 2, 254):
        same(native(x, a), plain(x, a))
    for a in (256, -1, 2**70):
        check(plain, x, a)
        try:
            expected = plain(x, a)
        except OverflowError as error:
            with pytest.raises(OverflowError, match=str(error).replace("(", r"\(")):
                native(x, a)
        else:
            same(native(x, a), expected)
    # NumPy 1 promotes by the value.
    assert native._dispatcher.counts[0] == (2 if NEP50 else 0)


def test_what_is_seen_stays_a_number_in_tracebacks():
    def fails(x, a):
        b = a * 2
        return (x * b)[100]

    with pytest.raises(IndexError) as caught_error:
        ufuse.jit(fails)(X, 1.5)
    names = caught_error.traceback[-1].frame.f_locals
    assert repr(names["a"]) == "1.5"
    assert repr(names["b"]) == "3.0"


def test_one_code_object_of_two_functions():
    """What a name stands for is asked for each of them."""
    code = (lambda x, a: g(x, a)).__code__  # noqa: F821
    made = [types.FunctionType(code, {"g": f}) for f in (plain, returned)]
    assert [parameters(f).names for f in made] == [("x", "a"), ("x",)]
    for f in made * 2:
        for a in (1.0, 2.0):
            same(ufuse.jit(f)(X, a), f(X, a))


class Looks:
    """What its operators are told, as text: any code may be behind them."""

    def __init__(self):
        self.told = []

    def _tell(self, value):
        self.told.append((type(value), value))
        return len(self.told), type(value), value

    __mul__ = __add__ = __pow__ = __matmul__ = __lt__ = __eq__ = __ne__ = __ge__ = _tell
    __rmul__ = __radd__ = __imul__ = __iadd__ = __ipow__ = __imatmul__ = _tell
    __hash__ = None

    def __contains__(self, value):
        return self._tell(value)[0] > 0


class Items:
    """An object of the user's that holds lists, as a dict would."""

    def __init__(self, value):
        self.value = value

    def __getitem__(self, key):
        return self.value

    def __setitem__(self, key, value):
        self.value = value, key


def beside_objects(x, n, c):
    return x * n, c * n, n * c, c + n, c**n, c @ n, c < n, c == n, c != n, c >= n, n in c, c.told


def changed_objects(x, n, c):
    a = b = c
    a *= n
    b += n * 2
    return x * n, a, b, c.told


def changed_items(x, n, c):
    held = [c]
    held[0] *= n
    names = {"c": c}
    names["c"] **= n
    names["d"] = c
    names["d"] @= n
    return x * n, held, names, c.told


def changed_list(x, n, c):
    before = c
    c *= n
    return x * n, c, c is before


def extended_list(x, n, c):
    c += n
    return x * n


def added_to_list(x, n, c):
    return x * n, c + n


def changed_item_of(x, n, c):
    before = c[0]
    c[0] *= n
    return x * n, c, c[0] is before, vars(c) if hasattr(c, "__dict__") else None


def extended_item_of(x, n, c):
    c[0] += n
    return x * n, c


OBJECTS = [
    (beside_objects, Looks),
    (changed_objects, Looks),
    (changed_items, Looks),
    *itertools.product(
        [changed_list, extended_list, added_to_list],
        [lambda: [1, 2], lambda: (1, 2), lambda: "ab", lambda: {1}, lambda: None],
    ),
    *itertools.product(
        [changed_item_of, extended_item_of],
        [
            lambda: [[1, 2]],
            lambda: {0: [1, 2]},
            lambda: {0: (1, 2)},
            lambda: {0: "ab"},
            lambda: [5],
            lambda: {0: None},
            lambda: collections.deque([[1, 2]]),
            lambda: collections.defaultdict(list, {0: [1]}),
            lambda: Items([1, 2]),
        ],
    ),
]


@pytest.mark.parametrize(("function", "make"), OBJECTS)
def test_operators_of_objects_are_told_numbers(function, make):
    jitted = ufuse.jit(function)
    for number in (3, 2, 2.5, 1j, True, 3):
        for _ in range(2):
            assert outcome_of(jitted, number, make()) == outcome_of(function, number, make())


def outcome_of(function, number, given):
    try:
        product, *others = function(X, number, given)
    except Exception as error:
        return type(error), str(error)
    assert type(product) is np.ndarray
    return product.tobytes(), texts_of(others), texts_of(vars(given) if type(given) is Looks else 0)


def texts_of(value):
    return re.sub(r"0x\w+", "", repr(value))


def operators_of_scalars(x, name):
    """NumPy's scalars hand operators over as calls of ufuncs, which wrap where operators warn."""
    big, s = np.int64(2**62), x.max()
    return getattr(operator, name)(big, s), getattr(np, {"mul": "multiply"}.get(name, name))(big, s)


@pytest.mark.parametrize("name", ["add", "mul"])
def test_operators_of_scalars_are_no_ufuncs(name):
    check(operators_of_scalars, np.array([3, 2**62 + 5]), name)
    check(lambda x: np.int64(2**62) + x.max(), np.array([3, 2**62 + 5]))
    check(lambda x: np.add(np.int64(2**62), x.max()), np.array([3, 2**62 + 5]))
