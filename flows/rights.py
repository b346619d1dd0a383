"""Changing who may see what; each change is on the audit log."""

from __future__ import annotations

import os
import re

from domain.audit import Deed
from domain.errors import InputError, NotFound
from domain.rights import KEY_PREFIX, LABEL, Grant, same_address
from domain.texts import make_storable
from store.database import Store
from store.queries.audit import record_deed
from store.queries.rights import (
    add_grant,
    add_member,
    enforce_rights,
    list_members,
    remove_grants,
    remove_member,
)
from store.queries.videos import find_video

_ADDRESS = re.compile(r"[^\s@]{1,200}@[^\s@]{1,200}")


def check_user(name: str) -> str:
    """Return the name of a user or key as grants have it.

    Raises:
        InputError: it is neither an e-mail address nor ``key:LABEL``.
    """
    label = name.removeprefix(KEY_PREFIX)
    if label != name and LABEL.fullmatch(label):
        return name
    if _ADDRESS.fullmatch(name):
        return same_address(name)
    raise InputError(
        f"{name!r} is neither an e-mail address nor {KEY_PREFIX}LABEL, the label of an API key"
    )


def make_grant(
    store: Store,
    grantee: str,
    *,
    is_group: bool = False,
    video: str | None = None,
    folder: str | None = None,
) -> Grant:
    """Return the grant of a video by its name, or of a folder; without both, of everything.

    Raises:
        NotFound: there is no such video.
        InputError: the name is no user and no key, both a video and a folder are given, or the
            folder is empty.
    """
    if video is not None and folder is not None:
        raise InputError("give a video or a folder, and the other one separately")
    who = grantee if is_group else check_user(grantee)
    with store.begin() as session:
        found = None if video is None else find_video(session, video).id
    below = None if folder is None else _path_of(folder)
    return Grant(grantee=who, is_group=is_group, video=found, folder=below)


def _path_of(folder: str) -> str:
    """Return what the paths of the videos in a folder begin with.

    With the slash at the end, /films does not stand for /films-of-others.

    Raises:
        InputError: the name is empty, as of a variable that is not set, or not text.
    """
    if not folder.strip() or make_storable(folder) != folder:
        raise InputError(f"{folder!r} is no name of a folder: give its path")
    # Links are not resolved, as in the paths of videos.
    return os.path.abspath(folder).rstrip("/") + "/"  # noqa: PTH100


def give(store: Store, grant: Grant) -> bool:
    """Add a grant; return False if it is there already.

    Raises:
        NotFound: it is a group's, and nobody is in the group.
    """
    with store.begin() as session:
        group = grant.grantee
        if grant.is_group and all(one.group != group for one in list_members(session)):
            raise NotFound(f"no group is called {group!r}: add somebody to it first")
        record_deed(session, Deed.CHANGED_RIGHTS, grant.grantee)
        return add_grant(session, grant)


def take(store: Store, grant: Grant) -> None:
    """Remove a grant.

    Raises:
        NotFound: there is no such grant.
    """
    with store.begin() as session:
        if not remove_grants(session, grant):
            raise NotFound(f"{grant.grantee} has no such right: 'homer rights list' lists them")
        record_deed(session, Deed.CHANGED_RIGHTS, grant.grantee)


def enter_group(store: Store, group: str, name: str) -> None:
    """Add a user or key to a group, which is made if needed.

    Raises:
        InputError: one of the names is not valid.
    """
    if not LABEL.fullmatch(group):
        raise InputError("the name of a group is 1 to 32 letters, digits, '_', '.' and '-'")
    with store.begin() as session:
        add_member(session, group, check_user(name))
        record_deed(session, Deed.CHANGED_RIGHTS, name)


def leave_group(store: Store, group: str, name: str) -> None:
    """Remove a user or key from a group.

    Raises:
        NotFound: they are not in it.
        InputError: the name is no user and no key.
    """
    with store.begin() as session:
        if not remove_member(session, group, check_user(name)):
            raise NotFound(f"{name} is not in the group {group!r}")
        record_deed(session, Deed.CHANGED_RIGHTS, name)


def enforce(store: Store, *, enforced: bool) -> None:
    """Begin or stop to enforce rights.

    Raises:
        SetupError: the database user may not create the role of viewers.
    """
    with store.begin() as session:
        enforce_rights(session, enforced)
        record_deed(session, Deed.CHANGED_RIGHTS)
