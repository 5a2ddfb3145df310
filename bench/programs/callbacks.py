"""Programs that hand a decorated function to SciPy, which calls it many times."""

import numpy as np

from bench.programs import Collection

PROGRAMS = Collection()


@PROGRAMS.with_callback(lambda rng: (np.array([1.0, 0.5, 0.2]),))
def solve_ivp(decorate):
    from scipy import integrate

    @decorate
    def slope(t, state):
        x, y, z = state
        return np.array([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])

    return lambda start: integrate.solve_ivp(slope, (0, 8), start, rtol=1e-6).y


@PROGRAMS.with_callback(lambda rng: (rng.random(6),))
def minimize(decorate):
    from scipy import optimize

    @decorate
    def valley(x):
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    return lambda start: optimize.minimize(valley, start).x


@PROGRAMS.with_callback(lambda rng: (rng.random((40, 40)),))
def generic_filter(decorate):
    from scipy import ndimage

    @decorate
    def spread(values):
        return values.max() - values.min()

    return lambda image: ndimage.generic_filter(image, spread, size=3)
