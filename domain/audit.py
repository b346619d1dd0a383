"""Who did what: the words of the audit log. It has ids, and never content."""

from __future__ import annotations

from contextvars import ContextVar
from datetime import datetime
from enum import StrEnum

from domain.base import Frozen

acting: ContextVar[str | None] = ContextVar("acting", default=None)
"""Who is signed in to the app, asks the API, or had this job begun; None: the process's user."""


class Deed(StrEnum):
    """What is written down."""

    ASKED = "asked"
    ADDED = "added"
    DELETED = "deleted"
    FORGOT = "forgot"
    BROUGHT_BACK = "brought back"
    CHANGED_PEOPLE = "changed people"
    EXPORTED = "exported"
    IMPORTED = "imported"
    BACKED_UP = "backed up"
    RESTORED = "restored"
    RETAINED = "retained"
    SIGNED_IN = "signed in"


class AuditEntry(Frozen):
    """One deed. ``subject`` is an id (a video's, trajectory's, job's ...), "" for the library."""

    at: datetime
    who: str
    deed: Deed
    subject: str
