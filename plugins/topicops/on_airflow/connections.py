"""Connections as Airflow knows them: from its secrets backends, variables or database, whichever holds the id."""

from __future__ import annotations

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from topicops.edges.connections import ConnectionFields
from topicops.model.errors import UsageError


def from_airflow(connection_id: str) -> ConnectionFields:
    """Fills ``edges.connections.ConnectionSource``; works in a running task only, and puts secrets on Airflow's mask.

    Raises:
        UsageError: Airflow has no connection of that id.

    """
    try:
        found = BaseHook.get_connection(connection_id)
    except AirflowNotFoundException as error:
        raise UsageError(
            f"connection {connection_id!r} is not known to Airflow; "
            f"add it there, or set the variable AIRFLOW_CONN_{connection_id.upper()}"
        ) from error
    return ConnectionFields(
        conn_type=found.conn_type or "",
        host=found.host or "",
        port=found.port,
        login=found.login or "",
        password=found.password or "",
        extra=dict(found.extra_dejson),
    )
