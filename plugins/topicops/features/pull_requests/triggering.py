"""After the merge: hand the approvals of the review to Airflow, start the pipelines, and wait for what comes of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import msgspec

from topicops.edges.home.artifacts import ArtifactStore
from topicops.edges.specs.open_files import environment_files
from topicops.features.pull_requests.branches import Branches, changed_topics, open_branches
from topicops.features.pull_requests.commenting import Conversation
from topicops.features.pull_requests.edges.forge import ForgeError, PullRequest
from topicops.features.pull_requests.edges.git_trees import fetch, is_ancestor
from topicops.features.pull_requests.edges.surroundings import Forge, open_forge, surroundings_about
from topicops.features.pull_requests.owners import reviewers_by_owner
from topicops.features.pull_requests.reviews import approved_digests
from topicops.features.pull_requests.signed_reviews import ReviewApproval, SignedReview, checked_key, signed_review
from topicops.features.pull_requests.values import RUNS_FILE, TriggeredRun, TriggeredRuns
from topicops.features.shared.airflow_client import AirflowClient, AirflowError, NoSuchInAirflowError
from topicops.model.errors import TopicopsError, UsageError
from topicops.model.printable import first_line, plural
from topicops.model.runs.results import MOST_DIGESTS, MOST_REVIEWS, RESULT_KEY, REVIEW_KEY, RunResult
from topicops.model.specs.topic_config import read_duration_ms
from topicops.steps.specs.needed import no_topic

POLL_S = 2.0
AIRFLOW_URL, AIRFLOW_USER = "TOPICOPS_AIRFLOW_URL", "TOPICOPS_AIRFLOW_USER"
AIRFLOW_PASSWORD, AIRFLOW_TOKEN = "TOPICOPS_AIRFLOW_PASSWORD", "TOPICOPS_AIRFLOW_TOKEN"
AIRFLOW_PATIENCE_S = 60.0
"""Seconds that Airflow may give no answer, as while its API server is started again, before a run is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    topics: Path
    """Folder of topics in a clone that has the merge commit."""
    airflow: AirflowClient
    forge: Forge
    key: bytes | None
    """Key of the signatures. None means that reviews approve nothing."""
    for_commit_s: float
    for_run_s: float
    progress: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep

    def start(self, *, before: str, merge_commit: str) -> TriggeredRuns:
        """Start and follow a run for each environment that the commits after ``before`` touch.

        An environment whose run fails is told in its place. Those that come ``after`` it are not started. Raises
        ``UsageError`` for a missing commit, ``ForgeError`` if the forge does not say which pull request was merged.
        """
        known = self.forge.pull_requests_with(merge_commit)
        # None means that the commit came another way.
        pull_request = next((pull for pull in known if pull.merge_commit == merge_commit), None)
        runs: dict[str, TriggeredRun] = {}
        with open_branches(self.topics, base=before, head=merge_commit, merge=False) as branches:
            environments, waits = _environments(branches)
            try:
                reviews = self._reviews(branches, pull_request, merge_commit, environments)
            except ForgeError as error:
                self.progress(f"No review is handed over, so what needs one is held: {error}")
                reviews = {}
            for environment in environments:
                unmet = [name for name in waits[environment] if name in runs and runs[name].state != "applied"]
                if unmet:
                    names = " and ".join(unmet)
                    sentence = f"waits for {names} (policy.after): start it again once that is applied and verified"
                    runs[environment] = TriggeredRun(environment=environment, state="waiting", sentence=sentence)
                else:
                    runs[environment] = self._run(environment, merge_commit, reviews.get(environment, ()))
        number = pull_request.number if pull_request else None
        return TriggeredRuns(number=number, merge_commit=merge_commit, environments=tuple(runs.values()))

    def _reviews(
        self, branches: Branches, pull_request: PullRequest | None, merge_commit: str, environments: Sequence[str]
    ) -> Mapping[str, Sequence[SignedReview]]:
        """Give, by environment, the signed reviews that approve something which our comment showed."""
        if pull_request is None or self.key is None:
            return {}
        talk = Conversation(forge=self.forge, number=pull_request.number, key=self.key, progress=self.progress)
        # Who may approve is what the base branch says; after the merge that is the state before it.
        facts, comments = talk.review_facts(reviewers_by_owner(branches.before)), talk.our_comments(environments)
        found = {}
        for environment in environments:
            reviews = list[SignedReview]()
            for reviewer, (given_at, digests) in approved_digests(comments[environment].record(), facts).items():
                # Where nobody knows who made a commit, the reviewer may have: the policy then says what an author
                # approves.
                authors = facts.authors.logins | ({reviewer} if facts.authors.unknown_commit else set())
                for first in range(0, len(digests), MOST_DIGESTS):  # several reviews, if one may not name all changes
                    review = ReviewApproval(
                        repository=self.forge.repository,
                        pull_request=pull_request.number,
                        url=pull_request.url,
                        merge_commit=merge_commit,
                        environment=environment,
                        reviewer=reviewer,
                        authors=tuple(sorted(authors)),
                        given_at=given_at,
                        digests=digests[first : first + MOST_DIGESTS],
                    )
                    reviews.append(signed_review(review, self.key))
            found[environment] = reviews[:MOST_REVIEWS]
        return found

    def _run(self, environment: str, merge_commit: str, reviews: Sequence[SignedReview]) -> TriggeredRun:
        dag_id = f"topic_pipeline_{environment}"
        run = TriggeredRun(environment=environment, state="not started", sentence="", dag_id=dag_id)
        try:
            commit = self._commit_in_airflow(dag_id, merge_commit)
            conf = {"mode": "apply", "commit": commit, "reviews": [msgspec.to_builtins(review) for review in reviews]}
            run_id = self.airflow.trigger(dag_id, conf)
            url = self.airflow.run_page(dag_id, run_id)
            count = plural(len(reviews), "review")
            self.progress(f"{environment}: run {run_id} on commit {commit[:12]}, {count}: {url}")
            run = replace(run, run_id=run_id, url=url, commit=commit, state="failed")
            return self._followed(run)
        except TopicopsError as error:
            return replace(run, sentence=first_line(error))

    def _commit_in_airflow(self, dag_id: str, merge_commit: str) -> str:
        """Wait for a commit in Airflow that contains the merge. Raises ``AirflowError`` if it never has one."""
        deadline, version = time.monotonic() + self.for_commit_s, None
        self.progress(f"{dag_id}: waiting until Airflow has commit {merge_commit[:12]}")
        while time.monotonic() < deadline:
            with suppress(NoSuchInAirflowError):  # the merge may bring the environment, and with it the DAG
                version = self.airflow.bundle_version(dag_id)
                # A folder without versions: the run itself waits for the commit. A version of another repository, which
                # not even origin has: that repository has the DAGs alone.
                if version is None or (contains := self._contains(version, merge_commit)) is None:
                    return merge_commit
                if contains:
                    return version
            self.sleep(POLL_S)
        has = f"has commit {version[:12]}, which does not contain {merge_commit[:12]}" if version else "has no such DAG"
        raise AirflowError(
            f"{dag_id}: after {self.for_commit_s:.0f} s Airflow still {has}; see to its DAG bundle, then run "
            "topicops ci trigger again"
        )

    def _contains(self, later: str, earlier: str) -> bool | None:
        """Say whether one commit's history has the other. None means that not even ``origin`` has the later one."""
        found = later == earlier or is_ancestor(self.topics.parent, earlier, later)
        if found is None:
            fetch(self.topics.parent)
            found = is_ancestor(self.topics.parent, earlier, later)
        return found

    def _followed(self, run: TriggeredRun) -> TriggeredRun:
        for task in self.airflow.follow(run.dag_id, run.run_id, timeout_s=self.for_run_s):
            self.progress(f"{run.environment}: {task.task_id} {task.state}")
        state = self.airflow.run_state(run.dag_id, run.run_id)
        try:
            result = msgspec.convert(self.airflow.xcom(run.dag_id, run.run_id, "report", RESULT_KEY), RunResult)
        except (AirflowError, msgspec.ValidationError) as error:
            return replace(run, sentence=f"the run ended {state} and left no result: {first_line(error)}")
        run = replace(run, sentence=result.headline, result=result)
        if state != "success" or not result.success:
            return run
        is_held = any(change.status in ("held", "skipped") for change in result.changes)
        return replace(run, state="held" if is_held else "applied")


