"""Clips of videos with topics, for builders."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import count

from domain.built import WatchedClip
from domain.media import Video
from domain.memories import Memory, MemoryKind, MemorySource
from domain.time import TimeSpan

VIDEO = Video(id="ab" * 8, title="a day", path=None, duration_ms=0)
CLIP_MS = 30_000
TOPICS = (
    ("Ann washes the red car", "The car stands in the garage", "Ann takes the hose with Bob"),
    ("Bob cooks noodles in the kitchen", "Ann puts the pot on the stove", "The soup boils"),
    ("Bob plays the guitar", "Ann sings a song", "The song is about the sea"),
    ("Ann plants roses in the garden", "Bob carries the shovel", "The roses are red"),
)


def watched_day(
    clips: int, seed: int = 0, topic_clips: int = 9, lines: int = 3
) -> list[WatchedClip]:
    """Return clips whose topic changes every few clips: said, described, shown and seen."""
    rng = random.Random(seed)
    ids = count(1)
    return [
        WatchedClip(number, _span(number), tuple(_lines(number, rng, ids, topic_clips, lines)))
        for number in range(clips)
    ]


def _span(number: int) -> TimeSpan:
    return TimeSpan.of(number * CLIP_MS, (number + 1) * CLIP_MS)


def _lines(
    number: int, rng: random.Random, ids: count[int], topic_clips: int, lines: int
) -> list[Memory]:
    topic = TOPICS[number // topic_clips % len(TOPICS)]
    start = number * CLIP_MS
    made = [
        _line(next(ids), number, start + at * 4_000, 3_500, text, *_source(at))
        for at, text in enumerate(rng.choice(topic) for _ in range(lines))
    ]
    shown = f"TITLE {number // 4}"
    made.append(_line(next(ids), number, start + 20_000, 1_000, shown, MemorySource.READ))
    seen = "<face_0> and <face_1> are on screen together."
    tags = ("<face_0>", "<face_1>")
    made.append(_line(next(ids), number, start, 9_000, seen, MemorySource.SEEN, tags=tags))
    things = "Seen: 2 people, a cup, a laptop."
    made.append(_line(next(ids), number, start + 5_000, 1_000, things, MemorySource.OBJECTS))
    return made


def _source(at: int) -> tuple[MemorySource, str | None]:
    return (MemorySource.CAPTION, None) if at % 2 else (MemorySource.SAID, "<voice_0>")


def _line(
    number: int,
    clip: int,
    start: int,
    length: int,
    text: str,
    source: MemorySource,
    speaker: str | None = None,
    tags: Sequence[str] = (),
) -> Memory:
    return Memory(
        id=number,
        video=VIDEO.id,
        clip=clip,
        kind=MemoryKind.EPISODIC,
        text=text,
        span=TimeSpan.of(start, start + length),
        source=source,
        speaker=speaker,
        tags=tuple(tags),
    )
