"""The comments of a pull request, as GitHub's own library renders them: their text is what the plan says."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.builders import change_set, create_change, delete_change, environment
from fixtures.comments import OTHER, RUN_URL, after_merge, comment_contents, content_of, text_about, text_of
from fixtures.github_markdown import OURS, Rendered, rendered
from fixtures.rich_plan import rich_plan
from topicops.features.pull_requests.comment_markdown import COMMENT_LIMIT, marked, marker, plan_comment, result_note
from topicops.features.pull_requests.values import CommentContent, OtherPullRequest, ReviewState
from topicops.model.plans.changes import Change
from topicops.model.plans.plan import GatedChange, Loss, Plan, RackLossRow, RackLossTable
from topicops.model.runs.results import ChangeResult
from topicops.steps.planning.gate import gate
from topicops.steps.reporting.plan_wording import effect_lines, is_grave, risk_text

CHANGES = ("change", "what", "risk", "gate")
PICTURES = Path(__file__).parents[3] / "docs/pictures"
HOSTILE = (
    "**bold** | <b>x</b> <script>y</script> @team #1 `code` $(run) ~~gone~~ </details> <!-- topicops:record a b --> "
    "[link](https://evil.example) \u202e :smile: \\| &amp; ![i](x)"
)


def without_space(text: str) -> str:
    return re.sub(r"\s", "", text)


def plan_of(*changes: Change) -> Plan:
    return gate(change_set(changes), environment())


def cells_of(plan: Plan, gated: GatedChange) -> tuple[str, str]:
    """Return what the first and the third cell of a change say, and no more."""
    change = gated.change
    final = "" if change.reversible else "cannot be undone"
    return f"{change.action} {change.topic}{change.location}, {change.owner}", f"{risk_text(change)}{final}"


@pytest.mark.parametrize("name", comment_contents())
def test_nothing_of_a_comment_is_left_as_markup(name: str) -> None:
    seen = rendered(text_of(name))
    assert seen.markup_in_text() == []
    assert seen.found_by_github() == []
    assert set(seen.tags) <= OURS


def test_the_rendered_tables_say_what_the_plan_says() -> None:
    """Each change of the plan, cell by cell: what it is, where it is written, its values, its risk, the gate's word."""
    plan = rich_plan()
    seen = rendered(text_of("comment-held"))

    rows = [row for row in seen.table(*CHANGES) if row != list(CHANGES)]
    in_order = sorted(filter(is_grave, plan.changes), key=lambda g: -g.change.risk.rank)
    in_order += [gated for gated in plan.changes if not is_grave(gated)]
    assert len(rows) == len(plan.changes)
    for row, gated in zip(rows, in_order, strict=True):
        first, risk = cells_of(plan, gated)
        assert without_space(row[0]) == without_space(first)
        values = without_space("".join(effect_lines(gated.change, most_rows=12)))
        assert without_space(row[1]).startswith(values)
        assert without_space(row[2]).startswith(without_space(risk))
        assert without_space(row[3]).startswith(without_space("".join([gated.gate, *gated.reasons])))
    blocked = seen.table("topic", "why", "way out")
    assert [without_space(row[0]) for row in blocked] == [
        without_space(f"{b.topic}{b.location}, {b.owner}") for b in plan.change_set.blocked
    ]
    loads = seen.table("if all of it runs")
    assert [row[1] for row in loads] == [
        f"{load.before.replicas} → {load.after.replicas}" for load in plan.change_set.load.brokers
    ]
    assert all({len(row[3]), len(row[4])} == {20} for row in loads)
    digests = seen.table("change", "digest", "shown since")
    held = [gated for gated in plan.changes if gated.approvable]
    assert [row[1] for row in digests] == [gated.digest[:12] for gated in held]


def test_a_held_change_says_who_has_approved_it_who_can_or_why_nobody_has() -> None:
    plan = plan_of(delete_change("a"), delete_change("b"), delete_change("c"))
    states = (
        ReviewState(reviewers=("alice",), approved_by="alice"),
        ReviewState(reviewers=("alice", "acme/team")),
        ReviewState(reviewers=("alice",), why_not="no review counts here", can_be_reviewed=False),
    )
    digests = [gated.digest for gated in plan.changes]
    content = replace(content_of(plan), reviews=dict(zip(digests, states, strict=True)))

    gates = [row[3] for row in rendered(text_about(content)).table(*CHANGES)]

    assert gates[0].endswith("approved by alice")
    assert gates[1].endswith("waits for a review by alice or acme/team")
    assert gates[2].endswith("no review counts here")
    assert "waits" not in gates[2]


