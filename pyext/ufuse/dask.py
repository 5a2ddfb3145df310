"""How does a function run over Dask arrays, block by block and with NumPy's own bits?

``map`` traces the function once without values. The graph says which axes of the arguments and
results belong together, and of which of them an operation needs all elements; the others are cut.
The graph of each shape of block is then compared with that of the whole: where NumPy would add the
elements of a block in another order than those of the whole, the axis is not cut.
"""

from __future__ import annotations

import itertools
import math
import operator
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import dask
import dask.array as da
import numpy as np

from . import _core
from .function import Function
from .jit import jit
from .tracing.description import Argument, Description, Refused, describe

__all__ = ["map"]

# The chunks along a dimension.
_Chunks = tuple[int, ...]
_Value = TypeVar("_Value")


def map(function: Callable[..., Any], *arrays: Any, **keywords: Any) -> Any:
    """Run a function over Dask arrays, as one task for each block.

    The results have the bits of ``function(*(np.asarray(x) for x in arrays), **keywords)``.
    All operations of the function are fused in each block. Chunks are kept along the axes that can
    be cut; along all others the arrays are rechunked to one chunk.

    Parameters
    ----------
    function : callable
        A plain or jitted NumPy function of arrays, which returns an array, or a tuple or list of
        arrays. It is traced without values, so it may not look at any (``if x[0] > 0``).
    *arrays : dask.array.Array or numpy.ndarray
        Of known shapes.
    **keywords
        Further arguments, equal for all blocks.

    Returns
    -------
    dask.array.Array, or a tuple or list of them
        What the function returns, to be computed.

    Raises
    ------
    TypeError
        When a positional argument is no array of NumPy's or Dask's, or a keyword is one of Dask's.
    ValueError
        When the shape of an array is not known; when the function cannot be traced without values;
        when no axis can be cut, because an operation needs all elements along it.

    Notes
    -----
    A block that a thread of a pool computes (Dask's threads, ``distributed``'s workers) uses that
    one thread; with ``scheduler="synchronous"`` its loops use all of them.

    Examples
    --------
    >>> import dask.array as da, numpy as np, ufuse.dask
    >>> def standardized(x):
    ...     return (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)
    >>> x = da.from_array(np.random.default_rng(0).random((400, 50)), chunks=(100, 25))
    >>> found = ufuse.dask.map(standardized, x)
    >>> found.chunks
    ((100, 100, 100, 100), (50,))
    >>> bool((found.compute() == standardized(x.compute())).all())
    True
    """
    jitted = function if isinstance(function, Function) else jit(function)
    given = [_dask_array(x) for x in arrays]
    for name, value in keywords.items():
        if isinstance(value, da.Array):
            raise TypeError(f"{name}: Dask arrays are cut, and go by position")
    try:
        cut = _Cut(jitted, given, keywords)
    except Refused as refusal:
        raise ValueError(f"{_name(jitted)} cannot run block by block: {refusal}") from None
    return cut.mapped()


def _name(function: Function[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function.__wrapped__).__name__))


def _dask_array(x: Any) -> da.Array:
    if isinstance(x, np.ndarray):
        return da.from_array(x, chunks=-1)
    if not isinstance(x, da.Array):
        raise TypeError(
            f"ufuse.dask.map takes arrays of Dask's or NumPy's, not {type(x).__name__!r}; "
            "pass other arguments by keyword"
        )
    if type(x._meta) is not np.ndarray:
        raise TypeError(f"the blocks must be NumPy arrays, not {type(x._meta).__name__!r}")
    if any(np.isnan(extent) for extent in x.shape):
        raise ValueError("an array has an unknown shape; x.compute_chunk_sizes() finds it")
    return x


