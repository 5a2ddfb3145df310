"""One call of many functions of other packages, as text: what traced code hands its arrays to.

``x`` (300,) and ``y`` (300,) float64, ``t`` (300,) ascending float64, ``A`` (12, 12) float64 and
well conditioned, ``S`` the same, symmetric and positive definite, ``z`` (12, 12) complex128,
``P`` (60, 3) float64 points, ``im`` (24, 24) float64 image, ``k`` (60,) int64 labels from 0 to 4.
A package that is not installed is left out.
"""

import importlib
import re
import zlib

import numpy as np
from texts import function_of

NAMES = "x, y, t, A, S, z, P, im, k"

PACKAGES = {
    "numpy": """
np.linalg.svd(A)                    np.linalg.eigh(S)                   np.linalg.lstsq(A, x[:12], rcond=None)
np.linalg.qr(A)                     np.linalg.cholesky(S)               np.linalg.pinv(A)
np.linalg.matrix_rank(A)            np.linalg.slogdet(A)                np.linalg.solve(A, x[:12])
np.polyfit(t, x, 3)                 np.polyval([1.0, 2.0], x)           np.interp(x, t, y)
np.histogram(x, 20)                 np.unique(k, return_counts=True)    np.fft.rfft(x)
np.fft.fft2(im)                     np.random.default_rng(1).permuted(x)
np.random.default_rng(1).choice(x, 5)                                   np.random.RandomState(2).normal(x)
np.ma.masked_where(x > 0, x).mean()                                     np.ma.median(np.ma.array(x, mask=y > 1))
np.char.add(np.array(['a', 'b']), 'c')                                  np.array2string(x[:5])
np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * 2])       np.vectorize(lambda a, b: a + b)(x, y)
np.apply_along_axis(sorted, 1, im)  np.trapezoid(x, t) if hasattr(np, 'trapezoid') else np.trapz(x, t)
np.frombuffer(x.tobytes())          np.lib.stride_tricks.sliding_window_view(x, 5).mean(axis=1)
""",
    "scipy.linalg": """
linalg.lu(A)                        linalg.lu_factor(A)                 linalg.lu_solve(linalg.lu_factor(A), x[:12])
linalg.qr(A, pivoting=True)         linalg.rq(A)                        linalg.svd(A, full_matrices=False)
linalg.svdvals(A)                   linalg.eig(A)                       linalg.eigvals(A)
linalg.eigh(S, subset_by_index=[0, 2])                                  linalg.eigvalsh(S)
linalg.eigh_tridiagonal(x[:12], y[:11])                                 linalg.schur(A)
linalg.hessenberg(A)                linalg.cholesky(S, lower=True)
linalg.cho_solve(linalg.cho_factor(S), x[:12])
linalg.cholesky_banded(np.stack([np.zeros(12), np.full(12, 4.0)]))      linalg.ldl(S)
linalg.solve(A, x[:12])             linalg.solve(A, x[:12], overwrite_a=True, overwrite_b=True)
linalg.solve_triangular(S, x[:12])  linalg.solve_banded((1, 1), np.stack([y[:12], 9 + x[:12], y[12:24]]), x[:12])
linalg.solveh_banded(np.stack([np.zeros(12), np.full(12, 4.0)]), x[:12])
linalg.solve_toeplitz(9 + y[:12], x[:12])                               linalg.solve_circulant(9 + y[:12], x[:12])
linalg.lstsq(A, x[:12])             linalg.lstsq(A, x[:12], overwrite_a=True, overwrite_b=True)
linalg.inv(A)                       linalg.inv(A, overwrite_a=True)     linalg.det(A)
linalg.pinv(A)                      linalg.pinvh(S)                     linalg.null_space(A[:5])
linalg.orth(A)                      linalg.expm(A)                      linalg.logm(S)
linalg.sqrtm(S)                     linalg.funm(S, np.sin)              linalg.signm(S)
linalg.sinm(A)                      linalg.polar(A)                     linalg.norm(A, 2)
linalg.block_diag(A, S)             linalg.toeplitz(x[:5], y[:5])       linalg.hankel(x[:5])
linalg.circulant(x[:5])             linalg.companion(1 + t[:5])         linalg.khatri_rao(A, S)
linalg.kron(A, S) if hasattr(linalg, 'kron') else np.kron(A, S)
linalg.tril(A) if hasattr(linalg, 'tril') else np.tril(A)               linalg.solve_sylvester(A, S, A)
linalg.solve_continuous_lyapunov(A, S)                                  linalg.solve_discrete_lyapunov(A / 50, S)
linalg.subspace_angles(A[:, :2], S[:, :3])                              linalg.bandwidth(A)
linalg.blas.daxpy(x, y.copy())      linalg.blas.dnrm2(x)                linalg.blas.dgemm(1.0, A, S)
linalg.lapack.dgetrf(A)             linalg.matrix_balance(A)            linalg.procrustes(P, P[::-1])
linalg.orthogonal_procrustes(P, P[::-1])                                linalg.cossin(linalg.qr(A)[0], 6, 6)
""",
    "scipy.signal": """
signal.butter(4, 0.1)               signal.sosfilt(signal.butter(4, 0.1, output='sos'), x)
signal.cheby1(4, 1, 0.1)            signal.cheby2(4, 20, 0.1)           signal.ellip(4, 1, 20, 0.1)
signal.bessel(4, 0.1)               signal.iirnotch(0.1, 30)            signal.firwin(31, 0.2)
signal.firwin2(31, [0, 0.2, 1], [1, 1, 0])                              signal.remez(21, [0, 0.1, 0.2, 0.5], [1, 0])
signal.lfilter([1.0, 0.5], [1.0, -0.2], x)                              signal.lfilter_zi([1.0, 0.5], [1.0, -0.2])
signal.filtfilt([1.0, 0.5], [1.0, -0.2], x)
signal.sosfiltfilt(signal.butter(2, 0.2, output='sos'), x)              signal.savgol_filter(x, 11, 3)
signal.savgol_filter(x, 11, 3, mode='constant')                         signal.detrend(x)
signal.detrend(x, type='constant')  signal.detrend(x, overwrite_data=True)
signal.medfilt(x, 5)                signal.medfilt2d(im, 3)             signal.wiener(x, 5)
signal.order_filter(im, np.ones((3, 3)), 4)                             signal.hilbert(x)
signal.decimate(x, 4)               signal.resample(x, 100)             signal.resample_poly(x, 2, 3)
signal.upfirdn([1.0, 2.0], x, 2)    signal.convolve(x, y[:20])          signal.convolve2d(im, im[:3, :3])
signal.fftconvolve(x, y[:50])       signal.oaconvolve(x, y[:50])        signal.correlate(x, y[:100])
signal.correlate2d(im, im[:3, :3])  signal.correlation_lags(5, 7)       signal.choose_conv_method(x, y)
signal.deconvolve(x[:20], 1 + t[:3])                                    signal.welch(x, nperseg=64)
signal.periodogram(x)               signal.csd(x, y, nperseg=64)        signal.coherence(x, y, nperseg=64)
signal.spectrogram(x, nperseg=64)   signal.stft(x, nperseg=64)
signal.istft(signal.stft(x, nperseg=64)[2], nperseg=64)
signal.lombscargle(t, x, np.linspace(1, 5, 9))                          signal.find_peaks(x, height=0.5)
signal.find_peaks(x, prominence=0.5, width=1)
signal.peak_prominences(x, signal.find_peaks(x)[0])                     signal.argrelmax(x)
signal.get_window('hann', 50) * x[:50]                                  signal.windows.kaiser(20, 5.0) * x[:20]
signal.windows.dpss(20, 2.5)        signal.chirp(t, 1, 2, 9)            signal.square(t * 9)
signal.sawtooth(t * 9, 0.3)         signal.gausspulse(t, 5)             signal.unit_impulse(9) * x[:9]
signal.freqz([1.0, 0.5], [1.0, -0.2], 64)
signal.group_delay(([1.0, 0.5], [1.0, -0.2]), 16)                       signal.tf2zpk([1.0, 0.5], [1.0, -0.2])
signal.tf2sos([1.0, 0.5], [1.0, -0.2])                                  signal.residue([1.0, 2.0], [1.0, 3.0, 2.0])
signal.lsim(([1.0], [1.0, 1.0]), x, t)                                  signal.step(([1.0], [1.0, 1.0]))
signal.impulse(([1.0], [1.0, 1.0]))
signal.cont2discrete((A, A[:, :1], A[:1], A[:1, :1]), 0.1)
signal.place_poles(A, A[:, :2], -1 - np.arange(12.0)).gain_matrix.shape
signal.vectorstrength(t, 0.1)       signal.sepfir2d(im, [1.0, 2.0, 1.0], [1.0, 2.0, 1.0])
signal.symiirorder1(im[0], 0.5, 0.2)
""",
    "scipy.ndimage": """
ndimage.gaussian_filter(im, 1.5)    ndimage.gaussian_filter1d(x, 2)     ndimage.uniform_filter(im, 3)
ndimage.median_filter(im, 3)        ndimage.percentile_filter(im, 30, 3)
ndimage.rank_filter(im, 2, 3)       ndimage.maximum_filter(im, 3)       ndimage.minimum_filter1d(x, 5)
ndimage.sobel(im)                   ndimage.prewitt(im)                 ndimage.laplace(im)
ndimage.gaussian_laplace(im, 1)     ndimage.gaussian_gradient_magnitude(im, 1)
ndimage.convolve(im, im[:3, :3])    ndimage.correlate1d(im, [1.0, 2.0, 1.0])
ndimage.generic_filter(im, np.ptp, 3)
ndimage.generic_filter1d(x, lambda line, out: np.cumsum(line[1:-1], out=out), 3)
ndimage.label(im > 0.5)             ndimage.find_objects(ndimage.label(im > 0.5)[0])
ndimage.sum_labels(x[:60], k, [0, 1, 2])                                ndimage.mean(x[:60], k, [0, 1])
ndimage.variance(x[:60], k, [0, 1])                                     ndimage.extrema(x[:60], k, [0, 1])
ndimage.center_of_mass(im)          ndimage.labeled_comprehension(x[:60], k, [0, 1], np.mean, float, 0)
ndimage.histogram(im, 0, 1, 5)      ndimage.binary_dilation(im > 0.5)   ndimage.binary_erosion(im > 0.5)
ndimage.binary_fill_holes(im > 0.3)                                     ndimage.binary_opening(im > 0.5)
ndimage.grey_dilation(im, 3)        ndimage.morphological_gradient(im, 3)
ndimage.white_tophat(im, 3)         ndimage.distance_transform_edt(im > 0.2)
ndimage.distance_transform_cdt(im > 0.2)                                ndimage.zoom(im, 1.5)
ndimage.rotate(im, 30)              ndimage.shift(im, (0.5, 1))
ndimage.affine_transform(im, np.eye(2) * 0.5)                           ndimage.map_coordinates(im, P.T[:2] * 4 + 9)
ndimage.geometric_transform(im, lambda p: (p[0] - 0.5, p[1]))           ndimage.spline_filter(im)
ndimage.fourier_gaussian(np.fft.fft2(im), 1)
ndimage.watershed_ift((im * 9).astype(np.uint8), np.eye(24, dtype=int))
""",
    "scipy.special": """
special.erf(x)                      special.gamma(t + 1)                special.gammaln(t + 1)
special.digamma(t + 1)              special.expit(x)                    special.logit(t * 0.5 + 0.2)
special.logsumexp(x)                special.logsumexp(A, axis=1)        special.softmax(A, axis=1)
special.log_softmax(A, axis=0)      special.jv(1, t)                    special.iv(0, t)
special.spherical_jn(2, t)          special.ellipk(t * 0.5)             special.hyp2f1(1, 2, 3, t * 0.5)
special.binom(9, k)                 special.comb(9, k)                  special.factorial(k)
special.zeta(t + 2)                 special.xlogy(t, t + 1)             special.lambertw(t)
special.eval_legendre(3, t)         special.roots_legendre(5)           special.bernoulli(4)
special.sph_harm_y(1, 2, t, t) if hasattr(special, 'sph_harm_y') else special.sph_harm(1, 2, t, t)
special.entr(t)                     special.rel_entr(t, t + 1)          special.huber(1.0, x)
""",
    "scipy.stats": """
stats.zscore(x)                     stats.describe(x)                   stats.skew(x)
stats.kurtosis(x)                   stats.gmean(t + 1)                  stats.hmean(t + 1)
stats.mode(k)                       stats.moment(x, 3)                  stats.sem(x)
stats.iqr(x)                        stats.trim_mean(x, 0.1)             stats.rankdata(x)
stats.ttest_ind(x, y)               stats.ttest_1samp(x, 0.1)           stats.ttest_rel(x, y)
stats.pearsonr(x, y)                stats.spearmanr(x, y)               stats.kendalltau(x[:50], y[:50])
stats.linregress(x, y)              stats.theilslopes(x[:40], y[:40])   stats.ks_2samp(x, y)
stats.kstest(x, 'norm')             stats.shapiro(x)                    stats.anderson(x).statistic
stats.mannwhitneyu(x, y)            stats.wilcoxon(x)                   stats.kruskal(x, y)
stats.f_oneway(x, y)                stats.levene(x, y)                  stats.chisquare(t + 1)
stats.norm.pdf(x)                   stats.norm.cdf(x)                   stats.norm.fit(x)
stats.gamma.ppf(t * 0.9 + 0.01, 2)  stats.multivariate_normal(np.zeros(3)).pdf(P)
stats.gaussian_kde(x)(t[:20])       stats.binned_statistic(t, x, 'mean', 5)
stats.binned_statistic_2d(P[:, 0], P[:, 1], P[:, 2], 'sum', 3)          stats.boxcox(t + 1)
stats.yeojohnson(x)                 stats.entropy(t + 1)                stats.circmean(x)
stats.zmap(x, y)                    stats.median_abs_deviation(x)       stats.cumfreq(x)
stats.relfreq(x)                    stats.percentileofscore(x, 0.5)     stats.sigmaclip(x)
stats.bootstrap((x,), np.mean, n_resamples=20, random_state=1).standard_error
""",
    "scipy.optimize": """
optimize.minimize(lambda v: ((v - x[:3]) ** 2).sum(), np.zeros(3)).x
optimize.minimize_scalar(lambda v: (v - x[0]) ** 2).x
optimize.root(lambda v: v - x[:3], np.zeros(3)).x
optimize.brentq(lambda v: v ** 3 - 0.5, 0, 1)                           optimize.newton(lambda v: v ** 3 - 0.5, 1.0)
optimize.least_squares(lambda v: v - x[:3], np.zeros(3)).x
optimize.curve_fit(lambda t, a, b: a * t + b, t, x)                     optimize.nnls(np.abs(A), np.abs(x[:12]))
optimize.linear_sum_assignment(im)  optimize.linprog(np.ones(3), A_eq=P[:1], b_eq=[1.0]).status
optimize.approx_fprime(x[:3], lambda v: (v ** 2).sum())
optimize.fsolve(lambda v: v - x[:3], np.zeros(3))                       optimize.lsq_linear(A, x[:12]).x
optimize.check_grad(lambda v: (v ** 2).sum(), lambda v: 2 * v, x[:3])
""",
    "scipy.integrate": """
integrate.trapezoid(x, t)           integrate.simpson(x, x=t)           integrate.cumulative_trapezoid(x, t)
integrate.romb(x[:257])             integrate.quad(lambda v: np.sin(v), 0, 1)
integrate.dblquad(lambda a, b: a * b, 0, 1, 0, 1)
integrate.fixed_quad(lambda v: np.sin(v), 0, 1)
integrate.solve_ivp(lambda s, v: -v, (0, 1), x[:3]).y
integrate.odeint(lambda v, s: -v, x[:3], t[:9])
integrate.quad_vec(lambda v: np.sin(v) * x[:3], 0, 1)
""",
    "scipy.interpolate": """
interpolate.interp1d(t, x)(t[1:9])  interpolate.CubicSpline(t, x)(t[1:9])
interpolate.PchipInterpolator(t, x)(t[1:9])
interpolate.Akima1DInterpolator(t, x)(t[1:9])
interpolate.BSpline(np.arange(8.0), x[:4], 3)(3.5)                      interpolate.splrep(t, x)
interpolate.splev(t[:9], interpolate.splrep(t, x))
interpolate.splint(0.1, 0.5, interpolate.splrep(t, x))                  interpolate.UnivariateSpline(t, x)(t[:9])
interpolate.make_interp_spline(t, x)(t[:9])
interpolate.griddata(P[:, :2], P[:, 2], P[:9, :2] * 0.5)
interpolate.RegularGridInterpolator((np.arange(24), np.arange(24)), im)([[1.5, 2.5]])
interpolate.RectBivariateSpline(np.arange(24), np.arange(24), im)(1.5, 2.5)
interpolate.RBFInterpolator(P, P[:, 0])(P[:5])
interpolate.krogh_interpolate(t[:5], x[:5], 0.01)
""",
    "scipy.spatial": """
spatial.distance.pdist(P)           spatial.distance.cdist(P, P[:9])    spatial.distance.cdist(P, P[:9], 'cosine')
spatial.distance.squareform(spatial.distance.pdist(P))                  spatial.distance.euclidean(x, y)
spatial.distance.cosine(x, y)       spatial.distance.mahalanobis(x[:12], y[:12], S)
spatial.distance.hamming(k, k[::-1])                                    spatial.cKDTree(P).query(P[:9], 2)
spatial.KDTree(P).query_ball_point(P[0], 0.5)                           spatial.ConvexHull(P).volume
spatial.Delaunay(P).simplices       spatial.Voronoi(P[:, :2]).vertices  spatial.procrustes(P, P[::-1])
spatial.transform.Rotation.from_rotvec(P[0]).apply(P)                   spatial.distance_matrix(P, P[:5])
""",
    "scipy.cluster": """
cluster.vq.kmeans2(P, 3, seed=1)    cluster.vq.whiten(P)                cluster.vq.vq(P, P[:4])
cluster.vq.kmeans(P, 3, seed=1)     cluster.hierarchy.linkage(P)
cluster.hierarchy.fcluster(cluster.hierarchy.linkage(P), 3, 'maxclust')
cluster.hierarchy.cophenet(cluster.hierarchy.linkage(P))
cluster.hierarchy.leaves_list(cluster.hierarchy.ward(P))
""",
    "scipy.sparse": """
sparse.csr_matrix(A).dot(x[:12])    sparse.coo_matrix(A) @ S    sparse.csc_matrix(im > 0.5).sum(axis=0)
sparse.diags([x[:12]], [0]).toarray()
sparse.linalg.spsolve(sparse.csc_matrix(A), x[:12])                     sparse.linalg.cg(S, x[:12])
sparse.linalg.gmres(S, x[:12])      sparse.csgraph.shortest_path(np.abs(A))
sparse.csgraph.connected_components(A > 0)                              sparse.kron(A, S).toarray()
sparse.linalg.splu(sparse.csc_matrix(A)).solve(x[:12])                  sparse.linalg.factorized(sparse.csc_matrix(A))(y[1:13] * 2)
sparse.linalg.spilu(sparse.csc_matrix(A)).solve(x[:12])
""",
    "scipy.fft": """
fft.fft(x)                          fft.rfft(x)                         fft.irfft(fft.rfft(x))
fft.dct(x)                          fft.idct(x)                         fft.dst(x, overwrite_x=True)
fft.fft2(im)                        fft.fftn(im)                        fft.next_fast_len(301)
fft.fftshift(x)                     fft.hfft(z[0])                      fft.fft(z, overwrite_x=True)
""",
    "pandas": """
pandas.Series(x).rolling(5).mean().to_numpy()
pandas.Series(x).groupby(pandas.Series(k).reindex(range(300), fill_value=0)).sum().to_numpy()
pandas.DataFrame(P, columns=list('abc')).corr().to_numpy()
pandas.DataFrame({'a': x, 'b': y}).describe().to_numpy()
pandas.Series(x).quantile([0.1, 0.9]).to_numpy()                        pandas.cut(x, 5).codes
pandas.qcut(x, 4).codes             pandas.factorize(k)                 pandas.get_dummies(k).to_numpy()
pandas.Series(x).ewm(alpha=0.3).mean().to_numpy()
pandas.DataFrame(A).apply(np.sum, axis=1).to_numpy()
pandas.DataFrame({'k': k, 'v': P[:, 0]}).groupby('k').agg('mean').to_numpy()
pandas.Series(x).sort_values().to_numpy()                               pandas.DataFrame(im).cumsum().to_numpy()
pandas.Series(x).interpolate().to_numpy()
pandas.concat([pandas.Series(x), pandas.Series(y)]).to_numpy()
pandas.DataFrame(A).merge(pandas.DataFrame(S), left_index=True, right_index=True).to_numpy()
""",
    "sklearn": """
sklearn.preprocessing.StandardScaler().fit_transform(P)
sklearn.preprocessing.MinMaxScaler().fit_transform(P)                   sklearn.preprocessing.normalize(P)
sklearn.preprocessing.PolynomialFeatures(2).fit_transform(P)
sklearn.decomposition.PCA(2).fit_transform(P)
sklearn.cluster.KMeans(3, n_init=1, random_state=0).fit(P).labels_      sklearn.cluster.DBSCAN(0.5).fit(P).labels_
sklearn.linear_model.LinearRegression().fit(P, P[:, 0]).coef_
sklearn.linear_model.Ridge().fit(P, P[:, 0]).coef_
sklearn.linear_model.LogisticRegression().fit(P, k).coef_
sklearn.neighbors.KNeighborsClassifier().fit(P, k).predict(P)
sklearn.tree.DecisionTreeClassifier(random_state=0).fit(P, k).predict(P)
sklearn.ensemble.RandomForestRegressor(5, random_state=0).fit(P, x[:60]).predict(P)
sklearn.svm.SVC().fit(P, k).predict(P)                                  sklearn.metrics.r2_score(x, y)
sklearn.metrics.confusion_matrix(k, k[::-1])                            sklearn.metrics.pairwise_distances(P)
sklearn.metrics.mean_squared_error(x, y)
sklearn.model_selection.train_test_split(P, k, random_state=0)
""",
    "numba": """
numba.njit(lambda v: v.sum() + 1)(x)                                    numba.njit(lambda v, w: v * w)(x, y)
numba.vectorize(['float64(float64)'])(lambda v: v * 2)(x)               numba.njit(lambda v: v.shape[0])(im)
""",
}


