"""The Quality tab: which rules fail and since when, all rules of both suites, and a strip of the last runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from topicops.features.quality.on_airflow.reading import QualityModel, suites_of
from topicops.features.quality.past_runs import RunQuality
from topicops.model.codes import Code
from topicops.model.printable import plural
from topicops.model.runs.results import FailingRow, QualityReport, QualityResult, QualitySuite
from topicops.on_airflow.names import RunOf
from topicops.on_airflow.pages.parts import heading, muted, nothing, page, problem_box, with_query
from topicops.on_airflow.plugged_at_start import topic_link
from topicops.steps.reporting.facts_wording import (
    LOAD_HEAD,
    MOST,
    cause_words,
    load_rows,
    unhealthy_by_broker,
    why_command,
)
from topicops.steps.reporting.markup import Html, lines, pill, table, tag, together

_SUITES: Mapping[QualitySuite, tuple[str, str]] = {
    "before": ("Before the changes", "May the inputs be trusted, and is the cluster fit for changes?"),
    "after": ("After the changes", "Is the result healthy?"),
}
_RULES_HEAD = ("rule", "what must hold", "severity", "rows looked at")
_ABOUT_HEALTH = frozenset(
    (Code.Q09, Code.Q11, Code.Q12, Code.Q13, Code.Q14, Code.Q19, Code.Q21, Code.Q23, Code.Q26, Code.Q27)
)
"""Rules about what ``topicops why`` explains."""
_SIGNS = {"good": "✓", "warn": "!", "bad": "✗", "calm": "·"}


def quality_page(model: QualityModel) -> str:
    reports = [report for report in (model.before, model.after) if report is not None]
    nothing_yet = nothing(model.run, model.quiet or "No quality rule has been evaluated in this run yet.")
    parts = _rules(model, reports) if reports else [nothing_yet, _strip(model)]
    head = [heading("Data quality", model.run), *map(problem_box, model.problems)]
    return page(f"Quality of {model.run.run_id}", *head, *parts)


def _rules(model: QualityModel, reports: Sequence[QualityReport]) -> list[Html | None]:
    failing = sorted(
        ((result, report.suite == "after") for report in reports for result in report.failed),
        key=lambda found: (not found[0].is_critical_failure, found[0].is_pre_existing),
    )
    suites = [_suite(model.run, "before", model.before), _suite(model.run, "after", model.after)]
    cards = [_card(result, model.run.environment, has_past=has_past) for result, has_past in failing]
    cards = [tag("h2", "What fails"), *cards] if cards else []
    return [_verdict(model.run, reports), _strip(model), *cards, *_facts(model), *suites]


def _verdict(run: RunOf, reports: Sequence[QualityReport]) -> Html:
    """Return the overall result in one line, with environment, cluster and time."""
    results = [result for report in reports for result in report.results]
    newest = max(reports, key=lambda report: report.checked_at)
    rows = sum(result.rows_checked for result in results)
    where = f"{newest.environment}, cluster {newest.cluster_id}; {_moment(newest.checked_at)}; {rows:,} rows looked at"
    missing = _missing(run, reports)
    sentence = tag("p", _sign(_tone(results, missing)), " ", _sentence(results, missing), cls="verdict")
    return together(sentence, tag("p", where, cls="muted"))


def _missing(run: RunOf, reports: Iterable[QualityReport | None]) -> str:
    """Return ``after the changes``: which rules of the run have no result; empty: each has one."""
    found = {report.suite for report in reports if report}
    return " and ".join(f"{suite} the changes" for suite in suites_of(run) if suite not in found)


def _sentence(results: Sequence[QualityResult], missing: str) -> str:
    rest = f"; those {missing} are not evaluated, or not yet" if missing else ""
    failed = [result for result in results if not result.success]
    if not results:
        return f"No rule was due{rest}."
    if not failed:
        return f"All {len(results)} rules hold{' so far' if missing else ''}{rest}."
    critical = sum(result.is_critical_failure for result in failed)
    old = sum(result.is_pre_existing for result in failed)
    parts = [f"{len(failed)} of {len(results)} rules {'fails' if len(failed) == 1 else 'fail'}"]
    parts += [f"{critical or 'none'} critical"]
    parts += [f"{'all' if old == len(failed) else old} as before the changes"] if old else []
    return f"{', '.join(parts)}{rest}."


def _suite(run: RunOf, suite: QualitySuite, report: QualityReport | None) -> Html:
    title, about = _SUITES[suite]
    if report is None:
        why = "Not evaluated, or not yet." if suite in suites_of(run) else "A run of this DAG does not evaluate them."
        return together(tag("h2", title), muted(f"{about} {why}"))
    has_past = suite == "after"
    head = [*_RULES_HEAD, *(["failed before"] if has_past else []), "failed", "result"]
    rows = [_rule_row(result, has_past=has_past) for result in report.results]
    summary = f"{about} {len(report.results)} rules, {report.seconds:.1f} s, {_moment(report.checked_at)}."
    return together(tag("h2", title), muted(summary), table(head, rows, cls="rules"))


def _rule_row(result: QualityResult, *, has_past: bool) -> Iterator[Html | str]:
    yield tag("code", result.rule)
    yield result.title
    yield result.severity
    yield _number(result.rows_checked)
    if has_past:
        yield _number(result.rows_failed_before)
    yield _number(result.rows_failed if not result.success else 0)
    yield pill("holds", "good") if result.success else pill("fails", _tone([result]))


def _card(result: QualityResult, environment: str | None, *, has_past: bool) -> Html:
    tone = _tone([result])
    title = tag("h3", tag("code", result.rule), " ", result.title, " ", pill(result.severity, tone))
    rows = _failing_rows(result.examples, has_past=has_past) if result.examples else None
    is_link = result.runbook.startswith(("https://", "http://"))
    runbook = tag("a", result.runbook, href=result.runbook) if is_link else tag("code", result.runbook)
    what_to_do = tag("p", "What to do: ", runbook) if result.runbook else None
    why = _why(result, environment) if environment and result.rule in _ABOUT_HEALTH else None
    counts = tag("p", _counts(result, has_past=has_past))
    return tag("section", title, counts, rows, why, what_to_do, cls=f"card {tone}")


def _why(result: QualityResult, environment: str) -> Html | None:
    """Link the pages of the first topics, and give the command that asks the cluster."""
    topics = dict.fromkeys(str(example.row["topic"]) for example in result.examples if example.row.get("topic"))
    ways = [
        tag("li", topic_link(topic, "why"), ": ", tag("code", why_command(topic, environment)))
        for topic in list(topics)[:MOST]
    ]
    return together(tag("p", "Why, and what ends it:"), tag("ul", *ways)) if ways else None


def _counts(result: QualityResult, *, has_past: bool) -> str:
    failed = f"{result.rows_failed:,} of {result.rows_checked:,} rows fail"
    shown = len(result.examples)
    more = f" Shown: {shown}." if 0 < shown < result.rows_failed else ""
    return f"{failed}{f'; {_history(result)}' if has_past else ', before the changes'}.{more}"


def _history(result: QualityResult) -> str:
    if result.rows_failed_before is None:
        return "how it was before the changes is not known"
    if result.is_pre_existing:
        return "it was so before the changes"
    new = result.rows_failed - result.rows_failed_before
    return f"{result.rows_failed_before:,} of them did before the changes, {new:,} are new"


def _failing_rows(examples: Sequence[FailingRow], *, has_past: bool) -> Html:
    """Draw a column for each name that any of the rows has, in order of first appearance."""
    names = list(dict.fromkeys(name for example in examples for name in example.row))
    rows = [[*(_value(e.row.get(name)) for name in names), *([_since(e)] if has_past else [])] for e in examples]
    head = [*(name.replace("_", " ") for name in names), *(["since"] if has_past else [])]
    return table(head, rows, cls="rows")


def _value(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping):
        value = [f"{name}={each}" for name, each in value.items()]
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _since(example: FailingRow) -> Html | str:
    if example.was_so_before is None:
        return "not known"
    return "so before" if example.was_so_before else pill("new", "bad")


def _facts(model: QualityModel) -> list[Html | None]:
    """Show which brokers have unhealthy partitions (nothing when all are healthy), and who holds what."""
    facts = model.facts
    if facts is None:
        return []
    as_of = muted(f"As it was {_read_when(model)}.")
    unhealthy = [(name, lines(map(cause_words, group))) for name, group in unhealthy_by_broker(facts)]
    load = tag("details", tag("summary", "Load of brokers and racks"), table(LOAD_HEAD, load_rows(facts), cls="rows"))
    if not unhealthy:
        return [as_of, load] if facts.load else []
    title = tag("h2", "Unhealthy partitions, by broker")
    return [title, as_of, table(("broker", "partitions"), unhealthy), load if facts.load else None]


def _read_when(model: QualityModel) -> str:
    """Return ``before the changes, as the rules of 2026-11-25 17:05:37 UTC saw it``."""
    report = model.after if model.facts_when == "after" else model.before
    seen = f", as the rules of {_moment(report.checked_at)} saw it" if report else ""
    return f"{model.facts_when} the changes of this run{seen}"


def _strip(model: QualityModel) -> Html | None:
    runs = plural(model.without_rules, "other run" if model.history else "run")
    rest = f"{runs} of {model.run.dag_id} evaluated no rule: quiet, ended before the rules, or only begun."
    without = muted(rest) if model.without_rules else None
    if not model.history:
        return without
    cells = [_strip_cell(model.run, run) for run in reversed(model.history)]
    legend = tag("p", *(together(_sign(tone), f" {word}  ") for tone, word in _LEGEND), cls="muted legend")
    last, order = ("last run", "") if len(cells) == 1 else (f"last {len(cells)} runs", ", oldest first")
    title = tag("h2", f"The {last} of {model.run.dag_id} with a result of the rules{order}")
    return together(title, tag("ol", *cells, cls="strip"), legend, without)


_LEGEND = (
    ("good", "all hold"),
    ("calm", "held so far, others not evaluated"),
    ("warn", "a warning"),
    ("bad", "a critical rule fails"),
)


def _strip_cell(shown: RunOf, run: RunQuality) -> Html:
    results = [result for report in (run.before, run.after) if report for result in report.results]
    failed = ", ".join(result.rule for result in results if not result.success)
    name = next(report.run for report in (run.after, run.before) if report)
    group, _, run_id = name.partition("/")
    missing = _missing(shown, (run.before, run.after))
    rest = f"; the rules {missing} were not evaluated" if missing else ""
    said = f"{failed} fail" if failed else "held so far" if missing else "all rules hold"
    words = f"{run_id}, {_moment(run.checked_at)}: {said}{rest}"
    tone, href = _tone(results, missing), with_query("quality", {"run_id": run_id})
    current = "page" if (group, run_id) == (shown.dag_id, shown.run_id) else None
    attributes = {"href": href, "title": words, "aria_label": words, "aria_current": current}
    return tag("li", tag("a", _SIGNS[tone], **attributes, cls=f"sign {tone}"))


def _sign(tone: str) -> Html:
    return tag("span", _SIGNS[tone], cls=f"sign {tone}")


def _tone(results: Iterable[QualityResult], missing: str = "") -> str:
    """Return the tone of the worst result; never that of a success while results are missing."""
    found = list(results)
    if any(result.is_critical_failure for result in found):
        return "bad"
    if any(not result.success for result in found):
        return "warn"
    return "good" if found and not missing else "calm"


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _number(count: int | None) -> Html:
    """Return a number in digits of equal width; empty where it is not known."""
    return tag("span", "" if count is None else f"{count:,}", cls="number")
