"""The parsers, each with whole files to begin from and a way to spoil them."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from domain.time import TimeSpan
from tests.fuzz.mutate import mutated, mutated_json, mutated_text
from tests.support.library import Quiet

LIMIT_S = 5.0
"""Seconds of processor time for a case or a step of it, all threads together."""

Seeds = dict[str, bytes]
"""Whole files by name; the name's ending goes to the parser."""


@dataclass(frozen=True)
class Target:
    """A parser. ``read(path)`` may raise Homer's errors and no others."""

    name: str
    share: float
    seeds: Callable[[Path], Seeds]
    read: Callable[[Path], None]
    spoil: Callable[[Random, bytes, Sequence[bytes]], bytes] = mutated
    made: dict[str, bytes] = field(default_factory=dict)

    def begin(self) -> None:
        """Makes the files to begin from."""
        with TemporaryDirectory() as folder:
            self.made.update(self.seeds(Path(folder)))

    def case(self, seed: int, number: int) -> tuple[str, bytes]:
        """The name and the bytes of a case; always the same."""
        random = Random(f"{seed}/{self.name}/{number}")
        name = random.choice(sorted(self.made))
        others = [self.made[one] for one in sorted(self.made)]
        return name, self.spoil(random, self.made[name], others)


def next_step() -> None:
    """What follows has as much time of its own, where time is limited."""
    if signal.getitimer(signal.ITIMER_PROF)[0]:
        signal.setitimer(signal.ITIMER_PROF, LIMIT_S)


def media(folder: Path) -> Seeds:
    """A second of picture and sound in every container that is common, and words inside some."""
    from tests.support.media import make_video
    from tests.support.subtitle_tracks import with_words, words_file

    small: dict[str, Any] = {"seconds": 1.0, "fps": 10, "gop": 5, "size": (64, 48)}
    kinds: dict[str, dict[str, Any]] = {
        "a.mp4": {},
        "b.mkv": {"b_frames": 2},
        "c.webm": {"codec": "libvpx-vp9", "audio": "libopus"},
        "d.webm": {"codec": "libvpx", "audio": "libopus"},
        "e.ts": {"video_start_ms": 900, "audio_start_ms": 900},
        "f.m4a": {"codec": None},
        "g.mov": {"rotation": 90, "audio": None},
        "h.avi": {"audio": "mp3"},
        "i.mp4": {"options": (("movflags", "frag_keyframe+empty_moov+default_base_moof"),)},
        "j.ogg": {"codec": None, "audio": "libopus"},
        "k.wav": {"codec": None, "audio": "pcm_s16le"},
        "l.flac": {"codec": None, "audio": "flac"},
        "m.mp3": {"codec": None, "audio": "mp3"},
        "n.flv": {},
    }
    made = {name: make_video(folder / name, **small, **kind) for name, kind in kinds.items()}
    cues = words_file(folder / "o.srt", [(0, 400, "one"), (500, 900, "<i>two</i>")])
    made["o.mkv"] = with_words(made["a.mp4"], cues, folder / "o.mkv", "eng", ["first", "second"])
    return {name: path.read_bytes() for name, path in made.items()}


def read_media(path: Path) -> None:
    """Probed, its words and chapters read, and its first and last clips decoded."""
    from domain.settings import WatchSettings
    from memory.subtitles import read_source_texts
    from perception.decode import read_clips
    from perception.source import clips_of, probe_source, video_id

    settings = WatchSettings(clip_ms=2_000, sample_fps=2.0, keyframes=1)
    video_id(path)
    probed = probe_source(path)
    info = probed.info
    next_step()
    read_source_texts(path, probed)
    for first in sorted({0, len(clips_of(info.duration_ms, settings)) - 1}):
        next_step()
        reader = read_clips(path, info, settings, first)
        next(reader, None)
        reader.close()


