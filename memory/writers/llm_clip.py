"""The clip writer with a language model that sees and reads the clip (section 3.2).

The model's lines come on top of what was said and read, word for word, since only quotations can
be cited as said. Tags are checked by code; what is wrong goes back to the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field, ValidationError, field_validator

from domain.errors import ModelError, ReplayMiss
from domain.media import IdentityKind, Percept
from domain.memories import ClipMemories, MemoryDraft, MemoryKind, MemorySource
from domain.people import TAG, IdentityStatement
from domain.time import TimeSpan
from memory.prompts import join_lines, prompt, sanitise, sanitise_generated
from memory.writers.budget import PromptItem, describe_omitted, fit_parts, subsample
from memory.writers.clip_page import clip_prompt, prompt_parts
from memory.writers.keyframe_descriptions import checked_descriptions, fill_descriptions
from memory.writers.local_clip import DEFAULTS, LocalClipWriter
from memory.writers.port import ClipContext
from models.chat import CallRecord, Recorded, Replay, Sink, StructuredChat
from models.messages import Message, assistant, request_tokens, system, user
from models.reply_schema import pinned
from people.characters import MODEL_SUPPORT
from people.clip_people import ClipPeople

WRITER_VERSION = 2
"""The version of what the model is asked, stored with each clip, since calls are found by it.

1: lines, names and who is whom. 2: also what each keyframe shows. Clips of version 1 have no
version on record.
"""

MAX_TRIES = 3
"""How often a clip is asked for in all."""

ChatFactory = Callable[[Sink | None, Replay | None], StructuredChat]
"""Makes the language model, given who records its calls."""


ClipCheck = Callable[["WrittenClip"], list[str]]
"""What is wrong with a written clip."""


class WrittenLine(BaseModel):  # Its name is a key of "$defs": it stays.
    """One fact in one sentence, people by their tags."""

    model_config = pinned("WrittenLine", "One fact in one sentence, people by their tags.")

    kind: Literal["episodic", "character", "relation", "plot", "knowledge"]
    text: str = Field(min_length=1)
    start_s: float | None = Field(default=None, description="seconds of the video")
    end_s: float | None = None
    contradicts: list[str] = Field(default=[], description="known facts it closes, such as m12")


class WrittenSame(BaseModel):  # Its name is a key of "$defs": it stays.
    """This face is this voice."""

    model_config = pinned("WrittenSame", "This face is this voice.")

    face: str = Field(description="such as <face_1>")
    voice: str = Field(description="such as <voice_0>")
    reason: str


class WrittenName(BaseModel):  # Its name is a key of "$defs": it stays.
    """A name that the clip itself says or shows."""

    model_config = pinned("WrittenName", "A name that the clip itself says or shows.")

    tag: str
    name: str = Field(min_length=1, max_length=60)


class WrittenKeyframe(BaseModel):  # Its name is a key of "$defs": it stays.
    """What one keyframe shows, in one or two sentences."""

    model_config = pinned("WrittenKeyframe", "What one keyframe shows, in one or two sentences.")

    image: int = Field(description="the number of the image")
    text: str = Field(min_length=1, description="people by their tags, things, colours, text")


class WrittenClip(BaseModel):
    """The memory of a clip."""

    model_config = pinned("WrittenClip", "The memory of a clip.")

    lines: list[WrittenLine]
    same: list[WrittenSame] = []
    names: list[WrittenName] = []
    keyframes: list[WrittenKeyframe] = []

    @field_validator("keyframes", mode="before")
    @classmethod
    def _drop_unreadable(cls, value: object) -> object:
        """Drop descriptions that cannot be read: none of them is worth the clip's memory."""
        return [one for one in value if _is_readable(one)] if isinstance(value, list) else []


def _is_readable(described: object) -> bool:
    try:
        WrittenKeyframe.model_validate(described)
    except ValidationError:
        return False
    return True


