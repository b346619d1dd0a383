"""Describes a source: its length, streams, identity and clips."""

from __future__ import annotations

import hashlib
import mimetypes
import re
import shutil
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import av

from domain.errors import InputError, MediaError
from domain.media import Clip
from domain.time import TimeSpan
from domain.words import make_storable
from perception.containers import (
    Cue,
    SubtitleStream,
    audio_stream,
    audio_tracks,
    chapters_of,
    demux,
    open_media,
    refuse_unreadable,
    reject_truncated,
    subtitle_streams,
    video_stream,
)
from perception.frames import AS_STORED, Upright, upright_of
from perception.parts import Part, find_parts
from store.home import Home

if TYPE_CHECKING:
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.video.stream import VideoStream

    from domain.settings import WatchSettings

_PICTURES = "mp4 m4v mov mkv webm avi flv f4v wmv asf mpg mpeg vob ts mts m2ts 3gp 3g2 ogv mxf gif"
_SOUNDS = "mp3 mpga m4a m4b aac flac wav ogg oga opus weba wma aiff aif ac3 amr caf mka"
SUFFIXES = frozenset(f".{name}" for name in f"{_PICTURES} {_SOUNDS}".split())
"""Suffixes of media. Files of others are opened to see what they are."""
_TEXTS = "srt vtt ass txt md json jsonl gz csv pdf jpg jpeg png heic heif avif"
_UNFINISHED = "part partial crdownload download tmp aria2 !qb !ut bak old"
_OTHERS = frozenset(f".{name}" for name in f"{_TEXTS} {_UNFINISHED}".split())
"""Suffixes of files that are not even opened."""
_BESIDE = (".srt", ".vtt")
"""Suffixes of files that come along with a video."""
MOST_NAMED = 5
"""Files that are left out of a folder and named, at most."""

_LENGTH_IS_STATED = ("mov", "matroska", "avi", "wav", "flac", "ogg", "asf", "aiff", "mxf", "gif")
_ADDRESS = re.compile(r"(rtsps?|rtmps?|https?|udp|srt):/", re.IGNORECASE)

DAY_MS = 86_400_000
LONGEST_MS = 366 * DAY_MS
"""A longer video is taken for a mistake."""
_ANY_MS, _BYTE_MS = 2 * DAY_MS, 10_000
"""Any file may state two days; beyond that, ten seconds for each of its bytes."""


@dataclass(frozen=True)
class SourceInfo:
    """A readable source. Width and height are in pixels, upright; 0 without video.

    ``pixel_aspect`` is how many times as wide as high a pixel is shown. ``parts`` are stretches
    with a clock each. ``audio_index`` is the stream of sound that is heard; None: the main one.
    ``remarks`` say what a user should know.
    """

    duration_ms: int
    width: int
    height: int
    has_video: bool
    has_audio: bool
    frame_rate: float
    parts: tuple[Part, ...]
    upright: Upright = AS_STORED
    pixel_aspect: Fraction = Fraction(1)
    interlaced: bool = False
    audio_index: int | None = None
    remarks: tuple[str, ...] = ()

    def parts_within(self, start_ms: int, end_ms: int) -> list[Part]:
        """Return the parts that are shown between two times of video time, in order."""
        return [
            one for one in self.parts if one.span.end_ms > start_ms and one.span.start_ms < end_ms
        ]


class SoundTrack(NamedTuple):
    """A track of sound: the index of its stream, and what the file says of it."""

    stream: int
    about: str


@dataclass(frozen=True)
class SourceProbe:
    """What one pass over a file's headers tells, before anything of it is decoded."""

    info: SourceInfo
    subtitles: tuple[SubtitleStream, ...] = ()
    chapters: tuple[Cue, ...] = ()
    tracks: tuple[SoundTrack, ...] = ()


def probe(path: Path, track: int | None = None) -> SourceInfo:
    """Read what a source is, as `probe_source` does, without its subtitles and chapters."""
    return probe_source(path, track).info


def probe_source(path: Path, track: int | None = None) -> SourceProbe:
    """Read what a source is, and make sure that something in it decodes.

    Args:
        track: the number of the track of sound to hear, from 1; None: the main one.

    Raises:
        MediaError: missing, empty, cut short, not media, without length, or undecodable.
        InputError: there is no such track.
    """
    refuse_unreadable(path)
    stat = path.stat()
    return _probed(path, track, (stat.st_ino, stat.st_size, stat.st_mtime_ns))


