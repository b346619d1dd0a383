"""Rights: who may see which videos."""

from __future__ import annotations

import re

from domain.base import Frozen


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
    """Return an e-mail address so that those that differ in capitals only are the same.

    Other scripts keep theirs: the sign of the kelvin, say, would become the letter k of somebody
    else's address.
    """
    return address.lower() if address.isascii() else address
