"""The question that an approver reads: the form, and one table row a change, the riskiest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from airflow.sdk import Param

from topicops.model.plans.changes import Change, DeleteTopic, ReassignTopic
from topicops.model.plans.plan import GatedChange, Plan
from topicops.model.printable import bold, markdown, plural, printable
from topicops.model.runs.memories import Rejection
from topicops.on_airflow.pages.plan_rows import differences
from topicops.steps.planning.approvals import AS_THE_BUTTON, COMMENT, REJECT_FIELD, REJECTED, title_of
from topicops.steps.reporting.document import Cell, Line, Said, Section, markdown_lines, markdown_table
from topicops.steps.reporting.plan_wording import (
    copy_line,
    move_lines,
    some,
    traffic_text,
    while_moving_line,
    why_final,
)

MOST_ROWS = 200
"""Most changes that the question lists; the Plan page has all of them."""
_DIGITS = 8
"""Number of digits of a digest, next to the topic: its own column makes the table too wide for Airflow's panel."""


def question_markdown(plan: Plan, *, page: str, commit_page: str, rejections: Mapping[str, Rejection]) -> str:
    """Write as Markdown what is asked, for which cluster, what each change does, and why it is held.

    Args:
        page: Address of the plan's page.
        commit_page: Address of the commit in the forge; empty: not known.
        rejections: Of changes that somebody rejected before, by digest.
    """
    target, commit = plan.target, plan.change_set.source.commit
    changes = sorted(plan.changes, key=lambda gated: -gated.change.risk.rank)
    rows = changes[:MOST_ROWS]
    shown_commit = markdown(commit or "not known")
    rejected = [f"{title_of(g.change)}: {rejections[g.digest]}" for g in rows if g.digest in rejections]
    table = Section(head=("change", "what", "risk", "owner", "written in"), rows=[_row(plan, gated) for gated in rows])
    sections = (
        Section(title="Rejected before; the form marks them", rows=rejected),
        Section(title="What goes", rows=list(_deletes(plan, rows))),
        Section(title="Why an approval is needed", rows=list(_reasons(rows))),
        Section(title="Know also", rows=list(_notes(plan, rows))),
    )
    lines = [
        f"**{plural(len(changes), 'change')}** of {bold(target.environment)}, cluster {markdown(target.cluster_id)}, "
        f"as of commit {_link(shown_commit, commit_page)}. {_link('Open the plan', page)}",
        "",
        "**Approve** sends these changes, each only if its topic has not moved since and the files still ask for it"
        + (", **except those that the form below marks as rejected**. " if len(changes) > 1 else ". ")
        + "**Reject** sends nothing.",
        "",
        markdown_table(table),
        "",
        *_unlisted(changes[MOST_ROWS:]),
        *(line for section in sections if section.rows for line in markdown_lines(section)),
    ]
    return "\n".join(lines) + "\n"


def form_params(plan: Plan, fields: Mapping[str, str], rejections: Mapping[str, Rejection]) -> dict[str, Param]:
    """Return the fields beside the buttons, as Airflow draws them: one for each change or for all, and the comment."""
    by_title = {title_of(gated.change): gated for gated in plan.changes}
    params = {name: _field(name, value, by_title.get(name), rejections) for name, value in fields.items()}
    comment = Param(
        None,
        description="Kept with the answer, in the report and in the audit log.",
        type=["null", "string"],
        format="multiline",
        title="Comment",
    )
    return {**params, COMMENT: comment}


def _field(name: str, value: str, gated: GatedChange | None, rejections: Mapping[str, Rejection]) -> Param:
    if gated is None:
        what = "Topics that Approve leaves out: names or patterns such as legacy.*, with commas. "
        unknown = "If one of them is no topic of the question, nothing is sent."
        return Param(value or None, description=what + unknown, type=["null", "string"], title=f"{REJECT_FIELD} these")
    said = f". Was {rejections[gated.digest]}" if gated.digest in rejections else ""
    return Param(
        value,
        description=printable(f"{_what(gated.change)}; {gated.change.risk.value}{said}"),
        type="string",
        enum=[AS_THE_BUTTON, REJECTED],
        title=name,
    )


def _link(text: str, address: str) -> str:
    return f"[{text}]({address})" if address else text


def _row(plan: Plan, gated: GatedChange) -> tuple[Cell, ...]:
    change = gated.change
    undo = [] if change.reversible else ["cannot be undone"]
    name = (Said(change.topic, bold=change.action), gated.digest[:_DIGITS])
    risk = Said(", ".join(filter(None, (*undo, " ".join(change.codes)))), bold=change.risk)
    what = tuple(filter(None, (_what(change), copy_line(plan, [change]))))
    return name, what, risk, change.owner or "not named", str(change.location)


def _what(change: Change) -> str:
    if isinstance(change, DeleteTopic):
        return f"all {plural(change.partitions, 'partition')}, with every record"
    if isinstance(change, ReassignTopic):
        return "; ".join(move_lines(change))
    return ", ".join(map(str, differences(change)))


def _unlisted(changes: Sequence[GatedChange]) -> Iterator[str]:
    """Yield how many changes of each kind and risk are asked about as well, and where they are listed."""
    found = Counter((str(gated.change.action), gated.change.risk.value) for gated in changes)
    counts = ", ".join(f"{count} {action} ({risk})" for (action, risk), count in found.items())
    if counts:
        yield f"**{plural(len(changes), 'more change')}, asked about as well**: {counts}. The plan lists them."
        yield ""


def _deletes(plan: Plan, changes: Sequence[GatedChange]) -> Iterator[Line]:
    """Yield what is known of each topic that goes: why, and who still uses it."""
    for change in (gated.change for gated in changes):
        if isinstance(change, DeleteTopic):
            traffic = traffic_text(plan.change_set.activity.get(change.topic))
            said = f"reason: {change.reason} {traffic[:1].upper()}{traffic[1:]}"
            yield Said(said, bold=change.topic, is_whole=True)


def _reasons(changes: Sequence[GatedChange]) -> Iterator[Line]:
    """Yield each reason once, with the changes that it holds."""
    held: dict[str, list[str]] = {}
    for gated in changes:
        for reason in gated.reasons:
            held.setdefault(reason, []).append(title_of(gated.change))
    for reason, titles in held.items():
        who = "all of them" if len(titles) == len(changes) > 1 else some(titles)
        yield Said(f"{who}: {reason}", is_whole=True)


def _notes(plan: Plan, changes: Sequence[GatedChange]) -> Iterator[Line]:
    """Yield what only a reviewer can judge: why a change cannot be undone, and the notes of the plan; each once."""
    finals: dict[str, list[str]] = {}
    for gated in changes:
        if why := why_final(gated.change):
            finals.setdefault(why, []).append(title_of(gated.change))
    yield from (Said(f"{some(titles)} cannot be undone: {why}", is_whole=True) for why, titles in finals.items())
    if line := while_moving_line(plan, [gated.change for gated in changes]):
        yield Said(line[:1].upper() + line[1:], is_whole=True)
    yield from (f"{gated.change.topic}: {note}" for gated in changes for note in gated.change.notes)


def listed_titles(plan: Plan, digests: Collection[str]) -> str:
    """Return ``delete legacy.orders-v1, expand shop.carts``: the changes of these digests, as many as fit on a line."""
    return some(title_of(gated.change) for gated in plan.changes if gated.digest in digests)
