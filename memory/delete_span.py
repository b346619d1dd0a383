"""Deletes a span of a video: its percepts and memories, and later texts that repeat them.

Memories, names and vectors are derived from whole clips, so every clip that the span overlaps is
deleted as a whole. Deleted clips are not ingested again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from domain import faults
from domain.asking import REF_KINDS
from domain.errors import InputError
from domain.media import ClipState, Video
from domain.rights import Deed
from domain.settings import MemorySettings
from domain.time import TimeSpan, format_clock
from memory.event_graph_update import to_window_lines
from memory.writers.local_event import with_time
from memory.writers.segment_labels import Salience, content_words, summarise
from models.ports import TextEmbedder
from people.characters import people_at, place_people
from people.forget import FORGOTTEN_SUMMARY, outcomes_without
from people.identities import mean_direction
from people.model_transactions import (
    TransactionEmbedder,
    embeddings_recorded_after,
    run_with_models,
)
from people.names import format_line, search_text
from store.database import Store, remove_orphaned_blobs, remove_unused_blobs
from store.home import remove_recap_files
from store.queries import cut_clips, events
from store.queries.blobs import delete_unnamed_blob_rows
from store.queries.builds import built_refs, cut_builds
from store.queries.characters import change_correction, corrections_of
from store.queries.encoders import require_encoder
from store.queries.events import CutRevision, clip_spans
from store.queries.forget import texts_with, update_row
from store.queries.memories import memories_of_clips
from store.queries.rights import record_deed
from store.queries.videos import find_video, lock_video_for_delete
from store.tables import schema

# Finds texts that repeat words of deleted clips; pure.
#
# A model that wrote later memories was shown earlier ones, and may have repeated them. Such texts
# are found by words that occur in the deleted clips only.

_REF = re.compile(rf"(?<!\w)(?:[{REF_KINDS}][1-9]\d*|[0-9a-f]{{64}})(?!\w)")


def exclusive_words(deleted: Iterable[str], remaining: Iterable[str]) -> frozenset[str]:
    """Return content words of ``deleted`` that do not occur in ``remaining``, in lower case."""
    words = {word for text in deleted for word in content_words(text)}
    for text in remaining:
        if words:
            words.difference_update(content_words(text))
    return frozenset(words)


def flatten_text(value: Any) -> str:
    """Return all texts of a JSON value, one per line."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "\n".join(flatten_text(item) for item in value.values())
    if isinstance(value, Sequence):
        return "\n".join(flatten_text(item) for item in value)
    return ""


def contains_any(text: str, words: Collection[str]) -> bool:
    return bool(words) and not set(words).isdisjoint(content_words(text))


def quotes_any(text: str, words: Collection[str], refs: Collection[str]) -> bool:
    """Tell whether a text has one of these words or cites one of ``refs`` (``m12``, a SHA-256)."""
    return not set(refs).isdisjoint(_REF.findall(text)) or contains_any(text, words)


REPLACEMENTS: Mapping[type[schema.Base], Mapping[str, Any]] = {
    schema.EdgeRow: {"rationale": events.CUT_RATIONALE},
    schema.IdentityStatementRow: {"reason": ""},
    schema.KeyframeRow: dict.fromkeys(
        ("description", "description_embedding", "next_description_embedding")
    ),
    schema.ClipRow: {"error": None},
}
"""Values that replace texts which repeat words of deleted clips, by table."""


@dataclass(frozen=True)
class DeletionRange:
    """The span of the whole clips to delete, and those of them that are not deleted yet."""

    video: Video
    span: TimeSpan
    clips: tuple[int, ...]


@dataclass(frozen=True)
class SpanDeletion:
    """Counts of what was deleted with a span; ``rewritten`` counts texts generated again."""

    clips: int
    images: int
    answers: int
    people: int
    rewritten: int


def find_deletion_range(store: Store, name: str, span: TimeSpan) -> DeletionRange:
    """Return the clips that deleting a span of a video removes.

    Raises:
        NotFound: no video goes by that name.
        Ambiguous: several do.
        InputError: the span is empty, or beyond the video's end.
    """
    with store.begin(snapshot=True) as session:
        return _find_deletion_range(session, find_video(session, name), span)


