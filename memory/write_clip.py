"""Remembers a clip: everything learned from it is stored in one transaction with its mark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlalchemy.orm import Session

from domain import faults
from domain.errors import ModelError, NotFound
from domain.media import ClipState, IdentityKind, Percept
from domain.memories import ClipMemories
from domain.settings import Settings
from memory.drafts import WriterInput, WrittenDraft, drafted, last_learned, retagged
from memory.event_graph_update import weave_due
from memory.facts import store_memories
from memory.ports import MemoryModels
from memory.writer_calls import Recording
from memory.writers.port import ClipContext, Writers
from people.characters import NameClaim, call, introduce, join_voices, source_of_name
from people.clip_people import ClipPeople
from people.corrected import learned_people, people_ahead, people_of
from people.face_voice import by_company, by_names
from people.identities import Engine, Recognised, keep_exemplars, recognise
from people.matching import direction
from people.memory_lines import clip_text, searchable
from people.model_transactions import Lacking, TransactionEmbedder, transact
from store.blobs import BlobStore
from store.database import Store
from store.queries.blobs import lock_blobs_shared
from store.queries.clips import mark_clip, record_budget
from store.queries.memories import facts_about
from store.queries.percepts import add_blobs, add_percept, clip_state, lock_video, title_of
from store.queries.videos import FINISHED_STATES

__all__ = ["draft_ahead", "remember", "remember_many", "weave_due"]

FACTS = 30
"""How many known facts about a clip's people a writer is shown."""


class ClipPercept(Protocol):
    """A clip's percept, and the JPEGs it names by their SHA-256."""

    @property
    def percept(self) -> Percept:
        """What was perceived."""

    @property
    def blobs(self) -> Mapping[str, bytes]:
        """JPEG bytes by SHA-256."""


def remember(
    store: Store,
    video_id: str,
    perceived: ClipPercept,
    writers: Writers,
    toolbox: MemoryModels,
    settings: Settings,
    draft: WrittenDraft | None = None,
) -> ClipState:
    """Turn one clip's percept into memory, in one transaction. A clip that is done stays as it is.

    So does one that was deleted. Clips are to come in order: who is new and who is known depends
    on it. Models are called before the transaction that stores what they gave; where what they
    were shown is no longer so then, they are called again.

    Args:
        store: The store; the video and its clips are in it.
        video_id: The video.
        perceived: The clip's percept and blobs.
        writers: Who writes the memory.
        toolbox: For text vectors, and the thresholds of the face and speaker models.
        settings: How many exemplars are kept, and when facts are the same.
        draft: What the writer wrote already (``draft_ahead``).

    Returns:
        DONE; or FAILED where the clip could not be decoded or its memory not be written. Then
        nothing of it is stored but the reason, and calling again tries again.

    Raises:
        NotFound: the video has no such clip.
    """
    percept = perceived.percept
    hollow = percept.error if _is_empty(percept) else None
    try:
        if hollow is None:
            job = _ClipWriting(store, video_id, writers, toolbox, settings)
            job.store([perceived], {} if draft is None else {percept.clip.index: draft})
            return ClipState.DONE
    except ModelError as error:
        hollow = str(error)
    return _fail(store, video_id, percept.clip.index, hollow)


def remember_many(
    store: Store,
    video_id: str,
    percepts: Sequence[Percept],
    writers: Writers,
    toolbox: MemoryModels,
    settings: Settings,
    texts: Sequence[str] = (),
) -> None:
    """Like ``remember`` for several clips without blobs, in one transaction for all of them.

    Args:
        store: As of ``remember``.
        video_id: As of ``remember``.
        percepts: What was perceived, in order.
        writers: As of ``remember``.
        toolbox: As of ``remember``.
        settings: As of ``remember``.
        texts: Whose vectors will be needed: asked for at once, before anything is stored.

    Raises:
        ModelError: a memory could not be written; none of these clips is stored.
    """
    job = _ClipWriting(store, video_id, writers, toolbox, settings, texts)
    job.store([_Bare(percept) for percept in percepts], {})


def draft_ahead(
    store: Store,
    video_id: str,
    coming: Sequence[ClipPercept],
    writers: Writers,
    toolbox: MemoryModels,
    settings: Settings,
) -> WrittenDraft | None:
    """Have the last of these clips written while those before it are yet to be stored.

    Args:
        store: As of ``remember``.
        video_id: As of ``remember``.
        coming: The clip, after those that will be stored before it, in order.
        writers: As of ``remember``.
        toolbox: As of ``remember``.
        settings: As of ``remember``.

    Returns:
        What ``remember`` takes for that clip; None where it needs no draft.
    """
    last = coming[-1]
    if not writers.clip.wants_context or _is_empty(last.percept):
        return None
    return _ClipWriting(store, video_id, writers, toolbox, settings).draft(coming)


