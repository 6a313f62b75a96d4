"""A folder of specs judged as ``validate`` shows it: from memory where no file has changed since."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from topicops.edges.specs.cache import Judgement, ParseCache, users_cache
from topicops.model.gc_pause import gc_paused


@gc_paused()
def judge(topics: Path, *, environment: str | None, now: datetime, cache: ParseCache | None = None) -> Judgement:
    """Every problem of every file, as ``steps.validate.validate`` finds them.

    Args:
        environment: None: as each environment has them.
        cache: The user's own when left out.

    Raises:
        UsageError: there is no such folder, or no such environment.
    """
    cache = cache or users_cache()
    found = cache.look(topics)
    kept = cache.judgement(found, environment, now)
    if kept is not None:
        return kept
    from topicops.steps.specs.validate import validate  # slow to import, and not needed for what is kept

    tree, agrees = cache.read(found)
    validated = validate(tree, environment=environment, now=now)
    judgement = Judgement(
        diagnostics=validated.diagnostics, files=validated.files, since=now, until=validated.holds_until
    )
    if agrees:
        cache.keep(found, environment, judgement)
    return judgement
