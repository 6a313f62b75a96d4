"""After the merge: which runs start, on which commit, with whose approvals, and what comes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from fixtures.fake_forge import BOT, REPOSITORY, TOKEN, FakeForge
from fixtures.spec_folder import LOCAL, PROD, owners, topic, write
from fixtures.workflow import commit, git
from topicops.features.pull_requests.comment_markdown import marker
from topicops.features.pull_requests.edges.github import GitHub
from topicops.features.pull_requests.reviews import record_line, with_record
from topicops.features.pull_requests.signed_reviews import SignedReview, is_genuine
from topicops.features.pull_requests.triggering import Trigger
from topicops.features.pull_requests.values import About, Shown, TriggeredRuns
from topicops.features.shared.airflow_client import AirflowClient, AirflowError, NoSuchInAirflowError, TaskState
from topicops.model.errors import UsageError
from topicops.model.runs.results import MOST_DIGESTS, ChangeResult, RunResult

KEY = b"k" * 32
DONE = RunResult(headline="Applied and verified: 1 done.", success=True, commit="c" * 40, changes=())
HELD = RunResult(
    headline="Applied and verified: 1 done.",
    success=True,
    commit="c" * 40,
    changes=(ChangeResult(topic="a", action="delete", digest="ab" * 32, status="held"),),
)
SKIPPED = RunResult(
    headline="Nothing was applied.",
    success=True,
    commit="c" * 40,
    changes=(ChangeResult(topic="a", action="create", digest="ab" * 32, status="skipped"),),
)
FAILED = RunResult(headline="Applied in part: 1 failed.", success=False, commit="c" * 40, changes=())


@dataclass
class FakeAirflow(AirflowClient):
    """Knows the commits that its bundle has, one for each look, and the result of each environment's run."""

    versions: list[str | None]
    results: Mapping[str, RunResult] = field(default_factory=dict)
    confs: dict[str, Mapping[str, object]] = field(default_factory=dict)
    refuses: str = ""
    unknown_for: int = 0
    """How many questions about a DAG come before Airflow has it."""

    def bundle_version(self, dag_id: str) -> str | None:
        if self.unknown_for:
            self.unknown_for -= 1
            raise NoSuchInAirflowError(f"{dag_id}: 404")
        return self.versions.pop(0) if len(self.versions) > 1 else self.versions[0]

    def trigger(self, dag_id: str, conf: Mapping[str, object]) -> str:
        if self.refuses:
            raise AirflowError(self.refuses)
        self.confs[dag_id] = conf
        return "run-1"

    def run_page(self, dag_id: str, run_id: str) -> str:
        return f"https://airflow.example/{dag_id}/{run_id}"

    def follow(self, dag_id: str, run_id: str, *, timeout_s: float) -> Iterator[TaskState]:
        yield TaskState(task_id="report", state="success", try_number=1)

    def run_state(self, dag_id: str, run_id: str) -> str:
        return "success" if self._result(dag_id).success else "failed"

    def xcom(self, dag_id: str, run_id: str, task_id: str, key: str) -> object:
        return msgspec.to_builtins(self._result(dag_id))

    def _result(self, dag_id: str) -> RunResult:
        return self.results.get(dag_id.removeprefix("topic_pipeline_"), DONE)


@dataclass
class Merged:
    """A repository in which a pull request was just merged."""

    topics: Path
    forge: FakeForge
    before: str
    merge: str
    lines: list[str] = field(default_factory=list)

    def start(self, airflow: FakeAirflow, *, key: bytes | None = KEY, for_commit_s: float = 5.0) -> TriggeredRuns:
        trigger = Trigger(
            topics=self.topics,
            airflow=airflow,
            forge=GitHub(self.forge.url, REPOSITORY, TOKEN),
            key=key,
            for_commit_s=for_commit_s,
            for_run_s=5.0,
            progress=self.lines.append,
            sleep=lambda _: None,
        )
        return trigger.start(before=self.before, merge_commit=self.merge)

    def shows(self, digests: list[str], *, since: datetime, number: int = 1, base_branch: str = "main") -> None:
        """Our comment has shown these changes of team-web since then."""
        shown = {digest: Shown(owner="team-web", since=since, heads=(self.forge.pulls[1].head,)) for digest in digests}
        text, place = f"{marker('local', 'plan')}\n### The plan\n", about(number=number, base_branch=base_branch)
        line = record_line(shown, KEY, place, text=text, posted_at=self.forge.now())
        self.forge.comment(1, BOT, with_record(text, line))


def about(*, number: int = 1, base_branch: str = "main") -> About:
    return About(repository=REPOSITORY, pull_request=number, base_branch=base_branch, environment="local")


