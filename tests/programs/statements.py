"""What do random programs do? Tables of statements; ``expressions`` says how rows are read."""

from expressions import table

# What may raise, and mostly does.
RISKS = table("""
{+V} = {V} + np.ones(len({v}) + 1)
{+S} = {V}[99]
{+M} = np.linalg.inv(np.zeros((3, 3)))
{+F} = 1 / (len({v}) - len({v=}))
np.linalg.cholesky(-np.eye(3))
{v}[0] = "text"
{v}[:2] = {V}
{v}[{I}:] += {V}
raise ValueError({S})
raise KeyError("key", {V})
raise RuntimeError(f"no {{S}}")
raise Trouble({V}, {I})
{+V} = {V}.reshape(7, 7)
{+V} = {D}["missing"]
{+I} = int("x")
{+V} = np.concatenate([{V}, {M}])
if {V}:
    print("true")
print({o}.missing)
{+V} = {N}()
{+V} = {N}({V}, unknown=1)
{v}.shape = (7, 7)
assert {B}, f"{{S}}"
{+V} = failing({V}, {I})
{+V} = failing({V}, {I})
{v} += 1j
{+V} = {V} << 1
linalg.solve(np.zeros((2, 2)), np.ones(2))
np.add({V}, {V}, out={m}[:, :1])
{+V} = {V}[{V}]
{+S} = math.sqrt({S})
{+F} = math.log({F})
{l}[7][0] = {F}
with np.errstate(all="raise"):
    {+V} = np.log({V})
with np.errstate(all="raise"):
    {BLOCK}
    {+V} = {V} / ({V} - {V=})
""")

