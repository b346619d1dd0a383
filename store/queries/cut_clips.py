"""Deletion of the rows of some clips of a video, and search for everything that rests on them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    Text,
    and_,
    any_,
    cast,
    delete,
    func,
    or_,
    select,
    union_all,
    update,
)
from sqlalchemy.orm import Session, aliased

from domain.media import ClipState
from domain.memories import MemorySource
from domain.time import TimeSpan
from store.queries.alerts import delete_hits_of
from store.queries.blobs import drop_recordings_of
from store.queries.conditions import is_any_of
from store.queries.videos import delete_calls, delete_runs
from store.tables.schema import (
    CharacterMemberRow,
    CharacterNameRow,
    ClipRow,
    EvalResultRow,
    FrameRow,
    IdentityRow,
    IdentityStatementRow,
    KeyframeRow,
    MemoryLinkRow,
    MemoryRow,
    MemoryStrengthRow,
    MessageRow,
    ModelCallRow,
    ObjectRow,
    QuestionRow,
    ScreenTextRow,
    SightingRow,
    TrajectoryEventRow,
    TrajectoryRow,
    TrajectoryVideoRow,
    UtteranceRow,
    VideoRow,
)

OF_CLIPS: tuple[Any, ...] = (
    KeyframeRow,
    SightingRow,
    UtteranceRow,
    ScreenTextRow,
    ObjectRow,
    MemoryRow,
    IdentityStatementRow,
)
"""Tables whose rows belong to one clip each."""


def overlapping_clips(
    session: Session, video_id: str, span: TimeSpan
) -> list[tuple[int, TimeSpan, ClipState]]:
    """Return the clips of a video that overlap a span, in order, including deleted ones."""
    row = ClipRow
    query = select(row.clip, row.start_ms, row.end_ms, row.state).where(
        row.video_id == video_id, row.start_ms < span.end_ms, row.end_ms > span.start_ms
    )
    rows = session.execute(query.order_by(row.clip))
    return [(clip, TimeSpan.of(a, b), ClipState(state)) for clip, a, b, state in rows]


def deleted_spans(session: Session, video_id: str) -> list[TimeSpan]:
    """Return the deleted spans of a video in order, adjacent clips joined."""
    row = ClipRow
    query = select(row.start_ms, row.end_ms).where(
        row.video_id == video_id, row.state == ClipState.DELETED
    )
    spans: list[TimeSpan] = []
    for start, end in session.execute(query.order_by(row.start_ms)):
        is_adjacent = bool(spans) and spans[-1].end_ms >= start
        spans[-1:] = [TimeSpan.of(spans[-1].start_ms, end)] if is_adjacent else spans[-1:]
        spans += [] if is_adjacent else [TimeSpan.of(start, end)]
    return spans


def texts_in_clips(session: Session, video_id: str, clips: Collection[int]) -> Iterator[str]:
    """Yield all text that was said, read and seen in these clips."""
    yield from _perceived_text(session, video_id, lambda row: row.clip.in_(clips))
    name = CharacterNameRow
    learned = (name.video_id == video_id, name.identity_id.is_not(None), name.from_clip.in_(clips))
    yield from session.scalars(select(name.name).where(*learned))


def texts_elsewhere(session: Session, video_id: str, clips: Collection[int]) -> Iterator[str]:
    """Yield all text from the other clips, earlier memories, and the video's title."""
    yield from _perceived_text(session, video_id, lambda row: row.clip.not_in(clips))
    yield from session.scalars(select(VideoRow.title).where(VideoRow.id == video_id))
    line = MemoryRow
    earlier = and_(line.video_id == video_id, line.clip < min(clips))
    yield from session.scalars(select(line.text).where(earlier))


def _perceived_text(session: Session, video_id: str, condition_of: Any) -> Iterator[str]:
    said, read, seen = UtteranceRow, ScreenTextRow, ObjectRow
    columns: tuple[tuple[Any, Any], ...] = (
        (said, said.text),
        (said, said.speaker),
        (read, read.text),
        (seen, seen.label),
    )
    for row, column in columns:
        query = select(column).where(
            row.video_id == video_id, condition_of(row), column.is_not(None)
        )
        yield from session.scalars(query.execution_options(yield_per=1000))


def identities_in_clips(session: Session, video_id: str, clips: Collection[int]) -> set[int]:
    """Return the identities that were seen, heard or mentioned in these clips."""
    appearances = _appearances(video_id).subquery()
    return set(
        session.scalars(
            select(appearances.c.identity_id).where(appearances.c.clip.in_(clips)).distinct()
        )
    )


def first_appearances(session: Session, video_id: str, ids: Collection[int]) -> dict[int, int]:
    """Return the first clip of each identity; identities that never appear are left out."""
    appearances = _appearances(video_id).subquery()
    query = select(appearances.c.identity_id, func.min(appearances.c.clip)).where(
        appearances.c.identity_id.in_(ids)
    )
    return dict(session.execute(query.group_by(appearances.c.identity_id)).all())


