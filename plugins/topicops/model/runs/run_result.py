"""What a run of the pipeline came to, as its report hands it to CI in the XCom ``result``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from topicops.model.json_types import FormatVersion
from topicops.model.plans.changes import Action

RESULT_KEY = "result"
"""Names the XCom of the task ``report``."""
MOST_CHANGES = 500
"""How many changes the result lists."""
MOST_NOTES = 50
LONGEST_TEXT = 300
"""Characters of the headline, of a message and of a note."""
QUIET_FILE = "quiet.json"
"""Holds a ``Quiet``; only quiet runs have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeResult:
    topic: str
    action: Action
    digest: str
    status: str
    """Of its outcome, such as ``done`` or ``refused``; ``held`` or ``skipped`` where it was not to be sent."""
    message: str = ""
    """Why it is not done; at most ``LONGEST_TEXT`` characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    format_version: Literal["1.0"] = "1.0"
    headline: str
    """``Applied and verified: 3 done.``"""
    success: bool
    """Whether all that was to be sent is in place and verified."""
    commit: str | None
    changes: tuple[ChangeResult, ...]
    """Gravest first; at most ``MOST_CHANGES``."""
    left_out: int = 0
    """How many changes are not listed."""
    notes: tuple[str, ...] = ()
    """Such as why an approval does not count; at most ``MOST_NOTES``, each of at most ``LONGEST_TEXT`` characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """Why a run ended after its snapshot: nothing differs from a good one."""

    format_version: FormatVersion = "1.0"
    sentence: str
    run: str
    """Name of the good run."""
    full_check_at: datetime
    """Time from which a run makes every check again, UTC."""
    commit: str | None
    """Commit of the files of this run; None means that they have none."""
