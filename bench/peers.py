"""Who is measured, and in which form does each run a case?

Each row of PEERS turns a case into a `Version`: a callable, with the conversion of arguments and
results that is not part of the measured time. A peer that is not installed, or has no natural form
of a case, raises `Cannot` with the reason, which the report shows. Every peer gets its best
ordinary form: variants_numba.py, variants_jax.py and variants_numexpr.py hold what one would write
by hand.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from bench import reference
from bench.cases import Case


class Cannot(Exception):
    """This peer does not run this case; the text says why."""


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Version:
    """One way to run a case.

    Attributes
    ----------
    call : what is timed
    to_native, to_numpy : conversion of one argument and of the result, not timed
    functional : returns the array that the case writes to, instead of writing
    checked : whether the result is meant to be the case's result
    """

    call: Callable[..., Any]
    to_native: Callable[[Any], Any] = _same
    to_numpy: Callable[[Any], Any] = _same
    functional: bool = False
    checked: bool = True


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Cannot(f"not installed ({error})") from error


def _variant(peer: str, case: Case) -> Callable[..., Any]:
    _module(peer)
    variants = importlib.import_module(f"bench.variants_{peer}").VARIANTS
    if case.name not in variants:
        raise Cannot("no natural form")
    function: Callable[..., Any] = variants[case.name]
    return function


def _numpy(case: Case) -> Version:
    return Version(case.function)


def _ufuse(case: Case) -> Version:
    return Version(_module("ufuse").jit(case.function))


def _numba(case: Case) -> Version:
    return Version(_variant("numba", case))


def _numexpr(case: Case) -> Version:
    return Version(_variant("numexpr", case))


def _jax(case: Case) -> Version:
    jax = _module("jax")
    # Before the first array exists: otherwise JAX computes in float32.
    jax.config.update("jax_enable_x64", True)
    function = jax.jit(_variant("jax", case))
    return Version(
        lambda *arguments: jax.block_until_ready(function(*arguments)),
        to_native=jax.numpy.asarray,
        to_numpy=lambda result: jax.tree_util.tree_map(np.asarray, result),
        functional=case.writes is not None,
    )


def _torch(case: Case) -> Version:
    # torch.compile takes NumPy functions as they are and translates their calls.
    return Version(_module("torch").compile(case.function))


def _reference(case: Case) -> Version:
    if case.name != "kmeans":
        raise Cannot("only k-means has a hand-written reference loop")
    return Version(lambda X, means: reference.same_traffic(X), checked=False)


PEERS: dict[str, Callable[[Case], Version]] = {
    "numpy": _numpy,
    "ufuse": _ufuse,
    "reference": _reference,
    "numba": _numba,
    "jax": _jax,
    "torch": _torch,
    "numexpr": _numexpr,
}
