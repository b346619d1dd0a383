"""A bug report: one zip without content, for a person to read and pass on."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_DEFLATED, ZipFile

import av
import psutil

from domain.errors import HomerError, InputError
from models.specs import bundled_profiles, known_models
from perception.containers import open_media
from perception.source import original_file
from services.health import Check, versions
from store.database import open_store
from store.files import create_private
from store.home import Home
from store.queries import diagnostics as outline
from telemetry import redaction
from telemetry.logs import log_path
from telemetry.tracing import mask_id

if TYPE_CHECKING:
    from models.profile import Profile
    from models.specs import ChatSpec
    from store.queries.diagnostics import VideoOutline

VIDEOS, TRAJECTORIES, RECORDS = 50, 20, 5_000
ROLES = ("default", "writer", "reasoner", "judge", "skills")
VARIABLES = (
    *("HOMER_HOME", "HOMER_DATABASE_URL", "HOMER_WEIGHTS", "HOMER_PROFILE", "HOMER_DEBUG"),
    "HOMER_IDLE_MINUTES",
    *("HOMER_LOG", "HOMER_LOG_LEVEL", "HOMER_LOG_TO", "HOMER_APP_ADDRESS", "HOMER_APP_NAMES"),
    *("PREFECT_API_URL", "OTEL_EXPORTER_OTLP_ENDPOINT", "HTTPS_PROXY", "HTTP_PROXY"),
)
README = """What Homer on one machine is and how it fares, for a bug report. Made {at}.

{parts}

Left out: titles, names and paths of videos; what was said, read, shown, asked and answered; names
of people; names and addresses of this machine; keys and passwords; what errors say. Lists have
their lengths, errors their classes. A name that is needed to tell things apart is a letter x and
digits made of it.

Nothing of this was sent anywhere. It is yours to read, and to pass on or not.
"""
ABOUT = {
    "README.txt": "this page",
    "versions.json": "Homer, its packages, Python",
    "weights.json": "system, processor, memory, disk; which variables are set, not to what",
    "settings.json": "the profile's models and settings, without keys and addresses",
    "doctor.json": "what `homer doctor` found",
    "database.json": "versions, rows and bytes of tables",
    "videos.json": "lengths, sizes, codecs, states and classes of failures",
    "trajectories.json": "kinds, times and counts of the steps of the last questions",
    "log.jsonl": "Homer's own log, field by field",
    "other-logs.json": "how often what occurs in the logs of the servers",
}


def write_bug_report(
    home: Home, profile: Profile, checks: Iterable[Check], path: Path
) -> list[str]:
    """Write the zip; return a line for each file in it.

    Raises:
        InputError: the file exists already, or cannot be written.
    """
    parts = dict(_parts(home, profile, checks))
    lines = [f"{name:18} {ABOUT[name]}" for name in ABOUT if name in parts or name == "README.txt"]
    at = datetime.now(UTC).isoformat(timespec="seconds")
    parts["README.txt"] = README.format(at=at, parts="\n".join(lines))
    try:
        descriptor = create_private(path, new=True)
        with os.fdopen(descriptor, "wb") as file, ZipFile(file, "w", ZIP_DEFLATED) as bundle:
            for name in ABOUT:
                if name in parts:
                    bundle.writestr(name, parts[name])
    except FileExistsError as error:
        raise InputError(f"{path} is there already: name another file") from error
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
    return lines


def _parts(home: Home, profile: Profile, checks: Iterable[Check]) -> Iterator[tuple[str, str]]:
    yield "versions.json", _json({"python": sys.version.split()[0], **versions()})
    yield "weights.json", _json(machine(home))
    yield "settings.json", _json(settings(profile))
    yield "doctor.json", _json([finding(check) for check in checks])
    try:
        with open_store(home) as store, store.begin(snapshot=True) as session:
            facts = outline.database_facts(session)
            sizes = outline.table_sizes(session)
            videos = outline.outline_videos(session, VIDEOS)
            runs = outline.outline_trajectories(session, TRAJECTORIES)
    except HomerError as error:
        yield "database.json", _json({"error": type(error).__name__})
    else:
        where = {"embedded": not os.environ.get("HOMER_DATABASE_URL")}
        yield "database.json", _json({**where, **facts, "tables": sizes})
        yield "videos.json", _json([video(home, row) for row in videos])
        yield (
            "trajectories.json",
            _json([trajectory(run, known, events) for run, known, events in runs]),
        )
    log = log_path(home)
    rotated = (log.with_name(f"{log.name}.{n}") for n in (3, 2, 1))
    records = [record for path in (*rotated, log) for record in redaction.redact_log(_lines(path))]
    yield "log.jsonl", "".join(json.dumps(record) + "\n" for record in records[-RECORDS:])
    others = list[Mapping[str, Any]]()
    for path in sorted(home.logs.glob("*.log")):
        if path != log:
            name = path.name if path.stem in ("postgres", "prefect", "app") else "of a job"
            others.append({"log": name, **redaction.count_known_words(_lines(path))})
    yield "other-logs.json", _json(others)


def _json(data: object) -> str:
    return json.dumps(data, indent=1, default=str) + "\n"


def _lines(path: Path) -> Iterator[str]:
    with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
        yield from file


def machine(home: Home) -> dict[str, Any]:
    """Describe the machine, without its name and its user's."""
    disk = None
    with suppress(OSError):
        disk = psutil.disk_usage(str(home.root))
    return {
        "system": platform.system(),
        "release": platform.release(),
        "processor": platform.machine(),
        "cores": psutil.cpu_count(),
        "memory": psutil.virtual_memory().total,
        "disk": {"total": disk.total, "free": disk.free} if disk else None,
        "container": Path("/.dockerenv").exists(),
        "variables": [name for name in VARIABLES if os.environ.get(name)],
    }


