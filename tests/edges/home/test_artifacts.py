"""A run's files are whole or not there, and come back as they went in."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fakes.resting_cluster import RestingCluster
from fixtures.quality import quality_report
from topicops.edges.home.artifacts import ArtifactStore, prune_runs, runs_folder
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import ArtifactError
from topicops.model.plans.delta import Delta, DesiredRow, LiveRow, TopicClass, TopicDelta
from topicops.model.runs.results import (
    QUIET_FILE,
    Check,
    FailingRow,
    Outcome,
    OutcomeStatus,
    QualityReport,
    QualityResult,
    Verdict,
)
from topicops.model.specs.desired import Desired, DesiredTopic, Lifecycle
from topicops.model.specs.diagnostics import Diagnostic, Location, Severity

NOW = datetime(2025, 3, 1, 12, 30, 15, 250000, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "run")


def a_snapshot() -> ClusterSnapshot:
    cluster = RestingCluster()
    cluster.put_topic("a", *[(1, 2, 3)] * 12, configs={"retention.ms": "1"})
    cluster.start_reassignment("a", 10, adding=[3], removing=[2])
    for topic in ("a", "b"):
        cluster.name_in_reassignment(topic)
    return cluster.snapshot(states=True)


def a_desired() -> Desired:
    location = Location("topics/shop/a.yaml", 4, 9)
    topic = DesiredTopic(
        name="a",
        owner="team-ü",
        location=location,
        labels={"tier": "1"},
        lifecycle=Lifecycle.ABSENT,
        not_before=NOW,
        assignment={0: (1, 2), 10: (2, 1)},
        configs={"retention.ms": "1", "segment.ms": None},
        locations={"partitions": location},
    )
    warning = Diagnostic(
        code="TOP309", severity=Severity.WARNING, file="f", line=1, column=2, end_line=1, end_column=3, summary="s"
    )
    return Desired(environment="local", topics={"a": topic}, files=1, warnings=(warning,), digest="0")


def a_delta() -> Delta:
    change = TopicDelta(
        topic="a",
        presence="both",
        topic_class=TopicClass.DIFFERENT,
        changed=frozenset({"partitions", "configs"}),
        desired=DesiredRow("a", "present", 3, 2, None, "{}"),
        live=LiveRow("a", 2, 2, 2, "0123", "{}"),
    )
    return Delta(topics=(change,), counts=dict.fromkeys(TopicClass, 1))


OUTCOME = Outcome(topic="a", action="create", digest="0", status=OutcomeStatus.UNKNOWN, message="why\n", sent=True)
CHECK = Check(id="V07", topic="a", verdict=Verdict.PRE_EXISTING, message="partition 0", code="TOP601")
RULE = QualityResult(
    rule="Q1",
    title="led",
    severity="critical",
    success=False,
    rows_checked=2,
    rows_failed=1,
    examples=(FailingRow(row={"topic": "a", "partition": 0}, was_so_before=True),),
)


def test_a_snapshot_comes_back_equal(store: ArtifactStore) -> None:
    store.write_value("live.json", a_snapshot())
    assert store.read_value("live.json", ClusterSnapshot) == a_snapshot()


def test_desired_topics_come_back_equal(store: ArtifactStore) -> None:
    store.write_value("desired.json", a_desired())
    assert store.read_value("desired.json", Desired) == a_desired()


def test_a_delta_comes_back_equal_rows_included(store: ArtifactStore) -> None:
    store.write_value("delta.json", a_delta())
    found = store.read_value("delta.json", Delta)
    assert found == a_delta()
    assert isinstance(found.topics[0].live, LiveRow)


def test_results_come_back_equal(store: ArtifactStore) -> None:
    store.write_value("outcomes.json", (OUTCOME,))
    store.write_value("checks.json", (CHECK,))
    report = quality_report("after", (RULE,))
    store.write_value("quality.json", report)
    assert store.read_value("outcomes.json", tuple[Outcome, ...]) == (OUTCOME,)
    assert store.read_value("checks.json", tuple[Check, ...]) == (CHECK,)
    assert store.read_value("quality.json", QualityReport) == report


def test_text_and_json_come_back_equal(store: ArtifactStore) -> None:
    store.write_text("report.md", "größer\n")
    store.write_json("run.json", {"b": [1, None], "a": "x"})
    assert store.read_text("report.md") == "größer\n"
    assert store.read_value("run.json", dict[str, object]) == {"a": "x", "b": [1, None]}


def test_a_missing_artifact_is_named(store: ArtifactStore) -> None:
    with pytest.raises(ArtifactError, match=r"live\.json: missing; the step that writes it"):
        store.read_value("live.json", ClusterSnapshot)
    assert not store.has("live.json")


@pytest.mark.parametrize("content", [b"", b'{"cluster_id": "x"', b'{"cluster_id": 3}', b"\xff"])
def test_a_damaged_artifact_is_named(store: ArtifactStore, content: bytes) -> None:
    store.write_text("live.json", "")
    store.path("live.json").write_bytes(content)
    with pytest.raises(ArtifactError, match=r"live\.json: damaged"):
        store.read_value("live.json", ClusterSnapshot)


def test_a_damaged_text_or_json_is_named(store: ArtifactStore) -> None:
    store.write_text("report.md", "")
    store.path("report.md").write_bytes(b"\xff")
    with pytest.raises(ArtifactError, match="damaged"):
        store.read_text("report.md")
    with pytest.raises(ArtifactError, match="damaged"):
        store.read_value("report.md", dict[str, object])


def test_a_write_that_fails_leaves_the_old_file_and_no_other(store: ArtifactStore) -> None:
    store.write_text("plan.json", "old")
    (store.folder / "taken").mkdir()
    with pytest.raises(ArtifactError, match="cannot be written"):
        store.write_text("taken", "new")
    assert sorted(path.name for path in store.folder.iterdir()) == ["plan.json", "taken"]
    assert store.read_text("plan.json") == "old"


# --- folders --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run_id", "folder"),
    [
        pytest.param("2025-03-01.1_a", "2025-03-01.1_a", id="plain"),
        pytest.param(
            "scheduled__2025-03-01T00:00:00+00:00", "scheduled__2025-03-01T00%3A00%3A00%2B00%3A00", id="airflow"
        ),
        pytest.param("../../etc", "..%2F..%2Fetc", id="slashes"),
        pytest.param("..", "%2E%2E", id="parent"),
        pytest.param(".", "%2E", id="itself"),
        pytest.param("ü", "%C3%BC", id="bytes of UTF-8"),
        pytest.param("%2E", "%252E", id="the escape itself"),
        pytest.param("", "%", id="empty"),
    ],
)
def test_a_run_id_is_a_folder_of_its_own(run_id: str, folder: str) -> None:
    assert runs_folder(Path("/h"), "cli", run_id) == Path("/h/runs/cli") / folder


def test_long_run_ids_stay_apart_and_fit_a_file_system(tmp_path: Path) -> None:
    folders = {runs_folder(tmp_path, "dag", "/" * 250 + end) for end in "ab"}
    for folder in folders:
        folder.mkdir(parents=True)
    assert len(folders) == 2


def test_runs_are_pruned_after_90_days_and_younger_ones_stay(tmp_path: Path) -> None:
    ages = {"old": 91, "young": 89, "written-to": 91}
    for name, days in ages.items():
        folder = runs_folder(tmp_path, "cli", name)
        ArtifactStore(folder).write_text("run.json", "{}")
        then = (NOW - timedelta(days=days)).timestamp()
        os.utime(folder / "run.json", (then, then))
        os.utime(folder, (then, then))
    fresh = NOW.timestamp()
    os.utime(runs_folder(tmp_path, "cli", "written-to") / "run.json", (fresh, fresh))

    removed = prune_runs(tmp_path, now=NOW)

    assert [path.name for path in removed] == ["old"]
    assert sorted(path.name for path in (tmp_path / "runs" / "cli").iterdir()) == ["written-to", "young"]


def test_a_quiet_run_is_removed_after_a_week(tmp_path: Path) -> None:
    for name, days in (("quiet", 8), ("young", 6), ("full", 8)):
        store = ArtifactStore(runs_folder(tmp_path, "topic_pipeline_local", name))
        store.write_text("live.json" if name == "full" else QUIET_FILE, "{}")
        written = (NOW - timedelta(days=days)).timestamp()
        for path in (*store.folder.iterdir(), store.folder):
            os.utime(path, (written, written))
    assert [run.name for run in prune_runs(tmp_path, now=NOW)] == ["quiet"]


def put_old_runs(home: Path, count: int) -> None:
    for number in range(count):
        folder = runs_folder(home, "cli", f"run-{number:03}")
        folder.mkdir(parents=True)
        for name in ("plan.json", "live.json", "report.json"):
            (folder / name).touch()
            os.utime(folder / name, (0, 0))
        os.utime(folder, (0, 0))


PRUNE = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from topicops.edges.home.artifacts import prune_runs
sys.stdin.readline()
prune_runs(Path(sys.argv[1]), now=datetime.now(UTC))
"""


