"""``homer share``: links to one answer or moment, for somebody without an account."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.console import note, say, say_json, say_table
from cli.options import Json
from domain.errors import InputError
from domain.links import DEFAULT_DAYS, MAX_DAYS, MIN_DAYS, SharedLink
from domain.time import parse_clock_span
from flows.shared_links import revoke, share_answer, share_moment, signed_path
from services.app_address import app_address
from store.database import Store, open_store
from store.home import Home
from store.queries.shared_links import list_links

GUIDE = """Share one answer or moment by a link that expires.

Whoever has the link and can reach the app sees the page, without signing in.

\b
Examples:
  homer share answer 3f2a
  homer share moment talk 12:30 --days 30
  homer share list
  homer share revoke 9c0d5e7a1b2f4a68
"""

Days = Annotated[
    int,
    typer.Option("--days", min=MIN_DAYS, max=MAX_DAYS, help="For how many days it is valid."),
]


def answer(
    trajectory: Annotated[
        str, typer.Argument(metavar="ID", help="The answer's id: homer trajectory lists them.")
    ],
    days: Days = DEFAULT_DAYS,
) -> None:
    """Print a link to an answer with the moments that it cites.

    \b
    Example:
      homer share answer 3f2a --days 30
    """
    with open_store(Home.default()) as store:
        _say_link(store, share_answer(store, trajectory, days))


def moment(
    video: Annotated[str, typer.Argument(metavar="VIDEO", help="Its id or title.")],
    time: Annotated[str, typer.Argument(metavar="TIME", help="12:30, or a span, 12:30-12:45.")],
    days: Days = DEFAULT_DAYS,
) -> None:
    """Print a link to a moment: its image, and what was said and read then.

    \b
    Example:
      homer share moment talk 12:30-12:45
    """
    try:
        span = parse_clock_span(time)
    except ValueError as error:
        raise InputError(f"TIME: {error}") from error
    with open_store(Home.default()) as store:
        _say_link(store, share_moment(store, video, span, days))


def _say_link(store: Store, link: SharedLink) -> None:
    say(_address(store, link))
    note(f"valid until {link.expires_at.astimezone():%Y-%m-%d %H:%M}; homer share revoke {link.id}")


def _address(store: Store, link: SharedLink) -> str:
    return app_address(store.home) + signed_path(store, link)


def list_shared(json: Json = False) -> None:
    """List the links that are valid, the latest first.

    \b
    Example:
      homer share list --json
    """
    with open_store(Home.default()) as store:
        with store.begin() as session:
            links = list_links(session)
        addresses = [_address(store, link) for link in links]
    if json:
        found = zip(links, addresses, strict=True)
        return say_json([link.model_dump(mode="json") | {"url": url} for link, url in found])
    if not links:
        return note("nothing is shared: homer share answer ID")
    rows = (
        (link.id, _target(link), f"{link.expires_at.astimezone():%Y-%m-%d %H:%M}", url)
        for link, url in zip(links, addresses, strict=True)
    )
    return say_table(("link", "shows", "valid until", "address"), rows)


def _target(link: SharedLink) -> str:
    return f"answer {link.trajectory}" if link.span is None else f"{link.video} {link.span}"


def revoke_link(
    link: Annotated[str, typer.Argument(metavar="LINK", help="Its id: homer share list has them.")],
) -> None:
    """End a link: whoever opens it from then on sees nothing.

    \b
    Example:
      homer share revoke 9c0d5e7a1b2f4a68
    """
    with open_store(Home.default()) as store:
        revoke(store, link)
    note(f"{link} is revoked")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command(no_args_is_help=True)(answer)
    group.command(no_args_is_help=True)(moment)
    group.command("list")(list_shared)
    group.command("revoke", no_args_is_help=True)(revoke_link)
    app.add_typer(group, name="share", help=GUIDE)
