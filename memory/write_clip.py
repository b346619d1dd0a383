"""Stores a clip: percept, identities and memories, in one transaction with its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Protocol

from sqlalchemy.orm import Session

from domain import faults
from domain.errors import ModelError, NotFound, Refused
from domain.media import KEYFRAMES_ONLY, ClipState, ClipView, IdentityKind, Percept
from domain.memories import ClipMemories, Memory, MemoryKind
from domain.people import escape_tags
from domain.settings import Settings
from memory.clip_lines import mark_continued, may_continue, store_memories, supersede_local_lines
from memory.drafts import (
    CallRecording,
    WriterInput,
    WrittenDraft,
    last_known_clip,
    update_tags,
    write_draft,
)
from memory.kept_frames import ClipKeeping
from memory.writers.local_clip import LocalClipWriter
from memory.writers.port import ClipContext, Writers
from models.ports import MemoryModels
from models.text_endpoint import recorded_embeddings
from people import identities
from people.characters import (
    ClipPeople,
    NameClaim,
    join_voices,
    name_characters,
    name_speakers,
    people_of_clip,
    source_of_name,
)
from people.face_voice import confirmed_claims, statements_by_co_occurrence, statements_by_name
from people.model_transactions import (
    ModelCallNeeded,
    TransactionEmbedder,
    record_call,
    run_with_models,
)
from people.names import format_clip, search_text
from store.blobs import BlobStore
from store.database import Store, remove_unused_blobs
from store.queries.alerts import queue_clip
from store.queries.blobs import lock_blobs_shared
from store.queries.clips import fail_clip, mark_clip, record_writing
from store.queries.encoders import require_encoder
from store.queries.memories import facts_about, memories_of_clips
from store.queries.percepts import (
    add_blobs,
    add_percept,
    clip_state,
    describe_keyframes,
    is_unwritten,
    lock_video,
    title_of,
)
from store.queries.videos import FINISHED_STATES

MAX_BEFORE = 5
"""Most lines of an earlier clip that a writer is shown."""
MAX_FACTS = 30
"""Most known facts about a clip's people that a writer is shown."""


class ClipPercept(Protocol):
    """A clip's percept, and the JPEGs it names by their SHA-256."""

    @property
    def percept(self) -> Percept:
        """What was perceived."""

    @property
    def blobs(self) -> Mapping[str, bytes]:
        """JPEG bytes by SHA-256."""

    @property
    def view(self) -> ClipView:
        """Return what a model is shown of the clip besides its keyframes."""


@dataclass(frozen=True)
class PerceptWithoutBlobs:
    """A percept with these blobs, by default none."""

    percept: Percept
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    view: ClipView = KEYFRAMES_ONLY


def _is_empty(percept: Percept) -> bool:
    audio = (percept.utterances, percept.captions, percept.voices, percept.sounds)
    texts = (percept.subtitles, percept.chapters)
    return not any(
        (*audio, *texts, percept.keyframes, percept.faces, percept.screen_texts, percept.objects)
    )


