"""What type checkers know of jitted functions: read by test_types.py, never run.

A line that has to be an error carries the code of mypy's message; where such a remark stands at a
line without an error, mypy complains of that.
"""

from typing import Any, assert_type

import numpy as np
import ufuse
import ufuse.numpy as unp
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@ufuse.jit
def scaled(x: Floats, factor: float = 2.0) -> Floats:
    return x * factor


@ufuse.jit(numerics="fast", compile="wait")
def shifted(x: Floats, *, by: int) -> Floats:
    return x + by


@ufuse.jit
async def later(x: Floats) -> float:
    return float(x.sum())


class Model:
    def __init__(self, weights: Floats) -> None:
        self.weights = weights

    @ufuse.jit
    def apply(self, x: Floats) -> Floats:
        return x @ self.weights

    @ufuse.jit
    @staticmethod
    def zeros(n: int) -> Floats:
        return np.zeros(n)

    @property
    @ufuse.jit
    def norm(self) -> float:
        return float(np.linalg.norm(self.weights))


X: Floats = np.ones((3, 3))
M = Model(X)

# Results, and what is wrong with arguments.
assert_type(scaled(X), Floats)
assert_type(scaled(X, factor=3.0), Floats)
assert_type(shifted(X, by=1), Floats)
assert_type(M.apply(X), Floats)
assert_type(Model.apply(M, X), Floats)
assert_type(Model.zeros(3), Floats)
assert_type(M.norm, float)
assert_type(ufuse.jit(lambda: 1.0)(), float)
scaled("x")  # type: ignore[arg-type]
scaled(X, fctor=3.0)  # type: ignore[call-arg]
shifted(X)  # type: ignore[call-arg]
M.apply()  # type: ignore[call-arg]
ufuse.stance("never")  # type: ignore[arg-type]
ufuse.jit(numerics="fats")  # type: ignore[call-overload]
ufuse.jit(scaled, compile="never")  # type: ignore[call-overload]
ufuse.jit(3)  # type: ignore[call-overload]


async def waits() -> float:
    return await later(X)


# A jitted function in annotations.
table: dict[str, ufuse.Function[[Floats, float], Floats]] = {}
table["scaled"] = ufuse.jit(lambda x, factor: x * factor)

# What jitted functions have.
assert_type(scaled.source(X), str)
assert_type(scaled.explain(X).mode, str)
assert_type(scaled.stats().traced, int)
scaled.warmup(X, 2.0)
scaled.explain("x")  # type: ignore[arg-type]
assert_type(scaled.__wrapped__(X), Floats)

with ufuse.profile("trace.json") as events:
    assert_type(events[0]["name"], Any)
assert_type(ufuse.config["stance"].value, str)
with ufuse.disabled(), ufuse.stance("fail_on_fallback"):
    assert_type(scaled(X), Floats)

# The drop-in module is NumPy.
assert_type(unp.float64, type[np.float64])
assert_type(unp.asarray(X) + unp.pi, NDArray[np.float64])
unp.linalg.norm(unp.random.default_rng(1).normal(size=3))
unp.sine(X)  # type: ignore[attr-defined]
