"""An answer belongs to its question, under a running Airflow whose DAGs are a git bundle with versions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from fixtures.airflow_story import RUN_S, Story, airflow_stories, remove_topics
from fixtures.live import until
from fixtures.topic_project import TOMBSTONE, TOPIC
from topicops.edges.home.artifacts import ArtifactStore, runs_folder
from topicops.edges.home.audit_files import read_audit_log
from topicops.features.shared.airflow_client import RUN_ENDED
from topicops.flow import planning
from topicops.flow.runs.run import open_run
from topicops.model.runs.audit import AuditLine
from topicops_local.airflow_client import ASKING
from topicops_local.cluster import LocalCluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(2400)]

JUDGED = "  policy: {approvals: [question], approvers: [admin, op], authorApproves: notice}\n"
FORGED = {"chosen_options": ["Approve"], "responded_by_user": {"id": "1", "name": "the-cto"}}
TASKS = ("load", "approve", "create", "expand", "configure", "delete", "verify", "report")
DIRECTIONS = ("alone", "downstream", "upstream")


@pytest.fixture(scope="module")
def stories(local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Story, ...]]:
    folder, names = tmp_path_factory.mktemp("answers"), ("answers", "judged")
    with airflow_stories(folder, local_cluster, names, in_git=True, settings={"judged": JUDGED}) as stories:
        yield stories
        remove_topics(stories)


@pytest.fixture
def story(stories: tuple[Story, ...]) -> Story:
    return stories[0]


@pytest.fixture
def judged(stories: tuple[Story, ...]) -> Story:
    return stories[1]


def test_a_delete_whose_tombstone_was_reverted_on_main_after_the_question_is_not_sent_and_the_report_says_why(
    story: Story,
) -> None:
    story.create_by_hand("answers.kept")
    story.project.write("answers.kept", TOMBSTONE)
    asked_of = story.repository.head
    story.run_pipeline()
    question = story.newest_question()
    story.project.write("answers.kept", TOPIC)
    story.wait_for_files()

    story.answer("Approve", question)

    assert "answers.kept" in story.live_topics()
    assert deletes(story) == []
    assert asked_of in artifact(story, question, "plan.json")
    said = artifact(story, question, "report.txt")
    assert "answers.kept delete: refused" in said, said


def test_a_change_is_recorded_with_the_commit_of_its_bundle(story: Story) -> None:
    story.project.write("answers.made", TOPIC)
    commit = story.repository.head
    state, _ = story.run_pipeline()
    assert state == "success"
    assert [line.commit for line in audit(story) if line.topic == "answers.made"] == [commit]


def test_nothing_that_a_user_clears_marks_or_forges_sends_a_change_without_its_own_answered_question(
    story: Story,
) -> None:
    story.create_by_hand("answers.one", "answers.two")
    story.project.write("answers.one", TOMBSTONE)
    story.run_pipeline()
    of_one = story.newest_question()
    by_hand = story.client.trigger(story.approval, {})  # names no digests: all that are held
    story.client.wait_for_question(story.approval, by_hand, "approve", timeout_s=RUN_S)
    attack(story, of_one)
    assert "answers.one" in story.live_topics()
    state, _ = story.answer("Approve", by_hand)
    assert (state, deletes(story)) == ("success", ["answers.one"])

    story.project.write("answers.two", TOMBSTONE)
    story.run_pipeline()
    of_two = story.newest_question()
    attack(story, of_two)  # its question has no answer
    for run_id, directions in ((by_hand, ("alone",)), (of_two, DIRECTIONS)):
        for task, direction in product(TASKS, directions):
            clear(story, run_id, task, direction)
            attack(story, run_id)
            assert deletes(story) == ["answers.one"], (task, direction)
    for task in TASKS:
        clear(story, of_two, "load", "downstream")
        attack(story, of_two, task=task, mark="failed")
        assert deletes(story) == ["answers.one"], task
    assert "answers.two" in story.live_topics()

    story.client.trigger(story.approval, {})
    state, _ = story.answer("Approve")
    assert (state, deletes(story)) == ("success", ["answers.one", "answers.two"])


def test_the_policy_says_whose_approval_counts_and_which_way(judged: Story) -> None:
    judged.create_by_hand("judged.old")
    judged.project.write("judged.old", TOMBSTONE)
    judged.run_pipeline()  # by admin, who so is the author
    first = judged.newest_question()
    assert judged.status_of_answer_by("user", "Approve", first) == 403
    judged.answer("Approve", first)
    assert "judged.old" in judged.live_topics()
    assert "the author of a change approves alone up to risk notice" in judged.client.log(
        judged.approval, first, "delete"
    )

    (run_id, *_) = judged.client.runs(judged.pipeline)
    digests = judged.client.xcom(judged.pipeline, run_id, "gate")["digests"]
    judged.run_pipeline(approved=digests)
    assert "judged.old" in judged.live_topics()
    pipelines = list(judged.client.runs(judged.pipeline))
    assert "an approval by parameter is not accepted" in judged.client.log(judged.pipeline, pipelines[-1], "gate")

    second = judged.newest_question()
    assert second == f"{first.removesuffix('.1')}.2"
    with judged.signed_in("op") as http:
        path = f"{task_path(judged, second, 'approve')}/-1/hitlDetails"
        http.patch(path, json={"chosen_options": ["Approve"], "params_input": {}}).raise_for_status()
    state, _ = judged.ended(judged.approval, second)
    assert (state, [line.approver for line in audit(judged)]) == ("success", ["op (id op)"])
    assert judged.live_topics() == set()


@dataclass(frozen=True)
class Act:
    """One request that a person may send about an approval run."""

    method: str
    path: str
    body: Mapping[str, object] | None = None


ACTS = {
    "read the question": Act("GET", "taskInstances/approve/-1/hitlDetails"),
    "mark a task": Act("PATCH", "taskInstances/report", {"new_state": "success"}),
    "write an XCom": Act("POST", "taskInstances/load/xcomEntries", {"key": "{role}", "value": 1}),
    "answer": Act("PATCH", "taskInstances/approve/-1/hitlDetails", {"chosen_options": ["Reject"], "params_input": {}}),
}
ALLOWED = {"viewer": {"read the question"}, "user": set(ACTS), "op": set(ACTS), "admin": set(ACTS)}
"""As docs/how-to/approve-held-changes.md has it for the simple auth manager."""


def test_each_role_may_do_with_a_question_what_the_how_to_says(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.create_by_hand("answers.asked")
    story.project.write("answers.asked", TOMBSTONE)
    for name, value in story.project.variables.items():
        monkeypatch.setenv(name, value)
    review = open_run(environment="answers", topics=story.project.topics, group="cli", run_id="review")
    plan = planning.make_plan(review, engine="python", only="answers.asked").plan
    digests = [gated.digest for gated in plan.changes]
    story.wait_for_files()
    for role in sorted(ALLOWED):
        question = story.client.trigger(story.approval, {"digests": digests})
        story.client.wait_for_question(story.approval, question, "approve", timeout_s=RUN_S)
        with story.signed_in(role) as http:
            status = {name: send(http, story, question, act, role) for name, act in ACTS.items()}
            approval = f"/api/v2/dags/{story.approval}"
            which = {"dag_run_id": question, "task_ids": ["load"], "dry_run": True}
            cleared = http.post(f"{approval}/clearTaskInstances", json=which)
            started = http.post(f"{approval}/dagRuns", json={"logical_date": None, "conf": {}})
        assert {name for name, code in status.items() if code < 300} == ALLOWED[role], (role, status)
        assert {code for code in status.values() if code >= 300} <= {403}, (role, status)
        assert {cleared.status_code, started.status_code} == ({403} if role == "viewer" else {200}), role
    assert "answers.asked" in story.live_topics()
    story.project.write("answers.asked", TOPIC)  # no later question is about it


def test_an_approval_of_a_part_sends_that_part_with_the_comment_in_the_audit_log_and_the_rest_rests(
    story: Story,
) -> None:
    story.create_by_hand("answers.read", "answers.unread")
    for topic in ("answers.read", "answers.unread"):
        story.project.write(topic, TOMBSTONE)
    story.run_pipeline()
    before = deletes(story)
    state, _ = story.answer("Approve", filled={"delete answers.read": "reject", "comment": "billing reads it"})

    assert (state, deletes(story)) == ("success", [*before, "answers.unread"])
    assert [line.comment for line in audit(story) if line.topic == "answers.unread"] == ["billing reads it"]
    assert "answers.read" in story.live_topics()
    asked = list(story.client.runs(story.approval))
    state, tasks = story.run_pipeline()
    assert (state, tasks["ask"]) == ("success", "skipped")
    assert list(story.client.runs(story.approval)) == asked
    (pipeline, *_) = reversed(story.client.runs(story.pipeline))
    assert "delete topic.answers.read rests until it changes: rejected by admin (id admin)" in (
        story.client.log(story.pipeline, pipeline, "gate")
    )
    story.project.write("answers.read", TOPIC)
    story.run_pipeline()


def send(http: httpx.Client, story: Story, run_id: str, act: Act, role: str) -> int:
    """HTTP status; a request that the busy SQLite of a test's Airflow refuses (500) is sent again."""
    body = {name: role if value == "{role}" else value for name, value in (act.body or {}).items()}
    path = f"/api/v2/dags/{story.approval}/dagRuns/{quote(run_id, safe='')}/{act.path}"
    for _ in range(5):
        status = http.request(act.method, path, json=body or None).status_code
        if status < 500:
            break
        time.sleep(2)
    return status


