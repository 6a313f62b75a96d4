"""``adopt``: what is live becomes the value of a topic's file, where the two differ. No cluster is changed."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path

from topicops.edges.specs.open_files import regular_text
from topicops.edges.specs.reader import read_tree
from topicops.features.files.authoring.importable import override_problem
from topicops.features.shared.topic_files import (
    FileEdit,
    environments_of,
    named_topics,
    shown_config,
    with_value,
    without_value,
    written_config,
)
from topicops.features.shared.writer import document_of, replace_text, tree_with
from topicops.features.shared.yaml_blocks import field_of, plain_value
from topicops.flow.runs.access import read_live_topics
from topicops.flow.runs.run import EnvironmentRun, now
from topicops.model.errors import SpecError
from topicops.model.printable import plural, printable
from topicops.model.release import Release
from topicops.model.specs.document import Document, FileKind, Node, Tree
from topicops.steps.planning.diff import DriftEntry, DriftKind, drift
from topicops.steps.specs.layers import NUMBERS
from topicops.steps.specs.validate import Validated, validate

_WAYS_OUT = {
    DriftKind.MISSING: "not live: the next plan creates it; if it was to go: topicops retire {} --reason WHY",
    DriftKind.RETIRED: "live, although its file is a tombstone: to keep it, bring the file of before back with git",
    DriftKind.UNMANAGED: "live, and no file describes it: topicops import --only {}",
    DriftKind.BEING_DELETED: "being deleted: look again once it is gone",
}
"""Sentences on topics that have no value to take over; ``{}`` stands for the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """What came of the differences of the named topics."""

    topics: int
    """Number of topics that were named."""
    edits: tuple[FileEdit, ...]
    left: tuple[str, ...]
    """A sentence for each difference that no edit takes over, with the way out."""


def block_of(environments: Collection[str], environment: str) -> tuple[str, ...]:
    """Return the block of a topic's file that has the values of one of the environments that the file is for."""
    return ("spec",) if set(environments) <= {environment} else ("spec", "overrides", environment)


def adopt(run: EnvironmentRun, globs: Sequence[str]) -> Adopted:
    """Write what is live into the files of the topics that have these names or match these globs.

    Raises ``UsageError`` where one of them fits no topic, and ``SpecError`` where the files of theirs are not valid.
    """
    run.progress(f"Reading {run.topics}")
    files = _Files(topics=run.topics, tree=read_tree(run.topics), environment=run.environment, globs=globs, now=now())
    environment, desired = files.judged().require()
    run.progress(f"Reading the live topics of {run.environment}")
    live = read_live_topics(run.access(environment))
    names = named_topics(globs, {*desired.topics, *live.topics}, otherwise="no file describes it, and it is not live")
    entries = [entry for entry in drift(desired, live, environment).drift if entry.topic in set(names)]
    documents = {(d.kind, d.file if d.kind == "Topic" else d.stem): d for d in files.tree.documents}
    release, edits, left = environment.spec.cluster.release, list[FileEdit](), list[str]()
    for name, found in groupby(entries, key=lambda entry: entry.topic):
        changed = []
        for entry in found:
            if entry.field is None:
                left.append(f"{name}: {_WAYS_OUT[entry.kind].format(shlex.quote(name))}")
            else:
                changed.append(entry)
        if changed:
            document = documents["Topic", desired.topics[name].location.file]
            edit, sentences = _edit(document, changed, _Layers(documents, run.environment, release), files)
            edits += [edit] if edit.edits else []
            left += sentences
    refused: Mapping[str, str] | None = None
    while edits and refused != {}:
        after = files.judged(edits)
        still = drift(after.desired, live, environment).drift if after.desired else ()
        refused = {edit.file: why for edit in edits if (why := _refusal(edit, after, still))}
        left += [f"{edit.topic}: {refused[edit.file]}" for edit in edits if edit.file in refused]
        edits = [edit for edit in edits if edit.file not in refused]
    for edit in edits:
        replace_text(Path(edit.file), edit.after, before=edit.before)
    return Adopted(topics=len(names), edits=tuple(edits), left=tuple(left))


def adopted_lines(found: Adopted) -> Iterator[str]:
    """Yield the edits, what is left with the way out, and what to do next."""
    if found.edits:
        yield "Written to the files:"
        yield from (printable(f"  {edit.file}: {text}") for edit in found.edits for text in edit.edits)
    if found.left:
        yield "Not taken over:"
        yield from (printable(f"  {sentence}") for sentence in found.left)
    if found.edits:
        yield "Next: read the edits, commit them and have them merged; to leave it, restore the files with git."
        yield printable(f"  git diff -- {' '.join(shlex.quote(edit.file) for edit in found.edits)}")
    elif not found.left:
        yield f"Nothing to adopt: {plural(found.topics, 'topic')} without a difference."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    topics: Path
    tree: Tree
    environment: str
    globs: Sequence[str]
    """Those of the topics whose files must be valid."""
    now: datetime

    def judged(self, edits: Sequence[FileEdit] = ()) -> Validated:
        """Validate the files as they are after these edits."""
        changed = [document for edit in edits if (document := self.edited(edit.file, edit.after))]
        return validate(
            tree_with(self.tree, *changed) if changed else self.tree,
            environment=self.environment,
            now=self.now,
            needs=lambda name: any(fnmatchcase(name, glob) for glob in self.globs),
        )

    def edited(self, file: str, text: str) -> Document | None:
        """Return what a topic's file says with this text; None where it cannot be read."""
        try:
            return document_of(self.topics, "/".join(file.split("/")[-2:]), text)
        except SpecError:
            return None


