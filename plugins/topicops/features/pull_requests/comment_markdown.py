"""The comments of a pull request about one environment: what must be seen first, in as few characters as it takes.

A comment begins with a hidden marker, by which a later run finds it again, and the plan's ends with a hidden record.
What comes after the plan is a comment of its own, so the comment with the plan stays as it was reviewed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import filterfalse
from typing import Literal

from topicops.features.pull_requests.values import (
    CommentContent,
    OtherPullRequest,
    PullRequestPlan,
    ReviewState,
    TriggeredRun,
)
from topicops.model.plans.plan import Blocked, GatedChange, Plan
from topicops.model.printable import markdown, plural
from topicops.model.runs.results import RunResult
from topicops.steps.reporting.document import (
    Entry,
    Line,
    Row,
    Said,
    Section,
    as_markdown,
    markdown_lines,
    markdown_row,
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
_OTHERS_SHOWN, _TOPICS_SHOWN, _LOADS_SHOWN, _DIGESTS_SHOWN, _RACKS_SHOWN = 10, 5, 50, 50, 10
"""Most entries of each part below the changes, so that the changes have room."""
_BAR = 20
"""Cells of a bar."""
_MARKER = re.compile(r"<!-- topicops:comment environment=([A-Za-z0-9_-]+) kind=(plan|note) -->\n")
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:/_~%-]+")
_NO_PLAN = "**The newest commit has no plan.** The files or the cluster must be put right first:"
_OLDER_PLAN = "A plan in another comment is that of an earlier commit."

CommentKind = Literal["plan", "note"]
"""``note``: what follows the plan, such as why the newest commit has none, or what became of the changes."""


def marker(environment: str, kind: CommentKind) -> str:
    return f"<!-- topicops:comment environment={environment} kind={kind} -->"


def marked(body: str) -> tuple[str, str] | None:
    """Read environment and kind of a comment that begins with a marker. None means that it is another text."""
    match = _MARKER.match(body)
    return (match[1], match[2]) if match else None


def plan_comment(content: CommentContent, plan: Plan) -> tuple[str, frozenset[str]]:
    """Show the plan of one environment: a text, and the digests of the changes that have no row in it.

    Changes are shown in full where they fit, else in brief, the gravest first. Rows that do not fit are counted.
    """
    head = [marker(content.entry.environment, "plan"), *_opening(content, plan)]
    closing = [*_other_lines(content.others), *_loss_lines(plan), *_load_lines(plan), *_digest_lines(content)]
    closing += [*_commit_lines(content.pull), *filter(None, [content.record])]
    for brief_grave, brief_others in ((False, False), (False, True), (True, True)):
        found = _sections(content, plan, brief_grave=brief_grave, brief_others=brief_others)
        sections = [section for section in found if section.rows]
        lines = [*head, *(line for section in sections for line in markdown_lines(section)), *closing]
        if size(lines) <= COMMENT_LIMIT:
            return _joined(lines), frozenset()
    unfolded = [replace(section, is_folded=False) for section in sections]
    room = COMMENT_LIMIT - size(head) - size(closing)
    lines = [*head, *as_markdown(unfolded, limit=room, whole="the plan of the job").split("\n"), *closing]
    shown = frozenset(lines)
    rows = {gated.digest: markdown_row(_row(content, plan, gated, is_brief=True)) for gated in plan.changes}
    return _joined(lines), frozenset(digest for digest, row in rows.items() if row not in shown)


def no_plan_note(environment: str, problem: str, pull: PullRequestPlan | None = None) -> str:
    lines = [marker(environment, "note"), f"### Environment {words(environment)}", "", _NO_PLAN, "", "```text"]
    # No line of the problem can end the block of code.
    lines += [line[:500].replace("```", "` ` `") for line in problem.splitlines()[:100]]
    lines += ["```", "", *(_remark_lines(pull) if pull else []), _OLDER_PLAN, *(_commit_lines(pull) if pull else [])]
    return _joined(lines)


def _joined(lines: Sequence[str]) -> str:
    return "\n".join(lines).rstrip("\n") + "\n"


def _opening(content: CommentContent, plan: Plan) -> list[str]:
    mine = len(content.own_changes)
    whose = f"{mine} of this pull request, {len(plan.changes) - mine} pending before." if plan.changes else ""
    final = final_line(replace(plan, changes=content.own_changes))
    lines = [f"### {words(title(plan))}", "", f"**{markdown(summary_line(plan))}** {whose}", ""]
    return [*lines, *([f"**{markdown(final)}**", ""] if final else []), *_remark_lines(content.pull)]


def _remark_lines(pull: PullRequestPlan) -> list[str]:
    lines = [f"- {words(remark)}" for remark in pull.remarks]
    return [*lines, ""] if lines else []


def _commit_lines(pull: PullRequestPlan) -> list[str]:
    return [f"Base {pull.base_commit[:12]}, branch {pull.head_commit[:12]}.", ""]


def _sections(content: CommentContent, plan: Plan, *, brief_grave: bool, brief_others: bool) -> Iterator[Section]:
    """Yield the sections, the gravest first. What was there before the pull request, and is not grave, is folded."""
    own, mine = frozenset(content.entry.own), content.own_changes
    pending = [gated for gated in plan.changes if gated.change.topic not in own]

    def changes(heading: str, which: Iterable[GatedChange], *, is_brief: bool, is_folded: bool = False) -> Section:
        rows = [_row(content, plan, gated, is_brief=is_brief) for gated in which]
        head = BRIEF_HEAD if is_brief else CHANGES_HEAD
        return Section(title=heading, head=head, rows=rows, noun="changes", is_folded=is_folded)

    def blocked(heading: str, which: Iterable[Blocked], *, is_folded: bool = False) -> Section:
        rows = list(map(blocked_entry, which))
        return Section(title=heading, head=BLOCKED_HEAD, rows=rows, noun="topics", is_folded=is_folded)

    before, look = "Pending before this pull request", "Pending before this pull request, look at these too"
    grave = sorted(filter(is_grave, mine), key=lambda gated: -gated.change.risk.rank)
    yield changes(GRAVE, grave, is_brief=brief_grave)
    yield changes("Other changes of this pull request", filterfalse(is_grave, mine), is_brief=brief_others)
    yield blocked("Blocked", content.own_blocked)
    yield changes(look, filter(is_grave, pending), is_brief=True)
    yield changes(before, filterfalse(is_grave, pending), is_brief=True, is_folded=True)
    others = (found for found in plan.change_set.blocked if found.topic not in own)
    yield blocked("Blocked before this pull request", others, is_folded=True)
    yield Section(title="Also", rows=other_lines(plan), is_folded=True)


def _row(content: CommentContent, plan: Plan, gated: GatedChange, *, is_brief: bool) -> Entry:
    more = _review_lines(content.reviews.get(gated.digest))
    return brief_entry(gated, more=more) if is_brief else change_entry(plan, gated, more=more)


def _review_lines(state: ReviewState | None) -> Iterator[Line]:
    if state is None:
        return
    if state.approved_by:
        yield Said(bold=f"approved by {state.approved_by}")
    elif state.reviewers and state.can_be_reviewed:
        yield f"waits for a review by {' or '.join(state.reviewers)}"
    if state.why_not:
        yield state.why_not


def _other_lines(others: Sequence[OtherPullRequest]) -> list[str]:
    lines = []
    for other in others[-_OTHERS_SHOWN:]:
        more = len(other.topics) - _TOPICS_SHOWN
        topics = ", ".join(map(words, other.topics[:_TOPICS_SHOWN])) + (f" and {more} more" if more > 0 else "")
        by = f"{_link(other.mark, other.url)} by {words(other.author)}"
        lines.append(f"- {by}: {topics}; the later merge is planned anew.")
    if len(others) > _OTHERS_SHOWN:
        lines.append(f"- and {len(others) - _OTHERS_SHOWN} more that were opened before these")
    return ["#### Open on the same topics", "", *lines, ""] if lines else []


def _link(text: str, url: str) -> str:
    # In a text that is no link, the forge would make one of ``#12``.
    return f"[{text}]({url})" if _ADDRESS.fullmatch(url) else words(text.replace("#", "#\N{ZERO WIDTH SPACE}"))


def _loss_lines(plan: Plan) -> list[str]:
    """Return a line for each rack; none where nothing changes, or the partition states are not known."""
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
    rows = []
    for gated in content.own_changes:
        if gated.approvable:
            shown = content.shown.get(gated.digest)
            since = f"{shown.since:%Y-%m-%d %H:%M} UTC" if shown else "now"
            rows.append((change_name(gated), gated.digest[:12], since))
    return _folded("Digests of the held changes", ("change", "digest", "shown since"), rows, most=_DIGESTS_SHOWN)


def _folded(heading: str, head: tuple[str, ...], rows: Sequence[Row], *, most: int) -> list[str]:
    section = Section(title=heading, head=head, rows=rows, noun="rows", is_folded=True)
    return markdown_lines(section, most=most) if rows else []


def result_note(run: TriggeredRun) -> str:
    lines = [marker(run.environment, "note"), f"### {words(run.environment)}: {words(run.sentence)}", ""]
    of_run = [_link("The run in Airflow", run.url)] if run.url else []
    of_run += [f"commit {run.commit[:12]}"] if run.commit else []
    lines += [", ".join(of_run) + ".", ""] if of_run else []
    return _joined([*lines, *(_result_lines(run.result) if run.result else [])])


def _result_lines(result: RunResult) -> list[str]:
    lines = [f"- {words(note)}" for note in result.notes]
    lines += [""] if lines else []
    rows = [(Said(c.topic, bold=c.action), Said(bold=c.status), c.message) for c in result.changes]
    room = COMMENT_LIMIT - size(lines) - 1000
    table = Section(head=("change", "outcome", "why"), rows=rows)
    head, shown = table_head(table), [markdown_row(row, table.head) for row in rows]
    while shown and size([*head, *shown]) > room:
        shown.pop()
    left_out = result.left_out + len(rows) - len(shown)
    lines += [*head, *shown, ""] if shown else []
    return [*lines, f"*{plural(left_out, 'change')} more; the report of the run has all.*", ""] if left_out else lines
