"""What products.tw computes."""

from fused.program import Kind
from fused.torch_if_present import F, torch

KIND = Kind("products", "Matrix products and what surrounds them")

PRODUCT = dict(N=256, D=512, F=1024)
ODD_PRODUCT = dict(N=255, D=1000, F=77)


@KIND.program(PRODUCT, ODD_PRODUCT)
def product_relu(x, W):
    return F.relu(F.linear(x, W))


@KIND.program(PRODUCT, ODD_PRODUCT, dict(N=1, D=1024, F=1000))
def product_bias_relu(x, W, b):
    return F.relu(F.linear(x, W, b))


@KIND.program(PRODUCT)
def product_bias_gelu(x, W, b):
    return F.gelu(F.linear(x, W, b))


@KIND.program(PRODUCT)
def product_bias_gelu_tanh(x, W, b):
    return F.gelu(F.linear(x, W, b), approximate="tanh")


@KIND.program(PRODUCT)
def product_silu(x, W):
    return F.silu(F.linear(x, W))


@KIND.program(PRODUCT)
def product_bias_softplus(x, W, b):
    return F.softplus(F.linear(x, W, b))


@KIND.program(PRODUCT)
def product_bias_mish(x, W, b):
    return F.mish(F.linear(x, W, b))


@KIND.program(PRODUCT)
def product_bias_residual(x, W, b, r):
    return F.linear(x, W, b) + r


@KIND.program(dict(N=256, D=1024, F=512))
def product_residual_layer_norm(x, W, r, w, b):
    return F.layer_norm(F.linear(x, W) + r, w.shape, w, b)


@KIND.program(PRODUCT)
def swiglu(x, W, V):
    return F.silu(F.linear(x, W)) * F.linear(x, V)


@KIND.program(PRODUCT)
def geglu(x, W, b, V, c):
    return F.gelu(F.linear(x, W, b)) * F.linear(x, V, c)


@KIND.program(dict(N=256, D=512, F2=2048, F=1024))
def packed_swiglu(x, W):
    gate, up = F.linear(x, W).chunk(2, dim=-1)
    return F.silu(gate) * up


@KIND.program(PRODUCT)
def feed_forward(x, W, V, U):
    return F.linear(F.silu(F.linear(x, W)) * F.linear(x, V), U)


@KIND.program(dict(N=256, D=512, F=1024, E=512), dict(N=77, D=100, F=255, E=10))
def mlp_relu(x, W, b, V, c):
    return F.linear(F.relu(F.linear(x, W, b)), V, c)


@KIND.program(PRODUCT)
def mlp_gelu_residual(x, W, b, V, c):
    return x + F.linear(F.gelu(F.linear(x, W, b)), V, c)


@KIND.program(dict(N=256, D=512, F=1024, R=16))
def low_rank_adapter(x, W, A, B):
    return F.linear(x, W) + 2 * F.linear(F.linear(x, A), B)


@KIND.program(dict(M=512, K=512, L=64, N=512))
def product_chain(A, B, C):
    return A @ B @ C


@KIND.program(dict(M=1024, K=1024, N=1024))
def vector_chain(A, B, x):
    return A @ (B @ x)


@KIND.program(dict(M=2048, N=1000))
def residual_norm(A, x, b):
    r = b - A @ x
    return r, torch.linalg.vector_norm(r)


@KIND.program(dict(N=1000))
def power_step(A, x):
    t = A @ x
    return t / torch.linalg.vector_norm(t)


@KIND.program(dict(B=1000, M=64, N=64))
def bilinear_form(x, A, y):
    return ((x @ A) * y).sum(-1)


@KIND.program(dict(M=1024, N=1024))
def rank_one_update(A, u, v, x):
    B = A + 0.1 * torch.outer(u, v)
    return B, B @ x


@KIND.program(dict(M=2048, N=1000))
def transpose_scale(x):
    return (x / x.abs().amax(0)).T.contiguous()


@KIND.program(dict(N=1024))
def symmetric_part(x):
    n = x.shape[0]
    return 0.5 * (x + x.T) - torch.eye(n, dtype=x.dtype, device=x.device) * (x.trace() / n)
