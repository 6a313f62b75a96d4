from topicops.model.results import QualityResult
from topicops.steps.render_quality import quality_markdown


def result(**fields: object) -> QualityResult:
    given = {
        "rule": "Q12", "title": "Every ISR is complete", "severity": "warning", "success": True, "rows_checked": 8,
        "rows_failed": 0,
    }  # fmt: skip
    return QualityResult(**(given | fields))


def test_a_rule_that_holds_is_one_row_with_the_number_of_rows_it_looked_at() -> None:
    assert quality_markdown([result()]).splitlines() == [
        "| rule | what must hold | severity | result | rows |",
        "| --- | --- | --- | --- | --- |",
        "| Q12 | Every ISR is complete | warning | passed | 8 |",
    ]


def test_a_rule_that_fails_names_its_rows_below_the_table() -> None:
    failed = result(success=False, rows_checked=40, rows_failed=30, examples=({"topic": "orders", "partition": 3},))
    assert quality_markdown([failed]).splitlines()[2:] == [
        "| Q12 | Every ISR is complete | warning | **failed** | 30 of 40 |",
        "",
        "**Q12**: 1 of 30 rows",
        "",
        "- topic=orders, partition=3",
    ]


def test_nothing_that_a_row_holds_can_end_its_cell_or_start_markup() -> None:
    failed = result(success=False, rows_failed=1, title="a | b", examples=({"topic": "<b>|\n- x"},))
    text = quality_markdown([failed])
    assert "<b>" not in text
    assert "| a &#124; b |" in text
    assert text.splitlines()[-1].startswith("- topic=&lt;b&gt;")
