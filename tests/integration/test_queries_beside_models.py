"""What the store answers as of a clip, beside the same answer from plain lists.

Each example lives in a transaction that is rolled back, so that they are quick and alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlalchemy.orm import Session

from domain.media import ClipState, IdentityKind
from domain.memories import MemoryDraft, MemoryKind, MemorySource
from domain.people import IdentityStatement
from store.database import Store
from store.queries import characters, events, outline
from store.queries.characters import Membership, learned_with, replace_memberships, stated_support
from store.queries.clips import clip_states, mark_clip
from store.queries.identities import add_identities, add_statements
from store.queries.memories import (
    add_memories,
    closest_fact,
    facts_about,
    link_memories,
    memories_of_clips,
    strengthen,
    supersede,
)
from tests.support.full_suite import examples
from tests.support.memory import VIDEO, direction, known_video, span, undone

CLIPS = 6
quick = hypothesis_settings(
    max_examples=examples(5, 15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
CLIP = st.integers(0, CLIPS - 1)


@pytest.fixture
def known(store: Store) -> Store:
    known_video(store, CLIPS)
    return store


class Fact(NamedTuple):
    """A line of a clip about some of three people; ``gone`` closes it, ``met`` are later clips."""

    clip: int
    semantic: bool
    about: frozenset[int]
    look: int
    gone: int | None
    met: tuple[int, ...]

    def seen(self, as_of: int) -> bool:
        return self.clip <= as_of and (self.gone is None or self.gone > as_of)


FACTS = st.lists(
    st.builds(
        Fact,
        CLIP,
        st.booleans(),
        st.frozensets(st.integers(0, 2), max_size=3),
        st.integers(0, 5),
        st.none() | CLIP,
        st.lists(CLIP, max_size=2, unique=True).map(tuple),
    ),
    min_size=1,
    max_size=8,
)


def stored(session: Session, facts: list[Fact]) -> tuple[list[int], list[int]]:
    """Ids of the lines, in order, and of the three people."""
    people = [one.id for one in add_identities(session, VIDEO, IdentityKind.FACE, 3, 0)]
    ids = []
    for fact in facts:
        draft = MemoryDraft(
            kind=MemoryKind.CHARACTER if fact.semantic else MemoryKind.EPISODIC,
            text=f"look {fact.look}",
            span=span(30 * fact.clip, 30 * fact.clip + 1),
            source=MemorySource.MODEL,
        )
        (row,) = add_memories(session, VIDEO, fact.clip, [draft], [direction(fact.look)])
        link_memories(session, [(row, people[who]) for who in fact.about])
        for clip in fact.met:
            strengthen(session, [row], clip)
        if fact.gone is not None:
            supersede(session, VIDEO, [row], fact.gone)
        ids.append(row)
    return ids, people


@quick
@given(FACTS, st.frozensets(st.integers(0, 2)), st.integers(0, 5))
def test_the_same_fact_is_one_about_the_same_people_that_still_holds(
    known: Store, facts: list[Fact], about: frozenset[int], look: int
) -> None:
    with undone(known) as session:
        ids, people = stored(session, facts)
        found = closest_fact(
            session, VIDEO, [[people[who]] for who in about], list(direction(look))
        )
    open_ones = {
        row: float(np.dot(direction(fact.look), direction(look)))
        for row, fact in zip(ids, facts, strict=True)
        if fact.semantic and fact.gone is None and fact.about == about
    }
    if not open_ones:
        assert found is None
        return
    assert found is not None
    assert found[0] in open_ones
    assert found[1] == pytest.approx(max(open_ones.values()), abs=2e-3)


def test_a_fact_about_somebody_seen_is_known_of_the_same_one_heard(known: Store) -> None:
    """Of three identities the first two are one person: a face, and a voice."""
    facts = [Fact(0, True, frozenset({0}), 1, None, ()), Fact(0, True, frozenset({2}), 1, None, ())]
    with undone(known) as session:
        (seen, other), people = stored(session, facts)
        look, whole = list(direction(1)), people[:2]

        def found(*about: list[int]) -> int | None:
            fact = closest_fact(session, VIDEO, about, look)
            return fact and fact[0]

        assert (found(whole), found([people[2]])) == (seen, other)
        assert found(whole, [people[2]]) is None


@quick
@given(FACTS, st.sets(CLIP), st.integers(-1, CLIPS))
def test_lines_are_those_that_held_with_as_much_weight_as_they_had(
    known: Store, facts: list[Fact], clips: set[int], as_of: int
) -> None:
    with undone(known) as session:
        ids, _ = stored(session, facts)
        found = memories_of_clips(session, VIDEO, sorted(clips), as_of)
    wanted = {
        row: (fact.clip, 1 + sum(clip <= as_of for clip in fact.met), len(fact.about))
        for row, fact in zip(ids, facts, strict=True)
        if fact.clip in clips and fact.seen(as_of)
    }
    got = {
        one.memory.id: (one.memory.clip, one.memory.weight, len(one.memory.tags)) for one in found
    }
    assert got == wanted
    order = [(one.memory.clip, one.memory.span.start_ms, one.memory.id) for one in found]
    assert order == sorted(order)
    for one in found:
        look = facts[ids.index(one.memory.id)].look
        assert np.allclose(one.vector, direction(look), atol=2e-3)


@quick
@given(FACTS, st.frozensets(st.integers(0, 2)), st.integers(0, CLIPS), st.integers(1, 4))
def test_known_facts_are_the_latest_about_anybody_of_these(
    known: Store, facts: list[Fact], about: frozenset[int], as_of: int, limit: int
) -> None:
    with undone(known) as session:
        ids, people = stored(session, facts)
        found = facts_about(session, VIDEO, [people[who] for who in about], as_of, limit)
    wanted = sorted(
        (fact.clip, row)
        for row, fact in zip(ids, facts, strict=True)
        if fact.semantic and fact.seen(as_of) and fact.about & about
    )
    assert [(one.clip, one.id) for one in found] == wanted[-limit:]


STATES = st.lists(st.sampled_from("dfp"), min_size=CLIPS, max_size=CLIPS).map("".join)


@quick
@given(STATES, CLIP, st.integers(1, CLIPS), st.sets(CLIP, max_size=3))
def test_a_stretch_is_reported_by_state_with_the_first_that_was_not_tried(
    known: Store, states: str, start: int, length: int, also: set[int]
) -> None:
    with undone(known) as session:
        for clip, letter in enumerate(states):
            if letter != "p":
                state = ClipState.DONE if letter == "d" else ClipState.FAILED
                mark_clip(session, VIDEO, clip, state)
        found = clip_states(session, VIDEO, start, start + length, sorted(also))
        nothing = clip_states(session, "f" * 16, 0, 10, ())
    wanted = [n for n in range(CLIPS) if start <= n < start + length or n in also]
    assert found.done == tuple(n for n in wanted if states[n] == "d")
    assert found.failed == tuple(n for n in wanted if states[n] == "f")
    assert found.first_pending == next((n for n in range(start, CLIPS) if states[n] == "p"), None)
    assert found.highest == CLIPS - 1
    assert (nothing.done, nothing.failed, nothing.first_pending, nothing.highest) == (
        (),
        (),
        None,
        -1,
    )


class Held(NamedTuple):
    """Something that holds from one clip until, but not at, another."""

    since: int
    until: int | None

    def at(self, clip: int) -> bool:
        return self.since <= clip and (self.until is None or self.until > clip)


HELD = st.tuples(CLIP, st.none() | st.integers(0, 3)).map(
    lambda pair: Held(pair[0], None if pair[1] is None else pair[0] + pair[1])
)


@quick
@given(st.lists(st.tuples(st.sampled_from(["Ada", "Bo", "Zoe"]), CLIP), max_size=5), HELD)
def test_names_are_those_of_then(known: Store, names: list[tuple[str, int]], whole: Held) -> None:
    with undone(known) as session:
        (face,) = add_identities(session, VIDEO, IdentityKind.FACE, 1, whole.since)
        held = [Membership(face.id, face.character, whole.since, whole.until)]
        replace_memberships(session, [face.id], held, held)
        for name, clip in names:
            characters.add_name(session, VIDEO, face.id, name, "said", clip)
        views = {n: characters.characters_at(session, VIDEO, n) for n in range(CLIPS)}
        with_face = {n: learned_with(session, VIDEO, [face.id], n) for n in range(CLIPS)}
    for n, found in views.items():
        assert len(found) == whole.at(n)
        assert found == with_face[n]
        for one in found:
            then = {name for name, clip in names if clip <= n}
            assert {name.name for name in one.names} == then
            assert (one.character.faces, one.character.name in (*then, None)) == ((0,), True)
            assert (one.character.name is None) == (not then)


REVISIONS = st.lists(
    st.tuples(
        st.lists(CLIP, min_size=1, max_size=3, unique=True).map(sorted), st.integers(0, 2), HELD
    ),
    min_size=1,
    max_size=5,
)


def segments(session: Session, made: list[tuple[list[int], int, Held]]) -> dict[int, int]:
    ids = events.add_segments(session, VIDEO, list(range(len(made))))
    for number, (clips, look, held) in enumerate(made):
        row: dict[str, Any] = {
            "segment_id": ids[number],
            "revision": 0,
            "label": f"look {look}",
            "summary": "",
            "clips": clips,
            "history": [],
            "from_clip": held.since,
            "embedding": list(direction(look)),
            "encoder": "words",
        }
        events.add_revisions(session, [row])
        if held.until is not None:
            events.close_revisions(session, [ids[number]], held.until)
    return ids


@quick
@given(REVISIONS, st.sets(CLIP), st.sets(st.sampled_from(["look 0", "look 1", "other"])))
def test_segments_are_those_that_hold_and_near_ones_share_a_label_or_a_clip(
    known: Store, made: list[tuple[list[int], int, Held]], clips: set[int], labels: set[str]
) -> None:
    with undone(known) as session:
        segments(session, made)
        views = {n: outline.segments_at(session, VIDEO, n) for n in range(CLIPS)}
        near = events.open_segments_near(session, VIDEO, labels=labels, clips=clips)
        closest = events.closest_segments(session, VIDEO, list(direction(1)), 3)
        following = events.next_segment_number(session, VIDEO)
    for n, found in views.items():
        assert [one.number for one in found] == [k for k, (*_, h) in enumerate(made) if h.at(n)]
    still = {k: (c, look) for k, (c, look, held) in enumerate(made) if held.until is None}
    assert [one.number for one in near.values()] == [
        k for k, (c, look) in still.items() if clips & set(c) or f"look {look}" in labels
    ]
    likeness = {k: float(np.dot(direction(look), direction(1))) for k, (_, look) in still.items()}
    best = sorted(likeness, key=lambda k: (-round(likeness[k], 3), k))
    assert [one.number for one in closest.values()] == best[:3]
    assert following == len(made)


@quick
@given(REVISIONS, st.data())
def test_edges_hold_between_their_clips_and_are_closed_once(
    known: Store, made: list[tuple[list[int], int, Held]], data: st.DataObject
) -> None:
    with undone(known) as session:
        ids = segments(session, made)
        ends = st.sampled_from(sorted(ids))
        drawn = data.draw(st.lists(st.tuples(ends, ends, HELD), max_size=4))
        for source, target, held in drawn:
            blank = {"relation": "before", "explicit": False, "confidence": 0.5, "rationale": "So."}
            row = {"source_id": ids[source], "target_id": ids[target], "evidence": [0], **blank}
            events.add_edges(session, VIDEO, held.since, [row])
            newest = outline.edges_at(session, VIDEO, CLIPS)[-1].id
            if held.until is not None:
                events.close_edges(session, [newest], held.until)
                events.close_edges(session, [newest], held.until + 1)
        views = {n: outline.edges_at(session, VIDEO, n) for n in range(CLIPS)}
        touching = events.open_edges_of(session, [ids[0]])
    numbers = {row: number for number, row in ids.items()}
    for n, found in views.items():
        then = [(source, target) for source, target, held in drawn if held.at(n)]
        assert [(numbers[e.source], numbers[e.target]) for e in found] == then
    assert len(touching) == sum(
        held.until is None and 0 in (source, target) for source, target, held in drawn
    )


def test_statements_about_a_voice_are_in_order(known: Store) -> None:
    with undone(known) as session:
        faces = add_identities(session, VIDEO, IdentityKind.FACE, 2, 0)
        voices = add_identities(session, VIDEO, IdentityKind.VOICE, 2, 0)
        ids = {(one.kind, one.number): one.id for one in [*faces, *voices]}
        for face, voice, support in [(1, 0, 2.0), (0, 0, 0.5), (1, 0, 1.5), (0, 1, 3.0)]:
            one = IdentityStatement(face=face, voice=voice, clip=0, support=support, reason="r")
            add_statements(session, VIDEO, [one], ids)
        found = stated_support(session, VIDEO, [voices[0].id])
        assert stated_support(session, VIDEO, []) == []
    rows = [one.id for one in faces]
    assert [(rows.index(one.face), one.support) for one in found] == [(1, 2.0), (0, 0.5), (1, 1.5)]
