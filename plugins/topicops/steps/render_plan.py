"""A plan for people: text for a terminal, Markdown for a pull request. Every word from a spec is made printable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import assert_never

from topicops.model.changes import Action, Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic, GateWord
from topicops.model.environment import Risk
from topicops.model.plan import Blocked, GatedChange, Plan, TopicActivity
from topicops.model.printable import markdown, printable
from topicops.model.snapshot import Assignment
from topicops.model.topic_config import TOPIC_CONFIGS, UNITS

MARKDOWN_LIMIT = 60_000
"""Characters; GitHub refuses comments above 65,536."""
_NAMES_SHOWN = 20
_ROWS_SHOWN = 12
"""Of an assignment; a topic may have over a hundred."""
_REPLICAS_WIDTH = 80
"""Characters of a line of replica lists."""
_LONGEST_INTEGER = 19
"""Digits of 64 bits; a znode may hold more, which Python would not even read."""
_LONGEST_WORDS = 300
"""Characters of one text of a spec in Markdown."""

SIGNS: Mapping[Action, str] = {"create": "+", "expand": "~", "configure": "~", "delete": "-"}
PARTICIPLES: Mapping[Action, str] = {
    "create": "created",
    "expand": "expanded",
    "configure": "configured",
    "delete": "deleted",
}


def plan_text(plan: Plan) -> str:
    """Render the plan as lines for a terminal, with the summary line after the changes."""
    lines = [f"{_title(plan)}:", ""]
    for gated in plan.changes:
        lines += [*_change_lines(plan, gated), ""]
    for blocked in plan.change_set.blocked:
        lines += [*_blocked_lines(blocked), ""]
    lines += [*_other_lines(plan), summary_line(plan)]
    lines += [printable(line) for line in approval_lines(plan)]
    return "\n".join(lines) + "\n"


def plan_markdown(plan: Plan) -> str:
    """Render a comment of at most ``MARKDOWN_LIMIT`` characters: what cannot be undone first, then the rest."""
    grave = sorted((g for g in plan.changes if is_grave(g)), key=lambda gated: -gated.change.risk.rank)
    others = [gated for gated in plan.changes if not is_grave(gated)]
    lines = [f"### {markdown(_title(plan))}", "", f"**{markdown(summary_line(plan))}**", ""]
    lines += _section("Look at these first", _change_table(plan, grave))
    lines += _section("Blocked", _blocked_table(plan.change_set.blocked))
    lines += _section("Other changes", _change_table(plan, others))
    lines += _section("Also", [f"- {markdown(line)}" for line in _other_lines(plan) if line])
    lines += [markdown(line) for line in approval_lines(plan)]
    return clipped(lines, MARKDOWN_LIMIT)


def summary_line(plan: Plan) -> str:
    """``Plan: 3 to create, 1 to expand …; 1 blocked, 2 unmanaged``; ``No changes.`` when nothing differs."""
    unmanaged = len(plan.change_set.unmanaged)
    if plan.is_empty:
        return f"No changes. {unmanaged} unmanaged." if unmanaged else "No changes."
    actions = ", ".join(f"{count} to {action}" for action, count in plan.action_counts.items())
    held, dropped = len(plan.with_gate(GateWord.HELD)), len(plan.with_gate(GateWord.DROPPED))
    rest = [f"{len(plan.change_set.blocked)} blocked", f"{unmanaged} unmanaged"]
    rest += [f"{count} {word}" for count, word in ((held, "held"), (dropped, "dropped")) if count]
    return f"Plan: {actions}; {', '.join(rest)}."


def details(change: Change) -> Iterator[str]:
    """Say what the change does, one printable fact a line."""
    match change:
        case CreateTopic():
            yield f"partitions: {change.partitions}"
            yield f"replication factor: {change.replication_factor}"
            for name, value in sorted(change.configs.items()):
                yield printable(f"{name}: {_shown(name, value)}")
            yield from _replica_lines(change.assignment)
        case ExpandTopic():
            yield f"partitions: {change.partitions_before} -> {change.partitions}"
            yield from _replica_lines(change.assignment)
        case ConfigureTopic():
            for name in sorted(change.configs):
                before, after = change.configs_before.get(name), change.configs[name]
                yield printable(f"{name}: {_shown(name, before)} -> {_shown(name, after)}")
        case DeleteTopic():
            yield f"partitions: {change.partitions}"
            yield printable(f"topic id: {change.topic_id or 'none'}")
            yield printable(f"reason: {change.reason}")
        case _:
            assert_never(change)


def is_grave(gated: GatedChange) -> bool:
    """Whether a reviewer must look at it before all others."""
    return gated.change.risk.rank >= Risk.RISKY.rank


def approval_lines(plan: Plan) -> list[str]:
    """How to let the held changes run, as far as an approval can; nothing when none is held."""
    lines = [approval_line(plan), final_hold_line(plan)]
    return ["", *filter(None, lines)] if any(lines) else []


def approval_line(plan: Plan) -> str:
    askable = sum(gated.in_question for gated in plan.changes)
    return f"{askable} held: to run them too, apply with --approve {plan.fingerprint}" if askable else ""


def final_hold_line(plan: Plan) -> str:
    """What no approval lifts."""
    final = sum(not gated.in_question for gated in plan.with_gate(GateWord.HELD))
    return f"{final} held by a limit that no approval lifts: merge another limit, or fewer deletes" if final else ""


def clipped(lines: Sequence[str], limit: int) -> str:
    """Join whole lines up to ``limit`` characters; the last one then says how many are left out."""
    text = "\n".join(lines) + "\n"
    if len(text) <= limit:
        return text
    kept: list[str] = []
    room = limit - 100
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join(
        [*kept, "", f"*{len(lines) - len(kept)} more lines are left out here; the plan file has all.*", ""]
    )


def words(text: str) -> str:
    """Clip and escape a text of a spec for Markdown."""
    short = text if len(text) <= _LONGEST_WORDS else f"{text[:_LONGEST_WORDS]}…"
    return markdown(short)


def _title(plan: Plan) -> str:
    target = plan.target
    return printable(
        f"Plan for environment {target.environment}, cluster {target.cluster_id}, chroot {target.chroot or '/'}"
    )


def _change_lines(plan: Plan, gated: GatedChange) -> Iterator[str]:
    change = gated.change
    yield printable(f"  {SIGNS[change.action]} {change.address} {_sentence(gated)}  ({change.location})")
    if change.risk is not Risk.SAFE:
        yield printable(f"      risk: {' '.join((change.risk, *change.codes))}")
    yield from (f"      {line}" for line in details(change))
    if isinstance(change, DeleteTopic):
        yield f"      {_activity(plan.change_set.activity.get(change.topic))}"
    yield from (printable(f"      note: {note}") for note in change.notes)
    yield from (printable(f"      {gated.gate}: {reason}") for reason in gated.reasons)


def _sentence(gated: GatedChange) -> str:
    participle = PARTICIPLES[gated.change.action]
    if gated.gate is GateWord.RUN:
        return f"will be {participle}"
    return f"would be {participle}, but is {gated.gate}"


def _blocked_lines(blocked: Blocked) -> Iterator[str]:
    yield printable(f"  ! {blocked.address} is blocked  ({blocked.location})")
    for code, reason in zip(blocked.codes, blocked.reasons, strict=False):
        yield printable(f"      {code}: {reason}")
    yield printable(f"      way out: {blocked.way_out}")
    if blocked.reassignment:
        yield printable(f"      reassignment: {blocked.reassignment}")


def _other_lines(plan: Plan) -> list[str]:
    """Tell what is no change: drift, pauses, unmanaged topics, what could not be asked; then an empty line."""
    found = plan.change_set
    lines = [f"drift: {d.topic} has {d.config}={d.value}, which no spec names" for d in found.drift]
    lines += [f"paused: {p.topic} until {p.until}: {p.reason}" for p in found.paused]
    lines += [f"warning: {warning}" for warning in found.warnings]
    if found.unmanaged:
        lines.append(f"unmanaged: {_some(found.unmanaged)}")
    return [*(printable(line) for line in lines), ""] if lines else []


def _activity(activity: TopicActivity | None) -> str:
    if activity is None or activity.end_offsets is None:
        return "traffic: could not be read"
    groups = "groups could not be read" if activity.groups is None else f"groups: {_some(activity.groups) or 'none'}"
    return printable(f"traffic: end offsets add up to {sum(activity.end_offsets.values())}; {groups}")


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"#### {title}", "", *lines, ""] if lines else []


def _change_table(plan: Plan, gated_changes: Sequence[GatedChange]) -> list[str]:
    if not gated_changes:
        return []
    rows = [_change_row(plan, gated) for gated in gated_changes]
    return ["| | topic | what | risk | gate | where |", "|---|---|---|---|---|---|", *rows]


def _change_row(plan: Plan, gated: GatedChange) -> str:
    change = gated.change
    facts = [words(line) for line in details(change)]
    if isinstance(change, DeleteTopic):
        facts.append(words(_activity(plan.change_set.activity.get(change.topic))))
    gate = "<br>".join([str(gated.gate), *(words(reason) for reason in gated.reasons)])
    risk = words(" ".join((change.risk, *change.codes)))
    sign = f"{SIGNS[change.action]} {change.action}"
    return _row(sign, words(change.topic), "<br>".join(facts), risk, gate, words(str(change.location)))


def _blocked_table(blocked: Sequence[Blocked]) -> list[str]:
    if not blocked:
        return []
    rows = [
        _row(
            words(b.topic), "<br>".join(words(reason) for reason in b.reasons), words(b.way_out), words(str(b.location))
        )
        for b in blocked
    ]
    return ["| topic | why | way out | where |", "|---|---|---|---|", *rows]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _some(names: Iterable[str]) -> str:
    listed = sorted(names)
    more = len(listed) - _NAMES_SHOWN
    return ", ".join(listed[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _shown(config: str, value: str | None) -> str:
    """``604800000 (7d)`` for milliseconds that are a whole number of something larger; else as it is."""
    if value is None:
        return "(not set)"
    is_number = value.isdecimal() and len(value) <= _LONGEST_INTEGER
    duration = _duration(int(value)) if is_number and _is_milliseconds(config) else ""
    return f"{value} ({duration})" if duration else value


def _is_milliseconds(config: str) -> bool:
    return config in TOPIC_CONFIGS and TOPIC_CONFIGS[config].unit == "ms"


def _duration(milliseconds: int) -> str:
    """In the largest unit that leaves no rest; empty when that is the millisecond."""
    fitting = [(size, unit) for unit, size in UNITS["ms"].items() if milliseconds and milliseconds % size == 0]
    size, unit = max(fitting, default=(1, "ms"))
    return f"{milliseconds // size}{unit}" if size > 1 else ""


def _replica_lines(assignment: Assignment) -> Iterator[str]:
    """``replicas: 0: 1,2,3  1: 2,3,1``, wrapped; the preferred leader stands first."""
    rows = [f"{partition}: {','.join(map(str, assignment[partition]))}" for partition in sorted(assignment)]
    shown = rows[:_ROWS_SHOWN]
    per_line = max(1, _REPLICAS_WIDTH // (max(map(len, shown), default=0) + 2))
    for first in range(0, len(shown), per_line):
        label = "replicas:" if first == 0 else " " * len("replicas:")
        yield f"{label} {'  '.join(shown[first : first + per_line])}"
    if more := len(rows) - len(shown):
        yield f"… and {more} more partition{'s' if more > 1 else ''}, all in the JSON"