class _Cut:
    """How the arguments of a call are cut into blocks."""

    def __init__(
        self, function: Function[..., Any], arrays: Sequence[da.Array], keywords: dict[str, Any]
    ) -> None:
        self._function, self._keywords = function, keywords
        self._arrays = list(arrays)
        self._known: dict[tuple[Argument, ...], Description] = {}
        self._whole = self._described([Argument(x.dtype, x.shape) for x in arrays])
        self._axes = self._whole.graph.arguments
        # Elements along each dimension.
        self._extents = self._by_dimension(x.shape for x in arrays)
        # Why a dimension is not cut.
        self._reasons = {
            dimension: f"{name} needs all elements along {{}} ({file}, line {line})"
            for dimension, (name, file, line) in self._whole.graph.whole.items()
        }
        self._choose()

    def _by_dimension(self, rows: Iterable[Iterable[_Value]]) -> dict[int, _Value]:
        """What there is for each dimension, of what there is for the axes of each argument."""
        pairs = (zip(axes, row, strict=True) for axes, row in zip(self._axes, rows, strict=True))
        return dict(itertools.chain(*pairs))

    def _described(self, arguments: Iterable[Argument]) -> Description:
        key = tuple(arguments)
        if key not in self._known:
            self._known[key] = describe(self._function, key, self._keywords)
        return self._known[key]

    def _is_same(self, extents: dict[int, int]) -> bool:
        """Whether blocks of so many elements along some dimensions get the bits of the whole."""
        all_extents = {**self._extents, **extents}
        shapes = [tuple(all_extents[dimension] for dimension in axes) for axes in self._axes]
        dtypes = [x.dtype for x in self._arrays]
        try:
            block = self._described(itertools.starmap(Argument, zip(dtypes, shapes, strict=True)))
        except Exception:  # the function refuses blocks, or raises for them
            return False
        return block.graph.is_block_of(self._whole.graph, extents)

    def _choose(self) -> None:
        """Find the dimensions to cut, and rechunk the arrays."""
        results = [set(axes) for _, _, axes in self._whole.graph.results]
        of_each = set(self._extents).intersection(*results)
        self._dimensions = sorted(of_each - self._reasons.keys())
        for dimension in list(self._dimensions):
            extent = self._extents[dimension]
            if extent > 1 and not self._is_same({dimension: (extent + 1) // 2}):
                self._leave_whole(dimension)
        self._rechunk()
        while not self._check():
            self._rechunk()
        if not self._dimensions:
            raise Refused("; ".join(self._told()) or "no axis of an argument is one of each result")

    def _leave_whole(self, dimension: int) -> None:
        self._dimensions.remove(dimension)
        self._reasons[dimension] = "something else is computed for fewer elements along {}"

    def _told(self) -> Iterable[str]:
        for number, axes in enumerate(self._axes):
            for axis, dimension in enumerate(axes):
                if dimension in self._reasons:
                    place = f"axis {axis} of argument {number + 1}"
                    yield self._reasons[dimension].format(place)

    def _labels(self, axes: Iterable[int], of: str) -> tuple[str, ...]:
        """Names of axes, as Dask's ``blockwise`` takes them: equal ones are cut together."""
        return tuple(
            str(dimension) if dimension in self._dimensions else f"{of}, axis {axis}"
            for axis, dimension in enumerate(axes)
        )

    def _pairs(self) -> list[Any]:
        """The arguments, each with the names of its axes."""
        labels = [self._labels(axes, f"argument {k}") for k, axes in enumerate(self._axes)]
        return list(itertools.chain(*zip(self._arrays, labels, strict=True)))

    def _rechunk(self) -> None:
        """Make one chunk along the axes that stay whole; chunks of one dimension are equal."""
        for number, x in enumerate(self._arrays):
            whole = [a for a, d in enumerate(self._axes[number]) if d not in self._dimensions]
            if all(len(x.chunks[axis]) == 1 for axis in whole):
                continue
            # Where they would grow too large, they are made smaller along the other axes.
            most = dask.utils.parse_bytes(dask.config.get("array.chunk-size"))
            largest = [x.shape[a] if a in whole else max(x.chunks[a]) for a in range(x.ndim)]
            others = "auto" if math.prod(largest) * x.itemsize > most else None
            chunks = {axis: -1 if axis in whole else others for axis in range(x.ndim)}
            self._arrays[number] = x.rechunk(chunks)
        self._arrays = list(da.core.unify_chunks(*self._pairs())[1])

    def _check(self) -> bool:
        """Whether all blocks get the bits of the whole; else the next cut is made different."""
        all_chunks = self._by_dimension(x.chunks for x in self._arrays)
        for dimension in self._dimensions:
            chunks = all_chunks[dimension]
            bad = {n for n in set(chunks) if not self._is_same({dimension: n})}
            if bad:
                merged = _merged(chunks, bad)
                if len(merged) == 1:
                    self._leave_whole(dimension)
                for number, axes in enumerate(self._axes):
                    if dimension in axes:
                        place = {axes.index(dimension): merged}
                        self._arrays[number] = self._arrays[number].rechunk(place)
                return False
        sizes = [sorted(set(all_chunks[dimension])) for dimension in self._dimensions]
        for extents in itertools.product(*sizes):
            if not self._is_same(dict(zip(self._dimensions, extents, strict=True))):
                self._leave_whole(self._dimensions[-1])
                return False
        return True

    def mapped(self) -> Any:
        """The results."""
        block = _Block(self._function, self._keywords, self._whole.changed)
        rows = self._whole.graph.results
        pairs = self._pairs()
        if self._whole.kind is None:
            return self._blockwise(block, rows[0], pairs)
        # Blocks of several results are made once, as tuples, from which each result takes its own.
        labels = self._labels(self._dimensions, "")
        meta = np.empty((0,) * len(labels), object)
        made = da.blockwise(
            block, labels, *pairs, dtype=object, meta=meta, concatenate=False, align_arrays=False
        )
        results = [
            self._blockwise(operator.itemgetter(k), row, [made, labels])
            for k, row in enumerate(rows)
        ]
        return self._whole.kind(results)

    def _blockwise(self, block: Any, row: Any, pairs: list[Any]) -> da.Array:
        dtype, shape, axes = row
        labels = self._labels(axes, "result")
        extents = zip(labels, shape, axes, strict=True)
        new = {label: n for label, n, dimension in extents if dimension not in self._dimensions}
        return da.blockwise(
            block,
            labels,
            *pairs,
            new_axes=new,
            dtype=dtype,
            meta=np.empty((0,) * len(shape), dtype),
            concatenate=False,
            align_arrays=False,
        )


def _merged(chunks: _Chunks, bad: set[int]) -> _Chunks:
    """The chunks, each bad one together with a neighbour."""
    made: list[int] = []
    for n in chunks:
        if made and made[-1] in bad:
            made[-1] += n
        else:
            made.append(n)
    if len(made) > 1 and made[-1] in bad:
        made[-2:] = [sum(made[-2:])]
    return tuple(made)


class _Block:
    """Computes one block of the results; is sent to other processes."""

    def __init__(
        self, function: Function[..., Any], keywords: dict[str, Any], changes: bool
    ) -> None:
        self._function, self._keywords, self._changes = function, keywords, changes

    @property
    def __name__(self) -> str:  # Dask names its tasks so
        return _name(self._function)

    def __call__(self, *blocks: Any) -> Any:
        given = [_in_c_order(block, self._changes) for block in blocks]
        if threading.current_thread() is threading.main_thread():
            return self._function(*given, **self._keywords)
        before = _core.limit_threads(1)  # the pool's other threads have blocks of their own
        try:
            return self._function(*given, **self._keywords)
        finally:
            _core.limit_threads(before)


def _in_c_order(block: Any, copied: bool) -> Any:
    """An array as the call was described: a block lies in lists of one where it is whole."""
    while isinstance(block, list):
        (block,) = block
    return np.array(block, order="C", copy=True) if copied else np.require(block, None, ["C", "A"])
