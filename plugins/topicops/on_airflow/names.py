"""The names and addresses by which Airflow knows our DAGs and pages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

PREFIX = "/topicops"
BELOW = f"{PREFIX.removeprefix('/')}/"
"""Begin of each address of ours: without a slash in front, browsers read it from the path below which Airflow is."""
PLAN_ROUTE, QUALITY_ROUTE = "topicops-plan", "topicops-quality"
TAG = "topicops"
"""Tag that each of our DAGs has; Airflow 3.4 shows our tabs on the DAGs with it alone."""
STATIC = "static/"
"""The folder of stylesheet and script, next to the pages and so behind the same check."""
KINDS = ("pipeline", "approval", "drift")
"""Kinds of DAGs that each environment has."""
_OURS = re.compile(rf"topic_(?P<kind>{'|'.join((*KINDS, 'moves'))})_(?P<environment>[\w.-]+)", re.ASCII)
_VERSION = re.compile(r"/(?:tracking_repo|versions/[^/]+)(?=/|$)")
"""Version of a git bundle: Airflow parses the newest files in one, and runs those of a commit in the other."""


def kind_of(dag_id: str) -> str | None:
    """Give a word of ``KINDS``, or ``moves``; None means that the DAG is none of ours."""
    match = _OURS.fullmatch(dag_id)
    return match["kind"] if match else None


def environment_of(dag_id: str) -> str | None:
    """Give the environment of a DAG; None means that the DAG is none of ours."""
    match = _OURS.fullmatch(dag_id)
    return match["environment"] if match else None


def place_of(topics: Path) -> str:
    """Give the folder of topics, the same word for each version of a bundle."""
    return _VERSION.sub("", topics.as_posix(), count=1)


def tab_address(dag_id: str, run_id: str, route: str) -> str:
    """Give the address of a tab of a run; absolute where Airflow knows its own address."""
    from topicops.on_airflow.airflow_inside import build_airflow_dagrun_url  # the pages are made without Airflow, too

    return f"{build_airflow_dagrun_url(quote(dag_id), quote(run_id))}/plugin/{route}"


def topic_address(environment: str, topic: str) -> str:
    """Give the address of a topic's page; absolute where Airflow knows its own address."""
    from airflow.sdk import conf  # the pages are made without Airflow, too

    base = conf.get("api", "base_url", fallback="").rstrip("/")
    return f"{base}{PREFIX}/dags/{quote(f'topic_pipeline_{environment}')}/topic?{urlencode({'name': topic})}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOf:
    """A run of one of our DAGs, as Airflow names it."""

    dag_id: str
    run_id: str

    @property
    def environment(self) -> str | None:
        """Environment of the DAG; None means that it is not one of topicops."""
        return environment_of(self.dag_id)

    @property
    def is_approval(self) -> bool:
        return kind_of(self.dag_id) == "approval"

    @property
    def carries_moves_on(self) -> bool:
        """Whether the run has no plan: it makes steps of moves that other runs have begun."""
        return kind_of(self.dag_id) == "moves"

    @property
    def approval_dag(self) -> str:
        return f"topic_approval_{self.environment}"
