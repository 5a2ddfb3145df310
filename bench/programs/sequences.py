"""Programs that go through arrays element by element, in loops and branches of Python."""

import numpy as np

from bench.programs import Collection

PROGRAMS = Collection()


@PROGRAMS.program(lambda rng: (rng.integers(0, 4, 300), rng.integers(0, 4, 300)))
def longest_common_subsequence(a, b):
    table = np.zeros((len(a) + 1, len(b) + 1), dtype=np.int64)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                table[i, j] = table[i - 1, j - 1] + 1
            else:
                table[i, j] = max(table[i - 1, j], table[i, j - 1])
    return table[-1, -1]


@PROGRAMS.program(lambda rng: (rng.integers(1, 60, 120), rng.integers(1, 100, 120), 2000))
def knapsack(weights, values, capacity):
    best = np.zeros(capacity + 1, dtype=np.int64)
    for weight, value in zip(weights, values, strict=True):
        best[weight:] = np.maximum(best[weight:], best[:-weight] + value)
    return best[capacity]


@PROGRAMS.program(
    lambda rng: (
        np.log(rng.random(24)),
        np.log(rng.random((24, 24))),
        np.log(rng.random((24, 12))),
        rng.integers(0, 12, 400),
    )
)
def most_likely_states(start, move, emit, seen):
    score = start + emit[:, seen[0]]
    back = np.zeros((len(seen), len(start)), dtype=np.int64)
    for t in range(1, len(seen)):
        ways = score[:, None] + move
        back[t] = ways.argmax(axis=0)
        score = ways.max(axis=0) + emit[:, seen[t]]
    path = [int(score.argmax())]
    for t in range(len(seen) - 1, 0, -1):
        path.append(int(back[t, path[-1]]))
    return np.array(path[::-1])


@PROGRAMS.program(lambda rng: (rng.random(20_000), 0.05))
def smooth(x, weight):
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = weight * x[i] + (1 - weight) * y[i - 1]
    return y


@PROGRAMS.program(lambda rng: (200_000,))
def primes_below(n):
    sieve = np.ones(n, dtype=bool)
    sieve[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if sieve[i]:
            sieve[i * i :: i] = False
    return np.flatnonzero(sieve)


@PROGRAMS.program(lambda rng: (rng.integers(0, 256, 4000).astype(np.uint8),))
def checksum(data):
    crc = np.uint32(0xFFFFFFFF)
    for byte in data:
        crc = crc ^ np.uint32(byte)
        for _ in range(8):
            if crc & np.uint32(1):
                crc = (crc >> np.uint32(1)) ^ np.uint32(0xEDB88320)
            else:
                crc = crc >> np.uint32(1)
    return crc


@PROGRAMS.program(lambda rng: (np.sort(rng.random(5000)), rng.random(500)))
def bisect_each(table, wanted):
    found = np.empty(len(wanted), dtype=np.int64)
    for k, value in enumerate(wanted):
        low, high = 0, len(table)
        while low < high:
            middle = (low + high) // 2
            if table[middle] < value:
                low = middle + 1
            else:
                high = middle
        found[k] = low
    return found
