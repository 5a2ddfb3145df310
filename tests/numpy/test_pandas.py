"""Does pandas give its own answers with ``engine=ufuse.jit``?"""

import functools
import warnings

import numpy as np
import pytest
import ufuse

BACKENDS = ["compiled"]

pd = pytest.importorskip("pandas", minversion="3")

FLOATS = pd.DataFrame(
    np.random.default_rng(0).normal(size=(7, 3)), columns=list("abc"), index=list("tuvwxyz")
)
FLOATS.iloc[2, 1] = np.nan
INTS = pd.DataFrame(
    {"i": range(4), "j": range(4, 8)}, index=pd.MultiIndex.from_product([[1, 2], ["a", "b"]])
)
MIXED = pd.DataFrame({"i": range(4), "f": [1.5, 2, np.nan, 4], "s": list("wxyz")})
FRAMES = {"floats": FLOATS, "ints": INTS, "mixed": MIXED}


def centred(x):
    return (x - x.mean()) / x.std()


def total(x, k=1, *, plus=0):
    return np.sum(x * k) + plus


def pair(x):
    return np.array([x.min(), x.max()])


def raises(x):
    raise ValueError("no")


def missing(x):
    return x["zz"]


def text(x):
    return "t" * len(x)


def series(x):
    return pd.Series({"low": x.min(), "high": x.max()})


def root(x):
    return np.sqrt(x)


FUNCTIONS = [
    centred,
    total,
    functools.partial(total, k=3),
    pair,
    raises,
    missing,
    text,
    series,
    root,
    lambda x: (1, 2),
    lambda x: x,
    np.sum,
    len,
]


def outcome(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call()
        except Exception as error:
            result = (type(error), str(error))
    return result, [(each.category, str(each.message)) for each in caught]


def same(ours, theirs):
    assert ours[1] == theirs[1]
    ours, theirs = ours[0], theirs[0]
    assert type(ours) is type(theirs), f"{ours} is not {theirs}"
    if isinstance(theirs, pd.DataFrame):
        pd.testing.assert_frame_equal(ours, theirs, check_exact=True)
        assert ours.map(type).equals(theirs.map(type))
    elif isinstance(theirs, pd.Series):
        pd.testing.assert_series_equal(ours, theirs, check_exact=True)
        assert ours.map(type).equals(theirs.map(type))
    else:
        assert ours == theirs


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("axis", [0, 1, "index", "columns"])
@pytest.mark.parametrize("frame", FRAMES)
def test_apply(frame, axis, raw):
    for f in FUNCTIONS:
        theirs = outcome(lambda: FRAMES[frame].apply(f, axis=axis, raw=raw))
        for engine in (ufuse.jit, ufuse.jit, ufuse.jit(debug=True)):
            same(outcome(lambda: FRAMES[frame].apply(f, axis=axis, raw=raw, engine=engine)), theirs)


def test_what_is_no_function():
    for f in (np.sqrt, "sum", "cumsum"):
        for raw in (False, True):
            same(
                outcome(lambda: FLOATS.apply(f, raw=raw, engine=ufuse.jit)),
                outcome(lambda: FLOATS.apply(f, raw=raw)),
            )


def test_arguments():
    for raw in (False, True):
        same(
            outcome(lambda: FLOATS.apply(total, raw=raw, args=(2,), plus=3, engine=ufuse.jit)),
            outcome(lambda: FLOATS.apply(total, raw=raw, args=(2,), plus=3)),
        )


def test_functions_stay_jitted():
    big = pd.DataFrame(np.ones((1000, 20)))
    seen = []

    def decorator(function):
        seen.append(ufuse.jit(function))
        return seen[-1]

    decorator.__pandas_udf__ = ufuse.jit.__pandas_udf__
    for _ in range(3):
        big.apply(total, raw=True, engine=decorator)
    assert len(seen) == 1
    assert seen[0].explain(big.to_numpy()[:, 0]).mode == "replayed"
    jitted = ufuse.jit(total, numerics="fast")
    same(
        outcome(lambda: big.apply(jitted, raw=True, engine=ufuse.jit)),
        outcome(lambda: big.apply(total, raw=True)),
    )


@pytest.mark.parametrize("ignored", [None, "ignore"])
@pytest.mark.parametrize(
    "data",
    [
        FLOATS["b"],
        MIXED["s"],
        INTS["i"],
        FLOATS["b"].astype("category"),
        pd.Series([1, None, 3], dtype="Int64"),
        pd.Series(pd.date_range("2020", periods=3)),
        pd.Series(np.linspace(0, 9, 100)),
    ],
    ids=str,
)
def test_map(data, ignored):
    for f in (lambda x: x, root, lambda x: x * 2, str, raises, "up to {}".format):
        same(
            outcome(lambda: data.map(f, na_action=ignored, engine=ufuse.jit)),
            outcome(lambda: data.map(f, na_action=ignored)),
        )
    same(
        outcome(lambda: INTS["j"].map(total, k=4, engine=ufuse.jit)),
        outcome(lambda: INTS["j"].map(total, k=4)),
    )


def test_elements_of_arrays():
    engine = ufuse.jit.__pandas_udf__
    made = engine.map(np.arange(6.0).reshape(2, 3), root, (), {}, ufuse.jit, skip_na=False)
    assert (made == np.sqrt(np.arange(6.0).reshape(2, 3))).all()
    made = engine.map(FLOATS, total, (2,), {"plus": 1}, ufuse.jit, skip_na=True)
    pd.testing.assert_frame_equal(made, FLOATS * 2 + 1, check_exact=True)
