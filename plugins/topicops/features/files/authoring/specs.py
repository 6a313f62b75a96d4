"""``new`` and ``retire``: write the first file of a topic, or turn it into a tombstone, if no rule is against it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path

from topicops.edges.specs.reader import read_tree
from topicops.features.files.authoring.first_environment import SCHEMAS, schema_line
from topicops.features.shared.topic_files import named_topics, tombstone
from topicops.features.shared.writer import document_of, replace_text, require_free, shown, tree_with, write_new
from topicops.features.shared.yaml_blocks import field_of, plain_value
from topicops.features.shared.yaml_text import Content
from topicops.flow.runs.files import read_specs
from topicops.flow.runs.run import EnvironmentRun
from topicops.model.errors import SpecError, UsageError
from topicops.model.specs.diagnostics import Diagnostic
from topicops.model.specs.document import Document, Tree
from topicops.steps.planning.right_cluster import require_cluster_id
from topicops.steps.specs.rules.names import name_problem
from topicops.steps.specs.rules.values import not_given
from topicops.steps.specs.validate import validate

Lifecycles = Mapping[str, Mapping[str, Content]]
"""Block of each topic."""
LONGEST_OWNER = 200
FOLDERS_WITH_MEANING = ("environments", "profiles")
"""Folders of other files; no topic file can be in them."""
_PLACEHOLDER = re.compile(
    r"[\W_]*(?:todo|tbd|tba|fixme|change[-_ ]?me|unknown|none|nobody|n/?a|x+)?[\W_]*", re.IGNORECASE
)
_FOLDER = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_OPTIONS = {"partitions": "--partitions", "replicationFactor": "--replication-factor"}
_DIGITS = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_NOT_TEXT: Mapping[str, Content] = {"true": True, "false": False, "null": None}


def given(fields: Mapping[str, Content]) -> dict[str, Content]:
    """Return the fields that hold something; None and empty leave a field to the layers below."""
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


def _require_sound(before: Tree, *changed: Document) -> None:
    """Raise ``SpecError`` with every error that ``changed`` would bring, themselves or to other files."""
    now = datetime.now(UTC)
    known = {_problem(found) for found in validate(before, environment=None, now=now).diagnostics}
    after = validate(tree_with(before, *changed), environment=None, now=now)
    added = [found for found in after.diagnostics if found.is_error and _problem(found) not in known]
    if added:
        raise SpecError(added)


def _problem(found: Diagnostic) -> tuple[str, str, str, bool]:
    """Return the problem without its place, which an edit before it moves."""
    return found.file, found.code, found.summary, found.is_error


def retire(topics: Path, globs: Sequence[str], lifecycle: Callable[[Sequence[str]], Lifecycles]) -> list[str]:
    """Turn the specs of topics into tombstones, all or none; gives the names of their files.

    Args:
        globs: Names of topics, or globs, which pass over tombstones.
        lifecycle: Gives the block of each of these topics; it is called once the files are read.

    Raises ``UsageError`` where no block can be taken out of a file.
    """
    tree = read_tree(topics)
    files = [document for document in tree.documents if document.kind == "Topic"]
    names = named_topics(globs, {document.stem for document in files}, otherwise="no file describes it")
    documents = {document.stem: document for document in files}
    absent = {n for n in names if plain_value(field_of(documents[n].root, "lifecycle", "state")) == "absent"}
    names = [name for name in names if name not in absent or name in globs] or names
    if clash := next((d for d in files if d.stem in names and d is not documents[d.stem]), None):
        raise UsageError(f"{clash.stem}: {clash.file} and {documents[clash.stem].file} describe it")
    lifecycles = lifecycle([name for name in names if name not in absent])
    made = [tombstone(topics, documents[name], lifecycles.get(name, {})) for name in names]
    _require_sound(tree, *(document for _, document in made))
    for edit, _ in made:
        replace_text(Path(edit.file), edit.after, before=edit.before)
    return [shown(Path(edit.file)) for edit, _ in made]


def topic_ids(run: EnvironmentRun, topics: Sequence[str]) -> dict[str, str]:
    """Read the ids of live topics. Raises ``UsageError`` where one has none, or is not there."""
    environment, _ = read_specs(run.files).require()
    named = {topic: environment.prefix + topic for topic in topics}
    with run.access(environment).reader() as reader:
        require_cluster_id(reader.cluster_id(), environment)
        traces = reader.traces([*named.values()])
    ids: dict[str, str] = {}
    for topic in topics:
        live = traces[named[topic]].live
        if live is None or live.topic_id is None:
            problem = "is not live" if live is None else "has no id, because an old Kafka version created it"
            raise UsageError(f"{topic} {problem} in {environment.name}; leave this environment out")
        ids[topic] = live.topic_id
    return ids


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
