"""Records the writers' model calls, and reuses recorded replies after an interrupted run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from domain.calls import CallRecord
from domain.errors import ModelError
from domain.media import ClipView, Percept
from domain.memories import ClipMemories
from domain.people import TAG
from memory.writers.port import ClipContext, ClipWriter
from people.characters import ClipPeople
from people.model_transactions import record_call
from store.database import Store
from store.queries.clips import last_attempt_at
from store.queries.trajectories import call_of_video


class ReuseCalls(NamedTuple):
    """Which recorded calls are used again: those after a time, or all.

    ``sound``: only those whose reply could be parsed.
    """

    since: datetime | None
    sound: bool = False


class CallRecording:
    """The model calls for one clip, or a step or window that ends with it.

    Each call is stored at once, in a transaction of its own, even if the clip is not stored later.
    After an interrupted run, its recorded replies are returned instead of new calls: by default
    those since the clip's last attempt, since replies of a failed one are not reused.
    """

    def __init__(
        self, store: Store, video_id: str, clip: int, reuse: ReuseCalls | None = None
    ) -> None:
        self._store, self._video, self._clip, self._reuse = store, video_id, clip, reuse
        self._call_counts: Counter[str] = Counter()

    def record(self, call: CallRecord) -> None:
        """Store a call, unless the video was deleted meanwhile."""
        self._call_counts[call.request_hash] += call.reply is not None
        record_call(self._store, self._video, self._clip, call)

    def recorded_reply(self, request: str) -> CallRecord | None:
        """Return what the model said to this request in a run that was broken off, if it did."""
        with self._store.begin() as session:
            skip = self._call_counts[request]
            reuse = self._reuse or ReuseCalls(last_attempt_at(session, self._video, self._clip))
            call = call_of_video(
                session, self._video, request, skip, reuse.since, sound=reuse.sound
            )
        self._call_counts[request] += call is not None
        return call


# Clip memories that a language model writes before the transaction that stores them.
#
# A clip writer's input depends on the video and the settings only, not on timing:
#
# - the identities in the clip, matched to everything perceived up to it;
# - their characters, names and facts as learned up to ``last_known_clip``, since the clips right
#   before this one may still be being written.
#
# So several clips can be written concurrently with the same result as one after the other.

MIN_AT_ONCE = 2
"""The least concurrency assumed, so that one and two clips at once give the same memory."""


def last_known_clip(clip: int, at_once: int) -> int:
    """Return the last clip whose lines, names and characters a clip's writer is given."""
    return clip - max(at_once, MIN_AT_ONCE)


@dataclass(frozen=True)
class WriterInput:
    """The input of a clip writer besides the percept; of the context what the memory says."""

    people: ClipPeople
    context: ClipContext

    @property
    def key(self) -> object:
        """Return a key that is equal where a writer is given the same input."""
        people, context = self.people, self.context
        return (
            context.title,
            sorted((number, identity.tag) for number, identity in people.faces.items()),
            sorted((number, identity.tag) for number, identity in people.voices.items()),
            sorted((name, identity.tag) for name, identity in people.speakers.items()),
            people.characters,
            [(fact.id, fact.text) for fact in (*context.facts, *context.before)],
        )


@dataclass(frozen=True)
class WrittenDraft:
    """A writer's input and its output, or the error that it raised."""

    writer_input: WriterInput
    output: ClipMemories | ModelError


def write_draft(
    writer: ClipWriter,
    percept: Percept,
    blobs: Mapping[str, bytes],
    view: ClipView,
    writer_input: WriterInput,
    recording: CallRecording,
) -> WrittenDraft:
    """Have a clip's memories written by a model; call it outside of transactions."""
    context = replace(
        writer_input.context,
        blobs=blobs,
        sink=recording.record,
        replay=recording.recorded_reply,
        view=view,
    )
    try:
        return WrittenDraft(writer_input, writer.write(percept, writer_input.people, context))
    except ModelError as error:
        return WrittenDraft(writer_input, error)


def update_tags(written: ClipMemories, earlier: ClipPeople, current: ClipPeople) -> ClipMemories:
    """Replace tags of characters that were joined to another one since the draft was written.

    Args:
        written: The memories, with tags of ``earlier``.
        earlier: The clip's people as the writer knew them.
        current: The same people as they are known now.
    """
    replaced = {character.tag for character in earlier.characters} - {
        character.tag for character in current.characters
    }
    new_tags = dict[str, str]()
    for tag in replaced:
        # The character that the tag's members belong to now; where these are several or none, the
        # first member.
        members = earlier.members(tag)
        owners = {
            owner.tag for member in members if (owner := current.character(member.tag)) is not None
        }
        new_tags[tag] = members[0].tag if members else tag
        if len(owners) == 1:
            new_tags[tag] = owners.pop()
    if not new_tags:
        return written
    names = tuple((new_tags.get(tag, tag), name) for tag, name in written.names)
    drafts = []
    for draft in written.drafts:
        text = _replace_tags(draft.text, new_tags)
        tags = tuple(dict.fromkeys(new_tags.get(tag, tag) for tag in draft.tags))
        speaker = new_tags.get(draft.speaker, draft.speaker) if draft.speaker else None
        changed = {"text": text, "tags": tags, "speaker": speaker}
        drafts.append(draft.model_copy(update=changed))
    descriptions = tuple(
        one.model_copy(update={"text": _replace_tags(one.text, new_tags)})
        for one in written.descriptions
    )
    update = {"drafts": tuple(drafts), "names": names, "descriptions": descriptions}
    return written.model_copy(update=update)


def _replace_tags(text: str, new_tags: Mapping[str, str]) -> str:
    return TAG.sub(lambda found: new_tags.get(found[0], found[0]), text)
