"""``python -m benchmarks.failing_servers``: what is kept when a model's server fails.

A film of four clips is watched with a language model on a server that misbehaves, on a clock that
does not wait, and then watched again with the server in order. For each server it prints what was
stored, what was said, how long the run waited, and what the next run did.
"""

from __future__ import annotations

import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.grown import scratch_store
from domain.errors import HomerError
from domain.media import Video
from flows import clip_memory
from flows.watching import watch_files
from library.memory import show_video
from memory.writers.llm_clip import LlmClipWriter
from memory.writers.local_event import LocalEventWriter
from memory.writers.port import Writers
from models import endpoint, retries
from models.specs import ChatSpec
from perception import perceive_clip
from perception.perceive_clip import Perceived
from store.database import Store
from store.queries.clips import next_clips
from tests.integration.test_concurrent_writing import scene, workspace_of
from tests.support.media import make_video
from tests.support.memory import SETTINGS, said
from tests.support.openai_server import EVERYTHING, Answer, OpenAIServer

CLIPS, BROKEN = 4, 2
"""How many clips there are, and at which of them some servers fail."""
OUTAGE_S = 600.0


class Clock:
    """A clock on which only waiting takes time."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """Return the seconds since the run began."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


@dataclass
class Server:
    """A server by its name; ``answer`` is given the text of a request, its number, the time."""

    name: str
    answer: Callable[[dict[str, Any], int, float], Answer | None]
    supports: frozenset[str] = EVERYTHING


@dataclass
class Run:
    """What was stored and said.

    ``words``, ``seen`` and ``written`` are how many lines of each clip are words, local ones on
    what is in view, and the model's; ``left`` is why clips are not as they should be, ``again``
    are those that the next run is to try, ``in_segments`` those in the event graph.
    """

    said: list[str] = field(default_factory=list)
    words: list[int] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    left: dict[int, str] = field(default_factory=dict)
    again: list[int] = field(default_factory=list)
    in_segments: list[int] = field(default_factory=list)
    calls: int = 0
    waited_s: float = 0.0

    def opened(self, video: Video, clips: int, done: int) -> None:
        """Ignore it."""

    def remembered(self, video: Video, clip: int) -> None:
        """Ignore it: the store has the clip."""

    def failed(self, _video: Video, clip: int, error: Exception) -> None:
        """Note what is shown."""
        self.said.append(f"clip {clip} failed: {error}")


def _error(message: str, status: int, **more: Any) -> Answer:
    headers = more.pop("headers", {})
    return Answer({"error": {"message": message, "code": status} | more}, status, headers=headers)


def _clip_of(request: dict[str, Any]) -> int | None:
    """Return the clip that a request shows; None for a probe."""
    shown = str(request["messages"])
    # A clip's page begins with the last words before it.
    return next((n for n in reversed(range(CLIPS)) if f"Sentence number {n}." in shown), None)


def _at_first(times: int, answer: Answer) -> Callable[..., Answer | None]:
    return lambda _request, number, _now: answer if number < times else None


def _at_clip(answer: Answer) -> Callable[..., Answer | None]:
    return lambda request, _number, _now: answer if _clip_of(request) == BROKEN else None


def _until(seconds: float, answer: Answer) -> Callable[..., Answer | None]:
    return lambda _request, number, now: answer if number and now < seconds else None


def _one_after_another(request: dict[str, Any], _number: int, _now: float) -> Answer | None:
    roles = [message["role"] for message in request["messages"]]
    same = any(a == b for a, b in pairwise(roles))
    return _error("roles must alternate user/assistant", 400) if same else None


RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}
WRONG_KEY = {"reason": "API_KEY_INVALID", "domain": "googleapis.com"}
SERVERS = (
    Server("429, Retry-After", _at_first(2, _error("busy", 429, headers={"Retry-After": "20"}))),
    Server("429, RetryInfo", _at_first(2, _error("quota", 429, details=[RETRY_INFO]))),
    Server("429, no wish", _at_first(5, _error("busy", 429))),
    Server("500 at one clip", _at_clip(_error("internal", 500))),
    Server("drops", _at_first(3, Answer(drop=True))),
    Server("out ten minutes", _until(OUTAGE_S, Answer(drop=True))),
    Server("out for hours", _until(9e9, _error("overloaded", 503))),
    Server("wrong key", _at_first(9, _error("API key not valid", 400, details=[WRONG_KEY]))),
    Server("wrong model", _at_first(9, _error("no such model", 404))),
    Server("no credit", _at_first(9, _error("too many", 429, type="insufficient_quota"))),
    Server("refusal", _at_clip(Answer("", finish="content_filter"))),
    Server("cut replies", _at_clip(Answer('{"lines": [{"kind": "epi', finish="length"))),
    Server("prose", _at_first(1, Answer("Certainly! In this clip somebody waves."))),
    Server("two turns refused", _one_after_another, frozenset({"usage", "images"})),
)