SRT = (
    b"1\n00:00:01,000 --> 00:00:02,500\n<i>Hello</i> there\n\n"
    b"2\n00:00:03,000 --> 00:00:04,000\nANNA: Yes\n"
)
VTT = (
    b"WEBVTT - a talk\n\nSTYLE\n::cue { color: red }\n\n1\n00:01.000 --> 00:02.000 align:start\n"
    b"<v Omar>Hi &amp; bye</v>\n\nNOTE no\n\n00:00:03.000 --> 00:00:04.000\n<c.x>two</c>\n"
)
MORE: list[dict[str, Any]] = [{}, {"speaker": "Ann"}, {"day": 2, "kind": "caption"}]
LINES = b"".join(
    json.dumps({"start": n, "end": n + 1, "text": f"line {n}", **more}).encode() + b"\n"
    for n, more in enumerate(MORE)
)


def subtitles(_folder: Path) -> Seeds:
    """Timed words in every format that is read."""
    return {"a.srt": SRT, "b.vtt": VTT, "c.jsonl": LINES, "d.jsonl.gz": gzip.compress(LINES)}


def read_words(path: Path) -> None:
    """As captions in clips, of which memories are written, and as the subtitles of a video."""
    from domain.settings import WatchSettings
    from memory.captions import caption_clips, read_captions, read_cues
    from memory.subtitles import cues_to_utterances
    from memory.writers.local_clip import LocalClipWriter
    from memory.writers.local_event import find_stated_causes
    from memory.writers.port import ClipContext
    from people.characters import ClipPeople

    track = read_captions(path)
    track.video()
    next_step()
    for clip in caption_clips(track, WatchSettings()):
        written = LocalClipWriter().write(clip, ClipPeople(), ClipContext(track.id))
        for draft in written.drafts:
            find_stated_causes(draft.text)
    next_step()
    if path.suffix in (".srt", ".vtt"):
        cues_to_utterances(read_cues(path)[1])


PATCH = {
    "segments": [
        {"label": "Ann opens the door", "summary": "Ann comes in. She sits.", "clips": [3, 4]},
        {"label": "Bob cooks", "summary": "Bob cooks.", "clips": [0, 1, 2], "extends": "Cooking"},
    ],
    "edges": [
        {
            "source": "Bob cooks",
            "target": "Ann opens the door",
            "relation": "before",
            "confidence": 0.8,
            "rationale": "It came first.",
            "evidence": [2, 3],
            "explicit": True,
            "removed": False,
        }
    ],
}


def patches(_folder: Path) -> Seeds:
    """A patch of the event graph as a model writes it."""
    whole = json.dumps(PATCH).encode()
    return {"a.json": whole, "b.txt": b"Sure!\n```json\n" + whole + b"\n```\nThat is all."}


def read_patch(path: Path) -> None:
    """Read from the reply, checked, and cut down to what can be applied."""
    from domain.settings import MemorySettings
    from memory import patches as checks
    from memory.writers.llm_event import clean_patch
    from models.chat import read_value

    watched = {n: TimeSpan.of(n * 30_000, (n + 1) * 30_000) for n in range(5)}
    context = checks.PatchContext(4, (3, 4), watched, {"Cooking": (0, 1, 2)}, frozenset())
    settings = MemorySettings()
    patch = clean_patch(read_value(_reply(path), checks.WrittenPatch))
    kept, _dropped = checks.drop_invalid_items(patch, context, settings)
    assert not [one for one in checks.check_patch(kept, context, settings) if one.fatal]
    checks.uncovered_clips(kept, context)


def _reply(path: Path) -> str:
    """What a server's JSON makes of any bytes: text, half characters included."""
    data = path.read_bytes()
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


REPLIES: dict[str, Any] = {
    "PlanReply": {"subtasks": [{"text": "who opens"}, {"text": "b", "depends": ["t1"]}]},
    "ActReply": {
        "reason": "why",
        "action": "search",
        "mode": "event",
        "query": "a door",
        "answer": "",
        "citations": ["m12"],
        "not_in_memory": False,
    },
    "AssessReply": {"resolved": [{"subtask": "t1", "answer": "Ann", "evidence": ["m1", "s2"]}]},
    "ReplanReply": {
        "rewrite": [{"id": "t1", "text": "x"}],
        "add": [{"text": "y", "depends": ["t1"]}],
        "abandon": ["t2"],
    },
    "ConcludeReply": {"answer": "Ann", "option": "A", "citations": ["m1"], "not_in_memory": False},
    "WrittenClip": {
        "lines": [{"text": "<face_0> sits", "kind": "episodic", "start_s": 1.5, "end_s": 2}],
        "same": [{"face": "<face_0>", "voice": "<voice_1>", "reason": "they move together"}],
        "names": [{"tag": "<face_0>", "name": "Ann"}],
    },
    "WrittenSkill": {"description": "d", "triggers": ["who"], "instructions": ["Look at frames."]},
    "Ruling": {"right": True, "reason": "it says so"},
}


