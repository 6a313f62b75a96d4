import json
from dataclasses import replace

from fakes.builders import (
    change_set,
    configure_change,
    create_change,
    delete_change,
    expand_change,
    live_topic,
    snapshot,
)
from topicops.model.plans.plan import BrokerLoad, LoadTable, RackLoad, Share
from topicops.model.plans.plan_file import changes_to_json
from topicops.steps.planning.placement.load import load_table


def share(replicas: int, leaders: int) -> Share:
    return Share(replicas=replicas, leaders=leaders)


def test_the_load_is_counted_without_the_changes_and_with_all_of_them() -> None:
    live = snapshot(
        live_topic("a", assignment={0: (1, 2), 1: (1, 3)}),
        live_topic("gone", assignment={0: (3, 1)}),
        racks={1: "east", 2: "west", 3: "east"},
    )
    new = replace(create_change("b"), assignment={0: (2, 3)})
    more = replace(expand_change("a"), assignment={2: (2, 1)})
    table = load_table(live, [new, more, configure_change("a"), delete_change("gone")])
    assert table.brokers == (
        BrokerLoad(broker=1, rack="east", before=share(3, 2), after=share(3, 2)),
        BrokerLoad(broker=2, rack="west", before=share(1, 0), after=share(3, 2)),
        BrokerLoad(broker=3, rack="east", before=share(2, 1), after=share(2, 0)),
    )
    assert table.racks == (
        RackLoad(rack="east", brokers=2, before=share(5, 3), after=share(5, 2)),
        RackLoad(rack="west", brokers=1, before=share(1, 0), after=share(3, 2)),
    )


def test_a_plan_that_places_nothing_shows_no_load() -> None:
    live = snapshot(live_topic("a"))
    assert load_table(live, [configure_change("a"), delete_change("a")]) == LoadTable()


def test_brokers_without_a_rack_are_in_no_rack() -> None:
    table = load_table(snapshot(racks={2: None, 1: None}), [replace(create_change("b"), assignment={0: (2,)})])
    assert [(load.broker, load.after) for load in table.brokers] == [(1, share(0, 0)), (2, share(1, 1))]
    assert table.racks == ()


def test_a_replica_counts_where_a_running_reassignment_will_have_it() -> None:
    moving = live_topic("a", assignment={0: (3, 2, 1)}, removing={0: (1,)}, adding={0: (3,)})
    table = load_table(snapshot(moving), [replace(create_change("b"), assignment={0: (1,)})])
    assert [load.before for load in table.brokers] == [share(0, 0), share(1, 0), share(1, 1)]


def test_the_file_holds_the_load_and_no_digest_depends_on_it() -> None:
    changes = change_set([create_change("b")])
    loaded = replace(changes, load=load_table(snapshot(live_topic("a")), changes.changes))
    one, other = (json.loads(changes_to_json(found)) for found in (changes, loaded))
    assert other["load"]["brokers"][0] == {
        "broker": 1,
        "rack": "r1",
        "before": {"replicas": 3, "leaders": 1},
        "after": {"replicas": 6, "leaders": 2},
    }
    assert [change["digest"] for change in one["changes"]] == [change["digest"] for change in other["changes"]]
