"""``topicops doctor``: what topicops can read and do on a cluster, and each problem with its fix."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.output import print_result
from topicops.cli.runs import unrecorded_run
from topicops.cli.shared_options import EnvironmentOption, TextOrJsonOption, TopicsOption, one_environment
from topicops.model.errors import ExitStatus


def doctor_command(
    environment: EnvironmentOption = None,
    topics: TopicsOption = Path("topics"),
    for_kraft: Annotated[
        bool,
        typer.Option(
            "--for-kraft",
            help="Find what stands in the way of a migration from ZooKeeper to KRaft; needs source: zookeeper.",
        ),
    ] = False,
    output: TextOrJsonOption = "text",
) -> None:
    """Find what would stop an apply: versions, permissions, settings, clocks and metadata. Nothing is written."""
    from topicops.features.doctor.reading import doctor, doctor_for_kraft
    from topicops.features.doctor.text import doctor_text
    from topicops.model.json_types import json_text
    from topicops.plugged import ENGINES

    run = unrecorded_run(one_environment(environment, topics), topics)
    if for_kraft:
        report = doctor_for_kraft(run)
    else:
        report = doctor(run, spark_starts_slowly=any(engine.starts_slowly() for engine in ENGINES))
    print_result(json_text(report) if output == "json" else doctor_text(report))
    if report.has_errors:
        raise typer.Exit(ExitStatus.ERROR)
