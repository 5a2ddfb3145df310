"""Values carried along an axis: are cumsum, cumprod and accumulate NumPy's to the bit?"""

import warnings

import numpy as np
import pytest
from arrays import DTYPES, LAYOUTS, array
from same import check, check_all
from texts import function_of

BINARY = sorted(
    {
        u.__name__: u
        for u in vars(np).values()
        if isinstance(u, np.ufunc) and u.nin == 2 and u.nout == 1 and u.signature is None
    }.values(),
    key=lambda u: u.__name__,
)


def small(ufunc, x):
    """What does not grow without end, and is no negative power or count."""
    if ufunc.__name__ in ("power", "left_shift", "right_shift", "float_power", "ldexp"):
        with np.errstate(all="ignore"):
            return np.abs(x) % x.dtype.type(3) if x.dtype.kind in "iu" else x
    return x


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda u: u.__name__)
def test_every_dtype(ufunc):
    for dtype in DTYPES:
        x = small(ufunc, array(dtype, shape=(5, 3, 4)))
        check_all(
            lambda x: (
                ufunc.accumulate(x),
                ufunc.accumulate(x, 1),
                ufunc.accumulate(x, axis=-1),
                ufunc.accumulate(x[0, 0]),
                ufunc.accumulate(x[:2, 0, 0]),
            ),
            [(x,)],
            _text=False,
        )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout(layout):
    def function(x):
        return x.cumsum(), x.cumprod(), np.add.accumulate(x), np.maximum.accumulate(x, -1)

    for dtype in "dflbeD?":
        x = array(dtype, layout, shape=(7, 9))
        with warnings.catch_warnings():
            check_all(function, [(x,)])
        check_all(lambda x: np.hypot.accumulate(x, 0), [(x,)], _text=False)


CALLS = """
x.cumsum(); x.cumsum(0); x.cumsum(axis=1); x.cumsum(-1); x.cumsum(None); x.cumsum(2); x.cumsum(dtype='f')
x.cumsum(0, 'i8'); x.cumsum(1, bool); x.cumprod(); x.cumprod(1); np.cumsum(x); np.cumprod(x, 0); x[0, 0].cumsum()
np.cumsum(x, 1, 'd'); np.nancumsum(x); np.nancumsum(x, 1); np.nancumprod(x, axis=0); x[:0].cumsum(0); x[:0].cumsum()
np.add.accumulate(x); np.add.accumulate(x, 1); np.add.accumulate(x[0]); np.add.accumulate(x, None); x[0].cumsum()
np.add.accumulate(x[0], None); np.add.accumulate(x, (0,)); np.add.accumulate(x[0, 0]); np.add.accumulate(x, 5)
np.add.accumulate(x, dtype='d'); np.add.accumulate(x, 0, 'f'); np.subtract.accumulate(x); np.less.accumulate(x)
np.logical_and.accumulate(x); np.logical_or.accumulate(x, 1); np.logical_xor.accumulate(x, dtype=bool)
np.maximum.accumulate(x); np.minimum.accumulate(x, 1); np.fmax.accumulate(x); np.fmin.accumulate(x, 1)
np.cumsum(x * 2 + 1, 0) * 3; np.cumsum(np.cumsum(x, 0), 1); np.cumsum(x, 0)[-1]; np.cumsum(x[::-1])[::-1]
np.diff(np.cumsum(x)); x.cumsum(0) - x.cumsum(0).mean(0); (x - x.mean()).cumsum().max(); x.T.cumsum(0)
np.cumsum(x, out=np.zeros(42)); np.cumsum(x, 0, out=x); x.cumsum(1, None, x); np.cumsum(x[0], out=x[1])
np.add.accumulate(x, 0, None, x); np.cumsum(x, 0, out=np.zeros((6, 7), 'f')); np.cumsum(x, out=x)
np.cumsum(x, 0, out=x.T.copy().T); np.power.accumulate(np.abs(x) % 2); np.arctan2.accumulate(x, 1)
np.sqrt(np.cumsum(np.abs(x))); np.cumsum(x > 0); np.cumsum(x > 0, 0, dtype='b'); np.cumsum([x[0, 0], x[0, 1]])
np.cumulative_sum(x[0]) if hasattr(np, 'cumulative_sum') else 0; np.trapz(x) if hasattr(np, 'trapz') else 0
np.ufunc.accumulate(np.add, x); np.add.accumulate(x, axis=0.5); x.cumsum(True); x.cumsum(axis=[0])
np.cumsum(x, 0)[::2, 1:3] * 2; np.add.accumulate(x, 0)[x.argmax(0), np.arange(7)]
"""
CALLS = [text.strip() for line in CALLS.split("\n") for text in line.split(";") if text.strip()]


@pytest.mark.parametrize("text", CALLS)
def test_call(text):
    function = function_of(f"def function(x):\n    return {text}, x * 2\n", {"np": np})
    for dtype in "dfli?D":
        check(function, array(dtype, shape=(6, 7)))
    check(function_of(f"def function(x):\n    x = x * 2\n    return {text}\n", {"np": np}),
          array("d", "transposed"))  # fmt: skip


def test_warnings():
    def function(x, y):
        a = np.cumsum(x)
        b = np.multiply.accumulate(y, 0)
        return a, b, (x * 2).cumprod()

    big = np.array([1e308, 1e308, -1e308, np.inf, -np.inf])
    check(function, big, np.array([[1e200, 1e300], [1e200, 0]]))
    check(function, big[:1], np.ones((2, 2)))
    check(lambda x: np.cumsum(x, dtype="f"), np.array([1e38, 3e38, 1e300]))
    check(lambda x: np.hypot.accumulate(x), np.array([1e308, 1e308, 1e308]))


def test_long_lines():
    def function(x):
        y = np.cumsum(x * 0.5)
        return y, np.maximum.accumulate(y) - y, np.cumsum(x.reshape(100, -1), 0)

    check(function, np.random.default_rng(0).normal(size=200_000))
