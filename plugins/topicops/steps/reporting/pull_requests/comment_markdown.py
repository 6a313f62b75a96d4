"""The comments of a pull request about one environment: what must be seen first, in as few characters as it takes.

A comment begins with a hidden marker, by which a later run finds it again, and the first one ends with a hidden record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from topicops.model.plans.plan import GatedChange, Plan
from topicops.model.printable import markdown, plural
from topicops.model.pull_requests.planned import AfterMerge, CommentContent, OtherPullRequest, ReviewState
from topicops.model.pull_requests.run_result import ChangeResult
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
_OTHERS_SHOWN, _TOPICS_SHOWN, _LOADS_SHOWN, _DIGESTS_SHOWN, _RACKS_SHOWN = 10, 5, 50, 50, 10
"""What is below the changes must leave room for them."""
_BAR = 20
"""Cells of a bar."""
_MARKER = re.compile(r"<!-- topicops:comment environment=([A-Za-z0-9_-]+) part=([1-9]) -->\n")
_OTHERS, _OTHERS_END = "<!-- topicops:others -->", "<!-- topicops:others end -->"
_BEFORE, _BEFORE_END = "<!-- topicops:before -->", "<!-- topicops:before end -->"
_NO_PLAN = "**There is no plan.** The files or the cluster must be put right first:"
_NEWEST, _NEWEST_END = "<!-- topicops:newest -->", "<!-- topicops:newest end -->"
_OTHERS_TITLE = "#### Open on the same topics"
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:/_~%-]+")
_DIGEST_SHOWN = 12
_NO_STATE = ReviewState(reviewers=())
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


def comment_parts(content: CommentContent) -> tuple[str, ...]:
    """The texts of the comments, each below ``COMMENT_LIMIT`` characters; mostly one.

    Changes are shown in full where they fit, else in brief. If even that is too long, more comments follow, the gravest
    changes first; what does not fit into ``MOST_PARTS`` is counted.
    """
    closing = _closing(content)
    for grave_row, other_row in ((_full, _full), (_full, _brief), (_brief, _brief)):
        lines = [*_opening(content), *_body(content, grave_row, other_row), *closing]
        if size(lines) + size([marker(content.environment, 1)]) <= COMMENT_LIMIT:
            return (_text(content.environment, 1, lines),)
    return _split(content, closing)


def _text(environment: str, part: int, lines: Sequence[str]) -> str:
    return "\n".join([marker(environment, part), *lines]).rstrip("\n") + "\n"


def _split(content: CommentContent, closing: Sequence[str]) -> tuple[str, ...]:
    """Whole rows over several comments; the opening and the closing stay in the first."""
    sections = [section for section in _sections(content, _brief, _brief) if section.rows]
    opening = _opening(content)
    parts: list[list[str]] = [[*opening]]
    room = COMMENT_LIMIT - size(opening) - size(closing) - 200
    left_out = 0
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
                left_out += 1
                continue
            parts[-1] += [row] if is_open else ["", *head, row]
            is_open, room = True, room - needed
    if left_out:
        parts[-1] += ["", f"*{left_out} rows are left out here; the plan of the job has all.*"]
    parts[0] += ["", *closing]
    return tuple(_text(content.environment, number, lines) for number, lines in enumerate(parts, 1))


# ---- the parts of a comment ----


def _opening(content: CommentContent) -> list[str]:
    plan = content.plan
    lines = [f"### {words(title(plan))}" if plan else f"### Environment {words(content.environment)}", ""]
    if content.problem:
        lines += [_NO_PLAN, "", "```text", *_fenced(content.problem), "```", ""]
    if plan:
        lines += [f"**{markdown(summary_line(plan))}** {_whose(content, plan)}", ""]
        if final := final_line(_only_own(content, plan)):
            lines += [f"**{markdown(final)}**", ""]
    lines += [f"- {words(remark)}" for remark in content.remarks]
    return [*lines, ""] if content.remarks else lines


def _whose(content: CommentContent, plan: Plan) -> str:
    mine = sum(gated.change.topic in content.own for gated in plan.changes)
    pending = len(plan.changes) - mine
    return f"{mine} of this pull request, {pending} pending before." if plan.changes else ""


def _only_own(content: CommentContent, plan: Plan) -> Plan:
    return replace(plan, changes=tuple(g for g in plan.changes if g.change.topic in content.own))


def _fenced(text: str) -> Iterator[str]:
    """Lines for a code block that no text can end."""
    for line in text.splitlines()[:100]:
        yield line[:500].replace("```", "` ` `")


def _body(content: CommentContent, grave_row: Row, other_row: Row) -> list[str]:
    lines: list[str] = []
    for section in _sections(content, grave_row, other_row):
        if section.rows:
            found = section.lines(len(section.rows))
            lines += _folded(f"{section.title} ({len(section.rows)})", found[2:]) if section.noun == "folded" else found
    return lines


def _sections(content: CommentContent, grave_row: Row, other_row: Row) -> Iterator[Section]:
    """The gravest first. Sections whose noun is ``folded`` are closed until somebody opens them."""
    plan = content.plan
    if plan is None:
        return
    mine = [gated for gated in plan.changes if gated.change.topic in content.own]
    pending = [gated for gated in plan.changes if gated.change.topic not in content.own]
    for which, head, row in (
        (sorted(filter(is_grave, mine), key=lambda g: -g.change.risk.rank), GRAVE, grave_row),
        ([gated for gated in mine if not is_grave(gated)], "Other changes of this pull request", other_row),
    ):
        table = BRIEF_TABLE if row is _brief else CHANGES_TABLE
        yield Section(title=head, head=table, rows=tuple(row(content, plan, g) for g in which), noun="changes")
    blocked = tuple(blocked_row(blocked) for blocked in plan.change_set.blocked if blocked.topic in content.own)
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


def has_row_of(gated: GatedChange, body: str) -> bool:
    """Whether the comment has a row about the change, in full or in brief."""
    return any(f"| {change_name(gated)}{end}" in body for end in ("<br>", " |"))


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


def _closing(content: CommentContent) -> list[str]:
    lines = [_OTHERS, *_other_lines(content.others), _OTHERS_END, ""]
    if content.plan is not None:
        lines += _loss_lines(content.plan)
        lines += _load_lines(content.plan)
        lines += _digest_lines(content, content.plan)
    if content.head_commit:
        lines += [f"Base {content.base_commit[:12]}, branch {content.head_commit[:12]}.", ""]
    return [*lines, content.record] if content.record else lines


def _other_lines(others: Sequence[OtherPullRequest]) -> Iterator[str]:
    if others:
        yield _OTHERS_TITLE
        yield ""
        yield from map(_other_line, others[-_OTHERS_SHOWN:])
        if len(others) > _OTHERS_SHOWN:
            yield f"- and {len(others) - _OTHERS_SHOWN} more that were opened before these"
        yield ""


def _other_line(other: OtherPullRequest) -> str:
    topics = _some_topics(other.topics)
    return f"- {_link(other.mark, other.url)} by {words(other.author)}: {topics}; the later merge is planned anew."


def with_other(body: str, other: OtherPullRequest) -> str:
    """The comment with a line about another open pull request on the same topics; an earlier line about it goes."""
    before, begin, rest = body.rpartition(_OTHERS)
    found, end, after = rest.partition(_OTHERS_END)
    if not (begin and end):
        return body
    about = f"- {_link(other.mark, other.url)} by "
    lines = [line for line in found.splitlines() if line.startswith("- ") and not line.startswith(about)]
    said = "\n".join(["", _OTHERS_TITLE, "", *lines[1 - _OTHERS_SHOWN :], _other_line(other), "", ""])
    longer = f"{before}{begin}{said}{end}{after}"
    return longer if len(longer) <= COMMENT_LIMIT else body


def _some_topics(topics: Sequence[str]) -> str:
    more = len(topics) - _TOPICS_SHOWN
    shown = ", ".join(words(topic) for topic in topics[:_TOPICS_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown


def _link(text: str, url: str) -> str:
    shown = text.replace("#", "#\N{ZERO WIDTH SPACE}") if not _ADDRESS.fullmatch(url) else text
    return f"[{shown}]({url})" if _ADDRESS.fullmatch(url) else words(shown)


def shows_a_plan(body: str) -> bool:
    return _NO_PLAN not in body


def with_problem(body: str, problem: str) -> str:
    """The comment with a note above its plan: the newest commit has none. An earlier note goes."""
    if not shows_a_plan(body):
        return body
    first, _, rest = body.partition("\n")
    for most_lines in (20, 1):
        said = [line.replace("<!--", "<! --") for line in islice(_fenced(problem), most_lines)]
        note = [
            *(_NEWEST, "**The newest commit has no plan.** The files or the cluster must be put right first:", ""),
            *("```text", *said, "```", "", "What follows is the plan of an earlier commit.", "", _NEWEST_END),
        ]
        longer = "\n".join([first, *note, _without_note(rest)])
        if len(longer) <= COMMENT_LIMIT:
            return longer
    return body


def _without_note(rest: str) -> str:
    _, end, after = rest.partition(f"{_NEWEST_END}\n")
    return after if end and rest.startswith(_NEWEST) else rest


def with_merged_note(body: str, mark: str, url: str, topics: Sequence[str]) -> str:
    """The comment with a line that another pull request was merged after this plan; at most once for each."""
    named = _some_topics(topics)
    line = f"- {_link(mark, url)} was merged after this plan was made, on {named}. Run the job again to plan anew."
    if line in body or _OTHERS_END not in body:
        return body
    before, _, after = body.rpartition(_OTHERS_END)
    longer = f"{before}{line}\n\n{_OTHERS_END}{after}"
    return longer if len(longer) <= COMMENT_LIMIT else body


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


def _digest_lines(content: CommentContent, plan: Plan) -> list[str]:
    rows = [
        cells(
            change_name(gated),
            gated.digest[:_DIGEST_SHOWN],
            _since(content.shown_since.get(gated.digest)),
        )
        for gated in plan.changes
        if gated.approvable and gated.change.topic in content.own
    ]
    if not rows:
        return []
    shown = rows[:_DIGESTS_SHOWN]
    more = [f"*and {len(rows) - len(shown)} more*", ""] if len(rows) > len(shown) else []
    return _folded(f"Digests of the held changes ({len(rows)})", [*_DIGESTS_TABLE, *shown, "", *more])


def _since(at: datetime | None) -> str:
    return f"{at:{_MINUTE}}" if at else "now"


def _folded(summary: str, lines: Sequence[str]) -> list[str]:
    return ["<details>", f"<summary>{markdown(summary)}</summary>", "", *lines, "</details>", ""]


# ---- after the merge ----


def after_merge_parts(content: CommentContent, *, earlier: str = "") -> tuple[str, ...]:
    """The comment once the pull request is merged; the text before the merge is folded, if there is room for it.

    Args:
        earlier: The comment as it was.
    """
    after = content.after_merge
    if after is None:
        return comment_parts(content)
    lines = [f"### {words(content.environment)}: {words(after.sentence)}", "", *_run_line(after), *_result_lines(after)]
    text = _text(content.environment, 1, lines)
    plan = [_BEFORE, *_plan_before(earlier), _BEFORE_END]
    folded = "\n".join(["", *_folded("The plan before the merge", plan)]) if earlier else ""
    record = f"\n{content.record}\n" if content.record else ""
    fits = len(text) + len(folded) + len(record) <= COMMENT_LIMIT
    return (text + (folded if fits else "") + record,)


def _run_line(after: AfterMerge) -> list[str]:
    parts = [_link("The run in Airflow", after.run_url)] if after.run_url else []
    parts += [f"commit {after.commit[:12]}"] if after.commit else []
    return [", ".join(parts) + ".", ""] if parts else []


def _result_lines(after: AfterMerge) -> list[str]:
    result = after.result
    if result is None:
        return []
    lines = [f"- {words(note)}" for note in result.notes]
    lines += [""] if lines else []
    room = COMMENT_LIMIT - size(lines) - 1000
    rows = list(_fitting([_result_row(change) for change in result.changes], room))
    left_out = result.left_out + len(result.changes) - len(rows)
    lines += [*_RESULT_TABLE, *rows, ""] if rows else []
    return [*lines, f"*{plural(left_out, 'change')} more; the report of the run has all.*", ""] if left_out else lines


def _fitting(rows: Sequence[str], room: int) -> Iterator[str]:
    for row in rows:
        room -= len(row) + 1
        if room < 0:
            return
        yield row


def _result_row(change: ChangeResult) -> str:
    return cells(f"**{change.action}** {words(change.topic)}", f"**{words(change.status)}**", words(change.message))


def _plan_before(body: str) -> list[str]:
    """The comment without marker and record, as it was before the merge; an earlier run may have folded it already."""
    lines = body.split("\n")
    if _BEFORE in lines and _BEFORE_END in lines:
        return lines[lines.index(_BEFORE) + 1 : lines.index(_BEFORE_END)]
    return [line for line in lines if not line.startswith(("<!-- topicops:comment ", "<!-- topicops:record "))]
