"""Inputs that look like photographs: smooth areas, edges and a little noise, the same in every run."""

import numpy as np


def picture(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Values from 0.05 to 0.95; the last two axes are y and x."""
    height, width = shape[-2:]
    y = np.linspace(0, 1, height, dtype=np.float32)[:, None]
    x = np.linspace(0, 1, width, dtype=np.float32)[None, :]
    planes = []
    for _ in range(int(np.prod(shape[:-2], dtype=int))):
        a, b, phase = rng.uniform(2, 9, 3)
        waves = np.sin(a * x + b * y + phase) * np.cos(b * x - a * y)
        edges = np.where((x * a % 1) + (y * b % 1) < 0.7, 0.6, -0.6)
        planes.append(0.5 + 0.2 * waves + 0.2 * edges)
    noise = rng.normal(0, 0.03, shape)
    return np.clip(np.reshape(planes, shape) + noise, 0.05, 0.95).astype(np.float32)


def integers(values: np.ndarray, kind: type, largest: int) -> np.ndarray:
    """Values from 0 to 1 as integers from 0 to `largest`."""
    return (values * largest).astype(kind)
