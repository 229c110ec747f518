"""The workloads, one module a family. Their order is the order of measuring and of the tables."""

from families import batch, flextensor, gemm, layers, yolo
from workload import Goal, Workload

WORKLOADS: tuple[Workload, ...] = (
    *gemm.WORKLOADS,
    *batch.WORKLOADS,
    *yolo.WORKLOADS,
    *flextensor.WORKLOADS,
    *layers.WORKLOADS,
)
GOALS: tuple[Goal, ...] = (yolo.GOAL, flextensor.GOAL)
FAMILIES = tuple(dict.fromkeys(work.family for work in WORKLOADS))


def named(name: str) -> Workload:
    for work in WORKLOADS:
        if work.name == name:
            return work
    raise ValueError(f"there is no workload `{name}`; --list shows them")


def selected(words: list[str]) -> list[Workload]:
    """Those that the words mean, in their order here; all of them without a word."""
    wanted = [work.name for word in words for work in meant(word)]
    return [work for work in WORKLOADS if not words or work.name in wanted]


def meant(word: str) -> list[Workload]:
    """A family, else an operator, else one workload by its name."""
    for key in ("family", "operator", "name"):
        if found := [work for work in WORKLOADS if getattr(work, key) == word]:
            return found
    raise ValueError(f"there is no family, operator or workload `{word}`; --list shows them")
