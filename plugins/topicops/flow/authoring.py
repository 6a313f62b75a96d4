"""Write specs: for the live topics that none describes, and what a tombstone needs to know. No cluster is changed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from topicops.flow.inspecting import read_live_topics
from topicops.flow.run import Run, now, read_specs
from topicops.model.errors import UsageError

if TYPE_CHECKING:
    from topicops.steps.authoring.import_topics import Before, ImportOptions, ImportResult


def import_topics(run: Run, options: ImportOptions) -> ImportResult:
    """Write specs for the live topics that none describes. Files that are there stay, but for new exceptions.

    Raises:
        SpecError: With every problem of the files that are there.
        WrongTargetError: Another cluster answers.
        SpecFileError: A file cannot be written.

    """
    from topicops.edges.specs.writer import document_of
    from topicops.steps.authoring.import_topics import import_topics as import_step

    before = _before(run)
    result = import_step(before, options, partial(document_of, run.topics))
    _write(run, result, before.exceptions_text)
    return result


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
        live=read_live_topics(run.access(environment)),
        exceptions_text=regular_text(run.topics / exceptions_file(run.environment), room=ROOM_FOR_EXCEPTIONS),
        now=at,
    )


def _write(run: Run, result: ImportResult, exceptions_before: str | None) -> None:
    """Exceptions first, topics last: what a cut-off leaves is valid, and another import goes on from there."""
    from topicops.edges.specs.writer import replace_text, write_new
    from topicops.steps.authoring.exceptions_file import exceptions_file

    if result.exceptions_text is not None:
        file = exceptions_file(run.environment)
        if exceptions_before is None:
            write_new(run.topics, {file: result.exceptions_text})
        else:
            replace_text(run.topics / file, result.exceptions_text, before=exceptions_before)
    write_new(run.topics, result.files)


def topic_id(run: Run, topic: str) -> str:
    """The id of a live topic. Raises ``UsageError`` where it has none, or is not there."""
    from topicops.steps.planning.cluster_guard import require_cluster_id

    environment, _ = read_specs(run).require()
    with run.access(environment).reader() as reader:
        require_cluster_id(reader.cluster_id(), environment)
        live = reader.traces([topic])[topic].live
    if live is None or live.topic_id is None:
        problem = "is not live" if live is None else "has no id, as topics of old clusters"
        raise UsageError(f"{topic} {problem} in {environment.name}; leave this environment out")
    return live.topic_id