def play(server: Server, store: Store, film: Path) -> tuple[Run, Run]:
    """Watch ``film`` with a failing server, and again with one in order."""
    return _run(server, store, film), _run(Server("in order", lambda *_: None), store, film)


def _run(server: Server, store: Store, film: Path) -> Run:
    run, clock = Run(), Clock()
    numbers = iter(range(10_000))

    def answer(request: dict[str, Any]) -> Answer:
        failure = server.answer(request, next(numbers), clock.now)
        line = {"kind": "episodic", "text": f"Somebody waves in clip {_clip_of(request)}."}
        return failure or Answer({"lines": [line]})

    with OpenAIServer(answer, server.supports) as local, _watching(local.base_url, clock) as spec:
        workspace = workspace_of(store, store.home, 1)
        profile = workspace.profile.model_copy(update={"chat": {"writer": spec}})
        tools: Any = workspace.toolbox
        tools.profile = profile
        chat = partial(tools.chat, "writer", live=True)
        writers = Writers(LlmClipWriter(chat), LocalEventWriter(SETTINGS.memory))
        with patch.object(clip_memory, "make_writers", lambda *_: writers):
            try:
                for outcome in watch_files(workspace, [film], _Listening(run), direct=True):
                    run.said += [str(outcome.error)] if outcome.error else []
            except HomerError as error:
                run.said.append(f"stopped: {error}")
    run.calls, run.waited_s = len(local.requests), clock.now
    details = show_video(store, film.stem)
    for clip in details.clips:
        sources = [line.source for line in clip.lines]
        run.words.append(sources.count("caption"))
        run.seen.append(sources.count("seen"))
        run.written.append(sources.count("model"))
        if clip.error or clip.state != "done":
            run.left[clip.index] = clip.error or clip.state
    run.in_segments = sorted({clip for one in details.segments for clip in one.clips})
    with store.begin() as session:
        run.again = [clip.index for clip in next_clips(session, details.video.id)]
    return run


class _Listening:
    """Passes on what a run says."""

    def __init__(self, run: Run) -> None:
        self.opened, self.remembered, self.failed = run.opened, run.remembered, run.failed
        self.said = run.said.append


@contextmanager
def _watching(url: str, clock: Clock) -> Iterator[ChatSpec]:
    """Yield the model on a server, with scenes to perceive and a clock that does not wait."""

    def seen(raw: Any, *_: object) -> Perceived:
        found, clip = scene(raw.clip.index), raw.clip
        words = said(clip.span.start_ms / 1_000, f"Sentence number {clip.index}.", seconds=1)
        return Perceived(found.model_copy(update={"clip": clip, "captions": (words,)}), {})

    with ExitStack() as patched:
        patched.enter_context(patch.object(perceive_clip, "perceive", seen))
        patched.enter_context(patch.object(retries, "time", clock))
        patched.enter_context(patch.object(endpoint, "time", clock))
        yield ChatSpec(model="openai:atlas", base_url=url, key="", timeout_s=20.0)


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        for number, server in enumerate(SERVERS):
            film = make_video(Path(folder) / f"film{number}.mp4", seconds=2.0 * CLIPS, audio=None)
            with scratch_store() as store:
                first, second = play(server, store, film)
            _show(server.name, first, second)


def _show(name: str, first: Run, second: Run) -> None:
    print(f"\n{name}: {first.calls} requests, waited {first.waited_s:.0f} s")
    for title, run in (("stored", first), ("then", second)):
        counts = f"lines of words {run.words}, in view {run.seen}, of the model {run.written}"
        _say(title, counts + "".join(f"; clip {n}: {why}" for n, why in run.left.items()))
        tried = ", ".join(map(str, run.again)) or "none"
        _say("", f"in the event graph: {run.in_segments}; to be tried again: {tried}")
    for one in first.said or ["nothing"]:
        _say("said", one)


def _say(title: str, text: str) -> None:
    print(textwrap.fill(text, 110, initial_indent=f"  {title:7}", subsequent_indent=" " * 9))


if __name__ == "__main__":
    main()
