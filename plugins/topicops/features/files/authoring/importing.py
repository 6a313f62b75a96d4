"""Write specs for the live topics that none describes, and say what came of each. No cluster is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from topicops.edges.specs.open_files import OWNERS_FILE, ROOM_FOR_MANY, regular_text
from topicops.edges.specs.reader import read_tree
from topicops.features.files.authoring.drafts import ImportResult, WrittenException, draft_import, exceptions_file
from topicops.features.files.authoring.importable import (
    ImportInputs,
    InexpressibleOverride,
    LeftOut,
    NotConverted,
    TopicOwners,
)
from topicops.features.files.authoring.specs import checked_owner
from topicops.features.shared.writer import replace_text, root_of, shown, write_new
from topicops.flow.runs.access import read_live_topics
from topicops.flow.runs.run import EnvironmentRun, now
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import SpecError, UsageError
from topicops.model.printable import plural, printable
from topicops.model.specs.environment import Environment
from topicops.model.specs.files import OwnersFile
from topicops.steps.specs.fields import Section, read_section
from topicops.steps.specs.validate import validate


def topic_owners(topics: Path, file: Path | None, *, otherwise: str | None, needs_one: bool = True) -> TopicOwners:
    """Find the owners of topics in ``file``, or in ``owners.yaml`` where there is one.

    Raises ``UsageError`` if the file cannot be read or nothing names an owner, and ``SpecError`` for problems in it.
    """
    path = file or topics / OWNERS_FILE
    patterns: list[tuple[str, str]] = []
    if file is not None or path.exists():
        if (text := regular_text(path, room=ROOM_FOR_MANY)) is None:
            raise UsageError(f"{path}: no file of owners that can be read")
        body, found = read_section(root_of(text, shown(path), room=ROOM_FOR_MANY), OwnersFile, shown(path))
        if found:
            raise SpecError([finding.diagnostic() for finding in found])
        for item in body.section("spec").items("owners"):
            if isinstance(item.value, Section) and (owner := item.value.get("owner", str)) is not None:
                patterns += [(pattern, owner) for pattern in item.value.texts("topics")]
    if needs_one and not patterns and otherwise is None:
        raise UsageError(
            f"{path} gives no pattern to an owner; give --owner for all topics, or --owners with a file of patterns"
        )
    return TopicOwners(patterns=tuple(patterns), otherwise=None if otherwise is None else checked_owner(otherwise))


def import_topics(run: EnvironmentRun, owners: TopicOwners, *, domain: str | None, only: str | None) -> ImportResult:
    """Write specs for the live topics that no file of this environment describes.

    Files of other environments get what this one has in another way; exceptions may be added. All else stays.
    """

    def live(environment: Environment) -> ClusterSnapshot:
        run.progress(f"Reading the live topics of {run.environment}")
        return read_live_topics(run.access(environment))

    run.progress(f"Reading {run.topics}")
    return write_import(import_inputs(run, owners, live, domain=domain, only=only))


def import_inputs(
    run: EnvironmentRun,
    owners: TopicOwners,
    live_of: Callable[[Environment], ClusterSnapshot],
    *,
    domain: str | None,
    only: str | None,
) -> ImportInputs:
    """Read the files, which must be valid, and then what ``live_of`` gives."""
    at, tree = now(), read_tree(run.topics)
    environment, desired = validate(tree, environment=run.environment, now=at).require()
    return ImportInputs(
        topics=run.topics,
        tree=tree,
        environment=environment,
        desired=desired,
        live=live_of(environment),
        exceptions_text=regular_text(run.topics / exceptions_file(run.environment), room=ROOM_FOR_MANY),
        now=at,
        owners=owners,
        domain=domain,
        only=only,
    )


def write_import(inputs: ImportInputs) -> ImportResult:
    """Write exceptions first and topics last: after a crash the files are valid, and another import continues."""
    texts, result = draft_import(inputs)
    topics, exceptions = inputs.topics, exceptions_file(inputs.environment.name)
    if inputs.exceptions_text is not None and exceptions in texts:
        replace_text(topics / exceptions, texts.pop(exceptions), before=inputs.exceptions_text)
    before = {path: regular_text(topics / path) or "" for path in result.extended}
    for path, text in before.items():
        replace_text(topics / path, texts.pop(path), before=text)
    write_new(topics, texts)
    return result


def import_lines(result: ImportResult) -> Iterator[str]:
    """Yield the new files, then everything that a person may not expect with its reason, then the counts."""
    profiles = sorted(path for path in result.files if path.startswith("profiles/"))
    yield from _section("Imported", "topic", [path for path in result.files if path not in profiles])
    yield from _section("Values of this environment added", "file", result.extended)
    yield from _section("New profiles", "profile", profiles)
    yield from _section("Exceptions written", "exception", [*map(_coded, result.exceptions)])
    yield from _section("Left out", "topic", [*map(_coded, result.left_out)])
    yield from _section("Overrides that no spec may name", "override", [*map(_coded, result.unsayable)])
    yield from _section("Protected, skipped", "topic", result.protected)
    yield from _section(
        "Not live, and their files are for every environment, so the next plan creates them", "topic", result.missing
    )
    yield from _section("Not converted", "thing", [*map(_placed, result.not_converted)])
    yield (
        f"{plural(len(result.imported), 'topic')} imported, {plural(len(profiles), 'new profile')}, "
        f"{plural(len(result.exceptions), 'exception')}, {len(result.left_out)} left out, "
        f"{len(result.protected)} protected, {len(result.described)} described before."
    )


def _section(title: str, noun: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"{title} ({plural(len(lines), noun)}):"
        yield from (f"  {printable(line)}" for line in lines)
        yield ""


def _placed(of: NotConverted) -> str:
    return f"{of.file}:{of.line}: {f'{of.topic}: ' if of.topic else ''}{of.message}"


def _coded(of: WrittenException | LeftOut | InexpressibleOverride) -> str:
    place = f" ({of.file}:{of.line})" if isinstance(of, LeftOut) and of.file else ""
    return f"{of.topic}: {of.code}: {of.reason}{place}" if of.code else f"{of.topic}: {of.reason}{place}"
