from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes import builders
from fakes.builders import NOW
from fakes.changes import plan_of, reassign_topic
from fakes.resting_cluster import RestingCluster
from fixtures.any_plan import any_plans, with_words
from fixtures.html_seen import Seen, assert_nothing_runs
from fixtures.rich_plan import HOSTILE, rich_plan, some_facts, write_run
from topicops.edges.home.memories import HELD
from topicops.features.quality.on_airflow.page import quality_page
from topicops.features.quality.on_airflow.reading import read_quality
from topicops.flow.runs.memory import question_name
from topicops.flow.runs.questions import Answer, write_answer, write_question
from topicops.flow.runs.run import COMMIT_ADDRESS, DIAGNOSTICS_FILE, open_run, outcomes_file
from topicops.model.plans.changes import MoveReason
from topicops.model.plans.plan import Loss, Plan, RackLossRow, RackLossTable
from topicops.model.runs.memories import HeldSet, Rejection
from topicops.model.runs.results import NO_FILE, QUIET_FILE, Outcome, OutcomeStatus, Quiet
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Limits
from topicops.on_airflow.names import RunOf
from topicops.on_airflow.pages.plan_page import CHANGES_SHOWN, bar, plan_page
from topicops.on_airflow.pages.reading import Answered, PlanModel, Question, read_plan
from topicops.steps.planning.gate import gate

DAG, APPROVAL = "topic_pipeline_local", "topic_approval_local"
RUN = RunOf(dag_id=DAG, run_id="manual__1")
OPEN = builders.environment(limits=Limits(deletes_per_run=5, deletes_percent=100))


def shown(plan: Plan, question: Question | None = None, *outcomes: Outcome) -> Seen:
    by_digest = {outcome.digest: outcome for outcome in outcomes}
    return Seen(plan_page(PlanModel(run=RUN, plan=plan, question=question, outcomes=by_digest)))


def approvable(plan: Plan) -> dict[str, str]:
    return {gated.digest: gated.change.address for gated in plan.changes if gated.approvable}


def name_of(held: HeldSet) -> str:
    return question_name(held.digest, len(held.digests))


def test_the_page_says_of_each_change_what_a_reviewer_must_know() -> None:
    plan = rich_plan()
    seen = shown(plan)
    for gated in plan.changes:
        for words in (gated.change.topic, gated.change.risk.value, gated.gate.value, gated.digest[:12]):
            assert words in seen.texts
        assert all(reason in seen.texts for reason in gated.reasons)
    assert plan.fingerprint in seen.texts
    assert all(blocked.way_out in seen.texts for blocked in plan.change_set.blocked)
    assert "cannot be undone: every record of the topic goes" in seen.texts
    assert any("drift: shop.clicks" in text for text in seen.texts)


def test_the_gravest_changes_come_first() -> None:
    texts = shown(rich_plan()).texts
    assert texts.index("Look at these first") < texts.index("payments.refunds") < texts.index("Other changes")
    assert texts.index("Other changes") < texts.index("payments.orders-v2")


def test_what_went_wrong_comes_first_by_its_reason_with_the_next_step() -> None:
    plan = rich_plan()
    names = [gated.change.topic for gated in plan.changes]
    outcomes = [
        Outcome.of(g, OutcomeStatus.REFUSED, f"{g.change.topic} names broker 2, not live") for g in plan.changes[:-1]
    ]
    outcomes.append(Outcome.of(plan.changes[-1], OutcomeStatus.UNKNOWN, "no answer", sent=True))
    seen = shown(plan, None, *outcomes)
    texts = seen.texts
    first, second = (
        texts.index("1 unknown: no answer"),
        texts.index(f"{len(names) - 1} refused: the topic names broker 2, not live"),
    )
    assert texts.index("What went wrong") < first < second < texts.index("Each of them")
    assert "Look at these first" not in texts
    assert "Next: see to this reason, then trigger topic_pipeline_local." in texts
    assert "topicops plan" not in seen.text


