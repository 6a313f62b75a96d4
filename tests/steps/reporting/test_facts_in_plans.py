"""Whose topics differ, in the plan of a pull request, in the terminal, in a report and on the Plan tab."""

from __future__ import annotations

import pytest

from fakes.builders import change_set, create_change, environment
from fixtures.rich_plan import HOSTILE, some_facts
from topicops.model.runs.facts import Facts
from topicops.on_airflow.names import RunOf
from topicops.on_airflow.pages.plan_page import plan_page
from topicops.on_airflow.pages.reading import PlanModel
from topicops.steps.planning.gate import gate
from topicops.steps.reporting.document import MARKDOWN_LIMIT
from topicops.steps.reporting.plan_document import plan_markdown, plan_text
from topicops.steps.reporting.run_report import RunReport, report_json, report_markdown, report_text

PLAN = gate(change_set([create_change("orders")]), environment())
TWO = some_facts(drift={("billing", "billing"): 1, ("search", ""): 5})
ONE = some_facts(drift={("billing", "billing"): 1})


def as_page(facts: Facts | None) -> str:
    return plan_page(PlanModel(run=RunOf(dag_id="topic_pipeline_local", run_id="r"), plan=PLAN, facts=facts))


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(lambda facts: plan_text(PLAN, facts, verbose=True), id="text"),
        pytest.param(lambda facts: plan_markdown(PLAN, facts), id="markdown"),
        pytest.param(as_page, id="page"),
    ],
)
def test_several_owners_are_named_the_one_with_most_first_and_a_single_one_is_not(shown) -> None:  # type: ignore[no-untyped-def]
    text = shown(TWO)

    assert "Topics that differ from their files, by owner" in text
    assert text.index("search") < text.index("billing")
    assert shown(ONE) == shown(None)


def test_a_plan_of_many_owners_still_fits_a_comment() -> None:
    facts = some_facts(drift={(f"{HOSTILE}{n}", "d"): n + 1 for n in range(2000)})

    text = plan_markdown(PLAN, facts)

    assert len(text) <= MARKDOWN_LIMIT
    assert "owners are left out here" in text
    assert "<script>" not in text


def test_a_report_says_who_and_where_and_nothing_where_all_is_well() -> None:
    report = RunReport(environment="local", plan=PLAN, facts_before=TWO, facts_after=some_facts(unhealthy={3: 2}))

    text = report_text(report)

    assert "Topics that differed, by owner:\n  search: 5 missing\n  billing (billing): 1 missing\n" in text
    assert "broker 3, rack b: 2 partitions with a replica outside the ISR (Q12)" in text
    assert "| broker 3, rack b | 4 | 4 | 2 | 2 |" in report_markdown(report)
    assert report_json(report).owners != report_json(RunReport(environment="local")).owners
    calm = report_text(RunReport(environment="local", facts_before=some_facts()))
    assert "Unhealthy" not in calm
    assert "owner" not in calm
