"""Trends of an environment: rules by runs as a heat map, and partitions, differences and duration as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from topicops.features.ask.history.file import read_history
from topicops.features.ask.history.lines import HistoryLine
from topicops.model.codes import Code
from topicops.model.errors import TopicopsError
from topicops.model.printable import plural
from topicops.steps.reporting.markup import Html, tag, together

RUNS_SHOWN = 60
_WIDE, _HIGH, _CELL = 720, 60, 11


def trends_page(home: Path, environment: str) -> Iterator[Html]:
    """Yield what the page shows of the last runs that read the cluster, and which lines of the history are left out."""
    try:
        lines, left_out = read_history(home, environment)
    except TopicopsError:
        lines, left_out = (), ()
    yield from shown_trends(last_runs(lines))
    yield from (tag("p", sentence, cls="card warn") for sentence in left_out)


def last_runs(lines: Sequence[HistoryLine], most: int = RUNS_SHOWN) -> Sequence[HistoryLine]:
    """Choose the last runs that read the cluster, oldest first; of several lines of a run the last one."""
    return sorted({line.run: line for line in lines if line.read_at}.values(), key=lambda line: line.at)[-most:]


def shown_trends(runs: Sequence[HistoryLine]) -> Iterator[Html]:
    """Yield lines and heat map of these runs, oldest first."""
    if not runs:
        yield tag("p", "No run of this environment has left a history yet.", cls="empty")
        return
    yield from _lines(runs)
    yield from _heat_map(runs)


def _lines(runs: Sequence[HistoryLine]) -> Iterator[Html]:
    first, last = runs[0].at, runs[-1].at
    about = f"The last {plural(len(runs), 'full run')}, {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC."
    yield tag("p", f"{about} Runs that found nothing different and ended early are not in it.", cls="muted")
    of_cluster: Mapping[str, Sequence[float | None]] = {
        "partitions": [run.partitions for run in runs],
        "topics that differ from their files": [run.differing for run in runs],
    }
    of_runs: Mapping[str, Sequence[float | None]] = {
        "changes held or blocked": [run.waiting for run in runs],
        "seconds from reading the cluster to the end": [(run.recorded_at - run.at).total_seconds() for run in runs],
    }
    for name, values in of_cluster.items():
        yield _line(runs, name, values, is_of_cluster=True)
    for name, values in of_runs.items():
        yield _line(runs, name, values, is_of_cluster=False)


def _line(runs: Sequence[HistoryLine], name: str, values: Sequence[float | None], *, is_of_cluster: bool) -> Html:
    """Draw a line, with the last value beside the time of its run; those of the cluster are before its changes."""
    known = [value for value in values if value is not None]
    if not known:
        return together(tag("h2", name), tag("p", "not known of these runs", cls="muted"))
    low, high = min(0.0, *known), max(1.0, *known)
    step = _WIDE / max(1, len(values) - 1)
    points = " ".join(
        f"{place * step:.1f},{_HIGH - (value - low) / (high - low) * (_HIGH - 4) - 2:.1f}"
        for place, value in enumerate(values)
        if value is not None
    )
    newest = next(run for run, value in zip(reversed(runs), reversed(values), strict=True) if value is not None)
    last, most = known[-1], max(known)
    changes = newest.in_place + newest.not_in_place
    sent = f", before the {plural(changes, 'change')} of that run" if is_of_cluster and changes else ""
    when = f"at {newest.at:%Y-%m-%d %H:%M} UTC{sent}"
    label = f"{name}: {last:,.0f} {when}, at most {most:,.0f}, at least {min(known):,.0f}"
    dot = points.rpartition(" ")[2].split(",")
    chart = tag(
        "svg", tag("title", label), tag("polyline", points=points, cls="line"),
        tag("circle", cx=dot[0], cy=dot[1], r=3, cls="dot"), cls="trend", viewBox=f"-4 0 {_WIDE + 8} {_HIGH}",
        role="img", aria_label=label,
    )  # fmt: skip
    numbers = tag("p", tag("strong", f"{last:,.0f}"), f" {when}; {min(known):,.0f} to {most:,.0f}", cls="muted")
    return together(tag("h2", name), numbers, chart)


def _heat_map(runs: Sequence[HistoryLine]) -> Iterator[Html]:
    """Yield a row for each rule that failed in one of the runs; dark: more rows failed."""
    yield tag("h2", "Quality rules, run by run")
    failing = sorted({rule for run in runs for rule, failed in run.rules.items() if failed})
    if not failing:
        yield tag("p", _others(runs, failing), cls="muted")
        return
    rows = [tag("tr", tag("th", tag("code", rule), scope="row"), tag("td", _heat_row(runs, rule))) for rule in failing]
    yield tag("div", tag("table", tag("tbody", *rows), cls="heat"), cls="scroll")
    yield tag("p", f"Oldest run left, newest right. {_others(runs, failing)}", cls="muted")


def _others(runs: Sequence[HistoryLine], failing: Sequence[str]) -> str:
    """Of the rules that failed nowhere: how many held in each run, and which were not evaluated in each or in any."""
    known = {rule for run in runs for rule in run.rules} | {code for code in Code if code.startswith("Q")}
    rules = known.difference(failing)
    missed = {rule: sum(rule not in run.rules for run in runs) for rule in sorted(rules)}
    held = sum(not count for count in missed.values())
    said = [f"{plural(held, 'other rule' if failing else 'rule')} held in each run."]
    for count in sorted(set(missed.values()) - {0}):
        names = [rule for rule in missed if missed[rule] == count]
        was, where = "was" if len(names) == 1 else "were", f"{count} of {plural(len(runs), 'run')}"
        in_others = ", and held in the others" if count < len(runs) else ""
        said.append(f"{plural(len(names), 'rule')} {was} not evaluated in {where}{in_others}: {', '.join(names)}.")
    return " ".join(said)


def _heat_row(runs: Sequence[HistoryLine], rule: str) -> Html:
    counts = [run.rules.get(rule) for run in runs]
    most = max(count for count in counts if count is not None)
    cells = []
    for place, (run, count) in enumerate(zip(runs, counts, strict=True)):
        tone = "unknown" if count is None else "holds" if not count else "some" if count * 2 <= most else "many"
        said = "not evaluated" if count is None else "held" if not count else f"{plural(count, 'row')} failed"
        title = tag("title", f"{run.at:%Y-%m-%d %H:%M} UTC: {said}")
        cells.append(tag("rect", title, x=place * _CELL, y=0, width=_CELL - 1, height=_CELL + 4, cls=f"heat-{tone}"))
    bad, missed = sum(map(bool, counts)), counts.count(None)
    rest = f", not evaluated in {missed}" if missed else ""
    label = f"{rule} failed in {bad} of {plural(len(runs), 'run')}{rest}"
    width = len(runs) * _CELL
    return tag(
        "svg", *cells, viewBox=f"0 0 {width} {_CELL + 4}", width=width, height=_CELL + 4, role="img", aria_label=label
    )
