"""``adopt``: what is live becomes the value of a topic's file, where the two differ. No cluster is changed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import groupby
from pathlib import Path

from topicops.edges.specs.open_files import regular_text
from topicops.edges.specs.reader import read_tree
from topicops.features.files.authoring.importable import override_problem
from topicops.features.shared.topic_files import (
    FileEdit,
    SpecFiles,
    named_topics,
    shown_config,
    with_value,
    written_config,
)
from topicops.features.shared.writer import replace_text
from topicops.features.shared.yaml_blocks import field_of, plain_value
from topicops.features.shared.yaml_edits import GONE
from topicops.flow.runs.access import read_live_topics
from topicops.flow.runs.run import EnvironmentRun, now
from topicops.model.json_types import FormatVersion
from topicops.model.plans.delta import desired_row, live_row
from topicops.model.printable import plural, printable
from topicops.model.release import Release
from topicops.model.specs.desired import Desired
from topicops.model.specs.document import Document, Node
from topicops.steps.planning.diff import DriftEntry, DriftKind, diff, drift
from topicops.steps.specs.layers import NUMBERS

_WAYS_OUT = {
    DriftKind.MISSING: "not live: the next plan creates it; if it was to go: topicops retire {} --reason WHY",
    DriftKind.RETIRED: "live, although its file is a tombstone: to keep it, bring the file of before back with git",
    DriftKind.UNMANAGED: "live, and no file describes it: topicops import --only {}",
    DriftKind.BEING_DELETED: "being deleted: look again once it is gone",
}
"""Sentences on topics that have no value to take over; ``{}`` stands for the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAdopted:
    """A difference that stays, or a topic that has no value to take over."""

    topic: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """What came of the topics that were named."""

    format_version: FormatVersion = "1.0"
    topics: tuple[str, ...]
    edits: tuple[FileEdit, ...]
    """Files that were written."""
    left: tuple[NotAdopted, ...]


def block_of(environment: str, apart: object) -> tuple[str, ...]:
    """Return the block of a topic's file for a value; ``apart``: this environment alone is to have it."""
    return ("spec", "overrides", environment) if apart else ("spec",)


def adopt(run: EnvironmentRun, globs: Sequence[str]) -> Adopted:
    """Write live values into the files. Raises ``UsageError`` where one fits no topic, ``SpecError`` for a bad file."""
    run.progress(f"Reading {run.topics}")
    tree, needs = read_tree(run.topics), lambda name: any(fnmatchcase(name, glob) for glob in globs)
    files = _Files(topics=run.topics, tree=tree, environment=run.environment, needs=needs, now=now())
    environment, desired = files.judged().require()
    run.progress(f"Reading the live topics of {run.environment}")
    live = read_live_topics(run.access(environment))
    names = named_topics(globs, {*desired.topics, *live.topics}, otherwise="no file describes it, and it is not live")
    found = [entry for entry in drift(desired, live, environment).drift if files.needs(entry.topic)]
    left = [(e.topic, _WAYS_OUT[e.kind].format(shlex.quote(e.topic))) for e in found if e.field is None]
    edits = list[FileEdit]()
    for topic, entries in groupby((entry for entry in found if entry.field), key=lambda entry: entry.topic):
        document = files.by_place[desired.topics[topic].location.file]
        edit, sentences = files.edited(topic, document, list(entries), environment.spec.cluster.release)
        edits += [edit] if edit.edits else []
        left += [(topic, sentence) for sentence in sentences]

    def objection(edit: FileEdit, after: Desired) -> str:
        delta = diff([desired_row(after.topics[edit.topic])], [live_row(live.topics[edit.topic])])
        left = [entry.field or "" for entry in drift(after, live, environment, only=edit.topic, delta=delta).drift]
        missed = [text for text in edit.edits if {text.partition(": ")[0]} & {f.removeprefix("configs.") for f in left}]
        return f"{edit.file}: {'; '.join(missed)}: the files would still ask for another value" if missed else ""

    edits, refused = files.sound(edits, objection)
    for edit in edits:
        replace_text(Path(edit.file), edit.after, before=edit.before)
    notes = tuple(NotAdopted(topic=topic, reason=reason) for topic, reason in [*left, *refused])
    return Adopted(topics=tuple(names), edits=tuple(edits), left=notes)


