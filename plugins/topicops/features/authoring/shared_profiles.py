"""The values that a topic's own file must hold above defaults and profile, and which profiles make it shorter."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from topicops.features.shared.yaml_text import Content, config_content, document_text
from topicops.steps.specs.layers import EnvironmentView, Layer, layer_of

Configs = Mapping[str, str | None]
"""Canonical values; None: no override may be live."""

_LINES_AROUND_A_PROFILE = 6
"""Lines of a profile's file that are not configs."""
_LONGEST_NAME = 60
_NAMING = ("cleanup.policy", "retention.ms")
"""Configs that are in the name of each profile that has them."""
_DIFFERENCES_IN_A_NAME = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecValues:
    """The values of a whole topic, or of one layer."""

    partitions: int | None = None
    replication_factor: int | None = None
    configs: Configs = field(default_factory=dict)

    def without(self, below: SpecValues) -> SpecValues:
        """The values to write above the layer ``below`` to get these."""
        configs = {name: value for name, value in self.configs.items() if below.configs.get(name) != value}
        gone = {name: None for name, value in below.configs.items() if value is not None and name not in self.configs}
        return SpecValues(
            partitions=None if self.partitions == below.partitions else self.partitions,
            replication_factor=(
                None if self.replication_factor == below.replication_factor else self.replication_factor
            ),
            configs=dict(sorted({**configs, **gone}.items())),
        )

    def over(self, below: SpecValues) -> SpecValues:
        """These values laid over ``below``."""
        return SpecValues(
            partitions=below.partitions if self.partitions is None else self.partitions,
            replication_factor=(
                below.replication_factor if self.replication_factor is None else self.replication_factor
            ),
            configs={**below.configs, **self.configs},
        )

    @property
    def key(self) -> object:
        """Equal for equal values, and hashable."""
        return self.partitions, self.replication_factor, tuple(sorted(self.configs.items()))

    @property
    def lines(self) -> int:
        numbers = sum(number is not None for number in (self.partitions, self.replication_factor))
        return numbers + (1 + len(self.configs) if self.configs else 0)

    def content(self) -> dict[str, Content]:
        """The fields as they are written in a file."""
        fields: dict[str, Content] = {}
        if self.partitions is not None:
            fields["partitions"] = self.partitions
        if self.replication_factor is not None:
            fields["replicationFactor"] = self.replication_factor
        if self.configs:
            fields["configs"] = {
                name: None if value is None else config_content(name, value) for name, value in self.configs.items()
            }
        return fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiles:
    """The layers below a topic: the environment's defaults, and each profile that can be read."""

    defaults: SpecValues
    profiles: Mapping[str, SpecValues]

    def best(self, wanted: SpecValues) -> tuple[str | None, SpecValues]:
        """The profile that makes the topic's file shortest, None if none saves a line; and the values left to write."""
        found: list[tuple[SpecValues, str | None]] = [(wanted.without(self.defaults), None)]
        for name, profile in sorted(self.profiles.items()):
            found.append((wanted.without(profile.over(self.defaults)), name))
        own, best = min(found, key=lambda pair: pair[0].lines + (pair[1] is not None))
        return best, own

    def best_of_each(self, wanted: Mapping[str, SpecValues]) -> dict[str, tuple[str | None, SpecValues]]:
        """``best`` for each name; computed once for equal values, because most topics are like another one."""
        found: dict[object, tuple[str | None, SpecValues]] = {}
        for values in wanted.values():
            if values.key not in found:
                found[values.key] = self.best(values)
        return {name: found[values.key] for name, values in wanted.items()}

    def with_profiles(self, more: Mapping[str, SpecValues]) -> Profiles:
        return Profiles(defaults=self.defaults, profiles={**self.profiles, **more})


def shared_profiles(view: EnvironmentView) -> Profiles:
    """The defaults and profiles of the view's environment."""
    readable = {name: file for name, file in view.profiles.items() if file is not None}
    return Profiles(
        defaults=_values_of(layer_of(view.environment_spec.section("defaults"), view.release)),
        profiles={name: _values_of(layer_of(file.spec, view.release)) for name, file in readable.items()},
    )


