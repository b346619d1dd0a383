"""A caption track becomes a video: resumable, repeatable, as if its clips had come one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from domain.errors import ModelError, NotFound
from domain.media import Percept
from domain.memories import ClipMemories
from flows.removal import delete_video_rows
from library.memory import dump_lines, show_video
from library.videos import all_videos
from memory.captions import CaptionTrack, caption_clips, read_captions
from memory.writers.local_clip import LocalClipWriter
from memory.writers.port import ClipContext, Writers
from people.characters import ClipPeople
from store.database import Store
from store.queries.videos import add_video, find_video
from tests.support.event_graphs import import_with_events, update_event_graph
from tests.support.memory import SETTINGS, Tools, local_writers, memorise

WORDS = ("tent", "soup", "laptop", "garden", "violin", "paper", "train", "coffee", "mirror")


@pytest.fixture
def track(tmp_path: Path) -> CaptionTrack:
    """45 clips over two days, with speakers, descriptions and pauses."""
    rows = []
    for n in range(45):
        day, start = 1 + n // 30, 36_000 + 30 * n
        word = WORDS[n // 5]
        rows += [
            {"day": day, "start": start, "end": start + 2, "text": f"I look at the {word}."},
            {
                "day": day,
                "start": start + 5,
                "end": start + 7,
                "text": f"The {word} is number {n}.",
                "speaker": ("Jake", "Lucia", "Others")[n % 3],
            },
        ]
    path = tmp_path / "week.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return read_captions(path)


def brought_in(store: Store, track: CaptionTrack, **more: Any) -> list[str]:
    video = import_with_events(store, track, local_writers(), Tools(), SETTINGS, **more)
    return list(dump_lines(store, video.id))


def test_an_import_holds_who_said_what_when_and_once(store: Store, track: CaptionTrack) -> None:
    steps: list[tuple[int, int]] = []
    brought_in(store, track, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(20, 45), (40, 45), (45, 45)]
    shown = show_video(store, "week")
    assert (shown.state, len(shown.clips), shown.pending) == ("done", 45, ())
    assert [one.label for one in shown.people] == ["Jake", "Lucia"]
    first = shown.clips[0]
    assert str(first.span) == "10:00:00-10:00:30"
    assert [one.text for one in first.lines] == [
        "I look at the tent.",
        "Jake: The tent is number 0.",
    ]
    assert str(shown.clips[30].span).startswith("d2 10:15:00")
    assert {clip for one in shown.segments for clip in one.clips} == set(range(45))
    assert not [one for one in shown.segments if {29, 30} <= set(one.clips)]
    whole = list(dump_lines(store, "week"))
    assert (brought_in(store, track), len(all_videos(store).items)) == (whole, 1)


class Stop(Exception):
    """Stands for a killed process."""


def test_a_deleted_import_and_a_cut_one_end_the_same(store: Store, track: CaptionTrack) -> None:
    whole = brought_in(store, track, title="My week")
    with store.begin() as session:
        assert find_video(session, "my w").title == "My week"
    delete_video_rows(store, "My week")
    assert all_videos(store).items == ()
    with pytest.raises(NotFound):
        show_video(store, "My week")

    def stop(done: int, total: int) -> None:
        raise Stop

    with pytest.raises(Stop):
        brought_in(store, track, progress=stop, title="My week")
    assert all_videos(store).items[0].done == 20
    assert brought_in(store, track, title="My week") == whole


@pytest.mark.full
def test_clips_that_come_one_by_one_leave_same_memory(store: Store, track: CaptionTrack) -> None:
    at_once = brought_in(store, track)
    delete_video_rows(store, "week")
    percepts = list(caption_clips(track, SETTINGS.watch))
    video = track.video()
    with store.begin() as session:
        add_video(session, video, [one.clip for one in percepts], {})
    for one in percepts:
        memorise(store, one, video=video.id)
        update_event_graph(store, video.id, local_writers(), Tools(), SETTINGS)
    update_event_graph(store, video.id, local_writers(), Tools(), SETTINGS, is_final=True)
    assert [line for line in dump_lines(store, video.id) if '"row":"video"' not in line] == [
        line for line in at_once if '"row":"video"' not in line
    ]


class Forgetful(LocalClipWriter):
    """Cannot write clip 7."""

    def write(self, percept: Percept, people: ClipPeople, context: ClipContext) -> ClipMemories:
        if percept.clip.index == 7:
            raise ModelError("no words for it")
        return super().write(percept, people, context)


@pytest.mark.full
def test_only_clip_that_cannot_be_written_is_left_out(store: Store, track: CaptionTrack) -> None:
    import_with_events(store, track, Writers(Forgetful(), local_writers().event), Tools(), SETTINGS)
    (entry,) = all_videos(store).items
    assert (entry.state, entry.done, entry.failed) == ("failed", 44, 1)
    assert show_video(store, "week").clips[7].error == "no words for it"
    brought_in(store, track)
    (entry,) = all_videos(store).items
    assert (entry.state, entry.done, entry.failed) == ("done", 45, 0)
    assert show_video(store, "week").pending == ()
