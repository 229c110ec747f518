"""Pipelines as Markdown: times in milliseconds, the ratio of each of our schedules to Halide's expert, and geometric means."""

from families.pipelines import AUTOSCHEDULERS, EXPERT
from rounds import Record
from row import Row, mean_ratio
from table import markdown, missing, number, spread
from workload import Way

WAYS = {Way.HAND: "by hand", Way.DEFAULT: "default", Way.TUNED: "tuned"}
SCHEDULERS = {"halide_mullapudi": "Mullapudi2016", "halide_adams": "Adams2019"}


def milliseconds(record: Record | None) -> str:
    return "-" if record is None or record.unavailable else f"{record.time_us() / 1000:.2f}"


def measured(rows: list[Row], name: str) -> bool:
    return any(name in row.records and not row.records[name].unavailable for row in rows)


def pipelines(rows: list[Row]) -> str:
    """A line for each pipeline; last, the geometric means."""
    ways = [way for way in WAYS if any(row.own(way) for row in rows)]
    schedulers = [name for name in AUTOSCHEDULERS if any(name in row.records for row in rows)]
    heading = ["pipeline", "threads", "Halide's expert ms"]
    heading += [cell for way in ways for cell in (f"{WAYS[way]} ms", f"{WAYS[way]} ratio")]
    heading += [f"{SCHEDULERS[name]} ms" for name in schedulers]
    lines = [
        [
            row.workload.title,
            str(row.threads),
            milliseconds(row.records.get(EXPERT)),
            *(cell for way in ways for cell in (milliseconds(row.own(way)), spread(row.ratio(way)))),
            *(milliseconds(row.records.get(name)) for name in schedulers),
        ]
        for row in rows
    ]
    return markdown(heading, [*lines, *means(rows, ways, len(schedulers))])


def means(rows: list[Row], ways: list[Way], others: int) -> list[list[str]]:
    lines = []
    for threads in dict.fromkeys(row.threads for row in rows):
        those = [row for row in rows if row.threads == threads]
        cells = []
        for way in ways:
            mean, count = mean_ratio(those, lambda row, way=way: row.ratio(way))
            cells += [f"{count} of {len(those)}", number(mean)]
        lines.append(["geometric mean", str(threads), "-", *cells, *["-"] * others])
    return lines


def report(rows: list[Row]) -> str:
    parts = [
        "Ratios are the time of Halide's expert schedule by ours, above 1 where Tilewright is faster:\n"
        "median (p10–p90) over the rounds. All have the same inputs, and results that agree.",
        pipelines(rows),
    ]
    if reasons := missing(rows):
        parts += ["## Not measured", reasons]
    return "\n\n".join(parts)
