"""The comments of a pull request about one environment: what must be seen first, in as few characters as it takes.

A comment begins with a hidden marker, by which a later run finds it again, and the first one ends with a hidden record.
What comes after the plan is a comment of its own, so the comment with the plan stays as it was reviewed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from topicops.features.pull_requests.values import CommentContent, OtherPullRequest, ReviewState, TriggeredRun
from topicops.model.plans.plan import GatedChange, Plan
from topicops.model.printable import markdown, plural
from topicops.model.runs.run_result import RunResult
from topicops.steps.reporting.fitting import Section, cells, size, words
from topicops.steps.reporting.plans.losses_wording import LOSSES_TITLE, loss_remarks, loss_row, worst_losses
from topicops.steps.reporting.plans.plan_markdown import (
    BLOCKED_TABLE,
    BRIEF_TABLE,
    CHANGES_TABLE,
    GRAVE,
    blocked_row,
    brief_row,
    change_name,
    change_row,
)
from topicops.steps.reporting.plans.plan_wording import final_line, is_grave, other_lines, summary_line, title

COMMENT_LIMIT = 65_000
"""Characters of one comment; GitHub takes 65,536."""
MOST_PARTS = 4
NOTE = 0
"""Number of the part that follows the plan: why the newest commit has none, or what became of the changes."""
_OTHERS_SHOWN, _TOPICS_SHOWN, _LOADS_SHOWN, _DIGESTS_SHOWN, _RACKS_SHOWN = 10, 5, 50, 50, 10
"""What is below the changes must leave room for them."""
_BAR = 20
"""Cells of a bar."""
_MARKER = re.compile(r"<!-- topicops:comment environment=([A-Za-z0-9_-]+) part=([0-9]) -->\n")
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:/_~%-]+")
_DIGEST_SHOWN = 12
_NO_PLAN = "**The newest commit has no plan.** The files or the cluster must be put right first:"
_OLDER_PLAN = "A plan in another comment is that of an earlier commit."
_DIGESTS_TABLE = ("| change | digest | shown since |", "|---|---|---|")
_RESULT_TABLE = ("| change | outcome | why |", "|---|---|---|")
_LOAD_TABLE = ("| if all of it runs | replicas | | before | after |", "|---|---|---|---|---|")
_MINUTE = "%Y-%m-%d %H:%M UTC"

Row = Callable[[CommentContent, Plan, GatedChange], str]


def marker(environment: str, part: int) -> str:
    """The first line of a comment."""
    return f"<!-- topicops:comment environment={environment} part={part} -->"


def marked(body: str) -> tuple[str, int] | None:
    """Environment and part of a comment that begins with a marker; None for any other text."""
    match = _MARKER.match(body)
    return (match[1], int(match[2])) if match else None


@dataclass(frozen=True, slots=True)
class PlanComment:
    parts: tuple[str, ...]
    """Texts of the comments, each below ``COMMENT_LIMIT`` characters; mostly one."""
    left_out: frozenset[str] = frozenset()
    """Digests of the changes that have no row, because there are too many."""


def plan_comment(content: CommentContent, plan: Plan) -> PlanComment:
    """Show the plan of one environment.

    Changes are shown in full where they fit, else in brief. If even that is too long, more comments follow, the gravest
    changes first; what does not fit into ``MOST_PARTS`` is counted.
    """
    closing = _closing(content, plan)
    for grave_row, other_row in ((_full, _full), (_full, _brief), (_brief, _brief)):
        lines = [*_opening(content, plan), *_body(content, plan, grave_row, other_row), *closing]
        if size(lines) + size([marker(content.environment, 1)]) <= COMMENT_LIMIT:
            return PlanComment((_text(content.environment, 1, lines),))
    return _split(content, plan, closing)


def no_plan_note(content: CommentContent) -> str:
    """The comment that says why the newest commit has no plan."""
    lines = [f"### Environment {words(content.environment)}", "", _NO_PLAN, ""]
    lines += ["```text", *_fenced(content.problem), "```", "", *_remark_lines(content), _OLDER_PLAN]
    return _text(content.environment, NOTE, [*lines, *_commit_lines(content)])


def _text(environment: str, part: int, lines: Sequence[str]) -> str:
    return "\n".join([marker(environment, part), *lines]).rstrip("\n") + "\n"


def _split(content: CommentContent, plan: Plan, closing: Sequence[str]) -> PlanComment:
    """Whole rows over several comments; the opening and the closing stay in the first."""
    sections = [section for section in _sections(content, plan, _brief, _brief) if section.rows]
    opening = _opening(content, plan)
    parts: list[list[str]] = [[*opening]]
    room = COMMENT_LIMIT - size(opening) - size(closing) - 200
    left_out: list[str] = []
    for section in sections:
        head = [f"#### {section.title}", "", *section.head]
        is_open = False
        for row in section.rows:
            needed = len(row) + 1 + (0 if is_open else size(head) + 1)
            if needed > room and len(parts) < MOST_PARTS:
                parts.append([f"*Continues the comment above, part {len(parts) + 1}.*", ""])
                room, is_open = COMMENT_LIMIT - 300, False
                needed = len(row) + 1 + size(head) + 1
            if needed > room:
                left_out.append(row)
                continue
            parts[-1] += [row] if is_open else ["", *head, row]
            is_open, room = True, room - needed
    if left_out:
        parts[-1] += ["", f"*{len(left_out)} rows are left out here; the plan of the job has all.*"]
    parts[0] += ["", *closing]
    return PlanComment(
        tuple(_text(content.environment, number, lines) for number, lines in enumerate(parts, 1)),
        frozenset(gated.digest for gated in plan.changes if _brief(content, plan, gated) in left_out),
    )


# ---- the parts of a comment ----


def _opening(content: CommentContent, plan: Plan) -> list[str]:
    lines = [f"### {words(title(plan))}", ""]
    mine = len(content.own_changes)
    whose = f"{mine} of this pull request, {len(plan.changes) - mine} pending before." if plan.changes else ""
    lines += [f"**{markdown(summary_line(plan))}** {whose}", ""]
    if final := final_line(replace(plan, changes=content.own_changes)):
        lines += [f"**{markdown(final)}**", ""]
    return [*lines, *_remark_lines(content)]


def _remark_lines(content: CommentContent) -> list[str]:
    lines = [f"- {words(remark)}" for remark in content.remarks]
    return [*lines, ""] if lines else []


def _commit_lines(content: CommentContent) -> list[str]:
    commits = f"Base {content.base_commit[:12]}, branch {content.head_commit[:12]}."
    return [commits, ""] if content.head_commit else []


def _fenced(text: str) -> Iterator[str]:
    """Lines for a code block that no text can end."""
    for line in text.splitlines()[:100]:
        yield line[:500].replace("```", "` ` `")


def _body(content: CommentContent, plan: Plan, grave_row: Row, other_row: Row) -> list[str]:
    lines: list[str] = []
    for section in _sections(content, plan, grave_row, other_row):
        if section.rows:
            found = section.lines(len(section.rows))
            lines += _folded(f"{section.title} ({len(section.rows)})", found[2:]) if section.noun == "folded" else found
    return lines


def _sections(content: CommentContent, plan: Plan, grave_row: Row, other_row: Row) -> Iterator[Section]:
    """The gravest first. Sections whose noun is ``folded`` are closed until somebody opens them."""
    mine = content.own_changes
    pending = [gated for gated in plan.changes if gated.change.topic not in content.own]
    for which, head, row in (
        (sorted(filter(is_grave, mine), key=lambda g: -g.change.risk.rank), GRAVE, grave_row),
        ([gated for gated in mine if not is_grave(gated)], "Other changes of this pull request", other_row),
    ):
        table = BRIEF_TABLE if row is _brief else CHANGES_TABLE
        yield Section(title=head, head=table, rows=tuple(row(content, plan, g) for g in which), noun="changes")
    blocked = tuple(map(blocked_row, content.own_blocked))
    yield Section(title="Blocked", head=BLOCKED_TABLE, rows=blocked, noun="topics")
    yield Section(
        title="Pending before this pull request, look at these too",
        head=BRIEF_TABLE,
        rows=tuple(_brief(content, plan, gated) for gated in pending if is_grave(gated)),
        noun="changes",
    )
    yield Section(
        title="Pending before this pull request",
        head=BRIEF_TABLE,
        rows=tuple(_brief(content, plan, gated) for gated in pending if not is_grave(gated)),
        noun="folded",
    )
    others = [blocked_row(blocked) for blocked in plan.change_set.blocked if blocked.topic not in content.own]
    yield Section(title="Blocked before this pull request", head=BLOCKED_TABLE, rows=tuple(others), noun="folded")
    also = tuple(f"- {words(line)}" for line in other_lines(plan))
    yield Section(title="Also", rows=also, noun="folded")


def _full(content: CommentContent, plan: Plan, gated: GatedChange) -> str:
    return change_row(plan, gated, more=_review_lines(content.reviews.get(gated.digest)))


def _brief(content: CommentContent, plan: Plan, gated: GatedChange) -> str:  # noqa: ARG001 - as ``_full``
    return brief_row(gated, more=_review_lines(content.reviews.get(gated.digest)))


def _review_lines(state: ReviewState | None) -> Iterator[str]:
    if state is None:
        return
    if state.approved_by:
        yield f"**approved by {words(state.approved_by)}**"
    elif state.reviewers and state.can_be_reviewed:
        yield f"waits for a review by {words(' or '.join(state.reviewers))}"
    if state.why_not:
        yield words(state.why_not)


# ---- below the changes ----


def _closing(content: CommentContent, plan: Plan) -> list[str]:
    lines = [*_other_lines(content.others), *_loss_lines(plan), *_load_lines(plan), *_digest_lines(content)]
    lines += _commit_lines(content)
    return [*lines, content.record] if content.record else lines


def _other_lines(others: Sequence[OtherPullRequest]) -> Iterator[str]:
    if others:
        yield "#### Open on the same topics"
        yield ""
        for other in others[-_OTHERS_SHOWN:]:
            by = f"{_link(other.mark, other.url)} by {words(other.author)}"
            yield f"- {by}: {_some_topics(other.topics)}; the later merge is planned anew."
        if len(others) > _OTHERS_SHOWN:
            yield f"- and {len(others) - _OTHERS_SHOWN} more that were opened before these"
        yield ""


def _some_topics(topics: Sequence[str]) -> str:
    more = len(topics) - _TOPICS_SHOWN
    shown = ", ".join(words(topic) for topic in topics[:_TOPICS_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown


def _link(text: str, url: str) -> str:
    shown = text.replace("#", "#\N{ZERO WIDTH SPACE}") if not _ADDRESS.fullmatch(url) else text
    return f"[{shown}]({url})" if _ADDRESS.fullmatch(url) else words(shown)


def _loss_lines(plan: Plan) -> list[str]:
    """A line for each rack; none where nothing changes, or the partition states are not known."""
    table = plan.change_set.rack_losses
    if table is None or not plan.changes:
        return []
    shown = worst_losses(table, _RACKS_SHOWN)
    lines = [f"- {words(loss_row(row))}" for row in shown]
    if more := len(table.racks) - len(shown):
        lines += [f"- and {plural(more, 'rack')} more, none of which costs more"]
    return [f"#### {LOSSES_TITLE}", "", *lines, *(f"- {words(remark)}" for remark in loss_remarks(table)), ""]


def _load_lines(plan: Plan) -> list[str]:
    brokers = plan.change_set.load.brokers
    most = max((max(row.before.replicas, row.after.replicas) for row in brokers), default=0)
    rows = [
        cells(
            words(f"broker {row.broker}" + (f", rack {row.rack}" if row.rack is not None else "")),
            f"{row.before.replicas} → {row.after.replicas}",
            f"{row.after.replicas - row.before.replicas:+d}",
            _bar(row.before.replicas, most),
            _bar(row.after.replicas, most),
        )
        for row in brokers[:_LOADS_SHOWN]
        if plan.changes
    ]
    return _folded("Load of the brokers", [*_LOAD_TABLE, *rows, ""]) if rows else []


def _bar(value: int, most: int) -> str:
    filled = round(_BAR * value / most) if most else 0
    return "█" * filled + "░" * (_BAR - filled)


def _digest_lines(content: CommentContent) -> list[str]:
    rows = [
        cells(change_name(gated), gated.digest[:_DIGEST_SHOWN], f"{at:{_MINUTE}}" if at else "now")
        for gated in content.own_changes
        for at in (content.shown_since.get(gated.digest),)
        if gated.approvable
    ]
    if not rows:
        return []
    shown = rows[:_DIGESTS_SHOWN]
    more = [f"*and {len(rows) - len(shown)} more*", ""] if len(rows) > len(shown) else []
    return _folded(f"Digests of the held changes ({len(rows)})", [*_DIGESTS_TABLE, *shown, "", *more])


def _folded(summary: str, lines: Sequence[str]) -> list[str]:
    return ["<details>", f"<summary>{markdown(summary)}</summary>", "", *lines, "</details>", ""]


# ---- after the merge ----


def result_note(run: TriggeredRun) -> str:
    """The comment that says what became of the changes after the merge."""
    lines = [f"### {words(run.environment)}: {words(run.sentence)}", "", *_run_line(run)]
    return _text(run.environment, NOTE, [*lines, *(_result_lines(run.result) if run.result else [])])


def _run_line(run: TriggeredRun) -> list[str]:
    parts = [_link("The run in Airflow", run.url)] if run.url else []
    parts += [f"commit {run.commit[:12]}"] if run.commit else []
    return [", ".join(parts) + ".", ""] if parts else []


def _result_lines(result: RunResult) -> list[str]:
    lines = [f"- {words(note)}" for note in result.notes]
    lines += [""] if lines else []
    room = COMMENT_LIMIT - size(lines) - 1000
    found = [
        cells(f"**{c.action}** {words(c.topic)}", f"**{words(c.status)}**", words(c.message)) for c in result.changes
    ]
    rows = list(_fitting(found, room))
    left_out = result.left_out + len(result.changes) - len(rows)
    lines += [*_RESULT_TABLE, *rows, ""] if rows else []
    return [*lines, f"*{plural(left_out, 'change')} more; the report of the run has all.*", ""] if left_out else lines


def _fitting(rows: Sequence[str], room: int) -> Iterator[str]:
    for row in rows:
        room -= len(row) + 1
        if room < 0:
            return
        yield row
