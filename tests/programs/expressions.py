"""What do random programs say? Here a table of expressions by what they are.

A row, here and in ``statements``, is a text with places in braces, which ``writer`` fills:

- ``{V}`` an expression, ``{v}`` a name that the function may assign;
- ``{+V}`` a new name, known from the next line on;
- ``{V=}``, ``{v=}`` the expression, or the name, that was the last of its kind in this row;
- ``{BLOCK}`` on a line of its own: some statements; ``{RISK}``: a row of ``RISKS``.

| V | vector of n numbers | I | small int | L | list of vectors |
| M | matrix of n rows and columns | J | index that may be out of bounds | D | dict of vectors |
| S | number of NumPy's | F | float | O | object of one of the program's classes |
| K | mask of n | B | anything for ``if`` | N | function of vectors |
| T | text | G | random generator | C | class |

Rows that begin with a number are that many times as likely as others.

Left out because the README names them as limits: writes through what a call returned
(``buffer()[...] = 0``), and which object is the base of a view of an array on a buffer.
"""

import re


def table(text):
    """The rows of a text, each as often as it says; lines with ``&`` or a space before go on."""
    rows = []
    for row in re.split(r"\n(?![& ])", text.strip("\n")):
        row = row.replace("\n& ", "\n")
        times, star, rest = row.partition("* ")
        if star and times.isdigit():
            rows += [rest] * int(times)
        else:
            rows.append(row)
    return rows


