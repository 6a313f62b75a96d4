"""The table of live clusters with specs, and the plan of each; through the command's own entry on a real ZooKeeper."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from fixtures.schemas.outputs import schema_of_output
from fixtures.zookeeper import Chroot
from topicops.cli import run
from topicops.model.plans.plan_file import PlanFile, plan_from_json, plan_to_json

pytestmark = pytest.mark.edges

TABLE = Path(os.environ.get("TOPICOPS_PLAN_CASES") or Path(__file__).parents[1] / "data" / "plan-cases.json")
CORPUS = json.loads(TABLE.read_text(encoding="utf-8"))
CASES: list[dict[str, Any]] = CORPUS["cases"]
PLAN_SCHEMA = Draft202012Validator(schema_of_output("plan", PlanFile))
IN_A_PROCESS_OF_THEIR_OWN = CASES[:: max(1, len(CASES) // 6)][:6]
ARGUMENTS = ["plan", "--environment", "local", "--format", "json", "--engine", "python"]
HOSTS_IN_THE_TABLE = "127.0.0.1:2181/kafka"
EPHEMERAL = re.compile(r"/brokers/ids/[^/]+|/controller")

BLOCKING_OR_SKIPPED = frozenset({"TOP411", "TOP412"})
"""A delete with one of these may be blocked, or a change that the gate skips."""
BESIDE_A_SKIPPED_DELETE = BLOCKING_OR_SKIPPED | {"TOP419", "TOP421"}
SEEN_AS_GATE = frozenset({"TOP405", "TOP421", "TOP432", "TOP433", "TOP440"})
"""Limits and the state of the cluster: of these the table gives the gate's word alone."""
TABLES_GATE_WORDS = {"dropped": "skipped"}
"""The table was written before plan format 1.2 renamed the gate's third word."""
NOT_COMPARED = None
"""What the table writes for codes that are left open."""

Json = dict[str, Any]
Rows = dict[str, list[int]]


def znodes_of(case: Json) -> dict[str, str]:
    """Return path to data: the case's over the base; null takes a path away, and what is below it."""
    gone = [path for path, text in case["znodes"].items() if text is None]
    base = {p: text for p, text in CORPUS["base_znodes"].items() if not any(is_at_or_below(p, top) for top in gone)}
    return base | {path: text for path, text in case["znodes"].items() if text is not None}


def is_at_or_below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/")


def make_znodes(chroot: Chroot, znodes: Mapping[str, str]) -> None:
    """In one request. Registrations are ephemeral, as Kafka's are."""
    transaction = chroot.client.transaction()
    for path in sorted(znodes):
        transaction.create(path, znodes[path].encode(), ephemeral=EPHEMERAL.fullmatch(path) is not None)
    assert transaction.commit() == sorted(znodes)


def write_files(case: Json, folder: Path, chroot: Chroot) -> None:
    (folder / "topics").mkdir()
    for name, text in texts_of(case).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(HOSTS_IN_THE_TABLE, chroot.hosts), encoding="utf-8")


def texts_of(case: Json) -> dict[str, str]:
    """Return path to text: the case's over the base; null takes a file away."""
    files = {path: {"text": text} for path, text in CORPUS["base"].items()} | case["files"]
    return {path: entry["text"] for path, entry in files.items() if entry is not None}


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str


@dataclass(frozen=True)
class EnvironmentView:
    """A case's cluster and files."""

    case: Json
    znodes: Mapping[str, str]

    @property
    def expect(self) -> Json:
        found: Json = self.case["expect"]
        return found

    @property
    def racks(self) -> dict[int, str | None]:
        ids = {path.rpartition("/")[2]: text for path, text in self.znodes.items() if path.startswith("/brokers/ids/")}
        return {int(broker): json.loads(text).get("rack") for broker, text in ids.items()}

    def line_at(self, location: Json) -> str:
        """Return the line of a file; it has something to point at."""
        line: str = texts_of(self.case)[location["file"]].splitlines()[location["line"] - 1]
        assert line[location["column"] - 1 :].strip(), f"nothing at {location}"
        return line

    def live_rows(self, topic: str) -> Rows:
        rows: Rows = json.loads(self.znodes[f"/brokers/topics/{topic}"])["partitions"]
        return rows


def check(world: EnvironmentView, ended: Ended) -> None:
    """What the command answered is what the table says."""
    assert "Traceback" not in ended.err
    assert ended.status == world.expect["exit"], ended.err
    if ended.status:
        assert '"fingerprint"' not in ended.out, "no plan was expected"
        return
    assert plan_to_json(plan_from_json(ended.out)).strip() == ended.out.strip()
    plan = json.loads(ended.out)
    assert [error.message for error in PLAN_SCHEMA.iter_errors(plan)] == []
    assert in_the_tables_words(plan, world.expect) == tables_words(world.expect)
    for wanted in world.expect["changes"]:
        if wanted["action"] == "reassign":
            assert planned_rows(plan, wanted) == wanted["assignment"]
        elif wanted["action"] in ("create", "expand"):
            assert list(placement_faults(planned_rows(plan, wanted), wanted, world)) == []
    assert all(world.line_at(entry["location"]) for entry in plan["blocked"])
    assert list(misplaced(plan, world)) == []


def misplaced(plan: Json, world: EnvironmentView) -> Iterator[str]:
    """Yield changes whose place is not the line of what changes."""
    for change in plan["changes"]:
        line = world.line_at(change["location"])
        if not any(word in line for word in words_of_the_place(change)):
            yield f"{change['actions'][0]} of {change['topic']} at {line}"


