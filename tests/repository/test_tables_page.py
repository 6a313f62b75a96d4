"""The page of the artifacts names each column of each table with its type, and no other; its examples run.

The table of releases on its page is what the tests of releases saw, and no row failed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fakes.builders import live_topic
from fixtures.kafka_releases import ALL, GUARDED, Brokers
from fixtures.release_table import DATA, PAGE, ROWS, table, table_on_page
from topicops.edges.tables.schemas import FORMAT_KEY, FORMAT_VERSION, SCHEMAS
from topicops.edges.tables.table_folder import TableFolder
from topicops.edges.tables.topics import LiveTables
from topicops.model.release import USUAL

ARTIFACTS_PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "artifacts.md").read_text(encoding="utf-8")
WORDS: Mapping[pa.DataType, str] = {
    pa.string(): "string",
    pa.int32(): "int32",
    pa.int64(): "int64",
    pa.bool_(): "bool",
    pa.list_(pa.int32()): "list of int32",
    pa.list_(pa.string()): "list of strings",
    pa.map_(pa.string(), pa.string()): "map of strings",
    pa.map_(pa.string(), pa.int64()): "map of string to int64",
}


def section(title: str) -> str:
    """The text below a heading of the third level."""
    return re.split(r"^##+ ", ARTIFACTS_PAGE.split(f"\n### {title}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def columns(text: str) -> Iterator[tuple[str, str]]:
    """Name and type of each column in the rows of a table; a row may name several, with one type or one each."""
    for names, types in re.findall(r"^\| (`[a-z_`, ]+) \| ([^|]+?) \|", text, flags=re.MULTILINE):
        found, words = re.findall(r"`([a-z_]+)`", names), types.split(", ")
        yield from zip(found, words if len(words) > 1 else words * len(found), strict=True)


def documented(table: str) -> dict[str, str]:
    titles = {"brokers": "brokers and cluster", "cluster": "brokers and cluster"}
    titles |= {"rule_counts": "rule_counts and bad_rows", "bad_rows": "rule_counts and bad_rows"}
    text = section(titles.get(table, table))
    if table in titles:
        text = re.split(r"^\| column of ", text.split(f"column of `{table}`", 1)[1], flags=re.MULTILINE)[0]
    return dict(columns(text))


@pytest.mark.parametrize("table", SCHEMAS)
def test_each_column_is_on_the_page_with_its_type_and_no_other(table: str) -> None:
    types = {f.name: "struct" if pa.types.is_struct(f.type) else WORDS[f.type] for f in SCHEMAS[table]}
    assert documented(table) == types


def test_each_table_is_in_the_list_and_the_format_is_the_written_one() -> None:
    listed = ARTIFACTS_PAGE.split("\n## The tables\n", 1)[1].split("\n### ", 1)[0]
    assert set(re.findall(r"^\| \[`([a-z_]+)`\]", listed, flags=re.MULTILINE)) == set(SCHEMAS)
    assert f"`{FORMAT_VERSION}`, in the footer under `{FORMAT_KEY}`" in listed


def test_the_example_with_pyarrow_runs(tmp_path: Path) -> None:
    with LiveTables(TableFolder.at(tmp_path / "tables"), USUAL) as sink:
        sink.begin()
        sink.take([live_topic("payments.orders"), live_topic("other")])
        sink.finish()
    code = re.search(r"```python\n(import pyarrow.*?)```", ARTIFACTS_PAGE, flags=re.DOTALL)
    assert code is not None
    names: dict[str, object] = {}

    exec(re.sub(r'run = ".*"', f"run = {str(tmp_path)!r}", code[1]), names)

    partitions = names["partitions"]
    assert isinstance(partitions, pa.Table)
    assert set(partitions["topic"].to_pylist()) == {"payments.orders"}
    assert names["version"] == FORMAT_VERSION.encode()
    assert pq.read_schema(tmp_path / "tables" / "topics.parquet").names == SCHEMAS["topics"].names


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
