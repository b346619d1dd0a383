"""A stream that is watched in the background while a program goes on."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import Self

from domain.ingesting import Watched
from perception.live import LiveSource
from store.progress import SilentMeter


class _Lines(SilentMeter):
    """Progress as lines for a program; a stream has no end to count to."""

    def __init__(self, on_message: Callable[[str], None]) -> None:
        self._on_message = on_message

    def say(self, text: str) -> None:
        """Pass a line on."""
        self._on_message(text)


class LiveWatch:
    """Watches a live source in a thread of its own until it ends or ``stop`` is called.

    Args:
        source: the camera, stream or pipe.
        watch: watches it, until the event that it is given is set.
        on_message: receives a line for each clip and each break.
    """

    def __init__(
        self, source: LiveSource, watch: Callable[..., Watched], on_message: Callable[[str], None]
    ) -> None:
        self._source, self._watch, self._on_message = source, watch, on_message
        self._stop, self._error = Event(), list[BaseException]()
        self._thread = Thread(target=self._run, name=f"watch {source.label}", daemon=True)
        self._thread.start()

    @property
    def video(self) -> str:
        """The id of the video that the stream is stored as."""
        return self._source.id

    @property
    def running(self) -> bool:
        """Whether the source is still watched."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """End it after storing what has arrived.

        Raises:
            HomerError: watching failed.
        """
        self._stop.set()
        self.wait()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the source has ended.

        Raises:
            HomerError: watching failed.
        """
        self._thread.join(timeout_s)
        if self._error:
            raise self._error.pop()

    def __enter__(self) -> Self:
        """Return the stream that is being watched."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it after storing what has arrived."""
        self.stop()

    def _run(self) -> None:
        try:
            self._watch(stop=self._stop, progress=_Lines(self._on_message))
        except BaseException as error:  # noqa: BLE001 - raised again by who waits
            self._error.append(error)
