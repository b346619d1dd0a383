"""``python -m benchmarks kept_frames``: what keepers of frames and the documents of events cost us.

Counted is the processor time of this process: of a frame that is added where five thousand are
kept, with its rows; of both keepers for a second of a stream; and of six hundred events that are
documented with a scripted model, without the text encoder. The reservoir is measured too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.stats import chi2, chisquare

from agent.builder import BuildModels, Reply
from benchmarks.grown import scratch_store
from benchmarks.lines import Line, Taken, costs
from benchmarks.macro_event import CountedEncoder
from domain.built import BuiltFrame, BuiltMemory, WatchedClip
from domain.media import Clip, TimedImage, Video
from domain.memories import Memory, MemoryKind, MemorySource
from domain.time import TimeSpan
from memory.kept_frames import ClipKeeping, VideoKeepers
from models.messages import Message
from models.sentences import SentenceParser
from people.model_transactions import run_with_models
from perception.frame_keeper import FrameKeeper, frames_for
from perception.images import Blobs
from store.database import Store, remove_unused_blobs
from store.home import Home
from store.queries.percepts import add_blobs
from store.tables.schema import FrameRow, KeeperRow
from strategies.eventmem.event_memory import EventFrames, ShortTermMemory, event_keeper
from strategies.eventmem.settings import EventMemorySettings
from strategies.vam.builder import event_builder
from strategies.vam.settings import VisualMemorySettings
from strategies.vam.visual_memory import (
    FrameReason,
    ThinningState,
    TierState,
    VisualState,
    moment_keeper,
)
from tests.support.memory import VIDEO, known_video

KEPT, CLIP_MS, CLIPS = 5_000, 30_000, 8
ADDED_MS, BOTH_MS, DOCUMENTS_S, LINEAR = 20.0, 30.0, 10.0, 2.3
EVENTS, EVENT_MS = 600, 120_000
STREAMS, LENGTH, LEAST_P = 2_000, 96, 0.01
WATCHED = Video(id=VIDEO, title="stream", path=None, duration_ms=0)


def picture(second: int, width: int = 1_280, height: int = 720) -> bytes:
    """Return a JPEG of a scene of eight seconds in which something moves."""
    scene = np.random.default_rng(second // 8)
    small = scene.integers(0, 255, (9, 16, 3), np.uint8)
    image = small.repeat(height // 9, 0).repeat(width // 16, 1)
    moved = np.random.default_rng(second).integers(0, width - 200)
    image = image.copy()
    image[200:400, moved : moved + 200] = 255 - image[200:400, moved : moved + 200]
    blobs = Blobs()
    return blobs[blobs.add(image, 85)]


def sampled(clip: Clip) -> list[TimedImage]:
    """Return a frame a second."""
    times = range(clip.span.start_ms, clip.span.end_ms, 1_000)
    return [TimedImage(time_ms=time_ms, jpeg=picture(time_ms // 1_000)) for time_ms in times]


def clip_of(index: int) -> Clip:
    """Return a clip of thirty seconds."""
    return Clip(index=index, span=TimeSpan.of(index * CLIP_MS, (index + 1) * CLIP_MS))


def lines() -> Iterator[Line]:
    """The costs beside their bars."""
    yield from _both()
    yield from _documents()
    yield from _reservoir()
    with scratch_store() as store:
        yield from _added(store)


def _both() -> Iterator[Line]:
    """The processor time of both keepers for a frame at one a second, decoding included."""
    keepers: list[FrameKeeper] = [
        moment_keeper(VisualMemorySettings()),
        event_keeper(EventMemorySettings()),
    ]
    states: list[Any] = [{}, {}]
    spent: list[float] = []
    for index in range(CLIPS):
        clip = clip_of(index)
        frames = sampled(clip)
        began = time.process_time()
        for number, keeper in enumerate(keepers):
            shown = frames_for(keeper, frames)
            states[number] = keeper.keep(WATCHED, states[number], None, clip, shown).state
        spent.append(1_000 * (time.process_time() - began) / len(frames))
    yield costs(
        "CPU of both keepers, a frame at 1 fps, 720p",
        Taken(tuple(spent)),
        Taken((BOTH_MS,)),
        "bar",
        1.0,
    )


def _added(store: Store) -> Iterator[Line]:
    """The processor time of a frame that is added, with its rows and files."""
    first = 24 * 3_600_000 // CLIP_MS
    known_video(store, first + CLIPS)
    _keep_many(store, first)
    keepers = VideoKeepers(WATCHED, {"moments": moment_keeper(VisualMemorySettings())})
    spent: list[float] = []
    for index in range(first, first + CLIPS):
        clip = clip_of(index)
        frames = [one for one in sampled(clip) if one.time_ms % 2_000 == 0]
        began = time.process_time()
        keeping = ClipKeeping(store, keepers, clip, frames)
        keeping.prepare()
        run_with_models(store, keeping.store)
        remove_unused_blobs(store, keeping.unused)
        spent.append(1_000 * (time.process_time() - began) / len(frames))
    yield costs(
        f"CPU of a frame added, {KEPT} kept",
        Taken(tuple(spent)),
        Taken((ADDED_MS,)),
        "bar",
        1.0,
    )


def _keep_many(store: Store, first: int) -> None:
    """Store so many frames of the day before the clip ``first``, as a keeper would have."""
    jpeg = picture(0)
    end = first * CLIP_MS
    young = range(end - 1_800 * 2_000, end, 2_000)
    old = range(end - 3_600_000 - (KEPT - 1_800) * 20_000, end - 3_600_000, 20_000)
    times = [*old, *young]
    vector = np.zeros(668, np.float32)
    vector[0] = 1
    state = VisualState(
        thinning=ThinningState(
            tiers=(TierState(frames=tuple(young)), TierState(frames=tuple(old)), TierState())
        )
    )
    with store.begin() as session:
        blob = store.blobs.put(jpeg)
        add_blobs(session, VIDEO, {blob: len(jpeg)})
        for at in times:
            row = {"video_id": VIDEO, "builder": "moments", "clip": max(0, at // CLIP_MS)}
            row |= {"time_ms": max(0, at), "blob": blob, "width": 1_280, "height": 720}
            more: dict[str, Any] = {"tier": 0, "reason": "moment", "image_encoder": "likeness"}
            session.add(FrameRow(**row, **more, embedding=vector.tolist()))
        kept = {"video_id": VIDEO, "builder": "moments", "version": 1}
        went = {"through_clip": first - 1, "state": state.model_dump(mode="json")}
        session.add(KeeperRow(**kept, **went))


class ScriptedModel:
    """Writes one line of each event."""

    sees = False

    def ask(
        self,
        purpose: str,
        messages: Sequence[Message],
        schema: type[Reply],
        *,
        temperature: float = 0.0,
        images: Sequence[bytes] = (),
        labels: Sequence[str] = (),
    ) -> Reply:
        """Return the reply."""
        del purpose, messages, temperature, images, labels
        return schema.model_validate({"lines": ["Somebody does something."]})


def _watched(events: int) -> Iterator[WatchedClip]:
    """Yield clips with lines and, where an event begins, its frame."""
    for index in range(events * EVENT_MS // CLIP_MS):
        span = clip_of(index).span
        texts = [_line(index, number, span.start_ms + number * 3_000) for number in range(8)]
        begins = span.start_ms % EVENT_MS == 0
        frame = BuiltFrame(index + 1, "moments", index, span.start_ms, "", 0, FrameReason.EVENT)
        yield WatchedClip(index, span, tuple(texts), (frame,) if begins else ())


def _line(clip: int, number: int, start_ms: int) -> Memory:
    return Memory(
        id=clip * 8 + number + 1,
        video=VIDEO,
        clip=clip,
        kind=MemoryKind.EPISODIC,
        text=f"Somebody says sentence {clip % 991} of kind {number}",
        span=TimeSpan.of(start_ms, start_ms + 2_000),
        source=MemorySource.SAID,
    )


def _documents() -> Iterator[Line]:
    """The processor time of documenting events, and what twice as many take."""
    half, whole = _documented(EVENTS // 2), _documented(EVENTS)
    taken = Taken((whole,), "s")
    yield costs(f"CPU of {EVENTS} events documented", taken, Taken((DOCUMENTS_S,), "s"), "bar", 1.0)
    yield costs(f"CPU of {EVENTS} events documented", taken, Taken((half,), "s"), "half", LINEAR)


def _documented(events: int) -> float:
    """Return the seconds of processor time of so many events, without the text encoder."""
    encoder, settings = CountedEncoder(), VisualMemorySettings()
    parser = SentenceParser(Home.default().weights)
    models = BuildModels(encoder.embed, parser, ScriptedModel())
    build = event_builder(settings).begin(WATCHED, BuiltMemory(), (), models)
    clips = list(_watched(events))
    size = settings.step_ms // CLIP_MS
    found = 0
    began = time.process_time()
    for start in range(0, len(clips), size):
        step = clips[start : start + size]
        change = build.step(step, ended=start + size >= len(clips))
        found += sum(node.level == "event" for node in change.nodes)
    spent = time.process_time() - began - encoder.seconds
    if found != events:
        raise AssertionError(f"{found} documents of {events} events")
    return spent


def _reservoir() -> Iterator[Line]:
    """How likely the frames that streams keep are from uniform samples, and after a kill."""
    settings = EventMemorySettings()
    counts = np.zeros(LENGTH)
    for stream in range(STREAMS):
        memory = ShortTermMemory(settings, f"stream {stream}")
        resumed: tuple[EventFrames, ...] = ()
        for number in range(LENGTH):
            if number == LENGTH // 2:
                resumed = memory.events
            memory.add(number * 1_000, begins_event=number == 0)
        again = ShortTermMemory(settings, f"stream {stream}", resumed)
        for number in range(LENGTH // 2, LENGTH):
            again.add(number * 1_000, begins_event=False)
        if again.events != memory.events:
            raise AssertionError(f"stream {stream} keeps other frames after a kill")
        for time_ms in memory.events[0].frames:
            counts[time_ms // 1_000] += 1
    # Frames of one sample exclude each other, so the statistic is smaller by this factor.
    factor = (LENGTH - 1) / (LENGTH - settings.frames)
    statistic = float(chisquare(counts).statistic) * factor
    limit = float(chi2.ppf(1 - LEAST_P, LENGTH - 1))
    yield costs(
        f"chi-square of {STREAMS} streams' reservoirs",
        Taken((statistic,), ""),
        Taken((limit,), ""),
        f"limit at p = {LEAST_P}",
        1.0,
    )
