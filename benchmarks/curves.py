"""How good the best schedule was after each trial of a search: curves, what they have in common, and when they reach a share.

A curve has one value a trial, from trial 0, the default schedule and the cost model's first choice. Times are those of
the default schedule in the same run, which candidates are compared with: the machine is not as fast in every run. Shares are
speeds relative to the best time that any search of the same workload knew, so that 1 is the best and searches can be averaged.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Search:
    """One run of one strategy on one workload."""

    workload: str
    strategy: str
    seed: int
    best: list[float]  # after each trial, in times of the default schedule


@dataclass(frozen=True)
class Band:
    """Several searches of one strategy, trial by trial."""

    mean: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class Reached:
    """Trials until a share of the best, over the seeds; only of the searches that reached it."""

    searches: int
    reached: int
    mean: float | None
    deviation: float | None


def best_so_far(events: list[dict]) -> list[float]:
    """The best time after each trial, from the events of `tilewright tune --json`."""
    trials = [event for event in events if event["event"] == "trial" and event.get("best_us") is not None]
    if not trials:
        return []
    known: dict[int, float] = {}
    for event in trials:
        best = event["best_us"] / event["default_us"]
        known[event["trial"]] = min(best, known.get(event["trial"], best))
    curve: list[float] = []
    for trial in range(max(known) + 1):
        now = known.get(trial, float("inf"))
        curve.append(min(now, curve[-1]) if curve else now)
    return curve


def best_known(searches: Sequence[Search]) -> float:
    return min(search.best[-1] for search in searches)


def shares(search: Search, best: float, length: int) -> list[float]:
    """The curve relative to the best; one that ended early stays where it was."""
    curve = [best / time for time in search.best]
    return curve + [curve[-1]] * (length - len(curve))


def band(curves: Sequence[Sequence[float]]) -> Band:
    """Mean, lowest and highest, of curves of the same length."""
    columns = list(zip(*curves, strict=True))
    return Band([statistics.fmean(column) for column in columns], [*map(min, columns)], [*map(max, columns)])


def bands(searches: Sequence[Search]) -> dict[str, Band]:
    """A band for each strategy, of all searches of one workload."""
    best = best_known(searches)
    length = max(len(search.best) for search in searches)
    strategies = dict.fromkeys(search.strategy for search in searches)
    return {
        name: band([shares(search, best, length) for search in searches if search.strategy == name])
        for name in strategies
    }


def mean_bands(each: Sequence[dict[str, Band]]) -> dict[str, Band]:
    """The bands of several workloads as one: the means of their means, lows and highs, as far as the shortest goes."""
    names = [name for name in each[0] if all(name in one for one in each)]
    length = min(len(one[name].mean) for one in each for name in names)

    def averaged(curves: list[list[float]]) -> list[float]:
        return band([curve[:length] for curve in curves]).mean

    return {
        name: Band(
            averaged([one[name].mean for one in each]),
            averaged([one[name].low for one in each]),
            averaged([one[name].high for one in each]),
        )
        for name in names
    }


def trials_to(search: Search, best: float, share: float) -> int | None:
    return next((trial for trial, time in enumerate(search.best) if best / time >= share), None)


def reached(searches: Sequence[Search], best: float, share: float) -> Reached:
    trials = [found for search in searches if (found := trials_to(search, best, share)) is not None]
    return Reached(
        searches=len(searches),
        reached=len(trials),
        mean=statistics.fmean(trials) if trials else None,
        deviation=statistics.stdev(trials) if len(trials) > 1 else None,
    )