def test_what_was_approved_and_is_not_due_any_more_did_not_go_wrong() -> None:
    plan = rich_plan()
    held, unheld = (next(g for g in plan.changes if g.approvable is wanted) for wanted in (True, False))
    message = f"{NO_FILE} local asks for it"
    asked = decided(plan, approved=len(approvable(plan)))
    assert "What went wrong" not in shown(plan, asked, Outcome.of(held, OutcomeStatus.REFUSED, message)).texts
    for not_asked in (asked, None):
        gated = unheld if not_asked else held
        seen = shown(plan, not_asked, Outcome.of(gated, OutcomeStatus.REFUSED, message))
        assert "What went wrong" in seen.texts


def test_whose_topics_differ_says_of_when_that_is() -> None:
    facts = some_facts(drift={("team-a", "shop"): 2, ("team-b", "pay"): 1})
    seen = Seen(plan_page(PlanModel(run=RUN, plan=rich_plan(), facts=facts)))
    assert any(text.endswith("by owner, as this run first read them") for text in seen.texts)


def test_a_plan_that_went_well_has_no_such_section() -> None:
    plan = rich_plan()
    assert "What went wrong" not in shown(plan, None, Outcome.of(plan.changes[0], OutcomeStatus.DONE)).texts


def test_the_place_of_a_problem_leads_to_the_line_in_the_forge(tmp_path: Path) -> None:
    store = open_run(environment="", topics=Path(), group=DAG, run_id="manual__1", home=tmp_path).store
    store.write_value(DIAGNOSTICS_FILE, (builders.diagnostic(file="topics/a b.yaml"),))
    store.write_text(COMMIT_ADDRESS, f"https://forge.example/x/tree/{'a' * 40}")
    store.write_text("files-commit", "a" * 40)
    html = plan_page(read_plan(tmp_path, RUN))
    assert f'href="https://forge.example/x/blob/{"a" * 40}/topics/a%20b.yaml#L3"' in html
    assert "a" * 40 in Seen(html).texts


def test_nothing_is_said_of_a_question_that_may_still_come() -> None:
    plan = rich_plan()
    question = Question(dag_id=APPROVAL, run_id=None, digests=tuple(approvable(plan)))
    assert any(text.startswith("Nobody has been asked so far. In mode apply") for text in shown(plan, question).texts)


def test_an_empty_plan_says_that_nothing_differs() -> None:
    plan = gate(builders.change_set(()), builders.environment())
    seen = shown(plan)
    assert "No changes." in seen.text
    assert seen.all("table") == []


@pytest.mark.parametrize(
    ("dag_id", "words"),
    [
        pytest.param(DAG, "This run has made no plan", id="ours"),
        pytest.param("etl", "This is no DAG of topicops", id="somebody else's"),
    ],
)
def test_a_run_without_a_plan_gets_a_plain_page(tmp_path: Path, dag_id: str, words: str) -> None:
    assert words in Seen(plan_page(read_plan(tmp_path, RunOf(dag_id=dag_id, run_id="x")))).text


def test_a_damaged_plan_is_said_to_be_so_without_its_folder(tmp_path: Path) -> None:
    write_run(tmp_path, DAG, "one").write_text("plan.json", '{"format_version": "1.0"}')
    seen = Seen(plan_page(read_plan(tmp_path, RunOf(dag_id=DAG, run_id="one"))))
    assert "plan.json: the plan's checksum is wrong" in seen.text
    assert str(tmp_path) not in seen.text


