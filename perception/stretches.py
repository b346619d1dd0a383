"""Clips decoded beside each other, no picture twice: from key picture to key picture.

What is shown between the key picture before a clip and the clip's start belongs to the clip before,
but decoding has to begin there. So whoever decodes the clip decodes that too, and hands it over;
the clip before is decoded only as far as that key picture.
"""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from itertools import chain, takewhile
from typing import TYPE_CHECKING

from models.onnx import threads_allowed
from perception.lanes import in_lanes
from perception.measuring import Measurer
from perception.pictures import Pictures
from perception.seeking import lead_ms
from perception.sound import hear
from perception.views import Views

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from domain.media import Clip
    from domain.settings import WatchSettings
    from perception.lanes import Stopped
    from perception.sound import Sound
    from perception.source import SourceInfo
    from perception.views import View

LANES = 2
"""Clips decoded at a time, each of which may take as much memory as the one that is waited for."""
_MOST_LEAD = 1 / 3
"""How long before a clip its key picture may be, as a part of a clip's length: with rarer ones,
what is decoded beside each other would be of very different lengths."""


@dataclass(frozen=True, eq=False)
class _Stretch:
    """What was decoded of a clip; ``open`` where the one after it has the rest."""

    view: View
    sound: Sound | None
    open: bool


class Stretches:
    """Reads clips that follow each other, as far as that is faster than one after the other.

    Args:
        path: a media file.
        info: what was probed of it.
        settings: how it is watched.
        clips: what is to be read.
    """

    def __init__(
        self, path: Path, info: SourceInfo, settings: WatchSettings, clips: Sequence[Clip]
    ) -> None:
        self._path, self._info, self._settings, self._clips = path, info, settings, clips
        self._heads: list[Future[View | None]] = [Future() for _ in clips]
        self._end_of = cache(self._found_end)

    def __iter__(self) -> Generator[tuple[Clip, View, Sound | None], None, None]:
        """Clip after clip, with what is seen and heard in it; not always all of them.

        It ends early where key pictures are rare, or one does not decode: what is shown after it
        can then be told by going on from before alone.
        """
        lanes = min(LANES, threads_allowed())
        if lanes < 2 or len(self._clips) < 2 or not self._info.has_video or self._end_of(0) is None:
            return
        with closing(in_lanes(self._work, range(len(self._clips)), lanes)) as read:
            for number, stretch in enumerate(read):
                view = self._whole(number, stretch)
                if stretch is None or view is None:
                    return
                yield self._clips[number], view, stretch.sound
                if not stretch.open:
                    return

    def _whole(self, number: int, stretch: _Stretch | None) -> View | None:
        """All that is seen in a clip, once the head of the next stretch is there."""
        if stretch is None:
            return None
        if not stretch.open:
            return stretch.view
        head = self._heads[number + 1].result()
        return None if head is None else stretch.view.followed_by(head)

    def _found_end(self, number: int) -> int | None:
        """When the key picture before the next clip is shown; None where that is none of ours."""
        if number + 1 == len(self._clips):
            return None
        start = self._clips[number + 1].span.start_ms
        lead = lead_ms(self._path, self._info, start)
        return None if lead > _MOST_LEAD * self._settings.clip_ms else start - lead

    def _work(self, number: int, stopped: Stopped) -> _Stretch | None:
        try:
            return self._decoded(number, stopped)
        except BaseException as exc:
            # Whoever waits for the head must not wait for ever.
            if not self._heads[number].done():
                self._heads[number].set_exception(exc)
            raise

    def _decoded(self, number: int, stopped: Stopped) -> _Stretch | None:
        """A stretch; None where its key picture does not decode."""
        clip, end = self._clips[number], self._end_of(number)
        source = self._path, self._info, self._settings, clip.span.start_ms
        pictures = Pictures(*source, from_key=number > 0, alone=True)
        measurer = Measurer(self._info.rotation, self._settings, beside=False)
        with closing(pictures), closing(measurer):
            every = iter(pictures)
            first = next(every, None)
            if number and (first is None or first.picture is None):
                self._heads[number].set_result(None)
                return None
            shown = takewhile(
                lambda one: not stopped() and (end is None or one.instant_ms < end),
                chain(() if first is None else (first,), every),
            )
            views = Views(shown, measurer, self._settings)
            if number:
                self._heads[number].set_result(views.of(self._clips[number - 1]))
            return _Stretch(views.of(clip), self._heard(clip), end is not None)

    def _heard(self, clip: Clip) -> Sound | None:
        if not self._info.has_audio:
            return None
        return hear(self._path, self._info, clip, self._settings.audio_hz)
