from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.builders import (
    TARGET,
    change_set,
    cluster_state,
    configure_change,
    create_change,
    delete_change,
    environment,
    expand_change,
)
from topicops.model.errors import ArtifactError
from topicops.model.plans.changes import Change, GateWord, digest_of
from topicops.model.plans.plan import ChangeSet, ClusterState, GatedChange, Plan
from topicops.model.specs.environment import Limits, Policy, Risk
from topicops.steps.planning.gate import gate, strictest_of

ANYTHING_GOES = Policy(unattended=Risk.DESTRUCTIVE)
RUN, HELD, SKIPPED = GateWord.RUN, GateWord.HELD, GateWord.SKIPPED


def words(plan: Plan) -> list[GateWord]:
    return [gated.gate for gated in plan.changes]


def digests(*changes: Change) -> set[str]:
    return {digest_of(change, TARGET) for change in changes}


@pytest.mark.parametrize(
    ("unattended", "expected"),
    [
        pytest.param(Risk.SAFE, [RUN, HELD, HELD, HELD], id="safe"),
        pytest.param(Risk.NOTICE, [RUN, RUN, HELD, HELD], id="notice"),
        pytest.param(Risk.RISKY, [RUN, RUN, RUN, HELD], id="risky"),
        pytest.param(Risk.DESTRUCTIVE, [RUN, RUN, RUN, RUN], id="destructive"),
    ],
)
def test_above_what_runs_unattended_a_change_needs_an_approval(unattended: Risk, expected: list[GateWord]) -> None:
    changes = [create_change("a"), expand_change("b"), expand_change("c", risk=Risk.RISKY), delete_change("d")]
    assert words(gate(change_set(changes), environment(policy=Policy(unattended=unattended)))) == expected


def test_a_reason_says_both_sides_and_where_the_limit_stands() -> None:
    (gated,) = gate(change_set([expand_change("c", risk=Risk.RISKY)]), environment()).changes
    assert gated.reasons == ("risk risky, up to notice allowed without an approval (policy.unattended, by default)",)
    two = gate(change_set([delete_change("a"), delete_change("b")]), environment(policy=ANYTHING_GOES))
    assert two.changes[0].reasons == ("2 deletes, 1 allowed (limits.deletesPerRun, topics/environments/local.yaml:11)",)


def test_over_the_limit_of_creates_all_of_them_wait_for_an_approval() -> None:
    creates = [create_change(f"new-{number}") for number in range(3)]
    plans = change_set([*creates, expand_change("grown")], cluster=cluster_state(managed_topics=1))
    where = environment(limits=Limits(creates_per_run=2))

    held = gate(plans, where)
    assert words(held) == [HELD, HELD, HELD, RUN]
    assert held.changes[0].reasons == (
        "TOP440: 3 creates, 2 allowed: 1 topic of these files is live "
        "(limits.createsPerRun, topics/environments/local.yaml:14)",
    )
    assert all(gated.approvable for gated in held.with_gate(HELD))
    assert words(gate(plans, where, approved=digests(*creates))) == [RUN] * 4
    assert words(gate(plans, environment(limits=Limits(creates_per_run=3)))) == [RUN] * 4
    assert Limits().creates_per_run == 20


def test_an_approval_covers_exactly_the_changes_it_names() -> None:
    one, other = expand_change("a", risk=Risk.RISKY), expand_change("b", risk=Risk.RISKY)
    plan = gate(change_set([one, other]), environment(), approved=digests(one))
    assert words(plan) == [RUN, HELD]


@pytest.mark.parametrize(
    ("limits", "managed_topics", "deletes", "expected"),
    [
        pytest.param(Limits(deletes_per_run=1, deletes_percent=100), 10, 1, RUN, id="within both"),
        pytest.param(Limits(deletes_per_run=0, deletes_percent=100), 10, 1, HELD, id="deletes off"),
        pytest.param(Limits(deletes_per_run=1, deletes_percent=100), 10, 2, HELD, id="over the count"),
        pytest.param(Limits(deletes_per_run=9, deletes_percent=5), 11, 1, RUN, id="a small part is rounded up to one"),
        pytest.param(Limits(deletes_per_run=9, deletes_percent=5), 20, 2, HELD, id="over the percentage"),
        pytest.param(Limits(deletes_per_run=9, deletes_percent=5), 21, 2, RUN, id="rounded up"),
        pytest.param(Limits(deletes_per_run=9, deletes_percent=1), 101, 2, RUN, id="rounded up by a hundredth"),
        pytest.param(Limits(deletes_per_run=9, deletes_percent=0), 500, 1, RUN, id="at least one"),
    ],
)
def test_over_a_limit_all_deletes_are_held(
    limits: Limits, managed_topics: int, deletes: int, expected: GateWord
) -> None:
    changes = [delete_change(f"t{n}") for n in range(deletes)]
    world = change_set(changes, cluster=cluster_state(managed_topics=managed_topics))
    assert set(words(gate(world, environment(limits=limits, policy=ANYTHING_GOES)))) == {expected}


