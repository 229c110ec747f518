"""Results on a GPU as Markdown: every family with its ratios and means, every contender's time, and what was aimed at."""

from collections.abc import Sequence

from operations import operations
from rounds import Record
from row import Row, mean_ratio
from suite import Suite
from table import answer, goal_lines, markdown, microseconds, missing, number, peer_cell, spread, times
from workload import Goal, Way

TRIALS_A_SECOND = 15.0  # aimed at, with 16 cores to compile on
SLOWEST_DEFAULT = 10.0  # times as long as the tuned kernel


def gflops(row: Row, record: Record | None) -> str:
    if record is None or record.unavailable:
        return "-"
    value = operations(row.workload.operator, row.workload.sizes) / record.time_us() / 1e3
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def slowdown(row: Row) -> float | None:
    """How many times as long as the tuned kernel the default one takes."""
    found = row.ratio_to(Way.DEFAULT, row.own(Way.TUNED))
    return 1 / found.median if found else None


def tuned(rows: Sequence[Row]) -> str:
    heading = ["work", "tuned µs", "GFLOP/s", "best peer µs", "GFLOP/s", "ratio", "target", "met", "default µs"]
    heading += ["default / tuned", "tuning s", "trials", "trials/s"]
    lines = []
    for row in rows:
        own, peer, search = row.own(Way.TUNED), row.best_peer(Way.TUNED), row.tuning
        lines.append([
            row.workload.title,
            microseconds(own),
            gflops(row, own),
            peer_cell(peer),
            gflops(row, peer),
            spread(row.ratio(Way.TUNED)),
            number(row.target(Way.TUNED)),
            answer(row.met(Way.TUNED)),
            microseconds(row.own(Way.DEFAULT)),
            number(slowdown(row)),
            *([f"{search.seconds:.0f}", str(search.trials), f"{search.rate():.1f}"] if search else ["-"] * 3),
        ])
    return markdown(heading, lines)


def means(family: str, rows: list[Row], suite: Suite) -> str:
    lines = [line for goal in suite.goals if goal.family == family for line in goal_lines(goal, rows)]
    return markdown(["geometric mean of tuned to", "ratio", "target", "met"], lines) if lines else ""


def requirements(rows: Sequence[Row], suite: Suite) -> str:
    """What was aimed at, over the rows that were measured."""
    lines = []
    for family in suite.headings:
        those = [row for row in rows if row.workload.family == family]
        lines += [each_line(those)] if any(row.met(Way.TUNED) is not None for row in those) else []
        lines += [goal_line(goal, those) for goal in suite.goals if goal.family == family and those]
    lines += [line for line in (default_line(rows), throughput_line(rows)) if line]
    return markdown(["aimed at", "rows", "measured", "target", "met"], lines)


def each_line(rows: Sequence[Row]) -> list[str]:
    ratios = {row.workload.name: found.median for row in rows if (found := row.ratio(Way.TUNED))}
    worst = min(ratios, key=ratios.get)
    target = max(row.target(Way.TUNED) for row in rows)
    what = f"{rows[0].workload.family}: each, of {' or '.join(rows[0].workload.deciding(Way.TUNED))}"
    measured = f"{ratios[worst]:.2f} at least ({worst})"
    return [what, f"{len(ratios)} of {len(rows)}", measured, number(target), answer(ratios[worst] >= target)]


def goal_line(goal: Goal, rows: Sequence[Row]) -> list[str]:
    mean, count = mean_ratio(rows, lambda row: row.ratio_to(Way.TUNED, row.fastest_of(goal.peers)))
    met = answer(None if mean is None else mean >= goal.ratio)
    return [f"{goal.family}: geometric mean, of {goal.peer()}", f"{count} of {len(rows)}", number(mean), number(goal.ratio), met]


def default_line(rows: Sequence[Row]) -> list[str] | None:
    found = {row.workload.name: times for row in rows if (times := slowdown(row)) is not None}
    if not found:
        return None
    worst = max(found, key=found.get)
    met = answer(found[worst] <= SLOWEST_DEFAULT)
    measured = f"{found[worst]:.1f} at most ({worst})"
    return ["default schedule, times as long as tuned", f"{len(found)} of {len(rows)}", measured, f"{SLOWEST_DEFAULT:.1f}", met]


def throughput_line(rows: Sequence[Row]) -> list[str] | None:
    searches = {row.workload.name: row.tuning for row in rows if row.tuning}
    if not searches:
        return None
    slowest = min(searches, key=lambda name: searches[name].rate())
    overall = sum(one.trials for one in searches.values()) / sum(one.seconds for one in searches.values())
    measured = f"{overall:.1f} ({searches[slowest].rate():.1f} at least, {slowest})"
    met = answer(overall >= TRIALS_A_SECOND)
    return ["candidates a second", f"{len(searches)} of {len(rows)}", measured, f"{TRIALS_A_SECOND:.1f}", met]


def kernels(rows: Sequence[Row]) -> str:
    """How many kernels the tuned layers are."""
    found = [(row, own.about["kernels"]) for row in rows if (own := row.own(Way.TUNED)) and "kernels" in own.about]
    several = [f"{row.workload.title}: {count} kernel{'s' if count > 1 else ''}" for row, count in found]
    return "Tuned, " + "; ".join(several) + "." if several else ""


def introduction(about: dict) -> str:
    versions = [f"{name} {about[key]}" for name, key in VERSIONS.items() if about.get(key)]
    return (
        f"{about['device']}; {', '.join(versions)}; {about['cores']} processor cores; {about['began']}. "
        f"Up to {about['tune']:g} s of tuning a row, {about['rounds']} rounds. Single precision without tensor cores; events of "
        f"the device, an empty L2 cache before every sample.\n\n    {about['command']}"
    )


VERSIONS = {"driver": "driver", "CUDA": "cuda", "PyTorch": "torch", "cuDNN": "cudnn", "Tilewright": "tilewright"}


def report(rows: Sequence[Row], suite: Suite, about: dict) -> str:
    parts = [
        introduction(about),
        "Ratios are speed relative to the fastest deciding peer, above 1 where Tilewright is faster:\n"
        "median (p10–p90) over the rounds.",
    ]
    for family, heading in suite.headings.items():
        those = [row for row in rows if row.workload.family == family]
        if those:
            parts += [f"**{heading}.**", tuned(those), means(family, those, suite), kernels(those)]
            parts += ["Microseconds of every contender:", times(those)]
    parts += ["**What was aimed at.**", requirements(rows, suite)]
    if reasons := missing(rows):
        parts += ["**Not measured.**", reasons]
    return "\n\n".join(part for part in parts if part)