@dataclass(frozen=True)
class _Bare:
    """A percept without blobs."""

    percept: Percept
    blobs: Mapping[str, bytes] = field(default_factory=dict)


def _is_empty(percept: Percept) -> bool:
    heard = (percept.utterances, percept.captions, percept.voices)
    beside = (percept.subtitles, percept.chapters)
    return not any(
        (*heard, *beside, percept.keyframes, percept.faces, percept.screen_texts, percept.objects)
    )


def _fail(store: Store, video_id: str, clip: int, reason: str) -> ClipState:
    with store.begin() as session:
        lock_video(session, video_id)
        if clip_state(session, video_id, clip) in FINISHED_STATES:
            return ClipState.DONE
        mark_clip(session, video_id, clip, ClipState.FAILED, reason)
    return ClipState.FAILED


class _ClipWriting:
    """The writing of some clips of one video: model calls, and transactions between them."""

    def __init__(
        self,
        store: Store,
        video_id: str,
        writers: Writers,
        toolbox: MemoryModels,
        settings: Settings,
        texts: Sequence[str] = (),
    ) -> None:
        self._store, self.video_id, self.settings = store, video_id, settings
        self.writers, self._toolbox = writers, toolbox
        self.vectors = TransactionEmbedder(toolbox.text, texts)
        self._drafts: dict[int, WrittenDraft] = {}
        self._calls: dict[int, Recording] = {}

    def store(self, clips: Sequence[ClipPercept], drafts: Mapping[int, WrittenDraft]) -> None:
        """Store clips, all in one transaction.

        Raises:
            ModelError: a memory could not be written; none of these clips is stored.
        """
        self._drafts |= drafts
        engines = [_engines(one.percept, self._toolbox, self.settings) for one in clips]

        def run(session: Session) -> None:
            lock_video(session, self.video_id)
            for one, known in zip(clips, engines, strict=True):
                _Maker(session, self, one, known).remember(self._store.blobs)
            faults.fault_point(faults.FaultPoint.CLIP_COMMITTING)

        transact(self._store, run)
        faults.fault_point(faults.FaultPoint.CLIP_COMMITTED)

    def draft(self, coming: Sequence[ClipPercept]) -> WrittenDraft | None:
        """What the writer makes of the last of these clips, as the memory will be then."""
        engines = [_engines(one.percept, self._toolbox, self.settings) for one in coming]

        def run(session: Session) -> WrittenDraft | None:
            lock_video(session, self.video_id)
            for one, known in zip(coming, engines, strict=True):
                maker = _Maker(session, self, one, known)
                if not maker.is_due():
                    continue
                recognised = maker.perceived()
                if one is coming[-1]:
                    maker.written(recognised)
            session.rollback()  # What was recognised ahead of time is stored in its turn.
            return self._drafts.get(coming[-1].percept.clip.index)

        return transact(self._store, run)

    def drafted(self, one: ClipPercept, shown: WriterInput) -> WrittenDraft:
        """What the writer made of a clip when it was shown this.

        Raises:
            Lacking: It was not asked yet, or was shown something else.
        """
        clip = one.percept.clip.index
        made = self._drafts.get(clip)
        if made is None or made.shown.key != shown.key:
            raise Lacking(lambda: self._draft(one, shown))
        return made

    def _draft(self, one: ClipPercept, shown: WriterInput) -> None:
        clip = one.percept.clip.index
        calls = self._calls.setdefault(clip, Recording(self._store, self.video_id, clip))
        writer, blobs = self.writers.clip, one.blobs
        self._drafts[clip] = drafted(writer, one.percept, blobs, shown, self.video_id, calls)