def test_deletes_over_a_limit_hold_nothing_but_deletes() -> None:
    changes = [create_change("a"), expand_change("b"), configure_change("c"), delete_change("d"), delete_change("e")]
    world = change_set(changes, cluster=cluster_state(managed_topics=2))
    found = gate(world, environment(policy=ANYTHING_GOES))
    assert words(found) == [RUN, RUN, RUN, HELD, HELD]
    assert found.change_set is world


def test_a_part_of_a_plan_is_held_to_the_whole_plans_share_of_deletes() -> None:
    part = change_set([delete_change("a")], cluster=replace(cluster_state(managed_topics=20), planned_deletes=2))
    where = environment(policy=ANYTHING_GOES, limits=Limits(deletes_per_run=1))
    (held,) = gate(part, where, approved=digests(*part.changes)).changes
    assert (held.gate, held.approvable) == (HELD, False)
    assert held.reasons[0].startswith("2 deletes, 1 allowed: 5 % of 20 managed topics (limits.deletesPercent, ")


@pytest.mark.parametrize("name", ["__consumer_offsets", "_schemas", "payments.ledger"])
def test_a_topic_that_is_protected_by_now_is_not_touched_even_with_an_approval(name: str) -> None:
    changes = [expand_change(name), configure_change(name), delete_change(name)]
    policy = Policy(unattended=Risk.DESTRUCTIVE, protected_topics=("payments.*",))
    plan = gate(change_set(changes), environment(policy=policy), approved=digests(*changes))
    assert words(plan) == [SKIPPED] * 3
    assert all(entry.reasons[0].startswith("TOP408: the topic is protected by the pattern") for entry in plan.changes)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("_schemas", "TOP408: the topic is protected by the pattern _schemas (built in)"),
        ("pay", "TOP408: the topic is protected by the pattern p* (policy.protectedTopics, by default)"),
    ],
)
def test_a_pattern_is_named_with_the_place_that_it_comes_from(name: str, reason: str) -> None:
    (entry,) = gate(change_set([delete_change(name)]), environment(policy=Policy(protected_topics=("p*",)))).changes
    assert entry.reasons == (reason,)


def test_where_deletes_by_name_are_refused_no_approval_helps_a_topic_without_id() -> None:
    by_name = replace(delete_change("old"), topic_id=None)
    refused, allowed = (
        gate(change_set([by_name]), environment(policy=policy), approved=digests(by_name)).changes[0]
        for policy in (Policy(delete_by_name="refuse"), Policy(delete_by_name="allow"))
    )
    assert (refused.gate, allowed.gate) == (SKIPPED, RUN)
    assert refused.reasons[0].startswith("TOP429: the topic has no topic id")


def test_an_approval_lifts_the_limit_of_deletes_and_not_that_of_their_part() -> None:
    changes = [delete_change("a"), delete_change("b")]
    few = gate(change_set(changes), environment(), approved=digests(changes[0]))
    assert words(few) == [RUN, HELD]
    many = gate(change_set(changes, cluster=cluster_state(managed_topics=2)), environment(), approved=digests(*changes))
    assert words(many) == [HELD, HELD]
    assert [gated.reasons for gated in many.changes] == [
        ("2 deletes, 1 allowed: 5 % of 2 managed topics (limits.deletesPercent, topics/environments/local.yaml:12)",)
    ] * 2


def test_what_no_approval_could_lift_is_in_no_question() -> None:
    changes = [expand_change("c", risk=Risk.RISKY), delete_change("a"), delete_change("b")]
    held = gate(change_set(changes, cluster=cluster_state(managed_topics=2)), environment()).changes
    assert [gated.approvable for gated in held] == [True, False, False]
    assert all(gated.approvable for gated in gate(change_set(changes), environment()).changes)


@pytest.mark.parametrize(
    ("replicas_per_run", "expected"),
    [
        pytest.param(27, [RUN, RUN, RUN], id="all fit"),
        pytest.param(26, [RUN, RUN, SKIPPED], id="the last waits"),
        pytest.param(9, [RUN, SKIPPED, SKIPPED], id="one fits"),
        pytest.param(8, [SKIPPED, SKIPPED, SKIPPED], id="none fits"),
    ],
)
def test_new_replicas_are_counted_in_the_order_of_the_plan(replicas_per_run: int, expected: list[GateWord]) -> None:
    changes = [create_change("a"), create_change("b"), expand_change("c")]
    plan = gate(change_set(changes), environment(limits=Limits(replicas_per_run=replicas_per_run)))
    assert words(plan) == expected


