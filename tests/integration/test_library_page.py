"""What the library shows of a video, and that what is deleted or exported is whole."""

from __future__ import annotations

import hashlib
import json

import pytest

from domain.errors import Ambiguous, NotFound
from flows.delete import delete_video_rows
from library.memory import show_video
from library.videos import all_videos
from store.database import Store
from store.queries.videos import DONE, find_video, set_video_state
from tests.support.event_graphs import update_event_graph
from tests.support.memory import (
    SETTINGS,
    VIDEO,
    Tools,
    face,
    keyframe,
    known_video,
    local_writers,
    memorise,
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
        memorise(store, one, video=video, blobs={SHA: JPEG})
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
