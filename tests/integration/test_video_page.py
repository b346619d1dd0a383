"""The video page: events and what joins them, clips, and a search inside."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from domain.media import Clip, ClipState, Gap, GapReason, PictureTally, Stream, StreamClip
from domain.time import TimeSpan
from library.memory import clips, events
from memory.delete_span import list_deleted_spans
from perception.images import Blobs
from store.database import Store
from store.queries.clips import mark_clip
from store.queries.videos import add_clip, add_stream, find_video
from tests.support.app_pages import EVIL, app_over, open_page, output, press, words
from tests.support.asking import PARTY, WordToolbox, remember_party
from tests.support.full_suite import sample
from tests.support.memory import VIDEO, keyframe, known_video, memorise, percept
from tests.support.remembered import paint_keyframes
from ui.corrections import deleted_lane
from ui.player import TimelineBar, pack_rows


@pytest.fixture
def app_library(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    with app_over(store, monkeypatch, WordToolbox):
        yield store


@pytest.fixture
def party(app_library: Store) -> Store:
    remember_party(app_library)
    return app_library


def test_an_empty_library_says_how_to_begin(app_library: Store) -> None:
    assert "Nothing has been watched yet" in words(open_page("video"))


def test_a_video_that_is_not_watched_yet_has_no_events(app_library: Store) -> None:
    known_video(app_library, 1)
    page = open_page("video", video=VIDEO)
    assert "they are written every ten clips" in words(page)
    assert "captions only" in words(page)


def test_an_event_opens_with_what_joins_it_and_what_that_rests_on(party: Store) -> None:
    rain = next(one for one in events(party, PARTY).items if one.label == "rain and retreat")
    page = open_page("video", video=PARTY, segment=rain.number)
    shown = words(page)
    assert "Rain starts and the party moves inside." in shown
    assert "→ causes (causal): music in the kitchen" in shown
    assert "← before (temporal): arrival in the garden" in shown
    press(page, "Go there")
    assert output(page, "segment") == str(rain.edges[0].target)
    assert "Ann shows a piano" in words(page)


def test_clips_have_their_lines_a_page_at_a_time(party: Store) -> None:
    page = open_page("video", video=PARTY, show="Clips")
    assert "Bob carries a blue cup of coffee" in words(page)
    assert "2:20 *" not in words(page)
    found = clips(party, PARTY, 2, 2)
    assert ([clip.index for clip in found.items], found.total) == ([2, 3], 6)


def test_many_clips_are_read_a_page_at_a_time(app_library: Store) -> None:
    known_video(app_library, 45)
    with app_library.begin() as session:
        mark_clip(session, VIDEO, 44, ClipState.FAILED, EVIL)
    shown = words(open_page("video", video=VIDEO, show="Clips", clips=5))
    assert "41 to 45 of 45" in shown
    assert EVIL in shown
    assert "clip 44, failed" in shown
    assert "clip 39" not in shown


def test_what_is_sought_is_found_and_can_be_linked_to(party: Store) -> None:
    page = open_page("video", video=PARTY, show="Search", q="slow song on the piano")
    assert "Bob plays a slow song on the piano" in words(page)
    assert "▶ 2:06" in words(page)
    none = open_page("video", video=PARTY, show="Search", q="quantum chromodynamics")
    assert "Nothing close was found in" in words(none)
    (folded,) = [one for one in none.expander if "less close moment" in one.label]
    assert folded.label[0].isdigit()
    assert not [one for one in none.button if (one.key or "").startswith("found_")]


def test_images_of_a_time_and_like_another_are_found(party: Store) -> None:
    colours = {65.0: (200, 30, 30), 95.0: (190, 40, 40), 125.0: (20, 30, 200)}
    ids = paint_keyframes(party, PARTY, colours)
    of_time = open_page("video", video=PARTY, show="Search", at="1:05")
    assert "▶ 1:05" in words(of_time)
    shown = words(open_page("video", video=PARTY, show="Search", like=f"k{ids[65]}"))
    assert "▶ 1:35" in shown
    assert "▶ 2:05" not in shown
    assert f"like k{ids[65]}" in shown
    assert "▶ 1:35" in words(press(of_time, "Images like this"))
    for wrong, error in ({"at": "noon"}, "is not a time"), ({"like": "m3"}, "is not an image"):
        page = open_page("video", video=PARTY, show="Search", **wrong)
        assert error in words(page)
        assert not page.exception


def test_a_tool_of_a_strategy_searches_the_video_and_its_address_leads_back(party: Store) -> None:
    page = open_page("video", video=PARTY, show="Search")
    page.text_input[0].set_value("rain")
    next(box for box in page.selectbox if box.label == "Tool").set_value("nearest")
    given = next(box for box in page.text_input if box.label == "Arguments besides the query")
    given.set_value("lines=1")
    page = press(page, "Search")
    assert not page.exception
    found = [button for button in page.button if (button.key or "").startswith("found_")]
    assert page.query_params["tool"] in ("nearest", ["nearest"])
    again = open_page("video", video=PARTY, show="Search", q="rain", tool="nearest")
    more = [button for button in again.button if (button.key or "").startswith("found_")]
    assert len(more) > len(found)
    wrong = open_page(
        "video", video=PARTY, show="Search", q="rain", tool="nearest", arguments="lines"
    )
    assert "KEY=VALUE" in words(wrong)
    assert not wrong.exception
    quoted = 'lines=1 \'options=["a red gate", "b"]\''
    for arguments, error in ((quoted, ""), ("lines='1", "no closing quotation")):
        page = open_page(
            "video", video=PARTY, show="Search", q="rain", tool="nearest", arguments=arguments
        )
        assert error in words(page)
        assert bool(error) is not any((b.key or "").startswith("found_") for b in page.button)


def test_bars_that_overlap_get_rows_of_their_own() -> None:
    bars = [TimelineBar(str(n), n * 10, n * 10 + 25, "") for n in range(6)]
    rows = pack_rows(bars)
    assert len(rows) == 3
    assert sorted(bar.id for row in rows for bar in row) == [str(n) for n in range(6)]
    for row in rows:
        assert all(a.end <= b.start for a, b in pairwise(row))
    assert len(pack_rows(bars, max_rows=2)) == 2


def part(page: Any, begin: str, end: str) -> Any:
    """Fills in which part is to go, and sends it."""
    page.text_input[-2].set_value(begin)
    page.text_input[-1].set_value(end)
    return press(page, "Delete this part")


def test_a_part_is_deleted_after_one_more_press_and_is_a_gap(party: Store) -> None:
    page = part(open_page("video", video=PARTY), "1:10", "1:20")
    assert "This deletes 1:00-1:30: 1 whole clip" in words(page)
    assert list_deleted_spans(party, PARTY) == []
    press(page, "Keep this part")
    assert "This deletes" not in words(page)
    press(part(page, "1:10", "1:20"), "Yes, delete this part")
    assert "1:00-1:30 is deleted, with 0 images and 0 answers." in words(page)
    assert list_deleted_spans(party, PARTY) == [TimeSpan.of(60_000, 90_000)]
    assert "rain and retreat" not in words(page)
    clips = words(open_page("video", video=PARTY, show="Clips"))
    assert "This part was deleted, and is not watched again." in clips
    with party.begin() as session:
        video = find_video(session, PARTY)
    assert [bar.label for bar in deleted_lane(party, video)[0].spans] == ["1:00-1:30 was deleted"]


@pytest.mark.parametrize(
    ("begin", "end"),
    sample([("soon", "2:00")], [("soon", "2:00"), ("2:00", "1:00"), ("9:00", "9:30")]),
)
def test_a_part_that_is_none_is_one_message(party: Store, begin: str, end: str) -> None:
    assert len(part(open_page("video", video=PARTY), begin, end).error) == 1
    assert list_deleted_spans(party, PARTY) == []


def test_a_stream_shows_its_gaps_and_how_each_clip_was_watched(app_library: Store) -> None:
    known_video(app_library, 2)
    gap = Gap(span=TimeSpan.of(20_000, 30_000), reason=GapReason.LOST, frames=3)
    output = StreamClip(clip=1, level=2, tally=PictureTally(came=750, sampled=30), lag_ms=4_200)
    with app_library.begin() as session:
        add_stream(session, VIDEO, Stream(source="rtsp://door/live", began_ms=1))
        add_clip(session, VIDEO, Clip(index=1, span=TimeSpan.of(30_000, 60_000)), output, [gap])
    shown = words(open_page("video", video=VIDEO, show="Clips"))
    assert "A live stream from rtsp://door/live" in shown
    assert "0:20-0:30  the connection was lost (3 frames)" in shown
    assert "Gap 0:20-0:30: the connection was lost" in shown
    assert "750 frames came, 30 looked at; level 2: 20% of the samples; lag 4.2 s" in shown


def images(page: AppTest) -> list[Any]:
    shown: list[Any] = list(page.get("image"))
    return [caption for one in shown for caption in one.captions]


def test_a_moment_of_a_stream_shows_keyframes_without_recording(app_library: Store) -> None:
    known_video(app_library, 2)
    jpegs = Blobs()
    blob = jpegs.add(np.zeros((8, 8, 3), np.uint8), 80)
    pictures = [keyframe(at, blob) for at in (2, 31, 34, 58)]
    for number, some in enumerate((pictures[:1], pictures[1:])):
        memorise(app_library, percept(number, keyframes=tuple(some)), blobs=jpegs)
    with app_library.begin() as session:
        add_stream(session, VIDEO, Stream(source="rtsp://door/live", began_ms=1))
    page = open_page("video", video=VIDEO, t=32)
    assert "This stream was not recorded" in words(page)
    assert "no video file" not in words(page)
    assert images(page) == ["0:31", "0:34"]
