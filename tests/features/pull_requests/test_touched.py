"""What a pull request changes: topics, policy, problems, and the reviewers that it cannot choose."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.builders import desired_of, desired_topic, location, tombstone
from topicops.features.pull_requests.code_owners import BEGIN, END, code_owners_text, with_our_lines
from topicops.features.pull_requests.forge import PullRequest
from topicops.features.pull_requests.touched import (
    changed_owners,
    changed_topics,
    is_policy,
    new_diagnostics,
    overlaps,
    owner_of,
    owner_remarks,
    policy_remarks,
    reviewer_remarks,
)
from topicops.model.errors import UsageError
from topicops.model.specs.desired import Desired
from topicops.model.specs.diagnostics import Diagnostic, Severity


def test_a_topic_is_changed_if_it_is_wanted_otherwise_and_not_if_its_line_moves() -> None:
    same = desired_topic("a.same")
    before = desired_of(same, desired_topic("a.grown", 3), desired_topic("a.gone"), desired_topic("a.retired"))
    after = desired_of(
        replace(same, location=location("a.same", 40)),
        desired_topic("a.grown", 6),
        desired_topic("a.new"),
        tombstone("a.retired"),
    )

    assert changed_topics(before, after) == ("a.gone", "a.grown", "a.new", "a.retired")


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


@pytest.mark.parametrize(
    ("path", "policy"),
    [
        ("environments/prod.yaml", True),
        ("environments/prod.exceptions.yaml", True),
        ("profiles/durable.yaml", True),
        ("owners.yaml", True),
        ("shop/owners.yaml", False),
        ("shop/environments.yaml", False),
    ],
)
def test_policy_is_what_rules_over_topics(path: str, policy: bool) -> None:
    assert is_policy(path) is policy


def test_a_change_of_policy_is_named_with_what_it_will_do_and_one_beside_topics_is_marked() -> None:
    policy, topics = ["topics/profiles/durable.yaml"], ["topics/shop/shop.orders.yaml"]
    effects = {"prod": [f"shop.t{n:02d}" for n in range(12)], "staging": []}

    alone = list(policy_remarks(policy, [], effects))
    both = list(policy_remarks(policy, topics, effects))

    assert list(policy_remarks([], topics, {})) == []
    assert "topics/profiles/durable.yaml" in alone[0]
    assert alone[1].startswith("After the merge they change 12 topics of prod: shop.t00, ")
    assert alone[1].endswith("and 2 more.")
    assert both == [*alone, both[-1]]
    assert both[-1].startswith("TOP702: policy and topics change together.")


def diagnostic(file: str, summary: str, line: int = 1) -> Diagnostic:
    return Diagnostic(
        code="TOP201",
        severity=Severity.ERROR,
        file=file,
        line=line,
        column=1,
        end_line=line,
        end_column=2,
        summary=summary,
    )


def test_a_problem_is_new_if_its_file_was_changed_or_the_base_has_not_its_like() -> None:
    before = [diagnostic("a.yaml", "wrong"), diagnostic("b.yaml", "wrong")]
    moved = diagnostic("a.yaml", "wrong", line=9)
    after = [moved, diagnostic("b.yaml", "wrong"), diagnostic("c.yaml", "over the budget")]

    assert new_diagnostics(before, after, changed=["b.yaml"]) == tuple(after[1:])


def pull(number: int) -> PullRequest:
    return PullRequest(
        number=number,
        url=f"https://forge.example/{number}",
        author="erin",
        state="open",
        base_branch="main",
        head_commit="a" * 40,
        is_from_fork=False,
    )


def test_others_are_those_that_touch_one_of_the_same_files() -> None:
    mine = ["topics/a/a.orders.yaml", "topics/a/a.bills.yaml"]
    files = {
        pull(9): ["topics/a/a.orders.yaml", "README.md"],
        pull(4): ["topics/b/b.x.yaml"],
        pull(3): [*mine, "topics/a/a.other.yaml"],
    }

    found = list(overlaps(mine, files, mark="!"))

    assert [(other.mark, other.author, other.topics) for other in found] == [
        ("!3", "erin", ("a.bills", "a.orders")),
        ("!9", "erin", ("a.orders",)),
    ]


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
