"""A question that waits: when the task that asks it looks at it again, and what it finds then.

Airflow's scheduler wakes the task by the time limit with which it waits, and a worker looks. So no triggerer is
needed, and notifiers of a DAG file can be told too. An answer that comes while the worker looks is kept: Airflow gives
it to the task as soon as the task waits again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from airflow.sdk import Context

from topicops.model.printable import plural
from topicops.on_airflow.params import answer_within, duration_of
from topicops.on_airflow.tellers import TELLERS

if TYPE_CHECKING:
    from topicops.flow.runs.questions import Question
    from topicops.flow.runs.run import EnvironmentRun, Run
    from topicops.on_airflow.tasks import Site

CHECK_EVERY, REMIND_AFTER = "5m", "1h"
SOON = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a question waits, and what happens meanwhile."""

    answer_within: timedelta
    check_every: timedelta
    """Zero means never."""
    remind_after: timedelta
    """Zero means never."""

    def is_over(self, asked_at: datetime, at: datetime) -> bool:
        return at >= asked_at + self.answer_within

    def reminds(self, asked_at: datetime, at: datetime) -> bool:
        return bool(self.remind_after) and at >= asked_at + self.remind_after

    def next_look(self, asked_at: datetime, at: datetime) -> timedelta:
        """How long to wait until somebody must look at the question again."""
        waited = at - asked_at
        times = [self.answer_within - waited]
        times += [self.check_every] if self.check_every else []
        times += [self.remind_after - waited] if self.remind_after > waited else []
        return max(SOON, min(times))


def patience() -> Patience:
    """By the settings. Raises ``UsageError``."""
    return Patience(
        answer_within=answer_within(),
        check_every=duration_of("TOPICOPS_CHECK_QUESTION_EVERY", CHECK_EVERY),
        remind_after=duration_of("TOPICOPS_REMIND_AFTER", REMIND_AFTER),
    )


def replacement(run: EnvironmentRun, digests: Collection[str]) -> str:
    """What replaced the set; empty while the newest held set still contains all of it."""
    from topicops.flow.runs.memory import read_held
    from topicops.model.runs.results import REPLACED

    newest = read_held(run.home, run.environment)
    if newest.covers(digests):
        return ""
    now_held = (
        ", ".join(sorted(address.replace(" topic.", " ", 1) for address in newest.addresses.values())) or "nothing"
    )
    return f"{REPLACED} {newest.found_by or 'no run'}, which holds {now_held}"


def withdraw(run: Run, site: Site, context: Context, why: str) -> None:
    """Record that nobody is asked any more, and tell it."""
    from topicops.flow.runs.questions import read_answer, read_question, write_answer
    from topicops.on_airflow.question import listed_titles

    question, answer = read_question(run), read_answer(run)
    if question is None or answer is None:
        return
    write_answer(run, replace(answer, withdrawn=why))
    named = listed_titles(run.read_plan(), question.digests)
    verdict = f"The question is out of date, and nobody is asked any more: {named}; {why}"
    for teller in TELLERS:
        teller.tell_of_answer(
            run,
            site.options.notifiers,
            context,
            kind="withdrawn",
            verdict=lambda: verdict,
            changes=len(question.digests),
        )


def remind(
    run: EnvironmentRun, question: Question, site: Site, context: Context, *, asked_at: datetime, link: str
) -> None:
    """Tell the notifiers that nobody has answered yet."""
    from topicops.on_airflow.question import listed_titles

    changes = len(question.digests)
    waits = "still waits" if changes == 1 else "still wait"
    verdict = (
        f"{plural(changes, 'change')} of {run.environment} {waits} for an approval, "
        f"since {asked_at:%Y-%m-%d %H:%M} UTC: {listed_titles(run.read_plan(), question.digests)}"
    )
    for teller in TELLERS:
        teller.tell_of_answer(
            run, site.options.notifiers, context, kind="held", verdict=lambda: verdict, changes=changes, link=link
        )
