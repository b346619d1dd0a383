"""A build of a strategy's memory as a Prefect flow: a run a video and strategy, a task a step.

Import this module only after Prefect's environment is set
(``services.prefect.prefect_environment``).
"""

from __future__ import annotations

from collections.abc import Callable

from prefect import flow, tags

from domain.media import Video
from flows.build import Built
from flows.executors import Executor
from flows.prefect_executor import InProcess, PrefectExecutor, thread_runner
from services.prefect import library_id, library_tag_name
from services.stale_runs import label_run, mark_dead_runs
from store.database import Store

RunBuild = Callable[[Executor], Built]
"""Builds with an executor that runs the steps."""


@flow(name="build", flow_run_name="{strategy} of {video}", validate_parameters=False)
def build_memory(
    video: str,  # noqa: ARG001 - names the run
    strategy: str,  # noqa: ARG001 - names the run
    opened: InProcess[RunBuild],
) -> Built:
    """Build a strategy's memory of a video in tasks of this flow run."""
    label_run()
    with thread_runner(1) as runner:
        return opened.get()(PrefectExecutor(runner))


def run_build_flow(store: Store, video: Video, strategy: str, run: RunBuild) -> Built:
    """Run the flow; mark first the runs of this machine whose process is gone."""
    library = library_id(store)
    mark_dead_runs(library)
    with tags(f"video:{video.id}", library_tag_name(library)):
        # The server stores the parameters: after a deletion it has no more than the video's id.
        return build_memory(video.id, strategy, InProcess(run))
