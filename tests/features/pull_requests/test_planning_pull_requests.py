"""What keeps a whole pull request from being planned is its problem, so that its check can say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.spec_folder import LOCAL, owners, topic, write, write_files
from fixtures.workflow import commit, git
from topicops.features.pull_requests.planning import Planning, plan_pull_request
from topicops.features.pull_requests.values import PlannedPullRequest, PullRequestPlan


@pytest.fixture
def topics(tmp_path: Path) -> Path:
    """In a repository whose ``main`` has an environment, and whose branch ``change`` adds a topic."""
    repository = tmp_path / "repository"
    write(repository / "topics", {})
    git(repository, "init", "-q")
    commit(repository, "main")
    git(repository, "checkout", "-qb", "change")
    write(repository / "topics", {"shop/orders.yaml": topic("orders")})
    commit(repository, "change")
    return repository / "topics"


def planned(topics: Path, base: str, head: str, *, only: tuple[str, ...] = ()) -> PlannedPullRequest:
    planning = Planning(number=1, only=only, run_id="1", home=topics.parent / ".topicops")
    return plan_pull_request(topics, base=base, head=head, planning=planning)


def summary(topics: Path, base: str, head: str, *, only: tuple[str, ...] = ()) -> PullRequestPlan:
    return planned(topics, base, head, only=only).summary


def test_a_base_that_contains_the_branch_is_refused_because_the_plan_would_look_harmless(topics: Path) -> None:
    assert summary(topics, "HEAD", "change").problem == (
        "HEAD already contains change: name the base branch's commit with --base"
    )


def test_an_environment_that_nobody_has_is_named_with_those_that_there_are(topics: Path) -> None:
    assert summary(topics, "main", "change", only=("prod",)).problem == (
        "prod: no such environment on the base branch; there are: local"
    )


def test_a_missing_commit_leaves_the_names_that_were_given(topics: Path) -> None:
    found = summary(topics, "main", "f" * 40)

    assert "this clone has no such commit" in found.problem
    assert (len(found.base_commit), found.head_commit) == (40, "f" * 40)


def test_a_base_without_an_environment_says_why_nothing_is_planned(topics: Path) -> None:
    git(topics.parent, "checkout", "-q", "main")
    git(topics.parent, "rm", "-q", "topics/environments/local.yaml")
    commit(topics.parent, "no environment")
    git(topics.parent, "checkout", "-qb", "later")
    write_files(topics, {"shop/orders.yaml": topic("orders")})
    commit(topics.parent, "a topic")

    found = summary(topics, "main", "later")

    assert (found.environments, found.problem) == ((), "")
    assert "The base branch has no environment" in found.remarks[-1]


def test_a_submodule_that_moves_is_a_problem_and_never_no_change(topics: Path) -> None:
    for branch in ("with-submodule", "moved"):
        git(topics.parent, "checkout", "-qb", branch)
        there = git(topics.parent, "rev-parse", "HEAD").strip()
        git(topics.parent, "update-index", "--add", "--cacheinfo", f"160000,{there},topics/pay")
        git(topics.parent, "commit", "-q", "-m", "A submodule at another commit")

    found = summary(topics, "with-submodule", "moved")

    assert "topics/pay is a submodule: its files are in another repository" in found.problem


def test_an_environment_where_an_edit_has_no_effect_is_planned_and_the_remark_says_why(topics: Path) -> None:
    git(topics.parent, "checkout", "-q", "change")
    hides = LOCAL + "  overrides: {orders: {partitions: 12}}\n"
    write_files(topics, {"environments/local.yaml": hides, "shop/orders.yaml": topic("orders", "spec: {}\n")})
    commit(topics.parent, "an override")
    git(topics.parent, "checkout", "-qb", "edited")
    write_files(topics, {"shop/orders.yaml": topic("orders", "spec: {partitions: 6}\n")})
    commit(topics.parent, "an edit that it hides")

    found = summary(topics, "change", "edited")

    assert [(entry.environment, entry.own) for entry in found.environments] == [("local", ())]
    assert found.remarks == (
        "1 edit without effect in local: partitions in topics/shop/orders.yaml:4 "
        "(topics/environments/local.yaml:9 sets it).",
    )


OWNERS = owners(
    'owner: team-web, topics: ["o*"], reviewers: ["@alice"]',
    'owner: team-mallory, topics: ["*"], reviewers: ["@mallorys-friend"]',
)


def test_a_change_of_the_owner_alone_is_told_with_the_reviewers_of_both(topics: Path) -> None:
    file, text = topics / "shop/orders.yaml", topic("orders")
    (topics / "owners.yaml").write_text(OWNERS, encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    commit(topics.parent, "owned")
    git(topics.parent, "checkout", "-qb", "taken")
    file.write_text(text.replace("team-web", "team-mallory"), encoding="utf-8")
    commit(topics.parent, "another owner")

    found = summary(topics, "change", "taken")

    assert [entry.own for entry in found.environments] == [("orders",)]
    assert found.remarks == (
        "Owner team-web → team-mallory: orders. After the merge mallorys-friend may approve changes there, and alice "
        "may not: let both owners agree.",
    )


def test_other_reviewers_in_the_file_of_owners_are_told(topics: Path) -> None:
    (topics / "owners.yaml").write_text(OWNERS, encoding="utf-8")
    commit(topics.parent, "owned")
    git(topics.parent, "checkout", "-qb", "taken")
    (topics / "owners.yaml").write_text(OWNERS.replace("@alice", "@mallory"), encoding="utf-8")
    commit(topics.parent, "other reviewers")

    assert summary(topics, "change", "taken").remarks[1:] == (
        "After the merge mallory may approve changes of team-web; until now alice may.",
    )


def test_a_change_of_policy_is_named_with_what_it_will_do_and_one_beside_topics_is_marked(topics: Path) -> None:
    (topics / "environments/prod.yaml").write_text(LOCAL.replace("name: local", "name: prod"), encoding="utf-8")
    commit(topics.parent, "two environments")
    git(topics.parent, "checkout", "-qb", "policy")
    (topics / "environments/local.yaml").write_text(LOCAL.replace("partitions: 3", "partitions: 7"), encoding="utf-8")
    commit(topics.parent, "another default")
    alone = summary(topics, "change", "policy", only=("prod",))
    (topics / "shop/bills.yaml").write_text(topic("bills", metadata=", environments: [local]"), encoding="utf-8")
    commit(topics.parent, "a topic too")
    both = summary(topics, "change", "policy", only=("prod",))

    assert (alone.left_out, alone.environments) == (("local",), ())
    assert alone.remarks[0].startswith("This pull request changes topics/environments/local.yaml. The plan uses these")
    assert alone.remarks[1:] == ("After the merge they change 1 topic of local: orders.",)
    assert both.remarks[-1].startswith("TOP702: policy and topics change together.")