def cases():
    """Each call as ``(text, function)``; the function takes what ``arguments`` gives."""
    for package, calls in PACKAGES.items():
        space = _space(package)
        if space is None:
            continue
        for text in _split(calls):
            yield text, function_of(f"def function({NAMES}):\n    return {text}\n", dict(space))


def arguments(text):
    """Arguments for a call, others for each text."""
    rng = np.random.default_rng(zlib.crc32(text.encode()))
    A = rng.normal(size=(12, 12)) + 6 * np.eye(12)
    return (
        *(rng.normal(size=300), rng.normal(size=300), np.sort(rng.random(300))),
        *(A, A @ A.T / 12, A + 1j * rng.normal(size=(12, 12))),
        *(rng.normal(size=(60, 3)), rng.random((24, 24)), rng.integers(0, 5, 60)),
    )


def _space(package):
    """The names that the calls of a package use; None where it is not installed."""
    try:
        module = importlib.import_module(package)
        for inner in _INNER.get(package, ()):
            importlib.import_module(f"{package}.{inner}")
    except ImportError:
        return None
    return {"np": np, package.rpartition(".")[2]: module}


_INNER = {
    "scipy.spatial": ["distance", "transform"],
    "scipy.cluster": ["vq", "hierarchy"],
    "scipy.sparse": ["linalg", "csgraph"],
    "sklearn": ["preprocessing", "decomposition", "cluster", "linear_model", "neighbors", "tree"]
    + ["ensemble", "svm", "metrics", "model_selection"],
}


def _split(calls):
    for line in calls.strip().splitlines():
        yield from re.split("  +", line)
