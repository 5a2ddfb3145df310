"""Programs that move particles, draw random numbers or follow orbits."""

import numpy as np

from bench.programs import Collection

PROGRAMS = Collection()


@PROGRAMS.program(lambda rng: (rng.random((64, 3)), rng.random((64, 3)), rng.random(64), 20))
def gravity(position, velocity, mass, steps):
    for _ in range(steps):
        apart = position[None, :, :] - position[:, None, :]
        distance = np.sqrt((apart**2).sum(axis=2) + 0.01)
        pull = (mass[None, :, None] * apart / distance[:, :, None] ** 3).sum(axis=1)
        velocity = velocity + 0.01 * pull
        position = position + 0.01 * velocity
    return position, velocity


@PROGRAMS.program(lambda rng: (rng.random((300, 2)) * 10, rng.random((300, 2)) - 0.5, 10))
def flock(position, velocity, steps):
    for _ in range(steps):
        apart = position[:, None] - position[None]
        distance = np.linalg.norm(apart, axis=2)
        near = (distance < 1) & (distance > 0)
        count = np.maximum(near.sum(axis=1), 1)[:, None]
        towards = (near @ position) / count - position
        along = (near @ velocity) / count - velocity
        velocity = velocity + 0.01 * towards + 0.05 * along
        speed = np.linalg.norm(velocity, axis=1, keepdims=True)
        velocity = np.where(speed > 1, velocity / speed, velocity)
        position = (position + velocity) % 10
    return position


@PROGRAMS.program(lambda rng: (200_000, 5))
def areas_by_chance(count, rounds):
    rng = np.random.default_rng(11)
    inside = 0
    for _ in range(rounds):
        x, y = rng.random(count), rng.random(count)
        inside += np.count_nonzero(x * x + y * y < 1)
    return 4 * inside / (count * rounds)


@PROGRAMS.program(lambda rng: (100.0, 105.0, 0.02, 0.2, 50, 4000))
def option_by_chance(spot, strike, rate, spread, steps, paths):
    rng = np.random.default_rng(3)
    price = np.full(paths, spot)
    dt = 1 / steps
    for _ in range(steps):
        shock = rng.standard_normal(paths)
        price *= np.exp((rate - spread**2 / 2) * dt + spread * np.sqrt(dt) * shock)
    return np.exp(-rate) * np.maximum(price - strike, 0).mean()


@PROGRAMS.program(lambda rng: (np.where(rng.random((48, 48)) < 0.5, 1, -1), 4000))
def spins(lattice, flips):
    rng = np.random.default_rng(5)
    n = len(lattice)
    for _ in range(flips):
        i, j = rng.integers(0, n, 2)
        around = (
            lattice[(i + 1) % n, j]
            + lattice[i - 1, j]
            + lattice[i, (j + 1) % n]
            + lattice[i, j - 1]
        )
        change = 2 * lattice[i, j] * around
        if change <= 0 or rng.random() < np.exp(-change * 0.4):
            lattice[i, j] *= -1
    return lattice


@PROGRAMS.program(lambda rng: (40_000,))
def area_point_by_point(count):
    rng = np.random.default_rng(13)
    inside = 0
    for _ in range(count):
        x, y = rng.random(), rng.random()
        if x * x + y * y < 1:
            inside += 1
    return 4 * inside / count


@PROGRAMS.program(lambda rng: (100.0, 0.02, 0.2, 60, 200))
def path_by_path(spot, rate, spread, steps, paths):
    np.random.seed(3)
    dt = 1 / steps
    total = 0.0
    for _ in range(paths):
        price = highest = spot
        for _ in range(steps):
            price *= np.exp((rate - spread**2 / 2) * dt + spread * np.sqrt(dt) * np.random.normal())
            highest = max(highest, price)
        total += highest - price
    return total / paths


class Spring:
    """A weight that swings with friction."""

    def __init__(self, place, speed):
        self.place, self.speed, self.crossings = place, speed, 0

    def step(self, dt):
        before = self.place
        self.speed -= dt * (4.0 * self.place + 0.1 * self.speed)
        self.place += dt * self.speed
        if before * self.place < 0:
            self.crossings += 1


@PROGRAMS.program(lambda rng: (0.001, 20_000))
def damped_spring(dt, steps):
    spring = Spring(1.0, 0.0)
    for _ in range(steps):
        spring.step(dt)
    return spring.place, spring.speed, spring.crossings


@PROGRAMS.program(lambda rng: (np.array([1.0, 1.0, 1.0]), 0.005, 3000))
def lorenz_orbit(state, dt, steps):
    orbit = np.empty((steps, 3))
    for k in range(steps):
        x, y, z = state
        slope = np.array([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])
        state = state + dt * slope
        orbit[k] = state
    return orbit
