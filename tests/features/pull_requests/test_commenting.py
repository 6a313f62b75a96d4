"""Comments, checks and labels of a pull request, on the fake forge: what stays when something goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest

from fakes import builders
from fixtures.fake_forge import PERSONAL_TOKEN, REPOSITORY, TOKEN, FakeForge
from topicops.features.pull_requests.checks import LABELS, report_runs, set_check, set_plain_check, set_unplanned_check
from topicops.features.pull_requests.comment_markdown import COMMENT_LIMIT
from topicops.features.pull_requests.commenting import Conversation, post_comments
from topicops.features.pull_requests.edges.forge import Check, CheckResult
from topicops.features.pull_requests.edges.github import GitHub
from topicops.features.pull_requests.values import (
    PlannedEnvironment,
    PlannedPullRequest,
    PullRequestPlan,
    ReviewRules,
    TriggeredRun,
    TriggeredRuns,
)
from topicops.model.plans.plan import Plan
from topicops.model.specs.environment import Risk
from topicops.steps.planning.gate import gate
from topicops.steps.reporting.document import markdown_row
from topicops.steps.reporting.plan_document import change_name

KEY = b"k" * 32
RULES = ReviewRules(counts=True, place="local.yaml", author_approves=Risk.NOTICE)
ENTRY = PlannedEnvironment(environment="local", own=("orders",), owners={"orders": "team-shop"}, rules=RULES)
DOWN = "127.0.0.1:2181: ZooKeeper does not answer"
HEAD = "b" * 40


def a_delete() -> Plan:
    return gate(builders.change_set([builders.delete_change("orders")]), builders.environment())


def nothing_held() -> Plan:
    return gate(builders.change_set([builders.create_change("orders")]), builders.environment())


def planned(
    *entries: PlannedEnvironment, problem: str = "", remarks: tuple[str, ...] = (), head: str = HEAD
) -> PlannedPullRequest:
    summary = PullRequestPlan(
        number=1,
        base_commit="a" * 40,
        head_commit=head,
        topic_files=() if problem else ("topics/shop/orders.yaml",),
        reviewers={"team-shop": ("alice",)},
        remarks=remarks,
        environments=entries,
        problem=problem,
    )
    return PlannedPullRequest(summary=summary, plans={e.environment: a_delete() for e in entries if not e.problem})


@dataclass
class Talk:
    forge: FakeForge
    lines: list[str] = field(default_factory=list)

    @property
    def conversation(self) -> Conversation:
        forge = GitHub(self.forge.url, REPOSITORY, TOKEN, members_token=PERSONAL_TOKEN)
        return Conversation(forge=forge, number=1, key=KEY, progress=self.lines.append)

    def runs(self, found: PlannedPullRequest) -> Check:
        """Return what the job ``plan`` does with what it found."""
        post_comments(found, self.conversation)
        return set_check(found, self.conversation)


@pytest.fixture
def talk() -> Iterator[Talk]:
    with FakeForge() as forge:
        forge.open(author="bob", head=HEAD)
        yield Talk(forge)


def test_an_approval_outlasts_a_run_that_cannot_plan(talk: Talk) -> None:
    waiting = talk.runs(planned(ENTRY))
    talk.forge.review(1, "alice")
    approved = talk.runs(planned(ENTRY))

    failed = talk.runs(planned(replace(ENTRY, problem=DOWN)))
    plan, note = talk.forge.bodies(1)
    again = talk.runs(planned(ENTRY))

    assert [c.result for c in (waiting, approved, failed, again)] == ["neutral", "success", "failure", "success"]
    assert "The newest commit has no plan." in note
    assert DOWN in note
    assert "**delete** orders" in plan, "the plan that was reviewed stays in sight"
    assert ["has no plan" in body for body in talk.forge.bodies(1)] == [False]


def test_a_review_counts_for_what_its_own_commit_showed(talk: Talk) -> None:
    """The author pushes while the reviewer reads, and the comment is edited before the reviewer approves."""
    harmless, with_delete, same_delete = "1" * 40, "2" * 40, "3" * 40
    talk.forge.pulls[1].head = harmless
    talk.runs(replace(planned(ENTRY, head=harmless), plans={"local": nothing_held()}))
    talk.forge.push(1, with_delete)
    talk.runs(planned(ENTRY, head=with_delete))

    talk.forge.review(1, "alice", seen=harmless)
    tricked = talk.runs(planned(ENTRY, head=with_delete))
    said = talk.forge.bodies(1)[0]
    talk.forge.review(1, "alice", seen=with_delete)
    approved = talk.runs(planned(ENTRY, head=with_delete))
    talk.forge.push(1, same_delete)
    still = talk.runs(planned(ENTRY, head=same_delete))

    assert "alice approved commit 111111111111, which did not have the change as it is now" in said
    assert [check.result for check in (tricked, approved, still)] == ["neutral", "success", "success"]


def test_a_conflict_is_told_in_the_comment_and_takes_no_approval_away(talk: Talk) -> None:
    talk.runs(planned(ENTRY))
    talk.forge.review(1, "alice")

    for _ in range(2):
        assert talk.runs(planned(problem="the branch conflicts with its base in a.yaml")).result == "failure"
    _, note = talk.forge.bodies(1)

    assert note.count("the branch conflicts with its base in a.yaml") == 1
    assert talk.runs(planned(ENTRY)).result == "success"


def test_an_approval_for_another_base_branch_counts_no_more(talk: Talk) -> None:
    talk.forge.pulls[1].base = "of-mallory"
    talk.runs(planned(ENTRY))
    talk.forge.review(1, "alice")
    assert talk.runs(planned(ENTRY)).result == "success"

    talk.forge.pulls[1].base = "main"

    assert talk.runs(planned(ENTRY)).result == "neutral"


def test_the_label_stays_while_the_risk_is_not_known(talk: Talk) -> None:
    talk.runs(planned(ENTRY))
    labels = set(talk.forge.pulls[1].labels)
    talk.runs(planned(replace(ENTRY, problem=DOWN)))

    assert talk.forge.pulls[1].labels == labels == {LABELS[Risk.DESTRUCTIVE]}


@pytest.mark.parametrize("path", ["pulls/1/reviews", "pulls/1/commits", "pulls/2/files", r"pulls\?"])
def test_a_check_is_reported_when_the_forge_refuses_a_question(talk: Talk, path: str) -> None:
    talk.forge.open(author="carol", head="c" * 40)
    talk.forge.refused[path] = 403

    check = talk.runs(planned(ENTRY))

    assert check.result is CheckResult.NEUTRAL
    assert talk.forge.check(HEAD) is not None
    assert any("403" in line or "refused" in line for line in talk.lines), talk.lines


def test_without_a_held_change_nobody_is_asked_who_wrote_what(talk: Talk) -> None:
    check = talk.runs(planned())

    assert (check.result, check.title) == ("success", "No topic changes")
    assert not [request for request in talk.forge.requests if "pulls/1/" in request]


def test_policy_that_changes_is_told_by_the_check_where_no_topic_changes(talk: Talk) -> None:
    check = talk.runs(planned(remarks=("This pull request changes topics/profiles/lean.yaml.",)))

    assert (check.result, check.title) == ("neutral", "This pull request changes topics/profiles/lean.yaml.")


def test_the_comment_of_an_environment_that_was_left_out_stays(talk: Talk) -> None:
    second = replace(ENTRY, environment="second")
    talk.runs(planned(ENTRY, second))

    narrowed = planned(ENTRY)
    talk.runs(replace(narrowed, summary=replace(narrowed.summary, left_out=("second",))))
    assert len(talk.forge.bodies(1)) == 2

    talk.runs(planned(ENTRY))
    assert len(talk.forge.bodies(1)) == 1


def test_an_old_comment_that_somebody_puts_back_brings_no_approval_with_it(talk: Talk) -> None:
    """A review of something harmless must not count for a delete that was shown before it."""
    talk.runs(planned(ENTRY))
    [dangerous] = talk.forge.bodies(1)
    talk.runs(planned(replace(ENTRY, owners={}), remarks=("harmless",)))
    talk.forge.review(1, "alice")
    talk.forge.let_pass(60)
    comment = talk.forge.pulls[1].comments[0]
    talk.forge.edited(comment.id, dangerous)

    assert talk.runs(planned(ENTRY)).result == "neutral"


def test_a_text_that_somebody_changed_brings_no_approval_with_it(talk: Talk) -> None:
    talk.runs(planned(ENTRY))
    comment = talk.forge.pulls[1].comments[0]
    talk.forge.edited(comment.id, comment.body.replace("**delete** orders", "Nothing"))
    talk.forge.review(1, "alice")

    assert talk.runs(planned(ENTRY)).result == "neutral"


def test_approvals_outlast_a_run_after_the_merge_that_did_not_start(talk: Talk) -> None:
    talk.runs(planned(ENTRY))
    talk.forge.review(1, "alice")
    talk.forge.let_pass(3600)
    run = TriggeredRun(environment="local", state="not started", sentence="Airflow is down", dag_id="d")
    runs = TriggeredRuns(number=1, merge_commit=HEAD, environments=(run,))
    [plan] = talk.forge.bodies(1)
    for _ in range(3):
        report_runs(runs, talk.conversation)
        talk.forge.let_pass(3600)

    assert [body == plan or "Airflow is down" in body for body in talk.forge.bodies(1)] == [True, True]
    assert talk.conversation.our_comments(["local"])["local"].record()


def test_an_unplanned_pull_request_leaves_the_check_of_another_with_the_same_commit(talk: Talk) -> None:
    """Else a failed check would turn neutral because somebody opens the same commit from a fork."""
    failed = talk.runs(planned(replace(ENTRY, problem=DOWN)))
    talk.forge.open(author="mallory", head=HEAD, fork=True)
    from_fork = replace(talk.conversation, number=2)

    set_unplanned_check("of a fork", from_fork)

    found = talk.forge.check(HEAD)
    assert found is not None
    assert (found.result, found.title) == (failed.result, failed.title)
    talk.forge.pulls[1].is_closed = True
    set_unplanned_check("of a fork", from_fork)
    found = talk.forge.check(HEAD)
    assert found is not None
    assert (found.result, found.title) == ("neutral", "of a fork")


def test_while_the_plan_is_made_nobody_may_merge_whatever_an_earlier_check_said(talk: Talk) -> None:
    talk.forge.open(author="mallory", head=HEAD, fork=True)
    talk.forge.pulls[1].is_closed = True
    set_unplanned_check("of a fork", replace(talk.conversation, number=2))
    set_plain_check(CheckResult.PENDING, "The plan is being made", talk.conversation)
    found = talk.forge.check(HEAD)
    assert found is not None
    assert found.result == "in_progress"
    assert talk.runs(planned(ENTRY)).result == "neutral"


def test_no_comment_of_another_pull_request_is_edited(talk: Talk) -> None:
    talk.forge.open(author="carol", head="c" * 40)
    theirs = replace(talk.conversation, number=2)
    post_comments(planned(ENTRY), theirs)
    before = talk.forge.bodies(2)
    run = TriggeredRun(environment="local", state="applied", sentence="Applied and verified: 1 done.", dag_id="d")

    talk.runs(planned(ENTRY))
    report_runs(TriggeredRuns(number=1, merge_commit=HEAD, environments=(run,)), talk.conversation)

    assert talk.forge.bodies(2) == before


def test_no_review_counts_while_a_team_of_the_owner_cannot_be_read(talk: Talk) -> None:
    """Somebody of that team may have said no."""
    teams = planned(ENTRY)
    teams = replace(teams, summary=replace(teams.summary, reviewers={"team-shop": ("alice", "acme/shop")}))
    talk.forge.teams["acme/shop"] = {"carol"}
    talk.runs(teams)
    talk.forge.review(1, "alice")
    assert talk.runs(teams).result == "success"

    talk.forge.refused["GET /orgs/acme/teams"] = 403

    assert talk.runs(teams).result == "neutral"
    assert "the members of acme/shop are not known" in talk.forge.bodies(1)[0]


def test_logins_are_the_same_in_capital_letters(talk: Talk) -> None:
    capital = planned(ENTRY)
    capital = replace(capital, summary=replace(capital.summary, reviewers={"team-shop": ("Alice",)}))
    talk.runs(capital)
    talk.forge.review(1, "alice")

    assert talk.runs(capital).result == "success"


def test_a_record_is_of_the_held_changes_alone_that_have_a_row(talk: Talk) -> None:
    """Rows of graver changes take most of the room first."""
    risky, deleted = (
        [f"{'n' * 120}.{word}.{number}" for number in range(many)] for word, many in (("a", 400), ("b", 150))
    )
    changes = [builders.expand_change(name, risk=Risk.RISKY) for name in risky]
    plan = gate(builders.change_set([*changes, *map(builders.delete_change, deleted)]), builders.environment())
    entry = replace(ENTRY, own=(*risky, *deleted), owners=dict.fromkeys(risky, "team-shop"))
    found = replace(planned(entry), plans={"local": plan})

    talk.runs(found)

    bodies = talk.forge.bodies(1)
    assert max(map(len, bodies)) <= COMMENT_LIMIT
    shown = talk.conversation.our_comments(["local"])["local"].record()
    in_sight = {g.digest for g in plan.changes if any(f"| {markdown_row(change_name(g))} |" in body for body in bodies)}
    assert 20 < len(shown) < 400
    assert shown.keys() <= in_sight, "a review cannot be about a change that no comment shows"


def test_others_are_those_of_our_own_branches_that_touch_one_of_the_same_files(talk: Talk) -> None:
    talk.forge.open("c" * 40, ["topics/shop/orders.yaml", "README.md"], author="carol")
    talk.forge.open("d" * 40, ["topics/shop/bills.yaml"], author="dave")
    talk.forge.open("e" * 40, ["topics/shop/orders.yaml"], author="erin", fork=True)

    talk.runs(planned(ENTRY))

    _, _, others = talk.forge.bodies(1)[0].partition("#### Open on the same topics\n\n")
    assert others.splitlines()[0].startswith("- [#2](http")
    assert others.splitlines()[0].endswith(" by carol: orders; the later merge is planned anew.")
    assert others.splitlines()[1] == ""
