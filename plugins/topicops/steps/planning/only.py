"""narrow: the part of a plan that ``--only`` asks for, and a sentence on what it leaves out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from fnmatch import fnmatchcase

from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.plans.plan import ChangeSet
from topicops.steps.planning.placement.load_table import load_table


def keep_only(change_set: ChangeSet, live: ClusterSnapshot, described: Collection[str], only: str) -> ChangeSet:
    """The changes, and all that is told beside them, of topics that match a glob.

    The facts stay those of the whole plan: a part of it is held to the same share of deletes.

    Args:
        described: Names that the specs of this environment give.

    """
    changes = tuple(change for change in change_set.changes if fnmatchcase(change.topic, only))
    blocked = tuple(entry for entry in change_set.blocked if fnmatchcase(entry.topic, only))
    matching = sum(fnmatchcase(name, only) for name in described)
    left_out = (len(change_set.changes) - len(changes), len(change_set.blocked) - len(blocked))
    return replace(
        change_set,
        changes=changes,
        blocked=blocked,
        drift=tuple(entry for entry in change_set.drift if fnmatchcase(entry.topic, only)),
        unmanaged=tuple(name for name in change_set.unmanaged if fnmatchcase(name, only)),
        paused=tuple(entry for entry in change_set.paused if fnmatchcase(entry.topic, only)),
        activity={name: found for name, found in change_set.activity.items() if fnmatchcase(name, only)},
        load=load_table(live, changes),
        warnings=(
            *change_set.warnings,
            f"only {only}: {matching} of {len(described)} described topics match; "
            f"{left_out[0]} changes and {left_out[1]} blocked topics of the others are left out",
        ),
    )
