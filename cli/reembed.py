"""``homer reembed``: change a library to other encoders."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.console import note, say, say_json
from cli.options import Json, Profile, Videos
from cli.progress import meter
from flows.reembed import fitting_thresholds, plan_reembedding
from flows.reembed import reembed as run_reembedding
from flows.workspace import open_workspace
from store.vector_index import build_index

STOPPED = "stopped; the next 'homer reembed' goes on from here"


def reembed(
    video: Videos = None,
    profile: Profile = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print what it would take: rows, pictures, cost.")
    ] = False,
    direct: Annotated[
        bool, typer.Option("--direct", help="Run in this process, without Prefect's server.")
    ] = False,
    json: Json = False,
) -> None:
    """Change a library to the text encoder and the image-text model of a profile.

    Every stored text gets a new vector: lines of memory, descriptions of images and segments. If
    the profile has an image-text model, so does every keyframe and kept frame. Nothing is watched
    again. Videos can be watched and questions asked meanwhile: each row is compared by the encoder
    that made its vector. An interrupted run continues where it stopped.

    It ends with the thresholds of cosines that fit the encoder, measured on lines in memory, as
    lines for the profile.

    \b
    Examples:
      homer reembed --profile multilingual --dry-run
      homer reembed --profile multilingual
      homer reembed --profile multilingual -v talk
    """
    with open_workspace(profile) as workspace:
        plan = plan_reembedding(workspace, video or (), timed=dry_run)
        if not dry_run and plan.videos:
            try:
                with meter() as bar:
                    run_reembedding(workspace, plan, bar, note, direct=direct)
                    build_index(workspace.store, bar)
                if fitting := fitting_thresholds(workspace):
                    where = f"below [profiles.{workspace.profile.name}] of {workspace.home.config}"
                    if profile and profile.endswith(".toml"):
                        where = f"at the top of {profile}"
                    note(f"these thresholds fit {plan.encoder}; put them {where}:")
                    for line in fitting.splitlines():
                        note(line)
            except KeyboardInterrupt as stop:
                raise KeyboardInterrupt(STOPPED) from stop
    if json:
        totals = {"rows": plan.rows, "characters": plan.characters, "pictures": plan.pictures}
        return say_json(plan.model_dump(mode="json") | totals)
    if dry_run or not plan.videos:
        return say(str(plan))
    return say(f"{plan.what} are embedded again")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(reembed)
