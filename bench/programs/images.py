"""Programs on pictures and signals."""

import numpy as np

from bench.programs import Collection

PROGRAMS = Collection()


@PROGRAMS.program(lambda rng: (-2.0, 0.6, -1.2, 1.2, 200, 150, 40))
def mandelbrot(left, right, low, high, width, height, rounds):
    x, y = np.linspace(left, right, width), np.linspace(low, high, height)
    c = x + y[:, None] * 1j
    z = np.zeros_like(c)
    count = np.zeros(c.shape, dtype=int)
    for k in range(rounds):
        inside = np.abs(z) < 2
        count[inside] = k
        z[inside] = z[inside] ** 2 + c[inside]
    return count


@PROGRAMS.program(lambda rng: (rng.random((400, 500)),))
def edges(image):
    gx = image[2:, 2:] + 2 * image[1:-1, 2:] + image[:-2, 2:]
    gx = gx - image[2:, :-2] - 2 * image[1:-1, :-2] - image[:-2, :-2]
    gy = image[2:, 2:] + 2 * image[2:, 1:-1] + image[2:, :-2]
    gy = gy - image[:-2, 2:] - 2 * image[:-2, 1:-1] - image[:-2, :-2]
    size = np.hypot(gx, gy)
    return (255 * size / size.max()).astype(np.uint8)


@PROGRAMS.program(lambda rng: ((rng.random((300, 300)) * 256).astype(np.uint8),))
def equalize(image):
    counts, _ = np.histogram(image, bins=256, range=(0, 256))
    share = counts.cumsum() / image.size
    return (255 * share[image]).astype(np.uint8)


@PROGRAMS.program(lambda rng: (rng.random((120, 120)), 3, 0.2))
def keep_edges_smooth(image, radius, spread):
    padded = np.pad(image, radius, mode="edge")
    total, weights = np.zeros_like(image), np.zeros_like(image)
    for i in range(2 * radius + 1):
        for j in range(2 * radius + 1):
            moved = padded[i : i + image.shape[0], j : j + image.shape[1]]
            near = np.exp(-((i - radius) ** 2 + (j - radius) ** 2) / (2 * radius**2))
            weight = near * np.exp(-((moved - image) ** 2) / (2 * spread**2))
            total += weight * moved
            weights += weight
    return total / weights


@PROGRAMS.program(lambda rng: (rng.random(4096),))
def fourier_by_halves(x):
    n = len(x)
    parts = np.exp(-2j * np.pi * np.arange(8) * np.arange(8)[:, None] / 8) @ x.reshape(8, -1)
    while parts.shape[0] < n:
        even, odd = np.split(parts, 2, axis=1)
        turn = np.exp(-1j * np.pi * np.arange(parts.shape[0]) / parts.shape[0])[:, None]
        parts = np.vstack([even + turn * odd, even - turn * odd])
    return parts.ravel()


@PROGRAMS.program(lambda rng: (rng.random((4, 28, 28, 3)), rng.random((5, 5, 3, 8)), rng.random(8)))
def convolve_batch(images, kernels, bias):
    size = kernels.shape[0]
    height, width = images.shape[1] - size + 1, images.shape[2] - size + 1
    output = np.empty((images.shape[0], height, width, kernels.shape[3]))
    for i in range(height):
        for j in range(width):
            part = images[:, i : i + size, j : j + size, :, None]
            output[:, i, j, :] = np.sum(part * kernels, axis=(1, 2, 3))
    return np.maximum(output + bias, 0)
