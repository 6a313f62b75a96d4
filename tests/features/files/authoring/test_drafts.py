"""Adoption, over any cluster: every topic is accounted for, the specs are valid, and a plan finds nothing to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.builders import NOW, live_topic, round_robin, snapshot
from fixtures.planning import plan_of
from topicops.features.files.authoring.drafts import ImportResult, draft_import
from topicops.features.files.authoring.importable import ImportInputs, TopicOwners
from topicops.features.shared.writer import document_of
from topicops.model.cluster.snapshot import Assignment, ClusterSnapshot, LiveTopic
from topicops.model.errors import SpecError
from topicops.model.plans.plan import ChangeSet
from topicops.model.specs.document import Tree
from topicops.model.specs.topic_config import TOPIC_CONFIGS
from topicops.steps.planning.diff import DriftKind, drift
from topicops.steps.specs.validate import Validated, validate

READ = partial(document_of, Path("topics"))
LOCAL = (
    "apiVersion: topicops/v1\nkind: Environment\nmetadata: {name: local}\nspec:\n"
    "  cluster: {class: sandbox, zookeeper: {hosts: zk}, kafka: {bootstrapServers: b}}\n"
)
OTHER = LOCAL.replace("local", "other")
KEPT = "apiVersion: topicops/v1\nkind: Profile\nmetadata: {name: kept}\nspec:\n  configs: {retention.ms: 7d}\n"


def tree_of(files: Mapping[str, str]) -> Tree:
    documents = sorted((READ(below, text) for below, text in files.items()), key=lambda document: document.file)
    return Tree(documents=tuple(documents), files=len(documents))


Adopted = tuple[dict[str, str], ImportResult]
ONE_OWNER = TopicOwners(otherwise="team-platform")


def adopted(files: Mapping[str, str], live: ClusterSnapshot, owners: TopicOwners = ONE_OWNER) -> Adopted:
    """Return the texts to write, and the result."""
    tree = tree_of(files)
    environment, desired = validate(tree, environment="local", now=NOW).require()
    before = ImportInputs(
        topics=Path("topics"),
        tree=tree,
        environment=environment,
        desired=desired,
        live=live,
        exceptions_text=files.get("environments/local.exceptions.yaml"),
        now=NOW,
        owners=owners,
    )
    return draft_import(before)


def profiles_of(texts: Mapping[str, str]) -> list[str]:
    return sorted(path for path in texts if path.startswith("profiles/"))


def planned(validated: Validated, live: ClusterSnapshot) -> ChangeSet:
    environment, desired = validated.require()
    return plan_of(desired, live, environment)


# ---- any cluster ----

ODD_VALUES = st.sampled_from(
    [
        "604800000",
        " 7 ",
        "+3",
        "-1",
        "true",
        "TRUE",
        "compact",
        "delete , compact",
        "0.5",
        "5e-1",
        "lz4",
        "2.3",
        "x",
        "",
    ]
)
NAMES = st.text("ab._-AB0", min_size=1, max_size=5) | st.sampled_from(
    ["__consumer_offsets", "_schemas", "profiles.a", "environments.b", "no", "12", "a b", ".", "a.rn", "a.m"]
)


@st.composite
def assignments(draw: st.DrawFn) -> Assignment:
    rows = round_robin(draw(st.integers(0, 9)), draw(st.integers(1, 3)))
    if rows and draw(st.integers(0, 4)) == 0:
        return {**rows, draw(st.integers(0, 12)): (1,)}
    return rows


@st.composite
def live_topics(draw: st.DrawFn, name: str) -> LiveTopic:
    names = st.sampled_from([*TOPIC_CONFIGS, "no.such.config"])
    overrides = draw(st.dictionaries(names, ODD_VALUES, max_size=3))
    return live_topic(name, assignment=draw(assignments()), overrides=overrides, unstable=draw(st.integers(0, 9)) == 0)


@st.composite
def clusters(draw: st.DrawFn) -> ClusterSnapshot:
    names = draw(st.sets(NAMES, max_size=12))
    topics = [draw(live_topics(name)) for name in sorted(names)]
    deleting = {name: 1 for name in names if draw(st.integers(0, 9)) == 0}
    return snapshot(*topics, deleting=deleting)


@st.composite
def folders(draw: st.DrawFn) -> dict[str, str]:
    """Files that are there before: one or two environments, with any policy and defaults, and perhaps a profile."""
    remove = draw(st.sampled_from(["", ", unlistedConfigs: remove"]))
    allowed = draw(st.sampled_from(["", ", alterableConfigs: [retention.ms]"]))
    defaults = draw(st.sampled_from(["{}", "{partitions: 3, replicationFactor: 3}", "{configs: {retention.ms: 7d}}"]))
    local = f"{LOCAL}  policy: {{minReplicationFactor: 2{remove}{allowed}}}\n  defaults: {defaults}\n"
    files = {"environments/local.yaml": f"{local}  limits: {{partitionsPerTopic: 8}}\n"}
    if draw(st.booleans()):
        files["environments/other.yaml"] = f"{OTHER}  policy: {{alterableConfigs: [segment.ms]}}\n"
    if draw(st.booleans()) and len(files) == 1 and not allowed:
        files["profiles/kept.yaml"] = KEPT
    return files


@settings(max_examples=15)
@given(folders(), clusters())
def test_any_cluster_is_accounted_for_and_what_is_adopted_rests(files: dict[str, str], live: ClusterSnapshot) -> None:
    texts, result = adopted(files, live)

    left_out = [left.topic for left in result.left_out]
    assert sorted([*result.imported, *left_out, *result.protected]) == sorted(live.topics)
    after = validate(tree_of({**files, **texts}), environment=None, now=NOW)
    assert [found for found in after.diagnostics if found.is_error] == []
    here = validate(tree_of({**files, **texts}), environment="local", now=NOW)
    change_set = planned(here, live)
    assert (change_set.changes, change_set.blocked) == ((), ())
    assert sorted(change_set.unmanaged) == sorted([*left_out, *result.protected])


@settings(max_examples=15)
@given(folders(), clusters())
def test_a_second_adoption_finds_nothing(files: dict[str, str], live: ClusterSnapshot) -> None:
    texts, first = adopted(files, live)

    _, second = adopted({**files, **texts}, live)

    assert (second.files, second.exceptions, second.described) == ((), (), first.imported)
    assert second.left_out == first.left_out


@settings(max_examples=15)
@given(folders(), clusters())
def test_what_drifts_afterwards_is_what_was_said(files: dict[str, str], live: ClusterSnapshot) -> None:
    texts, result = adopted(files, live)
    environment, desired = validate(tree_of({**files, **texts}), environment="local", now=NOW).require()

    entries = drift(desired, live, environment).drift

    assert Counter((e.topic, e.field) for e in entries if e.kind is DriftKind.UNLISTED) == Counter(
        (override.topic, f"configs.{override.config}") for override in result.unsayable
    )
    left_out = {left.topic for left in result.left_out}
    not_described = {DriftKind.UNMANAGED, DriftKind.BEING_DELETED}
    assert {e.topic for e in entries if e.kind in not_described} == left_out
    assert {e.kind for e in entries} <= {DriftKind.UNLISTED, *not_described}


# ---- what is shared ----

SHARED = {"cleanup.policy": "compact", "segment.ms": "3600000", "max.message.bytes": "2097152"}
FILES = {"environments/local.yaml": f"{LOCAL}  defaults: {{partitions: 3, replicationFactor: 3}}\n"}


def cluster(number: int, overrides: Mapping[str, str], *, replication_factor: int = 3) -> ClusterSnapshot:
    rows = round_robin(3, replication_factor)
    return snapshot(*(live_topic(f"a.t{i}", assignment=rows, overrides=overrides) for i in range(number)))


@pytest.mark.parametrize(
    ("number", "profiles"),
    [pytest.param(1, 0, id="one topic"), pytest.param(3, 0, id="too few"), pytest.param(4, 1, id="enough")],
)
def test_a_profile_must_save_lines(number: int, profiles: int) -> None:
    texts, _ = adopted(FILES, cluster(number, SHARED))

    assert len(profiles_of(texts)) == profiles


def test_a_profile_holds_what_all_share_and_is_named_after_it() -> None:
    texts, _ = adopted(
        FILES, cluster(9, {"cleanup.policy": "compact", "retention.ms": "604800000"}, replication_factor=2)
    )

    assert profiles_of(texts) == ["profiles/compact-retention-7d.yaml"]
    assert texts["profiles/compact-retention-7d.yaml"].partition("spec:\n")[2] == (
        "  replicationFactor: 2\n  configs:\n    cleanup.policy: compact\n    retention.ms: 7d\n"
    )
    assert texts["a/a.t0.yaml"].endswith("\nspec:\n  profile: compact-retention-7d\n")


def test_a_name_that_is_taken_tells_the_difference() -> None:
    taken = KEPT.replace("kept", "Compact").replace("retention.ms: 7d", "flush.ms: 1d")

    texts, _ = adopted({**FILES, "profiles/Compact.yaml": taken}, cluster(9, SHARED))

    assert profiles_of(texts) == ["profiles/compact-max-message-bytes-2MiB-segment-ms-1h.yaml"]


def test_what_needs_an_exception_stays_out_of_profiles() -> None:
    old = {**SHARED, "message.format.version": "2.3"}

    texts, result = adopted(FILES, cluster(9, old))

    assert [exception.code for exception in result.exceptions] == ["TOP314"] * 9
    assert "message.format.version" not in texts["profiles/compact.yaml"]
    assert 'message.format.version: "2.3"' in texts["a/a.t0.yaml"]


def test_defaults_that_are_not_live_are_taken_back() -> None:
    files = {"environments/local.yaml": f"{LOCAL}  defaults: {{configs: {{retention.ms: 7d}}}}\n"}

    texts, _ = adopted(files, cluster(1, {}))

    assert texts["a/a.t0.yaml"].endswith(
        "spec:\n  partitions: 3\n  replicationFactor: 3\n  configs:\n    retention.ms: null\n"
    )


def test_a_running_reassignment_counts_as_its_target() -> None:
    moving = live_topic("a.b", assignment={0: (1, 2, 3)}, adding={0: (3,)}, removing={0: (1,)})

    texts, _ = adopted(FILES, snapshot(moving))

    assert "  replicationFactor: 2\n" in texts["a/a.b.yaml"]


def test_an_exception_for_an_older_file_may_be_needed() -> None:
    older = "apiVersion: topicops/v1\nkind: Topic\nmetadata: {name: a_b, owner: o}\nspec: {}\n"
    live = snapshot(live_topic("a_b"), live_topic("a.b"))

    _, result = adopted({**FILES, "z/a_b.yaml": older}, live)

    assert [(exception.topic, exception.code) for exception in result.exceptions] == [("a_b", "TOP302")]


def test_a_text_that_is_no_spec_is_never_handed_out() -> None:
    with pytest.raises(SpecError):
        adopted(FILES, cluster(1, {}), TopicOwners(otherwise="x" * 201))


def test_each_topic_gets_the_owner_whose_pattern_fits_first_and_one_without_an_owner_gets_no_file() -> None:
    owners = TopicOwners(patterns=(("shop.*", "team-shop"), ("*.eu", "team-eu")))
    live = snapshot(live_topic("shop.eu"), live_topic("web.eu"), live_topic("web.us"))

    texts, result = adopted(FILES, live, owners)

    written = {path: text for path, text in texts.items() if "owner:" in text}
    assert {path: "team-shop" in text for path, text in written.items()} == {
        "shop/shop.eu.yaml": True,
        "web/web.eu.yaml": False,
    }
    assert [(each.topic, each.code) for each in result.left_out] == [("web.us", None)]
    assert "--owner" in result.left_out[0].reason


def test_profiles_that_would_have_one_name_are_named_by_what_differs() -> None:
    week = {"cleanup.policy": "delete", "retention.ms": "604800000"}
    kinds = (week, {**week, "segment.bytes": "1048576"}, {**week, "segment.bytes": "2097152"})
    topics = [live_topic(f"a{kind}{number}", overrides=kinds[kind]) for kind in range(3) for number in range(20)]

    texts, _ = adopted(FILES, snapshot(*topics))

    assert profiles_of(texts) == [
        "profiles/delete-retention-7d-segment-bytes-1MiB.yaml",
        "profiles/delete-retention-7d-segment-bytes-2MiB.yaml",
        "profiles/delete-retention-7d.yaml",
    ]


def test_a_drain_leaves_no_topic_out_because_the_next_plan_shows_its_move() -> None:
    draining = LOCAL.replace("bootstrapServers: b}}", "bootstrapServers: b}, draining: [3]}")
    assert draining != LOCAL
    _, result = adopted({"environments/local.yaml": draining}, snapshot(live_topic("orders")))
    assert (result.imported, result.left_out) == (("orders",), ())
