"""Between files and cluster without a plan: specs for what lives, and what differs. Nothing goes to a cluster."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from topicops.flow.run import Facts, Run, cluster_reader, now, read_environment, read_specs
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import UsageError
from topicops.model.specs.environment import Environment

if TYPE_CHECKING:
    from topicops.steps.authoring.import_topics import Before, ImportOptions, ImportResult
    from topicops.steps.planning.drift import DriftEntry


def import_topics(run: Run, wishes: ImportOptions) -> ImportResult:
    """Write specs for the live topics that none describes. Files that are there stay, but for new exceptions.

    Raises:
        SpecError: With every problem of the files that are there.
        WrongTargetError: Another cluster answers.
        SpecFileError: A file cannot be written.

    """
    from topicops.edges.specs.writer import document_of
    from topicops.steps.authoring.import_topics import import_topics as import_step

    before = _before(run)
    adoption = import_step(before, wishes, partial(document_of, run.topics))
    _write(run, adoption, before.exceptions_text)
    return adoption


def _before(run: Run) -> Before:
    from topicops.edges.specs.reader import ROOM_FOR_EXCEPTIONS, read_tree, regular_text
    from topicops.steps.authoring.exceptions_file import exceptions_file
    from topicops.steps.authoring.import_topics import Before
    from topicops.steps.specs.validate import validate

    at = now()
    run.progress(f"Reading {run.topics}")
    tree = read_tree(run.topics)
    environment, desired = validate(tree, environment=run.environment, now=at).require()
    run.progress(f"Reading the live topics of {run.environment}")
    return Before(
        tree=tree,
        environment=environment,
        desired=desired,
        live=live_side(run, environment),
        exceptions_text=regular_text(run.topics / exceptions_file(run.environment), room=ROOM_FOR_EXCEPTIONS),
        now=at,
    )


def live_side(run: Run, environment: Environment) -> ClusterSnapshot:
    """The environment's own cluster as it is now. Raises ``WrongTargetError`` for another one."""
    from topicops.steps.planning.cluster_guard import require_cluster_id

    with cluster_reader(run, environment) as reader:
        require_cluster_id(reader.cluster_id(), environment)
        return reader.snapshot()


def _write(run: Run, adoption: ImportResult, exceptions_before: str | None) -> None:
    """Exceptions first, topics last: what a cut-off leaves is valid, and another import goes on from there."""
    from topicops.edges.specs.writer import replace_text, write_new
    from topicops.steps.authoring.exceptions_file import exceptions_file

    if adoption.exceptions_text is not None:
        file = exceptions_file(run.environment)
        if exceptions_before is None:
            write_new(run.topics, {file: adoption.exceptions_text})
        else:
            replace_text(run.topics / file, adoption.exceptions_text, before=exceptions_before)
    write_new(run.topics, adoption.files)


def drift(run: Run, *, only: str | None = None) -> tuple[DriftEntry, ...]:
    """Where the live cluster differs from the files. Raises ``SpecError`` or ``WrongTargetError``; writes nothing."""
    from topicops.steps.planning.drift import drift as drift_step

    run.progress(f"Reading {run.topics}")
    environment, desired = read_specs(run).require()
    run.progress(f"Reading the live topics of {run.environment}")
    return drift_step(desired, live_side(run, environment), environment, only=only)


def tell_drift(run: Run, *, only: str | None = None) -> Facts:
    """``drift.json``, and a line for each difference between the files and the snapshot of this run."""
    from topicops.steps.planning.drift import counted
    from topicops.steps.planning.drift import drift as drift_step
    from topicops.steps.reporting.cluster.drift_text import drift_json, drift_lines, drift_summary

    entries = drift_step(run.desired, run.live, read_environment(run), only=only)
    for line in drift_lines(entries):
        run.progress(line)
    run.progress(drift_summary(entries))
    path = run.store.write_json("drift.json", drift_json(entries))
    counts: Facts = {kind.value: topics for kind, topics in counted(entries).items()}
    return {"path": str(path), "summary": drift_summary(entries), "differences": len(entries), **counts}


def topic_id(run: Run, topic: str) -> str:
    """The id of a live topic. Raises ``UsageError`` where it has none, or is not there."""
    from topicops.steps.planning.cluster_guard import require_cluster_id

    environment, _ = read_specs(run).require()
    with cluster_reader(run, environment) as reader:
        require_cluster_id(reader.cluster_id(), environment)
        live = reader.traces([topic])[topic].live
    if live is None or live.topic_id is None:
        problem = "is not live" if live is None else "has no id, as topics of old clusters"
        raise UsageError(f"{topic} {problem} in {environment.name}; leave this environment out")
    return live.topic_id
