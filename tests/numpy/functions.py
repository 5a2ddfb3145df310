"""One call of each function of NumPy, as text: what the tests of whole functions go through.

``a`` (3, 4) float64, ``b`` (3, 4) float64, ``v`` (5,) float64, ``i`` (3, 4) int64, ``m`` (3, 4)
bool, ``z`` (3, 4) complex128, ``s`` (3, 3) float64 and well conditioned, ``f`` (3, 4) float32.
"""

import numpy as np

EXPRESSIONS = """
np.abs(a)                           np.add(a, b)                       np.all(m)
np.all(a, axis=0)                   np.allclose(a, b)                  np.amax(a)
np.amin(a, axis=1)                  np.angle(z)                        np.any(m, axis=1)
np.append(a, b)                     np.append(a, b, axis=0)            np.apply_along_axis(np.sum, 0, a)
np.apply_over_axes(np.sum, a, [0])  np.arange(5) + v                   np.argmax(a)
np.argmax(a, axis=1)                np.argmin(a, axis=0)               np.argpartition(v, 2)
np.argsort(a)                       np.argsort(a, axis=0)              np.argwhere(m)
np.around(a, 1)                     np.array(a)                        np.array([a, b])
np.array([a[0, 0], 1.0])            np.array_equal(a, b)               np.array_equiv(a, b)
np.array_split(v, 2)                np.asarray(a)                      np.asarray(a, np.float32)
np.asfarray(i) if hasattr(np, 'asfarray') else 0
np.ascontiguousarray(a.T)           np.asfortranarray(a)               np.atleast_1d(a[0, 0])
np.atleast_2d(v)                    np.atleast_3d(a)                   np.average(a)
np.average(a, axis=1, weights=b)    np.average(a, axis=1, weights=b[0])
np.bartlett(5) * v                  np.bincount(i.ravel())             np.blackman(5) * v
np.block([[a, b], [b, a]])          np.broadcast_arrays(a, v[:4])      np.broadcast_to(v, (2, 5))
np.cbrt(a)                          np.ceil(a)                         np.choose(i % 2, [a, b])
np.clip(a, -0.5, 0.5)               np.clip(i, 1, 3)                   np.clip(a, None, b)
np.column_stack([a, b])             np.compress([True, False, True], a, axis=0)
np.concatenate([a, b])              np.concatenate([a, b], axis=1)     np.conj(z)
np.convolve(v, v)                   np.copy(a)                         np.copysign(a, b)
np.corrcoef(a)                      np.correlate(v, v)                 np.count_nonzero(m)
np.count_nonzero(a, axis=0)         np.cov(a)                          np.cov(a, b)
np.cross(a[:, :3], b[:, :3])        np.cumprod(v)                      np.cumsum(a, axis=0)
np.deg2rad(a)                       np.delete(v, 1)                    np.diag(v)
np.diag(s)                          np.diagflat(v)                     np.diagonal(s)
np.diff(v)                          np.diff(a, axis=0, n=2)            np.digitize(v, np.sort(v))
np.divide(a, b)                     np.divmod(a, b)                    np.dot(a, b.T)
np.dot(v, v)                        np.dsplit(a.reshape(3, 2, 2), 2)   np.dstack([a, b])
np.ediff1d(v)                       np.einsum('ij,ij->i', a, b)        np.einsum('ij->ji', a)
np.exp(a)                           np.expand_dims(a, 1)               np.expm1(a)
np.extract(m, a)                    np.eye(3) * s                      np.fft.fft(v)
np.fft.fft2(s)                      np.fft.fftfreq(5) * v              np.fft.fftshift(v)
np.fft.ifft(z[0])                   np.fft.ifftshift(v)                np.fft.irfft(z[0])
np.fft.rfft(a)                      np.fft.fftn(a)                     np.fft.hfft(z[0])
np.fix(a)                           np.flatnonzero(m)                  np.flip(a)
np.flip(a, 1)                       np.fliplr(a)                       np.flipud(a)
np.float_power(np.abs(a), b)        np.floor(a)                        np.floor_divide(a, b)
np.fmax(a, b)                       np.fmin(a, b)                      np.fmod(a, b)
np.frexp(a)                         np.full((2, 3), 1.5) + a[:2, :3]   np.full_like(a, 2)
np.gcd(i, 6)                        np.geomspace(1, 10, 5) * v         np.gradient(v)
np.gradient(a)                      np.gradient(a, axis=1)             np.greater(a, b)
np.hamming(5) * v                   np.hanning(5) * v                  np.heaviside(a, 0.5)
np.histogram(v)                     np.histogram(a, bins=4, range=(-1, 1))
np.histogram2d(v, v[::-1])          np.histogram_bin_edges(v)          np.hsplit(a, 2)
np.hstack([a, b])                   np.hypot(a, b)                     np.i0(v)
np.identity(3) + s                  np.imag(z)                         np.in1d(i, [1, 2]) if hasattr(np, 'in1d') else 0
np.indices((3, 4)) + a              np.inner(a, b)                     np.insert(v, 1, 5.0)
np.interp(v, np.arange(5.0), v)     np.intersect1d(i, [1, 2])          np.invert(i)
np.isclose(a, b)                    np.iscomplex(z)                    np.iscomplexobj(z)
np.isfinite(a)                      np.isin(i, [1, 2])                 np.isinf(a)
np.isnan(a)                         np.isneginf(a)                     np.isposinf(a)
np.isreal(z)                        np.isrealobj(a)                    np.isscalar(a)
np.ix_(v > 0, v < 9)                np.kaiser(5, 2.0) * v              np.kron(a, s)
np.lcm(i, 4)                        np.ldexp(a, i)                     np.left_shift(i, 1)
np.lexsort((v, v))                  np.linspace(0, 1, 5) * v           np.linspace(a[0], b[0], 3)
np.linalg.cholesky(s @ s.T + 9 * np.eye(3))                            np.linalg.cond(s)
np.linalg.det(s)                    np.linalg.eig(s)                   np.linalg.eigh(s + s.T)
np.linalg.eigvals(s)                np.linalg.eigvalsh(s + s.T)        np.linalg.inv(s)
np.linalg.lstsq(a.T, b[0], rcond=None)                                 np.linalg.matrix_power(s, 3)
np.linalg.matrix_rank(s)            np.linalg.multi_dot([a, b.T, a])   np.linalg.norm(v)
np.linalg.norm(a)                   np.linalg.norm(a, axis=0)          np.linalg.norm(a, axis=1, keepdims=True)
np.linalg.norm(a, 1)                np.linalg.norm(a, np.inf, axis=1)  np.linalg.norm(a, ord=1, axis=1)
np.linalg.norm(a, 'fro')            np.linalg.norm(a, 'nuc')           np.linalg.norm(v, 3)
np.linalg.norm(z, axis=-1)          np.linalg.norm(i, axis=0)          np.linalg.norm(f, axis=0)
np.linalg.pinv(a)                   np.linalg.qr(a)                    np.linalg.slogdet(s)
np.linalg.solve(s, v[:3])           np.linalg.svd(a)                   np.linalg.svd(a, compute_uv=False)
np.linalg.tensorinv(np.eye(4).reshape(2, 2, 2, 2) + a[0, 0])
np.log(np.abs(a))                   np.log10(np.abs(a))                np.log1p(np.abs(a))
np.log2(np.abs(a))                  np.logaddexp(a, b)                 np.logical_and(a, m)
np.logical_not(m)                   np.logical_or(m, a)                np.logical_xor(m, ~m)
np.logspace(0, 1, 5) * v            np.matmul(a, b.T)                  np.max(a)
np.max(a, axis=(0, 1))              np.maximum(a, b)                   np.mean(a)
np.mean(a, axis=0)                  np.mean(i)                         np.mean(i, axis=1)
np.mean(f)                          np.mean(f, axis=0)                 np.mean(z, axis=0)
np.mean(a, axis=0, keepdims=True)   np.mean(a, where=m)                np.mean(a, dtype=np.float32)
np.median(a)                        np.median(a, axis=0)               np.median(v)
np.meshgrid(v, v)                   np.min(a)                          np.minimum(a, b)
np.mod(a, b)                        np.modf(a)                         np.moveaxis(a.reshape(3, 2, 2), 0, -1)
np.multiply(a, b)                   np.nan_to_num(a)                   np.nanargmax(a)
np.nanargmin(a, axis=0)             np.nancumprod(v)                   np.nancumsum(a, axis=0)
np.nanmax(a)                        np.nanmax(a, axis=0)               np.nanmean(a)
np.nanmean(a, axis=0)               np.nanmedian(a)                    np.nanmedian(a, axis=0)
np.nanmin(a, axis=1)                np.nanpercentile(v, 30)            np.nanprod(a)
np.nanquantile(v, 0.3)              np.nanstd(a)                       np.nanstd(a, axis=0)
np.nansum(a)                        np.nansum(a, axis=0)               np.nanvar(a, axis=1)
np.ndim(a)                          np.negative(a)                     np.nextafter(a, b)
np.nonzero(m)                       np.not_equal(a, b)                 np.ones(5) * v
np.ones_like(a)                     np.outer(v, v)                     np.packbits(m)
np.pad(a, 1)                        np.pad(a, 1, mode='edge')          np.pad(a, ((1, 0), (0, 2)), mode='reflect')
np.pad(v, 2, mode='wrap')           np.pad(v, 2, constant_values=3)    np.pad(a, 2, mode='linear_ramp')
np.pad(a, 1, mode='mean')           np.partition(v, 2)                 np.percentile(v, 30)
np.percentile(a, [10, 50], axis=0)  np.piecewise(v, [v < 0, v >= 0], [-1, 1])
np.place(a, m, v)                   np.poly(v)                         np.polyadd(v, v)
np.polyder(v)                       np.polydiv(v, v[:2])               np.polyfit(v, v, 1)
np.polyint(v)                       np.polymul(v, v)                   np.polysub(v, v)
np.polyval(v, a)                    np.positive(a)                     np.power(np.abs(a), b)
np.prod(a)                          np.prod(a, axis=1)                 np.ptp(a)
np.ptp(a, axis=0)                   np.put(a, [0, 1], v)               np.putmask(a, m, b)
np.quantile(v, 0.3)                 np.quantile(a, 0.5, axis=1)        np.rad2deg(a)
np.ravel(a)                         np.ravel(a, 'F')                   np.ravel(a.T, 'K')
np.real(z)                          np.real_if_close(z)                np.reciprocal(a)
np.remainder(a, b)                  np.repeat(a, 2)                    np.repeat(a, 2, axis=0)
np.reshape(a, (4, 3))               np.reshape(a, -1)                  np.resize(a, (2, 2))
np.result_type(a, f)                np.right_shift(i, 1)               np.rint(a)
np.roll(a, 1)                       np.roll(a, 1, axis=0)              np.roll(a, (1, 2), axis=(0, 1))
np.rollaxis(a.reshape(3, 2, 2), 2)  np.roots(v)                        np.rot90(a)
np.round(a, 2)                      np.round(a)                        np.searchsorted(np.sort(v), a)
np.select([a < 0, a > 1], [a, b])   np.setdiff1d(i, [1])               np.setxor1d(i, [1, 2])
np.shape(a)                         np.sign(a)                         np.signbit(a)
np.sin(a)                           np.sinc(a)                         np.size(a)
np.sort(a)                          np.sort(a, axis=0)                 np.sort(a, axis=None)
np.sort_complex(z)                  np.spacing(a)                      np.split(v, [2, 3])
np.sqrt(np.abs(a))                  np.square(a)                       np.squeeze(a[None])
np.stack([a, b])                    np.stack([a, b], axis=-1)          np.std(a)
np.std(a, axis=0)                   np.std(f, axis=1)                  np.std(i)
np.std(a, ddof=1)                   np.subtract(a, b)                  np.sum(a)
np.sum(a, axis=0)                   np.sum(a, axis=-1, keepdims=True)  np.sum(i, dtype=np.int32)
np.sum(a, where=m)                  np.sum(a, initial=5.0)             np.swapaxes(a, 0, 1)
np.take(a, [0, 1])                  np.take(a, [0, 1], axis=1)         np.take_along_axis(a, i % 4, 1)
np.tan(a)                           np.tensordot(a, b, axes=2)         np.tensordot(a, b.T, axes=1)
np.tile(a, 2)                       np.tile(v, (2, 1))                 np.trace(s)
np.transpose(a)                     np.transpose(a.reshape(3, 2, 2), (2, 0, 1))
(np.trapezoid if hasattr(np, 'trapezoid') else np.trapz)(v)
(np.trapezoid if hasattr(np, 'trapezoid') else np.trapz)(a, axis=0)
np.tri(3) + s                       np.tril(s)                         np.trim_zeros(v)
np.triu(s, 1)                       np.true_divide(a, b)               np.trunc(a)
np.union1d(i, [9])                  np.unique(i)                       np.unique(i, return_counts=True)
np.unpackbits(np.packbits(m))       np.unravel_index(5, (3, 4))        np.unwrap(v)
np.vander(v)                        np.var(a)                          np.var(a, axis=0)
np.var(z)                           np.var(z, axis=0)                  np.var(f, axis=None)
np.vdot(v, v)                       np.vsplit(s, 3)                    np.vstack([a, b])
np.where(m, a, b)                   np.where(m)                        np.where(a > 0, a, 0)
np.zeros(5) + v                     np.zeros_like(a) + 1               np.empty_like(a).shape
np.lib.stride_tricks.sliding_window_view(v, 3)                         np.fill_diagonal(s, 0)
np.apply_along_axis(lambda r: r * 2, 1, a)                             np.vectorize(lambda q: q + 1)(a)
np.fromfunction(lambda p, q: p + q, (3, 4)) + a                        np.copyto(a, b)
np.copyto(a, 3)                     np.copyto(a, b, where=m)           np.add.accumulate(a)
np.add.reduceat(v, [0, 2])          np.add.outer(v, v)                 np.multiply.outer(v, a)
np.add.at(v, [0, 0, 1], 1.0)        np.random.default_rng(0).normal(size=(3, 4)) + a
np.random.default_rng(0).permutation(v)                                np.mgrid[0:3, 0:4] + a
np.r_[v, v]                         np.c_[v, v]                        np.s_[1:2]
np.lib.stride_tricks.as_strided(v, (3, 3), (8, 8))                     np.asarray([a[0], b[0]])
np.dot(s, v[:3])                    a @ b.T                            v @ v
a.mean()                            a.mean(axis=0)                     a.std(axis=1)
a.var(ddof=1)                       a.sum()                            a.max(axis=0)
a.clip(0, 1)                        a.round(1)                         a.cumsum()
a.dot(b.T)                          a.trace()                          a.repeat(2)
a.take([1, 2])                      a.argsort()                        a.nonzero()
a.diagonal()                        a.T.copy()                         a.astype(np.float32)
a.astype(int)                       a.ravel()                          a.flatten()
a.reshape(2, 6)                     a.tolist()                         a.item(3)
a.sort()                            v.partition(2)                     a.fill(3)
a.put([0], [9.0])                   a.swapaxes(0, 1)                   a.view(np.int64)
a.view()                            a.tobytes()                        a.conj()
a.imag                              z.real                             z.imag
a.nbytes                            a.itemsize                         a.flags.c_contiguous
a.prod(axis=0)                      m.any()                            m.all(axis=1)
a.searchsorted(0.5)                 a.choose([1]) if 0 else 0          a.compress([True], axis=0)
a.argmin()                          a.argmax(axis=1)                   a.squeeze()
a.transpose()                       a.byteswap()                       a.cumprod(axis=1)
type(a)                             type(a[0, 0])                      type(a.sum())
isinstance(a, np.ndarray)           isinstance(a[0, 0], np.floating)   isinstance(a[0, 0], float)
len(a)                              [x * 2 for x in v]                 list(v)
float(v[0])                         int(v[0])                          bool(v[0] > 0)
str(a)                              repr(v)                            f'{v[0]:.3f}'
sum(v)                              max(v)                             min(v)
sorted(v)                           abs(a)                             round(v[0], 2)
round(float(v[0]), 2)               divmod(a, 2)                       pow(a, 2)
a ** 2                              a ** 0.5                           2 ** a
a ** -1                             a // 2                             a % 0.3
-a                                  ~i                                 i & 3
i | 8                               i ^ 5                              i << 2
a < b                               a == b                             a != 0
m & (a > 0)                         m | (a > 0)                        ~m
a[0]                                a[..., 0]                          a[:, None]
a[1:, ::-1]                         a[[0, 2]]                          a[m]
a[a > 0]                            a[i[0] % 3, 0]                     a[0, 0]
a[-1]                               a[()]                              a[None, ..., None]
(a, b)                              [a, [b, {'k': a + b}]]             {'x': a * 2, 'y': (v, 1)}
np.testing.assert_allclose(a, a)    np.linalg.norm(a - v[:3, None], axis=1)
np.ma.masked_array(a, m).sum()      np.polynomial.polynomial.polyval(a, v)
np.isclose(a[0, 0], 1.0)            np.char.add(['a'], ['b'])          np.datetime64('2020-01-01')
np.float32(a)                       np.float64(v[0])                   np.int64(3) * v
np.double(3) + f                    np.bool_(m[0, 0])                  np.iinfo(i.dtype).max
np.finfo(a.dtype).eps               np.array2string(v)                 np.save('/dev/null', a)
""".strip()


def arguments():
    """Arrays by name; the same values each time."""
    rng = np.random.default_rng(7)
    return {
        "a": rng.normal(size=(3, 4)),
        "b": rng.normal(size=(3, 4)),
        "v": rng.normal(size=5),
        "i": rng.integers(0, 9, (3, 4)),
        "m": rng.random((3, 4)) < 0.5,
        "z": rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4)),
        "s": rng.normal(size=(3, 3)),
        "f": rng.normal(size=(3, 4)).astype(np.float32),
    }


def cases():
    """``(text, function, arguments)`` of every expression that this NumPy has."""
    given = arguments()
    for line in EXPRESSIONS.splitlines():
        for text in line.split("  "):
            text = text.strip()
            if not text:
                continue
            function = eval(f"lambda {', '.join(given)}: {text}", {"np": np})
            yield text, function, list(given.values())
