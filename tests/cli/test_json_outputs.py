"""Each JSON that programs read fits its schema: what every command prints with `--format json`, and what is kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from fixtures.quality import quality_report
from fixtures.schemas.json_outputs import OUTPUTS
from fixtures.schemas.outputs import schema_of_output
from fixtures.simulated import CLUSTER_ID, Simulated
from fixtures.workflow import git
from topicops.features.moves.record import MOVES, EndedMove, MovesRecord, OwnedRate, PartitionMove, Stage, TopicMove
from topicops.flow import single_steps
from topicops.flow.runs.run import EnvironmentRun, home_folder
from topicops.model.plans.changes import MoveReason
from topicops.model.runs.results import FailingRow, QualityResult
from topicops.plugged import after_task

Json = dict[str, Any]
Before = Callable[[Simulated], object]
SCHEMAS: dict[str, Any] = {kind: schema_of_output(kind, output.kind) for kind, output in OUTPUTS.items()}
PART_OF_A_PLAN = set(SCHEMAS["plan"]["$defs"])
FIRST: dict[str, list[Json]] = json.loads((Path(__file__).parents[1] / "data" / "json-outputs-1.0.json").read_text())
"""What the first version with these schemas wrote, by kind. It stays as it is."""

FAILED = QualityResult(
    rule="Q11",
    title="Every partition has a live leader",
    severity="critical",
    success=False,
    rows_checked=3,
    rows_failed=1,
    examples=(FailingRow(row={"topic": "stray", "partition": 0}, was_so_before=True),),
)


@pytest.fixture
def shop(simulated: Simulated) -> Simulated:
    """Three changes, which may run; a topic that import writes with an exception, and one that it leaves out."""
    simulated.workspace.topic("bills", partitions=1, configs={"retention.ms": "1d"})
    simulated.cluster.put_topic("bills", (1, 2, 3), configs={"retention.ms": "604800000"})
    simulated.workspace.topic("new")
    simulated.workspace.tombstone("old")
    simulated.cluster.put_topic("old", (1, 2, 3))
    odd = {"min.insync.replicas": "4", "leader.replication.throttled.replicas": "*"}
    simulated.cluster.put_topic("stray", (1, 2, 3), configs=odd)
    simulated.cluster.put_topic("mixed", (1, 2, 3), (1, 2))
    return simulated


# ---- what is so before the command ----


def nothing(_: Simulated) -> None:
    pass


def planned(shop: Simulated) -> None:
    shop.workspace.plan()


def lost(shop: Simulated) -> None:
    """Somebody deletes a topic outside git."""
    shop.planned()
    shop.cluster.remove_topic("bills")


def compared(shop: Simulated) -> None:
    single_steps.record_drift(shop.planned("2"))


def applied(shop: Simulated) -> EnvironmentRun:
    run = shop.planned()
    shop.apply(run)
    return run


def reported(shop: Simulated) -> None:
    """As by a DAG run, whose quality rules Spark checks."""
    run = applied(shop)
    for suite in ("before", "after"):
        run.store.write_value(f"quality-{suite}.json", quality_report(suite, [FAILED]))
    single_steps.report(run)
    after_task(run)


def a_broker_stopped(shop: Simulated) -> None:
    shop.cluster.stop_broker(3)


def with_a_move(shop: Simulated) -> None:
    """The loss of broker 1 leaves a partition offline until its move has ended."""
    shop.workspace.topic("single", partitions=1, replicationFactor=3)
    shop.cluster.put_topic("single", (1,))
    planned(shop)


def moving(shop: Simulated) -> None:
    """One topic moves by the record, one by somebody else, and one has moved."""
    at = datetime(2026, 11, 29, 12, tzinfo=UTC)
    partition = PartitionMove(
        origin=(1,), target=(1, 2), stage=Stage.ASKED, asked_at=at, copied_bytes=1000, size_bytes=4000, grown_at=at
    )
    move = TopicMove(
        topic="bills",
        identity="a",
        why=MoveReason.FACTOR,
        digest="d",
        run="cli/1",
        accepted_at=at,
        partitions={0: partition},
    )
    ended = EndedMove(topic="old", why=MoveReason.DRAIN, run="cli/1", partitions=2, status="done", at=at)
    record = MovesRecord(
        cluster_id=CLUSTER_ID,
        topics=(move,),
        rates=(OwnedRate(broker=1, rate=50),),
        ended=(ended,),
        notes=("bills-0 waits",),
        stepped_at=at + timedelta(minutes=1),
    )
    MOVES.of(home_folder(), "local").write(record)
    shop.cluster.start_reassignment("stray", 0, adding=(4,), removing=(1,))


def a_preferred_leader_stopped(shop: Simulated) -> None:
    shop.cluster.put_topic("led", (3, 1, 2))
    a_broker_stopped(shop)


def two_environments(shop: Simulated) -> None:
    shop.workspace.write_environment()
    local = Path("topics/environments/local.yaml")
    local.with_name("second.yaml").write_text(local.read_text().replace("name: local", "name: second"))


def of_another_tool(_: Simulated) -> None:
    Path("other").mkdir()
    Path("other/t.yaml").write_text("meta: {name: more.topics}\nspec: {partitions: 1, settings: {nobodys.x: 1}}\n")


def spoiled(shop: Simulated) -> None:
    """One file that an edit would mend, one that another name would, and one with a field twice."""
    new, bills = shop.workspace.path_of("new"), shop.workspace.path_of("bills")
    new.with_name("twice.yaml").write_text("kind: Topic\nkind: Topic\n")
    new.write_text(new.read_text().replace("keyed: false", "partitions: 010"))
    bills.rename(bills.with_name("bils.yaml"))


def spoiled_since_a_commit(_: Simulated) -> None:
    """The files of topics are new since then, and as ``spoiled`` has left them."""
    git(Path(), "init", "-q")
    git(Path(), "add", "topics/environments")
    git(Path(), "commit", "-qm", "An environment")


def verified(shop: Simulated) -> None:
    a_broker_stopped(shop)
    shop.workspace.run("verify", "--environment", "local")


# ---- the documents ----

PRINTED: Sequence[tuple[str, Before, str]] = [
    ("plan", nothing, "plan --environment local --engine python --out plan.json"),
    ("plan", nothing, "plan plan.json"),
    ("plan", nothing, "rebalance --environment local"),
    ("plan", nothing, "drain 3 --environment local"),
    ("report", nothing, "apply --environment local --yes"),
    ("report", a_broker_stopped, "verify --environment local"),
    ("fleet", two_environments, "plan --environment all --engine python"),
    ("fleet", two_environments, "drift --environment all --engine python"),
    ("fleet", two_environments, "verify --environment all"),
    ("drift", lost, "drift --environment local"),
    ("diagnostics", spoiled, "validate"),
    ("diagnostics", spoiled_since_a_commit, "ci validate --since HEAD"),
    ("explanation", nothing, "explain bills --environment local"),
    ("doctor", nothing, "doctor --environment local"),
    ("topics", nothing, "list --environment local"),
    ("topics", nothing, "list --environment local --under-min-isr"),
    ("why", a_broker_stopped, "why bills --environment local"),
    ("rehearsal", planned, "rehearse plan.json --without-broker 2 --step 0"),
    ("rack-losses", nothing, "rehearse --environment local --without-each-rack"),
    ("move-losses", with_a_move, "rehearse plan.json --without-each-broker"),
    ("leaders", a_preferred_leader_stopped, "leaders --environment local"),
    ("moves", moving, "moves --environment local"),
    ("moves", nothing, "moves --environment local"),
    ("import", nothing, "import --environment local --owner team-tests"),
    ("import", of_another_tool, "import --environment local --owner team-tests --from topicctl other"),
    ("adopt", nothing, "adopt * --environment local"),
    ("undo", applied, "undo 1"),
    ("undo", nothing, "undo 1"),
    ("history", reported, "drift --environment local --since 1d"),
    ("history", reported, "audit past stray --environment local"),
    ("history", nothing, "audit past bills --environment local"),
    ("history", nothing, "audit quality --environment local"),
    ("audit-runs", applied, "audit runs"),
    ("audit-lines", applied, "audit topic bills"),
    ("audit-lines", nothing, "audit run 1"),
    ("audit-check", applied, "audit verify"),
    ("error", nothing, "drift --environment nowhere"),
    ("error", spoiled, "plan --environment local"),
]
RUN = "runs/topic_pipeline_local/1"
KEPT: Sequence[tuple[str, Before, str]] = [
    ("plan", reported, f"{RUN}/plan.json"),
    ("report", reported, f"{RUN}/report.json"),
    ("fleet", nothing, "runs/cli/*/fleet.json"),
    ("drift", compared, "runs/topic_pipeline_local/2/drift.json"),
    ("quality", reported, f"{RUN}/quality-before.json"),
    ("quality", nothing, f"{RUN}/quality-after.json"),
    ("facts", reported, f"{RUN}/facts-before.json"),
    ("facts", verified, "runs/cli/*/facts-after.json"),
    ("audit-line", applied, "audit/local.jsonl"),
    ("history-line", reported, "history/local.jsonl"),
]


def printed(shop: Simulated, kind: str) -> Iterator[tuple[str, Json]]:
    """Yield each document with the command that prints it."""
    for found, before, words in PRINTED:
        if found == kind:
            before(shop)
            command = next((each for each in OUTPUTS[kind].commands if f"{words} ".startswith(f"{each} ")), "")
            yield command, json.loads(shop.workspace.run(*words.split(), "--format", "json").out)


def kept(shop: Simulated, kind: str) -> Iterator[tuple[str, Json]]:
    """Yield each document with the file that holds it."""
    for found, before, pattern in KEPT:
        if found == kind:
            before(shop)
            for file in Path("home").glob(pattern):
                text = file.read_text()
                for each in [text] if file.suffix == ".json" else text.splitlines():
                    yield file.name, json.loads(each)


def complaints(schema: Json, document: Json) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(document)]


def closed(schema: Json) -> Json:
    """Without the room for fields of later versions."""
    parts = {
        n: part | ({"additionalProperties": False} if "properties" in part else {})
        for n, part in schema["$defs"].items()
    }
    return {**schema, "$defs": parts}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_what_is_written_fits_its_schema_and_shows_each_part_of_it(shop: Simulated, kind: str) -> None:
    found = [*printed(shop, kind), *kept(shop, kind)]
    documents, schema = [document for _, document in found], SCHEMAS[kind]
    Draft202012Validator.check_schema(schema)

    files = {Path(file.replace("<environment>", "local")).name for file in OUTPUTS[kind].files}
    assert {source for source, _ in found} == ({*OUTPUTS[kind].commands, *files} or {""})
    for document in documents:
        assert complaints(closed(schema), document) == []
        assert complaints(schema, {**document, "novelty": 1}) == []
    for name in set(schema["$defs"]) - PART_OF_A_PLAN:
        without = {**schema, "$defs": {**schema["$defs"], name: False}}
        assert any(complaints(without, document) for document in documents), f"no document has a {name}"


LATER = {"AuditLine"}
"""Parts with fields that came with a later minor version of their format."""


def test_each_field_is_required_but_those_that_a_later_minor_version_adds() -> None:
    """A file of an earlier one still fits."""
    parts = {name: part for schema in SCHEMAS.values() for name, part in schema["$defs"].items()}
    optional = {n for n, part in parts.items() if set(part.get("properties", ())) > set(part.get("required", ()))}
    assert optional - PART_OF_A_PLAN == LATER


@pytest.mark.parametrize("kind", OUTPUTS)
def test_what_the_first_version_wrote_fits(kind: str) -> None:
    """Within v1 no field goes, none is changed, and none that comes is required."""
    for document in FIRST[kind]:
        assert complaints(closed(SCHEMAS[kind]), document) == []
