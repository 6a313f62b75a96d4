"""The documentation says what the code does: commands, fields, checks, configs and links are compared with it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from fixtures.made_parts import commands, fields, made, pages
from fixtures.schemas.json_outputs import OUTPUTS
from topicops.features.ask.doctor.rules import RULES as DOCTOR_RULES
from topicops.features.ask.why.causes import RULES as WHY_RULES
from topicops.features.quality.rules import RULES as QUALITY_RULES
from topicops.model.codes import Code
from topicops.steps.planning.risk import RISKS, AnyChange, NeverPlanned, Ordered, Switch
from topicops.steps.verifying.checks import ABSENCE_RULES, RULES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
INSIDE = DOCS / "inside" / "README.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted(DOCS.rglob("*.md"))]

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def anchors_of(page: Path) -> set[str]:
    """As GitHub makes them from headings."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_a_page_that_no_menu_has_stops_the_site(tmp_path: Path) -> None:
    """As each warning of the strict build does: with ``--quiet`` it ended well whatever it had found."""
    for name in ("Makefile", "mkdocs.yml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "docs").mkdir()
    for page in re.findall(r"\w[\w./-]*\.md", text_of(ROOT / "mkdocs.yml")):
        (tmp_path / "docs" / page).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "docs" / page).write_text("# A page\n", encoding="utf-8")
    built = site(tmp_path)
    assert (built.returncode, built.stdout) == (0, ""), built.stderr
    (tmp_path / "docs/lost.md").write_text("# A page\n", encoding="utf-8")
    assert "lost.md" in (stopped := site(tmp_path)).stderr
    assert stopped.returncode != 0


