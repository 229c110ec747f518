"""What statistics.tw computes."""

from fused.program import Kind, uniform
from fused.torch_if_present import torch

KIND = Kind("statistics", "Statistics")

ROWS = dict(N=4096, D=1024)


@KIND.program(ROWS, dict(N=1000, D=77))
def row_moments(x):
    return x.mean(-1), x.var(-1)


@KIND.program(ROWS)
def column_moments(x):
    return x.mean(0), x.var(0)


@KIND.program(ROWS, dict(N=1000, D=77))
def standardise_columns(x):
    return (x - x.mean(0)) / (x.std(0) + 1e-8)


@KIND.program(ROWS)
def scale_rows_to_unit(x):
    low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    return (x - low) / (high - low)


@KIND.program(dict(N=1_000_000))
def histogram(x):
    return torch.bincount(x, minlength=256).to(torch.float32) / x.shape[0]


@KIND.program(ROWS, draws={"x": uniform(0.01, 1)})
def row_entropy(x):
    p = x / x.sum(-1, keepdim=True)
    return -(p * p.log()).sum(-1)


@KIND.program(dict(H=1080, W=1920))
def to_bytes(x):
    low, high = x.amin(), x.amax()
    return ((x - low) / (high - low) * 255).to(torch.uint8)
