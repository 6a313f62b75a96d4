from __future__ import annotations

from collections.abc import Mapping

import pytest

from topicops.steps.planning.approvals import AS_THE_BUTTON, MOST_FIELDS, REJECT_FIELD, REJECTED, fields_of, marked

FEW = {"d1": "delete legacy.orders", "d2": "delete legacy.carts", "d3": "expand shop.views"}
MANY = {**FEW, **{f"m{n}": f"delete tmp.t{n}" for n in range(MOST_FIELDS)}}
NO_FORM: Mapping[str, str] = {}


def test_a_question_about_one_change_needs_no_field() -> None:
    assert fields_of({"d1": "delete legacy.orders"}, ()) == {}


def test_each_of_a_few_changes_has_a_field_and_those_rejected_before_are_marked() -> None:
    assert fields_of(FEW, {"d2", "gone"}) == {
        "delete legacy.orders": AS_THE_BUTTON,
        "delete legacy.carts": REJECTED,
        "expand shop.views": AS_THE_BUTTON,
    }


def test_many_changes_share_one_field_that_names_those_rejected_before() -> None:
    assert fields_of(MANY, {"d2", "d3"}) == {REJECT_FIELD: "legacy.carts, shop.views"}


@pytest.mark.parametrize(
    ("given", "rejected"),
    [
        pytest.param({}, set(), id="nothing is filled in"),
        pytest.param({"delete legacy.orders": REJECTED}, {"d1"}, id="one is marked"),
        pytest.param({"delete legacy.orders": AS_THE_BUTTON}, set(), id="one is left to the button"),
        pytest.param({"delete legacy.orders": ""}, {"d1"}, id="one is emptied, so it is not left to the button"),
        pytest.param({"delete legacy.orders": "Reject!"}, {"d1"}, id="another word is no approval"),
        pytest.param(dict.fromkeys(FEW.values(), REJECTED), set(FEW), id="all"),
    ],
)
def test_approve_covers_what_its_own_field_leaves_to_the_button(given: Mapping[str, str], rejected: set[str]) -> None:
    assert marked(FEW, fields_of(FEW, ()), given) == rejected


def test_a_mark_of_an_earlier_rejection_stays_until_the_person_changes_it() -> None:
    fields = fields_of(FEW, {"d2"})
    assert marked(FEW, fields, {}) == {"d2"}
    assert marked(FEW, fields, {"delete legacy.carts": AS_THE_BUTTON}) == frozenset()


@pytest.mark.parametrize(
    ("written", "rejected"),
    [
        pytest.param("", set(), id="empty"),
        pytest.param("shop.views", {"d3"}, id="a name"),
        pytest.param(" legacy.* ,\nshop.views;", {"d1", "d2", "d3"}, id="a pattern and a name"),
        pytest.param("*", set(MANY), id="all"),
    ],
)
def test_the_field_of_many_changes_takes_names_and_patterns(written: str, rejected: set[str]) -> None:
    assert marked(MANY, fields_of(MANY, ()), {REJECT_FIELD: written}) == rejected


@pytest.mark.parametrize(
    ("titles", "given", "reason"),
    [
        pytest.param(MANY, {REJECT_FIELD: "shop.views, legacy.order"}, "'legacy.order', which is no", id="a typo"),
        pytest.param(MANY, {REJECT_FIELD: "delete shop.views"}, "'delete', which is no", id="an action"),
        pytest.param(FEW, {"delete legacy.order": REJECTED}, "has a field that the question has not", id="a field"),
        pytest.param({"d1": "delete a"}, {REJECT_FIELD: "a"}, "has a field that the question has not", id="no form"),
    ],
)
def test_a_choice_that_is_not_understood_is_said_to_be_so(
    titles: Mapping[str, str], given: Mapping[str, str], reason: str
) -> None:
    found = marked(titles, fields_of(titles, ()), given)
    assert isinstance(found, str)
    assert reason in found


def test_an_answer_to_a_question_of_a_version_without_a_form_is_its_button_alone() -> None:
    assert marked(NO_FORM, NO_FORM, {}) == frozenset()
