"""The flows that schedules run. Their results are the messages of their states in Prefect.

Import this module only after Prefect's environment is set
(``services.prefect.prefect_environment``).
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
from domain.recaps import PeriodKind
from domain.settings import WorkSettings
from flows.prefect_executor import prefect_executor
from flows.schedules import work
from flows.schedules.kinds import (
    BackupOptions,
    BuildOptions,
    FetchOptions,
    LearnOptions,
    RecapOptions,
    WatchOptions,
)
from flows.schedules.work import JobReport
from flows.watching import SilentListener
from flows.workspace import Workspace, open_workspace
from services.stale_runs import label_run
from store.files import set_private_umask
from store.home import Home
from telemetry.logging_setup import set_up_telemetry
from telemetry.tracing import bind_ids


def run_as_state(job: Callable[[], JobReport]) -> State[None]:
    """Run a job; return its result, or its error, as the state of its flow run."""
    set_private_umask()
    label_run()
    set_up_telemetry(Home.default())
    try:
        with bind_ids(flow_run=str(flow_run.id)):
            report = job()
    except HomerError as error:
        return Failed(message=str(error))
    return Completed(message=report.text) if report.ok else Failed(message=report.text)


def run_in_background(
    job: Callable[[Workspace], JobReport], profile: str | None = None
) -> State[None]:
    """Run a job with a workspace in the background, and return the state of its flow run."""

    def run_job() -> JobReport:
        with open_workspace(profile, background=True) as workspace:
            return job(workspace)

    return run_as_state(run_job)


@flow(name="watch")
def watch(folder: Path, stable_s: float = 10.0, profile: str | None = None) -> State[None]:
    """Watch what is new or changed in a folder."""
    options = WatchOptions(folder=folder, stable_s=stable_s, profile=profile)
    return run_in_background(
        lambda workspace: work.watch(workspace, options, SilentListener(), time.sleep), profile
    )


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
    options = FetchOptions(**named, right=right, most=most, profile=profile)
    return run_in_background(
        lambda workspace: work.fetch(workspace, options, SilentListener()), profile
    )


@flow(name="learn")
def learn(answers: int = 64, profile: str | None = None) -> State[None]:
    """Learn from judged answers once there are enough."""
    return run_in_background(
        lambda workspace: work.learn(workspace, LearnOptions(answers=answers)), profile
    )


@flow(name="recap")
def recap(
    video: str | None = None, period: PeriodKind = "day", profile: str | None = None
) -> State[None]:
    """Sum up the day or hour before."""
    options = RecapOptions(video=video, period=period, profile=profile)
    return run_in_background(
        lambda workspace: work.recap(workspace, options, datetime.now(UTC)), profile
    )


@flow(name="alerts")
def alerts(profile: str | None = None) -> State[None]:
    """Judge and deliver what waits of alerts."""
    with prefect_executor(WorkSettings(), Home.default()) as executor:
        return run_in_background(lambda workspace: work.alerts(workspace, executor), profile)


@flow(name="retain")
def retain(profile: str | None = None) -> State[None]:
    """Keep less of videos the older they are."""
    return run_in_background(lambda workspace: work.retain(workspace, datetime.now(UTC)), profile)


@flow(name="build")
def build(strategies: tuple[str, ...] = (), profile: str | None = None) -> State[None]:
    """Build what is missing of the memory of strategies, of every video."""
    options = BuildOptions(strategies=strategies, profile=profile)
    return run_in_background(lambda workspace: work.build(workspace, options), profile)


@flow(name="backup")
def backup(folder: Path | None = None, keep: int = 7) -> State[None]:
    """Back the library up, and keep the latest."""
    options = BackupOptions(folder=folder, keep=keep)
    return run_in_background(lambda workspace: work.backup(workspace, options, datetime.now()))


@flow(name="check")
def check() -> State[None]:
    """Check the event graph of every video."""
    return run_in_background(work.check)
