"""`topicops undo`: a run with a change of each kind, taken back over a git checkout and a cluster in memory."""

from __future__ import annotations

import json

import pytest

from fixtures.simulated import Simulated, outcomes_of
from fixtures.workflow import git
from topicops.model.runs.results import OutcomeStatus

WEEK, DAY = "604800000", "86400000"


def commit(simulated: Simulated) -> None:
    simulated.workspace.write_environment()
    git(simulated.workspace.folder, "add", "topics")
    git(simulated.workspace.folder, "commit", "--quiet", "--message=Topics of a test")


def write_spec(simulated: Simulated, name: str, text: str) -> None:
    path = simulated.workspace.path_of(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    head = f"apiVersion: topicops/v1\nkind: Topic\nmetadata: {{name: {name}, owner: team-tests}}\n"
    path.write_text(f"{head}{text}", encoding="utf-8")


@pytest.fixture
def applied(simulated: Simulated) -> Simulated:
    """Run ``topic_pipeline_local/1`` created ``new``, expanded ``grown``, configured ``bills`` and deleted ``old``."""
    git(simulated.workspace.folder, "init", "--quiet", "--initial-branch=main")
    write_spec(simulated, "bills", "spec:\n  keyed: false\n  configs:\n    # for the auditors\n    retention.ms: 7d\n")
    write_spec(simulated, "grown", "spec: {keyed: false, partitions: 1}\n")
    write_spec(simulated, "old", "# kept for the shop\nspec: {keyed: false, partitions: 1}\n")
    simulated.cluster.put_topic("bills", (1, 2, 3), configs={"retention.ms": WEEK})
    for name in ("grown", "old"):
        simulated.cluster.put_topic(name, (1, 2, 3))
    commit(simulated)
    write_spec(
        simulated,
        "bills",
        "spec:\n  keyed: false\n  configs:\n    # for the auditors\n    retention.ms: 1d\n    segment.ms: 1h\n",
    )
    write_spec(simulated, "grown", "spec: {keyed: false, partitions: 3}\n")
    write_spec(simulated, "new", "spec: {keyed: false}\n")
    simulated.workspace.tombstone("old")
    commit(simulated)
    run = simulated.planned()
    simulated.apply(run)
    assert {outcome.status for outcome in outcomes_of(run)} == {OutcomeStatus.DONE}
    return simulated


def test_what_cannot_come_back_is_first_and_the_rest_goes_through_the_files(applied: Simulated) -> None:
    commits = git(applied.workspace.folder, "log", "--format=%H").split()
    identity = json.loads(applied.workspace.run("audit", "topic", "old", "--format", "json").out)["lines"][0]

    ended = applied.workspace.run("undo", "topic_pipeline_local/1", "--out", "undo.json")

    assert ended.status == 0, ended.err
    text, _, plan = ended.out.partition("\n\nPlan: ")
    assert text.split("\n") == [
        f"Undo of run topic_pipeline_local/1 in local: it changed 4 topics, planned from commit {commits[0][:12]}.",
        "",
        "Cannot come back:",
        f"  old: the topic was deleted (topic id {identity['topic_id_before']}): its records and its groups' offsets "
        "are gone; it can only come back empty",
        "  grown: 1 -> 3 partitions: Kafka removes none, so the file must go on asking for 3",
        "  bills: records that went while retention.ms was 1d instead of 7d",
        "",
        "Written to the files:",
        "  topics/tests/bills.yaml: retention.ms: 1d -> 7d",
        "  topics/tests/bills.yaml: segment.ms: 1h -> not set",
        "  topics/tests/new.yaml: a tombstone takes the place of its spec",
        f"  topics/tests/old.yaml: the spec of commit {commits[1][:12]} takes the place of the tombstone",
        "",
        "Next: read the edits and the plan below, commit and have them merged as any change; then plan and apply.",
        "  git diff -- topics/tests/bills.yaml topics/tests/new.yaml topics/tests/old.yaml",
        "To leave it, restore these files with git: nothing else was written.",
    ]
    assert "+ topic.old will be created" in plan
    assert "~ topic.bills will be configured" in plan
    assert "- topic.new will be deleted" in plan


def test_the_files_and_the_cluster_are_as_before_after_the_plan_is_applied(applied: Simulated) -> None:
    applied.workspace.run("undo", "--out", "undo.json")

    assert applied.workspace.path_of("bills").read_text().split("spec:")[1] == (
        "\n  keyed: false\n  configs:\n    # for the auditors\n    retention.ms: 7d\n    segment.ms: null\n"
    )
    assert "# kept for the shop\n" in applied.workspace.path_of("old").read_text()
    assert applied.workspace.run("validate").status == 0
    key = json.loads((applied.workspace.folder / "undo.json").read_text())["fingerprint"][:8]
    ended = applied.workspace.run("apply", "undo.json", "--approve", key)
    assert ended.status in (0, 7), ended.err
    assert applied.cluster.live("bills").overrides == {"retention.ms": WEEK}
    assert applied.cluster.live("old").partitions == 1
    assert applied.cluster.live("grown").partitions == 3
    assert "new" not in applied.cluster.snapshot().topics


def test_to_undo_it_again_changes_nothing(applied: Simulated) -> None:
    applied.workspace.run("undo", "1")
    texts = {name: applied.workspace.path_of(name).read_text() for name in ("bills", "old", "grown", "new")}

    ended = applied.workspace.run("undo", "1")

    assert ended.status == 0, ended.err
    assert {name: applied.workspace.path_of(name).read_text() for name in texts} == texts
    assert "As before the run already:\n  bills: its file asks for retention.ms: 7d already\n" in ended.out
    assert "  old: its file asks for the topic again already\n" in ended.out
    assert ended.out.endswith("No file was edited, so there is no plan to make.\n")


def test_the_json_holds_the_lists_and_the_plan_of_those_topics_alone(applied: Simulated) -> None:
    applied.workspace.topic("unrelated")

    found = json.loads(applied.workspace.run("undo", "1", "--format", "json").out)

    assert [(note["topic"]) for note in found["lost"]] == ["old", "grown", "bills"]
    assert [edit["file"] for edit in found["edits"]] == [
        f"topics/tests/{name}.yaml" for name in ("bills", "new", "old")
    ]
    assert found["retire"] == []
    assert [change["address"] for change in found["plan"]["changes"]] == ["topic.old", "topic.bills", "topic.new"]


def test_an_invalid_file_of_another_topic_stops_no_undo(applied: Simulated) -> None:
    write_spec(applied, "broken", "spec: {partitions: none}\n")
    ended = applied.workspace.run("undo", "1")
    assert ended.status == 0, ended.err
    assert "topics/tests/bills.yaml: retention.ms: 1d -> 7d" in ended.out
    assert "~ topic.bills will be configured" in ended.out


def test_undo_sends_nothing_and_its_tombstone_deletes_only_the_topic_of_the_run(applied: Simulated) -> None:
    sent, identity = list(applied.cluster.requests), applied.cluster.live("new").topic_id
    applied.workspace.run("undo", "1")
    assert applied.cluster.requests == sent
    assert applied.workspace.path_of("new").read_text().endswith(f"  topicIds:\n    local: {identity}\n")


def test_a_tombstone_that_another_environment_would_follow_is_left_to_a_person(applied: Simulated) -> None:
    folder = applied.workspace.folder / "topics/environments"
    (folder / "prod.yaml").write_text((folder / "local.yaml").read_text().replace("name: local", "name: prod"))
    ended = applied.workspace.run("undo", "1")
    assert "\n  topicops retire new --reason 'Undo of run topic_pipeline_local/1.' --environment local\n" in ended.out
    assert "absent" not in applied.workspace.path_of("new").read_text()


def test_without_a_run_and_without_a_change_nothing_is_undone(applied: Simulated) -> None:
    folder = applied.workspace.folder / "home/audit"
    lines = (folder / "local.jsonl").read_text()
    (folder / "local.jsonl").write_text(lines.replace('"done"', '"refused"'))
    ended = applied.workspace.run("undo")
    assert (ended.status, "no run changed a topic, by the audit log" in ended.err) == (1, True), ended.err


def test_a_run_that_changed_nothing_is_an_error(applied: Simulated) -> None:
    ended = applied.workspace.run("undo", "no-such-run")
    assert (ended.status, ended.out) == (1, "")
    assert "run no-such-run changed no topic, by the audit log: nothing to take back" in ended.err


def test_a_log_that_is_not_whole_is_said_to_be(applied: Simulated) -> None:
    (applied.workspace.folder / "home/audit/local.head").unlink()
    ended = applied.workspace.run("undo", "1")
    assert "Note:\n  the audit log is not whole, so this may not be all: see `topicops audit verify`\n" in ended.out


def test_a_run_of_two_environments_needs_the_name_of_one(applied: Simulated) -> None:
    folder = applied.workspace.folder / "home/audit"
    (folder / "prod.jsonl").write_text((folder / "local.jsonl").read_text().replace('"local"', '"prod"'))
    ended = applied.workspace.run("undo", "1")
    assert (ended.status, ended.out) == (1, "")
    assert "run 1 changed local, prod: name one with --environment" in ended.err
    assert applied.workspace.run("undo", "1", "--environment", "local").status == 0


def test_a_tombstone_that_was_moved_gets_the_spec_of_before_its_move(applied: Simulated) -> None:
    folder = applied.workspace.folder
    (folder / "topics/archive").mkdir()
    git(folder, "mv", "topics/tests/old.yaml", "topics/archive/old.yaml")
    git(folder, "commit", "--quiet", "--message=Move a tombstone")
    ended = applied.workspace.run("undo", "1")
    assert "topics/archive/old.yaml: the spec of commit" in ended.out
    assert "# kept for the shop\n" in (folder / "topics/archive/old.yaml").read_text()


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_tombstone_that_moved_in_the_commit_that_retired_it_or_in_none_yet_gets_it_too(
    applied: Simulated, *, is_committed: bool
) -> None:
    folder = applied.workspace.folder
    (folder / "topics/archive").mkdir()
    git(folder, "mv", "topics/tests/old.yaml", "topics/archive/old.yaml")
    if is_committed:
        git(folder, "commit", "--quiet", "--amend", "--no-edit")
    ended = applied.workspace.run("undo", "1")
    assert "topics/archive/old.yaml: the spec of commit" in ended.out
    assert "# kept for the shop\n" in (folder / "topics/archive/old.yaml").read_text()


def test_a_tombstone_that_git_does_not_know_is_left_to_a_person(applied: Simulated) -> None:
    (applied.workspace.folder / ".git").rename(applied.workspace.folder / "elsewhere")
    ended = applied.workspace.run("undo", "1")
    text = "git has no earlier text of its file: write its spec anew, with topicops new"
    assert f"By hand:\n  old: {text}\n" in ended.out
    assert "topics/tests/bills.yaml: retention.ms: 1d -> 7d" in ended.out
