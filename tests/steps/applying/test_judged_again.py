"""What a plan's changes come to once files, policy and cluster were looked at again."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import pytest

from fakes import builders
from fakes.changes import reassign_topic
from fixtures.edited_plans import resealed
from fixtures.planning import plan_of
from topicops.model.cluster.snapshot import ClusterSnapshot, LogDirectories
from topicops.model.plans.changes import ACTIONS, ConfigureTopic, CreateTopic, ExpandTopic, GateWord
from topicops.model.plans.plan import GatedChange, Plan
from topicops.model.specs.desired import DesiredTopic
from topicops.model.specs.environment import Environment, Limits, Policy, Risk
from topicops.steps.applying.judged_again import Judged, judge_again
from topicops.steps.planning.gate import gate

NEW = builders.desired_topic("orders", configs={"retention.ms": "1"})
GROWS = builders.desired_topic("clicks", 6)
TUNED = builders.desired_topic("views", configs={"compression.type": "zstd"})
GOES = builders.tombstone("old")
WANTED = (NEW, GROWS, TUNED, GOES)
LIVE = builders.snapshot(
    *(builders.live_topic(name) for name in ("clicks", "views", "old")), broker_defaults={"cleanup.policy": "delete"}
)
OPEN = builders.environment(
    limits=Limits(deletes_per_run=9, deletes_percent=100), policy=Policy(unattended=Risk.DESTRUCTIVE)
)
LATER = datetime(2100, 1, 1, tzinfo=UTC)


def planned(*topics: DesiredTopic, live: ClusterSnapshot = LIVE, where: Environment = OPEN) -> Plan:
    return gate(plan_of(builders.desired_of(*topics), live, where), where)


def judged(
    plan: Plan,
    *topics: DesiredTopic,
    live: ClusterSnapshot = LIVE,
    where: Environment = OPEN,
    approved: Collection[str] = (),
) -> Judged:
    """By these files, this cluster and this policy."""
    desired = builders.desired_of(*topics)
    anew = plan_of(desired, live, where)
    return judge_again(plan, anew, desired=desired, live=live, environment=where, approved=approved)


def fates(found: Judged) -> dict[str, str]:
    return {outcome.topic: f"{outcome.status}: {outcome.message}" for outcome in found.outcomes(ACTIONS)}


def test_a_plan_that_is_still_asked_for_runs_as_it_is() -> None:
    plan = planned(*WANTED)
    assert len(plan.changes) == 4
    found = judged(plan, *WANTED)
    assert (found.plan, found.outcomes(ACTIONS)) == (plan, ())
    assert found.without(()).changes == plan.changes


@pytest.mark.parametrize(
    ("now", "fate"),
    [
        pytest.param(NEW, None, id="as it was"),
        pytest.param(replace(NEW, owner="others", description="New words."), None, id="other words"),
        pytest.param(replace(NEW, location=builders.location("orders", 40)), None, id="another line"),
        pytest.param(replace(NEW, partitions=4), "its file asks for something else", id="more partitions"),
        pytest.param(replace(NEW, replication_factor=2), "its file asks for something else", id="fewer replicas"),
        pytest.param(replace(NEW, configs={}), "its file asks for something else", id="another config"),
        pytest.param(
            replace(builders.paused_topic("orders", until=LATER), configs=NEW.configs),
            "its file pauses the topic (TOP501)",
            id="a pause",
        ),
        pytest.param(builders.tombstone("orders"), "its file asks for something else", id="a tombstone"),
        pytest.param(None, "no file of environment local asks for it (TOP501)", id="no file"),
    ],
)
def test_a_change_runs_only_if_its_file_still_asks_for_it(now: DesiredTopic | None, fate: str | None) -> None:
    found = judged(planned(NEW), GROWS, *([now] if now else []))
    if fate is None:
        assert fates(found) == {}
    else:
        assert fates(found)["orders"].startswith(f"refused: {fate}")
        assert found.without(found.outcomes(ACTIONS)).with_gate(GateWord.RUN) == ()
        assert all(outcome.is_unasked for outcome in found.outcomes(ACTIONS))


@pytest.mark.parametrize(
    ("now", "code"),
    [
        pytest.param(builders.tombstone("old", topic_id="x" * 22), "TOP411", id="another topic id"),
        pytest.param(builders.tombstone("old", not_before=LATER), "TOP412", id="not yet"),
        pytest.param(builders.desired_topic("old"), "its tombstone was removed", id="wanted again"),
    ],
)
def test_a_delete_runs_only_while_its_tombstone_means_this_topic(now: DesiredTopic, code: str) -> None:
    found = judged(planned(GOES), now)
    assert f"refused: {code}" in fates(found)["old"]
    assert [outcome.is_unasked for outcome in found.outcomes(ACTIONS)] == [code.startswith("its tombstone")]


def test_a_move_that_nothing_judged_is_refused_even_if_a_plan_of_now_has_it() -> None:
    live = builders.live_topic("m", assignment={0: (1,)}, states=builders.healthy_states({0: (1,)}))
    cluster, desired = builders.snapshot(live), builders.desired_of(builders.desired_topic("m", 1))
    anew = replace(plan_of(desired, cluster, OPEN), changes=(reassign_topic(live, (1, 2, 3)),), blocked=())
    found = judge_again(gate(anew, OPEN), anew, desired=desired, live=cluster, environment=OPEN)
    assert fates(found)["m"].startswith("refused: its file asks for something else")


def test_a_change_that_is_in_effect_is_already_so_and_one_whose_topic_changed_is_refused() -> None:
    plan = planned(*WANTED)
    grown = builders.live_topic("clicks", 6, assignment=_expanded_rows(plan))
    remade = builders.live_topic("views", topic_id="another-id-of-22-chars")
    live = replace(LIVE, topics={**LIVE.topics, "clicks": grown, "views": remade})
    found = fates(judged(plan, *WANTED, live=live))
    assert found["clicks"] == "already so: "
    assert not any(outcome.is_unasked for outcome in judged(plan, *WANTED, live=live).outcomes(ACTIONS))
    assert found["views"].startswith("refused: the topic changed since the plan (TOP501): identity: planned ")


def _expanded_rows(plan: Plan) -> dict[int, tuple[int, ...]]:
    (change,) = (gated.change for gated in plan.changes if isinstance(gated.change, ExpandTopic))
    return {p: tuple(row) for p, row in {**change.assignment_before, **change.assignment}.items()}


def test_no_delete_runs_beside_a_refused_change_and_a_task_speaks_of_its_own_kind_alone() -> None:
    found = judged(planned(*WANTED), GROWS, TUNED, GOES)
    assert fates(found)["old"] == "not sent: deletes run only when all before succeeded; create of orders ended refused"
    assert [gated.change.topic for gated in found.without(found.outcomes(ACTIONS)).with_gate(GateWord.RUN)] == [
        "clicks",
        "views",
    ]
    assert found.outcomes(["delete"]) == ()
    assert [outcome.topic for outcome in found.outcomes(["create"])] == ["orders"]


def test_risk_and_limits_are_those_of_now_and_the_stricter_word_counts() -> None:
    keyed = replace(GROWS, keyed=True)
    strict = builders.environment(policy=Policy(unattended=Risk.NOTICE))
    plan = planned(GROWS, where=strict)
    found = judged(plan, keyed, where=strict)
    assert plan.changes[0].gate is GateWord.RUN
    assert fates(found)["clicks"].startswith("refused: risk risky, up to notice allowed without an approval")
    held = planned(keyed, where=strict)
    assert judged(held, keyed).plan.changes[0].gate is GateWord.HELD
    digests = {gated.digest for gated in held.changes}
    assert judged(held, keyed, where=strict, approved=digests).plan.changes[0].gate is GateWord.RUN


def test_the_states_of_the_cluster_in_a_plan_lift_no_limit() -> None:
    gone = [builders.tombstone(name) for name in ("clicks", "views", "old")]
    strict = builders.environment(
        policy=Policy(unattended=Risk.DESTRUCTIVE), limits=Limits(deletes_per_run=9, deletes_percent=5)
    )
    plan = planned(*gone, where=strict)
    edited = replace(plan.change_set, cluster=replace(plan.change_set.cluster, managed_topics=1000))
    lifted = gate(edited, strict)
    assert {gated.gate for gated in lifted.changes} == {GateWord.RUN}
    found = judged(lifted, *gone, where=strict)
    assert {gated.gate for gated in found.plan.changes} == {GateWord.HELD}
    assert all("3 deletes, 1 allowed: 5 % of 3 managed topics" in fate for fate in fates(found).values())


def test_the_limit_of_a_run_counts_the_replicas_that_another_task_of_it_has_made() -> None:
    plan = planned(NEW, GROWS)
    created = plan.changes[0].change
    assert isinstance(created, CreateTopic)
    orders = builders.live_topic("orders", assignment=created.assignment, overrides=created.configs)
    few = replace(OPEN, spec=msgspec.structs.replace(OPEN.spec, limits=Limits(replicas_per_run=9)))

    found = judged(
        plan,
        NEW,
        GROWS,
        live=builders.snapshot(orders, *LIVE.topics.values(), broker_defaults={"cleanup.policy": "delete"}),
        where=few,
    )

    assert fates(found)["orders"] == "already so: "
    assert fates(found)["clicks"].startswith("refused: 18 new replicas in this run, 9 allowed")


RACKED = builders.snapshot(
    *LIVE.topics.values(), racks={1: "a", 2: "a", 3: "b", 4: "c"}, broker_defaults={"cleanup.policy": "delete"}
)
Edit = Callable[[GatedChange], GatedChange]


def rows(*given: tuple[int, ...]) -> Edit:
    """The same change with other replicas for its new partitions."""

    def edit(gated: GatedChange) -> GatedChange:
        assert isinstance(gated.change, CreateTopic | ExpandTopic)
        first = min(gated.change.assignment)
        return replace(gated, change=replace(gated.change, assignment=dict(enumerate(given, start=first))))

    return edit


@pytest.mark.parametrize(
    ("topic", "edit", "reason"),
    [
        pytest.param(NEW, rows((1,), (2,), (3,)), "are not 3 brokers", id="fewer replicas"),
        pytest.param(NEW, rows((1, 3, 3), (1, 3, 4), (1, 3, 4)), "are not 3 brokers", id="a broker twice"),
        pytest.param(NEW, rows((1, 3, 4)), "the plan places 1 partition, 3 are new", id="fewer partitions"),
        pytest.param(NEW, rows((1, 2, 3), (1, 3, 4), (1, 3, 4)), "on fewer racks than they can be", id="racks"),
        pytest.param(GROWS, rows((1,), (3,), (4,)), "are not 3 brokers", id="an expansion with fewer replicas"),
        pytest.param(
            replace(NEW, partitions=1, assignment={0: (1, 3, 4)}),
            rows((4, 3, 1)),
            r"are not those of its file, [1, 3, 4]",
            id="by hand",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused(topic: DesiredTopic, edit: Edit, reason: str) -> None:
    honest = planned(topic, live=RACKED)
    assert fates(judged(honest, topic, live=RACKED)) == {}
    edited = resealed(honest, edit)
    assert [gated.digest for gated in edited.changes] == [gated.digest for gated in honest.changes]
    assert edited.fingerprint != honest.fingerprint
    (fate,) = fates(judged(edited, topic, live=RACKED)).values()
    assert fate.startswith("refused: the plan")
    assert f"{reason} (TOP501); plan again" in fate


def test_another_default_on_one_broker_than_was_shown_is_refused() -> None:
    shown = {broker: {"compression.type": "producer" if broker == 1 else "zstd"} for broker in (1, 2, 3)}
    plan = planned(TUNED, live=replace(LIVE, broker_defaults=shown))
    assert fates(judged(plan, TUNED, live=replace(LIVE, broker_defaults=shown))) == {}
    found = fates(judged(plan, TUNED, live=replace(LIVE, broker_defaults={**shown, 3: "gave no answer in time"})))
    assert (
        "default of compression.type was producer on broker 1, zstd on brokers 2, 3 when the plan was made, and is "
        "producer on broker 1, zstd on broker 2, not known on broker 3 now"
    ) in found["views"]


@pytest.mark.parametrize(("now", "shown"), [({"compression.type": "gzip"}, "gzip"), ({}, "not known")])
def test_another_default_of_the_brokers_than_was_shown_is_refused(now: dict[str, str], shown: str) -> None:
    plan = planned(TUNED, live=replace(LIVE, broker_defaults=builders.alike({"compression.type": "producer"})))
    (change,) = (gated.change for gated in plan.changes)
    assert isinstance(change, ConfigureTopic)
    assert change.broker_defaults == {"compression.type": "producer"}
    found = fates(judged(plan, TUNED, live=replace(LIVE, broker_defaults=builders.alike(now))))
    assert f"default of compression.type was producer when the plan was made, and is {shown} now" in found["views"]


@pytest.mark.parametrize("topic", [NEW, GROWS], ids=["create", "expand"])
def test_no_replica_goes_to_a_disk_that_failed_since_the_plan(topic: DesiredTopic) -> None:
    four = replace(LIVE, brokers=builders.brokers({broker: f"r{broker}" for broker in (1, 2, 3, 4)}))
    plan = planned(topic, live=four)
    (change,) = (gated.change for gated in plan.changes)
    assert isinstance(change, CreateTopic | ExpandTopic)
    broker = min(broker for row in change.assignment.values() for broker in row)
    failed = {broker: LogDirectories(held={}, failed=("/data/2",))}

    (fate,) = fates(judged(plan, topic, live=replace(four, log_directories=failed))).values()

    assert f"the plan places replicas on broker {broker}, whose log directory /data/2 has failed (TOP501)" in fate


@pytest.mark.parametrize("topic", [NEW, GROWS], ids=["create", "expand"])
def test_no_replica_goes_to_a_broker_that_is_cordoned_since_the_plan(topic: DesiredTopic) -> None:
    cordoned = replace(LIVE, log_directories=dict.fromkeys(LIVE.brokers, LogDirectories(held={}, cordoned=True)))
    two_more = {b: LogDirectories(held={}) for b in (4, 5, 6)}
    six = builders.brokers({broker: f"r{broker}" for broker in range(1, 7)})
    now = replace(cordoned, brokers=six, log_directories={**(cordoned.log_directories or {}), **two_more})

    (fate,) = fates(judged(planned(topic), topic, live=now)).values()

    assert "the plan places replicas on broker 1, which is cordoned (TOP501)" in fate


@pytest.mark.parametrize("topic", [NEW, GROWS], ids=["create", "expand"])
@pytest.mark.parametrize(
    ("then", "now", "reason"),
    [
        pytest.param("own", "managed", "in this cluster the brokers place them", id="placed by the plan"),
        pytest.param("managed", "own", "the plan places 0 partitions", id="placed by the brokers"),
    ],
)
def test_who_places_the_replicas_must_not_have_changed_since_the_plan(
    topic: DesiredTopic, then: str, now: str, reason: str
) -> None:
    plan = planned(topic, where=of_kind(then))

    (fate,) = fates(judged(plan, topic, where=of_kind(now))).values()

    # The digest of an expansion has the rows that were there, which the brokers of a managed cluster may move.
    assert (reason if topic is NEW else "its file asks for something else") in fate
    assert fates(judged(plan, topic, where=of_kind(then))) == {}


def of_kind(kind: str) -> Environment:
    cluster = msgspec.structs.replace(OPEN.spec.cluster, kind=kind)
    return replace(OPEN, spec=msgspec.structs.replace(OPEN.spec, cluster=cluster))