class _Maker:
    """Writes one clip of a video inside a transaction, during which nobody else does."""

    def __init__(
        self,
        session: Session,
        job: _ClipWriting,
        one: ClipPercept,
        engines: Mapping[IdentityKind, Engine],
    ) -> None:
        self.session, self.job, self.video_id = session, job, job.video_id
        self.one, self.percept, self.engines = one, one.percept, engines
        self.clip = one.percept.clip.index

    def remember(self, keep: BlobStore) -> None:
        """Store the clip, unless it is done or deleted."""
        if self.is_due():
            recognised = self.perceived()
            people, written = self._write(recognised)
            learned = learned_people(self.session, recognised, self.clip)
            self._finish(people, learned, written)
            faults.fault_point(faults.FaultPoint.CLIP_ROWS)
            self._keep_blobs(keep)

    def is_due(self) -> bool:
        """Whether the clip is neither done nor deleted.

        Raises:
            NotFound: the video has no such clip.
        """
        state = clip_state(self.session, self.video_id, self.clip)
        if state is None:
            raise NotFound(
                f"video {self.video_id} has no clip {self.clip}: was it deleted meanwhile?"
            )
        return state not in FINISHED_STATES

    def perceived(self) -> Recognised:
        """Store what was perceived, and who was recognised."""
        percept = self.percept
        recognised = recognise(self.session, self.video_id, percept, self.engines)
        introduce(self.session, self.video_id, recognised, self.clip)
        speakers = {name: one.id for name, one in recognised.speakers.items()}
        rows = recognised.rows()
        sightings = add_percept(self.session, self.video_id, percept, rows, speakers)
        keep_exemplars(self.session, percept, recognised, sightings, self.engines)
        return recognised

    def _write(self, recognised: Recognised) -> tuple[ClipPeople, ClipMemories]:
        clip = self.clip
        people = people_of(self.session, self.video_id, recognised, clip)
        shown, written = self._written_of(recognised, people)
        written = retagged(written, shown, people)
        source = self.job.writers.clip.source
        calls = [NameClaim(tag, name, source_of_name(tag, source)) for tag, name in written.names]
        call(self.session, calls, people, clip)
        statements = (
            *written.statements,
            *by_names(self.session, self.video_id, calls, clip),
            *by_company(self.session, self.video_id, people, self.percept.clip),
        )
        join_voices(self.session, self.video_id, statements, people, clip)
        if calls or statements:
            before, people = people, people_of(self.session, self.video_id, recognised, clip)
            written = retagged(written, before, people)
        return people, written

    def _written_of(
        self, recognised: Recognised, people: ClipPeople
    ) -> tuple[ClipPeople, ClipMemories]:
        """What the writer wrote, and the people as it knew them."""
        writer = self.job.writers.clip
        if writer.wants_context:
            draft = self.written(recognised)
            return draft.shown.people, draft.result()
        # It goes by rules and calls no model: there is nothing to wait for.
        return people, writer.write(self.percept, people, ClipContext(self.video_id))

    def written(self, recognised: Recognised) -> WrittenDraft:
        """What a language model wrote of the clip.

        Raises:
            Lacking: It is yet to be asked.
        """
        return self.job.drafted(self.one, self._shown(recognised))

    def _shown(self, recognised: Recognised) -> WriterInput:
        learned = last_learned(self.clip, self.job.settings.memory.clips_at_once)
        people = people_ahead(self.session, self.video_id, recognised, self.clip, learned)
        ids = [one.id for one in people.identities().values()]
        facts = facts_about(self.session, self.video_id, ids, learned, FACTS)
        return WriterInput(people, title_of(self.session, self.video_id), tuple(facts))

    def _finish(self, people: ClipPeople, learned: ClipPeople, written: ClipMemories) -> None:
        # By the names that were learned, so that taking a correction back leaves nothing behind.
        session, video, clip, drafts = self.session, self.video_id, self.clip, written.drafts
        lines = [searchable(draft, learned) for draft in drafts]
        vectors = list(self.job.vectors.embed(lines)) if lines else []
        store_memories(session, video, clip, drafts, vectors, people, self.job.settings)
        # The lines' common direction: embedding the whole text would cost as much as all of them.
        embedding = direction(vectors) if vectors else None
        text = clip_text(drafts, learned)
        mark_clip(session, video, clip, ClipState.DONE, self.percept.error, text, embedding)
        if written.budget is not None:
            record_budget(session, video, clip, written.budget, written.left_out)

    def _keep_blobs(self, keep: BlobStore) -> None:
        if self.one.blobs:
            lock_blobs_shared(self.session)
            sizes = {keep.put(data): len(data) for _, data in sorted(self.one.blobs.items())}
            add_blobs(self.session, self.video_id, sizes)


def _engines(
    percept: Percept, toolbox: MemoryModels, settings: Settings
) -> dict[IdentityKind, Engine]:
    """Thresholds of the models that are needed for this clip; loads no other."""
    engines = {}
    if percept.faces:
        keep = settings.watch.face_exemplars
        engines[IdentityKind.FACE] = Engine(toolbox.faces.same_person, keep)
    if percept.voices:
        keep = settings.watch.voice_exemplars
        engines[IdentityKind.VOICE] = Engine(toolbox.speaker.same_speaker, keep)
    return engines
