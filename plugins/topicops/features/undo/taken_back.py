"""From what a run did to the edits of spec files that take it back, as far as that is possible.

A topic that the run created gets a tombstone with its id, so that no other topic of this name is deleted by it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path

from topicops.edges.specs.open_files import regular_text
from topicops.features.shared.topic_files import (
    FileEdit,
    SpecFiles,
    config_line,
    shown_config,
    tombstone,
    with_value,
    written_config,
)
from topicops.features.shared.yaml_blocks import field_of, plain_value
from topicops.features.shared.yaml_text import Content
from topicops.features.undo.values import PastTopic, Undo, UndoNote, past_topics
from topicops.model.errors import SpecError, UsageError
from topicops.model.runs.audit import AuditLine
from topicops.model.specs.desired import Desired, DesiredTopic, Lifecycle
from topicops.model.specs.document import Document, Node
from topicops.model.specs.environment import Risk
from topicops.steps.planning.risk import config_risk

Version = tuple[str, str]
"""A commit, and the text that a file had in it."""
_FACTOR = "replicationFactor: "
_NOT_SURE = "the run does not know whether its request took effect"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFiles(SpecFiles):
    """The present files, what they ask for, and how earlier ones are found."""

    desired: Desired
    versions: Callable[[Path], Iterable[Version]]
    """Function that gives the versions of one file, newest first, as far as git has them."""
    moving: Collection[str] = ()
    """Topics whose replicas topicops moves now."""

    def document(self, topic: str) -> Document | None:
        name = topic.removeprefix(self.desired.prefix)
        return next((found for found in self.tree.documents if found.kind == "Topic" and found.stem == name), None)

    def root(self, document: Document, text: str) -> Node | None:
        """Read the document with this text. None means that it cannot be read."""
        found = self.with_text(document.file, text)
        return found.root if found else None


@dataclass(slots=True)
class _Found:
    """The lists of an ``Undo`` while they grow."""

    edits: list[FileEdit] = field(default_factory=list)
    to_retire: list[str] = field(default_factory=list)
    by_hand: list[UndoNote] = field(default_factory=list)
    done: list[UndoNote] = field(default_factory=list)

    def leave(self, topic: str, text: str) -> None:
        self.by_hand.append(UndoNote(topic=topic, text=text))

    def pass_over(self, topic: str, text: str) -> None:
        self.done.append(UndoNote(topic=topic, text=text))


def undo_of(lines: Sequence[AuditLine], files: KnownFiles) -> Undo:
    """Say how the run of these lines, which are of one environment, is taken back."""
    past, found, first = past_topics(lines), _Found(), lines[0]
    for topic in past.values():
        desired = files.desired.topics.get(topic.topic)
        if topic.created:
            _take_back_create(topic, desired, first.run, files, found)
        elif topic.deleted:
            _take_back_delete(topic, desired, files, found)
        else:
            if topic.configs_before:
                _take_back_configs(topic, desired, files, found)
            if topic.rows_after:
                _take_back_moves(topic, desired, files, found)
            elif topic.has_moved_back:
                found.pass_over(topic.topic, "its moves were cancelled, or never began: its replicas are as before")
    edits, refused = files.sound(found.edits, lambda edit, after: _objection(edit, past[edit.topic], after))
    found.by_hand += [UndoNote(topic=topic, text=why) for topic, why in refused]
    losses = [(rank, topic, text) for topic in past.values() for rank, text in _losses(topic)]
    prefix = files.desired.prefix
    reason, environment = shlex.quote(f"Undo of run {first.run}."), shlex.quote(first.environment)
    return Undo(
        run=first.run,
        environment=first.environment,
        commit=first.commit,
        topics=tuple(past),
        lost=tuple(
            UndoNote(topic=topic.topic, text=text if topic.is_sure else f"{text} ({_NOT_SURE})")
            for _, topic, text in sorted(losses, key=itemgetter(0))
        ),
        edits=tuple(edits),
        retire=tuple(
            f"topicops retire {shlex.quote(topic.removeprefix(prefix))} --reason {reason} --environment {environment}"
            for topic in found.to_retire
        ),
        by_hand=tuple(found.by_hand),
        done=tuple(found.done),
        notes=tuple(_shared_files(edits, files)),
    )


def _losses(topic: PastTopic) -> Iterator[tuple[int, str]]:
    """Yield what cannot come back, with its rank: topics come first, then partitions, then records."""
    if topic.deleted:
        which = f" (topic id {topic.topic_id})" if topic.topic_id else ""
        gone = "its records and its groups' offsets are gone; it can only come back empty"
        yield 0, f"the topic was deleted{which}: {gone}"
    if topic.partitions:
        before, after = topic.partitions
        yield 1, f"{before} -> {after} partitions: Kafka removes none, so the file must go on asking for {after}"
    for name, old in topic.configs_before.items():
        new = topic.configs_after.get(name)
        if config_risk(name, old, new, None)[0] is Risk.DESTRUCTIVE:
            was, shown = shown_config(name, new), shown_config(name, old)
            yield 2, f"records that went while {name} was {was} instead of {shown}"


def _take_back_create(
    past: PastTopic, desired: DesiredTopic | None, run: str, files: KnownFiles, found: _Found
) -> None:
    document = files.document(past.topic)
    if desired is None:
        advice = "bring its file back, then make it a tombstone with topicops retire"
        found.leave(past.topic, f"no file describes the topic any more: {advice}")
    elif desired.lifecycle is Lifecycle.ABSENT:
        found.pass_over(past.topic, "its file is a tombstone already")
    elif document is None or past.topic_id is None or files.others(document):
        found.to_retire.append(past.topic)
    else:
        block: dict[str, Content] = {"state": "absent", "reason": f"Undo of run {run}."}
        block["topicIds"] = {files.environment: past.topic_id}
        try:
            found.edits.append(replace(tombstone(files.topics, document, block)[0], topic=past.topic))
        except (UsageError, SpecError):
            found.to_retire.append(past.topic)


def _take_back_delete(past: PastTopic, desired: DesiredTopic | None, files: KnownFiles, found: _Found) -> None:
    if desired is not None and desired.lifecycle is not Lifecycle.ABSENT:
        found.pass_over(past.topic, "its file asks for the topic again already")
        return
    document = files.document(past.topic)
    text = regular_text(Path(document.file)) if document else None
    version = _before_tombstone(document, files) if document and text is not None else None
    if document is None or text is None or version is None:
        where = "no file describes the topic any more" if document is None else "git has no earlier text of its file"
        found.leave(past.topic, f"{where}: write its spec anew, with topicops new")
        return
    commit, earlier = version
    what = f"the spec of commit {commit[:12]} takes the place of the tombstone"
    found.edits.append(FileEdit(topic=past.topic, file=document.file, before=text, after=earlier, edits=(what,)))


def _before_tombstone(document: Document, files: KnownFiles) -> Version | None:
    """Find the newest version of the file that is no tombstone."""
    for commit, text in files.versions(Path(document.file)):
        root = files.root(document, text)
        if root is not None and field_of(root, "spec") and plain_value(field_of(root, "lifecycle", "state")) is None:
            return commit, text
    return None


def _take_back_configs(past: PastTopic, desired: DesiredTopic | None, files: KnownFiles, found: _Found) -> None:
    document = files.document(past.topic)
    text = regular_text(Path(document.file)) if document else None
    if document is None or text is None or desired is None or desired.lifecycle is Lifecycle.ABSENT:
        found.leave(past.topic, "no file asks for the topic any more")
        return
    edited, edits = text, []
    for name, before in sorted(past.configs_before.items()):
        now, after, written = desired.configs.get(name), past.configs_after.get(name), config_line(name, before)
        root = files.root(document, edited)
        own = ("spec", "overrides", files.environment, "configs", name)
        path = own if field_of(root, *own) else ("spec", "configs", name)
        new = with_value(root, edited, path, written_config(name, before))
        if name in desired.configs and now == before:
            found.pass_over(past.topic, f"its file asks for {written} already")
        elif now != after:
            was = f"{name} was {shown_config(name, after)} after the run"
            asked = f"its file asks for {shown_config(name, now)} now"
            found.leave(past.topic, f"{was}, and {asked}: write {written}")
        elif not new or files.root(document, new) is None:
            found.leave(past.topic, f"its file is written so that no line can be changed: write {written}")
        else:
            edited = new
            edits.append(f"{name}: {shown_config(name, after)} -> {shown_config(name, before)}")
    if edits:
        edit = FileEdit(topic=past.topic, file=document.file, before=text, after=edited, edits=tuple(edits))
        found.edits.append(edit)


def _take_back_moves(past: PastTopic, desired: DesiredTopic | None, files: KnownFiles, found: _Found) -> None:
    """Edit the factor back, for the next plan to move the replicas; other moves are left to a person, with the rows."""
    document = files.document(past.topic)
    known = next((edit for edit in found.edits if edit.topic == past.topic), None)
    text = known.after if known else regular_text(Path(document.file)) if document else None
    if past.topic in files.moving:
        cancel = f"topicops moves --cancel {shlex.quote(past.topic)} --environment {files.environment}"
        found.leave(past.topic, f"its replicas still move; to move them back, change its file back, and type: {cancel}")
        return
    if document is None or text is None or desired is None or desired.lifecycle is Lifecycle.ABSENT:
        found.leave(past.topic, "its replicas were moved, and no file asks for the topic any more")
        return
    before, after = ({len(row) for row in rows.values()} for rows in (past.rows_before, past.rows_after))
    if before == after or len(before | after) != 2 or desired.assignment is not None:
        rows = ", ".join(f"{p}: {list(row)}" for p, row in sorted(past.rows_before.items()))
        how = "to move them back, write these rows as its assignment, or what asked for the move as it was"
        found.leave(past.topic, f"its replicas were moved; before, they were {rows}: {how}")
        return
    [old], [new], now = before, after, desired.replication_factor
    own = ("spec", "overrides", files.environment, "replicationFactor")
    root = files.root(document, text)
    path = own if field_of(root, *own) else ("spec", "replicationFactor")
    edited = with_value(root, text, path, old)
    if now == old:
        found.pass_over(past.topic, f"its file asks for replicationFactor: {old} already")
    elif now != new:
        asked = f"its file asks for {now} now"
        found.leave(
            past.topic, f"replicationFactor was {new} after the run, and {asked}: write replicationFactor: {old}"
        )
    elif not edited or files.root(document, edited) is None:
        found.leave(past.topic, f"its file is written so that no line can be changed: write replicationFactor: {old}")
    else:
        what = f"{_FACTOR}{new} -> {old}; the plan moves the replicas"
        edit = known or FileEdit(topic=past.topic, file=document.file, before=text, after=text, edits=())
        found.edits = [each for each in found.edits if each is not known]
        found.edits.append(replace(edit, after=edited, edits=(*edit.edits, what)))


def _objection(edit: FileEdit, past: PastTopic, after: Desired) -> str:
    """Say why the files do not ask for what was there before; empty: they do."""
    tried = f"{edit.file}: {'; '.join(edit.edits)}"
    topic = after.topics.get(edit.topic)
    if topic is None or (topic.lifecycle is Lifecycle.ABSENT) != past.created:
        return f"{tried}: the file would not ask for the topic in this environment"
    for name, before in past.configs_before.items():
        if any(text.startswith(f"{name}: ") for text in edit.edits) and topic.configs.get(name) != before:
            return f"{name} comes from {topic.location_of(f'configs.{name}')}: write {config_line(name, before)} there"
    factors = {len(row) for row in past.rows_before.values()}
    if any(text.startswith(_FACTOR) for text in edit.edits) and {topic.replication_factor} != factors:
        return f"{tried}: the file would not ask for the replication factor of before"
    return ""


def _shared_files(edits: Sequence[FileEdit], files: KnownFiles) -> Iterator[str]:
    """Yield a sentence for each edited file that other environments use as well."""
    for edit in edits:
        document = files.document(edit.topic)
        if document and (also := files.others(document)):
            yield f"{edit.file} is also used by {', '.join(also)}: the next plan there changes the topic as well"
