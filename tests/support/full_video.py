"""A video with rows in every table, small enough to read and full enough to miss nothing."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

import cv2
import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from store.database import Store
from store.queries.trajectories import message_hash
from store.tables.library import GrantRow, SharedLinkRow
from store.tables.schema import (
    AlertClipRow,
    AlertHitRow,
    AlertRow,
    BlobRow,
    BuildRow,
    CharacterMemberRow,
    CharacterNameRow,
    ClipRow,
    CorrectionRow,
    EdgeRow,
    EntityRow,
    ExemplarRow,
    FrameRow,
    IdentityRow,
    IdentityStatementRow,
    KeeperRow,
    KeyframeRow,
    MemoryLinkRow,
    MemoryRow,
    MemoryStrengthRow,
    MessageRow,
    ModelCallRow,
    NodeRevisionRow,
    NodeRow,
    ObjectRow,
    PatchRow,
    QuestionRow,
    RelationRow,
    ScreenTextRow,
    SegmentRevisionRow,
    SegmentRow,
    SightingRow,
    StreamClipRow,
    StreamGapRow,
    StreamRow,
    TrajectoryEventRow,
    TrajectoryRow,
    TrajectoryVideoRow,
    UtteranceRow,
    VideoRow,
)

LATER = datetime(2100, 1, 1, tzinfo=UTC)
CLIPS = 3


def picture(text: str, width: int, height: int) -> bytes:
    """A JPEG of that size; what follows its end makes it differ."""
    return cv2.imencode(".jpg", np.zeros((height, width, 3), np.uint8))[1].tobytes() + text.encode()


SHARED = picture("a frame that all full videos share", 640, 360)


def fill(store: Store, video_id: str, title: str = "full") -> None:
    """Adds the video with its blobs; equal but for the id and the own frame's bytes."""
    own = store.blobs.put(picture(f"the frame of {title}", 4, 4))
    shared = store.blobs.put(SHARED)
    with store.begin() as session:
        _add(session, _video(video_id, title), *_clips(video_id))
        _add(session, *(BlobRow(video_id=video_id, sha256=s, size=9) for s in (own, shared)))
        _add(session, *_stream(video_id), *_percept(video_id, shared))
        faces, voices = _people(session, video_id, own)
        _remember(session, video_id, [*faces, *voices])
        _events(session, video_id)
        _built(session, video_id, own)
        _call(session, f"seen in {title}", video_id=video_id, clip=1)
        _alert(session, video_id)


def _alert(session: Session, video_id: str) -> None:
    """An alert with an event, and a clip that waits to be judged."""
    line = session.scalars(select(MemoryRow.id).where(MemoryRow.video_id == video_id)).first()
    alert = AlertRow(
        id=f"alert{video_id}",
        name=f"cups-of-{video_id}",
        kind="text",
        question="a cup",
        video_id=video_id,
        threshold=0.7,
        debounce_ms=60_000,
    )
    times = {"start_ms": 31_000, "end_ms": 32_000}
    _add(session, alert, AlertClipRow(video_id=video_id, clip=2))
    event = AlertHitRow(
        id=f"event{video_id}",
        alert_id=alert.id,
        video_id=video_id,
        clip=1,
        score=0.9,
        memory_id=line,
        state="recorded",
        **times,
    )
    _add(session, event)
    link = SharedLinkRow(
        id=f"link{video_id}", video_id=video_id, start_ms=31_000, end_ms=32_000, expires_at=LATER
    )
    _add(session, link)
    _add(session, GrantRow(grantee="somebody@example.org", is_group=False, video_id=video_id))


def ask(store: Store, trajectory: str, question: str, *video_ids: str) -> None:
    """A trajectory over videos, with an event and a call of its own."""
    with store.begin() as session:
        asked = QuestionRow(text=question, options=["x", "y"], as_of_ms=None, type="why")
        _add(session, asked)
        _add(session, _trajectory(trajectory, asked.id))
        link = SharedLinkRow(id=f"link{trajectory}", trajectory_id=trajectory, expires_at=LATER)
        _add(session, link)
        for video_id in video_ids:
            seen = TrajectoryVideoRow(trajectory_id=trajectory, video_id=video_id, last_clip=2)
            _add(session, seen)
        payload = {"kind": "started", "text": question}
        event = TrajectoryEventRow(trajectory_id=trajectory, seq=0, kind="started", payload=payload)
        _add(session, event)
        _call(session, question, trajectory_id=trajectory)


def _add(session: Session, *rows: Any) -> None:
    for row in rows:
        session.add(row)
        session.flush()


def _video(video_id: str, title: str) -> VideoRow:
    return VideoRow(
        id=video_id,
        title=title,
        path=f"/videos/{title}.mp4",
        duration_ms=80_000,
        width=640,
        height=360,
        has_video=True,
        has_audio=True,
        profile="local",
        state="done",
        error=None,
        models={"speech": "whisper", "text": "minilm"},
    )


