"""One statement in a loop of Python: what each costs beside NumPy."""

import numpy as np

from bench.programs import Collection

PROGRAMS = Collection()
ROUNDS = 20_000


@PROGRAMS.program(lambda rng: (rng.random(1000),))
def set_element(a):
    for i in range(ROUNDS):
        a[i % 1000] = a[(i + 7) % 1000] + 1.0
    return a


@PROGRAMS.program(lambda rng: (rng.random(1000),))
def add_element(a):
    s = 0.0
    for i in range(ROUNDS):
        s += a[i % 1000]
    return s


@PROGRAMS.program(lambda rng: (rng.random(1000),))
def ask_element(a):
    count = 0
    for i in range(ROUNDS):
        if a[i % 1000] > 0.5:
            count += 1
    return count


@PROGRAMS.program(lambda rng: (rng.random(1000),))
def set_slice(a):
    for _ in range(ROUNDS // 10):
        a[1:-1] = 0.5 * (a[:-2] + a[2:])
    return a


@PROGRAMS.program(lambda rng: (rng.random(1000),))
def root_of_array(a):
    for _ in range(ROUNDS // 10):
        a = np.sqrt(a * 2.0)
    return a


@PROGRAMS.program(lambda rng: (rng.random((20, 20)), np.linalg.qr(rng.random((20, 20)))[0]))
def small_product(a, turn):
    for _ in range(ROUNDS // 10):
        a = a @ turn * 1.0
    return a


@PROGRAMS.program(lambda rng: (rng.random(1000),))
def root_of_call(a):
    return np.sqrt(a * 2.0)
