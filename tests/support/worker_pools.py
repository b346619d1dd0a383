"""Watching with several workers, and who brought what."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from domain.settings import Pool
from flows.ingest_files import FileOutcome, watch_files
from flows.ingest_steps import SilentListener
from flows.ingest_video import VideoIngestion
from flows.workspace import Workspace
from perception.worker import Delivery
from store.database import Store
from store.queries.records import dump_video
from tests.support.media import make_video

CLIPS = 8


class Notes(SilentListener):
    """Hears what goes wrong."""

    def __init__(self) -> None:
        self.failures: list[str] = []

    def failed(self, _video: object, clip: int, error: Exception) -> None:
        self.failures.append(f"{clip}: {error}")


def eight_clips(folder: Path) -> Path:
    """A film of eight clips with these settings."""
    return make_video(folder / "eight.mp4", seconds=2.0 * CLIPS, audio=None)


def watch_with_workers(
    workspace: Workspace, workers: int, pool: Pool, video: Path, *, direct: bool = True
) -> tuple[FileOutcome, list[str]]:
    """Watches with these workers; what became of it, and what went wrong."""
    heard = Notes()
    (outcome,) = watch_files(workspace.with_workers(workers, pool), [video], heard, direct=direct)
    return outcome, heard.failures


def limited(workspace: Workspace, at_once: int) -> Workspace:
    """A workspace whose machine perceives no more clips at a time."""
    work = workspace.settings.work.model_copy(update={"at_once": at_once})
    settings = workspace.settings.model_copy(update={"work": work})
    return replace(workspace, profile=workspace.profile.model_copy(update={"settings": settings}))


def dump_of(store: Store, outcome: FileOutcome) -> list[str]:
    """The memory of a video that was watched."""
    assert outcome.watched is not None, outcome.error
    with store.begin() as session:
        return list(dump_video(session, outcome.watched.video.id))


def record_deliveries(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """Which clips come from which workers from now on."""
    found: list[tuple[int, str]] = []
    take = VideoIngestion.take

    def noted(self: VideoIngestion, delivery: Delivery) -> None:
        found.append((delivery.perceived.percept.clip.index, delivery.by))
        take(self, delivery)

    monkeypatch.setattr(VideoIngestion, "take", noted)
    return found
