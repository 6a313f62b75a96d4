"""Reviews in the params of a run: the key, the shape of each entry, and the history that git knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakes import builders
from fixtures.git_bundle import Repository
from fixtures.reviews import KEY, MERGED, as_param, review_of, signed
from topicops.features.pull_requests.signed_reviews import approvals_of_reviews
from topicops.flow.runs.run import Run, open_run
from topicops.model.runs.review import REVIEW_KEY

DELETE = builders.delete_change("tmp-import")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REVIEW_KEY, KEY)


def run_of(topics: Path, *, version: str | None = None) -> Run:
    return open_run(environment="local", topics=topics, group="dag", run_id="1", home=topics / "home", version=version)


def test_an_entry_that_is_no_review_fails_nothing_and_the_others_count(tmp_path: Path) -> None:
    entries = ["alice", {"review": {}, "signature": ""}, *as_param(signed(review_of(DELETE)))]
    found = approvals_of_reviews(run_of(tmp_path), entries)
    assert [approval.approver for approval in found.approvals] == ["alice"]
    assert [line.partition(":")[0] for line in found.objections] == [
        "Review 1 does not count",
        "Review 2 does not count",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "TOPICOPS_REVIEW_KEY is not set here", id="no key"),
        pytest.param("short", "has 5 characters, at least 32 are needed", id="a key that is too short"),
    ],
)
def test_without_a_good_key_no_review_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    monkeypatch.setenv(REVIEW_KEY, text)
    found = approvals_of_reviews(run_of(tmp_path), as_param(signed(review_of(DELETE), text)))
    assert found.approvals == ()
    assert reason in found.objections[0]


def test_without_reviews_no_key_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REVIEW_KEY)
    assert approvals_of_reviews(run_of(tmp_path), []).objections == ()


def test_a_time_without_its_zone_is_no_time_of_a_review(tmp_path: Path) -> None:
    (entry,) = as_param(signed(review_of(DELETE)))
    entry["review"]["given_at"] = "2026-11-22T12:00:00"
    assert "given_at" in approvals_of_reviews(run_of(tmp_path), [entry]).objections[0]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = Repository(tmp_path / "work", tmp_path / "bare")
    (repository.work / "topics").mkdir()
    (repository.work / "topics/a.yaml").write_text("a: 1\n", encoding="utf-8")
    repository.publish()
    return repository


@pytest.mark.parametrize(
    ("merged", "counts"),
    [
        pytest.param("of now", True, id="the commit of now"),
        pytest.param("before", True, id="an ancestor"),
        pytest.param(MERGED, False, id="a commit that this history has not"),
    ],
)
def test_a_review_counts_only_if_the_history_of_the_files_contains_its_merge(
    tmp_path: Path, repository: Repository, merged: str, counts: bool
) -> None:
    commits = {"before": repository.head, "of now": repository.publish()}
    review = signed(review_of(DELETE, merge_commit=commits.get(merged, merged)))
    run = open_run(
        environment="local", topics=repository.work / "topics", group="dag", run_id="1", home=tmp_path / "home"
    )
    assert bool(approvals_of_reviews(run, as_param(review)).approvals) is counts


def test_where_a_bundle_has_no_git_folder_the_review_counts(tmp_path: Path) -> None:
    run = run_of(tmp_path, version="f" * 40)
    assert len(approvals_of_reviews(run, as_param(signed(review_of(DELETE)))).approvals) == 1
