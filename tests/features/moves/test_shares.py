import pytest

from topicops.features.moves.planned.shares import Room, Shape, Share, even_shares, least_moves


def rooms(racks: str, *, most: int = 1000, **closed: int) -> dict[int, Room]:
    """A broker for each letter, its rack, from 1 on; ``b3=7``: broker 3 holds 7 and takes nothing."""
    return {
        broker: Room(rack=rack, fixed=0, most=closed.get(f"b{broker}", most))
        for broker, rack in enumerate(racks, start=1)
    }


@pytest.mark.parametrize(
    ("found", "weights", "shares"),
    [
        pytest.param(rooms("abc"), {Shape(1, 1): 9}, [(3, 3)] * 3, id="all hold the same"),
        pytest.param(rooms("abc"), {Shape(1, 1): 10}, [(3, 4)] * 3, id="one more on some broker"),
        pytest.param(rooms("abb"), {Shape(1, 1): 6}, [(2, 2)] * 3, id="a rack may hold more than another"),
        pytest.param(
            rooms("abbbb"),
            {Shape(2, 2): 12},
            [(12, 12), (3, 3), (3, 3), (3, 3), (3, 3)],
            id="a small rack holds one of each",
        ),
        pytest.param(
            rooms("abcccccccc"),
            {Shape(2, 2): 10, Shape(1, 1): 10},
            [(5, 5)] * 2 + [(2, 3)] * 8,
            id="a large rack that is full",
        ),
        pytest.param(
            rooms("aab"),
            {Shape(2, 2): 10},
            [(5, 5), (5, 5), (10, 10)],
            id="a partition has one replica on each of two racks",
        ),
        pytest.param(
            rooms("aab"), {Shape(2, 1): 9}, [(6, 6)] * 3, id="a partition that was on one rack need not be on two"
        ),
        pytest.param(
            rooms("abc", b3=1), {Shape(1, 1): 10}, [(4, 5), (4, 5), (1, 1)], id="a closed broker takes nothing"
        ),
        pytest.param(
            {
                1: Room(rack="a", fixed=7, most=99),
                2: Room(rack="b", fixed=0, most=99),
                3: Room(rack="c", fixed=0, most=99),
            },
            {Shape(1, 1): 5},
            [(7, 7), (2, 3), (2, 3)],
            id="what is fixed stays",
        ),
        pytest.param(
            rooms("acbb"), {Shape(2, 2): 5, Shape(1, 1): 2}, [(3, 3)] * 4, id="a rack that would be full only later"
        ),
        pytest.param(
            # On both large racks together there are at most 20 + 10 of the 40 replicas.
            rooms("a" * 10 + "b" * 10 + "cd"),
            {Shape(3, 3): 10, Shape(1, 1): 10},
            [(1, 2)] * 20 + [(5, 5), (5, 5)],
            id="two racks that are full only together",
        ),
    ],
)
def test_shares_are_as_even_as_racks_allow(
    found: dict[int, Room], weights: dict[Shape, int], shares: list[tuple[int, int]]
) -> None:
    assert [even_shares(found, weights)[broker] for broker in found] == [Share(*share) for share in shares]


@pytest.mark.parametrize(
    ("held", "moves"),
    [
        pytest.param({1: 5, 2: 5}, 0, id="even"),
        pytest.param({1: 8, 2: 2}, 3, id="from one to the other"),
        pytest.param({1: 6, 2: 5}, 1, id="one is one too many"),
        pytest.param({1: 5, 2: 3}, 2, id="one lacks two"),
    ],
)
def test_the_fewest_moves_are_those_of_the_brokers_that_hold_too_much_or_too_little(
    held: dict[int, int], moves: int
) -> None:
    assert least_moves(held, {1: Share(5, 5), 2: Share(5, 5)}) == moves
