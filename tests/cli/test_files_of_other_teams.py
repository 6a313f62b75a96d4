"""A file of another team that is not valid: commands answer as if it were not there, and say so in one line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

import pytest

from fixtures.simulated import Simulated
from fixtures.workspace import Ended
from topicops.features.ask.doctor.edges import brokers
from topicops.model.errors import ClusterUnreachableError
from topicops.model.plans.plan_file import plan_from_json

LINE = "1 file of other topics has errors; `topicops validate` lists them"
PLAN = ("plan", "--only", "shop.*", "--engine", "python")
COMMANDS = [
    ("doctor",),
    ("verify",),
    ("verify", "-e", "local", "-e", "more"),
    ("list",),
    ("list", "--format", "json"),
    ("list", "--unmanaged"),
    ("drift",),
    ("drift", "--only", "shop.*"),
    ("drift", "-e", "local", "-e", "more"),
    PLAN,
    (*PLAN, "--format", "json"),
    (*PLAN, "-e", "local", "-e", "more"),
]
BROKEN = {
    "no YAML": ("other/other.orders.yaml", "spec: {partitions: [1, 2\n"),
    "a bad value": ("other/other.orders.yaml", "apiVersion: topicops/v1\nkind: Topic\nmetadata: {name: other.orders, "
                    "owner: team-other}\nspec: {partitions: many}\n"),
    "an old tombstone": ("other/other.orders.yaml", "apiVersion: topicops/v1\nkind: Topic\nmetadata: {name: "
                         "other.orders, owner: team-other}\nlifecycle: {state: absent}\n"),
    "a profile": ("profiles/other.yaml", "- 1\n"),
    "another extension": ("other/other.orders.yml", ""),
}  # fmt: skip


@pytest.fixture
def shop(simulated: Simulated, monkeypatch: pytest.MonkeyPatch) -> Simulated:
    """Two environments; a topic to create, one to expand, one to delete, and a live one that no file describes."""
    monkeypatch.setattr(brokers, "kafka_facts", _silent)
    workspace, cluster = simulated.workspace, simulated.cluster
    workspace.topic("shop.new")
    workspace.topic("shop.orders", partitions=2)
    workspace.tombstone("shop.old")
    for name in ("shop.orders", "shop.old", "unmanaged"):
        cluster.put_topic(name, (1, 2, 3))
    workspace.write_environment()
    text = (workspace.folder / "topics/environments/local.yaml").read_text()
    (workspace.folder / "topics/environments/more.yaml").write_text(text.replace("name: local", "name: more"))
    monkeypatch.setenv("TOPICOPS_ENVIRONMENT", "local")
    return simulated


def _silent(*_: object, **__: object) -> object:
    raise ClusterUnreachableError("no broker answers")


def lines_of(ended: Ended) -> list[str]:
    """stderr without the name of the run's folder."""
    return [line for line in ended.err.splitlines() if not line.startswith("Keeping this run's files")]


def put(simulated: Simulated, kind: str) -> Path:
    name, text = BROKEN[kind]
    file = simulated.workspace.folder / "topics" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


PAIRS = list(zip(COMMANDS, cycle(BROKEN), strict=False))
"""Each command, and each kind of file at least twice."""


@pytest.mark.parametrize(("command", "kind"), PAIRS, ids=str)
def test_the_answer_is_as_without_the_file_and_one_line_more(
    shop: Simulated, command: Sequence[str], kind: str
) -> None:
    same_answer(shop, command, kind)


@pytest.mark.soak
@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_each_command_answers_as_without_each_kind_of_file(shop: Simulated, command: Sequence[str], kind: str) -> None:
    same_answer(shop, command, kind)


def same_answer(shop: Simulated, command: Sequence[str], kind: str) -> None:
    without = shop.workspace.run(*command)
    put(shop, kind)
    found = shop.workspace.run(*command)

    assert (found.status, found.out) == (without.status, without.out)
    more = [line for line in lines_of(found) if line not in lines_of(without)]
    runs = [name for name in ("local", "more") if name in command]
    assert more == ([f"{name}: {LINE}" for name in runs] or [LINE])
    assert sorted(line for line in lines_of(found) if line not in more) == sorted(lines_of(without))


