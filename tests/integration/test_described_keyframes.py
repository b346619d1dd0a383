"""What keyframes show is stored with vectors, searched, cited, shown, and forgotten with people."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select, update

from cli.render import render
from domain.asking import Mode
from domain.errors import InputError
from domain.media import ClipState, Percept
from domain.memories import ClipMemories, KeyframeDescription
from domain.settings import MemorySettings, Settings
from domain.time import TimeSpan
from library.memory import clips, dump_lines, show_video
from library.moments import frames_around
from memory.captions import read_tracks
from memory.delete_span import delete_span
from memory.writers.local_clip import LocalClipWriter
from memory.writers.port import ClipContext, Writers
from people.across_videos import rename
from people.characters import ClipPeople
from people.forget import forget, restore_forgotten
from retrieval.retrievers import Retrievers
from store.database import Store
from store.queries.clips import memory_view
from store.tables.schema import KeyframeRow, LibraryRow
from tests.support.event_graphs import import_with_events
from tests.support.memory import (
    SETTINGS,
    Perceived,
    Tools,
    WordVectors,
    face,
    keyframe,
    known_video,
    local_writers,
    percept,
    remember,
    said,
)
from tests.support.ranking import shares
from tests.support.remembered import Tools as SearchTools

IMAGES = [f"image {n}".encode() for n in range(4)]
SHA = [hashlib.sha256(one).hexdigest() for one in IMAGES]
TEXTS = {
    2_000: "A man in a red coat before a green door.",
    12_000: "A blue teapot on a round table.",
    32_000: "<face_0> holds a yellow umbrella.",
    42_000: "An empty street at night.",
}


class Describing:
    """A writer that describes keyframes as ``TEXTS`` has it."""

    name, source, wants_context = "described", "", False

    def write(self, seen: Percept, people: ClipPeople, context: ClipContext) -> ClipMemories:
        found = LocalClipWriter().write(seen, people, context)
        described = tuple(
            KeyframeDescription(time_ms=one.time_ms, text=TEXTS[one.time_ms])
            for one in seen.keyframes
        )
        return found.model_copy(update={"descriptions": described})


def scenes() -> list[Percept]:
    return [
        percept(
            0,
            keyframes=(keyframe(2, SHA[0]), keyframe(12, SHA[1])),
            faces=(face(0, 1, (5, 9)),),
            utterances=(said(1, "We talk about nothing in particular.", seconds=25),),
        ),
        percept(
            1,
            keyframes=(keyframe(32, SHA[2]), keyframe(42, SHA[3])),
            utterances=(said(31, "And so it goes on for a while.", seconds=25),),
        ),
    ]


@pytest.fixture
def video(store: Store) -> str:
    video = known_video(store, 2)
    writers = Writers(Describing(), local_writers().event)
    for one in scenes():
        blobs = dict(zip(SHA, IMAGES, strict=True))
        kept = {frame.blob: blobs[frame.blob] for frame in one.keyframes}
        done = remember(store, video, Perceived(one, kept), writers, Tools(), SETTINGS)
        assert done is ClipState.DONE
    return video


def rows(store: Store) -> dict[int, KeyframeRow]:
    with store.begin() as session:
        found = session.scalars(select(KeyframeRow)).all()
        session.expunge_all()
    return {row.time_ms: row for row in found}


def vector(row: KeyframeRow) -> Any:
    return np.asarray(row.description_embedding, dtype=np.float32)


def test_a_description_is_stored_with_the_vector_of_its_words(store: Store, video: str) -> None:
    found = rows(store)
    assert {time: row.description for time, row in found.items()} == TEXTS
    for time, text in TEXTS.items():
        (wanted,) = WordVectors().embed([text])
        assert vector(found[time]) == pytest.approx(wanted, abs=1e-3)
    dumped = "\n".join(dump_lines(store, video))
    assert "yellow umbrella" in dumped
    assert dumped.count('"description_embedding":"') == 4


def searched(store: Store, video: str, query: str) -> Any:
    with store.begin() as session:
        view = memory_view(session, [video])
    tools: Any = SimpleNamespace(text=WordVectors(), reranker=None, images=None)
    return Retrievers(store, tools, Settings()).search(view, Mode.KEYFRAME, query)


def test_vector_of_a_description_ranks_where_no_word_is_the_same(store: Store, video: str) -> None:
    """The other pictures' words are taken away: what is left to rank by is the vector."""
    with store.begin() as session:
        for row in session.scalars(select(KeyframeRow)):
            row.description = "x"
    assert searched(store, video, "a blue teapot on a round table").images[0].time_ms == 12_000


