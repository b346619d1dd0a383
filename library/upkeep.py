"""Looking after a library: the audit log, recaps, and what this machine lacks."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field

from domain.base import Frozen
from domain.built import parse_period
from domain.errors import InputError, NotFound
from domain.rights import AuditEntry, Deed
from domain.words import plain_line
from flows.recap import RecapFile, recap_model, write_recap
from flows.workspace import Workspace
from library.params import OnCommandLine, Page, ProfileName
from models.hub import is_hub_name
from models.profile import Profile, load_profile
from models.toolbox import Toolbox
from models.weights import FetchProgress, FileState, status, weights_named
from models.weights import pull as pull_weights
from services.bug_report import write_bug_report
from services.health import Check, check_setup
from services.model_probe import probe_models
from store.archive import Manifest
from store.backup import back_up, check_archive, restore_library
from store.database import Store
from store.embedded import EmbeddedPostgres
from store.files import find_exposed, restrict_exposed
from store.home import Home
from store.migrations import HEAD, migrate
from store.progress import SILENT, Meter
from store.queries.rights import audit_entries
from store.vector_index import build_index as build_missing_index

MOST_NAMED = 10
"""How many files that could not be changed are named."""


def audit(
    store: Store,
    deed: Annotated[
        tuple[Deed, ...],
        Field(description="Only this action, such as 'deleted'. Repeatable."),
        OnCommandLine(metavar="DEED"),
    ] = (),
    who: Annotated[
        str | None,
        Field(description="Only actions of this user."),
        OnCommandLine(metavar="NAME"),
    ] = None,
    of: Annotated[
        str | None,
        Field(description="Only actions on ids that begin with ID."),
        OnCommandLine(metavar="ID"),
    ] = None,
    since: Annotated[
        datetime | None,
        Field(description="Only since then, such as 2026-01-31."),
        OnCommandLine(metavar="DATE"),
    ] = None,
    limit: Annotated[int, Field(ge=1, description="Number of latest entries to list.")] = 50,
) -> list[AuditEntry]:
    """List the audit log: who asked, added, deleted, exported or changed what, and when.

    An entry has ids and no content. Entries stay when a video is deleted, and cannot be changed.

    Examples:
      homer audit --deed deleted
      homer audit --who ann --since 2026-01-31 --json
    """
    start = since.astimezone() if since else None
    with store.begin() as session:
        return audit_entries(session, deeds=deed, who=who, subject=of, since=start, limit=limit)


def recap(
    workspace: Workspace,
    video: Annotated[
        str | None,
        Field(description="The video's id, its beginning, or its title. Default: all."),
        OnCommandLine(metavar="VIDEO", argument=True),
    ] = None,
    day: Annotated[
        str | None,
        Field(description="A date, 'today' or 'yesterday'. Default: today."),
        OnCommandLine(metavar="DATE"),
    ] = None,
    hour: Annotated[
        str | None, Field(description="An hour, such as 2026-11-25T14, or 'last'.")
    ] = None,
) -> RecapFile:
    """Sum up a day or an hour of a video, or of all, from its events, with citations.

    It is printed, stored with the video, and written to recaps/ of the data directory. Where the
    profile's writer is a language model, that writes it, and its citations are checked.

    Examples:
      homer recap entrance --day yesterday
      homer recap --hour last

    Raises:
        InputError: both a day and an hour are given, or what is given is none.
        NotFound: there is no such video.
    """
    if day is not None and hour is not None:
        raise InputError("name a day or an hour")
    now = datetime.now().astimezone()
    period = parse_period("hour", hour, now) if hour else parse_period("day", day or "today", now)
    return write_recap(workspace.store, period, video, recap_model(workspace))


def doctor(
    home: Home,
    profile: ProfileName = None,
    bundle: Annotated[
        Path | None,
        Field(description="Write a zip file for a bug report, without content of videos."),
        OnCommandLine(metavar="FILE", only=True),
    ] = None,
    fix: Annotated[
        bool, Field(description="Remove other users' access to files of the data directory.")
    ] = False,
    progress: Meter = SILENT,
) -> Page[Check]:
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

    Examples:
      homer doctor --profile gemini
      homer doctor --fix
      homer doctor --bundle report.zip

    Raises:
        InputError: the file of the bug report is there already.
    """
    chosen, notes = load_profile(profile, home.config), list[str]()
    places = home.places()
    if fix and (total := sum(1 for _ in find_exposed(places))):
        progress.start("permissions", total)
        closed, left = restrict_exposed(places, progress.step)
        notes.append(f"{closed} files and folders are for their owner only now")
        notes += [
            f"homer: {plain_line(str(path))} stays as it is: another user's, a socket, or a hard "
            "link"
            for path in left[:MOST_NAMED]
        ]
        if (more := len(left) - MOST_NAMED) > 0:
            notes.append(f"homer: and {more} more")
    elif fix:
        notes.append("others can read nothing of the data directory")
    checks = list(check_setup(home, chosen))
    # Only where a profile is named: asking its models takes time, and may cost.
    if profile is not None and all(check.ok for check in checks):
        checks += probe_models(Toolbox(chosen, home.weights))
    if bundle is not None:
        lines = write_bug_report(home, chosen, checks, bundle)
        notes += [f"{bundle} has, without content:", *(f"  {line}" for line in lines)]
        notes.append("Nothing was sent. Look into it, and pass it on if you like.")
    return Page(items=tuple(checks), total=len(checks), notes=tuple(notes))


