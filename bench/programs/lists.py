"""Loops over Python's own lists of numbers, and lists of these."""

import numpy as np

from bench.programs import Collection

PROGRAMS = Collection()


def integers(rng, most, *shape):
    return rng.integers(0, most, shape).tolist()


@PROGRAMS.program(lambda rng: (integers(rng, 4, 300), integers(rng, 4, 300)))
def edit_distance(a, b):
    before = list(range(len(b) + 1))
    for i in range(len(a)):
        row = [i + 1] + [0] * len(b)
        for j in range(len(b)):
            changed = before[j] + (a[i] != b[j])
            row[j + 1] = min(min(changed, before[j + 1] + 1), row[j] + 1)
        before = row
    return before[-1]


@PROGRAMS.program(lambda rng: (integers(rng, 2, 60, 60), 4))
def game_of_life(cells, steps):
    n = len(cells)
    made = [[0] * n for _ in range(n)]
    for _ in range(steps):
        for i in range(n):
            for j in range(n):
                alive = 0
                for di in (-1, 0, 1):
                    for dj in (-1, 0, 1):
                        if di or dj:
                            alive += cells[(i + di) % n][(j + dj) % n]
                made[i][j] = 1 if alive == 3 or (alive == 2 and cells[i][j]) else 0
        cells, made = made, cells
    return cells


@PROGRAMS.program(lambda rng: (rng.random(50_000).tolist(), 0.1))
def exponential_average(values, weight):
    averages = []
    average = values[0]
    for value in values:
        average = weight * value + (1 - weight) * average
        averages.append(average)
    return averages


@PROGRAMS.program(lambda rng: (integers(rng, 500, 40_000, 2), [0] * 500))
def degrees(edges, counts):
    for edge in edges:
        counts[edge[0]] += 1
        counts[edge[1]] += 1
    return counts


@PROGRAMS.program(lambda rng: (rng.random((20_000, 2)).tolist(), 0.5, 0.5))
def nearest(points, x, y):
    best, least = -1, float("inf")
    for i, point in enumerate(points):
        distance = (point[0] - x) ** 2 + (point[1] - y) ** 2
        if distance < least:
            best, least = i, distance
    return best, least


def exchange(values, i, j):
    values[i], values[j] = values[j], values[i]


@PROGRAMS.program(lambda rng: (rng.random(300).tolist(),))
def sorted_by_exchange(values):
    for i in range(len(values)):
        for j in range(len(values) - 1 - i):
            if values[j] > values[j + 1]:
                exchange(values, j, j + 1)
    return values


@PROGRAMS.program(lambda rng: (100_000,))
def primes(most):
    is_prime = [True] * most
    for i in range(2, int(np.sqrt(most)) + 1):
        if is_prime[i]:
            for k in range(i * i, most, i):
                is_prime[k] = False
    found = []
    for i in range(2, most):
        if is_prime[i]:
            found.append(i)
    return len(found)


@PROGRAMS.program(lambda rng: (integers(rng, 20_000, 10_000),))
def longest_collatz_chain(starts):
    lengths = {0: 0, 1: 1}
    longest = 1
    for start in starts:
        number, steps = start, 0
        while number not in lengths:
            number = number // 2 if number % 2 == 0 else 3 * number + 1
            steps += 1
        lengths[start] = steps + lengths[number]
        if lengths[start] > lengths[longest]:
            longest = start
    return longest


@PROGRAMS.program(lambda rng: (integers(rng, 4000, 4000, 3), 0))
def reachable(links, start):
    distances = {start: 0}
    waiting = [start]
    while waiting != []:
        later = []
        for place in waiting:
            for other in links[place]:
                if other not in distances:
                    distances[other] = distances[place] + 1
                    later.append(other)
        waiting = later
    return distances