def _clips(video_id: str) -> list[ClipRow]:
    return [
        ClipRow(
            video_id=video_id,
            clip=i,
            start_ms=30_000 * i,
            end_ms=min(30_000 * i + 30_000, 80_000),
            state="done",
            error=None,
            attempts=0,
            gaps=[[100, 200, "damaged"]] if i == 1 else [],
            text=f"clip {i}",
            embedding=[0.6, 0.8, i],
        )
        for i in range(CLIPS)
    ]


def _stream(video_id: str) -> list[Any]:
    counts = {"level": 1, "came": 750, "damaged": 1, "sampled": 75, "lag_ms": 900}
    times = {"start_ms": 40_000, "end_ms": 45_000}
    return [
        StreamRow(video_id=video_id, source="rtsp://door/live", began_ms=1_700_000_000_000),
        StreamClipRow(video_id=video_id, clip=1, **counts),
        StreamGapRow(video_id=video_id, reason="lost", frames=2, **times),
    ]


def _percept(video_id: str, blob: str) -> list[Any]:
    frame = {"shot": 0, "sharpness": 0.1, "entropy": 2.5, "quality": 1 / 3}
    size = {"width": 640, "height": 360, "blob": blob}
    seen = {"embedding": [1, 0]}
    said = {"language": "en", "confidence": 0.9}
    read = ScreenTextRow(
        video_id=video_id, clip=1, time_ms=31_000, text="EXIT", score=0.7, box=[1, 2, 30, 40]
    )
    thing = ObjectRow(
        video_id=video_id, clip=1, time_ms=31_000, label="cup", score=0.6, box=[3, 4, 50, 60]
    )
    return [
        KeyframeRow(video_id=video_id, clip=0, time_ms=1000, **seen, **frame, **size),
        KeyframeRow(video_id=video_id, clip=1, time_ms=31_000, description="a", **frame, **size),
        UtteranceRow(
            video_id=video_id,
            clip=0,
            origin="speech",
            start_ms=500,
            end_ms=900,
            text="line\u2028two",
            **said,
        ),
        read,
        thing,
    ]


def _people(session: Session, video_id: str, blob: str) -> tuple[list[int], list[int]]:
    found: dict[str, list[int]] = {"face": [], "voice": []}
    for kind in found:
        for number in range(2):
            row = IdentityRow(video_id=video_id, kind=kind, number=number, first_clip=number)
            row.character = number + (2 if kind == "voice" else 0)
            _add(session, row)
            _see(session, video_id, row, blob)
            found[kind].append(row.id)
    _characters(session, video_id, found["face"], found["voice"])
    said = {"origin": "speech", "start_ms": 31_000, "end_ms": 32_000, "text": "hello"}
    _add(
        session,
        UtteranceRow(
            video_id=video_id,
            clip=1,
            language="en",
            confidence=0.5,
            speaker="Ann",
            identity_id=found["voice"][0],
            **said,
        ),
    )
    return found["face"], found["voice"]


def _see(session: Session, video_id: str, who: IdentityRow, blob: str) -> None:
    for clip in (who.first_clip, 2):
        start = clip * 30_000 + 100
        box = [1, 2, 3, 4] if who.kind == "face" else None
        row = SightingRow(
            video_id=video_id,
            clip=clip,
            identity_id=who.id,
            start_ms=start,
            end_ms=start + 200,
            box=box,
            score=0.9,
            quality=25.5,
            blob=blob if box else None,
        )
        _add(session, row)
        if clip != 2:
            kept = ExemplarRow(
                identity_id=who.id, sighting_id=row.id, quality=25.5, vector=[0.6, 0.8]
            )
            _add(session, kept)


def _characters(session: Session, video_id: str, faces: list[int], voices: list[int]) -> None:
    for number in range(2):
        held = {"identity_id": faces[number], "from_clip": number}
        _add(session, CharacterMemberRow(number=number, **held))
        learned = {"name": f"Ann {number}", "source": "said"}
        _add(session, CharacterNameRow(video_id=video_id, **learned, **held))
    for number, voice in enumerate(voices):
        alone = {"identity_id": voice, "from_clip": number}
        _add(session, CharacterMemberRow(number=2 + number, **alone))
    named = {"number": 0, "names": ["Anna"], "members": [], "nameless": []}
    said = {"number": 1, "kind": "rename", "told": "0 is Anna", "numbers": [0]}
    _add(session, CorrectionRow(video_id=video_id, outcomes=[named], **said))
    stated = {"clip": 1, "support": 1.5, "reason": "they move together"}
    ends = {"face_id": faces[0], "voice_id": voices[0]}
    _add(session, IdentityStatementRow(video_id=video_id, **ends, **stated))


