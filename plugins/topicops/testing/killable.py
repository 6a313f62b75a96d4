"""``python -m topicops.testing.killable apply plan.json``: the command, which dies where ``kill_points`` is told to."""

from __future__ import annotations

from topicops import cli
from topicops.flow.interception import SEAMS
from topicops.testing.kill_points import KillSeams, from_environment

if __name__ == "__main__":
    SEAMS.set(KillSeams(from_environment()))
    cli.main()
