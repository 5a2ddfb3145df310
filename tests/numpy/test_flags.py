"""Is an array that traced code, or somebody it calls, has made read-only not written to?"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import ufuse
from same import same

BACKENDS = ["compiled"]

WRITES: list[Callable[..., Any]] = [
    lambda a: a.__setitem__(1, 2),
    lambda a: a.__setitem__(slice(1, 3), 2),
    lambda a: a.__setitem__(a > 0, 2),
    lambda a: a.__iadd__(1),
    lambda a: np.add(a, 1, out=a),
    lambda a: np.sum(np.ones((2, 6)), axis=0, out=a),
    lambda a: a.fill(3),
    lambda a: a.sort(),
    lambda a: a.put([1], [2.0]),
    lambda a: np.copyto(a, 1.0),
    lambda a: np.putmask(a, a > 0, 1.0),
    lambda a: a[1:].__setitem__(0, 4),
    lambda a: a.reshape(2, 3).__setitem__((0, 0), 4),
    lambda a: np.random.default_rng(0).shuffle(a),
]


def freeze(a: Any) -> None:
    a.flags.writeable = False


def by_item(a: Any) -> None:
    a.flags["WRITEABLE"] = False


def by_letter(a: Any) -> None:
    a.flags["W"] = False


def by_flags(a: Any) -> None:
    flags = a.flags
    flags.writeable &= False


def by_method(a: Any) -> None:
    a.setflags(write=False)


def by_setattr(a: Any) -> None:
    setattr(a.flags, "writeable", False)  # noqa: B010


FREEZE = [freeze, by_item, by_letter, by_flags, by_method, by_setattr]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("given", [True, False], ids=["given", "made"])
@pytest.mark.parametrize("how", FREEZE, ids=lambda f: f.__name__)
def test_no_write_after_a_helper(how: Callable[..., Any], given: bool, write: Any) -> None:
    def f(x: Any) -> Any:
        a = x if given else x * 2
        how(a)
        try:
            write(a)
        except ValueError as error:
            return a, str(error), a.flags.writeable, a + 1
        return a, "", a.flags.writeable, a + 1

    jitted = ufuse.jit(f)
    for _ in range(3):
        seen, expected = jitted(np.arange(6.0)), f(np.arange(6.0))
        same(seen, expected)
        assert seen[0].flags.writeable == expected[0].flags.writeable


@pytest.mark.parametrize("write", WRITES)
def test_no_write_after_the_function_itself(write: Any) -> None:
    def f(x: Any) -> Any:
        a = x * 2
        a.flags.writeable = False
        try:
            write(a)
        except ValueError as error:
            return a, str(error)
        return a, ""

    jitted = ufuse.jit(f)
    for _ in range(3):
        seen, expected = jitted(np.arange(6.0)), f(np.arange(6.0))
        same(seen, expected)
        assert not seen[0].flags.writeable
    assert jitted.explain(np.arange(6.0)).mode == "plain"


def made_here(x: Any, write: Callable[..., Any]) -> Any:
    a, b = np.broadcast_arrays(x, np.ones((2, 6)))
    write(a)
    return a + b, a[1:], x


def given_and_written(a: Any, write: Callable[..., Any]) -> Any:
    total = a.sum()
    write(a)
    write(a)  # NumPy warns once
    return total, a * 2, a[:, 1:]


def given_and_read(a: Any, write: Callable[..., Any]) -> Any:
    return a * 2, a[1:], a.T


def in_a_loop(a: Any, write: Callable[..., Any]) -> Any:
    for i in range(len(a)):
        a[i] = a[i, 0] + i
    return a, a[1:]


# Each result is written to as well, to see whether NumPy's warning is still to come.
@pytest.mark.parametrize("write", [WRITES[k] for k in (0, 1, 3, 4, 7, 9, 11)])
@pytest.mark.parametrize("function", [made_here, given_and_written, given_and_read, in_a_loop])
def test_writes_to_broadcast_arrays_warn(function: Callable[..., Any], write: Any) -> None:
    def called(f: Callable[..., Any]) -> Any:
        x = np.arange(6.0)
        if function is not made_here:
            x = np.broadcast_arrays(x, np.ones((2, 6)))[0]
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            results = f(x, write)
            before = len(seen)
            for result in results:
                if isinstance(result, np.ndarray):
                    result[...] = 1.0
        return results, before, [str(each.message) for each in seen]

    jitted = ufuse.jit(function)
    for _ in range(4):
        same(called(jitted), called(function))
