"""Looking after a library: the audit log, and recaps."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from domain.audit import AuditEntry, Deed
from domain.errors import InputError
from domain.recaps import parse_period
from flows.recap import RecapFile, write_recap
from flows.recap_model import recap_model
from flows.workspace import Workspace
from library.params import OnCommandLine
from store.database import Store
from store.queries.audit import audit_entries


def audit(
    store: Store,
    deed: Annotated[
        tuple[Deed, ...],
        Field(description="Only this action, such as 'deleted'. Repeatable."),
        OnCommandLine(metavar="DEED"),
    ] = (),
    who: Annotated[
        str | None,
        Field(description="Only actions of this user."),
        OnCommandLine(metavar="NAME"),
    ] = None,
    of: Annotated[
        str | None,
        Field(description="Only actions on ids that begin with ID."),
        OnCommandLine(metavar="ID"),
    ] = None,
    since: Annotated[
        datetime | None,
        Field(description="Only since then, such as 2026-01-31."),
        OnCommandLine(metavar="DATE"),
    ] = None,
    limit: Annotated[int, Field(ge=1, description="Number of latest entries to list.")] = 50,
) -> list[AuditEntry]:
    """List the audit log: who asked, added, deleted, exported or changed what, and when.

    An entry has ids and no content. Entries stay when a video is deleted, and cannot be changed.

    Examples:
      homer audit --deed deleted
      homer audit --who ann --since 2026-01-31 --json
    """
    start = since.astimezone() if since else None
    with store.begin() as session:
        return audit_entries(session, deeds=deed, who=who, subject=of, since=start, limit=limit)


def recap(
    workspace: Workspace,
    video: Annotated[
        str | None,
        Field(description="The video's id, its beginning, or its title. Default: all."),
        OnCommandLine(metavar="VIDEO", argument=True),
    ] = None,
    day: Annotated[
        str | None,
        Field(description="A date, 'today' or 'yesterday'. Default: today."),
        OnCommandLine(metavar="DATE"),
    ] = None,
    hour: Annotated[
        str | None, Field(description="An hour, such as 2026-11-25T14, or 'last'.")
    ] = None,
) -> RecapFile:
    """Sum up a day or an hour of a video, or of all, from its events, with citations.

    It is printed, stored with the video, and written to recaps/ of the data directory. Where the
    profile's writer is a language model, that writes it, and its citations are checked.

    Examples:
      homer recap entrance --day yesterday
      homer recap --hour last

    Raises:
        InputError: both a day and an hour are given, or what is given is none.
        NotFound: there is no such video.
    """
    if day is not None and hour is not None:
        raise InputError("name a day or an hour")
    now = datetime.now().astimezone()
    period = parse_period("hour", hour, now) if hour else parse_period("day", day or "today", now)
    return write_recap(workspace.store, period, video, recap_model(workspace))
