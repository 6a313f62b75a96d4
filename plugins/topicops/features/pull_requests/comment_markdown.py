"""The comments of a pull request about one environment: what must be seen first, in as few characters as it takes.

A comment begins with a hidden marker, by which a later run finds it again, and the first one ends with a hidden record.
What comes after the plan is a comment of its own, so the comment with the plan stays as it was reviewed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from topicops.features.pull_requests.values import CommentContent, OtherPullRequest, ReviewState, TriggeredRun
from topicops.model.plans.plan import Blocked, GatedChange, Plan
from topicops.model.printable import markdown, plural
from topicops.model.runs.results import RunResult
from topicops.steps.reporting.document import (
    Entry,
    Line,
    Row,
    Said,
    Section,
    markdown_lines,
    markdown_row,
    section_head,
    size,
    table_head,
    words,
)
from topicops.steps.reporting.plan_document import (
    BLOCKED_HEAD,
    BRIEF_HEAD,
    CHANGES_HEAD,
    GRAVE,
    blocked_entry,
    brief_entry,
    change_entry,
    change_name,
)
from topicops.steps.reporting.plan_wording import (
    LOSSES_TITLE,
    final_line,
    is_grave,
    loss_remarks,
    loss_row,
    other_lines,
    summary_line,
    title,
    worst_losses,
)

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
_MINUTE = "%Y-%m-%d %H:%M UTC"

OfChange = Callable[[CommentContent, Plan, GatedChange], Entry]


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
    sections = [replace(found, is_folded=False) for found in _sections(content, plan, _brief, _brief) if found.rows]
    opening = _opening(content, plan)
    parts: list[list[str]] = [[*opening]]
    room = COMMENT_LIMIT - size(opening) - size(closing) - 200
    left_out: list[Row] = []
    for section in sections:
        head = [*section_head(section), *table_head(section)]
        is_open = False
        for row, shown in ((row, markdown_row(row, section.head)) for row in section.rows):
            needed = len(shown) + 1 + (0 if is_open else size(head) + 1)
            if needed > room and len(parts) < MOST_PARTS:
                parts.append([f"*Continues the comment above, part {len(parts) + 1}.*", ""])
                room, is_open = COMMENT_LIMIT - 300, False
                needed = len(shown) + 1 + size(head) + 1
            if needed > room:
                left_out.append(row)
                continue
            parts[-1] += [shown] if is_open else ["", *head, shown]
            is_open, room = True, room - needed
    if left_out:
        parts[-1] += ["", f"*{len(left_out)} rows are left out here; the plan of the job has all.*"]
    parts[0] += ["", *closing]
    rows_left_out = frozenset(left_out)
    return PlanComment(
        tuple(_text(content.environment, number, lines) for number, lines in enumerate(parts, 1)),
        frozenset(gated.digest for gated in plan.changes if _brief(content, plan, gated) in rows_left_out),
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


def _body(content: CommentContent, plan: Plan, grave_row: OfChange, other_row: OfChange) -> list[str]:
    sections = _sections(content, plan, grave_row, other_row)
    return [line for section in sections if section.rows for line in markdown_lines(section)]


def _sections(content: CommentContent, plan: Plan, grave_row: OfChange, other_row: OfChange) -> Iterator[Section]:
    """The gravest first. What was there before the pull request, and is not grave, is folded."""
    mine = content.own_changes
    pending = [gated for gated in plan.changes if gated.change.topic not in content.own]

    def changes(heading: str, which: Iterable[GatedChange], row: OfChange, *, is_folded: bool = False) -> Section:
        head, rows = BRIEF_HEAD if row is _brief else CHANGES_HEAD, [row(content, plan, gated) for gated in which]
        return Section(title=heading, head=head, rows=rows, noun="changes", is_folded=is_folded)

    def blocked(heading: str, which: Iterable[Blocked], *, is_folded: bool = False) -> Section:
        rows = list(map(blocked_entry, which))
        return Section(title=heading, head=BLOCKED_HEAD, rows=rows, noun="topics", is_folded=is_folded)

    before, look = "Pending before this pull request", "Pending before this pull request, look at these too"
    yield changes(GRAVE, sorted(filter(is_grave, mine), key=lambda gated: -gated.change.risk.rank), grave_row)
    yield changes("Other changes of this pull request", (gated for gated in mine if not is_grave(gated)), other_row)
    yield blocked("Blocked", content.own_blocked)
    yield changes(look, filter(is_grave, pending), _brief)
    yield changes(before, (gated for gated in pending if not is_grave(gated)), _brief, is_folded=True)
    others = (found for found in plan.change_set.blocked if found.topic not in content.own)
    yield blocked("Blocked before this pull request", others, is_folded=True)
    yield Section(title="Also", rows=other_lines(plan), is_folded=True)


def _full(content: CommentContent, plan: Plan, gated: GatedChange) -> Entry:
    return change_entry(plan, gated, more=_review_lines(content.reviews.get(gated.digest)))


def _brief(content: CommentContent, plan: Plan, gated: GatedChange) -> Entry:  # noqa: ARG001 - as ``_full``
    return brief_entry(gated, more=_review_lines(content.reviews.get(gated.digest)))


def _review_lines(state: ReviewState | None) -> Iterator[Line]:
    if state is None:
        return
    if state.approved_by:
        yield Said(bold=f"approved by {state.approved_by}")
    elif state.reviewers and state.can_be_reviewed:
        yield f"waits for a review by {' or '.join(state.reviewers)}"
    if state.why_not:
        yield state.why_not


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
    more = len(table.racks) - len(shown)
    counted = [f"and {plural(more, 'rack')} more, none of which costs more"] if more else []
    return markdown_lines(Section(title=LOSSES_TITLE, rows=[*map(loss_row, shown), *counted, *loss_remarks(table)]))


def _load_lines(plan: Plan) -> list[str]:
    brokers = plan.change_set.load.brokers if plan.changes else ()
    most = max((max(row.before.replicas, row.after.replicas) for row in brokers), default=0)
    rows = [
        (
            f"broker {row.broker}" + (f", rack {row.rack}" if row.rack is not None else ""),
            f"{row.before.replicas} → {row.after.replicas}",
            f"{row.after.replicas - row.before.replicas:+d}",
            _bar(row.before.replicas, most),
            _bar(row.after.replicas, most),
        )
        for row in brokers
    ]
    head = ("if all of it runs", "replicas", "", "before", "after")
    return _folded("Load of the brokers", head, rows, most=_LOADS_SHOWN)


def _bar(value: int, most: int) -> str:
    filled = round(_BAR * value / most) if most else 0
    return "█" * filled + "░" * (_BAR - filled)


def _digest_lines(content: CommentContent) -> list[str]:
    rows = [
        (change_name(gated), gated.digest[:_DIGEST_SHOWN], f"{at:{_MINUTE}}" if at else "now")
        for gated in content.own_changes
        for at in (content.shown_since.get(gated.digest),)
        if gated.approvable
    ]
    return _folded("Digests of the held changes", ("change", "digest", "shown since"), rows, most=_DIGESTS_SHOWN)


def _folded(heading: str, head: tuple[str, ...], rows: Sequence[Row], *, most: int) -> list[str]:
    section = Section(title=heading, head=head, rows=rows, noun="rows", is_folded=True)
    return markdown_lines(section, most=most) if rows else []


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
    rows = [(Said(c.topic, bold=c.action), Said(bold=c.status), c.message) for c in result.changes]
    room = COMMENT_LIMIT - size(lines) - 1000
    table = Section(head=("change", "outcome", "why"), rows=rows)
    found = table_head(table)
    kept = 0
    for row in rows:
        found.append(markdown_row(row, table.head))
        if size(found) > room:
            found.pop()
            break
        kept += 1
    left_out = result.left_out + len(rows) - kept
    lines += [*found, ""] if kept else []
    return [*lines, f"*{plural(left_out, 'change')} more; the report of the run has all.*", ""] if left_out else lines
