"""Pairs of names: equal, equal in Kafka's metrics, or easy to confuse."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from topicops.model.codes import Code
from topicops.model.specs.document import Span
from topicops.steps.specs.findings import Finding, note_at
from topicops.steps.specs.layers import EnvironmentView, TopicSource
from topicops.steps.specs.rules.names import folded, name_problem
from topicops.steps.specs.suggestions import folded_letters

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
                yield Finding(
                    Code.DIFFERS_BY_CASE,
                    file,
                    span,
                    summary,
                    "keep one of the two names",
                    note=note,
                    warns=what == "domain",
                )


def _look_alikes(topics: Iterable[TopicSource]) -> Iterator[list[TopicSource]]:
    """Groups of names with one skeleton; any two names that clash have the same one."""
    groups: defaultdict[str, list[TopicSource]] = defaultdict(list)
    for topic in topics:
        if topic.name is not None:
            groups[skeleton(topic.name)].append(topic)
    return (group for group in groups.values() if len(group) > 1)


def _clash(earlier: TopicSource, later: TopicSource) -> Finding | None:
    one, other = earlier.label, later.label
    if one == other:
        return _finding(
            later, Code.DEFINED_TWICE, f"{other} is defined in {earlier.file} too", "keep one of the two files", earlier
        )
    if not later.shares_environment(earlier):
        return None
    if one.lower() == other.lower():
        return _finding(
            later, Code.DIFFERS_BY_CASE, f"{other} and {one} differ by case only", "choose another name", earlier
        )
    if folded(one) == folded(other):
        why = f"{other} and {one} have the same metrics, since Kafka folds . to _"
        return _finding(later, Code.NAMES_COLLIDE, why, "Kafka refuses the second; choose another name", earlier)
    return _finding(
        later,
        Code.LOOK_ALIKE_NAME,
        f"{other} looks like {one}",
        "choose a name that is not so easily confused",
        earlier,
    )


def _finding(topic: TopicSource, code: Code, summary: str, remedy: str, other: TopicSource) -> Finding:
    note = note_at(other.file, other.metadata.values["name"].span, "the other name")
    return Finding(code, topic.file, topic.metadata.values["name"].span, summary, remedy, topic.label, note=note)
