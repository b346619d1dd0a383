"""Clips become memory on a real Postgres: rows, people, names, facts, all in one transaction."""

from __future__ import annotations

import hashlib

import pytest
from sqlalchemy import select

from domain.errors import ModelError, NotFound
from domain.media import ClipState, Gap, GapReason, Percept, Sound
from domain.memories import ClipMemories, MemoryDraft, MemoryKind, MemorySource
from domain.people import IdentityStatement
from library.memory import dump_lines, show_video
from memory.writers.local_clip import LocalClipWriter
from memory.writers.port import ClipContext, Writers
from people.characters import ClipPeople
from store.database import Store
from store.queries.characters import characters_at
from store.queries.memories import memories_of_clips
from store.tables.schema import IdentityRow, UtteranceRow
from tests.support.memory import (
    SETTINGS,
    Perceived,
    Tools,
    face,
    keyframe,
    known_video,
    local_writers,
    percept,
    remember,
    said,
    span,
    text_at,
    voice,
)


def watch(
    store: Store, video: str, *percepts: Percept, writers: Writers | None = None
) -> list[ClipState]:
    writers = writers or local_writers()
    return [remember(store, video, Perceived(one), writers, Tools(), SETTINGS) for one in percepts]


def people(
    store: Store, video: str, clip: int
) -> list[tuple[int, str | None, tuple[int, ...], tuple[int, ...]]]:
    with store.begin() as session:
        found = characters_at(session, video, clip)
    return [
        (c.character.number, c.character.name, c.character.faces, c.character.voices) for c in found
    ]


def lines(store: Store, video: str, clips: list[int], as_of: int) -> list[str]:
    with store.begin() as session:
        return [m.memory.text for m in memories_of_clips(session, video, clips, as_of)]


def test_what_was_said_read_and_seen_is_remembered_in_order_of_time(store: Store) -> None:
    video = known_video(store, 1)
    seen = percept(
        0,
        utterances=(said(5, "Welcome to the office.", voice=0), said(1, "Hello.")),
        voices=(voice(0, 1, (5, 8)),),
        faces=(face(0, 1, (2, 3), (9, 10)),),
        screen_texts=(text_at(4, "PARIS"), text_at(4, "Second floor", row=1)),
    )
    assert watch(store, video, seen) == [ClipState.DONE]
    shown = show_video(store, video).clips[0]
    assert [(one.source, one.text) for one in shown.lines] == [
        ("said", "Hello."),
        ("seen", "<character_0> is on screen."),
        ("read", "On screen: PARIS / Second floor"),
        ("said", "<character_1>: Welcome to the office."),
    ]
    assert shown.lines[1].span == span(2, 10)


def test_a_sound_that_goes_on_over_the_border_of_clips_says_so(store: Store) -> None:
    video = known_video(store, 3)
    music = [
        Sound(span=span(*at), kind="music", score=0.9) for at in ((20, 30), (30, 60), (71, 74))
    ]
    watch(store, video, *(percept(n, sounds=(one,)) for n, one in enumerate(music)))
    assert lines(store, video, [0, 1, 2], 2) == [
        "Heard: music.",
        "Heard: music, continued.",
        "Heard: music.",
    ]


def test_a_clip_that_the_video_does_not_have_is_refused(store: Store) -> None:
    video = known_video(store, 1)
    with pytest.raises(NotFound, match="no clip 7"):
        watch(store, video, percept(7, utterances=(said(1, "Words."),)))


class Failing(LocalClipWriter):
    """A model that fails once, then writes."""

    wants_context, fails = True, True

    def write(self, percept: Percept, people: ClipPeople, context: ClipContext) -> ClipMemories:
        if self.fails:
            self.fails = False
            raise ModelError("the model is away")
        written = super().write(percept, people, context)
        model = [draft.model_copy(update={"source": "model"}) for draft in written.drafts[:1]]
        return written.model_copy(update={"drafts": (*written.drafts[1:], *model)})


def test_clip_that_its_model_fails_to_write_keeps_all_else_until_a_second_try(store: Store) -> None:
    video = known_video(store, 1)
    writers = Writers(Failing(), local_writers().event)
    sha = hashlib.sha256(b"jpeg").hexdigest()
    seen = percept(
        0,
        utterances=(said(3, "Words.", voice=0),),
        faces=(face(0, 1, (1, 5)),),
        voices=(voice(0, 1, (3, 5)),),
        keyframes=(keyframe(1, sha),),
    )
    perceived = Perceived(seen, {sha: b"jpeg"})
    assert remember(store, video, perceived, writers, Tools(), SETTINGS) == ClipState.FAILED
    first = show_video(store, video)
    assert (first.clips[0].error, first.clips[0].unwritten) == ("the model is away", True)
    assert store.blobs.exists(sha)
    assert [line.source for line in first.clips[0].lines] == ["seen", "said"]
    assert remember(store, video, perceived, writers, Tools(), SETTINGS) == ClipState.DONE
    second = show_video(store, video)
    assert (second.clips[0].error, second.clips[0].unwritten) == (None, False)
    assert [line.source for line in second.clips[0].lines] == ["model", "said"]
    assert (second.people, second.clips[0].keyframes) == (first.people, first.clips[0].keyframes)


