"""Files and videos whose names are no proper text: they are watched, found, shown and deleted."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from domain.errors import InputError, ModelError
from domain.media import Video
from domain.words import make_storable
from flows.ingest_video import open_video
from flows.removal import delete_video_rows
from flows.workspace import Workspace
from library.memory import show_video
from library.removal import export_video
from library.videos import all_videos, check_video
from memory.captions import read_captions
from memory.event_graph import GraphFault
from memory.patches import WrittenPatch
from memory.writers.llm_event import LlmEventWriter
from memory.writers.port import Writers
from models.chat import read_value
from models.profile import load_profile
from store.database import Store
from store.home import Home
from store.queries.events import patches_of
from store.queries.videos import add_video, find_video
from tests.integration.test_event_graph_updates import Scripted, done_video
from tests.support.asking import WordToolbox
from tests.support.event_graphs import import_with_events, update_event_graph
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
        assert (work.pending(), work.path) == (list(range(work.state().clips)), path)
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


# Whatever a language model proposes for the event graph, watching goes on and the graph holds.


CLIPS = 12


class Told:
    """A language model whose every reply is this text; counts how often it was asked."""

    model = "told"

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.asked = 0

    def __call__(self, sink: object, replay: object) -> Any:
        return self

    def ask(self, messages: object, schema: type[WrittenPatch], *, purpose: str) -> Any:
        self.asked += 1
        text = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        return read_value(text, schema)


def update_graph(store: Store, video: str, model: Any) -> int:
    event = LlmEventWriter(model, SETTINGS.memory)
    writers = Writers(local_writers().clip, event)
    return update_event_graph(store, video, writers, TOOLS, SETTINGS, is_final=True)


def output(*edges: dict[str, object], **more: object) -> str:
    segments = [
        {"label": "A", "summary": "They talk.", "clips": list(range(5))},
        {"label": "B", "summary": "They walk.", "clips": list(range(5, CLIPS))},
    ]
    return json.dumps({"segments": segments, "edges": list(edges), **more})


HUGE = 10**30


TEXT = st.sampled_from(["A", "B", "C", "a", " A ", "", "\x00", "x y z", "before", "A\nB"])
NUMBER = st.integers(-1, CLIPS + 3) | st.sampled_from([HUGE, 2**31, 2**63])
REPLIES = st.builds(
    lambda segments, edges: json.dumps({"segments": segments, "edges": edges}),
    st.lists(
        st.fixed_dictionaries(
            {"label": TEXT, "summary": TEXT, "clips": st.lists(NUMBER, max_size=6)},
            optional={"extends": TEXT | st.none()},
        ),
        max_size=10,
    ),
    st.lists(
        st.fixed_dictionaries(
            {"source": TEXT, "target": TEXT, "relation": TEXT | st.sampled_from(["causes"])},
            optional={
                "confidence": st.floats(),
                "evidence": st.lists(NUMBER, max_size=3),
                "rationale": TEXT,
                "removed": st.booleans(),
            },
        ),
        max_size=6,
    ),
)


def patiently(store: Store, video: str, model: Told) -> int:
    """Patches applied; what cannot be read is told, and the next call goes on from there."""
    before = patches(store, video)
    with suppress(ModelError):
        update_graph(store, video, model)
    return patches(store, video) - before


def patches(store: Store, video: str) -> int:
    with store.begin() as session:
        return len(patches_of(session, video))


@pytest.mark.full
@hypothesis_settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(REPLIES, min_size=1, max_size=4))
def test_no_reply_breaks_the_weaving_or_the_graph(store: Store, replies: list[str]) -> None:
    video = done_video(store, CLIPS)
    try:
        model = Told(*replies, output())
        assert sum(patiently(store, video, model) for _ in range(len(replies) + 1)) == 2
        whole = check_video(store, video)
        assert {one.fault for one in whole.findings} <= {GraphFault.CYCLE, GraphFault.CONTRADICTION}
        shown = show_video(store, video)
        held = {clip for one in shown.segments for clip in one.clips}
        assert held | set(shown.pending) == set(range(CLIPS))
        assert update_graph(store, video, Told(output())) == 0
    finally:
        delete_video_rows(store, video)


def test_a_writer_that_proposes_nothing_is_offered_every_clip_again_until_end(store: Store) -> None:
    nothing = WrittenPatch(segments=())
    video, writer = done_video(store, CLIPS), Scripted(nothing, nothing)
    writers = Writers(local_writers().clip, writer)
    assert update_event_graph(store, video, writers, TOOLS, SETTINGS, is_final=True) == 2
    assert [one.new for one in writer.windows] == [tuple(range(10)), tuple(range(12))]
    assert update_event_graph(store, video, writers, TOOLS, SETTINGS, is_final=True) == 0