def _values_of(layer: Layer) -> SpecValues:
    settings = layer.settings
    return SpecValues(
        partitions=settings["partitions"].number if "partitions" in settings else None,
        replication_factor=settings["replicationFactor"].number if "replicationFactor" in settings else None,
        configs={name: setting.text for name, setting in layer.configs.items()},
    )


def new_profiles(
    topics: Mapping[str, SpecValues], shared: Profiles, *, own_configs: Iterable[str] = (), taken: Iterable[str] = ()
) -> dict[str, SpecValues]:
    """Profiles to create, by name: sets of configs that several topics share, where a profile saves lines.

    Partitions stay in the topics' files, because each topic grows on its own.

    Args:
        own_configs: Configs that no profile may hold.
        taken: Names of other profiles.
    """
    groups: defaultdict[tuple[tuple[str, str | None], ...], list[SpecValues]] = defaultdict(list)
    kept_apart = frozenset(own_configs)
    for name, own in shared.best_of_each(topics).values():
        configs = tuple((key, value) for key, value in own.configs.items() if key not in kept_apart)
        if name is None and configs:
            groups[configs].append(own)
    found: dict[str, SpecValues] = {}
    for configs, members in sorted(groups.items(), key=lambda group: (-len(group[1]), str(group[0]))):
        profile = _profile_of(dict(configs), members)
        if len(members) > 1 and _lines_saved(profile, members) > 0:
            found[_free_name(profile, {**shared.profiles, **found}, taken)] = profile
    return found


def _profile_of(configs: Configs, members: Sequence[SpecValues]) -> SpecValues:
    factors = {member.replication_factor for member in members}
    return SpecValues(replication_factor=factors.pop() if len(factors) == 1 else None, configs=configs)


def _lines_saved(profile: SpecValues, members: Sequence[SpecValues]) -> int:
    each = [member.lines - member.without(profile).lines - 1 for member in members]
    return sum(each) - _LINES_AROUND_A_PROFILE - profile.lines


def _name_of(words: Iterable[str]) -> str:
    return "-".join(words)[:_LONGEST_NAME].rstrip("-.") or "imported"


def _words_of(configs: Configs) -> Iterator[str]:
    """Words for the profile's name: its cleanup policy and its retention."""
    policy = configs.get("cleanup.policy")
    if policy:
        yield policy.replace(",", "-")
    kept = configs.get("retention.ms")
    if kept is not None:
        yield "retention-unlimited" if kept == "-1" else f"retention-{config_content('retention.ms', kept)}"
    if not policy and kept is None:
        yield _word_of(*next(iter(configs.items())))


def _word_of(config: str, value: str | None) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", f"{config} {'none' if value is None else config_content(config, value)}")


def _free_name(profile: SpecValues, named: Mapping[str, SpecValues], taken: Iterable[str]) -> str:
    """Its usual name; where another profile has that, the name tells how the two differ; else it has a number."""
    words = list(_words_of(profile.configs))
    others = {name.lower(): other for name, other in named.items()}
    used = {*others, *(name.lower() for name in taken)}
    name = _name_of(words)
    if (other := others.get(name.lower())) is not None:
        name = _name_of((*words, *islice(_differences(profile, other), _DIFFERENCES_IN_A_NAME)))
    names = (name if number == 1 else f"{name[: _LONGEST_NAME - 4]}-{number}" for number in range(1, len(used) + 2))
    return next(free for free in names if free.lower() not in used)


def _differences(profile: SpecValues, other: SpecValues) -> Iterator[str]:
    """What ``profile`` has in another way than ``other``, a word each."""
    if profile.replication_factor not in (None, other.replication_factor):
        yield f"rf-{profile.replication_factor}"
    for config, value in profile.configs.items():
        if config not in _NAMING and other.configs.get(config, "") != value:
            yield _word_of(config, value)


def profile_text(name: str, profile: SpecValues) -> str:
    return document_text("Profile", {"name": name}, {"spec": profile.content()})