@dataclass(frozen=True, slots=True)
class _Layers:
    """Where values of an environment come from, beside the topic's own file."""

    documents: Mapping[tuple[FileKind, str], Document]
    """Documents of topics by the name of their file, all others by its stem."""
    environment: str
    release: Release

    def block(self, document: Document) -> tuple[str, ...]:
        known = [stem for kind, stem in self.documents if kind == "Environment"]
        return block_of(environments_of(document, known), self.environment)

    def problem(self, entry: DriftEntry, path: Sequence[str], document: Document) -> str:
        """Return why no value of the topic's file can be what is live; empty: one can."""
        if path[0] != "configs" and field_of(document.root, "spec", "assignment"):
            return "its file names the replicas of each partition: write the live ones below assignment"
        if path[0] != "configs" and not (entry.live or "").isdecimal():
            return f"its partitions have {entry.live} replicas, and a file has one number for all"
        hiding = self._field("Environment", self.environment, "spec", "overrides", document.stem, *path)
        if hiding is not None:
            file = self.documents["Environment", self.environment].file
            return f"the override at {file}:{hiding.span.line} hides the topic's own value: write it there"
        refused = override_problem(path[-1], entry.live, self.release) if path[0] == "configs" and entry.live else None
        return ": ".join(map(str, refused)) if refused else ""

    def is_given_below(self, document: Document, path: Sequence[str]) -> bool:
        """Return whether a layer below the topic's block gives a value too."""
        profile = plain_value(field_of(document.root, "spec", "profile"))
        found = [
            self._field("Environment", self.environment, "spec", "defaults", *path),
            self._field("Profile", str(profile), "spec", *path),
            field_of(document.root, "spec", *path) if self.block(document) != ("spec",) else None,
        ]
        return any(value is not None for value in found)

    def _field(self, kind: FileKind, stem: str, *path: str) -> Node | None:
        document = self.documents.get((kind, stem))
        return field_of(document.root, *path) if document else None


def _edit(
    document: Document, entries: Sequence[DriftEntry], layers: _Layers, files: _Files
) -> tuple[FileEdit, list[str]]:
    """Return the edit of a topic's file, and a sentence on each difference that it leaves."""
    edits, left = list[str](), list[str]()
    before = text = regular_text(Path(document.file)) or ""
    for entry in entries:
        path = (entry.field or "").split(".", 1)
        change = f"{path[-1]}: {_shown(path, entry.wanted)} -> {_shown(path, entry.live)}"
        problem = layers.problem(entry, path, document)
        new = None if problem else _taken_over(entry.live, path, document, text, layers)
        edited = None if new is None else files.edited(document.file, new)
        if new is None or edited is None:
            by_hand = f"{document.file} is written so that no line can be changed: write it there"
            left.append(f"{document.stem}: {change}: {problem or by_hand}")
        else:
            document, text = edited, new
            edits.append(change)
    return FileEdit(topic=document.stem, file=document.file, before=before, after=text, edits=tuple(edits)), left


def _taken_over(live: str | None, path: Sequence[str], document: Document, text: str, layers: _Layers) -> str | None:
    """Return the text with the live value; one that is not live is taken out, or null where a lower layer gives it."""
    whole, name = (*layers.block(document), *path), path[-1]
    if live is not None:
        return with_value(document.root, text, whole, int(live) if name in NUMBERS else written_config(name, live))
    taken_out = None if layers.is_given_below(document, path) else without_value(document.root, text, whole)
    return taken_out or with_value(document.root, text, whole, None)


def _refusal(edit: FileEdit, after: Validated, still: Sequence[DriftEntry]) -> str:
    """Say why this edit must not be written; empty: it may."""
    tried = f"{'; '.join(edit.edits)}: {edit.file} would not be valid"
    if error := next((found for found in after.diagnostics if found.is_error and found.file == edit.file), None):
        return f"{tried}: {error.code}: {error.summary}"
    if after.desired is None:
        return f"{tried} with the other files"
    fields = {entry.field.removeprefix("configs.") for entry in still if entry.topic == edit.topic and entry.field}
    if left := fields & {text.partition(": ")[0] for text in edit.edits}:
        return f"{', '.join(sorted(left))}: the file would still ask for another value"
    return ""


def _shown(path: Sequence[str], value: str | None) -> str:
    return shown_config(path[-1], value) if path[0] == "configs" else str(value)
