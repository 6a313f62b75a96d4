"""Whom Airflow names as the owner of an environment's DAGs; apart, because a DAG file is parsed every half minute."""

from __future__ import annotations

import re

LONGEST = 100
_LINK = re.compile(r"https?://[^\s/?#]\S*|mailto:[^\s?#]\S*")


def owner_problem(written: str) -> str | None:
    """What is wrong with a name; None: nothing is. Airflow joins the owners of a DAG's tasks with commas."""
    if "," not in written and written.isprintable() and written == written.strip() and 0 < len(written) <= LONGEST:
        return None
    return f"{written[:LONGEST]!r} is no owner: write one name without a comma, of at most {LONGEST} characters"


def owner_link_problem(written: str) -> str | None:
    """What is wrong with a link; None: Airflow takes it."""
    return None if _LINK.fullmatch(written) else f"{written[:LONGEST]!r} is no link: write https://… or mailto:…"
