"""Entries of the audit log: who did what to which id. They never hold content."""

from __future__ import annotations

from contextvars import ContextVar
from datetime import datetime
from enum import StrEnum

from domain.base import Frozen

acting_user: ContextVar[str | None] = ContextVar("acting", default=None)
"""The user signed in to the app or API, or who started this job; None: the process's user."""


class Deed(StrEnum):
    """An action that the audit log records."""

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
    SHARED = "shared"
    OPENED_LINK = "opened a link"
    REVOKED_LINK = "revoked a link"
    CHANGED_RIGHTS = "changed rights"


class AuditEntry(Frozen):
    """One recorded action. ``subject`` is the id of a video, trajectory or job; "": the library."""

    at: datetime
    who: str
    deed: Deed
    subject: str
