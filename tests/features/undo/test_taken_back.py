"""How a run is taken back: which edits of files, what is left to a person, and what cannot come back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fakes.builders import configure_change, create_change, delete_change, expand_change
from fixtures.spec_folder import LOCAL, NOW, topic, write
from topicops.edges.specs.reader import read_tree
from topicops.features.undo.taken_back import KnownFiles, Version, undo_of
from topicops.features.undo.undoing import undo_text
from topicops.features.undo.values import Undo, past_topics, run_of, took_effect
from topicops.model.plans.changes import Action, Change, before_and_after
from topicops.model.runs.audit import AuditLine
from topicops.model.runs.results import OutcomeStatus
from topicops.steps.specs.validate import validate

TOMBSTONE = topic("a", "lifecycle: {state: absent, reason: Over.}\n")
WEEK, DAY = "604800000", "86400000"
SHORTER = configure_change("a", before={"retention.ms": WEEK}, after={"retention.ms": DAY})


def line(change: Change, outcome: OutcomeStatus = OutcomeStatus.DONE) -> AuditLine:
    before, after = before_and_after(change)
    action: Action = change.action
    return AuditLine(
        n=1, previous="0" * 64, at=datetime(2026, 1, 31, tzinfo=UTC), environment="local", run="cli/r1", plan="f" * 64,
        commit="c" * 40, approver=None, principal="User:a", action=action, topic=change.topic, digest="d" * 64,
        request={"before": before, "after": after}, requests=1, answer="accepted", outcome=outcome,
        topic_id_before="id-1", topic_id_after=None,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("topics")


def undone(
    files: Mapping[str, str],
    *lines: AuditLine,
    versions: Sequence[Version] = (),
    local: str | None = None,
    moving: Collection[str] = (),
) -> Undo:
    topics = Path("topics")
    write(topics, files, **({} if local is None else {"local": local}))
    tree = read_tree(topics)
    _, desired = validate(tree, environment="local", now=NOW).require()
    known = KnownFiles(
        topics=topics,
        tree=tree,
        environment=desired.environment,
        desired=desired,
        versions=lambda _: versions,
        needs=lambda _: True,
        now=NOW,
        moving=moving,
    )
    return undo_of(lines, known)


def spec(text: str) -> dict[str, str]:
    return {"web/a.yaml": topic("a", text)}


@pytest.mark.parametrize(
    ("body", "edited"),
    [
        pytest.param(
            "spec:\n  configs:\n    # why\n    retention.ms: 1d # a day\n    segment.ms: 1h\n",
            "spec:\n  configs:\n    # why\n    retention.ms: 7d # a day\n    segment.ms: 1h\n",
            id="in a block, with its comments",
        ),
        pytest.param("spec: {configs: {retention.ms: 1d}}\n", "spec: {configs: {retention.ms: 7d}}\n", id="in braces"),
        pytest.param(
            'spec: {configs: {retention.ms: "86400000"}}\n', "spec: {configs: {retention.ms: 7d}}\n", id="text"
        ),
    ],
)
def test_a_value_goes_back_in_its_own_line(body: str, edited: str) -> None:
    (edit,) = undone(spec(body), line(SHORTER)).edits
    assert edit.after == topic("a", edited)
    assert (edit.file, edit.edits) == ("topics/web/a.yaml", ("retention.ms: 1d -> 7d",))


@pytest.mark.parametrize(
    ("body", "edited"),
    [
        pytest.param(
            "spec:\n  keyed: false\n", "spec:\n  keyed: false\n  configs:\n    retention.ms: 7d\n", id="no configs"
        ),
        pytest.param(
            "spec:\n  configs:\n    segment.ms: 1h\n  keyed: false\n",
            "spec:\n  configs:\n    segment.ms: 1h\n    retention.ms: 7d\n  keyed: false\n",
            id="other configs",
        ),
    ],
)
def test_an_override_that_the_run_removed_is_named_again(body: str, edited: str) -> None:
    removed = configure_change("a", before={"retention.ms": WEEK}, after={"retention.ms": None})
    (edit,) = undone(spec(body), line(removed)).edits
    assert edit.after == topic("a", edited)


def test_an_override_that_was_not_there_is_asked_for_as_null_because_a_missing_line_removes_nothing() -> None:
    added = configure_change("a", before={"segment.ms": None}, after={"segment.ms": "3600000"})
    (edit,) = undone(spec("spec:\n  configs:\n    segment.ms: 1h\n"), line(added)).edits
    assert edit.after == topic("a", "spec:\n  configs:\n    segment.ms: null\n")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param(
            "spec: {configs: {retention.ms: 3d}}\n",
            "retention.ms was 1d after the run, and its file asks for 3d now: write retention.ms: 7d",
            id="the files ask for a third value since",
        ),
        pytest.param(
            "spec: {profile: short, # why\n  keyed: true}\n",
            "its file is written so that no line can be changed: write retention.ms: 7d",
            id="no place for a line",
        ),
    ],
)
def test_what_undo_must_not_guess_is_left_to_a_person_with_the_value(body: str, text: str) -> None:
    short = "apiVersion: topicops/v1\nkind: Profile\nmetadata: {name: short}\nspec: {configs: {retention.ms: 1d}}\n"
    found = undone({**spec(body), "profiles/short.yaml": short}, line(SHORTER))
    assert (found.edits, [note.text for note in found.by_hand]) == ((), [text])


def test_a_value_of_a_profile_is_written_into_the_topics_own_file() -> None:
    short = "apiVersion: topicops/v1\nkind: Profile\nmetadata: {name: short}\nspec: {configs: {retention.ms: 1d}}\n"
    (edit,) = undone({**spec("spec:\n  profile: short\n"), "profiles/short.yaml": short}, line(SHORTER)).edits
    assert edit.after == topic("a", "spec:\n  profile: short\n  configs:\n    retention.ms: 7d\n")


def test_a_value_that_the_environment_file_overrides_is_named_with_its_place() -> None:
    local = LOCAL + "  overrides:\n    a:\n      configs: {retention.ms: 1d}\n"
    found = undone(spec("spec:\n  configs:\n    retention.ms: 3d\n"), line(SHORTER), local=local)
    assert found.edits == ()
    assert [note.text for note in found.by_hand] == [
        f"retention.ms comes from topics/environments/local.yaml:{local.count(chr(10))}: write retention.ms: 7d there"
    ]


def test_an_edit_that_breaks_a_rule_is_not_written() -> None:
    lower = configure_change("a", before={"min.insync.replicas": "3"}, after={"min.insync.replicas": "1"})
    body = "spec:\n  replicationFactor: 2\n  configs:\n    min.insync.replicas: 1\n"
    found = undone(spec(body), line(lower))
    assert found.edits == ()
    (note,) = found.by_hand
    assert note.text.startswith("topics/web/a.yaml: min.insync.replicas: 1 -> 3: TOP")


def test_a_tombstone_gives_way_to_the_newest_spec_that_git_has_of_it() -> None:
    earlier = topic("a", "spec: {partitions: 6}\n")
    older = topic("a", "spec: {partitions: 3}\n")
    versions = [("1" * 40, TOMBSTONE), ("2" * 40, "no: [spec"), ("3" * 40, earlier), ("4" * 40, older)]
    found = undone({"web/a.yaml": TOMBSTONE}, line(delete_change("a")), versions=versions)
    (edit,) = found.edits
    assert (edit.after, edit.before) == (earlier, TOMBSTONE)
    assert edit.edits == ("the spec of commit 333333333333 takes the place of the tombstone",)
    assert found.lost[0].text.startswith("the topic was deleted (topic id id-1): its records")


@pytest.mark.parametrize(
    ("files", "text"),
    [
        pytest.param(
            {"web/a.yaml": TOMBSTONE}, "git has no earlier text of its file: write its spec anew", id="no git"
        ),
        pytest.param({}, "no file describes the topic any more: write its spec anew", id="no file"),
    ],
)
def test_a_deleted_topic_without_an_earlier_spec_is_left_to_a_person(files: Mapping[str, str], text: str) -> None:
    found = undone(files, line(delete_change("a")))
    assert found.edits == ()
    assert found.by_hand[0].text.startswith(text)


@pytest.mark.parametrize(
    ("files", "retired"),
    [
        pytest.param(spec("spec: {}\n"), ("a",), id="its file asks for it"),
        pytest.param({"web/a.yaml": TOMBSTONE}, (), id="a tombstone already"),
        pytest.param({}, (), id="no file"),
    ],
)
def test_a_topic_that_the_run_created_is_left_to_a_person_and_never_gets_a_tombstone(
    files: Mapping[str, str], retired: tuple[str, ...]
) -> None:
    found = undone(files, line(create_change("a")))
    assert (tuple(command.split()[2] for command in found.retire), found.edits) == (retired, ())
    assert retired or found.done or found.by_hand


def test_partitions_never_come_down_and_the_file_is_not_asked_to() -> None:
    body = "spec:\n  partitions: 6\n  configs:\n    retention.ms: 1d\n"
    found = undone(spec(body), line(expand_change("a", 3, 6)), line(SHORTER))
    assert [note.text for note in found.lost] == [
        "3 -> 6 partitions: Kafka removes none, so the file must go on asking for 6",
        "records that went while retention.ms was 1d instead of 7d",
    ]
    assert "  partitions: 6\n" in found.edits[0].after


def test_what_failed_left_nothing_to_take_back_and_what_is_not_known_says_so() -> None:
    lines = [line(SHORTER, OutcomeStatus.FAILED), line(expand_change("b", 3, 6), OutcomeStatus.UNKNOWN)]
    assert past_topics(lines).keys() == {"b"}
    found = undone(spec("spec: {}\n"), *lines)
    assert found.lost[0].text.endswith("(the run does not know whether its request took effect)")


def test_two_tries_of_one_run_are_one_change() -> None:
    again = configure_change("a", before={"retention.ms": DAY}, after={"retention.ms": DAY})
    (past,) = past_topics([line(SHORTER), line(again)]).values()
    assert (past.configs_before, past.configs_after) == ({"retention.ms": WEEK}, {"retention.ms": DAY})


def test_a_file_that_other_environments_use_is_said_to_be() -> None:
    prod = LOCAL.replace("name: local", "name: prod")
    found = undone({**spec("spec:\n  configs:\n    retention.ms: 1d\n"), "environments/prod.yaml": prod}, line(SHORTER))
    assert found.notes == ("topics/web/a.yaml is also used by prod: the next plan there changes the topic as well",)


def test_what_cannot_come_back_is_the_first_part_of_the_text() -> None:
    found = undone(spec("spec:\n  configs:\n    retention.ms: 1d\n"), line(SHORTER))
    titles = [row for row in undo_text(found).split("\n") if row.endswith(":")]
    assert titles == ["Cannot come back:", "Written to the files:"]


# ---- moves of replicas ----

THREE = spec("spec: {keyed: false, partitions: 2, replicationFactor: 3}\n")
ONE, GROWN = {"0": [1], "1": [2]}, {"0": [1, 2, 3], "1": [2, 3, 1]}


def moved(what: str, outcome: OutcomeStatus, answer: str = "accepted", **request: object) -> AuditLine:
    """Of a step of another run, which carries on what ``cli/r1`` has accepted."""
    found = replace(line(SHORTER, outcome), run="topic_moves_local/s7", action="reassign", answer=answer)
    return replace(found, request={"what": what, "accepted_by": "cli/r1", **request})


def started(before: Mapping[str, list[int]] = ONE, after: Mapping[str, list[int]] = GROWN) -> AuditLine:
    rows = {"before": {"assignment": dict(before)}, "after": {"assignment": dict(after)}}
    return moved("start", OutcomeStatus.MOVING, partitions=[0, 1], **rows)


def ended(answer: str, *partitions: int) -> AuditLine:
    return moved("end", OutcomeStatus.DONE, answer, partitions=[*partitions])


def test_a_factor_that_a_run_raised_is_asked_for_as_before() -> None:
    found = undone(THREE, started(), ended("done", 0, 1))

    [edit] = found.edits
    assert "replicationFactor: 1}" in edit.after
    assert edit.edits == ("replicationFactor: 3 -> 1; the plan moves the replicas",)


def test_a_factor_and_a_config_of_one_file_come_back_together() -> None:
    both = spec("spec: {keyed: false, partitions: 2, replicationFactor: 3, configs: {retention.ms: 1d}}\n")

    [edit] = undone(both, line(SHORTER), started(), ended("done", 0, 1)).edits

    assert "replicationFactor: 1, configs: {retention.ms: 7d}" in edit.after
    assert len(edit.edits) == 2


def test_replicas_that_still_move_are_moved_back_by_the_command_that_cancels() -> None:
    found = undone(THREE, started(), moving={"a"})

    assert found.edits == ()
    assert found.by_hand[0].text.endswith("type: topicops moves --cancel a --environment local")


@pytest.mark.parametrize("answer", ["cancelled", "dropped: the files no longer ask for it"])
def test_a_move_that_came_to_nothing_is_as_before_already(answer: str) -> None:
    found = undone(THREE, started(), ended(answer, 0, 1))

    assert (found.edits, found.by_hand) == ((), ())
    assert "its replicas are as before" in found.done[0].text


def test_rows_that_no_factor_tells_are_given_to_the_person() -> None:
    found = undone(THREE, started({"0": [1, 2, 4]}, {"0": [1, 2, 3]}), ended("done", 0))

    assert "before, they were 0: [1, 2, 4]: to move them back, write these rows" in found.by_hand[0].text


@pytest.mark.parametrize(
    ("factor", "list_", "text"),
    [
        (1, "done", "its file asks for replicationFactor: 1 already"),
        (2, "by_hand", "was 3 after the run, and its file"),
    ],
)
def test_a_file_that_asks_for_another_factor_by_now_is_left(factor: int, list_: str, text: str) -> None:
    files = spec(f"spec: {{keyed: false, partitions: 2, replicationFactor: {factor}}}\n")

    found = undone(files, started(), ended("done", 0, 1))

    assert found.edits == ()
    assert text in getattr(found, list_)[0].text


def test_a_step_is_of_the_run_that_accepted_the_move_and_its_throttles_are_nobodys_to_take_back() -> None:
    rate = moved("rate", OutcomeStatus.DONE, broker=1)

    assert run_of(started()) == "cli/r1"
    assert [took_effect(each) for each in (started(), ended("done", 0), rate)] == [True, True, False]


def test_a_move_that_the_brokers_refused_left_nothing_to_take_back() -> None:
    refused = replace(started(), outcome=OutcomeStatus.FAILED, answer="INVALID_REPLICA_ASSIGNMENT (39)")

    found = undone(THREE, refused)

    assert (found.edits, found.by_hand, found.done) == ((), (), ())


def test_of_a_move_that_was_asked_for_twice_the_first_rows_are_those_of_before() -> None:
    again = started({"0": [1, 2]}, {"0": [1, 2, 3]})

    [edit] = undone(THREE, started({"0": [1]}, {"0": [1, 2]}), again, ended("done", 0)).edits

    assert "replicationFactor: 1}" in edit.after


def test_partitions_whose_move_was_cancelled_are_as_before_and_the_others_are_given_to_the_person() -> None:
    began = started({"0": [1, 2, 4], "1": [2, 1, 4]}, {"0": [1, 2, 3], "1": [2, 1, 3]})

    found = undone(THREE, began, ended("cancelled", 0), ended("done", 1))

    assert "before, they were 1: [2, 1, 4]: to move them back" in found.by_hand[0].text


def test_rows_of_several_lengths_are_given_to_the_person() -> None:
    found = undone(THREE, started({"0": [1], "1": [2, 1]}, GROWN), ended("done", 0, 1))

    assert "before, they were 0: [1], 1: [2, 1]: to move them back" in found.by_hand[0].text
