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
from domain.corrections import CorrectedCharacter, Correction
from domain.errors import InputError
from domain.media import ClipState, Video
from domain.settings import MemorySettings
from domain.time import TimeSpan, clock
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
from store.database import Store
from store.queries import characters, cut_events, cutting
from store.queries.audit import note
from store.queries.corrections import change_correction, corrections_of
from store.queries.cut_events import CutRevision
from store.queries.events import clip_spans
from store.queries.forget import drop_blob_rows, rewrite, texts_with, touch
from store.queries.memories import memories_of_clips
from store.queries.videos import close_video, find_video
from store.sweep import drop_blobs, sweep_blobs
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
    EdgeRow: {"rationale": cut_events.TOLD},
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
    touched = cutting.clips_touched(session, video.id, span)
    if not touched:
        raise InputError(f"{video.title} ends at {clock(video.duration_ms)}, before that span")
    left = tuple(one.clip for one in touched if one.state != ClipState.DELETED)
    return Cut(video, touched[0].span.union(touched[-1].span), left)


def stretches(store: Store, video: str) -> list[TimeSpan]:
    """What was deleted of a video, in order of time."""
    with store.begin() as session:
        return cutting.deleted_stretches(session, video)


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
        close_video(session, find_video(session, name).id)
        cut = _cut_of(session, find_video(session, name), span)
        work = _Cutting(session, cut, vectors, settings)
        unused = work.run() if cut.clips else []
        vectors.settle()
        note(session, Deed.DELETED, f"{cut.video.id} {cut.span.start_ms}-{cut.span.end_ms} ms")
        faults.fault_point(faults.FaultPoint.CUT_ROWS)
        return cut, work, unused

    cut, work, unused = transact(store, run)
    faults.fault_point(faults.FaultPoint.CUT)
    images = drop_blobs(store, unused) + sweep_blobs(store)
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
            cutting.words_of_clips(session, video, clips),
            cutting.words_elsewhere(session, video, clips),
        )
        refs = cutting.refs_in(session, video, clips)
        met = cutting.met_in(session, video, clips)
        cutting.cut_clips(session, video, clips)
        self._people(met)
        refs |= {f"s{one}" for one in self._events(words)}
        self._answers(words, refs)
        cut_events.redraw_patches(session, video, clips)
        touch(session, video)
        return drop_blob_rows(session, video)

    def _people(self, met: set[int]) -> None:
        session, video = self._session, self._video
        cutting.unlearn_names(session, video, self._clips)
        first = cutting.first_met(session, video, met)
        gone = met - first.keys()
        tags = cutting.tags_of(session, gone)
        over = set(cutting.drop_identities(session, gone))
        cutting.begin_later(session, first)
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
            found = cut_events.revision_of(session, row)
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
                rewrite(session, one, INSTEAD[one.table])
                self.retold += 1
        lines = [int(one.key["id"]) for one in found if one.table is MemoryRow]
        thinned = cutting.drop_lines(session, lines)
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
        cutting.embed_lines(session, dict(zip((one.id for one in found), vectors, strict=True)))
        text = "\n".join(line(one, people) for one in found)
        cutting.sum_up(session, video, clip, text, direction(vectors) if vectors else None)
        self.retold += 1

    def _retell(self, one: CutRevision) -> None:
        """Tell a revision by the lines of its clips, as its own moment knew them."""
        session, video = self._session, self._video
        found = memories_of_clips(session, video, one.clips, one.from_clip)
        lines = lines_of(found, people_at(session, video, one.from_clip))
        spans = clip_spans(session, video, one.clips)
        span = spans[one.clips[0]].union(spans[one.clips[-1]])
        most = self._settings.label_words
        label = Salience(lines).label(lines, most) or f"Nothing said at {clock(span.start_ms)}"
        taken = cut_events.labels_of_others(session, video, one.segment)
        if label in taken:
            label = dated(label, span, most)
        if label in taken:
            label = f"{label} ({one.number})"
        told = summary(lines) or "Nothing was said or read, and nobody was recognised."
        (vector,) = self._vectors.later([f"{label}. {told}"])
        cut_events.retell(session, one.row, label, told, vector.tolist())
        self.retold += 1

    def _answers(self, words: frozenset[str], refs: set[str]) -> None:
        session, video = self._session, self._video
        gone = cutting.running(session, video)
        for run, told in cutting.tellings(session, video, min(self._clips)):
            if run not in gone and quotes(told, words, refs):
                gone.add(run)
        cutting.drop_runs(session, sorted(gone))
        self.answers = len(gone)
        for key, told in list(cutting.results_of(session, video)):
            if betrays(told, words):
                cutting.drop_result(session, key)


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
