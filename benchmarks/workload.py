"""What a measurement is of: an operator at fixed sizes, its program, its peers, and the ratios aimed at.

Plain types, without imports from outside the standard library: the harness and the peers' workers both read them. The workloads
themselves are in families/.
"""

from dataclasses import dataclass, field
from enum import StrEnum


class Way(StrEnum):
    """How Tilewright comes to its schedule."""

    TUNED = "tuned"  # by `tilewright tune`
    HAND = "hand"  # a file under schedules/
    DEFAULT = "default"  # what every program gets without search


@dataclass(frozen=True)
class Target:
    """The speed aimed at, relative to the fastest of some peers; 1.0 is as fast."""

    way: Way
    ratio: float
    peers: tuple[str, ...]
    many_threads: float | None = None  # the ratio on several threads, where it is another

    def at(self, threads: int | None) -> float:
        return self.many_threads if self.many_threads is not None and threads != 1 else self.ratio


@dataclass(frozen=True)
class Milestone:
    """A share of a peer's speed; how many seconds of tuning reach it is reported."""

    peer: str
    ratio: float


@dataclass(frozen=True)
class Workload:
    name: str
    family: str
    operator: str  # the key that reference.py and the modules in peers/ know the work by
    title: str
    program: str  # FILE:NAME, relative to the repository root
    sizes: dict[str, int]  # by the program's own names
    peers: tuple[str, ...]  # the ratios are taken to the fastest of these, where no target says otherwise
    informative: tuple[str, ...] = ()  # measured and shown, but not compared with
    schedule: str | None = None  # the hand-written one, relative to the repository root
    targets: tuple[Target, ...] = ()
    milestone: Milestone | None = None
    smaller: dict[str, int] = field(default_factory=dict)  # sizes to compare results at, where their own would take too long

    def target(self, way: Way) -> Target | None:
        return next((target for target in self.targets if target.way is way), None)

    def deciding(self, way: Way) -> tuple[str, ...]:
        """The peers whose fastest the ratio of `way` is taken to."""
        target = self.target(way)
        return target.peers if target else self.peers

    def all_peers(self) -> tuple[str, ...]:
        """Everybody who is measured, each once."""
        aimed_at = [name for target in self.targets for name in target.peers]
        return tuple(dict.fromkeys([*self.peers, *aimed_at, *self.informative]))

    def compared_sizes(self) -> dict[str, int]:
        """The sizes at which results are compared with the reference."""
        return self.sizes | self.smaller


@dataclass(frozen=True)
class Goal:
    """A geometric mean aimed at: that of the tuned kernels of a family, relative to the fastest of some peers."""

    family: str
    peers: tuple[str, ...]
    ratio: float

    def peer(self) -> str:
        return " or ".join(self.peers)


def without_search(hand: float, default: float, peers: tuple[str, ...]) -> tuple[Target, Target]:
    return Target(Way.HAND, hand, peers), Target(Way.DEFAULT, default, peers)