def words_of_the_place(change: Json) -> list[str]:
    match change["actions"]:
        case ["create"]:
            return [str(change["topic"])]
        case ["expand"]:
            return [str(change["after"]["partitions"]), "assignment"]
        case ["reassign"]:
            return ["replicationFactor", "assignment"]
        case ["configure"]:
            return [*change["after"]["configs"], change["topic"]]
        case _:
            return ["absent"]


# ---- what is compared of a plan ----


def tables_words(expect: Json) -> Json:
    return {
        "changes": [
            [c["topic"], c["action"], c["risk"], TABLES_GATE_WORDS.get(c["gate"], c["gate"]), c["codes"]]
            for c in expect["changes"]
        ],
        "blocked": sorted([b["topic"], b["codes"]] for b in expect["blocked"]),
        "unmanaged": expect["unmanaged"],
    }


def in_the_tables_words(plan: Json, expect: Json) -> Json:
    """Return the same of our plan; codes that the table leaves open are left open here too."""
    changes: list[list[Any]] = []
    blocked = [[topic_of(entry), codes_of(entry)] for entry in plan["blocked"]]
    for change in plan["changes"]:
        codes = set(codes_of(change))
        if change["gate"] == "skipped" and codes & BLOCKING_OR_SKIPPED:
            blocked.append([topic_of(change), sorted(codes & BESIDE_A_SKIPPED_DELETE)])
        elif change["actions"] not in ([], ["no-op"]):
            of_risk = sorted(code for code in codes - SEEN_AS_GATE if code.startswith("TOP4"))
            changes.append([topic_of(change), action_of(change), change["risk"], change["gate"], of_risk])
    return {
        "changes": left_open(changes, tables_words(expect)["changes"]),
        "blocked": left_open(sorted(blocked), tables_words(expect)["blocked"]),
        "unmanaged": sorted(topic_of(entry) for entry in plan["unmanaged"]),
    }


def left_open(found: list[list[Any]], wanted: list[list[Any]]) -> list[list[Any]]:
    """Return ``found`` without the codes of each row whose twin in ``wanted`` gives none."""
    open_rows: defaultdict[int, bool] = defaultdict(bool, {i: w[-1] is NOT_COMPARED for i, w in enumerate(wanted)})
    return [[*row[:-1], NOT_COMPARED] if open_rows[index] else row for index, row in enumerate(found)]


def topic_of(entry: Json | str) -> str:
    text = entry if isinstance(entry, str) else entry.get("topic") or entry["address"]
    return str(text).removeprefix("topic.")


def codes_of(entry: Json) -> list[str]:
    return sorted({code for code in entry.get("codes") or () if re.fullmatch(r"TOP[0-9]{3}", code)})


def action_of(change: Json) -> str:
    return "+".join(change["actions"])


# ---- where the replicas go ----


def planned_rows(plan: Json, wanted: Json) -> Rows:
    same = (c for c in plan["changes"] if (topic_of(c), action_of(c)) == (wanted["topic"], wanted["action"]))
    rows: Rows = next(same)["after"]["assignment"]
    return rows


def placement_faults(rows: Rows, wanted: Json, world: EnvironmentView) -> Iterator[str]:
    """Nothing moves; every partition gets its row, on live brokers, over as many racks as there can be."""
    live = world.live_rows(wanted["topic"]) if wanted["action"] == "expand" else {}
    moved = sorted(p for p in live if p in rows and rows[p] != live[p])
    if moved:
        yield f"partitions {moved} would move"
    new = {p: row for p, row in rows.items() if p not in live}
    expected = {str(p) for p in range(len(live), wanted["partitions"])}
    if set(new) != expected:
        yield f"new partitions {sorted(new)}, expected {sorted(expected)}"
    for partition, row in new.items():
        if not is_sound(row, wanted["replicationFactor"], world.racks):
            yield f"partition {partition} on {row}"
    for partition, row in wanted.get("assignment", {}).items():
        if new.get(partition) != row:
            yield f"partition {partition} on {new.get(partition)}, expected on {row}"


def is_sound(row: list[int], replication_factor: int, racks: Mapping[int, str | None]) -> bool:
    if not len(row) == len(set(row)) == replication_factor or not set(row) <= set(racks):
        return False
    names = set(racks.values())
    widest = 1 if None in names else min(len(names), len(row))
    return len({racks[broker] for broker in row}) >= widest


# ---- the tests ----


def view_of(case: Json, folder: Path, chroot: Chroot) -> EnvironmentView:
    znodes = znodes_of(case)
    make_znodes(chroot, znodes)
    write_files(case, folder, chroot)
    return EnvironmentView(case, znodes)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_a_case_of_the_table_is_planned_as_expected(
    case: Json, chroot: Chroot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = view_of(case, tmp_path, chroot)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path / "home"))

    status = run(ARGUMENTS)

    said = capsys.readouterr()
    check(world, Ended(status, said.out, said.err))


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in IN_A_PROCESS_OF_THEIR_OWN])
def test_a_process_plans_as_the_entry_does(case: Json, chroot: Chroot, tmp_path: Path) -> None:
    world = view_of(case, tmp_path, chroot)

    command = [sys.executable, "-c", "from topicops.__main__ import main; main()", *ARGUMENTS]
    environment = {**os.environ, "TOPICOPS_HOME": str(tmp_path / "home")}
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )

    check(world, Ended(ended.returncode, ended.stdout, ended.stderr))
