"""What a pull request changes: which topics, which files of policy, and which other open ones touch the same topics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from topicops.features.pull_requests.forge import PullRequest
from topicops.features.pull_requests.values import OtherPullRequest
from topicops.model.codes import Code
from topicops.model.printable import plural
from topicops.model.specs.desired import Desired, DesiredTopic
from topicops.model.specs.diagnostics import Diagnostic, Location

POLICY_FOLDERS = ("environments/", "profiles/")
OWNERS = "owners.yaml"
NO_ENVIRONMENT = (
    "The base branch has no environment below environments/, so nothing is planned: merge the file of the "
    "environment first."
)
_NAMES_SHOWN = 10
_NOWHERE = Location("")


def is_policy(path: str) -> bool:
    """Whether the file, named relative to the folder of topics, is policy: an environment, a profile or the owners."""
    return path.startswith(POLICY_FOLDERS) or path == OWNERS


def is_topic_file(path: str) -> bool:
    return path.endswith(".yaml") and not is_policy(path)


def changed_topics(before: Desired, after: Desired) -> tuple[str, ...]:
    """Topics that one of the two has, or that the two want differently, sorted; places in files do not count."""
    names = before.topics.keys() | after.topics.keys()
    return tuple(sorted(n for n in names if _wanted(before.topics.get(n)) != _wanted(after.topics.get(n))))


def _wanted(topic: DesiredTopic | None) -> DesiredTopic | None:
    return None if topic is None else replace(topic, location=_NOWHERE, locations={})


def new_diagnostics(
    before: Iterable[Diagnostic], after: Iterable[Diagnostic], *, changed: Collection[str]
) -> tuple[Diagnostic, ...]:
    """Those in changed files, and those that ``before`` has not in the same file and words; lines may move."""
    known = {(d.file, d.code, d.summary) for d in before}
    return tuple(d for d in after if d.file in changed or (d.file, d.code, d.summary) not in known)


Claims = Sequence[tuple[str, Sequence[str]]]
"""Owners and the patterns of their topics' names, as ``owners.yaml`` has them."""


def owner_of(topic: str, before: Desired, after: Desired, claims: Claims, *, is_new: bool) -> str:
    """Whose reviewers count: as the base branch says, so that no pull request chooses its own.

    Of a topic that the base branch lacks, its ``owners.yaml`` says it. If that does not, the branch's own word counts
    for a topic that is created; nobody's for one that is live already.

    Args:
        claims: Of the base branch.
        is_new: The topic is not live.
    """
    if (known := before.topics.get(topic)) is not None:
        return known.owner
    claiming = [owner for owner, patterns in claims if any(fnmatchcase(topic, each) for each in patterns)]
    said = after.topics[topic].owner if topic in after.topics else ""
    if claiming:
        return said if said in claiming else claiming[0]
    return said if is_new else ""


def policy_remarks(
    policy_files: Collection[str], topic_files: Collection[str], effects: Mapping[str, Collection[str]]
) -> Iterator[str]:
    """Yield what a reviewer must know about changed policy, which the plan does not use.

    Args:
        policy_files: Changed ones, named from the repository's root.
        topic_files: Changed ones.
        effects: By environment, the topics that the changed policy will want differently after the merge.
    """
    if not policy_files:
        return
    yield (
        f"This pull request changes {_some(policy_files)}. The plan uses these files as the base branch has them; "
        "the change counts only after the merge."
    )
    for environment, topics in effects.items():
        if topics:
            yield f"After the merge they change {plural(len(topics), 'topic')} of {environment}: {_some(topics)}."
    if topic_files:
        yield (
            f"{Code.POLICY_AND_SPECS}: policy and topics change together. Split the pull request in two, and merge "
            "first what the other half needs: a limit, a profile or an owner before the topics that use it, a topic "
            "before an override or an exception that names it. To rename an owner, add the new one first, then change "
            "the topics, then remove the old one."
        )


def changed_owners(before: Desired, after: Desired) -> dict[str, tuple[str, str]]:
    """The owner before and after, by topic that both have."""
    both = before.topics.keys() & after.topics.keys()
    pairs = {name: (before.topics[name].owner, after.topics[name].owner) for name in sorted(both)}
    return {name: (old, new) for name, (old, new) in pairs.items() if old != new}


def owner_remarks(owners: Mapping[str, tuple[str, str]], reviewers: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Yield who may approve changes of topics that get another owner: nothing in the cluster shows that.

    Args:
        owners: Owner before and after, by topic.
        reviewers: By owner, as the base branch has them.
    """
    by_owners: dict[tuple[str, str], list[str]] = {}
    for topic, pair in owners.items():
        by_owners.setdefault(pair, []).append(topic)
    for (old, new), topics in sorted(by_owners.items()):
        yield (
            f"Owner {old} → {new}: {_some(topics)}. After the merge {_reviewers_of(new, reviewers)} may approve "
            f"changes there, and {_reviewers_of(old, reviewers)} may not: let both owners agree."
        )


def reviewer_remarks(before: Mapping[str, Collection[str]], after: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Yield the owners whose reviewers ``owners.yaml`` changes, with both lists."""
    for owner in sorted(before.keys() | after.keys()):
        if set(before.get(owner, ())) != set(after.get(owner, ())):
            yield (
                f"After the merge {_reviewers_of(owner, after)} may approve changes of {owner}; "
                f"until now {_reviewers_of(owner, before)} may."
            )


def _reviewers_of(owner: str, reviewers: Mapping[str, Collection[str]]) -> str:
    named = reviewers.get(owner, ())
    return _some(named) if named else f"nobody ({OWNERS} names no reviewers of {owner})"


def _some(names: Iterable[str]) -> str:
    listed = sorted(names)
    more = len(listed) - _NAMES_SHOWN
    return ", ".join(listed[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def overlaps(
    mine: Collection[str], files: Mapping[PullRequest, Collection[str]], *, mark: str
) -> Iterator[OtherPullRequest]:
    """Yield each of the others that changes one of these files of topics, by rising number.

    Args:
        mine: Files of topics that this pull request changes, from the repository's root.
        files: All files that each other one changes.
        mark: ``#`` or ``!``.
    """
    for other, changed in sorted(files.items(), key=lambda entry: entry[0].number):
        if both := set(mine) & set(changed):
            yield OtherPullRequest(
                mark=f"{mark}{other.number}",
                url=other.url,
                author=other.author,
                topics=tuple(sorted(PurePosixPath(file).stem for file in both)),
            )
