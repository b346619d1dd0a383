"""A small watched video for searching: lines, segments, edges, keyframes and people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from models.ports import ImageEncoder, Reranker, TextEmbedder
from models.sentences import SentenceParser
from perception.images import Blobs, likeness
from retrieval.terms import terms
from store.database import Store
from store.home import Home
from store.queries.characters import add_name
from store.tables import schema

CLIP_MS = 30_000
SIZE = 64


PARSER = SentenceParser(Home.default().weights)
"""With the real pipeline for English, which is loaded once a process."""


class WordEmbedder:
    """Embeds a text as the sum of one fixed random direction a word: equal words, near vectors."""

    name = "words"
    dimensions = SIZE
    languages: tuple[str, ...] = ()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([_embedded(text) for text in texts])


@lru_cache(maxsize=10_000)
def _embedded(text: str) -> NDArray[np.float32]:
    total = np.sum([_direction(word) for word in terms(text) or ["nothing"]], axis=0)
    return np.asarray(total / np.linalg.norm(total), dtype=np.float32)


@cache
def _direction(word: str) -> NDArray[np.float64]:
    return np.random.default_rng(crc32(word.encode())).normal(size=SIZE)


@dataclass
class Tools:
    """The models of a search, with words for vectors."""

    text: TextEmbedder = field(default_factory=WordEmbedder)
    reranker: Reranker | None = None
    images: ImageEncoder | None = None
    sentences: SentenceParser = PARSER


@dataclass(frozen=True)
class Said:
    """A line of a clip. ``who`` are tags it mentions; ``until`` the clip that supersedes it."""

    text: str
    at_s: float = 0.0
    speaker: str | None = None
    source: str = "said"
    who: tuple[str, ...] = ()
    until: int | None = None


def watch(store: Store, video: str, clips: Sequence[Sequence[Said]], first: int = 0) -> None:
    """Add a video whose clips hold these lines; later clips can follow with ``first``."""
    embed = WordEmbedder().embed
    with store.begin() as session:
        if first == 0:
            session.add(_video(video, len(clips)))
            session.flush()
        for clip, lines in enumerate(clips, start=first):
            text = " ".join(line.text for line in lines)
            session.add(_clip(video, clip, text, embed([text])[0].tolist() if lines else None))
            session.flush()
            for line in lines:
                row = _line(video, clip, line, embed([line.text])[0].tolist())
                session.add(row)
                session.flush()
                for tag in line.who:
                    identity = identity_of(session, video, tag)
                    session.add(schema.MemoryLinkRow(memory_id=row.id, identity_id=identity))


def _video(video: str, clips: int) -> schema.VideoRow:
    return schema.VideoRow(
        id=video,
        title=video,
        duration_ms=clips * CLIP_MS,
        width=0,
        height=0,
        has_video=True,
        has_audio=True,
        profile="local",
        state="watching",
        models={"text": WordEmbedder.name},
    )


def _clip(video: str, clip: int, text: str, vector: list[float] | None) -> schema.ClipRow:
    start = clip * CLIP_MS
    return schema.ClipRow(
        video_id=video,
        clip=clip,
        start_ms=start,
        end_ms=start + CLIP_MS,
        state="done",
        attempts=0,
        gaps=[],
        text=text,
        embedding=vector,
    )


def _line(video: str, clip: int, line: Said, vector: list[float]) -> schema.MemoryRow:
    start = clip * CLIP_MS + round(line.at_s * 1000)
    return schema.MemoryRow(
        video_id=video,
        clip=clip,
        kind="episodic",
        text=line.text,
        start_ms=start,
        end_ms=start + 2_000,
        source=line.source,
        speaker=line.speaker,
        superseded_at=line.until,
        embedding=vector,
    )


def identity_of(session: Session, video: str, tag: str) -> int:
    kind, number = tag.strip("<>").split("_")
    found = (
        session.query(schema.IdentityRow)
        .filter_by(video_id=video, kind=kind, number=int(number))
        .first()
    )
    if found is None:
        began = (100 if kind == "face" else 200) + int(number)
        found = schema.IdentityRow(
            video_id=video, kind=kind, number=int(number), first_clip=0, character=began
        )
        session.add(found)
        session.flush()
    return int(found.id)


def name(store: Store, video: str, number: int, called: str, *tags: str, since: int = 0) -> None:
    """From clip ``since`` on, these identities are the character ``number`` of that name."""
    with store.begin() as session:
        members = [identity_of(session, video, tag) for tag in tags]
        session.get_one(schema.IdentityRow, members[0]).character = number
        session.execute(
            update(schema.IdentityRow)
            .where(schema.IdentityRow.id.in_(members))
            .values(first_clip=since)
        )
        add_name(session, video, members[0], called, "said", since)
        held = {"number": number, "from_clip": since}
        session.add_all(schema.CharacterMemberRow(identity_id=one, **held) for one in members)
        stated = {"video_id": video, "clip": since, "support": 9.0, "reason": "said"}
        session.add_all(
            schema.IdentityStatementRow(face_id=members[0], voice_id=voice, **stated)
            for voice in members[1:]
        )


@dataclass(frozen=True)
class Event:
    """A revision of a segment; ``number`` says which."""

    number: int
    label: str
    summary: str
    clips: tuple[int, ...]
    since: int
    until: int | None = None


def add_event_graph(
    store: Store,
    video: str,
    events: Sequence[Event],
    edges: Sequence[tuple[int, int, str, int]] = (),
) -> dict[int, int]:
    """Add segments, and edges (from, to, relation, clip); returns segment ids by number."""
    ids: dict[int, int] = {}
    with store.begin() as session:
        for event in events:
            if event.number not in ids:
                row = schema.SegmentRow(video_id=video, number=event.number)
                session.add(row)
                session.flush()
                ids[event.number] = row.id
            revision = sum(e.number == event.number for e in events[: events.index(event)])
            session.add(_revision(ids[event.number], revision, event))
        for source, target, relation, clip in edges:
            session.add(_edge(video, ids[source], ids[target], relation, clip))
        session.add(_patch(video, max(event.since for event in events)))
    return ids


def patch_with_edge(store: Store, video: str, source: int, target: int, at_clip: int) -> None:
    """A patch that joins two segments, and does nothing else."""
    with store.begin() as session:
        session.add(_edge(video, source, target, "before", at_clip))
        session.add(_patch(video, at_clip))


def _patch(video: str, at_clip: int) -> schema.PatchRow:
    return schema.PatchRow(
        video_id=video,
        at_clip=at_clip,
        first_clip=0,
        repairs=0,
        applied={"steps": [], "unsettled": []},
        dropped=[],
        pending=[],
    )


def _revision(segment: int, revision: int, event: Event) -> schema.SegmentRevisionRow:
    return schema.SegmentRevisionRow(
        segment_id=segment,
        revision=revision,
        label=event.label,
        summary=event.summary,
        clips=list(event.clips),
        history=[],
        from_clip=event.since,
        to_clip=event.until,
        embedding=WordEmbedder().embed([f"{event.label}. {event.summary}"])[0].tolist(),
    )


def _edge(video: str, source: int, target: int, relation: str, clip: int) -> schema.EdgeRow:
    return schema.EdgeRow(
        video_id=video,
        source_id=source,
        target_id=target,
        relation=relation,
        explicit=True,
        confidence=0.8,
        rationale=f"{relation}, as was said",
        evidence=[clip],
        from_clip=clip,
    )


def paint_keyframes(
    store: Store, video: str, colours: Mapping[float, tuple[int, int, int]]
) -> dict[float, int]:
    """Give a watched video keyframes of one colour each, by time in s; return their ids."""
    recording(store, video, list(colours))
    ids = {}
    with store.begin() as session:
        for time, colour in colours.items():
            row = schema.KeyframeRow
            at_time = (row.video_id == video, row.time_ms == round(time * 1000))
            frame = session.scalars(select(row).where(*at_time)).one()
            blobs, image = Blobs(), np.full((60, 90, 3), colour, np.uint8)
            frame.blob, frame.likeness_vector = blobs.add(image, 90), likeness(image).tolist()
            store.blobs.put(blobs[frame.blob])
            ids[time] = frame.id
    return ids


def recording(
    store: Store,
    video: str,
    times_s: Sequence[float],
    read: dict[float, str] | None = None,
    things: Mapping[float, Sequence[str]] | None = None,
) -> None:
    """Keyframes at these times, with the text read and the things seen on some of them."""
    with store.begin() as session:
        for time in times_s:
            session.add(
                schema.KeyframeRow(
                    video_id=video,
                    clip=int(time * 1000) // CLIP_MS,
                    time_ms=round(time * 1000),
                    shot=0,
                    sharpness=1.0,
                    entropy=1.0,
                    quality=1.0,
                    width=4,
                    height=3,
                    blob=f"{round(time * 1000):064x}",
                )
            )
        for time, text in (read or {}).items():
            session.add(
                schema.ScreenTextRow(
                    video_id=video,
                    clip=int(time * 1000) // CLIP_MS,
                    time_ms=round(time * 1000),
                    text=text,
                    score=0.9,
                    box=[0, 0, 2, 2],
                )
            )
        for time, labels in (things or {}).items():
            session.add_all(
                schema.ObjectRow(
                    video_id=video,
                    clip=int(time * 1000) // CLIP_MS,
                    time_ms=round(time * 1000),
                    label=label,
                    score=0.8,
                    box=[1, 0, 3, 2],
                )
                for label in labels
            )


def see(store: Store, video: str, tag: str, start_s: float, end_s: float) -> None:
    """An identity is in view, or heard, for a while."""
    with store.begin() as session:
        session.add(
            schema.SightingRow(
                video_id=video,
                clip=int(start_s * 1000) // CLIP_MS,
                identity_id=identity_of(session, video, tag),
                start_ms=round(start_s * 1000),
                end_ms=round(end_s * 1000),
                box=[0, 0, 2, 2],
                score=0.9,
                quality=25.0,
                blob=None,
            )
        )