def adopted_text(adopted: Adopted) -> str:
    return "\n".join(map(printable, _lines(adopted)))


def _lines(adopted: Adopted) -> Iterator[str]:
    written = [f"{edit.file}: {text}" for edit in adopted.edits for text in edit.edits]
    left = [f"{note.topic}: {note.reason}" for note in adopted.left]
    for title, lines in (("Written to the files:", written), ("Not taken over:", left)):
        yield from [title, *(f"  {line}" for line in lines)] if lines else []
    if adopted.edits:
        yield "Next: read the edits, commit them and have them merged; to leave it, restore the files with git."
        yield f"  git diff -- {' '.join(shlex.quote(edit.file) for edit in adopted.edits)}"
    elif not left:
        yield f"Nothing to adopt: {plural(len(adopted.topics), 'topic')} without a difference."


@dataclass(frozen=True, kw_only=True)
class _Files(SpecFiles):
    @cached_property
    def by_place(self) -> dict[str, Document]:
        """Topics by the name of their file, and what lies above and below them by ``kind/stem``."""
        return {d.file if d.kind == "Topic" else f"{d.kind}/{d.stem}": d for d in self.tree.documents}

    def edited(
        self, topic: str, document: Document, entries: Sequence[DriftEntry], release: Release
    ) -> tuple[FileEdit, list[str]]:
        """Return the edit of a topic's file, and a sentence on each difference that it leaves."""
        edits, left, before = list[str](), list[str](), regular_text(Path(document.file)) or ""
        text = before
        for entry in entries:
            path = (entry.field or "").split(".", 1)
            shown = shown_config if path[0] == "configs" else lambda _, value: str(value)
            change = f"{path[-1]}: {shown(path[-1], entry.wanted)} -> {shown(path[-1], entry.live)}"
            problem = self._problem(entry, path, document, release)
            new = None if problem else self._taken_over(entry.live, path, document, text)
            after = None if new is None else self.with_text(document.file, new)
            if new is None or after is None:
                problem = problem or f"{document.file} is written so that no line can be changed: write it there"
                left.append(f"{change}: {problem}")
            else:
                document, text = after, new
                edits.append(change)
        return FileEdit(topic=topic, file=document.file, before=before, after=text, edits=tuple(edits)), left

    def _problem(self, entry: DriftEntry, path: Sequence[str], document: Document, release: Release) -> str:
        """Return why no value of the topic's file can be what is live; empty: one can."""
        if path[0] != "configs" and field_of(document.root, "spec", "assignment"):
            return "its file names the replicas of each partition: write the live ones below assignment"
        if path[0] != "configs" and not (entry.live or "").isdecimal():
            return f"its partitions have {entry.live} replicas, and a file has one number for all"
        environment = f"Environment/{self.environment}"
        if hiding := self._field(environment, "overrides", document.stem, *path):
            place = f"{self.by_place[environment].file}:{hiding.span.line}"
            return f"the override at {place} hides the topic's own value: write it there"
        refused = override_problem(path[-1], entry.live, release) if path[0] == "configs" and entry.live else None
        return ": ".join(map(str, refused)) if refused else ""

    def _taken_over(self, live: str | None, path: Sequence[str], document: Document, text: str) -> str | None:
        """Return the text with the live value; one that is not live goes, or is null where a lower layer gives it."""
        own = field_of(document.root, "spec", "overrides", self.environment, *path)
        block, name = block_of(self.environment, self.others(document) or own), path[-1]
        if live is not None:
            value = int(live) if name in NUMBERS else written_config(name, live)
            return with_value(document.root, text, (*block, *path), value)
        lower = (
            self._field(f"Environment/{self.environment}", "defaults", *path),
            self._field(f"Profile/{plain_value(field_of(document.root, 'spec', 'profile'))}", *path),
            field_of(document.root, "spec", *path) if len(block) > 1 else None,
        )
        return with_value(document.root, text, (*block, *path), None if any(lower) else GONE)

    def _field(self, place: str, *path: str) -> Node | None:
        document = self.by_place.get(place)
        return field_of(document.root, "spec", *path) if document else None
