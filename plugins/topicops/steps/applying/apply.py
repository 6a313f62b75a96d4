"""Send what the plan says and may run, each change only while its topic is still as the plan saw it.

Every change that was to run ends with exactly one outcome, whatever happens on the way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence

from topicops.model.plans.changes import ACTIONS, Action, DeleteTopic, GateWord
from topicops.model.plans.plan import GatedChange, Plan
from topicops.model.ports import ApplyPorts, Clock, ServerTime
from topicops.model.runs.results import Outcome
from topicops.model.specs.environment import EnvironmentSpec
from topicops.model.unexpected import log_error, sentence
from topicops.steps.applying.batches import batches
from topicops.steps.applying.delete_waves import run_deletes
from topicops.steps.applying.disks import Disks
from topicops.steps.applying.dry_run import fail_rejected
from topicops.steps.applying.in_use import TopicsInUse
from topicops.steps.applying.ledger import Ledger
from topicops.steps.applying.sending import Sender, StopError

logger = logging.getLogger(__name__)


def apply(
    plan: Plan,
    ports: ApplyPorts,
    *,
    actions: Collection[Action] = ACTIONS,
    environment: EnvironmentSpec,
    clock: Clock,
    server_time: ServerTime | None = None,
    progress: Callable[[Outcome], None] = lambda _: None,
    unwritten: Callable[[str], None] = lambda _: None,
    interrupted: Callable[[], bool] = lambda: False,
) -> tuple[Outcome, ...]:
    """Give one outcome for each change of ``actions`` that the gate lets run, in the plan's order.

    ``server_time`` is what a server of the cluster told, after the lease was taken; None: none tells its time.
    ``progress`` is called with each outcome once it is written; ``unwritten`` with the reason why one was not, which
    stands in no outcome if it was the last; ``interrupted`` is asked before each request, once true
    nothing more is sent.

    No ``Exception`` leaves this function, whatever its reason: it ends the run, the outcomes say why.
    """
    to_run = [gated for gated in plan.with_gate(GateWord.RUN) if gated.change.action in actions]
    ledger = Ledger(plan=plan, ports=ports, progress=progress)
    in_use = TopicsInUse(
        plan=plan, questions=ports.questions, environment=environment, clock=clock, server_time=server_time
    )
    disks = Disks(questions=ports.questions, clock=clock)
    sender = Sender(ports=ports, clock=clock, interrupted=interrupted, ledger=ledger, in_use=in_use, disks=disks)
    try:
        _run(to_run, sender, environment)
    except StopError as stop:
        ledger.close(to_run, str(stop))
    except Exception as error:  # noqa: BLE001 - whatever it is, requests may have been sent, and must be reported
        log_error(logger, f"apply stopped environment={plan.target.environment}", error)
        ledger.close(to_run, sentence(error))
    if ledger.problem:
        unwritten(ledger.problem)
    return tuple(ledger.outcomes[gated.digest] for gated in to_run)


def _run(to_run: Sequence[GatedChange], sender: Sender, environment: EnvironmentSpec) -> None:
    growing = [gated for gated in to_run if not isinstance(gated.change, DeleteTopic)]
    deletes = [gated for gated in to_run if isinstance(gated.change, DeleteTopic)]
    if growing:
        # Decides what needs no request, before the brokers' dry run could mistake it for an error.
        sender.confirm_lease()
        sender.recheck(growing)
        sender.ledger.write()
    if environment.apply.validate_only:
        for batch in batches(sender.ledger.undecided(growing), environment):
            fail_rejected(batch, sender)
    for batch in batches(sender.ledger.undecided(growing), environment):
        sender.send_until_decided(batch)
    run_deletes(deletes, sender, limit_s=environment.verify.deletes.total_seconds())