def test_what_came_of_a_change_stands_beside_it(tmp_path: Path) -> None:
    plan = rich_plan()
    done, failed, *_ = (
        Outcome(topic=g.change.topic, action=g.change.action, digest=g.digest, status=status, message=message)
        for g, status, message in zip(
            plan.changes, (OutcomeStatus.DONE, OutcomeStatus.FAILED), ("", "POLICY_VIOLATION"), strict=False
        )
    )
    store = write_run(tmp_path, DAG, "one", plan=plan)
    store.write_value(outcomes_file("create"), (done, failed))
    model = read_plan(tmp_path, RunOf(dag_id=DAG, run_id="one"))
    assert model.outcomes == {done.digest: done, failed.digest: failed}
    texts = Seen(plan_page(model)).texts
    assert [word in texts for word in ("done", "failed", "POLICY_VIOLATION", "unknown")] == [True, True, True, False]


def test_a_plan_of_thousands_is_cut_and_says_so() -> None:
    changes = [builders.create_change(f"t{n:05d}") for n in range(CHANGES_SHOWN + 7)]
    plan = gate(builders.change_set(changes), builders.environment())
    assert "… and 7 more changes, all in the plan file" in shown(plan).texts


# ---- the approval ----


def test_nothing_held_asks_nothing(tmp_path: Path) -> None:
    plan = gate(builders.change_set([builders.create_change("orders")]), builders.environment())
    write_run(tmp_path, DAG, "one", plan=plan)
    assert read_plan(tmp_path, RunOf(dag_id=DAG, run_id="one")).question is None


def test_a_held_plan_names_the_newest_run_that_asked(tmp_path: Path) -> None:
    plan = rich_plan()
    held = HeldSet(addresses=approvable(plan), found_by=f"{DAG}/one")
    write_run(tmp_path, DAG, "one", plan=plan)
    HELD.of(tmp_path, "local").write(held)
    for n in (1, 2, 10):
        write_run(tmp_path, APPROVAL, f"{name_of(held)}.{n}")
    model = read_plan(tmp_path, RunOf(dag_id=DAG, run_id="one"))
    assert model.question == Question(dag_id=APPROVAL, run_id=f"{name_of(held)}.10", digests=held.digests)
    seen = Seen(plan_page(model))
    (answer,) = seen.all("p", id="answer")
    assert answer["data-api"] == f"../../../api/v2/dags/{APPROVAL}/dagRuns/{name_of(held)}.10"
    assert all(digest in seen.texts for digest in held.digests)


def test_an_approval_run_shows_its_own_question(tmp_path: Path) -> None:
    run = RunOf(dag_id=APPROVAL, run_id="manual__2024-05-01T12:00:00+00:00")
    write_run(tmp_path, run.dag_id, run.run_id, plan=rich_plan())
    question = read_plan(tmp_path, run).question
    assert question == Question(dag_id=APPROVAL, run_id=run.run_id, digests=tuple(sorted(approvable(rich_plan()))))
    (link,) = shown(rich_plan(), question).all("a", cls="airflow")
    assert link["href"].endswith("/runs/manual__2024-05-01T12%3A00%3A00%2B00%3A00")


@pytest.mark.parametrize(
    "asked_in", [pytest.param(DAG, id="the run that held"), pytest.param(APPROVAL, id="that asked")]
)
def test_after_an_approval_was_carried_out_the_page_speaks_of_outcomes(tmp_path: Path, asked_in: str) -> None:
    plan = gate(builders.change_set([builders.delete_change("gone"), builders.delete_change("kept")]), OPEN)
    held = HeldSet(addresses=approvable(plan), found_by=f"{DAG}/one")
    HELD.of(tmp_path, "local").write(HeldSet(found_by=f"{DAG}/two"))
    write_run(tmp_path, DAG, "one", plan=plan)
    store = write_run(tmp_path, APPROVAL, f"{name_of(held)}.1", plan=plan)
    first, second = plan.changes
    done = Outcome.of(first, OutcomeStatus.DONE)
    refused = Outcome.of(second, OutcomeStatus.REFUSED, "no file asks for it any more")
    store.write_value(outcomes_file("delete"), (done, refused))
    run_id = "one" if asked_in == DAG else f"{name_of(held)}.1"
    seen = Seen(plan_page(read_plan(tmp_path, RunOf(dag_id=asked_in, run_id=run_id))))
    assert "2 changes approved, each with its outcome below" in seen.texts
    assert "no file asks for it any more" in seen.texts
    assert "2 held" not in seen.text
    assert "need an approval" not in seen.text
    assert "an approval sends nothing" not in seen.text


