"""What quantisation.tw computes."""

from fused.program import Kind, uniform
from fused.torch_if_present import F, torch

KIND = Kind("quantisation", "Numbers of 8 bits")

PRODUCT = dict(N=256, D=512, F=1024)
ROWS = dict(N=4096, D=1024)
SCALE = uniform(0.001, 0.01)


def by_row(x):
    scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-8) / 127
    return (x / scale).round().clamp(-127, 127).to(torch.int8), scale


@KIND.program(ROWS, rounded=True)
def quantise_rows(x):
    q, scale = by_row(x)
    return q, scale.squeeze(-1)


@KIND.program(PRODUCT, draws={"scale": SCALE})
def dequantise_product(x, W, scale):
    return F.linear(x, W.to(x.dtype) * scale[:, None])


@KIND.program(PRODUCT, draws={"xscale": SCALE, "wscale": SCALE})
def int8_product(x, W, xscale, wscale):
    return torch._int_mm(x, W.T) * xscale[:, None] * wscale


@KIND.program(ROWS, scalars={"scale": 0.007}, rounded=True)
def fake_quantise(x, scale):
    return (x / scale).round().clamp(-128, 127) * scale


# A number that is rounded to another step changes a whole row a little.
@KIND.program(PRODUCT, draws={"wscale": SCALE}, tolerance=1e-3)
def dynamic_int8_product(x, W, wscale):
    q, scale = by_row(x)
    return torch._int_mm(q, W.T) * scale * wscale