EXPRESSIONS = {
    "V": table("""
3* {V} + {V}
3* {V} - {V}
3* {V} * {V}
{V} / ({V} + 2.5)
{V} / {V}
3* {F} * {V}
2* {V} * {F} + {V}
{S} * {V}
{V} + {I}
-{V}
{V} ** 2
{V} // 2
{V} % 3
np.maximum({V}, {V})
np.where({K}, {V}, {V})
np.where({K}, {V}, {F})
np.sqrt(np.abs({V}))
np.sqrt({V})
np.log({V})
np.sin({V})
np.exp(-np.abs({V}))
np.tanh({V})
abs({V})
np.add({V}, {V})
np.hypot({V}, {V})
{V}.copy()
{V}.clip(-1.0, 1.5)
{V} - {V}.mean()
{V} / {V}.sum()
({V} - {V=}.mean()) / {V=}.std()
{M} @ {V}
{V} @ {M}
{V}.dot({M})
{M}.sum(axis=0)
{M}.mean(axis=1)
{M}.max(axis=0)
{M}.std(axis=-1)
np.linalg.norm({M}, axis=1)
{M}[{J}]
{M}[:, {J}]
{M}.T[{J}]
np.diag({M})
{V}[::-1]
{V}[...]
{V}[:]
np.sort({V})
{V}[np.argsort({V})]
np.cumsum({V})
{V}.cumsum()
np.roll({V}, 1)
np.concatenate([{V}[:1], {V}[1:]])
np.stack([{V}, {V}]).sum(axis=0)
np.outer({V}, {V})[{J}]
{V}.astype(np.float32)
{V}.astype(float)
np.asarray({V})
np.array({V})
np.ascontiguousarray({V})
{V}.reshape(-1)
{V}.reshape(len({v}), 1)[:, 0]
{V}.ravel()
{V}.real
np.zeros_like({V})
np.full_like({V}, {F})
np.arange(len({v})) * 0.5
np.linspace(0.0, {F}, len({v}))
np.repeat({S}, len({v}))
np.interp({V}, [-1.0, 0.0, 2.0], [0.0, 1.0, {F}])
np.nan_to_num({V})
np.einsum("ij,j->i", {M}, {V})
np.add.accumulate({V})
np.maximum.accumulate({V})
{V}.cumprod()
{M}.cumsum(axis=1)[{J}]
{V}[np.abs({V}).astype(int) % len({v})]
{M}[np.arange(len({v})), {M}.argmin(axis=1)]
{V}.take(np.argsort({V}))[::-1].cumsum()
np.compress({K}, {V}).sum() + {V}
np.where({K})[0].sum() + {V}
np.bincount(np.arange(len({v})) % 2, {V}, len({v}))
np.minimum.reduce([{V}, {V}])
np.gradient({V})
np.convolve({V}, [0.25, 0.5, 0.25], mode="same")
{V}[{K}].sum() + {V}
np.take({V}, [0, -1]).mean() + {V}
np.apply_along_axis(np.sort, 0, {M})[{J}]
np.apply_along_axis(lambda e: e - e[0], 1, {M})[0]
np.vectorize(lambda e: e * 2 + 1)({V})
np.array([float(e) * 2 for e in {V}])
np.array([e + 1 for e in {V}.tolist()])
3* {N}({V})
2* {N}({V}, {F})
2* {N}({V}, scale={F})
{N}({N}({V}))
{N}(*({V}, {F}))
{N}(**dict(e={V}, scale={F}))
functools.partial({N}, scale={F})({V})
functools.reduce(np.add, [{V}, {V}, {V}])
functools.reduce(lambda e, g: e * 0.5 + g, [{V}, {V}])
2* mixed({V}, {V})
mixed({V}, {V}, part={F})
total({V}, {V}, {V})
total(*{L})
total(*{L}, scale={F})
both({V})[0]
changed({v})
returned({V})
returned({v})
deeper({V}, {I})
next(produced({V}, {I}))
[e for e in produced({V}, 2)][-1]
compose({N}, {N})({V})
watched({V})
sum([{V}, {V}])
sum(e * 2 for e in ({V}, {V}))
(lambda e: e * {F})({V})
(lambda e, *rest: e + sum(rest))({V}, {V}, {V})
list(map({N}, [{V}, {V}]))[{J}]
max([{V}, {V}], key=np.sum)
sorted([{V}, {V}], key=lambda e: float(e.sum()))[0]
[{N}(e) for e in ({V}, {V})][-1]
{name: {N}(e) for name, e in zip("ab", ({V}, {V}))}["b"]
[e for e in {L}][0]
[*{L}, {V}][{J}]
(lambda: {V})()
2* {L}[{J}]
{L}[-1]
2* {D}["u"]
{D}.get("none", {V})
{D}["w"]
3* {O}.u
2* {O}.step({V})
2* {O}({V})
{O}.k * {V}
{O}.half
2* {O} * {F}
{O} * {I}
{F} * {O}
{O}.weighted({V}, by={F})
{O}.u[...]
{C}.made({V}).u
{C}.plain({V})
getattr({O}, "u")
copy.copy({V})
copy.deepcopy({V})
copy.deepcopy({O}).u
pickle.loads(pickle.dumps({V}))
pickle.loads(pickle.dumps({O})).u
{G}.normal(size=len({v}))
{G}.permutation({V})
{G}.random(len({v})) + {V}
ndimage.gaussian_filter1d({V}, 1.0)
ndimage.uniform_filter1d({V}, 3)
signal.detrend({V})
signal.lfilter([1.0, 0.5], [1.0, -0.2], {V})
signal.windows.hann(len({v})) * {V}
linalg.solve({M} + 9.0 * np.eye(len({v})), {V})
np.linalg.solve({M} + 9.0 * np.eye(len({v})), {V})
linalg.lu({M})[2][0]
np.linalg.svd(np.isfinite({M}) * 2.0)[1]
np.linalg.eigvalsh({M})
np.fft.irfft(np.fft.rfft({V}), len({v}))
special.expit({V})
special.logsumexp({M}, axis=0)
operator.itemgetter(0)([{V}, {V}])
list(itertools.accumulate([{V}, {V}], operator.add))[-1]
list(itertools.chain([{V}], {L}))[0]
({V} if {B} else {V})
LAST * {V}[:1]
SCALE * {V}
STATE["n"] + {V}
TABLE[{J}] * {V}
TABLE.sum() + {V}
np.pad({V}, 1, mode="edge")[1:-1]
np.diff({V}, prepend=0.0)
np.select([{K}, {K}], [{V}, {V}], {F})
np.piecewise({V}, [{K}], [lambda e: e * 2, {F}])
np.choose({K}.astype(int), [{V}, {V}])
np.frombuffer({V}.tobytes(), {V=}.dtype)
np.ma.masked_where({K}, {V}).filled({F})
np.nanmean({M}, axis=0)
np.unique({V})[:1] + {V}
np.searchsorted(np.sort({V}), {V}) + {V}
np.digitize({V}, [-1.0, 0.0, 1.0]) * {F} + {V}
np.partition({V}, 1)
np.percentile({M}, 50, axis=0)
np.average({M}, axis=0, weights=np.arange(1.0, len({v}) + 1))
np.kron({V}, [0.5])
np.flip({V})
np.tile({V}, 2)[: len({v})]
np.meshgrid({V}, {V})[0][0]
np.lib.stride_tricks.sliding_window_view({V}, 2)[0].sum() + {V}
{V}.astype(float).view(np.int64) % 7
np.asarray(memoryview({v})) * {F}
np.array([float(e) for e in np.nditer({V})])
np.array([e * i[0] for i, e in np.ndenumerate({V})])
np.fromiter((e * 2 for e in {V}), float)
np.array({L})[0]
np.asarray({L})[{J}]
np.r_[{V}[:1], {V}[1:]]
np.c_[{V}, {V}][:, 0]
{M}[np.ix_([0, 1], [1, 0])].sum() + {V}
{V}.flat[:] * {F}
{V}.swapaxes(0, 0)
np.moveaxis({M}, 0, 1)[{J}]
np.squeeze({V}[None])
np.atleast_2d({V})[0]
np.array_split({V}, 2)[0].sum() + {V}
np.block([[{M}]])[0]
np.tensordot({M}, {V}, axes=1)
np.polyval([0.5, {F}], {V})
np.modf({V})[0]
np.divmod({V}, 2.0)[1]
np.frexp({V})[0]
np.rint({V} * 3)
{V}.round(1)
np.float64({S}) * {V}
np.array({S}) * {V}
np.array({F}) + {V}
np.asarray({S})[...] + {V}
np.ndarray.__add__({V}, {V})
{V}.__mul__({F})
np.ndarray.sum({M}, 0)
types.SimpleNamespace(u={V}).u
dict(zip("ab", [{V}, {V}]))["b"]
next(iter({D}.values()))
(dict({D}) | {"w": {V}})["w"]
max({L}, key=lambda e: float(e[0]))
eval("e * 2", {"e": {V}})
getattr({V}, "T")
getattr(np, "tanh")({V})
operator.add({V}, {V})
operator.methodcaller("cumsum")({V})
operator.matmul({M}, {V})
"""),
    "M": table("""
2* {M} + {M}
2* {M} * {F}
{M} - {M}.mean(axis=0)
{M} - {M}.mean(axis=1, keepdims=True)
{M} @ {M}
{M}.T
{M}[::-1]
{M}[:, ::-1].T
{M} * {V}
{V}[:, None] * {V}
np.outer({V}, {V})
np.exp(-np.abs({M}))
np.where({M} > {F}, {M}, {V})
np.eye(len({v})) + {M}
{M}.copy()
np.asfortranarray({M})
np.linalg.inv({M} + 9.0 * np.eye(len({v})))
linalg.expm({M} * 0.01)
ndimage.gaussian_filter({M}, 1.0)
np.vstack([{V}] * len({v}))
np.array([{N}(row) for row in {M}])
np.broadcast_to({V}, (len({v}), len({v})))
np.tril({M})
np.abs({V}[:, None] - {V}[None, :])
{M}.astype(np.float32)
{M}.reshape({M=}.shape)
np.cov({M})
"""),
    "S": table("""
2* {V}.sum()
{V}.mean()
{V}.max()
{V}.min()
{V}.std()
2* {V}[{J}]
{M}[{J}, {J}]
np.linalg.norm({V})
np.dot({V}, {V})
{V} @ {V}
np.float64({F})
{O}.energy
{M}.trace()
np.median({V})
{S} * {F}
{S} + {S}
np.sqrt({S})
{S} / ({S} - {S})
{V}.prod()
np.vdot({V}, {V})
np.ptp({V})
{O}[{J}]
both({V})[1]
np.count_nonzero({K})
TABLE[{J}]
{S}.conj()
{S}.reshape(())
{S}.astype(float)
abs({S})
np.array({S})[()]
type({S})({F})
max({S}, {S})
np.sum([{S}, {S}])
{V}.flat[{J}]
{V}.item(0)
next(iter({V}))
np.trace({M})
np.average({V})
np.percentile({V}, 50)
sum({V})
functools.reduce(operator.mul, {V})
"""),
    "F": table("""
4* 0.5
2* 1.5
-2.0
float({S})
{S}.item()
math.sqrt(abs({F}))
math.sin({F})
math.floor(float({S}) % 7)
1.0 / ({F} + 3.25)
{F} * {F}
{O}.k
SCALE
{V}.tolist()[0]
sum({V}.tolist())
round({F}, 2)
min({F}, 1.0)
cached({I})
{I} / 2
"""),
    "I": table("""
3* 2
2* 1
3
len({V})
{V}.shape[0]
{M}.ndim
int(np.argmax({V}))
{I} + 1
abs({I}) % 3
len({L})
len({O})
int({K}.sum())
STATE["n"]
COUNT
{V}.dtype.itemsize
"""),
    "J": table("""
4* 0
3* 1
3* -1
2* 2
{I} % 2
int({S}) % 2
int(np.argmin({V}))
-{I}
np.argmax({V})
"""),
    "K": table("""
3* {V} > {F}
{V} < {V}
{V} <= {S}
np.isfinite({V})
~({V} > 0)
({V} > 0) & ({V} < {F})
{V} != {V}
np.isclose({V}, {V})
np.arange(len({v})) % 2 == 0
"""),
    "B": table("""
3* {S} > {F}
2* {V}.sum() > 0
{K}.any()
{K}.all()
bool({K}.all())
{v} is {v}
{v} is not {v}
{V} is {V}
{O} is {O}
{O} < {F}
{I} in {O}
{N} is {N}
isinstance({v}, np.ndarray)
isinstance({S}, np.floating)
isinstance({S}, float)
type({V}) is np.ndarray
len({v}) > {I}
{I} % 2 == 0
{v}.dtype == np.float64
{V}.dtype.kind == "f"
{v}.shape == ({I},)
np.array_equal({V}, {V})
np.allclose({V}, {V})
np.shares_memory({v}, {v})
{V}.flags.c_contiguous
{V}.flags.writeable
{V}.base is None
{F} > 1.0
not {B}
{B} and {B}
{B} or {B}
hasattr({O}, "note")
"new" in {D}
{S}
{V}[{J}] < {F}
{V} in {L}
any({V} > 0)
0 < {S} < 3
{O} == {O}
"""),
    "T": table("""
f"{float({S}):.6g}"
f"{{S}} {{I}}"
f"{{v}}"
f"{{v}!r:>10}"
str({V}.shape)
str({V}.dtype)
repr({V}[:2])
"%s" % ({S},)
"%.3f %d" % ({S}, {I})
"{} {:.2f}".format({I}, {F})
str({V})
{V}.dtype.name
type({S}).__name__
np.array2string({V}, precision=3)
f"{{S}:.3f} {{V}.mean():+.2e}"
"".join(map(str, {V}[:2]))
"|".join(sorted({D}))
{V}[:1].tobytes().hex()
repr({L})
"""),
    "L": table("""
[{V}, {V}]
[{v}, {v}, {V}]
[{V}, *{L}]
list({D}.values())
{L}[:]
{L} + [{V}]
[e * 2 for e in {L}]
[e for e in {M}]
list({M})
sorted({L}, key=lambda e: float(e.sum()))
list(reversed({L}))
{O}.history + [{V}]
[*map(np.sin, {L})]
list(np.array_split({V}, [len({v})]))[:1]
[e.copy() for e in {L}]
list(np.atleast_1d({V}, {V}))
"""),
    "D": table("""
{"u": {V}, "w": {V}}
{"u": {v}, "w": {v}, "deep": [{V}, ({V}, {F})]}
dict({D})
{**{D}, "w": {V}}
{name: e + 1 for name, e in zip("uw", {L})}
dict(u={V}, w={v})
"""),
    "O": table("""
{C}({V})
{C}({V}, k={F})
{C}.made({V})
copy.copy({O})
copy.deepcopy({O})
"""),
    "N": table("""
2* lambda e, scale=1.0: e * scale + {V}
lambda e, scale=1.0: np.tanh(e) * scale
functools.partial(mixed, {V})
compose({N}, {N})
{N} if {B} else {N}
{"a": {N}, "b": {N}}["a"]
maker({V})
maker({v})
"""),
}

# The last way out, where nothing of the kind has a name.
LEAVES = {
    "V": "np.arange(6.0)",
    "M": "np.outer({V}, {V})",
    "S": "{V}.max()",
    "F": "0.75",
    "I": "2",
    "J": "0",
    "K": "{V} > 0",
    "B": "True",
    "T": "'text'",
    "L": "[{V}, {V}]",
    "D": "dict(u={V}, w={V})",
    "O": "Model({V})",
    "G": "np.random.default_rng(5)",
    "N": "(lambda e, scale=1.0: e * scale)",
}
