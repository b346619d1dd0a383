"""Deletes a stretch of a video: what it said, showed and was remembered by, and what quoted it.

Memory rests on whole clips: its lines, names and vectors are made of all that a clip has. So a
span takes every clip that it touches, whole. What is left is a gap that is never watched again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from domain import faults
from domain.audit import Deed
from domain.errors import InputError
from domain.media import ClipState, Video
from domain.people import CorrectedCharacter, Correction
from domain.settings import MemorySettings
from domain.time import TimeSpan, format_clock
from memory.leak_terms import betrays, flat, only_there, quotes
from memory.patch_window import lines_of, people_at
from memory.writers.labels import Salience, summary
from memory.writers.local_event import dated
from models.ports import TextEmbedder
from people.clip_people import ClipPeople
from people.forget import OF_NOBODY
from people.matching import direction
from people.memory_lines import line, searchable
from people.model_transactions import TransactionEmbedder, transact
from store.database import Store, remove_orphaned_blobs, remove_unused_blobs
from store.queries import characters, cut_clips, cut_events
from store.queries.audit import record_deed
from store.queries.corrections import change_correction, corrections_of
from store.queries.cut_events import CutRevision
from store.queries.events import clip_spans
from store.queries.forget import delete_unnamed_blob_rows, texts_with, update_row
from store.queries.memories import memories_of_clips
from store.queries.videos import find_video, lock_video_for_delete
from store.tables.schema import (
    Base,
    ClipRow,
    EdgeRow,
    IdentityStatementRow,
    KeyframeRow,
    MemoryRow,
    SegmentRevisionRow,
)

INSTEAD: Mapping[type[Base], Mapping[str, Any]] = {
    EdgeRow: {"rationale": cut_events.CUT_RATIONALE},
    IdentityStatementRow: {"reason": ""},
    KeyframeRow: {"description": None},
    ClipRow: {"error": None},
}
"""What stands for texts that rest on what is gone."""


@dataclass(frozen=True)
class Cut:
    """What a span takes: the stretch of whole clips, and those clips that were not deleted yet."""

    video: Video
    span: TimeSpan
    clips: tuple[int, ...]


@dataclass(frozen=True)
class SpanDeletion:
    """What went with a span: counts. ``retold``: texts that were written anew without it."""

    clips: int
    images: int
    answers: int
    people: int
    retold: int


def cut_of(store: Store, name: str, span: TimeSpan) -> Cut:
    """What deleting a span of a video takes.

    Raises:
        NotFound: no video goes by that name.
        Ambiguous: several do.
        InputError: the span is empty, or beyond the video's end.
    """
    with store.begin(snapshot=True) as session:
        return _cut_of(session, find_video(session, name), span)


def _cut_of(session: Session, video: Video, span: TimeSpan) -> Cut:
    if not span.length_ms:
        raise InputError("the span is empty: it must end after it begins")
    touched = cut_clips.overlapping_clips(session, video.id, span)
    if not touched:
        raise InputError(
            f"{video.title} ends at {format_clock(video.duration_ms)}, before that span"
        )
    left = tuple(one.clip for one in touched if one.state != ClipState.DELETED)
    return Cut(video, touched[0].span.union(touched[-1].span), left)


def stretches(store: Store, video: str) -> list[TimeSpan]:
    """What was deleted of a video, in order of time."""
    with store.begin() as session:
        return cut_clips.deleted_spans(session, video)


def delete_span(
    store: Store, name: str, span: TimeSpan, embedder: TextEmbedder, settings: MemorySettings
) -> SpanDeletion:
    """Delete all that is remembered of a span of a video, in one transaction; nothing undoes it.

    Gone are the clips that it touches, with their images, vectors, and those who were met nowhere
    else; events wholly within; the writers' model calls from there on; and every answer that was
    shown any of it or is under way. Events that reach beyond it are told anew from the lines that
    are left. Where a later text has words that only these clips said or showed, it goes or is told
    anew too.

    Done again, it removes what a killed run left on the disk.

    Args:
        store: the store.
        name: id, unambiguous beginning of one, or title.
        span: milliseconds of video time.
        embedder: makes the vectors of texts that change.
        settings: how long labels may be.

    Raises:
        NotFound: no video goes by that name.
        Ambiguous: several do.
        InputError: the span is empty, or beyond the video's end.
    """
    vectors = TransactionEmbedder(embedder)

    def run(session: Session) -> tuple[Cut, _Cutting, list[str]]:
        lock_video_for_delete(session, find_video(session, name).id)
        cut = _cut_of(session, find_video(session, name), span)
        work = _Cutting(session, cut, vectors, settings)
        unused = work.run() if cut.clips else []
        vectors.settle()
        record_deed(
            session, Deed.DELETED, f"{cut.video.id} {cut.span.start_ms}-{cut.span.end_ms} ms"
        )
        faults.fault_point(faults.FaultPoint.CUT_ROWS)
        return cut, work, unused

    cut, work, unused = transact(store, run)
    faults.fault_point(faults.FaultPoint.CUT)
    images = remove_unused_blobs(store, unused) + remove_orphaned_blobs(store)
    return SpanDeletion(len(cut.clips), images, work.answers, work.people, work.retold)


class _Cutting:
    """Deletes clips of one video inside one transaction."""

    def __init__(
        self, session: Session, cut: Cut, vectors: TransactionEmbedder, settings: MemorySettings
    ) -> None:
        self._session, self._video, self._clips = session, cut.video.id, frozenset(cut.clips)
        self._vectors, self._settings = vectors, settings
        self.answers = self.people = self.retold = 0

    def run(self) -> list[str]:
        """Delete; returns the files that nobody uses any more."""
        session, video, clips = self._session, self._video, self._clips
        words = only_there(
            cut_clips.texts_in_clips(session, video, clips),
            cut_clips.texts_elsewhere(session, video, clips),
        )
        refs = cut_clips.refs_in(session, video, clips)
        met = cut_clips.identities_in_clips(session, video, clips)
        cut_clips.cut_clips(session, video, clips)
        self._people(met)
        refs |= {f"s{one}" for one in self._events(words)}
        self._answers(words, refs)
        cut_events.rewrite_patches(session, video, clips)
        return delete_unnamed_blob_rows(session, video)

    def _people(self, met: set[int]) -> None:
        session, video = self._session, self._video
        cut_clips.remove_learned_names(session, video, self._clips)
        first = cut_clips.first_appearances(session, video, met)
        gone = met - first.keys()
        tags = cut_clips.identity_tags(session, gone)
        over = set(cut_clips.delete_identities(session, gone))
        cut_clips.move_first_clips(session, first)
        self.people = len(over)
        for one in corrections_of(session, video) if gone else ():
            change_correction(session, video, _without(one, over, tags))

    def _events(self, words: frozenset[str]) -> set[int]:
        """Cut the graph, and what elsewhere has ``words``; returns the segments that change."""
        session, video = self._session, self._video
        changed, anew = cut_events.cut_segments(session, video, self._clips)
        changed |= cut_events.cut_edges(session, video, self._clips)
        rows = {one.row for one in anew} | self._mend(words)
        for row in sorted(rows):
            found = cut_events.load_cut_revision(session, row)
            changed.add(found.segment)
            self._retell(found)
        return changed

    def _mend(self, words: frozenset[str]) -> set[int]:
        """Take texts with ``words`` away; returns the revisions that are to be told anew."""
        session, video = self._session, self._video
        told = list(texts_with(session, video, sorted(words))) if words else []
        found = [one for one in told if betrays(flat(one.texts), words)]
        for one in found:
            if one.table in INSTEAD:
                update_row(session, one, INSTEAD[one.table])
                self.retold += 1
        lines = [int(one.key["id"]) for one in found if one.table is MemoryRow]
        thinned = cut_clips.delete_memories(session, lines)
        thinned |= {int(one.key["clip"]) for one in found if one.table is ClipRow}
        for clip in sorted(thinned):
            self._sum_up(clip)
        return {int(one.key["id"]) for one in found if one.table is SegmentRevisionRow}

    def _sum_up(self, clip: int) -> None:
        """A clip by the lines that it has, and by the names that were learned of it."""
        session, video = self._session, self._video
        known = characters.characters_at(session, video, clip)
        people = ClipPeople(characters=tuple(one.character for one in known))
        found = [one.memory for one in memories_of_clips(session, video, [clip], clip)]
        told = [searchable(one, people) for one in found]
        vectors = [one.tolist() for one in self._vectors.later(told)] if told else []
        cut_clips.set_memory_vectors(
            session, dict(zip((one.id for one in found), vectors, strict=True))
        )
        text = "\n".join(line(one, people) for one in found)
        cut_clips.set_clip_summary(
            session, video, clip, text, direction(vectors) if vectors else None
        )
        self.retold += 1

    def _retell(self, one: CutRevision) -> None:
        """Tell a revision by the lines of its clips, as its own moment knew them."""
        session, video = self._session, self._video
        found = memories_of_clips(session, video, one.clips, one.from_clip)
        lines = lines_of(found, people_at(session, video, one.from_clip))
        spans = clip_spans(session, video, one.clips)
        span = spans[one.clips[0]].union(spans[one.clips[-1]])
        most = self._settings.label_words
        label = (
            Salience(lines).label(lines, most) or f"Nothing said at {format_clock(span.start_ms)}"
        )
        taken = cut_events.labels_of_others(session, video, one.segment)
        if label in taken:
            label = dated(label, span, most)
        if label in taken:
            label = f"{label} ({one.number})"
        told = summary(lines) or "Nothing was said or read, and nobody was recognised."
        (vector,) = self._vectors.later([f"{label}. {told}"])
        cut_events.rewrite_revision(session, one.row, label, told, vector.tolist())
        self.retold += 1

    def _answers(self, words: frozenset[str], refs: set[str]) -> None:
        session, video = self._session, self._video
        gone = cut_clips.running_trajectories(session, video)
        for run, told in cut_clips.trajectory_texts(session, video, min(self._clips)):
            if run not in gone and quotes(told, words, refs):
                gone.add(run)
        cut_clips.delete_trajectories_and_results(session, sorted(gone))
        self.answers = len(gone)
        for key, told in list(cut_clips.result_texts(session, video)):
            if betrays(told, words):
                cut_clips.delete_result(session, key)


def _without(one: Correction, over: set[int], tags: set[str]) -> Correction:
    """What is left of a correction without those who are gone; ``tags`` are of their faces."""
    kept = tuple(_left(o, tags) for o in one.outcomes if o.number not in over)
    if not over.intersection(one.numbers):
        return one.model_copy(update={"outcomes": kept})
    numbers = tuple(sorted(set(one.numbers) - over))
    update = {"told": OF_NOBODY, "numbers": numbers, "outcomes": kept}
    return one.model_copy(update=update if kept else update | {"undone": True})


def _left(outcome: CorrectedCharacter, tags: set[str]) -> CorrectedCharacter:
    names = ("members", "nameless", "others")
    update = {name: tuple(t for t in getattr(outcome, name) if t not in tags) for name in names}
    return outcome.model_copy(update=update)
