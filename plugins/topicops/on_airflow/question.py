"""The question that an approver reads: one table row a change, the riskiest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from topicops.model.plans.changes import DeleteTopic, before_and_after
from topicops.model.plans.plan import GatedChange, Plan
from topicops.model.printable import bold, markdown, plural
from topicops.steps.reporting.plans.plan_wording import traffic_text

MOST_ROWS = 200
"""How many changes the question lists; the Plan tab has all of them."""


def question_markdown(plan: Plan) -> str:
    """Markdown: what is asked, for which cluster, and the risk table with the digests that an approval covers."""
    target = plan.target
    changes = sorted(plan.changes, key=lambda gated: -gated.change.risk.rank)
    rows = changes[:MOST_ROWS]
    lines = [
        f"**{len(changes)} change(s)** of {bold(target.environment)}, cluster {markdown(target.cluster_id)}, "
        f"as of commit {markdown(plan.change_set.source.commit or 'not known')}.",
        "Approve sends exactly these, each only if its topic has not moved since and the files still ask for it. "
        "Reject sends nothing.",
        "",
        "| change | topic | risk | what | why held | written in | digest |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(_row(plan, gated) for gated in rows),
        "",
        *_unlisted(changes[MOST_ROWS:]),
        *_notes(rows),
    ]
    return "\n".join(lines) + "\n"


def _row(plan: Plan, gated: GatedChange) -> str:
    change = gated.change
    undo = "" if change.reversible else ", cannot be undone"
    cells = [
        change.action,
        markdown(change.topic),
        f"**{change.risk.value}**{undo} {markdown(' '.join(change.codes))}".rstrip(),
        markdown(_what(plan, gated)),
        markdown("; ".join(gated.reasons)),
        markdown(str(change.location)),
        markdown(gated.digest[:12]),
    ]
    return f"| {' | '.join(cells)} |"


def _what(plan: Plan, gated: GatedChange) -> str:
    """Old and new value of what changes, without the assignment; of a delete, what is known of its topic."""
    change = gated.change
    before, after = before_and_after(change)
    if isinstance(change, DeleteTopic):
        traffic = traffic_text(plan.change_set.activity.get(change.topic))
        owner = change.owner or "not named"
        return f"delete {plural(change.partitions, 'partition')}; owner: {owner}; reason: {change.reason}; {traffic}"
    old, new = _flat(before or {}), _flat(after or {})
    return ", ".join(f"{name} {old.get(name, 'none')} to {value}" for name, value in sorted(new.items()))


def _flat(side: dict[str, object]) -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in side.items():
        if isinstance(value, dict) and name == "configs":
            flat |= {key: "default" if text is None else text for key, text in value.items()}
        elif name != "assignment":
            flat[name] = value
    return flat


def _unlisted(changes: Sequence[GatedChange]) -> Iterator[str]:
    """How many changes of each kind and risk are asked about as well, and where they are listed."""
    found = Counter((str(gated.change.action), gated.change.risk.value) for gated in changes)
    counts = ", ".join(f"{count} {action} ({risk})" for (action, risk), count in found.items())
    if counts:
        yield f"**{plural(len(changes), 'more change')}, asked about as well**: {counts}. The Plan tab lists them."
        yield ""


def _notes(changes: Sequence[GatedChange]) -> Iterator[str]:
    for gated in changes:
        for note in gated.change.notes:
            yield f"- {markdown(gated.change.topic)}: {markdown(note)}"
