"""Files and videos whose names are no proper text: they are watched, found, shown and deleted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from domain.errors import InputError
from domain.media import Video
from domain.texts import make_storable
from flows.delete import delete_video_rows
from flows.ingest_video import open_video
from flows.workspace import Workspace
from library.memory import show_video
from library.removal import export_video
from library.videos import all_videos
from memory.captions import read_captions
from models.profile import load_profile
from store.database import Store
from store.home import Home
from store.queries.videos import add_video, find_video
from tests.support.asking import WordToolbox
from tests.support.event_graphs import import_with_events
from tests.support.media import make_video
from tests.support.memory import SETTINGS, Tools, local_writers

TOOLS: Any = Tools()
LATIN = os.fsdecode(b"caf\xe9")
"""A name as older systems wrote it: no UTF-8."""


def add(store: Store, title: str, video: str = "a" * 16) -> None:
    with store.begin() as session:
        add_video(session, Video(id=video, title=title, path=None, duration_ms=1), [], {})


def test_a_file_whose_name_is_no_utf8_is_watched_under_a_name_that_can_be_shown(
    home: Home, store: Store, tmp_path: Path
) -> None:
    path = make_video(tmp_path / "plain.mp4").rename(tmp_path / f"{LATIN}.mp4")
    workspace = Workspace(home, store, load_profile("local"), WordToolbox())
    with open_video(workspace, path) as work:
        assert work.pending() == list(range(work.state().clips))
        assert work.path == path
    (entry,) = all_videos(store).items
    assert (entry.title, entry.path) == ("caf�", None)
    assert show_video(store, LATIN).video.id == entry.id


def test_captions_from_such_file_are_imported_under_any_title(store: Store, tmp_path: Path) -> None:
    path = tmp_path / f"{LATIN}.jsonl"
    path.write_text('{"start": 0, "end": 1, "text": "Good morning."}')
    track = read_captions(path)
    video = import_with_events(store, track, local_writers(), TOOLS, SETTINGS, title=LATIN)
    assert video.title == "caf�"
    assert [line.text for line in show_video(store, LATIN).clips[0].lines] == ["Good morning."]
    delete_video_rows(store, LATIN)
    assert all_videos(store).items == ()


@pytest.mark.parametrize("title", ["100%_\\x", "' OR 1=1 --", "a\x00b", "ünï", "<b>[x](y)", " "])
def test_every_title_finds_its_video_by_all_or_its_beginning(store: Store, title: str) -> None:
    add(store, title)
    add(store, "zzz", "b" * 16)
    with store.begin() as session:
        for name in (title, title[: len(title) // 2 + 1], title.upper()):
            assert find_video(session, name).title == make_storable(title)


def test_an_export_goes_to_a_file_and_never_to_a_folder(store: Store, tmp_path: Path) -> None:
    add(store, "abc")
    for out in (tmp_path, tmp_path / "absent/x.zip", Path(), Path("/"), tmp_path / ".."):
        with pytest.raises(InputError, match=r"cannot be written|is a folder"):
            export_video(store, "abc", out)
    assert [one.name for one in tmp_path.iterdir()] == ["home"]
    export_video(store, "abc", tmp_path / f"{LATIN}.zip")
    assert {one.name for one in tmp_path.iterdir()} == {"home", f"{LATIN}.zip"}