def _find_deletion_range(session: Session, video: Video, span: TimeSpan) -> DeletionRange:
    if not span.length_ms:
        raise InputError("the span is empty: it must end after it begins")
    touched = cut_clips.overlapping_clips(session, video.id, span)
    if not touched:
        raise InputError(
            f"{video.title} ends at {format_clock(video.duration_ms)}, before that span"
        )
    remaining = tuple(clip for clip, _, state in touched if state != ClipState.DELETED)
    return DeletionRange(video, touched[0][1].union(touched[-1][1]), remaining)


def list_deleted_spans(store: Store, video: str) -> list[TimeSpan]:
    """Return the deleted spans of a video, in order of time."""
    with store.begin() as session:
        return cut_clips.deleted_spans(session, video)


def delete_span(
    store: Store, name: str, span: TimeSpan, embedder: TextEmbedder, settings: MemorySettings
) -> SpanDeletion:
    """Delete a span of a video from memory, in one transaction; it cannot be undone.

    Deleted are the clips that it overlaps with their images and vectors, people who appear nowhere
    else, segments wholly within, the writers' model calls from the first of the clips on, and every
    answer that was shown any of it or is running. Segments that extend beyond it are summarised
    again from the remaining memories. Later texts with words that occur only in the deleted clips
    are deleted or summarised again too.

    A second call removes files that a killed run left on the disk.

    Raises:
        NotFound: no video goes by that name.
        Ambiguous: several do.
        InputError: the span is empty, or beyond the video's end.
    """
    with store.begin() as session:
        video_id = find_video(session, name).id

    def run(session: Session) -> tuple[DeletionRange, _Deletion, list[str]]:
        lock_video_for_delete(session, video_id)
        deleted = _find_deletion_range(session, find_video(session, video_id), span)
        deletion = _Deletion(session, deleted, vectors, settings)
        unused = deletion.run() if deleted.clips else []
        vectors.require_deferred()
        record_deed(
            session,
            Deed.DELETED,
            f"{deleted.video.id} {deleted.span.start_ms}-{deleted.span.end_ms} ms",
        )
        faults.fault_point(faults.FaultPoint.CUT_ROWS)
        return deleted, deletion, unused

    with embeddings_recorded_after(store, video_id):
        vectors = TransactionEmbedder(embedder)
        deleted, deletion, unused = run_with_models(store, run)
    faults.fault_point(faults.FaultPoint.CUT)
    remove_recap_files(store.home, deleted.video.id)
    images = remove_unused_blobs(store, unused) + remove_orphaned_blobs(store)
    return SpanDeletion(
        len(deleted.clips), images, deletion.answers, deletion.people, deletion.rewritten
    )