def _appearances(video_id: str) -> Any:
    seen, said, link, line = SightingRow, UtteranceRow, MemoryLinkRow, MemoryRow
    spoken_of = select(link.identity_id, line.clip).join(line, line.id == link.memory_id)
    return union_all(
        select(seen.identity_id, seen.clip).where(seen.video_id == video_id),
        select(said.identity_id, said.clip).where(
            said.video_id == video_id, said.identity_id.is_not(None)
        ),
        spoken_of.where(line.video_id == video_id),
    )


def refs_in(session: Session, video_id: str, clips: Collection[int]) -> set[str]:
    """Return the refs of memories and images of these clips, and the images' SHA-256."""
    line, keyframe, kept = MemoryRow, KeyframeRow, FrameRow
    lines = session.scalars(select(line.id).where(line.video_id == video_id, line.clip.in_(clips)))
    refs = {f"m{memory}" for memory in lines}
    for kind, table in (("k", keyframe), ("f", kept)):
        images = select(table.id, table.blob)
        of_clips = and_(table.video_id == video_id, table.clip.in_(clips))
        for row, blob in session.execute(images.where(of_clips)):
            refs |= {f"{kind}{row}", blob}
    return refs


def cut_clips(session: Session, video_id: str, clips: Collection[int]) -> None:
    """Delete the rows of these clips, and the writers' calls that may have included them."""
    strength = MemoryStrengthRow
    of_video = select(MemoryRow.id).where(MemoryRow.video_id == video_id)
    session.execute(
        delete(strength).where(strength.clip.in_(clips), strength.memory_id.in_(of_video))
    )
    for row in OF_CLIPS:
        session.execute(delete(row).where(row.video_id == video_id, row.clip.in_(clips)))
    delete_hits_of(session, video_id, clips)
    line = MemoryRow
    superseded_here = and_(line.video_id == video_id, line.superseded_at.in_(clips))
    session.execute(update(line).where(superseded_here).values(superseded_at=None))
    call = ModelCallRow
    later = or_(call.clip >= min(clips), call.clip.is_(None))
    delete_calls(session, (call.video_id == video_id) & later)
    drop_recordings_of(session, video_id, clips)
    emptied: dict[str, Any] = {
        "state": str(ClipState.DELETED),
        "error": None,
        "attempts": 0,
        "unwritten": False,
        "gaps": [],
        "text": "",
        "embedding": None,
        "seconds": 0.0,
        "budget": None,
        "left_out": [],
        "dropped": [],
        "updated_at": func.now(),
    }
    these_clips = and_(ClipRow.video_id == video_id, ClipRow.clip.in_(clips))
    session.execute(update(ClipRow).where(these_clips).values(emptied))


def trim_continued_lines(
    session: Session, video_id: str, clips: Collection[int]
) -> tuple[set[int], set[int]]:
    """Find lines of other clips that began in one of these, and trim what was on screen.

    Returns:
        The ids of lines of speech, which are to be deleted: they quote what these clips said. And
        the clips of all that were found.
    """
    line, own, begun = MemoryRow, aliased(ClipRow), aliased(ClipRow)
    query = (
        select(line.id, line.clip, line.source, func.max(begun.end_ms))
        .join(own, and_(own.video_id == line.video_id, own.clip == line.clip))
        .join(begun, and_(begun.video_id == line.video_id, begun.clip.in_(clips)))
        .where(
            line.video_id == video_id,
            line.start_ms < own.start_ms,
            begun.clip < line.clip,
            line.start_ms < begun.end_ms,
            line.end_ms > begun.start_ms,
        )
        .group_by(line.id)
    )
    found = session.execute(query).all()
    for row, _, source, end_ms in found:
        if source == MemorySource.READ:
            session.execute(update(line).where(line.id == row).values(start_ms=end_ms))
    said = {row for row, _, source, _ in found if source != MemorySource.READ}
    return said, {clip for _, clip, _, _ in found}


def delete_memories(session: Session, ids: Collection[int]) -> set[int]:
    """Delete memories; return their clips."""
    deleted = delete(MemoryRow).where(MemoryRow.id.in_(ids)).returning(MemoryRow.clip)
    return set(session.scalars(deleted)) if ids else set()


def set_memory_vectors(session: Session, vectors: Mapping[int, Sequence[float]]) -> None:
    """Replace the vectors, shape (D,), of memories by id."""
    for row, vector in vectors.items():
        this_memory = update(MemoryRow).where(MemoryRow.id == row)
        session.execute(this_memory.values(embedding=list(vector), next_embedding=None))


def set_clip_summary(
    session: Session, video_id: str, clip: int, summary: str, vector: Sequence[float] | None
) -> None:
    """Replace the text and vector, shape (D,), that sum up a clip."""
    values = {"text": summary, "embedding": vector}
    this_clip = and_(ClipRow.video_id == video_id, ClipRow.clip == clip)
    session.execute(update(ClipRow).where(this_clip).values(values))