def test_a_set_that_a_newer_one_replaced_says_so(tmp_path: Path) -> None:
    write_run(tmp_path, DAG, "one", plan=rich_plan())
    HELD.of(tmp_path, "local").write(HeldSet(addresses={}, found_by=f"{DAG}/two"))
    question = read_plan(tmp_path, RunOf(dag_id=DAG, run_id="one")).question
    digests = tuple(sorted(approvable(rich_plan())))
    assert question == Question(dag_id=APPROVAL, run_id=None, replaced_by=f"{DAG}/two", digests=digests)
    text = shown(rich_plan(), question).text
    assert "Nobody has been asked" in text
    assert "an approval sends nothing" in text


# ---- the answer ----


def decided(plan: Plan, *, approved: int = 0, rejected: int = 0, comment: str = "", run_id: str = "1") -> Question:
    """The first changes that can be approved are, and the next ones are rejected."""
    digests = tuple(sorted(approvable(plan)))
    answer = Answered(
        by="op (id 2)",
        at=NOW,
        comment=comment,
        approved=frozenset(digests[:approved]),
        rejected=frozenset(digests[approved : approved + rejected]),
    )
    return Question(dag_id=APPROVAL, run_id=run_id, digests=digests, answer=answer)


def test_an_answer_in_part_says_of_each_change_who_said_what_and_why() -> None:
    plan = rich_plan()
    seen = shown(plan, decided(plan, approved=1, rejected=1, comment="still read"))
    assert "Approval: 1 approved, 1 rejected" in seen.texts
    assert [word in seen.texts for word in ("approved", "rejected", "held")] == [True, True, False]
    assert {"approved by op (id 2): still read", "rejected by op (id 2): still read"} <= set(seen.texts)
    assert "It rests until it changes." in seen.texts
    assert "Of 6 changes: 1 approved, 1 rejected, 2 run, 2 skipped; 2 topics blocked." in seen.texts


def test_the_record_of_an_answer_is_read_from_the_run_that_asked(tmp_path: Path) -> None:
    plan = gate(builders.change_set([builders.delete_change("gone"), builders.delete_change("kept")]), OPEN)
    held = HeldSet(addresses=approvable(plan), found_by=f"{DAG}/one")
    HELD.of(tmp_path, "local").write(held)
    write_run(tmp_path, DAG, "one", plan=plan)
    write_run(tmp_path, APPROVAL, f"{name_of(held)}.1", plan=plan)
    asking = open_run(environment="local", topics=Path(), group=APPROVAL, run_id=f"{name_of(held)}.1", home=tmp_path)
    asked = write_question(asking, plan, "?")
    filled = {"delete kept": "reject"}
    write_answer(
        asking, Answer(question=asked.digest, option="Approve", user="op", user_id="2", at=NOW, choices=filled)
    )
    question = read_plan(tmp_path, RunOf(dag_id=DAG, run_id="one")).question
    by_topic = {gated.change.topic: gated.digest for gated in plan.changes}
    assert question is not None
    assert question.answer == Answered(
        by="op (id 2)", at=NOW, approved=frozenset({by_topic["gone"]}), rejected=frozenset({by_topic["kept"]})
    )


def test_what_was_rejected_before_says_by_whom_and_that_nobody_is_asked() -> None:
    plan = rich_plan()
    rejection = Rejection(by="op (id 2)", at=NOW, run=f"{APPROVAL}/1", comment="not before Friday")
    digests = tuple(sorted(approvable(plan)))
    rested = dict.fromkeys(digests, rejection)
    question = Question(dag_id=APPROVAL, run_id=None, digests=digests)
    seen = Seen(plan_page(PlanModel(run=RUN, plan=plan, question=question, rejections=rested)))
    assert "Nobody is asked: all that needs an approval was rejected before" in seen.text
    assert str(rejection) in seen.texts