class _Deletion:
    """Deletes clips of one video inside one transaction."""

    def __init__(
        self,
        session: Session,
        deleted: DeletionRange,
        vectors: TransactionEmbedder,
        settings: MemorySettings,
    ) -> None:
        self._session, self._video = session, deleted.video.id
        self._clips = frozenset(deleted.clips)
        self._vectors, self._settings = vectors, settings
        self.answers = self.people = self.rewritten = 0

    def run(self) -> list[str]:
        """Delete the clips; return the SHA-256 of blobs that are no longer used."""
        session, video, clips = self._session, self._video, self._clips
        require_encoder(session, self._vectors.name)
        words = exclusive_words(
            cut_clips.texts_in_clips(session, video, clips),
            cut_clips.texts_elsewhere(session, video, clips),
        )
        refs = cut_clips.refs_in(session, video, clips)
        refs |= built_refs(session, video, min(clips))
        identities = cut_clips.identities_in_clips(session, video, clips)
        cut_clips.cut_clips(session, video, clips)
        cut_builds(session, video, clips)
        said, continued = cut_clips.trim_continued_lines(session, video, clips)
        refs |= {f"m{one}" for one in said}
        cut_clips.remove_learned_names(session, video, self._clips)
        first_clips = cut_clips.first_appearances(session, video, identities)
        deleted = identities - first_clips.keys()
        tags = cut_clips.identity_tags(session, deleted)
        deleted_numbers = set(cut_clips.delete_identities(session, video, deleted))
        cut_clips.move_first_clips(session, first_clips)
        self.people = len(deleted_numbers)
        for correction in corrections_of(session, video) if deleted else ():
            # A correction stays without deleted people, given by their numbers and tags.
            remaining = outcomes_without(correction, deleted_numbers, tags)
            if not deleted_numbers.intersection(correction.numbers):
                changed = correction.model_copy(update={"outcomes": remaining})
            else:
                numbers = tuple(sorted(set(correction.numbers) - deleted_numbers))
                update: dict[str, object] = {
                    "told": FORGOTTEN_SUMMARY,
                    "numbers": numbers,
                    "outcomes": remaining,
                }
                update |= {} if remaining else {"undone": True}
                changed = correction.model_copy(update=update)
            change_correction(session, video, changed)
        place_people(session, video)
        refs |= {f"s{segment}" for segment in self._delete_events(words, said, continued)}
        gone = cut_clips.running_trajectories(session, video)
        for run, text in cut_clips.trajectory_texts(session, video, min(self._clips)):
            if run not in gone and quotes_any(text, words, refs):
                gone.add(run)
        cut_clips.delete_trajectories_and_results(session, sorted(gone))
        self.answers = len(gone)
        for key, text in list(cut_clips.result_texts(session, video)):
            if contains_any(text, words):
                cut_clips.delete_result(session, key)
        events.rewrite_patches(session, video, clips)
        return delete_unnamed_blob_rows(session, video)

    def _delete_events(
        self, words: frozenset[str], said: set[int], continued: set[int]
    ) -> set[int]:
        """Delete from the event graph, and texts with ``words``; return the changed segments.

        ``said`` are lines of later clips that quote these, ``continued`` the clips of those.
        """
        session, video = self._session, self._video
        changed, partial = events.cut_segments(session, video, self._clips)
        changed |= events.cut_edges(session, video, self._clips)
        candidates = list(texts_with(session, video, sorted(words))) if words else []
        found = [row for row in candidates if contains_any(flatten_text(row.texts), words)]
        for one in found:
            if one.table in REPLACEMENTS:
                update_row(session, one, REPLACEMENTS[one.table])
                self.rewritten += 1
        memories = [int(row.key["id"]) for row in found if row.table is schema.MemoryRow]
        changed_clips = cut_clips.delete_memories(session, [*memories, *said]) | continued
        changed_clips |= {int(row.key["clip"]) for row in found if row.table is schema.ClipRow}
        for clip in sorted(changed_clips):
            self._summarise_clip(clip)
        rows = {revision.row for revision in partial} | {
            int(row.key["id"]) for row in found if row.table is schema.SegmentRevisionRow
        }
        rows |= events.revisions_of_clips(session, video, continued)
        for row in sorted(rows):
            revision = events.load_cut_revision(session, row)
            changed.add(revision.segment)
            self._rewrite_segment(revision)
        return changed

    def _summarise_clip(self, clip: int) -> None:
        """Summarise a clip again from the lines that are left, with the names learned by then."""
        session, video = self._session, self._video
        people = people_at(session, video, clip)
        memories = [row.memory for row in memories_of_clips(session, video, [clip], clip)]
        texts = [search_text(memory, people) for memory in memories]
        vectors = (
            [vector.tolist() for vector in self._vectors.embed_deferred(texts)] if texts else []
        )
        cut_clips.set_memory_vectors(
            session, dict(zip((memory.id for memory in memories), vectors, strict=True))
        )
        text = "\n".join(format_line(memory, people) for memory in memories)
        cut_clips.set_clip_summary(
            session, video, clip, text, mean_direction(vectors) if vectors else None
        )
        self.rewritten += 1

    def _rewrite_segment(self, revision: CutRevision) -> None:
        """Compute a revision's label and summary again, from its clips' memories as of its clip."""
        session, video = self._session, self._video
        memories = memories_of_clips(session, video, revision.clips, revision.from_clip)
        people = people_at(session, video, revision.from_clip)
        lines = to_window_lines(memories, people)
        spans = clip_spans(session, video, revision.clips)
        span = spans[revision.clips[0]].union(spans[revision.clips[-1]])
        max_words = self._settings.label_words
        label = (
            Salience(lines).label(lines, max_words)
            or f"Nothing said at {format_clock(span.start_ms)}"
        )
        other_labels = events.labels_of_other_segments(session, video, revision.segment)
        if label in other_labels:
            label = with_time(label, span, max_words)
        if label in other_labels:
            label = f"{label} ({revision.number})"
        text = summarise(lines) or "Nothing was said or read, and nobody was recognised."
        (vector,) = self._vectors.embed_deferred([f"{label}. {text}"])
        events.rewrite_revision(session, revision.row, label, text, vector.tolist())
        self.rewritten += 1
