"""What each clip took, and how often it was tried, is on record and shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from domain.calls import CallRecord, CallTotals
from domain.errors import ModelError
from domain.media import Percept
from domain.memories import ClipMemories
from domain.watching import Watched
from flows import clip_memory
from flows.watching import SilentListener, watch_files
from flows.workspace import Workspace
from library.memory import show_video
from memory.writers.local_clip import LocalClipWriter
from memory.writers.local_event import LocalEventWriter
from memory.writers.port import ClipContext, Writers
from people.characters import ClipPeople
from perception import perceive_clip
from perception.perceive_clip import Perceived
from store.database import Store
from store.home import Home
from tests.support.asking import WordToolbox
from tests.support.media import make_video
from tests.support.memory import SETTINGS


class Writer(LocalClipWriter):
    """Pays for two calls a clip; breaks on clip 1 while it is told to."""

    wants_context = True

    def __init__(self) -> None:
        super().__init__()
        self.broken = True

    def write(self, percept: Percept, people: ClipPeople, context: ClipContext) -> ClipMemories:
        assert context.sink is not None
        for number in range(2):
            wrong = "busy" if self.broken and percept.clip.index == 1 else None
            context.sink(call(f"{percept.clip.index}.{number}", wrong))
        if self.broken and percept.clip.index == 1:
            raise ModelError("the model is away")
        shown = {"budget": 60_000, "left_out": ("1 of 3 keyframes",)}
        return super().write(percept, people, context).model_copy(update=shown)


def call(request: str, error: str | None) -> CallRecord:
    return CallRecord(request, "clip", "p", "m", (), None, error, 100, 10, 0.25, 7)


@pytest.fixture
def workspace(home: Home, store: Store, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Clips of two seconds in which nothing is perceived, and a writer that costs."""
    tools = WordToolbox()
    watch = SETTINGS.watch.model_copy(update={"clip_ms": 2000, "sample_fps": 1.0})
    settings = SETTINGS.model_copy(update={"watch": watch})
    profile = tools.profile.model_copy(update={"settings": settings})
    writers = Writers(Writer(), LocalEventWriter(settings.memory))
    monkeypatch.setattr(clip_memory, "make_writers", lambda *_: writers)
    monkeypatch.setattr(
        perceive_clip, "perceive", lambda raw, *_: Perceived(Percept(clip=raw.clip), {})
    )
    monkeypatch.setattr("flows.executors.BACK_OFF_S", ())
    # Nothing is in the percepts, and is written all the same.
    monkeypatch.setattr("memory.write_clip._is_empty", lambda _: False)
    found = Workspace(home, store, profile, tools)
    found.__dict__["writer"] = writers.clip
    return found


def ingest(workspace: Workspace, path: Path, **more: Any) -> Watched:
    (outcome,) = watch_files(workspace, [path], SilentListener(), direct=True, **more)
    return outcome


def test_what_each_clip_took_is_shown(workspace: Workspace, tmp_path: Path) -> None:
    path = make_video(tmp_path / "talk.mp4", seconds=5.0, audio=None)
    for attempts in (1, 2, 3):
        assert ingest(workspace, path).exit_code == ModelError.exit_code
        portrait = show_video(workspace.store, "talk")
        done, failed, _ = portrait.clips
        assert (failed.unwritten, failed.error) == (True, "the model is away")
        assert (failed.attempts, failed.given_up) == (attempts, attempts == 3)
        calls = (failed.cost.calls, failed.cost.failed, failed.cost.tokens_in)
        assert calls == (2 * attempts, 2 * attempts, 200 * attempts)
        assert (done.attempts, done.cost.calls, done.cost.cost_usd) == (0, 2, 0.5)
        assert (done.budget, done.left_out) == (60_000, ("1 of 3 keyframes",))
        assert (failed.budget, failed.left_out) == (None, ())
        assert portrait.cost == sum((one.cost for one in portrait.clips), CallTotals())
    # Failed for good: it is left alone until it is asked for.
    ingest(workspace, path)
    assert show_video(workspace.store, "talk").clips[1].attempts == 3
    workspace.__dict__["writer"].broken = False
    assert ingest(workspace, path, again=True).exit_code == 0
    clip = show_video(workspace.store, "talk").clips[1]
    assert (clip.state, clip.error, clip.given_up) == ("done", None, False)
    assert (clip.cost.calls, clip.cost.failed) == (8, 6)
