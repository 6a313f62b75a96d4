"""Options and texts that the commands of ``topicops ci`` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

FOLDER = Path("pull-request")

FolderArgument = Annotated[
    Path,
    typer.Argument(metavar="[FOLDER]", help="Where `ci plan` and `ci trigger` leave their files for later commands."),
]
NumberOption = Annotated[
    int | None, typer.Option("--number", help="Of the pull request. Default: by the CI.", show_default=False)
]
RepositoryOption = Annotated[
    str | None,
    typer.Option("--repository", help="acme/topics on GitHub or GitLab. Default: by the CI.", show_default=False),
]
