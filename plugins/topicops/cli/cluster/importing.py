"""``topicops import``: write specs for live topics, so that the next plan changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.output import print_result
from topicops.cli.runs import unrecorded_run
from topicops.cli.shared_options import EnvironmentOption, TextOrJsonOption, TopicsOption, one_environment


def import_command(
    environment: EnvironmentOption = None,
    topics: TopicsOption = Path("topics"),
    owner: Annotated[
        str | None,
        typer.Option("--owner", help="Who is responsible for the imported topics that no pattern of the owners fits."),
    ] = None,
    owners: Annotated[
        Path | None,
        typer.Option("--owners", help="A file of owners with patterns of names. Default: owners.yaml of the topics."),
    ] = None,
    only: Annotated[str | None, typer.Option("--only", help="Import only topics whose name matches this glob.")] = None,
    domain: Annotated[
        str | None,
        typer.Option("--domain", help="The folder for all of them. Default: the first dotted part of each name."),
    ] = None,
    output: TextOrJsonOption = "text",
) -> None:
    """Write a spec for each live topic that has none, so that the next plan changes nothing."""
    from topicops import flow
    from topicops.steps.authoring.import_topics import ImportOptions
    from topicops.steps.authoring.owners_and_domains import checked_domain
    from topicops.steps.reporting.specs.import_text import import_json, import_text

    options = ImportOptions(
        owners=flow.topic_owners(topics, owners, otherwise=owner),
        domain=None if domain is None else checked_domain(domain),
        only=only,
    )
    result = flow.import_topics(unrecorded_run(one_environment(environment, topics), topics), options)
    print_result(import_json(result) if output == "json" else import_text(result))
