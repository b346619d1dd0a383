"""Changing the image encoder: all pictures get new vectors, and both encoders find meanwhile."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import func, select, update

from domain import faults
from domain.asking import Mode
from domain.memories import MemoryView, Scope
from domain.settings import Settings
from domain.time import TimeSpan
from flows.delete import delete_video_rows
from flows.reembed import plan_reembedding, reembed
from flows.workspace import Workspace
from memory.delete_span import delete_span
from memory.reembed import reembed_pictures
from memory.write_clip import remember
from models.image_text import ImageTextEncoder
from models.ports import ImageEncoder, Vector
from models.profile import Profile, load_profile
from models.toolbox import Toolbox
from perception.jpeg import decode_image
from perception.likeness import LIKENESS, likeness
from retrieval.result import Retrieval
from retrieval.retrievers import Retrievers
from store.database import Store
from store.queries.encoders import count_pictures_left, settle_encoder
from store.queries.videos import video_state
from store.tables.schema import FrameRow, KeyframeRow
from strategies.kept_frames import FrameReader
from tests.support.asking import WordToolbox
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
)
from tests.support.memory import Tools as Remembering
from tests.support.remembered import Tools
from tests.support.tiny_image_encoder import Doubled, painted_jpeg, towers

CLIPS = ("blue", "red", "green")
KEPT = 7_000
"""The time of the kept frame, which is red."""


@dataclass
class BothTools(Tools):
    """Models of a search among which the other encoder is, too."""

    other: ImageEncoder | None = None

    def image_encoder(self, name: str) -> ImageEncoder | None:
        return self.other if self.other and self.other.name == name else None


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


def left(store: Store, encoder: ImageEncoder) -> int:
    with store.begin() as session:
        return count_pictures_left(session, VIDEO, encoder.name)


def view(last_clip: int = 5) -> MemoryView:
    return MemoryView(scopes=(Scope(video=VIDEO, last_clip=last_clip),))


def search(
    store: Store, own: ImageEncoder | None, other: ImageEncoder | None, query: str
) -> Retrieval:
    tools = BothTools(images=own, other=other)
    return Retrievers(store, tools, Settings()).search(view(), Mode.KEYFRAME, query)


def finds_all(store: Store, own: ImageEncoder, other: ImageEncoder) -> bool:
    """Check whether each colour finds its keyframe first, and is close."""
    for clip, colour in enumerate(CLIPS):
        found = search(store, own, other, f"all {colour}")
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
    assert left(library, new) == 4
    assert reembed_pictures(library, VIDEO, new, progress) == 0
    assert (left(library, new), progress.steps) == (0, 4)
    assert left(library, Doubled()) == 4
    assert finds_all(library, new, new)
    with library.begin() as session:
        state = video_state(session, VIDEO)
        sizes = set(session.scalars(select(func.vector_dims(KeyframeRow.embedding))))
    assert state is not None
    assert (state.models["images"], sizes) == (new.name, {3})


def test_pictures_watched_without_encoder_get_vectors(store: Store, new: ImageTextEncoder) -> None:
    known_video(store, 3)
    watch(store, None)
    assert not search(store, new, None, "all red").images or left(store, new) == 3
    reembed_pictures(store, VIDEO, new, Quiet())
    assert finds_all(store, new, new)


@pytest.mark.parametrize("done", [1, 2, 3])
def test_an_interrupted_run_goes_on_and_both_encoders_find(
    library: Store, new: ImageTextEncoder, monkeypatch: pytest.MonkeyPatch, done: int
) -> None:
    monkeypatch.setattr("memory.reembed.PICTURES", 1)
    interrupt(monkeypatch, stop, done)
    with pytest.raises(KeyboardInterrupt):
        reembed_pictures(library, VIDEO, new, Quiet())
    assert left(library, new) == 4 - done
    assert finds_all(library, new, Doubled()), "for one who has the new profile"
    assert finds_all(library, Doubled(), new), "for one who has the old profile"
    monkeypatch.undo()
    progress = Quiet()
    reembed_pictures(library, VIDEO, new, progress)
    assert (left(library, new), progress.steps) == (0, 4 - done)


def test_pictures_that_cannot_be_compared_are_ranked_by_words_meanwhile(
    library: Store, new: ImageTextEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with library.begin() as session:
        session.execute(
            update(KeyframeRow).where(KeyframeRow.clip == 2).values(description="a harbour")
        )
    monkeypatch.setattr("memory.reembed.PICTURES", 2)
    interrupt(monkeypatch, stop)
    with pytest.raises(KeyboardInterrupt):
        reembed_pictures(library, VIDEO, new, Quiet())
    found = search(library, new, None, "a harbour")
    assert found.images[0].time_ms == 64_000
    assert "2 of 3 by" in found.searched
    assert search(library, new, None, "all blue").images[0].time_ms == 4_000


def test_pictures_that_are_added_with_the_old_encoder_meanwhile_get_new_vectors(
    library: Store, new: ImageTextEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(monkeypatch, lambda: watch(library, Doubled(), range(3, 6)))
    reembed_pictures(library, VIDEO, new, Quiet())
    assert left(library, new) == 0
    assert left(library, Doubled()) == 7


def test_deleting_meanwhile_is_safe(
    library: Store, new: ImageTextEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.reembed.PICTURES", 1)
    second = TimeSpan.of(31_000, 50_000)

    def cut() -> None:
        delete_span(library, VIDEO, second, WordVectors(), SETTINGS.memory)

    interrupt(monkeypatch, cut)
    reembed_pictures(library, VIDEO, new, Quiet())
    assert left(library, new) == 0
    assert search(library, new, None, "all green").images[0].time_ms == 64_000

    def delete() -> None:
        delete_video_rows(library, VIDEO)

    interrupt(monkeypatch, delete)
    reembed_pictures(library, VIDEO, Doubled(), Quiet())
    with library.begin() as session:
        assert session.scalar(select(func.count()).select_from(KeyframeRow)) == 0


def test_a_lost_picture_keeps_vector_and_encoder(library: Store, new: ImageTextEncoder) -> None:
    with library.begin() as session:
        session.execute(update(KeyframeRow).where(KeyframeRow.clip == 1).values(blob="0" * 64))
    assert reembed_pictures(library, VIDEO, new, Quiet()) == 1
    assert left(library, new) == 1
    with library.begin() as session:
        rows = session.execute(select(KeyframeRow.clip, KeyframeRow.image_encoder)).all()
    assert {row.clip: row.image_encoder for row in rows} == {
        0: new.name,
        1: Doubled.name,
        2: new.name,
    }
    assert finds_all(library, new, Doubled())


def test_kept_frames_are_found_and_compared_across_encoders(
    library: Store, new: ImageTextEncoder, tmp_path: Path
) -> None:
    """One frame has a vector of each encoder, and one of colours and edges."""
    blue = np.full((36, 64, 3), (0, 0, 255), np.uint8)
    keep(library, 8_000, "blue", new.images([blue])[0], new.name)
    keep(library, 9_000, "blue", likeness(blue), LIKENESS)
    keep(library, 10_000, "green", Doubled().images([np.full((8, 8, 3), (0, 255, 0), np.uint8)])[0])
    reader = FrameReader(library, Known(tmp_path), "vam")
    for colour, time in (("red", KEPT), ("blue", 8_000), ("green", 10_000)):
        best = reader.nearest(view(), f"all {colour}", 2)[0]
        assert best.frame.frame.time_ms == time
        assert best.score >= new.close
    frames = {one.frame.time_ms: one for one in reader.within(view().scopes[0])}
    for time in (KEPT, 8_000, 9_000, 10_000):
        assert len(reader.alike(view(), frames[time], 9)) == 3
    (alike, *_) = reader.alike(view(), frames[9_000], 9)
    assert alike.frame.frame.time_ms == 8_000


class Known(WordToolbox):
    """A toolbox of the towers, which knows the other encoder."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.profile = self.profile.model_copy(update={"images": str(towers(root / "tiny"))})

    def image_encoder(self, name: str) -> ImageEncoder | None:
        return Doubled() if name == Doubled.name else super().image_encoder(name)