@lru_cache(maxsize=32)
def _probed(path: Path, track: int | None, _unchanged: tuple[int, ...]) -> SourceProbe:
    """Probe a file that is as it was: all its packets are looked at, which takes a while."""
    reject_truncated(path)
    try:
        with open_media(path) as container:
            info = _describe(path, container, track)
            return SourceProbe(
                info,
                subtitle_streams(container),
                chapters_of(container, info.parts[0].origin),
                tuple(SoundTrack(one.index, _about(one)) for one in audio_tracks(container)),
            )
    except av.FFmpegError as error:
        raise MediaError(f"{path}: damaged beyond reading ({error.strerror})") from error


def _about(stream: AudioStream) -> str:
    stated = (stream.metadata.get(name, "") for name in ("title", "handler_name", "language"))
    said = [make_storable(one) for one in stated if one not in ("", "und", "SoundHandler")]
    return ", ".join([*said, stream.layout.name])


def _describe(path: Path, container: InputContainer, track: int | None) -> SourceInfo:
    video, tracks = video_stream(container), audio_tracks(container)
    if track is not None and not 0 < track <= len(tracks):
        raise InputError(f"{path} has {len(tracks)} tracks of sound: there is no track {track}")
    audio = audio_stream(container, None if track is None else tracks[track - 1].index)
    if video is None and audio is None:
        raise MediaError(f"{path}: holds no video or audio that can be decoded")
    picture = _first_frame(path, container, [one for one in (video, audio) if one is not None])
    stated = container.format.name.split(",")[0] in _LENGTH_IS_STATED
    stated_ms = container.duration // 1000 if stated and container.duration else None
    index = audio.index if audio is not None and len(tracks) > 1 else None
    parts, remarks = find_parts(path, index, stated_ms)
    duration_ms = parts[-1].span.end_ms
    most = min(LONGEST_MS, max(_ANY_MS, path.stat().st_size * _BYTE_MS))
    if duration_ms > most:
        days = duration_ms // DAY_MS
        raise MediaError(f"{path}: damaged: so small a file cannot hold the {days} days it states")
    upright = upright_of(picture) if picture is not None else AS_STORED
    width, height = (picture.width, picture.height) if picture is not None else (0, 0)
    aspect = (video.sample_aspect_ratio if video is not None else None) or Fraction(1)
    if upright.is_across:
        width, height = height, width
    return SourceInfo(
        duration_ms=duration_ms,
        width=width,
        height=height,
        has_video=picture is not None,
        has_audio=audio is not None,
        frame_rate=float(video.average_rate or 0) if video else 0.0,
        parts=parts,
        upright=upright,
        pixel_aspect=1 / aspect if upright.is_across else aspect,
        interlaced=picture is not None and picture.interlaced_frame,
        audio_index=index,
        remarks=remarks,
    )


def _first_frame(
    path: Path, container: InputContainer, streams: Sequence[VideoStream | AudioStream]
) -> av.VideoFrame | None:
    """Return the first picture, or None where only sound decodes."""
    heard, has_pictures = False, streams[0].type == "video"
    for packet in demux(container, streams):
        try:
            for frame in packet.decode():
                if isinstance(frame, av.VideoFrame):
                    return frame
                heard = True
        except av.FFmpegError:
            continue
        if heard and not has_pictures:
            return None
    if not heard:
        raise MediaError(f"{path}: nothing in it can be decoded")
    return None


