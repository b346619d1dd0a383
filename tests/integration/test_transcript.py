"""The transcript of a video: who said what when, in windows, by kind, and what is sought in it."""

from __future__ import annotations

import pytest

from library.transcript import (
    GROUPS,
    SAID,
    SEEN,
    WINDOW_CLIPS,
    find_close,
    find_words,
    load_scenes,
    load_transcript,
)
from people.across_videos import rename
from store.database import Store
from tests.support.asking import PARTY
from tests.support.big_library import CLIP_MS, fill_library
from tests.support.machine import VIDEO
from tests.support.remembered import Said, WordEmbedder, name, see, watch


@pytest.fixture
def party(store: Store) -> Store:
    """Two clips of two people, one of whom has a name."""
    watch(
        store,
        PARTY,
        [
            [
                Said("The Party", 0, source="chapter"),
                Said("I painted the lighthouse green.", 2, "<voice_1>", who=("<voice_1>",)),
                Said("<face_1> is on screen.", 4, source="seen", who=("<face_1>",)),
                Said("EXIT", 5, source="read"),
            ],
            [
                Said("Someone claps", 3, source="sound"),
                Said("Paint dries slowly", 6, "<voice_2>", who=("<voice_2>",)),
            ],
        ],
    )
    see(store, PARTY, "<face_1>", 0, 0)
    name(store, PARTY, 1, "Ann", "<face_1>", "<voice_1>")
    return store


def lines_at(store: Store, at_ms: int, *groups: str) -> list[str]:
    window = load_transcript(store, PARTY, at_ms, groups or GROUPS)
    assert window is not None
    return [f"{one.group}: {one.who}: {one.text}" for one in window.lines]


def test_lines_come_in_order_of_time_with_names_and_without_tags(party: Store) -> None:
    assert lines_at(party, 0) == [
        "Chapter: : The Party",
        "Said: Ann: I painted the lighthouse green.",
        "Seen: : Ann is on screen.",
        "On screen: : EXIT",
        "Heard: : Someone claps",
        "Said: An unnamed speaker: Paint dries slowly",
    ]
    rename(party, PARTY, "1", "Ada")
    assert "Said: Ada: I painted the lighthouse green." in lines_at(party, 0)


def test_words_are_found_by_stem_and_marked_where_they_are(party: Store) -> None:
    found, total = find_words(party, PARTY, "paint", GROUPS)
    marked = [[line.text[a:b] for a, b in line.marks] for line in found]
    assert (marked, total) == ([["painted"], ["Paint"]], 2)
    assert find_words(party, PARTY, "paint", (SEEN,))[1] == 0
    assert find_words(party, PARTY, '"lighthouse paint"', GROUPS)[1] == 0


@pytest.mark.parametrize("words", ["ghthou", "The lighthouse", "the"])
def test_parts_of_words_and_common_ones_are_found_as_written(party: Store, words: str) -> None:
    found, _ = find_words(party, PARTY, words, (SAID,))
    assert [line.text for line in found] == ["I painted the lighthouse green."]
    assert found[0].marks


def test_a_name_stands_for_what_somebody_says_and_for_lines_about_them(party: Store) -> None:
    found, _ = find_words(party, PARTY, "ann", GROUPS)
    assert [line.text for line in found] == ["I painted the lighthouse green.", "Ann is on screen."]
    assert found[1].marks == ((0, 3),)
    (said,), _ = find_words(party, PARTY, "Ann lighthouse", GROUPS)
    assert said.who == "Ann"
    assert find_words(party, PARTY, "Ann slowly", GROUPS)[1] == 0


def test_only_what_is_close_in_meaning_is_added(party: Store) -> None:
    text = WordEmbedder()
    (close,) = find_close(party, text, PARTY, "it dries slowly", GROUPS, ())
    assert close.text == "Paint dries slowly"
    assert find_close(party, text, PARTY, "it dries slowly", GROUPS, (close.id,)) == ()
    assert find_close(party, text, PARTY, "it dries slowly", (SEEN,), ()) == ()
    assert find_close(party, text, PARTY, "quantum chromodynamics", GROUPS, ()) == ()


def test_close_lines_of_other_kinds_leave_room_for_those_that_are_wanted(store: Store) -> None:
    seen = [Said("harbour", second, source="seen") for second in range(12)]
    watch(store, PARTY, [[*seen, Said("The harbour freezes", 20)]])
    found = find_close(store, WordEmbedder(), PARTY, "harbour", (SAID,), ())
    assert [line.text for line in found] == ["The harbour freezes"]
    assert len(find_close(store, WordEmbedder(), PARTY, "harbour", GROUPS, ())) == 10


def test_of_a_long_video_a_window_around_the_moment_is_read(store: Store) -> None:
    fill_library(store, 200, videos=1)
    moment = 100 * CLIP_MS + 5_000
    window = load_transcript(store, VIDEO, moment, GROUPS)
    assert window is not None
    assert window.from_ms <= moment < (window.until_ms or 0)
    assert len({line.span.start_ms // CLIP_MS for line in window.lines}) == WINDOW_CLIPS
    assert window.lines[0].text.startswith("Guest ")
    scenes = load_scenes(store, VIDEO, moment)
    assert {one.span.start_ms // CLIP_MS for one in scenes} <= set(range(96, 116))
    assert len(scenes) <= 40


def test_windows_lead_through_a_video_from_its_first_clip_to_its_last(store: Store) -> None:
    fill_library(store, 65, videos=1)
    at_ms: int | None = 0
    clips: list[int] = []
    while at_ms is not None:
        window = load_transcript(store, VIDEO, at_ms, GROUPS)
        assert window is not None
        assert window.from_ms <= at_ms
        clips += [line.span.start_ms // CLIP_MS for line in window.lines]
        at_ms = window.later_ms
    assert set(clips) == set(range(65))
    last = load_transcript(store, VIDEO, 10**9, GROUPS)
    assert last is not None
    assert (last.until_ms, last.later_ms) == (None, None)
    first = load_transcript(store, VIDEO, 0, GROUPS)
    assert first is not None
    assert (first.from_ms, first.earlier_ms) == (0, None)


def test_a_full_window_ends_at_the_next(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_library(store, 20, videos=1)
    whole = load_transcript(store, VIDEO, 0, GROUPS)
    assert whole is not None
    monkeypatch.setattr("library.transcript.MAX_LINES", len(whole.lines) * 2 // 5)
    at_ms: int | None = 0
    found: set[int] = set()
    while at_ms is not None:
        window = load_transcript(store, VIDEO, at_ms, GROUPS)
        assert window is not None
        assert window.until_ms is None or at_ms < window.until_ms
        found |= {line.id for line in window.lines}
        at_ms = window.later_ms
    assert found == {line.id for line in whole.lines}