STATEMENTS = table("""
14* {+V} = {V}
3* {+M} = {M}
4* {+S} = {S}
3* {+F} = {F}
2* {+I} = {I}
2* {+K} = {K}
{+T} = {T}
3* {v} = {V}
4* {v} += {V}
2* {v} *= {F}
{v} -= {S}
{v} /= {V}
2* {v}[1:] = {V}[:-1]
2* {v}[::2] = {F}
3* {v}[{J}] = {S}
{v}[{J}] = {F}
{v}[{K}] = {F}
{v}[{K}] += {F}
{v}[[0, -1, 0]] += {F}
{v}[np.argsort({v=})] = {V}
{v}[{K}] = {V}[{K=}]
np.add.at({v}, np.array([0, 0, 1]), {F})
np.put({v}, [0, 1], {F})
2* {v}[...] = {V}
{v}[1:] += {v=}[:-1]
{v}[:] = {v=}[::-1]
{v}[1:-1] = 0.5 * ({v=}[2:] + {v=}[:-2])
{v}.sort()
{v}.fill({F})
{m}[0] = {V}
{m}[:, {J}] += {V}
{m} -= {V}
{m}[{J}, {J}] = {S}
{m}[{J}][1:] = {F}
{m}.T[{J}] = {V}
2* np.add({V}, {V}, out={v})
np.multiply({v}, {F}, out={v=})
np.sqrt(np.abs({V}), out={v}, where={K})
{+V} = np.subtract({V}, {V}, {v})
{m}.sum(axis=0, out={v})
np.copyto({v}, {V})
np.put({v}, [0, 1], {F})
np.add.at({v}, [0, 0, 1], {F})
np.putmask({v}, {K}, {V})
{+V}, {+V} = {V}, {V}
{v}, {v} = {V}, {V}
{+V}, {+S} = both({V})
{+V}, *{+L} = {L}
{+V} = {+V} = {V}
{+V} = {v}
{+V} = {v}[:]
{+V} = {v}[::-1]
{+V} = {m}[{J}]
{+V} = {l}[0]
({+V} := {V}).sum()
4* {+L} = {L}
2* {l}.append({V})
{l}.append({v})
{l}[{J}] = {V}
{+V} = {l}.pop() if len({l=}) > 1 else {V}
{l}.sort(key=lambda e: float(e.sum()))
{l}.sort(key=np.max, reverse=True)
{l}.insert(0, {V})
{l}.extend([{V}, {v}])
{l} += [{V}]
{l}.reverse()
{l}[0], {l=}[-1] = {l=}[-1], {l=}[0]
{l}[0] += {V}
{l}[0][{J}] = {F}
{l}[:1] = [{V}, {V}]
for {+V} in itertools.islice({l}, 20):
    {BLOCK}
for {+I}, {+V} in enumerate(itertools.islice({L}, 20)):
    {BLOCK}
for {+V}, {+V} in zip(itertools.islice({L}, 20), {L}):
    {BLOCK}
3* {+D} = {D}
2* {d}["u"] = {V}
{d}["new"] = {V}
{d}["u"] += {V}
{d}["w"][{J}] = {F}
{d}.update(w={V})
{+V} = {d}.pop("w", {V})
{+V} = {d}.setdefault("s", {V})
for {+T}, {+V} in list({d}.items()):
    {BLOCK}
for {+T} in list({d}):
    {d=}[{t=}] = {F} * np.asarray({V})
3* {o}.u = {V}
2* {o}.u += {V}
2* {o}.u[{J}] = {F}
{o}.k = {F}
{o}.k += 1
{o} *= {F}
{d}["o"] = {o}; {d=}["o"] *= {I}
{o}.note = {V}
{o}[{J}] = {F}
{o}.advance({F})
{o}.advance()
{+V} = {o}.step({V})
2* {+O} = {O}
{C}.shared = {F}
{o}.history.append({V})
{o}.table["k"] = {V}
setattr({o}, "u", {V})
{o}.half = {V}
{o}.u, {+V} = {V}, {o=}.u
with {o} as {+V}:
    {BLOCK}
LOG.append({V})
LOG.append(({S}, {I}))
STATE["n"] = {I}
STATE["n"] += 1
STATE["a"] = {V}
STATE["seen"] = STATE.get("seen", 0) + 1
TABLE[{J}] = {F}
TABLE[:] = TABLE[::-1]
KEPT[{T}] = {V}
QUEUE.append({V})
2* QUEUE.append({v})
remember({V})
remember({v})
noted({V})
counted.calls += 1
counted.last = {V}
2* print({T})
print(float({S}))
print({V}.shape, {V}.dtype, {I})
print({v})
print({S}, {V}[:2].tolist())
warnings.warn("text")
warnings.warn(f"text {{I}}", stacklevel=2)
say({V})
3* if {B}:
    {BLOCK}
3* if {B}:
    {BLOCK}
& else:
    {BLOCK}
if {B}:
    {v} = {V}
& elif {B}:
    {v=} = {V}
& else:
    {BLOCK}
2* if {B}:
    return {V}
if {B}:
    return {v}, {S}
2* for {+I} in range({I} % 4):
    {BLOCK}
for {+I} in range(3):
    {v} = {v=} * {F} + {V}
    if {B}:
        break
for {+I} in range(len({v})):
    {v=}[{i=}] = {v=}[{i=}] * {F} + {i=}
for {+F} in {V}.tolist():
    {v} += {f=}
for {+S} in {V}:
    if {s=} > {F}:
        continue
    {v} = {v=} + {s=}
{+I} = 0
& while np.abs({v}).max() > {F} and {i=} < 3:
    {v=} = {v=} * 0.5
    {i=} += 1
while {B}:
    {BLOCK}
    break
6* try:
    {RISK}
& except Exception as error:
    print(type(error).__name__, error)
2* try:
    {BLOCK}
    {RISK}
& except (ValueError, IndexError, KeyError) as error:
    LOG.append((type(error).__name__, str(error)))
& except Exception:
    {BLOCK}
& else:
    {BLOCK}
& finally:
    {BLOCK}
try:
    {RISK}
& finally:
    {BLOCK}
try:
    {RISK}
& except ArithmeticError as error:
    raise ValueError("wrapped") from error
& except LookupError:
    raise
& except Exception:
    pass
try:
    {BLOCK}
& except Trouble as error:
    {v} = error.value
{RISK}
with np.errstate(divide="ignore", invalid="ignore"):
    {BLOCK}
with managed({V}) as {+V}:
    {BLOCK}
with contextlib.suppress(ValueError, IndexError, TypeError):
    {RISK}
3* def {+N}(e, scale={F}):
    return e * scale + {v}
def {+N}(e, scale=1.0, *, more=None, by={V}):
    {BLOCK}
    return e * scale + by
2* def inner():
    nonlocal {v}
    {v=} = {v=} * {F} + {V}
    return {v=}
& {+V} = inner()
def inner(rounds):
    if rounds <= 0:
        return {v}
    return inner(rounds - 1) * {F}
& {+V} = inner({I} % 4)
def inner():
    for e in ({V}, {V}):
        yield e * {F}
& {+V} = sum(inner())
3* {+N} = {N}
{+N} = {N} if {B} else {N}
{+N}, {+N} = {N}, {N}
{+V} = [{N}(e) for e in {L}][0]
{+V} = np.array([e for e in {V} if e > {F}] or [0.0]).sum() + {V}
{+F} = sum(float(e) for e in {V})
{+V} = next((e for e in {L} if e.sum() > {F}), {V})
{+T} = ", ".join(f"{e:.3g}" for e in {V})
match {I}:
    case 1 | 2:
        {BLOCK}
    case _:
        {BLOCK}
assert {v}.ndim == 1
del {l}[0]
{+V} = {o}.u; {o=}.u = {V}
global COUNT; COUNT += 1
global SCALE; SCALE = {F}
global LAST; LAST = {V}
global LAST; LAST = {v}
{v}.flat[0] = {F}
{v}.flat = {V}
{v}.real = {V}
{v}.partition(1)
{v}.setflags(write={I} % 5 != 0)
{v}.put([0, -1], {F})
{v}[None][0, {J}] = {F}
{v}.reshape(-1)[{J}] = {F}
{v}.T[:1] += {F}
np.place({v}, {K}, [{F}])
np.fill_diagonal({m}, {F})
np.put_along_axis({v}, np.argsort({v=}), {V}, 0)
np.maximum.at({v}, [0, 1, 0], {F})
np.cumsum({V}, out={v})
np.clip({V}, -1.0, 1.0, out={v})
np.dot({M}, {V}, out={v})
np.ndarray.__setitem__({v}, 0, {F})
np.ndarray.fill({v}, {F})
np.ndarray.__iadd__({v}, {V})
operator.setitem({v}, {J}, {F})
operator.iadd({v}, {V})
{v} = operator.imul({v=}, {F})
memoryview({v})[0] = {F}
{v}.data[1] = {F}
{G}.shuffle({v})
for e in np.nditer({v}, op_flags=["readwrite"]):
    e[...] = e * {F}
for row in {m}:
    row += {F}
for {+I}, row in enumerate({m}):
    row[0] = {i=}
    {BLOCK}
{+V} = {v}[:2]; {+V} = {v=}[1:]; {v=}[1] = {F}
{+V} = {v}.view(); {v=} *= {F}
globals()["LAST"] = {V}
vars({o})["u"] = {V}
{o}.__dict__.update(note={V})
{o}.__dict__["k"] = {F}
vars({o}).update(k={F}, u={V})
list(map({o}.__setattr__, ["k", "u"], [{F}, {V}]))
setattr({m}, "shape", {m=}.shape[::-1])
{+M} = {M} * 2; list(map({m=}.__setattr__, ["shape"], [{m=}.shape[::-1]])); {m=}[0] = {F}
{d}["u"], {d=}["w"] = {d=}["w"], {d=}["u"]
{d} |= {"w": {V}}
del {d}["w"]; {d=}["w"] = {V}
{l}[{J}], {+V} = {V}, {l=}[{J=}]
{l}[1:] = [e * {F} for e in {l=}[1:]]
[{+V}, *{+L}] = [{V}, {V}]
{m}[1:], {m=}[0] = {m=}[:-1] * {F}, {V}
{m} @= {M}
{v} **= 2
{v} //= 1
{v} = {v=} + {V} if {B} else {v=}
{+V} = ({+S} := {S}) * {V}
(lambda e: e.__setitem__(0, {F}))({v})
exec("e[0] = 2.5", {"e": {v}})
np.copyto({v}, {F}, where={K})
np.add({v}, {F}, out=(({v=}),), where={K})
{+V} = np.frombuffer({v}) + {V}; {v=}[0] = {F}
e = np.asarray(memoryview({v})); {v=}[1] += {F}; e[0] *= {F}
while True:
    {BLOCK}
    if {B} or len(LOG) > 9:
        break
    LOG.append(1)
""")

