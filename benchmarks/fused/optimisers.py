"""What optimisers.tw computes, in place."""

from fused.program import Kind, uniform
from fused.torch_if_present import torch

KIND = Kind("optimisers", "Steps of optimisers")

SIZE = dict(N=1_000_000)
SQUARES = {"v": uniform(0.01, 1)}


@KIND.program(SIZE)
def sgd_momentum(gradient, p, v):
    v.mul_(0.9).add_(gradient)
    p.sub_(v, alpha=0.001)
    return p, v


def moments(gradient, m, v):
    m.mul_(0.9).add_(gradient, alpha=0.1)
    v.mul_(0.999).addcmul_(gradient, gradient, value=0.001)


@KIND.program(SIZE, draws=SQUARES)
def adam(gradient, p, m, v):
    moments(gradient, m, v)
    p.addcdiv_(m, v.sqrt().add_(1e-8), value=-0.001)
    return p, m, v


@KIND.program(SIZE, draws=SQUARES)
def adamw(gradient, p, m, v):
    moments(gradient, m, v)
    p.mul_(1 - 0.001 * 0.01)
    p.addcdiv_(m, v.sqrt().add_(1e-8), value=-0.001)
    return p, m, v


@KIND.program(SIZE)
def clip_gradient(gradient):
    norm = torch.linalg.vector_norm(gradient)
    return gradient * torch.clamp(1 / (norm + 1e-6), max=1)
