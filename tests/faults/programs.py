"""A process of its own for the tests here: do these functions give NumPy's bits here?

Prints one line of JSON: which functions differ from NumPy, where the loops came from, and what the
compiler's cache says. Arguments: names of functions (default: all), and how many bytes a file may
have at most (RLIMIT_FSIZE).
"""

import argparse
import json
import resource

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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("functions", nargs="*")
    parser.add_argument("--file-size", type=int)
    given = parser.parse_args()
    if given.file_size is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (given.file_size, given.file_size))
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
        if given.functions and function.__name__ not in given.functions:
            continue
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
