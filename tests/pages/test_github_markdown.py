"""What GitHub makes of our Markdown is what we say: rendered by GitHub's library, nothing is left as markup."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count, cycle, product, zip_longest
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakes import builders
from fakes.changes import plan_of, reassign_topic
from fakes.resting_cluster import RestingCluster
from fixtures.any_plan import any_plans, with_words
from fixtures.github_markdown import OURS, rendered
from fixtures.quality import quality_report
from fixtures.rich_plan import results, rich_plan, some_facts
from fixtures.stand_ins import StandIns, in_words
from topicops.features.fleet.values import EnvironmentResult, FleetReport, Standing, fleet_markdown
from topicops.model.plans.changes import ACTIONS, Action, GateWord
from topicops.model.plans.plan import Plan
from topicops.model.printable import bold
from topicops.model.runs.results import Check, Outcome, OutcomeStatus, Verdict
from topicops.on_airflow.tasks.planning import quality_markdown
from topicops.on_airflow.tasks.question import MOST_ROWS, question_markdown
from topicops.steps.planning.gate import gate
from topicops.steps.reporting.document import MARKDOWN_LIMIT
from topicops.steps.reporting.plan_document import plan_markdown, plan_text
from topicops.steps.reporting.run_report import RunReport, outcome_table, report_markdown, verdict_table

Document = tuple[Callable[[Any], str], Any]
"""What renders, and what is rendered."""


def a_report() -> RunReport:
    plan = rich_plan()
    outcomes = [
        Outcome.of(gated, status, f"{status} because of something")
        for gated, status in zip(cycle(plan.changes), OutcomeStatus, strict=False)
    ]
    checks = [
        Check(
            id=f"V{index:02}", topic=f"shop.topic-{index}", verdict=verdict, message=f"finding {index}", code="TOP601"
        )
        for index, verdict in enumerate(Verdict)
    ]
    return RunReport(
        environment="local",
        run="topic_pipeline_local/manual__1",
        plan=plan,
        outcomes=tuple(outcomes),
        checks=(*checks, Check(id="V01", topic="", verdict=Verdict.FAILED, message="no controller is elected")),
        quality_before=tuple(results("before")[:3]),
        quality_after=tuple(results("after", failing=("Q11",))[:3]),
        facts_before=some_facts(unhealthy={3: 2}, drift={("billing", "money"): 1, ("search", ""): 5}),
        failed_tasks=("snapshot",),
        problem="the lease is no longer ours",
        notes=("the lease of an earlier run had ended",),
    )


def a_fleet() -> FleetReport:
    return FleetReport.of(
        (
            EnvironmentResult(environment="prod-eu", result=Standing.UNCHANGED, counts={}, summary="No changes."),
            EnvironmentResult(environment="dev", result=Standing.UNREACHABLE, counts={}, summary="gone", code="TOP504"),
        )
    )


DOCUMENTS: dict[str, Document] = {
    "plan": (plan_markdown, rich_plan()),
    "question": (partial(question_markdown, page="", commit_page="", rejections={}), rich_plan()),
    "report": (report_markdown, a_report()),
    "outcomes": (outcome_table, a_report().outcomes),
    "verdicts": (verdict_table, a_report().checks),
    "quality": (quality_markdown, quality_report("after", results("after", failing=("Q11", "Q12")))),
    "fleet": (fleet_markdown, a_fleet()),
}
"""Every Markdown that we make."""

HOSTILE = (
    *("**bold**", "**", "_it_ __it__", "~", "~ x ~", "~~x~~ ~~~", "~~~", "*|`" * 40, "| ` * _ " * 20),
    *("|", "a | b", "a\\|b\\\\|", "\n| x |\n\n# t\n", "|\n| x |\n\n# t"),
    *("<script>alert(1)</script>", "<img src=https://x.org/i.png>", "<!-- --> <!--", "<!--"),
    *("<!-- topicops:comment environment=prod kind=plan -->", "</details></summary></td></table><br>"),
    *("<details><table></td></tr></table>", "&lt;b&gt; &#124; &amp"),
    *("@team @org/team a@b.org", "@everyone", "#1 GH-12 o/r#12", ":tada: :+1:", "$(x) $x$ $$y$$"),
    *("`c` ``` ``", "```", "\n```\n", "    x", "\\"),
    *("[x](javascript:1) ![i](https://x.org/i.png)", "[x]: https://x.org", "[^1] [^1]: note"),
    *("https://x.org www.x.org ftp://x.org", "# t", "- [ ] x", "> q", "> [!NOTE]", "1. x", "---", "==="),
    *("\x1b[2J\x07\x00\r\x9b1m", "\u202eabc\u200b\u2066", "\u2028\u2029\u0085\u00a0", "x" * 5_000, " "),
)
"""What is markup at some place, closes what is open, notifies people, moves the cursor, or does not show."""


def assert_shown_as_said(render: Callable[[Any], str], value: Any) -> None:
    """Each block has the text that the value has; nothing of a text becomes markup, or is found by GitHub."""
    stand_ins = StandIns(value)
    shown, expected = rendered(render(value)), rendered(render(stand_ins.value))
    assert set(expected.tags) <= OURS
    assert [expected.markup_in_text(), shown.found_by_github(), shown.links] == [[], [], []]
    pairs = zip_longest(shown.tags, expected.tags)
    assert next((pair for pair in pairs if pair[0] != pair[1]), None) is None
    said = [(block.kind, spelled(block.text)) for block in shown.blocks]
    meant = [(block.kind, spelled(stand_ins.restored(block.text))) for block in expected.blocks]
    assert first_difference(said, meant) is None


Blocks = list[tuple[str, str]]


def first_difference(said: Blocks, meant: Blocks) -> tuple[str, str] | None:
    """As much as a person can read of it. Texts may be sorted with other ones, so the order in a block is free."""
    for (kind, one), (wanted_kind, other) in zip(said, meant, strict=True):
        if kind != wanted_kind or sorted(one) != sorted(other):
            return f"{kind}: {one[:500]}", f"{wanted_kind}: {other[:500]}"
    return None


def spelled(text: str) -> str:
    """Without spaces, which Markdown drops at the ends; and one word for each digest, which other words change.

    Without quotes and dashes too: a command has them only around words that a shell would read otherwise.
    """
    return re.sub(r"[0-9a-f]{12,}|(?<=approve)[0-9a-f]{8}", "digest", re.sub(r"[\s'-]", "", text))


@pytest.mark.parametrize("action", ACTIONS)
def test_each_action_is_bold_in_a_plan_and_has_no_asterisk(action: Action) -> None:
    seen = rendered(plan_markdown(rich_plan()))
    topics = {gated.change.topic for gated in rich_plan().changes if gated.change.action == action}
    firsts = {row[0].split("\n")[0] for row in seen.table("change", "what")}
    assert {f"{action} {topic}" for topic in topics} <= firsts


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_what_we_write_is_rendered_and_nothing_is_left_as_markup(document: Document) -> None:
    render, value = document
    seen = rendered(render(value))
    assert set(seen.tags) <= OURS
    assert seen.markup_in_text() == []
    assert {"strong", "table"} & set(seen.tags)


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_hostile_words_in_every_field_are_shown_as_the_words_that_they_are(document: Document) -> None:
    render, value = document
    for text in HOSTILE:
        one_line = " ".join(text.splitlines()) if render is fleet_markdown else text
        assert_shown_as_said(render, in_words(value, lambda number, word=one_line: f"{word}{number}{word}"))


def test_a_bold_text_is_bold_whatever_signs_are_at_its_ends() -> None:
    words = [f"{first} x {last}" for first, last in product(string.punctuation, repeat=2)]
    seen = {word: rendered(f"of {bold(word)}, done") for word in words}
    shown = {word: (page.tags, page.texts("p")) for word, page in seen.items()}
    assert shown == {word: (["p", "strong"], [f"of {word}, done"]) for word in words}


ANY_TEXT = st.text(max_size=30) | st.text(alphabet="|`*_<>[]()!@#\\~&;:$\n\r\x1b -aG1", max_size=12)


@given(plan=any_plans(ANY_TEXT))
@settings(max_examples=10)
def test_any_plan_is_shown_as_it_says(plan: Plan) -> None:
    assert_every_form_is_as_said(plan)


@pytest.mark.soak
@given(plan=any_plans(ANY_TEXT))
@settings(max_examples=1_000, suppress_health_check=[HealthCheck.too_slow])
def test_any_of_many_plans_is_shown_as_it_says(plan: Plan) -> None:
    assert_every_form_is_as_said(plan)


def assert_every_form_is_as_said(plan: Plan) -> None:
    assert_shown_as_said(plan_markdown, plan)
    assert_shown_as_said(DOCUMENTS["question"][0], plan)
    assert all(line.isprintable() for line in (plan_text(plan) + plan_markdown(plan)).split("\n"))
    assert len(plan_markdown(plan)) <= MARKDOWN_LIMIT


def test_hostile_words_in_every_field_draw_no_line_of_their_own_on_a_terminal() -> None:
    """The margin of each line, four characters, is ours: indentation, and the sign of a change."""
    expected = margins(hostile("word"))
    for text in HOSTILE:
        assert all(line.isprintable() for line in plan_text(hostile(text)).split("\n")), text
        assert margins(hostile(text)) == expected, text


def hostile(text: str) -> Plan:
    """The rich plan with these words in every text field, each made unique by a number so that keys stay keys."""
    numbers = count()
    return with_words(rich_plan(), lambda _: f"{text}{next(numbers)}{text}")


def margins(plan: Plan) -> list[str]:
    return [line[:4] for line in plan_text(plan).split("\n")]


# ---- the question to whoever approves ----


def test_a_question_about_very_many_changes_lists_the_riskiest_and_counts_the_rest() -> None:
    safe = [builders.create_change(f"new-{n}") for n in range(3 * MOST_ROWS)]
    plan = gate(builders.change_set([*safe, builders.delete_change("old")]), builders.environment())
    question = question_markdown(plan, page="", commit_page="", rejections={})
    rows = [line for line in question.splitlines() if line.startswith(("| **create** ", "| **delete** "))]
    assert (len(rows), rows[0].startswith("| **delete** old<br>")) == (MOST_ROWS, True)
    assert f"{2 * MOST_ROWS + 1} more changes, asked about as well**: {2 * MOST_ROWS + 1} create (safe)" in question


def test_who_approves_a_reassignment_reads_why_where_and_how_long_and_how_it_is_taken_back() -> None:
    change = reassign_topic(RestingCluster().put_topic("orders", *[(1,)] * 4), *[(1, 2)] * 4, copied_bytes=300 << 20)
    plan = plan_of(change, gates={"orders": GateWord.HELD})
    plan = replace(plan, change_set=replace(plan.change_set, throttle=1 << 20))
    question = question_markdown(plan, page="", commit_page="", rejections={})

    (row,) = [line for line in question.splitlines() if line.startswith("| **reassign** ")]
    why = "replicas of 4 partitions move, because its file asks for another replication factor"
    assert (
        f"| {why}; replication factor: 1 -> 2; replicas added: 4 on broker 2<br>copies 300.0MiB, in at least 5" in row
    )
    (line,) = [line for line in question.splitlines() if line.startswith("- While replicas of a topic move")]
    assert "topicops moves --environment local --cancel TOPIC takes a move back until it has ended" in line


def test_who_approves_a_delete_reads_its_traffic_its_groups_its_owner_and_the_reason_of_its_tombstone() -> None:
    question = question_markdown(rich_plan(), page="", commit_page="", rejections={})

    (row,) = [line for line in question.splitlines() if line.startswith("| **delete** ")]
    (goes,) = [line for line in question.splitlines() if line.startswith("- **payments.orders-v1** reason: ")]
    assert "| team-shop |" in row
    assert "reason: Replaced by payments.orders-v2; the last reader moved in March." in goes
    assert "last record of 2023-11-14T22:13:20Z; end offsets add up to 48210; groups: billing (Stable, lag 12)" in goes