def _environments(branches: Branches) -> tuple[Sequence[str], Mapping[str, Sequence[str]]]:
    """Name the environments to start, each behind those that it waits for, and what each waits for (``policy.after``).

    They want something else than before, or cannot be compared, or come before such a one: those must be verified at
    this very commit.
    """
    waits, started = dict[str, Sequence[str]](), list[str]()
    for name in environment_files(branches.after_with_policy):
        judged = branches.judged(branches.after_with_policy, name, needs=no_topic)
        waits[name] = judged.environment.spec.policy.after if judged.environment else ()
        before = branches.desired(branches.before, name) if name in branches.environments else None
        if before is None or judged.desired is None or changed_topics(before, judged.desired):
            started.append(name)
    for name in started:  # the list grows meanwhile
        started.extend(other for other in waits[name] if other in waits and other not in started)
    try:
        in_order = list(TopologicalSorter({name: waits[name] for name in started}).static_order())
    except CycleError as error:
        raise UsageError("the environments wait for each other in a circle (policy.after)") from error
    return [name for name in in_order if name in started], waits


def trigger_of(
    topics: Path, repository: str | None, *, wait_commit: str, wait_run: str, progress: Callable[[str], None]
) -> Trigger:
    """Open forge and Airflow. Raises ``UsageError`` if they are not named."""

    def seconds(text: str, option: str) -> float:
        try:
            return read_duration_ms(text) / 1000
        except (ValueError, OverflowError) as error:
            raise UsageError(f"{option} {text!r}: {error}; write 90s, 15m or 2h") from error

    return Trigger(
        topics=topics,
        airflow=_airflow(),
        forge=open_forge(surroundings_about(repository), os.environ),
        key=checked_key(os.environ.get(REVIEW_KEY)),
        for_commit_s=seconds(wait_commit, "--wait-commit"),
        for_run_s=seconds(wait_run, "--wait-run"),
        progress=progress,
    )