# The database as a whole: backing it up, restoring it, its tables and its search index.


def backup(
    store: Store,
    out: Annotated[
        Path,
        Field(description="File to write, which must not exist."),
        OnCommandLine(metavar="OUT", only=True),
    ],
    progress: Meter = SILENT,
) -> Manifest:
    """Back up the whole library to one file.

    It contains all rows, vectors and images, answers and skills. It does
    not contain video files, weights or homer.toml. Videos can be watched and questions asked
    meanwhile.

    Examples:
      homer backup library.homer

    Raises:
        InputError: the file is there already, or cannot be written.
    """
    try:
        return back_up(store, out, progress)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt("stopped; no file was written") from stop


def restore(
    home: Home,
    file: Annotated[
        Path,
        Field(description="File that 'homer backup' wrote."),
        OnCommandLine(metavar="FILE", only=True),
    ],
    check: Annotated[bool, Field(description="Only check that the file is complete.")] = False,
    rights: Annotated[bool, Field(description="Also restore who may see what.")] = False,
    progress: Meter = SILENT,
) -> Manifest:
    """Restore a back-up into an empty library.

    The whole file is checked before anything is changed. A library that is not empty is refused:
    set HOMER_HOME to an empty folder, or HOMER_DATABASE_URL to an empty database.

    Rights stay enforced where they were. Who has them is restored with --rights only.

    Examples:
      HOMER_HOME=~/restored homer restore library.homer

    Raises:
        InputError: the file is no whole back-up, or the library is not empty.
    """
    limits = load_profile(None, home.config).settings.imports
    try:
        if check:
            return check_archive(file, progress, limits)
        return restore_library(home, file, progress, limits, rights=rights)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt("stopped; nothing was changed") from stop


def upgrade_database(home: Home) -> str:
    """Create or upgrade Homer's tables in the database of $HOMER_DATABASE_URL.

    Homer upgrades the embedded database by itself, and a database of yours only by this command.

    Examples:
      HOMER_DATABASE_URL=postgresql://me@db/homer homer db upgrade
    """
    # Not through ``open_store``, which refuses tables of another revision.
    url = os.environ.get("HOMER_DATABASE_URL") or EmbeddedPostgres(home).start()
    return f"the database is {'now' if migrate(url) else 'already'} at revision {HEAD}"


def build_index(store: Store, progress: Meter = SILENT) -> str:
    """Build the search index of a large library, if it is missing.

    'homer ingest' and 'homer import' build it once a library is large. Without it, searches over
    the whole library take longer. Videos can be watched and questions asked meanwhile.

    Examples:
      homer db index
    """
    built = build_missing_index(store, progress)
    return "the index is built" if built else "nothing is missing for a library of this size"


# The model files of a profile on this machine.


MEGABYTE = 1e6
LARGE = 50 * MEGABYTE
"""Bytes of a file from which on every quarter of it that is fetched is said."""
RECOMMENDED = "Xenova/siglip-base-patch16-224"
RECOMMENDED_BYTES, RECOMMENDED_LICENCE = 815_000_000, "Apache-2.0"
"""The image-text model for profiles without one, Google's SigLIP in ONNX: its towers of 441 and
372 MB and 2.4 MB of words, as the hub rounds them."""


class ModelOnDisk(Frozen):
    """A model of a profile: what it is for, and whether its files are there."""

    model: str
    need: str
    state: str = Field(description="present, missing, wrong or recommended")
    bytes: int
    licence: str
    languages: tuple[str, ...] = ()
    restricted: bool = Field(default=False, description="not free for every use")
    upstream: str


