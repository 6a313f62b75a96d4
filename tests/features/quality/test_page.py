from __future__ import annotations

import os
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from fakes.builders import NOW
from fixtures.html_seen import Seen, assert_nothing_runs
from fixtures.quality import quality_report
from fixtures.rich_plan import HOSTILE, results, rich_plan, some_facts, write_run
from topicops.edges.home.artifacts import ArtifactStore, runs_folder
from topicops.features.quality.on_airflow.page import quality_page
from topicops.features.quality.on_airflow.reading import QualityModel, read_quality
from topicops.features.quality.past_runs import quality_history
from topicops.features.quality.rules import RULES
from topicops.model.runs.facts import CAUSES, facts_file
from topicops.model.runs.results import FailingRow, QualityReport, QualityResult, QualitySuite, quality_file
from topicops.on_airflow.names import RunOf

DAG = "topic_pipeline_local"
RUN = RunOf(dag_id=DAG, run_id="scheduled__2024-05-01T12:00:00+00:00")


def page(before: QualityReport | None = None, after: QualityReport | None = None) -> Seen:
    return Seen(quality_page(QualityModel(run=RUN, before=before, after=after)))


def failing(*rules: str, old: bool = False) -> QualityReport:
    found = results("after", failing=rules)
    return quality_report("after", (_as_before(result) if old else result for result in found))


def _as_before(result: QualityResult) -> QualityResult:
    return replace(result, rows_failed_before=result.rows_failed)


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        pytest.param(
            quality_report("after", results("after")), r"All \d+ rules hold so far; those before the", id="healthy"
        ),
        pytest.param(failing("Q12"), r"1 of \d+ rules fails, none critical; those before the", id="a warning"),
        pytest.param(failing("Q11", "Q12"), r"2 of \d+ rules fail, 1 critical; those before the", id="a critical one"),
        pytest.param(failing("Q12", old=True), r"none critical, all as before the changes;", id="old trouble"),
        pytest.param(
            quality_report("after"),
            r"No rule was due; those before the changes are not evaluated, or not yet\.",
            id="no rule at all",
        ),
    ],
)
def test_the_first_line_says_it_all(report: QualityReport, sentence: str) -> None:
    assert re.search(sentence, page(after=report).text)


def test_every_rule_of_both_suites_is_on_the_page() -> None:
    seen = page(quality_report("before", results("before")), quality_report("after", results("after")))
    for rule in RULES:
        assert rule.id in seen.texts
        assert rule.title in seen.texts
    assert seen.texts.count("holds") == len(RULES)
    assert f"All {len(RULES)} rules hold." in seen.text


def test_a_rule_about_health_has_the_command_that_says_why_for_each_topic() -> None:
    seen = page(after=failing("Q12"))
    assert "topicops why shop.orders --environment local" in seen.texts
    assert seen.all("a", href="topic?name=shop.orders#why")
    assert "topicops why" not in page(after=failing("Q20")).text


def test_each_rule_whose_partitions_are_counted_as_unhealthy_asks_why() -> None:
    for rule in CAUSES.keys() - {"Q15"}:  # that is where replicas are, not how they are
        assert "topicops why" in page(after=failing(rule)).text


def test_a_failing_rule_names_its_rows_and_says_which_were_so_before() -> None:
    seen = page(after=failing("Q11"))
    assert "3 of 1,200 rows fail; 1 of them did before the changes, 2 are new." in seen.text
    assert [seen.texts.count(word) for word in ("new", "so before", "not known")] == [1, 1, 1]
    assert "1, 2" in seen.texts
    assert any(text.endswith("#q11") for text in seen.texts)


def test_rows_of_a_rule_before_the_changes_have_no_past_and_configs_are_readable() -> None:
    row = FailingRow(row={"topic": "orders", "configs": {"retention.ms": "1", "cleanup.policy": "delete"}})
    broken = replace(failing("Q11").results[0], rows_failed=1, rows_failed_before=None, examples=(row,))

    seen = page(quality_report("before", [broken]))

    assert "1 of 1,200 rows fail, before the changes." in seen.text
    assert "retention.ms=1, cleanup.policy=delete" in seen.texts
    assert "known" not in seen.text


def test_critical_rules_come_first_and_old_trouble_last() -> None:
    report = quality_report(
        "after", [_as_before(r) if r.rule == "Q12" else r for r in failing("Q12", "Q11", "Q16").results]
    )
    cards = page(after=report).all("section")
    assert [card["class"] for card in cards] == ["card bad", "card warn", "card warn"]
    text = page(after=report).text
    first_mentions = [text.index(rule) for rule in ("Q11", "Q16", "Q12")]
    assert first_mentions == sorted(first_mentions)


def test_rows_that_name_different_things_share_one_table() -> None:
    (first, *_) = failing("Q11").failed
    (row, *_) = first.examples
    odd = replace(first, examples=(row, replace(row, row={"broker": 3, "missing_replicas": None})))
    heads = page(after=quality_report("after", [odd])).text
    assert "topic partition isr broker missing replicas since" in heads


