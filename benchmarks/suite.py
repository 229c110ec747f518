"""Workloads that are measured and reported together: those of the CPU, and those of the GPU."""

from dataclasses import dataclass

from workload import Goal, Workload


@dataclass(frozen=True)
class Suite:
    """The order of the workloads is the order of measuring and of the tables."""

    workloads: tuple[Workload, ...]
    goals: tuple[Goal, ...]
    headings: dict[str, str]  # of every family, in the order of the tables

    def named(self, name: str) -> Workload:
        for work in self.workloads:
            if work.name == name:
                return work
        raise ValueError(f"there is no workload `{name}`; --list shows them")

    def selected(self, words: list[str]) -> list[Workload]:
        """Those that the words mean, in their order here; all of them without a word."""
        wanted = [work.name for word in words for work in self.meant(word)]
        return [work for work in self.workloads if not words or work.name in wanted]

    def meant(self, word: str) -> list[Workload]:
        """A family, else an operator, else one workload by its name."""
        for key in ("family", "operator", "name"):
            if found := [work for work in self.workloads if getattr(work, key) == word]:
                return found
        raise ValueError(f"there is no family, operator or workload `{word}`; --list shows them")

    def listing(self) -> str:
        return "\n".join(f"{work.name}  (family {work.family}, operator {work.operator})" for work in self.workloads)
