"""Changing the image encoder: all pictures get new vectors, and the old ones find meanwhile."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import func, select, update

from domain import faults
from domain.asking import Mode
from domain.memories import MemoryView, Scope
from domain.moments import Retrieval
from domain.settings import Settings
from domain.time import TimeSpan
from flows.reembed import plan_reembedding, reembed
from flows.removal import delete_video_rows
from flows.workspace import Workspace
from library.memory import show_video
from memory.delete_span import delete_span
from models.image_text import ImageTextEncoder
from models.ports import ImageEncoder, Vector
from models.profile import Profile, load_profile
from models.toolbox import Toolbox
from perception.images import LIKENESS, decode_image, likeness
from retrieval.retrievers import Retrievers
from store.database import Store
from store.queries.encoders import count_pictures_left
from store.tables.schema import FrameRow, KeyframeRow, LibraryRow
from strategies.kept_frames import FrameReader
from tests.support.asking import WordToolbox
from tests.support.changed_encoders import change_all
from tests.support.library import Quiet
from tests.support.memory import (
    SETTINGS,
    VIDEO,
    Perceived,
    WordVectors,
    keyframe,
    known_video,
    local_writers,
    percept,
    remember,
)
from tests.support.memory import Tools as Remembering
from tests.support.remembered import Tools
from tests.support.tiny_image_encoder import Doubled, painted_jpeg, towers

CLIPS = ("blue", "red", "green")
KEPT = 7_000
"""The time of the kept frame, which is red."""


def watch(store: Store, encoder: ImageEncoder | None, clips: range = range(3)) -> None:
    """Watch clips of a keyframe each, of which nothing is known but its pixels."""
    for clip in clips:
        data = painted_jpeg(CLIPS[clip % 3])
        frame = keyframe(30 * clip + 4, hashlib.sha256(data).hexdigest())
        if encoder is not None:
            image = decode_image(data)
            assert image is not None
            vector = tuple(encoder.images([image])[0].tolist())
            frame = frame.model_copy(update={"vector": vector, "image_encoder": encoder.name})
        seen = Perceived(percept(clip, keyframes=(frame,)), {frame.blob: data})
        remember(store, VIDEO, seen, local_writers(), Remembering(), SETTINGS)


@pytest.fixture
def new(tmp_path: Path) -> ImageTextEncoder:
    return ImageTextEncoder(towers(tmp_path / "tiny"))


@pytest.fixture
def library(store: Store) -> Store:
    """Three keyframes and a kept frame, watched with another encoder."""
    known_video(store, 6)
    watch(store, Doubled())
    keep(store, KEPT, "red", Doubled().images([np.full((8, 8, 3), (255, 0, 0), np.uint8)])[0])
    return store


def keep(
    store: Store, time_ms: int, colour: str, vector: Vector | None, made_by: str = Doubled.name
) -> None:
    place = {"clip": 0, "time_ms": time_ms, "width": 64, "height": 36, "tier": 0, "reason": "so"}
    made = {"embedding": None if vector is None else vector.tolist(), "image_encoder": made_by}
    with store.begin() as session:
        row = FrameRow(video_id=VIDEO, builder="vam", blob=store.blobs.put(painted_jpeg(colour)))
        for name, value in (place | made).items():
            setattr(row, name, value)
        session.add(row)


def left(store: Store) -> int:
    """How many pictures have no vector of the library's own encoder."""
    with store.begin() as session:
        return count_pictures_left(session, VIDEO, "new")


def view(last_clip: int = 5) -> MemoryView:
    return MemoryView(scopes=(Scope(video=VIDEO, last_clip=last_clip),))


def search(store: Store, own: ImageEncoder | None, query: str) -> Retrieval:
    return Retrievers(store, Tools(images=own), Settings()).search(view(), Mode.KEYFRAME, query)


def finds_all(store: Store, own: ImageEncoder) -> bool:
    """Check whether each colour finds its keyframe first, and is close."""
    for clip, colour in enumerate(CLIPS):
        found = search(store, own, f"all {colour}")
        if found.nothing_close or found.images[0].time_ms != 30_000 * clip + 4_000:
            return False
    return True


def interrupt(monkeypatch: pytest.MonkeyPatch, action: Callable[[], None], after: int = 1) -> None:
    """Do something after so many batches."""
    passed = 0

    def happen(point: faults.FaultPoint) -> None:
        nonlocal passed
        passed += point is faults.FaultPoint.REEMBEDDED_BATCH
        if point is faults.FaultPoint.REEMBEDDED_BATCH and passed == after:
            action()

    monkeypatch.setattr(faults, "fault_point", happen)


def stop() -> None:
    raise KeyboardInterrupt


def test_all_pictures_have_vectors_of_new_encoder(library: Store, new: ImageTextEncoder) -> None:
    progress = Quiet()
    assert finds_all(library, Doubled())
    assert search(library, new, "all red").unseen, "another model compares no pictures"
    assert change_all(library, new, progress, images=True) == set()
    assert progress.steps == 4
    assert finds_all(library, new)
    with library.begin() as session:
        sizes = set(session.scalars(select(func.vector_dims(KeyframeRow.embedding))))
        made_by = session.scalars(select(FrameRow.image_encoder)).one()
    assert (show_video(library, VIDEO).models["images"], sizes, made_by) == (
        new.name,
        {3},
        new.name,
    )


def test_pictures_watched_without_encoder_get_vectors(store: Store, new: ImageTextEncoder) -> None:
    known_video(store, 6)
    watch(store, new, range(2))
    watch(store, None, range(2, 3))
    assert left(store) == 1
    progress = Quiet()
    change_all(store, new, progress, images=True)
    assert (left(store), progress.steps) == (0, 1)
    assert finds_all(store, new)


