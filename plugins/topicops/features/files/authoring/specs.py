"""``new`` and ``retire``: write the first file of a topic, or turn it into a tombstone, if no rule is against it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path

from topicops.edges.specs.open_files import regular_text
from topicops.edges.specs.reader import read_tree
from topicops.features.files.authoring.first_environment import SCHEMAS, schema_line
from topicops.features.shared.writer import document_of, replace_text, require_free, shown, tree_with, write_new
from topicops.features.shared.yaml_blocks import chunks_of, field_of, is_block, plain_value
from topicops.features.shared.yaml_text import Content, document_text, text_of
from topicops.flow.runs.files import read_specs
from topicops.flow.runs.run import EnvironmentRun
from topicops.model.errors import SpecError, UsageError
from topicops.model.specs.diagnostics import Diagnostic
from topicops.model.specs.document import Document, Fields, Tree
from topicops.steps.planning.right_cluster import require_cluster_id
from topicops.steps.specs.rules.names import name_problem
from topicops.steps.specs.rules.values import not_given
from topicops.steps.specs.suggestions import similar_word
from topicops.steps.specs.validate import validate

LONGEST_OWNER = 200
FOLDERS_WITH_MEANING = ("environments", "profiles")
"""Folders of other files; no topic file can be in them."""
_PLACEHOLDER = re.compile(
    r"[\W_]*(?:todo|tbd|tba|fixme|change[-_ ]?me|unknown|none|nobody|n/?a|x+)?[\W_]*", re.IGNORECASE
)
_FOLDER = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_OPTIONS = {"partitions": "--partitions", "replicationFactor": "--replication-factor"}
"""Option of each field."""
_REPLACED = ("spec", "lifecycle")
"""Blocks of a file that the lifecycle of a tombstone replaces."""
_DIGITS = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_NOT_TEXT: Mapping[str, Content] = {"true": True, "false": False, "null": None}


def topic_text(metadata: Mapping[str, Content], spec: Mapping[str, Content]) -> str:
    """Return the text of a topic's file; None and empty mean that a field is left to the layers below."""
    return document_text("Topic", given(metadata), {"spec": given(spec)})


def given(fields: Mapping[str, Content]) -> dict[str, Content]:
    """Return the fields that hold something."""
    return {name: content for name, content in fields.items() if content not in (None, {}, ())}


def typed(text: str) -> Content:
    """Return the value of a config as people type it: ``7d``, ``compact``, ``12``, ``null``."""
    if text in _NOT_TEXT:
        return _NOT_TEXT[text]
    return int(text) if _DIGITS.fullmatch(text) else text


def write_new_spec(
    topics: Path, topic: str, text: str, *, domain: str | None, passes: Sequence[Callable[[str], str]] = ()
) -> str:
    """Check the file of a new topic against all rules and write it below ``domain``; gives the file's name.

    Each of ``passes`` gives what is written in place of the text. If only numbers are missing, a ``UsageError`` names
    their options.
    """
    if problem := name_problem(topic):
        raise UsageError(": ".join(problem))
    below = f"{domain or domain_of(topic)}/{topic}.yaml"
    require_free(topics / below)
    text = reduce(lambda text, change: change(text), passes, text)
    if (topics.absolute().parent / SCHEMAS / "topic.v1.json").is_file():  # `topicops init` has put it there
        text = f"{schema_line('topic')}\n{text}"
    try:
        _require_sound(read_tree(topics), document_of(topics, below, text))
    except SpecError as error:
        summaries = {found.summary for found in error.diagnostics}
        options = [option for name, option in _OPTIONS.items() if not_given(name) in summaries]
        if len(options) < len(summaries):
            raise
        raise UsageError(
            f"give {' and '.join(options)}: neither a profile nor the environment's defaults have one for {topic}"
        ) from error
    write_new(topics, {below: text})
    return shown(topics / below)


def _require_sound(before: Tree, changed: Document) -> None:
    """Raise ``SpecError`` with every error that ``changed`` would bring, itself or to another file."""
    now = datetime.now(UTC)
    known = {_problem(found) for found in validate(before, environment=None, now=now).diagnostics}
    after = validate(tree_with(before, changed), environment=None, now=now)
    added = [found for found in after.diagnostics if found.is_error and _problem(found) not in known]
    if added:
        raise SpecError(added)


def _problem(found: Diagnostic) -> tuple[str, str, str, bool]:
    """Return the problem without its place, which an edit before it moves."""
    return found.file, found.code, found.summary, found.is_error


