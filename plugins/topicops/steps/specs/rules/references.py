"""Names that one file uses for another: profiles and overrides."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from topicops.steps.specs.fields import Finding
from topicops.steps.specs.layers import EnvironmentView


def profiles_exist(view: EnvironmentView) -> Iterator[Finding]:
    for topic in view.topics:
        name = topic.profile
        if name is None or name in view.profiles:
            continue
        close = difflib.get_close_matches(name, view.profiles, n=1)
        remedy = f"did you mean {close[0]}?" if close else f"there are: {', '.join(sorted(view.profiles)) or 'none'}"
        span, meant = topic.spec.values["profile"].span, close[0] if close else None
        yield Finding("TOP318", topic.file, span, f"no profile is called {name!r}", remedy, meant=meant)


def overrides_have_topics(view: EnvironmentView) -> Iterator[Finding]:
    known = view.unread_topics | {topic.label for topic in view.topics}
    overrides = view.environment_spec.section("overrides")
    for name, value in overrides.values.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            remedy = f"did you mean {close[0]}?" if close else "take the override out"
            meant = next((guess for guess in close if guess not in overrides), None)
            yield Finding("TOP319", overrides.file, value.key, f"no topic is called {name!r}", remedy, meant=meant)
