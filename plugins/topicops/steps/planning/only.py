"""The part of a plan that ``--only`` selects, with a warning that says what is left out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Protocol, TypeVar

from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import NotHeldError
from topicops.model.plans.plan import ChangeSet, Plan
from topicops.model.printable import plural, printable
from topicops.steps.planning.placement.load import load_table


class _OfTopic(Protocol):
    @property
    def topic(self) -> str: ...


Entry = TypeVar("Entry", bound=_OfTopic)


Only = str | Collection[str]
"""A glob, or the names of topics."""


def keep_only(change_set: ChangeSet, live: ClusterSnapshot, described: Collection[str], only: Only) -> ChangeSet:
    """Return the changes and all other entries of topics that match ``only``.

    The cluster's state stays that of the whole plan, so that the limits on deletes count all of them.

    Args:
        described: Names that the specs of this environment give.
    """
    changes, blocked = _matching(change_set.changes, only), _matching(change_set.blocked, only)
    left_out = (len(change_set.changes) - len(changes), len(change_set.blocked) - len(blocked))
    matching = sum(_matches(name, only) for name in described)
    shown = only if isinstance(only, str) else plural(len(only), "named topic")
    warning = (
        f"only {shown}: {matching} of {plural(len(described), 'described topic')} match; "
        f"{plural(left_out[0], 'change')} and {plural(left_out[1], 'blocked topic')} of the others are left out"
    )
    return replace(
        change_set,
        source=replace(change_set.source, only=only if isinstance(only, str) else ""),
        changes=changes,
        blocked=blocked,
        drift=_matching(change_set.drift, only),
        unmanaged=tuple(name for name in change_set.unmanaged if _matches(name, only)),
        paused=_matching(change_set.paused, only),
        activity={name: found for name, found in change_set.activity.items() if _matches(name, only)},
        load=load_table(live, changes),
        log_bytes={name: found for name, found in change_set.log_bytes.items() if _matches(name, only)},
        move_obstacles={name: found for name, found in change_set.move_obstacles.items() if _matches(name, only)},
        warnings=(*change_set.warnings, warning),
    )


def no_match(only: Only | None, names: Collection[str]) -> str:
    """Say that a glob matches none of these topics: a plan of nothing would look like good news. Empty: it does."""
    if not isinstance(only, str) or any(fnmatchcase(name, only) for name in names):
        return ""
    near = get_close_matches(only.strip("*"), names, n=3)
    hint = f" Near: {', '.join(near)}." if near else ""
    return printable(f"only: 0 of {plural(len(names), 'topic')} match {only}; a glob is of the whole name.{hint}")


def needs_of(only: Only | None) -> Callable[[str], bool] | None:
    """Say whose files must be valid for a plan of the topics that match; None means all."""
    return None if only is None else lambda name: _matches(name, only)


def needs_again(plan: Plan) -> Callable[[str], bool] | None:
    """Say whose files must be valid to judge the plan again: those that it needed, and those of its changes."""
    if (only := plan.change_set.source.only) is None:
        return None
    planned = {gated.change.topic for gated in plan.changes}
    return lambda name: name in planned or _matches(name, only)


def _matching(entries: Iterable[Entry], only: Only) -> tuple[Entry, ...]:
    return tuple(entry for entry in entries if _matches(entry.topic, only))


def _matches(name: str, only: Only) -> bool:
    return fnmatchcase(name, only) if isinstance(only, str) else name in only


def keep_held(change_set: ChangeSet, plan: Plan, digests: Collection[str]) -> ChangeSet:
    """Keep the changes of these digests, all of which must wait for an approval that can let them run.

    Raises:
        NotHeldError: One of them is due no more, or waits for no approval; a part of too many deletes must not pass as
            few.
    """
    wanted = [gated for gated in plan.changes if gated.digest in digests and gated.approvable]
    if not digests or len(wanted) < len(digests):
        missing = len(digests) - len(wanted)
        raise NotHeldError(f"{missing} of {plural(len(digests), 'change')} are due no more, or wait for no approval")
    return replace(change_set, changes=tuple(gated.change for gated in wanted), blocked=())