def retire(topics: Path, topic: str, lifecycle: Callable[[], Mapping[str, Content]]) -> str:
    """Turn the spec of a topic into a tombstone; gives the file's name. Only comments inside replaced blocks are lost.

    ``lifecycle`` is called once the file is read. Raises ``UsageError`` where no block can be taken out of it.
    """
    tree = read_tree(topics)
    specs = [document for document in tree.documents if document.kind == "Topic"]
    named = [document for document in specs if document.stem == topic]
    if not named:
        close = similar_word(topic, [document.stem for document in specs])
        raise UsageError(f"{topic}: no file describes it" + (f"; did you mean {close}?" if close else ""))
    if len(named) > 1:
        raise UsageError(f"{topic}: {named[0].file} and {named[1].file} describe it")
    document = named[0]
    path, root = Path(document.file), document.root
    text = regular_text(path)
    if text is None or not isinstance(root, Fields):
        raise UsageError(f"{document.file}: it cannot be read; `topicops validate` says why")
    state = field_of(root, "lifecycle", "state")
    if plain_value(state) == "absent":
        raise UsageError(f"{document.file}:{state.span.line if state else 1}: this is a tombstone already")
    edited = _with_lifecycle(root, text, text_of({"lifecycle": lifecycle()}))
    after = None if edited is None else document_of(topics, f"{path.parent.name}/{path.name}", edited)
    if edited is None or after is None or _kept(after) != _kept(document):
        raise UsageError(
            f"{document.file}: written so that no block can be taken out of it; write one field a line, "
            "or put the lifecycle there yourself"
        )
    _require_sound(tree, after)
    replace_text(path, edited, before=text)
    return shown(path)


def _with_lifecycle(root: Fields, text: str, lifecycle: str) -> str | None:
    lines = text.split("\n")
    if not is_block(root, lines) or root.first.column != 1:
        return None
    kept: list[str] = []
    for chunk in chunks_of(root, lines, start=1, end=len(lines) + 1):
        found, is_kept = lines[chunk.start - 1 : chunk.end - 1], chunk.entry[0].text not in _REPLACED
        kept += [line for line in found if is_kept or line.startswith("#")]
    while kept and not kept[-1].strip():
        kept.pop()
    return "\n".join([*kept, lifecycle])


def _kept(document: Document) -> object:
    """Return the values that must be the same before and after."""
    entries = document.root.entries if isinstance(document.root, Fields) else ()
    return {key.text: plain_value(value) for key, value in entries if key.text not in _REPLACED}


def topic_id(run: EnvironmentRun, topic: str) -> str:
    """Read the id of a live topic. Raises ``UsageError`` where it has none, or is not there."""
    environment, _ = read_specs(run.files).require()
    topic = environment.prefix + topic
    with run.access(environment).reader() as reader:
        require_cluster_id(reader.cluster_id(), environment)
        live = reader.traces([topic])[topic].live
    if live is None or live.topic_id is None:
        problem = "is not live" if live is None else "has no id, because an old Kafka version created it"
        raise UsageError(f"{topic} {problem} in {environment.name}; leave this environment out")
    return live.topic_id


def is_placeholder(owner: str) -> bool:
    """Return whether a text stands where an owner belongs and names none."""
    return _PLACEHOLDER.fullmatch(owner) is not None or len(owner) > LONGEST_OWNER or not owner.isprintable()


def checked_owner(owner: str) -> str:
    """Return the owner, unless it is a placeholder. Raises ``UsageError``."""
    if _PLACEHOLDER.fullmatch(owner):
        raise UsageError(f"--owner {owner!r} names no team or person; name one, as in: --owner team-payments")
    if len(owner) > LONGEST_OWNER or not owner.isprintable():
        raise UsageError(f"--owner: a name of at most {LONGEST_OWNER} characters on one line")
    return owner


def checked_domain(domain: str | None) -> str | None:
    """Return a folder below ``topics/``, if one was given. Raises ``UsageError``."""
    if domain is not None and (domain in FOLDERS_WITH_MEANING or not _FOLDER.fullmatch(domain)):
        raise UsageError(
            f"--domain {domain!r}: one folder of letters, digits, dot, underscore and dash; "
            f"{' and '.join(FOLDERS_WITH_MEANING)} hold other files"
        )
    return domain


def domain_of(topic: str) -> str:
    """Return the first dotted part of a legal name, if it can be a folder of topics; else ``other``."""
    first, dot, _ = topic.partition(".")
    return first if dot and first and first not in FOLDERS_WITH_MEANING else "other"
