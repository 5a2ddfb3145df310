"""What would one write in JAX for each case?

The same functions with `jax.numpy` in the place of NumPy, except where JAX asks for another style:
no writes to arguments, no results whose size depends on values, its own random numbers. The
functions of cases.py are bound to another `np` rather than written again. Imported only where JAX
is installed.
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any

import jax.numpy as jnp

from bench import cases


def with_jax_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same code, with the global name ``np`` standing for ``jax.numpy``."""
    assert isinstance(function, FunctionType)
    return FunctionType(function.__code__, {**function.__globals__, "np": jnp}, function.__name__)


def stencil(u, out):
    mean = 0.2 * (u[1:-1, 1:-1] + u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    return out.at[1:-1, 1:-1].set(mean)


VARIANTS = {
    "stencil": stencil,
    **{
        function.__name__: with_jax_numpy(function)
        for function in (
            cases.kmeans,
            cases.softmax,
            cases.zscore,
            cases.pairwise,
            cases.grey,
            cases.chain,
            cases.sort,
            cases.svd,
            cases.einsum,
        )
    },
}
