"""KEYFRAME at a time: frames of the video's file if it is there, else the images stored nearest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, text, update

from domain.asking import Mode
from domain.errors import InputError
from domain.memories import MemoryView, Scope
from domain.moments import Retrieval
from domain.rights import Deed
from domain.settings import Settings
from domain.time import TimeSpan
from library.rights import give_right, rights_on
from models.toolbox import Toolbox
from perception.decode import decode_frames
from perception.source import video_id
from retrieval.quotes_and_citations import cite
from retrieval.retrievers import Retrievers
from store.database import Store
from store.home import Home
from store.queries.backup import dump_video
from store.queries.rights import is_erased, record_deed
from store.tables.schema import KeyframeRow, VideoRow
from tests.conftest import WEIGHTS
from tests.support.picture_cards import COLOURS, SIZE, Card, make_slides
from tests.support.remembered import Said, Tools, recording, watch
from tests.support.seeing_model import Eyes, decoded, main_colour
from tests.support.seen_films import CHANGES, FilmAnswers, ask_about_films, watch_films

COLOURS_SHOWN = list(COLOURS)[:6]
SLIDE_S = 10


@pytest.fixture(scope="module")
def slides(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A minute in six colours of ten seconds each."""
    path = tmp_path_factory.mktemp("slides") / "slides.mp4"
    cards = [Card(colour, "", "circle") for colour in COLOURS_SHOWN]
    return make_slides(path, cards, SLIDE_S).read_bytes()


@pytest.fixture
def file(store: Store, slides: bytes, tmp_path: Path) -> Path:
    """The film of a library that remembers two clips of it, with images at 2 s and at 41 s."""
    path = tmp_path / "slides.mp4"
    path.write_bytes(slides)
    name = video_id(path)
    watch(store, name, [[Said("Let us begin", 2)], [Said("Thank you", 3)]])
    recording(store, name, [2.0, 41.0])
    with store.begin() as session:
        session.execute(update(VideoRow).values(path=str(path)))
    return path


def look(store: Store, start_s: float, end_s: float, last: int = 1) -> Retrieval:
    with store.begin() as session:
        (name,) = session.scalars(select(VideoRow.id))
    view = MemoryView(scopes=(Scope(video=name, last_clip=last),))
    span = TimeSpan.of(round(start_s * 1000), round(end_s * 1000))
    return Retrievers(store, Tools(), Settings()).search(
        view, Mode.KEYFRAME, "the board in colour", span=span
    )


def frames(store: Store) -> int:
    with store.begin() as session:
        return session.scalar(select(func.count()).select_from(KeyframeRow)) or 0


@pytest.mark.parametrize(("at", "colour"), [(5, 0), (12.5, 1), (33, 3), (59.9, 5), (60, None)])
def test_what_the_file_shows_at_a_time_is_found_and_can_be_cited(
    store: Store, file: Path, at: float, colour: int | None
) -> None:
    if colour is None:
        with pytest.raises(InputError, match="01:00 is after 01:00"):
            look(store, at, at + 1)
        return
    found = look(store, at, at + 1)
    (image,), (evidence,) = found.images, found.evidence
    pixels = decoded(store.blobs.get(image.blob))
    assert (main_colour(pixels), pixels.shape[1::-1]) == (COLOURS_SHOWN[colour], SIZE)
    assert (evidence.ref, evidence.span.start_ms) == (image.ref, round(at * 1000))
    assert "decoded from the video's file" in evidence.text
    assert not found.nothing_close
    with store.begin() as session:
        (name,) = session.scalars(select(VideoRow.id))
        view = MemoryView(scopes=(Scope(video=name, last_clip=1),))
        (citation,) = cite(session, view, [image.ref]).citations
    assert citation.span == evidence.span


def test_looking_twice_stores_once_and_changes_no_memory(store: Store, file: Path) -> None:
    name = video_id(file)

    def dumped() -> list[str]:
        with store.begin() as session:
            return list(dump_video(session, name))

    before, stored = dumped(), frames(store)
    first, second = look(store, 12, 13), look(store, 12, 13)
    assert (first.images, frames(store)) == (second.images, stored + 1)
    assert dumped() == before
    view = MemoryView(scopes=(Scope(video=name, last_clip=1),))
    ranked = Retrievers(store, Tools(), Settings()).search(view, Mode.KEYFRAME, "the board")
    assert {image.time_ms for image in ranked.images} == {2_000, 41_000}


