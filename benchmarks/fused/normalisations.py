"""What normalisations.tw computes."""

from fused.program import Kind, uniform
from fused.torch_if_present import F, torch

KIND = Kind("normalisations", "Normalisations")

ROWS = dict(N=4096, D=1024)
ODD_ROWS = dict(N=1000, D=77)
PRODUCT = dict(N=256, D=512, F=1024)
ODD_PRODUCT = dict(N=255, D=1000, F=77)
IMAGE = dict(N=1, C=64, H=56, W=56)
GROUPS = dict(N=1, G=8, C=8, H=56, W=56)
VARIANCE = {"var": uniform(0.1, 1)}


@KIND.program(PRODUCT, ODD_PRODUCT)
def rms_product(x, W):
    h = x * torch.rsqrt((x * x).sum(-1, keepdim=True))
    return F.linear(h, W)


@KIND.program(ROWS, ODD_ROWS)
def rms_norm(x, w):
    return F.rms_norm(x, w.shape, w, 1e-6)


@KIND.program(ROWS)
def rms_norm_residual(x, r, w):
    h = x + r
    return h, F.rms_norm(h, w.shape, w, 1e-6)


@KIND.program(PRODUCT)
def rms_norm_swiglu(x, w, W, V):
    h = F.rms_norm(x, w.shape, w, 1e-6)
    return F.silu(F.linear(h, W)) * F.linear(h, V)


@KIND.program(ROWS, ODD_ROWS)
def layer_norm(x, w, b):
    return F.layer_norm(x, w.shape, w, b)


@KIND.program(ROWS)
def layer_norm_residual(x, r, w, b):
    return F.layer_norm(x + r, w.shape, w, b)


@KIND.program(PRODUCT)
def layer_norm_product(x, w, b, W, c):
    return F.linear(F.layer_norm(x, w.shape, w, b), W, c)


@KIND.program(ROWS)
def l2_normalise(x):
    return F.normalize(x)


@KIND.program(GROUPS)
def group_norm(x, w, b):
    return F.group_norm(x.flatten(1, 2), x.shape[1], w.flatten(), b.flatten()).view_as(x)


@KIND.program(GROUPS, dict(N=2, G=32, C=10, H=32, W=32))
def group_norm_silu(x, w, b):
    return F.silu(F.group_norm(x.flatten(1, 2), x.shape[1], w.flatten(), b.flatten())).view_as(x)


@KIND.program(IMAGE)
def instance_norm(x):
    return F.instance_norm(x)


@KIND.program(IMAGE, draws=VARIANCE)
def batch_norm(x, mean, var, w, b):
    return F.batch_norm(x, mean, var, w, b)


@KIND.program(IMAGE, draws=VARIANCE)
def batch_norm_residual_relu(x, r, mean, var, w, b):
    return F.relu(F.batch_norm(x, mean, var, w, b) + r)
