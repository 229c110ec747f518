"""What attention.tw computes; scaled_dot_product_attention is PyTorch's own fused attention."""

from fused.program import Kind
from fused.torch_if_present import F, torch

KIND = Kind("attention", "Softmax and attention")

ROWS = dict(N=4096, D=1024)
ODD_ROWS = dict(N=1000, D=77)
HEADS = dict(B=8, H=8, S=512, D=64)


@KIND.program(ROWS, ODD_ROWS)
def softmax(x):
    return F.softmax(x, -1)


@KIND.program(ROWS)
def log_softmax(x):
    return F.log_softmax(x, -1)


@KIND.program(ROWS, scalars={"temperature": 0.7})
def softmax_temperature(x, temperature):
    return F.softmax(x / temperature, -1)


@KIND.program(ROWS)
def masked_softmax(x, mask):
    return F.softmax(x.masked_fill(~mask, float("-inf")), -1)


@KIND.program(dict(N=1024), dict(N=255))
def causal_softmax(x):
    mask = torch.ones_like(x, dtype=torch.bool).tril()
    return F.softmax((0.125 * x).masked_fill(~mask, float("-inf")), -1)


@KIND.program(dict(N=1024, D=1000))
def softmax_columns(x):
    return F.softmax(x, 0)


@KIND.program(ROWS)
def logsumexp(x):
    return torch.logsumexp(x, -1)


@KIND.program(dict(N=512, D=512, F=64))
def softmax_product(x, V):
    return F.softmax(x, -1) @ V


@KIND.program(dict(N=4096, D=1000))
def top_1(x):
    return F.softmax(x, -1).max(-1)


@KIND.program(dict(S=128, T=128, D=64), dict(S=77, T=77, D=40), dict(S=2048, T=2048, D=64))
def attention(q, k, v):
    return F.scaled_dot_product_attention(q[None, None], k[None, None], v[None, None])[0, 0]


@KIND.program(dict(S=128, D=64), dict(S=2048, D=64))
def causal_attention(q, k, v):
    return F.scaled_dot_product_attention(q[None, None], k[None, None], v[None, None], is_causal=True)[0, 0]


@KIND.program(dict(B=8, H=8, S=512, T=512, D=64), dict(B=2, H=12, S=77, T=77, D=64))
def multihead_attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


@KIND.program(HEADS)
def causal_multihead_attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@KIND.program(dict(H=8, S=256, T=256, D=64))
def biased_attention(q, k, v, bias):
    return F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=bias[None])[0]


@KIND.program(dict(H=32, T=2048, D=128))
def decode_attention(q, k, v):
    return F.scaled_dot_product_attention(q[None, :, None], k[None], v[None])[0, :, 0]


@KIND.program(HEADS)
def rotary(x, cosine, sine):
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine
