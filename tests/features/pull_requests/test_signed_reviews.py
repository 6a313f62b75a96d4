"""Which signed reviews are genuine and become approvals; what is not, or is not for here, approves nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from fakes import builders
from fixtures.git_bundle import Repository
from fixtures.reviews import KEY, MERGED, as_param, review_of, signed
from topicops.features.pull_requests.signed_reviews import (
    SignedReview,
    approvals_of_reviews,
    is_genuine,
    review_approvals,
    signed_review,
)
from topicops.flow.runs.run import EnvironmentRun, open_run
from topicops.model.plans.plan import Approval
from topicops.model.runs.results import REVIEW_KEY, ReviewApprovals

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
DELETE = builders.delete_change("tmp-import")
REVIEW = review_of(DELETE, given_at=NOW)
BYTES = KEY.encode()


def found(*reviews: SignedReview, key: str | None = KEY, is_in_files: bool | None = True) -> ReviewApprovals:
    return review_approvals(
        reviews, key.encode() if key else None, environment="local", is_in_files=lambda _: is_in_files
    )


def test_a_genuine_review_is_an_approval_of_exactly_its_digests_and_names_reviewer_pull_request_and_merge() -> None:
    expected = Approval(
        digests=builders.approval(DELETE).digests,
        way="review",
        approver="alice",
        signature="alice (review of acme/topics#12, merged as 1a2b3c4d5e6f)",
        given_at=NOW,
        authors=frozenset({"bob"}),
    )
    assert found(signed(REVIEW)) == ReviewApprovals(approvals=(expected,))


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"digests": ("0" * 64,)}, id="other changes"),
        pytest.param({"digests": (*REVIEW.digests, "cd" * 32)}, id="more changes"),
        pytest.param({"environment": "staging"}, id="another environment"),
        pytest.param({"reviewer": "mallory"}, id="another reviewer"),
        pytest.param({"authors": ()}, id="no author"),
        pytest.param({"given_at": datetime(2027, 1, 1, tzinfo=UTC)}, id="a later time"),
        pytest.param({"merge_commit": "f" * 40}, id="another commit"),
        pytest.param({"repository": "mallory/topics"}, id="another repository"),
        pytest.param({"environment": "local", "pull_request": 13}, id="another pull request"),
    ],
)
def test_a_review_that_was_changed_after_it_was_signed_approves_nothing(changed: dict[str, object]) -> None:
    forged = SignedReview(review=replace(REVIEW, **changed), signature=signed(REVIEW).signature)  # type: ignore[arg-type]
    assert found(forged).approvals == ()
    assert "its signature was not made with the TOPICOPS_REVIEW_KEY of this Airflow" in found(forged).objections[0]


@pytest.mark.parametrize(
    ("review", "key", "is_in_files", "reason"),
    [
        pytest.param(
            signed(REVIEW, "another key, just as long as ours is"), KEY, True, "or CI has another key", id="another key"
        ),
        pytest.param(signed(REVIEW), None, True, "TOPICOPS_REVIEW_KEY is not set here", id="no key"),
        pytest.param(
            signed(replace(REVIEW, environment="prod")), KEY, True, "it is for environment prod", id="elsewhere"
        ),
        pytest.param(signed(REVIEW), KEY, False, f"it was merged as {MERGED[:12]}, which", id="not in these files"),
    ],
)
def test_a_review_that_is_not_genuine_or_not_for_here_approves_nothing_and_says_why(
    review: SignedReview, key: str | None, is_in_files: bool, reason: str
) -> None:
    judged = found(review, key=key, is_in_files=is_in_files)
    assert judged.approvals == ()
    (objection,) = judged.objections
    assert objection.startswith("The review of acme/topics#12 by alice does not count: ")
    assert reason in objection


def test_where_git_cannot_say_whether_the_files_have_the_merge_the_review_counts() -> None:
    assert len(found(signed(REVIEW), is_in_files=None).approvals) == 1


def test_one_review_that_does_not_count_spoils_no_other() -> None:
    judged = found(signed(replace(REVIEW, environment="prod")), signed(REVIEW))
    assert (len(judged.approvals), len(judged.objections)) == (1, 1)


def test_an_objection_is_one_line_whatever_a_review_says() -> None:
    (objection,) = found(signed(replace(REVIEW, reviewer="a\nb\x1b[31m")), key=None).objections
    assert objection.isprintable()


# ---- signatures ----


def test_a_review_is_genuine_after_a_journey_as_json() -> None:
    sent = msgspec.to_builtins(signed_review(REVIEW, BYTES))

    assert is_genuine(msgspec.convert(sent, SignedReview), BYTES)


@pytest.mark.parametrize("signature", ["é", "", "\udcff", "ab" * 32], ids=["no ASCII", "empty", "no text", "made up"])
def test_a_signature_that_is_none_is_not_genuine(signature: str) -> None:
    assert not is_genuine(replace(signed_review(REVIEW, BYTES), signature=signature), BYTES)


# ---- in the params of a run: the key, the shape of each entry, and the history that git knows ----


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REVIEW_KEY, KEY)


def run_of(topics: Path, *, version: str | None = None) -> EnvironmentRun:
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
