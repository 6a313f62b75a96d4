"""A plan names files as the repository has them, and limits by file and line, wherever it is made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fakes.builders import live_topic, snapshot
from fixtures.planning import plan_of
from fixtures.pretended import open_source_with_orders
from fixtures.spec_folder import LOCAL, topic, write
from fixtures.workflow import git
from fixtures.workspace import Workspace
from topicops.edges.specs.git import name_in_repository
from topicops.flow.runs.access import READERS
from topicops.flow.runs.files import read_specs
from topicops.flow.runs.run import open_run
from topicops.model.choices import SOURCES
from topicops.model.plans.plan_file import plan_to_json
from topicops.steps.planning.gate import gate

GONE = "lifecycle: {state: absent, reason: Not used any more.}\n"
FILES = {"shop/a.yaml": topic("a", GONE), "shop/b.yaml": topic("b", GONE)}
LIMITED = LOCAL + "    deletesPerRun: 1\n    deletesPercent: 100\n"


def written_plan(topics: Path, home: Path) -> str:
    """Two deletes, one allowed."""
    run = open_run(environment="local", topics=topics, group="cli", run_id="1", home=home)
    environment, desired = read_specs(run.files).require()
    live = snapshot(live_topic("a"), live_topic("b"))
    return plan_to_json(gate(plan_of(desired, live, environment), environment))


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOPICOPS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "repository"
    (folder / "topics").mkdir(parents=True)
    write(folder / "topics", FILES, local=LIMITED)
    return folder


WAYS: list[Callable[[Path], tuple[Path, Path]]] = [
    lambda repository: (repository, Path("topics")),
    lambda repository: (repository, repository / "topics"),
    lambda repository: (repository / "topics", Path()),
    lambda repository: (repository / "topics", Path("../topics")),
    lambda repository: (repository.parent, Path("repository/topics")),
    lambda repository: (Path("/"), repository / "topics"),
]


def test_a_plan_of_one_repository_is_the_same_bytes_wherever_it_is_made(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / ".git").mkdir()
    texts = set()
    for way in WAYS:
        folder, topics = way(repository)
        monkeypatch.chdir(folder)
        texts.add(written_plan(topics, tmp_path / "home"))

    (text,) = texts
    assert str(tmp_path) not in text
    assert tmp_path.name not in text
    assert ".." not in text


def test_a_topic_whose_file_git_renamed_is_created_with_the_note_that_this_is_no_rename(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SOURCES, "pretended", "")
    monkeypatch.setitem(READERS, "pretended", open_source_with_orders)
    workspace.cluster = {**workspace.cluster, "source": "pretended", "lease": "none"}
    workspace.topic("shop.orders", partitions=3)
    workspace.write_environment()
    git(workspace.folder, "init", "-q")
    git(workspace.folder, "add", "topics")
    git(workspace.folder, "commit", "-qm", "Describe orders")
    before = workspace.plan().out
    git(workspace.folder, "rm", "-q", "topics/tests/shop.orders.yaml")
    workspace.topic("shop.orders-v2", partitions=3)

    after = workspace.plan().out

    assert "rename" not in before
    assert "note: this is not a rename of shop.orders: no record and no group's offset is carried over" in after
    assert "shop.orders stays as it is, and no file describes it now" in after


def test_the_place_of_a_limit_is_the_line_that_sets_it(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    line = 1 + LIMITED.splitlines().index("    deletesPerRun: 1")
    changes = json.loads(written_plan(Path("topics"), repository / "home"))["changes"]

    assert [change["reasons"] for change in changes] == [
        [
            "risk destructive, up to notice allowed without an approval (policy.unattended, by default)",
            f"2 deletes, 1 allowed (limits.deletesPerRun, topics/environments/local.yaml:{line})",
        ]
    ] * 2
    assert changes[0]["location"]["file"] == "topics/shop/a.yaml"


@pytest.mark.parametrize(
    ("working_folder", "topics", "name"),
    [
        pytest.param("repository", "topics", "topics/", id="below the working folder"),
        pytest.param(".", "repository/topics", "repository/topics/", id="further below"),
        pytest.param("repository/topics", ".", "", id="the working folder itself"),
        pytest.param("home", "../repository/topics", "topics/", id="elsewhere: by its own name"),
    ],
)
def test_without_a_repository_the_folder_is_named_from_the_working_folder(
    repository: Path, monkeypatch: pytest.MonkeyPatch, working_folder: str, topics: str, name: str
) -> None:
    (repository.parent / "home").mkdir()
    monkeypatch.chdir(repository.parent / working_folder)
    assert name_in_repository(Path(topics)) == name
