"""What a step of a build changes, as questions as of each moment see it."""

from __future__ import annotations

import pytest

from domain.built import (
    Change,
    ClosedNode,
    Entity,
    EntityKey,
    Node,
    Relation,
)
from domain.time import TimeSpan
from store.database import Store
from store.queries.builds import StepMade, apply_change, cut_builds, read_built
from tests.support.asking import CLIPS, PARTY, remember_party
from tests.support.asking import built_rows as rows

BUILDER = "two-levels"
SPAN = TimeSpan.of(0, 60_000)
ANN, BOB = EntityKey("PERSON", "Ann"), EntityKey("PERSON", "Bob")


@pytest.fixture
def party(store: Store) -> Store:
    remember_party(store, len(CLIPS) - 1)
    return store


def apply(store: Store, through: int, change: Change) -> None:
    with store.begin() as session:
        apply_change(session, PARTY, BUILDER, StepMade(through, 1, "words"), change)


def node(number: int, clip: int, text: str, to_clip: int | None = None) -> Node:
    return Node("super", number, text, SPAN, clip, to_clip=to_clip)


def meets(clip: int, to_clip: int | None = None) -> Relation:
    return Relation("super", ANN, "meets", BOB, SPAN, clip, to_clip=to_clip)


def seen(store: Store, clip: int) -> list[str]:
    """The texts of the nodes and the relations that hold after a clip."""
    with store.begin() as session:
        memory = read_built(session, PARTY, BUILDER)
    held = [(n.text, n.from_clip, n.to_clip) for n in memory.nodes]
    held += [(r.predicate, r.from_clip, r.to_clip) for r in memory.relations]
    return sorted(t for t, begins, ends in held if begins <= clip and (ends is None or ends > clip))


def test_a_closed_node_is_seen_until_its_clip_and_may_come_back(party: Store) -> None:
    apply(party, 0, Change([node(0, 0, "first"), node(1, 0, "second")]))
    apply(party, 2, Change(closed_nodes=[ClosedNode("super", 1, 2)]))
    apply(party, 4, Change([node(1, 4, "again")]))
    assert [seen(party, clip) for clip in (1, 2, 3, 4)] == [
        ["first", "second"],
        ["first"],
        ["first"],
        ["again", "first"],
    ]


def test_a_cut_opens_again_what_was_closed_later(party: Store) -> None:
    apply(party, 0, Change([node(0, 0, "first"), node(1, 0, "second")]))
    before = rows(party)
    apply(party, 2, Change(closed_nodes=[ClosedNode("super", 1, 2)]))
    with party.begin() as session:
        cut_builds(session, PARTY, [1])
    assert rows(party) == before


def test_steps_of_one_clip_and_of_many_are_stored_alike(party: Store) -> None:
    entities = [Entity(ANN, 1), Entity(BOB, 1)]
    apply(party, 0, Change([node(0, 0, "a")]))
    apply(party, 1, Change([node(0, 1, "b")], entities, [meets(1)]))
    closed = [meets(1, 3)]
    apply(party, 3, Change([node(0, 3, "c")], closed=closed))
    by_clip = rows(party)
    with party.begin() as session:
        cut_builds(session, PARTY, [0])
    nodes = [node(0, 0, "a", 1), node(0, 1, "b", 3), node(0, 3, "c")]
    apply(party, 3, Change(nodes, entities, [meets(1, 3)]))
    assert rows(party) == by_clip
    assert [seen(party, clip) for clip in (0, 1, 2, 3)] == [
        ["a"],
        ["b", "meets"],
        ["b", "meets"],
        ["c"],
    ]
