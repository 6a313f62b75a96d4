"""Each cause that `why` can name, from facts that have it, and none from those of a healthy topic."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import replace

import pytest

from fakes.builders import live_topic, partition_state, snapshot
from topicops.features.ask.why.causes import RULES, causes, causes_as_read
from topicops.features.ask.why.values import Cause, CauseKind, TopicTimes, WhyFacts
from topicops.model.cluster.snapshot import LiveTopic, PartitionState, TopicTraces
from topicops.model.errors import UndecodableZnodeError
from topicops.model.ports import BrokerLogs, BrokerView, PartitionView
from topicops.model.release import Release, Releases

ROWS = {0: (1, 2, 3), 1: (2, 3, 1)}
NOON = 1_714_564_800_000
"""2024-05-01 12:00 UTC."""


def topic(
    states: dict[int, PartitionState] | None = None, *, rows: dict[int, tuple[int, ...]] = ROWS, **overrides: str
) -> LiveTopic:
    """Healthy, unless states are given; ``_`` stands for ``.`` in the names of configs."""
    configs = {name.replace("_", "."): value for name, value in overrides.items()}
    found = {p: partition_state(row) for p, row in rows.items()} if states is None else states
    return live_topic("orders", assignment=rows, states=found, overrides=configs)


def view(live: LiveTopic) -> BrokerView:
    states = live.states or {}
    partitions = {
        p: PartitionView(leader=states[p].leader, replicas=row, isr=states[p].isr)
        for p, row in live.assignment.items()
        if p in states
    }
    return BrokerView(
        topics={live.name: partitions}, brokers=frozenset({1, 2, 3}), topic_ids={live.name: live.topic_id or ""}
    )


def facts(live: LiveTopic | None = None, *, brokers: frozenset[int] = frozenset({1, 2, 3}), **traces: bool) -> WhyFacts:
    live = topic() if live is None else live
    found = {"has_config_znode": True, "is_deleting": False, **traces}
    return WhyFacts(
        topic="orders",
        has_zookeeper=True,
        traces=TopicTraces(live=live, **found),
        times=TopicTimes(
            config=NOON, marker=NOON, states=dict.fromkeys(live.assignment, NOON), is_config_told=True, controller=1
        ),
        brokers=brokers,
        controller_id=1,
        views=dict.fromkeys(sorted(brokers), view(live)),
        releases=Releases(Release(3, 9), Release(3, 9)),
        bootstrap_servers="b1:9092",
        zookeeper_hosts="z1:2181/kafka",
    )


def absent(found: WhyFacts) -> WhyFacts:
    """Without the topic in ZooKeeper."""
    assert found.traces is not None
    return replace(found, traces=replace(found.traces, live=None))


def times(found: WhyFacts, **changed: object) -> WhyFacts:
    assert found.times is not None
    return replace(found, times=replace(found.times, **changed))  # type: ignore[arg-type]


def old(found: WhyFacts, major: int, minor: int) -> WhyFacts:
    release = Release(major, minor)
    return replace(found, releases=Releases(release, release))


def silent(found: WhyFacts, *brokers: int) -> WhyFacts:
    views = {broker: view for broker, view in found.views.items() if broker not in brokers}
    return replace(found, views=views, silent=dict.fromkeys(brokers, "gave no answer in time"))


def moving(broker: int) -> LiveTopic:
    rows = {0: (1, 2, 3, broker)}
    return replace(topic({0: partition_state((1, 2, 3))}, rows=rows), adding={0: (broker,)})


BEHIND = {0: partition_state((1, 2)), 1: partition_state((2, 1))}
LEADERLESS = {0: partition_state((2,), leader=-1), 1: partition_state((3, 1))}
DISK_FAILED = {1: BrokerLogs(held={}), 2: BrokerLogs(held={"orders": frozenset({0})}, failed=("/data/2",))}
"""Broker 2 has a replica of partition 1 on the disk that failed."""
DISK_OF_3_FAILED = {3: BrokerLogs(held={}, failed=("/data/3",))}

CASES: dict[str, Callable[[], WhyFacts]] = {
    "unreadable-znode": lambda: replace(
        facts(),
        traces=None,
        unreadable=(UndecodableZnodeError("/brokers/topics/orders", "it is no JSON", stops_controller=True),),
    ),
    "no-controller": lambda: times(replace(facts(), controller_id=7), controller=7),
    "znode-removed": lambda: absent(facts()),
    "no-topic": lambda: replace(absent(facts()), views={}),
    "deletion-waits-for-broker": lambda: facts(brokers=frozenset({1, 3}), is_deleting=True),
    "deletion-waits-for-disk": lambda: replace(facts(is_deleting=True), logs=DISK_FAILED),
    "deletion-of-never-led": lambda: old(facts(topic({}), is_deleting=True), 1, 1),
    "deletion-waits-for-move": lambda: facts(moving(2), is_deleting=True),
    "deletion-runs": lambda: facts(is_deleting=True),
    "failed-log-directory": lambda: replace(facts(topic(BEHIND)), logs=DISK_OF_3_FAILED),
    "no-leader": lambda: facts(topic(LEADERLESS), brokers=frozenset({1, 3})),
    "no-election": lambda: facts(topic(LEADERLESS)),
    "no-state": lambda: facts(topic({1: partition_state((2, 3, 1))})),
    "move-waits-for-broker": lambda: facts(moving(9)),
    "move-runs": lambda: facts(moving(4), brokers=frozenset({1, 2, 3, 4})),
    "not-in-sync": lambda: facts(topic(BEHIND)),
    "below-min-isr": lambda: facts(topic(BEHIND, min_insync_replicas="3")),
    "config-not-in-force": lambda: times(facts(topic(retention_ms="1000")), is_config_told=False),
    "config-invalid": lambda: facts(topic(retention_ms="soon")),
    "min-isr-above-replicas": lambda: old(facts(topic(min_insync_replicas="4")), 3, 6),
    "unknown-to-broker": lambda: replace(
        facts(), views={**facts().views, 2: BrokerView(topics={}, brokers=frozenset({1, 2, 3}))}
    ),
    "other-topic-id": lambda: replace(
        facts(), views={**facts().views, 2: replace(view(topic()), topic_ids={"orders": "B" * 22})}
    ),
    "log-not-served": lambda: replace(
        facts(), logs={2: BrokerLogs(held={}, idle={"orders": frozenset({1})}, unread={"orders": {0: "X (103)"}})}
    ),
    "stray-log": lambda: replace(
        facts(brokers=frozenset({1, 2, 3, 4})),
        logs={4: BrokerLogs(held={"orders": frozenset({0})}, idle={"orders": frozenset({1})})},
    ),
    "move-ends-without-broker": lambda: replace(
        old(facts(moving(4), brokers=frozenset({1, 2, 4})), 4, 4), has_zookeeper=False
    ),
    "silent-broker": lambda: silent(facts(), 2),
    "no-broker-answers": lambda: silent(facts(), 1, 2, 3),
    "not-preferred": lambda: facts(topic({0: partition_state((1, 2, 3), leader=2), 1: partition_state((2, 3, 1))})),
}


def by_id(found: WhyFacts) -> dict[str, Cause]:
    return {cause.id: cause for cause in causes(found)}


def test_a_healthy_topic_has_no_cause() -> None:
    assert causes(facts()) == ()


@pytest.mark.parametrize("cause", CASES)
def test_each_cause_is_found_where_it_is_so(cause: str) -> None:
    found = by_id(CASES[cause]())
    assert cause in found
    assert found[cause].message
    assert found[cause].way_out
    assert found[cause].read_from


def test_each_rule_has_a_case() -> None:
    assert {rule.id for rule in RULES} == CASES.keys()


def test_what_a_person_would_mend_first_comes_first() -> None:
    found = causes(facts(topic(LEADERLESS, retention_ms="soon"), brokers=frozenset({1, 3})))
    assert [cause.id for cause in found] == ["no-leader", "not-in-sync", "config-invalid"]


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        pytest.param(
            "deletion-waits-for-broker",
            "the deletion asked for at 2024-05-01 12:00 UTC cannot finish: partitions 0, 1 have a replica on "
            "broker 2, which is not registered",
            id="deletion",
        ),
        pytest.param(
            "no-leader",
            "partition 0 has no leader since 2024-05-01 12:00 UTC: it waits for broker 2, last in the ISR; "
            "brokers 1, 3 are live, but not in sync",
            id="leader",
        ),
        pytest.param(
            "not-in-sync",
            "broker 3 is not in the ISR of partitions 0, 1 since 2024-05-01 12:00 UTC: it is registered and answers, "
            "but does not copy as fast as the leader writes",
            id="follower",
        ),
        pytest.param(
            "move-waits-for-broker",
            "the reassignment of partition 0 cannot end: broker 9 is not registered, and until it ends, brokers refuse "
            "more partitions with REASSIGNMENT_IN_PROGRESS (60)",
            id="move",
        ),
    ],
)
def test_a_message_says_what_waits_for_what_and_since_when(cause: str, message: str) -> None:
    assert by_id(CASES[cause]())[cause].message == message


def test_an_unclean_election_is_offered_with_its_price_where_another_replica_lives() -> None:
    cause = by_id(CASES["no-leader"]())["no-leader"]
    assert cause.commands == (
        "kafka-leader-election.sh --bootstrap-server b1:9092 --election-type unclean --topic orders --partition 0",
    )
    assert cause.caution == "an unclean election loses every record that broker 1 did not copy in time"


def test_without_another_live_replica_no_election_is_offered() -> None:
    alone = {0: partition_state((2,), leader=-1)}
    cause = by_id(facts(topic(alone, rows={0: (2,)}), brokers=frozenset({1, 3})))["no-leader"]
    assert cause.commands == ()
    assert (cause.way_out, cause.last_resort) == ("a leader is elected when broker 2 is back", "")


@pytest.mark.parametrize(("release", "word"), [((2, 3), "rmr"), ((2, 4), "deleteall")])
def test_znodes_are_removed_with_the_word_of_the_zookeeper_that_comes_with_the_release(
    release: tuple[int, int], word: str
) -> None:
    cause = by_id(old(CASES["deletion-waits-for-broker"](), *release))["deletion-waits-for-broker"]
    assert cause.commands[0] == f"zookeeper-shell.sh z1:2181/kafka {word} /brokers/topics/orders"


def test_brokers_with_a_login_get_their_file_of_client_properties() -> None:
    cause = by_id(replace(CASES["no-leader"](), command_config=True))["no-leader"]
    assert "--admin.config client.properties" in cause.commands[0]
    cause = by_id(replace(CASES["config-not-in-force"](), command_config=True))["config-not-in-force"]
    assert "--command-config client.properties" in cause.commands[0]


ZOOKEEPERS = {"unreadable-znode", "no-controller", "config-not-in-force", "deletion-of-never-led"}
"""Causes that only ZooKeeper shows, or only a release that is read from it."""


@pytest.mark.parametrize("cause", sorted(CASES.keys() - ZOOKEEPERS))
def test_without_zookeeper_no_znode_is_named(cause: str) -> None:
    known = replace(CASES[cause](), times=None, has_zookeeper=False, zookeeper_hosts="")
    found = by_id(known)[cause]
    words = " ".join(
        [found.message, found.way_out, found.last_resort, found.caution, *found.commands, *found.read_from]
    )
    assert not re.search(r"znode|zookeeper|new controller|(^| )/(brokers|admin|config|controller)", words)


def test_a_topic_name_is_quoted_for_the_shell() -> None:
    odd = replace(CASES["no-leader"](), topic="a;b")
    assert "'a;b'" in by_id(odd)["no-leader"].commands[0]


def test_a_live_member_of_the_isr_only_needs_a_controller() -> None:
    state = partition_state((1, 2), leader=1)
    found = by_id(facts(topic({0: state, 1: state}), brokers=frozenset({2, 3})))
    assert "no-leader" not in found
    assert found["no-election"].commands == ()


def test_partitions_that_wait_for_the_same_are_one_cause_and_one_command() -> None:
    rows = dict.fromkeys(range(300), (1, 2, 3))
    states = {p: partition_state((2,), leader=-1) for p in rows}
    cause = by_id(facts(topic(states, rows=rows), brokers=frozenset({1, 3})))["no-leader"]
    assert cause.message.startswith("partitions 0, 1, 2, 3, 4 and 295 more have no leader")
    assert cause.commands[0].endswith("> elect-orders.json")
    assert cause.commands[0].count('"partition": ') == 300
    assert cause.commands[1].endswith("--election-type unclean --path-to-json-file elect-orders.json")


@pytest.mark.parametrize(
    ("cause", "release", "tools"),
    [
        ("no-leader", (2, 3), ["kafka-configs.sh --zookeeper", "zookeeper-shell.sh", "kafka-configs.sh --zookeeper"]),
        ("no-leader", (2, 4), ["kafka-leader-election.sh --bootstrap-server"]),
        ("not-preferred", (2, 3), ["echo", "kafka-preferred-replica-election.sh --zookeeper"]),
        ("not-preferred", (2, 4), ["kafka-leader-election.sh --bootstrap-server"]),
        ("config-not-in-force", (2, 4), ["kafka-configs.sh --zookeeper"]),
        ("config-not-in-force", (2, 5), ["kafka-configs.sh --bootstrap-server"]),
        (
            "move-waits-for-broker",
            (2, 3),
            ["zookeeper-shell.sh", "zookeeper-shell.sh", "echo", "kafka-reassign-partitions.sh --zookeeper"],
        ),
        ("move-waits-for-broker", (2, 4), ["echo", "kafka-reassign-partitions.sh --bootstrap-server"]),
        ("move-waits-for-broker", (2, 6), ["echo", "kafka-reassign-partitions.sh --bootstrap-server"]),
    ],
)
def test_commands_are_those_that_the_tools_of_the_release_take(
    cause: str, release: tuple[int, int], tools: list[str]
) -> None:
    found = by_id(old(CASES[cause](), *release))[cause]
    assert [command.startswith(tool) for command, tool in zip(found.commands, tools, strict=True)] == [True] * len(
        tools
    )


def test_a_config_that_allowed_no_unclean_election_says_so_again_afterwards() -> None:
    found = facts(topic(LEADERLESS, unclean_leader_election_enable="false"), brokers=frozenset({1, 3}))
    cause = by_id(old(found, 2, 3))["no-leader"]
    assert cause.commands[-1].endswith("--add-config unclean.leader.election.enable=false")
    assert "allowed for every partition of the topic" in cause.caution


@pytest.mark.parametrize(
    ("row", "target", "isr", "origin"),
    [
        pytest.param((1, 9, 2), (1, 9), (1, 2), "[1, 2]", id="one is kept"),
        pytest.param((3, 9, 1, 2), (3, 9), (1, 2, 3), "[1, 2]", id="both are new"),
        pytest.param((1, 2, 9), (1, 2, 9), (2, 1), "[1, 2]", id="one more"),
    ],
)
def test_before_2_4_replicas_are_moved_back_to_those_that_are_in_no_target_or_in_sync(
    row: tuple[int, ...], target: tuple[int, ...], isr: tuple[int, ...], origin: str
) -> None:
    live = topic({0: partition_state(isr)}, rows={0: row})
    cause = by_id(times(old(facts(live), 2, 3), targets={0: target}))["move-waits-for-broker"]
    assert f'"replicas": {origin}' in cause.commands[2]
    assert "those of other topics too" in cause.caution


@pytest.mark.parametrize(
    ("release", "caution"),
    [
        pytest.param((3, 6), "what the new replicas have copied is removed", id="3.6"),
        pytest.param((3, 7), "use the tool of Kafka 4.0 or later: that of 3.7 overlooks a move that only", id="3.7"),
        pytest.param((4, 0), "what the new replicas have copied is removed", id="4.0"),
    ],
)
def test_under_kraft_a_move_is_cancelled_and_not_replaced_and_throttles_stay(
    release: tuple[int, int], caution: str
) -> None:
    found = by_id(old(replace(facts(moving(9)), has_zookeeper=False), *release))["move-waits-for-broker"]

    assert found.commands[-1].endswith("--cancel --preserve-throttles")
    assert found.caution.startswith(caution)


def test_a_move_is_not_taken_back_where_no_live_replica_of_before_is_in_sync() -> None:
    live = replace(topic({0: partition_state((2,))}, rows={0: (1, 2, 9)}), adding={0: (2, 9)}, removing={0: (1,)})

    found = by_id(facts(live, brokers=frozenset({2, 3})))["move-waits-for-broker"]

    assert "do not move partition 0 back before a replica of before the move is in sync" in found.way_out
    assert (found.commands, found.last_resort, found.caution) == ((), "", "")


@pytest.mark.parametrize(
    ("release", "has_zookeeper", "cause"),
    [
        pytest.param((3, 9), True, "move-waits-for-broker", id="ZooKeeper"),
        pytest.param((3, 2), False, "move-waits-for-broker", id="ZooKeeper by its brokers"),
        pytest.param((3, 7), False, "move-ends-without-broker", id="3.7"),
        pytest.param((3, 8), False, "move-waits-for-broker", id="3.8"),
        pytest.param((4, 2), False, "move-waits-for-broker", id="4.2"),
        pytest.param((4, 3), False, "move-ends-without-broker", id="4.3"),
    ],
)
def test_a_dead_replica_that_does_not_move_holds_a_move_up_or_is_missed_in_its_end(
    release: tuple[int, int], has_zookeeper: bool, cause: str
) -> None:
    live = replace(moving(4), states={0: partition_state((1, 2))})
    found = by_id(old(replace(facts(live, brokers=frozenset({1, 2, 4})), has_zookeeper=has_zookeeper), *release))

    assert [name for name in found if name.startswith("move-")] == (
        [cause] if cause == "move-waits-for-broker" else ["move-runs", cause]
    )
    assert "broker 3" in found[cause].message


def test_a_move_of_ours_is_followed_and_cancelled_by_topicops() -> None:
    ours = replace(facts(moving(4), brokers=frozenset({1, 2, 3, 4})), own_move=("orders: slow.",), environment="prod")

    runs, waits = by_id(ours)["move-runs"], by_id(replace(ours, brokers=frozenset({1, 2, 3})))["move-waits-for-broker"]

    assert runs.message.endswith("(60); orders: slow")
    assert runs.way_out.endswith("whose move it is: topicops moves --environment prod")
    assert waits.commands == ("topicops moves --cancel orders --environment prod",)


def test_a_move_of_ours_that_has_not_begun_says_what_it_waits_for() -> None:
    waiting = replace(facts(), own_move=("orders partition 0: not started: full.",), environment="prod")

    [found] = causes(waiting)

    assert (found.id, found.kind) == ("move-runs", CauseKind.WAITS)
    assert found.message == "replicas of it are to move, and wait; orders partition 0: not started: full"
    assert found.way_out.endswith("topicops moves --environment prod")
    assert causes(replace(waiting, own_move=())) == (), "it waits for other moves to end"
    begun = replace(facts(moving(4), brokers=frozenset({1, 2, 3})), own_move=waiting.own_move, environment="prod")
    assert [cause.id for cause in causes(begun) if cause.id.startswith("move-")] == ["move-waits-for-broker"]


def test_a_log_of_a_replica_that_moves_here_is_no_stray() -> None:
    live, logs = moving(4), {4: BrokerLogs(held={"orders": frozenset({0})}, idle={"orders": frozenset({7})})}

    assert "stray-log" not in by_id(replace(facts(live, brokers=frozenset({1, 2, 3, 4})), logs=logs))


def test_a_stray_keeps_moves_of_its_partition_away_until_a_person_has_removed_it() -> None:
    found = by_id(CASES["stray-log"]())["stray-log"]

    assert found.way_out.startswith("topicops starts no move of these partitions to that broker while they are there")


def test_a_stray_is_not_said_to_be_a_log_that_its_broker_should_serve() -> None:
    assert list(by_id(CASES["stray-log"]())) == ["stray-log"]


def test_a_move_of_a_partition_that_the_topic_does_not_have_is_none() -> None:
    assert causes(times(facts(), targets={9: (1, 9)})) == ()


def test_where_no_broker_answers_none_is_to_be_restarted() -> None:
    found = causes(silent(facts(topic(BEHIND)), 1, 2, 3))
    assert not any("restart" in cause.way_out for cause in found)
    assert found[0].id == "no-broker-answers"
    assert "topicops doctor" in found[0].way_out


@pytest.mark.parametrize(
    ("minutes", "kind", "words"),
    [(1, CauseKind.WAITS, "it ends within seconds"), (6, CauseKind.STUCK, "look for a failed log directory")],
)
def test_a_deletion_that_nothing_holds_up_is_stuck_after_five_minutes(
    minutes: int, kind: CauseKind, words: str
) -> None:
    cause = by_id(times(CASES["deletion-runs"](), now=NOON + minutes * 60_000))["deletion-runs"]
    assert cause.kind is kind
    assert words in cause.way_out


def test_no_deletion_runs_without_a_controller() -> None:
    found = by_id(times(replace(CASES["deletion-runs"](), controller_id=7), controller=7))
    assert found.keys() == {"no-controller"}


def test_the_id_that_all_brokers_know_is_written_back_and_nothing_else_of_the_znode_changes() -> None:
    known = replace(view(topic()), topic_ids={"orders": "B" * 22})
    cause = by_id(replace(facts(), views=dict.fromkeys((1, 2, 3), known)))["other-topic-id"]
    written = json.loads(shlex.split(cause.commands[0])[4])
    assert written["topic_id"] == "B" * 22
    assert written["partitions"] == {"0": [1, 2, 3], "1": [2, 3, 1]}
    assert by_id(CASES["other-topic-id"]())["other-topic-id"].commands == ()


def test_the_znode_of_a_topic_that_brokers_still_serve_is_written_again_from_what_they_tell() -> None:
    cause = by_id(CASES["znode-removed"]())["znode-removed"]
    written = json.loads(shlex.split(cause.commands[0])[4])
    assert written["partitions"] == {"0": [1, 2, 3], "1": [2, 3, 1]}
    assert (written["version"], written["topic_id"]) == (3, topic().topic_id)


@pytest.mark.parametrize(
    ("path", "stops", "words"),
    [
        pytest.param("/brokers/topics/orders", True, ["get", "deleteall"], id="stops the controller"),
        pytest.param("/brokers/topics/orders", False, ["get"], id="of a newer Kafka"),
        pytest.param("/config/topics/orders", False, ["get", "set"], id="config"),
        pytest.param("/admin/reassign_partitions", False, ["get"], id="another"),
    ],
)
def test_only_a_topic_znode_that_stops_the_controller_is_removed_and_its_data_is_saved_before(
    path: str, stops: bool, words: list[str]
) -> None:
    znode = UndecodableZnodeError(path, "is no JSON", stops_controller=stops)
    cause = by_id(replace(facts(), traces=None, times=None, unreadable=(znode,)))["unreadable-znode"]
    assert [shlex.split(command)[2] for command in cause.commands] == words
    assert all(shlex.split(command)[3] == path for command in cause.commands)
    assert cause.commands[0].endswith(f" > {path.strip('/').replace('/', '-')}")


def test_invalid_configs_are_one_cause_and_only_an_unreadable_value_stops_a_broker() -> None:
    two = by_id(facts(topic(retention_ms="soon", max_message_bytes="many", segment_ms="1000")))["config-invalid"]
    assert '\'{"version":1,"config":{"segment.ms":"1000"}}\'' in two.commands[0]
    assert "fails its next start" in two.message
    unknown = by_id(facts(topic(nobodys_tier="on")))["config-invalid"]
    assert "fails its next start" not in unknown.message
    assert "vendor" in unknown.caution
    assert [command.split()[-2] for command in unknown.commands[1:]] == ["--add-config", "--delete-config"]


def test_what_a_snapshot_shows_has_no_word_of_a_last_resort() -> None:
    live = topic(LEADERLESS)
    found = causes_as_read(snapshot(live, racks={1: "r1", 3: "r3"}), live)
    assert found[0] == (
        "partition 0 has no leader: it waits for broker 2, last in the ISR; brokers 1, 3 are live, but not in sync",
        "a leader is elected when broker 2 is back",
    )
    assert not any("unclean" in way_out for _, way_out in found)


def test_a_replica_on_a_failed_disk_is_not_said_to_catch_up() -> None:
    found = by_id(CASES["failed-log-directory"]())
    assert found.keys() == {"failed-log-directory"}
    assert "broker 3 is live, and its log directory /data/3 has failed: its replica of partitions 0, 1" in (
        found["failed-log-directory"].message
    )


def test_a_partition_whose_last_replica_in_sync_is_on_a_failed_disk_waits_for_that_disk() -> None:
    found = by_id(replace(facts(topic(LEADERLESS)), logs={2: BrokerLogs(held={}, failed=("/data/2",))}))
    assert found.keys() == {"failed-log-directory", "no-leader"}
    assert "it waits for broker 2, last in the ISR; brokers 1, 3 are live" in found["no-leader"].message
    assert "broker 2 with the failed log directory as it was" in found["no-leader"].way_out
    assert "makes broker 3 the leader" in found["no-leader"].last_resort or "broker 1" in found["no-leader"].last_resort


def test_a_deletion_that_waits_for_a_disk_is_not_said_to_end() -> None:
    found = by_id(CASES["deletion-waits-for-disk"]())
    assert found.keys() == {"deletion-waits-for-disk"}
    assert "its replica of partition 1 is in none that works" in found["deletion-waits-for-disk"].message


def test_a_deletion_whose_disks_are_not_known_is_said_to_end_only_if_they_work() -> None:
    untold = {2: "broker 2 does not describe its log directories"}
    cause = by_id(replace(CASES["deletion-runs"](), logs=untold))["deletion-runs"]
    assert cause.way_out == "it ends within seconds, unless a log directory of broker 2 has failed, which is not known"
