"""Erases a person from a video (faces, voices, crops and names), and restores them from a file.

Memories of other people stay, and so does what the person said, attributed to "somebody". Changed
rows get new vectors. Only a file that the user keeps can undo it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.alerts import AlertKind
from domain.errors import InputError
from domain.memories import MemoryDraft, MemoryKind, MemorySource
from domain.people import CorrectedCharacter, Correction, CorrectionKind, Forgotten
from domain.rights import Deed
from domain.time import TimeSpan
from domain.words import marked
from models.ports import TextEmbedder
from people.characters import people_at, place_people
from people.corrections import VideoPeople, find_person, lock_people
from people.identities import mean_direction
from people.model_transactions import (
    TransactionEmbedder,
    embeddings_recorded_after,
    run_with_models,
)
from people.names import NameEraser, search_text
from perception.source import drop_cached_original
from store.archive import ForgottenFile, read_forgotten_file, write_forgotten_file
from store.database import Store, remove_unused_blobs
from store.home import remove_recap_files
from store.queries import forget as stored
from store.queries.alerts import list_alerts, remove_alert
from store.queries.blobs import lock_blobs_shared, own_library_id
from store.queries.builds import delete_builds
from store.queries.characters import CharacterAt, change_correction, corrections_of
from store.queries.encoders import encoders_of_library, require_encoder, require_encoders
from store.queries.forget import Copy, NamedRow, Traces
from store.queries.library import delete_search, list_searches
from store.queries.percepts import lock_video
from store.queries.rights import erased_since, record_deed, transaction_time
from store.queries.videos import find_video, lock_video_for_delete
from store.tables.schema import ClipRow, KeyframeRow, MemoryRow, SegmentRevisionRow

FORGOTTEN_SUMMARY = marked("About somebody who was forgotten")
"""Replaces the summary of a correction that was about a forgotten person only."""


def forget(
    store: Store, video: str, person: str, embedder: TextEmbedder, undo_file: Path | None = None
) -> Forgotten:
    """Forget a person of a video.

    Deleted are their identities, sightings, crops, the keyframes on which they are in view, names,
    corrections about them, the writers' model calls for the video, every answer that read it, and
    the alerts and saved searches that name them. Links to those answers end, and are not restored.
    Texts that name them say "somebody" and get new vectors. The character's number is not reused.
    The recordings of a stream and previews are deleted, and not restored. The video file, its path
    and exports are left as they are.

    They are not recognised again: if ingestion continues, they are a new person.

    The ``embedder`` makes the vectors of texts that change. ``undo_file`` is a new file that can
    undo it; without one nothing can.

    Raises:
        NotFound: no such video or person.
        Ambiguous: several go by that name.
        InputError: ``undo_file`` is there already, in Homer's data, or cannot be written.
    """
    if undo_file is not None and undo_file.resolve().is_relative_to(store.home.root.resolve()):
        raise InputError(f"{undo_file} is in Homer's own data, where nothing of them is to be left")
    written = False
    with store.begin() as session:
        video_id = find_video(session, video).id

    def run(session: Session) -> tuple[_Forgetting, VideoPeople, CharacterAt, list[str], list[str]]:
        nonlocal written
        lock_video_for_delete(session, video_id)
        people = lock_people(session, video_id)
        character = find_person(people, person)
        forgetting = _Forgetting(session, people, character, vectors)
        blobs = stored.blobs_of_traces(session, forgetting.traces)
        unused_blobs = forgetting.run()
        vectors.require_deferred()
        record_deed(session, Deed.FORGOT, f"{people.video.id} person {character.character.number}")
        if undo_file is not None:
            images = {sha: store.blobs.get(sha) for sha in blobs}
            library = own_library_id(session)
            undo = ForgottenFile(
                people.video.id,
                library,
                encoders_of_library(session),
                transaction_time(session),
                tuple(forgetting.undo_rows),
                images,
            )
            write_forgotten_file(undo_file, undo)
            written = True
        return forgetting, people, character, blobs, unused_blobs

    try:
        with embeddings_recorded_after(store, video_id):
            vectors = TransactionEmbedder(embedder)
            forgetting, people, character, blobs, unused_blobs = run_with_models(store, run)
    except BaseException:
        if undo_file is not None and written:
            undo_file.unlink(missing_ok=True)
        raise
    remove_unused_blobs(store, unused_blobs)
    remove_recap_files(store.home, people.video.id)
    drop_cached_original(store.home, people.video.id)
    path = people.video.path if forgetting.is_named_in(people.video.path or "") else None
    return Forgotten(
        video=video_id,
        number=character.character.number,
        rewritten=forgetting.rewritten,
        images=len(blobs),
        answers=len(forgetting.traces.trajectories),
        alerts=forgetting.alerts,
        path=path,
        undo_file=undo_file,
    )


def outcomes_without(
    correction: Correction, numbers: Collection[int], tags: Collection[str]
) -> tuple[CorrectedCharacter, ...]:
    """Return a correction's outcomes but for characters of these numbers, without these tags."""
    return tuple(
        one.model_copy(
            update={
                name: tuple(tag for tag in getattr(one, name) if tag not in tags)
                for name in ("members", "nameless", "others")
            }
        )
        for one in correction.outcomes
        if one.number not in numbers
    )


