"""Apply hands reassignments to the mover of the installation, and the runs after it know what it accepted."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fakes.fake_moves import FakeMoves
from fixtures.simulated import CLUSTER_ID, Simulated, outcomes_of
from topicops.edges.home.audit_files import read_audit_log
from topicops.edges.home.journal import open_intents, read_journal
from topicops.flow import single_steps, verifying, whole_runs
from topicops.flow.runs.access import NO_MOVES, Moves
from topicops.flow.runs.run import EnvironmentRun, audit_folder, notes_of, read_environment
from topicops.model.errors import ArtifactError, ExitStatus, UsageError
from topicops.model.plans.changes import Action
from topicops.model.plans.plan import Plan
from topicops.model.runs.moves import KnownMoves, TopicMoves
from topicops.model.runs.results import OutcomeStatus

DONE, MOVING, REFUSED = OutcomeStatus.DONE, OutcomeStatus.MOVING, OutcomeStatus.REFUSED
NOT_SENT, UNKNOWN = OutcomeStatus.NOT_SENT, OutcomeStatus.UNKNOWN


def wants_three_replicas(simulated: Simulated, moves: Moves) -> EnvironmentRun:
    """Return a run with a plan: ``orders`` gets three replicas instead of one, and ``old`` goes."""
    simulated.workspace.topic("orders")
    simulated.workspace.tombstone("old")
    simulated.cluster.put_topic("orders", (1,))
    simulated.cluster.put_topic("old", (1, 2, 3))
    simulated.moves = moves
    return simulated.planned()


def statuses(run: EnvironmentRun) -> Mapping[Action, OutcomeStatus]:
    return {outcome.action: outcome.status for outcome in outcomes_of(run)}


def record(simulated: Simulated, plan: Plan) -> None:
    """Have the moves of a plan known as those that a mover has accepted."""
    (gated,) = (gated for gated in plan.changes if gated.change.action == "reassign")
    orders = TopicMoves(
        identity=gated.change.precondition.identity or "",
        digest=gated.digest,
        partitions={0},
        targets={0: (1, 2, 3)},
        sentence="1 of 1 partition waits",
    )
    simulated.tell_moves = lambda *_: KnownMoves(cluster_id=CLUSTER_ID, topics={"orders": orders})


def unreadable(*_: object) -> KnownMoves:
    raise ArtifactError("moves/local.json: cannot be read")


def test_the_mover_gets_the_lease_the_files_and_who_approved_what(simulated: Simulated) -> None:
    moves = FakeMoves()
    run = wants_three_replicas(simulated, moves)
    single_steps.apply(run)

    assert statuses(run) == {"reassign": MOVING, "delete": DONE}
    assert moves.fake.begun == [("orders",)]
    given = moves.given
    assert given["access"].run == run.name
    assert given["access"].environment.name == "local"
    assert given["desired"].topics["orders"].replication_factor == 3
    assert given["approvers"] == {}
    assert given["origin"].run == run.name
    assert set(given["origin"].principals) == {"reassign", "delete"}
    given["lease"].confirm()
    assert given["reader"].cluster_id() == CLUSTER_ID
    assert [line.action for line in read_audit_log(audit_folder(run.home), "local").lines] == ["delete"]


def test_the_mover_s_connection_is_asked_for_before_anything_is_sent(simulated: Simulated) -> None:
    run = wants_three_replicas(simulated, FakeMoves())
    simulated.workspace.cluster = {
        **simulated.workspace.cluster,
        "kafka": {"bootstrapServers": "127.0.0.1:1", "mover": "nobody"},
    }
    with pytest.raises(UsageError, match=r"kafka\.mover"):
        simulated.apply(run)

    assert simulated.events == []


def test_where_nothing_moves_replicas_a_reassignment_is_refused_and_no_delete_follows(simulated: Simulated) -> None:
    run = wants_three_replicas(simulated, FakeMoves())
    simulated.moves = NO_MOVES
    single_steps.apply(run)

    assert statuses(run) == {"reassign": REFUSED, "delete": NOT_SENT}
    assert simulated.cluster.requests == []


def test_deletes_of_their_own_task_follow_a_move_that_has_begun(simulated: Simulated) -> None:
    moves = FakeMoves()
    run = wants_three_replicas(simulated, moves)
    for action in ("reassign", "delete"):
        single_steps.apply(run, actions=[action])

    assert statuses(run) == {"reassign": MOVING, "delete": DONE}


def test_a_run_that_begins_moves_is_a_success(simulated: Simulated) -> None:
    moves = FakeMoves()
    run = wants_three_replicas(simulated, moves)
    moves.fake.when_begun = lambda: (
        record(simulated, run.read_plan()),
        simulated.cluster.start_reassignment("orders", 0, adding=[2, 3], removing=[]),
    )
    ended = whole_runs.apply_plan(run, run.read_plan())

    assert (ended.status, ended.report.is_success) == (ExitStatus.SUCCESS, True)
    said = {check.id: check.message for check in ended.report.checks if check.topic == "orders" and check.message}
    assert said == {"V04": "1 of 1 partition waits"}


@pytest.mark.parametrize(
    ("is_recorded", "status", "said"),
    [
        pytest.param(True, MOVING, "its moves are recorded, and later steps carry them on", id="recorded"),
        pytest.param(False, UNKNOWN, "it is not in effect", id="not recorded"),
    ],
)
def test_the_next_run_says_what_became_of_moves_whose_run_was_killed(
    simulated: Simulated, is_recorded: bool, status: OutcomeStatus, said: str
) -> None:
    moves = FakeMoves()
    run = wants_three_replicas(simulated, moves)

    def die() -> None:
        if is_recorded:
            record(simulated, run.read_plan())
        raise KeyboardInterrupt

    moves.fake.when_begun = die
    with pytest.raises(KeyboardInterrupt):
        single_steps.apply(run)
    journal = run.store.path("journal-all-1.jsonl")
    assert [intent.topic for intent in open_intents(read_journal(journal))] == ["orders"]

    simulated.workspace.topic("another")
    later = simulated.planned("2")
    single_steps.apply(later, actions=["create"])

    (closed,) = (entry for entry in read_journal(journal) if entry.kind == "outcome")
    assert closed.status is status
    assert any("reassign orders" in note and said in note for note in notes_of(later))
    assert [line.action for line in read_audit_log(audit_folder(run.home), "local").lines] == ["create"]


def test_moves_whose_record_cannot_be_read_count_as_those_of_somebody_else(simulated: Simulated) -> None:
    run = wants_three_replicas(simulated, FakeMoves())
    access = run.access(read_environment(run))
    record(simulated, run.read_plan())
    assert set(verifying.topics_that_move(access)) == {"orders"}

    simulated.tell_moves = unreadable
    assert verifying.topics_that_move(access) == {}
