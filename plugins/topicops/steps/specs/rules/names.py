"""Single names: legal in Kafka, equal to the file's name, not protected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase, translate

from topicops.model.codes import Code
from topicops.model.specs.environment import BUILT_IN_PROTECTED_TOPICS
from topicops.steps.specs.findings import Finding
from topicops.steps.specs.layers import EnvironmentView, ReadFile

LONGEST_NAME = 249
"""A file name's 255 less a dash and five digits of partition. Source: org.apache.kafka.common.internals.Topic."""
LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_USUAL_NAME = re.compile(r"[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,248}")
"""Names that are surely legal; tested first, because that is fast."""


def name_problem(name: str) -> tuple[Code, str] | None:
    """Code and sentence for a name that Kafka refuses, in the order in which Kafka checks."""
    if name in (".", ".."):
        return Code.NAME_OF_FOLDER, f"{name!r} is no name: it means a folder"
    if len(name) > LONGEST_NAME:
        return Code.NAME_TOO_LONG, f"{len(name)} characters; Kafka takes {LONGEST_NAME}"
    if not LEGAL_NAME.fullmatch(name):
        return Code.NAME_CHARACTERS, f"{name!r} holds other characters than letters, digits, dot, underscore and dash"
    return None


def folded(name: str) -> str:
    """A name as Kafka's metrics spell it; two topics may not share it. Source: Topic#unifyCollisionChars."""
    return name.replace(".", "_")


def names_are_legal(view: EnvironmentView) -> Iterator[Finding]:
    for source, name in _named_files(view):
        problem = None if _USUAL_NAME.fullmatch(name) else name_problem(name)
        if problem:
            yield _at_name(source, *problem)


def files_are_named_after_topics(view: EnvironmentView) -> Iterator[Finding]:
    for source, name in _named_files(view):
        stem = source.document.stem
        if name != stem and not name_problem(name):
            yield _at_name(
                source, Code.FILE_NAME_DIFFERS, f"the file is called {stem}, not {name}", "the two are always the same"
            )


def protected_names_stay_out(view: EnvironmentView) -> Iterator[Finding]:
    here, elsewhere = _any_of(view.protected_patterns), _any_of(BUILT_IN_PROTECTED_TOPICS)
    for topic in view.topics:
        name, is_here = topic.name, topic.is_for(view.environment_name)
        if name is None or not (here if is_here else elsewhere).match(name) or name_problem(name):
            continue
        patterns = view.protected_patterns if is_here else BUILT_IN_PROTECTED_TOPICS
        found = next((pattern for pattern in patterns if fnmatchcase(name, pattern)), None)
        if found:
            yield _at_name(
                topic, Code.RESERVED_NAME, f"{name} is protected by {found}", "Kafka or another system owns it"
            )


def _any_of(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)))


def _named_files(view: EnvironmentView) -> Iterator[tuple[ReadFile, str]]:
    profiles = (profile for profile in view.profiles.values() if profile is not None)
    owners = (view.owners,) if view.owners is not None else ()
    every = (*view.topics, *profiles, *view.environments, *owners)
    return ((source, name) for source in every if (name := source.name) is not None)


def _at_name(source: ReadFile, code: Code, summary: str, remedy: str = "") -> Finding:
    return Finding(code, source.file, source.metadata.values["name"].span, summary, remedy)