def settings(profile: Profile) -> dict[str, Any]:
    """Describe a profile without user-defined paths, addresses, keys and unknown model names."""
    heard, seen = ("speech", "activity", "speaker", "sounds"), ("screen", "objects")
    ports = (*heard, *seen, "text", "reranker", "writer")
    return {
        "profile": profile.name if profile.name in bundled_profiles() else "the user's own",
        **{port: getattr(profile, port) for port in (*ports, "reasoner")},
        "faces": profile.faces.partition(":")[0],
        "images": bool(profile.images),
        "languages": len(profile.languages),
        "chat": {
            (role if role in ROLES else f"role {n}"): _chat(spec)
            for n, (role, spec) in enumerate(profile.chat.items())
        },
        "settings": redaction.numbers_of(profile.settings.model_dump(mode="json")),
    }


def _chat(spec: ChatSpec) -> dict[str, Any]:
    numbers = ("temperature", "max_tokens", "timeout_s", "retries", "structure", "images")
    return {
        "model": spec.model if spec.model in known_models() else f"{spec.provider}: another",
        "address": "the user's own" if spec.base_url else "the provider's",
        "key": "set" if spec.key else "not named",
        **{name: getattr(spec, name) for name in numbers},
    }


def finding(check: Check) -> dict[str, Any]:
    """Describe a result of doctor without paths: what was checked and whether it is in place."""
    kind, _, rest = check.what.partition(" ")
    what = check.what
    if kind in ("chat", "key"):
        role = rest.removeprefix("of ")
        what = f"{kind} {role if role in ROLES else 'of another role'}"
    return {"what": what, "ok": check.ok}


def video(home: Home, outline: VideoOutline) -> dict[str, Any]:
    """Describe a video by its numbers, and by its file's codecs if that can be opened."""
    file, codecs = original_file(home, outline.id, outline.path), None
    with suppress(OSError, HomerError, av.FFmpegError, AttributeError):
        if file:
            size = file.stat().st_size
            with open_media(file) as container:
                streams = [
                    {"type": stream.type, "codec": stream.codec_context.name}
                    for stream in container.streams
                    if stream.type in ("audio", "video", "subtitle")
                ]
                codecs = {"bytes": size, "format": container.format.name, "streams": streams}
    return {
        "id": mask_id(outline.id),
        **outline.facts,
        "clips": outline.clips,
        "seconds": outline.seconds,
        "failures": dict(Counter(map(redaction.error_kind, outline.errors))),
        "file": codecs,
    }


def trajectory(
    run: str, facts: dict[str, Any], stored: list[tuple[datetime, str, str, dict[str, Any]]]
) -> dict[str, Any]:
    """Describe a run by the kinds, times and numbers of its events."""
    start = stored[0][0] if stored else None
    events = [
        {
            "kind": kind,
            "step": step,
            "at_ms": round((at - (start or at)).total_seconds() * 1000),
            **redaction.redact_event(payload),
        }
        for at, kind, step, payload in stored
    ]
    return {"id": mask_id(run), **facts, "events": events}
