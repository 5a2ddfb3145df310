"""Programs on regular grids: stencils in a loop of time steps."""

import numpy as np

from bench.programs import Collection

PROGRAMS = Collection()


@PROGRAMS.program(lambda rng: (rng.random((250, 250)), 40))
def relax_plate(u, steps):
    for _ in range(steps):
        u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    return u


@PROGRAMS.program(lambda rng: (rng.random(2000), 0.4, 200))
def diffuse_rod(u, number, steps):
    for _ in range(steps):
        u[1:-1] += number * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


@PROGRAMS.program(lambda rng: (rng.random((40, 40, 40)), 10))
def heat_block(a, steps):
    for _ in range(steps):
        b = a.copy()
        b[1:-1, 1:-1, 1:-1] += (
            0.1 * (a[2:, 1:-1, 1:-1] - 2 * a[1:-1, 1:-1, 1:-1] + a[:-2, 1:-1, 1:-1])
            + 0.1 * (a[1:-1, 2:, 1:-1] - 2 * a[1:-1, 1:-1, 1:-1] + a[1:-1, :-2, 1:-1])
            + 0.1 * (a[1:-1, 1:-1, 2:] - 2 * a[1:-1, 1:-1, 1:-1] + a[1:-1, 1:-1, :-2])
        )
        a = b
    return a


@PROGRAMS.program(lambda rng: ((rng.random((200, 200)) < 0.3).astype(np.int64), 20))
def game_of_life(cells, generations):
    for _ in range(generations):
        neighbours = sum(
            np.roll(np.roll(cells, i, 0), j, 1)
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            if (i, j) != (0, 0)
        )
        cells = ((neighbours == 3) | ((cells == 1) & (neighbours == 2))).astype(np.int64)
    return cells


@PROGRAMS.program(lambda rng: (rng.random((100, 120)), 60))
def electric_and_magnetic(ez, steps):
    hx, hy = np.zeros_like(ez), np.zeros_like(ez)
    for step in range(steps):
        hx[:, :-1] -= 0.5 * (ez[:, 1:] - ez[:, :-1])
        hy[:-1, :] += 0.5 * (ez[1:, :] - ez[:-1, :])
        ez[1:, 1:] += 0.5 * (hy[1:, 1:] - hy[:-1, 1:] - hx[1:, 1:] + hx[1:, :-1])
        ez[50, 60] += np.exp(-(((step - 30) / 10) ** 2))
    return ez, hx, hy


@PROGRAMS.program(lambda rng: (1 + 0.01 * rng.random((9, 60, 80)), 15))
def lattice_boltzmann(f, steps):
    speeds = np.array(
        [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
    )
    weights = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
    for _ in range(steps):
        for i, (x, y) in enumerate(speeds):
            f[i] = np.roll(np.roll(f[i], x, axis=0), y, axis=1)
        density = f.sum(axis=0)
        velocity = np.einsum("ia,ixy->axy", speeds, f) / density
        square = (velocity**2).sum(axis=0)
        along = np.einsum("ia,axy->ixy", speeds, velocity)
        equal = weights[:, None, None] * density * (1 + 3 * along + 4.5 * along**2 - 1.5 * square)
        f = f - 0.6 * (f - equal)
    return f


class Water:
    """Shallow water: height and two speeds, stepped in turn."""

    def __init__(self, height):
        self.h = height
        self.u = np.zeros_like(height)
        self.v = np.zeros_like(height)

    def step(self, dt):
        self.u = self.u - dt * (np.roll(self.h, -1, 0) - np.roll(self.h, 1, 0))
        self.v = self.v - dt * (np.roll(self.h, -1, 1) - np.roll(self.h, 1, 1))
        flow = np.roll(self.u, -1, 0) - np.roll(self.u, 1, 0)
        flow += np.roll(self.v, -1, 1) - np.roll(self.v, 1, 1)
        self.h = self.h - dt * flow


@PROGRAMS.program(lambda rng: (1 + 0.1 * rng.random((128, 128)), 25))
def shallow_water(height, steps):
    water = Water(height)
    for _ in range(steps):
        water.step(0.05)
    return water.h, water.u, water.v


@PROGRAMS.program(lambda rng: (rng.random((60, 60)), 10))
def sweep_in_place(a, steps):
    n = len(a)
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = 0.2 * (a[i, j] + a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
    return a
