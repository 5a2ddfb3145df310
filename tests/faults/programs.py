"""A process of its own for test_no_compiler.py: do these functions give NumPy's bits here?

Prints one line of JSON: which functions differ from NumPy, where the loops came from, and what the
compiler's cache says. Arguments: an address space of files in bytes (RLIMIT_FSIZE), or nothing.
"""

import json
import resource
import sys

import numpy as np


def kmeans(points, means):
    return np.argmin(np.linalg.norm(points - means[:, None], axis=2), axis=0)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def z_score(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


def stencil(u, v):
    v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    v += 1
    u[0] = v[1]
    return v.sum()


def chain(x):
    y = np.where(x > 0, np.exp(-x), x * 0.5)
    return np.log(np.abs(np.tanh(y)) + 1.5) ** 2


def main():
    if len(sys.argv) > 1:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
    import ufuse
    from ufuse import _core

    x = np.random.default_rng(0).normal(size=(40, 33))
    cases = [
        (kmeans, (x[:, :2], np.array([[0, 0], [1, 1]]))),
        (softmax, (x,)),
        (z_score, (x,)),
        (stencil, (x, x * 2)),
        (chain, (x,)),
    ]
    wrong, origins = [], set()
    for function, args in cases:
        theirs = [a.copy() for a in args]
        expected = function(*theirs)
        for _ in range(2):
            ours = [a.copy() for a in args]
            result = ufuse.jit(function)(*ours)
            pairs = zip([expected, *theirs], [result, *ours], strict=True)
            if any(a.tobytes() != b.tobytes() or type(a) is not type(b) for a, b in pairs):
                wrong.append(function.__name__)
            for report in _core.reports():
                origins |= {group["origin"] for group in report["groups"]}
    print(json.dumps({"wrong": wrong, "origins": sorted(origins)}))


if __name__ == "__main__":
    main()