def test_a_run_that_sent_something_speaks_of_outcomes() -> None:
    plan = rich_plan()
    outcomes = [
        Outcome.of(gated, status)
        for gated, status in zip(plan.changes, (OutcomeStatus.DONE, OutcomeStatus.NOT_SENT), strict=False)
    ]
    seen = shown(plan, None, *outcomes)
    assert any(text.startswith("Of 6 changes: 1 done, 1 not sent, ") for text in seen.texts)
    assert not any(text.startswith("Plan: ") for text in seen.texts)


# ---- finding a change ----


def test_each_change_has_an_address_and_a_link_to_it() -> None:
    seen = shown(rich_plan())
    anchors = [f"change-{gated.digest[:12]}" for gated in rich_plan().changes]
    assert {row["id"] for row in seen.all("tr") if row.get("id", "").startswith("change-")} == set(anchors)
    assert {link["href"] for link in seen.all("a") if link["href"].startswith("#")} == {f"#{name}" for name in anchors}


@pytest.mark.parametrize(
    ("state", "topics"),
    [("skipped", {"payments.refunds", "shop.prices"}), ("blocked", {"shop.views", "shop.returns"}), ("no", set())],
)
def test_the_number_of_a_state_leads_to_its_changes(state: str, topics: set[str]) -> None:
    plan = rich_plan()
    seen = Seen(plan_page(PlanModel(run=RUN, plan=plan), state))
    known = {gated.change.topic for gated in plan.changes} | {found.topic for found in plan.change_set.blocked}
    assert known & set(seen.texts) == topics
    changes = sum(gated.change.topic in topics for gated in plan.changes)
    assert f"{changes} of 6 changes shown" in seen.texts
    assert "plan?run_id=manual__1&state=held" in {link["href"] for link in seen.all("a")}


# ---- values, blocked topics, files that are not valid ----


def moving_plan() -> Plan:
    """Return a plan that raises a topic's factor, and drains a broker of a topic without a file."""
    cluster = RestingCluster()
    raised, offsets = cluster.put_topic("raised", *[(1,)] * 12), cluster.put_topic("__consumer_offsets", (1, 3))
    place = Location("topics/environments/local.yaml", 12, 3)
    plan = plan_of(
        reassign_topic(raised, *[(1, 2)] * 12, copied_bytes=300 << 20),
        reassign_topic(offsets, (1, 2), why=MoveReason.DRAIN, location=place, copied_bytes=0),
    )
    return replace(plan, change_set=replace(plan.change_set, throttle=1 << 20))


def test_a_reassignment_says_what_moves_where_and_how_long_that_takes() -> None:
    seen = shown(moving_plan())

    assert "replicas of 12 partitions move, because its file asks for another replication factor" in seen.texts
    assert "replication factor  1  →  2" in seen.text
    assert "replicas added  12 on broker 2" in seen.text
    assert "replicas of 12 partitions" in seen.texts
    most = "broker 1 sends most, 300.0MiB, and broker 2 receives most, 300.0MiB"
    assert f"copies 300.0MiB, in at least 5 min at 1.0MiB/s (apply.throttle); {most}" in seen.texts
    assert "partition 9: 1 -> 1,2" in seen.text
    assert "partition 10" not in seen.text
    assert "… and 2 more partitions, all in the plan file" in seen.text
    assert "cannot be deleted; topicops moves --environment local --cancel TOPIC takes a move back" in seen.text


def test_drained_topics_without_a_file_have_a_section_of_their_own() -> None:
    texts = shown(moving_plan()).texts
    title = "Topics without a file, moved because broker 3 is drained"
    assert texts.index("Look at these first") < texts.index("raised") < texts.index(title)
    assert texts.index(title) < texts.index("__consumer_offsets")


