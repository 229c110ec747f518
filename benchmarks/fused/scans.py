"""What scans.tw computes."""

from fused.program import Kind
from fused.torch_if_present import F, torch

KIND = Kind("scans", "Scans")

ROWS = dict(N=1024, T=1000)


@KIND.program(ROWS)
def running_mean(x):
    return x.cumsum(-1) / torch.arange(1, x.shape[-1] + 1, dtype=x.dtype, device=x.device)


@KIND.program(dict(T=1024, N=1000))
def cumsum_columns(x, w):
    return x.cumsum(0) * w


@KIND.program(dict(T=64, N=4096))
def exponential_average(x):
    steps = [x[0]]
    for row in x[1:]:
        steps.append(torch.lerp(steps[-1], row, 0.1))
    return torch.stack(steps)


@KIND.program(ROWS)
def drawdown(x):
    return x.cummax(-1).values - x


@KIND.program(ROWS)
def softmax_cumsum(x):
    return F.softmax(x, -1).cumsum(-1)
