"""``homer retain``: keeps less of videos the older they are, as the settings say."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from cli.console import note, say_json, say_table, sure
from cli.options import Json, Profile
from views.words import plain_line


def retain(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would go, and how many bytes.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Take from each video what its age does not keep: images first, at last all of it.

    Off unless the profile has tiers: [[settings.retain.tiers]] with after_days, and keep = "fewer",
    "text" or "nothing". It cannot be undone. Images that an answer cites stay as long as it does.

    \b
    Examples:
      homer retain --dry-run
      homer retain --yes
    """
    from datetime import UTC, datetime

    from flows.retention import retain as run
    from flows.workspace import open_workspace

    with open_workspace(profile) as desk:
        if not desk.settings.retain.tiers:
            return note("nothing is set to go: see [[settings.retain.tiers]] in docs/privacy.md")
        now = datetime.now(UTC)
        found = run(desk, now, dry_run=True)
        if found.videos and not dry_run:
            count = len(found.videos)
            if not yes:
                told = f"Take {found.bytes / 1e6:.1f} MB from {count} videos? It cannot be undone"
                sure(told)
            found = run(desk, now)
    if json:
        return say_json([asdict(one) for one in found.videos])
    if not found.videos:
        return note("nothing is old enough")
    rows = (
        (
            one.video,
            plain_line(one.title),
            one.keep,
            one.images,
            one.smaller,
            f"{one.bytes / 1e6:.2f}",
        )
        for one in found.videos
    )
    return say_table(("id", "title", "keeps", "images gone", "smaller", "MB"), rows)


def register(app: typer.Typer) -> None:
    """Adds the command of this module."""
    app.command()(retain)
