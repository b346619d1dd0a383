"""What a language model writes of a clip, before the transaction that stores it.

What a clip's writer is shown is settled by the video and the settings, not by who is faster:

- who is in the clip, recognised by all that was perceived up to it;
- who they are, what they are called and what is known of them as it was *learned* up to
  ``last_known_clip``: the writing of the clips right before it may still be under way.

So the model may write several clips at once, and their memory is what it would be had each been
written after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from domain.errors import ModelError
from domain.media import Percept
from domain.memories import ClipMemories, Memory, MemoryDraft
from domain.people import TAG
from memory.writer_calls import CallRecording
from memory.writers.port import ClipContext, ClipWriter
from people.clip_people import ClipPeople

MIN_AT_ONCE = 2
"""One clip at a time sees as little as two at a time, so that both give the same memory."""


def last_known_clip(clip: int, at_once: int) -> int:
    """Return the last clip whose lines, names and characters a clip's writer is given."""
    return clip - max(at_once, MIN_AT_ONCE)


@dataclass(frozen=True)
class WriterInput:
    """What a clip writer is given of the memory so far."""

    people: ClipPeople
    title: str
    facts: tuple[Memory, ...]

    @property
    def key(self) -> object:
        """Return a key that is equal where a writer is given the same input."""
        people = self.people
        return (
            self.title,
            sorted((number, one.tag) for number, one in people.faces.items()),
            sorted((number, one.tag) for number, one in people.voices.items()),
            sorted((name, one.tag) for name, one in people.speakers.items()),
            people.characters,
            [(fact.id, fact.text) for fact in self.facts],
        )


@dataclass(frozen=True)
class WrittenDraft:
    """What a writer returned for its input, or the error that it ended with."""

    given: WriterInput
    output: ClipMemories | ModelError

    def result(self) -> ClipMemories:
        """Return the written memories.

        Raises:
            ModelError: the memory could not be written.
        """
        if isinstance(self.output, ModelError):
            raise self.output
        return self.output


def write_draft(
    writer: ClipWriter,
    percept: Percept,
    blobs: Mapping[str, bytes],
    given: WriterInput,
    video: str,
    recording: CallRecording,
) -> WrittenDraft:
    """Write a clip's memories; call it outside of transactions."""
    recorder = (recording.record, recording.recorded_reply)
    context = ClipContext(video, given.title, given.facts, blobs, *recorder)
    try:
        return WrittenDraft(given, writer.write(percept, given.people, context))
    except ModelError as error:
        return WrittenDraft(given, error)


def update_tags(written: ClipMemories, before: ClipPeople, now: ClipPeople) -> ClipMemories:
    """Replace the tags of people who joined another character since the draft was written.

    Args:
        written: By the tags of ``given``.
        before: The clip's people as the writer knew them.
        now: The same people as they are known now.
    """
    replaced = {one.tag for one in before.characters} - {one.tag for one in now.characters}
    new_tags = {tag: _current_tag(tag, before, now) for tag in replaced}
    if not new_tags:
        return written
    names = tuple((new_tags.get(tag, tag), name) for tag, name in written.names)
    drafts = tuple(_draft_with_tags(draft, new_tags) for draft in written.drafts)
    descriptions = tuple(
        one.model_copy(update={"text": _replace_tags(one.text, new_tags)})
        for one in written.descriptions
    )
    update = {"drafts": drafts, "names": names, "descriptions": descriptions}
    return written.model_copy(update=update)


def _current_tag(tag: str, before: ClipPeople, now: ClipPeople) -> str:
    """Return the tag of the character that ``tag``'s members belong to now, else of the first."""
    members = before.members(tag)
    owners = {owner.tag for one in members if (owner := now.character(one.tag)) is not None}
    if len(owners) == 1:
        return owners.pop()
    return members[0].tag if members else tag


def _replace_tags(text: str, new_tags: Mapping[str, str]) -> str:
    return TAG.sub(lambda found: new_tags.get(found[0], found[0]), text)


def _draft_with_tags(draft: MemoryDraft, new_tags: Mapping[str, str]) -> MemoryDraft:
    text = _replace_tags(draft.text, new_tags)
    tags = tuple(dict.fromkeys(new_tags.get(tag, tag) for tag in draft.tags))
    speaker = new_tags.get(draft.speaker, draft.speaker) if draft.speaker else None
    return draft.model_copy(update={"text": text, "tags": tags, "speaker": speaker})
