"""Kafka has no rename: a plan that seems to hold one says so on both sides."""

from dataclasses import replace

import pytest

from fakes.builders import create_change, delete_change, expand_change
from topicops.model.plans.changes import Change
from topicops.model.specs.diagnostics import Location
from topicops.steps.planning.planned_changes import rename_notes, with_notes_of_lost_files


def elsewhere(change: Change) -> Change:
    return replace(change, location=Location("topics/other/t.yaml", 4))


@pytest.mark.parametrize(
    ("deleted", "created"),
    [
        pytest.param(delete_change("orders"), elsewhere(create_change("orders-v2", 9)), id="a version is added"),
        pytest.param(delete_change("a.orders-v1"), elsewhere(create_change("a.orders-v2", 9)), id="one is raised"),
        pytest.param(delete_change("old.orders"), elsewhere(create_change("shop_orders", 9)), id="another domain"),
        pytest.param(delete_change("orders"), create_change("sales"), id="same folder and as many partitions"),
    ],
)
def test_a_delete_and_a_create_that_look_like_a_rename_are_told_to_be_none(deleted: Change, created: Change) -> None:
    assert rename_notes([created, deleted]) == {
        deleted.topic: f"this is not a rename to {created.topic}: no record and no group's offset is carried over",
        created.topic: f"this is not a rename of {deleted.topic}: no record and no group's offset is carried over",
    }


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([delete_change("orders"), create_change("sales", 9)], id="another shape"),
        pytest.param([delete_change("orders"), elsewhere(create_change("sales"))], id="another folder"),
        pytest.param([delete_change("a.orders.eu-1"), create_change("b.sales.us-1", 9)], id="less than half the words"),
        pytest.param([delete_change("orders"), expand_change("orders-v2")], id="nothing is created"),
        pytest.param([create_change("orders"), create_change("orders-v2")], id="nothing is deleted"),
    ],
)
def test_what_does_not_look_like_a_rename_is_not_spoken_of(changes: list[Change]) -> None:
    assert rename_notes(changes) == {}


def test_of_several_new_topics_the_one_with_the_most_words_in_common_is_named() -> None:
    notes = rename_notes([create_change("a.sales"), create_change("b.orders", 9), delete_change("a.orders")])
    assert set(notes) == {"a.orders", "a.sales"}
    notes = rename_notes([create_change("x.sales"), create_change("a.orders-v2", 9), delete_change("a.orders")])
    assert set(notes) == {"a.orders", "a.orders-v2"}


def test_among_many_new_topics_the_telling_word_counts() -> None:
    crowd = [elsewhere(create_change(f"shop.t{index}", 9)) for index in range(200)]
    notes = rename_notes([*crowd, elsewhere(create_change("shop.orders-v2", 9)), delete_change("shop.orders")])
    assert set(notes) == {"shop.orders", "shop.orders-v2"}


def test_which_pair_is_named_does_not_depend_on_the_order() -> None:
    changes = [create_change("a.orders"), create_change("b.orders"), delete_change("orders")]
    assert rename_notes(changes) == rename_notes(changes[::-1])


@pytest.mark.parametrize(
    ("lost", "is_noted"),
    [
        pytest.param({"shop.orders": "topics/x"}, True, id="most words of the name"),
        pytest.param({"sales": "topics/test"}, True, id="same folder and as many partitions"),
        pytest.param({"sales": "topics/x"}, False, id="nothing in common"),
        pytest.param({}, False, id="no file is lost"),
    ],
)
def test_a_created_topic_that_looks_like_one_whose_file_is_gone_is_no_rename(
    lost: dict[str, str], is_noted: bool
) -> None:
    created = replace(create_change("shop.orders-v2", 3), location=Location("topics/test/shop.orders-v2.yaml", 4))

    [change] = with_notes_of_lost_files([created], lost, dict.fromkeys(lost, 3))

    old = next(iter(lost), "")
    note = (
        f"this is not a rename of {old}: no record and no group's offset is carried over; "
        f"{old} stays as it is, and no file describes it now"
    )
    assert change.notes == ((note, *created.notes) if is_noted else created.notes)