def _airflow() -> AirflowClient:
    """Sign in. Raises ``UsageError`` for what is missing, ``AirflowError`` if it refuses."""
    url, user, password, token = (
        os.environ.get(name, "").strip() for name in (AIRFLOW_URL, AIRFLOW_USER, AIRFLOW_PASSWORD, AIRFLOW_TOKEN)
    )
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"{AIRFLOW_URL} is not set: the address of Airflow's API server, https://airflow.example.com")
    if not all(text.isascii() and text.isprintable() and " " not in text for text in (token, user)):
        raise UsageError(f"{AIRFLOW_TOKEN} or {AIRFLOW_USER} has characters that none has: copy it again")
    if not token and not (user and password):
        raise UsageError(f"{AIRFLOW_TOKEN} is not set, and neither are {AIRFLOW_USER} and {AIRFLOW_PASSWORD}")
    client = AirflowClient(url, user, password, token=token, through_proxies=True, patience_s=AIRFLOW_PATIENCE_S)
    if not token:
        client.sign_in()
    return client


def write_runs(runs: TriggeredRuns, folder: Path) -> None:
    ArtifactStore(folder).write_json(RUNS_FILE, runs)


def read_runs(folder: Path) -> TriggeredRuns:
    return ArtifactStore(folder).read_value(RUNS_FILE, TriggeredRuns)
