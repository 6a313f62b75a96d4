"""new: the first text of a spec, what would be wrong with it among the files that are there, and the file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path

from topicops.edges.specs.reader import read_tree
from topicops.features.authoring.first_environment import SCHEMAS, schema_line
from topicops.features.authoring.owners import checked_name, domain_of
from topicops.features.shared.writer import document_of, require_free, shown, write_new
from topicops.features.shared.yaml_text import Content, document_text
from topicops.model.errors import SpecError, UsageError
from topicops.model.specs.diagnostics import Diagnostic
from topicops.model.specs.document import Document, Tree
from topicops.steps.specs.rules.values import not_given
from topicops.steps.specs.validate import validate

_OPTIONS = {"partitions": "--partitions", "replicationFactor": "--replication-factor"}
"""Option of each field."""
_DIGITS = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_NOT_TEXT: Mapping[str, Content] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """What a person says of a topic to be; None and empty mean that it is left to the layers below."""

    name: str
    owner: str
    description: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    environments: Sequence[str] = ()
    profile: str | None = None
    partitions: int | None = None
    replication_factor: int | None = None
    keyed: bool | None = None
    configs: Mapping[str, str] = field(default_factory=dict)
    """Values as written: ``7d``, ``compact``, ``null``."""

    @property
    def text(self) -> str:
        metadata: dict[str, Content] = {
            "name": self.name,
            "owner": self.owner,
            "description": self.description,
            "labels": dict(self.labels) or None,
            "environments": tuple(self.environments) or None,
        }
        spec: dict[str, Content] = {
            "profile": self.profile,
            "partitions": self.partitions,
            "replicationFactor": self.replication_factor,
            "keyed": self.keyed,
            "configs": {name: _written(text) for name, text in self.configs.items()} or None,
        }
        return document_text("Topic", _given(metadata), {"spec": _given(spec)})


def _given(fields: Mapping[str, Content]) -> dict[str, Content]:
    return {name: content for name, content in fields.items() if content is not None}


def _written(text: str) -> Content:
    if text in _NOT_TEXT:
        return _NOT_TEXT[text]
    return int(text) if _DIGITS.fullmatch(text) else text


def require_sound_new(before: Tree, new: Document, now: datetime) -> None:
    """As ``require_sound``; if only numbers are missing, a ``UsageError`` names the options that give them."""
    try:
        require_sound(before, new, now)
    except SpecError as error:
        summaries = {found.summary for found in error.diagnostics}
        options = [option for name, option in _OPTIONS.items() if not_given(name) in summaries]
        if len(options) < len(summaries):
            raise
        raise UsageError(
            f"give {' and '.join(options)}: neither a profile nor the environment's defaults have one for {new.stem}"
        ) from error


def require_sound(before: Tree, changed: Document, now: datetime) -> None:
    """Raise ``SpecError`` with every error that ``changed`` would bring, itself or to another file."""
    others = [document for document in before.documents if document.file != changed.file]
    documents = sorted((*others, changed), key=lambda document: document.file)
    known = {_problem(found) for found in validate(before, environment=None, now=now).diagnostics}
    after = validate(Tree(documents=tuple(documents), files=len(documents)), environment=None, now=now)
    added = [found for found in after.diagnostics if found.is_error and _problem(found) not in known]
    if added:
        raise SpecError(added)


def _problem(found: Diagnostic) -> tuple[str, str, str, bool]:
    """Without its place, which an edit before it moves."""
    return found.file, found.code, found.summary, found.is_error


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
    stem = checked_name(new.name)
    below = f"{domain or domain_of(stem)}/{stem}.yaml"
    require_free(topics / below)
    text = reduce(lambda text, change: change(text), passes, new.text)
    if (topics.absolute().parent / SCHEMAS / "topic.v1.json").is_file():  # `topicops init` has put it there
        text = f"{schema_line('topic')}\n{text}"
    require_sound_new(read_tree(topics), document_of(topics, below, text), datetime.now(UTC))
    write_new(topics, {below: text})
    return shown(topics / below)