def video_id(path: Path) -> str:
    """Return the first 16 hex digits of the SHA-256 of the file's content.

    Raises:
        MediaError: the file is missing or empty.
    """
    refuse_unreadable(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def clips_of(duration_ms: int, settings: WatchSettings) -> list[Clip]:
    """Return half-open clips of ``settings.clip_ms`` that cover ``[0, duration_ms)``, in order."""
    starts = range(0, duration_ms, settings.clip_ms)
    return [
        Clip(index=i, span=TimeSpan.of(start, min(start + settings.clip_ms, duration_ms)))
        for i, start in enumerate(starts)
    ]


def find_media(
    paths: Iterable[Path], warn: Callable[[str], None] = lambda _text: None
) -> list[Path]:
    """Return the files named, and those in the folders named, at any depth; each once, in order.

    Args:
        warn: receives what is left out of a folder, and why.

    Raises:
        MediaError: a path does not exist, or a folder holds no media.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if _ADDRESS.match(str(path)):
            # Not repeated: there may be a password in it.
            raise MediaError(
                "this is an address, not a file: a live source is watched by homer watch"
            )
        if not path.exists():
            raise MediaError(f"{path}: no such file or folder")
        if not path.is_dir():
            found[path] = None
            continue
        files, others = media_in(path)
        if not files:
            raise MediaError(f"{path}: no video or audio files in this folder")
        found |= dict.fromkeys(files)
        if others:
            shown = ", ".join(str(file.relative_to(path)) for file in others[:MOST_NAMED])
            more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
            warn(f"{path}: left out, being no video or audio: {shown}{more}")
    return list(found)


def media_in(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the media files of a folder, at any depth, and those left out, both in order.

    Hidden files and subtitles are neither. A file of an unknown suffix is opened, as one that is
    named would be.
    """
    files = sorted(
        file
        for file in folder.rglob("*")
        if not file.name.startswith(".") and file.suffix.lower() not in _BESIDE and file.is_file()
    )
    media = [one for one in files if one.suffix.lower() in SUFFIXES or _opens(one)]
    return media, sorted({*files} - {*media})


def _opens(file: Path) -> bool:
    """Check whether a file of an unknown suffix is what a video can be made of."""
    if file.suffix.lower() in _OTHERS:
        return False
    try:
        probe(file)
    except MediaError:
        return False
    return True


# The original file of a video, verified by its content's digest.
#
# The path in the library may come from a back-up of another machine, and name any file of the
# user's. So its digest is compared before a file is served. That reads all of it, so the result is
# cached as long as the file's path, size and times stay the same.

_ID = re.compile("[0-9a-f]{16}")
_TYPES = {
    "mov": "video/mp4",
    "matroska": "video/webm",
    "ogg": "video/ogg",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "flac": "audio/flac",
    "aac": "audio/aac",
}
"""Types of containers that browsers play, by the names of FFmpeg's readers."""
_LOCK = threading.Lock()
"""Lets one of several concurrent requests for a file read it."""


def original_file(home: Home, video: str, path: str | None) -> Path | None:
    """Return the file at ``path`` if its content is the video's; else None.

    Args:
        home: the data directory, which has the cached results.
        video: the id, which is the digest of the content.
    """
    file = Path(path) if path else None
    if file is None or not _ID.fullmatch(video):
        return None
    with _LOCK:
        digest = _digest(home, video, file)
    return file if digest == video else None


@lru_cache(1024)
def media_type(file: Path) -> str:
    """Return the type of a file by its container; never one of a page, whatever it is called."""
    with suppress(MediaError), open_media(file) as container:
        if (kind := container.format.name.partition(",")[0]) in _TYPES:
            return _TYPES[kind]
    by_name = mimetypes.guess_type(file.name)[0] or ""
    return by_name if by_name.startswith(("video/", "audio/")) else "application/octet-stream"


def cache_original(home: Home, video: str, stamp: str | None) -> None:
    """Cache that a file is a video's original; its `stamp_of` was taken before it was read."""
    if stamp is not None:
        _write_cache(home, video, stamp, video)


def drop_cached_original(home: Home, video: str) -> None:
    """Delete the cached result for a video's file, and the previews of it."""
    with suppress(OSError):
        _cache_path(home, video).unlink()
    shutil.rmtree(previews_of(home, video), ignore_errors=True)


def previews_of(home: Home, video: str) -> Path:
    """Return the folder of what is cut out of a video's file for browsers that cannot play it."""
    return home.run / "previews" / video


def stat_digest(file: Path) -> str | None:
    """Return a digest of a file's path, inode, size and times, which changes when it does."""
    try:
        stat = file.stat()
        if not file.is_file():
            return None
    except (OSError, ValueError):
        return None
    fields = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    return hashlib.sha256(f"{file}\0{fields}".encode(errors="surrogatepass")).hexdigest()


def _digest(home: Home, video: str, file: Path) -> str | None:
    """Return the video id of a file's content, from the cache if the file is unchanged."""
    stamp = stat_digest(file)
    if stamp is None:
        return None
    with suppress(OSError, ValueError):
        cached_stamp, digest = _cache_path(home, video).read_text("ascii").split()
        if cached_stamp == stamp:
            return digest
    try:
        digest = video_id(file)
    except (MediaError, OSError):
        return None
    _write_cache(home, video, stamp, digest)
    return digest


def _write_cache(home: Home, video: str, stamp: str, digest: str) -> None:
    """Write the cache file atomically; without it the file is read again next time."""
    path = _cache_path(home, video)
    partial = path.with_name(f"{video}.{threading.get_ident()}.part")
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial.write_text(f"{stamp} {digest}", "ascii")
        partial.replace(path)


def _cache_path(home: Home, video: str) -> Path:
    return home.run / "originals" / video