def restore_forgotten(store: Store, video: str, path: Path) -> int:
    """Undo a `forget` with its undo file; return how many rows were restored.

    Raises:
        NotFound: no such video.
        InputError: the file is damaged or of another video or database, its rows conflict with
            newer ones, or it would restore what was deleted or forgotten since.
    """
    undo = read_forgotten_file(path)
    try:
        with store.begin() as session:
            target = find_video(session, video)
            if (undo.video, undo.library) != (target.id, own_library_id(session)):
                raise InputError(f"{path} is not of {target.title} in this database")
            lock_video(session, target.id)
            if erased_since(session, target.id, undo.at):
                raise InputError(
                    f"{path} cannot be brought back: more of {target.title} was deleted or "
                    "forgotten since, and would come back with it"
                )
            require_encoders(session, undo.encoders)
            lock_blobs_shared(session)
            for data in undo.blobs.values():
                store.blobs.put(data)
            # Frames that were kept since stay: they cannot be seen again.
            delete_builds(session, target.id, restoring=True)
            stored.restore_rows(session, undo.rows)
            place_people(session, target.id)
            record_deed(session, Deed.BROUGHT_BACK, target.id)
    except IntegrityError as exc:
        remove_unused_blobs(store, undo.blobs)
        raise InputError(
            f"{path} cannot be brought back: faces and voices that were met since have the numbers "
            "of those in it"
        ) from exc
    return len(undo.rows)