def _remember(session: Session, video_id: str, identities: list[int]) -> None:
    for clip in range(CLIPS):
        for line in range(2):
            row = MemoryRow(
                video_id=video_id,
                clip=clip,
                kind="episodic",
                text=f"<face_0> does thing {clip}.{line}",
                start_ms=clip * 30_000,
                end_ms=clip * 30_000 + 5000,
                source="said",
                embedding=[0.1 * line, 0.2, 0.3],
            )
            _add(session, row)
            _add(session, MemoryLinkRow(memory_id=row.id, identity_id=identities[line]))
            _add(session, MemoryStrengthRow(memory_id=row.id, clip=2))


def _events(session: Session, video_id: str) -> None:
    segments = [SegmentRow(video_id=video_id, number=n) for n in range(4)]
    _add(session, *segments)
    for segment in segments[:3]:
        gone = segment.number == 2
        revision = SegmentRevisionRow(
            segment_id=segment.id,
            revision=0,
            label=f"event {segment.number}",
            summary="what happened",
            clips=[segment.number],
            history=[{"label": "old"}],
            from_clip=1,
            to_clip=2 if gone else None,
            absorbed_into=segments[0].id if gone else None,
            embedding=[1, 2],
        )
        _add(session, revision)
    first, second = (segment.id for segment in segments[:2])
    edge = EdgeRow(
        video_id=video_id,
        source_id=first,
        target_id=second,
        relation="before",
        explicit=True,
        confidence=0.8,
        rationale="it came first",
        evidence=[0, 1],
        from_clip=2,
    )
    window = {"at_clip": 2, "first_clip": 0, "repairs": 1, "pending": [2]}
    applied: dict[str, list[Any]] = {"steps": [], "unsettled": []}
    written = {"applied": applied, "dropped": ["an edge"], "writers": ["rules"]}
    _add(session, edge, PatchRow(video_id=video_id, **written, **window))


def _trajectory(trajectory: str, question_id: int) -> TrajectoryRow:
    return TrajectoryRow(
        id=trajectory,
        question_id=question_id,
        machine="homer",
        profile="local",
        state="done",
        answer={"text": "because", "confidence": 0.5},
        tokens=12,
        seconds=0.5,
    )


def _built(session: Session, video_id: str, blob: str) -> None:
    """What a strategy builds: two captions, the later in two revisions, and a relation."""
    of = {"video_id": video_id, "builder": "captions"}
    _add(session, BuildRow(version=1, encoder="minilm", through_clip=2, writers=["rules"], **of))
    frame = {"clip": 1, "time_ms": 31_000, "tier": 0, "reason": "it differs from the last"}
    size = {"width": 4, "height": 4, "image_encoder": "towers"}
    _add(session, FrameRow(blob=blob, embedding=[1, 0.5], **frame, **size, **of))
    _add(session, KeeperRow(version=1, through_clip=2, state={"open": [31_000]}, **of))
    nodes = [NodeRow(level="3 min", number=n, **of) for n in range(2)]
    _add(session, *nodes)
    for number, from_clip, to_clip in ((0, 0, 1), (1, 1, 2), (1, 2, None)):
        revision = NodeRevisionRow(
            node_id=nodes[number].id,
            label=f"caption {number}",
            text=f"what happened by clip {from_clip}",
            start_ms=number * 30_000,
            end_ms=(from_clip + 1) * 30_000,
            children=[number],
            from_clip=from_clip,
            to_clip=to_clip,
            embedding=[0.25, 0.75],
        )
        _add(session, revision)
    entities = [
        EntityRow(type=kind, name=f"<face_{n}>", attributes={"n": n}, from_clip=n, **of)
        for n, kind in enumerate(("PERSON", "GROUP"))
    ]
    for entity in entities:
        entity.embedding = [0.1, 0.9]
    _add(session, *entities)
    for clip in (1, 2):
        relation = RelationRow(
            level="semantic",
            subject_id=entities[0].id,
            predicate="greet",
            object_id=entities[1].id,
            node_id=nodes[0].id,
            start_ms=30_000 * clip,
            end_ms=30_000 * clip + 5000,
            evidence=[0, clip],
            confidence=0.5,
            from_clip=clip,
            to_clip=2 if clip == 1 else None,
            embedding=[0.5, 0.5],
            **of,
        )
        _add(session, relation)


def _call(session: Session, own: str, **of: Any) -> None:
    contents = [{"role": "user", "content": said} for said in ("you are Homer", own)]
    hashes = [message_hash(content) for content in contents]
    for name, content in zip(hashes, contents, strict=True):
        session.merge(MessageRow(hash=name, content=content))
    session.flush()
    call = ModelCallRow(
        request_hash=hashlib.sha256(own.encode()).hexdigest(),
        purpose="write",
        profile="gemini",
        model="m",
        messages=hashes,
        reply={"text": "yes"},
        error=None,
        tokens_in=5,
        tokens_out=6,
        cost_usd=0.01,
        ms=77,
        **of,
    )
    _add(session, call)
