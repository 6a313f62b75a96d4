"""A locked file keeps the runs of one host apart."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from topicops.edges.home.file_lease import FileLease, NoLease, lease_files
from topicops.model.errors import ArtifactError, LeaseHeldError, LeaseLostError

HOLD = """
import sys
from pathlib import Path
from topicops.edges.home.file_lease import FileLease
with FileLease([Path(sys.argv[1])], run="other/1", operation="apply"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "leases" / "cluster.lock"


def lease(path: Path, *, run: str = "cli/1", lock_timeout_s: float = 0) -> FileLease:
    return FileLease([path], run=run, operation="apply", lock_timeout_s=lock_timeout_s)


def test_a_second_lease_is_told_who_holds_the_first(path: Path) -> None:
    with lease(path, run="nightly/7") as first:
        with pytest.raises(LeaseHeldError, match="nightly/7"):
            lease(path, lock_timeout_s=0.2).__enter__()
        first.confirm()
    with lease(path) as second:
        second.confirm()


def test_an_interrupt_ends_the_wait_for_another_holder(path: Path) -> None:
    began = time.monotonic()
    with lease(path), pytest.raises(LeaseHeldError):
        FileLease([path], run="r", operation="apply", lock_timeout_s=60, interrupted=lambda: True).__enter__()

    assert time.monotonic() - began < 10


def test_the_lease_of_a_killed_process_is_free(path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(LeaseHeldError, match="other/1"):
            lease(path).__enter__()
        process.kill()
        process.wait()
        with lease(path) as held:
            held.confirm()


def test_a_replaced_file_loses_the_lease(path: Path) -> None:
    with lease(path) as held:
        path.unlink()
        with pytest.raises(LeaseLostError, match="replaced"):
            held.confirm()
        path.touch()
        with pytest.raises(LeaseLostError, match="replaced"):
            held.confirm()


def test_a_lease_whose_file_comes_back_stays_lost(path: Path) -> None:
    with lease(path) as held:
        path.rename(path.with_suffix(".away"))
        with pytest.raises(LeaseLostError):
            held.confirm()
        path.with_suffix(".away").rename(path)
        with pytest.raises(LeaseLostError):
            held.confirm()


def test_a_lease_whose_folder_is_no_folder_any_more_is_lost(path: Path) -> None:
    with lease(path) as held:
        path.unlink()
        path.parent.rmdir()
        path.parent.touch()
        with pytest.raises(LeaseLostError):
            held.confirm()


def test_a_file_that_cannot_be_opened_is_an_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=str(tmp_path)):
        lease(tmp_path).__enter__()


def test_a_folder_that_cannot_be_made_is_an_error_with_its_path(path: Path) -> None:
    path.parent.touch()

    with pytest.raises(ArtifactError, match=str(path)):
        lease(path).__enter__()


def test_all_files_of_a_lease_must_be_free(tmp_path: Path) -> None:
    of_host, of_home, of_another_home = (tmp_path / name for name in ("host.lock", "home.lock", "other.lock"))

    def lease_of(*paths: Path) -> FileLease:
        return FileLease(paths, run="cli/1", operation="apply")

    with lease_of(of_host, of_home) as held:
        for paths in ([of_host, of_another_home], [tmp_path / "other-host.lock", of_home]):
            with pytest.raises(LeaseHeldError):
                lease_of(*paths).__enter__()
        held.confirm()
        of_home.unlink()
        with pytest.raises(LeaseLostError, match=str(of_home)):
            held.confirm()
    with lease_of(of_host, of_another_home) as next_one:
        next_one.confirm()


def test_the_files_are_named_by_the_cluster_and_lie_with_the_account_and_in_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert lease_files(tmp_path / "home", "a/../b") == (
        tmp_path / "state/topicops/leases/a%2F..%2Fb.lock",
        tmp_path / "home/lease/a%2F..%2Fb.lock",
    )
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    of_account, _ = lease_files(tmp_path, "id")
    assert of_account == tmp_path / "person/.local/state/topicops/leases/id.lock"


def test_no_lease_is_always_ours() -> None:
    with NoLease() as first, NoLease() as second:
        first.confirm()
        second.confirm()
