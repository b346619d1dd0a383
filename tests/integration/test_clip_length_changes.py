"""A video that was begun goes on in the clips it was begun in, or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from domain.errors import InputError, ModelError
from domain.media import Percept
from domain.memories import ClipMemories
from domain.settings import MemorySettings, Settings, WatchSettings
from flows.ingest_video import open_video
from flows.removal import delete_video_rows
from flows.workspace import Workspace
from library.memory import dump_lines, show_video
from memory.captions import CaptionTrack, read_captions
from memory.writers.local_clip import LocalClipWriter
from memory.writers.port import ClipContext, Writers
from models.profile import load_profile
from people.characters import ClipPeople
from store.database import Store
from store.home import Home
from store.queries.videos import DONE, set_video_state
from tests.support.asking import WordToolbox
from tests.support.event_graphs import import_with_events
from tests.support.media import make_video
from tests.support.memory import SETTINGS, Tools, local_writers

TOOLS: Any = Tools()
HALVES = Settings(watch=WatchSettings(clip_ms=15_000), memory=MemorySettings())


class Away(LocalClipWriter):
    """A model that is away for one clip."""

    def write(self, percept: Percept, people: ClipPeople, context: ClipContext) -> ClipMemories:
        if percept.clip.index == 2:
            raise ModelError("the model was away")
        return super().write(percept, people, context)


@pytest.fixture
def track(tmp_path: Path) -> CaptionTrack:
    path = tmp_path / "week.jsonl"
    rows = [{"start": 7 * n, "end": 7 * n + 2, "text": f"Line {n}."} for n in range(20)]
    path.write_text("\n".join(map(json.dumps, rows)))
    return read_captions(path)


def bring_in(
    store: Store, track: CaptionTrack, settings: Settings, whole: bool = True
) -> list[str]:
    writers = local_writers() if whole else Writers(Away(), local_writers().event)
    video = import_with_events(store, track, writers, TOOLS, settings)
    return list(dump_lines(store, video.id))


def test_an_import_is_not_mixed_with_other_clip_lengths(store: Store, track: CaptionTrack) -> None:
    begun = bring_in(store, track, SETTINGS, whole=False)
    with pytest.raises(
        InputError, match=r"week was begun in clips of another length.*homer delete"
    ):
        bring_in(store, track, HALVES)
    assert list(dump_lines(store, track.id)) == begun
    bring_in(store, track, SETTINGS)
    assert show_video(store, track.id).state == "done"
    lines = [line.text for one in show_video(store, track.id).clips for line in one.lines]
    assert lines == [f"Line {n}." for n in range(20)]


@pytest.mark.full
def test_once_deleted_it_may_be_cut_anew(store: Store, track: CaptionTrack) -> None:
    bring_in(store, track, SETTINGS, whole=False)
    delete_video_rows(store, track.id)
    bring_in(store, track, HALVES)
    assert show_video(store, track.id).clips[1].span.start_ms == 15_000


def workspace(home: Home, store: Store, clip_ms: int) -> Workspace:
    profile = load_profile("local")
    watch = profile.settings.watch.model_copy(update={"clip_ms": clip_ms})
    cut = profile.settings.model_copy(update={"watch": watch})
    return Workspace(home, store, profile.model_copy(update={"settings": cut}), WordToolbox())


def test_file_is_not_gone_on_with_in_other_clips(home: Home, store: Store, tmp_path: Path) -> None:
    path = make_video(tmp_path / "talk.mp4")
    with open_video(workspace(home, store, 1000), path) as work:
        clips = work.state().clips
    with (
        pytest.raises(InputError, match="talk was begun in clips of another length"),
        open_video(workspace(home, store, 500), path),
    ):
        raise AssertionError("it is open")
    with open_video(workspace(home, store, 1000), path) as work:
        assert work.state().clips == clips
        assert work.pending() == list(range(clips))
    with store.begin() as session:
        set_video_state(session, work.video.id, DONE)
    delete_video_rows(store, work.video.id)
    with open_video(workspace(home, store, 500), path) as work:
        assert work.state().clips > clips
