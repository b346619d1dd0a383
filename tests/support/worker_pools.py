"""Ingestion with several perception workers, and which worker delivered which clip."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from domain.settings import Pool
from domain.watching import Watched
from flows.ingest_video import VideoIngestion
from flows.watching import SilentListener, watch_files
from flows.workspace import Workspace
from perception.perceive_clip import Delivery
from store.database import Store
from store.queries.backup import dump_video
from tests.support.media import make_video

CLIPS = 8


class Notes(SilentListener):
    """Collects the clips that failed."""

    def __init__(self) -> None:
        self.failures: list[str] = []

    def failed(self, _video: object, clip: int, error: Exception) -> None:
        self.failures.append(f"{clip}: {error}")


def eight_clips(folder: Path) -> Path:
    return make_video(folder / "eight.mp4", seconds=2.0 * CLIPS, audio=None)


def watch_with_workers(
    workspace: Workspace, workers: int, pool: Pool, video: Path, *, direct: bool = True
) -> tuple[Watched, list[str]]:
    """Ingest a video with these workers; return the outcome and the failures."""
    notes = Notes()
    (outcome,) = watch_files(workspace.with_workers(workers, pool), [video], notes, direct=direct)
    return outcome, notes.failures


def limited(workspace: Workspace, at_once: int) -> Workspace:
    """Return a workspace that perceives at most ``at_once`` clips at a time."""
    work = workspace.settings.work.model_copy(update={"at_once": at_once})
    settings = workspace.settings.model_copy(update={"work": work})
    return replace(workspace, profile=workspace.profile.model_copy(update={"settings": settings}))


def dump_of(store: Store, outcome: Watched) -> list[str]:
    assert outcome.video, outcome.error
    with store.begin() as session:
        return list(dump_video(session, outcome.video))


def record_deliveries(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """Record from now on which worker delivers which clip."""
    found: list[tuple[int, str]] = []
    take = VideoIngestion.take

    def noted(self: VideoIngestion, delivery: Delivery) -> None:
        found.append((delivery.perceived.percept.clip.index, delivery.by))
        take(self, delivery)

    monkeypatch.setattr(VideoIngestion, "take", noted)
    return found
