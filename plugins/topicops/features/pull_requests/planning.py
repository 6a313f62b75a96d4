"""Plan a pull request as if it was merged, for every environment that it touches. The cluster is only read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from topicops.edges.home.artifacts import ArtifactStore
from topicops.edges.places import Place
from topicops.edges.specs.open_files import OWNERS_FILE, environment_files
from topicops.features.pull_requests.branches import Branches, changed_topics, open_branches
from topicops.features.pull_requests.edges.git_trees import commit_id, is_ancestor
from topicops.features.pull_requests.hidden_edits import hidden_edits
from topicops.features.pull_requests.owners import (
    changed_owners,
    claims_on_names,
    owner_of,
    owner_remarks,
    reviewer_remarks,
    reviewers_by_owner,
)
from topicops.features.pull_requests.values import (
    PLAN_FILE,
    PULL_REQUEST_FILE,
    PlannedEnvironment,
    PlannedPullRequest,
    PullRequestPlan,
    ReviewRules,
)
from topicops.flow.engines import PYTHON
from topicops.flow.planning import compare, gate_changes, plan_changes, read_snapshot, specs_of
from topicops.flow.runs.access import NO_MOVES, Moves
from topicops.flow.runs.kept import keep_plan, keep_specs, prune
from topicops.flow.runs.run import EnvironmentRun, no_progress, now, open_run, read_environment
from topicops.model.codes import Code
from topicops.model.errors import SpecError, TopicopsError, UsageError
from topicops.model.plans.plan import Plan
from topicops.model.plans.plan_file import plan_from_json, plan_to_json
from topicops.model.printable import plural
from topicops.model.specs.desired import Desired
from topicops.steps.reporting.diagnostics_text import diagnostics_text
from topicops.steps.reporting.plan_wording import some

GROUP = "ci"
"""Folder of these runs below ``runs``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """Which environments of a pull request are planned, and where."""

    number: int | None
    only: Collection[str]
    """Environments to plan, if the pull request touches them; empty: all that it touches."""
    run_id: str
    home: Place
    moves: Moves = NO_MOVES
    progress: Callable[[str], None] = no_progress


def plan_pull_request(topics: Path, *, base: str, head: str, planning: Planning) -> PlannedPullRequest:
    """Plan the merge of ``base`` and ``head`` by the policy of ``base``.

    What keeps one environment from being planned is told in its place, and stops no other. What keeps the whole pull
    request from being planned, such as a conflict or a missing commit, is its ``problem``.
    """
    try:
        return _planned(topics, base, head, planning)
    except UsageError as error:
        base, head = (_commit_or_name(topics, name) for name in (base, head))
        summary = PullRequestPlan(number=planning.number, base_commit=base, head_commit=head, problem=str(error))
        return PlannedPullRequest(summary=summary, plans={})


def _commit_or_name(topics: Path, name: str) -> str:
    try:
        return commit_id(topics.parent, name)
    except UsageError:
        return name


def _planned(topics: Path, base: str, head: str, planning: Planning) -> PlannedPullRequest:
    if is_ancestor(topics.parent, head, base):  # the merge would change nothing, and look harmless
        raise UsageError(f"{base} already contains {head}: name the base branch's commit with --base")
    with open_branches(topics, base=base, head=head) as branches:
        if unknown := sorted(set(planning.only) - set(branches.environments)):
            known = ", ".join(branches.environments) or "none"
            raise UsageError(f"{', '.join(unknown)}: no such environment on the base branch; there are: {known}")
        return _planned_branches(branches, planning)


def _planned_branches(branches: Branches, planning: Planning) -> PlannedPullRequest:
    plans: dict[str, Plan] = {}
    found, left_out, effects = list[PlannedEnvironment](), list[str](), dict[str, tuple[str, ...]]()
    owners: dict[str, tuple[str, str]] = {}
    prune(planning.home, now=now())
    both = {
        environment: tuple(branches.desired(topics, environment) for topics in (branches.before, branches.after))
        for environment in branches.environments
    }
    hidden = hidden_edits(branches, {environment: after for environment, (_, after) in both.items() if after})
    for environment, (before, after) in both.items():
        own = _own(branches, before, after)
        owners |= changed_owners(before, after) if before is not None and after is not None else {}
        if branches.policy_files:
            effects[environment] = _effects(branches, environment, after)
        if planning.only and environment not in planning.only:
            left_out.append(environment)
        elif own is None or own or effects.get(environment) or environment in hidden:
            entry = PlannedEnvironment(environment=environment, own=own or ())
            entry, plan = _plan_environment(branches, entry, before, after, planning)
            found.append(entry)
            plans |= {environment: plan} if plan is not None else {}
    reviewers = reviewers_by_owner(branches.before)
    remarks = [*hidden.values(), *_policy_remarks(branches, effects), *owner_remarks(owners, reviewers)]
    if OWNERS_FILE in branches.changed:
        remarks += reviewer_remarks(reviewers, reviewers_by_owner(branches.after_with_policy))
    if not branches.environments:
        remarks.append(
            "The base branch has no environment below environments/, so nothing is planned: merge the file of the "
            "environment first."
        )
    summary = PullRequestPlan(
        number=planning.number,
        base_commit=branches.base_commit,
        head_commit=branches.head_commit,
        topic_files=branches.topic_files,
        reviewers=reviewers,
        remarks=tuple(remarks),
        environments=tuple(found),
        left_out=tuple(left_out),
    )
    return PlannedPullRequest(summary=summary, plans=plans)


