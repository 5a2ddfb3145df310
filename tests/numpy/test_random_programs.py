"""Random programs: is NumPy = interpreter = compiled loops, whatever people write?

Programs are text: a few statements over named arrays, drawn from a seeded generator. A failure
prints the seed and the program; ``SEED`` and ``PROGRAMS`` in the environment choose others.
"""

import os
import random

import numpy as np
import pytest
from arrays import array
from same import check
from texts import function_of

SEED = int(os.environ.get("SEED", "1"))
PROGRAMS = int(os.environ.get("PROGRAMS", "120"))

UNARY = [
    "np.sqrt(np.abs({0}))",
    "np.sin({0})",
    "np.exp(-np.abs({0}))",
    "-{0}",
    "np.abs({0})",
    "np.square({0})",
    "{0}.conj()",
    "np.floor({0})",
    "np.tanh({0})",
    "{0}**2",
    "{0}.copy()",
    "np.sign({0})",
    "np.cumsum({0}, 0)",
    "np.maximum.accumulate({0}, -1)",
    "{0}.cumprod(1) + 1",
    "{0}[np.argsort({0}[:, 0])]",
    "{0}[:, {0}.shape[1] - 1 - np.arange({0}.shape[1])]",
    "{0}.take({0}.argmax(axis=0), 0)[:{0}.shape[0]] + {0}",
]
BINARY = [
    "{0}+{1}",
    "{0}-{1}",
    "{0}*{1}",
    "{0}/{1}",
    "np.maximum({0},{1})",
    "np.minimum({0},{1})",
    "np.hypot({0},{1})",
    "{0}+{1}*{0}",
    "np.where({0}>{1},{0},{1})",
    "np.arctan2({0},{1})",
    "{0}-{1}.mean(axis=0)",
    "{0}[np.abs({1}[:, 0]).astype(int) % {0}.shape[0]]",
    "{0}[np.nonzero({1} > 9)[0].sum() - 1]+{1}",
    "{0}[[0, -1]].sum(axis=0)*{1}",
]
REDUCE = [
    "{0}.sum(axis={a})",
    "{0}.mean(axis={a})",
    "{0}.max(axis={a})",
    "{0}.min(axis={a})",
    "np.linalg.norm({0},axis={a})",
    "{0}.std(axis={a})",
    "{0}.argmin(axis={a})",
    "{0}.prod(axis={a})",
    "{0}.cumsum(axis={a})",
    "{0}[{0} > 0.5]",
    "{0}[{0}[:, 0] > 0.5].sum(axis={a})",
    "np.argwhere({0} > 0)",
    "{0}[{0}.argmin(axis=0), np.arange({0}.shape[1])]",
    "np.bincount(np.abs({0}).astype(int).ravel(), {0}.ravel())",
]
VIEW = [
    "{0}.T",
    "{0}[::-1]",
    "{0}[:,::-1]",
    "{0}[::2]",
    "{0}[1:]",
    "{0}[:,1:-1]",
    "{0}[:,None].squeeze(1)",
    "{0}.reshape(-1).reshape({0}.shape)",
    "{0}[::-1,::2]",
]
WRITE = [
    "{0} += {1}",
    "{0} *= 2",
    "{0}[1:] = {1}[1:]",
    "{0}[::2] += 1.5",
    "{0}[0] = {1}[-1]",
    "{0}[{0} > 0.5] = 0.25",
    "{0}[:, 0] = {1}[:, -1]",
    "np.add({0}, {1}, out={0})",
    "{0}[1:-1] = {0}[2:] - {0}[:-2]",
    "{0} -= {0}.mean(axis=1, keepdims=True)",
    "{0}[{1} > 0.5] += 1",
    "{0}[{1}[:, 0] > 0] *= 0.5",
    "{0}[[0, 0, -1]] = {1}[:1]",
    "{0}[{1}.argmin(axis=0), np.arange({0}.shape[1])] = 0.75",
    "np.add.at({0}, np.array([0, -1, 0]), {1}[0])",
    "{0}[np.abs({1}[:, 0]).astype(int) % {0}.shape[0]] = {1}",
    "np.cumsum({1}, 1, out={0})",
]


def program(seed):
    """The text of a function of ``a``, ``b`` and ``c``, arrays of one shape."""
    choose = random.Random(seed)
    square = ["a", "b", "c"]
    owned = []
    lines = []
    results = []
    for k in range(choose.randint(3, 9)):
        name = f"t{k}"
        kind = choose.random()
        x, y = choose.choice(square), choose.choice(square)
        if kind < 0.35:
            lines.append(f"{name} = {choose.choice(BINARY).format(x, y)}")
            square.append(name)
            owned.append(name)
        elif kind < 0.55:
            lines.append(f"{name} = {choose.choice(UNARY).format(x)}")
            square.append(name)
            owned.append(name)
        elif kind < 0.7:
            lines.append(
                f"{name} = {choose.choice(REDUCE).format(x, a=choose.choice([0, 1, -1, None]))}"
            )
            results.append(name)
        elif kind < 0.85:
            lines.append(f"{name} = {choose.choice(VIEW).format(x)} * 1.25")
            results.append(name)
        else:
            lines.append(choose.choice(WRITE).format(choose.choice(square), y))
    if choose.random() < 0.2:
        lines.append(f"if {choose.choice(square)}.sum() > 0: {choose.choice(square)}[0] = 3")
    wanted = choose.sample(square, min(3, len(square))) + results
    lines.append(f"return {', '.join(wanted)},")
    return "def program(a, b, c):\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize("seed", range(SEED * 1000, SEED * 1000 + PROGRAMS))
def test_program(seed):
    text = program(seed)
    choose = random.Random(seed + 1)
    dtype = choose.choice("ddddffleeg")
    shape = choose.choice([(6, 7), (5, 5), (3, 17), (40, 3), (1, 9)])
    layouts = [choose.choice(["contiguous", "transposed", "strided", "reversed"]) for _ in range(3)]
    given = [array(dtype, layout, shape, seed=k) for k, layout in enumerate(layouts)]
    given = [np.nan_to_num(x, nan=0.5, posinf=2, neginf=-2) % 5 for x in given]
    given = [np.asarray(x, dtype) for x in given]
    try:
        check(function_of(text, {"np": np}), *given)
    except BaseException:
        print(f"seed {seed}, {dtype} {shape} {layouts}\n{text}")
        raise