class _Forgetting:
    """Forgets one person inside one transaction; ``undo_rows`` are copies of the rows before."""

    def __init__(
        self,
        session: Session,
        people: VideoPeople,
        character: CharacterAt,
        vectors: TransactionEmbedder,
    ) -> None:
        self._session, self._vectors, self._video = session, vectors, people.video.id
        self._tags, self._numbers = set(character.tags), character.numbers
        self._corrections = corrections_of(session, self._video)
        self._eraser = NameEraser(
            {*self._tags, *(f"<character_{number}>" for number in self._numbers)},
            [
                *_names_of(character),
                # Every name that users gave the person.
                *(
                    name
                    for correction in self._corrections
                    for outcome in correction.outcomes
                    if outcome.number in self._numbers
                    for name in outcome.names
                ),
            ],
            [
                name
                for other in people.characters
                if other.members != character.members
                for name in _names_of(other)
            ],
        )
        self.traces: Traces = stored.traces_of(session, self._video, character.members)
        self.undo_rows: list[Copy] = []
        self.rewritten = self.alerts = 0
        self._people_at = cache(partial(people_at, session, self._video))

    def run(self) -> list[str]:
        """Forget the person; return the SHA-256 of blobs that are no longer used."""
        require_encoder(self._session, self._vectors.name)
        self.undo_rows += stored.copy_traces(self._session, self.traces)
        self.undo_rows += stored.copy_builds(self._session, self._video)
        # What was built may speak of the person anywhere; it can be built again without them.
        delete_builds(self._session, self._video)
        unused_blobs = stored.erase_traces(self._session, self.traces)
        # Remove the alerts that name the person; the undo file does not have them.
        for alert in list_alerts(self._session):
            told = [alert.name, alert.question]
            if alert.kind is AlertKind.PERSON:  # Users write names in small letters.
                told.append(alert.question.title())
            if any(map(self.is_named_in, told)):
                remove_alert(self._session, alert.id)
                self.alerts += 1
        # Remove the saved searches that name the person; the undo file does not have them.
        for name, query in list_searches(self._session):
            texts = [name, str(query.get("words", "")), str(query.get("person", ""))]
            # Users write names in small letters.
            if any(map(self.is_named_in, [*texts, *map(str.title, texts)])):
                delete_search(self._session, name)
        # Remove the person from all corrections; those about others stay.
        for correction in self._corrections:
            outcomes = outcomes_without(correction, self._numbers, self._tags)
            # An APART outcome about the forgotten person only has no tags left.
            remaining = tuple(
                o for o in outcomes if o.others or correction.kind is not CorrectionKind.APART
            )
            # It is undone, but numbered, where nothing is left.
            numbers = tuple(sorted(set(correction.numbers) - self._numbers))
            update = {"told": FORGOTTEN_SUMMARY, "numbers": numbers, "outcomes": (), "undone": True}
            if remaining:
                summary = self._eraser.erase(correction.told)
                update = {"told": summary, "numbers": numbers, "outcomes": remaining}
            change_correction(self._session, self._video, correction.model_copy(update=update))
        place_people(self._session, self._video)
        rows = list(stored.texts_with(self._session, self._video, self._eraser.search_terms))
        changed = [(row, self._eraser.erase_json(row.texts)) for row in rows]
        clips: set[int] = set()
        for row, values in changed:
            if values != dict(row.texts):
                clips |= self._rewrite_row(row, values)
        for clip in sorted(clips):
            # A clip's vector is the mean direction of its memories' vectors.
            vectors = stored.memory_vectors(self._session, self._video, clip)
            named = NamedRow(ClipRow, {"video_id": self._video, "clip": clip}, {})
            condition = stored.row_condition(named)
            self.undo_rows += stored.copy_table_rows(self._session, ClipRow, condition)
            stored.update_row(self._session, named, {"embedding": mean_direction(vectors)})
        return unused_blobs

    def is_named_in(self, text: str) -> bool:
        return self._eraser.erase(text) != text

    def _rewrite_row(self, row: NamedRow, values: Mapping[str, Any]) -> set[int]:
        """Rewrite a row and its vector; return the clips whose vectors depend on it."""
        self.undo_rows += stored.copy_table_rows(
            self._session, row.table, stored.row_condition(row)
        )
        stored.update_row(self._session, row, values)
        self.rewritten += 1
        if row.table is MemoryRow:
            clip = stored.clip_of_row(self._session, row)
            # The text to embed for a memory, with the names known after its clip.
            draft = MemoryDraft(
                kind=MemoryKind.EPISODIC,
                text=values["text"],
                span=TimeSpan.of(0, 0),
                source=MemorySource.SAID,
                speaker=values["speaker"],
            )
            self._embed_row(row, search_text(draft, self._people_at(clip)))
            return {clip}
        if row.table is KeyframeRow:
            people = self._people_at(stored.clip_of_row(self._session, row))
            text = people.replace_tags(values["description"])
            self._embed_row(row, text, "description_embedding")
        if row.table is SegmentRevisionRow:
            label, summary = stored.summary_of(self._session, int(row.key["id"]))
            self._embed_row(row, f"{label}. {summary}")
        return set()

    def _embed_row(self, row: NamedRow, text: str, column: str = "embedding") -> None:
        (vector,) = self._vectors.embed_deferred([text])
        made = {column: vector.tolist(), f"next_{column}": None}
        stored.update_row(self._session, row, made)


def _names_of(character: CharacterAt) -> list[str]:
    return [*(name.name for name in character.names), *character.character.aliases]