def test_other_profiles_image_encoders_are_known(tmp_path: Path) -> None:
    folder = towers(tmp_path / "tiny")
    config = tmp_path / "homer.toml"
    config.write_text(f"[profiles.own]\nbase = 'local'\nimages = '{folder}'\n")
    toolbox = Toolbox(load_profile("local", config), tmp_path)
    found = toolbox.image_encoder("clip:tiny")
    assert (found and found.name) == "clip:tiny"
    assert toolbox.image_encoder("clip:elsewhere") is None
    assert toolbox.images is None


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
    assert left(library, new) == 1
    assert "1 picture could not be read" in told[0]


def test_pictures_cost_nothing_where_texts_have_no_price(library: Store, tmp_path: Path) -> None:
    with library.begin() as session:
        settle_encoder(session, VIDEO, "unpriced-model")
    profile = WordToolbox().profile.model_copy(
        update={"images": str(tmp_path / "tiny"), "text": "openai:unpriced-model"}
    )
    plan = plan_reembedding(workspace(library, profile))
    assert (plan.rows, plan.pictures, plan.cost_usd) == (0, 4, 0.0)


def workspace(store: Store, profile: Profile) -> Workspace:
    toolbox = WordToolbox()
    toolbox.profile = profile
    return Workspace(store.home, store, profile, toolbox)