class LlmClipWriter:
    """Writes a clip's memory with a language model.

    Args:
        chat: Makes the model of the profile's role ``writer``.
        lines: Most lines it may write of a clip; what is beyond is left out, evenly.
        tokens: What it may take for a clip, all tries together. It is shown less of what would
            take more (``memory.writers.budget``), and not asked again where too little is left.
    """

    name = "llm"
    source = str(MemorySource.MODEL)
    wants_context = True

    def __init__(
        self, chat: ChatFactory, lines: int = DEFAULTS.lines, tokens: int = DEFAULTS.clip_tokens
    ) -> None:
        self._chat, self._lines, self._tokens = chat, lines, tokens

    def write(self, percept: Percept, people: ClipPeople, context: ClipContext) -> ClipMemories:
        """Return the model's lines and the clip's own words.

        Raises:
            ModelError: the model failed, wrote nothing that can be stored, or spent the budget.
        """
        budget = ClipBudget(self._chat, self._tokens, context.sink, context.replay)
        asked = self._ask(percept, people, context, budget)
        written = asked.written
        described = checked_descriptions(
            [(one.image, one.text) for one in written.keyframes], asked.keyframes, people
        )
        quoted = LocalClipWriter().write(percept, people, context)
        quoted_sources = (
            MemorySource.SAID,
            MemorySource.READ,
            MemorySource.CAPTION,
            MemorySource.SUBTITLE,
            MemorySource.CHAPTER,
            MemorySource.SOUND,
        )
        drafts = [
            one for one in quoted.drafts if one.source in quoted_sources and _is_episodic(one)
        ]
        drafts += [_draft(line, percept, people) for line in written.lines]
        return ClipMemories(
            drafts=tuple(sorted(drafts, key=lambda one: (one.span.start_ms, one.span.end_ms))),
            statements=(*quoted.statements, *_statements(written, people, percept.clip.index)),
            names=tuple((one.tag, sanitise(one.name)) for one in written.names),
            budget=self._tokens,
            left_out=asked.omitted,
            descriptions=fill_descriptions(described.usable, quoted.descriptions),
            writer_version=WRITER_VERSION,
            dropped=described.dropped,
        )

    def _ask(
        self, percept: Percept, people: ClipPeople, context: ClipContext, budget: ClipBudget
    ) -> _Asked:
        """Return the storable part of what the model wrote, and what it was shown."""
        system_message = system(prompt("clip_system", lines=self._lines))
        all_parts = prompt_parts(percept, people, context, images=budget.accepts_images)
        blank = [system_message, user(clip_prompt(percept, people, context, {}))]
        parts = fit_parts(all_parts, budget.tokens_left_for(blank))
        first = [system_message, user(clip_prompt(percept, people, context, parts))]
        images = [item for items in parts.values() for item in items if item.image is not None]
        facts = {f"m{fact.id}" for fact in context.facts}
        written = _ask_until_valid(
            budget, first, images, lambda one: check_clip(one, people, facts)
        )
        return _Asked(
            _limit_lines(_drop_invalid(written, people, facts), self._lines),
            describe_omitted(all_parts, parts),
            tuple(item.time_ms for item in images if item.time_ms is not None),
        )


@dataclass(frozen=True)
class _Asked:
    """What a model wrote, what it was not shown, and the times of the keyframes that it was."""

    written: WrittenClip
    omitted: tuple[str, ...]
    keyframes: tuple[int, ...]


def _ask_until_valid(
    budget: ClipBudget, first: list[Message], images: Sequence[PromptItem], check: ClipCheck
) -> WrittenClip:
    """What the model wrote at last; complaints go back to it while tries and tokens are left."""
    messages = first
    for left in reversed(range(MAX_TRIES)):
        try:
            written = budget.ask(messages, images)
        except (ReplayMiss, BudgetSpent):
            raise
        except ModelError as error:
            if not left:
                raise
            messages = [*first, user(prompt("clip_repair", complaints=sanitise(str(error))))]
            continue
        complaints = check(written)
        retry = _retry_messages(first, written, complaints)
        if not complaints or not left or not budget.fits(retry, images):
            return written
        messages = retry
    raise AssertionError("unreachable")


class BudgetSpent(ModelError):
    """A clip's budget has no room for another call."""


class ClipBudget:
    """The calls for one clip: counted, each with a part of the clip's budget of tokens."""

    def __init__(
        self, chat: ChatFactory, budget: int, sink: Sink | None, replay: Replay | None = None
    ) -> None:
        self._budget, self._sink, self._replay, self._spent = budget, sink, replay, 0
        self._chat = chat(self._record_call, self._replay_call if replay else None)
        self._reply_tokens = budget // MAX_TRIES * 2 // 5

    @property
    def accepts_images(self) -> bool:
        """Whether the model can look at images."""
        return self._chat.sees

    def tokens_left_for(self, blank: Sequence[Message]) -> int:
        """Tokens of material that fit into a request: there is to be room for every try."""
        return (
            self._budget // MAX_TRIES - self._reply_tokens - request_tokens(blank, WrittenClip, 0)
        )

    def fits(self, messages: Sequence[Message], images: Sequence[PromptItem]) -> bool:
        """Check whether a request and its reply fit into what is left."""
        request = request_tokens(messages, WrittenClip, 0) + sum(item.tokens for item in images)
        return self._spent + request + self._reply_tokens <= self._budget

    def ask(self, messages: Sequence[Message], images: Sequence[PromptItem]) -> WrittenClip:
        """Return what the model writes.

        Raises:
            Spent: there is no room for the request.
            ModelError: the model failed, or what it wrote cannot be read.
        """
        if not self.fits(messages, images):
            raise BudgetSpent(
                f"a clip may take {self._budget} tokens, and {self._spent} are spent: the next run "
                "tries again; settings.memory.clip_tokens in the profile allows more"
            )
        reply = self._chat.ask(
            messages,
            WrittenClip,
            purpose="clip",
            images=[item.image for item in images if item.image is not None],
            max_tokens=self._reply_tokens,
        )
        return reply.value

    def _replay_call(self, request: str) -> Recorded | None:
        """Count the recorded calls against the budget, as if they were made now."""
        found = self._replay(request) if self._replay else None
        self._spent += found.tokens_in + found.tokens_out if found else 0
        return found

    def _record_call(self, call: CallRecord) -> None:
        self._spent += call.tokens_in + call.tokens_out
        if self._sink is not None:
            self._sink(call)


