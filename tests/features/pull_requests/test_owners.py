"""Owners and reviewers, which a pull request cannot choose for itself, and the lines of CODEOWNERS."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.builders import desired_of, desired_topic
from topicops.features.pull_requests.owners import (
    BEGIN,
    END,
    changed_owners,
    code_owners_text,
    owner_of,
    owner_remarks,
    reviewer_remarks,
    with_our_lines,
)
from topicops.model.errors import UsageError
from topicops.model.specs.desired import Desired


def test_the_owner_is_the_one_of_the_base_branch() -> None:
    before = desired_of(replace(desired_topic("a.orders"), owner="team-a"))
    after = desired_of(*(replace(desired_topic(name), owner="team-mallory") for name in ("a.orders", "a.new")))

    assert owner_of("a.orders", before, after, [], is_new=False) == "team-a"
    assert owner_of("a.new", before, after, [], is_new=True) == "team-mallory"


def test_another_owner_is_told_with_the_reviewers_of_both() -> None:
    def owned(**owners: str) -> Desired:
        return desired_of(*(replace(desired_topic(name), owner=owner) for name, owner in owners.items()))

    before = owned(kept="team-a", taken="team-a", also_taken="team-a", gone="team-a", freed="team-b")
    after = owned(kept="team-a", taken="team-mallory", also_taken="team-mallory", new="team-mallory", freed="team-a")
    changed = changed_owners(before, after)
    reviewers = {"team-a": ("alice", "acme/a"), "team-mallory": ("mallorys-friend",)}

    assert changed == {
        "taken": ("team-a", "team-mallory"),
        "also_taken": ("team-a", "team-mallory"),
        "freed": ("team-b", "team-a"),
    }
    assert list(owner_remarks(changed, reviewers)) == [
        "Owner team-a → team-mallory: also_taken, taken. After the merge mallorys-friend may approve changes there, "
        "and acme/a, alice may not: let both owners agree.",
        "Owner team-b → team-a: freed. After the merge acme/a, alice may approve changes there, and nobody "
        "(owners.yaml names no reviewers of team-b) may not: let both owners agree.",
    ]
    assert list(owner_remarks({}, reviewers)) == []


def test_other_reviewers_of_an_owner_are_told_with_those_of_before() -> None:
    before, after = {"team-a": ("alice",), "team-b": ("bo", "al")}, {"team-a": ("mallory",), "team-b": ("al", "bo")}

    assert list(reviewer_remarks(before, after)) == [
        "After the merge mallory may approve changes of team-a; until now alice may."
    ]
    assert list(reviewer_remarks({}, {"team-a": ("alice",)})) == [
        "After the merge alice may approve changes of team-a; until now nobody (owners.yaml names no reviewers of "
        "team-a) may."
    ]


def test_the_branch_names_no_owner_of_a_topic_that_is_live_or_whose_name_is_taken() -> None:
    """A file may be removed by one pull request and come back in another, with another owner."""
    before, after = desired_of(), desired_of(replace(desired_topic("a.orders"), owner="team-mallory"))
    claims = [("team-web", ["web.*"]), ("team-a", ["a.*"])]

    assert owner_of("a.orders", before, after, [], is_new=False) == ""
    assert owner_of("a.orders", before, after, claims, is_new=True) == "team-a"
    assert owner_of("a.orders", before, after, claims, is_new=False) == "team-a"
    shared = [*claims, ("team-mallory", ["a.orders"])]
    assert owner_of("a.orders", before, after, shared, is_new=False) == "team-mallory"


def test_code_owners_have_a_line_for_each_domain_and_for_each_exception() -> None:
    owners = {"a/a.x.yaml": "team-a", "a/a.y.yaml": "team-a", "a/a.z.yaml": "team-b", "my topics/c.yaml": "team-c"}
    reviewers = {"team-a": ("alice", "acme/a"), "team-b": ("bob",), "team-c": ()}

    text = code_owners_text(owners, reviewers, folder="topics")

    assert text.splitlines() == [
        BEGIN,
        "# team-c has no reviewers in topics/owners.yaml",
        "/topics/a/ @alice @acme/a",
        "/topics/a/a.z.yaml @bob",
        "/topics/my\\ topics/",
        END,
    ]


def test_lines_of_people_stay_around_ours() -> None:
    ours = code_owners_text({}, {}, folder="topics")
    first = with_our_lines("* @everybody\n", ours)
    assert first == f"* @everybody\n\n{ours}"

    edited = f"{first}/docs/ @writers\n"
    newer = code_owners_text({"a/a.yaml": "team-a"}, {"team-a": ("alice",)}, folder="topics")
    assert with_our_lines(edited, newer) == f"* @everybody\n\n{newer}/docs/ @writers\n"
    with pytest.raises(UsageError, match="must stand there once"):
        with_our_lines(f"{BEGIN}\n", newer)
