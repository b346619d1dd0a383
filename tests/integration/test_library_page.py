"""What the library shows of a video, and that what is deleted or exported is whole."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pytest

from domain.errors import Ambiguous, NotFound
from flows.delete import delete_video_rows
from library.memory import dump_lines, show_video
from library.removal import export_video
from library.videos import all_videos
from memory.write_clip import remember
from store.database import Store
from store.queries.videos import DONE, find_video, set_video_state
from tests.support.event_graphs import update_event_graph
from tests.support.memory import (
    SETTINGS,
    VIDEO,
    Perceived,
    Tools,
    face,
    keyframe,
    known_video,
    local_writers,
    percept,
    said,
    voice,
)

OTHER = "0123456789ffffff"
JPEG = b"\xff\xd8 a picture"
SHA = hashlib.sha256(JPEG).hexdigest()


def filled(store: Store, video: str = VIDEO) -> str:
    """Two clips: somebody speaks, and says who she is in the second."""
    known_video(store, 2, video)
    for n, words in enumerate(("The lamp is on the table.", "My name is Ada.")):
        start = 30 * n
        one = percept(
            n,
            faces=(face(0, 1, (start, start + 5)),),
            voices=(voice(0, 1, (start, start + 5)),),
            utterances=(said(start, words, voice=0, seconds=5),),
            keyframes=(keyframe(start + 1, SHA),),
        )
        remember(store, video, Perceived(one, {SHA: JPEG}), local_writers(), Tools(), SETTINGS)
    update_event_graph(store, video, local_writers(), Tools(), SETTINGS, is_final=True)
    with store.begin() as session:
        set_video_state(session, video, DONE)
    return video


def test_the_list_counts_clips_by_state(store: Store) -> None:
    filled(store)
    known_video(store, 3, OTHER)
    done, waiting = all_videos(store).items
    assert (done.title, done.state) == ("video 0123", "done")
    assert (done.clips, done.done, done.failed) == (2, 2, 0)
    assert (waiting.id, waiting.state, waiting.clips, waiting.done) == (OTHER, "paused", 3, 0)


def test_a_video_is_shown_with_its_people_by_name(store: Store) -> None:
    filled(store)
    shown = show_video(store, VIDEO[:13])
    assert (shown.state, shown.last_clip) == ("done", 1)
    (ada,) = shown.people
    assert (ada.label, ada.tags) == ("Ada", ("<face_0>", "<voice_0>"))
    assert shown.clips[0].lines[0].text == "Ada: The lamp is on the table."
    assert [one.clips for one in shown.segments] == [(0, 1)]
    assert shown.segments[0].summary.startswith("Ada: The lamp is on the table.")
    json.loads(shown.model_dump_json())


def test_an_earlier_moment_shows_less(store: Store) -> None:
    filled(store)
    shown = show_video(store, VIDEO, as_of=59_999)
    assert shown.last_clip == 0
    assert [len(one.lines) > 0 for one in shown.clips] == [True, False]
    assert shown.segments == ()
    assert "Ada" not in shown.model_dump_json()
    nothing = show_video(store, VIDEO, as_of=10)
    assert (nothing.last_clip, nothing.people) == (-1, ())


def test_names_that_fit_none_or_several_are_refused(store: Store) -> None:
    filled(store)
    known_video(store, 1, OTHER)
    with pytest.raises(Ambiguous, match=OTHER):
        show_video(store, "0123456789")
    with pytest.raises(NotFound, match="homer videos"):
        delete_video_rows(store, "nothing like it")
    with store.begin() as session:
        assert find_video(session, OTHER).id == OTHER


def test_a_deleted_video_takes_its_pictures_but_no_one_else_s(store: Store) -> None:
    filled(store)
    filled(store, OTHER)
    assert delete_video_rows(store, VIDEO) == 0
    assert store.blobs.exists(SHA)
    assert delete_video_rows(store, OTHER) == 1
    assert not store.blobs.exists(SHA)
    assert all_videos(store).items == ()


def test_an_export_holds_the_rows_and_the_pictures(store: Store, tmp_path: Path) -> None:
    filled(store)
    out = tmp_path / "out.zip"
    export_video(store, VIDEO, out)
    with zipfile.ZipFile(out) as archive:
        assert archive.read(f"blobs/{SHA}") == JPEG
        assert b"The lamp is on the table." in archive.read("rows.jsonl")


def test_a_dump_names_no_row_and_no_clock(store: Store) -> None:
    filled(store)
    first = list(dump_lines(store, VIDEO))
    delete_video_rows(store, VIDEO)
    filled(store)
    assert list(dump_lines(store, VIDEO)) == first
    rows = {json.loads(line)["row"] for line in first}
    assert {"video", "clip", "memory", "character", "segment_revision"} & rows
