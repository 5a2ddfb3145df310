"""What would one write with numexpr for each case?

numexpr evaluates one elementwise expression, at most with one sum at the end; everything else stays
NumPy. Cases that are not elementwise at heart are left out. Imported only where it is installed.
"""

import numexpr
import numpy as np


def kmeans(X, means):
    points, centres = X, means[:, None]
    squared = numexpr.evaluate("sum((points - centres)**2, axis=2)")
    return np.argmin(numexpr.evaluate("sqrt(squared)"), axis=0)


def softmax(x):
    largest = x.max(axis=1, keepdims=True)
    e = numexpr.evaluate("exp(x - largest)")
    total = e.sum(axis=1, keepdims=True)
    return numexpr.evaluate("e / total")


def zscore(x):
    mean, std = x.mean(axis=0), x.std(axis=0)
    return numexpr.evaluate("(x - mean) / std")


def pairwise(x, y):
    rows, columns = x[:, None, :], y[None, :, :]
    squared = numexpr.evaluate("sum((rows - columns)**2, axis=2)")
    return numexpr.evaluate("sqrt(squared)")


def chain(x, y):
    a = "(x * 2.0 + y)"
    b = f"exp(-({a} * {a}))"
    c = f"(log(x * x + 1.0) - {b})"
    d = f"tanh({c} + {a} * 0.5)"
    e = numexpr.evaluate(f"where({d} > 0.25, {d} * {a}, {b} - {c})")
    f = numexpr.evaluate("(e + x) * (e - y) / (abs(e) + 1.0)")
    c, d = numexpr.evaluate(c), numexpr.evaluate(d)
    low = numexpr.evaluate("where(c < d, c, d)")
    g = numexpr.evaluate(f"sqrt(f * f + {b}) + low")
    h = f"(exp(-g) * {a} + log(g + 2.0))"
    i = f"where({h} < f, {h}, f + 0.125)"
    return numexpr.evaluate(f"tanh({i} - d) * where(g > e, g, e) + x")


def stencil(u, out):
    centre, north, south = u[1:-1, 1:-1], u[:-2, 1:-1], u[2:, 1:-1]
    west, east = u[1:-1, :-2], u[1:-1, 2:]
    numexpr.evaluate("0.2 * (centre + north + south + west + east)", out=out[1:-1, 1:-1])


VARIANTS = {
    function.__name__: function for function in (kmeans, softmax, zscore, pairwise, chain, stencil)
}
