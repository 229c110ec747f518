"""What losses.tw computes."""

from fused.program import Kind, below, signs, uniform
from fused.torch_if_present import F, torch

KIND = Kind("losses", "Losses")

ROWS = dict(N=4096, D=1024)
CLASSES = dict(N=4096, C=1000)
TARGET = {"target": below("C")}


@KIND.program(CLASSES, draws=TARGET)
def cross_entropy(x, target):
    return F.cross_entropy(x, target)


@KIND.program(CLASSES, draws=TARGET)
def smoothed_cross_entropy(x, target):
    return F.cross_entropy(x, target, label_smoothing=0.1)


@KIND.program(ROWS, dict(N=77, D=255))
def mse(x, y):
    return F.mse_loss(x, y)


@KIND.program(ROWS)
def huber(x, y):
    return F.huber_loss(x, y, delta=0.5)


@KIND.program(ROWS)
def kl_divergence(x, y):
    return F.kl_div(F.log_softmax(x, -1), F.log_softmax(y, -1), log_target=True, reduction="batchmean")


@KIND.program(ROWS)
def cosine_loss(x, y):
    return (1 - F.cosine_similarity(x, y)).mean()


@KIND.program(ROWS, draws={"label": signs()})
def hinge(x, w, label):
    return F.relu(1 - label * (x @ w)).mean()


@KIND.program(ROWS, draws={"y": uniform(0, 1)})
def bce_with_logits(x, y):
    return F.binary_cross_entropy_with_logits(x, y)


@KIND.program(dict(N=4096, D=128))
def triplet(x, near, far):
    distance = torch.linalg.vector_norm
    return F.relu(distance(x - near, dim=-1) - distance(x - far, dim=-1) + 1).mean()
