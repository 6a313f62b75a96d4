from fixtures.quality import quality_report
from topicops.model.runs.results import FailingRow, QualityReport, QualityResult
from topicops.on_airflow.tasks.pipeline import quality_markdown


def report(**fields: object) -> QualityReport:
    given = {
        "rule": "Q12", "title": "Every ISR is complete", "severity": "warning", "success": True, "rows_checked": 8,
        "rows_failed": 0,
    }  # fmt: skip
    return quality_report("after", [QualityResult(**(given | fields))])


def failing_row(**row: object) -> FailingRow:
    return FailingRow(row=row)


def test_a_rule_that_holds_is_one_row_with_the_number_of_rows_it_looked_at() -> None:
    assert quality_markdown(report()).splitlines() == [
        "| rule | what must hold | severity | result | rows |",
        "| --- | --- | --- | --- | --- |",
        "| Q12 | Every ISR is complete | warning | passed | 8 |",
    ]


def test_a_rule_that_fails_names_its_rows_below_the_table() -> None:
    failed = report(
        success=False, rows_checked=40, rows_failed=30, examples=(failing_row(topic="orders", partition=3),),
        runbook="docs/reference/quality.md#q12",
    )  # fmt: skip
    assert quality_markdown(failed).splitlines()[2:] == [
        "| Q12 | Every ISR is complete | warning | **failed** | 30 of 40 |",
        "",
        "**Q12**: 1 of 30 rows",
        "",
        "- topic=orders, partition=3",
        "- What to do: docs/reference/quality.md#q12",
    ]


def test_trouble_that_was_there_before_the_changes_is_told_from_new_trouble() -> None:
    rows = (FailingRow(row={"topic": "new"}, was_so_before=False), FailingRow(row={"topic": "old"}, was_so_before=True))
    mixed = quality_markdown(report(success=False, rows_failed=2, rows_failed_before=1, examples=rows))
    assert (
        "**Q12**: the rows that break it; 1 of them new since the changes\n\n- topic=new\n- topic=old (so before)"
        in mixed
    )
    old = quality_markdown(report(success=False, rows_failed=1, rows_failed_before=1, examples=rows[1:]))
    assert "**Q12**: the rows that break it; it was so before the changes\n" in old


def test_nothing_that_a_row_holds_can_end_its_cell_or_start_markup() -> None:
    failed = report(success=False, rows_failed=1, title="a | b", examples=(failing_row(topic="<b>|\n- x"),))
    text = quality_markdown(failed)
    assert "<b>" not in text
    assert "| a &#124; b |" in text
    assert text.splitlines()[-1].startswith("- topic=&lt;b&gt;")
