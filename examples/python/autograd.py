"""An operator of PyTorch whose gradient is a program too: an activation with a slope that each channel learns.

The forward and the backward are written in Tilewright's language, checked against finite differences by PyTorch itself, and used to train a
small model with `torch.compile`.

    python autograd.py
"""

import sys

import torch

import tilewright as tw
import tilewright.torch

FORWARD = """
def swish(double(N, C) x, double(C) a) -> (y) {
  y(n, c) = x(n, c) * sigmoid(a(c) * x(n, c))
}
"""
# The gradient of the result comes behind the inputs; the gradients of the inputs go out in their order.
BACKWARD = """
def swish_backward(double(N, C) x, double(C) a, double(N, C) g) -> (dx, da) {
  s(n, c)  = sigmoid(a(c) * x(n, c))
  dx(n, c) = g(n, c) * (s(n, c) + a(c) * x(n, c) * s(n, c) * (1 - s(n, c)))
  da(c)  +=! g(n, c) * x(n, c) * x(n, c) * s(n, c) * (1 - s(n, c))
}
"""


class Swish(torch.nn.Module):
    """The operator with its slopes."""

    swish = staticmethod(tw.torch.op(tw.define(FORWARD), "examples::swish", backward=tw.define(BACKWARD)))

    def __init__(self, channels):
        super().__init__()
        self.slope = torch.nn.Parameter(torch.ones(channels, dtype=torch.float64))

    def forward(self, x):
        return self.swish(x, self.slope)


def check():
    """Ends the program if the gradient is not that of the forward."""
    x = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    a = torch.rand(4, dtype=torch.float64, requires_grad=True)
    if not torch.autograd.gradcheck(Swish.swish, (x, a)):
        sys.exit("the gradient is wrong")
    print("the gradient is that of finite differences")


def train(steps):
    """Fits a sine, and gives the mean error before and after."""
    torch.manual_seed(1)
    linear = {"dtype": torch.float64}
    model = torch.nn.Sequential(torch.nn.Linear(1, 32, **linear), Swish(32), torch.nn.Linear(32, 1, **linear))
    # The operator is one step of what is compiled, whatever compiles the rest.
    compiled = torch.compile(model, backend="aot_eager")
    x = torch.linspace(-3, 3, 200, dtype=torch.float64)[:, None]
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    errors = []
    for _ in range(steps):
        error = (compiled(x) - torch.sin(x)).square().mean()
        optimiser.zero_grad()
        error.backward()
        optimiser.step()
        errors.append(error.item())
    slopes = model[1].slope.detach()
    print(f"error {errors[0]:.4f} before, {errors[-1]:.6f} after {steps} steps; slopes from {slopes.min():.2f} to {slopes.max():.2f}")
    return errors[0], errors[-1]


def main():
    check()
    before, after = train(300)
    if not after < 0.05 * before:
        sys.exit("the model has learned nothing")


if __name__ == "__main__":
    main()
