"""Names: legal in Kafka, equal to the file's name, not protected, and no pair that is easy to confuse."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase, translate

from topicops.model.codes import Code
from topicops.model.specs.document import Span
from topicops.model.specs.environment import BUILT_IN_PROTECTED_TOPICS
from topicops.steps.specs.findings import Finding, note_at
from topicops.steps.specs.layers import EnvironmentView, ReadFile, TopicSource
from topicops.steps.specs.suggestions import folded_letters

LONGEST_NAME = 249
"""A file name's 255 less a dash and five digits of partition. Source: org.apache.kafka.common.internals.Topic."""
LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_OTHERS_THAN_LEGAL = re.compile(r"[^a-zA-Z0-9._-]+")
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
    """Return a name as Kafka's metrics spell it; two topics may not share it. Source: Topic#unifyCollisionChars."""
    return name.replace(".", "_")


def names_are_legal(view: EnvironmentView) -> Iterator[Finding]:
    for source, name in _named_files(view):
        problem = None if _USUAL_NAME.fullmatch(name) else name_problem(name)
        if problem:
            code, summary = problem
            usual = _OTHERS_THAN_LEGAL.sub(".", name).strip(".")
            remedy = (
                f"write {usual}, and rename the file to {usual}.yaml"
                if code is Code.NAME_CHARACTERS and usual
                else "choose another name"
            )
            yield source.metadata.finding(code, "name", summary, remedy)


def files_are_named_after_topics(view: EnvironmentView) -> Iterator[Finding]:
    for source, name in _named_files(view):
        stem = source.document.stem
        if name != stem and not name_problem(name):
            summary, remedy = f"the file is called {stem}, not {name}", f"write {stem}, or call the file {name}.yaml"
            yield source.metadata.finding(Code.FILE_NAME_DIFFERS, "name", summary, remedy)


def protected_names_stay_out(view: EnvironmentView) -> Iterator[Finding]:
    here, elsewhere = _any_of(view.protected_patterns), _any_of(BUILT_IN_PROTECTED_TOPICS)
    for topic in view.topics:
        is_here = topic.is_for(view.environment_name)
        name = topic.name and (view.prefix if is_here else "") + topic.name
        if name is None or not (here if is_here else elsewhere).match(name) or name_problem(name):
            continue
        patterns = view.protected_patterns if is_here else BUILT_IN_PROTECTED_TOPICS
        found = next((pattern for pattern in patterns if fnmatchcase(name, pattern)), None)
        if found:
            summary, remedy = f"{name} is protected by {found}", "Kafka or another system owns it"
            yield topic.metadata.finding(Code.RESERVED_NAME, "name", summary, remedy)


def names_fit_behind_the_prefix(view: EnvironmentView) -> Iterator[Finding]:
    for topic in view.here if view.prefix else ():
        if topic.name and not name_problem(topic.name) and (problem := name_problem(view.prefix + topic.name)):
            code, summary = problem
            remedy = f"the name in {view.environment_name} begins with {view.prefix} (cluster.topics.prefix)"
            yield topic.metadata.finding(code, "name", summary, remedy, topic.label)


def _any_of(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)))


def _named_files(view: EnvironmentView) -> Iterator[tuple[ReadFile, str]]:
    profiles = (profile for profile in view.profiles.values() if profile is not None)
    owners = (view.owners,) if view.owners is not None else ()
    every = (*view.topics, *profiles, *view.environments, *owners)
    return ((source, name) for source in every if (name := source.name) is not None)


_LOOK_ALIKE_CHARACTERS = str.maketrans({"0": "o", "O": "o", "1": "l", "I": "l", ".": "-", "_": "-"})
_LOOK_ALIKE_PAIRS = (("rn", "m"), ("vv", "w"))


def skeleton(name: str) -> str:
    """Equal for names that are easy to confuse."""
    text = name.translate(_LOOK_ALIKE_CHARACTERS).lower()
    for pair, single in _LOOK_ALIKE_PAIRS:
        text = text.replace(pair, single)
    return text


def names_do_not_clash(view: EnvironmentView) -> Iterator[Finding]:
    """One finding for each pair, the gravest, in the later file; an illegal name clashes with nothing."""
    for group in _look_alikes(view.topics):
        topics = sorted((topic for topic in group if not name_problem(topic.label)), key=lambda topic: topic.file)
        for index, later in enumerate(topics):
            yield from (found for earlier in topics[:index] if (found := _clash(earlier, later)))


def other_names_differ_by_more_than_case(view: EnvironmentView) -> Iterator[Finding]:
    """Profiles, environments, owners and domains: on many file systems two such names are one file or folder."""
    profiles = (profile for profile in view.profiles.values() if profile is not None)
    environments = (file for file in view.environments if file.document.kind == "Environment")
    domains = {topic.file.rpartition("/")[0]: topic for topic in sorted(view.topics, key=lambda topic: topic.file)}
    places: Mapping[str, Sequence[tuple[str, str, Span]]] = {
        "profile": [(file.document.stem, file.file, file.metadata.first) for file in profiles],
        "environment": [(file.document.stem, file.file, file.metadata.first) for file in environments],
        "owner": [(o, e.file, e.values["owner"].span) for e in view.owner_entries if (o := e.get("owner", str))],
        "domain": [(folder.rpartition("/")[2], topic.file, topic.metadata.first) for folder, topic in domains.items()],
    }
    for what, named in places.items():
        seen: dict[str, tuple[str, str, Span]] = {}
        for name, file, span in sorted(named, key=lambda each: each[:2]):
            earlier, other_file, other_span = seen.setdefault(folded_letters(name), (name, file, span))
            if earlier != name:
                note = note_at(other_file, other_span, f"the {what} {earlier}")
                summary = f"the {what} {name} differs from {earlier} by case, or by how its letters are stored, only"
                code, remedy, warns = Code.DIFFERS_BY_CASE, "keep one of the two names", what == "domain"
                yield Finding(code, file, span, summary, remedy, note=note, warns=warns)


def _look_alikes(topics: Iterable[TopicSource]) -> Iterator[list[TopicSource]]:
    """Yield groups of names with one skeleton; any two names that clash have the same one."""
    groups: defaultdict[str, list[TopicSource]] = defaultdict(list)
    for topic in topics:
        if topic.name is not None:
            groups[skeleton(topic.name)].append(topic)
    return (group for group in groups.values() if len(group) > 1)


def _clash(earlier: TopicSource, later: TopicSource) -> Finding | None:
    one, other = earlier.label, later.label
    if one == other:
        code, summary = Code.DEFINED_TWICE, f"{other} is defined in {earlier.file} too"
        remedy = "keep one of the two files"
    elif not later.shares_environment(earlier):
        return None
    elif one.lower() == other.lower():
        code, summary = Code.DIFFERS_BY_CASE, f"{other} and {one} differ by case only"
        remedy = "choose another name"
    elif folded(one) == folded(other):
        code, summary = Code.NAMES_COLLIDE, f"{other} and {one} have the same metrics, since Kafka folds . to _"
        remedy = "Kafka refuses the second; choose another name"
    else:
        code, summary = Code.LOOK_ALIKE_NAME, f"{other} looks like {one}"
        remedy = "choose a name that is not so easily confused"
    note = note_at(earlier.file, earlier.metadata.values["name"].span, "the other name")
    return later.metadata.finding(code, "name", summary, remedy, later.label, note=note)