OWNERS = owners("owner: team-web, reviewers: [alice]")
NOT_COUNTED = (
    *("no key", "edited", "of another pull request", "planned for another base branch"),
    *("shown later", "of no owner", "by a stranger", "another text", "put back", "of another commit"),
)


@pytest.fixture
def merged(tmp_path: Path) -> Iterator[Merged]:
    topics = tmp_path / "repository/topics"
    write(topics, {**PROD, "owners.yaml": OWNERS, "web/a.yaml": topic("a")})
    root = topics.parent
    git(root, "init", "-q")
    before = commit(root)
    (topics / "web/b.yaml").write_text(topic("b", metadata=", environments: [local]"), encoding="utf-8")
    merge = commit(root)
    with FakeForge() as forge:
        forge.open("e" * 40, ["topics/web/b.yaml"], author="bob")
        forge.merge(1, merge)
        yield Merged(topics, forge, before, merge)


def reviews_of(airflow: FakeAirflow, dag_id: str = "topic_pipeline_local") -> list[SignedReview]:
    return msgspec.convert(airflow.confs[dag_id]["reviews"], list[SignedReview])


def test_only_what_the_merge_touches_is_started_at_the_merge_commit(merged: Merged) -> None:
    airflow = FakeAirflow(versions=[merged.merge])

    runs = merged.start(airflow)

    assert {dag_id: (conf["mode"], conf["commit"]) for dag_id, conf in airflow.confs.items()} == {
        "topic_pipeline_local": ("apply", merged.merge)
    }
    [run] = runs.environments
    assert (run.environment, run.state, run.sentence) == ("local", "applied", "Applied and verified: 1 done.")
    assert runs.number == 1


def test_it_waits_until_airflow_has_the_merge_and_takes_a_later_commit_that_contains_it(merged: Merged) -> None:
    later = commit(merged.topics.parent)
    airflow = FakeAirflow(versions=[merged.before, merged.before, later])

    [run] = merged.start(airflow).environments

    assert airflow.confs["topic_pipeline_local"]["commit"] == later
    assert run.commit == later


def test_airflow_that_never_has_the_commit_is_not_started_and_said_so(merged: Merged) -> None:
    airflow = FakeAirflow(versions=[merged.before])

    [run] = merged.start(airflow, for_commit_s=0.05).environments

    assert (run.state, airflow.confs) == ("not started", {})
    assert f"Airflow still has commit {merged.before[:12]}, which does not contain {merged.merge[:12]}" in run.sentence


def test_a_folder_without_versions_waits_in_its_own_run(merged: Merged) -> None:
    airflow = FakeAirflow(versions=[None])

    merged.start(airflow)

    assert airflow.confs["topic_pipeline_local"]["commit"] == merged.merge


@pytest.mark.parametrize(
    ("result", "state"), [(DONE, "applied"), (HELD, "held"), (SKIPPED, "held"), (FAILED, "failed")]
)
def test_what_came_of_the_run_is_its_state(merged: Merged, result: RunResult, state: str) -> None:
    [run] = merged.start(FakeAirflow(versions=[merged.merge], results={"local": result})).environments

    assert (run.state, run.result) == (state, result)


def test_a_dag_that_airflow_does_not_have_yet_is_waited_for(merged: Merged) -> None:
    [run] = merged.start(FakeAirflow(versions=[merged.merge], unknown_for=3)).environments
    assert run.state == "applied"

    [never] = merged.start(FakeAirflow(versions=[merged.merge], unknown_for=10**9), for_commit_s=0.1).environments
    assert never.state == "not started"
    assert "Airflow still has no such DAG; see to its DAG bundle" in never.sentence


def test_airflow_that_refuses_is_one_sentence(merged: Merged) -> None:
    [run] = merged.start(FakeAirflow(versions=[merged.merge], refuses="Airflow refused POST: 403")).environments

    assert (run.state, run.sentence) == ("not started", "Airflow refused POST: 403")


def test_a_review_of_what_the_comment_showed_goes_to_airflow_signed(merged: Merged) -> None:
    digests = [f"{number:064x}" for number in range(MOST_DIGESTS + 1)]
    merged.shows(digests, since=merged.forge.now())
    merged.forge.review(1, "alice")
    airflow = FakeAirflow(versions=[merged.merge])

    merged.start(airflow)

    found = reviews_of(airflow)
    assert [is_genuine(signed, KEY) for signed in found] == [True, True]
    assert sorted(digest for signed in found for digest in signed.review.digests) == digests
    assert max(len(signed.review.digests) for signed in found) == MOST_DIGESTS
    review = found[0].review
    assert (review.reviewer, review.authors, review.environment) == ("alice", ("bob",), "local")
    assert (review.repository, review.pull_request, review.merge_commit) == (REPOSITORY, 1, merged.merge)