def _own(branches: Branches, before: Desired | None, after: Desired | None) -> tuple[str, ...] | None:
    """Name the topics that the pull request changes in this environment. None means that this cannot be said."""
    if before is None or after is None:
        return None if branches.topic_files else ()
    # A file with errors is left out, so its topic may look as if nothing had changed.
    changed = {f"{after.prefix}{Path(file).stem}" for file in branches.changed}
    broken = changed & (after.left_out - before.left_out)
    return tuple(sorted({*changed_topics(before, after), *broken}))


def _effects(branches: Branches, environment: str, after: Desired | None) -> tuple[str, ...]:
    """Name the topics that the changed policy wants differently; none where its files cannot be read."""
    if environment not in environment_files(branches.after_with_policy) or after is None:
        return ()
    with_policy = branches.desired(branches.after_with_policy, environment)
    return changed_topics(after, with_policy) if with_policy is not None else ()


def _policy_remarks(branches: Branches, effects: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Yield what a reviewer must know about changed policy; ``effects`` are topics that it will want differently."""
    if not branches.policy_files:
        return
    yield (
        f"This pull request changes {some(branches.policy_files)}. The plan uses these files as the base branch has "
        "them; the change counts only after the merge."
    )
    for environment, topics in effects.items():
        if topics:
            yield f"After the merge they change {plural(len(topics), 'topic')} of {environment}: {some(topics)}."
    if branches.topic_files:
        yield (
            f"{Code.POLICY_AND_SPECS}: policy and topics change together. Split the pull request in two, and merge "
            "first what the other half needs: a limit, a profile or an owner before the topics that use it, a topic "
            "before an override or an exception that names it. To rename an owner, add the new one first, then change "
            "the topics, then remove the old one."
        )


def _plan_environment(
    branches: Branches, entry: PlannedEnvironment, before: Desired | None, after: Desired | None, planning: Planning
) -> tuple[PlannedEnvironment, Plan | None]:
    run = open_run(
        environment=entry.environment,
        topics=branches.after,
        group=GROUP,
        run_id=planning.run_id,
        home=planning.home,
        progress=lambda line: planning.progress(f"{entry.environment}: {line}"),
        part=entry.environment,
        moves=planning.moves,
    )
    run = replace(run, files=replace(run.files, named=f"{branches.folder}/"))
    try:
        plan = _plan(run, branches, entry.own)
    except TopicopsError as error:
        problem = str(error)
        if isinstance(error, SpecError):
            problem = diagnostics_text([d for d in error.diagnostics if d.is_error], lambda _: [])
        return replace(entry, problem=branches.named_as_in_git(problem)), None
    policy = read_environment(run)
    rules = ReviewRules(
        counts="review" in policy.spec.approvals,
        place=policy.place_of("policy.approvals"),
        author_approves=policy.spec.author_approves,
    )
    claims = claims_on_names(branches.before)
    owners = {
        gated.change.topic: owner_of(gated.change.topic, before, after, claims, is_new=gated.change.action == "create")
        for gated in plan.changes
        if gated.approvable and before and after
    }
    return replace(entry, owners=dict(sorted(owners.items())), rules=rules), plan


def _plan(run: EnvironmentRun, branches: Branches, own: Collection[str]) -> Plan:
    """Plan as ``make_plan`` does, with plain Python; files of other topics may have errors."""
    names = frozenset(own)
    run.progress("Reading the files")
    specs = specs_of(branches.judged(run.topics, run.environment, needs=names.__contains__), None)
    keep_specs(run, specs, as_tables=False)
    run.progress("Reading the live topics")
    access = run.access(specs.environment)
    snapshot = read_snapshot(run, access, specs.desired, states=True)
    comparison = compare(run, specs.desired, snapshot.live, engine=PYTHON, connections=run.connections)
    _, change_set = plan_changes(run, access, specs.desired, snapshot, comparison.delta)
    plan = gate_changes(run, specs.environment, change_set, is_merged=False).plan
    keep_plan(run, plan)
    return plan


# ---- the folder that later commands read ----


def write_planned(planned: PlannedPullRequest, folder: Path) -> None:
    """Write ``pull-request.json``, and ``<environment>.plan.json`` for each plan. Raises ``ArtifactError``."""
    store = ArtifactStore(folder)
    for environment, plan in planned.plans.items():
        store.write_text(PLAN_FILE.format(environment), plan_to_json(plan))
    store.write_json(PULL_REQUEST_FILE, planned.summary)


def read_planned(folder: Path) -> PlannedPullRequest:
    """Read what ``write_planned`` wrote. Raises ``ArtifactError``."""
    store = ArtifactStore(folder)
    summary = store.read_value(PULL_REQUEST_FILE, PullRequestPlan)
    planned = (entry.environment for entry in summary.environments if not entry.problem)
    plans = {name: plan_from_json(store.read_text(PLAN_FILE.format(name))) for name in planned}
    return PlannedPullRequest(summary=summary, plans=plans)
