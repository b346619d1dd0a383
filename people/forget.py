"""Forgets a person: no face, voice, crop or name of theirs is left; and brings them back.

What the others did and said stays, and so do the words of the forgotten one, as somebody's. Rows
that were changed get new vectors. Only a file that the user keeps can undo it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from domain.audit import Deed
from domain.errors import InputError
from domain.memories import MemoryDraft, MemoryKind, MemorySource
from domain.people import CorrectedCharacter, Correction, CorrectionKind
from domain.time import TimeSpan
from models.ports import TextEmbedder
from people.clip_people import ClipPeople
from people.corrections import VideoPeople, cast_to_correct, find_person
from people.erase_names import Eraser
from people.matching import direction
from people.memory_lines import searchable
from people.model_transactions import TransactionEmbedder, transact
from store.database import Store, remove_unused_blobs
from store.forgotten_file import ForgottenFile, read_forgotten_file, write_forgotten_file
from store.queries import forget as stored
from store.queries.audit import erased_since, record_deed, transaction_time
from store.queries.blobs import lock_blobs_shared, own_library_id
from store.queries.characters import CharacterAt, characters_at
from store.queries.corrections import change_correction, corrections_of
from store.queries.forget import Copy, NamedRow, Traces
from store.queries.percepts import lock_video
from store.queries.videos import find_video, lock_video_for_delete
from store.tables.schema import ClipRow, MemoryRow, SegmentRevisionRow

OF_NOBODY = "of somebody who was forgotten"
"""What a correction says that was only about a forgotten person."""


@dataclass(frozen=True)
class Forgotten:
    """What was forgotten: counts of lines written anew, images and answers that are gone.

    ``path``: where the video's file lies, if that still names them; it is the user's to rename.
    """

    number: int
    rewritten: int
    images: int
    answers: int
    path: str | None = None


def forget(
    store: Store, video: str, person: str, embedder: TextEmbedder, keep: Path | None = None
) -> Forgotten:
    """Forget a person of a video.

    Gone: the faces and voices by which they are recognised, every sighting and crop, keyframes on
    which they are in view, names, what people said of them, the writers' model calls for the
    video, and every answer that looked at it. Texts that name them say "somebody", with new
    vectors. The number is not given again. The video's file and exports stay, and so
    does where the file lies.

    They are not known again: if watching goes on, they are a new person.

    Args:
        store: The store.
        video: Id, unambiguous beginning of one, or title.
        person: Number, tag or name.
        embedder: Makes the vectors of texts that change.
        keep: A new file that can undo it; without one nothing can.

    Returns:
        What was forgotten.

    Raises:
        NotFound: no such video or person.
        Ambiguous: several go by that name.
        InputError: ``keep`` is there already, in Homer's data, or cannot be written.
    """
    if keep is not None and keep.resolve().is_relative_to(store.home.root.resolve()):
        raise InputError(f"{keep} is in Homer's own data, where nothing of them is to be left")
    written = False
    vectors = TransactionEmbedder(embedder)

    def run(session: Session) -> tuple[_Forgetting, VideoPeople, CharacterAt, list[str], list[str]]:
        nonlocal written
        lock_video_for_delete(session, find_video(session, video).id)
        cast = cast_to_correct(session, video)
        one = find_person(cast, person)
        work = _Forgetting(session, cast, one, vectors)
        blobs = stored.blobs_of_traces(session, work.traces)
        gone = work.run()
        vectors.settle()
        record_deed(session, Deed.FORGOT, f"{cast.video.id} person {one.character.number}")
        if keep is not None:
            images = {sha: store.blobs.get(sha) for sha in blobs}
            library = own_library_id(session)
            kept = ForgottenFile(
                cast.video.id, library, transaction_time(session), tuple(work.kept), images
            )
            write_forgotten_file(keep, kept)
            written = True
        return work, cast, one, blobs, gone

    try:
        work, cast, one, blobs, gone = transact(store, run)
    except BaseException:
        if keep is not None and written:
            keep.unlink(missing_ok=True)
        raise
    remove_unused_blobs(store, gone)
    runs = len(work.traces.trajectories)
    path = cast.video.path if work.names(cast.video.path or "") else None
    return Forgotten(one.character.number, work.rewritten, len(blobs), runs, path)


def recall(store: Store, video: str, path: Path) -> int:
    """Undo a `forget` with the file that was kept; returns how many rows came back.

    Raises:
        NotFound: no such video.
        InputError: the file is damaged, of another video or database, what was watched since
            stands in its place, or more was deleted or forgotten since that it would bring back.
    """
    kept = read_forgotten_file(path)
    try:
        with store.begin() as session:
            found = find_video(session, video)
            if (kept.video, kept.library) != (found.id, own_library_id(session)):
                raise InputError(f"{path} is not of {found.title} in this database")
            lock_video(session, found.id)
            if erased_since(session, found.id, kept.at):
                raise InputError(
                    f"{path} cannot be brought back: more of {found.title} was deleted or "
                    "forgotten since, and would come back with it"
                )
            lock_blobs_shared(session)
            for data in kept.blobs.values():
                store.blobs.put(data)
            stored.restore_rows(session, kept.rows)
            record_deed(session, Deed.BROUGHT_BACK, found.id)
    except IntegrityError as exc:
        remove_unused_blobs(store, kept.blobs)
        raise InputError(
            f"{path} cannot be brought back: faces and voices that were met since have the numbers "
            "of those in it"
        ) from exc
    return len(kept.rows)


class _Forgetting:
    """Forgets one person inside one transaction; ``kept`` is how all was before."""

    def __init__(
        self, session: Session, cast: VideoPeople, one: CharacterAt, vectors: TransactionEmbedder
    ) -> None:
        self._session, self._vectors, self._video = session, vectors, cast.video.id
        self._tags, self._numbers = set(cast.tags(one)), cast.began(one)
        self._corrections = corrections_of(session, self._video)
        self._eraser = Eraser(
            {*self._tags, *(f"<character_{number}>" for number in self._numbers)},
            [*_names(one), *self._given()],
            [name for other in cast.people if other.id != one.id for name in _names(other)],
        )
        rows = [cast.origins[row].character for row in one.members]
        self.traces: Traces = stored.traces_of(session, self._video, one.members, rows)
        self.kept: list[Copy] = []
        self.rewritten = 0
        self._named: dict[int, ClipPeople] = {}

    def _given(self) -> Iterator[str]:
        """All that people ever called the person."""
        for one in self._corrections:
            for outcome in one.outcomes:
                if outcome.number in self._numbers:
                    yield from outcome.names

    def run(self) -> list[str]:
        """Forget; returns the files that nobody uses any more."""
        self.kept += stored.copy_traces(self._session, self.traces)
        gone = stored.erase_traces(self._session, self.traces)
        self._correct()
        told = list(stored.texts_with(self._session, self._video, self._eraser.needles))
        changed = [(one, self._eraser.deep(one.texts)) for one in told]
        clips: set[int] = set()
        for one, values in changed:
            if values != dict(one.texts):
                clips |= self._rewrite(one, values)
        for clip in sorted(clips):
            self._sum_up(clip)
        return gone

    def names(self, text: str) -> bool:
        """Whether a text names the person."""
        return self._eraser.text(text) != text

    def _correct(self) -> None:
        """What people said of others stays."""
        for one in self._corrections:
            kept = [self._left(o) for o in one.outcomes if o.number not in self._numbers]
            # Who was kept apart from nobody but the forgotten one is kept apart from nobody.
            said = [o for o in kept if o.others or one.kind is not CorrectionKind.APART]
            change_correction(self._session, self._video, self._without(one, said))

    def _left(self, outcome: CorrectedCharacter) -> CorrectedCharacter:
        """An outcome without the tags of the forgotten one."""
        update = {
            name: tuple(tag for tag in getattr(outcome, name) if tag not in self._tags)
            for name in ("members", "nameless", "others")
        }
        return outcome.model_copy(update=update)

    def _without(self, one: Correction, outcomes: list[Any]) -> Correction:
        """What is left of a correction; where that is nothing, its number is not given again."""
        numbers = tuple(sorted(set(one.numbers) - self._numbers))
        if not outcomes:
            left = {"told": OF_NOBODY, "numbers": numbers, "outcomes": (), "undone": True}
            return one.model_copy(update=left)
        told = self._eraser.text(one.told)
        update = {"told": told, "numbers": numbers, "outcomes": tuple(outcomes)}
        return one.model_copy(update=update)

    def _rewrite(self, one: NamedRow, values: Mapping[str, Any]) -> set[int]:
        """Write a row anew, with its vector; returns the clips whose vectors depend on it."""
        self.kept += stored.copy_table_rows(self._session, one.table, stored.row_condition(one))
        stored.update_row(self._session, one, values)
        self.rewritten += 1
        if one.table is MemoryRow:
            row = int(one.key["id"])
            clip = stored.clip_of_memory(self._session, row)
            self._embed(one, self._line(clip, values))
            return {clip}
        if one.table is SegmentRevisionRow:
            label, summary = stored.summary_of(self._session, int(one.key["id"]))
            self._embed(one, f"{label}. {summary}")
        return set()

    def _embed(self, one: NamedRow, text: str) -> None:
        (vector,) = self._vectors.later([text])
        stored.update_row(self._session, one, {"embedding": vector.tolist()})

    def _line(self, clip: int, values: Mapping[str, Any]) -> str:
        """What the vector of a line is made of, by what was known after its clip."""
        if clip not in self._named:
            known = characters_at(self._session, self._video, clip)
            self._named[clip] = ClipPeople(characters=tuple(one.character for one in known))
        draft = MemoryDraft(
            kind=MemoryKind.EPISODIC,
            text=values["text"],
            span=TimeSpan.of(0, 0),
            source=MemorySource.SAID,
            speaker=values["speaker"],
        )
        return searchable(draft, self._named[clip])

    def _sum_up(self, clip: int) -> None:
        """The vector of a clip is that of its lines."""
        vectors = stored.memory_vectors(self._session, self._video, clip)
        told = NamedRow(ClipRow, {"video_id": self._video, "clip": clip}, {})
        self.kept += stored.copy_table_rows(self._session, ClipRow, stored.row_condition(told))
        stored.update_row(self._session, told, {"embedding": direction(vectors)})


def _names(one: CharacterAt) -> list[str]:
    return [*(name.text for name in one.names), *one.character.aliases]
