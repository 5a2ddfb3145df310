"""Where tracing has stopped in a loop that cannot go on natively, does it go on as it is written?

The call sites of traced code take longer than the numbers between them. So each loop stands in
traced code once more without them, and the rest of its rounds runs there.
"""

import contextlib
import sys

import numpy as np
import pytest
import ufuse
from same import check
from ufuse import _core

BACKENDS = ["interpreted"]
X = np.linspace(-1.0, 2.0, 7)
ROUNDS = 120
WHERE = []


def note(value):
    """Native loops do not know a global list. Notes where in its caller the call stands."""
    WHERE.append(sys._getframe(1).f_lasti)
    return value


def over_range(x, n):
    total, texts = x * 0, []
    for k in range(n):
        total = total + x * note(k)
        texts.append(str(k))
    else:
        texts.append("all")
    return total, texts, k


def over_a_list(x, n):
    names, found = [str(k) for k in range(n)], {}
    for name in names:
        if name.endswith("7"):
            continue
        found[name] = x[note(int(name)) % 7]
    return found


def over_items(x, n):
    total, table = 0, {str(k): k for k in range(n)}
    for name, k in table.items():
        total = total + x[k % 7] * note(len(name))
        if k == n - 5:
            break
    else:
        total = None
    return total, name


def over_an_array(x, n):
    kept = []
    for value in np.arange(n) * x[1]:
        kept.append(note(value))
    return kept, value


def over_pairs(x, n):
    last = None
    for k, name in enumerate("abc" * n):
        last = (name, x[note(k) % 7], last and last[0])
        if k > n:
            return last
    return "none"


def while_true(x, n):
    k, texts = 0, set()
    while True:
        k += note(1)
        texts.add(str(x[k % 7]))
        if k > n:
            break
    return k, sorted(texts)


def while_else(x, n):
    k = x[0]
    while str(k) and k < n:
        k = k + note(1.0)
    else:
        k = -k
    return k


def nested(x, n):
    out = {}
    for i in range(n):
        for j in range(3):
            if (i, j) not in out:
                out[i, j] = x[note(i) % 7] + j
            if j == i % 3:
                break
        else:
            out[i] = x.sum()
    return out


def unbound(x, n):
    for k in range(n):
        if k % 3 == 0:
            name = str(k)
            value = x[note(k) % 7]
        elif k % 3 == 1:
            del name
    try:
        return name, value, k
    except UnboundLocalError as error:
        return str(error), value, k


def raises(x, n):
    total = 0
    for k in range(n):
        total = total + x[k % 7]
        if note(k) == n - 3:
            x[0] = total
            raise KeyError(f"round {k}")
    return total


def returns(x, n):
    for k in range(n):
        text = str(note(k))
        if k == n - 2:
            return text, x * k, k


def changed_list(x, n):
    items, seen = [str(k) for k in range(n)], []
    for item in items:
        seen.append((note(item), x[len(seen) % 7]))
        if len(items) < n + 10:
            items.append(item + "'")
    return seen, x + len(items)


def two_loops(x, n):
    first = {}
    for k in range(n):
        first[str(k)] = x[note(k) % 7]
    second = {}
    for name, value in first.items():
        second[value] = note(name)
    return second


def tries(x, n):
    seen = []
    for k in range(n):
        try:
            if k % 4 == 1:
                continue
            seen.append(x[note(k) % 9])
        except IndexError as error:
            seen.append(str(error))
            if k > n - 6:
                break
        else:
            seen.append(f"{k:03d}")
        finally:
            seen.append(-k)
    return seen


def manages(x, n):
    total = x * 0
    while len(str(total[0])) and n:
        with np.errstate(all="ignore"), contextlib.suppress(ZeroDivisionError):
            total = total + x * note(n)
            n -= 1
            1 / (n % 5)
            total = total * 1.5
    else:
        n = "done"
    return total, n


def forgets(x, n):
    for k in range(n):
        match k % 3:
            case 0:
                first = x[note(k) % 7]
            case 1:
                del first
    return k, "first" in locals()


FUNCTIONS = [
    *(over_range, over_a_list, over_items, over_an_array, over_pairs, while_true, while_else),
    *(nested, unbound, raises, returns, changed_list, two_loops, tries, manages, forgets),
]


@pytest.fixture(params=[True, False], ids=["at once", "when it is slow"])
def soon(request):
    """Whether it is tried at the next round what else a loop could do."""
    before = _core.choose_programs(eager=request.param)
    yield request.param
    _core.choose_programs(*before)


@pytest.mark.parametrize("operations", [1, 2, 3, 5, 8, 13, 40])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_rest_is_as_written(function, operations, soon):
    with _core.most_operations(operations):
        check(function, X, ROUNDS)


NEVER_NATIVE = [over_items, while_true, changed_list, tries]


@pytest.mark.parametrize("function", NEVER_NATIVE, ids=lambda f: f.__name__)
@pytest.mark.parametrize("soon", [True], indirect=True)
def test_where_the_rest_runs(function, soon):
    """The call of `note` has been in two places of the code: with call sites and without."""
    with _core.most_operations(1):
        WHERE.clear()
        with contextlib.suppress(KeyError):
            ufuse.jit(function)(X.copy(), ROUNDS)
    places = len(set(WHERE))
    WHERE.clear()
    with contextlib.suppress(KeyError):
        function(X.copy(), ROUNDS)
    assert places == 2 * len(set(WHERE))
    assert len(WHERE) >= ROUNDS / 2


def lines(x, n):
    for k in range(n):
        x = x + str(k).count("1")
        if k == n - 1:
            {}[k]


def test_tracebacks_show_the_lines_of_the_source():
    with _core.most_operations(1), pytest.raises(KeyError) as caught:
        ufuse.jit(lines)(X, ROUNDS)
    trace = caught.tb
    while trace.tb_next:
        trace = trace.tb_next
    assert trace.tb_lineno == lines.__code__.co_firstlineno + 4
    assert trace.tb_frame.f_code.co_name == "lines"


KINDS = set()


def size(row):
    """Plain Python where tracing has stopped, which sees what it is given."""
    KINDS.add(type(row))
    return memoryview(row).nbytes


def rows(x):
    out = {}
    for row in x:
        out[str(len(out))] = size(row) + row.sum()
    return out


def numbered(x):
    out = {}
    for k, row in enumerate(x * 2):
        out[str(k)] = size(row) + row.sum()
    return out


def zipped(x):
    out = {}
    for a, b in zip(x, x[::-1], strict=True):
        out[str(len(out))] = size(a) + size(b) + (a * b).sum()
    return out


def turned(x):
    out = {}
    for row in reversed(x):
        out[str(len(out))] = size(row) + row.sum()
    return out


def mapped(x):
    out = {}
    for row in map(np.sqrt, x):
        out[str(len(out))] = size(row) + row.sum()
    return out


def listed(x):
    out, made = {}, [row * 2 for row in x]
    for row in made:
        out[str(len(out))] = size(row) + row.sum()
    return out


@pytest.mark.parametrize("operations", [1, 2, 5, 9, 30])
@pytest.mark.parametrize("function", [rows, numbered, zipped, turned, mapped, listed])
def test_what_the_rest_goes_over_is_real(function, operations, soon):
    KINDS.clear()
    with _core.most_operations(operations):
        check(function, np.arange(90.0).reshape(30, 3))
    assert {np.ndarray} == KINDS
