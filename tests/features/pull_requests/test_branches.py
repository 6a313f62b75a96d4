"""Both sides of a pull request as folders: whose policy, whose topics, and whose reviewers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.builders import desired_of, desired_topic, location, tombstone
from fixtures.spec_folder import LOCAL, owners, topic, write, write_files
from fixtures.workflow import commit, git
from topicops.features.pull_requests.branches import changed_topics, is_policy, open_branches, validate_change
from topicops.features.pull_requests.owners import code_owners_of, reviewers_by_owner
from topicops.model.errors import UsageError

OWNERS = owners(
    'owner: team-web, topics: ["a*"], reviewers: [alice, "@acme/web"]',
    "owner: team-web, environments: [local], reviewers: [erin]",
    "owner: team-shop",
)


@pytest.fixture
def topics(tmp_path: Path) -> Path:
    """On main one topic; on the branch a changed one, a new one, another policy and other owners."""
    folder = tmp_path / "repository/kafka/topics"
    write(folder, {"owners.yaml": OWNERS, "web/a.yaml": topic("a")})
    git(folder.parents[1], "init", "-q")
    commit(folder)
    git(folder.parents[1], "checkout", "-q", "-b", "change")
    write_files(
        folder,
        {
            "environments/local.yaml": LOCAL.replace("partitionsPerTopic: 24", "partitionsPerTopic: 1000"),
            "environments/extra.yaml": LOCAL.replace("name: local", "name: extra"),
            "owners.yaml": OWNERS.replace("alice", "mallory"),
            "profiles/short.yaml": "apiVersion: topicops/v1\nkind: Profile\nmetadata: {name: short}\nspec: {}\n",
            "web/a.yaml": topic("a", "spec: {partitions: 5}\n"),
            "web/b.yaml": topic("b"),
        },
    )
    commit(folder)
    return folder


def test_policy_is_that_of_the_base_branch_and_topics_are_those_of_the_merge(topics: Path) -> None:
    with open_branches(topics, base="main", head="change") as found:
        after = {path.relative_to(found.after).as_posix(): path for path in found.after.rglob("*.yaml")}
        assert sorted(after) == ["environments/local.yaml", "owners.yaml", "web/a.yaml", "web/b.yaml"]
        assert after["environments/local.yaml"].read_text(encoding="utf-8") == LOCAL
        assert "partitions: 5" in after["web/a.yaml"].read_text(encoding="utf-8")
        assert found.environments == ("local",)
        assert found.topic_files == ("kafka/topics/web/a.yaml", "kafka/topics/web/b.yaml")
        assert found.policy_files == tuple(
            f"kafka/topics/{name}"
            for name in ("environments/extra.yaml", "environments/local.yaml", "owners.yaml", "profiles/short.yaml")
        )
        assert (found.after_with_policy / "profiles/short.yaml").is_file()


def test_the_entries_of_an_owner_add_up_to_its_reviewers(topics: Path) -> None:
    with open_branches(topics, base="main", head="change") as found:
        assert reviewers_by_owner(found.before) == {"team-web": ("alice", "acme/web", "erin"), "team-shop": ()}


def test_a_place_is_called_as_in_git_and_not_as_in_our_copy(topics: Path) -> None:
    with open_branches(topics, base="main", head="change") as found:
        desired = found.desired(found.after, "local")
        assert desired is not None
        assert str(desired.topics["a"].location) == "kafka/topics/web/a.yaml:3"
        assert found.named_as_in_git(f"{found.after}/web/a.yaml:4: wrong") == "kafka/topics/web/a.yaml:4: wrong"


def test_a_branch_without_the_folder_is_one_sentence(topics: Path) -> None:
    with (
        pytest.raises(UsageError, match=r"^kafka/others: no such folder in \w{12}; name the folder of topics"),
        open_branches(topics.parent / "others", base="main", head="change"),
    ):
        pass


def test_folders_above_that_are_not_there_either_are_the_same_sentence(topics: Path) -> None:
    with (
        pytest.raises(UsageError, match=r"^a/b/topics: no such folder in \w{12}"),
        open_branches(topics.parents[1] / "a/b/topics", base="main", head="change"),
    ):
        pass


def test_a_branch_may_bring_folders_that_the_work_tree_lacks(topics: Path) -> None:
    write_files(topics.parents[1], {"a/b/topics/environments/local.yaml": LOCAL, "a/b/topics/web/a.yaml": topic("a")})
    commit(topics.parents[1])
    git(topics, "checkout", "-q", "main")

    with open_branches(topics.parents[1] / "a/b/topics", base="main", head="change") as found:
        assert found.topic_files == ("a/b/topics/web/a.yaml",)


@pytest.mark.parametrize("place", [".", "above"])
def test_the_root_of_the_repository_is_refused(topics: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    root = topics.parents[1]
    monkeypatch.chdir(root)

    with (
        pytest.raises(UsageError, match="this is the repository's root; name the folder below it that holds the topic"),
        open_branches(Path() if place == "." else root, base="main", head="change"),
    ):
        pass


@pytest.mark.parametrize("below", ["topics", "cluster/specs"])
def test_a_folder_above_the_topics_is_named_as_in_git(topics: Path, below: str) -> None:
    root = topics.parents[1]
    (root / "data" / below).parent.mkdir(parents=True)
    git(root, "mv", "kafka/topics", f"data/{below}")
    commit(root)

    with pytest.raises(UsageError) as raised, open_branches(root / "data", base="main", head="change"):
        pass

    assert str(raised.value) == f"data: this folder is above the topics; did you mean --topics data/{below}?"


def test_a_branch_may_move_the_topics_one_folder_up(topics: Path) -> None:
    root = topics.parents[1]
    git(root, "mv", *(f"kafka/topics/{name}" for name in ("environments", "owners.yaml", "profiles", "web")), "kafka")
    commit(root)

    with open_branches(root / "kafka", base="main", head="change") as found:
        assert found.environments == ()
        assert found.topic_files == ("kafka/web/a.yaml", "kafka/web/b.yaml")
    assert [problem.file for problem in validate_change(root / "kafka", since="main").brought] == []


def test_a_problem_is_new_if_its_file_was_changed_or_the_base_has_not_its_like(topics: Path) -> None:
    wrong = topic("wrong", "spec: {partitions: 0}\n")
    write_files(topics, {"web/wrong.yaml": wrong, "web/also.yaml": topic("also", "spec: {partitions: 0}\n")})
    commit(topics)
    write_files(
        topics, {"web/wrong.yaml": f"# moved\n{wrong}", "web/new.yaml": topic("new", "spec: {partitions: 0}\n")}
    )

    found = validate_change(topics, since="HEAD")

    assert {Path(problem.file).name for problem in found.brought} == {"wrong.yaml", "new.yaml"}
    assert {Path(problem.file).name for problem in found.old} == {"also.yaml"}


@pytest.mark.parametrize("command", [validate_change, lambda topics, since: code_owners_of(topics)])
def test_topics_at_the_root_of_the_repository_are_refused(
    tmp_path: Path, command: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"web/a.yaml": topic("a")})
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    monkeypatch.chdir(tmp_path)

    with pytest.raises(UsageError, match="move them into a folder"):
        command(Path(), since="HEAD")


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
