"""What is in memory already is known again by its content, and told by the title it has there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from domain.errors import InputError, MediaError
from domain.rights import Deed
from flows.ingest_video import open_video
from flows.workspace import Workspace
from library.memory import show_video
from library.videos import all_videos
from memory.captions import read_captions
from models.profile import load_profile
from store.database import Store
from store.home import Home
from store.queries.audit import audit_entries
from tests.support.asking import WordToolbox
from tests.support.event_graphs import import_with_events
from tests.support.media import make_video
from tests.support.memory import SETTINGS, Tools, local_writers

TOOLS: Any = Tools()


@pytest.fixture
def workspace(home: Home, store: Store) -> Workspace:
    return Workspace(home, store, load_profile("local"), WordToolbox())


def bring_in(store: Store, path: Path, title: str | None = None) -> str:
    track = read_captions(path)
    return import_with_events(store, track, local_writers(), TOOLS, SETTINGS, title=title).title


def test_captions_imported_twice_keep_their_first_title(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "week.jsonl"
    path.write_text('{"start": 0, "end": 1, "text": "Good morning."}')
    assert bring_in(store, path, "my week") == "my week"
    assert bring_in(store, path, "another") == "my week"
    assert bring_in(store, path.rename(tmp_path / "renamed.jsonl")) == "my week"
    (entry,) = all_videos(store).items
    assert entry.title == "my week"
    with store.begin() as session:
        added = [(one.deed, one.subject) for one in audit_entries(session)]
    assert added == [(Deed.ADDED, entry.id)]
    assert show_video(store, "my week").state == "done"


def test_a_renamed_file_keeps_its_first_title(workspace: Workspace, tmp_path: Path) -> None:
    path = make_video(tmp_path / "talk.mp4")
    with open_video(workspace, path) as work:
        assert work.video.title == "talk"
    moved = path.rename(tmp_path / "renamed.mp4")
    with open_video(workspace, moved) as work:
        assert work.video.title == "talk"
        assert work.path == moved
    (entry,) = all_videos(workspace.store).items
    assert (entry.title, entry.path) == ("talk", str(moved))


def test_who_added_a_video_is_on_record_once(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "ann")
    path, damaged = make_video(tmp_path / "talk.mp4"), tmp_path / "damaged.mp4"
    damaged.write_bytes(b"no film")
    with pytest.raises(MediaError), open_video(workspace, damaged):
        pass
    for _ in range(2):
        with open_video(workspace, path) as work:
            pass
    with workspace.store.begin() as session:
        (entry,) = audit_entries(session)
    assert (entry.who, entry.deed, entry.subject) == ("ann", Deed.ADDED, work.video.id)


def test_one_content_is_one_video_one_name_is_two(workspace: Workspace, tmp_path: Path) -> None:
    first = make_video(tmp_path / "talk.mp4")
    (tmp_path / "copies").mkdir()
    copy = tmp_path / "copies/talk-copy.mp4"
    copy.write_bytes(first.read_bytes())
    other = make_video(tmp_path / "copies/talk.mp4", seconds=2.0)
    ids = []
    for path in (first, copy, other):
        with open_video(workspace, path) as work:
            ids.append(work.video.id)
    assert ids[0] == ids[1] != ids[2]
    assert [one.title for one in all_videos(workspace.store).items] == ["talk", "talk"]


def test_a_video_is_open_to_one_at_a_time_and_again(workspace: Workspace, tmp_path: Path) -> None:
    path = make_video(tmp_path / "talk.mp4")
    with (
        open_video(workspace, path),
        pytest.raises(InputError, match="talk is being watched by another homer"),
        open_video(workspace, path),
    ):
        raise AssertionError("it is open twice")
    with open_video(workspace, path) as work:
        assert work.pending()
