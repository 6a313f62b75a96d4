"""Tabs that features add to a run. Deleting a feature deletes its lines here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import topicops.features.quality.on_airflow
from topicops.on_airflow.routes import QUALITY_ROUTE

if TYPE_CHECKING:
    from topicops.on_airflow.pages.reading import RunOf


@dataclass(frozen=True, slots=True)
class Tab:
    """A page of a run, beside its plan."""

    name: str
    """Last word of its address."""
    route: str
    """Word by which Airflow knows the tab."""
    page: Callable[[Path, RunOf], str]
    """Function that takes the home and the run, and gives the whole document."""


TABS: tuple[Tab, ...] = (
    Tab("quality", QUALITY_ROUTE, topicops.features.quality.on_airflow.page_of),
)  # fmt: skip