@pytest.mark.parametrize("done", [1, 2, 3])
def test_an_interrupted_run_goes_on_and_the_old_encoder_finds_meanwhile(
    library: Store, new: ImageTextEncoder, monkeypatch: pytest.MonkeyPatch, done: int
) -> None:
    monkeypatch.setattr("memory.reembed.PICTURES", 1)
    interrupt(monkeypatch, stop, done)
    with pytest.raises(KeyboardInterrupt):
        change_all(library, new, images=True)
    assert finds_all(library, Doubled())
    monkeypatch.undo()
    progress = Quiet()
    change_all(library, new, progress, images=True)
    assert progress.steps == 4 - done
    assert finds_all(library, new)


def test_pictures_that_are_added_meanwhile_get_new_vectors(
    library: Store, new: ImageTextEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(monkeypatch, lambda: watch(library, Doubled(), range(3, 6)))
    change_all(library, new, images=True)
    assert left(library) == 0


def test_deleting_meanwhile_is_safe(
    library: Store, new: ImageTextEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.reembed.PICTURES", 1)
    second = TimeSpan.of(31_000, 50_000)

    def cut() -> None:
        delete_span(library, VIDEO, second, WordVectors(), SETTINGS.memory)

    interrupt(monkeypatch, cut)
    change_all(library, new, images=True)
    assert (left(library), search(library, new, "all green").images[0].time_ms) == (0, 64_000)

    def delete() -> None:
        delete_video_rows(library, VIDEO)

    interrupt(monkeypatch, delete)
    change_all(library, Doubled(), images=True)
    with library.begin() as session:
        assert session.scalar(select(func.count()).select_from(KeyframeRow)) == 0


def test_a_lost_picture_has_no_vector(library: Store, new: ImageTextEncoder) -> None:
    with library.begin() as session:
        session.execute(update(KeyframeRow).where(KeyframeRow.clip == 1).values(blob="0" * 64))
    assert len(change_all(library, new, images=True)) == 1
    with library.begin() as session:
        rows = session.execute(select(KeyframeRow.clip, KeyframeRow.embedding)).all()
    assert {row.clip: row.embedding is None for row in rows} == {0: False, 1: True, 2: False}


def test_kept_frames_are_found_and_compared(
    library: Store, new: ImageTextEncoder, tmp_path: Path
) -> None:
    """Some have a vector of the model, and one of colours and edges."""
    blue = np.full((36, 64, 3), (0, 0, 255), np.uint8)
    change_all(library, new, images=True)
    keep(library, 8_000, "blue", new.images([blue])[0], new.name)
    keep(library, 9_000, "blue", likeness(blue), LIKENESS)
    reader = FrameReader(library, Known(tmp_path), "vam")
    for colour, time in (("red", KEPT), ("blue", 8_000)):
        best = reader.nearest(view(), f"all {colour}", 2)[0]
        assert best.frame.frame.time_ms == time
        assert best.score >= new.close
    frames = {one.frame.time_ms: one for one in reader.within(view().scopes[0])}
    for time in (KEPT, 8_000, 9_000):
        assert len(reader.alike(view(), frames[time], 9)) == 2
    (alike, *_) = reader.alike(view(), frames[9_000], 9)
    assert alike.frame.frame.time_ms == 8_000


class Known(WordToolbox):
    """A toolbox of the towers."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.profile = self.profile.model_copy(update={"images": str(towers(root / "tiny"))})


def test_other_profiles_image_encoders_are_known(tmp_path: Path) -> None:
    folder = towers(tmp_path / "tiny")
    config = tmp_path / "homer.toml"
    config.write_text(f"[profiles.own]\nbase = 'local'\nimages = '{folder}'\n")
    seeing = Toolbox(load_profile("own", config), tmp_path)
    assert seeing.of_library(None, "clip:elsewhere") is seeing
    blind = Toolbox(load_profile("local", config), tmp_path)
    assert blind.of_library(None, "clip:tiny").images is None, "its profile names no such model"


def test_plan_counts_and_flow_embeds(library: Store, new: ImageTextEncoder, tmp_path: Path) -> None:
    profile = WordToolbox().profile.model_copy(update={"images": str(tmp_path / "tiny")})
    without = workspace(library, profile.model_copy(update={"images": None}))
    assert plan_reembedding(without).pictures == 0
    opened = workspace(library, profile)
    plan = plan_reembedding(opened, timed=True)
    assert (plan.pictures, plan.videos[0].pictures, plan.cost_usd) == (4, 4, 0.0)
    assert plan.seconds is not None
    assert "4 pictures" in str(plan)
    with library.begin() as session:
        session.execute(update(KeyframeRow).where(KeyframeRow.clip == 1).values(blob="0" * 64))
    told: list[str] = []
    reembed(opened, plan, Quiet(), told.append, direct=True)
    assert left(library) == 1
    assert "1 picture could not be read" in told[0]


def test_pictures_cost_nothing_where_texts_have_no_price(library: Store, tmp_path: Path) -> None:
    with library.begin() as session:
        session.execute(update(LibraryRow).values(text_encoder="unpriced-model"))
    profile = WordToolbox().profile.model_copy(
        update={"images": str(tmp_path / "tiny"), "text": "openai:unpriced-model"}
    )
    plan = plan_reembedding(workspace(library, profile))
    assert (plan.rows, plan.pictures, plan.cost_usd) == (0, 4, 0.0)


def workspace(store: Store, profile: Profile) -> Workspace:
    toolbox = WordToolbox()
    toolbox.profile = profile
    return Workspace(store.home, store, profile, toolbox)
