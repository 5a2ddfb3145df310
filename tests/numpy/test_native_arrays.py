"""Do loops with statements about whole arrays do what NumPy does, once they are native?

As in test_native_loops, wherever they begin and wherever they exit; then random statements about
parts of arrays. `UFUSE_TEST_ARRAY_LOOPS=5000` tries so many; `UFUSE_TEST_ARRAY_LOOPS_FIRST` says from which
seed on.
"""

import linecache
import math
import os
import random
import signal
import types
import warnings

import numpy as np
import pytest
from test_native_loops import alike, check, outcome, told
from texts import function_of
from ufuse.source import heads
from ufuse.tracing.loops import looped

BACKENDS = ["compiled"]
COUNT = int(os.environ.get("UFUSE_TEST_ARRAY_LOOPS", "20"))
FIRST = int(os.environ.get("UFUSE_TEST_ARRAY_LOOPS_FIRST", "0"))

RNG = np.random.default_rng(7)
V = RNG.random(24)
M = RNG.normal(size=(7, 7)) + 7 * np.eye(7)
WIDE = RNG.integers(1, 50, (40, 40)).astype(float)
SPD = M @ M.T
T3 = RNG.random((4, 5, 6))
C = RNG.normal(size=(4, 3, 3)) + 1j * RNG.normal(size=(4, 3, 3))


def lu(a):
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, a.shape[0]):
            a[i, j] -= a[i, :i] @ a[:i, j]


def cholesky(a):
    a[0, 0] = np.sqrt(a[0, 0])
    for i in range(1, a.shape[0]):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])


def rank_k(alpha, beta, c, a):
    for i in range(a.shape[0]):
        c[i, : i + 1] *= beta
        for k in range(a.shape[1]):
            c[i, : i + 1] += alpha * a[i, k] * a[: i + 1, k]


def columns(u, y):
    for j in range(2, u.shape[1]):
        y[:, j] = 0.2 * u[:, j] + 0.3 * u[:, j - 1] + 0.1 * y[:, j - 1] - 0.05 * y[:, j - 2]


def levinson(r):
    y = np.empty_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def jacobi(a, b):
    for _ in range(4):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])


def jacobi_2d(a, b):
    for _ in range(3):
        b[1:-1, 1:-1] = 0.2 * (
            a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]
        )
        a[1:-1, 1:-1] = b[1:-1, 1:-1]


def covariance(data, c):
    m = data.shape[1]
    for i in range(m):
        c[i:m, i] = c[i, i:m] = data[:, i] @ data[:, i:m] / 4.0


def gram_schmidt(a, q, r):
    for k in range(a.shape[1]):
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, a.shape[1]):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]


def products(a, v, out):
    for i in range(1, 5):
        out[:i] = a[:i, :] @ v
        out[i:] += v @ a[:, i:]
        a[:i, :i] = a[:i, :] @ a[:, :i] * 0.01
        out[i] = v[:i] @ v[:i]


def levels(t, u):
    for k in range(1, t.shape[2]):
        t[:, :, k] = (t[:, :, k] - u[:, :, k - 1] * t[:, :, k - 1]) / (2.0 + u[:, :, k])
        u[:, 1:, k] = np.maximum(u[:, :-1, k], -t[:, 1:, k])


def shifted(v):
    for i in range(1, 6):
        v[i:] = v[:-i]
        v[:-1] += v[1:]
        v[::2] = v[-2::-2]
        v[:] = v[::-1]


def filled(v, m):
    for i in range(1, 5):
        v[i:] = 0
        m[i] = i * 0.5
        m[:, i] = m[0]
        m[i:, i:] = v[i : m.shape[1]]


def warns(v, m):
    for i in range(6):
        m[i] = v[i : i + 7] / m[i, i]
        m[:, i] += np.sqrt(m[:, i] - 2)
        v[i:] *= v[i:]
        v / 0


def wrong_shapes(v, m):
    for i in range(6):
        v[: i + 1] = m[i, : 7 - i]
    return i


def whole_in_place(v, w):
    for i in range(4):
        v += w * i
        v -= 1
        v *= w
    return v


def mixed(v, n, m):
    for i in range(1, 6):
        v[:i] = n[:i] * 2 + i
        v[i:] = n[i:] / 3
        n[:i] += n[-i:] & 7
        m[i] = v[:7] > 0.5
        n[i:] = -abs(n[i:])
        v[:i] **= 2


def called(v, m, z):
    for i in range(1, 5):
        v[:i] = np.exp(-v[:i]) + np.log(v[i : 2 * i] + 1) ** 2
        m[:, i] = np.arctan2(m[:, i - 1], m[i, :]) // 0.25
        m[i:, i] = np.hypot(m[i:, i], 2) * np.tanh(m[i:, 0])
        z[i:] = np.sin(z[:-i]) / np.exp(v[i])
        v[i] = v[:i] @ np.cos(v[:i])
        m[i] = np.exp(m[::-1, i] * 0.01)
        m[0] = np.cos(m[i, ::-1])


def views(m):
    for row in m:
        row[1:] += row[:-1]
        part = row[2:5]
        part *= 0.5
    return row, part


def kept(v, m):
    total = np.zeros(7)
    last = first = v
    for i in range(1, 6):
        made = m[i] * v[i] + 1
        if i == 1:
            first = made
        last, previous = made, last
        made[i:] += 1
        part = made[1:3]
        part *= 2
        total += made
        m = m @ m * 0.01
        a, b = v[:i] / 2, m[:, i] - 1
    return total, first, last, previous, part, m, a, b


def kept_in_rows(m, t):
    for i in range(1, 4):
        a = m * i
        b = m.T + 1
        c = (m + 1).T - a
        d = t[:, i] * t[0, :, :][i - 1]
        e = v = m[:, i, None] * m[None, i]
        f = m[i : i + 1] * 2
        g = m[:, ::-1] + m[::-1]
        h = m[:, :0] * 2
    return a, b, c, d, e, v, f, g, h


