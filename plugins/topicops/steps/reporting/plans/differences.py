"""Old and new value of all that a change changes, as people read them; replica lists are left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from topicops.model.cluster.broker_defaults import Default, default_text
from topicops.model.plans.changes import Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.printable import printable
from topicops.steps.reporting.plans.config_wording import default_in_units, in_units


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One value that changes; a side without a value is empty."""

    name: str
    before: str = ""
    after: str = ""
    exact: str = ""
    """Both values as the broker has them, where they read differently: ``2592000000 -> 259200000``."""

    def __str__(self) -> str:
        """``retention.ms 30d -> 3d``."""
        return f"{self.name} {' -> '.join(filter(None, (self.before, self.after)))}"


def differences(change: Change) -> Iterator[Difference]:
    """Yield what the change changes; of a delete, what goes."""
    match change:
        case CreateTopic():
            yield Difference(name="partitions", after=str(change.partitions))
            yield Difference(name="replication factor", after=str(change.replication_factor))
            for name, value in sorted(change.configs.items()):
                yield _config(name, None, value, (), is_new=True)
        case ExpandTopic():
            yield Difference(name="partitions", before=str(change.partitions_before), after=str(change.partitions))
        case ConfigureTopic():
            for name in sorted(change.configs):
                yield _config(name, change.configs_before.get(name), change.configs[name], change.default(name))
        case DeleteTopic():
            yield Difference(name="partitions", before=str(change.partitions))
        case _:
            assert_never(change)


def _config(name: str, before: str | None, after: str | None, default: Default, *, is_new: bool = False) -> Difference:
    sides = [default_text(default) if value is None else value for value in ((after,) if is_new else (before, after))]
    values = [value for value in (before, after, *(row.value for row in default)) if value is not None]
    is_clear = all(in_units(name, value) == value for value in values)
    return Difference(
        name=printable(name),
        before="" if is_new else printable(_value(name, before, default)),
        after=printable(_value(name, after, default)),
        exact="" if is_clear else printable(" -> ".join(sides)),
    )


def _value(name: str, value: str | None, default: Default) -> str:
    if value is not None:
        return in_units(name, value)
    return f"broker default {default_in_units(name, default)}" if default else "broker default"
