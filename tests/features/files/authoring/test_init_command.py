"""``topicops init`` without a cluster: what it refuses, and what it asks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from fakes.builders import live_topic
from fixtures.workflow import git
from topicops import cli
from topicops.features.files.authoring import init
from topicops.features.files.authoring.first_environment import FirstEnvironment, Start
from topicops.model.cluster.snapshot import TopicTraces
from topicops.model.specs.environment import KafkaEndpoint, ZooKeeperEndpoint

PROD = ("--bootstrap-servers", "b1:9092", "--name", "prod")


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Start]:
    """Return what a person said, instead of a look at a cluster; the working folder is empty."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path / "home"))
    starts: list[Start] = []

    def look(wanted: Start) -> FirstEnvironment:
        starts.append(wanted)
        return FirstEnvironment(
            start=replace(wanted, kafka=wanted.kafka or KafkaEndpoint(bootstrap_servers="b1:9092")),
            cluster_id="x9ZkQ0mVTh2c7nUeYw1aBg",
            kafka_version="3.9",
            racks={1: "a", 2: "b", 3: "c"},
        )

    monkeypatch.setattr(init, "_look", look)
    return starts


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "name the cluster"),
        (["--zookeeper", "zk:2181"], "give the environment a name"),
        (["--local", "--zookeeper", "zk:2181"], "--local names the cluster already"),
        (["--local"], "start one: topicops local up"),
        (["--zookeeper", "zk:2181", "--zookeeper-connection", "zk"], "not both"),
        (["--bootstrap-servers", "b:9092", "--kafka-connection", "k"], "not both"),
        (["--zookeeper", "zk:2181", "--name", "a.b"], "cannot be the name of an environment"),
        (["--zookeeper", "zk:2181", "--name", "all"], "cannot be the name of an environment"),
        (["--zookeeper", "zk:2181", "--name", "prod", "--topics", "../topics"], "below this one"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_one_line_and_writes_nothing(
    seen: list[Start], words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["init", *words]) == 1

    shown = capsys.readouterr().err
    assert sentence in shown
    assert shown.count("\n") == 1
    assert [path for path in tmp_path.iterdir() if path.name != "home"] == []


def test_a_file_that_is_there_stays_as_it_is(seen: list[Start], capsys: pytest.CaptureFixture[str]) -> None:
    Path(".gitignore").write_text("*.pyc\n", encoding="utf-8")

    assert cli.run(["init", "--bootstrap-servers", "b1:9092", "--name", "prod"]) == 0
    shown = capsys.readouterr().out
    assert cli.run(["init", "--bootstrap-servers", "other:9092", "--name", "prod"]) == 0
    again = capsys.readouterr().out

    assert Path(".gitignore").read_text(encoding="utf-8") == "*.pyc\n"
    assert "b1:9092" in Path("topics/environments/prod.yaml").read_text(encoding="utf-8")
    assert "Left alone, there already: .gitignore" in shown
    assert ".gitignore has no line .topicops/" in shown
    assert "Wrote" not in again


def test_connections_are_named_by_their_ids(seen: list[Start]) -> None:
    words = ["--zookeeper-connection", "zk_prod", "--kafka-connection", "kafka_prod", "--name", "prod", "--owner", "me"]

    assert cli.run(["init", *words]) == 0

    [start] = seen
    assert (start.zookeeper, start.kafka) == (
        ZooKeeperEndpoint(connection="zk_prod"),
        KafkaEndpoint(connection="kafka_prod"),
    )
    assert (start.cluster_class, start.owner) == ("production", "me")


@pytest.mark.parametrize(
    ("addresses", "zookeeper", "kafka"),
    [
        (("b1:9092", ""), None, KafkaEndpoint(bootstrap_servers="b1:9092")),
        (("", "zk:2181/kafka"), ZooKeeperEndpoint(hosts="zk:2181/kafka"), None),
    ],
    ids=["KRaft", "ZooKeeper"],
)
def test_on_a_terminal_it_asks(
    seen: list[Start],
    addresses: tuple[str, str],
    zookeeper: ZooKeeperEndpoint | None,
    kafka: KafkaEndpoint | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter(["prod-eu", *addresses, "team-a"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("typer.prompt", lambda *_, **__: next(answers))
    monkeypatch.setattr("typer.confirm", lambda *_, **__: True)

    assert cli.run(["init"]) == 0

    [start] = seen
    assert (start.name, start.owner, start.kind) == ("prod-eu", "team-a", None if zookeeper else "managed")
    assert (start.zookeeper, start.kafka) == (zookeeper, kafka)


def test_a_new_topic_names_the_schema_that_init_wrote(seen: list[Start]) -> None:
    assert cli.run(["init", "--bootstrap-servers", "b1:9092", "--name", "prod"]) == 0

    assert cli.run(["new", "web.clicks", "--owner", "team-web", "--partitions", "3"]) == 0

    file = Path("topics/web/web.clicks.yaml")
    line = file.read_text(encoding="utf-8").splitlines()[0]
    assert line.startswith("# yaml-language-server: $schema=")
    assert (file.parent / line.partition("=")[2]).is_file()
    assert cli.run(["fmt", "--check", "topics"]) == 0


@pytest.mark.parametrize(
    ("forge", "files", "owned", "needed"),
    [
        ("github", {".github/CODEOWNERS", ".github/workflows/topics.yml"}, ["/.github/"], "topicops-reader"),
        ("gitlab", {".gitlab/CODEOWNERS", ".gitlab-ci.yml"}, ["/.gitlab/", "/.gitlab-ci.yml"], "TOPICOPS_CONNECTIONS"),
    ],
)
def test_a_forge_gets_its_jobs_and_their_code_owners_and_what_they_need_is_printed(
    seen: list[Start], forge: str, files: set[str], owned: list[str], needed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["init", *PROD, "--forge", forge]) == 0

    written = {path.as_posix() for path in Path().rglob("*") if path.is_file()}
    assert {name for name in written if name.startswith((".github", ".gitlab"))} == files
    texts = [Path(name).read_text(encoding="utf-8") for name in files]
    assert [text for text in texts if re.search(r"@[A-Z_]+@", text)] == []
    assert all("topics" in text for text in texts)
    owners = Path(f".{forge}/CODEOWNERS").read_text(encoding="utf-8")
    places = [line.split()[1] for line in owners.splitlines() if "@your-organisation/team-platform" in line]
    assert places == ["/topics/environments/", "/topics/profiles/", "/topics/owners.yaml", "/dags/", *owned]
    after = capsys.readouterr().out.partition("Next:")[2]
    assert needed in after
    assert "/docs/how-to/review-in-pull-requests.md" in after


@pytest.mark.parametrize(
    ("branch", "written"),
    [
        (None, "main"),
        ("trunk", "trunk"),
        ("release/1.x", "release/1.x"),
        ("on", "on"),
        ("1.0", "1.0"),
        ("a+b", r"a\+b"),
    ],
)
def test_the_workflow_applies_what_is_merged_into_the_repositorys_own_branch(
    seen: list[Start], branch: str | None, written: str
) -> None:
    if branch:
        git(Path(), "init", "-q", f"--initial-branch={branch}")

    assert cli.run(["init", *PROD]) == 0

    text = Path(".github/workflows/topics.yml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)[True]["push"]["branches"] == [written]  # YAML reads the key `on` as true


def test_on_a_branch_of_a_clone_the_workflow_names_the_default_branch(
    seen: list[Start], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "-q", "--initial-branch=trunk", "origin")
    git(tmp_path / "origin", "commit", "-q", "--allow-empty", "-m", "A commit")
    git(tmp_path, "clone", "-q", "origin", "clone")
    monkeypatch.chdir(tmp_path / "clone")
    git(Path(), "checkout", "-q", "-b", "add-topics")

    assert cli.run(["init", *PROD]) == 0

    assert "branches: [trunk]" in Path(".github/workflows/topics.yml").read_text(encoding="utf-8")


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_below_the_root_of_a_repository_it_says_where_to_run_it(
    seen: list[Start], forge: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "kafka").mkdir()
    monkeypatch.chdir(tmp_path / "kafka")

    assert cli.run(["init", *PROD, "--forge", forge]) == 1

    assert "run it at the repository's root with --topics kafka/topics" in capsys.readouterr().err
    assert list(Path().iterdir()) == []
    assert seen == []

    monkeypatch.chdir(tmp_path)
    assert cli.run(["init", *PROD, "--forge", forge, "--topics", "kafka/topics"]) == 0
    assert Path("kafka/topics/environments/prod.yaml").is_file()


def test_git_ignores_the_folder_of_a_plan_by_hand(seen: list[Start]) -> None:
    git(Path(), "init", "-q")
    assert cli.run(["init", *PROD]) == 0
    for name in ("pull-request/pull-request.json", "plan.json", ".topicops/runs/x"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()

    assert (
        git(Path(), "check-ignore", "pull-request/pull-request.json", "plan.json", ".topicops/runs/x").count("\n") == 3
    )


def test_a_second_environment_says_what_its_cluster_lacks(
    seen: list[Start], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    class Cluster:
        @contextmanager
        def reader(self) -> Iterator[Cluster]:
            yield self

        def traces(self, names: Sequence[str]) -> dict[str, TopicTraces]:
            asked.extend(names)
            live = {name: live_topic(name) if name == "web.clicks" else None for name in names}
            return {name: TopicTraces(live=live[name], has_config_znode=False, is_deleting=False) for name in names}

    monkeypatch.setattr(init, "_access", lambda wanted: Cluster())
    assert cli.run(["init", "--bootstrap-servers", "b1:9092", "--name", "dev"]) == 0
    assert "# no changes yet" in capsys.readouterr().out
    for name in ("web.clicks", "web.views", "web.orders"):
        assert cli.run(["new", name, "--owner", "team-web", "--partitions", "3"]) == 0
    orders = Path("topics/web/web.orders.yaml")
    orders.write_text(orders.read_text().replace("  owner: team-web", "  owner: team-web\n  environments: [dev]"))
    capsys.readouterr()

    assert cli.run(["init", *PROD]) == 0

    shown = capsys.readouterr().out
    assert "1 of 2 described topics is not in this cluster: the first plan would create it.\n" in shown
    assert "To keep a topic out of prod, write metadata.environments" in shown
    assert "# would create 1 topic\n" in shown
    assert sorted(asked) == ["web.clicks", "web.views"]

    orders.write_text("broken: [")
    assert cli.run(["init", "--bootstrap-servers", "b2:9092", "--name", "stage"]) == 0
    assert "The topic files have errors, so what they ask of stage is not known" in capsys.readouterr().out
