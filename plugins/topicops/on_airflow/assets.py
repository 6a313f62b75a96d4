"""Assets: a DAG that needs a topic is scheduled on ``topicops://<environment>/<topic>``.

Each topic that a run created or changed gets an event once ``verify`` has found it healthy. The events use an alias,
because only a run knows which topics it changes. The task ``verify`` emits those of the first topics, and the tasks
``announce`` those of all others, group by group.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from itertools import islice
from math import ceil
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from airflow.sdk import Asset, AssetAlias, Context
from airflow.sdk.configuration import conf

from topicops.model.runs.results import IN_PLACE, Check, Outcome

if TYPE_CHECKING:
    from topicops.flow.runs.run import EnvironmentRun
    from topicops.model.plans.changes import Action

log = logging.getLogger(__name__)

NEW_ASSETS_PER_S = 2.0
"""How many events Airflow surely stores while a task waits for its answer. Airflow 3.3 makes each new asset with an
insert of its own: on a busy machine with SQLite, 18 took 8 s, and the worker had given up after 5 s."""
GONE = "delete"
"""The action after which there is no topic to wait for."""


def topic_asset(environment: str, topic: str) -> Asset:
    """``topicops://prod-eu/shop.orders``: put it into the ``schedule`` of a DAG that waits for this topic."""
    return Asset(f"topicops://{environment}/{topic}", group=f"topicops-{environment}")


def topics_alias(environment: str) -> AssetAlias:
    """``topicops://prod-eu``: put it into the ``schedule`` of a DAG that runs after each change of any topic."""
    return AssetAlias(f"topicops://{environment}", group=f"topicops-{environment}")


def announce_topics(run: EnvironmentRun, context: Context, *, first: int = 0) -> Sequence[Sequence[int]]:
    """Emit an event for each topic of one group that this run created or changed, and that ``verify`` found healthy.

    The group is small enough for Airflow to store its events before the worker gives up.

    Args:
        first: Place of the group's first topic, in the order of the outcomes.

    Returns:
        The argument ``first`` of each group that follows, each as a list of its own.
    """
    from topicops.flow.runs.outcomes import read_outcomes

    checks = run.store.read_value("checks.json", tuple[Check, ...])
    ready = ready_topics(read_outcomes(run), checks)
    size = group_size(len(ready))
    group = dict(islice(ready.items(), first, first + size))
    if not group:
        return ()
    events = context["outlet_events"][topics_alias(run.environment)]
    commit = run.read_plan().change_set.source.commit or ""
    for topic, actions in group.items():
        events.add(
            topic_asset(run.environment, topic),
            {"actions": [*actions], "run": run.name, "commit": commit, "page": topic_address(run.environment, topic)},
        )
    log.info("asset events: %s", ", ".join(topic_asset(run.environment, topic).uri for topic in group))
    return [[start] for start in range(first + size, len(ready), size)]


def topic_address(environment: str, topic: str) -> str:
    """Of the topic's page; absolute where Airflow knows its own address."""
    base = conf.get("api", "base_url", fallback="").rstrip("/")
    return f"{base}/topicops/dags/{quote(f'topic_pipeline_{environment}')}/topic?{urlencode({'name': topic})}"


def group_size(topics: int) -> int:
    """Return how many topics one task announces; more only where Airflow would not start as many tasks."""
    answered_within_s: float = conf.getfloat("workers", "execution_api_timeout")
    most_groups: int = conf.getint("core", "max_map_length")
    return max(int(answered_within_s * NEW_ASSETS_PER_S), 1, ceil(topics / most_groups))


def ready_topics(outcomes: Sequence[Outcome], checks: Sequence[Check]) -> Mapping[str, Sequence[Action]]:
    """The actions that are in place, by topic; without topics that are gone, and those with a check that failed."""
    unhealthy = {check.topic for check in checks if check.is_problem}
    found: dict[str, list[Action]] = {}
    for outcome in outcomes:
        if outcome.status in IN_PLACE and outcome.action != GONE and outcome.topic not in unhealthy:
            found.setdefault(outcome.topic, []).append(outcome.action)
    return found
