"""A build of a strategy's memory that Prefect's server shows, where it can be started."""

from __future__ import annotations

from agent.strategy import Strategy
from flows.build import Built, OnStep, OnUse, build, check_builds
from flows.executors import Executor
from flows.reporting import report_to_prefect
from flows.workspace import Workspace
from store.queries.videos import find_video


def build_reported(
    workspace: Workspace,
    name: str,
    strategy: Strategy,
    on_step: OnStep,
    api: str | None,
    *,
    again: bool = False,
    on_use: OnUse = lambda *_: None,
) -> Built:
    """Build as ``flows.build.build`` does, in a flow that reports to a server.

    Args:
        name: the video's id or title.
        on_step: called after each step.
        api: the server's; None: without one.
        again: delete what was built before, except frames.
        on_use: called before the first step and after each, where a language model writes.
    """

    def run(executor: Executor | None = None) -> Built:
        return build(
            workspace, name, strategy, on_step, again=again, on_use=on_use, executor=executor
        )

    check_builds(strategy)
    if api is None:
        return run()
    with workspace.store.begin() as session:
        video = find_video(session, name)
    with report_to_prefect(workspace.home, api):
        # Prefect reads its settings when it is imported: now they are set.
        from flows.build_flow import run_build_flow

        return run_build_flow(workspace.store, video, strategy.name, run)
