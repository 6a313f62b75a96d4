"""A pull request in a team's own repository, against a real cluster: its jobs run as they stand, and nothing moves."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from fixtures.fake_forge import FakeForge
from fixtures.live import create_topics, look, remove_topics
from fixtures.team_repository import READER, REVIEW_KEY, SECRET, TeamRepository, team_repository
from fixtures.workflow import git
from topicops import cli
from topicops.features.files.authoring.first_environment import REPOSITORY, filled
from topicops.features.pull_requests.comment_markdown import marked
from topicops_local.cluster import LocalCluster

TEMPLATE = Path(__file__).parents[2] / "plugins/topicops/features/files/authoring/first_files/workflow.yml"
EXAMPLE = filled(
    TEMPLATE.read_text(encoding="utf-8"),
    {"REPOSITORY": REPOSITORY, "VERSION": "0.1.0", "TOPICS": "topics", "BRANCH": "main"},
)


@pytest.fixture
def repository(local_cluster: LocalCluster, tmp_path: Path) -> Iterator[TeamRepository]:
    prefix = f"pull-{uuid.uuid4().hex[:8]}"
    with FakeForge() as forge:
        yield team_repository(tmp_path, forge, local_cluster, prefix=prefix, workflow=EXAMPLE)
    remove_topics(local_cluster, [name for name in look(local_cluster).topics if name.startswith(f"{prefix}.")])


def test_a_pull_request_is_validated_planned_commented_and_checked_and_nothing_moves(
    repository: TeamRepository, local_cluster: LocalCluster
) -> None:
    repository.describe("pending")
    repository.publish("A topic that nobody has applied yet")
    with repository.branch("change"):
        repository.describe("orders", partitions=3, configs={"retention.ms": "2h"})
        repository.commit()
    pull, before = repository.open("change"), look(local_cluster)

    ended = repository.check(pull.number)

    assert {name: job.status for name, job in ended.items()} == {"validate": 0, "plan": 0}, ended
    [comment] = repository.forge.bodies(pull.number)
    assert marked(comment) == ("local", "plan")
    assert f"**create** {repository.topic('orders')}" in comment
    assert re.search(r"- with rack \w+ gone: \d+ offline, \d+ below min ISR", comment)
    mine, _, pending = comment.partition("Pending before this pull request")
    assert repository.topic("orders") in mine
    assert repository.topic("pending") in pending
    assert repository.topic("pending") not in mine
    check = repository.forge.check(pull.head)
    assert check is not None
    assert (check.result, check.title) == ("success", "1 change after the merge, in local")
    assert pull.labels == {"topics:safe"}
    assert look(local_cluster) == before
    assert SECRET not in comment + "".join(job.output for job in ended.values())


@pytest.mark.soak
def test_a_second_push_edits_the_comment_and_an_environment_without_changes_loses_it(
    repository: TeamRepository,
) -> None:
    with repository.branch("change"):
        repository.describe("orders")
        repository.commit()
    pull = repository.open("change")
    repository.check(pull.number)
    [first] = repository.forge.pulls[pull.number].comments

    repository.describe("orders", partitions=5)
    repository.commit()
    repository.push(pull.number)
    repository.check(pull.number)

    [second] = repository.forge.pulls[pull.number].comments
    assert second.id == first.id
    assert "partitions: 5" in second.body
    (repository.topics / f"tests/{repository.topic('orders')}.yaml").unlink()
    repository.commit()
    repository.push(pull.number)
    ended = repository.check(pull.number)
    assert repository.forge.bodies(pull.number) == []
    assert {name: job.status for name, job in ended.items()} == {"validate": 0, "plan": 0}, ended
    check = repository.forge.check(repository.head("change"))
    assert check is not None
    assert (check.result, check.title) == ("success", "No topic changes")


@pytest.mark.soak
def test_what_cannot_be_planned_fails_the_check_and_says_why(repository: TeamRepository) -> None:
    with repository.branch("change"):
        repository.describe("orders", partitions=-1)
        repository.commit()
    pull = repository.open("change")

    ended = repository.check(pull.number)

    assert ended["validate"].status == 1
    assert "::error file=topics/tests/" in ended["validate"].output
    [comment] = repository.forge.bodies(pull.number)
    assert f"topics/tests/{repository.topic('orders')}.yaml:" in comment
    check = repository.forge.check(pull.head)
    assert check is not None
    assert check.result == "failure"


@pytest.mark.soak
def test_a_branch_that_conflicts_gets_a_failed_check_with_the_file(repository: TeamRepository) -> None:
    repository.describe("orders", partitions=2)
    repository.publish()
    with repository.branch("change"):
        repository.describe("orders", partitions=3)
        repository.commit()
    pull = repository.open("change")
    with repository.branch("other"):
        repository.describe("orders", partitions=4)
        repository.publish()
        git(repository.clone, "fetch", "--quiet", "origin")

    ended = repository.runner.run(EXAMPLE, "pull_request_target", repository._event(pull.number))

    check = repository.forge.check(pull.head)
    assert check is not None
    assert (check.result, ended["plan"].status) == ("failure", 1)
    assert f"conflicts with its base in topics/tests/{repository.topic('orders')}.yaml" in check.title


def test_a_fork_is_validated_and_its_check_says_that_it_is_not_planned(repository: TeamRepository) -> None:
    with repository.branch("change"):
        repository.describe("orders")
        repository.commit()
    pull = repository.open("change", author="mallory")
    pull.is_from_fork = True

    ended = repository.check(pull.number)

    assert {name: job.status for name, job in ended.items()} == {"validate": 0, "unplanned": 0}, ended
    check = repository.forge.check(pull.head)
    assert check is not None
    assert (check.result, check.title) == ("neutral", "A pull request of a fork is validated and not planned")
    assert repository.forge.bodies(pull.number) == []


@pytest.mark.soak
def test_another_owner_alone_changes_nothing_and_waits_for_a_person(repository: TeamRepository) -> None:
    """Else its reviewers would approve the next pull request, and nobody had seen why."""
    repository.describe("orders", owner="team-tests")
    repository.publish()
    with repository.branch("change"):
        repository.describe("orders", owner="team-mallory")
        repository.commit()
    pull = repository.open("change", author="mallory")

    repository.check(pull.number)

    said = f"Owner team-tests → team-mallory: {repository.topic('orders')}. After the merge mallorys-friend may "
    [comment] = repository.forge.bodies(pull.number)
    assert said in comment
    check = repository.forge.check(pull.head)
    assert check is not None
    assert (check.result, check.title.startswith(said)) == ("neutral", True)


def test_a_pull_request_into_a_branch_that_nobody_protects_is_not_planned(repository: TeamRepository) -> None:
    with repository.branch("change"):
        repository.describe("orders")
        repository.commit()
    pull = repository.open("change")
    pull.base = "of-mallory"

    ended = repository.check(pull.number)

    assert list(ended) == ["validate"]
    assert repository.forge.check(pull.head) is None, "the check is of the commit: what is said here would let it merge"


@pytest.mark.soak
def test_a_profile_that_changes_topics_is_told_although_no_topic_file_changes(repository: TeamRepository) -> None:
    profile = repository.topics / "profiles/lean.yaml"
    profile.parent.mkdir()
    text = "apiVersion: topicops/v1\nkind: Profile\nmetadata: {name: lean}\nspec: {configs: {retention.ms: 7d}}\n"
    profile.write_text(text, encoding="utf-8")
    name = repository.topic("orders")
    metadata = {"name": name, "owner": "team-tests"}
    repository.write(f"topics/tests/{name}.yaml", "Topic", metadata, spec={"keyed": False, "profile": "lean"})
    repository.publish("A topic with a profile")
    with repository.branch("change"):
        profile.write_text(text.replace("7d", "1h"), encoding="utf-8")
        repository.commit()
    pull = repository.open("change")

    ended = repository.check(pull.number)

    assert {job: result.status for job, result in ended.items()} == {"validate": 0, "plan": 0}, ended
    [comment] = repository.forge.bodies(pull.number)
    assert f"After the merge they change 1 topic of local: {name}." in comment
    check = repository.forge.check(pull.head)
    assert check is not None
    assert (check.result, "topics/profiles/lean.yaml" in check.title) == ("neutral", True)


@pytest.mark.soak
def test_the_comment_names_another_pull_request_on_the_same_topic(repository: TeamRepository) -> None:
    repository.describe("orders")
    repository.publish()
    numbers = []
    for branch, partitions in (("first", 3), ("second", 4)):
        with repository.branch(branch):
            repository.describe("orders", partitions=partitions)
            repository.commit()
        numbers.append(repository.open(branch, author=f"author-of-{branch}").number)
        repository.check(numbers[-1])

    [second] = repository.forge.bodies(numbers[1])

    assert "author-of-first" in second


@pytest.mark.soak
def test_each_environment_has_a_comment_of_its_own_and_its_own_topics(repository: TeamRepository) -> None:
    local = repository.topics / "environments/local.yaml"
    second = local.read_text(encoding="utf-8").replace("name: local", "name: second")
    (repository.topics / "environments/second.yaml").write_text(second, encoding="utf-8")
    repository.publish("A second environment")
    with repository.branch("change"):
        repository.describe("both")
        name = repository.topic("one")
        metadata = {"name": name, "owner": "team-tests", "environments": ["second"]}
        repository.write(f"topics/tests/{name}.yaml", "Topic", metadata, spec={"keyed": False})
        repository.commit()
    pull = repository.open("change")

    ended = repository.check(pull.number)

    comments = {marked(body): body for body in repository.forge.bodies(pull.number)}
    assert list(comments) == [("local", "plan"), ("second", "plan")], ended
    assert [name in body for body in comments.values()] == [False, True]
    check = repository.forge.check(pull.head)
    assert check is not None
    assert check.title == "3 changes after the merge, in local, second"


HOSTILE = "**bold** | <script>alert(1)</script> @everyone #1 `$(touch ran)` ~~x~~ </details> <!-- topicops:record x -->"


@pytest.mark.soak
def test_a_hostile_branch_reads_no_secret_runs_nothing_and_lifts_no_limit(
    repository: TeamRepository, local_cluster: LocalCluster
) -> None:
    """Workflow, policy, profile, names of files, Markdown in all fields, and three hundred topics."""
    kept = NewTopic(repository.topic("kept"), num_partitions=2, replication_factor=3)
    create_topics(local_cluster.bootstrap_servers, kept)
    repository.describe("kept")
    repository.publish()
    before = look(local_cluster)
    evil = EXAMPLE.replace(f"    uses: {REPOSITORY}/.github/workflows/pull-request.yml@v0.1.0\n", "").partition(
        "    with:"
    )[0] + (
        "    runs-on: ubuntu-24.04\n    environment: topicops-reader\n    steps:\n"
        "      - name: Read the secrets\n        run: 'echo \"stolen: $CONNECTIONS $KEY\"'\n        env:\n"
        "          CONNECTIONS: ${{ secrets.TOPICOPS_READER_CONNECTIONS }}\n"
        "          KEY: ${{ secrets.TOPICOPS_REVIEW_KEY }}\n"
    )
    with repository.branch("evil"):
        (repository.clone / repository.workflow).write_text(evil, encoding="utf-8")
        environment = repository.topics / "environments/local.yaml"
        text = environment.read_text(encoding="utf-8")
        lifted = text.replace("unattended: safe", "unattended: destructive")
        assert lifted != text
        environment.write_text(lifted.replace("tests_kafka", "attackers_kafka"), encoding="utf-8")
        owners = repository.topics / "owners.yaml"
        owners.write_text(owners.read_text(encoding="utf-8").replace("alice", "mallory"), encoding="utf-8")
        repository.write(
            "topics/profiles/short.yaml", "Profile", {"name": "short"}, spec={"configs": {"retention.ms": "1"}}
        )
        for number in range(300):
            word = f"t{number:03d}.{'x' * 150}"
            repository.describe(word, description=HOSTILE, keyed=True, configs={"cleanup.policy": "compact"})
        repository.describe("kept", configs={"retention.ms": "1"})
        odd = ["$(touch ran).yaml", "`touch ran`.yaml", "; touch ran #.yaml", "a\nb.yaml", "link.yaml"]
        for name in odd[:-1]:
            (repository.topics / "tests" / name).write_text("apiVersion: $(touch ran)\n", encoding="utf-8")
        (repository.topics / "tests" / odd[-1]).symlink_to("/etc/passwd")
        (repository.clone / ".gitattributes").write_text("* filter=evil\n", encoding="utf-8")
        repository.commit(HOSTILE)
    pull = repository.open("evil", author="mallory")
    pull.title = HOSTILE

    first = repository.check(pull.number)

    outputs = "".join(job.output for job in first.values())
    assert "stolen:  \n" in outputs, "the job of the branch's own text has run, and got nothing"
    [problems] = repository.forge.bodies(pull.number)
    assert "The newest commit has no plan." in problems
    assert "link.yaml" in problems
    assert "root:" not in problems, "of a link, its target is not read"

    for name in odd:
        (repository.topics / "tests" / name).unlink()
    repository.commit(HOSTILE)
    repository.push(pull.number)
    second = repository.check(pull.number)

    outputs += "".join(job.output for job in second.values())
    bodies = repository.forge.bodies(pull.number)
    everything = outputs + problems + "".join(bodies)
    assert [word for word in (SECRET, REVIEW_KEY) if word in everything] == []
    assert [path for path in repository.folder.rglob("ran") if path.is_file()] == []
    assert look(local_cluster) == before
    assert [len(body) for body in bodies if len(body) >= 65_536] == []
    named = "".join(bodies)
    unnamed = [number for number in range(300) if f".t{number:03d}." not in named]
    assert 0 < len(unnamed) < 200
    assert re.search(rf"^\*{len(unnamed)} changes are left out here; the plan of the job has all", named, re.MULTILINE)
    assert "attackers_kafka" not in named
    assert "unattended" not in named or "up to safe allowed" in named
    assert "uses these files as the base branch has them" in named
    assert "TOP702" in named
    told = "After the merge mallory may approve changes of team-tests; until now alice may."
    assert told in named
    assert "mallory" not in named.replace(told, ""), "neither as a reviewer nor as an approver"
    check = repository.forge.check(repository.forge.pulls[pull.number].head)
    assert check is not None
    assert check.result == "neutral"
    assert check.title == (
        "local: 301 changes held: a review by alice, or the question in Airflow after the merge lets them run"
    )


@pytest.mark.soak
def test_the_example_runs_as_it_stands_in_a_repository_with_topics_alone(
    repository: TeamRepository, local_cluster: LocalCluster
) -> None:
    """Its action installs itself, from its own lock, into an environment of its own."""
    repository.runner.installs = True
    repository.runner.variables = {**repository.runner.variables, "PYTHONPATH": ""}
    with repository.branch("change"):
        repository.describe("orders")
        repository.commit()
    pull = repository.open("change")

    ended = repository.check(pull.number)

    assert {name: job.status for name, job in ended.items()} == {"validate": 0, "plan": 0}, ended
    assert f"**create** {repository.topic('orders')}" in repository.forge.bodies(pull.number)[0]
    installed = [path for path in repository.folder.rglob("site-packages/topicops") if path.is_dir()]
    assert len(installed) == 2, "each job has installed its own"
    assert [path for folder in installed for path in folder.parent.glob("py4j*")] == [], "no Spark, so no Java"


def test_the_commands_of_the_page_run_by_hand_in_a_clone(
    repository: TeamRepository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with repository.branch("change"):
        repository.describe("orders")
        repository.commit()
    monkeypatch.chdir(repository.clone)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setenv("TOPICOPS_HOME", str(repository.folder / "home"))
    monkeypatch.setenv("TOPICOPS_CONNECTIONS", repository.runner.environments[READER]["TOPICOPS_READER_CONNECTIONS"])

    assert cli.run(["ci", "validate", "--since", "origin/main"]) == 0
    assert cli.run(["ci", "plan", "pull-request", "--base", "origin/main", "--head", "HEAD"]) == 0

    assert f"topic.{repository.topic('orders')}" in capsys.readouterr().out
    assert sorted(path.name for path in Path("pull-request").iterdir()) == ["local.plan.json", "pull-request.json"]
    git(repository.clone, "status")