def test_a_suite_that_has_not_run_is_said_to_be_so() -> None:
    assert "Is the result healthy? Not evaluated, or not yet." in page(quality_report("before", results("before"))).text


@pytest.mark.parametrize(
    ("dag_id", "words"),
    [
        pytest.param(DAG, "No quality rule has been evaluated in this run yet.", id="ours"),
        pytest.param("etl", "This is no DAG of topicops", id="somebody else's"),
    ],
)
def test_a_run_without_quality_gets_a_plain_page(tmp_path: Path, dag_id: str, words: str) -> None:
    assert words in Seen(quality_page(read_quality(tmp_path, RunOf(dag_id=dag_id, run_id="x")))).text


def test_a_run_whose_last_rules_nobody_evaluated_is_not_shown_as_all_well(tmp_path: Path) -> None:
    write_run(tmp_path, DAG, "r1")
    write_run(tmp_path, DAG, "r2", suites=("before",))
    write_run(tmp_path, DAG, "r3", suites=(), plan=rich_plan())
    html = quality_page(read_quality(tmp_path, RunOf(dag_id=DAG, run_id="r1")))
    assert "r1, 2024-05-01 12:00:00 UTC: all rules hold" in html
    assert "r2, 2024-05-01 12:00:00 UTC: held so far; the rules after the changes were not evaluated" in html
    assert "The last 2 runs of topic_pipeline_local with a result of the rules, oldest first" in Seen(html).text
    assert "1 other run of topic_pipeline_local evaluated no rule" in Seen(html).text


def test_a_run_with_a_failing_rule_says_too_which_rules_nobody_evaluated(tmp_path: Path) -> None:
    write_run(tmp_path, DAG, "r1", suites=("before",), failing=("Q09",))
    html = quality_page(read_quality(tmp_path, RunOf(dag_id=DAG, run_id="r1")))
    assert "Q09 fail; the rules after the changes were not evaluated" in html
    assert "The last run of topic_pipeline_local with a result of the rules" in Seen(html).text


@pytest.mark.parametrize(
    ("dag_id", "suite", "is_whole"),
    [
        pytest.param("topic_approval_local", "after", True, id="an approval looks only after"),
        pytest.param("topic_drift_local", "before", True, id="a drift run changes nothing"),
        pytest.param(DAG, "after", False, id="a pipeline has both"),
    ],
)
def test_what_a_dag_never_evaluates_is_not_missing(
    tmp_path: Path, dag_id: str, suite: QualitySuite, is_whole: bool
) -> None:
    write_run(tmp_path, dag_id, "r1", suites=(suite,))
    seen = Seen(quality_page(read_quality(tmp_path, RunOf(dag_id=dag_id, run_id="r1"))))
    (cell,) = seen.all("a", cls="sign")
    assert cell["class"] == ("sign good" if is_whole else "sign calm")
    assert ("A run of this DAG does not evaluate them." in seen.text) is is_whole
    assert ("so far" in seen.text.split("rows looked at")[0]) is not is_whole


def test_a_dag_whose_runs_evaluated_no_rule_says_how_many_there_are(tmp_path: Path) -> None:
    for run_id in ("r1", "r2"):
        write_run(tmp_path, DAG, run_id, suites=(), plan=rich_plan())
    text = Seen(quality_page(read_quality(tmp_path, RunOf(dag_id=DAG, run_id="r1")))).text
    assert "2 runs of topic_pipeline_local evaluated no rule" in text


def test_facts_say_of_which_snapshot_they_are_and_when_it_was_judged(tmp_path: Path) -> None:
    store = write_run(tmp_path, RUN.dag_id, RUN.run_id)
    store.write_value(facts_file("before"), some_facts(unhealthy={2: 1}))
    as_it_was = "the changes of this run, as the rules of 2024-05-01 12:00:00 UTC saw it."
    assert f"As it was before {as_it_was}" in Seen(quality_page(read_quality(tmp_path, RUN))).texts
    store.write_value(facts_file("after"), some_facts(unhealthy={3: 1}))
    assert f"As it was after {as_it_was}" in Seen(quality_page(read_quality(tmp_path, RUN))).texts


def test_the_strip_shows_thirty_runs_oldest_first_and_marks_the_one_that_is_open(tmp_path: Path) -> None:
    runs = [f"run+{n:02d}/a" for n in range(33)]
    for n, run_id in enumerate(runs):
        rules = {31: ("Q11",), 32: ("Q12",)}.get(n, ())
        write_run(tmp_path, DAG, run_id, failing=rules, checked_at=NOW + timedelta(hours=n))
    seen = Seen(quality_page(read_quality(tmp_path, RunOf(dag_id=DAG, run_id=runs[31]))))
    links = seen.all("a", cls="sign")
    assert [link["href"] for link in links] == [f"quality?run_id=run%2B{n:02d}%2Fa" for n in range(3, 33)]
    assert [link["class"] for link in links[-3:]] == ["sign good", "sign bad", "sign warn"]
    assert [link["title"] for link in links if link.get("aria-current")] == [links[-2]["title"]]
    assert links[-2]["title"].endswith("Q11 fail")