def identity_tags(session: Session, ids: Collection[int]) -> set[str]:
    """Return the tags of identities, such as ``<face_3>``."""
    row = IdentityRow
    rows = session.execute(select(row.kind, row.number).where(row.id.in_(ids)))
    return {f"<{kind}_{number}>" for kind, number in rows}


def delete_identities(session: Session, video_id: str, ids: Collection[int]) -> list[int]:
    """Delete identities; return the numbers of characters that are left without members."""
    member = CharacterMemberRow
    of_video = select(member.number).join(IdentityRow, IdentityRow.id == member.identity_id)
    numbers = of_video.where(IdentityRow.video_id == video_id).distinct()
    touched = set(session.scalars(numbers.where(is_any_of(IdentityRow.id, ids))))
    session.execute(delete(IdentityRow).where(is_any_of(IdentityRow.id, ids)))
    return sorted(touched - set(session.scalars(numbers)))


def move_first_clips(session: Session, first: Mapping[int, int]) -> None:
    for row, clip in first.items():
        known = and_(IdentityRow.id == row, IdentityRow.first_clip < clip)
        session.execute(update(IdentityRow).where(known).values(first_clip=clip))


def remove_learned_names(session: Session, video_id: str, clips: Collection[int]) -> None:
    """Move names learned in these clips to where they next occur, or delete them."""
    row = CharacterNameRow
    learned = and_(row.video_id == video_id, row.identity_id.is_not(None), row.from_clip.in_(clips))
    for name in session.scalars(select(row).where(learned)):
        said, read = UtteranceRow, ScreenTextRow
        columns: tuple[tuple[Any, Any], ...] = (
            (said, said.text),
            (said, said.speaker),
            (read, read.text),
        )
        mentions = []
        for source, column in columns:
            later = and_(source.video_id == video_id, source.clip > name.from_clip)
            contains_name = column.icontains(name.name, autoescape=True)
            mentions.append(
                session.scalar(select(func.min(source.clip)).where(later, contains_name))
            )
        next_clip = min((clip for clip in mentions if clip is not None), default=None)
        if next_clip is None:
            session.delete(name)
        else:
            name.from_clip = next_clip
    session.flush()


def trajectory_texts(session: Session, video_id: str, first: int) -> Iterator[tuple[str, str]]:
    """Yield trajectories that saw clip ``first`` or later, with each text of theirs."""
    seen = TrajectoryVideoRow
    runs = select(seen.trajectory_id).where(seen.video_id == video_id, seen.last_clip >= first)
    event, run, call = TrajectoryEventRow, TrajectoryRow, ModelCallRow
    questions = select(
        run.id, func.concat_ws(" ", QuestionRow.text, cast(QuestionRow.options, Text))
    )
    questions = questions.join(QuestionRow, QuestionRow.id == run.question_id)
    pooled = select(call.trajectory_id, cast(MessageRow.content, Text))
    pooled = pooled.join(MessageRow, MessageRow.hash == any_(call.messages))
    queries = (
        questions.where(run.id.in_(runs)),
        select(run.id, cast(run.answer, Text)).where(run.id.in_(runs), run.answer.is_not(None)),
        select(event.trajectory_id, cast(event.payload, Text)).where(event.trajectory_id.in_(runs)),
        select(call.trajectory_id, func.concat_ws(" ", cast(call.reply, Text), call.error)).where(
            call.trajectory_id.in_(runs)
        ),
        pooled.where(call.trajectory_id.in_(runs)),
    )
    for query in queries:
        rows = session.execute(query.execution_options(yield_per=200))
        yield from ((row, content) for row, content in rows)


def running_trajectories(session: Session, video_id: str) -> set[str]:
    trajectories = select(TrajectoryVideoRow.trajectory_id).where(
        TrajectoryVideoRow.video_id == video_id
    )
    row = TrajectoryRow
    return set(
        session.scalars(select(row.id).where(row.id.in_(trajectories), row.state == "running"))
    )


def delete_trajectories_and_results(session: Session, ids: Sequence[str]) -> None:
    session.execute(delete(EvalResultRow).where(EvalResultRow.trajectory_id.in_(ids)))
    delete_runs(session, ids)


def result_texts(session: Session, video_id: str) -> Iterator[tuple[tuple[str, str, str], str]]:
    """Yield the keys and texts of the evaluation results on a video."""
    row = EvalResultRow
    words = func.concat_ws(" ", cast(row.item, Text), cast(row.verdict, Text))
    query = select(row.run, row.arm, row.question, words).where(row.video_id == video_id)
    for run, arm, question, content in session.execute(query):
        yield (run, arm, question), content


def delete_result(session: Session, key: tuple[str, str, str]) -> None:
    row = EvalResultRow
    session.execute(delete(row).where(row.run == key[0], row.arm == key[1], row.question == key[2]))
