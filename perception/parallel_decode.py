"""Clips read beside each other, in stretches that each decode by themselves."""

from __future__ import annotations

from collections import deque
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

from models.onnx import threads_allowed
from perception.clip_frames import NOTHING, ClipFrames
from perception.frame_metrics import Measurer
from perception.gop_segments import A_CLIP, GopSegments
from perception.ordered_pool import in_lanes
from perception.sound import heard_in

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence
    from pathlib import Path

    from domain.media import Clip
    from domain.settings import WatchSettings
    from perception.clip_frames import ClipFrame
    from perception.ordered_pool import Stopped
    from perception.picture_stream import ShownPicture
    from perception.sound import Sound
    from perception.source import SourceInfo

LANES = 2
"""Stretches decoded at a time."""
AHEAD = A_CLIP + 1
"""Stretches begun before one is taken: a clip's, and the one in which the next clip begins."""


@dataclass(frozen=True, eq=False)
class _Part:
    """What a stretch shows of which clips, by number, and what is heard in the one it opens."""

    views: dict[int, ClipFrame]
    sound: Sound | None
    is_last: bool


def read_beside(
    path: Path, info: SourceInfo, settings: WatchSettings, clips: Sequence[Clip]
) -> Generator[tuple[Clip, ClipFrame, Sound | None]]:
    """Clip after clip, with what is seen and heard in it, as far as that is faster than in turn.

    It ends early where key pictures are rare, or one does not decode: what is shown after it can
    then be told by going on from before alone.

    Raises:
        MediaError: the file went away or is no longer what was probed.
    """
    lanes = min(LANES, threads_allowed())
    if lanes < 2 or len(clips) < 2 or not info.has_video:
        return
    with closing(GopSegments(path, info, settings, clips)) as stretches:
        if stretches.is_near(clips[1].span.start_ms):
            yield from _SegmentReader(path, info, settings, clips, stretches).clips(lanes)


@dataclass(frozen=True)
class _SegmentReader:
    """Reads stretches, and puts them together to clips."""

    _path: Path
    _info: SourceInfo
    _settings: WatchSettings
    _clips: Sequence[Clip]
    _stretches: GopSegments

    def clips(self, lanes: int) -> Iterator[tuple[Clip, ClipFrame, Sound | None]]:
        """Clip after clip; they end where a stretch cannot be read by itself."""
        places = range(len(self._stretches.marks))
        with closing(in_lanes(self._read, places, lanes, AHEAD)) as read:
            yield from self._joined(read)

    def _joined(
        self, read: Iterable[_Part | None]
    ) -> Iterator[tuple[Clip, ClipFrame, Sound | None]]:
        """A clip is whole as soon as something is seen of the next, or nothing follows."""
        number, whole = 0, NOTHING
        sounds: deque[Sound | None] = deque()
        for place, part in enumerate(read):
            if part is None:
                return
            if self._stretches.opens(place):
                sounds.append(part.sound)
            for clip, view in part.views.items():
                if clip > number:
                    yield self._clips[number], whole, sounds.popleft()
                    number, whole = clip, NOTHING
                whole = whole.followed_by(view)
            if part.is_last:
                yield self._clips[number], whole, sounds.popleft()
                return

    def _read(self, place: int, stopped: Stopped) -> _Part | None:
        """A stretch; None where there is none, or its key picture does not decode."""
        if self._stretches.start_ms(place) is None:
            return None
        with closing(self._stretches.shown(place, stopped)) as shown:
            first = list(islice(shown, 1))
            if place and first and first[0].picture is None:
                return None
            return self._part(place, chain(first, shown))

    def _part(self, place: int, shown: Iterable[ShownPicture]) -> _Part:
        measurer = Measurer(self._info.rotation, self._settings, beside=False)
        views = ClipFrames(shown, measurer, self._settings)
        number = self._stretches.marks[place][0]
        return _Part(
            views={one: views.of(self._clips[one]) for one in self._stretches.clips(place)},
            sound=self._sound(self._clips[number]) if self._stretches.opens(place) else None,
            is_last=self._stretches.start_ms(place + 1) is None,
        )

    def _sound(self, clip: Clip) -> Sound | None:
        return heard_in(self._path, self._info, clip, self._settings.audio_hz)