def test_where_nobody_knows_who_made_a_commit_the_reviewer_is_an_author(merged: Merged) -> None:
    merged.shows(["ab" * 32], since=merged.forge.now())
    merged.forge.pulls[1].unknown_commits = ["d" * 40]
    merged.forge.review(1, "alice")
    airflow = FakeAirflow(versions=[merged.merge])

    merged.start(airflow)

    assert [signed.review.authors for signed in reviews_of(airflow)] == [("alice", "bob")]


@pytest.mark.parametrize("case", NOT_COUNTED)
def test_no_other_review_does(merged: Merged, case: str) -> None:
    now = merged.forge.now()
    merged.shows(
        ["ab" * 32],
        since=now + timedelta(days=1) if case == "shown later" else now,
        number=2 if case == "of another pull request" else 1,
        base_branch="mallory" if case == "planned for another base branch" else "main",
    )
    if case == "edited":
        comment = merged.forge.pulls[1].comments[0]
        shown = {
            "cd" * 32: Shown(
                owner="team-web", since=datetime(2020, 1, 1, tzinfo=UTC), heads=(merged.forge.pulls[1].head,)
            )
        }
        other_key = b"another key that has thirty-two bytes."
        other = record_line(shown, other_key, about(), text=comment.body, posted_at=comment.updated_at)
        comment.body = with_record(comment.body, other)
    if case == "another text":
        comment = merged.forge.pulls[1].comments[0]
        comment.body = comment.body.replace("The plan", "No changes")
    if case == "put back":
        merged.forge.pulls[1].comments[0].updated_at += timedelta(minutes=1)
    if case == "by a stranger":
        merged.forge.pulls[1].comments[0].author = "mallory"
    seen = "c" * 40 if case == "of another commit" else None
    merged.forge.review(1, "mallory" if case == "of no owner" else "alice", seen=seen)
    airflow = FakeAirflow(versions=[merged.merge])

    merged.start(airflow, key=None if case == "no key" else KEY)

    assert reviews_of(airflow) == []


def test_the_reviewers_are_those_of_before_the_merge(merged: Merged) -> None:
    """A pull request that makes its author a reviewer does not count for itself."""
    (merged.topics / "owners.yaml").write_text(OWNERS.replace("alice", "mallory"), encoding="utf-8")
    merged.merge = commit(merged.topics.parent)
    merged.forge.merge(1, merged.merge)
    merged.shows(["ab" * 32], since=merged.forge.now())
    merged.forge.review(1, "mallory")
    airflow = FakeAirflow(versions=[merged.merge])

    merged.start(airflow)

    assert reviews_of(airflow) == []


@pytest.mark.parametrize(("result", "states"), [(DONE, ("applied", "applied")), (FAILED, ("failed", "waiting"))])
def test_an_environment_that_comes_after_another_waits_until_that_is_verified(
    merged: Merged, result: RunResult, states: tuple[str, str]
) -> None:
    prod = merged.topics / "environments/prod.yaml"
    prod.write_text(LOCAL.replace("name: local", "name: prod") + "  policy: {after: [local]}\n", encoding="utf-8")
    (merged.topics / "web/b.yaml").write_text(topic("b"), encoding="utf-8")
    merged.merge = commit(merged.topics.parent)
    airflow = FakeAirflow(versions=[merged.merge], results={"local": result})

    runs = merged.start(airflow).environments

    assert [(run.environment, run.state) for run in runs] == list(zip(("local", "prod"), states, strict=True))


def test_an_environment_that_comes_before_a_touched_one_is_started_at_the_same_commit(merged: Merged) -> None:
    """Else the touched one would wait for it for ever."""
    prod = merged.topics / "environments/prod.yaml"
    prod.write_text(LOCAL.replace("name: local", "name: prod") + "  policy: {after: [local]}\n", encoding="utf-8")
    merged.before = commit(merged.topics.parent)
    (merged.topics / "web/c.yaml").write_text(topic("c", metadata=", environments: [prod]"), encoding="utf-8")
    merged.merge = commit(merged.topics.parent)
    airflow = FakeAirflow(versions=[merged.merge])

    runs = merged.start(airflow).environments

    assert [(run.environment, run.state) for run in runs] == [("local", "applied"), ("prod", "applied")]
    assert {conf["commit"] for conf in airflow.confs.values()} == {merged.merge}


def test_dags_of_another_repository_have_versions_that_say_nothing_about_the_topics(merged: Merged) -> None:
    airflow = FakeAirflow(versions=["9" * 40])

    [run] = merged.start(airflow).environments

    assert (run.state, run.commit) == ("applied", merged.merge)


def test_a_commit_that_the_clone_lacks_is_one_sentence(merged: Merged) -> None:
    merged.before = "d" * 40

    with pytest.raises(UsageError, match="this clone has no such commit"):
        merged.start(FakeAirflow(versions=[merged.merge]))
