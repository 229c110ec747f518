"""What convolutions.tw computes."""

from fused.program import Kind, uniform
from fused.torch_if_present import F, torch

KIND = Kind("convolutions", "Convolutions, pooling")

CONV = dict(N=1, C=64, H=56, W=56, K=64, R=3, S=3)
VARIANCE = {"var": uniform(0.1, 1)}


@KIND.program(CONV, dict(N=1, C=77, H=35, W=35, K=100, R=3, S=3))
def conv_bias_relu(x, w, b):
    return F.relu(F.conv2d(x, w, b, padding=1))


@KIND.program(CONV, draws=VARIANCE)
def conv_batch_norm_relu(x, w, mean, var, gamma, beta):
    return F.relu(F.batch_norm(F.conv2d(x, w, padding=1), mean, var, gamma, beta))


@KIND.program(CONV)
def conv_relu_max_pool(x, w, b):
    return F.max_pool2d(F.relu(F.conv2d(x, w, b, padding=1)), 2)


@KIND.program(dict(N=1, C=64, H=56, W=56, K=256))
def pointwise_conv_residual_relu(x, w, b, r):
    return F.relu(F.conv2d(x, w[:, :, None, None], b) + r)


@KIND.program(dict(N=1, C=3, H=224, W=224, K=64, R=7, S=7))
def stem(x, w, b):
    return F.relu(F.conv2d(x, w, b, stride=2, padding=3))


@KIND.program(dict(N=1, C=96, H=112, W=112, R=3, S=3))
def depthwise_bias_relu6(x, w, b):
    return F.relu6(F.conv2d(x, w[:, None], b, stride=2, padding=1, groups=x.shape[1]))


@KIND.program(dict(N=1, C=64, H=56, W=56, R=3, S=3, K=128))
def depthwise_separable(x, w, b, v, d):
    a = F.relu(F.conv2d(x, w[:, None], b, padding=1, groups=x.shape[1]))
    return F.relu(F.conv2d(a, v[:, :, None, None], d))


@KIND.program(dict(N=1, C=64, H=56, W=56, R=16))
def squeeze_excite(x, V, U):
    h = F.relu(F.linear(x.mean((2, 3)), V))
    return x * torch.sigmoid(F.linear(h, U))[:, :, None, None]


@KIND.program(dict(N=8, C=512, H=7, W=7, K=1000))
def pooled_classifier(x, V, b):
    return F.linear(x.mean((2, 3)), V, b)


@KIND.program(dict(N=1, C=64, H=56, W=56))
def pool_contrast(x):
    a = F.avg_pool2d(x, 2)
    return a - a.mean((2, 3), keepdim=True)


@KIND.program(dict(N=1, C=80, T=3000, K=384, R=3))
def conv1d_gelu(x, w, b):
    return F.gelu(F.conv1d(x, w, b, padding=1))
