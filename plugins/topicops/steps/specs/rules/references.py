"""Names that one file uses for another: profiles and overrides."""

from __future__ import annotations

from collections.abc import Iterator

from topicops.steps.specs.findings import Finding
from topicops.steps.specs.layers import EnvironmentView
from topicops.steps.specs.suggestions import similar_word


def profiles_exist(view: EnvironmentView) -> Iterator[Finding]:
    for topic in view.topics:
        name = topic.profile
        if name is None or name in view.profiles:
            continue
        close = similar_word(name, view.profiles)
        remedy = f"did you mean {close}?" if close else f"there are: {', '.join(sorted(view.profiles)) or 'none'}"
        span = topic.spec.values["profile"].span
        yield Finding("TOP318", topic.file, span, f"no profile is called {name!r}", remedy, suggestion=close)


def overrides_have_topics(view: EnvironmentView) -> Iterator[Finding]:
    known = view.unread_topics | {topic.label for topic in view.topics}
    overrides = view.environment_spec.section("overrides")
    for name, value in overrides.values.items():
        if name not in known:
            close = similar_word(name, known)
            remedy = f"did you mean {close}?" if close else "take the override out"
            suggestion = close if close not in overrides.values else None
            summary = f"no topic is called {name!r}"
            yield Finding("TOP319", overrides.file, value.key, summary, remedy, suggestion=suggestion)