@pytest.mark.parametrize("away", ["gone", "changed", "erased", "unknown"])
def test_without_the_file_the_nearest_images_are_shown(store: Store, file: Path, away: str) -> None:
    with store.begin() as session:
        if away == "erased":
            record_deed(session, Deed.FORGOT, f"{video_id(file)} person 1")
        if away == "unknown":
            session.execute(update(VideoRow).values(path=None))
    if away == "gone":
        file.unlink()
    if away == "changed":
        file.write_bytes(file.read_bytes() + b"more")
    found = look(store, 12, 13)
    assert [image.time_ms for image in found.images] == [2_000, 41_000]
    why = "erased" if away == "erased" else "gone or has changed"
    near, far = [evidence.text for evidence in found.evidence]
    assert near.startswith("stored image (")
    assert why in near
    assert "at 00:02, 10 s away" in near
    assert "at 00:41, 28 s away" in far
    assert found.evidence[0].score > found.evidence[1].score
    assert frames(store) == 2


def test_nothing_after_the_moment_of_asking_is_decoded(store: Store, file: Path) -> None:
    with pytest.raises(InputError, match="after 00:30, the end"):
        look(store, 35, 36, last=0)
    found = look(store, 25, 45, last=0)
    assert found.images
    assert all(image.time_ms < 30_000 for image in found.images)


def test_what_who_may_only_look_looks_at_is_stored_for_nobody(store: Store, file: Path) -> None:
    """A frame of a person who was forgotten would be there for everybody."""
    give_right(store, "key:reader", video=video_id(file))
    rights_on(store)
    files = [*store.blobs.walk()]
    found = look(store.for_viewer("key:reader"), 5, 5.5)
    assert [image.time_ms for image in found.images] == [2_000, 41_000]
    assert "stored image (the file is decoded only for who may change" in str(found)
    assert (frames(store), [*store.blobs.walk()]) == (2, files)


@pytest.mark.parametrize("deed", [Deed.FORGOT, Deed.DELETED, Deed.RETAINED, Deed.IMPORTED])
def test_what_was_erased_is_decided_outside_rights(store: Store, file: Path, deed: Deed) -> None:
    """Viewers see no row of the log; where even its owner sees none, everything counts."""
    name = video_id(file)
    give_right(store, "key:reader", video=name)
    rights_on(store)
    with store.for_viewer("key:reader").begin() as session:
        assert not is_erased(session, name)
    with store.begin() as session:
        session.execute(text("SET LOCAL ROLE homer_viewer"))
        session.execute(text("SELECT set_config('homer.viewer', 'key:reader', true)"))
        assert is_erased(session, name), "the log is hidden"
    with store.begin() as session:
        record_deed(session, deed, name)
    with store.for_viewer("key:reader").begin() as session:
        assert is_erased(session, name)


def test_what_is_forgotten_while_the_file_is_decoded_is_not_stored(
    store: Store, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgotten_meanwhile(*arguments: Any) -> Any:
        pictures = list(decode_frames(*arguments))
        with store.begin() as session:
            record_deed(session, Deed.FORGOT, f"{video_id(file)} person 1")
        return pictures

    monkeypatch.setattr("retrieval.keyframe_mode.decode_frames", forgotten_meanwhile)
    files = [*store.blobs.walk()]
    assert "erased" in str(look(store, 5, 5.5))
    assert (frames(store), [*store.blobs.walk()]) == (2, files)


# Twenty questions about what two films show and nobody says, to a model that really sees.


pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]


def test_a_model_that_sees_is_right_about_pictures_and_only_with_the_pictures_and_their_refs(
    home: Home, store: Store, toolbox: Toolbox, tmp_path: Path
) -> None:
    asked = watch_films(home, store, toolbox, tmp_path)
    eyes = Eyes(toolbox.screen, toolbox.objects, toolbox.faces)
    found = ask_about_films(store, WEIGHTS, eyes, asked)
    assert (found.asked, found.replayed) == (20, 20)
    assert found.right >= 18
    for change in CHANGES.values():
        assert ask_about_films(store, WEIGHTS, eyes, asked, change) == FilmAnswers(20, 0, 20)
