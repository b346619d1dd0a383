"""The flows that schedules run. What each found is the message of its state on Prefect's pages.

Import this module only after Prefect's environment is set (``services.prefect.environment``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run
from prefect.states import Completed, Failed

from domain.errors import HomerError
from flows.ingest import Silent
from flows.schedules import work
from flows.schedules.kinds import BackupOptions, FetchOptions, LearnOptions, WatchOptions
from flows.schedules.work import JobReport
from flows.workspace import Workspace, open_desk
from services.stale_runs import claim_run
from store.home import Home
from store.private_files import keep_private
from telemetry import tracing
from telemetry.logging_setup import begin_to_tell


def as_state(job: Callable[[], JobReport]) -> State[None]:
    """What a job found as the state of its run; a fault of the input or the machine, in words."""
    keep_private()
    claim_run()
    begin_to_tell(Home.default())
    try:
        with tracing.within(flow_run=str(flow_run.id)):
            told = job()
    except HomerError as error:
        return Failed(message=str(error))
    return Completed(message=told.text) if told.ok else Failed(message=told.text)


def in_background(job: Callable[[Workspace], JobReport], profile: str | None = None) -> State[None]:
    """The same for a job at a desk that stands back while somebody waits for something."""

    def opened() -> JobReport:
        with open_desk(profile, background=True) as desk:
            return job(desk)

    return as_state(opened)


@flow(name="watch")
def watch(folder: Path, stable_s: float = 10.0, profile: str | None = None) -> State[None]:
    """Watch what is new or changed in a folder."""
    told = WatchOptions(folder=folder, stable_s=stable_s, profile=profile)
    return in_background(lambda desk: work.watch(desk, told, Silent(), time.sleep), profile)


@flow(name="fetch")
def fetch(
    urls: tuple[str, ...] = (),
    file: Path | None = None,
    folder: Path | None = None,
    right: bool = False,
    most: int = 10,
    profile: str | None = None,
) -> State[None]:
    """Fetch what is new at addresses, and watch it."""
    named: dict[str, Any] = {"urls": urls, "file": file, "folder": folder}
    told = FetchOptions(**named, right=right, most=most, profile=profile)
    return in_background(lambda desk: work.fetch(desk, told, Silent()), profile)


@flow(name="learn")
def learn(answers: int = 64, profile: str | None = None) -> State[None]:
    """Learn from judged answers once there are enough."""
    return in_background(lambda desk: work.learn(desk, LearnOptions(answers=answers)), profile)


@flow(name="retain")
def retain(profile: str | None = None) -> State[None]:
    """Keep less of videos the older they are."""
    return in_background(lambda desk: work.retain(desk, datetime.now(UTC)), profile)


@flow(name="backup")
def backup(folder: Path | None = None, keep: int = 7) -> State[None]:
    """Back the library up, and keep the latest."""
    told = BackupOptions(folder=folder, keep=keep)
    return in_background(lambda desk: work.backup(desk, told, datetime.now()))


@flow(name="check")
def check() -> State[None]:
    """Check the event graph of every video."""
    return in_background(work.check)
