"""Write specs for the live topics that none describes. No cluster is changed."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from topicops.edges.specs.open_files import OWNERS_FILE, ROOM_FOR_MANY, regular_text
from topicops.edges.specs.reader import read_tree
from topicops.features.authoring.drafts import ImportInputs, ImportOptions, ImportResult, draft_import
from topicops.features.authoring.exceptions_file import exceptions_file
from topicops.features.authoring.owners import TopicOwners, checked_owner, owner_patterns
from topicops.features.shared.writer import document_of, replace_text, root_of, shown, write_new
from topicops.flow.runs.access import read_live_topics
from topicops.flow.runs.run import EnvironmentRun, now
from topicops.model.errors import SpecError, UsageError
from topicops.model.specs.files import OwnersFile
from topicops.steps.specs.fields import read_section
from topicops.steps.specs.validate import validate


def topic_owners(topics: Path, file: Path | None, *, otherwise: str | None) -> TopicOwners:
    """Find the owners of topics.

    Args:
        file: A file of owners; None means ``owners.yaml`` of ``topics``, where there is one.
        otherwise: The owner of topics that no pattern of the file fits.

    Raises:
        UsageError: The file cannot be read, or nothing names an owner.
        SpecError: With every problem of the file.
    """
    path = file or topics / OWNERS_FILE
    patterns = _owner_patterns(path) if file is not None or path.exists() else ()
    if not patterns and otherwise is None:
        raise UsageError(
            f"{path} gives no pattern to an owner; give --owner for all topics, or --owners with a file of patterns"
        )
    return TopicOwners(patterns=patterns, otherwise=None if otherwise is None else checked_owner(otherwise))


def _owner_patterns(file: Path) -> tuple[tuple[str, str], ...]:
    text = regular_text(file, room=ROOM_FOR_MANY)
    if text is None:
        raise UsageError(f"{file}: no file of owners that can be read")
    body, found = read_section(root_of(text, shown(file), room=ROOM_FOR_MANY), OwnersFile, shown(file))
    if found:
        raise SpecError([finding.diagnostic() for finding in found])
    return tuple(owner_patterns(body.section("spec")))


def import_topics(run: EnvironmentRun, options: ImportOptions) -> ImportResult:
    """Write specs for the live topics that no file describes. Existing files stay; only exceptions may be added.

    Exceptions are written first and topics last: after a crash the files are valid, and another import continues.

    Raises:
        SpecError: With every problem of the existing files.
        WrongTargetError: Another cluster answers.
        SpecFileError: A file cannot be written.
    """
    at, exceptions = now(), exceptions_file(run.environment)
    run.progress(f"Reading {run.topics}")
    tree = read_tree(run.topics)
    environment, desired = validate(tree, environment=run.environment, now=at).require()
    run.progress(f"Reading the live topics of {run.environment}")
    inputs = ImportInputs(
        tree=tree,
        environment=environment,
        desired=desired,
        live=read_live_topics(run.access(environment)),
        exceptions_text=regular_text(run.topics / exceptions, room=ROOM_FOR_MANY),
        now=at,
    )
    texts, result = draft_import(inputs, options, partial(document_of, run.topics))
    if inputs.exceptions_text is not None and exceptions in texts:
        replace_text(run.topics / exceptions, texts.pop(exceptions), before=inputs.exceptions_text)
    write_new(run.topics, texts)
    return result