def test_a_clip_that_did_not_decode_is_failed_with_the_reason(store: Store) -> None:
    video = known_video(store, 1)
    assert watch(store, video, percept(0, error="damaged packets")) == [ClipState.FAILED]
    assert show_video(store, video).clips[0].error == "damaged packets"


def test_a_clip_that_decoded_in_part_is_done_with_its_gaps(store: Store) -> None:
    video = known_video(store, 1)
    gaps = tuple(Gap(span=span(4, 5), reason=reason) for reason in GapReason)
    seen = percept(0, utterances=(said(1, "Words."),), error="3 frames lost", gaps=gaps)
    assert watch(store, video, seen) == [ClipState.DONE]
    shown = show_video(store, video).clips[0]
    assert (shown.error, shown.gaps) == ("3 frames lost", gaps)


def test_people_are_known_again_and_keep_their_numbers(store: Store) -> None:
    video = known_video(store, 3)
    watch(
        store,
        video,
        percept(0, faces=(face(0, 1, (1, 2)), face(1, 2, (1, 2)))),
        percept(1, faces=(face(0, 2, (31, 32)),)),
        percept(2, faces=(face(0, 3, (61, 62)), face(1, 1, (63, 64)))),
    )
    assert people(store, video, 0) == [(0, None, (0,), ()), (1, None, (1,), ())]
    assert people(store, video, 2) == [
        (0, None, (0,), ()),
        (1, None, (1,), ()),
        (2, None, (2,), ()),
    ]
    assert "<face_1> is on screen." in lines(store, video, [1], 1)


def test_a_voice_joins_the_face_it_is_heard_with_once_there_is_enough_of_it(store: Store) -> None:
    video = known_video(store, 3)
    clips = [
        percept(
            n,
            faces=(face(0, 1, (30 * n, 30 * n + 3)),),
            voices=(voice(0, 1, (30 * n, 30 * n + 3)),),
        )
        for n in range(3)
    ]
    watch(store, video, *clips)
    assert people(store, video, 0) == [(0, None, (0,), ()), (1, None, (), (0,))]
    assert people(store, video, 1) == [(0, None, (0,), (0,))]
    assert people(store, video, 2) == [(0, None, (0,), (0,))]


def test_a_voice_moves_to_the_face_with_more_support_and_takes_its_name_along(store: Store) -> None:
    video = known_video(store, 5)
    hello = said(0, "Hello, my name is Ada.", voice=0, seconds=5)
    watch(
        store,
        video,
        percept(0, faces=(face(0, 1, (0, 5)),), voices=(voice(0, 1, (0, 5)),), utterances=(hello,)),
        percept(1, faces=(face(0, 2, (30, 55)),), voices=(voice(0, 1, (30, 55)),)),
    )
    assert people(store, video, 0) == [(0, "Ada", (0,), (0,))]
    assert people(store, video, 1) == [(0, None, (0,), ()), (2, "Ada", (1,), (0,))]


def test_a_name_on_screen_is_the_face_s_from_then_on_and_not_before(store: Store) -> None:
    video = known_video(store, 3)
    watch(store, video, percept(0, faces=(face(0, 1, (1, 2)),)), named_on_screen(1, "Omar Haddad"))
    assert people(store, video, 0) == [(0, None, (0,), ())]
    assert people(store, video, 1) == [(0, "Omar Haddad", (0,), ())]
    assert "Omar" not in show_video(store, video, as_of=30_000).model_dump_json()
    late = [one.text for one in show_video(store, video).clips[1].lines]
    assert "<face_0> is named Omar Haddad, Software Engineer (shown on screen)." in late


def named_on_screen(clip: int, name: str) -> Percept:
    at = 30 * clip + 3
    return percept(
        clip,
        faces=(face(0, 1, (at - 2, at + 2)),),
        keyframes=(keyframe(at),),
        screen_texts=(text_at(at, name), text_at(at, "Software Engineer", row=1)),
    )


