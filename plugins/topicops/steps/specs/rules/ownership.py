"""Owners: which names, labels and budgets they have, and whether what files refer to is there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from topicops.model.codes import Code
from topicops.model.specs.document import Span
from topicops.model.specs.topic_config import TOPIC_CONFIGS, config_of
from topicops.steps.specs.fields import Section
from topicops.steps.specs.findings import Finding, note_at
from topicops.steps.specs.layers import EnvironmentView, MergedTopic, TopicSource
from topicops.steps.specs.rules.environments import written_exceptions
from topicops.steps.specs.suggestions import meant


@lru_cache(maxsize=64)
def whole_match(pattern: str) -> Callable[[str], bool]:
    """Return whether a whole text matches ``pattern``, in the syntax of Rust's regex crate, which pydantic-core brings.

    Raises ``ValueError``: It is no such expression; the text says why, in one line.
    """
    from pydantic_core import SchemaError, SchemaValidator, ValidationError  # few environments have a pattern

    try:
        validator = SchemaValidator({"type": "str", "pattern": rf"\A(?:{pattern})\z"})
    except SchemaError as error:
        last_line = str(error).strip().splitlines()[-1]
        raise ValueError(last_line.partition(": ")[2] or last_line) from error

    def matches(text: str) -> bool:
        try:
            validator.validate_python(text)
        except ValidationError:
            return False
        return True

    return matches


_LARGEST_SHOWN = 3
_NEW_OWNER = "add it there; of an owner with a new name, keep the old entry too until no file names it"


def names_fit_the_pattern(view: EnvironmentView) -> Iterator[Finding]:
    policy = view.environment_spec.section("policy")
    pattern = policy.get("namePattern", str)
    if pattern is None:
        return
    try:
        fits = whole_match(pattern)
    except ValueError as error:
        remedy = "write it in the syntax of https://docs.rs/regex; it has no look-around and no back-references"
        yield policy.finding(Code.OUT_OF_RANGE, "namePattern", f"this is no regular expression: {error}", remedy)
        return
    for topic in _that_shall_exist(view):
        if topic.name is not None and not fits(topic.name):
            note = note_at(policy.file, policy.values["namePattern"].span, "the pattern")
            summary = f"{topic.name} does not match {pattern}"
            remedy = "policy.namePattern says how topics are named here"
            yield topic.metadata.finding(Code.NAME_PATTERN, "name", summary, remedy, topic.label, note=note)


def required_labels_are_given(view: EnvironmentView) -> Iterator[Finding]:
    required = view.environment_spec.section("policy").texts("requiredLabels")
    for topic in _that_shall_exist(view) if required else ():
        if topic.metadata.is_unreadable("labels"):
            continue
        labels = topic.metadata.section("labels")
        if missing := [name for name in required if name not in labels]:
            span = labels.first if labels.values else topic.metadata.first
            summary = f"labels lack {' and '.join(missing)}"
            remedy = "policy.requiredLabels names them; write them below metadata.labels"
            yield Finding(Code.LABEL_MISSING, topic.file, span, summary, remedy, topic.label)


def owners_may_have_topics(view: EnvironmentView) -> Iterator[Finding]:
    """By ``policy.allowedOwners``, and by the file of owners where there is one."""
    allowed = view.environment_spec.section("policy").texts_or_none("allowedOwners")
    listed = None if view.owners is None else {entry.get("owner", str) for entry in _entries_here(view)}
    for topic in _that_shall_exist(view) if allowed is not None or listed is not None else ():
        owner = topic.metadata.get("owner", str)
        if owner is None:
            continue
        if allowed is not None and not any(fnmatchcase(owner, pattern) for pattern in allowed):
            yield _wrong_owner(topic, f"{owner} may have no topics here", "policy.allowedOwners names who may")
        elif listed is not None and owner not in listed:
            yield _unlisted_owner(topic, owner, view)


def names_belong_to_their_owners(view: EnvironmentView) -> Iterator[Finding]:
    """A name that is an owner's by the file of owners is used by nobody else."""
    claims = [(entry, entry.texts("topics")) for entry in view.owner_entries if entry.items("topics")]
    for topic in _that_shall_exist(view) if claims else ():
        owner, name = topic.metadata.get("owner", str), topic.name
        if owner is None or name is None:
            continue
        claiming = [entry for entry, patterns in claims if any(fnmatchcase(name, each) for each in patterns)]
        others = [entry for entry in claiming if entry.get("owner", str) not in (None, owner)]
        if others and len(others) == len(claiming):
            first = others[0]
            note = note_at(first.file, first.values["topics"].span, "the names")
            summary = f"{name} is a name of {first.get('owner', str)}, not of {owner}"
            remedy = "choose another name, or correct the owner"
            yield topic.metadata.finding(Code.NAME_OF_OTHER_OWNER, "name", summary, remedy, topic.label, note=note)


def budgets_hold(view: EnvironmentView) -> Iterator[Finding]:
    """The partitions and replicas of each owner, all topics of one environment together."""
    entries = [entry for entry in _entries_here(view) if "partitions" in entry or "replicas" in entry]
    if view.environment is None or not entries:
        return
    topics = _by_owner(view)
    for entry in entries:
        owned = topics.get(entry.get("owner", str) or "", ())
        partitions = {topic.label: topic.number("partitions") or 0 for topic in owned}
        replicas = {t.label: partitions[t.label] * (t.number("replicationFactor") or 0) for t in owned}
        yield from _over(view, entry, "partitions", partitions)
        yield from _over(view, entry, "replicas", replicas)


