"""The older a video, the less is kept of it: fewer and smaller images, text only, nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select, text, update
from typer.testing import CliRunner

from cli.main import app
from domain.settings import RetainSettings, Tier
from flows.removal import retain
from flows.schedules import work
from flows.workspace import Workspace
from library.videos import all_videos
from models.profile import load_profile
from perception.images import Blobs
from store.database import Store
from store.queries.percepts import add_blobs
from store.queries.rights import audit_entries
from store.tables.schema import (
    BlobRow,
    FrameRow,
    IdentityRow,
    KeyframeRow,
    ObjectRow,
    ScreenTextRow,
    SightingRow,
    TrajectoryEventRow,
    VideoRow,
)
from tests.support.full_video import ask
from tests.support.memory import SETTINGS, VIDEO, keyframe, known_video

pytestmark = pytest.mark.usefixtures("tampered")

NOW = datetime(2026, 6, 1, tzinfo=UTC)
NOT_IN_ROW = {"vector", "image_encoder", "likeness"}
TIERS = (
    Tier(after_days=30, keep="fewer", keyframes=1, side=64),
    Tier(after_days=90, keep="text"),
    Tier(after_days=365, keep="nothing"),
)


@pytest.fixture
def app_library(store: Store) -> Store:
    """Two clips of three keyframes, 128 x 72 pixels, a crop, and things on the first of them."""
    known_video(store, 2)
    made = Blobs()
    noise = np.random.default_rng(1)
    names = [made.add(noise.integers(0, 255, (72, 128, 3), np.uint8), 90) for _ in range(7)]
    for data in made.values():
        store.blobs.put(data)
    with store.begin() as session:
        add_blobs(session, VIDEO, {sha: len(data) for sha, data in made.items()})
        for n, sha in enumerate(names[:6]):
            seen = keyframe(30 * (n // 3) + n, sha).model_dump(exclude=NOT_IN_ROW)
            large = {"width": 128, "height": 72, "quality": float(n % 3)}
            session.add(KeyframeRow(video_id=VIDEO, clip=n // 3, **{**seen, **large}))
        at: dict[str, Any] = {"video_id": VIDEO, "clip": 0, "time_ms": 2000, "score": 0.9}
        session.add(ObjectRow(label="cup", box=[20, 10, 60, 40], **at))
        session.add(ScreenTextRow(text="EXIT", box=[0, 0, 128, 72], **at))
        who = IdentityRow(video_id=VIDEO, kind="face", number=0, first_clip=0, character=0)
        session.add(who)
        session.flush()
        when: dict[str, Any] = {"start_ms": 0, "end_ms": 9, "score": 0.9, "quality": 30.0}
        of: dict[str, Any] = {"video_id": VIDEO, "clip": 0, "identity_id": who.id}
        session.add(SightingRow(blob=names[6], box=[0, 0, 9, 9], **of, **when))
    return store


def aged(store: Store, days: float, tiers: tuple[Tier, ...] = TIERS, **more: Any) -> Any:
    """A run of retention on a video of that age."""
    return retain(workspace_of(store, days, tiers), NOW, **more)


def workspace_of(store: Store, days: float, tiers: tuple[Tier, ...]) -> Workspace:
    """A workspace whose settings have these tiers, at a library whose video is that old."""
    with store.begin() as session:
        since = NOW - timedelta(days=days)
        session.execute(update(VideoRow).values(created_at=since, state="done"))
    settings = SETTINGS.model_copy(update={"retain": RetainSettings(tiers=tiers)})
    profile = load_profile("local").model_copy(update={"settings": settings})
    nothing: Any = None
    return Workspace(store.home, store, profile, nothing)


def test_a_schedule_does_it_and_tells_how_much_went(app_library: Store) -> None:
    output = work.retain(workspace_of(app_library, 100, TIERS), NOW)
    assert output.ok
    assert output.text.endswith("MB of 1 video were deleted")
    assert frames(app_library) == []


def test_a_schedule_without_tiers_says_where_to_set_them(app_library: Store) -> None:
    assert "docs/privacy.md" in work.retain(workspace_of(app_library, 100, ()), NOW).text
    assert len(frames(app_library)) == 6


def frames(store: Store) -> list[tuple[int, float, int, int]]:
    with store.begin() as session:
        row = KeyframeRow
        query = select(row.clip, row.quality, row.width, row.height).order_by(row.id)
        return [(clip, q, w, h) for clip, q, w, h in session.execute(query)]


def kept(store: Store) -> list[tuple[int, int, int]]:
    row = FrameRow
    with store.begin() as session:
        query = select(row.time_ms, row.width, row.height).order_by(row.time_ms)
        return [(time, w, h) for time, w, h in session.execute(query)]


def test_frames_of_strategies_become_fewer_and_smaller_like_keyframes(app_library: Store) -> None:
    # Keep frames of a strategy as well: three in each clip.
    noise, made = np.random.default_rng(2), Blobs()
    names = [made.add(noise.integers(0, 255, (72, 128, 3), np.uint8), 90) for _ in range(6)]
    size: dict[str, Any] = {"width": 128, "height": 72, "tier": 0, "reason": "sharp"}
    with app_library.begin() as session:
        for n, sha in enumerate(names):
            app_library.blobs.put(made[sha])
            place = {"clip": n // 3, "time_ms": 10_000 * n, "blob": sha}
            session.add(FrameRow(video_id=VIDEO, builder="one", **place, **size))
        add_blobs(session, VIDEO, {sha: len(data) for sha, data in made.items()})
    before = room(app_library)
    (less,) = aged(app_library, 40).videos
    assert (less.images, less.smaller) == (8, 4)
    assert kept(app_library) == [(0, 64, 36), (30_000, 64, 36)]
    assert room(app_library) == before - less.bytes
    aged(app_library, 100)
    assert kept(app_library) == []
    with app_library.begin() as session:
        named = set(session.scalars(select(BlobRow.sha256)))
    assert {sha for sha, _ in app_library.blobs.walk()} == named


def room(store: Store) -> int:
    return sum(len(store.blobs.get(sha)) for sha, _ in store.blobs.walk())


def test_nothing_goes_unless_it_is_asked_for_or_old_enough(app_library: Store) -> None:
    before = frames(app_library), room(app_library)
    assert (aged(app_library, 10_000, tiers=()).videos, aged(app_library, 29).videos) == ((), ())
    assert (frames(app_library), room(app_library)) == before


def test_first_the_best_image_of_each_clip_stays_smaller(app_library: Store) -> None:
    before = room(app_library)
    output = aged(app_library, 31, dry_run=True)
    assert len(frames(app_library)) == 6
    done = aged(app_library, 31)
    assert done == output
    (one,) = done.videos
    assert (one.images, one.smaller) == (4, 2)
    assert frames(app_library) == [(0, 2.0, 64, 36), (1, 2.0, 64, 36)]
    assert before - room(app_library) == one.bytes == done.bytes > 0
    with app_library.begin() as session:
        shas = set(session.scalars(select(BlobRow.sha256)))
        boxes = [list(session.scalars(select(row.box)).one()) for row in (ObjectRow, ScreenTextRow)]
    assert shas == {sha for sha, _ in app_library.blobs.walk()}
    assert boxes == [[10, 5, 30, 20], [0, 0, 64, 36]]
    assert aged(app_library, 32).videos == ()


def test_then_there_are_words_only(app_library: Store) -> None:
    (one,) = aged(app_library, 91).videos
    assert (one.keep, one.images, one.smaller) == ("text", 7, 0)
    assert (frames(app_library), room(app_library)) == ([], 0)
    with app_library.begin() as session:
        assert session.scalars(select(ScreenTextRow.text)).all() == ["EXIT"]
        assert session.scalars(select(SightingRow.blob)).all() == [None]


def test_at_last_it_is_forgotten(app_library: Store) -> None:
    (one,) = aged(app_library, 366).videos
    assert (one.keep, one.images) == ("nothing", 7)
    assert (all_videos(app_library).items, room(app_library)) == ((), 0)


@pytest.mark.parametrize("how", ["id", "sha"])
@pytest.mark.parametrize("days", [31, 91])
def test_what_an_answer_cites_stays_as_long(app_library: Store, how: str, days: float) -> None:
    ask(app_library, "t1", "why?", VIDEO)
    with app_library.begin() as session:
        worst = session.scalars(select(KeyframeRow).order_by(KeyframeRow.id)).first()
        assert worst is not None
        output = {"id": {"citations": [f"[k{worst.id}]"]}, "sha": {"images": [worst.blob]}}[how]
        held: dict[str, Any] = {"trajectory_id": "t1", "seq": 1, "kind": "end"}
        session.add(TrajectoryEventRow(payload=output, **held))
    aged(app_library, days)
    assert (0, 0.0, 128, 72) in frames(app_library)
    with app_library.begin() as session:
        session.execute(text("DELETE FROM trajectories"))
    aged(app_library, days)
    assert (0, 0.0, 128, 72) not in frames(app_library)


def test_what_is_still_watched_is_left_alone(app_library: Store) -> None:
    with app_library.begin() as session:
        session.execute(update(VideoRow).values(created_at=NOW - timedelta(days=400)))
    settings = SETTINGS.model_copy(update={"retain": RetainSettings(tiers=TIERS)})
    profile = load_profile("local").model_copy(update={"settings": settings})
    nothing: Any = None
    assert retain(Workspace(app_library.home, app_library, profile, nothing), NOW).videos == ()


def test_it_is_on_record(app_library: Store) -> None:
    aged(app_library, 31, dry_run=True)
    with app_library.begin() as session:
        assert audit_entries(session) == []
    aged(app_library, 31)
    with app_library.begin() as session:
        assert [(one.deed.value, one.subject) for one in audit_entries(session)] == [
            ("retained", VIDEO)
        ]


@pytest.fixture
def homer(
    app_library: Store, database: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """The command over a video that was watched long ago."""
    with app_library.begin() as session:
        since = datetime.now(UTC) - timedelta(days=31)
        session.execute(update(VideoRow).values(created_at=since, state="done"))
    monkeypatch.setenv("HOMER_DATABASE_URL", database)

    def run(*arguments: str, answer: str = "") -> tuple[int, str, str]:
        done = CliRunner().invoke(app, ["retain", *arguments], input=answer)
        return done.exit_code, done.stdout, done.stderr

    return run


def test_the_command_does_nothing_unless_tiers_are_set(app_library: Store, homer: Any) -> None:
    code, _, output = homer("--yes")
    assert (code, "no retention tier is set" in output) == (0, True)
    assert len(frames(app_library)) == 6


def test_the_command_tells_first_and_asks(app_library: Store, homer: Any) -> None:
    tier = 'after_days = 30\nkeep = "fewer"\nside = 64\n'
    mine = '[profiles.mine]\nspeech = "whisper-base"\n'
    app_library.home.config.write_text(f"{mine}[[profiles.mine.settings.retain.tiers]]\n{tier}")
    code, out, _ = homer("--dry-run", "-p", "mine", "--json")
    assert code == 0
    (row,) = json.loads(out)
    assert (row["video"], row["images"], row["smaller"]) == (VIDEO, 4, 2)
    code, _, output = homer("-p", "mine", answer="n\n")
    assert (code, "of 1 video? It cannot be undone" in output) == (1, True)
    assert len(frames(app_library)) == 6
    assert (homer("-p", "mine", "--yes")[0], len(frames(app_library))) == (0, 2)
    assert "nothing is old enough" in homer("-p", "mine", "--yes")[2]
