"""``python -m topicops.testing.killable apply plan.json``: the command, which dies at the point of ``kill_points``."""

from __future__ import annotations

from topicops import cli
from topicops.flow.runs.access import PORT_WRAPPERS
from topicops.testing.kill_points import KillPointWrappers, from_environment

if __name__ == "__main__":
    PORT_WRAPPERS.set(KillPointWrappers(from_environment()))
    cli.main()
