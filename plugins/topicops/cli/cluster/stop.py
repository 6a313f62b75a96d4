"""``topicops stop``: ask the runs of an environment to send nothing more."""

from __future__ import annotations

from getpass import getuser
from pathlib import Path

from topicops.cli.output import print_result
from topicops.cli.shared_options import EnvironmentOption, TopicsOption, one_environment


def stop_command(environment: EnvironmentOption = None, topics: TopicsOption = Path("topics")) -> None:
    """Stop the runs of an environment that have begun: each asks before its next request. Later runs are not touched.

    In Airflow and in the shell, wherever the run has the same TOPICOPS_HOME.
    """
    from topicops.flow.runs.run import home_folder
    from topicops.flow.stopping import ask_to_stop

    name = one_environment(environment, topics)
    sending = ask_to_stop(home_folder(), name, by=getuser())
    lines = [f"Each run of {name} that has begun sends no further request. What it has sent stays: plan again."]
    lines += [f"Sending, or ended in the middle: {run}" for run in sending] or ["No run sends anything now."]
    print_result("\n".join(lines), "text")