RETURNS = table("""
4* return {V}
3* return {V}, {S}
2* return {v}
return {l}
return {d}
return {o}
return {"a": {V}, "b": [{V}, {v}]}
return {v}, {v}, {V}
return {V}, {v}[1:], {v=}
return {l}, {l=}[0]
return {o}, {o=}.u
return {N}
return {I}
return float({S})
return {S}
return {K}
return {B}
return {M}
return {v} is {v}, {V}
return lambda: {v}
return {T}
return ({V}, ({S}, [{V}, {I}]))
return None
""")

# What happens between calls.
CHANGES = table("""
given.a[0] = 7.0
given.a *= -1
given.m[1] += 2.0
given.items.append(given.a * 2)
given.items[0] = given.b
given.items.reverse()
given.table["u"] = given.b + 1
given.table["w"][...] = 0.5
given.model.u = given.b
given.model.u = given.model.u * 2
given.model.u[0] = -3.0
given.model.k = 3.5
given.model.k = 2
given.model.note = given.a
given.other.u = given.model.u
given.model.history.clear()
given.n = given.n + 1
given.s = given.s * -0.5
given.fn = third
given.fn = lambda e, scale=1.0: e - scale
given.pair = (given.b, given.a)
global SCALE; SCALE = 3.0
global SCALE; SCALE = np.float32(0.5)
global SCALE; SCALE = -1
global LAST; LAST = given.a
global LAST; LAST = np.ones(1)
global TABLE; TABLE = np.array([1, 2, 3])
TABLE[0] = 9.0
STATE["n"] = 5
STATE.clear(); STATE.update(n=1)
KEPT.clear()
LOG.clear()
global COUNT; COUNT = 0
global twice; twice = lambda e, scale=2.0: e - scale
global third; third = lambda e, scale=1.0: e + scale
global mixed; mixed = lambda e, g, part=0.5: e - g * part
itself(twice).__defaults__ = (3.0,)
itself(third).__defaults__ = (np.float64(0.25),)
itself(mixed).__kwdefaults__ = {"part": 0.125}
itself(twice).__code__ = (lambda e, scale=2.0: e * 3 - scale).__code__
counted.calls = 10
counted.offset = 2.5
Model.shared = 4.0
Model.step = lambda self, e: e + self.k
Grid.step = Model.step
Model.shared = np.arange(2.0)
cached.cache_clear()
np.random.seed(7)
""")

