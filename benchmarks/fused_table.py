"""Fused programs as Markdown: the time of everybody, the ratio to the better of eager and compiled PyTorch, and means."""

from collections.abc import Sequence

from rounds import Ratio
from row import Row, mean_ratio
from suite import Suite
from table import markdown, microseconds, missing, number, over, spread
from workload import Way

LOW = 0.7  # ratios below are in bold, and listed

WAYS = {Way.DEFAULT: "default", Way.TUNED: "tuned"}


def place(row: Row) -> str:
    return str(row.threads) if row.threads else "GPU"


def marked(ratio: Ratio | None) -> str:
    text = spread(ratio)
    return f"**{text}**" if ratio and ratio.median < LOW else text


def measured_ways(rows: Sequence[Row]) -> list[Way]:
    return [way for way in WAYS if any(row.own(way) for row in rows)]


def programs(rows: Sequence[Row]) -> str:
    ways = measured_ways(rows)
    peers = list(dict.fromkeys(name for row in rows for name in row.workload.all_peers() if name in row.records))
    heading = ["program", "threads", *(f"{WAYS[way]} µs" for way in ways), *(f"{name} µs" for name in peers)]
    heading += [f"{WAYS[way]} ratio" for way in ways]
    lines = [
        [
            row.workload.title,
            place(row),
            *(microseconds(row.own(way)) for way in ways),
            *(microseconds(row.records.get(name)) for name in peers),
            *(marked(row.ratio(way)) for way in ways),
        ]
        for row in rows
    ]
    return markdown(heading, lines)


def means(rows: Sequence[Row], suite: Suite) -> str:
    """Geometric means of the kinds and of all, for each number of threads."""
    ways = measured_ways(rows)
    lines = []
    for where in dict.fromkeys(place(row) for row in rows):
        those = [row for row in rows if place(row) == where]
        kinds = {heading: [row for row in those if row.workload.family == kind] for kind, heading in suite.headings.items()}
        for heading, members in [*kinds.items(), ("**all**", those)]:
            if members:
                lines.append([heading, where, *mean_cells(members, ways)])
    columns = [cell for way in ways for cell in ("of", f"{WAYS[way]} ratio")]
    return markdown(["geometric mean", "threads", *columns], lines)


def mean_cells(rows: Sequence[Row], ways: Sequence[Way]) -> list[str]:
    cells = []
    for way in ways:
        mean, count = mean_ratio(rows, lambda row, way=way: row.ratio(way))
        cells += [over(count), number(mean)]
    return cells


def lowest(rows: Sequence[Row]) -> str:
    """The default schedules below LOW, the lowest first."""
    found = [(ratio.median, row) for row in rows if (ratio := row.ratio(Way.DEFAULT)) and ratio.median < LOW]
    found.sort(key=lambda pair: pair[0])
    lines = [[row.workload.title, place(row), number(ratio), row.best_peer(Way.DEFAULT).name] for ratio, row in found]
    return markdown(["program", "threads", "ratio", "best peer"], lines) if lines else ""


def report(rows: Sequence[Row], suite: Suite) -> str:
    parts = [
        "Ratios are the time of the better of eager and compiled PyTorch by ours, above 1 where Tilewright is faster:\n"
        f"median (p10–p90) over the rounds. Those below {LOW:g} are in bold.",
        programs(rows),
        means(rows, suite),
    ]
    if low := lowest(rows):
        parts += [f"**Below {LOW:g}, by default.**", low]
    if reasons := missing(rows):
        parts += ["**Not measured.**", reasons]
    return "\n\n".join(parts)
