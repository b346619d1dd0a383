"""``homer retry``: try clips again that could not be watched."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.console import note
from cli.ingest import STOPPED, Reporter, show_outcomes
from cli.options import Json, OneVideo, Profile
from cli.progress import meter
from domain.words import plain_line
from flows.ingest_files import watch_files
from flows.retry import clips_to_retry
from flows.workspace import open_workspace
from store.database import open_store
from store.home import Home


def retry(
    video: OneVideo,
    clip: Annotated[
        list[int] | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Only the clip with this number, as in 'homer show'. Repeatable.",
        ),
    ] = None,
    profile: Profile = None,
    direct: Annotated[
        bool, typer.Option("--direct", help="Run in this process, without Prefect's server.")
    ] = False,
    json: Json = False,
) -> None:
    """Retry the failed clips of a video, however often they have failed.

    Without --profile, the profile that the video was watched with is used.

    \b
    Examples:
      homer retry talk
      homer retry talk --clip 4 --clip 7
    """
    with open_store(Home.default()) as store:
        wanted = clips_to_retry(store, video, clip or ())
    if not wanted.clips:
        return note(f"no clip of {plain_line(wanted.video.title)} has failed")
    try:
        with open_workspace(profile or wanted.video.profile) as workspace, meter() as bar:
            (outcome,) = watch_files(
                workspace,
                [wanted.path],
                Reporter(bar),
                direct=direct,
                again=True,
                only=wanted.indices,
            )
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(STOPPED) from stop
    show_outcomes([outcome], as_json=json)
    if outcome.error is not None:
        raise outcome.error
    raise typer.Exit(outcome.exit_code)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(no_args_is_help=True)(retry)
