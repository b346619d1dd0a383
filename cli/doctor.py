"""``homer doctor``: what this machine can do, and how to fix what is missing."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import note, say, say_json, say_table
from cli.options import Json, Profile

if TYPE_CHECKING:
    from flows.health import Check
    from models.profile import Profile as ProfileModel
    from store.home import Home


def doctor(
    profile: Profile = None,
    bundle: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what a bug report needs, without content."),
    ] = None,
    json: Json = False,
) -> None:
    """Check the database, the profile's models, codecs and extras; say how to fix each.

    Exit code 3 where something that the profile needs is missing.

    --bundle packs versions, settings, findings, sizes, states, times and the log into a zip for
    a bug report. Titles, words, questions, answers, names, paths and keys are not in it, and it is
    sent nowhere.

    Examples:  homer doctor --profile gemini   homer doctor --bundle report.zip
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
    if bundle is not None:
        _pack(home, chosen, made, bundle)
    raise typer.Exit(0 if all(check.ok for check in made) else 3)


def _show(checks: list[Check]) -> None:
    rows = [(c.what, "ok" if c.ok else "MISSING", c.found) for c in checks]
    say_table(("what", "state", "found"), rows)
    for check in checks:
        if check.fix:
            say(f"fix {check.what}: {check.fix}")


def _pack(home: Home, profile: ProfileModel, checks: list[Check], path: Path) -> None:
    from flows.bundle import write_bundle

    lines = write_bundle(home, profile, checks, path)
    note(f"{path} has, without content:")
    for line in lines:
        note(f"  {line}")
    note("Nothing was sent. Look into it, and pass it on if you like.")


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    app.command()(doctor)
