"""The comment that names a file's JSON Schema, for every editor that runs the YAML language server."""

from __future__ import annotations

SCHEMAS = ".schemas"
"""The folder beside the folder of specs; `topicops init` writes the schemas there."""


def schema_line(kind: str) -> str:
    """The first line of a file in a folder of ``topics/``.

    Source: yaml-language-server, README, "Using inlined schema"; a relative path begins at the file itself.
    """
    return f"# yaml-language-server: $schema=../../{SCHEMAS}/{kind}.v1.json"
