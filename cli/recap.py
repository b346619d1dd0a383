"""``homer recap``: sums up a day or an hour."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from cli.console import note, say, say_json
from cli.options import Json, Profile
from domain.errors import InputError
from domain.recaps import Period, parse_period
from flows.recap import write_recap
from flows.recap_model import recap_model
from flows.workspace import open_workspace
from views.recap_links import cited_times
from views.words import plain_line


def recap(
    video: Annotated[
        str | None,
        typer.Argument(
            metavar="[VIDEO]", help="The video's id, its beginning, or its title. Default: all."
        ),
    ] = None,
    day: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="A date, 'today' or 'yesterday'. Default: today."),
    ] = None,
    hour: Annotated[
        str | None, typer.Option(metavar="HOUR", help="An hour, such as 2026-11-25T14, or 'last'.")
    ] = None,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Sum up a day or an hour of a video, or of all, from its events, with citations.

    It is printed, stored with the video, and written to recaps/ of the data directory. Where the
    profile's writer is a language model, that writes it, and its citations are checked.

    \b
    Examples:
      homer recap entrance --day yesterday
      homer recap --hour last
    """
    period = _period(day, hour, datetime.now().astimezone())
    with open_workspace(profile) as workspace:
        written = write_recap(workspace.store, period, video, recap_model(workspace))
    if json:
        recaps = [
            {"video": one.video, "title": one.title, "text": one.text} for one in written.recaps
        ]
        file = None if written.file is None else str(written.file)
        return say_json({"period": period.name, "file": file, "recaps": recaps})
    if written.file is None:
        return note(f"nothing of {period.name} is in memory")
    for one in written.recaps:
        say(f"{period.name}: {plain_line(one.title)}")
        for line in cited_times(one.text).splitlines():
            say(plain_line(line))
    return note(str(written.file))


def _period(day: str | None, hour: str | None, now: datetime) -> Period:
    if day is not None and hour is not None:
        raise InputError("name a day or an hour")
    return (
        parse_period("day", day or "today", now)
        if hour is None
        else parse_period("hour", hour, now)
    )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(recap)
