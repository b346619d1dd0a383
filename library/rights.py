"""Who may see which videos; each change is on the audit log."""

from __future__ import annotations

import os
import re
from typing import Annotated

from pydantic import Field

from domain.base import Frozen
from domain.errors import InputError, NotFound
from domain.rights import KEY_PREFIX, LABEL, Deed, Grant, Membership, same_address
from domain.words import make_storable
from library.params import OnCommandLine
from store.database import Store
from store.queries import rights as queries
from store.queries.rights import record_deed
from store.queries.videos import find_video, video_titles

NOT_ENFORCED = "rights are not enforced, everybody sees everything: homer rights on"
_ADDRESS = re.compile(r"[^\s@]{1,200}@[^\s@]{1,200}")

Who = Annotated[str, Field(description="An e-mail address, key:LABEL, or a group's name.")]
User = Annotated[str, Field(description="An e-mail address, or key:LABEL of an API key.")]
IsGroup = Annotated[bool, Field(description="WHO is a group.")]
OfVideo = Annotated[
    str | None,
    Field(description="A video: its id or title."),
    OnCommandLine("--video", "-v", metavar="VIDEO"),
]
OfFolder = Annotated[
    str | None, Field(description="All videos with files below this folder."), OnCommandLine()
]
Everything = Annotated[bool, Field(description="All videos, and the right to change the library.")]


class Rights(Frozen):
    """All rights and groups, and whether the former are enforced."""

    enforced: bool
    grants: tuple[Grant, ...]
    members: tuple[Membership, ...]

    @property
    def standing(self) -> str:
        """Whether they are enforced, in words."""
        return "rights are enforced" if self.enforced else NOT_ENFORCED


class Sees(Frozen):
    """What a user or key sees: ids of ``videos`` with their titles, or everything."""

    user: str
    everything: bool
    videos: dict[str, str]


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


def _grant(
    store: Store, who: str, group: bool, video: str | None, folder: str | None, everything: bool
) -> Grant:
    if everything == (video is not None or folder is not None):
        raise InputError("say what: one of --video, --folder and --everything")
    if video is not None and folder is not None:
        raise InputError("give a video or a folder, and the other one separately")
    if folder is not None:
        # As of a variable that is not set.
        if not folder.strip() or make_storable(folder) != folder:
            raise InputError(f"{folder!r} is no name of a folder: give its path")
        # Links are not resolved, as in the paths of videos. With the slash at the end, /films does
        # not stand for /films-of-others.
        folder = os.path.abspath(folder).rstrip("/") + "/"  # noqa: PTH100
    with store.begin() as session:
        found = None if video is None else find_video(session, video).id
    return Grant(
        grantee=who if group else check_user(who), is_group=group, video=found, folder=folder
    )


def give_right(
    store: Store,
    who: Who,
    group: IsGroup = False,
    video: OfVideo = None,
    folder: OfFolder = None,
    everything: Everything = False,
) -> str:
    """Give a user, key or group the right to see a video, a folder, or everything.

    Examples:
      homer rights give ana@example.org --video talk

    Raises:
        NotFound: there is no such video, or nobody is in the group.
        InputError: the name is no user and no key, or what is given is not one thing.
    """
    grant = _grant(store, who, group, video, folder, everything)
    with store.begin() as session:
        # A group is its members: one without any may be a wrong name.
        if group and all(one.group != who for one in queries.list_members(session)):
            raise NotFound(f"no group is called {who!r}: add somebody to it first")
        record_deed(session, Deed.CHANGED_RIGHTS, grant.grantee)
        told = "given" if queries.add_grant(session, grant) else "was given already"
        return told if queries.rights_enforced(session) else f"{told}; {NOT_ENFORCED}"


def take_right(
    store: Store,
    who: Who,
    group: IsGroup = False,
    video: OfVideo = None,
    folder: OfFolder = None,
    everything: Everything = False,
) -> str:
    """Take a right away; it holds from the next request on.

    Examples:
      homer rights take ana@example.org --video talk

    Raises:
        NotFound: there is no such right.
    """
    grant = _grant(store, who, group, video, folder, everything)
    with store.begin() as session:
        if not queries.remove_grants(session, grant):
            raise NotFound(f"{grant.grantee} has no such right: 'homer rights list' lists them")
        record_deed(session, Deed.CHANGED_RIGHTS, grant.grantee)
    return "taken away"


def change_group(
    store: Store,
    group: Annotated[str, Field(description="The group's name.")],
    user: User,
    remove: Annotated[bool, Field(description="Remove the user from it.")] = False,
) -> str:
    """Add a user or key to a group, or remove one.

    Examples:
      homer rights group editors ana@example.org

    Raises:
        InputError: one of the names is not valid.
        NotFound: they are not in it.
    """
    name = check_user(user)
    if not LABEL.fullmatch(group):
        raise InputError("the name of a group is 1 to 32 letters, digits, '_', '.' and '-'")
    with store.begin() as session:
        if not remove:
            queries.add_member(session, group, name)
        elif not queries.remove_member(session, group, name):
            raise NotFound(f"{name} is not in the group {group!r}")
        record_deed(session, Deed.CHANGED_RIGHTS, name)
    return f"{name} is {'not in' if remove else 'in'} the group {group}"


def rights(store: Store) -> Rights:
    """List all rights and groups.

    Examples:
      homer rights list --json
    """
    with store.begin() as session:
        titles = video_titles(session)
        grants = [
            grant.model_copy(update={"title": titles.get(grant.video or "")})
            for grant in queries.list_grants(session)
        ]
        return Rights(
            enforced=queries.rights_enforced(session),
            grants=tuple(grants),
            members=tuple(queries.list_members(session)),
        )


def rights_of(store: Store, user: User) -> Sees:
    """List the videos that a user or key sees.

    Examples:
      homer rights show key:reader

    Raises:
        InputError: the name is no user and no key.
    """
    name = check_user(user)
    with store.begin() as session:
        all_of_it = not queries.rights_enforced(session) or queries.sees_everything(session, name)
        seen, titles = queries.visible_to(session, name), video_titles(session)
    return Sees(user=name, everything=all_of_it, videos={one: titles[one] for one in seen})


def rights_on(store: Store) -> str:
    """Enforce rights: without a right, users and keys see nothing from now on.

    Examples:
      homer rights on

    Raises:
        SetupError: the database user may not create the role of viewers.
    """
    _enforce(store, enforced=True)
    return "rights are enforced: homer rights show USER says what somebody sees"


def rights_off(store: Store) -> str:
    """Stop enforcing rights: all users and keys see and may change everything again.

    Examples:
      homer rights off
    """
    _enforce(store, enforced=False)
    return NOT_ENFORCED


def _enforce(store: Store, *, enforced: bool) -> None:
    with store.begin() as session:
        queries.enforce_rights(session, enforced)
        record_deed(session, Deed.CHANGED_RIGHTS)