def _is_episodic(draft: MemoryDraft) -> bool:
    return draft.kind == MemoryKind.EPISODIC


def _retry_messages(
    first: Sequence[Message], written: WrittenClip, complaints: Sequence[str]
) -> list[Message]:
    text = prompt("clip_repair", complaints=join_lines(f"- {one}" for one in complaints))
    return [*first, assistant(written.model_dump_json()), user(text)]


def check_clip(written: WrittenClip, people: ClipPeople, facts: set[str]) -> list[str]:
    """Return what is wrong with a written clip, for the model to put right."""
    known = people.tags()
    listing = ", ".join(sorted(known)) or "none: describe people in words"
    complaints = [
        f"{tag} does not exist; the tags of this clip are: {listing}"
        for tag in dict.fromkeys(_tags_in(written))
        if tag not in known
    ]
    complaints += [
        f"{sanitise_generated(one.face)} is {sanitise_generated(one.voice)}: "
        "name a face and a voice of this clip"
        for one in written.same
        if not _is_pair(one, people)
    ]
    unknown_facts = [
        ref for line in written.lines for ref in line.contradicts if _parse_ref(ref) not in facts
    ]
    complaints += [f"{sanitise(ref)} is no known fact: leave it out" for ref in unknown_facts]
    return complaints if written.lines else [*complaints, "there are no lines: write at least one"]


def _tags_in(written: WrittenClip) -> Iterable[str]:
    for line in written.lines:
        yield from (found[0] for found in TAG.finditer(line.text))
    yield from (
        sanitise(one.tag) if not TAG.fullmatch(one.tag) else one.tag for one in written.names
    )


def _is_pair(one: WrittenSame, people: ClipPeople) -> bool:
    faces = {identity.tag for identity in people.faces.values()}
    voices = {identity.tag for identity in people.voices.values()}
    return one.face in faces and one.voice in voices


def _parse_ref(text: str) -> str:
    return text.strip().strip("[]")


def _drop_invalid(written: WrittenClip, people: ClipPeople, facts: set[str]) -> WrittenClip:
    """Return the storable part of a written clip.

    Raises:
        ModelError: nothing can.
    """
    known = people.tags()
    lines = [
        line.model_copy(
            update={
                "contradicts": [_parse_ref(r) for r in line.contradicts if _parse_ref(r) in facts]
            }
        )
        for line in written.lines
        if line.text.strip() and all(found[0] in known for found in TAG.finditer(line.text))
    ]
    if not lines:
        raise ModelError("the model wrote no line that can be stored")
    same = [one for one in written.same if _is_pair(one, people)]
    names = [one for one in written.names if one.tag in known and sanitise(one.name)]
    return written.model_copy(update={"lines": lines, "same": same, "names": names})


def _limit_lines(written: WrittenClip, max_lines: int) -> WrittenClip:
    """At most so many lines; to ask for fewer would cost a call."""
    return written.model_copy(update={"lines": list(subsample(written.lines, max_lines))})


def _draft(line: WrittenLine, percept: Percept, people: ClipPeople) -> MemoryDraft:
    tags = [found[0] for found in TAG.finditer(line.text) if people.members(found[0])]
    return MemoryDraft(
        kind=MemoryKind(line.kind),
        text=" ".join(line.text.split()),
        span=_span(line, percept.clip.span),
        source=MemorySource.MODEL,
        tags=tuple(dict.fromkeys(tags)),
        contradicts=tuple(int(ref.removeprefix("m")) for ref in line.contradicts),
    )


def _span(line: WrittenLine, clip: TimeSpan) -> TimeSpan:
    """Return the line's time within its clip; the whole clip where it has none that fits."""
    if line.start_s is None or line.end_s is None:
        return clip
    low, high = clip.start_ms / 1000, clip.end_ms / 1000
    start, end = min(max(line.start_s, low), high), min(max(line.end_s, low), high)
    return TimeSpan.of(round(start * 1000), round(end * 1000)) if start < end else clip


def _statements(written: WrittenClip, people: ClipPeople, clip: int) -> Iterable[IdentityStatement]:
    known = people.identities()
    for one in written.same:
        face, voice = known[one.face], known[one.voice]
        if (face.kind, voice.kind) == (IdentityKind.FACE, IdentityKind.VOICE):
            yield IdentityStatement(
                face=face.number,
                voice=voice.number,
                clip=clip,
                support=MODEL_SUPPORT,
                by_model=True,
                reason=" ".join(one.reason.split()),
            )
