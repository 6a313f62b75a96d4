"""The table of releases on the page is what the tests of releases saw, and no row failed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fixtures.kafka_releases import ALL, GUARDED, Brokers
from fixtures.release_table import DATA, PAGE, ROWS, table, table_on_page

FOLDER = Path(__file__).parents[1] / "versions"
SEEN = json.loads(DATA.read_text(encoding="utf-8"))


def names_in(file: str) -> list[str]:
    text = (FOLDER / file).read_text(encoding="utf-8")
    return re.findall(r"^def (test_\w+)\(", text, re.MULTILINE)


ROWS_OF_IDENTITIES = {*names_in("test_identities.py")}


def test_the_table_on_the_page_is_made_from_what_the_tests_saw() -> None:
    assert table_on_page() == table(SEEN), f"{PAGE.name} is older than {DATA.name}: run make releases-table"


def test_each_row_of_the_table_is_a_test() -> None:
    assert [*names_in("test_releases.py"), *names_in("test_identities.py")] == [*ROWS]


@pytest.mark.parametrize("brokers", ALL, ids=lambda brokers: str(brokers.name))
def test_each_release_was_tried_with_each_row_and_none_failed(brokers: Brokers) -> None:
    cells = SEEN[brokers.name]["cells"]
    assert ROWS.keys() - cells.keys() <= ROWS_OF_IDENTITIES
    assert [row for row, cell in cells.items() if cell["outcome"] == "failed"] == []


def test_rights_were_tried_on_three_releases() -> None:
    assert [name for name, seen in SEEN.items() if seen["cells"].keys() >= ROWS_OF_IDENTITIES] == [*GUARDED]
