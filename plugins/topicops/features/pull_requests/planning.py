"""Plan a pull request as if it was merged, for every environment that it touches. The cluster is only read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from topicops.edges.connections.lookup import from_environment
from topicops.edges.home.artifacts import ArtifactStore
from topicops.edges.specs.open_files import environment_files
from topicops.features.pull_requests.branches import Branches, claims_on_names, open_branches, reviewers_by_owner
from topicops.features.pull_requests.edges.git_trees import commit_id, is_ancestor
from topicops.features.pull_requests.touched import (
    NO_ENVIRONMENT,
    OWNERS,
    changed_owners,
    changed_topics,
    owner_of,
    owner_remarks,
    policy_remarks,
    reviewer_remarks,
)
from topicops.features.pull_requests.values import (
    PULL_REQUEST_FILE,
    PlannedEnvironment,
    PullRequestPlan,
    ReviewRules,
    plan_file_of,
)
from topicops.flow.engines import PYTHON
from topicops.flow.planning import compare, gate_changes, plan_changes, read_snapshot, specs_of
from topicops.flow.runs.kept import keep_plan, keep_specs, prune
from topicops.flow.runs.run import EnvironmentRun, no_progress, now, open_run, read_environment
from topicops.model.errors import SpecError, TopicopsError, UsageError
from topicops.model.plans.plan import Plan
from topicops.model.plans.plan_file import plan_from_json, plan_to_json
from topicops.model.ports import ConnectionSource
from topicops.model.specs.desired import Desired
from topicops.steps.reporting.specs.diagnostics_text import diagnostics_text

GROUP = "ci"
"""The folder of these runs below ``runs``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPullRequest:
    """The summary, and the plan of each environment that could be planned."""

    summary: PullRequestPlan
    plans: Mapping[str, Plan]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """Where the plans of one pull request are made."""

    run_id: str
    home: Path
    connections: ConnectionSource = from_environment
    progress: Callable[[str], None] = no_progress


def plan_pull_request(
    topics: Path,
    *,
    base: str,
    head: str,
    number: int | None,
    only: Collection[str],
    planning: Planning,
) -> PlannedPullRequest:
    """Plan the merge of ``base`` and ``head`` by the policy of ``base``.

    What keeps one environment from being planned is told in its place, and stops no other. What keeps the whole pull
    request from being planned, such as a conflict or a missing commit, is its ``problem``.

    Args:
        topics: The folder of topics in a clone that has both commits.
        only: Environments to plan, if the pull request touches them; empty: all that it touches.
    """
    try:
        _require_unmerged(topics.parent, base, head)
        with open_branches(topics, base=base, head=head) as branches:
            _require_known(only, branches.environments)
            return _planned(branches, number, only, planning)
    except UsageError as error:
        summary = PullRequestPlan(
            number=number,
            base_commit=_commit_or_name(topics, base),
            head_commit=_commit_or_name(topics, head),
            topic_files=(),
            problem=str(error),
        )
        return PlannedPullRequest(summary=summary, plans={})


def _require_unmerged(repository: Path, base: str, head: str) -> None:
    """Else the merge would change nothing, and the pull request would look harmless."""
    if is_ancestor(repository, head, base):
        raise UsageError(f"{base} already contains {head}: name the base branch's commit with --base")


def _require_known(only: Collection[str], environments: Collection[str]) -> None:
    if unknown := sorted(set(only) - set(environments)):
        known = ", ".join(environments) or "none"
        raise UsageError(f"{', '.join(unknown)}: no such environment on the base branch; there are: {known}")


def _commit_or_name(topics: Path, name: str) -> str:
    try:
        return commit_id(topics.parent, name)
    except UsageError:
        return name


def _planned(branches: Branches, number: int | None, only: Collection[str], planning: Planning) -> PlannedPullRequest:
    plans: dict[str, Plan] = {}
    found, left_out, effects = list[PlannedEnvironment](), list[str](), dict[str, tuple[str, ...]]()
    owners: dict[str, tuple[str, str]] = {}
    prune(planning.home, now=now())
    for environment in branches.environments:
        before, after = (branches.desired(topics, environment) for topics in (branches.before, branches.after))
        own = _own(branches, before, after)
        owners |= changed_owners(before, after) if before is not None and after is not None else {}
        if branches.policy_files:
            effects[environment] = _effects(branches, environment, after)
        if only and environment not in only:
            left_out.append(environment)
            continue
        if own is not None and not own and not effects.get(environment):
            continue
        entry, plan = _plan_environment(branches, environment, own or (), before, after, planning)
        found.append(entry)
        if plan is not None:
            plans[environment] = plan
    reviewers = reviewers_by_owner(branches.before) if branches.before.is_dir() else {}
    summary = PullRequestPlan(
        number=number,
        base_commit=branches.base_commit,
        head_commit=branches.head_commit,
        topic_files=branches.topic_files,
        reviewers=reviewers,
        remarks=tuple(_remarks(branches, effects, owners, reviewers)),
        environments=tuple(found),
        left_out=tuple(left_out),
    )
    return PlannedPullRequest(summary=summary, plans=plans)