def test_what_moves_has_a_state_of_its_own_and_did_not_go_wrong() -> None:
    plan = moving_plan()
    outcomes = [Outcome.of(g, OutcomeStatus.MOVING, "moving 4 of 12 partitions", sent=True) for g in plan.changes]
    seen = shown(plan, None, *outcomes)

    assert "Of 2 changes: 2 moving." in seen.texts
    assert "moving 4 of 12 partitions" in seen.texts
    assert "What went wrong" not in seen.texts


def test_values_are_shown_as_people_read_them_with_the_exact_ones_behind() -> None:
    change = builders.configure_change(
        "orders", before={"retention.ms": "2592000000"}, after={"retention.ms": "259200000"}
    )
    seen = shown(gate(builders.change_set([change]), builders.environment()))
    assert [word in seen.texts for word in ("30d", "3d", " 2592000000 -> 259200000")] == [True] * 3


def test_a_blocked_topic_says_what_its_own_file_asks_for() -> None:
    seen = shown(rich_plan())
    assert {"partitions 12 -> 6", "replication factor 3 -> 2"} <= set(seen.texts)


def test_a_blocked_topic_names_its_own_file_where_a_profile_asks_for_the_value() -> None:
    plan = rich_plan()
    blocked = replace(plan.change_set.blocked[0], location=Location("topics/profiles/durable.yaml", 3))
    seen = shown(replace(plan, change_set=replace(plan.change_set, blocked=(blocked,))))
    place = f"{blocked.spec}, {blocked.owner}; asked for in topics/profiles/durable.yaml:3"
    assert place in seen.texts


def test_a_run_whose_files_are_not_valid_shows_what_is_wrong_and_where(tmp_path: Path) -> None:
    found = builders.diagnostic(file="/srv/airflow/topics/shop/orders.yaml", line=7, column=15)
    write_run(tmp_path, DAG, "one", suites=()).write_value(DIAGNOSTICS_FILE, (found,))
    seen = Seen(plan_page(read_plan(tmp_path, RunOf(dag_id=DAG, run_id="one"))))
    assert "The files have 1 error, so this run made no plan." in seen.texts
    assert {"orders.yaml:7:15", found.summary} <= set(seen.texts)
    assert "/srv/airflow" not in seen.text


@pytest.mark.parametrize(
    ("written", "links"),
    [
        pytest.param("https://git.example.org/topics/tree/c0ffee", 1, id="of a forge"),
        pytest.param("javascript:alert(1)", 0, id="no address of a page"),
    ],
)
def test_the_commit_is_a_link_where_the_forge_is_known(tmp_path: Path, written: str, links: int) -> None:
    plan = rich_plan()
    source = replace(plan.change_set.source, commit="c0ffee")
    store = write_run(tmp_path, DAG, "one", plan=replace(plan, change_set=replace(plan.change_set, source=source)))
    store.write_text(COMMIT_ADDRESS, written)
    seen = Seen(plan_page(read_plan(tmp_path, RunOf(dag_id=DAG, run_id="one"))))
    assert len(seen.all("a", href=written)) == links
    assert "c0ffee" in seen.texts


# ---- balance ----


@pytest.mark.parametrize(
    ("before", "after", "of", "widths"),
    [
        pytest.param(50, 75, 100, ["50.00", "25.00"], id="more"),
        pytest.param(75, 50, 100, ["50.00", "25.00"], id="less"),
        pytest.param(0, 0, 0, ["0.00", "0.00"], id="nothing at all"),
    ],
)
def test_a_bar_shows_what_stays_and_what_moves(before: int, after: int, of: int, widths: list[str]) -> None:
    seen = Seen(bar(before, after, of=of).text)
    assert [rect["width"] for rect in seen.all("rect")] == widths


def test_brokers_and_racks_have_their_bars() -> None:
    load, bars = rich_plan().change_set.load, shown(rich_plan()).all("svg", cls="bar")
    assert sum("loss" not in found["class"].split() for found in bars) == 2 * (len(load.brokers) + len(load.racks))