def test_a_change_too_large_for_one_run_leaves_the_budget_to_others() -> None:
    changes = [create_change("a", 9), create_change("b", 1), configure_change("c")]
    plan = gate(change_set(changes), environment(limits=Limits(replicas_per_run=3)))
    assert words(plan) == [SKIPPED, RUN, RUN]
    assert plan.changes[0].reasons == (
        "27 new replicas in this run, 3 allowed (limits.replicasPerRun, topics/environments/local.yaml:13)",
    )


def test_a_held_change_uses_no_budget() -> None:
    changes = [expand_change("a", risk=Risk.RISKY), expand_change("b")]
    limits = Limits(replicas_per_run=9)
    assert words(gate(change_set(changes), environment(limits=limits))) == [HELD, RUN]
    assert words(gate(change_set(changes), environment(limits=limits), approved=digests(changes[0]))) == [RUN, SKIPPED]


@pytest.mark.parametrize(("after", "expected"), [(12, RUN), (13, SKIPPED)])
def test_an_expansion_beyond_the_factor_is_skipped(after: int, expected: GateWord) -> None:
    (gated,) = gate(change_set([expand_change("a", 3, after)]), environment()).changes
    assert gated.gate is expected
    too_many = "TOP405: 13 partitions, 12 allowed: 4 times 3 (limits.expansionFactor, by default)"
    assert gated.reasons == ((too_many,) if expected is SKIPPED else ())


@pytest.mark.parametrize(
    ("about", "reason"),
    [
        pytest.param(
            cluster_state(live_brokers=2),
            "TOP433: 2 live brokers, 3 needed (cluster.minLiveBrokers, ",
            id="too few brokers",
        ),
        pytest.param(cluster_state(has_controller=False), "TOP432: 0 controllers, 1 needed", id="no controller"),
        pytest.param(cluster_state(offline=1), "1 offline partition, 0 allowed", id="an offline partition"),
    ],
)
def test_in_a_cluster_that_is_not_whole_only_configs_run(about: ClusterState, reason: str) -> None:
    changes = [create_change("a"), expand_change("b"), configure_change("c"), delete_change("d")]
    plan = gate(change_set(changes, cluster=about), environment(min_live_brokers=3), approved=digests(*changes))
    assert words(plan) == [SKIPPED, SKIPPED, RUN, SKIPPED]
    assert all(gated.reasons[0].startswith(reason) for gated in plan.with_gate(SKIPPED))


def test_a_whole_cluster_drops_nothing() -> None:
    changes = [create_change("a"), expand_change("b"), configure_change("c")]
    plan = gate(change_set(changes, cluster=cluster_state(live_brokers=3, offline=0)), environment(min_live_brokers=3))
    assert words(plan) == [RUN, RUN, RUN]


def test_while_another_environment_comes_first_nothing_runs_and_nobody_is_asked() -> None:
    create, delete = create_change("a"), delete_change("b")
    waits = ["waits for staging: it was never verified"]
    plan = gate(change_set((create, delete)), environment(), approved=digests(create, delete), waits=waits)
    assert words(plan) == [SKIPPED, SKIPPED]
    assert [(gated.reasons, gated.approvable) for gated in plan.changes] == [(tuple(waits), False)] * 2


def gated_as(word: GateWord, *, approvable: bool = False) -> Plan:
    change = expand_change("a", risk=Risk.RISKY)
    entry = GatedChange(
        change=change, digest=digest_of(change, TARGET), gate=word, reasons=(word.value,), approvable=approvable
    )
    return Plan(change_set=change_set([change]), changes=(entry,))


@pytest.mark.parametrize("first", list(GateWord))
@pytest.mark.parametrize("second", list(GateWord))
def test_of_two_gates_the_stricter_word_counts(first: GateWord, second: GateWord) -> None:
    order = [RUN, HELD, SKIPPED]
    (entry,) = strictest_of(gated_as(first), gated_as(second)).changes
    assert entry.gate is max(first, second, key=order.index)
    assert entry.reasons == (entry.gate.value,)


