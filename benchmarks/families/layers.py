"""Layers of networks: a perceptron, normalisations, look-ups, most at the shapes of Tensor Comprehensions."""

from dataclasses import replace

from families.flextensor import FRAMEWORKS, depthwise_by_hand
from workload import Target, Way, Workload, without_search

COMPILED = "pytorch_compiled"
TUNED = Target(Way.TUNED, 1.3, ("pytorch",))
NO_SLOWER = without_search(1.0, 0.7, FRAMEWORKS)


def layer(operator: str, title: str, shape: str, sizes: dict[str, int]) -> Workload:
    return Workload(
        name=f"{operator}_{shape}",
        family="layers",
        operator=operator,
        title=f"{title} {shape.replace('_', ' ')}",
        program=f"examples/benchmarks/{operator}.tw:{operator}",
        sizes=sizes,
        peers=("pytorch",),
        informative=(COMPILED,),
        targets=(TUNED,),
    )


def by_hand(work: Workload) -> Workload:
    """The same with a schedule of its operator, compared with all frameworks."""
    return replace(work, schedule=f"schedules/{work.operator}.sched", targets=(*work.targets, *NO_SLOWER))


def rows(operator: str, title: str, n: int, d: int) -> Workload:
    """An operator over the last axis of a matrix."""
    return by_hand(layer(operator, title, f"{n}x{d}", {"N": n, "D": d}))


def group_norm(n: int, c: int, groups: int, image: int) -> Workload:
    sizes = {"N": n, "G": groups, "D": c // groups, "H": image, "W": image}
    work = layer("group_norm", "group norm", f"{n}x{c}x{image}x{image}", sizes)
    kernel = "group_normalization_single_kernel"
    return replace(work, program=f"examples/benchmarks/{kernel}.tw:{kernel}")


def mlp3(b: int, n: int, o: int, p: int, q: int) -> Workload:
    return layer("mlp3", "MLP3", f"{b}x{n}x{o}x{p}x{q}", {"B": b, "N": n, "O": o, "P": p, "Q": q})


def lookups(b: int, d: int, l: int, e: int) -> tuple[Workload, Workload]:
    """One table, and two."""
    shape = f"B{b}_D{d}_L{l}_E{e}"
    one = layer("1LUT", "1LUT", shape, {"B": b, "D": d, "L": l, "E": e})
    two = layer("2LUT", "2LUT", shape, {"B": b, "D": d, "L1": l, "E1": e, "L2": l, "E2": e})
    return by_hand(one), two


WORKLOADS = (
    mlp3(b=128, n=128, o=64, p=32, q=2),
    rows("softmax", "softmax", 1024, 1024),
    rows("softmax", "softmax", 128, 4096),
    rows("layer_norm", "layer norm", 1024, 1024),
    rows("layer_norm", "layer norm", 512, 768),  # one sequence of BERT base
    group_norm(n=4, c=512, groups=32, image=12),
    group_norm(n=32, c=512, groups=32, image=48),
    *lookups(b=128, d=64, l=50, e=100_000),
    replace(depthwise_by_hand(256, 56), family="layers"),
)