# ---- what the loss of a rack costs ----


def with_losses(found: RackLossTable | None) -> Plan:
    plan = rich_plan()
    return replace(plan, change_set=replace(plan.change_set, rack_losses=found))


def loss_row(rack: str, *, offline: int = 0, below: int = 0, moved: int = 0) -> RackLossRow:
    before = Loss(offline=0, below_min_isr=0, moved_leaders=moved)
    after = Loss(offline=offline, below_min_isr=below, moved_leaders=moved)
    return RackLossRow(rack=rack, brokers=2, before=before, after=after)


def test_each_rack_has_three_bars_with_their_numbers_beside_them() -> None:
    rows = (loss_row("r1", offline=3, below=6, moved=40), loss_row("r2", moved=20))
    seen = shown(with_losses(RackLossTable(racks=rows)))

    assert "If a rack is lost after the plan has run" in seen.text
    widths = [rect["width"] for rect in seen.all("rect") if rect.get("class") in ("bad", "warn", "calm")]
    assert widths == ["50.00", "100.00", "100.00", "0.00", "0.00", "50.00"]
    assert all(found["aria-hidden"] == "true" for found in seen.all("svg", cls="loss"))
    assert {"3", " (before 0)", "6", "40", "20"} <= set(seen.texts)
    assert "now" not in seen.text.split("If a rack is lost")[1].split()


def test_where_racks_are_not_known_the_page_says_so_without_a_picture() -> None:
    seen = shown(with_losses(RackLossTable(brokers_without_rack=(1, 2))))
    assert "No broker names its rack" in seen.text
    assert not seen.all("svg", cls="loss")


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(with_losses(None), id="an older plan, or one without partition states"),
        pytest.param(
            replace(with_losses(RackLossTable(racks=(loss_row("r1"),))), changes=()), id="a plan that changes nothing"
        ),
    ],
)
def test_without_changes_or_counts_there_is_no_such_part(plan: Plan) -> None:
    assert "rack is lost" not in shown(plan).text


# ---- hostile words ----


def test_nothing_of_a_spec_is_run_as_html() -> None:
    plan = with_words(rich_plan(), lambda text: f"{text}{HOSTILE}")
    question = Question(dag_id=HOSTILE, run_id=HOSTILE, replaced_by=HOSTILE)
    html = plan_page(PlanModel(run=RunOf(dag_id=HOSTILE, run_id=HOSTILE), plan=plan, question=question))
    assert_nothing_runs(html)
    assert Seen(html).text.count(HOSTILE) > 50


@settings(max_examples=15)
@given(any_plans(st.text(alphabet="<>\"'&=/ \n\x00\u202eascript", max_size=12)))
def test_no_plan_of_any_shape_breaks_the_page(plan: Plan) -> None:
    html = plan_page(PlanModel(run=RUN, plan=plan))
    assert_nothing_runs(html)


def test_a_change_s_own_words_are_shown_in_full() -> None:
    change = replace(builders.delete_change("old"), reason="a < b && c")
    plan = gate(builders.change_set([change]), builders.environment())
    assert "reason: a < b && c" in shown(plan).texts


def test_a_quiet_run_says_which_run_has_the_plan(tmp_path: Path) -> None:
    sentence = (
        f"Nothing differs from run {DAG}/one, which was good; the next full check is due at 2026-11-24 09:00 UTC."
    )
    quiet = Quiet(sentence=sentence, run=f"{DAG}/one", full_check_at=NOW, commit=None)
    write_run(tmp_path, DAG, "two", suites=()).write_value(QUIET_FILE, quiet)
    run = RunOf(dag_id=DAG, run_id="two")
    assert sentence in Seen(plan_page(read_plan(tmp_path, run))).text
    assert sentence in Seen(quality_page(read_quality(tmp_path, run))).text
