"""Before anything new is sent: what came of the requests of runs that ended in the middle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from topicops.edges.home.artifacts import ArtifactStore
from topicops.edges.home.audit_files import read_audit_log
from topicops.edges.home.audit_log import FileAuditLog
from topicops.edges.home.journal import (
    FileJournal,
    JournalEntry,
    OpenJournal,
    abandoned,
    open_intents,
    open_journals_folder,
    read_journal,
    unregister,
)
from topicops.flow.runs.access import PORT_WRAPPERS
from topicops.flow.runs.run import Run, audit_folder
from topicops.model.errors import ArtifactError
from topicops.model.plans.plan import GatedChange
from topicops.model.plans.plan_file import plan_from_json
from topicops.model.ports import LiveReader
from topicops.model.runs.results import Mutation
from topicops.steps.applying.recovery import recover_intents


def recover_earlier_runs(run: Run, home: Path, environment: str, reader: LiveReader) -> list[str]:
    """Close the intents that earlier runs of the environment left open, under the lease; a sentence for each.

    An intent that cannot be closed gets a sentence too, and stays open: safety does not depend on it.

    Raises:
        ClusterError: The cluster cannot be read.
    """
    folder = open_journals_folder(home, environment)
    sentences: list[str] = []
    with abandoned(folder) as entries:
        for entry in entries:
            try:
                sentences += _recover(run.name, audit_folder(home), entry, reader)
                unregister(folder, entry)
            except ArtifactError as error:
                sentences.append(f"run {entry.origin.run} ended in the middle; its requests cannot be checked: {error}")
    for sentence in sentences:
        run.progress(f"Earlier: {sentence}")
    return sentences


def _recover(by: str, audit: Path, entry: OpenJournal, reader: LiveReader) -> list[str]:
    journal = Path(entry.journal)
    intents = open_intents(read_journal(journal)) if ArtifactStore(journal.parent).has(journal.name) else ()
    found = recover_intents(_changes(journal, intents), run=entry.origin.run, by=by, reader=reader)
    if not found:
        return []
    wrappers = PORT_WRAPPERS.get()
    missing = _without_line(audit, entry, [each.mutation for each in found])
    if missing:
        wrappers.earlier_audit(FileAuditLog(audit, entry.origin)).append(missing)
    wrappers.earlier_journal(FileJournal(journal)).record([each.outcome for each in found])
    return [each.sentence for each in found]


def _changes(journal: Path, intents: Sequence[JournalEntry]) -> list[GatedChange]:
    """What was intended, from the plan beside the journal. Raises ``ArtifactError`` when it is not there any more."""
    if not intents:
        return []
    path = journal.parent / "plan.json"
    try:
        planned = {gated.digest: gated for gated in plan_from_json(path.read_text(encoding="utf-8")).changes}
    except (OSError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{path}: cannot be read: {error}; look at the topics it named") from error
    if unknown := [intent.topic for intent in intents if intent.digest not in planned]:
        raise ArtifactError(f"{path}: is not the plan of {journal.name}; look at {', '.join(unknown)}")
    return [planned[intent.digest] for intent in intents]


def _without_line(audit: Path, entry: OpenJournal, mutations: Sequence[Mutation]) -> list[Mutation]:
    """Those that are not in the audit log: a run may have ended between its two lines."""
    log = read_audit_log(audit, entry.origin.environment, may_begin_with=lambda line: line.n <= entry.audit_lines)
    written = {line.digest for line in log.lines if line.n > entry.audit_lines and line.run == entry.origin.run}
    return [mutation for mutation in mutations if mutation.digest not in written]
