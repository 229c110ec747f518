"""Tilewright's random numbers for Halide: Philox4x32-10, with the seed as its key and the coordinates as its counter."""

import halide as hl

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10


def wide_product(a: int, b) -> tuple:
    """The upper and the lower half."""
    product = hl.u64(b) * hl.u64(hl.u32(a))
    return hl.u32(product >> 32), hl.u32(product)


def random(seed: int, *coordinates):
    """A float from 0 to below 1, with 24 bits."""
    counter = [hl.u32(at) for at in coordinates] + [hl.u32(0)] * (4 - len(coordinates))
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(ROUNDS):
        high0, low0 = wide_product(MULTIPLIERS[0], counter[0])
        high1, low1 = wide_product(MULTIPLIERS[1], counter[2])
        counter = [high1 ^ counter[1] ^ hl.u32(key[0]), low1, high0 ^ counter[3] ^ hl.u32(key[1]), low0]
        key = [(word + step) & 0xFFFFFFFF for word, step in zip(key, WEYL, strict=True)]
    return hl.f32(counter[0] >> 8) * hl.f32(2.0**-24)
