"""Does every function of NumPy give its own answer inside a jitted function?"""

import numpy as np
import pytest
from functions import cases
from same import check
from texts import function_of

CASES = list(cases())


@pytest.mark.parametrize(
    ("function", "arguments"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_function(function, arguments):
    check(function, *arguments)


def test_random_generators():
    """They look into memory by themselves, so they get real arrays."""

    def module(x):
        np.random.seed(3)
        y = x * 2
        np.random.shuffle(y)
        z = y + np.random.permutation(x) + np.random.normal(y)
        np.random.shuffle(x)
        return y, z, np.random.choice(y[0], 3)

    def generator(x, out):
        rng = np.random.default_rng(3)
        y = x * 2
        rng.shuffle(y)
        rng.standard_normal(out=out)
        rng.shuffle(x, axis=1)
        return y, out + 1, rng.permuted(y), rng.choice(y, 2), rng.normal(y)

    x = np.random.default_rng(0).normal(size=(6, 4))
    check(module, x)
    check(generator, x, np.zeros(5))


@pytest.mark.skipif(np.__version__ < "2", reason="NumPy 1 warns, and goes on")
@pytest.mark.parametrize("name", ["stack", "vstack", "hstack", "dstack", "column_stack"])
def test_what_is_no_sequence_is_not_stacked(name):
    stack = getattr(np, name)
    x = np.arange(3.0)
    check(lambda x: stack({"a": x, "b": x + 1}.values()), x)
    check(lambda x: stack(iter([x, x + 1])), x)
    check(lambda x: stack({x.sum(), x[0]}), x)
    check(lambda x: stack(), x)
    check(lambda x: stack([x, x + 1], bad=3), x)
    check(lambda x: stack(np.outer(x, x)), x)


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: np.result_type(x, np.inexact),
        lambda x: np.promote_types("a5", "U3"),
        lambda x: np.can_cast("a5", "U3"),
        lambda x: np.result_type(x, "nonsense"),
        lambda x: np.result_type(x, np.zeros(2, "f4"), 3),
        lambda x: np.promote_types(x.dtype, int),
        lambda x: np.can_cast(x, "a5"),
        lambda x: np.can_cast(x * 2, np.float16),
        lambda x: np.can_cast(x, to="f4", casting="same_kind"),
        lambda x: np.can_cast(x, "f4", "nonsense"),
        lambda x: np.can_cast(from_=np.floating, to=x),
        lambda x: np.result_type(x[0], np.float32, "int8"),
        lambda x: [np.min_scalar_type(n) for n in x.tolist()],
        lambda x: np.zeros(3, np.inexact) + np.eye(3, dtype=np.floating),
        lambda x: np.asarray(x, np.floating),
        lambda x: np.full(3, 1, dtype=np.signedinteger),
        lambda x: np.arange(3, dtype=np.inexact),
        lambda x: np.array(x * 2, dtype="a5"),
        lambda x: np.ones(2, dtype=x),
        lambda x: (np.ones(2, dtype=">f4"), np.ones(2, dtype="f4,i2"), np.ones(2, dtype="=i8")),
    ],
)
def test_questions_about_dtypes(ask):
    """NumPy warns of some names and classes, at the line that asks."""

    def function(x):
        return x * 2, ask(x)

    check(function, np.ones(3, "i2"))


@pytest.mark.parametrize(
    "text",
    [
        *("eye(5)", "eye(3, 5, 1)", "eye(4, 2, -2, 'i2')", "eye(3, k=7, dtype=bool)", "eye(0, 3)"),
        *("eye(1, 4)", "eye(4, 1)", "eye(3, order='F')", "eye(3, dtype='S2')", "eye(n, n + 1)"),
        *("eye(-1)", "eye(2.0)", "eye()", "eye(3, like=x)", "eye(2, dtype=None)", "eye(True)"),
        *("identity(4)", "identity(n, complex)", "identity(-2)", "identity(3, dtype='e')"),
        *("tri(4)", "tri(3, 5, 2, 'u1')", "tri(5, 3, k=-2)", "tri(0)", "tri(2, dtype=object)"),
        *("triu(np.outer(x, x))", "tril(np.outer(x, x), -1)", "triu(np.ones((2, 3, 4)) * x[0], 1)"),
        *(
            "diag(x)",
            "diag(x, 2)",
            "diag(x * 2, -1)",
            "diag(x[:0])",
            "diag(x[1], 0)",
            "diag(x[::-2])",
        ),
        *("diagonal(np.outer(x, x))", "diagonal(np.outer(x, x[1:]), -1)", "diag(np.outer(x, x).T)"),
        *("diagonal(np.outer(x, x), 0, 1, 0)", "diagonal(np.outer(x, x), 3)", "diagonal(x)"),
        *(
            "diagonal(np.ones((2, 3, 3)) * x[1])",
            "diag(np.outer(x, x)[::-1], n)",
            "trace(np.eye(n))",
        ),
        *(
            "kron(x, np.outer(x, x[:2]))",
            "cov(np.outer(x, x) + np.eye(4))",
            "meshgrid(x, x[1:])[1]",
        ),
        *(
            "broadcast_to(np.float32(3), (2, n))",
            "zeros(np.array([2, n]))",
            "sum(x, axis=np.array([0]))",
        ),
        *(
            "reshape(x * 2, np.array([2, 2]))",
            "expand_dims(x, np.array([0]))",
            "reshape(x, np.ones(2))",
        ),
        *("linalg.svd(np.outer(x, x) + np.eye(4))[1]", "linalg.eigh(np.eye(n) * x[1])[0]"),
        *("diag(np.outer(x, x), 1)", "diag(x, 1.0)", "diag([x[0], x[1]])", "diag(x > 0.5, k=n)"),
    ],
)
def test_made_by_places(text):
    function = function_of(f"def f(x, n): return np.{text}, np.{text} * 2 + x[0]", {"np": np})
    for n in (2, 3):
        check(function, np.linspace(0.0, 1.5, 4), n)


def test_diagonals_are_views():
    def function(A):
        d, e = np.diagonal(A), np.diag(A, 1)
        A[1] = 7
        A += 1
        flags = [v.flags[name] for v in (d, e) for name in ("WRITEABLE", "OWNDATA", "ALIGNED")]
        return d, e * 2, d.base is A, flags, A.diagonal() + d

    check(function, np.arange(12.0).reshape(3, 4))
    check(lambda A: np.diagonal(A).__setitem__(0, 1), np.arange(12.0).reshape(3, 4))
    check(lambda A: (np.fill_diagonal(A, 3), np.diag(A) * 2), np.arange(12.0).reshape(3, 4))