def test_what_was_pending_before_is_apart_and_only_its_safe_part_is_folded() -> None:
    plan = plan_of(create_change("mine"), create_change("old.safe"), delete_change("old.grave"))
    content = content_of(plan)
    content = replace(content, entry=replace(content.entry, own=("mine",)))

    text = text_about(content)

    mine, _, pending = text.partition("#### Pending before this pull request, look at these too")
    assert "old." not in mine
    visible, _, folded = pending.partition("<details>")
    assert ("old.grave" in visible, "old.safe" in visible) == (True, False)
    assert "old.safe" in folded
    assert "1 of this pull request, 2 pending before." in text


@pytest.mark.parametrize("name", comment_contents())
def test_each_form_has_its_picture_in_the_docs(name: str) -> None:
    page = (PICTURES.parent / "how-to/review-in-pull-requests.md").read_text(encoding="utf-8")
    assert (PICTURES / f"{name}.png").stat().st_size < 250_000
    assert f"../pictures/{name}.png" in page


# ---- the loss of a rack ----


def loss_of(rack: str, offline: int = 0, below: int = 0, *, offline_before: int | None = None) -> RackLossRow:
    after = Loss(offline=offline, below_min_isr=below, moved_leaders=9)
    return RackLossRow(
        rack=rack,
        brokers=2,
        before=replace(after, offline=offline if offline_before is None else offline_before),
        after=after,
    )


def loss_lines(table: RackLossTable | None, *changes: Change) -> list[str]:
    plan = plan_of(*changes)
    plan = replace(plan, change_set=replace(plan.change_set, rack_losses=table))
    text = text_about(content_of(plan))
    _, _, below = text.partition("#### If a rack is lost after the plan has run\n\n")
    return [line for line in below.partition("\n\n")[0].splitlines() if line]


def test_each_rack_has_its_line_and_says_what_the_changes_make_of_it() -> None:
    table = RackLossTable(racks=(loss_of("r1"), loss_of("r2", 1, 4, offline_before=0)))
    assert loss_lines(table, create_change("a")) == [
        "- with rack r1 gone: 0 offline, 0 below min ISR",
        "- with rack r2 gone: 1 offline, 4 below min ISR (now 0 and 4)",
    ]


@pytest.mark.parametrize(
    ("table", "line"),
    [
        pytest.param(
            RackLossTable(brokers_without_rack=(1, 2)),
            "- No broker names its rack, so what the loss of one costs is not known: set broker.rack.",
            id="no racks",
        ),
        pytest.param(
            RackLossTable(only_rack="r1"), "- All brokers are on one rack, r1: its loss leaves none.", id="one rack"
        ),
        pytest.param(
            RackLossTable(racks=(loss_of("r1"),), brokers_without_rack=(7,)),
            "- The broker without a rack, 7, counts as live in each line.",
            id="some without",
        ),
        pytest.param(
            RackLossTable(racks=(loss_of("r1"),), knows_broker_defaults=False),
            "- No broker reported min.insync.replicas: 1 is used for topics without their own.",
            id="no defaults",
        ),
    ],
)
def test_what_is_not_known_of_racks_is_said(table: RackLossTable, line: str) -> None:
    assert loss_lines(table, create_change("a"))[-1] == line


def test_of_many_racks_the_worst_are_named_and_the_others_counted() -> None:
    rows = tuple(loss_of(f"{'rack' * 100}-{n:03}", n, 1) for n in range(400))
    lines = loss_lines(RackLossTable(racks=rows), create_change("a"))
    assert len(lines) == 11
    assert lines[-1] == "- and 390 racks more, none of which costs more"
    assert sum(map(len, lines)) < 4_000


def test_where_nothing_changes_or_states_were_not_read_no_rack_is_named() -> None:
    assert loss_lines(RackLossTable(racks=(loss_of("r1"),))) == []
    assert loss_lines(None, create_change("a")) == []


# ---- hostile text, and too much of it ----


def hostile_plan(count: int, *, long: bool = True) -> Plan:
    filler = "x" * 200 if long else ""
    changes = [
        replace(delete_change(f"t{number:03d}.{filler}"), reason=HOSTILE * 3, owner=HOSTILE, notes=(HOSTILE,) * 3)
        for number in range(count)
    ]
    return plan_of(*changes)


