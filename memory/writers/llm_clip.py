"""The clip writer with a language model that sees and reads the clip (section 3.2).

The model's lines come on top of what was said and read, word for word, since only quotations can
be cited as said. Tags are checked by code; what is wrong goes back to the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from pydantic import BaseModel, Field

from domain.errors import ModelError, ReplayMiss
from domain.media import IdentityKind, Percept, Utterance
from domain.memories import ClipMemories, MemoryDraft, MemoryKind, Source
from domain.people import TAG, IdentityStatement
from domain.time import TimeSpan
from memory.people import People
from memory.prompts import foreign, listed, prompt
from memory.things import by_time
from memory.writers.local_clip import DEFAULTS, LocalClipWriter, speaker_of
from memory.writers.port import ClipContext
from models.chat import Replay, Sink, StructuredChat
from models.messages import Message, assistant, system, user

TRIES = 3
"""How often a clip is asked for in all."""

CROPS = 8
"""Faces shown to the model at most."""

STATED = 5.0
"""What a model's word that a face is a voice counts, in seconds of one face speaking alone."""

Chat = Callable[[Sink | None, Replay | None], StructuredChat]
"""Makes the language model, given who records its calls."""


class WrittenLine(BaseModel):
    """One fact in one sentence, people by their tags."""

    kind: Literal["episodic", "character", "relation", "plot", "knowledge"]
    text: str = Field(min_length=1)
    start_s: float | None = Field(default=None, description="seconds of the video")
    end_s: float | None = None
    contradicts: list[str] = Field(default=[], description="known facts it closes, such as m12")


class WrittenSame(BaseModel):
    """This face is this voice."""

    face: str = Field(description="such as <face_1>")
    voice: str = Field(description="such as <voice_0>")
    reason: str


class WrittenName(BaseModel):
    """A name that the clip itself says or shows."""

    tag: str
    name: str = Field(min_length=1, max_length=60)


class WrittenClip(BaseModel):
    """The memory of a clip."""

    lines: list[WrittenLine]
    same: list[WrittenSame] = []
    names: list[WrittenName] = []


class LlmClipWriter:
    """Writes a clip's memory with a language model.

    Args:
        chat: Makes the model of the profile's role ``writer``.
        lines: Most lines it may write of a clip; what is beyond is left out, evenly.
    """

    name = "llm"
    source = str(Source.MODEL)
    wants_context = True

    def __init__(self, chat: Chat, lines: int = DEFAULTS.lines) -> None:
        self._chat = chat
        self._lines = lines

    def write(self, percept: Percept, people: People, context: ClipContext) -> ClipMemories:
        """The model's lines and the clip's own words.

        Raises:
            ModelError: the model failed, or wrote nothing that can be stored.
        """
        written = self._asked(percept, people, context)
        quoted = LocalClipWriter().write(percept, people, context)
        kept = (Source.SAID, Source.READ, Source.CAPTION, Source.SUBTITLE, Source.CHAPTER)
        drafts = [one for one in quoted.drafts if one.source in kept and _is_plain(one)]
        drafts += [_draft(line, percept, people) for line in written.lines]
        return ClipMemories(
            drafts=tuple(sorted(drafts, key=lambda one: (one.span.start_ms, one.span.end_ms))),
            statements=(*quoted.statements, *_statements(written, people, percept.clip.index)),
            names=tuple((one.tag, " ".join(one.name.split())) for one in written.names),
        )

    def _asked(self, percept: Percept, people: People, context: ClipContext) -> WrittenClip:
        chat = self._chat(context.sink, context.replay)
        images = _images(percept, people, context) if chat.sees else []
        rules = prompt("clip_system", lines=self._lines)
        first = [system(rules), user(_page(percept, people, context, images))]
        messages, facts = first, {f"m{fact.id}" for fact in context.facts}
        for left in reversed(range(TRIES)):
            try:
                written = chat.ask(
                    messages,
                    WrittenClip,
                    purpose="clip",
                    images=[data for _, data in images],
                ).value
            except ReplayMiss:
                raise
            except ModelError as error:
                if not left:
                    raise
                messages = [*first, user(prompt("clip_repair", complaints=foreign(str(error))))]
                continue
            complaints = complain(written, people, facts)
            if not complaints or not left:
                return _thinned(_sound(written, people, facts), self._lines)
            messages = _again(first, written, complaints)
        raise AssertionError("unreachable")


def _is_plain(draft: MemoryDraft) -> bool:
    return draft.kind == MemoryKind.EPISODIC


def _again(
    first: Sequence[Message], written: WrittenClip, complaints: Sequence[str]
) -> list[Message]:
    text = prompt("clip_repair", complaints=listed(f"- {one}" for one in complaints))
    return [*first, assistant(written.model_dump_json()), user(text)]


def _images(percept: Percept, people: People, context: ClipContext) -> list[tuple[str, bytes]]:
    """What each image shows, and its JPEG: keyframes, then the best crop of each face."""
    frames = [
        (f"keyframe at {frame.time_ms / 1000:.1f} s", context.blobs[frame.blob])
        for frame in percept.keyframes
        if frame.blob in context.blobs
    ]
    crops = [
        (people.faces[group.number].tag, context.blobs[best.blob])
        for group in percept.faces
        if (best := max(group.sightings, key=lambda one: one.quality)).blob in context.blobs
        and best.blob is not None
    ]
    return [*frames, *crops[:CROPS]]