def made_anew(n, m):
    for i in range(n):
        a = np.zeros((i, 3))
        b = np.ones(i, int)
        c = np.zeros_like(m)
        d = m.T.copy()
        d[i] = c[:, i] + c[i].dot(m[:, i])
        b[i // 2 :] = i
        e = a.T
        a[:, i % 3] = i
    return a, b, c, d, e, a.shape, len(b)


def gives_back(v):
    for i in range(1, 9):
        w = v * i
        if w[3] > 2:
            return w, w[1:], v + w
    return None


def conjugate_gradients(a, b):
    x = np.zeros(a.shape[0])
    r = b - a @ x
    p = r.copy()
    old = r @ r
    for _ in range(6):
        q = a @ p
        step = old / (p @ q)
        x += step * p
        r -= step * q
        new = r @ r
        if np.sqrt(new) < 1e-10:
            break
        p = r + (new / old) * p
        old = new
    return x, r, p


def by_steps(v, step):
    for i in range(1, 4):
        w = v[i::step]
        v[:i:step] = w[0]
    return w


def sparse_product(starts, columns, values, x, y):
    for i in range(starts.size - 1):
        part = columns[starts[i] : starts[i + 1]]
        y[i] = values[starts[i] : starts[i + 1]] @ x[part]
        last = x[part - 1]
    return last


def gathers(v, n):
    for i in range(1, 6):
        w = v[n[i:]] * 2
        v[:i] = v[n[:i] // 2]
        n[i] = n[n[:i]][0]
        v[i] = v[::-1][n[::-2]][0]
    return w


def masks(v, m, limit):
    for i in range(1, 5):
        part = v[v > limit]
        n = len(part)
        v[v < limit] = limit * i
        v[v == limit * i] += 1
        rows = m[m[:, i] > limit]
        columns = m[:, m[i] > limit]
        row = m[i, m[i] < limit]
        column = m[v[:7] > limit, i]
        m[m > limit] -= 0.25
        m[m[0] < limit] = i
        m[1:, m[0, 1:] > limit] = v[1:7, None]
        m[i, m[i] < 1] *= 0.5
        block = m[:, 1:][m[:, 0] > limit]
        v[:n] = part[::-1]
    return part, rows, columns, row, column, block, columns.T, rows.shape


def masks_of_several_axes(t, m, c):
    for i in range(1, 4):
        mask = (t > i * 0.2) | (t[::-1] < 0.1)
        all_of_it = t[mask]
        t[mask] = all_of_it * 2
        planes = t[t[:, :, i] > 0.5]
        t[t[:, i] > 0.3, i] = 0.25
        t[0, t[0] > 1] = -1
        c[:, m[:5, :6] > i] = 0.5
        c[c > 1] = c[c > 1][::-1]
    return all_of_it, planes, t[mask].sum(), mask


def masks_that_do_not_fit(v, m, mask, values):
    for i in range(1, 4):
        v[: 2 + i][mask] += 1
        v[mask[: len(v)]] = values
        m[mask[:7], i:] = values[:1]
        m[mask] = 1
    return i


def masks_and_their_own_arrays(v, mask, n):
    for i in range(1, 4):
        mask[mask] = v[: len(v[mask])] > 0.5 * i
        mask[mask[::-1]] = False
        v[mask] = v[: len(v[mask])]
        v[1:][mask[1:]] = v[mask][mask[mask]]
        n[n] = i
        n[n[:2]] = n[2:4]
    return mask


def several_index_arrays(m, i, j, v):
    for k in range(1, 4):
        a = m[i, j]
        m[i, j] += k
        m[j, i] = v[: len(i)]
        m[i[k:], j[:-k]] *= 2
        b = m[i]
        m[j] = m[i] * 0.5
        c = m[:, j]
        m[:, i[:2]] = m[:, j[:2]] + 1
        d = m[i[:, None], j]
        m[i[:2, None], j[:2]] = d[:2, :2]
        m[k, j] -= 1
        e = m[k, i]
        f = m[i, k]
        g = m[1:, 2:][j % 5, k]
        v[i] = v[j]
        v[i % 3] += v[j]
    return a, b, c, d, e, f, g


def index_arrays_of_several_axes(t, i, j):
    for k in range(3):
        a = t[i]
        b = t[0, i]
        t[0, 0, i] = j[:2]
        c = t[i, i + 1, i]
        t[i, k] = 0.5
        t[i, i.T] = t[k, k]
        d = t[1, 0][i * j[k]]
    return a, b, c, d


def index_arrays_apart(t, i):
    for k in range(3):
        t[i, :, i] = k
        t[0, :, i] += 1
    return t[i, :, 0]


def long_masks(x, mask, y, m):
    for i in range(1, 4):
        part = x[mask]
        y[mask] = part * 2 + i
        y[~mask] = i
        x[::2][mask[::2]] += 1
        x[mask[::-1]] = part[::-1]
        rows = m[:, mask]
        m[:, mask] = rows - i
        m[0, mask] = x[mask]
    return part, rows


def in_functions(v, m, mask):
    s = 0.0
    for i in range(1, 4):
        s += clipped(v, mask, i) + clipped(m[i], mask[:7], i)
        chosen = picked(v, i)
        m[picked(m[0], i) > 0.5, :0] = 1
        v[picked(v, i) > 0.5] = s
    return s, chosen


def clipped(x, mask, i):
    x[mask] *= 0.5
    x[x > 1] = i
    return x[mask][i]


def picked(x, i):
    return x[x > 0.125 * i]


def given_out(v, w, m, b):
    for i in range(1, 4):
        np.add(v, w, v)
        np.multiply(v[i:], v[:-i], out=v[:-i])
        last = np.sqrt(v, out=w)
        np.subtract(m, i, out=m)
        np.maximum(m.T, w[:7], out=m)
        np.less(m, 0.5 * i, out=b)
        np.logical_not(b, b)
        v += np.divide(m[0, 0], w[0], None)
        np.add(m[0], 1, out=(m[i],))
        np.exp(-w, out=w)
        np.arctan2(v, w, v)
        np.cos(m[i], out=m[i - 1])
        np.sin(m[:, i], out=m[:, 0])
        np.exp(w[1:], out=w[:-1])
        v[:7][b[i]] = i
    return last


def given_out_that_does_not_fit(v, w, m):
    for i in range(3):
        np.add(v, 1, out=v)
        np.divide(v, w[i], out=w)
        np.add(v[: 5 + i], w[:5], out=v[:5])
        np.add(m, v[:7], out=m[2 - i :])
    return i


def changed(x, y, i):
    np.multiply(x, i, out=x)
    np.add(x[i:], y[:-i], y[i:])
    z = np.subtract(x, y, out=np.zeros(len(x)))
    z = np.multiply(z, z, out=z)
    return z


def given_out_in_functions(v, w):
    for i in range(1, 4):
        a = changed(v, w, i)
        b = v * 2 + changed(v, w, i)
        w[i] = changed(w, v, i)[0] / (v[1] - 1)
    return a, b


def outer_products(v, w, m):
    for i in range(1, 5):
        a = np.outer(v[:i], w[i:]) - 1
        b = np.add.outer(m[:, i], v[:3])
        m[:] = np.minimum(m, np.add.outer(m[:, i], m[i, :]))
        m -= np.multiply.outer(v[:7] * i, w[1:8]) * 0.01
        c = np.outer(m[i] + 1, m[:, i])
        d = np.less.outer(m[:2], v[:i])
        e = np.subtract.outer(v[::-1], w[::2])
    return a, b, c, d, e


def beside_rows(wide, v, w):
    for i in range(1, 4):
        wide[:] = wide * v[:, None] + w
        wide += v[:, None] - wide[:, i : i + 1]
        wide[1:] = np.minimum(wide[:-1], np.add.outer(wide[1:, i], wide[0]))
        wide[:, ::2] = v[:, None] + w[::2] * 2
        wide[i] = wide[i, 3:4] * w
        wide[:, 5:9] = v[:, None]
        row = w[i : i + 1] - w
        square = v[:, None] * v + v[i : i + 1]
        wide[:1, :4] += v[:4] + v[:1]
    return row, square


def powers(v, m, p):
    for i in range(1, 5):
        a = v**2 + v**0.5 + v**1.5 - v**-1 + v**-0.5
        b = m ** (-1.5) + m**3 - m.T ** abs(m)
        c = v ** m[0, 0] + v**p + 2.0**v - p**v
        v[i:] **= 1.25
        m **= 2
        v *= np.power(m[i, i], 0.125)
        d = v**i
        e = v ** (i + 0.25)
        f = v[v > 0.5] ** (-1.5)
    return a, b, c, d, e, f


def powers_of_other_kinds(n, z, b):
    for i in range(1, 4):
        x = n**0.25
        y = n**2
        w = z**2
        u = n ** (i + 0.5)
    return x, y, w, u


def keywords(n):
    for i in range(n):
        a = np.zeros((i, 2), dtype=np.float32)
        b = np.ones(3, dtype=int)
        b[:] = i
        a[:, 1] = i
        c = np.empty(i, dtype=complex)
        c[:] = i
    return a, b, c


def stacks(v, m, n):
    for i in range(1, 5):
        a = np.hstack((v[:i], v[i:] * 2, v[:0]))
        b = np.hstack((m[:, :i], m[:, i:] + 1, m[:, 0:1].T.T))
        c = np.vstack((v[:7], m[i], m[:, i]))
        d = np.concatenate((m[:i], m[i:], m[:1] * i), 0)
        e = np.concatenate((m, m.T[:, ::-1]), -1)
        f = np.concatenate((n[: i + 2], n))
        g = np.vstack((m.T, m[: i - 1]))
        s = np.hstack((m.T, m)).sum()
        v[i] = np.hstack((v[:i], v[:i])) @ np.concatenate((v[i : 2 * i], v[:i]))
    return a, b, c, d, e, f, g, s


def stacks_that_do_not_fit(v, m):
    for i in range(4):
        a = np.concatenate((m[i:], m[:, 3 - i :]), axis=0)
        b = np.vstack((v[: 5 + i], m[0]))
    return a, b


def triangles(m, n, k):
    for i in range(4):
        a = np.triu(m)
        b = np.tril(m * i, -1)
        c = np.triu(m[i:], i - 2)
        d = np.tril(n[:, i:], k)
        e = np.triu(m.T, k).sum() + np.tril(m).max()
    return a, b, c, d, e


def body(mass, pos, vel, dt):
    """Bodies that attract each other."""
    for _ in range(4):
        dx = pos[:, 0:1].T - pos[:, 0:1]
        dy = pos[:, 1:2].T - pos[:, 1:2]
        near = dx**2 + dy**2 + 0.01
        near[near > 0] = near[near > 0] ** (-1.5)
        vel[:, 0:1] += dx * near @ mass * dt
        vel[:, 1:2] += dy * near @ mass * dt
        pos += vel * dt
    return near


def mandelbrot(z, c, counts, steps):
    for n in range(steps):
        inside = np.less(abs(z), 2.0)
        counts[inside] = n
        z[inside] = z[inside] ** 2 + c[inside]
    return inside


def fast_mandelbrot(z, c, xi, yi, counts, steps):
    for i in range(steps):
        if not len(z):
            break
        np.multiply(z, z, z)
        np.add(z, c, z)
        far = abs(z) > 2.0
        counts[xi[far], yi[far]] = i + 1
        np.logical_not(far, far)
        z = z[far]
        xi, yi = xi[far], yi[far]
        c = c[far]
    return z, xi, yi


def reduced(v, m):
    for i in range(1, 6):
        v[i] = np.sum(v[:i]) + v[i:].sum() - (v[:i] * v[i]).sum()
        m[i, 0] = np.max(m[i]) - m.min() + np.amin(m[:, i]) * m[i].max()
        m[0, i] = np.sum(m) / 49 + np.sum(m * 2) - np.prod(m[i, :3])
        v[0] = np.mean(v[i:]) + m.mean() + v[::2].sum() + np.sum(v[:0])
        total = m[i:, i].sum() + m[1:, 1:].sum()
    return total


def reversed_sums(v, m):
    for i in range(1, 4):
        v[i] = v[::-1].sum() + np.sum(m.T) + (m.T * 2).sum() + (m[::-1] + m).sum()
        v[0] = m[::2, ::2].max() + v[i:i].max()
    return v


def self_energies(g, h, d, s):
    for i in range(g.shape[0]):
        for j in range(h.shape[0]):
            a = g[i] @ h[j]
            b = h[j] * d[i, j]
            c = d[j, i] * h[j] * h[i]
            s[i] += a @ b + abs(c)
            s[i, 0] *= s[i, :, 0] * g[i, 0]
    return c


# ---- Functions that loops call ----


def relaxed(p, b, n):
    old = np.empty_like(p)
    for _ in range(n):
        old = p.copy()
        p[1:-1, 1:-1] = (old[1:-1, 2:] + old[1:-1, :-2] + old[2:, 1:-1]) * 0.3 - b[1:-1, 1:-1]
        p[:, -1] = p[:, -2]
        p[0] = 0


def sources(b, u, v):
    b[1:-1, 1:-1] = (u[1:-1, 2:] - u[1:-1, :-2]) / 2 * (v[2:, 1:-1] - v[:-2, 1:-1])


def flow(u, v, p):
    """Functions that give nothing back."""
    b = np.zeros(u.shape)
    for i in range(3):
        sources(b, u, v)
        relaxed(p, b, i + 1)
        u[1:-1, 1:-1] -= p[1:-1, 2:] - p[1:-1, :-2]
        v[1:, :] += u[:-1, :] * 0.1
    return b


def grown(v, i):
    v[i] += 1
    v[i:] *= 1.5
    if v[0] > 3:
        return 0.5
    v[:i] -= v[i]
    return 2.5


def change_and_give_a_number(v, w):
    s = 0.0
    for i in range(1, 5):
        s += grown(v, i) + grown(w, i) * grown(v, 1)
        a, b = v[1] + grown(v, 2), v[1]
        v[i], k = grown(w, i), i
        w[k] += grown(w, i)
    return s, a, b


def in_conditions(v, w):
    i = n = 0
    while grown(v, 1) > 1 and n < 4:
        n += 1
        if grown(w, n) < 1 or grown(v, n) > 1:
            i += 1 if grown(w, 2) > 1 else 2
            if grown(w, 0) > 3:
                raise ValueError
        for k in range(int(grown(v, 1))):
            i += k
    return i, n


def mixed_up(p, q, k):
    p[k:] += q[k]
    q[:-k] -= p[k:] * 0.5
    p[0] = q[-1]
    return p[1:], q[0], p[k:] * q[k]


def share_memory(v, m):
    for k in range(1, 4):
        mixed_up(v, v, k)
        mixed_up(v[:-1], v[1:], k)
        a, s, b = mixed_up(v, v[::-1], k)
        c, t, d = mixed_up(m[k], m[:, k], k)
        mixed_up(a, c[: len(a)], 1)
    return a, b, c, d, s, t


def all_other_axes(t, m, v):
    some = np.array([0, 2, 1])
    for k in range(1, 4):
        t[...] = t[..., ::-1] * 0.5 + k
        t[k, ...] += m[..., : t.shape[1], : t.shape[2]]
        t[..., k] = t[..., k - 1] - t[0, ..., 0]
        t[:, ..., k:] -= t[..., None, k, k:]
        t[1, ..., 2] *= 0.5
        v[...] = 0
        v[..., 1:] = m[k, ..., :-1].sum() + v[:-1, ...]
        m[..., some] = m[some, ...].T
        m[..., m[0, ...] > 1] = k
        part = m[...]
        part += t[k, 1, ..., None, 2]
        x = part[..., 1][...]
    return x, part, t[..., k]


def axes_that_there_are_not(t, m, v):
    """NumPy has an array without axes there, or another order of the axes."""
    some = np.array([0, 2, 1])
    for k in range(1, 4):
        x = v[k, ...]
        m[k, k, ...] = x + 1
        m[..., k, k] += x
        y = t[some, ..., some].sum() + t[some, some, ...] * m[some, ..., some][:, None]
        z = t[:, k, ..., some] + t[:, some, ..., k]
        t[0, ..., 0, 0] = k
    return x, y, z


def own_rows_and_columns(m, other):
    """They are read beside all rows while these are written."""
    for k in range(len(other)):
        m[:] = np.minimum(m[:], np.add.outer(m[:, k], m[k, :]))
        m[1:] -= m[1:, k : k + 1] * m[k]
        m[:, 1:] = m[:, k : k + 1] - m[k, 1:]
        m[::-1] = m[k] + m[:, ::-1]
        m[...] = m[k, k : k + 1] - m
        other[:, ::2] = m[: len(other), k : k + 1] - other[k, ::2]
        other[k] = np.maximum(other[k], m[k, : other.shape[1]])
        m %= 50
    return m, other


def outer(p, q, k):
    part = p[1:]
    for row in q:
        row[k] = inner(part, row, k)
    p = p.copy()
    p[:] = 7
    inner(p, q[0], k)
    return inner(part, p, k)


def inner(x, y, k):
    if k > 2:
        return y[0]
    x, y = y, x
    x[k] = y[0]
    y[:] = y[::-1].copy()
    return x[k] + y[1]


def calls_in_calls(v, m):
    s = 0.0
    for k in range(1, 5):
        s += outer(v, m, k) + inner(m[k], v[:7], k)
    return s


def made(a, k):
    b = np.zeros_like(a)
    b[k:] = a[k:] * 2
    return b


def either(a, b, k):
    if k % 2:
        return a[k:], k, None
    b[0] += 1
    return b[:-k], 2 * k, None


def transposed(a):
    return a.T + 1


def give_arrays_back(v, m):
    kept = v
    total = np.zeros(len(v))
    for k in range(1, 6):
        new, last = made(v, k), kept
        kept = made(new, 1) + new
        total += kept
        part, number, nothing = either(v, kept, k)
        part[0] = number
        m = made(m, k) + transposed(m)
        t = transposed(m)
        new[k] = -1
    return kept, last, part, number, nothing, new, total, m, t


def noted_before(v, w):
    """What stands before a call is computed before it."""
    for k in range(1, 4):
        a = v * 2 + (grown(v, k) + v)
        b = np.maximum(v - w, made(v, k) * grown(w, k))
        c, d = v / 2, grown(v, k)
        e = v + 1 < grown(v, k) * w
        v[int(grown(w, 1)) :] = w[: len(v) - int(grown(v, 1))] * 2
        w[k:] += made(w, k)[k:] * grown(w, k)
        f = (v + w).dot(w * grown(v, 1))
    return a, b, c, d, e, f


GLOBAL = np.ones(5)


def change_global(i):
    GLOBAL[i] += i
    return GLOBAL[i - 1]


def divided(p, q, k):
    for j in range(len(q)):
        p[j] += 1
        p /= q[j + k]
    return p * 1e200 * p


def leaves_in_the_middle(v, w):
    """Divisions by zero, overflows, indices out of bounds: Python begins anew at the call."""
    s = 0.0
    for k in range(3):
        t = divided(v, w[: len(w) - k], k // 2)
        w[k] *= 1e150
        s += t[0] + v[0]
    return s


def read_again(v, w):
    """A flag is raised behind what a statement has read of the array that it assigns."""
    for _ in range(3):
        w[:] = v * w[1] * 1e200
        v[1:] = np.exp(-v[1:]) * 1e308 * 10
        v[:] = w * (v @ v)
        w[:] = made(w, 1) * 1e300


def depend_on_each_other(v, w):
    i = 0
    for k in range(1, 4):
        i, v[i] = k, 7.0
        v[0], w[int(v[0])] = k, 9.0
    return i


LONG = RNG.random((4, 1300))
CASES = [
    (beside_rows, LONG, V[:4], LONG[1]),
    (beside_rows, LONG.astype("f4"), V[:4].astype("f4"), LONG[1].astype("f4")),
    (beside_rows, (LONG * 9).astype("i4"), np.arange(4, dtype="i4"), np.arange(1300, dtype="i4")),
    (beside_rows, np.asfortranarray(LONG), V[:4], LONG[1]),
    *(
        (
            long_masks,
            LONG[1].copy(),
            (LONG[0] < share) ^ (np.arange(1300) % 37 < turned),
            V[0] + LONG[2],
            LONG,
        )
        for share, turned in ((0, 0), (1, 0), (0.02, 0), (0.98, 0), (0.5, 0), (0, 18), (1, 9))
    ),
    (long_masks, LONG[1], np.repeat(LONG[0] < 0.7, 2)[::2], LONG[2], LONG.T.copy().T),
    (flow, M, M.T * 0.1, M + 1),
    (flow, np.asfortranarray(M), M * 0.2, M[:, ::-1]),
    (flow, M, M * np.inf, M + 1),
    (change_and_give_a_number, V, V + 1),
    (change_and_give_a_number, V.astype("f4"), V + 1),
    (in_conditions, V, V + 1),
    (in_conditions, V, V[:3]),
    (share_memory, V, M),
    (all_other_axes, T3, M, V),
    (all_other_axes, np.asfortranarray(T3), M.T, V[::2]),
    (own_rows_and_columns, M, M.copy()),
    (own_rows_and_columns, WIDE, WIDE[:7, 5:30]),
    (own_rows_and_columns, WIDE.astype("i4"), WIDE[:7]),
    (own_rows_and_columns, np.asfortranarray(WIDE), WIDE[:9].astype("f4")),
    (own_rows_and_columns, WIDE.astype("f4")[::-1], WIDE[5:12].astype("f4")),
    (own_rows_and_columns, WIDE[:3], WIDE[:3]),
    (calls_in_calls, V, M),
    (calls_in_calls, V, M[:3]),
    (give_arrays_back, V, M),
    (give_arrays_back, V, np.asfortranarray(M)),
    (noted_before, V, V + 1),
    (leaves_in_the_middle, V[:5], V + 1),
    (leaves_in_the_middle, V[:5], np.array([2.0, 0, 3, 1, 2, 0])),
    (leaves_in_the_middle, V[:5] * 1e60, V[:7] + 1),
    (read_again, V, V + 1),
    (read_again, V * 1e150, V),
    (lu, M),
    (cholesky, SPD),
    (rank_k, 1.5, 1.2, M, M + 1),
    (columns, RNG.random((6, 9)), RNG.random((6, 9))),
    (columns, np.asfortranarray(RNG.random((6, 9))), RNG.random((6, 9))),
    (levinson, V * 0.01),
    (jacobi, V, V + 1),
    (jacobi, V.astype("f4"), V.astype("f4")),
    (jacobi_2d, M, M + 1),
    (covariance, RNG.random((5, 8)), np.zeros((8, 8))),
    (gram_schmidt, RNG.random((8, 6)), np.zeros((8, 6)), np.zeros((6, 6))),
    (products, M, RNG.random(7), RNG.random(7)),
    (products, M.astype("f4"), RNG.random(7).astype("f4"), RNG.random(7).astype("f4")),
    (levels, T3, T3 + 0.5),
    (shifted, V),
    (shifted, np.arange(9)),
    (filled, V, M),
    (filled, V, M.astype("f4")),
    (warns, V, M),
    (warns, -V, M * 1e200),
    (wrong_shapes, V, M),
    (whole_in_place, V, V + 1),
    (whole_in_place, np.arange(5), np.arange(5)),
    (mixed, V, np.arange(-12, 12), M),
    (called, V, abs(M), V[:9] + 1),
    (called, V.astype("f4"), abs(M).astype("f4"), V[:9].astype("f4")),
    (views, M),
    (kept, V, M),
    (kept, V, np.asfortranarray(M)),
    (kept_in_rows, M, T3),
    (kept_in_rows, np.asfortranarray(M), T3),
    (kept_in_rows, M.astype("f4"), T3),
    (made_anew, 5, M),
    (gives_back, V),
    (conjugate_gradients, SPD, V[:7]),
    (sparse_product, np.array([0, 3, 3, 8]), np.arange(8) * 5 % 7, V[:8], V, V[:3]),
    (sparse_product, np.array([0, 3, 3, 8], "i4"), np.arange(8) * 9, V[:8], V, V[:3]),
    (gathers, V, np.arange(12) * 5 % 7 - 3),
    (gathers, V.astype("f4"), (np.arange(12) * 5 % 7).astype("i4")),
    (gathers, V, np.arange(12) * 5),
    (masks, V, M, 0.5),
    (masks, V, np.asfortranarray(M), 0.25),
    (masks, V.astype("f4"), M.astype("f4"), 0.5),
    (masks, V * 9 // 1, np.round(M), 3.0),
    (masks, V, M, -100.0),
    (masks, V, M, 100.0),
    (masks, V, np.where(M > 7, np.nan, M), 0.5),
    (masks_of_several_axes, T3, M, T3.copy()),
    (masks_of_several_axes, T3.transpose(0, 2, 1), M, T3 * 3),
    (masks_that_do_not_fit, V, M, V[:3] > 0.5, V),
    (masks_that_do_not_fit, V, M, V > 0.5, V[: (V > 0.5).sum()]),
    (masks_that_do_not_fit, V, M, V > 0.5, V[:1]),
    (masks_that_do_not_fit, V, M, V > 5, V[:0]),
    (masks_and_their_own_arrays, V[:5], V[:5] < 5, np.array([1, 0, -1, 3, 2])),
    (masks_and_their_own_arrays, V, V < 0.3, np.arange(8) * 3 % 8),
    (several_index_arrays, M, np.array([0, -1, 3, 3]), np.array([2, 2, -7, 0]), V),
    (several_index_arrays, M.astype("f4"), np.array([0, 1], "i4"), np.array([5, -2]), V),
    (several_index_arrays, np.asfortranarray(M), np.array([0, 1, 6])[::-1], np.arange(3), V),
    (several_index_arrays, M, np.array([0, 1, 9]), np.arange(3), V),
    (several_index_arrays, M[:5], np.arange(4), np.array([6, 1, 2, -6]), V),
    (several_index_arrays, M, np.arange(4), np.arange(5), V),
    (index_arrays_of_several_axes, T3, np.array([[0, 1], [-1, 2]]), np.arange(4)),
    (index_arrays_of_several_axes, T3, np.array([[0, 1], [-1, 2]], order="F"), np.arange(4)),
    (index_arrays_of_several_axes, T3, np.array([[0, 1]]), np.arange(4)),
    (index_arrays_of_several_axes, T3, np.array([[0, 1]] * 2, "i2"), np.arange(9)[::-2]),
    (in_functions, V, M, V > 0.4),
    (in_functions, V * 3, M, V > 0.9),
    (given_out, V, V + 1, M, M > 0),
    (given_out, V.astype("f4"), V.astype("f4"), M.astype("f4"), np.asfortranarray(M > 0)),
    (given_out, V - 0.5, V, M, M > 0),
    (given_out_that_does_not_fit, V, V.copy(), M),
    (given_out_that_does_not_fit, V, V * 0, M),
    (given_out_in_functions, V, V + 1),
    (given_out_in_functions, np.ones(5), V[:5]),
    (outer_products, V, V + 1, M),
    (outer_products, V, V + 1, np.asfortranarray(M)),
    (outer_products, V.astype("f4"), V, M),
    (powers, V, M, np.float64(0.75)),
    (powers, V, abs(M), 2.5),
    (powers, V.astype("f4"), abs(M).astype("f4"), 0.3),
    (powers, V, abs(M), 2.0),
    (powers, V - 0.1, M * 1e100, 3),
    (powers_of_other_kinds, np.arange(9), V + 1j, V > 0),
    (keywords, 4),
    (stacks, V, M, np.arange(5)),
    (stacks, V, np.asfortranarray(M), np.arange(5)),
    (stacks, V.astype("f4"), M.astype("f4"), V > 0.5),
    (stacks_that_do_not_fit, V, M),
    (triangles, M, np.arange(30).reshape(5, 6), 2),
    (triangles, np.asfortranarray(M), np.arange(30).reshape(6, 5), -3),
    (triangles, M, np.arange(30).reshape(6, 5) % 3 > 0, 2**62),
    (triangles, M, np.arange(30).reshape(6, 5) > 3, 2**63 - 1),
    (body, V[:5, None] + 1, RNG.random((5, 2)), RNG.random((5, 2)), 0.01),
    (mandelbrot, C[0] * 0, C[0] * 0.4, np.zeros((3, 3), int), 8),
    (
        fast_mandelbrot,
        np.zeros(9, complex),
        C[0].ravel() * 0.5,
        np.repeat(np.arange(3), 3),
        np.tile(np.arange(3), 3),
        np.zeros((3, 3), int),
        8,
    ),
    (reduced, V, M),
    (reduced, V * 1e308, M * 1e300),
    (reduced, V.astype("f4"), M.astype("f4")),
    (reduced, V, np.where(M > 7, np.nan, M)),
    (reversed_sums, V, M),
    (reversed_sums, V, np.asfortranarray(M)),
    (self_energies, C[:3], C[1:], C[0], C[1:]),
    (self_energies, C[:3].astype("c8"), C[1:].astype("c8"), C[0].astype("c8"), C[1:].astype("c8")),
    (self_energies, C[:3].transpose(0, 2, 1), C[1:].transpose(0, 2, 1), C[0], C[1:]),
    (self_energies, C[:3, :1, :1], C[1:, :1, :1], C[0], C[1:, :1, :1]),
    (by_steps, V, 2),
    (by_steps, V, -2),
    (by_steps, V, 0),
]


# What they do is left to Python.
REFUSED = [
    (products, (M * 3).astype("i8"), np.arange(7), np.arange(7)),
    (flow, M, M.astype("f4"), M[:, ::-1]),
    (change_and_give_a_number, np.arange(9), V),
    (depend_on_each_other, V, V + 1),
    (share_memory, V.astype("f4"), np.asfortranarray(M)),
    (products, M + 1j, RNG.random(7) + 2j, RNG.random(7) + 0j),
    (given_out, V + 1j, V + 1, M, M > 0),
    (masks, np.arange(24), np.arange(49).reshape(7, 7), 5),
    (index_arrays_apart, T3, np.array([0, 1])),
    (axes_that_there_are_not, T3, M, V),
]


def with_code_of_its_own(function):
    """The same function, whose loops have no programs from the calls of other tests."""
    return types.FunctionType(function.__code__.replace(), function.__globals__)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_native_arrays(case):
    function, *args = case
    # Before NEP 50 products of integers and numbers are NumPy's.
    known = np.lib.NumpyVersion(np.__version__) >= "2.0.0" or all(
        a.dtype == float for a in args if isinstance(a, np.ndarray)
    )
    check(with_code_of_its_own(function), *args, native=known, most=40, name=__file__)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0].__name__)
def test_arrays_that_are_left_to_python(case):
    function, *args = case
    check(function, *args, native=False, most=20, name=__file__)


def test_one_array_in_two_places():
    """Parts of one array that are written and read, under two names."""
    base = RNG.random(30)

    def f(base, i):
        a, b = base[:20], base[5:25]
        for i in range(1, 4):
            a[i:] = b[:-i] * 2
            b[i:-1] += a[i + 1 :] - b[i:-1]
        return base

    check(f, base, 0, name=__file__)


@pytest.mark.parametrize("strides", [(8, 8), (8, 16), (0, 8), (16, 8), (-8, 8)])
def test_arrays_whose_elements_share_memory(strides):
    """The order in which their elements are written is NumPy's."""

    def f(base):
        x = np.lib.stride_tricks.as_strided(base[12:], (5, 4), strides)
        for i in range(3):
            x[1:, i:] = x[:-1, i:] * 2 + i
            x[i] += x[:, i][:4]
        return base

    check(f, np.arange(40.0), name=__file__)


@pytest.mark.parametrize(
    "length",
    [8191, 8192, 8193, 50_000, 1 << 20, (1 << 20) + 1, 3 << 19, 1 << 21, (1 << 21) + 1],
)
def test_products_and_sums_of_long_vectors(length):
    def f(x, y):
        for i in range(2):  # a statement for each, since some are left to NumPy
            a = np.dot(x, y)
            b = x @ y
            c = x[: -i - 1].dot(y[i + 1 :])
            d = np.linalg.norm(x)
            e = x.sum()
            g = y[::2].sum()
            h = x[i + 1 :].mean()
            k = x[: -i - 1].std()
            m = x.max() + y.prod()
        return a, b, c, d, e, g, h, k, m

    x = RNG.random(length)
    check(f, x, x[::-1].copy(), most=12, name=__file__)


def test_flags_of_before_are_not_a_statements_own():
    """Python's floats overflow without a word, and leave the processor's flag raised."""

    def f(x, s):
        for i in range(50):
            s = s * 1e200
            x[:] = x + i
            t = s - s
            a = x.sum() + (x @ x) + np.dot(x, x) + np.sqrt(x).sum()
        return x, s, t, a

    made = looped(f)
    with told(eager=True):
        alike(outcome(made, [V, 2.0]), outcome(f, [V, 2.0]))
    (loop,) = heads.loops_of(made.__code__)
    assert [version["exits"] for version in loop.facts["versions"]] == [0]


@pytest.mark.parametrize("length", [0, 1, 2, 50])
def test_dot_warns_as_numpy_does(length):
    """From NumPy 2.3 on."""

    def f(x, y):
        for _ in range(3):
            a = np.dot(x, y), x.dot(x), np.linalg.norm(y)
        return a

    check(f, np.full(length, 1e200), np.full(length, 1e200), name=__file__)
    check(f, np.full(length, np.inf), np.full(length, -1.0), name=__file__)
    check(f, np.full(length, 1e-200), np.full(length, 1e-200), name=__file__)


def test_large_arrays_are_left_to_numpy():
    def f(x):
        for _ in range(3):
            x[1:] = x[:-1] * 0.5 + 1
        return x

    check(f, RNG.random(40_000), most=3, name=__file__)


def test_an_array_that_a_function_may_not_change():
    def f(x):
        frozen = x[:]
        frozen.flags.writeable = False
        s = 0.0
        for i in range(1, 3):
            s += grown(x, i)
            s += grown(frozen, i)
        return s

    check(f, V, native=False, name=__file__)


def test_an_array_that_a_function_has_not_been_given():
    def f(s):
        for i in range(1, 4):
            s += change_global(i)
        return s, GLOBAL.copy()

    GLOBAL[:] = 1
    expected = outcome(f, (0.5,), __file__)
    GLOBAL[:] = 1
    with told(eager=True):
        alike(outcome(looped(f), (0.5,), __file__), expected)


def test_warnings_that_are_errors():
    """NumPy raises before it assigns anything."""

    def f(v, w):
        for i in range(1, 4):
            v[1:] = w[1:] + 1
            v[i:] = w[i:] * 1e300 * v[i]

    def strict(v, w):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return native(v, w)

    native = f
    expected = outcome(strict, (V, V * 1e10))
    native = looped(f)
    with told(eager=True):
        ours = outcome(strict, (V, V * 1e10))
    assert ours[0][:2] == expected[0][:2]
    alike(ours[1:], expected[1:])


class Stop(Exception):
    pass


def counted(v, n):
    v[0] += 1
    for k in range(n):
        v[1] += 1
        v[2] = k
    v[3] += n
    return v[0]


def test_a_signal_stops_a_loop_inside_a_function():
    """What the function has changed is put back: the statement has been done as a whole, or not."""

    def f(v, n, rounds):
        s = 0.0
        for _ in range(rounds):
            s += counted(v, n)
        return s

    def stop(*_):
        raise Stop

    native, v = looped(f), np.zeros(4)
    with told(eager=True):
        native(v.copy(), 2, 3)
        before = signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            with pytest.raises(Stop):
                native(v, 3_000_000, 1_000_000)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    assert v[1] == v[3] == v[0] * 3_000_000
    assert v[2] == (2_999_999 if v[0] else 0)


TEMPORARIES = """
def f(x, y, z):
    for i in range(1, 4):
        x[:] = z + x * y
        {} (y[i:] * z[:-i] - z[i:])
    return x
"""


@pytest.mark.parametrize(
    ("dtype", "other", "size"),
    [
        *(("f8", "f8", size) for size in (32_767, 32_768)),
        *(("f4", "f4", size) for size in (65_535, 65_536)),
        *(("f4", "f8", size) for size in (32_767, 32_768, 65_535)),
        *(("c8", "c8", size) for size in (32_767, 32_768)),
        *(("c16", "c16", size) for size in (16_383, 16_384)),
        *(("i4", "i4", size) for size in (65_535, 65_536)),
    ],
)
def test_numpy_writes_over_its_own_temporaries(dtype, other, size):
    """From some size on, which of several NaNs a sum gives is another one."""
    # `x += v` of another dtype is left to Python.
    changed = "x[i:] +=" if dtype == other else "x[i:] = x[i:] +"
    f = function_of(TEMPORARIES.format(changed), {})
    x, y, z = (RNG.integers(1, 9, size).astype(each) for each in (dtype, dtype, other))
    if x.dtype.kind != "i":
        for each, number in ((x, np.nan), (y, -np.nan), (z, np.copysign(np.nan, -1))):
            each[RNG.integers(0, size, size // 3)] = number
    check(f, x, y, z, most=3, name=f.__code__.co_filename)


def test_large_arrays_are_not_kept_aside():
    def f(x, s):
        for i in range(3):
            s += grown(x, i)
        return x, s

    check(f, RNG.random(40_000), 0.5, most=3, name=__file__)


SLICES = ["i:", ":i", "1:-1", "::2", "::-1", ":", "i-1:i+2", "-3:", "i::2", "-2::-1"]
DTYPES = ["f8", "f8", "f8", "f4", "i8", "i4", "c16", "?"]


class Writer:
    """One random function about parts of the vectors x and y and the matrices m and n, as text.

    Mostly it calls another one about the same, `g`, which gives back a number, an array, both or
    nothing.
    """

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.gives = None  # what g gives back, once it is written

    def pick(self, *choices):
        return self.rng.choice(choices)

    def part(self, part, axes):
        """A part of an array: mostly the same slices, so that most shapes fit."""
        if self.rng.random() < 0.15:
            part = self.rng.choice(SLICES)
        if axes == 2:
            return f"{self.pick('m', 'n')}[{part}, {part}]"
        return self.pick(
            f"x[{part}]", f"y[{part}]", f"m[i, {part}]", f"m[{part}, i]", f"n[{part}, i - 1]"
        )

    def array(self, part, axes, depth=0):
        kind = self.rng.random()
        if self.gives == "array" and axes == 1 and self.rng.random() < 0.2:
            return self.call()
        if depth > 2 or kind < 0.35:
            return self.part(part, axes)
        if kind < 0.45:
            function = self.pick("np.sqrt", "abs", "np.exp", "np.sin", "-", "np.square")
            return f"{function}({self.array(part, axes, depth + 1)})"
        if kind < 0.5 and axes == 1:
            return f"(m[{part}, {part}] @ {self.part(part, 1)})"
        if kind < 0.55 and axes == 1:
            return self.chosen(part)
        one = self.array(part, axes, depth + 1)
        other = self.number() if self.rng.random() < 0.4 else self.array(part, axes, depth + 1)
        pair = [one, other]
        self.rng.shuffle(pair)
        if self.rng.random() < 0.1:
            return f"np.maximum({pair[0]}, {pair[1]})"
        if self.rng.random() < 0.05:
            return f"({one} ** {self.pick('2', '0.5', '-1.5', '3', 'i', 'a')})"
        op = self.pick("+", "+", "-", "*", "*", "/", "//", "%", "<", "**")
        return f"({pair[0]} {op} {pair[1]})"

    def chosen(self, part):
        """Elements at integers, or where something is true."""
        vector = self.pick("x", "y", "m[i]")
        return self.pick(
            f"{vector}[k[{part}]]",
            f"{vector}[{vector} > {self.pick('0', 'a', '1')}]",
            f"{self.pick('x', 'y')}[m[i] < n[i]]",
            f"m[k[{part}], k[{part}]]",
            f"m[{self.pick('i', '-1')}, k[{part}]]",
            f"n[m[:, i] > y, {self.pick('i', '1')}]",
            f"m[m > {self.pick('0', 'a')}]",
        )

    def chosen_of_two_axes(self):
        return self.pick("m[k]", "n[..., k]", "m[x > 0]", "n[:, y > a]", "m[k, 1:]", "n[2:, x < y]")

    def call(self):
        def vector():
            return self.pick("x", "x", "y", "y", "m[i, ...]", "x[::-1]", "m[:, i]", "w")

        square = self.pick("m, n", "n, m", "m, m", "m.T, n")
        return f"g({vector()}, {vector()}, {square}, k, {self.pick('i', 'i', '1')}, a)"

    def function(self):
        """The text of g."""
        gives = self.pick("number", "number", "array", "array", "both", "nothing")
        lines = ["def g(x, y, m, n, k, i, a):", "    v = w = y"]
        results = {
            "number": ["x[i]", "m[i, 1] * 2"],
            "array": ["w", "x[i:]", "x * 2", "v"],
            "both": ["(w, x[i])", "(x[:-i], y[1])"],
            "nothing": [""],
        }[gives]
        for _ in range(self.rng.randint(1, 3)):
            lines.append(f"    {self.statement()}")
        if self.rng.random() < 0.4:
            lines.append(f"    if x[0] < {self.number()}:")
            lines.append(f"        return {self.pick(*results)}")
            lines.append(f"    {self.statement()}")
        if gives != "nothing":
            lines.append(f"    return {self.pick(*results)}")
        self.gives = gives
        return lines

    def number(self):
        if self.gives == "number" and self.rng.random() < 0.3:
            return self.call()
        dot = "np.dot({0}, {0})" if self.rng.random() < 0.5 else "({0} @ {0})"
        return self.pick(
            "i",
            "a",
            "2",
            "0.5",
            "1e200",
            "x[i]",
            "m[i, 1]",
            "np.float32(1.5)",
            "True",
            dot.format("x[:i]"),
            f"{self.pick('x[i:]', 'm[i]', 'n[:, i]', 'm', '(m * n)')}.{self.reduction()}()",
            f"np.{self.reduction()}({self.pick('y', 'x[:i]', 'n', 'm[i] * y', 'n.T')})",
        )

    def reduction(self):
        return self.pick("sum", "max", "min", "prod", "mean")

    def statement(self):
        part = self.rng.choice(SLICES)
        axes = 2 if self.rng.random() < 0.25 else 1
        kind = self.rng.random()
        if self.gives is not None and self.rng.random() < 0.4:
            call = self.call()
            ways = {"number": f"a = {call}", "array": f"w = {call}", "both": f"w, a = {call}"}
            return self.pick(call, ways.get(self.gives, call))
        if kind < 0.1:
            return f"a = {self.pick('np.dot', 'np.matmul')}(x[:i], y[:i]) * 0.5"
        if kind < 0.2:
            return f"{self.part(part, axes)} = {self.number()}"
        if kind < 0.3:
            return f"{self.pick('x', 'y', 'm')} {self.pick('+', '*')}= {self.number()}"
        if kind < 0.4:
            return f"w = {self.array(part, axes)}"
        if kind < 0.45:
            return f"v, w = w, {self.array(part, axes)}"
        if kind < 0.53:
            target = self.chosen(part) if axes == 1 else self.chosen_of_two_axes()
            value = self.number()
            if self.rng.random() < 0.3:
                value = self.chosen(part) if axes == 1 else self.chosen_of_two_axes()
            return f"{target} {self.pick('', '', '+', '*')}= {value}"
        if kind < 0.56:
            to = self.part(part, axes)
            pair = f"{self.part(part, axes)}, {self.pick(to, self.part(part, axes), self.number())}"
            ufunc = self.pick("add", "multiply", "subtract", "arctan2", "hypot")
            return f"np.{ufunc}({pair}, {self.pick('', 'out=')}{to})"
        if kind < 0.58:
            outer = self.pick("np.add.outer", "np.outer", "np.multiply.outer")
            return f"{self.pick('m[...]', 'n', 'w')} = {outer}({self.pick('x', 'm[:, i]')}, y)"
        if kind < 0.6:
            return f"w = {self.chosen(part) if axes == 1 else self.chosen_of_two_axes()}"
        if kind < 0.7:
            op = self.pick("+", "-", "*", "/", "//")
            return f"{self.part(part, axes)} {op}= {self.array(part, axes)}"
        return f"{self.part(part, axes)} = {self.array(part, axes)}"

    def text(self):
        lines = [
            *(self.function() if self.rng.random() < 0.7 else ()),
            "def f(x, y, m, n, k, a):",
            "    v = w = x",
            f"    for i in range(1, {self.rng.randint(3, 6)}):",
        ]
        for _ in range(self.rng.randint(1, 4)):
            lines.append(f"        {self.statement()}")
        return "\n".join([*lines, "    return a, i, v, w"]) + "\n"


def arguments(seed):
    rng = np.random.default_rng(seed)
    pick = random.Random(seed + 1)
    common = pick.choice(DTYPES)

    def array(*shape):
        dtype = np.dtype(common if pick.random() < 0.8 else pick.choice(DTYPES))
        if dtype.kind == "c":
            made = rng.normal(0, 3, shape) + 1j * rng.normal(0, 3, shape)
        elif dtype.kind == "f":
            made = rng.normal(0, 3, shape).astype(dtype)
            if pick.random() < 0.1:
                made.flat[2] = np.nan
        else:
            made = rng.integers(0, 2 if dtype.kind == "b" else 9, shape).astype(dtype)
        return np.asfortranarray(made) if pick.random() < 0.2 else made

    numbers = [1, -2, 0.5, np.float64(0.25), np.int64(3)]
    index = rng.integers(-8, 8, 8).astype(pick.choice(["i8", "i4", "u1"]) if seed % 9 else "f8")
    return array(8), array(8), array(8, 8), array(8, 8), index, pick.choice(numbers)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_random_statements(seed):
    text = Writer(seed).text()
    name = f"<arrays {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {"np": np, "__name__": __name__}
    exec(compile(text, name, "exec"), names)
    try:
        check(names["f"], *arguments(seed), native=False, most=7, name=name)
    except BaseException:
        print(text)
        raise


# One statement, in a loop over `i`; `k` is an int, `c` a number.
OTHER_FUNCTIONS = [
    *("v = np.roll(v, i)", "v = np.roll(v, -i - k)", "m = np.roll(m, k, axis=0)"),
    *("m = np.roll(m, i, 1)", "m = np.roll(m.T, k, -1)", "m = np.roll(m[:, 1:], 1, axis=1)"),
    *(
        "v = np.roll(v[i:], k) - np.roll(v, 1)[i:]",
        "v = np.roll(v[:0], 1)",
        "v = np.roll(v * 2, 2)",
    ),
    *("v = np.clip(v, 0, 1)", "v = np.clip(v, c, 2)", "m = np.clip(m * 2, -c, c)"),
    *("v = v.clip(c, 3) * i", "c = np.clip(c, 0, 1)", "c = np.clip(v[i], -0.0, c)"),
    *("c = np.clip(k, i, 3)", "c = np.clip(v[0], 2, 1)", "m[i] = np.clip(m[i], 0, k)"),
    *(
        "v = np.cumsum(v)",
        "v = np.cumsum(v[::-1]) + i",
        "v = np.cumsum(m[i])",
        "v = np.cumsum(v > 0)",
    ),
    *("v = np.cumsum(v[:0])", "v = np.diff(v)", "v = np.diff(m[:, 0]) * i", "v = np.diff(v[3:])"),
    *("v = v[: i + 1] * np.arange(i + 1)", "v = np.arange(k, i + 5)", "v = v[np.arange(1, 4)]"),
    *("v = np.arange(i - 2)", "v = v + np.arange(2 - k, len(v) - k + 2)"),
]


@pytest.mark.parametrize("dtype", ["f8", "f4", "i2", "c16"])
def test_other_functions(dtype):
    special = [0.0, -0.0, 1.5, -2.0, 3.0, 1e30 if dtype == "f8" else 7, 0.5]
    m = (5 * RNG.normal(size=(4, 3))).astype(dtype)
    for statement in OTHER_FUNCTIONS:
        text = f"def f(v, m, k, c):\n    for i in range(3):\n        {statement}\n    return v, m, k, c\n"
        # Products of complex numbers are left to Python, and with NumPy 1 numbers beside arrays
        # of another dtype.
        is_product = "clip" in statement or "*" in statement
        native = dtype == "f8" or (np.__version__ >= "2" and not (dtype == "c16" and is_product))
        function = function_of(text, {"np": np})
        for v in (np.array(special), np.array([math.nan, -1e308, math.inf, 1e308, 2.0])):
            if dtype in ("f8", "f4") or np.isfinite(v).all():
                with np.errstate(all="ignore"):
                    v = v.astype(dtype)
                for c in (0.75, -1) if dtype != "c16" else (1,):
                    check(function, v, m, 1, c, native=native, most=5)
