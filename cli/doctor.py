"""``homer doctor``: what this machine can do, and how to fix what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import typer

from cli.console import say, say_json, say_table
from cli.options import Json, Profile

if TYPE_CHECKING:
    from models.profile import Profile as ProfileModel
    from store.home import Home

DECODERS = ("h264", "hevc", "vp9", "av1", "mpeg4", "aac", "mp3", "opus", "vorbis", "flac")


@dataclass(frozen=True)
class Check:
    """One thing that must be there; ``fix`` says how to get it."""

    what: str
    ok: bool
    found: str
    fix: str = ""


def doctor(profile: Profile = None, json: Json = False) -> None:
    """Check the database, the profile's models, codecs and extras; say how to fix each.

    Exit code 3 where something that the profile needs is missing.

    Example:  homer doctor --profile gemini
    """
    from models.profile import load_profile
    from store.home import Home

    home = Home.default()
    chosen = load_profile(profile, home.config)
    checks = list(_checks(home, chosen))
    if json:
        say_json([asdict(check) for check in checks])
    else:
        _show(checks)
    raise typer.Exit(0 if all(check.ok for check in checks) else 3)


def _checks(home: Home, profile: ProfileModel) -> Iterator[Check]:
    yield Check("home", True, str(home.root))
    yield _database(home)
    yield Check("profile", True, profile.name)
    yield from _weights(home, profile)
    yield _images(profile)
    yield from _chat(profile)
    yield _codecs()


def _database(home: Home) -> Check:
    from domain.errors import SetupError
    from store.database import open_store

    try:
        with open_store(home) as store:
            return Check("database", True, repr(store))
    except SetupError as error:
        return Check("database", False, "cannot be used", str(error))


def _weights(home: Home, profile: ProfileModel) -> Iterator[Check]:
    from models.weights import FileState, status

    for name in profile.weights:
        bad = [f for f in status(home.weights, [name]) if f.state is not FileState.PRESENT]
        found = f"{bad[0].file.path} is {bad[0].state}" if bad else "in place, checked"
        yield Check(f"model {name}", not bad, found, f"homer models pull {name}" if bad else "")


def _images(profile: ProfileModel) -> Check:
    """The image-text model, which is the user's own."""
    from models.image_text import missing

    folder = profile.images_folder
    if folder is None:
        return Check("images", True, "no image-text model: images are found by words of their time")
    lacking = ", ".join(missing(folder))
    fix = f"put {lacking} into {folder}" if lacking else ""
    return Check("images", not lacking, f"{folder} lacks files" if lacking else str(folder), fix)


def _chat(profile: ProfileModel) -> Iterator[Check]:
    """The package of each language model's provider, and its key."""
    from models.chat_models import key_variable
    from models.extras import extra_of

    for role, spec in profile.chat.items():
        extra = extra_of(spec.provider)
        there = extra.installed
        yield Check(f"chat {role}", there, spec.model, "" if there else extra.hint)
        yield from _key(role, key_variable(spec))


def _key(role: str, variable: str | None) -> Iterator[Check]:
    import os

    if variable is not None:
        there = bool(os.environ.get(variable))
        fix = "" if there else f"export {variable}=..."
        yield Check(f"key of {role}", there, f"{variable} is {'' if there else 'not '}set", fix)


def _codecs() -> Check:
    """Decoders in the bundled FFmpeg."""
    import av

    missing = [name for name in DECODERS if name not in av.codecs_available]
    found = f"FFmpeg in PyAV {av.__version__}"
    fix = f"reinstall av: it lacks {', '.join(missing)}" if missing else ""
    return Check("codecs", not missing, found, fix)


def _show(checks: list[Check]) -> None:
    rows = [(c.what, "ok" if c.ok else "MISSING", c.found) for c in checks]
    say_table(("what", "state", "found"), rows)
    for check in checks:
        if check.fix:
            say(f"fix {check.what}: {check.fix}")


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    app.command()(doctor)
