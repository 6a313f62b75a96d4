"""Several runs in the same second, in an Airflow on SQLite and in one on PostgreSQL: all of them end well."""

from __future__ import annotations

import logging
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from fixtures.airflow_story import RUN_S, Story, airflow_stories, remove_topics
from fixtures.topic_project import TOPIC
from topicops.features.shared.airflow_client import AirflowError
from topicops_local.airflow_client import LocalAirflowClient
from topicops_local.cluster import LocalCluster
from topicops_local.processes import free_port

PROGRAMS = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/usr/bin"))
"""Where Debian puts them, of the newest release; elsewhere on the path."""
MISSING = "" if (PROGRAMS / "initdb").exists() else "no PostgreSQL on this machine: apt-get install postgresql"
NO_POSTGRESQL = MISSING or (
    "" if find_spec("psycopg2") and find_spec("asyncpg") else "Airflow here has no drivers: psycopg2-binary, asyncpg"
)
"""Why no test can use it; empty if one can."""


@contextmanager
def postgresql() -> Iterator[str]:
    """SQLAlchemy's address of an empty database; the server is stopped at the end."""
    port = free_port()
    as_user: tuple[str, ...] = ()
    folder = Path(tempfile.mkdtemp(prefix="topicops-postgresql-"))  # where the server's own user may go too
    if not os.getuid():  # PostgreSQL refuses to run as root
        account = pwd.getpwnam("postgres")
        os.chown(folder, account.pw_uid, account.pw_gid)
        as_user = ("setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups")

    def run(program: str, *arguments: str) -> None:
        command = [*as_user, str(PROGRAMS / program), *arguments]
        subprocess.run(command, cwd=folder, check=True, timeout=120, stdout=subprocess.DEVNULL)

    data, place = f"{folder}/data", f"-h 127.0.0.1 -p {port} -k {folder}"
    try:
        run("initdb", "--pgdata", data, "--auth", "trust", "--username", "airflow", "--no-sync")
        run("pg_ctl", "--pgdata", data, "--log", f"{folder}/log", "--options", place, "-w", "start")
        run("createdb", "--host", "127.0.0.1", "--port", str(port), "--username", "airflow", "airflow")
        yield f"postgresql+psycopg2://airflow@127.0.0.1:{port}/airflow"
    finally:
        run("pg_ctl", "--pgdata", data, "--mode", "immediate", "-w", "stop")
        shutil.rmtree(folder, ignore_errors=True)


logger = logging.getLogger(__name__)

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def stories(
    request: pytest.FixtureRequest, local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Story, ...]]:
    """Two environments."""
    folder = tmp_path_factory.mktemp("at-once")
    if request.param == "sqlite":
        with airflow_stories(folder, local_cluster, ("first", "other")) as stories:
            yield stories
            remove_topics(stories)
        return
    if NO_POSTGRESQL:
        pytest.skip(NO_POSTGRESQL)
    with (
        postgresql() as address,
        airflow_stories(folder, local_cluster, ("first", "other"), database=address) as stories,
    ):
        yield stories
        remove_topics(stories)


def triggered(client: LocalAirflowClient, dag_id: str) -> str:
    """The run's id. On SQLite Airflow may refuse a trigger beside another one; then a person clicks once more."""
    for _ in range(5):
        try:
            return client.trigger(dag_id, {})
        except AirflowError as error:
            if "Database error" not in str(error):
                raise
    raise AssertionError(f"{dag_id} was refused five times")


def end_of(story: Story, dag_id: str, run_id: str) -> str:
    for _ in story.client.follow(dag_id, run_id, timeout_s=2 * RUN_S, each_time=story.airflow.require_alive):
        pass
    return story.client.run_state(dag_id, run_id)


def test_runs_that_are_triggered_in_one_second_all_end_well(stories: tuple[Story, ...]) -> None:
    first, other = stories
    for story in stories:
        for number in range(5):
            story.project.write(f"{story.project.environment}.topic-{number}", TOPIC)
    wanted = [(story, story.pipeline) for story in stories] * 2  # an environment's second run waits for its first
    wanted.append((first, f"topic_drift_{first.project.environment}"))
    clients = [story.airflow.client() for story, _ in wanted]

    began = time.monotonic()
    with ThreadPoolExecutor(len(wanted)) as pool:
        run_ids = list(pool.map(lambda at, client: triggered(client, at[1]), wanted, clients))
        in_s = time.monotonic() - began
        ends = list(pool.map(lambda at, run_id: end_of(at[0], at[1], run_id), wanted, run_ids))

    logger.warning("%d runs triggered in %.1f s, ended after %.0f s", len(wanted), in_s, time.monotonic() - began)
    assert ends == ["success"] * len(wanted)
    assert first.airflow.ended() == {}
    for story in (first, other):
        assert story.live_topics() == {f"{story.project.environment}.topic-{number}" for number in range(5)}
