"""The values that a topic's own file must hold above defaults and profile, and which profiles make it shorter."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from topicops.features.shared.yaml_text import Content, config_content
from topicops.steps.specs.layers import NUMBERS, EnvironmentView, Layer, MergedTopic, layer_of

Values = Mapping[str, int | str | None]
"""The numbers and canonical configs of a topic or of one layer, by name; None means that no override may be live."""
Choice = tuple[str | None, Values]
"""A profile, None for none, and the values that are left to write above it."""

_LINES_AROUND_A_PROFILE = 6
"""Lines of a profile's file that are not configs."""
_LONGEST_NAME = 60
_NAMING = ("cleanup.policy", "retention.ms")
"""Configs that are in the name of each profile that has them."""
_DIFFERENCES_IN_A_NAME = 2


def content_of(values: Values) -> dict[str, Content]:
    """Return the fields as they are written in a file."""
    found: dict[str, Content] = {name: values[name] for name in NUMBERS if name in values}
    configs = {
        name: None if value is None else config_content(name, str(value))
        for name, value in values.items()
        if name not in NUMBERS
    }
    return {**found, "configs": configs} if configs else found


def above(wanted: Values, below: Values) -> Values:
    """Return the values to write above the layer ``below`` to get ``wanted``."""
    changed = {name: value for name, value in wanted.items() if below.get(name) != value}
    gone = {name: None for name, value in below.items() if value is not None and name not in wanted}
    return dict(sorted({**changed, **gone}.items()))


def _lines(values: Values) -> int:
    return len(values) + any(name not in NUMBERS for name in values)


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers below a topic: the environment's defaults, and each profile that can be read."""

    defaults: Values
    profiles: Mapping[str, Values]

    def best(self, wanted: Values) -> Choice:
        """Give the profile that makes the topic's file shortest, None if none saves a line."""
        found: list[Choice] = [(None, above(wanted, self.defaults))]
        found += [(name, above(wanted, {**self.defaults, **values})) for name, values in sorted(self.profiles.items())]
        return min(found, key=lambda choice: _lines(choice[1]) + (choice[0] is not None))

    def above(self, profile: str, wanted: Values) -> Choice:
        return profile, above(wanted, {**self.defaults, **self.profiles[profile]})

    def best_of_each(self, wanted: Mapping[str, Values]) -> dict[str, Choice]:
        """Give ``best`` by topic; computed once for equal values, because most topics are like another one."""
        distinct = {frozenset(values.items()): values for values in wanted.values()}
        best = {key: self.best(values) for key, values in distinct.items()}
        return {topic: best[frozenset(values.items())] for topic, values in wanted.items()}


def layers_of(view: EnvironmentView) -> Layers:
    readable = {name: file.spec for name, file in view.profiles.items() if file is not None}
    return Layers(
        values_of(layer_of(view.environment_spec.section("defaults"), view.release)),
        {name: values_of(layer_of(spec, view.release)) for name, spec in readable.items()},
    )


def values_of(layer: Layer | MergedTopic) -> Values:
    numbers = {name: setting.number for name, setting in layer.settings.items() if setting.number is not None}
    return {**numbers, **{name: setting.text for name, setting in layer.configs.items()}}


def named_profiles(
    sets: Mapping[str, tuple[str, Values] | None], layers: Layers
) -> tuple[dict[str, Values], dict[str, str]]:
    """Return profiles to create for sets of configs that have a name, and the profile of each topic that has one.

    A set is worth a profile if two topics have it, or if it is longer than a reference. A name that is taken by other
    values gets a number.
    """
    users = Counter(found[0] for found in sets.values() if found)
    new: dict[str, Values] = {}
    chosen: dict[str, str] = {}
    for topic, found in sets.items():
        if found is None or not found[1] or (users[found[0]] < 2 and _lines(found[1]) <= 1):
            continue
        name, values = found
        known = {**layers.profiles, **new}
        names = (name if number == 1 else f"{name}-{number}" for number in range(1, len(known) + 2))
        chosen[topic] = next(n for n in names if known.get(n, values) == values)
        if chosen[topic] not in layers.profiles:
            new[chosen[topic]] = values
    return new, chosen


def new_profiles(
    topics: Mapping[str, Values], layers: Layers, *, own_configs: Iterable[str] = (), taken: Iterable[str] = ()
) -> dict[str, Values]:
    """Return profiles to create, by name: sets of configs that several topics share, where a profile saves lines.

    Partitions stay in the topics' files, because each topic grows on its own; no profile holds ``own_configs``.
    """
    groups: defaultdict[tuple[tuple[str, int | str | None], ...], list[Values]] = defaultdict(list)
    kept_apart = {*own_configs, *NUMBERS}
    for name, own in layers.best_of_each(topics).values():
        configs = tuple((key, value) for key, value in own.items() if key not in kept_apart)
        if name is None and configs:
            groups[configs].append(own)
    found: dict[str, Values] = {}
    for configs, members in sorted(groups.items(), key=lambda group: (-len(group[1]), str(group[0]))):
        factors = {member.get("replicationFactor") for member in members}
        shared = {} if len(factors) > 1 or None in factors else {"replicationFactor": factors.pop()}
        profile: Values = {**dict(configs), **shared}
        saved = [_lines(member) - _lines(above(member, profile)) - 1 for member in members]
        if len(members) > 1 and sum(saved) > _LINES_AROUND_A_PROFILE + _lines(profile):
            found[_free_name(profile, {**layers.profiles, **found}, taken)] = profile
    return found


def _free_name(profile: Values, named: Mapping[str, Values], taken: Iterable[str]) -> str:
    """Return its usual name; if another profile has that, add how the two differ; else add a number."""
    words = list(_words_of(profile))
    others = {name.lower(): other for name, other in named.items()}
    used = {*others, *(name.lower() for name in taken)}
    name = _name_of(words)
    if (other := others.get(name.lower())) is not None:
        name = _name_of((*words, *islice(_differences(profile, other), _DIFFERENCES_IN_A_NAME)))
    names = (name if number == 1 else f"{name[: _LONGEST_NAME - 4]}-{number}" for number in range(1, len(used) + 2))
    return next(free for free in names if free.lower() not in used)


def _name_of(words: Iterable[str]) -> str:
    return "-".join(words)[:_LONGEST_NAME].rstrip("-.") or "imported"


def _words_of(profile: Values) -> Iterator[str]:
    """Yield the profile's cleanup policy and its retention, else its first config."""
    policy, kept = profile.get("cleanup.policy"), profile.get("retention.ms")
    if policy:
        yield str(policy).replace(",", "-")
    if kept is not None:
        yield "retention-unlimited" if kept == "-1" else f"retention-{config_content('retention.ms', str(kept))}"
    if not policy and kept is None:
        yield _word_of(*next(iter(profile.items())))


def _word_of(config: str, value: int | str | None) -> str:
    shown = "none" if value is None else config_content(config, str(value))
    return re.sub(r"[^A-Za-z0-9]+", "-", f"{config} {shown}")


def _differences(profile: Values, other: Values) -> Iterator[str]:
    """Yield a word for each value that ``profile`` has in another way than ``other``."""
    factor = profile.get("replicationFactor")
    if factor not in (None, other.get("replicationFactor")):
        yield f"rf-{factor}"
    for config, value in profile.items():
        if config not in (*_NAMING, *NUMBERS) and other.get(config, "") != value:
            yield _word_of(config, value)