def replies(_folder: Path) -> Seeds:
    """What models say, as JSON, in prose and in plain lines."""
    whole = {f"{name}.json": json.dumps(said).encode() for name, said in REPLIES.items()}
    lines = b"Reason: it fits\nAction: Search\nContent: event: a red car [m12]\n"
    prose = b"<think>{hm</think> Here: " + whole["ActReply.json"] + b" and so on }}"
    return whole | {"ActReply.lines.txt": lines, "ActReply.prose.txt": prose}


def read_reply(path: Path) -> None:
    """As each of the values that a model may be asked for."""
    from agent.reasoners import replies as kinds
    from evals.judging import Ruling
    from memory.writers.llm_clip import WrittenClip
    from models.chat import read_value
    from skills.writer import WrittenSkill

    schema = path.name.split("-")[-1].split(".")[0]
    known: dict[str, Any] = {"WrittenClip": WrittenClip, "WrittenSkill": WrittenSkill}
    known["Ruling"] = Ruling
    read_value(_reply(path), known.get(schema) or getattr(kinds, schema))


TOML = b"""profile = "mine"
[profiles.mine]
base = "openai"
languages = ["en", "de"]
[profiles.mine.chat.default]
model = "openai:gpt-5-mini"
temperature = 0.3
price = { input = 0.5, output = 2.0 }
[profiles.mine.settings.memory]
density = "sparse"
patch_every = 10
[prices]
"openai:gpt-5-mini" = { input = 0.25, output = 2.0 }
"""


OTHERS = b"# What I like best:\nprofile = 'local' # no key\n[theirs]\n" + b"".join(
    b'note_%d = "%s"  # of another program\n' % (n, b"so it is" * n) for n in range(20)
)


def settings(_folder: Path) -> Seeds:
    """The user's settings, and among those of other programs."""
    return {"homer.toml": TOML, "others.toml": OTHERS}


def read_settings(path: Path) -> None:
    """As ``homer.toml``."""
    from models.profile import load_profile, profile_names

    profile_names(path)
    load_profile(None, path)


IMAGE = b"a picture"
SHA = hashlib.sha256(IMAGE).hexdigest()


def exports(folder: Path) -> Seeds:
    """An export with an image."""
    import cv2
    import numpy as np

    from store.export import ROWS
    from store.migrations import HEAD

    image = cv2.imencode(".jpg", np.zeros((36, 64, 3), np.uint8))[1].tobytes()
    sha = hashlib.sha256(image).hexdigest()
    with ZipFile(folder / "a", "w", ZIP_DEFLATED) as out:
        head = {"revision": HEAD, "video": "0123456789abcdef", "encoders": [None, None]}
        held: list[Any] = [["videos", {"id": "0123456789abcdef", "title": "a long talk " * 300}]]
        held += [["clips", {"clip": 0}], ["blobs", {"sha256": sha}], ["memories", {"id": 7}]]
        out.writestr(ROWS, "\n".join(map(json.dumps, [head, *held])))
        out.writestr(f"blobs/{sha}", image)
    return {"a.export": (folder / "a").read_bytes()}