def test_processes_that_prune_at_the_same_moment_do_not_disturb_each_other(tmp_path: Path) -> None:
    put_old_runs(tmp_path, 300)
    line = [sys.executable, "-c", PRUNE, str(tmp_path)]
    processes = [subprocess.Popen(line, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    time.sleep(1)  # until all have imported what they need
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()

    errors = [process.communicate(timeout=60)[1] for process in processes]

    assert errors == [""] * 4
    assert list((tmp_path / "runs" / "cli").iterdir()) == []


@pytest.fixture
def shared_home() -> Iterator[Path]:
    """Yield a home below which every account may write."""
    home = Path(tempfile.mkdtemp())
    home.chmod(0o777)
    yield home
    shutil.rmtree(home)


@contextmanager
def without_rights_on(*folders: Path) -> Iterator[None]:
    """These folders belong to another account, which lets nobody else in; root gives up its rights meanwhile."""
    for folder in folders:
        folder.chmod(0o000)
    if os.getuid() == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(os.getuid())
        for folder in folders:
            folder.chmod(0o700)


def test_folders_of_another_account_are_left_alone_by_pruning(shared_home: Path) -> None:
    put_old_runs(shared_home, 3)
    foreign = runs_folder(shared_home, "another-account", "run")
    foreign.mkdir(parents=True)
    runs = shared_home / "runs/cli"
    for path in (runs.parent, runs, runs / "run-000", runs / "run-002"):
        path.chmod(0o777)

    with without_rights_on(runs / "run-001", foreign.parent):
        removed = prune_runs(shared_home, now=NOW)

    assert [path.name for path in removed] == ["run-000", "run-002"]
    assert [path.name for path in runs.iterdir()] == ["run-001"]


def test_an_artifact_of_another_account_is_an_error_with_its_path(shared_home: Path) -> None:
    store = ArtifactStore(shared_home / "run")
    store.write_text("plan.json", "{}")

    with without_rights_on(store.folder):
        for use in (store.has, store.read_text, store.remove, lambda name: store.write_text(name, "")):
            with pytest.raises(ArtifactError, match=f"{store.path('plan.json')}: cannot be .*: Permission denied"):
                use("plan.json")


def test_pruning_follows_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    os.utime(outside, (0, 0))
    (tmp_path / "runs" / "cli").mkdir(parents=True)
    (tmp_path / "runs" / "cli" / "link").symlink_to(outside)

    assert prune_runs(tmp_path, now=NOW) == ()
    assert outside.is_dir()
