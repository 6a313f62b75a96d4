"""Owners of topics and their reviewers: whose review counts, who gets another owner, and the file CODEOWNERS."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from topicops.edges.durable_files import write_atomically
from topicops.edges.specs.git import folder_in_repository
from topicops.edges.specs.open_files import OWNERS_FILE, shown_folder
from topicops.edges.specs.reader import read_tree
from topicops.flow.runs.run import now
from topicops.model.errors import SpecFileError, UsageError
from topicops.model.specs.desired import Desired
from topicops.steps.reporting.plan_wording import some
from topicops.steps.specs.validate import view_of

BEGIN = "# topicops: begin (written by `topicops ci codeowners`; edit topics/owners.yaml instead)"
END = "# topicops: end"

Reviewers = Mapping[str, tuple[str, ...]]
"""Logins and teams (``acme/payments``) by owner."""
Claims = Sequence[tuple[str, Sequence[str]]]
"""Owners and the patterns of their topics' names, as ``owners.yaml`` has them."""


def claims_on_names(topics: Path) -> Claims:
    entries = view_of(read_tree(topics), "", now()).owner_entries
    return [(owner, entry.texts("topics")) for entry in entries if (owner := entry.get("owner", str))]


def reviewers_by_owner(topics: Path) -> Reviewers:
    """Read the reviewers that ``owners.yaml`` names for each owner, whose entries add up; none without the folder."""
    found: dict[str, tuple[str, ...]] = {}
    for entry in view_of(read_tree(topics), "", now()).owner_entries if topics.is_dir() else ():
        if owner := entry.get("owner", str):
            named = tuple(name.removeprefix("@") for name in entry.texts("reviewers"))
            found[owner] = tuple(dict.fromkeys((*found.get(owner, ()), *named)))
    return found


def owner_of(topic: str, before: Desired, after: Desired, claims: Claims, *, is_new: bool) -> str:
    """Say whose reviewers count: as the base branch says, so that no pull request chooses its own.

    Of a topic that the base branch lacks, its claims on names say it. If they do not, the branch's own word counts for
    a topic that is created; nobody's for one that is live already.
    """
    if (known := before.topics.get(topic)) is not None:
        return known.owner
    claiming = [owner for owner, patterns in claims if any(fnmatchcase(topic, each) for each in patterns)]
    said = after.topics[topic].owner if topic in after.topics else ""
    if claiming:
        return said if said in claiming else claiming[0]
    return said if is_new else ""


def changed_owners(before: Desired, after: Desired) -> dict[str, tuple[str, str]]:
    """Give the owner before and after, by topic that both have."""
    both = before.topics.keys() & after.topics.keys()
    pairs = {name: (before.topics[name].owner, after.topics[name].owner) for name in both}
    return {name: (old, new) for name, (old, new) in pairs.items() if old != new}


def owner_remarks(owners: Mapping[str, tuple[str, str]], reviewers: Reviewers) -> Iterator[str]:
    """Yield who may approve changes of the topics of ``changed_owners``: nothing in the cluster shows that."""
    for old, new in sorted(set(owners.values())):
        topics = some(topic for topic, pair in owners.items() if pair == (old, new))
        yield (
            f"Owner {old} → {new}: {topics}. After the merge {_reviewers_of(new, reviewers)} may approve "
            f"changes there, and {_reviewers_of(old, reviewers)} may not: let both owners agree."
        )


def reviewer_remarks(before: Reviewers, after: Reviewers) -> Iterator[str]:
    """Yield the owners whose reviewers ``owners.yaml`` changes, with both lists."""
    for owner in sorted(before.keys() | after.keys()):
        if set(before.get(owner, ())) != set(after.get(owner, ())):
            yield (
                f"After the merge {_reviewers_of(owner, after)} may approve changes of {owner}; "
                f"until now {_reviewers_of(owner, before)} may."
            )


def _reviewers_of(owner: str, reviewers: Reviewers) -> str:
    return some(reviewers.get(owner, ())) or f"nobody ({OWNERS_FILE} names no reviewers of {owner})"


# ---- CODEOWNERS, which says to GitHub and GitLab who must review which file ----


def code_owners_of(topics: Path) -> str:
    """Write the lines for all topics whose files can be read. Raises ``UsageError`` for the repository's root."""
    shown, found = shown_folder(topics), view_of(read_tree(topics), "", now()).topics
    owners = {topic.file.removeprefix(shown): topic.metadata.get("owner", str) or "" for topic in found}
    return code_owners_text(owners, reviewers_by_owner(topics), folder=folder_in_repository(topics))


def code_owners_text(owners: Mapping[str, str], reviewers: Reviewers, *, folder: str) -> str:
    """Write a line for each domain, and one for each topic whose owner is not the domain's most frequent one.

    Args:
        owners: Owner by file, relative to the folder of topics: ``payments/payments.orders.yaml``.
        reviewers: An owner without any gives a comment, and its files no reviewers.
        folder: Of the topics, from the repository's root.

    Source: docs.github.com, "About code owners": the last line that matches a file counts.
    """
    without = sorted(owner for owner in set(owners.values()) if not reviewers.get(owner))
    lines = [BEGIN, *(f"# {owner} has no reviewers in {folder}/{OWNERS_FILE}" for owner in without)]
    by_domain: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for file, owner in sorted(owners.items()):
        by_domain[file.partition("/")[0]][file] = owner
    for domain, files in sorted(by_domain.items()):
        usual = min(Counter(files.values()).items(), key=lambda entry: (-entry[1], entry[0]))[0]
        exceptions = {file: owner for file, owner in files.items() if owner != usual}
        for path, owner in {f"{domain}/": usual, **exceptions}.items():
            escaped = f"/{folder}/{path}".replace(" ", "\\ ")
            lines.append(" ".join([escaped, *(f"@{name}" for name in reviewers.get(owner, ()))]))
    return "\n".join([*lines, END]) + "\n"


def with_our_lines(text: str, ours: str) -> str:
    """Renew our lines in the file, and keep all others; raise ``UsageError`` where our marks are damaged."""
    counts = text.count(f"{BEGIN}\n"), text.count(f"{END}\n")
    if counts == (0, 0):
        return f"{text.rstrip()}\n\n{ours}".lstrip("\n")
    before, _, rest = text.partition(f"{BEGIN}\n")
    _, found, after = rest.partition(f"{END}\n")
    if counts != (1, 1) or not found:
        raise UsageError(f"the lines {BEGIN!r} and {END!r} must stand there once, in this order: correct them by hand")
    return f"{before}{ours}{after}"


def renew_code_owners(file: Path, ours: str, *, check: bool) -> bool:
    """Say whether the file had other lines of ours; with ``check`` it stays so. Raises as ``with_our_lines``."""
    try:
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        after = with_our_lines(before, ours)
        if before != after and not check:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, after.encode())
    except (OSError, UnicodeDecodeError) as error:
        raise SpecFileError(f"{os.fspath(file)}: cannot be written: {error}") from error
    return before != after
