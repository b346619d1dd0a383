"""Progress of videos coming into memory, for commands and programs.

A module of its own since the flows are slow to import: help does without them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from domain.media import Video
from domain.words import plain_line
from store.progress import Meter, import_progress

if TYPE_CHECKING:
    from domain.evaluation import Verdict
    from store.queries.evaluations import Slot

STOPPED = "stopped; nothing is lost: run the same command to continue"


class Reporter:
    """Shows the progress of a flow on a meter."""

    def __init__(self, bar: Meter) -> None:
        self._bar = bar

    def opened(self, video: Video, clips: int, done: int) -> None:
        """Start on a video."""
        if done:
            self._bar.say(f"{plain_line(video.title)}: going on after {done} of {clips} clips")
        self._bar.start(video.title, clips, done)

    def remembered(self, video: Video, clip: int) -> None:
        """Count a clip that is in memory."""
        del video, clip
        self._bar.step()

    def failed(self, video: Video, clip: int, error: Exception) -> None:
        """Count a clip that failed, and say why."""
        self._bar.say(f"{plain_line(video.title)}: clip {clip} failed: {error}")
        self._bar.step()

    def said(self, text: str) -> None:
        """Say another message."""
        self._bar.say(text)


class EvalReporter(Reporter):
    """Shows the progress of an evaluation on a meter."""

    def __init__(self, bar: Meter) -> None:
        super().__init__(bar)
        self._imports: dict[str, Callable[[int, int], None]] = {}

    def importing(self, video: str, done: int, total: int) -> None:
        """Show how many clips of captions are in memory."""
        self._imports.setdefault(video, import_progress(self._bar, video))(done, total)

    def asking(self, total: int, done: int) -> None:
        """Start on questions."""
        self._bar.start("answers", total, done)

    def judged(self, slot: Slot, verdict: Verdict, cost_usd: float) -> None:
        """Count a judged question."""
        if verdict.failed:
            self._bar.say(f"homer: question {plain_line(slot.question)}: {plain_line(verdict.why)}")
        if cost_usd:
            self._bar.aside(f"{cost_usd:.2f} dollars so far")
        self._bar.step()


class LiveReporter:
    """Says a line for each clip of a stream, which comes every half minute.

    Args:
        said: says a line.
    """

    def __init__(self, said: Callable[[str], None]) -> None:
        self.said = said

    def opened(self, video: Video, clips: int, done: int) -> None:
        """Say that the stream is being watched."""
        del done
        resumed = f", going on after {clips} clips" if clips else ""
        self.said(f"watching {video.title} (id {video.id}){resumed}")

    def remembered(self, video: Video, clip: int) -> None:
        """Say that a clip is in memory."""
        self.said(f"{video.title}: clip {clip} is in memory")

    def failed(self, video: Video, clip: int, error: Exception) -> None:
        """Say that a clip is lost."""
        self.said(f"{video.title}: clip {clip} is lost: {error}")
