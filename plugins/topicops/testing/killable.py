"""``python -m topicops.testing.killable apply plan.json``: the command, which dies where ``kill_points`` is told to."""

from __future__ import annotations

from topicops import cli
from topicops.flow.interception import PORT_WRAPPERS
from topicops.testing.kill_points import KillWrappers, from_environment

if __name__ == "__main__":
    PORT_WRAPPERS.set(KillWrappers(from_environment()))
    cli.main()