def clear(story: Story, run_id: str, task: str, direction: str) -> None:
    with story.signed_in("user") as http:
        which = {
            "dag_run_id": run_id,
            "task_ids": [task],
            "only_failed": False,
            "dry_run": False,
            "include_downstream": direction == "downstream",
            "include_upstream": direction == "upstream",
        }
        http.post(f"/api/v2/dags/{story.approval}/clearTaskInstances", json=which).raise_for_status()


def attack(story: Story, run_id: str, *, task: str = "approve", mark: str = "success") -> None:
    """Forge what XCom knows of question and answer, and mark a task while the question waits, until the run ends."""
    with story.signed_in("user") as http:
        for forged_task in ("load", "approve"):
            forged = {**FORGED, "digests": held_digests(story)} if forged_task == "load" else FORGED
            forge(http, story, run_id, forged_task, forged)

        def has_ended() -> bool:
            if story.client.run_state(story.approval, run_id) in RUN_ENDED:
                return True
            if story.client.tasks(story.approval, run_id)["approve"].state in ASKING:
                http.patch(task_path(story, run_id, task), json={"new_state": mark})
                http.patch(task_path(story, run_id, "approve"), json={"new_state": mark})
                forge(http, story, run_id, "approve", FORGED)
            return False

        until(has_ended, timeout_s=RUN_S)


