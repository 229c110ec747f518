"""Results as Markdown, family by family: the ratios of tuned kernels, those without search, means, and every contender's time."""

from rounds import Ratio, Record
from row import Row, mean_ratio
from suite import Suite
from workload import Goal, Way

STATISTICS = {"median_us": "Medians", "p10_us": "Tenth percentiles"}


def microseconds(record: Record | None) -> str:
    if record is None or record.unavailable:
        return "-"
    value = record.time_us()
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def peer_cell(peer: Record | None) -> str:
    return f"{peer.name} {microseconds(peer)}" if peer else "-"


def threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def spread(value: Ratio | None) -> str:
    return f"{value.median:.2f} ({value.low:.2f}–{value.high:.2f})" if value else "-"


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def answer(met: bool | None) -> str:
    return "-" if met is None else "yes" if met else "no"


def markdown(heading: list[str], lines: list[list[str]]) -> str:
    rule = ["---"] + ["--:"] * (len(heading) - 1)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [heading, rule, *lines])


def tuned(rows: list[Row]) -> str:
    heading = ["work", "threads", "tuned µs", "default µs", "best peer", "ratio", "target", "met"]
    heading += ["tuning s", "trials", "trials/s"]
    lines = []
    for row in rows:
        search = row.tuning
        lines.append([
            row.workload.title,
            str(row.threads),
            microseconds(row.own(Way.TUNED)),
            microseconds(row.own(Way.DEFAULT)),
            peer_cell(row.best_peer(Way.TUNED)),
            spread(row.ratio(Way.TUNED)),
            number(row.target(Way.TUNED)),
            answer(row.met(Way.TUNED)),
            *([f"{search.seconds:.0f}", str(search.trials), f"{search.rate():.1f}"] if search else ["-"] * 3),
        ])
    return markdown(heading, lines)


def without_search(rows: list[Row]) -> str:
    heading = ["work", "threads", "hand µs", "default µs", "best peer", "hand ratio", "default ratio", "target", "met"]
    lines = [
        [
            row.workload.title,
            str(row.threads),
            microseconds(row.own(Way.HAND)),
            microseconds(row.own(Way.DEFAULT)),
            peer_cell(row.best_peer(Way.HAND)),
            spread(row.ratio(Way.HAND)),
            spread(row.ratio(Way.DEFAULT)),
            f"{number(row.target(Way.HAND))} / {number(row.target(Way.DEFAULT))}",
            f"{answer(row.met(Way.HAND))} / {answer(row.met(Way.DEFAULT))}",
        ]
        for row in rows
    ]
    return markdown(heading, lines)


def means(family: str, rows: list[Row], goals: tuple[Goal, ...]) -> str:
    """Geometric means of the tuned ratios, for each number of threads: of the family, and of its goal if it has one."""
    lines = []
    for count in dict.fromkeys(row.threads for row in rows):
        those = [row for row in rows if row.threads == count]
        mean, taken = mean_ratio(those, lambda row: row.ratio(Way.TUNED))
        if mean is not None:
            lines.append([f"best peer, {over(taken)}", str(count), number(mean), "-", "-"])
        for goal in goals:
            if goal.family == family:
                lines += [[what, str(count), *cells] for what, *cells in goal_lines(goal, those)]
    return markdown(["geometric mean of tuned to", "threads", "ratio", "target", "met"], lines) if lines else ""


def goal_lines(goal: Goal, rows: list[Row]) -> list[list[str]]:
    """Of all rows and of each operator: what it is a mean of, the mean, the target, and whether it is met."""

    def of(row: Row) -> Ratio | None:
        return row.ratio_to(Way.TUNED, row.fastest_of(goal.peers))

    mean, count = mean_ratio(rows, of)
    if mean is None:
        return []
    lines = [[f"{goal.peer()}, {over(count)}", number(mean), number(goal.ratio), answer(mean >= goal.ratio)]]
    operators = list(dict.fromkeys(row.workload.operator for row in rows))
    for operator in operators if len(operators) > 1 else []:
        each, count = mean_ratio([row for row in rows if row.workload.operator == operator], of)
        if each is not None:
            lines.append([f"{goal.peer()}, {operator}, {over(count)}", number(each), "-", "-"])
    return lines


def over(count: int) -> str:
    return f"{count} row{'s' if count != 1 else ''}"


def milestones(rows: list[Row]) -> str:
    """How long tuning took to come close to a peer, one line for each row that asks for it."""
    lines = []
    for row in rows:
        milestone = row.workload.milestone
        if milestone and row.tuning:
            seconds = row.seconds_to_milestone()
            when = f"after {seconds:.1f} s of tuning" if seconds is not None else "not reached"
            speed = f"{milestone.ratio:g} of the speed of {milestone.peer}"
            lines.append(f"{row.workload.title}, {threads(row.threads)}: {speed} {when}.")
    return "\n\n".join(lines)


def times(rows: list[Row]) -> str:
    """Microseconds of all contenders; the peer that the tuned ratio is taken to is in bold."""
    names = list(dict.fromkeys(name for row in rows for name in row.records))
    lines = []
    for row in rows:
        best = row.best_peer(Way.TUNED)
        cells = [microseconds(row.records.get(name)) for name in names]
        cells = [f"**{cell}**" if best and name == best.name else cell for name, cell in zip(names, cells, strict=True)]
        lines.append([row.workload.title, *([str(row.threads)] if row.threads else []), *cells])
    return markdown(["µs", *(["threads"] if rows[0].threads else []), *names], lines)


def missing(rows: list[Row]) -> str:
    """The reasons behind each `-`, each once, with the rows that it holds for."""
    places: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for record in row.records.values():
            if record.unavailable:
                where = row.workload.name + (f" on {row.threads}" if row.threads else "")
                places.setdefault((record.name, record.unavailable), []).append(where)
    return "\n".join(
        f"- {name}: {reason} ({'all rows' if len(where) == len(rows) else ', '.join(where)})"
        for (name, reason), where in places.items()
    )


def family_report(family: str, rows: list[Row], statistic: str, suite: Suite) -> list[str]:
    parts = [f"## {suite.headings[family]}"]
    if any(row.own(Way.TUNED) for row in rows):
        parts += [tuned(rows), means(family, rows, suite.goals), milestones(rows)]
    by_hand = [row for row in rows if row.own(Way.HAND)]
    if by_hand:
        parts += ["Without search, by hand and by default:", without_search(by_hand)]
    parts += [f"{STATISTICS[statistic]} of every contender:", times(rows)]
    return [part for part in parts if part]


def report(rows: list[Row], statistic: str, suite: Suite) -> str:
    parts = [
        "Ratios are speed relative to the fastest deciding peer, above 1 where Tilewright is faster:\n"
        "median (p10–p90) over the rounds."
    ]
    for family in suite.headings:
        those = [row for row in rows if row.workload.family == family]
        if those:
            parts += family_report(family, those, statistic, suite)
    if reasons := missing(rows):
        parts += ["## Not measured", reasons]
    return "\n\n".join(parts)
