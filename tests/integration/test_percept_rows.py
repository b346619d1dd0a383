"""What was perceived goes into rows and comes out as it was, whatever is in it.

Each example lives in a transaction that is rolled back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from domain.media import (
    Box,
    ClipState,
    Gap,
    GapReason,
    Group,
    IdentityKind,
    Keyframe,
    Percept,
    ScreenText,
    SeenObject,
    Sighting,
    Utterance,
)
from domain.memories import MemoryDraft, MemoryKind, MemorySource
from domain.time import TimeSpan
from library.memory import show_video
from store.database import Store
from store.queries.backup import Record, video_records
from store.queries.clips import mark_clip
from store.queries.identities import add_identities, change_exemplars, exemplars_of
from store.queries.memories import add_memories, memories_of_clips, tags_of
from store.queries.percepts import add_blobs, add_percept, clip_state, title_of
from tests.support.full_suite import examples
from tests.support.memory import VIDEO, clip, direction, known_video, span, undone

CLIP = 1
START, END = 30_000, 60_000
quick = hypothesis_settings(
    max_examples=examples(5, 15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
TIME = st.integers(START, END)
SPANS = st.tuples(TIME, TIME).map(lambda pair: TimeSpan.of(*sorted(pair)))
SHARE = st.floats(0, 1)
BOXES = st.tuples(*[st.integers(0, 500)] * 2, *[st.integers(1, 500)] * 2).map(
    lambda b: Box(x0=b[0], y0=b[1], x1=b[0] + b[2], y1=b[1] + b[3])
)
FRAMES = st.builds(
    Keyframe,
    time_ms=TIME,
    shot=st.integers(0, 9),
    sharpness=st.floats(0, 1e6),
    entropy=st.floats(0, 5),
    quality=st.floats(0, 1e6),
    width=st.integers(1, 4000),
    height=st.integers(1, 4000),
    blob=st.sampled_from(["a" * 64, "b" * 64]),
)
UTTERANCES = st.builds(
    Utterance,
    span=SPANS,
    text=TEXT,
    language=st.sampled_from(["", "en", "de"]),
    confidence=SHARE,
    voice=st.none() | st.integers(0, 1),
    speaker=st.none() | st.sampled_from(["Jake", "Lucia", "Others"]),
)
SEEN = st.builds(
    Sighting,
    span=SPANS,
    box=st.none() | BOXES,
    score=SHARE,
    quality=st.floats(0, 100),
    vector=st.just(direction(1)),
    blob=st.none() | st.just("c" * 64),
)


def groups(kind: IdentityKind) -> st.SearchStrategy[tuple[Group, ...]]:
    return st.lists(st.lists(SEEN, min_size=1, max_size=3), max_size=2).map(
        lambda found: tuple(
            Group(kind=kind, number=number, sightings=tuple(seen))
            for number, seen in enumerate(found)
        )
    )


PERCEPTS = st.builds(
    Percept,
    clip=st.just(clip(CLIP)),
    keyframes=st.lists(FRAMES, max_size=3).map(tuple),
    utterances=st.lists(UTTERANCES, max_size=3).map(tuple),
    captions=st.lists(UTTERANCES, max_size=2).map(tuple),
    screen_texts=st.lists(
        st.builds(ScreenText, time_ms=TIME, text=TEXT, score=SHARE, box=BOXES), max_size=3
    ).map(tuple),
    objects=st.lists(
        st.builds(SeenObject, time_ms=TIME, label=TEXT.filter(bool), score=SHARE, box=BOXES),
        max_size=3,
    ).map(tuple),
    subtitles=st.lists(UTTERANCES, max_size=2).map(tuple),
    chapters=st.lists(UTTERANCES, max_size=2).map(tuple),
    faces=groups(IdentityKind.FACE),
    voices=groups(IdentityKind.VOICE),
    gaps=st.lists(SPANS, max_size=2).map(
        lambda spans: tuple(Gap(span=span, reason=GapReason.DAMAGED) for span in spans)
    ),
)


@pytest.fixture
def known(store: Store) -> Store:
    known_video(store, 3)
    return store


def rows(found: list[Record], kind: str) -> list[Record]:
    return [one for one in found if one["row"] == kind]


def boxed(box: Box | None) -> list[int] | None:
    return [box.x0, box.y0, box.x1, box.y1] if box else None


@quick
@given(PERCEPTS)
def test_a_percept_comes_out_as_it_went_in(known: Store, seen: Percept) -> None:
    with undone(known) as session:
        owners: dict[tuple[IdentityKind, int], int] = {}
        numbers: dict[tuple[IdentityKind, int], int] = {}
        for kind, found in ((IdentityKind.FACE, seen.faces), (IdentityKind.VOICE, seen.voices)):
            made = add_identities(session, VIDEO, kind, len(found), CLIP)
            owners |= {(kind, g.number): one.id for g, one in zip(found, made, strict=True)}
            numbers |= {(kind, g.number): one.number for g, one in zip(found, made, strict=True)}
        ids = add_percept(session, VIDEO, seen, owners, {})
        out = list(video_records(session, VIDEO))
    frames = [(k.time_ms, k.shot, k.quality, k.blob) for k in seen.keyframes]
    assert [(r["time_ms"], r["shot"], r["quality"], r["blob"]) for r in rows(out, "keyframe")] == (
        frames
    )
    texts = [(t.time_ms, t.text, t.score, boxed(t.box)) for t in seen.screen_texts]
    assert [
        (r["time_ms"], r["text"], r["score"], r["box"]) for r in rows(out, "screen_text")
    ] == texts
    things = [(t.time_ms, t.label, t.score, boxed(t.box)) for t in seen.objects]
    assert [(r["time_ms"], r["label"], r["score"], r["box"]) for r in rows(out, "object")] == things
    origins = ("speech", "caption", "subtitle", "chapter")
    told_in = (seen.utterances, seen.captions, seen.subtitles, seen.chapters)
    spoken = [(origin, u) for origin, us in zip(origins, told_in, strict=True) for u in us]
    assert [output(r) for r in rows(out, "utterance")] == [
        (origin, u.span.start_ms, u.span.end_ms, u.text, u.language, u.confidence, u.speaker)
        for origin, u in spoken
    ]
    owned = [r["identity"] for r in rows(out, "utterance")]
    assert owned == [voice_of(u, seen, numbers) for _, u in spoken]
    sightings = [s for g in (*seen.faces, *seen.voices) for s in g.sightings]
    assert [
        (r["start_ms"], r["end_ms"], r["box"], r["score"], r["quality"], r["blob"])
        for r in rows(out, "sighting")
    ] == [
        (s.span.start_ms, s.span.end_ms, boxed(s.box), s.score, s.quality, s.blob)
        for s in sightings
    ]
    assert {key: len(found) for key, found in ids.items()} == {
        (g.kind, g.number): len(g.sightings) for g in (*seen.faces, *seen.voices)
    }
    gaps = [[gap.span.start_ms, gap.span.end_ms, "damaged"] for gap in seen.gaps]
    assert [one["gaps"] for one in rows(out, "clip")] == [[], gaps, []]


def output(row: Record) -> tuple[Any, ...]:
    names = ("origin", "start_ms", "end_ms", "text", "language", "confidence", "speaker")
    return tuple(row[name] for name in names)


def voice_of(said: Utterance, seen: Percept, numbers: dict[Any, int]) -> str | None:
    key = (IdentityKind.VOICE, said.voice)
    return f"voice_{numbers[key]}" if key in numbers else None


@quick
@given(st.lists(st.integers(0, 8), min_size=1, max_size=8), st.data())
def test_exemplars_are_what_was_added(known: Store, looks: list[int], data: st.DataObject) -> None:
    with undone(known) as session:
        who, other = add_identities(session, VIDEO, IdentityKind.FACE, 2, CLIP)
        seen = Sighting(span=TimeSpan.of(START, END), score=1, quality=1, vector=direction(1))
        group = Group(kind=IdentityKind.FACE, number=0, sightings=(seen,) * len(looks))
        percept = Percept(clip=clip(CLIP), faces=(group,))
        ids = add_percept(session, VIDEO, percept, {(IdentityKind.FACE, 0): who.id}, {})
        rows_of = zip(ids[(IdentityKind.FACE, 0)], looks, strict=True)
        blank = {"identity_id": who.id, "vector": list(direction(1))}
        added = [{**blank, "sighting_id": row, "quality": look} for row, look in rows_of]
        change_exemplars(session, [], added)
        before = exemplars_of(session, [who.id, other.id])
        assert [one.quality for one in before[who.id]] == looks
        numbers = [one.id for one in before[who.id]]
        gone = data.draw(st.sets(st.sampled_from(numbers)))
        change_exemplars(session, sorted(gone), [])
        after = exemplars_of(session, [who.id, other.id])
        assert before[other.id] == after[other.id] == []
        assert [one.id for one in after[who.id]] == [one for one in numbers if one not in gone]


def test_a_blob_is_noted_once_a_video_and_unknown_clips_have_no_state(known: Store) -> None:
    with undone(known) as session:
        for _ in range(2):
            add_blobs(session, VIDEO, {"b" * 64: 2, "a" * 64: 1})
        out = rows(list(video_records(session, VIDEO)), "blob")
        assert [(one["sha256"][0], one["size"]) for one in out] == [("a", 1), ("b", 2)]
        assert clip_state(session, VIDEO, 0) == "pending"
        assert clip_state(session, VIDEO, 99) is None
        assert clip_state(session, "f" * 16, 0) is None
        assert (title_of(session, VIDEO) != "", title_of(session, "f" * 16)) == (True, "")


# Rows by the ten thousand go in and come out at once.


COUNT = 70_000
"""Rows of ten values: more values than the 65,535 parameters of a statement."""


@pytest.mark.full
def test_more_lines_than_a_statement_takes_parameters(store: Store) -> None:
    video = known_video(store, 1)
    draft = MemoryDraft(
        kind=MemoryKind.EPISODIC,
        text="Nothing happens.",
        span=span(0, 1),
        source=MemorySource.CAPTION,
    )
    vector = [0.5, -0.5]
    with store.begin() as session:
        ids = add_memories(session, video, 0, [draft] * COUNT, [vector] * COUNT)
        mark_clip(session, video, 0, ClipState.DONE)
    assert len(set(ids)) == COUNT
    with store.begin() as session:
        found = memories_of_clips(session, video, range(80_000), 0)
        assert tags_of(session, ids) == {}
    assert ([one.memory.id for one in found], found[-1].vector.tolist()) == (ids, vector)
    assert len(show_video(store, video).clips[0].lines) == COUNT