# What a program of each kind leaves out. Functions that store something outside of themselves, use
# what may change or have effects run Python at each call; so most programs have none of that, else
# few would be replayed. What is left out is named by parts of rows.
OUTWARD = (
    *("LOG", "STATE[", "STATE.set", "TABLE[{J}] = ", "TABLE[:] = ", "KEPT", "global ", "setattr"),
    *("{o}.", "{o}[", "{o=}.", "{C}.shared", "counted.", "remember(", "noted(", 'all="raise"'),
    *("memo[", "seen.append", "kept", ".__enter__", "class ", "nonlocal calls", "='raise'"),
    *("QUEUE",),
)
EFFECTS = (
    *OUTWARD,
    *("print", "warn", "say(", "STATE", "TABLE", "LAST", "COUNT", "{O}", "{G}", "{C}", "given.fn"),
    *("functools", "itertools", "operator", "copy.copy", "deepcopy", "pickle", "contextlib"),
    *("cached(", "watched(", "managed(", "produced(", "map(", "next(", "getattr", "hasattr"),
    *("vectorize", "Trouble", "suppress", "apply_along", ".at(", "put", "copyto", "fill("),
    *(" linalg.", "(linalg.", "ndimage.", "signal.", "logsumexp", "tolist", ".sort(", "{RISK}"),
)
# Calls of NumPy's own that are made anew each time.
CALLS = (
    *("@", "dot(", "np.diag(", "argsort", "cumsum", "np.roll", "np.concatenate", "np.stack"),
    *("np.arange(len", "linspace", "np.repeat", "interp", "nan_to_num", "einsum", "accumulate"),
    *("reduce(", "gradient", "convolve", "[{K}].sum", "np.take", "float(e)", "linalg", "np.fft"),
    *("np.eye", "vstack", "row in {M}", "tril", "cov", "float64({F})", "trace", "median"),
    *("count_nonzero", "round(", "isclose", "allclose", "shares_memory", ".base is", "any("),
)
KINDS = {"pure": EFFECTS + CALLS, "inward": OUTWARD, "any": ()}
