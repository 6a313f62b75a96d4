"""Specs for a cluster that nobody looked after: the rules accept them, and the next plan changes nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import fixtures.odd_cluster as odd_cluster
from fixtures.workspace import Workspace
from fixtures.znode_tree import BASE, config, lay, topic
from fixtures.zookeeper import Chroot

ROWS = {0: [1, 2, 3]}


@pytest.fixture
def adopter(workspace: Workspace, chroot: Chroot) -> Workspace:
    """A folder with one environment and no topic, for the cluster of ``chroot``."""
    workspace.aim(chroot.hosts)
    workspace.policy = {"minReplicationFactor": 2, "protectedTopics": ["connect-*"]}
    return workspace


def imported(adopter: Workspace, *arguments: str) -> dict[str, Any]:
    ended = adopter.run("import", "--environment", "local", "--owner", "team-platform", "--format", "json", *arguments)
    assert ended.status == 0, ended.err
    found: dict[str, Any] = json.loads(ended.out)
    return found


def texts_of(folder: Path) -> Mapping[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*.yaml"))}


def lay_topics(chroot: Chroot, **overrides: Mapping[str, str]) -> None:
    """Topics of one partition; a double underscore in the keyword is a dot of the name."""
    lay(chroot.client, BASE)
    for name, configs in overrides.items():
        dotted = name.replace("__", ".")
        znodes = {f"/brokers/topics/{dotted}": topic(ROWS), f"/config/topics/{dotted}": config(**configs)}
        lay(chroot.client, znodes)


def test_400_odd_topics_get_specs_that_plan_to_nothing(adopter: Workspace, chroot: Chroot) -> None:
    lay(chroot.client, odd_cluster.znodes())

    answer = imported(adopter)

    assert Counter(left["code"] for left in answer["left_out"]) == {
        "TOP423": odd_cluster.MIXED,
        "TOP426": odd_cluster.GAPS + odd_cluster.EMPTY,
        "TOP207": odd_cluster.ILLEGAL,
        "TOP418": odd_cluster.DELETING,
    }
    assert all(left["reason"] for left in answer["left_out"])
    assert Counter(exception["code"] for exception in answer["exceptions"]) == {
        "TOP302": odd_cluster.TWINS,
        "TOP303": odd_cluster.LOOK_ALIKES,
        "TOP308": odd_cluster.CROWDED,
        "TOP310": odd_cluster.CROWDED + odd_cluster.SINGLE,
        "TOP314": odd_cluster.DEPRECATED,
    }
    assert Counter(override["code"] for override in answer["unsayable"]) == {
        "TOP313": 2 * odd_cluster.THROTTLED,
        "TOP305": odd_cluster.UNKNOWN,
        "TOP306": odd_cluster.BROKEN,
    }
    assert sorted(answer["protected"]) == sorted(odd_cluster.INTERNAL)
    assert (len(answer["imported"]), len(answer["exceptions"]), len(answer["left_out"])) == (431, 206, 23)

    assert adopter.run("validate").status == 0
    planned = adopter.plan("--detailed-exitcode", "--format", "json")
    plan = json.loads(planned.out)
    assert (planned.status, plan["changes"], plan["blocked"]) == (0, [], [])
    assert len(plan["unmanaged"]) == len(answer["left_out"]) + len(answer["protected"])

    untidy = adopter.run("fmt", "--check").out.splitlines()
    assert [file for file in untidy if file != "topics/environments/local.yaml"] == []


def test_a_second_import_writes_nothing(adopter: Workspace, chroot: Chroot) -> None:
    lay(chroot.client, odd_cluster.znodes())
    first = imported(adopter)
    before = texts_of(adopter.folder)

    second = imported(adopter)

    assert (second["imported"], second["files"], second["exceptions"]) == ([], [], [])
    assert second["described"] == first["imported"]
    assert second["left_out"] == first["left_out"]
    assert texts_of(adopter.folder) == before


def test_later_exceptions_go_behind_those_that_are_there_and_comments_stay(adopter: Workspace, chroot: Chroot) -> None:
    lay_topics(chroot, a__one={"min_insync_replicas": "4"})
    imported(adopter)
    path = adopter.folder / "topics/environments/local.exceptions.yaml"
    path.write_text(path.read_text().rstrip("\n") + "  # until the brokers are there\n# the end")
    lay_topics(chroot, b__two={"min_insync_replicas": "5"})

    answer = imported(adopter)

    assert [exception["topic"] for exception in answer["exceptions"]] == ["b.two"]
    lines = path.read_text().split("\n")
    assert [line.strip() for line in lines if "topic:" in line or "#" in line] == [
        "- topic: a.one",
        next(line.strip() for line in lines if "until the brokers" in line),
        "- topic: b.two",
        "# the end",
    ]
    assert adopter.run("validate").status == 0


def test_exceptions_written_so_that_nothing_can_follow_them_stay_as_they_are(
    adopter: Workspace, chroot: Chroot
) -> None:
    path = adopter.folder / "topics/environments/local.exceptions.yaml"
    path.parent.mkdir()
    text = "{apiVersion: topicops/v1, kind: Exceptions, metadata: {name: local}, spec: {exceptions: [\n"
    text += "  {topic: a, code: TOP308, reason: r}]}}\n"
    path.write_text(text)
    lay_topics(chroot, a__one={"min_insync_replicas": "4"})

    ended = adopter.run("import", "--environment", "local", "--owner", "team-platform")

    assert (ended.status, path.read_text()) == (1, text)
    assert "local.exceptions.yaml" in ended.err
    assert not (adopter.folder / "topics/a").exists()


def test_more_exceptions_than_a_usual_file_could_hold(adopter: Workspace, chroot: Chroot) -> None:
    lay(chroot.client, BASE)
    for number in range(320):
        lay(chroot.client, {f"/brokers/topics/single.s-{number}": topic({0: [1]})})

    answer = imported(adopter)

    assert (len(answer["exceptions"]), len(answer["left_out"])) == (320, 0)
    assert adopter.run("validate").status == 0


def test_topics_of_one_environment_stay_out_of_the_others(adopter: Workspace, chroot: Chroot) -> None:
    adopter.write_environment()
    local = (adopter.folder / "topics/environments/local.yaml").read_text()
    other = local.replace("name: local", "name: other")
    (adopter.folder / "topics/environments/other.yaml").write_text(other)
    lay_topics(chroot, a__b={}, a_b={}, old__one={"message_format_version": "2.3"})

    answer = imported(adopter)

    assert [exception["code"] for exception in answer["exceptions"]] == ["TOP302", "TOP314"]
    assert "environments: [local]" in (adopter.folder / "topics/a/a.b.yaml").read_text()
    assert adopter.run("validate").status == 0
    assert adopter.run("validate", "--environment", "other").status == 0
    assert json.loads(adopter.run("plan", "-e", "other", "--engine", "python", "--format", "json").out)["changes"] == []


def test_a_topic_that_another_environment_has_gets_this_one_beside_it(adopter: Workspace, chroot: Chroot) -> None:
    adopter.write_environment()
    local = (adopter.folder / "topics/environments/local.yaml").read_text()
    (adopter.folder / "topics/environments/prod.yaml").write_text(local.replace("name: local", "name: prod"))
    lay_topics(chroot, shop__orders={})
    adopter.topic("shop.orders", configs={})
    path = adopter.path_of("shop.orders")
    path.write_text(path.read_text().replace("owner: team-tests", "owner: team-tests\n  environments: [prod]"))
    before = path.read_text()

    told = imported(adopter)

    assert (told["extended"], told["left_out"]) == (["tests/shop.orders.yaml"], [])
    assert path.read_text() == before.replace("[prod]", "[prod, local]")


def test_defaults_and_profiles_that_are_there_make_specs_shorter_and_stay_as_they_are(
    adopter: Workspace, chroot: Chroot
) -> None:
    (adopter.folder / "topics/profiles").mkdir()
    profile = adopter.folder / "topics/profiles/kept.yaml"
    profile.write_text(
        "apiVersion: topicops/v1\nkind: Profile\nmetadata: {name: kept}\n"
        "spec: {configs: {retention.ms: -1, segment.ms: 1h, cleanup.policy: compact}}\n"
    )
    before = profile.read_text()
    kept = {"retention_ms": "-1", "segment_ms": "3600000", "cleanup_policy": "compact"}
    lay_topics(chroot, a__exact=kept, a__longer={**kept, "max_message_bytes": "2097152"}, a__other={"segment_ms": "1"})

    imported(adopter)

    specs = {path.stem: path.read_text().partition("spec:")[2] for path in (adopter.folder / "topics/a").iterdir()}
    assert specs == {
        "a.exact": "\n  profile: kept\n",
        "a.longer": "\n  profile: kept\n  configs:\n    max.message.bytes: 2MiB\n",
        "a.other": "\n  configs:\n    segment.ms: 1ms\n",
    }
    assert profile.read_text() == before


def test_with_remove_a_topic_with_an_override_that_no_spec_may_name_is_left_out(
    adopter: Workspace, chroot: Chroot
) -> None:
    adopter.policy["unlistedConfigs"] = "remove"
    lay_topics(chroot, a__unknown={"retention_hours": "7"}, a__plain={"retention_ms": "1"})

    answer = imported(adopter)

    assert [(left["topic"], left["code"]) for left in answer["left_out"]] == [("a.unknown", "TOP305")]
    assert answer["imported"] == ["a.plain"]
    assert json.loads(adopter.plan("--format", "json").out)["changes"] == []


def test_only_some_topics_into_one_folder(adopter: Workspace, chroot: Chroot) -> None:
    lay_topics(chroot, a__one={}, b__two={}, profiles__three={}, plain={})

    imported(adopter, "--only", "[ab].*", "--domain", "adopted")
    imported(adopter)

    found = {str(path.relative_to(adopter.folder / "topics")) for path in (adopter.folder / "topics").rglob("*.yaml")}
    assert found == {
        "environments/local.yaml",
        "adopted/a.one.yaml",
        "adopted/b.two.yaml",
        "other/profiles.three.yaml",
        "other/plain.yaml",
    }


@pytest.mark.parametrize("owner", ["", "  ", "TODO", "change-me", "???", "unknown", "x" * 201, "a\nb"])
def test_an_owner_is_somebody(adopter: Workspace, owner: str) -> None:
    ended = adopter.run("import", "--environment", "local", "--owner", owner)

    assert (ended.status, ended.out) == (1, "")
    assert "--owner" in ended.err


OWNERS = """\
apiVersion: topicops/v1
kind: Owners
metadata: {name: owners}
spec: {owners: [{owner: team-a, topics: ["a.*"]}]}
"""


def test_the_owners_may_come_from_a_file_of_patterns(adopter: Workspace, chroot: Chroot, tmp_path: Path) -> None:
    lay_topics(chroot, a__one={}, b__two={})
    file = tmp_path / "whose.yaml"
    file.write_text(OWNERS)

    ended = adopter.run("import", "--environment", "local", "--owners", str(file))

    assert (ended.status, ended.err.count("Traceback")) == (0, 0)
    assert "owner: team-a" in (adopter.folder / "topics" / "a" / "a.one.yaml").read_text()
    assert "  b.two: no pattern of the owners fits its name" in ended.out


@pytest.mark.parametrize(
    ("text", "expected"),
    [(OWNERS.replace("topics:", "topic:"), "TOP201"), (OWNERS.replace('"a.*"', ""), "--owner"), ("{", "TOP106")],
)
def test_a_file_of_owners_that_does_not_help_is_one_clear_error(
    adopter: Workspace, tmp_path: Path, text: str, expected: str
) -> None:
    file = tmp_path / "whose.yaml"
    file.write_text(text)

    ended = adopter.run("import", "--environment", "local", "--owners", str(file))

    assert (ended.status, ended.out) == (1, "")
    assert expected in ended.err


def test_the_summary_counts_and_gives_reasons(adopter: Workspace, chroot: Chroot) -> None:
    lay_topics(chroot, a__one={"min_insync_replicas": "4"}, a__two={})
    lay(chroot.client, {"/brokers/topics/a.gap": topic({1: [1, 2, 3]}), "/brokers/topics/__internal": topic(ROWS)})

    ended = adopter.run("import", "--environment", "local", "--owner", "team-platform")

    assert "  a.gap: TOP426: its partition ids have gaps: of 1 partition none has the id 0" in ended.out
    assert "  a.one: TOP308: Imported as it is: min.insync.replicas 4 is above the replication factor 3." in ended.out
    assert ended.out.splitlines()[-1] == (
        "2 topics imported, 0 new profiles, 1 exception, 1 left out, 1 protected, 0 described before."
    )


@pytest.mark.parametrize(
    ("spoil", "status", "said"),
    [
        pytest.param(
            lambda adopter, _: adopter.cluster.update(id="x9ZkQ0mVTh2c7nUeYw1aBg"), 8, "TOP504", id="another cluster"
        ),
        pytest.param(
            lambda adopter, _: adopter.topic("wrong", partitions="many"), 1, "topics/tests/wrong.yaml", id="a bad file"
        ),
        pytest.param(
            lambda _, chroot: lay(chroot.client, {"/brokers/topics/a.torn": "{"}), 1, "/brokers/topics/a.torn",
            id="a torn znode",
        ),
    ],
)  # fmt: skip
def test_what_stops_a_plan_stops_the_import_before_a_file_is_written(
    adopter: Workspace, chroot: Chroot, spoil: Callable[[Workspace, Chroot], object], status: int, said: str
) -> None:
    lay_topics(chroot, a__one={})
    spoil(adopter, chroot)
    before = texts_of(adopter.folder).keys()

    ended = adopter.run("import", "--environment", "local", "--owner", "team-platform")

    assert (ended.status, ended.out) == (status, "")
    assert said in ended.err
    assert texts_of(adopter.folder).keys() == before | {"topics/environments/local.yaml"}
