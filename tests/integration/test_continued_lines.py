"""Sentences and texts on screen that go on over a clip's border, on a real Postgres."""

from __future__ import annotations

import pytest

from domain.media import Percept, Utterance
from domain.memories import MemorySource
from domain.time import TimeSpan
from memory.delete_span import delete_span
from store.database import Store
from store.queries.memories import memories_of_clips
from tests.support.memory import (
    SETTINGS,
    WordVectors,
    known_video,
    memorise,
    percept,
    said,
    text_at,
    voice,
)

Line = tuple[str, TimeSpan]


def watch(store: Store, *percepts: Percept) -> str:
    video = known_video(store, len(percepts))
    memorise(store, *percepts, video=video)
    return video


def lines(store: Store, video: str, as_of: int, source: MemorySource) -> list[Line]:
    with store.begin() as session:
        found = memories_of_clips(session, video, [*range(as_of + 1)], as_of)
    return [(one.memory.text, one.memory.span) for one in found if one.memory.source == source]


def spoken(time_s: float, text: str, seconds: float = 2) -> Utterance:
    """Recognised speech of the voice that every clip here numbers 0."""
    return said(time_s, text, voice=0, seconds=seconds).model_copy(update={"language": "en"})


def talk(*clips: tuple[Utterance, ...]) -> list[Percept]:
    return [
        percept(n, utterances=own, voices=(voice(0, 1, (30 * n, 30 * n + 29)),))
        for n, own in enumerate(clips)
    ]


BEGUN = spoken(28, "So, if you remember, the")
ENDED = spoken(30.5, "lines represent linear equations.")
LATER = spoken(40, "They cross here.")


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (spoken(30, "meetings."), ["Have respect at meetings."]),
        (spoken(30, "Meetings are long."), ["Have respect at.", "Meetings are long."]),
        (spoken(30.5, "meetings."), ["Have respect at.", "meetings."]),
    ],
    ids=["cut", "another sentence", "a pause"],
)
def test_a_full_stop_where_the_sound_was_cut_ends_no_sentence(
    store: Store, ended: Utterance, expected: list[str]
) -> None:
    video = watch(store, *talk((spoken(28, "Have respect at."),), (ended,)))
    assert [text for text, _ in lines(store, video, 1, MemorySource.SAID)] == expected


@pytest.mark.parametrize(
    ("begun", "ended"),
    [
        (spoken(28, "The first is done."), ENDED),
        (spoken(20, "So, if you remember, the"), ENDED),
        (BEGUN, ENDED.model_copy(update={"voice": None})),
    ],
    ids=["a full stop", "a long pause", "another speaker"],
)
def test_what_is_no_sentence_stays_two(store: Store, begun: Utterance, ended: Utterance) -> None:
    video = watch(store, *talk((begun,), (ended,)))
    found = [text for text, _ in lines(store, video, 1, MemorySource.SAID)]
    assert found == [begun.text, ended.text]


def slides(*clips: tuple[str, ...]) -> list[Percept]:
    return [
        percept(n, screen_texts=tuple(text_at(30 * n + 4, own, row) for row, own in enumerate(one)))
        for n, one in enumerate(clips)
    ]


SLIDE = ("Linear equations", "Chapter two")


def test_menus_around_pages_that_change_are_one_line_from_the_second_page_on(store: Store) -> None:
    menus = ("File Edit View", "Explorer", "train.py", "evaluate.py")
    pages = [("Loading the data",), ("Cleaning the data",), ("A model of it",), ("Its errors",)]
    video = watch(store, *slides(*((*menus, *page) for page in pages)))
    found = dict(lines(store, video, 3, MemorySource.READ))
    around = found.pop(" / ".join(menus))
    assert (around.start_ms, around.end_ms) == (4_000, 95_000)
    assert list(found) == [" / ".join([*menus, *pages[0]]), *(page for (page,) in pages[1:])]


def delete(store: Store, video: str, start_s: int, end_s: int) -> None:
    span = TimeSpan.of(start_s * 1000, end_s * 1000)
    delete_span(store, video, span, WordVectors(), SETTINGS.memory)


def test_a_deleted_clip_takes_the_sentence_that_began_in_it(store: Store) -> None:
    video = watch(store, *talk((BEGUN,), (ENDED, LATER)))
    delete(store, video, 0, 10)
    assert lines(store, video, 1, MemorySource.SAID) == [("They cross here.", LATER.span)]


def test_a_deleted_clip_leaves_what_began_before_it(store: Store) -> None:
    video = watch(store, *talk((BEGUN,), (ENDED, LATER)))
    delete(store, video, 35, 40)
    assert lines(store, video, 1, MemorySource.SAID) == [(BEGUN.text, BEGUN.span)]


def test_a_slide_is_on_screen_after_the_deleted_clip_only(store: Store) -> None:
    video = watch(store, *slides(SLIDE, SLIDE, SLIDE))
    delete(store, video, 35, 40)
    spans = [span for _, span in lines(store, video, 2, MemorySource.READ)]
    assert [(one.start_ms, one.end_ms) for one in spans] == [(4_000, 5_000), (60_000, 65_000)]
