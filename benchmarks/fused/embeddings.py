"""What embeddings.tw computes."""

from fused.program import Kind, below
from fused.torch_if_present import F, torch

KIND = Kind("embeddings", "Rows of tables")

BAGS = dict(E=100_000, D=64, B=1024, L=20)
INDEX = {"index": below("E")}


@KIND.program(BAGS | {"F": 64}, draws=INDEX)
def bag_product(table, index, W):
    return F.linear(F.embedding_bag(index, table, mode="mean"), W)


@KIND.program(BAGS, draws=INDEX)
def bag_normalise(table, index):
    return F.normalize(F.embedding_bag(index, table, mode="sum"))


@KIND.program(dict(E=30_000, D=768, B=8, L=128), draws=INDEX)
def embed_layer_norm(table, positions, index, w, bias):
    return F.layer_norm(F.embedding(index, table) + positions, w.shape, w, bias)


@KIND.program(dict(U=100_000, I=20_000, D=32, B=8192), draws={"user": below("U"), "item": below("I")})
def factorisation(users, items, user, item):
    return torch.sigmoid((users[user] * items[item]).sum(-1))


@KIND.program(dict(N=4000, D=64, E=40_000, F=64), draws={"source": below("N"), "target": below("N")})
def graph_layer(x, source, target, W):
    summed = torch.zeros_like(x).index_add_(0, target, x[source])
    return F.relu(F.linear(summed, W))
