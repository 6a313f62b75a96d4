"""``topicops undo``: edits the files so that a run is taken back, as far as that is possible, and plans them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.output import print_result
from topicops.cli.shared_options import TextOrJsonOption, TopicsOption, new_run, one_environment


def undo_command(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]", help="`<group>/<run id>`, or the run id, as audit shows it. Default: the last one."
        ),
    ] = None,
    environment: Annotated[
        str | None, typer.Option("--environment", "-e", help="Whose run; a run may have changed several.")
    ] = None,
    topics: TopicsOption = Path("topics"),
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the plan to this file, for `apply`; only if a file was edited.")
    ] = None,
    output: TextOrJsonOption = "text",
) -> None:
    """Edit the files back to what they asked for before a run, and plan that; what cannot come back is shown first.

    Topics that the run created get tombstones. Nothing is written to the cluster.
    """
    from topicops.features.shared.writer import replace_text
    from topicops.features.undo.undoing import undo, undo_text
    from topicops.flow import reporting
    from topicops.flow.planning import make_plan
    from topicops.flow.runs.run import save_plan
    from topicops.model.json_types import json_text
    from topicops.model.plans.plan_file import plan_to_json
    from topicops.plugged import ENGINES, after_run, moves

    if run is None:
        environment = one_environment(environment, topics)
    found = undo(run, environment, topics, moves=moves())
    for edit in found.edits:
        replace_text(Path(edit.file), edit.after, before=edit.before)
    if output == "text":
        print_result(undo_text(found))
    plan = None
    if found.edits:
        made = new_run(found.environment, topics)
        planned = make_plan(made, engines=ENGINES, only=found.topics)
        after_run(made, planned.results())
        plan = planned.plan
    if output == "json":
        print_result(json_text(replace(found, plan=json.loads(plan_to_json(plan)) if plan else None)))
    elif plan is not None:
        print_result(f"\n{reporting.render(plan, 'text')}")
    if plan is not None and out is not None:
        save_plan(plan, out)
