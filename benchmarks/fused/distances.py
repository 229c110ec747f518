"""What distances.tw computes."""

from fused.program import Kind
from fused.torch_if_present import F, torch

KIND = Kind("distances", "Distances")

PAIRS = dict(N=1000, D=64, M=1000)
LOW = dict(N=4096, D=3, M=1024)  # points in space


@KIND.program(PAIRS, LOW)
def euclidean(x, y):
    return torch.cdist(x, y)


@KIND.program(PAIRS)
def squared_by_product(x, y):
    return ((x * x).sum(-1)[:, None] - 2 * x @ y.T + (y * y).sum(-1)).clamp(min=0)


@KIND.program(dict(N=512, D=64, M=512))
def manhattan(x, y):
    return torch.cdist(x, y, p=1) / x.shape[-1]


@KIND.program(PAIRS, LOW)
def nearest(x, y):
    return torch.cdist(x, y).min(-1)


@KIND.program(PAIRS)
def cosine_similarity(x, y):
    return F.normalize(x) @ F.normalize(y).T


@KIND.program(dict(N=256, D=1024))
def centred_gram(x):
    c = x - x.mean(0)
    return c @ c.T


@KIND.program(dict(N=4096, D=128))
def covariance(x):
    return torch.cov(x.T)


@KIND.program(PAIRS)
def rbf_kernel(x, y):
    return torch.exp(-0.05 * torch.cdist(x, y) ** 2)


@KIND.program(PAIRS)
def rbf_predict(x, y, alpha):
    return torch.exp(-0.05 * torch.cdist(x, y) ** 2) @ alpha
