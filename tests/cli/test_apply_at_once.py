"""``topicops apply`` without a plan file: it plans, shows the plan, asks, applies and verifies in one process."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pytest

from fixtures.simulated import Simulated
from fixtures.workspace import Ended
from topicops.cli.apply import question
from topicops.flow import whole_runs
from topicops.model.plans.plan_file import plan_from_json

AT_ONCE = ("apply", "--environment", "local")


class Terminal(io.StringIO):
    """Somebody types this."""

    def isatty(self) -> bool:
        return True


Person = Callable[[str], None]


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Person:
    return lambda text: monkeypatch.setattr("sys.stdin", Terminal(f"{text}\n" if text else ""))


@pytest.fixture
def shop(simulated: Simulated) -> Simulated:
    """One topic to create, which may run; one to delete, which is held for an approval."""
    simulated.workspace.policy["unattended"] = "notice"
    simulated.workspace.topic("shop.new")
    simulated.workspace.tombstone("shop.old")
    simulated.cluster.put_topic("shop.old", (1, 2, 3))
    return simulated


def requests(shop: Simulated) -> list[str]:
    return [event for event in shop.events if event.startswith("request")]


def fingerprint(shop: Simulated) -> str:
    text = shop.workspace.run("plan", "--states", "--engine", "python", "--format", "json").out
    shop.events.clear()
    return plan_from_json(text).fingerprint


def test_yes_shows_the_plan_applies_what_may_run_and_verifies_it(shop: Simulated) -> None:
    ended = shop.workspace.run(*AT_ONCE, "--yes")
    assert (ended.status, requests(shop)) == (0, ["request create"]), ended.err
    assert ended.out.index("Plan for environment local") < ended.out.index("Applied and verified: 1 done; 1 held.")
    assert shop.cluster.snapshot().topics.keys() == {"shop.new", "shop.old"}
    assert "[y/N]" not in ended.err


def test_the_last_line_says_how_to_approve_what_is_held_and_is_true(shop: Simulated) -> None:
    last = shop.workspace.run(*AT_ONCE, "--yes").err.splitlines()[-1]
    shop.events.clear()
    words = last.removeprefix("To approve what is held: topicops ").split()
    ended = shop.workspace.run(*words)
    assert (ended.status, requests(shop)) == (0, ["request delete"]), ended.err


@pytest.mark.parametrize("answer", ["y", "YES"])
def test_a_person_who_says_yes_gets_what_may_run(shop: Simulated, person: Person, answer: str) -> None:
    person(answer)
    ended = shop.workspace.run(*AT_ONCE)
    assert (ended.status, requests(shop)) == (0, ["request create"]), ended.err
    assert "1 change is held; to run it too, type the first 8 digits: " in ended.err
    assert "topic.shop.new will be created" in ended.err  # stdout is no terminal: a pipe may hide the plan


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("", "."),
        ("n", "."),
        ("f" * 64, f": '{'f' * 64}' is not how this plan's fingerprint KEY... begins; review it first."),
        ("KEY-1", ": 'KEY-1' is too short: type 8 digits or more."),
        ("KEYx", ": 'KEYx' is not how this plan's fingerprint KEY... begins; review it first."),
    ],
)
def test_every_other_answer_sends_nothing_and_is_told_why(
    shop: Simulated, person: Person, answer: str, why: str
) -> None:
    key = fingerprint(shop)[:8]
    answer, why = (text.replace("KEY-1", key[:-1]).replace("KEY", key) for text in (answer, why))
    person(answer)
    ended = shop.workspace.run(*AT_ONCE)
    assert (ended.status, requests(shop)) == (1, [])
    assert ended.err.endswith(f"Nothing was sent{why}\n")
    assert "take the lease" not in shop.events


def test_without_a_terminal_and_without_yes_nothing_is_read_or_sent(shop: Simulated) -> None:
    ended = shop.workspace.run(*AT_ONCE)
    assert (ended.status, shop.events, ended.out) == (1, [], "")
    assert "there is no terminal to ask at, so nothing was sent: give --yes" in ended.err


@pytest.mark.parametrize("digits", [8, 64])
def test_the_typed_fingerprint_approves_what_is_held(shop: Simulated, person: Person, digits: int) -> None:
    person(fingerprint(shop)[:digits])
    ended = shop.workspace.run(*AT_ONCE)
    assert (ended.status, requests(shop)) == (0, ["request create", "request delete"]), ended.err


def test_yes_alone_approves_nothing_that_is_held(shop: Simulated) -> None:
    shop.workspace.path_of("shop.new").unlink()
    ended = shop.workspace.run(*AT_ONCE, "--yes")
    assert (ended.status, requests(shop)) == (3, [])


def test_the_fingerprint_on_the_command_line_approves_this_plan_alone(shop: Simulated) -> None:
    known = fingerprint(shop)[:8]
    shop.workspace.topic("shop.more")
    other = shop.workspace.run(*AT_ONCE, "--yes", "--approve", known)
    assert (other.status, requests(shop)) == (1, [])
    assert "review it first" in other.err
    short = shop.workspace.run(*AT_ONCE, "--yes", "--approve", fingerprint(shop)[:7])
    assert (short.status, requests(shop), "is too short" in short.err) == (1, [], True)

    shop.workspace.path_of("shop.more").unlink()
    ended = shop.workspace.run(*AT_ONCE, "--yes", "--approve", known)
    assert (ended.status, requests(shop)) == (0, ["request create", "request delete"]), ended.err


def test_an_approval_that_the_policy_does_not_take_lets_nothing_run(shop: Simulated, person: Person) -> None:
    shop.workspace.policy["approvals"] = ["question"]
    known = fingerprint(shop)
    person(known)
    asked = shop.workspace.run(*AT_ONCE)
    assert (asked.status, requests(shop)) == (1, []), "the fingerprint was not asked for: it is no yes"
    assert "--approve does not count here (policy.approvals" in asked.out

    ended = shop.workspace.run(*AT_ONCE, "--yes", "--approve", known)
    assert (ended.status, requests(shop)) == (0, ["request create"]), ended.err
    assert "an approval by parameter is not accepted" in ended.out


def test_where_nothing_can_be_sent_nothing_is_asked(simulated: Simulated, person: Person) -> None:
    person("")
    ended = simulated.workspace.run(*AT_ONCE)
    assert (ended.status, requests(simulated)) == (0, [])
    assert "[y/N]" not in ended.err


def test_only_the_topics_that_match_are_planned_and_sent(shop: Simulated) -> None:
    shop.workspace.topic("other")
    ended = shop.workspace.run(*AT_ONCE, "--yes", "--only", "shop.*")
    assert (ended.status, "other" in shop.cluster.snapshot().topics) == (0, False)


def moved(shop: Simulated) -> None:
    shop.cluster.put_topic("shop.new", (1, 2, 3))


def taken_back(shop: Simulated) -> None:
    shop.workspace.path_of("shop.new").unlink()
    shop.workspace.topic("shop.other")


def broken(shop: Simulated) -> None:
    shop.workspace.path_of("shop.new").write_text("{")


@pytest.mark.parametrize(("meanwhile", "status"), [(moved, 4), (taken_back, 4), (broken, 1)])
def test_what_changed_while_the_person_read_is_judged_again(
    shop: Simulated, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[Simulated], None], status: int
) -> None:
    class Slow(Terminal):
        def readline(self, *_: object) -> str:  # type: ignore[override]
            meanwhile(shop)
            return "y\n"

    monkeypatch.setattr("sys.stdin", Slow())
    ended = shop.workspace.run(*AT_ONCE)
    assert (ended.status, requests(shop)) == (status, []), ended.err


def test_json_on_stdout_is_the_report_alone(shop: Simulated) -> None:
    ended: Ended = shop.workspace.run(*AT_ONCE, "--yes", "--format", "json")
    assert json.loads(ended.out)["environment"] == "local"
    assert "1 to create" in ended.err


@pytest.mark.parametrize("option", [("--environment", "local"), ("--only", "*")], ids=" ".join)
def test_a_saved_plan_has_its_environment_and_topics(shop: Simulated, option: tuple[str, str]) -> None:
    ended = shop.workspace.run("apply", "plan.json", *option)
    assert (ended.status, shop.events) == (1, [])
    assert "a plan has its environment and its topics" in ended.err


@pytest.mark.parametrize(
    ("ready", "held", "text"),
    [
        (1, 0, "Apply this change? [y/N] "),
        (3, 0, "Apply these 3 changes? [y/N] "),
        (3, 2, "2 changes are held; to run them too, type the first 8 digits: 4603e8d7\nApply these 3 changes? [y/N] "),
        (0, 1, "1 change is held; to run it, type the first 8 digits: 4603e8d7\n> "),
    ],
)
def test_the_question_counts_what_may_run_and_what_is_held(ready: int, held: int, text: str) -> None:
    assert question(ready, held, "4603e8d7") == text


def test_the_own_plan_is_applied_by_the_same_function_as_a_saved_one() -> None:
    names = whole_runs.apply_plan.__code__.co_names, whole_runs.apply_own_plan.__code__.co_names
    assert all("_apply_and_verify" in found for found in names)
