"""One workload at one thread count, measured: the ratios, whether the targets are met, and the same as JSON and back."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import tuning
from contender import own_name
from rounds import Ratio, Record, fastest, geometric_mean, ratio
from suite import Suite
from tuning import Tuning
from workload import Way, Workload


@dataclass(frozen=True)
class Row:
    workload: Workload
    threads: int | None  # None on a GPU
    records: dict[str, Record]  # by contender
    tuning: Tuning | None = None

    def own(self, way: Way) -> Record | None:
        return self.records.get(own_name(way))

    def best_peer(self, way: Way) -> Record | None:
        """The fastest of those that decide about this way."""
        return self.fastest_of(self.workload.deciding(way))

    def fastest_of(self, names: Sequence[str]) -> Record | None:
        return fastest([self.records[name] for name in names if name in self.records])

    def ratio(self, way: Way) -> Ratio | None:
        return self.ratio_to(way, self.best_peer(way))

    def ratio_to(self, way: Way, peer: Record | None) -> Ratio | None:
        own = self.own(way)
        return ratio(own, peer) if own else None

    def target(self, way: Way) -> float | None:
        target = self.workload.target(way)
        return target.at(self.threads) if target else None

    def met(self, way: Way) -> bool | None:
        """None where there is no target, or nothing to compare."""
        target, found = self.target(way), self.ratio(way)
        return None if target is None or found is None else found.median >= target

    def seconds_to_milestone(self) -> float | None:
        """The seconds of tuning until the workload's milestone."""
        milestone = self.workload.milestone
        peer = self.records.get(milestone.peer) if milestone else None
        if self.tuning is None or peer is None or peer.unavailable:
            return None
        return self.tuning.seconds_until(peer.time_us() / milestone.ratio)


def mean_ratio(rows: Sequence[Row], of: Callable[[Row], Ratio | None]) -> tuple[float | None, int]:
    """The geometric mean of the medians, and over how many rows it is."""
    medians = [found.median for row in rows if (found := of(row))]
    return geometric_mean(medians), len(medians)


def to_json(row: Row) -> dict:
    """All that was measured, and what follows from it for whoever reads the file."""
    ratios = {}
    for way in Way:
        found, peer = row.ratio(way), row.best_peer(way)
        if found and peer:
            ratios[way] = asdict(found) | {"peer": peer.name, "target": row.target(way), "met": row.met(way)}
    return {
        "workload": row.workload.name,
        "family": row.workload.family,
        "sizes": row.workload.sizes,
        "threads": row.threads,
        "ratio": ratios,
        "tuning": asdict(row.tuning) if row.tuning else None,
        "contenders": [asdict(record) | {"time_us": record.time_us()} for record in row.records.values()],
    }


def from_json(fields: dict, suite: Suite) -> Row:
    records = {}
    for contender in fields["contenders"]:
        contender.pop("time_us")
        records[contender["name"]] = Record(**contender)
    searched = fields["tuning"]
    found = tuning.recorded(searched) if searched else None
    return Row(suite.named(fields["workload"]), fields["threads"], records, found)
