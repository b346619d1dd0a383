"""Decodes GOP segments of a source in parallel."""

from __future__ import annotations

from collections import deque
from contextlib import closing
from dataclasses import dataclass
from functools import reduce
from itertools import chain, islice
from typing import TYPE_CHECKING

from models.onnx import threads_allowed
from perception.audio import read_audio
from perception.clip_frames import EMPTY, ClipFrames, FrameSplitter
from perception.frame_metrics import FrameMeasurer
from perception.gop_segments import GopSegments
from perception.ordered_pool import map_ordered

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence
    from pathlib import Path

    from domain.media import Clip
    from domain.settings import WatchSettings
    from perception.audio import ClipAudio
    from perception.ordered_pool import StopCheck
    from perception.picture_stream import SampledPicture
    from perception.source import SourceInfo

WORKERS = 2
"""Stretches decoded at a time."""
SEGMENTS_AHEAD = WORKERS
"""Stretches begun before one is taken. Their pictures are held: more of them take more memory."""


@dataclass(frozen=True, eq=False)
class _SegmentContent:
    """The frames of a segment by clip number, and the audio of the clip that it starts."""

    clips: dict[int, ClipFrames]
    audio: ClipAudio | None
    is_last: bool


def read_parallel(
    path: Path, info: SourceInfo, settings: WatchSettings, clips: Sequence[Clip]
) -> Generator[tuple[Clip, ClipFrames, ClipAudio | None]]:
    """Yield each clip with its frames and audio, as far as parallel decoding pays.

    It ends early where key pictures are rare, or one does not decode: what is shown after it can
    then be told by going on from before alone.

    Raises:
        MediaError: the file went away or is no longer what was probed.
    """
    workers = min(WORKERS, threads_allowed())
    if workers < 2 or len(clips) < 2 or not info.has_video or len(info.parts) > 1:
        return
    with closing(GopSegments(path, info, settings, clips)) as segments:
        if segments.has_key_picture_near(clips[1].span.start_ms):
            yield from _SegmentReader(path, info, settings, clips, segments).clips(workers)


@dataclass(frozen=True)
class _SegmentReader:
    """Reads segments and joins them to clips."""

    _path: Path
    _info: SourceInfo
    _settings: WatchSettings
    _clips: Sequence[Clip]
    _segments: GopSegments

    def clips(self, workers: int) -> Iterator[tuple[Clip, ClipFrames, ClipAudio | None]]:
        """Yield clip after clip, up to a segment that cannot be decoded by itself."""
        numbers = range(len(self._segments.starts))
        with closing(map_ordered(self._read_segment, numbers, workers, SEGMENTS_AHEAD)) as contents:
            yield from self._join_segments(contents)

    def _join_segments(
        self, contents: Iterable[_SegmentContent | None]
    ) -> Iterator[tuple[Clip, ClipFrames, ClipAudio | None]]:
        """Join segments to clips; a clip ends when the next one has frames, or none follows."""
        number, parts = 0, list[ClipFrames]()
        threshold = self._settings.shot_threshold
        audios: deque[ClipAudio | None] = deque()
        for segment, content in enumerate(contents):
            if content is None:
                return
            if self._segments.starts_clip(segment):
                audios.append(content.audio)
            for clip in list(content.clips):
                if clip > number:
                    yield self._clips[number], _take_joined(parts, threshold), audios.popleft()
                    number = clip
                parts.append(content.clips.pop(clip))
            if content.is_last:
                yield self._clips[number], _take_joined(parts, threshold), audios.popleft()
                return

    def _read_segment(self, segment: int, is_stopped: StopCheck) -> _SegmentContent | None:
        """Read a segment; None after the last, or if its key picture does not decode."""
        if self._segments.start_ms(segment) is None:
            return None
        with closing(self._segments.pictures(segment, is_stopped)) as pictures:
            first = list(islice(pictures, 1))
            if segment and first and first[0].picture is None:
                return None
            return self._segment_content(segment, chain(first, pictures))

    def _segment_content(self, segment: int, pictures: Iterable[SampledPicture]) -> _SegmentContent:
        measurer = FrameMeasurer(self._info.upright, self._settings, threaded=False)
        splitter = FrameSplitter(pictures, measurer, self._settings)
        number = self._segments.starts[segment][0]
        return _SegmentContent(
            clips={
                clip: splitter.read(self._clips[clip]) for clip in self._segments.clips(segment)
            },
            audio=self._read_audio(self._clips[number])
            if self._segments.starts_clip(segment)
            else None,
            is_last=self._segments.start_ms(segment + 1) is None,
        )

    def _read_audio(self, clip: Clip) -> ClipAudio | None:
        return read_audio(self._path, self._info, clip, self._settings)


def _take_joined(parts: list[ClipFrames], threshold: float) -> ClipFrames:
    """Join the parts of a clip, and empty the list: only who takes the clip holds its frames."""
    frames = reduce(lambda done, part: done.concatenate(part, threshold), parts, EMPTY)
    parts.clear()
    return frames