def test_a_name_that_is_given_later_stands_under_the_picture(
    store: Store, video: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rename(store, video, "<face_0>", "Mary Poppins")
    assert (
        searched(store, video, "a yellow umbrella")
        .images[0]
        .description.startswith("Mary Poppins holds a yellow umbrella.")
    )
    details = show_video(store, video)
    assert details.clips[1].keyframes[0].text == "Mary Poppins holds a yellow umbrella."
    assert clips(store, video).items[1].keyframes == details.clips[1].keyframes
    near = {one.span.start_ms: one.text for one in frames_around(store, video, 32_000)}
    assert near[32_000] == "Mary Poppins holds a yellow umbrella."
    render(details, json=False)
    frame = details.clips[1].keyframes[0]
    assert (
        f"0:32  keyframe: Mary Poppins holds a yellow umbrella.  [{frame.ref}]"
        in capsys.readouterr().out
    )


def test_the_forgotten_go_from_descriptions(store: Store, video: str, tmp_path: Any) -> None:
    before, kept = rows(store)[32_000], tmp_path / "undo"
    rename(store, video, "<face_0>", "Mary Poppins")
    forget(store, video, "Mary Poppins", WordVectors(), kept)
    after = rows(store)[32_000]
    assert after.description == "somebody holds a yellow umbrella."
    (wanted,) = WordVectors().embed([after.description])
    assert vector(after) == pytest.approx(wanted, abs=1e-3)
    restore_forgotten(store, video, kept)
    again = rows(store)[32_000]
    assert again.description == before.description
    assert vector(again) == pytest.approx(vector(before))


def test_what_was_forgotten_under_another_encoder_is_not_brought_back(
    store: Store, video: str, tmp_path: Any
) -> None:
    forget(store, video, "<face_0>", WordVectors(), tmp_path / "undo")
    with store.begin() as session:
        session.execute(update(LibraryRow).values(text_encoder="later"))
    with pytest.raises(InputError, match="vectors of later, not of words"):
        restore_forgotten(store, video, tmp_path / "undo")


def test_a_description_of_a_deleted_span_goes_with_its_vector(store: Store, video: str) -> None:
    with store.begin() as session:
        row = session.scalars(select(KeyframeRow).where(KeyframeRow.time_ms == 42_000)).one()
        row.description = "A particular street."
    delete_span(store, video, TimeSpan.of(0, 1_000), WordVectors(), MemorySettings())
    left = rows(store)
    assert set(left) == {32_000, 42_000}
    assert (left[42_000].description, left[42_000].description_embedding) == (None, None)
    assert left[32_000].description == TEXTS[32_000]


def test_what_the_model_wrote_that_could_not_be_stored_is_shown(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    class Dropping(Describing):
        def write(self, seen: Percept, people: ClipPeople, context: ClipContext) -> ClipMemories:
            found = super().write(seen, people, context)
            why = ("the description of the keyframe at 2.0 s: none",)
            return found.model_copy(update={"budget": 60_000, "dropped": why})

    video = known_video(store, 1)
    writers = Writers(Dropping(), local_writers().event)
    assert remember(store, video, Perceived(scenes()[0]), writers, Tools(), SETTINGS) == "done"
    render(show_video(store, video), json=False)
    assert "not stored: the description of the keyframe at 2.0 s: none" in capsys.readouterr().out


# A question about a short captioned video is answered by what is done in it, through the store.


ASKED = "what does the lady do after taking the microphone?"
SCENE = "The lady holds a pan"


def lines(video: str, scene: str) -> list[dict[str, object]]:
    odd = {35: "A red table and a microphone of the lady", 36: "A red table"}
    return [
        {"video": video, "start": at, "end": at + 1, "text": odd.get(at, scene)}
        for at in range(0, 80, 4)
    ] + [{"video": video, "start": at, "end": at + 1, "text": text} for at, text in odd.items()]


def test_the_option_in_most_captions_is_chosen(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_text(
        "\n".join(map(json.dumps, [*lines("told", SCENE), *lines("own", f"I. {SCENE}")]))
    )
    search = Retrievers(store, SearchTools(), SETTINGS)
    described = {}
    for track in read_tracks(path):
        video = import_with_events(
            store, track, local_writers(), Tools(), SETTINGS, title=track.title
        )
        with store.begin() as session:
            view = memory_view(session, [video.id])
        options = ("red table", "hold a pan")
        context = search._preparation.context(view, ASKED, options)
        described[track.title] = context.vectors.actions is not None
        if track.title == "told":
            assert context.relevance is not None
            assert options[int(shares(context.relevance).argmax())] == "hold a pan"
    assert described == {"told": True, "own": False}