def test_hostile_text_in_every_field_is_only_text() -> None:
    content = content_of(hostile_plan(3, long=False))
    content = replace(
        content,
        pull=replace(content.pull, remarks=(HOSTILE,)),
        others=(OtherPullRequest(mark="#1", url="javascript:alert(1)", author=HOSTILE, topics=(HOSTILE,)),),
    )
    entry = replace(content.entry, problem=f"{HOSTILE}\n```\n# heading\n{HOSTILE}")
    problem = replace(content, plan=None, entry=entry)

    for text in (text_about(content), text_about(problem)):
        seen = rendered(text)
        assert seen.found_by_github() == []
        assert set(seen.tags) <= OURS
        assert seen.links == []
        assert seen.texts("h1") == []
        assert not any("topicops:record" in comment for comment in seen.comments)


def test_three_hundred_grave_changes_with_long_hostile_text_fit_and_none_is_left_out() -> None:
    text = text_about(content_of(hostile_plan(300, long=False)))

    assert len(text) < 65_536
    assert [n for n in range(300) if f"t{n:03d}." not in text] == []


def test_what_does_not_fit_is_counted_and_the_record_stays_at_the_end() -> None:
    record = "<!-- topicops:record " + "a" * 17_000 + " " + "0" * 64 + " -->"
    plan = hostile_plan(500)

    text, without_row = plan_comment(replace(content_of(plan), record=record), plan)

    assert len(text) < 65_536
    assert text.rstrip().endswith(record)
    left_out = re.search(r"^\*(\d+) changes are left out here; the plan of the job has all\.\*$", text, re.MULTILINE)
    assert left_out is not None
    rows = rendered(text).table("change", "owner")
    assert int(left_out[1]) + len(rows) == 500
    assert {g.digest for g in plan.changes[len(rows) :]} == without_row, "a review cannot be about these"


# ---- markers, and what is edited later ----


@pytest.mark.parametrize("name", comment_contents())
def test_a_comment_is_found_by_its_first_line(name: str) -> None:
    kind = "note" if name in ("comment-problem", "comment-after-merge") else "plan"
    said = comment_contents()[name]
    environment = said.entry.environment if isinstance(said, CommentContent) else said.environment
    assert marked(text_of(name)) == (environment, kind)


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"text {marker('prod', 1)}\n",
        f"\n{marker('prod', 1)}\n",
        "<!-- topicops:comment environment=$(x) kind=plan -->\n",
        "<!-- topicops:comment environment=prod kind=other -->\n",
        marker("prod", "plan"),
    ],
)
def test_a_marker_anywhere_else_is_none(text: str) -> None:
    assert marked(text) is None


def test_another_pull_request_on_the_same_topics_is_named() -> None:
    seen = rendered(text_of("comment-pending"))

    assert seen.links == [(OTHER.url, OTHER.mark)]
    assert "#41 by erin: shop.orders; the later merge is planned anew." in seen.texts("li")


def test_after_the_merge_a_comment_says_what_became_of_each_change() -> None:
    seen = rendered(text_of("comment-after-merge"))

    assert seen.texts("h3")[0] == "prod: Applied and verified: 2 done."
    assert seen.links[0] == (RUN_URL, "The run in Airflow")
    rows = seen.table("change", "outcome", "why")
    assert [(row[0], row[1]) for row in rows] == [
        ("configure shop.clicks", "held"),
        ("expand shop.orders", "done"),
        ("create shop.refunds", "done"),
    ]


def test_of_too_many_results_those_that_do_not_fit_are_counted() -> None:
    run = after_merge()
    assert run.result is not None
    many = tuple(
        ChangeResult(topic=f"t{n:03d}", action="create", digest="ab" * 32, status="failed", message=HOSTILE)
        for n in range(500)
    )

    text = result_note(replace(run, result=replace(run.result, changes=many, left_out=7)))

    assert len(text) <= COMMENT_LIMIT
    shown = len(rendered(text).table("change", "outcome", "why"))
    assert f"*{507 - shown} changes more; the report of the run has all.*" in text


def test_the_environment_without_a_plan_shows_why_as_it_was_said() -> None:
    content = comment_contents()["comment-problem"]
    assert isinstance(content, CommentContent)
    seen: Rendered = rendered(text_of("comment-problem"))

    assert without_space(seen.texts("pre")[0]) == without_space(content.entry.problem)
    assert seen.texts("li") == [content.pull.remarks[0]]
