"""A stream that is watched in the background while a program goes on."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import Self

from flows.build import check_builds
from flows.live_stream import open_stream, watch_stream
from flows.workspace import Workspace
from library.progress import LiveReporter
from perception.live import LiveSource
from strategies.registry import find_strategy


class LiveWatch:
    """Watches a live source in a thread of its own until it ends or ``stop`` is called.

    Args:
        workspace: the store and the models.
        source: the camera, stream or pipe.
        on_message: receives a line for each clip and each break.
        away_s: seconds without the source after which the stream has ended; None: no limit.

    Raises:
        InputError: a strategy of the settings builds no memory.
    """

    def __init__(
        self,
        workspace: Workspace,
        source: LiveSource,
        on_message: Callable[[str], None],
        away_s: float | None,
    ) -> None:
        for name in workspace.settings.memory.strategies:
            check_builds(find_strategy(name))
        self._workspace, self._source, self._away_s = workspace, source, away_s
        self._listener = LiveReporter(on_message)
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
            with open_stream(
                self._workspace,
                self._source,
                stop=self._stop,
                said=self._listener.said,
                away_s=self._away_s,
            ) as work:
                watch_stream(work, self._listener, direct=True)
        except BaseException as error:  # noqa: BLE001 - raised again by who waits
            self._error.append(error)
