"""People over many clips: numbers are kept, views never change, whatever comes later."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from domain.media import ClipState, IdentityKind, Percept
from flows.removal import delete_video_rows
from library.memory import show_video
from store.database import Store
from store.queries.characters import CharacterAt, characters_at
from store.queries.clips import mark_clip
from store.queries.identities import known_identities
from tests.support.memory import (
    SETTINGS,
    Perceived,
    Tools,
    face,
    known_video,
    local_writers,
    percept,
    remember,
    said,
    text_at,
    voice,
)


def watch(store: Store, video: str, one: Percept) -> ClipState:
    return remember(store, video, Perceived(one), local_writers(), Tools(), SETTINGS)


def people(store: Store, video: str, clip: int) -> list[CharacterAt]:
    with store.begin() as session:
        return characters_at(session, video, clip)


SCENES = st.lists(
    st.tuples(
        st.lists(st.integers(0, 3), max_size=2, unique=True),
        st.none() | st.integers(0, 2),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=5,
)


def scene(n: int, who: list[int], speaker: int | None, named: bool, plate: bool) -> Percept:
    """Up to two faces for the whole clip; one of three voices that may say its name."""
    start = 30 * n
    faces = [face(place, one, (start, start + 25)) for place, one in enumerate(who)]
    names = ("Ada", "Omar", "Zoe")
    words = f"My name is {names[speaker or 0]}." if named else "It is a nice day."
    spoken = () if speaker is None else (said(start, words, voice=0, seconds=6),)
    shown = (text_at(start + 5, "Grace Hopper"), text_at(start + 5, "Professor", row=1))
    return percept(
        n,
        faces=tuple(faces),
        voices=() if speaker is None else (voice(0, speaker, (start, start + 6)),),
        utterances=spoken,
        screen_texts=shown if plate else (),
    )


@pytest.mark.full
@hypothesis_settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(SCENES)
def test_whatever_is_watched_everybody_is_one_character_and_the_past_stays(
    store: Store, scenes: list[tuple[list[int], int | None, bool, bool]]
) -> None:
    video = known_video(store, len(scenes))
    seen = []
    for n, given_scene in enumerate(scenes):
        assert watch(store, video, scene(n, *given_scene)) == ClipState.DONE
        seen.append(people(store, video, n))
        cast = seen[-1]
        members = [row for one in cast for row in one.members]
        assert len(set(members)) == len(members)
        assert all(one.members for one in cast)
        for one in cast:
            assert len({name.name.casefold() for name in one.names}) == len(one.names)
    for n, then in enumerate(seen):
        assert people(store, video, n) == then
    faces = {who for one in scenes for who in one[0]}
    with store.begin() as session:
        assert len(known_identities(session, video, IdentityKind.FACE)) == len(faces)
    delete_video_rows(store, video)


def test_a_clip_that_comes_late_moves_the_first_appearance_back(store: Store) -> None:
    video = known_video(store, 2)
    with store.begin() as session:
        mark_clip(session, video, 0, ClipState.FAILED, "away")
    watch(store, video, percept(1, faces=(face(0, 1, (31, 32)),)))
    assert people(store, video, 0) == []
    watch(store, video, percept(0, faces=(face(0, 1, (1, 2)),)))
    assert [one.character.faces for one in people(store, video, 0)] == [(0,)]
    assert [one.character.faces for one in people(store, video, 1)] == [(0,)]


def test_numbers_of_characters_that_ended_are_not_given_again(store: Store) -> None:
    video = known_video(store, 2)
    joined = percept(0, faces=(face(0, 1, (0, 6)),), voices=(voice(0, 1, (0, 6)),))
    watch(store, video, joined)
    watch(store, video, percept(1, faces=(face(0, 2, (30, 31)),)))
    assert [one.character.number for one in people(store, video, 1)] == [0, 2]


def test_names_learned_later_stand_in_lines_of_before_but_only_in_later_views(store: Store) -> None:
    video = known_video(store, 2)
    for n, words in enumerate(("It is late.", "My name is Ada.")):
        one = percept(
            n,
            voices=(voice(0, 1, (30 * n, 30 * n + 3)),),
            utterances=(said(30 * n, words, voice=0),),
        )
        watch(store, video, one)
    first = show_video(store, video, as_of=30_000).clips[0].lines[0].text
    later = show_video(store, video).clips[0].lines[0].text
    assert (first, later) == ("<character_0>: It is late.", "Ada: It is late.")
