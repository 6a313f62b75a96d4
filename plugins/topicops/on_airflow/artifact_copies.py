"""Copies of a run's results in an object store, for people and programs that do not reach ``TOPICOPS_HOME``.

The run itself stays in its folder: leases, journals and the audit log need locks that object stores do not have.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.sdk import ObjectStoragePath

    from topicops.flow.runs.run import Run
    from topicops.model.runs.results import RunResult

log = logging.getLogger(__name__)

COPIED = (
    "run.json",
    "plan.json",
    "quality-before.json",
    "quality-after.json",
    "report.txt",
    "report.md",
    "report.json",
)
RESULT = "result.json"
"""What CI is told, as in the XCom ``result``."""
ON_DISK = ("", "file", "local")
"""Protocols of stores that have folders."""


def copy_artifacts(run: Run, result: RunResult) -> None:
    """Copy what the run found to ``$TOPICOPS_ARTIFACTS/<DAG>/<run>/``; a problem is logged and fails nothing.

    ``TOPICOPS_ARTIFACTS`` is any address of Airflow's ``ObjectStoragePath``, such as ``s3://conn_id@bucket/prefix``.
    """
    if not (address := os.environ.get("TOPICOPS_ARTIFACTS")):
        return
    import msgspec
    from airflow.sdk import ObjectStoragePath

    try:
        folder = ObjectStoragePath(address) / run.store.folder.parent.name / run.store.folder.name
        for name in COPIED:
            if run.store.has(name):
                _write(folder / name, run.store.path(name).read_bytes())
        _write(folder / RESULT, msgspec.json.encode(result))
    except Exception as error:  # noqa: BLE001 - each store has errors of its own, and a copy must fail no run
        log.warning("the run's artifacts are not copied (TOPICOPS_ARTIFACTS): %s: %s", type(error).__name__, error)
        return
    log.info("copied the run's artifacts to %s", folder)


def _write(path: ObjectStoragePath, content: bytes) -> None:
    if path.protocol in ON_DISK:
        path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