@pytest.mark.parametrize("kind", BROKEN)
def test_a_plan_of_all_topics_is_refused_with_the_problem(shop: Simulated, kind: str) -> None:
    file = put(shop, kind)
    found = shop.workspace.run("plan", "--engine", "python")
    assert (found.status, found.out, LINE in found.err) == (1, "", False)
    assert file.name in found.err


@pytest.mark.parametrize("command", [PLAN, ("drift", "--only", "shop.*")], ids=" ".join)
def test_a_file_of_a_topic_that_is_asked_for_stops_the_command(shop: Simulated, command: Sequence[str]) -> None:
    shop.workspace.path_of("shop.new").write_text("{")
    found = shop.workspace.run(*command)
    assert (found.status, found.out) == (1, "")
    assert "shop.new.yaml:2" in found.err


def test_a_live_topic_whose_file_has_errors_is_not_called_unmanaged(shop: Simulated) -> None:
    shop.workspace.path_of("shop.orders").write_text("{")
    listed = json.loads(shop.workspace.run("list", "--format", "json").out)["topics"]
    assert {topic["name"]: topic["managed"] for topic in listed} == {
        "shop.old": True, "shop.orders": True, "unmanaged": False,
    }  # fmt: skip
    drift = json.loads(shop.workspace.run("drift", "--format", "json").out)["drift"]
    assert {(entry["topic"], entry["kind"]) for entry in drift} == {
        ("shop.new", "missing"), ("shop.old", "retired"), ("unmanaged", "unmanaged"),
    }  # fmt: skip


def planned(shop: Simulated, *options: str) -> None:
    assert shop.workspace.run("plan", "--engine", "python", "--out", "plan.json", *options).status == 0
    shop.events.clear()


def requests(shop: Simulated) -> list[str]:
    return [event for event in shop.events if event.startswith("request")]


def test_a_plan_of_some_topics_is_applied_while_another_file_has_errors(shop: Simulated) -> None:
    planned(shop, "--only", "shop.*")
    put(shop, "an old tombstone")
    found = shop.workspace.run("apply", "plan.json")
    assert found.status == 0, found.err
    assert requests(shop) == ["request create", "request expand", "request delete"]
    assert lines_of(found).count(LINE) == 1, "although it is judged before the lease and behind it"


def test_a_plan_of_all_topics_is_not_applied_while_a_file_has_errors(shop: Simulated) -> None:
    planned(shop)
    put(shop, "an old tombstone")
    assert shop.workspace.run("apply", "plan.json").status == 1
    assert requests(shop) == []


@pytest.mark.parametrize("topic", ["shop.new", "shop.orders", "shop.old"])
def test_no_change_is_sent_whose_own_file_has_errors_by_now(shop: Simulated, topic: str) -> None:
    planned(shop, "--only", "shop.*")
    shop.workspace.path_of(topic).write_text("{")
    assert shop.workspace.run("apply", "plan.json").status == 1
    assert requests(shop) == []


def test_a_plan_whose_glob_was_edited_still_needs_the_files_of_its_changes(shop: Simulated) -> None:
    planned(shop, "--only", "shop.*")
    path = shop.workspace.folder / "plan.json"
    edited = json.loads(path.read_text())
    edited["source"]["only"] = "nothing"
    path.write_text(with_checksum(edited))
    shop.workspace.path_of("shop.old").write_text("{")
    assert shop.workspace.run("apply", "plan.json").status == 1
    assert requests(shop) == []


def test_where_every_file_has_errors_the_policy_on_plans_without_files_does_not_count(shop: Simulated) -> None:
    shop.workspace.policy |= {"plansWithoutFiles": "allow"}
    put(shop, "no YAML")
    planned(shop, "--only", "shop.*")
    for name in ("shop.new", "shop.orders", "shop.old"):
        shop.workspace.path_of(name).unlink()
    found = shop.workspace.run("apply", "plan.json", "--approve", fingerprint(shop))
    assert found.status == 4, found.err
    assert requests(shop) == []


def fingerprint(shop: Simulated) -> str:
    return plan_from_json((shop.workspace.folder / "plan.json").read_text()).fingerprint


def with_checksum(document: dict[str, object]) -> str:
    from topicops.model.json_types import sha256_of

    document.pop("checksum")
    return json.dumps({**document, "checksum": sha256_of(document)})
