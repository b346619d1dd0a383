"""Rights, links and the audit log: who may see which videos, and who did what."""

from __future__ import annotations

import re
from contextvars import ContextVar
from datetime import datetime
from enum import StrEnum

from pydantic import model_validator

from domain.base import Frozen
from domain.time import TimeSpan

# Rights: who may see which videos.


class Grant(Frozen):
    """What a user, key or group may see.

    ``video``: this one, called ``title``; ``folder``: those whose files are below it. Without both:
    all, with the right to change the library.
    """

    grantee: str
    is_group: bool = False
    video: str | None = None
    folder: str | None = None
    title: str | None = None

    @property
    def everything(self) -> bool:
        """Check whether it is the right to see and change everything."""
        return self.video is None and self.folder is None


class Membership(Frozen):
    """A user or key in a group."""

    group: str
    member: str


LABEL = re.compile(r"[A-Za-z0-9_.-]{1,32}")
"""The label of an API key, and the name of a group."""
KEY_PREFIX = "key:"
"""Begins the name of an API key in grants; ``key:LABEL``. Other names are e-mail addresses."""


def same_address(address: str) -> str:
    """Return an e-mail address so that those that differ in capitals only are the same."""
    # Other scripts keep theirs: the sign of the kelvin, say, would become the letter k of somebody
    # else's address.
    return address.lower() if address.isascii() else address


# Links to one answer or moment, for somebody without an account.

MIN_DAYS, MAX_DAYS = 1, 365
"""Days for which a link may be valid."""
DEFAULT_DAYS = 7
MAX_MOMENT_MS = 10 * 60_000
"""The longest span that is a moment."""


class SharedLink(Frozen):
    """A link to an answer, by its trajectory, or to a moment of a video; ``url`` is signed."""

    id: str
    trajectory: str | None = None
    video: str | None = None
    span: TimeSpan | None = None
    made_at: datetime
    expires_at: datetime
    url: str = ""

    @model_validator(mode="after")
    def _one_target(self) -> SharedLink:
        if (self.trajectory is None) == (self.video is None):
            raise ValueError("a link is to an answer or to a moment")
        if (self.video is None) != (self.span is None):
            raise ValueError("a moment has a video and a span")
        return self

    @property
    def subject(self) -> str:
        """The id of what it shows, for the audit log."""
        return self.trajectory or self.video or ""

    @property
    def path(self) -> str:
        """The path of its page, which is signed together with ``until``."""
        return f"/shared/{self.id}"

    @property
    def until(self) -> int:
        """When it expires, in whole seconds since 1970."""
        return int(self.expires_at.timestamp())


# Entries of the audit log: who did what to which id. They never hold content.

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
