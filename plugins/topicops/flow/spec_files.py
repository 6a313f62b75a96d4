"""What the commands on spec files do: validate, write and retire specs. No connection is opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING

from topicops.edges.specs.open_files import regular_text, source_lines
from topicops.edges.specs.reader import read_tree
from topicops.model.errors import UsageError
from topicops.model.gc_pause import gc_paused
from topicops.model.specs.diagnostics import Diagnostic
from topicops.model.specs.document import Document, Tree

if TYPE_CHECKING:
    from topicops.steps.authoring.new_spec import NewTopic
    from topicops.steps.authoring.retire import Tombstone
    from topicops.steps.specs.validate import Validated


@gc_paused()
def validate_files(topics: Path, *, environment: str | None) -> Validated:
    """Find every problem of every file.

    Args:
        environment: None means that the topics of every environment are checked.

    Raises:
        UsageError: There is no such folder, or no such environment.
    """
    from topicops.steps.specs.validate import validate

    return validate(read_tree(topics), environment=environment, now=datetime.now(UTC))


def shown_diagnostics(diagnostics: Sequence[Diagnostic]) -> str:
    """Diagnostics as text, each with its source line."""
    from topicops.steps.reporting.specs.diagnostics_text import diagnostics_text

    return diagnostics_text(diagnostics, source_lines)


def write_new_spec(
    topics: Path, new: NewTopic, *, domain: str | None, passes: Sequence[Callable[[str], str]] = ()
) -> str:
    """Check a new topic against all rules and write its file; gives the file's name.

    Args:
        domain: The folder; None means the first dotted part of the name.
        passes: Each takes the text and gives what is written in its place.

    Raises:
        UsageError: A file cannot have this name.
        SpecError: The spec breaks a rule.
        SpecFileError: There is such a file already, or it cannot be written.
    """
    from topicops.edges.specs.writer import document_of, require_free, shown, write_new
    from topicops.steps.authoring.new_spec import require_sound_new
    from topicops.steps.authoring.owners_and_domains import checked_name, domain_of

    stem = checked_name(new.name)
    below = f"{domain or domain_of(stem)}/{stem}.yaml"
    require_free(topics / below)
    text = _with_schema_line(reduce(lambda text, change: change(text), passes, new.text), topics)
    tree = read_tree(topics)
    require_sound_new(tree, document_of(topics, below, text), datetime.now(UTC))
    write_new(topics, {below: text})
    return shown(topics / below)


def _with_schema_line(text: str, topics: Path) -> str:
    """The text with its schema named on the first line, where `topicops init` has put the schemas beside ``topics``."""
    from topicops.steps.authoring.schema_line import SCHEMAS, schema_line

    has_schema = (topics.absolute().parent / SCHEMAS / "topic.v1.json").is_file()
    return f"{schema_line('topic')}\n{text}" if has_schema else text


def retire(topics: Path, topic: str, tombstone: Callable[[], Tombstone]) -> str:
    """Turn the spec of a topic into a tombstone; gives the file's name.

    Args:
        tombstone: Called once the topic's file is found and read.

    Raises:
        UsageError: No file describes the topic, or it cannot be edited.
        SpecError: The tombstone breaks a rule.
        SpecFileError: The file cannot be written.
    """
    from topicops.edges.specs.writer import document_of, replace_text, shown
    from topicops.steps.authoring.new_spec import require_sound
    from topicops.steps.authoring.retire import tombstone_of

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
    from topicops.steps.specs.suggestions import similar_word

    found = [document for document in tree.documents if document.kind == "Topic" and document.stem == topic]
    if len(found) != 1:
        close = similar_word(topic, [document.stem for document in tree.documents if document.kind == "Topic"])
        near = f"; did you mean {close}?" if close else ""
        problem = f"no file describes it{near}" if not found else f"{found[0].file} and {found[1].file} describe it"
        raise UsageError(f"{topic}: {problem}")
    return found[0]
