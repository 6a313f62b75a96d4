"""retire: turn a spec into a tombstone. Blocks are replaced; all other lines stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from topicops.edges.specs.open_files import regular_text
from topicops.edges.specs.reader import read_tree
from topicops.features.authoring.exceptions_file import Read
from topicops.features.authoring.new_spec import require_sound
from topicops.features.shared.document_values import field_of, plain_value
from topicops.features.shared.writer import document_of, replace_text, shown
from topicops.features.shared.yaml_blocks import chunks_of, is_block, lines_of
from topicops.features.shared.yaml_text import Content, text_of
from topicops.flow.runs.files import read_specs
from topicops.flow.runs.run import EnvironmentRun
from topicops.model.errors import UsageError
from topicops.model.specs.document import Document, Fields, Tree
from topicops.steps.planning.cluster_guard import require_cluster_id
from topicops.steps.specs.suggestions import similar_word

_REPLACED = ("spec", "lifecycle")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """The ``lifecycle`` of a topic that is to be deleted."""

    reason: str
    not_before: datetime | None = None
    """Time in UTC."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """Id of the topic in each environment."""

    @property
    def content(self) -> dict[str, Content]:
        found: dict[str, Content] = {"state": "absent", "reason": self.reason}
        if self.not_before is not None:
            found["notBefore"] = self.not_before.isoformat().replace("+00:00", "Z")
        if self.topic_ids:
            found["topicIds"] = dict(sorted(self.topic_ids.items()))
        return found


def tombstone_of(document: Document, below: str, text: str, tombstone: Tombstone, read: Read) -> str:
    """The file's text as a tombstone; only comments inside the replaced blocks are lost.

    Args:
        below: The file's path below ``topics/``.
        text: What the document was read from.

    Raises:
        UsageError: The file is a tombstone already, or it is written so that no block can be removed.
    """
    root = document.root
    if not isinstance(root, Fields):
        raise UsageError(f"{document.file}: it cannot be read; `topicops validate` says why")
    state = field_of(root, "lifecycle", "state")
    if plain_value(state) == "absent":
        raise UsageError(f"{document.file}:{state.span.line if state else 1}: this is a tombstone already")
    edited = _edited(root, text, text_of({"lifecycle": tombstone.content}))
    if edited is None or _kept(read(below, edited)) != _kept(document):
        raise UsageError(
            f"{document.file}: written so that no block can be taken out of it; write one field a line, "
            "or put the lifecycle there yourself"
        )
    return edited


def _edited(root: Fields, text: str, lifecycle: str) -> str | None:
    lines = text.split("\n")
    if not is_block(root, lines) or root.first.column != 1:
        return None
    kept: list[str] = []
    for chunk in chunks_of(root, lines, start=1, end=len(lines) + 1):
        found = lines_of(chunk, lines)
        if chunk.name not in _REPLACED:
            kept += found
        else:
            kept += [line for line in found if line.startswith("#")]
    while kept and not kept[-1].strip():
        kept.pop()
    return "\n".join([*kept, lifecycle])


def _kept(document: Document) -> object:
    """The values that must be the same before and after."""
    root = document.root
    entries = root.entries if isinstance(root, Fields) else ()
    return {key.text: plain_value(value) for key, value in entries if key.text not in _REPLACED}


def retire(topics: Path, topic: str, tombstone: Callable[[], Tombstone]) -> str:
    """Turn the spec of a topic into a tombstone; gives the file's name.

    Args:
        tombstone: Called once the topic's file is found and read.

    Raises:
        UsageError: No file describes the topic, or it cannot be edited.
        SpecError: The tombstone breaks a rule.
        SpecFileError: The file cannot be written.
    """
    tree = read_tree(topics)
    document = _document(tree, topic)
    path = Path(document.file)
    text = regular_text(path)
    if text is None:
        raise UsageError(f"{document.file}: it cannot be read; `topicops validate` says why")
    below = f"{path.parent.name}/{path.name}"
    edited = tombstone_of(document, below, text, tombstone(), partial(document_of, topics))
    require_sound(tree, document_of(topics, below, edited), datetime.now(UTC))
    replace_text(path, edited, before=text)
    return shown(path)


def _document(tree: Tree, topic: str) -> Document:
    found = [document for document in tree.documents if document.kind == "Topic" and document.stem == topic]
    if len(found) != 1:
        close = similar_word(topic, [document.stem for document in tree.documents if document.kind == "Topic"])
        near = f"; did you mean {close}?" if close else ""
        problem = f"no file describes it{near}" if not found else f"{found[0].file} and {found[1].file} describe it"
        raise UsageError(f"{topic}: {problem}")
    return found[0]


def topic_id(run: EnvironmentRun, topic: str) -> str:
    """Read the id of a live topic. Raises ``UsageError`` where it has none, or is not there."""
    environment, _ = read_specs(run.files).require()
    with run.access(environment).reader() as reader:
        require_cluster_id(reader.cluster_id(), environment)
        live = reader.traces([topic])[topic].live
    if live is None or live.topic_id is None:
        problem = "is not live" if live is None else "has no id, because an old Kafka version created it"
        raise UsageError(f"{topic} {problem} in {environment.name}; leave this environment out")
    return live.topic_id
