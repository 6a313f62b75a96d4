"""What ``topicops init`` wrote, and what to type next."""

from __future__ import annotations

from collections.abc import Sequence

from topicops.model.choices import ForgeKind
from topicops.model.printable import plural, printable
from topicops.steps.authoring.first_files import Described, FirstEnvironment, brokers_sentence

_NEEDED = {
    "github": "make the environments topicops-reader and topicops-airflow on GitHub, with their secrets",
    "gitlab": "protect the default branch and set its variables (TOPICOPS_CONNECTIONS and others) on GitLab",
}


def init_text(
    found: FirstEnvironment,
    *,
    owner: str,
    topics: str,
    written: Sequence[str],
    left_alone: Sequence[str],
    hints: Sequence[str],
    described: Described | None,
    forge: ForgeKind,
    page: str,
) -> str:
    """The files, one a line, then the commands from here to the first own topic, and what the forge needs.

    Args:
        page: Address of the page that lists secrets, variables and environments.
    """
    lines = [brokers_sentence(found), ""]
    lines += [f"Wrote {file}" for file in written]
    lines += [f"Left alone, because it is there already: {file}" for file in left_alone]
    commands = next_commands(found, owner=owner, topics=topics, described=described)
    lines += [*hints, *_missing_lines(found, described), "", "Next:", *(f"  {line}" for line in commands)]
    lines += ["", f"Before the first pull request, {_NEEDED[forge]}:", f"  {page}"]
    return "\n".join(map(printable, lines))


def _missing_lines(found: FirstEnvironment, described: Described | None) -> list[str]:
    if described is None:
        return [
            "",
            f"The topic files have errors, so what they ask of {found.name} is not known: topicops validate",
        ]
    if not described.missing:
        return []
    verb, them = ("is", "it") if described.missing == 1 else ("are", "them")
    return [
        "",
        f"{described.missing} of {plural(described.topics, 'described topic')} {verb} not in this cluster: the first "
        f"plan would create {them}.",
        f"To keep a topic out of {found.name}, write metadata.environments with the other environments into its file.",
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
