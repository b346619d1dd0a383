"""``homer doctor``: what this machine can do, and how to fix what is missing."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cli.console import note, say, say_json, say_table
from cli.options import Json, Profile
from cli.progress import meter
from models.profile import Profile as ProfileModel
from models.profile import load_profile
from models.toolbox import Toolbox
from services.bug_report import write_bug_report
from services.health import Check, check_setup
from services.model_probe import probe_models
from store.files import find_exposed, restrict_exposed
from store.home import Home
from views.words import plain_line

MOST_NAMED = 10
"""How many files that could not be changed are named."""


def doctor(
    profile: Profile = None,
    bundle: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write a zip file for a bug report, without content of videos."
        ),
    ] = None,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Remove other users' access to files of the data directory."),
    ] = False,
    json: Json = False,
) -> None:
    """Check this machine, and say how to fix what is missing.

    It checks the database, the models of the profile, codecs, extras and file permissions. The
    exit code is 3 if something that the profile needs is missing.

    With --profile, and if nothing is missing, each language model of the profile is asked a dozen
    short questions, about a small picture and a clip of two seconds: whether it sees, watches
    videos, calls tools and keeps to a JSON schema, and which settings follow. The models that write
    clips and answer are sent a clip and a step of a question as they will be. One that runs in this
    process is measured instead: how fast it reads and writes, and how long an hour of video takes.

    The bug report of --bundle has versions, settings, states, sizes, times and the log. It has no
    titles, texts, questions, answers, names, paths or keys, and is not sent anywhere.

    \b
    Examples:
      homer doctor --profile gemini
      homer doctor --fix
      homer doctor --bundle report.zip
    """
    home = Home.default()
    chosen = load_profile(profile, home.config)
    if fix:
        _restrict(home)
    checks = list(check_setup(home, chosen))
    if profile is not None and all(check.ok for check in checks):
        checks += probe_models(Toolbox(chosen, home.weights))
    if json:
        say_json([asdict(check) for check in checks])
    else:
        _show(checks)
    if bundle is not None:
        _write_bundle(home, chosen, checks, bundle)
    raise typer.Exit(0 if all(check.ok for check in checks) else 3)


def _restrict(home: Home) -> None:
    places = home.places()
    total = sum(1 for _ in find_exposed(places))
    if not total:
        return note("others can read nothing of the data directory")
    with meter() as bar:
        bar.start("permissions", total)
        done = restrict_exposed(places, bar.step)
    note(f"{done.closed} files and folders are for their owner only now")
    for path in done.left[:MOST_NAMED]:
        note(
            f"homer: {plain_line(str(path))} stays as it is: "
            "another user's, a socket, or a hard link"
        )
    if len(done.left) > MOST_NAMED:
        note(f"homer: and {len(done.left) - MOST_NAMED} more")
    return None


def _state(check: Check) -> str:
    if check.warning:
        return "WARNING"
    return "ok" if check.ok else "MISSING"


def _show(checks: list[Check]) -> None:
    rows = [(c.what, _state(c), c.found) for c in checks]
    say_table(("what", "state", "found"), rows)
    for check in checks:
        if check.fix:
            say(f"fix {check.what}: {check.fix}")


def _write_bundle(home: Home, profile: ProfileModel, checks: list[Check], path: Path) -> None:
    lines = write_bug_report(home, profile, checks, path)
    note(f"{path} has, without content:")
    for line in lines:
        note(f"  {line}")
    note("Nothing was sent. Look into it, and pass it on if you like.")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)
