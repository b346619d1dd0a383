"""``homer doctor``: what this machine can do, and how to fix what is missing."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from cli.console import say, say_json, say_table
from cli.options import Json, Profile

if TYPE_CHECKING:
    from flows.health import Check


def doctor(profile: Profile = None, json: Json = False) -> None:
    """Check the database, the profile's models, codecs and extras; say how to fix each.

    Exit code 3 where something that the profile needs is missing.

    Example:  homer doctor --profile gemini
    """
    from flows.health import checks
    from models.profile import load_profile
    from store.home import Home

    home = Home.default()
    chosen = load_profile(profile, home.config)
    made = list(checks(home, chosen))
    if json:
        say_json([asdict(check) for check in made])
    else:
        _show(made)
    raise typer.Exit(0 if all(check.ok for check in made) else 3)


def _show(checks: list[Check]) -> None:
    rows = [(c.what, "ok" if c.ok else "MISSING", c.found) for c in checks]
    say_table(("what", "state", "found"), rows)
    for check in checks:
        if check.fix:
            say(f"fix {check.what}: {check.fix}")


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    app.command()(doctor)
