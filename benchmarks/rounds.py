"""Interleaved measurement: bursts go round and round the contenders, and ratios are taken within a round.

Noise on a machine comes in stretches longer than a burst, so two bursts of one round have seen the same machine, and the ratio of
their medians is steadier than either. The order is rotated from round to round, so that nobody always follows the same neighbour.

Where other work takes a core away, a library that splits its work evenly over its threads waits out whole scheduler slices, and
its median says more about the machine than about the library. The tenth percentile of each burst is then the better statistic.
"""

import statistics
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from contender import Contender
from worker import Unavailable


@dataclass
class Record:
    """What one contender did."""

    name: str
    statistic: str  # what stands for a burst: median_us or p10_us
    about: dict = field(default_factory=dict)
    bursts: list[dict] = field(default_factory=list)  # one a round
    unavailable: str | None = None

    def times_us(self) -> list[float]:
        return [burst[self.statistic] for burst in self.bursts]

    def time_us(self) -> float | None:
        """The median over the rounds."""
        return None if self.unavailable else statistics.median(self.times_us())


@dataclass(frozen=True)
class Ratio:
    """Speed of one contender relative to another, over the rounds; above 1 is faster."""

    median: float
    low: float  # the tenth percentile
    high: float  # the ninetieth


def ratio(ours: Record, peer: Record | None) -> Ratio | None:
    if peer is None or ours.unavailable or peer.unavailable:
        return None
    each = [theirs / own for own, theirs in zip(ours.times_us(), peer.times_us(), strict=True)]
    return Ratio(statistics.median(each), percentile(each, 0.1), percentile(each, 0.9))


def percentile(values: Sequence[float], part: float) -> float:
    """By linear interpolation between the two nearest of the sorted values."""
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def geometric_mean(values: Sequence[float]) -> float | None:
    return statistics.geometric_mean(values) if values else None


def fastest(records: Sequence[Record]) -> Record | None:
    return min((record for record in records if not record.unavailable), key=Record.time_us, default=None)


@dataclass(frozen=True)
class Plan:
    rounds: int
    seconds: float  # of a burst
    statistic: str


def interleave(contenders: Sequence[Contender], plan: Plan, say: Callable[[str], None]) -> list[Record]:
    """A record for each contender, in their order. Who fails once is out, and its record says why."""
    records = {contender.name: Record(contender.name, plan.statistic) for contender in contenders}

    def attempt(contender: Contender, action: Callable[[], None]):
        record = records[contender.name]
        if record.unavailable:
            return
        try:
            action()
            record.about = contender.about
        except Unavailable as problem:
            record.unavailable = str(problem)
            say(f"  {contender.name}: {problem}")

    def measure(contender: Contender):
        records[contender.name].bursts.append(contender.measure(plan.seconds))

    with ExitStack() as open_contenders:
        for contender in contenders:
            open_contenders.callback(contender.close)
            attempt(contender, contender.start)
        for contender in contenders:
            attempt(contender, contender.prepare)
        for number in range(plan.rounds):
            first = number % len(contenders)
            for contender in [*contenders[first:], *contenders[:first]]:
                attempt(contender, partial(measure, contender))
            say(f"  round {number + 1} of {plan.rounds}: {latest(records.values())}")
    return list(records.values())


def latest(records: Iterable[Record]) -> str:
    shown = [f"{record.name} {record.times_us()[-1]:.0f}" for record in records if not record.unavailable]
    return ", ".join(shown) + " µs" if shown else "nobody to measure"
