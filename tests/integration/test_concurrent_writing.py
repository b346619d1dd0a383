"""A language model writes two clips at once, and the memory is as if one had come after the other.

No transaction is open while it does; what changed meanwhile is seen by the one that stores.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from domain.calls import CallRecord
from domain.errors import ModelError
from domain.media import ClipState, Percept
from domain.memories import ClipMemories, MemoryDraft, MemoryKind, MemorySource
from domain.people import IdentityStatement
from flows import clip_memory, ingest_video
from flows.watching import SilentListener, watch_files
from flows.workspace import Workspace
from library.memory import dump_lines, show_video
from memory.drafts import WrittenDraft
from memory.patches import WrittenPatch
from memory.write_clip import ClipWriter
from memory.writers.local_event import LocalEventWriter
from memory.writers.port import ClipContext, EventWindow, Writers
from people.across_videos import rename
from people.characters import ClipPeople
from perception import perceive_clip
from perception.perceive_clip import Perceived as Seen
from store.database import Store, open_store
from store.home import Home
from store.tables.schema import ModelCallRow
from tests.support.asking import WordToolbox
from tests.support.event_graphs import update_event_graph
from tests.support.media import make_video
from tests.support.memory import (
    SETTINGS,
    VIDEO,
    Perceived,
    Tools,
    face,
    known_video,
    local_writers,
    memorise,
    percept,
    remember,
    said,
    voice,
)
from tests.support.transaction_guard import refuse_in_transaction

CLIPS = 6


def scene(n: int) -> Percept:
    """Somebody known and somebody new; whose voice it is shows by itself in no clip."""
    start = 30 * n
    return percept(
        n,
        faces=(face(0, 0, (start, start + 20)), face(1, 1 + n // 2, (start, start + 20))),
        voices=(voice(0, n % 2, (start + 25, start + 28)),),
        utterances=(said(start + 25, f"Sentence number {n}.", voice=0),),
    )


@dataclass
class Model:
    """Writes down all it is shown; says how many of its calls were under way at once."""

    name: str = "model"
    source: str = "model"
    wants_context: bool = True
    together: int = 1
    most: int = 0
    shown: list[str] = field(default_factory=list)
    broken: set[int] = field(default_factory=set)
    _now: int = 0
    _lock: Any = field(default_factory=lambda: threading.Condition())

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        """Each call goes on until as many as are expected were under way."""
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
            self._lock.notify_all()
            self._lock.wait_for(lambda: self.most >= self.together, timeout=10)
        try:
            yield
        finally:
            with self._lock:
                self._now -= 1

    @refuse_in_transaction
    def write(self, percept: Percept, people: ClipPeople, context: ClipContext) -> ClipMemories:
        clip = percept.clip.index
        with self._under_way():
            known = [f"{one.tag} {one.name} {one.faces} {one.voices}" for one in people.characters]
            facts = [people.replace_tags(fact.text) for fact in context.facts]
            output = f"clip {clip}: {sorted(people.identities())} {known} {facts[-2:]}"
            self.shown.append(output)
        if clip in self.broken:
            raise ModelError("the model is away")
        return memories(percept, people, f"Fact {clip}, {len(facts)} known, {len(known)} met.")


def memories(percept: Percept, people: ClipPeople, fact: str) -> ClipMemories:
    clip, span = percept.clip.index, percept.clip.span
    tag = next(iter(people.characters)).tag
    lines = (f"{tag} does thing {clip}.", f"{tag}: {fact}")
    kinds = (MemoryKind.EPISODIC, MemoryKind.PLOT)
    drafts = tuple(
        MemoryDraft(kind=kind, text=line, span=span, source=MemorySource.MODEL, tags=(tag,))
        for kind, line in zip(kinds, lines, strict=True)
    )
    stated = IdentityStatement(
        face=people.faces[0].number,
        voice=people.voices[0].number,
        clip=clip,
        support=9,
        reason="lips",
    )
    voiced = people.voices[0].tag
    return ClipMemories(
        drafts=drafts, statements=(stated,), names=((voiced, f"Name{clip % 2}"),), budget=9
    )


def workspace_of(store: Store, home: Home, at_once: int) -> Workspace:
    tools = WordToolbox()
    watch = SETTINGS.watch.model_copy(update={"clip_ms": 2000, "sample_fps": 1.0})
    memory = SETTINGS.memory.model_copy(update={"clips_at_once": at_once, "patch_every": 3})
    settings = SETTINGS.model_copy(update={"watch": watch, "memory": memory})
    profile = tools.profile.model_copy(update={"settings": settings})
    tools.__dict__["faces"] = tools.__dict__["speaker"] = Tools().faces
    return Workspace(home, store, profile, tools)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return make_video(tmp_path / "talk.mp4", seconds=2.0 * CLIPS, audio=None)


@pytest.fixture
def watched(
    home: Home, make_database: Callable[[], str], recording: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[str]]:
    """Watches the film in a new library; returns its dump."""

    def seen(raw: Any, *_: object) -> Seen:
        return Seen(scene(raw.clip.index).model_copy(update={"clip": raw.clip}), {})

    def run(model: Model, at_once: int, runs: int = 1) -> list[str]:
        writers = Writers(model, LocalEventWriter(SETTINGS.memory))
        monkeypatch.setattr(clip_memory, "make_writers", lambda *_: writers)
        monkeypatch.setattr(perceive_clip, "perceive", seen)
        monkeypatch.setattr("flows.executors.BACK_OFF_S", ())
        with open_store(home, make_database()) as store:
            for _ in range(runs):
                workspace = workspace_of(store, home, at_once)
                (output,) = watch_files(workspace, [recording], SilentListener(), direct=True)
                assert not output.error or model.broken, output
                model.broken.clear()
            return list(dump_lines(store, "talk"))

    return run


def test_two_clips_written_at_once_have_the_bytes_of_one(watched: Callable[..., list[str]]) -> None:
    alone, both = Model(), Model(together=2)
    one, two = watched(alone, 1), watched(both, 2)
    assert (alone.most, both.most) == (1, 2)
    assert sorted(alone.shown) == sorted(both.shown)
    assert any("Name" in output for output in both.shown)
    assert one == two


@pytest.mark.full
def test_a_clip_that_fails_beside_another_is_left_over(watched: Callable[..., list[str]]) -> None:
    """As it is where one is written after the other; the clip beside it is not lost."""
    alone, both = Model(broken={2}), Model(together=2, broken={2})
    assert watched(alone, 1, runs=2) == watched(both, 2, runs=2)
    assert [output.split(":")[0] for output in sorted(both.shown)].count("clip 2") == 2


def test_the_model_may_be_asked_for_no_more_than_its_profile_allows(
    store: Store, home: Home, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = workspace_of(store, home, 2)
    monkeypatch.setattr(
        clip_memory, "make_writers", lambda *_: Writers(Model(), LocalEventWriter(SETTINGS.memory))
    )
    with ingest_video.open_video(workspace, recording) as work:
        assert work.at_once == 2
    monkeypatch.setattr(clip_memory, "make_writers", lambda *_: local_writers())
    with ingest_video.open_video(workspace, recording) as work:
        assert work.at_once == 1


def lock_is_free(store: Store) -> bool:
    """Whether another connection could write to the video at this moment."""
    key = int.from_bytes(bytes.fromhex(VIDEO)[:8], "big", signed=True)
    with store.begin() as session:
        return bool(session.scalar(text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": key}))


def test_nobody_waits_for_a_clip_or_a_patch_that_a_model_writes(store: Store) -> None:
    known_video(store, 1)
    free: list[bool] = []

    class Writer(Model):
        def write(self, percept: Percept, people: ClipPeople, context: ClipContext) -> ClipMemories:
            free.append(lock_is_free(store))
            return memories(percept, people, "Fact.")

    class Events(LocalEventWriter):
        def patch(self, window: EventWindow) -> WrittenPatch:
            free.append(lock_is_free(store))
            return super().patch(window)

    writers = Writers(Writer(), Events(SETTINGS.memory))
    assert remember(store, VIDEO, Perceived(scene(0)), writers, Tools(), SETTINGS) == "done"
    assert update_event_graph(store, VIDEO, writers, Tools(), SETTINGS, is_final=True) == 1
    assert free == [True, True]


def test_a_clip_is_written_anew_where_what_its_writer_was_shown_changed(store: Store) -> None:
    """A person is renamed while the model writes: it is asked again, by the new name."""
    known_video(store, 4)
    model = Model()
    writers = Writers(model, local_writers().event)
    for n in range(3):
        remember(store, VIDEO, Perceived(scene(n)), writers, Tools(), SETTINGS)
    coming = [Perceived(scene(3))]
    draft = ClipWriter(store, VIDEO, writers, Tools(), SETTINGS).draft(coming)
    assert isinstance(draft, WrittenDraft)
    rename(store, VIDEO, "0", "Ada")
    model.shown.clear()
    done = remember(store, VIDEO, coming[0], writers, Tools(), SETTINGS, draft)
    assert done == ClipState.DONE
    (output,) = model.shown
    assert "Ada" in output


def test_a_draft_that_still_holds_is_not_paid_for_again(store: Store) -> None:
    known_video(store, 2)
    model = Model()
    writers = Writers(model, local_writers().event)
    coming = [Perceived(scene(n)) for n in range(2)]
    drafts = [
        ClipWriter(store, VIDEO, writers, Tools(), SETTINGS).draft(coming[: n + 1])
        for n in range(2)
    ]
    for one, draft in zip(coming, drafts, strict=True):
        remember(store, VIDEO, one, writers, Tools(), SETTINGS, draft)
    assert [output.split(":")[0] for output in model.shown] == ["clip 0", "clip 1"]


def test_lines_of_a_draft_follow_whoever_joined_another_character(store: Store) -> None:
    """The clip before moved the voice to a face's character: the tag it had is no more."""
    known_video(store, 2)
    first, second = (
        percept(
            n,
            faces=(face(0, 0, (30 * n, 30 * n + 9)),),
            voices=(voice(0, 0, (30 * n, 30 * n + 9)),),
            utterances=(said(30 * n, "Words.", voice=0),),
        )
        for n in range(2)
    )

    class OfVoice(Model):
        def write(self, percept: Percept, people: ClipPeople, context: ClipContext) -> ClipMemories:
            tag = people.character("<voice_0>")
            assert tag is not None
            line = f"{tag.tag} waves."
            span, source = percept.clip.span, MemorySource.MODEL
            draft = MemoryDraft(
                kind=MemoryKind.PLOT, text=line, span=span, source=source, tags=(tag.tag,)
            )
            return ClipMemories(drafts=(draft,), names=((tag.tag, "Zoe"),))

    late = Writers(OfVoice(), local_writers().event)
    both = [Perceived(first), Perceived(second)]
    draft = ClipWriter(store, VIDEO, late, Tools(), SETTINGS).draft(both)
    assert remember(store, VIDEO, both[0], local_writers(), Tools(), SETTINGS) == ClipState.DONE
    assert remember(store, VIDEO, both[1], late, Tools(), SETTINGS, draft) == ClipState.DONE
    shown = show_video(store, VIDEO)
    assert [one.text for one in shown.clips[1].lines if "waves" in one.text] == ["Zoe waves."]
    with store.begin() as session:
        output = session.scalars(text("SELECT text FROM memories WHERE text LIKE '%waves%'")).all()
    assert output == ["<character_0> waves."]


