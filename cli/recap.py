"""``homer recap``: sums up a day or an hour."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from cli.console import note, say, say_json
from cli.options import Json
from domain.errors import InputError
from domain.recaps import Period, parse_period
from flows.recap import document, write_recap
from store.database import open_store
from store.home import Home


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
    json: Json = False,
) -> None:
    """Sum up a day or an hour of a video, or of all, from its events, with citations.

    It is printed, stored with the video, and written to recaps/ of the data directory.

    \b
    Examples:
      homer recap entrance --day yesterday
      homer recap --hour last
    """
    period = _period(day, hour, datetime.now().astimezone())
    with open_store(Home.default()) as store:
        written = write_recap(store, period, video)
    if json:
        recaps = [
            {"video": one.video, "title": one.title, "text": one.text} for one in written.recaps
        ]
        file = None if written.file is None else str(written.file)
        return say_json({"period": period.name, "file": file, "recaps": recaps})
    if written.file is None:
        return note(f"nothing of {period.name} is in memory")
    for line in document(period, written.recaps).splitlines():
        say(line)
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