def _page(
    percept: Percept,
    people: People,
    context: ClipContext,
    images: Sequence[tuple[str, bytes]],
) -> str:
    screen = [f"{one.time_ms / 1000:.1f} s: {foreign(one.text)}" for one in percept.screen_texts]
    return prompt(
        "clip",
        title=foreign(context.title),
        clip=percept.clip.index,
        start=f"{percept.clip.span.start_ms / 1000:.1f}",
        end=f"{percept.clip.span.end_ms / 1000:.1f}",
        images=listed(f"{n}. {what}" for n, (what, _) in enumerate(images, 1)),
        people=listed(_people(people)),
        transcript=listed(_transcript(percept.utterances, people)),
        screen=listed(screen),
        objects=listed(f"{ms / 1000:.1f} s: {told}" for ms, told in by_time(percept.objects)),
        captions=listed(_transcript(percept.captions, people)),
        subtitles=listed(_came_along(percept, people)),
        facts=listed(f"[m{fact.id}] {people.named(fact.text)}" for fact in context.facts),
    )


def _people(people: People) -> Iterable[str]:
    for tag in people.identities():
        person = people.character(tag)
        known = f" is {person.tag}" if person else ""
        named = f", known as {foreign(person.name)}" if person and person.name else ""
        yield f"{tag}{known}{named}"


def _transcript(said: Iterable[Utterance], people: People) -> Iterable[str]:
    for one in said:
        voice = speaker_of(one, people)
        named = foreign(one.speaker) if one.speaker else None
        who = voice.tag if voice else named
        times = f"{one.span.start_ms / 1000:.1f}-{one.span.end_ms / 1000:.1f} s"
        yield f"{times} {who + ': ' if who else ''}{foreign(one.text)}"


def _came_along(percept: Percept, people: People) -> Iterable[str]:
    """Subtitles and chapters of the source, which may differ from what was heard."""
    for one in percept.chapters:
        yield f"{one.span.start_ms / 1000:.1f} s a chapter begins: {foreign(one.text)}"
    yield from _transcript(percept.subtitles, people)


def complain(written: WrittenClip, people: People, facts: set[str]) -> list[str]:
    """What is wrong with a written clip, for the model to put right."""
    known = people.tags()
    listing = ", ".join(sorted(known)) or "none: describe people in words"
    wrong = [
        f"{tag} does not exist; the tags of this clip are: {listing}"
        for tag in dict.fromkeys(_tags(written))
        if tag not in known
    ]
    wrong += [
        f"{one.face} is {one.voice}: name a face and a voice of this clip"
        for one in written.same
        if not _is_pair(one, people)
    ]
    closed = [ref for line in written.lines for ref in line.contradicts if _ref(ref) not in facts]
    wrong += [f"{foreign(ref)} is no known fact: leave it out" for ref in closed]
    return wrong if written.lines else [*wrong, "there are no lines: write at least one"]


def _tags(written: WrittenClip) -> Iterable[str]:
    for line in written.lines:
        yield from (found[0] for found in TAG.finditer(line.text))
    yield from (
        foreign(one.tag) if not TAG.fullmatch(one.tag) else one.tag for one in written.names
    )


def _is_pair(one: WrittenSame, people: People) -> bool:
    faces = {identity.tag for identity in people.faces.values()}
    voices = {identity.tag for identity in people.voices.values()}
    return one.face in faces and one.voice in voices


def _ref(text: str) -> str:
    return text.strip().strip("[]")


def _sound(written: WrittenClip, people: People, facts: set[str]) -> WrittenClip:
    """What can be stored of a written clip.

    Raises:
        ModelError: nothing can.
    """
    known = people.tags()
    lines = [
        line.model_copy(
            update={"contradicts": [_ref(r) for r in line.contradicts if _ref(r) in facts]}
        )
        for line in written.lines
        if line.text.strip() and all(found[0] in known for found in TAG.finditer(line.text))
    ]
    if not lines:
        raise ModelError("the model wrote no line that can be stored")
    same = [one for one in written.same if _is_pair(one, people)]
    names = [one for one in written.names if one.tag in known and one.name.strip()]
    return WrittenClip(lines=lines, same=same, names=names)


def _thinned(written: WrittenClip, most: int) -> WrittenClip:
    """At most so many lines, left out evenly: a clip has a beginning, a middle and an end.

    To ask for fewer would cost a call; what is over the limit is simply not remembered.
    """
    count = len(written.lines)
    if count <= most:
        return written
    kept = [written.lines[number * count // most] for number in range(most)]
    return written.model_copy(update={"lines": kept})


def _draft(line: WrittenLine, percept: Percept, people: People) -> MemoryDraft:
    tags = [found[0] for found in TAG.finditer(line.text) if people.members(found[0])]
    return MemoryDraft(
        kind=MemoryKind(line.kind),
        text=" ".join(line.text.split()),
        span=_span(line, percept.clip.span),
        source=Source.MODEL,
        tags=tuple(dict.fromkeys(tags)),
        contradicts=tuple(int(ref.removeprefix("m")) for ref in line.contradicts),
    )


def _span(line: WrittenLine, clip: TimeSpan) -> TimeSpan:
    """The line's time within its clip; the whole clip where it has none that fits."""
    if line.start_s is None or line.end_s is None:
        return clip
    low, high = clip.start_ms / 1000, clip.end_ms / 1000
    start, end = min(max(line.start_s, low), high), min(max(line.end_s, low), high)
    return TimeSpan.of(round(start * 1000), round(end * 1000)) if start < end else clip


def _statements(written: WrittenClip, people: People, clip: int) -> Iterable[IdentityStatement]:
    known = people.identities()
    for one in written.same:
        face, voice = known[one.face], known[one.voice]
        if (face.kind, voice.kind) == (IdentityKind.FACE, IdentityKind.VOICE):
            yield IdentityStatement(
                face=face.number,
                voice=voice.number,
                clip=clip,
                support=STATED,
                reason=" ".join(one.reason.split()),
            )
