"""Names that one file uses for something in another: each of them must be there.

``FIELDS`` of ``tests/steps/specs/test_references.py`` has every field that holds a name, with its rule.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from topicops.model.codes import Code
from topicops.model.specs.document import Span
from topicops.model.specs.topic_config import TOPIC_CONFIGS
from topicops.steps.specs.fields import Section
from topicops.steps.specs.findings import Finding
from topicops.steps.specs.layers import EnvironmentView
from topicops.steps.specs.rules.environments import written_exceptions
from topicops.steps.specs.suggestions import meant


def profiles_exist(view: EnvironmentView) -> Iterator[Finding]:
    for topic in view.topics:
        name = topic.profile
        if name is not None and name not in view.profiles:
            span = topic.spec.values["profile"].span
            remedy = meant(name, view.profiles, _there_are(view.profiles))
            yield Finding(Code.UNKNOWN_PROFILE, topic.file, span, f"no profile is called {name!r}", remedy)


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
            span = exception.values["topic"].span
            yield Finding(Code.UNKNOWN_EXCEPTED, exception.file, span, f"no topic is called {name!r}", remedy)


def environments_exist(view: EnvironmentView) -> Iterator[Finding]:
    """In topics, in tombstones and in the file of owners; ``policy.after`` has a rule of its own."""
    if not view.environment_names:
        return  # the folder has none at all
    for topic in view.topics:
        yield from _unknown_environments(topic.metadata, view)
        ids = topic.lifecycle.section("topicIds")
        for name, value in ids.values.items():
            if name not in view.environment_names:
                yield _unknown_environment(name, ids.file, value.key, view)
    for entry in view.owner_entries:
        yield from _unknown_environments(entry, view)


def alterable_configs_exist(view: EnvironmentView) -> Iterator[Finding]:
    policy = view.environment_spec.section("policy")
    for item in policy.items("alterableConfigs"):
        if isinstance(item.value, str) and item.value not in TOPIC_CONFIGS:
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