@pytest.mark.parametrize("first_approvable", [True, False])
@pytest.mark.parametrize("second_approvable", [True, False])
def test_held_twice_is_approvable_only_if_both_gates_say_so_and_keeps_every_reason_once(
    first_approvable: bool, second_approvable: bool
) -> None:
    first, second = (gated_as(HELD, approvable=asked) for asked in (first_approvable, second_approvable))
    (entry,) = first.changes
    other = replace(second, changes=(replace(second.changes[0], reasons=("held", "too many")),))
    (both,) = strictest_of(replace(first, changes=(replace(entry, reasons=("risky", "held")),)), other).changes
    assert both.approvable is (first_approvable and second_approvable)
    assert both.reasons == ("held", "too many", "risky")


def test_an_approved_change_runs_without_a_reason_left() -> None:
    change = expand_change("a", risk=Risk.RISKY)
    first, approved = gate(change_set([change]), environment()), digests(change)
    (entry,) = strictest_of(
        first, gate(change_set([change]), environment(), approved=approved), approved=approved
    ).changes
    assert entry == GatedChange(change=change, digest=digest_of(change, TARGET), gate=RUN)
    assert entry.approvable is False


def test_an_approval_counts_against_the_earlier_gate_where_it_was_approvable() -> None:
    approved = {gated_as(HELD).changes[0].digest}
    assert words(strictest_of(gated_as(HELD, approvable=True), gated_as(RUN), approved=approved)) == [RUN]
    assert words(strictest_of(gated_as(HELD, approvable=True), gated_as(RUN))) == [HELD]
    assert words(strictest_of(gated_as(HELD), gated_as(RUN), approved=approved)) == [HELD]
    assert words(strictest_of(gated_as(SKIPPED), gated_as(RUN), approved=approved)) == [SKIPPED]
    assert words(strictest_of(gated_as(HELD, approvable=True), gated_as(SKIPPED), approved=approved)) == [SKIPPED]


def test_gates_of_different_changes_are_not_compared() -> None:
    with pytest.raises(ArtifactError, match=r"^the two gates are not of the same changes; plan again$"):
        strictest_of(gated_as(RUN), gate(change_set([create_change("b")]), environment()))


# --- properties -------------------------------------------------------------------------------------------------------

LIMITS = st.builds(
    Limits,
    creates_per_run=st.integers(0, 4),
    deletes_per_run=st.integers(0, 4),
    deletes_percent=st.integers(0, 100),
    replicas_per_run=st.integers(0, 60),
    expansion_factor=st.integers(1, 4),
)


@st.composite
def change_sets(draw: st.DrawFn) -> ChangeSet:
    makers = [create_change, expand_change, configure_change, delete_change]
    counts = [draw(st.integers(0, 4)) for _ in makers]
    changes = [make(f"{make.__name__}-{n}") for make, count in zip(makers, counts, strict=True) for n in range(count)]
    return change_set(changes, cluster=cluster_state(managed_topics=draw(st.integers(0, 60))))


@given(world=change_sets(), limits=LIMITS, unattended=st.sampled_from(Risk), approve=st.booleans())
def test_deletes_over_a_limit_never_run_unasked(
    world: ChangeSet, limits: Limits, unattended: Risk, approve: bool
) -> None:
    where = environment(limits=limits, policy=Policy(unattended=unattended))
    approved = digests(*world.changes) if approve else set()
    plan = gate(world, where, approved=approved)
    deletes = [gated for gated in plan.changes if gated.change.action == "delete"]
    part = max(1, -(-world.cluster.managed_topics * limits.deletes_percent // 100))
    if len(deletes) > part or (len(deletes) > limits.deletes_per_run and not approve):
        assert all(gated.gate is HELD for gated in deletes)


@given(world=change_sets(), limits=LIMITS)
def test_what_runs_never_exceeds_the_budget_and_every_stop_has_a_reason(world: ChangeSet, limits: Limits) -> None:
    plan = gate(world, environment(limits=limits))
    running = [gated.change for gated in plan.with_gate(RUN)]
    new_rows = [row for change in running for row in getattr(change, "assignment", {}).values()]
    assert sum(map(len, new_rows)) <= limits.replicas_per_run
    assert all(bool(gated.reasons) == (gated.gate is not RUN) for gated in plan.changes)
    assert [gated.change for gated in plan.changes] == list(world.changes)


@given(world=change_sets(), one=LIMITS, other=LIMITS)
def test_the_stricter_of_two_gates_lets_nothing_run_that_either_stops(
    world: ChangeSet, one: Limits, other: Limits
) -> None:
    first, second = (gate(world, environment(limits=limits, policy=ANYTHING_GOES)) for limits in (one, other))
    both = strictest_of(first, second)
    for a, b, c in zip(first.changes, second.changes, both.changes, strict=True):
        assert (c.gate is RUN) == (a.gate is RUN and b.gate is RUN)
    assert replace(both, changes=()) == replace(second, changes=())
