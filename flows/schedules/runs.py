"""The flows that schedules and work pools run.

Results of schedules are the messages of their states in Prefect. Import this module only after
Prefect's environment is set (``services.supervisor.prefect_environment``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from inspect import signature
from pathlib import Path
from typing import Any

from prefect import Flow, flow
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run
from prefect.states import Completed, Failed

from domain.errors import HomerError
from domain.settings import Subtitles, WorkSettings
from domain.watching import Watched
from flows import watching
from flows.ingest_video import open_video
from flows.perception_workers import WorkerPool
from flows.prefect_executor import label_run, prefect_executor
from flows.schedules import work
from flows.schedules.kinds import kind_named
from flows.schedules.work import JobReport
from flows.watching import SilentListener
from flows.workspace import Workspace, open_workspace
from store.files import set_private_umask
from store.home import Home
from telemetry.logs import set_up_telemetry
from telemetry.tracing import bind_ids


def run_in_background(
    job: Callable[[Workspace], JobReport], profile: str | None = None
) -> State[None]:
    """Run a job with a workspace in the background.

    Its result, or its error, is returned as the state of its flow run.
    """
    set_private_umask()
    label_run()
    set_up_telemetry(Home.default())
    try:
        with (
            bind_ids(flow_run=str(flow_run.id)),
            open_workspace(profile, background=True) as workspace,
        ):
            report = job(workspace)
    except HomerError as error:
        return Failed(message=str(error))
    return Completed(message=report.text) if report.ok else Failed(message=report.text)


def _flow_of(kind: str, job: Callable[[Workspace, Any], JobReport]) -> Flow[..., State[None]]:
    """Return the flow of a kind of schedule: its parameters are the options of the kind."""
    options = kind_named(kind).options

    def run(**given: Any) -> State[None]:
        chosen = options.model_validate(given)
        return run_in_background(lambda workspace: job(workspace, chosen), given.get("profile"))

    run.__signature__ = signature(options)  # type: ignore[attr-defined]
    run.__name__, run.__doc__ = kind, kind_named(kind).does
    return flow(name=kind)(run)


def _alerts(workspace: Workspace, _: Any) -> JobReport:
    with prefect_executor(WorkSettings(), workspace.home) as executor:
        return work.alerts(workspace, executor)


watch = _flow_of(
    "watch",
    lambda workspace, options: work.watch(workspace, options, SilentListener(), time.sleep),
)
fetch = _flow_of(
    "fetch", lambda workspace, options: work.fetch(workspace, options, SilentListener())
)
learn = _flow_of("learn", work.learn)
recap = _flow_of(
    "recap", lambda workspace, options: work.recap(workspace, options, datetime.now(UTC))
)
alerts = _flow_of("alerts", _alerts)
retain = _flow_of("retain", lambda workspace, _: work.retain(workspace, datetime.now(UTC)))
build = _flow_of("build", work.build)
backup = _flow_of(
    "backup", lambda workspace, options: work.backup(workspace, options, datetime.now())
)
check = _flow_of("check", lambda workspace, _: work.check(workspace))


# The ingestion of a video for work pools; a command runs the same steps in its process
# (``flows.watching``).


@flow(name="ingest", flow_run_name="{path}", validate_parameters=False)
def ingest(path: str, profile: str | None = None, subtitles: Subtitles | None = None) -> Watched:
    """Watch the video of ``path``, from the clip where an earlier run stopped."""
    label_run()
    with bind_ids(flow_run=str(flow_run.id)):
        set_private_umask()
        set_up_telemetry(Home.default())
        with (
            open_workspace(profile) as workspace,
            open_video(workspace, Path(path), subtitles=subtitles) as ingestion,
            WorkerPool(workspace.settings.work) as pool,
            prefect_executor(workspace.settings.work, workspace.home) as executor,
        ):
            return watching.watch(ingestion, executor, pool, SilentListener())