def test_name_on_screen_that_contradicts_a_known_one_waits_for_a_second_time(store: Store) -> None:
    video = known_video(store, 3)
    watch(store, video, named_on_screen(0, "Omar Haddad"), named_on_screen(1, "Ada Ferrari"))
    (person,) = show_video(store, video).people
    assert [name.name for name in person.names] == ["Omar Haddad"]
    assert not any("named Ada" in one.text for one in show_video(store, video).clips[1].lines)
    watch(store, video, named_on_screen(2, "Ada Ferrari"))
    (person,) = show_video(store, video).people
    assert [name.name for name in person.names] == ["Omar Haddad", "Ada Ferrari"]
    last = [line for line in dump_lines(store, video) if line.startswith('{"clip":2,')]
    assert any("<face_0> is named Ada Ferrari" in line for line in last)


class Stating(LocalClipWriter):
    """Writes the drafts it is given, clip by clip."""

    def __init__(self, *drafts: list[MemoryDraft]) -> None:
        self.drafts = list(drafts)

    def write(self, percept: Percept, *_: object) -> ClipMemories:
        return ClipMemories(drafts=tuple(self.drafts[percept.clip.index]))


def fact(text: str, clip: int, *tags: str, contradicts: tuple[int, ...] = ()) -> MemoryDraft:
    return MemoryDraft(
        kind=MemoryKind.CHARACTER,
        text=text,
        span=span(30 * clip, 30 * clip + 1),
        source=MemorySource.MODEL,
        tags=tags,
        contradicts=contradicts,
    )


def test_a_fact_met_again_is_strengthened_not_stored_twice(store: Store) -> None:
    video = known_video(store, 3)
    drafts = [[fact("<face_0> likes green tea", n, "<face_0>")] for n in range(3)]
    writers = Writers(Stating(*drafts), local_writers().event)
    seen = [percept(n, faces=(face(0, 1, (30 * n, 30 * n + 1)),)) for n in range(3)]
    watch(store, video, *seen, writers=writers)
    with store.begin() as session:
        weights = [
            [one.memory.weight for one in memories_of_clips(session, video, [0, 1, 2], n)]
            for n in range(3)
        ]
    assert weights == [[1], [2], [3]]


def test_a_contradicted_fact_is_closed_but_still_there_for_earlier_moments(store: Store) -> None:
    video = known_video(store, 2)
    watch(
        store,
        video,
        percept(0, utterances=(said(1, "Hi."),)),
        writers=Writers(Stating([fact("The door is open", 0)], []), local_writers().event),
    )
    with store.begin() as session:
        (old,) = [m.memory.id for m in memories_of_clips(session, video, [0], 0)]
    closing = fact("The door is closed", 1, contradicts=(old,))
    watch(
        store,
        video,
        percept(1, utterances=(said(31, "Hi."),)),
        writers=Writers(Stating([], [closing]), local_writers().event),
    )
    assert lines(store, video, [0, 1], 0) == ["The door is open"]
    assert lines(store, video, [0, 1], 1) == ["The door is closed"]


class Same(LocalClipWriter):
    """Says of both speakers of the first clip that they are the one face."""

    def write(self, seen: Percept, people: ClipPeople, context: ClipContext) -> ClipMemories:
        written = super().write(seen, people, context)
        if seen.clip.index:
            return written
        one = [
            IdentityStatement(face=0, voice=voice, clip=0, support=9.0, reason="two nicknames")
            for voice in (0, 1)
        ]
        return written.model_copy(update={"statements": tuple(one)})


def test_two_named_voices_of_one_character_stay_two_voices(store: Store) -> None:
    video = known_video(store, 2)
    writers = Writers(Same(), local_writers().event)
    for n, names in enumerate((("Jake", "Jay"), ("Jay", "Jake"))):
        start = 30 * n
        words = tuple(said(start + 5 * i, "Well, hello.", speaker=s) for i, s in enumerate(names))
        seen = percept(n, faces=(face(0, 1, (start, start + 9)),), utterances=words)
        assert watch(store, video, seen, writers=writers) == [ClipState.DONE]
    (person,) = show_video(store, video).people
    assert person.tags == ("<face_0>", "<voice_0>", "<voice_1>")
    with store.begin() as session:
        spoke = session.execute(
            select(UtteranceRow.clip, UtteranceRow.speaker, IdentityRow.number)
            .join(IdentityRow, IdentityRow.id == UtteranceRow.identity_id)
            .order_by(UtteranceRow.start_ms)
        )
        assert [tuple(row) for row in spoke] == [
            (0, "Jake", 0),
            (0, "Jay", 1),
            (1, "Jay", 1),
            (1, "Jake", 0),
        ]