def backups(folder: Path) -> Seeds:
    """A back-up with a table and an image."""
    from store.archive import ArchiveWriter, Manifest, TablePart, write_images
    from store.migrations import HEAD

    with ZipFile(folder / "b", "w") as archive:
        writer = ArchiveWriter(archive)
        with writer.part("tables/videos") as rows:
            rows.write(b"0123456789abcdef\tt\n")
        with writer.part("images.tar", packed=False) as pictures:
            write_images(pictures, [(SHA, IMAGE)])
        fields = {"table": "videos", "columns": ["id"], "rows": 1}
        table = TablePart.model_validate({**fields, "counters": {}, "part": rows.manifest_entry()})
        output = {"library": "0" * 32, "revision": HEAD, "made_at": "now", "tables": (table,)}
        writer.close(
            Manifest.model_validate(output | {"blobs": 1, "images": pictures.manifest_entry()})
        )
    return {"b.backup": (folder / "b").read_bytes()}


def spoil_zip(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A zip that is spoilt itself, or whole with spoilt content."""
    if random.random() < 0.5:
        return mutated(random, data, others)
    with ZipFile(io.BytesIO(data)) as old:
        members = {name: old.read(name) for name in old.namelist()}
    chosen = random.choice(sorted(members))
    members[chosen] = mutated(random, members[chosen], list(members.values()))
    made = io.BytesIO()
    with ZipFile(made, "w", ZIP_DEFLATED) as new:
        for name, content in members.items():
            new.writestr(name, content)
    return made.getvalue()


def read_export(path: Path) -> None:
    """As ``homer import`` reads it before it touches the database."""
    from store.export import open_export

    with open_export(path) as parcel:
        parcel.contents()


def read_backup(path: Path) -> None:
    """As ``homer restore`` reads it; its checksums are taken for right, or nothing gets further."""
    from store.archive import open_archive
    from store.backup import check_archive

    with open_archive(path) as archive:
        for table in archive.manifest.tables:
            list(archive.rows(table.part))
        list(archive.images())
    check_archive(path, Quiet())


def datasets(folder: Path) -> Seeds:
    """Every data set's files, as their authors publish them; the file's name says where it lies."""
    from tests.support.datasets import EXAMPLES, lay

    made: Seeds = {}
    for name, files in EXAMPLES.items():
        lay(folder / name, files)
        for path in sorted((folder / name).rglob("*")):
            if path.is_file() and path.stat().st_size:
                inside = path.relative_to(folder / name).as_posix().replace("/", "%")
                made[f"{name}%{inside}"] = path.read_bytes()
    return made


def read_dataset(path: Path) -> None:
    """The data set of which this is one file, the others being whole."""
    from evals.datasets import read
    from tests.support.datasets import EXAMPLES, lay

    name, *parts = path.name.partition("-")[2].split("%")
    with TemporaryDirectory() as temporary:
        folder = lay(Path(temporary), EXAMPLES[name])
        folder.joinpath(*parts).write_bytes(path.read_bytes())
        read(name, folder)


def names(_folder: Path) -> Seeds:
    """Names of files that people give to the app."""
    return {"a": b"holiday (1).mp4", "b": "Größe \u202e.mkv".encode(), "c": b"..\\..\\etc/passwd"}


def read_name(path: Path) -> None:
    """As the name under which an upload is kept."""
    from flows.uploads import safe_name

    safe = safe_name(_reply(path))
    assert safe not in ("", ".", "..")
    assert not set("/\\\0\n") & set(safe)
    assert len(safe.encode()) < 250


TARGETS = {
    one.name: one
    for one in (
        Target("containers", 0.25, media, read_media),
        Target("subtitles", 0.15, subtitles, read_words, mutated_text),
        Target("patches", 0.15, patches, read_patch, mutated_json),
        Target("replies", 0.15, replies, read_reply, mutated_json),
        Target("exports", 0.05, exports, read_export, spoil_zip),
        Target("back-ups", 0.05, backups, read_backup, spoil_zip),
        Target("settings", 0.05, settings, read_settings, mutated_text),
        Target("data sets", 0.05, datasets, read_dataset, mutated_json),
        Target("names", 0.05, names, read_name),
    )
}


def corpus(folder: Path) -> list[tuple[str, Path]]:
    """The regression cases, each once a finding: a folder for each target."""
    return [(path.parent.name, path) for path in sorted(folder.glob("*/*")) if path.is_file()]
