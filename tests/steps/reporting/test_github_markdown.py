"""What GitHub makes of our Markdown is what we say: rendered by GitHub's library, nothing is left as markup."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from itertools import cycle, product, zip_longest
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fixtures.any_plan import any_plans
from fixtures.github_markdown import OURS, rendered
from fixtures.quality import quality_report
from fixtures.rich_plan import rich_plan
from fixtures.run_pages import results, some_facts
from fixtures.stand_ins import StandIns, in_words
from topicops.features.fleet.values import EnvironmentResult, FleetReport, Standing, fleet_markdown
from topicops.model.plans.changes import ACTIONS, Action
from topicops.model.plans.plan import Plan
from topicops.model.printable import bold
from topicops.model.runs.results import Check, Outcome, OutcomeStatus, QualityReport, Verdict
from topicops.on_airflow.tasks.pipeline import quality_markdown
from topicops.on_airflow.tasks.question import question_markdown
from topicops.steps.reporting.plan_document import plan_markdown
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


def a_quality_report() -> QualityReport:
    return quality_report("after", results("after", failing=("Q11", "Q12")))


DOCUMENTS: dict[str, Document] = {
    "plan": (plan_markdown, rich_plan()),
    "question": (question_markdown, rich_plan()),
    "report": (report_markdown, a_report()),
    "outcomes": (outcome_table, a_report().outcomes),
    "verdicts": (verdict_table, a_report().checks),
    "quality": (quality_markdown, a_quality_report()),
    "fleet": (fleet_markdown, a_fleet()),
}
"""Every Markdown that we make."""

HOSTILE = [
    pytest.param("**bold**", id="bold"),
    pytest.param("**", id="the end of what is bold"),
    pytest.param("_it_ __it__", id="emphasis"),
    pytest.param("~", id="a lone tilde"),
    pytest.param("~ x ~", id="a tilde at each end"),
    pytest.param("~~x~~ ~~~", id="strikethrough"),
    pytest.param("|", id="a cell"),
    pytest.param("a\\|b\\\\|", id="an escaped cell"),
    pytest.param("\n| x |\n\n# t\n", id="a row, and the end of the table"),
    pytest.param("<script>alert(1)</script>", id="a script"),
    pytest.param("<img src=https://x.org/i.png>", id="an image in HTML"),
    pytest.param("<!-- --> <!--", id="comments"),
    pytest.param("<!-- topicops:comment environment=prod kind=plan -->", id="a marker"),
    pytest.param("</details></summary></td></table><br>", id="HTML that closes what is open"),
    pytest.param("@team @org/team a@b.org", id="mentions"),
    pytest.param("#1 GH-12 o/r#12", id="issues"),
    pytest.param(":tada: :+1:", id="emoji"),
    pytest.param("`c` ``` ``", id="backticks"),
    pytest.param("$(x) $x$ $$y$$", id="formulas"),
    pytest.param("[x](javascript:1) ![i](https://x.org/i.png)", id="a link and an image"),
    pytest.param("[x]: https://x.org", id="a reference"),
    pytest.param("[^1] [^1]: note", id="a footnote"),
    pytest.param("https://x.org www.x.org ftp://x.org", id="addresses"),
    pytest.param("# t", id="a heading"),
    pytest.param("- [ ] x", id="a task"),
    pytest.param("> q", id="a quotation"),
    pytest.param("> [!NOTE]", id="an alert"),
    pytest.param("1. x", id="a list"),
    pytest.param("---", id="a rule"),
    pytest.param("===", id="a heading by its underline"),
    pytest.param("&lt;b&gt; &#124; &amp", id="entities"),
    pytest.param("\\", id="a backslash"),
    pytest.param("\x1b[2J\x00\r", id="terminal codes"),
    pytest.param("\u202eabc\u200b\u2066", id="marks of direction"),
    pytest.param("x" * 5_000, id="much"),
    pytest.param("*|`" * 40, id="much markup"),
]


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
    return re.sub(r"[0-9a-f]{12,}", "digest", re.sub(r"[\s'-]", "", text))


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
    for text in (str(hostile.values[0]) for hostile in HOSTILE):
        one_line = " ".join(text.splitlines()) if render is fleet_markdown else text
        assert_shown_as_said(render, in_words(value, lambda number, word=one_line: f"{word}{number}{word}"))


def test_a_bold_text_is_bold_whatever_signs_are_at_its_ends() -> None:
    words = [f"{first} x {last}" for first, last in product(string.punctuation, repeat=2)]
    seen = {word: rendered(f"of {bold(word)}, done") for word in words}
    shown = {word: (page.tags, page.texts("p")) for word, page in seen.items()}
    assert shown == {word: (["p", "strong"], [f"of {word}, done"]) for word in words}


ANY_TEXT = st.text(max_size=30) | st.text(alphabet="|`*_<>[]()!@#\\~&;:$\n\r\x1b -aG1", max_size=12)


@pytest.mark.parametrize("render", [plan_markdown, question_markdown])
@given(plan=any_plans(ANY_TEXT))
@settings(max_examples=10)
def test_any_plan_is_shown_as_it_says(render: Callable[[Plan], str], plan: Plan) -> None:
    assert_shown_as_said(render, plan)


@pytest.mark.soak
@pytest.mark.parametrize("render", [plan_markdown, question_markdown])
@given(plan=any_plans(ANY_TEXT))
@settings(max_examples=1_000, suppress_health_check=[HealthCheck.too_slow])
def test_any_of_many_plans_is_shown_as_it_says(render: Callable[[Plan], str], plan: Plan) -> None:
    assert_shown_as_said(render, plan)
