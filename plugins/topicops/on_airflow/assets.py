"""Assets: a DAG that needs a topic is scheduled on ``topicops://<environment>/<topic>``.

The task ``verify`` emits an event for each topic that the run created or changed, once the topic is healthy. It uses an
alias, because only a run knows which topics it changes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from airflow.sdk import Asset, AssetAlias, Context

from topicops.model.runs.results import IN_PLACE, Check, Outcome

if TYPE_CHECKING:
    from topicops.flow import Run
    from topicops.model.plans.changes import Action

log = logging.getLogger(__name__)

MOST_EVENTS = 200
"""Of a task. Airflow 3.3 stores them while the task waits for its answer, and fails the task after 5 s: so it did with
2,000 new assets in SQLite, at 4 ms each."""
GONE = "delete"
"""The action after which there is no topic to wait for."""


def topic_asset(environment: str, topic: str) -> Asset:
    """``topicops://prod-eu/shop.orders``: put it into the ``schedule`` of a DAG that waits for this topic."""
    return Asset(f"topicops://{environment}/{topic}")


def topics_alias(environment: str) -> AssetAlias:
    """``topicops://prod-eu``: put it into the ``schedule`` of a DAG that runs after each change of any topic."""
    return AssetAlias(f"topicops://{environment}")


def announce_topics(run: Run, context: Context) -> None:
    """Emit an event for each topic that this run created or changed, and that ``verify`` has found healthy."""
    from topicops.flow import read_outcomes

    checks = run.store.read_value("checks.json", tuple[Check, ...])
    ready = ready_topics(read_outcomes(run), checks)
    if len(ready) > MOST_EVENTS:
        ready = _awaited(run.environment, ready)
    if not ready:
        return
    events = context["outlet_events"][topics_alias(run.environment)]
    commit = run.read_plan().change_set.source.commit or ""
    for topic, actions in ready.items():
        events.add(topic_asset(run.environment, topic), {"actions": [*actions], "run": run.name, "commit": commit})
    log.info("asset events: %s", ", ".join(topic_asset(run.environment, topic).uri for topic in ready))


def _awaited(environment: str, ready: Mapping[str, Sequence[Action]]) -> Mapping[str, Sequence[Action]]:
    """Of many topics those whose assets Airflow knows: somebody waits for them, or they had an event before."""
    known = ((topic, actions) for topic, actions in ready.items() if is_known(topic_asset(environment, topic)))
    awaited = dict(islice(known, MOST_EVENTS))
    log.warning(
        "%s of %s changed topics have no asset event: Airflow takes %s at a time, those first whose asset it knows",
        len(ready) - len(awaited),
        len(ready),
        MOST_EVENTS,
    )
    return awaited


def is_known(asset: Asset) -> bool:
    """Whether a DAG names this asset, or it had an event; asks Airflow's API server."""
    from airflow.sdk.execution_time.comms import AssetResult, GetAssetByUri
    from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS

    return isinstance(SUPERVISOR_COMMS.send(GetAssetByUri(uri=asset.uri)), AssetResult)


def ready_topics(outcomes: Sequence[Outcome], checks: Sequence[Check]) -> Mapping[str, Sequence[Action]]:
    """The actions that are in place, by topic; without topics that are gone, and those with a check that failed."""
    unhealthy = {check.topic for check in checks if check.is_problem}
    found: dict[str, list[Action]] = {}
    for outcome in outcomes:
        if outcome.status in IN_PLACE and outcome.action != GONE and outcome.topic not in unhealthy:
            found.setdefault(outcome.topic, []).append(outcome.action)
    return found