class ClipWriter:
    """Turns the clips of a video into memory: model calls, and transactions between them.

    Clips are given in order, since identities are matched to those of earlier clips. Models are
    called before the transaction that stores their results; if their input has changed by then,
    they are called again.
    """

    def __init__(
        self,
        store: Store,
        video_id: str,
        writers: Writers,
        models: MemoryModels,
        settings: Settings,
    ) -> None:
        self._store, self.video_id, self.settings = store, video_id, settings
        self.writers, self._models = writers, models
        self._drafts: dict[int, WrittenDraft] = {}
        self._recordings: dict[int, CallRecording] = {}

    @cached_property
    def vectors(self) -> TransactionEmbedder:
        """The vectors made so far; an encoder may be asked for its size here, on record."""
        return TransactionEmbedder(self._models.text)

    def remember(
        self,
        perceived: ClipPercept,
        draft: WrittenDraft | None = None,
        keeping: ClipKeeping | None = None,
    ) -> ClipState:
        """Turn one clip's percept into memory, in one transaction; done and deleted ones stay.

        Args:
            draft: what the writer wrote of it in advance (``draft``).
            keeping: what the keepers of frames make of it.

        Returns:
            DONE, or FAILED if a second call is to try again: the clip could not be decoded, and
            only the reason is stored; or its model failed, and it is stored with local lines,
            which those of the model replace then.

        Raises:
            NotFound: the video has no such clip.
        """
        percept = perceived.percept
        failure = percept.error if _is_empty(percept) else None
        try:
            if failure is None:
                if draft is not None:
                    self._drafts[percept.clip.index] = draft
                with self._embeddings_recorded(percept):
                    unwritten = self._store_clips([perceived], keeping)
                return ClipState.FAILED if unwritten else ClipState.DONE
        except ModelError as error:
            failure = str(error)
        with self._store.begin() as session:
            lock_video(session, self.video_id)
            left = fail_clip(session, self.video_id, percept.clip.index, failure)
        return ClipState.FAILED if left else ClipState.DONE

    def remember_many(self, percepts: Sequence[Percept], texts: Sequence[str] = ()) -> None:
        """Like ``remember`` for several clips without blobs, in one transaction for all of them.

        Vectors of ``texts`` will be needed, and are made in advance.

        Raises:
            ModelError: vectors could not be made; none of these clips is stored.
        """
        self.vectors = TransactionEmbedder(self._models.text, texts)
        self._store_clips([PerceptWithoutBlobs(percept) for percept in percepts])

    def draft(self, clips: Sequence[ClipPercept]) -> WrittenDraft | None:
        """Have the last of these clips written before those preceding it are stored.

        ``clips`` are those that will be stored before it, in order, and the clip itself.

        Returns:
            The draft for ``remember``; None if the clip needs none.
        """
        target = clips[-1].percept
        if not self.writers.clip.wants_context or _is_empty(target):
            return None
        engines = [_needed_engines(clip.percept, self._models, self.settings) for clip in clips]

        def run(session: Session) -> WrittenDraft | None:
            lock_video(session, self.video_id)
            for clip, clip_engines in zip(clips, engines, strict=True):
                transaction = _ClipTransaction(session, self, clip, clip_engines)
                if not transaction.is_due():
                    continue
                recognised = transaction.store_percept()
                if clip is clips[-1]:
                    transaction.written_draft(recognised)
            session.rollback()  # The rows are stored later, by ``remember``.
            return self._drafts.get(target.clip.index)

        with self._embeddings_recorded(target):
            return run_with_models(self._store, run)

    def require_draft(self, clip_percept: ClipPercept, writer_input: WriterInput) -> WrittenDraft:
        """Return what the writer made of a clip when it was shown this.

        Raises:
            ModelCallNeeded: There is no draft for this input yet.
        """
        clip = clip_percept.percept.clip.index
        draft = self._drafts.get(clip)
        if draft is None or draft.writer_input.key != writer_input.key:
            raise ModelCallNeeded(lambda: self._write_draft(clip_percept, writer_input))
        return draft

    def _embeddings_recorded(self, percept: Percept) -> AbstractContextManager[None]:
        record = partial(record_call, self._store, self.video_id, percept.clip.index)
        return recorded_embeddings(record)

    def _store_clips(
        self, clips: Sequence[ClipPercept], keeping: ClipKeeping | None = None
    ) -> list[int]:
        """Store clips, all in one transaction; return those that a model failed to write.

        Raises:
            ModelError: vectors could not be made; none of these clips is stored.
        """
        engines = [_needed_engines(clip.percept, self._models, self.settings) for clip in clips]

        def run(session: Session) -> list[int]:
            lock_video(session, self.video_id)
            unwritten = []
            for clip, clip_engines in zip(clips, engines, strict=True):
                transaction = _ClipTransaction(session, self, clip, clip_engines)
                transaction.remember(self._store.blobs, keeping)
                if transaction.failure is not None:
                    unwritten.append(transaction.clip)
            faults.fault_point(faults.FaultPoint.CLIP_COMMITTING)
            return unwritten

        unwritten = run_with_models(self._store, run)
        faults.fault_point(faults.FaultPoint.CLIP_COMMITTED)
        if keeping is not None and keeping.unused:
            remove_unused_blobs(self._store, keeping.unused)
        return unwritten

    def _write_draft(self, clip_percept: ClipPercept, writer_input: WriterInput) -> None:
        clip = clip_percept.percept.clip.index
        recording = self._recordings.setdefault(
            clip, CallRecording(self._store, self.video_id, clip)
        )
        writer, view = self.writers.clip, clip_percept.view
        percept, blobs = clip_percept.percept, clip_percept.blobs
        self._drafts[clip] = write_draft(writer, percept, blobs, view, writer_input, recording)