def test_a_damaged_file_is_named_without_its_folder_and_hides_no_other(tmp_path: Path) -> None:
    store = write_run(tmp_path, DAG, "one")
    store.write_text(quality_file("before"), "{cut off")
    seen = Seen(quality_page(read_quality(tmp_path, RunOf(dag_id=DAG, run_id="one"))))
    assert "quality-before.json: damaged" in seen.text
    assert str(tmp_path) not in seen.text
    assert "Q11" in seen.texts


def test_nothing_of_a_cluster_or_a_spec_is_run_as_html() -> None:
    (bad, *_) = failing("Q11").failed
    (row, *_) = bad.examples
    rows = (replace(row, row={HOSTILE: HOSTILE, "list": [HOSTILE]}),)
    hostile = replace(bad, rule=HOSTILE, title=HOSTILE, severity=HOSTILE, runbook=HOSTILE, examples=rows)
    report = replace(
        quality_report("after", [hostile]), environment=HOSTILE, cluster_id=HOSTILE, run=f"{DAG}/{HOSTILE}"
    )
    run = RunOf(dag_id=HOSTILE, run_id=HOSTILE)
    html = quality_page(QualityModel(run=run, before=report, after=report, problems=(HOSTILE,)))
    assert_nothing_runs(html)
    assert Seen(html).text.count(HOSTILE) >= 20


def test_brokers_with_unhealthy_partitions_are_on_the_page_those_with_most_first() -> None:
    facts = some_facts(unhealthy={2: 1, 3: 12})
    report = quality_report("after", results("after"))

    text = Seen(quality_page(QualityModel(run=RUN, after=report, facts=facts))).text

    assert "broker 3, rack b" in text
    assert text.index("12 partitions with a replica outside the ISR (Q12)") < text.index("1 partition with a replica")
    assert "Load of brokers and racks" in text


def test_nothing_is_said_of_partitions_that_are_healthy() -> None:
    report = quality_report("after", results("after"))

    text = Seen(quality_page(QualityModel(run=RUN, after=report, facts=some_facts()))).text

    assert "Unhealthy partitions" not in text


def test_the_page_has_the_facts_of_the_newest_snapshot(tmp_path: Path) -> None:
    store = write_run(tmp_path, RUN.dag_id, RUN.run_id)
    store.write_value(facts_file("before"), some_facts(unhealthy={2: 1}))
    assert read_quality(tmp_path, RUN).facts == some_facts(unhealthy={2: 1})

    store.write_value(facts_file("after"), some_facts())
    assert read_quality(tmp_path, RUN).facts == some_facts()


def leave_report(home: Path, run_id: str, *, hour: int, suite: QualitySuite = "after") -> Path:
    report = replace(quality_report(suite), run=f"{DAG}/{run_id}", checked_at=NOW + timedelta(hours=hour))
    path = ArtifactStore(runs_folder(home, DAG, run_id)).write_value(quality_file(suite), report)
    os.utime(path, (hour, hour))
    return path


def test_there_is_no_history_before_the_first_run(tmp_path: Path) -> None:
    assert quality_history(tmp_path, DAG) == ()


def test_the_newest_runs_come_first_and_no_more_than_asked_for(tmp_path: Path) -> None:
    for hour in (2, 1, 4, 3):
        leave_report(tmp_path, f"scheduled__{hour}", hour=hour)
    runs = quality_history(tmp_path, DAG, most=3)
    assert [run.after.run for run in runs if run.after] == [f"{DAG}/scheduled__{hour}" for hour in (4, 3, 2)]


def test_a_run_that_ended_before_its_changes_has_only_the_first_suite(tmp_path: Path) -> None:
    leave_report(tmp_path, "stopped", hour=1, suite="before")
    [run] = quality_history(tmp_path, DAG)
    assert run.before == replace(quality_report("before"), run=f"{DAG}/stopped", checked_at=run.checked_at)
    assert run.after is None


def test_a_damaged_file_and_a_run_without_rules_hide_no_other_run(tmp_path: Path) -> None:
    leave_report(tmp_path, "good", hour=1)
    leave_report(tmp_path, "torn", hour=2).write_text("{", encoding="utf-8")
    runs_folder(tmp_path, DAG, "validated only").mkdir()
    assert [run.after.run for run in quality_history(tmp_path, DAG) if run.after] == [f"{DAG}/good"]


def test_another_dag_has_its_own_history(tmp_path: Path) -> None:
    leave_report(tmp_path, "one", hour=1)
    assert quality_history(tmp_path, "topic_approval_local") == ()