def site(folder: Path) -> subprocess.CompletedProcess[str]:
    command = ["make", "--silent", "--old-file=setup", "site", f"BIN={Path(sys.executable).parent}"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


def test_the_menu_has_every_page_but_those_that_the_page_for_contributors_leads_to() -> None:
    named = re.findall(r"^ +- (?:[\w ]+: )?([\w./-]+\.md)$", text_of(ROOT / "mkdocs.yml"), re.MULTILINE)
    inside = {page for page in DOCS.rglob("*.md") if page.parent.name in {"inside", "decisions"}} | {DOCS / "code.md"}
    inside -= {INSIDE}
    assert sorted(named) == sorted(str(page.relative_to(DOCS)) for page in {*DOCS.rglob("*.md")} - inside)
    assert inside <= linked_from(INSIDE)


def broken_links(page: Path) -> list[str]:
    broken = []
    for link in LINK.findall(FENCE.sub("", text_of(page))):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def linked_from(page: Path) -> set[Path]:
    return {(page.parent / link.partition("#")[0]).resolve() for link in LINK.findall(text_of(page))}


def test_the_index_leads_to_every_page() -> None:
    index = DOCS / "README.md"
    assert {*DOCS.rglob("*.md")} - linked_from(index) - linked_from(INSIDE) == {index}


def test_the_tests_that_the_page_of_what_is_tested_names_are_there() -> None:
    named = re.findall(r"`(tests/[a-z0-9_/.]+)`", text_of(REFERENCE / "what-works.md"))
    assert len(named) > 5
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_each_command_has_its_heading_and_its_options_are_made_from_the_program() -> None:
    page = text_of(REFERENCE / "commands.md")
    assert set(re.findall(r"^## `(topicops [a-z ]+?)(?: \[?[A-Z|]+\]?(?:\.\.\.)?)?`$", page, re.MULTILINE)) == {
        *commands()
    }
    made_options = {f"topicops {words}" for words in re.findall("<!-- made: options (.+) -->", page)}
    assert made_options == {name for name, options in options_of_commands().items() if options}


def options_of_commands() -> Mapping[str, set[str]]:
    found = {name: {opt for each in command.params for opt in each.opts} for name, command in commands().items()}
    return {name: {opt for opt in opts if opt.startswith("--")} - {"--help"} for name, opts in found.items()}


def documented_outputs() -> Mapping[str, tuple[set[str], set[str]]]:
    """The commands that print a format and the files that hold it, by its schema."""
    section = text_of(REFERENCE / "artifacts.md").partition("## JSON Schemas\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z-]+)` \|([^|]*)\|([^|]*)\|$", section, re.MULTILINE)
    return {kind: (set(re.findall("`(.+?)`", by)), set(re.findall("`(.+?)`", held))) for kind, by, held in rows}


def test_every_json_output_is_documented_with_the_commands_that_print_it_and_its_files() -> None:
    assert documented_outputs() == {kind: (set(out.commands), set(out.files)) for kind, out in OUTPUTS.items()}


def test_every_command_that_prints_json_has_a_schema() -> None:
    with_format = {name for name, options in options_of_commands().items() if "--format" in options}
    assert with_format - {"topicops local status"} == {
        f"topicops {command}" for output in OUTPUTS.values() for command in output.commands
    }


def test_every_check_of_verify_has_its_code_and_no_other() -> None:
    checks = {code.value for code in Code if code.startswith("V")}
    assert {check for check, _ in [*RULES, *ABSENCE_RULES]} == checks == {f"V{n:02}" for n in range(1, 18)}


def test_every_rule_of_doctor_is_documented_in_its_order_and_no_other() -> None:
    findings, _, _ = text_of(REFERENCE / "problems.md").partition("## Causes")
    documented = re.findall(r"^\| `([a-z-]+)` \|", findings, re.MULTILINE)
    assert documented == [rule.id for rule in DOCTOR_RULES]


def test_every_quality_rule_leads_to_its_heading() -> None:
    leads = [rule.runbook.partition("#") for rule in QUALITY_RULES]
    assert [anchor for page, _, anchor in leads if anchor not in anchors_of(ROOT / page)] == []


CONFIG = re.compile(r"`([a-z0-9.]+)`")


def documented_risks() -> Mapping[str, tuple[str, str, str]]:
    """Up, down, any other change; by config."""
    rows = re.findall(r"^\| (`[^|]+) \|([^|]*)\|([^|]*)\|([^|]*)\|$", text_of(REFERENCE / "risk.md"), re.MULTILINE)
    return {
        name: (up.strip(), down.strip(), other.strip())
        for first, up, down, other in rows
        for name in CONFIG.findall(first)
    }


def test_every_config_has_its_row_of_risk_and_no_other() -> None:
    assert documented_risks().keys() == RISKS.keys()


@pytest.mark.parametrize("config", sorted(RISKS))
def test_the_page_and_the_table_of_risks_agree(config: str) -> None:
    up, down, other = documented_risks()[config]
    match RISKS[config]:
        case Ordered() as row:
            assert (up.startswith(row.up), down.startswith(row.down), other) == (True, True, "")
            assert row.far_up is None or row.far_up in up
            assert row.far_down is None or row.far_down in down
            assert row.code_down is None or row.code_down in down
        case Switch() as row:
            assert (up, down, other) == ("", "", f"to true: {row.to_true}; to false: {row.to_false}")
        case AnyChange() as row:
            assert (up, down, other) == ("", "", f"{row.risk} ({row.code})" if row.code else row.risk)
        case NeverPlanned():
            assert (up, down, other) == ("", "", "never planned")


@pytest.mark.parametrize(("page", "kinds"), [("environment", ["environment"]), ("topic", ["topic", "owners"])])
def test_every_field_of_a_file_that_people_write_is_documented(page: str, kinds: Sequence[str]) -> None:
    documented = re.findall(r"^\| `([^|`]+)` \|", text_of(REFERENCE / f"{page}.md"), re.MULTILINE)
    written = [field for kind in kinds for field in fields(kind) if field not in ("owners", "apiVersion", "kind")]
    assert sorted(documented) == sorted(written)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(DOCS)))
def test_each_part_that_is_made_from_the_program_is_as_the_program_is(page: Path) -> None:
    assert text_of(page) == made(text_of(page)), "type: make pages"


def test_a_made_part_that_is_older_than_the_program_is_seen() -> None:
    page = "<!-- made: statuses -->\n\n| status |\n\n<!-- end -->\n"
    assert page != made(page)


def test_every_cause_that_why_can_name_is_documented_and_no_other() -> None:
    _, _, causes = text_of(REFERENCE / "problems.md").partition("## Causes")
    documented = re.findall(r"^\| `([a-z-]+)` \|", causes, re.MULTILINE)
    assert sorted(rule.id for rule in WHY_RULES) == sorted(documented)