def models(home: Home, profile: ProfileName = None) -> Page[ModelOnDisk]:
    """List the model files of a profile, with state, size and licence.

    Where it has no image-text model, one is recommended: with it, pictures are searched by what
    they show. Without it only words on them and 80 kinds of things are known.

    Examples:
      homer models list
      homer models list --profile openai
    """
    used = load_profile(profile, home.config)
    found = [_of_manifest(home.weights, name) for name in used.weights]
    found += [
        ModelOnDisk(
            model=one.name,
            need=one.need,
            state=one.state(home.weights),
            bytes=one.size(home.weights),
            licence=one.licence(home.weights),
            upstream=_on_hub(one.name),
        )
        for one in used.hub_models
    ]
    lacking = any(one.state != FileState.PRESENT for one in found)
    notes = ["homer models pull fetches what is missing"] if lacking else []
    if used.images is None:
        known = ModelOnDisk(
            model=RECOMMENDED,
            need="images",
            state="recommended",
            bytes=RECOMMENDED_BYTES,
            licence=RECOMMENDED_LICENCE,
            upstream=_on_hub(RECOMMENDED),
        )
        found.append(known)
        notes.append(_recommendation(used))
    return Page(items=tuple(found), total=len(found), notes=tuple(notes))


def _of_manifest(weights: Path, name: str) -> ModelOnDisk:
    known, states = weights_named(name), {file.state for file in status(weights, [name])}
    return ModelOnDisk(
        model=name,
        need=known.need,
        state=next((s for s in (FileState.WRONG, FileState.MISSING) if s in states), "present"),
        bytes=known.size,
        licence=known.licence,
        languages=known.languages,
        restricted=known.restricted,
        upstream=known.upstream,
    )


def _on_hub(name: str) -> str:
    return f"https://huggingface.co/{name.replace('@', '/tree/')}"


def _recommendation(used: Profile) -> str:
    return (
        f'to search pictures by what they show, write images = "{RECOMMENDED}@REVISION" under '
        f"[profiles.{used.name}] in homer.toml (about {RECOMMENDED_BYTES / MEGABYTE:.0f} MB, "
        f"{RECOMMENDED_LICENCE}); then 'homer models pull', which names the newest revision "
        "where none is named, and 'homer reembed' for videos watched before"
    )


def pull_models(
    home: Home,
    names: Annotated[
        tuple[str, ...],
        Field(description="Names of models. Default: those of the profile."),
        OnCommandLine(metavar="NAME...", argument=True),
    ] = (),
    profile: ProfileName = None,
    progress: Meter = SILENT,
) -> str:
    """Download missing model files, and check them by SHA-256.

    Examples:
      homer models pull
      homer models pull yunet_sface

    Raises:
        NotFound: a model of the hub is named that the profile does not use: what it is for is not
            known. Or the manifest has none of that name.
        WeightsMissing: no source has a file; what was fetched before stays.
    """
    used, weights = load_profile(profile, home.config), home.weights
    of_hub = {model.name: model for model in used.hub_models}
    # All names are checked before anything is fetched.
    for name in filter(is_hub_name, names):
        if name not in of_hub:
            raise NotFound(
                f"the profile {used.name} does not use the model {name}: set `speech`, `text` or "
                "`images` in the profile to it"
            )
    wanted = tuple(name for name in names if not is_hub_name(name)) if names else used.weights
    for model in map(weights_named, wanted):
        # Before it is fetched.
        if model.restricted and _of_manifest(weights, model.name).state != FileState.PRESENT:
            progress.say(f"{model.name} ({model.need}): {model.licence}")
    said = ("", "", 0)

    def report(now: FetchProgress) -> None:
        """Say a line at the start of a download, and at each quarter of a large one."""
        nonlocal said
        quarter = 4 * now.done // max(1, now.total) if now.total >= LARGE else 0
        if (now.file, now.source, quarter) != said:
            said = (now.file, now.source, quarter)
            done = f", {25 * quarter} % done" if quarter else ""
            size = f"{now.total / MEGABYTE:.1f} MB"
            progress.say(f"fetching {now.file} ({size}{done}) from {now.source}")

    pulled = pull_weights(weights, wanted, report)
    fresh = [one for one in pulled if one.source]
    lines = [f"{one.path.relative_to(weights)} from {one.source}" for one in fresh]
    lines.append(f"models: {len(pulled)} files in place, {len(fresh)} fetched")
    for name, one in of_hub.items():
        if (not names or name in names) and one.state(weights) is not FileState.PRESENT:
            progress.say(f"fetching {name} from the hub")
            record = one.fetch(weights)
            lines.append(f"{name}: {len(record.digests)} files, licence: {record.licence}")
    if not names and used.images is None:
        progress.say(_recommendation(used))
    return "\n".join(lines)