class _ClipTransaction:
    """Stores one clip of a video inside a transaction that holds the video's lock.

    ``failure`` is the error with which a model failed to write it. ``again``: it is stored with
    local lines. Then those that the model does not repeat are superseded at once, so that answers
    which cite them still show them; who was recognised stays as it is.
    """

    def __init__(
        self,
        session: Session,
        writing: ClipWriter,
        clip_percept: ClipPercept,
        engines: Mapping[IdentityKind, identities.MatchingSettings],
    ) -> None:
        self.session, self.writing, self.video_id = session, writing, writing.video_id
        self.clip_percept, self.percept, self.engines = clip_percept, clip_percept.percept, engines
        self.clip = clip_percept.percept.clip.index
        self.failure: ModelError | None = None
        self.again = is_unwritten(session, self.video_id, self.clip)

    def remember(self, blob_store: BlobStore, keeping: ClipKeeping | None) -> None:
        """Store the clip, unless it is done or deleted."""
        if self.is_due():
            require_encoder(self.session, self.writing.vectors.name)
            recognised = self.store_percept()
            people, written = self._write_memories(recognised)
            if not (self.again and self.failure):
                learned = people_of_clip(
                    self.session, self.video_id, recognised, self.clip, learned=True
                )
                self._store_memories(people, learned, written)
            if self.failure is not None:
                why, refused = str(self.failure), isinstance(self.failure, Refused)
                fail_clip(self.session, self.video_id, self.clip, why, for_good=refused)
            queue_clip(self.session, self.video_id, self.clip)
            faults.fault_point(faults.FaultPoint.CLIP_ROWS)
            if self.clip_percept.blobs:
                lock_blobs_shared(self.session)
                sizes = {
                    blob_store.put(data): len(data)
                    for _, data in sorted(self.clip_percept.blobs.items())
                }
                add_blobs(self.session, self.video_id, sizes)
            if keeping is not None:
                keeping.store(self.session)

    def is_due(self) -> bool:
        """Check whether the clip is neither done nor deleted.

        Raises:
            NotFound: the video has no such clip.
        """
        state = clip_state(self.session, self.video_id, self.clip)
        if state is None:
            raise NotFound(
                f"video {self.video_id} has no clip {self.clip}: was it deleted meanwhile?"
            )
        return self.again or state not in FINISHED_STATES

    def store_percept(self) -> identities.Recognised:
        """Store what was perceived, and who was recognised, unless it is stored."""
        percept = self.percept
        if self.again:
            recognised = identities.recognised_before(self.session, self.video_id, percept)
            self.percept = recognised.only_known(percept)
            blobs, view = self.clip_percept.blobs, self.clip_percept.view
            self.clip_percept = PerceptWithoutBlobs(self.percept, blobs, view)
            return recognised
        recognised = identities.recognise(self.session, self.video_id, percept, self.engines)
        name_speakers(self.session, self.video_id, recognised, self.clip)
        speakers = {name: identity.id for name, identity in recognised.speakers.items()}
        rows = recognised.rows()
        sightings = add_percept(self.session, self.video_id, percept, rows, speakers)
        identities.update_exemplars(self.session, percept, recognised, sightings, self.engines)
        return recognised

    def _write_memories(self, recognised: identities.Recognised) -> tuple[ClipPeople, ClipMemories]:
        clip = self.clip
        people = people_of_clip(self.session, self.video_id, recognised, clip)
        people_given, written = self._memories_and_people(recognised, people)
        written = update_tags(written, people_given, people)
        source = self.writing.writers.clip.source
        name_claims = [
            NameClaim(tag, name, source_of_name(tag, source)) for tag, name in written.names
        ]
        claims = confirmed_claims(self.session, self.video_id, name_claims, people, clip)
        unsure = tuple(
            f"{claim.tag} is named {escape_tags(claim.name)}"
            for claim in name_claims
            if claim not in claims
        )
        if unsure:
            drafts = tuple(one for one in written.drafts if not one.text.startswith(unsure))
            written, name_claims = written.model_copy(update={"drafts": drafts}), claims
        name_characters(self.session, self.video_id, name_claims, people, clip)
        statements = [
            *(one for one in written.statements if one.by_model or not self.again),
            *statements_by_name(self.session, self.video_id, name_claims, clip),
        ]
        if not self.again:
            at = self.percept.clip
            statements += statements_by_co_occurrence(self.session, self.video_id, people, at)
        join_voices(self.session, self.video_id, statements, people)
        if name_claims or statements:
            earlier_people, people = (
                people,
                people_of_clip(self.session, self.video_id, recognised, clip),
            )
            written = update_tags(written, earlier_people, people)
        return people, written

    def _memories_and_people(
        self, recognised: identities.Recognised, people: ClipPeople
    ) -> tuple[ClipPeople, ClipMemories]:
        """Return what the writer wrote, and the people as it knew them."""
        writer = self.writing.writers.clip
        if writer.wants_context:
            draft = self.written_draft(recognised)
            people, written = draft.writer_input.people, draft.output
            if not isinstance(written, ModelError):
                return people, written
            self.failure = written
            writer = LocalClipWriter(self.writing.settings.memory.lines)
            local = writer.write(self.percept, people, ClipContext(self.video_id))
            # Names are facts, and those that the model reads in the clip come with its own lines.
            said = tuple(one for one in local.drafts if one.kind == MemoryKind.EPISODIC)
            return people, local.model_copy(update={"drafts": said, "names": ()})
        # Such a writer is rule-based: it may run within the transaction.
        previous, before = self.clip - 1, tuple[Memory, ...]()
        if previous >= 0 and may_continue(self.percept):
            rows = memories_of_clips(self.session, self.video_id, [previous], previous)
            before = tuple(row.memory for row in rows)
        context = ClipContext(self.video_id, before=before)
        return people, writer.write(self.percept, people, context)

    def written_draft(self, recognised: identities.Recognised) -> WrittenDraft:
        """Return what a language model wrote of the clip.

        Raises:
            ModelCallNeeded: There is no draft for this input yet.
        """
        last_known = last_known_clip(self.clip, self.writing.settings.memory.clips_at_once)
        people = people_of_clip(
            self.session, self.video_id, recognised, self.clip, known=last_known
        )
        ids = [clip_percept.id for clip_percept in people.identities().values()]
        facts = facts_about(self.session, self.video_id, ids, last_known, MAX_FACTS)
        rows = memories_of_clips(self.session, self.video_id, [last_known], last_known)
        before = [row.memory for row in rows if row.memory.kind == MemoryKind.EPISODIC]
        title = title_of(self.session, self.video_id)
        context = ClipContext(
            self.video_id, title, tuple(facts), before=tuple(before[-MAX_BEFORE:])
        )
        return self.writing.require_draft(self.clip_percept, WriterInput(people, context))

    def _store_memories(
        self, people: ClipPeople, learned: ClipPeople, written: ClipMemories
    ) -> None:
        # Texts use learned names only, so that undoing a correction leaves no trace in vectors.
        session, video, clip = self.session, self.video_id, self.clip
        pause_ms = self.writing.settings.watch.sound_pause_ms
        drafts = mark_continued(session, video, self.percept.clip, written.drafts, pause_ms)
        known = 0
        if self.again:
            drafts, known = supersede_local_lines(session, video, clip, drafts)
        texts = [
            *(search_text(draft, learned) for draft in drafts),
            *(learned.replace_tags(one.text) for one in written.descriptions),
        ]
        embedded = list(self.writing.vectors.embed(texts)) if texts else []
        vectors, of_pictures = embedded[: len(drafts)], embedded[len(drafts) :]
        describe_keyframes(session, video, clip, written.descriptions, of_pictures)
        settings = self.writing.settings
        store_memories(session, video, clip, drafts[known:], vectors[known:], people, settings)
        # The mean direction of the lines: embedding the whole text would cost as much again.
        embedding = identities.mean_direction(vectors) if vectors else None
        in_order = sorted(drafts, key=lambda draft: (draft.span.start_ms, draft.span.end_ms))
        text = format_clip(in_order, learned)
        error, unwritten = self.percept.error, self.failure is not None
        mark_clip(session, video, clip, ClipState.DONE, error, text, embedding, unwritten=unwritten)
        if written.budget is not None:
            record_writing(session, video, clip, written)


def _needed_engines(
    percept: Percept, models: MemoryModels, settings: Settings
) -> dict[IdentityKind, identities.MatchingSettings]:
    """Thresholds of the models that are needed for this clip; loads no other."""
    engines = {}
    if percept.faces:
        keep = settings.watch.face_exemplars
        engines[IdentityKind.FACE] = identities.MatchingSettings(models.faces.same_person, keep)
    if percept.voices:
        keep = settings.watch.voice_exemplars
        engines[IdentityKind.VOICE] = identities.MatchingSettings(models.speaker.same_speaker, keep)
    return engines
