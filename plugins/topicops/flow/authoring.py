"""Write specs: for the live topics that none describes, and what a tombstone needs to know. No cluster is changed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from topicops.flow.inspecting import read_live_topics
from topicops.flow.runs.run import Run, now, read_specs
from topicops.model.errors import SpecError, UsageError

if TYPE_CHECKING:
    from topicops.steps.authoring.import_topics import ImportInputs, ImportOptions, ImportResult
    from topicops.steps.authoring.owners_and_domains import TopicOwners


def topic_owners(topics: Path, file: Path | None, *, otherwise: str | None) -> TopicOwners:
    """Whose each topic is.

    Args:
        file: A file of owners; None: ``owners.yaml`` of ``topics``, where there is one.
        otherwise: The owner of topics that no pattern of the file fits.

    Raises:
        UsageError: The file cannot be read, or nothing names an owner.
        SpecError: With every problem of the file.
    """
    from topicops.edges.specs.open_files import OWNERS_FILE
    from topicops.steps.authoring.owners_and_domains import TopicOwners, checked_owner

    path = file or topics / OWNERS_FILE
    patterns = _owner_patterns(path) if file is not None or path.exists() else ()
    if not patterns and otherwise is None:
        raise UsageError(
            f"{path} gives no pattern to an owner; give --owner for all topics, or --owners with a file of patterns"
        )
    return TopicOwners(patterns=patterns, otherwise=None if otherwise is None else checked_owner(otherwise))


def _owner_patterns(file: Path) -> tuple[tuple[str, str], ...]:
    from topicops.edges.specs.open_files import ROOM_FOR_MANY, regular_text
    from topicops.edges.specs.writer import root_of, shown
    from topicops.model.specs.files import OwnersFile
    from topicops.steps.authoring.owners_and_domains import owner_patterns
    from topicops.steps.specs.fields import read_section

    text = regular_text(file, room=ROOM_FOR_MANY)
    if text is None:
        raise UsageError(f"{file}: no file of owners that can be read")
    body, found = read_section(root_of(text, shown(file), room=ROOM_FOR_MANY), OwnersFile, shown(file))
    if found:
        raise SpecError([finding.diagnostic() for finding in found])
    return tuple(owner_patterns(body.section("spec")))


def import_topics(run: Run, options: ImportOptions) -> ImportResult:
    """Write specs for the live topics that no file describes. Existing files stay; only exceptions may be added.

    Raises:
        SpecError: With every problem of the existing files.
        WrongTargetError: Another cluster answers.
        SpecFileError: A file cannot be written.
    """
    from topicops.edges.specs.writer import document_of
    from topicops.steps.authoring.import_topics import import_topics as import_step

    inputs = _inputs(run)
    result = import_step(inputs, options, partial(document_of, run.topics))
    _write(run, result, inputs.exceptions_text)
    return result


def _inputs(run: Run) -> ImportInputs:
    from topicops.edges.specs.open_files import ROOM_FOR_MANY, regular_text
    from topicops.edges.specs.reader import read_tree
    from topicops.steps.authoring.exceptions_file import exceptions_file
    from topicops.steps.authoring.import_topics import ImportInputs
    from topicops.steps.specs.validate import validate

    at = now()
    run.progress(f"Reading {run.topics}")
    tree = read_tree(run.topics)
    environment, desired = validate(tree, environment=run.environment, now=at).require()
    run.progress(f"Reading the live topics of {run.environment}")
    return ImportInputs(
        tree=tree,
        environment=environment,
        desired=desired,
        live=read_live_topics(run.access(environment)),
        exceptions_text=regular_text(run.topics / exceptions_file(run.environment), room=ROOM_FOR_MANY),
        now=at,
    )


def _write(run: Run, result: ImportResult, exceptions_before: str | None) -> None:
    """Write exceptions first and topics last: after a crash the files are valid, and another import continues."""
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
        problem = "is not live" if live is None else "has no id, because an old Kafka version created it"
        raise UsageError(f"{topic} {problem} in {environment.name}; leave this environment out")
    return live.topic_id
