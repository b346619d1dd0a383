"""The order of the steps of watching, whoever runs them; and what is worth trying again."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from types import TracebackType
from typing import Any, Protocol, Self

from domain.errors import DatabaseError, ModelError, ReplayMiss
from domain.media import Video
from flows.watching import ClipLeft, Watched, Watching

BACK_OFF_S = (1.0, 4.0, 15.0)
"""How long to wait before each new try of a step."""


class Listener(Protocol):
    """Is told how the watching goes."""

    def opened(self, video: Video, clips: int, done: int) -> None:
        """A video of ``clips`` clips is taken up; ``done`` of them are in memory already."""

    def remembered(self, video: Video, clip: int) -> None:
        """A clip is in memory."""

    def failed(self, video: Video, clip: int, error: Exception) -> None:
        """A clip is left for another run."""

    def said(self, text: str) -> None:
        """Anything else a person should know."""


class Waitable(Protocol):
    """A step that runs beside; ``result`` waits for it and raises what it raised."""

    def result(self) -> Any:
        """Waits for the end of the step."""


class Steps(Protocol):
    """Runs the steps, each with its retries."""

    def perceive(self, work: Watching, clip: int) -> Waitable:
        """Begin to perceive a clip beside the other steps."""

    def remember(self, work: Watching, clip: int) -> None:
        """Remember a perceived clip."""

    def weave(self, work: Watching, final: bool) -> None:
        """Bring the event graph up to date."""


def worth_retrying(error: BaseException) -> bool:
    """Whether the same step may succeed a moment later: a model or the database was away."""
    return isinstance(error, ModelError | DatabaseError) and not isinstance(
        error, ClipLeft | ReplayMiss
    )


def watch(work: Watching, steps: Steps, listener: Listener) -> Watched:
    """Every clip that is not in memory yet, in order; perceiving runs one clip ahead.

    A clip whose model fails again and again is left for the next run, and the rest goes on.

    Raises:
        DatabaseError: the database is gone; the same command goes on later.
    """
    pending = work.begin()
    total = work.state().clips
    listener.opened(work.video, total, total - len(pending))
    for remark in work.remarks:
        listener.said(remark)
    ahead = steps.perceive(work, pending[0]) if pending else None
    for clip, following in zip_longest(pending, pending[1:]):
        error = failure_of(ahead)
        ahead = steps.perceive(work, following) if following is not None else None
        error = error or remember_error(work, steps, clip)
        if error is None:
            listener.remembered(work.video, clip)
        else:
            work.give_up(clip, error)
            listener.failed(work.video, clip, error)
        if (clip + 1) % work.desk.settings.memory.patch_every == 0:
            steps.weave(work, final=False)
    steps.weave(work, final=work.seen_to_the_end())
    return work.finish()


def failure_of(step: Waitable | None) -> ModelError | None:
    """Waits for a step; the model's failure that it ended with, if any."""
    try:
        if step is not None:
            step.result()
    except ModelError as error:
        return error
    return None


def remember_error(work: Watching, steps: Steps, clip: int) -> ModelError | None:
    """Remembers a clip; the failure because of which it is left, if any."""
    try:
        steps.remember(work, clip)
    except ModelError as error:
        return error
    return None


class PlainSteps:
    """Plain calls, with the retries and the order of the flow, and no server."""

    def __init__(self) -> None:
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="perceive")

    def perceive(self, work: Watching, clip: int) -> Waitable:
        """Perceive in a thread."""
        return self._beside.submit(patiently, work.perceive, clip)

    def remember(self, work: Watching, clip: int) -> None:
        """Remember here and now."""
        patiently(work.remember, clip)

    def weave(self, work: Watching, final: bool) -> None:
        """Weave here and now."""
        patiently(lambda: work.weave(final=final))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Whoever pressed Ctrl-C does not wait for a clip that will be perceived again anyway.
        self._beside.shutdown(wait=kind is not KeyboardInterrupt, cancel_futures=True)


def patiently(step: Callable[..., None], *args: Any) -> None:
    """Runs ``step``, and again after each back-off while its error is worth retrying."""
    for delay in BACK_OFF_S:
        try:
            return step(*args)
        except (ModelError, DatabaseError) as error:
            if not worth_retrying(error):
                raise
            time.sleep(delay)
    return step(*args)