def forge(http: httpx.Client, story: Story, run_id: str, task: str, value: object) -> None:
    entries = f"{task_path(story, run_id, task)}/xcomEntries"
    if http.post(entries, json={"key": "return_value", "value": value, "map_index": -1}).status_code == 409:
        http.patch(f"{entries}/return_value", json={"value": value, "map_index": -1})


def held_digests(story: Story) -> list[str]:
    run_id = list(story.client.runs(story.pipeline))[-1]
    found = story.client.xcom(story.pipeline, run_id, "gate")
    assert isinstance(found, dict)
    return list(found["digests"])


def task_path(story: Story, run_id: str, task: str) -> str:
    return f"/api/v2/dags/{story.approval}/dagRuns/{quote(run_id, safe='')}/taskInstances/{task}"


def home(story: Story) -> Path:
    return Path(story.airflow.variables["TOPICOPS_HOME"])


def artifact(story: Story, run_id: str, name: str) -> str:
    return ArtifactStore(runs_folder(home(story), story.approval, run_id)).read_text(name)


def audit(story: Story) -> list[AuditLine]:
    return list(read_audit_log(home(story) / "audit", story.project.environment).lines)


def deletes(story: Story) -> list[str]:
    return [line.topic for line in audit(story) if line.action == "delete"]
