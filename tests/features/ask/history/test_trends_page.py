"""The page of Airflow that shows the last runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from fakes.builders import NOW
from fixtures.html_seen import Seen
from topicops.features.ask.history.lines import HistoryLine, PlanCounts
from topicops.features.ask.history.trends_page import shown_trends
from topicops.features.quality.rules import RULES
from topicops.features.topic_pages.on_airflow.frame import framed
from topicops.model.plans.delta import TopicClass
from topicops.on_airflow.plugged import PAGES
from topicops.steps.reporting.markup import together


def a_run(name: str, *, hours: int = 0, rules: Mapping[str, int] | None = None, **values: Any) -> HistoryLine:
    """It took seven seconds; twelve of its topics differed."""
    line = HistoryLine(
        environment="local",
        run=name,
        mode="apply",
        has_looked=True,
        read_at=NOW + timedelta(hours=hours),
        recorded_at=NOW + timedelta(hours=hours, seconds=7),
        partitions=4,
        classes={TopicClass.MISSING: 5, TopicClass.DIFFERENT: 6, TopicClass.TOMBSTONED: 1, TopicClass.SAME: 9},
        plan=PlanCounts(changes=12, held=3, skipped=4, blocked=2),
        rules=rules or {},
    )
    return replace(line, **values)


def test_trends_say_of_when_they_are_and_which_rules_nobody_evaluated() -> None:
    rules = {rule.id: 0 for rule in RULES if rule.id not in ("Q02", "Q26", "Q27")}
    text = trends_text(a_run("r0", rules={**rules, "Q27": 0}), a_run("r1", rules=rules, in_place=7, not_in_place=5))
    assert "12 at 2024-05-01 12:00 UTC, before the 12 changes of that run" in text
    assert " now" not in text
    assert (
        f"{len(rules)} rules held in each run. 1 rule was not evaluated in 1 of 2 runs, and held in the others: Q27."
        in text
    )
    assert "2 rules were not evaluated in 2 of 2 runs: Q02, Q26." in text


def test_a_number_of_trends_has_the_time_of_the_run_that_has_it() -> None:
    text = trends_text(a_run("r0", in_place=3), a_run("r1", hours=1, classes=None))
    assert "12 at 2024-05-01 12:00 UTC, before the 3 changes of that run" in text
    assert "4  at 2024-05-01 13:00 UTC; 4 to 4" in text


def test_what_a_run_took_and_held_is_not_from_before_its_changes() -> None:
    text = trends_text(a_run("r0", in_place=3))
    assert "7  at 2024-05-01 12:00 UTC; 7 to 7" in text
    assert "5  at 2024-05-01 12:00 UTC; 5 to 5" in text


def trends_text(*runs: HistoryLine) -> str:
    return Seen(html_of(runs)).text


def html_of(runs: Sequence[HistoryLine]) -> str:
    return together(*shown_trends(runs)).text


def test_trends_show_each_rule_that_failed_run_by_run() -> None:
    rules: list[Mapping[str, int]] = [{"Q12": 0, "Q01": 0}, {"Q12": 4}, {}]
    runs = [a_run(f"r{n}", hours=n, rules=rules[n], partitions=100 + n) for n in range(3)]
    html = html_of(runs)
    assert "Q12 failed in 1 of 3 runs, not evaluated in 1" in html
    assert "13:00 UTC: 4 rows failed" in html
    assert "14:00 UTC: not evaluated" in html
    assert "partitions: 102 at 2024-05-01 14:00 UTC, at most 102, at least 100" in html
    assert "1 rule was not evaluated in 2 of 3 runs, and held in the others: Q01." in Seen(html).text


def test_no_history_is_told_even_without_an_index_of_topics(tmp_path: Path) -> None:
    [page] = [page for page in PAGES if page.name == "trends"]
    seen = Seen(framed(page, tmp_path, "local", lambda _: {}))
    assert "No run of this environment has left a history yet." in seen.text
    assert [link["href"] for link in seen.all("a") if "aria-current" in link] == ["trends"]
