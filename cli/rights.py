"""``homer rights``: who may see which videos."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.console import note, say_json, say_table
from cli.options import Json
from domain.rights import Grant
from flows.rights import check_user, enforce, enter_group, give, leave_group, make_grant, take
from store.database import Store, open_store
from store.home import Home
from store.queries.rights import (
    list_grants,
    list_members,
    rights_enforced,
    sees_everything,
    visible_to,
)
from store.queries.videos import video_titles

GUIDE = """Say who may see which videos.

Users are named by the e-mail address with which they sign in, API keys as key:LABEL. Once rights
are enforced, they see only what they or their groups are given, and may only look and ask, in the
app, over HTTP and over MCP. This terminal, the password of the app and a server without keys belong
to the operator, who sees everything.

\b
Examples:
  homer rights give ana@example.org --video talk
  homer rights group editors ana@example.org
  homer rights give editors --group --folder /media/interviews
  homer rights give boss@example.org --everything
  homer rights on
  homer rights show ana@example.org
"""

Who = Annotated[
    str, typer.Argument(metavar="WHO", help="An e-mail address, key:LABEL, or a group's name.")
]
User = Annotated[
    str, typer.Argument(metavar="USER", help="An e-mail address, or key:LABEL of an API key.")
]
IsGroup = Annotated[bool, typer.Option("--group", help="WHO is a group.")]
OfVideo = Annotated[
    str | None, typer.Option("--video", "-v", metavar="VIDEO", help="A video: its id or title.")
]
OfFolder = Annotated[
    str | None,
    typer.Option("--folder", metavar="FOLDER", help="All videos with files below this folder."),
]
Everything = Annotated[
    bool, typer.Option("--everything", help="All videos, and the right to change the library.")
]


def give_right(
    who: Who,
    group: IsGroup = False,
    video: OfVideo = None,
    folder: OfFolder = None,
    everything: Everything = False,
) -> None:
    """Give a user, key or group the right to see a video, a folder, or everything.

    \b
    Example:
      homer rights give ana@example.org --video talk
    """
    with open_store(Home.default()) as store:
        grant = _grant(store, who, group, video, folder, everything)
        note("given" if give(store, grant) else "was given already")
        with store.begin() as session:
            if not rights_enforced(session):
                note(NOT_ENFORCED)


def take_right(
    who: Who,
    group: IsGroup = False,
    video: OfVideo = None,
    folder: OfFolder = None,
    everything: Everything = False,
) -> None:
    """Take a right away; it holds from the next request on.

    \b
    Example:
      homer rights take ana@example.org --video talk
    """
    with open_store(Home.default()) as store:
        take(store, _grant(store, who, group, video, folder, everything))
        note("taken away")


def _grant(
    store: Store, who: str, group: bool, video: str | None, folder: str | None, everything: bool
) -> Grant:
    if everything == (video is not None or folder is not None):
        raise typer.BadParameter("say what: one of --video, --folder and --everything")
    return make_grant(store, who, is_group=group, video=video, folder=folder)


def change_group(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The group's name.")],
    user: User,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the user from it.")] = False,
) -> None:
    """Add a user or key to a group, or remove one.

    \b
    Example:
      homer rights group editors ana@example.org
    """
    with open_store(Home.default()) as store:
        (leave_group if remove else enter_group)(store, group, user)
    note(f"{user} is {'not in' if remove else 'in'} the group {group}")


def list_rights(json: Json = False) -> None:
    """List all rights and groups.

    \b
    Example:
      homer rights list --json
    """
    with open_store(Home.default()) as store, store.begin() as session:
        grants, members = list_grants(session), list_members(session)
        titles = video_titles(session)
        enforced = rights_enforced(session)
    if json:
        return say_json(
            {
                "enforced": enforced,
                "grants": [one.model_dump() for one in grants],
                "members": [one.model_dump() for one in members],
            }
        )
    names = [f"group {grant.grantee}" if grant.is_group else grant.grantee for grant in grants]
    targets = [_target(grant, titles) for grant in grants]
    say_table(("who", "sees"), [*zip(names, targets, strict=True)])
    if members:
        say_table(("group", "member"), [(one.group, one.member) for one in members])
    return note("rights are enforced" if enforced else NOT_ENFORCED)


NOT_ENFORCED = "rights are not enforced, everybody sees everything: homer rights on"


def _target(grant: Grant, titles: dict[str, str]) -> str:
    if grant.everything:
        return "everything, and may change it"
    return grant.folder or titles.get(grant.video or "", grant.video or "")


def show_rights(user: User, json: Json = False) -> None:
    """List the videos that a user or key sees.

    \b
    Example:
      homer rights show key:reader
    """
    name = check_user(user)
    with open_store(Home.default()) as store, store.begin() as session:
        unlimited = not rights_enforced(session) or sees_everything(session, name)
        videos = visible_to(session, name)
        titles = video_titles(session)
    if json:
        return say_json({"user": name, "everything": unlimited, "videos": videos})
    if unlimited:
        return note(f"{name} sees everything, and may change it")
    if not videos:
        return note(f"{name} sees nothing: homer rights give {name} --video VIDEO")
    return say_table(("id", "title"), [(one, titles[one]) for one in videos])


def turn_on() -> None:
    """Enforce rights: without a right, users and keys see nothing from now on.

    \b
    Example:
      homer rights on
    """
    with open_store(Home.default()) as store:
        enforce(store, enforced=True)
    note("rights are enforced: homer rights show USER says what somebody sees")


def turn_off() -> None:
    """Stop enforcing rights: all users and keys see and may change everything again.

    \b
    Example:
      homer rights off
    """
    with open_store(Home.default()) as store:
        enforce(store, enforced=False)
    note(NOT_ENFORCED)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command("give", no_args_is_help=True)(give_right)
    group.command("take", no_args_is_help=True)(take_right)
    group.command("group", no_args_is_help=True)(change_group)
    group.command("list")(list_rights)
    group.command("show", no_args_is_help=True)(show_rights)
    group.command("on")(turn_on)
    group.command("off")(turn_off)
    app.add_typer(group, name="rights", help=GUIDE)
