"""What ``topicops import`` wrote and left out; what ``topicops init`` wrote, and what to type next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from topicops import __version__
from topicops.features.authoring.first_environment import REPOSITORY, Described, FirstEnvironment, brokers_sentence
from topicops.model.codes import Code
from topicops.model.printable import plural, printable

if TYPE_CHECKING:
    from topicops.features.authoring.drafts import ImportResult
    from topicops.features.authoring.init import Start, Started

SETUP_PAGE = f"https://github.com/{REPOSITORY}/blob/v{__version__}/docs/how-to/review-in-pull-requests.md"
"""Address of the page that lists the secrets, variables and environments of both forges."""
_NEEDED = {
    "github": "make the environments topicops-reader and topicops-airflow on GitHub, with their secrets",
    "gitlab": "protect the default branch and set its variables (TOPICOPS_CONNECTIONS and others) on GitLab",
}


def import_text(result: ImportResult) -> str:
    """The new files, then everything that a person may not expect with its reason, then the counts."""
    return "\n".join(_lines(result))


def _lines(result: ImportResult) -> Iterator[str]:
    profiles = sorted(path for path in result.files if path.startswith("profiles/"))
    yield from _section("Imported", "topic", [path for path in result.files if path not in profiles])
    yield from _section("New profiles", "profile", profiles)
    exceptions = [f"{e.topic}: {e.code}: {e.reason}" for e in result.exceptions]
    yield from _section("Exceptions written", "exception", exceptions)
    left_out = [f"{each.topic}: {_coded(each.code, each.reason)}" for each in result.left_out]
    yield from _section("Left out", "topic", left_out)
    inexpressible = [f"{o.topic}: {_coded(o.code, o.reason)}" for o in result.unsayable]
    yield from _section("Overrides that no spec may name", "override", inexpressible)
    yield from _section("Protected, skipped", "topic", result.protected)
    yield (
        f"{plural(len(result.imported), 'topic')} imported, {plural(len(profiles), 'new profile')}, "
        f"{plural(len(result.exceptions), 'exception')}, {len(result.left_out)} left out, "
        f"{len(result.protected)} protected, {len(result.described)} described before."
    )


def _section(title: str, noun: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"{title} ({plural(len(lines), noun)}):"
        yield from (f"  {printable(line)}" for line in lines)
        yield ""


def _coded(code: Code | None, reason: str) -> str:
    return f"{code}: {reason}" if code else reason


def init_text(wanted: Start, done: Started) -> str:
    """Show the files, one a line, then the commands from here to the first own topic, and what the forge needs."""
    lines = [brokers_sentence(done.environment), ""]
    lines += [f"Wrote {file}" for file in done.written]
    lines += [f"Left alone, because it is there already: {file}" for file in done.left_alone]
    commands = next_commands(done.environment, owner=wanted.owner, topics=wanted.topics, described=done.described)
    missing = _missing_lines(wanted.name, done.described)
    lines += [*done.hints, *missing, "", "Next:", *(f"  {line}" for line in commands)]
    lines += ["", f"Before the first pull request, {_NEEDED[wanted.forge]}:", f"  {SETUP_PAGE}"]
    return "\n".join(map(printable, lines))


def _missing_lines(environment: str, described: Described | None) -> list[str]:
    if described is None:
        return [
            "",
            f"The topic files have errors, so what they ask of {environment} is not known: topicops validate",
        ]
    if not described.missing:
        return []
    verb, them = ("is", "it") if described.missing == 1 else ("are", "them")
    return [
        "",
        f"{described.missing} of {plural(described.topics, 'described topic')} {verb} not in this cluster: the first "
        f"plan would create {them}.",
        f"To keep a topic out of {environment}, write metadata.environments with the other environments into its file.",
    ]


def next_commands(found: FirstEnvironment, *, owner: str, topics: str, described: Described | None) -> list[str]:
    """In order; each line is a command, with a remark behind ``#``."""
    below = "" if topics == "topics" else f" --topics {topics}"
    named = f"--environment {found.name}{below}"
    rows = [
        (f"topicops doctor {named}", "can the cluster be read, and is it healthy?"),
        (f"topicops import {named} --owner {owner}", "a file for each topic that is live now"),
        (f"topicops plan {named} --out plan.json", _first_plan(described)),
        (f"topicops new {found.first_topic} --owner {owner} --partitions 3{below}", "your first own topic"),
        (f"topicops plan {named} --out plan.json", "creates that one topic"),
        (f"topicops apply plan.json{below}", "sends it, and verifies it"),
    ]
    width = max(len(command) for command, _ in rows)
    return [f"{command:<{width}}  # {remark}" for command, remark in rows]


def _first_plan(described: Described | None) -> str:
    if described is None:
        return "once the topic files have no errors"
    return f"would create {plural(described.missing, 'topic')}" if described.missing else "no changes yet"
