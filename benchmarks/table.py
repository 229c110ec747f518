"""Results as Markdown: the ratios, then every contender's time, then the reasons for what is missing."""

from dataclasses import dataclass

from rounds import Ratio, Record, fastest, ratio
from workload import Workload

HAND, DEFAULT = "ours, hand", "ours, default"
STATISTICS = {"median_us": "Medians", "p10_us": "Tenth percentiles"}


@dataclass(frozen=True)
class Row:
    """One workload at one thread count."""

    workload: Workload
    threads: int
    records: dict[str, Record]  # by contender

    def best_peer(self) -> Record | None:
        return fastest([self.records[name] for name in self.workload.peers])

    def hand_ratio(self) -> Ratio | None:
        return ratio(self.records[HAND], self.best_peer())

    def default_ratio(self) -> Ratio | None:
        return ratio(self.records[DEFAULT], self.best_peer())


def microseconds(record: Record | None) -> str:
    if record is None or record.unavailable:
        return "-"
    value = record.time_us()
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def spread(value: Ratio | None) -> str:
    return f"{value.median:.2f} ({value.low:.2f}–{value.high:.2f})" if value else "-"


def met(value: Ratio | None, target: float) -> str:
    if value is None:
        return "-"
    return "yes" if value.median >= target else "no"


def markdown(heading: list[str], lines: list[list[str]]) -> str:
    rule = ["---"] + ["--:"] * (len(heading) - 1)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [heading, rule, *lines])


def ratios(rows: list[Row]) -> str:
    heading = ["work", "threads", "hand µs", "default µs", "best peer", "hand ratio", "default ratio", "target", "met"]
    lines = []
    for row in rows:
        target = row.workload.target(row.threads)
        hand, default, peer = row.hand_ratio(), row.default_ratio(), row.best_peer()
        lines.append([
            row.workload.title,
            str(row.threads),
            microseconds(row.records[HAND]),
            microseconds(row.records[DEFAULT]),
            f"{peer.name} {microseconds(peer)}" if peer else "-",
            spread(hand),
            spread(default),
            f"{target.hand:.2f} / {target.default:.2f}",
            f"{met(hand, target.hand)} / {met(default, target.default)}",
        ])
    return markdown(heading, lines)


def times(rows: list[Row]) -> str:
    """Microseconds of all contenders; the peers that the ratios can be taken to are in bold where they are the fastest of these."""
    names = list(dict.fromkeys(name for row in rows for name in row.records))
    lines = []
    for row in rows:
        best = row.best_peer()
        cells = [microseconds(row.records.get(name)) for name in names]
        cells = [f"**{cell}**" if best and name == best.name else cell for name, cell in zip(names, cells, strict=True)]
        lines.append([row.workload.title, str(row.threads), *cells])
    return markdown(["µs", "threads", *names], lines)


def missing(rows: list[Row]) -> str:
    """The reasons behind each `-`, each once, with the rows that it holds for."""
    places: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for record in row.records.values():
            if record.unavailable:
                where = f"{row.workload.name} on {row.threads}"
                places.setdefault((record.name, record.unavailable), []).append(where)
    return "\n".join(
        f"- {name}: {reason} ({'all rows' if len(where) == len(rows) else ', '.join(where)})"
        for (name, reason), where in places.items()
    )


def report(rows: list[Row], statistic: str) -> str:
    parts = [
        "Ratios are speed relative to the best peer, above 1 where Tilewright is faster: median (lowest–highest) over the rounds.\n"
        "Targets and whether they are met: hand-written schedule / default schedule.",
        ratios(rows),
        f"{STATISTICS[statistic]} of every contender; the best peer in bold.",
        times(rows),
    ]
    if reasons := missing(rows):
        parts += ["Not measured:", reasons]
    return "\n\n".join(parts)
