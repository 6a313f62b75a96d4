"""What a user of Great Expectations finds: a project of its own form, opened by its own API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import great_expectations as gx
import pytest

from topicops.features.quality.edges import validation
from topicops.features.quality.edges.validation import RESULTS, failed_rules
from topicops.features.quality.measures import Measure
from topicops.features.quality.rules import AFTER
from topicops.model.errors import TopicopsError

SUITE = "prod-after"


def measures(**failed: int) -> Sequence[Measure]:
    return [Measure(rule.id, 10, failed.get(rule.id, 0)) for rule in AFTER]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project after two runs: a healthy one, and one in which two rules fail."""
    folder = tmp_path_factory.mktemp("home") / "great-expectations" / "prod"
    assert failed_rules(folder, SUITE, AFTER, measures(), run="pipeline/1") == frozenset()
    assert failed_rules(folder, SUITE, AFTER, measures(Q12=3, Q16=1), run="pipeline/2") == {"Q12", "Q16"}
    return folder


def test_its_own_api_opens_the_suite_and_reads_each_rule(project: Path) -> None:
    suite = gx.get_context(mode="file", project_root_dir=project).suites.get(SUITE)
    found = {expectation.meta["rule"]: expectation for expectation in suite.expectations if expectation.meta}
    assert list(found) == [rule.id for rule in AFTER]
    behind = found["Q12"]
    assert (behind.severity, behind.description) == ("warning", AFTER[1].title)
    assert behind.meta == {"rule": "Q12", "holds": AFTER[1].holds, "runbook": AFTER[1].runbook}


def test_its_own_api_opens_the_validation_results_of_each_run(project: Path) -> None:
    store = gx.get_context(mode="file", project_root_dir=project).validation_results_store
    results = {key.run_id.run_name: store.get(key) for key in store.list_keys()}
    assert set(results) == {"pipeline 1", "pipeline 2"}
    assert results["pipeline 1"].success
    broken = [result for result in results["pipeline 2"].results if not result.success]
    assert [(r.expectation_config.meta["rule"], r.result["observed_value"]) for r in broken] == [("Q12", 3), ("Q16", 1)]


def test_its_own_api_draws_the_data_docs(project: Path) -> None:
    gx.get_context(mode="file", project_root_dir=project).build_data_docs()
    pages = [page.read_text() for page in (project / "gx/uncommitted/data_docs").rglob("*.html")]
    assert any(AFTER[1].title in page for page in pages)


def test_runs_at_once_lose_nothing(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: failed_rules(tmp_path, SUITE, AFTER, measures(), run=f"pipeline/{n}"), range(4)))
    kept = [json.loads(file.read_text()) for file in (tmp_path / RESULTS).rglob("*.json")]
    assert sorted(found["meta"]["run_id"]["run_name"] for found in kept) == [f"pipeline {n}" for n in range(4)]


def test_only_the_last_runs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "_MOST_RUNS", 2)
    for number in range(3):
        failed_rules(tmp_path, SUITE, AFTER, measures(), run=f"pipeline/{number}")
    assert sorted(folder.name for folder in (tmp_path / RESULTS / SUITE).iterdir()) == ["pipeline 1", "pipeline 2"]


@pytest.mark.parametrize("garbage", ["", "no: [yaml", "a\x00b", "fluent_datasources: 3\n"])
def test_a_project_that_cannot_be_read_is_moved_aside_and_made_anew(tmp_path: Path, garbage: str) -> None:
    (tmp_path / "gx").mkdir()
    (tmp_path / "gx" / "great_expectations.yml").write_text(garbage)
    assert failed_rules(tmp_path, SUITE, AFTER, measures(Q12=1), run="pipeline/1") == {"Q12"}
    assert (tmp_path / "unreadable" / "great_expectations.yml").read_text() == garbage
    assert failed_rules(tmp_path, SUITE, AFTER, measures(), run="pipeline/2") == frozenset()


def test_a_folder_in_which_no_project_can_be_made_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TopicopsError, match=rf"^Great Expectations failed in {tmp_path}/file: "):
        failed_rules(tmp_path / "file", SUITE, AFTER, measures(), run="pipeline/1")
