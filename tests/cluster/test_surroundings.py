"""Ten commands in random surroundings: each ends as in usual ones, or with an error before it changed anything."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from kazoo.client import KazooClient

from fixtures.live import cluster_spec, look, remove_topics
from fixtures.surroundings import Command, ForkedCommands, Surroundings
from fixtures.workspace import Workspace
from topicops_local.cluster import LocalCluster

PREFIX = "surroundings."
COMMANDS = (
    "validate",
    "explain TOPIC",
    "plan --engine python",
    "apply --yes",
    "plan ../plan.json",
    "verify",
    "drift",
    "list",
    "doctor",
    "audit verify",
)
BATCH = 12
FAULTS = ("Traceback", "internal error", "Exception ignored", "Logging error")


class Stage:
    """A live cluster, and a process that forks commands; where nothing is unusual each ends with status 0."""

    def __init__(self, cluster: LocalCluster, workspace: Workspace, place: Path) -> None:
        self._cluster, self._workspace, self._place = cluster, workspace, place
        self._client = KazooClient(cluster.zookeeper_hosts)

    def __enter__(self) -> Self:
        self._client.start()
        self._forks = ForkedCommands().__enter__()
        usual = self.play("usual", Surroundings())
        assert [end for end in usual if end[1] != 0 and end[0] != "plan ../plan.json"] == []
        shutil.copy(next((self._place / "usual/home").rglob("plan.json")), self._place / "plan.json")
        return self

    def __exit__(self, *_: object) -> None:
        self._forks.__exit__()
        self._client.stop()
        self._client.close()

    def play(self, name: str, surroundings: Surroundings) -> list[tuple[str, int, str]]:
        """Return each command with its status and what it said on stderr."""
        folder = self._folder(name)
        ended = []
        for words in COMMANDS:
            command = Command(
                words=words.replace("TOPIC", PREFIX + name).split(),
                folder=str(folder / "project"),
                surroundings=surroundings,
            )
            (folder / "err").write_text("")
            status = self._forks.run(command)
            ended.append((words, status, (folder / "err").read_text(encoding="utf-8", errors="replace")))
        return ended

    def problems(self, seed: int) -> Iterator[str]:
        """Yield what is not as it should be, in the surroundings of the seed."""
        surroundings, name = Surroundings.of(seed), f"s{seed}"
        ended = self.play(name, surroundings)
        story = f"seed {seed}, {surroundings.unusual()}"
        for words, status, said in ended:
            if status not in (0, 1):
                yield f"{story}: {words}: status {status}: {said[-600:]}"
            if any(fault in said for fault in FAULTS):
                yield f"{story}: {words}: {said[-1500:]}"
        status, said = next((status, said) for words, status, said in ended if words == "apply --yes")
        is_there = self._client.exists(f"/brokers/topics/{PREFIX}{name}") is not None
        if (is_there, self._is_recorded(name)) != (status == 0, status == 0):
            found = f"topic there: {is_there}, recorded: {self._is_recorded(name)}"
            yield f"{story}: apply: status {status}, {found}: {said[-900:]}"

    def _is_recorded(self, name: str) -> bool:
        files = [file for file in (self._place / name / "home").rglob("audit*/**/*") if file.is_file()]
        return any(f"{PREFIX}{name}".encode() in file.read_bytes() for file in files)

    def _folder(self, name: str) -> Path:
        """Return a project with one topic that is not there yet, and folders for any account."""
        folder = self._place / name
        shutil.copytree(self._workspace.folder / "topics", folder / "project/topics")
        source = self._workspace.path_of(f"{PREFIX}name")
        text = source.read_text(encoding="utf-8").replace(f"{PREFIX}name", PREFIX + name)
        text = text.replace("owner: team-tests", "owner: team-tests\n  description: Grüße, 5 €")
        described = folder / "project/topics/tests"
        (described / source.name).unlink()
        (described / f"{PREFIX}{name}.yaml").write_text(text, encoding="utf-8")
        for below in ("home", "there", "read-only"):
            (folder / below).mkdir()
        shutil.copy(self._place / "plan.json", folder) if (self._place / "plan.json").exists() else None
        for place in (folder, *folder.rglob("*")):
            place.chmod(0o777 if place.is_dir() else 0o666)
        (folder / "read-only").chmod(0o555)
        return folder


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Yield a folder that every account may enter, as those of pytest are not."""
    with tempfile.TemporaryDirectory(prefix="topicops-surroundings-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def stage(local_cluster: LocalCluster, workspace: Workspace, place: Path) -> Iterator[Stage]:
    workspace.cluster = cluster_spec(local_cluster)
    workspace.write_environment()
    workspace.topic(f"{PREFIX}name")
    with tempfile.TemporaryDirectory(dir=place) as folder:
        Path(folder).chmod(0o755)
        with Stage(local_cluster, workspace, Path(folder)) as stage:
            yield stage
    remove_topics(local_cluster, [name for name in look(local_cluster).topics if name.startswith(PREFIX)])


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, 300, BATCH))
def test_in_three_hundred_surroundings_each_command_ends_as_usual_or_before_it_changed_anything(
    stage: Stage, first: int
) -> None:
    assert "\n".join(problem for seed in range(first, first + BATCH) for problem in stage.problems(seed)) == ""
