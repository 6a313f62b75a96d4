"""Commands that take several environments. Deleting a feature deletes its lines here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

import topicops.features.fleet.commands
from topicops.cli.shared_options import FleetStep, Format
from topicops.model.errors import UsageError

if TYPE_CHECKING:
    from topicops.model.choices import EngineChoice


class Fleets(Protocol):
    """Takes the step of a command for each environment, prints the table, and ends with the worst exit status."""

    def environments_of(self, topics: Path, named: Sequence[str]) -> tuple[str, ...]: ...

    def take(
        self,
        step: FleetStep,
        named: Sequence[str],
        topics: Path,
        *,
        output: Format,
        engine: EngineChoice = "auto",
        states: bool = False,
        only: str | None = None,
        out: Path | None = None,
        detailed_exitcode: bool = False,
    ) -> NoReturn: ...


FLEETS: tuple[Fleets, ...] = (
    topicops.features.fleet.commands,
)  # fmt: skip
"""The first is used."""


def several(named: Sequence[str], topics: Path) -> tuple[str, ...]:
    """Return the environments of the command line if it names several, or ``all``; empty if it names one."""
    if set(named) - {"all"} and len(set(named)) == 1:
        return ()
    if not FLEETS:
        raise UsageError("name one environment: this installation of topicops takes no more at once")
    found = FLEETS[0].environments_of(topics, named)
    return () if found == ("all",) else found
