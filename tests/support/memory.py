"""What the tests of memory share: percepts made by hand, and models that need no weights."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from domain.media import (
    Box,
    Clip,
    ClipState,
    Group,
    IdentityKind,
    Keyframe,
    Percept,
    ScreenText,
    Sighting,
    Utterance,
    Video,
)
from domain.settings import Settings
from domain.time import TimeSpan
from memory.drafts import WrittenDraft
from memory.write_clip import ClipPercept, ClipWriter, PerceptWithoutBlobs
from memory.writers.local_clip import LocalClipWriter
from memory.writers.local_event import LocalEventWriter
from memory.writers.port import Writers
from models.ports import MemoryModels
from models.profile import load_profile
from store.database import Store
from store.queries.videos import add_video

VIDEO = "0123456789abcdef"
SETTINGS, Perceived = Settings(), PerceptWithoutBlobs


class WordVectors:
    """Text vectors by the words in a text: texts that share words are alike."""

    name = "words"
    dimensions = 64
    languages: tuple[str, ...] = ()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.stack(
            [sum((_word(w) for w in text.lower().split()), np.zeros(64)) + 1e-6 for text in texts]
        )
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


class LongerVectors(WordVectors):
    """Another encoder: the same words, in a space of its own with more dimensions."""

    name, dimensions = "longer", 80

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        known = super().embed(texts)
        turned = np.concatenate([known[:, 16:32], known[:, ::-1]], axis=1)
        return np.asarray(turned / np.linalg.norm(turned, axis=1, keepdims=True), np.float32)


@cache
def _word(word: str) -> NDArray[np.float64]:
    digest = hashlib.sha256(word.strip(".,:;!?\"'").encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big")).standard_normal(64)


@dataclass
class Threshold:
    """A face or speaker model as memory sees it."""

    same_person: float = 0.5
    same_speaker: float = 0.5


@dataclass
class Tools:
    """The models that memory needs."""

    text: WordVectors = field(default_factory=WordVectors)
    faces: Threshold = field(default_factory=Threshold)
    speaker: Threshold = field(default_factory=Threshold)


def local_writers() -> Writers:
    return Writers(LocalClipWriter(), LocalEventWriter(load_profile("local").settings.memory))


def span(start_s: float, end_s: float) -> TimeSpan:
    return TimeSpan.of(round(start_s * 1000), round(end_s * 1000))


def clip(index: int) -> Clip:
    return Clip(index=index, span=span(30 * index, 30 * index + 30))


def said(
    start_s: float, text: str, voice: int | None = None, seconds: float = 3, **more: object
) -> Utterance:
    return Utterance(span=span(start_s, start_s + seconds), text=text, voice=voice, **more)


def direction(number: int, size: int = 64) -> tuple[float, ...]:
    """A unit vector; different numbers are far apart."""
    vector = np.random.default_rng(number).standard_normal(size)
    return tuple((vector / np.linalg.norm(vector)).tolist())


def group(
    kind: IdentityKind, number: int, who: int, *times: tuple[float, float], quality: float = 30.0
) -> Group:
    """A group of sightings of person ``who`` at ``times`` (seconds)."""
    box = Box(x0=0, y0=0, x1=10, y1=10) if kind == IdentityKind.FACE else None
    sightings = [
        Sighting(span=span(*time), box=box, score=0.9, quality=quality, vector=direction(who))
        for time in times
    ]
    return Group(kind=kind, number=number, sightings=tuple(sightings))


def face(number: int, who: int, *times: tuple[float, float]) -> Group:
    return group(IdentityKind.FACE, number, who, *times)


def voice(number: int, who: int, *times: tuple[float, float]) -> Group:
    return group(IdentityKind.VOICE, number, 1000 + who, *times)


def text_at(time_s: float, text: str, row: int = 0, score: float = 0.95) -> ScreenText:
    """A line of text on screen; ``row`` counts lines from the top."""
    box = Box(x0=10, y0=20 + 30 * row, x1=200, y1=44 + 30 * row)
    return ScreenText(time_ms=round(time_s * 1000), text=text, score=score, box=box)


def keyframe(time_s: float, blob: str = "0" * 64) -> Keyframe:
    return Keyframe(
        time_ms=round(time_s * 1000),
        shot=0,
        sharpness=1.0,
        entropy=1.0,
        quality=1.3,
        width=64,
        height=36,
        blob=blob,
    )


def percept(index: int, **more: object) -> Percept:
    return Percept(clip=clip(index), **more)


def known_video(store: Store, clips: int, video: str = VIDEO) -> str:
    """A video of ``clips`` clips, all still to be watched."""
    row = Video(id=video, title=f"video {video[:4]}", path=None, duration_ms=30_000 * clips)
    with store.begin() as session:
        add_video(session, row, [clip(n) for n in range(clips)], {})
    return video


def remember(
    store: Store,
    video: str,
    seen: ClipPercept,
    writers: Writers,
    models: MemoryModels,
    settings: Settings,
    draft: WrittenDraft | None = None,
) -> ClipState:
    return ClipWriter(store, video, writers, models, settings).remember(seen, draft)


def memorise(
    store: Store, *percepts: Percept, video: str = VIDEO, blobs: Mapping[str, bytes] | None = None
) -> None:
    """Remember percepts by rules, and see that each is done."""
    for one in percepts:
        seen = Perceived(one, blobs or {})
        assert remember(store, video, seen, local_writers(), Tools(), SETTINGS) == ClipState.DONE


@contextmanager
def undone(store: Store) -> Iterator[Session]:
    with store.begin() as session:
        yield session
        session.rollback()