def test_a_patch_is_written_anew_where_its_window_changed_meanwhile(store: Store) -> None:
    known_video(store, 1)
    one = percept(
        0,
        faces=(face(0, 0, (0, 20)),),
        voices=(voice(0, 0, (5, 8)),),
        utterances=(said(5, "Words.", voice=0),),
    )
    memorise(store, one)
    speakers: list[str | None] = []

    class Events(LocalEventWriter):
        def patch(self, window: EventWindow) -> WrittenPatch:
            speakers.extend([line.speaker for line in window.lines if line.text == "Words."])
            if len(speakers) == 1:
                rename(store, VIDEO, "<voice_0>", "Ada")
            return super().patch(window)

    writers = Writers(local_writers().clip, Events(SETTINGS.memory))
    assert update_event_graph(store, VIDEO, writers, Tools(), SETTINGS, is_final=True) == 1
    assert (speakers[-1], len(speakers)) == ("Ada", 2)


def test_calls_of_a_draft_that_was_lost_are_served_to_the_next_run(store: Store) -> None:
    """A run is killed after the model answered for a clip that was not yet to be stored."""
    known_video(store, 2)
    called: list[int] = []

    class Recorded(Model):
        def write(self, percept: Percept, people: ClipPeople, context: ClipContext) -> ClipMemories:
            clip = percept.clip.index
            assert context.sink is not None
            assert context.replay is not None
            if context.replay(f"request {clip}") is None:
                called.append(clip)
                context.sink(call_of(f"request {clip}"))
            return memories(percept, people, "Fact.")

    writers = Writers(Recorded(), local_writers().event)
    coming = [Perceived(scene(n)) for n in range(2)]
    ClipWriter(store, VIDEO, writers, Tools(), SETTINGS).draft(coming)
    for one in coming:
        assert remember(store, VIDEO, one, writers, Tools(), SETTINGS) == ClipState.DONE
    assert called == [1, 0]
    with store.begin() as session:
        assert session.query(ModelCallRow).count() == 2


def call_of(request: str) -> Any:

    return CallRecord(request, "clip", "p", "m", (), {"text": "{}"}, None, 1, 1, 0.0, 1)
