"""The overrides of a live topic to set, to remove, and to report only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from topicops.model.specs.environment import Policy
from topicops.model.specs.topic_config import THROTTLE_LISTS, canonical_overrides


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEdits:
    """Sorted by name throughout."""

    before: Mapping[str, str | None]
    """Canonical value of each override that changes; None: not set."""
    after: Mapping[str, str | None]
    """Same keys; None removes the override."""
    unlisted: Mapping[str, str]
    """Live overrides that no spec names and that are kept; raw text as stored."""


def config_edits(wanted: Mapping[str, str | None], overrides: Mapping[str, str], policy: Policy) -> ConfigEdits:
    """Compare wanted with live overrides, in canonical form. The throttle lists are never changed."""
    live = canonical_overrides(overrides)
    unlisted = sorted(live.keys() - wanted.keys())
    removed = {name for name in unlisted if _is_removed(name, policy)}
    after = {**wanted, **dict.fromkeys(removed)}
    names = sorted(name for name in after if name not in THROTTLE_LISTS and after[name] != live.get(name))
    return ConfigEdits(
        before={name: live.get(name) for name in names},
        after={name: after[name] for name in names},
        unlisted={name: overrides[name] for name in unlisted if name not in removed},
    )


def _is_removed(name: str, policy: Policy) -> bool:
    if policy.unlisted_configs != "remove" or name in THROTTLE_LISTS:
        return False
    return policy.alterable_configs is None or name in policy.alterable_configs
