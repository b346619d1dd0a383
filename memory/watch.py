"""Remembers a clip: everything learned from it is stored in one transaction with its mark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from sqlalchemy.orm import Session

from domain import faults
from domain.errors import ModelError, NotFound
from domain.media import ClipState, IdentityKind, Percept
from domain.memories import ClipMemories
from domain.settings import Settings
from memory.calls import Recording
from memory.characters import Call, call, introduce, join_voices, source_of_name
from memory.corrected import learned_people, people_of
from memory.facts import store_memories
from memory.identities import Engine, Recognised, keep_exemplars, recognise
from memory.joining import by_company, by_names
from memory.lines import clip_text, searchable
from memory.matching import direction
from memory.people import People
from memory.tools import Tools
from memory.weave import weave_due
from memory.writers.port import ClipContext, Writers
from store.blobs import BlobStore
from store.database import Store
from store.queries.blobs import hold_blobs
from store.queries.clips import keep_budget, mark_clip
from store.queries.memories import facts_about
from store.queries.percepts import add_blobs, add_percept, clip_state, lock_video, title_of
from store.queries.videos import OVER

__all__ = ["remember", "remember_many", "weave_due"]

FACTS = 30
"""How many known facts about a clip's people a writer is shown."""


class Perceived(Protocol):
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
    perceived: Perceived,
    writers: Writers,
    toolbox: Tools,
    settings: Settings,
) -> ClipState:
    """Turn one clip's percept into memory, in one transaction. A clip that is done stays as it is.

    So does one that was deleted. Clips are to come in order: who is new and who is known depends
    on it.

    Args:
        store: The store; the video and its clips are in it.
        video_id: The video.
        perceived: The clip's percept and blobs.
        writers: Who writes the memory.
        toolbox: For text vectors, and the thresholds of the face and speaker models.
        settings: How many exemplars are kept, and when facts are the same.

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
            calls = Recording(store, video_id, percept.clip.index)
            with store.begin() as session:
                maker = _Maker(session, video_id, writers, toolbox, settings, calls)
                maker.remember(percept, perceived.blobs, store.blobs)
                faults.fault_point(faults.FaultPoint.CLIP_COMMITTING)
            faults.fault_point(faults.FaultPoint.CLIP_COMMITTED)
            return ClipState.DONE
    except ModelError as error:
        hollow = str(error)
    return _fail(store, video_id, percept.clip.index, hollow)


def remember_many(
    store: Store,
    video_id: str,
    percepts: Sequence[Percept],
    writers: Writers,
    toolbox: Tools,
    settings: Settings,
) -> None:
    """Like ``remember`` for several clips without blobs, in one transaction for all of them.

    Raises:
        ModelError: a memory could not be written; none of these clips is stored.
    """
    first = percepts[0].clip.index if percepts else 0
    calls = Recording(store, video_id, first)
    with store.begin() as session:
        maker = _Maker(session, video_id, writers, toolbox, settings, calls)
        for percept in percepts:
            maker.remember(percept, {}, store.blobs)
        faults.fault_point(faults.FaultPoint.CLIP_COMMITTING)
    faults.fault_point(faults.FaultPoint.CLIP_COMMITTED)


def _is_empty(percept: Percept) -> bool:
    heard = (percept.utterances, percept.captions, percept.voices)
    beside = (percept.subtitles, percept.chapters)
    return not any(
        (*heard, *beside, percept.keyframes, percept.faces, percept.screen_texts, percept.objects)
    )


def _fail(store: Store, video_id: str, clip: int, reason: str) -> ClipState:
    with store.begin() as session:
        lock_video(session, video_id)
        if clip_state(session, video_id, clip) in OVER:
            return ClipState.DONE
        mark_clip(session, video_id, clip, ClipState.FAILED, reason)
    return ClipState.FAILED


class _Maker:
    """Writes clips of one video inside one transaction, during which nobody else does."""

    def __init__(
        self,
        session: Session,
        video_id: str,
        writers: Writers,
        toolbox: Tools,
        settings: Settings,
        calls: Recording,
    ) -> None:
        lock_video(session, video_id)
        self.calls = calls
        self.session, self.video_id = session, video_id
        self.writers, self.toolbox, self.settings = writers, toolbox, settings

    def remember(self, percept: Percept, blobs: Mapping[str, bytes], keep: BlobStore) -> None:
        """Store one clip, unless it is done or deleted."""
        clip = percept.clip.index
        state = clip_state(self.session, self.video_id, clip)
        if state is None:
            raise NotFound(f"video {self.video_id} has no clip {clip}: was it deleted meanwhile?")
        if state not in OVER:
            recognised = self._perceived(percept)
            people, written = self._write(percept, recognised, blobs)
            learned = learned_people(self.session, recognised, clip)
            self._finish(percept, people, learned, written)
            faults.fault_point(faults.FaultPoint.CLIP_ROWS)
            self._keep_blobs(blobs, keep)

    def _perceived(self, percept: Percept) -> Recognised:
        engines = _engines(percept, self.toolbox, self.settings)
        recognised = recognise(self.session, self.video_id, percept, engines)
        introduce(self.session, self.video_id, recognised, percept.clip.index)
        speakers = {name: one.id for name, one in recognised.speakers.items()}
        rows = recognised.rows()
        sightings = add_percept(self.session, self.video_id, percept, rows, speakers)
        keep_exemplars(self.session, percept, recognised, sightings, engines)
        return recognised

    def _write(
        self, percept: Percept, recognised: Recognised, blobs: Mapping[str, bytes]
    ) -> tuple[People, ClipMemories]:
        clip = percept.clip.index
        people = people_of(self.session, self.video_id, recognised, clip)
        written = self.writers.clip.write(percept, people, self._context(people, clip, blobs))
        source = self.writers.clip.source
        calls = [Call(tag, name, source_of_name(tag, source)) for tag, name in written.names]
        call(self.session, calls, people, clip)
        statements = (
            *written.statements,
            *by_names(self.session, self.video_id, calls, clip),
            *by_company(self.session, self.video_id, people, percept.clip),
        )
        join_voices(self.session, self.video_id, statements, people, clip)
        if calls or statements:
            people = people_of(self.session, self.video_id, recognised, clip)
        return people, written

    def _context(self, people: People, clip: int, blobs: Mapping[str, bytes]) -> ClipContext:
        if not self.writers.clip.wants_context:
            return ClipContext(self.video_id)
        ids = [one.id for one in people.identities().values()]
        facts = facts_about(self.session, self.video_id, ids, clip, FACTS)
        title = title_of(self.session, self.video_id)
        calls = (self.calls.keep, self.calls.served)
        return ClipContext(self.video_id, title, tuple(facts), blobs, *calls)

    def _finish(
        self, percept: Percept, people: People, learned: People, written: ClipMemories
    ) -> None:
        # By the names that were learned, so that taking a correction back leaves nothing behind.
        clip, text = percept.clip.index, clip_text(written.drafts, learned)
        lines = [searchable(draft, learned) for draft in written.drafts]
        vectors = list(self.toolbox.text.embed(lines)) if lines else []
        store_memories(
            self.session, self.video_id, clip, written.drafts, vectors, people, self.settings
        )
        # The lines' common direction: embedding the whole text would cost as much as all of them.
        embedding = direction(vectors) if vectors else None
        mark_clip(self.session, self.video_id, clip, ClipState.DONE, percept.error, text, embedding)
        if written.budget is not None:
            keep_budget(self.session, self.video_id, clip, written.budget, written.left_out)

    def _keep_blobs(self, blobs: Mapping[str, bytes], keep: BlobStore) -> None:
        if blobs:
            hold_blobs(self.session)
            sizes = {keep.put(data): len(data) for _, data in sorted(blobs.items())}
            add_blobs(self.session, self.video_id, sizes)


def _engines(percept: Percept, toolbox: Tools, settings: Settings) -> dict[IdentityKind, Engine]:
    """Thresholds of the models that are needed for this clip; loads no other."""
    engines = {}
    if percept.faces:
        keep = settings.watch.face_exemplars
        engines[IdentityKind.FACE] = Engine(toolbox.faces.same_person, keep)
    if percept.voices:
        keep = settings.watch.voice_exemplars
        engines[IdentityKind.VOICE] = Engine(toolbox.speaker.same_speaker, keep)
    return engines
