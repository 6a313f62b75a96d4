"""What one environment's DAGs may have of their own: when they run, in which mode, and what Airflow gives each task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.sdk import BaseNotifier


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """None and empty: as the settings of the installation say."""

    schedule: str | None = None
    """Of the pipeline."""
    drift_schedule: str | None = None
    mode: str | None = None
    """``plan`` or ``apply``."""
    default_args: Mapping[str, object] = field(default_factory=dict)
    """Of each task, above our own."""
    tags: Sequence[str] = ()
    """Added to our own."""
    notifiers: Sequence[BaseNotifier] = ()
    """Who is told of an event."""
    pool: str | None = None
    access_control: Mapping[str, Mapping[str, Sequence[str]]] | None = None
    """Role to rights on the DAGs, as Airflow's ``access_control``."""
