"""Decodes the clips of a file on demand: in order in one pass, else from where they start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from domain.errors import MediaError

if TYPE_CHECKING:
    from domain.settings import WatchSettings
    from perception.decode import RawClip
    from perception.source import SourceInfo

DecodeFrom = Callable[["Path", "SourceInfo", "WatchSettings", int], Iterator["RawClip"]]


class ClipReader:
    """Decodes clips of one file, and holds none of them; not to be shared between threads.

    Args:
        settings: how it is cut and sampled.
        decode_from: decodes clip after clip from the one given on.
    """

    def __init__(
        self, path: Path, info: SourceInfo, settings: WatchSettings, decode_from: DecodeFrom
    ) -> None:
        self.source = path, info, settings
        self._decode_from = decode_from
        self._clips: Iterator[RawClip] | None = None
        self._next: int | None = None

    def clip(self, index: int) -> RawClip:
        """Return the decoded clip; decoding continues where it was, or starts there.

        Raises:
            MediaError: the file went away or is no longer what was probed.
        """
        if self._clips is None or index != self._next:
            self._clips = self._decode_from(*self.source, index)
        self._next = None
        found = next(self._clips, None)
        if found is None or found.clip.index != index:
            raise MediaError(f"clip {index} of {self.source[0]} cannot be read: has it changed?")
        self._next = index + 1
        return found