def _remarks(
    branches: Branches,
    effects: Mapping[str, tuple[str, ...]],
    owners: Mapping[str, tuple[str, str]],
    reviewers: Mapping[str, tuple[str, ...]],
) -> Iterator[str]:
    yield from policy_remarks(branches.policy_files, branches.topic_files, effects)
    yield from owner_remarks(owners, reviewers)
    if OWNERS in branches.changed:
        with_policy = branches.after_with_policy
        yield from reviewer_remarks(reviewers, reviewers_by_owner(with_policy) if with_policy.is_dir() else {})
    if not branches.environments:
        yield NO_ENVIRONMENT


def _own(branches: Branches, before: Desired | None, after: Desired | None) -> tuple[str, ...] | None:
    """Topics that the pull request changes in this environment; None: that cannot be said."""
    if before is None or after is None:
        return None if branches.topic_files else ()
    files = {f"{branches.folder}/{path}" for path in branches.changed}
    # A file with errors is left out, so its topic may look as if nothing had changed.
    broken = {Path(file).stem for file in files} & (after.left_out - before.left_out)
    return tuple(sorted({*changed_topics(before, after), *broken}))


def _effects(branches: Branches, environment: str, after: Desired | None) -> tuple[str, ...]:
    """Topics that the changed policy wants differently; none where its files cannot be read."""
    if environment not in environment_files(branches.after_with_policy) or after is None:
        return ()
    with_policy = branches.desired(branches.after_with_policy, environment)
    return changed_topics(after, with_policy) if with_policy is not None else ()


def _plan_environment(
    branches: Branches,
    environment: str,
    own: tuple[str, ...],
    before: Desired | None,
    after: Desired | None,
    planning: Planning,
) -> tuple[PlannedEnvironment, Plan | None]:
    run = open_run(
        environment=environment,
        topics=branches.after,
        group=GROUP,
        run_id=planning.run_id,
        home=planning.home,
        connections=planning.connections,
        progress=lambda line: planning.progress(f"{environment}: {line}"),
        part=environment,
    )
    run = replace(run, files=replace(run.files, named=f"{branches.folder}/"))
    entry = PlannedEnvironment(environment=environment, own=own)
    try:
        plan = _plan(run, branches, own)
    except SpecError as error:
        lines = diagnostics_text([d for d in error.diagnostics if d.is_error], lambda _: [])
        return replace(entry, problem=branches.named_as_in_git(lines)), None
    except TopicopsError as error:
        return replace(entry, problem=branches.named_as_in_git(str(error))), None
    owners = _owners(branches, plan, before, after) if before and after else {}
    policy = read_environment(run)
    rules = ReviewRules(
        counts="review" in policy.spec.approvals,
        place=policy.place_of("policy.approvals"),
        author_approves=policy.spec.author_approves,
    )
    return replace(entry, owners=owners, rules=rules), plan


def _owners(branches: Branches, plan: Plan, before: Desired, after: Desired) -> dict[str, str]:
    """By topic with a held change."""
    claims = claims_on_names(branches.before)
    held = {gated.change.topic: gated.change.action for gated in plan.changes if gated.approvable}
    return {
        topic: owner_of(topic, before, after, claims, is_new=action == "create")
        for topic, action in sorted(held.items())
    }


def _plan(run: EnvironmentRun, branches: Branches, own: Collection[str]) -> Plan:
    """As ``make_plan``, with plain Python; files of other topics may have errors."""
    names = frozenset(own)
    run.progress("Reading the files")
    specs = specs_of(branches.judged(run.topics, run.environment, needs=names.__contains__), None)
    keep_specs(run, specs, as_tables=False)
    run.progress("Reading the live topics")
    access = run.access(specs.environment)
    snapshot = read_snapshot(run, access, specs.desired, states=True)
    comparison = compare(run, specs.desired, snapshot.live, engine=PYTHON, connections=run.connections)
    _, change_set = plan_changes(run, access, run.files, specs.desired, snapshot, comparison.delta)
    plan = gate_changes(change_set, specs.environment, run.files, run.home, run.clock, is_merged=False).plan
    keep_plan(run, plan)
    return plan


# ---- the folder that later commands read ----


def write_planned(planned: PlannedPullRequest, folder: Path) -> None:
    """Write ``pull-request.json``, and ``<environment>.plan.json`` for each plan. Raises ``ArtifactError``."""
    store = ArtifactStore(folder)
    for environment, plan in planned.plans.items():
        store.write_text(plan_file_of(environment), plan_to_json(plan))
    store.write_json(PULL_REQUEST_FILE, planned.summary)


def read_planned(folder: Path) -> PlannedPullRequest:
    """What ``write_planned`` wrote. Raises ``ArtifactError``."""
    store = ArtifactStore(folder)
    summary = store.read_value(PULL_REQUEST_FILE, PullRequestPlan)
    plans = {
        name: plan_from_json(store.read_text(plan_file_of(name)))
        for name in (entry.environment for entry in summary.environments if not entry.problem)
    }
    return PlannedPullRequest(summary=summary, plans=plans)