def _over(view: EnvironmentView, entry: Section, what: str, of_topics: Mapping[str, int]) -> Iterator[Finding]:
    limit, found = entry.get(what, int), sum(of_topics.values())
    if limit is None or found <= limit:
        return
    largest = sorted(of_topics, key=lambda name: (-of_topics[name], name))[:_LARGEST_SHOWN]
    shown = ", ".join(f"{name} {of_topics[name]}" for name in largest)
    owner = entry.get("owner", str)
    summary = f"{owner} would have {found} {what} in {view.environment_name}, {limit} allowed"
    remedy = f"lower them, or raise the budget; the largest: {shown}"
    yield Finding(Code.OVER_BUDGET, entry.file, entry.values[what].span, summary, remedy, owner=owner)


def _by_owner(view: EnvironmentView) -> Mapping[str, Sequence[MergedTopic]]:
    found: defaultdict[str, list[MergedTopic]] = defaultdict(list)
    for topic in view.complete:
        found[topic.source.metadata.get_or("owner", "")].append(topic)
    return found


def _that_shall_exist(view: EnvironmentView) -> Iterator[TopicSource]:
    """Yield topics that are not to be deleted: a deleted one may have any name, labels and owner."""
    return (topic for topic in view.here if topic.shall_exist)


def _entries_here(view: EnvironmentView) -> Sequence[Section]:
    name = view.environment_name
    return [
        entry
        for entry in view.owner_entries
        if name is None or entry.get("environments", tuple) is None or name in entry.texts("environments")
    ]


def _unlisted_owner(topic: TopicSource, owner: str, view: EnvironmentView) -> Finding:
    known = [name for entry in view.owner_entries if (name := entry.get("owner", str))]
    if owner in known:
        summary = f"{owner} may have no topics in {view.environment_name}"
        remedy = "owners.yaml names the environments of each owner; name others in metadata.environments"
    else:
        summary, remedy = f"owners.yaml has no owner {owner}", meant(owner, known, _NEW_OWNER)
    return _wrong_owner(topic, summary, remedy)


def _wrong_owner(topic: TopicSource, summary: str, remedy: str) -> Finding:
    return topic.metadata.finding(Code.OWNER_NOT_ALLOWED, "owner", summary, remedy, topic.label)


def profiles_exist(view: EnvironmentView) -> Iterator[Finding]:
    for topic in view.topics:
        name = topic.profile
        if name is not None and name not in view.profiles:
            remedy = meant(name, view.profiles, _there_are(view.profiles))
            yield topic.spec.finding(Code.UNKNOWN_PROFILE, "profile", f"no profile is called {name!r}", remedy)


def overrides_have_topics(view: EnvironmentView) -> Iterator[Finding]:
    known = view.unread_topics | {topic.label for topic in view.topics}
    overrides = view.environment_spec.section("overrides")
    for name, value in overrides.values.items():
        if name not in known:
            remedy = meant(name, known, "take the override out")
            yield Finding(Code.UNKNOWN_OVERRIDDEN, overrides.file, value.key, f"no topic is called {name!r}", remedy)


def exceptions_have_topics(view: EnvironmentView) -> Iterator[Finding]:
    known = view.unread_topics | {topic.label for topic in view.topics}
    for exception in written_exceptions(view):
        name = exception.get("topic", str)
        if name is not None and name not in known:
            remedy = meant(name, known, "take the exception out")
            yield exception.finding(Code.UNKNOWN_EXCEPTED, "topic", f"no topic is called {name!r}", remedy)


def environments_exist(view: EnvironmentView) -> Iterator[Finding]:
    """In topics, in tombstones and in the file of owners; ``policy.after`` has a rule of its own."""
    if not view.environment_names:
        return  # the folder has none at all
    for topic in view.topics:
        yield from _unknown_environments(topic.metadata, view)
        for named in (topic.lifecycle.section("topicIds"), topic.overrides):
            for name, value in named.values.items():
                if name not in view.environment_names:
                    yield _unknown_environment(name, named.file, value.key, view)
                elif named is topic.overrides and not topic.is_for(name):
                    summary, remedy = (
                        f"the topic is not for {name}",
                        "add it to metadata.environments, or take this out",
                    )
                    yield Finding(Code.UNKNOWN_ENVIRONMENT, named.file, value.key, summary, remedy)
    for entry in view.owner_entries:
        yield from _unknown_environments(entry, view)


def alterable_configs_exist(view: EnvironmentView) -> Iterator[Finding]:
    policy = view.environment_spec.section("policy")
    for item in policy.items("alterableConfigs"):
        if isinstance(item.value, str) and config_of(item.value) is None:
            remedy = meant(item.value, TOPIC_CONFIGS, "see Kafka's list of topic configs")
            yield Finding(
                Code.UNKNOWN_CONFIG, policy.file, item.span, f"Kafka has no topic config {item.value}", remedy
            )


def _unknown_environments(section: Section, view: EnvironmentView) -> Iterator[Finding]:
    for item in section.items("environments"):
        if isinstance(item.value, str) and item.value not in view.environment_names:
            yield _unknown_environment(item.value, section.file, item.span, view)


def _unknown_environment(name: str, file: str, span: Span, view: EnvironmentView) -> Finding:
    remedy = meant(name, view.environment_names, _there_are(view.environment_names))
    return Finding(Code.UNKNOWN_ENVIRONMENT, file, span, f"no environment is called {name!r}", remedy)


def _there_are(known: Collection[str]) -> str:
    return f"there are: {', '.join(sorted(known)) or 'none'}"
