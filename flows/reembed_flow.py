"""Changing encoders as a Prefect flow.

Import this module only after Prefect's environment is set
(``services.prefect.prefect_environment``).
"""

from __future__ import annotations

from prefect import flow, tags

from flows.prefect_executor import InProcess
from flows.reembed import ReembedPlan, reembed_videos
from flows.workspace import Workspace
from services.prefect import library_id, library_tag_name
from services.stale_runs import label_run, mark_killed_runs
from store.progress import Progress

TAG = "reembed"


@flow(name="reembed", flow_run_name="{encoder}", validate_parameters=False)
def reembed(
    encoder: str,  # noqa: ARG001 - names the run
    opened: InProcess[tuple[Workspace, ReembedPlan, Progress]],
) -> int:
    """Embed what a plan names; return how many pictures could not be read."""
    label_run()
    return reembed_videos(*opened.get())


def run_reembed_flow(workspace: Workspace, plan: ReembedPlan, progress: Progress) -> int:
    """Run the flow; mark killed runs of it first: the caller holds the lock of it.

    Returns:
        How many pictures could not be read.
    """
    library = library_id(workspace.store)
    mark_killed_runs(library, TAG)
    with tags(TAG, library_tag_name(library)):
        return reembed(plan.encoder, InProcess((workspace, plan, progress)))
