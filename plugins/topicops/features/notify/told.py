"""What each receiver knows: it gets a cause once, and once more when it is over."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from topicops.edges.home.memories import MemoryFile
from topicops.edges.places import Place
from topicops.features.notify import events as run_events
from topicops.features.notify.events import Event, EventKind, Told
from topicops.flow.reporting import run_report
from topicops.flow.runs.memory import read_rejections, unverified_of
from topicops.flow.runs.outcomes import outcomes_so_far
from topicops.flow.runs.run import DRIFT_FILE, EnvironmentRun
from topicops.model.errors import ArtifactError, TopicopsError
from topicops.model.plans.changes import GateWord
from topicops.model.printable import plural
from topicops.steps.planning.diff import DriftReport
from topicops.steps.reporting.run_report import RunReport

NOTHING_SENT = "nothing was sent"
END_TOLD_FILE = "end-told"

Tell = Callable[[Event], bool]
"""Function that sends to one receiver; returns whether the receiver took it."""


class Telling:
    """The events of one run, and what each receiver knows of them."""

    def __init__(
        self,
        run: EnvironmentRun,
        report: RunReport,
        found: Sequence[Event],
        judged: Collection[EventKind],
        *,
        approval: str = "",
        now_so: str = "",
    ) -> None:
        """
        Args:
            judged: The lasting kinds that this run could see; empty for a run that sees a part only.
            approval: The DAG that asks: a run that judged the whole and did not fail ends what failed there.
            now_so: Sentence for a trouble that is over; empty means the report's headline.
        """
        self.events = tuple(found)
        over = run_events.recovered(report, found, judged)
        self._over = replace(over, verdict=now_so or over.verdict)
        self._run, self._judged = run, judged
        self._rules = run_events.evaluated_rules(report) if judged else frozenset[str]()
        self._lasting = MemoryFile(_file_of(run), Told)
        self._of_run = MemoryFile(run.store.path("told.json"), Told)  # what was told of this run alone
        self.problems: list[str] = []
        """Reasons why sent events cannot be remembered."""
        self._unsaved: list[tuple[str, Event]] = []
        self._approvals = MemoryFile(_file_of(run, approval), Told) if approval and judged else None

    def tell(self, receiver: str, tell: Tell) -> tuple[Event, ...]:
        """Tell one receiver what is new to it; returns what it took. The rest is new to it again after the next run."""
        heard = []
        for event in run_events.news(self.events, self._known_to(receiver), self._over, rules=self._rules):
            if tell(event):
                self._remember(receiver, event)
                heard.append(event)
        return tuple(heard)

    def _known_to(self, receiver: str) -> dict[str, str]:
        approvals = _read(self._approvals).causes.get(receiver, {}) if self._approvals else {}
        of_run, lasting = (_read(memory).causes.get(receiver, {}) for memory in (self._of_run, self._lasting))
        return {**{kind: cause for kind, cause in approvals.items() if kind == "failed"}, **of_run, **lasting}

    def _remember(self, receiver: str, event: Event) -> None:
        memory = self._lasting if event.kind == "recovered" or event.kind in self._judged else self._of_run
        told = _read(memory)
        causes = run_events.told_after(told.causes.get(receiver, {}), event, self.events)
        try:
            memory.write(replace(told, causes={**told.causes, receiver: causes}))
            if self._approvals and event.kind == "recovered" and "failed" in event.cause.split():
                told = _read(self._approvals)
                left = {kind: cause for kind, cause in told.causes.get(receiver, {}).items() if kind != "failed"}
                self._approvals.write(replace(told, causes={**told.causes, receiver: left}))
        except ArtifactError as error:
            self.problems.append(str(error))
            self._unsaved.append((receiver, event))

    def remember(self) -> bool:
        """Write down what was told and could not be written then; returns whether all is written now."""
        unsaved, self._unsaved = self._unsaved, []
        for receiver, event in unsaved:
            self._remember(receiver, event)
        return not self._unsaved


def telling_of_run(
    run: EnvironmentRun, *, mode: str, failed_tasks: Sequence[str], is_whole: bool, approval: str = ""
) -> Telling:
    """Make what is told at the end of a run of the pipeline, or of the DAG that asks.

    Args:
        mode: ``apply``, ``plan`` or ``approval``.
        is_whole: Whether the run looked at all topics.
    """
    report = run_report(run, failed_tasks=failed_tasks)
    rejected = frozenset(read_rejections(run.home, run.environment))
    held = report.plan.with_gate(GateWord.HELD) if report.plan else ()
    asked = rejected.union(gated.digest for gated in held if gated.approvable)
    found = tuple(run_events.events_of_run(report, mode=mode, asked=asked))
    if mode == "approval":
        # Each question is another matter: the same failure of two of them has two causes.
        each = [replace(event, cause=f"{event.cause} {run.name}") for event in found]
        return Telling(run, report, each, frozenset(("failed",)))
    return Telling(run, report, found, run_events.judged_by(report) if is_whole else frozenset(), approval=approval)


def telling_of_drift(run: EnvironmentRun, *, is_whole: bool) -> Telling:
    """Make what is told at the end of a run of the drift DAG."""
    report = _no_report(run)
    entries = run.store.read_value(DRIFT_FILE, DriftReport).drift
    lines = [f"{entry.topic} {entry.field or ''}".rstrip() + f": {entry.kind}" for entry in entries]
    found = tuple(run_events.drift_event(report, lines))
    return Telling(run, report, found, frozenset(("drift", "failed")) if is_whole else frozenset())


def telling_of_one(run: EnvironmentRun, *, kind: EventKind, verdict: str, changes: int) -> Telling:
    """Make the one event of a question, of its answer, or of moves that ended."""
    event = replace(_event(run, kind, verdict, cause=verdict), counts={"changes": changes})
    return Telling(run, _no_report(run), (event,), frozenset())


def note_end_told(run: EnvironmentRun) -> None:
    """Note that all receivers know how the run ended, so that none gets its failure again."""
    with suppress(ArtifactError):
        run.store.write_text(END_TOLD_FILE, "")


def telling_of_failure(run: EnvironmentRun, reason: str) -> Telling:
    """Make what is told of a run that failed without a report. Needs neither its folder nor the home."""
    with suppress(ArtifactError, OSError):  # then it is told, perhaps again
        if run.store.has(END_TOLD_FILE):
            return Telling(run, _no_report(run), (), frozenset())
    left, is_whole = _left_by(run), not run.name.startswith("topic_approval_")
    # A question is another matter each time, and so is what was sent.
    cause = reason if is_whole and left == NOTHING_SENT else f"{reason} {run.name}"
    event = _event(run, "failed", f"The run failed: run {run.name}: {reason.rstrip('.')}; {left}.", cause=cause)
    return Telling(run, _no_report(run), (event,), frozenset(("failed",)))


def telling_of_files(run: EnvironmentRun, fetched_at: datetime | None) -> Telling:
    """Make what is told of the files at the end of any run. None means that Airflow still fetches them."""
    said = f"Airflow fetched the files last at {fetched_at:%Y-%m-%d %H:%M} UTC" if fetched_at else ""
    verdict = f"{said}: runs do not know what was changed since. See the log of the DAG processor."
    found = (_event(run, "outdated", verdict, cause="not fetched"),) if fetched_at else ()
    return Telling(run, _no_report(run), found, frozenset(("outdated",)), now_so="Airflow fetches the files again.")


def _no_report(run: EnvironmentRun) -> RunReport:
    return RunReport(environment=run.environment, run=run.name)


def _event(run: EnvironmentRun, kind: EventKind, verdict: str, *, cause: str) -> Event:
    return Event(kind=kind, environment=run.environment, verdict=verdict, cause=cause, run=run.name)


def _left_by(run: EnvironmentRun) -> str:
    """Say what the run has sent, and what of it is not verified."""
    try:
        sent = [outcome for outcome in outcomes_so_far(run) if outcome.sent]
        unverified = unverified_of(run)
        left = {outcome.topic for outcome in sent} & {*unverified.own(), *unverified.earlier()}
    except (TopicopsError, OSError) as error:
        return f"what it has sent cannot be read: {error}"
    if not sent:
        return NOTHING_SENT
    names = run_events.named(f"{outcome.action} {outcome.topic}" for outcome in sent)
    unseen = f"; {plural(len(left), 'topic')} not verified, which the next run does first" if left else ""
    return f"{plural(len(sent), 'change')} sent: {names}{unseen}"


def _file_of(run: EnvironmentRun, dag: str = "") -> Place:
    return run.home / "told" / f"{dag or run.name.partition('/')[0]}.json"


def _read(memory: MemoryFile[Told]) -> Told:
    """Read the sent events; after damage they are sent again."""
    try:
        return memory.read() or Told()
    except ArtifactError:
        return Told()
