"""The clip writer with a language model that sees and reads the clip (section 3.2).

The model's lines come on top of what was said and read, word for word, since only quotations can
be cited as said. Tags are checked by code; what is wrong goes back to the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from pydantic import BaseModel, Field

from domain.errors import ModelError, ReplayMiss
from domain.media import IdentityKind, Percept
from domain.memories import ClipMemories, MemoryDraft, MemoryKind, MemorySource
from domain.people import TAG, IdentityStatement
from domain.time import TimeSpan
from memory.prompts import foreign, listed, noted, prompt
from memory.writers.budget import Item, fitted, left_out, thinned
from memory.writers.clip_page import page, parts_of
from memory.writers.local_clip import DEFAULTS, LocalClipWriter
from memory.writers.port import ClipContext
from models.chat import CallRecord, Recorded, Replay, Sink, StructuredChat
from models.messages import Message, assistant, request_tokens, system, user
from models.reply_schema import pinned
from people.characters import STATED
from people.clip_people import ClipPeople

TRIES = 3
"""How often a clip is asked for in all."""

Chat = Callable[[Sink | None, Replay | None], StructuredChat]
"""Makes the language model, given who records its calls."""


Check = Callable[["WrittenClip"], list[str]]
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


class WrittenClip(BaseModel):
    """The memory of a clip."""

    model_config = pinned("WrittenClip", "The memory of a clip.")

    lines: list[WrittenLine]
    same: list[WrittenSame] = []
    names: list[WrittenName] = []


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
        self, chat: Chat, lines: int = DEFAULTS.lines, tokens: int = DEFAULTS.clip_tokens
    ) -> None:
        self._chat, self._lines, self._tokens = chat, lines, tokens

    def write(self, percept: Percept, people: ClipPeople, context: ClipContext) -> ClipMemories:
        """The model's lines and the clip's own words.

        Raises:
            ModelError: the model failed, wrote nothing that can be stored, or spent the budget.
        """
        purse = ClipBudget(self._chat, self._tokens, context.sink, context.replay)
        written, left = self._asked(percept, people, context, purse)
        quoted = LocalClipWriter().write(percept, people, context)
        kept = (
            MemorySource.SAID,
            MemorySource.READ,
            MemorySource.CAPTION,
            MemorySource.SUBTITLE,
            MemorySource.CHAPTER,
        )
        drafts = [one for one in quoted.drafts if one.source in kept and _is_plain(one)]
        drafts += [_draft(line, percept, people) for line in written.lines]
        return ClipMemories(
            drafts=tuple(sorted(drafts, key=lambda one: (one.span.start_ms, one.span.end_ms))),
            statements=(*quoted.statements, *_statements(written, people, percept.clip.index)),
            names=tuple((one.tag, foreign(one.name)) for one in written.names),
            budget=self._tokens,
            left_out=left,
        )

    def _asked(
        self, percept: Percept, people: ClipPeople, context: ClipContext, purse: ClipBudget
    ) -> tuple[WrittenClip, tuple[str, ...]]:
        """What the model wrote that can be stored, and what it was not shown."""
        rules = system(prompt("clip_system", lines=self._lines))
        every = parts_of(percept, people, context, images=purse.sees)
        blank = [rules, user(page(percept, people, context, {}))]
        parts = fitted(every, purse.room_for(blank))
        first = [rules, user(page(percept, people, context, parts))]
        images = [item for items in parts.values() for item in items if item.image is not None]
        facts = {f"m{fact.id}" for fact in context.facts}
        written = _tried(purse, first, images, lambda one: complain(one, people, facts))
        return _thinned(_sound(written, people, facts), self._lines), left_out(every, parts)


def _tried(
    purse: ClipBudget, first: list[Message], images: Sequence[Item], check: Check
) -> WrittenClip:
    """What the model wrote at last; complaints go back to it while tries and tokens are left."""
    messages = first
    for left in reversed(range(TRIES)):
        try:
            written = purse.ask(messages, images)
        except (ReplayMiss, BudgetSpent):
            raise
        except ModelError as error:
            if not left:
                raise
            messages = [*first, user(prompt("clip_repair", complaints=foreign(str(error))))]
            continue
        complaints = check(written)
        again = _again(first, written, complaints)
        if not complaints or not left or not purse.affords(again, images):
            return written
        messages = again
    raise AssertionError("unreachable")


class BudgetSpent(ModelError):
    """A clip's budget has no room for another call."""


class ClipBudget:
    """The calls for one clip: counted, each with a part of the clip's budget of tokens."""

    def __init__(
        self, chat: Chat, budget: int, sink: Sink | None, replay: Replay | None = None
    ) -> None:
        self._budget, self._sink, self._replay, self._spent = budget, sink, replay, 0
        self._chat = chat(self._count, self._served if replay else None)
        self._reply = budget // TRIES * 2 // 5

    @property
    def sees(self) -> bool:
        """Whether the model can look at images."""
        return self._chat.sees

    def room_for(self, blank: Sequence[Message]) -> int:
        """Tokens of material that fit into a request: there is to be room for every try."""
        return self._budget // TRIES - self._reply - request_tokens(blank, WrittenClip, 0)

    def affords(self, messages: Sequence[Message], images: Sequence[Item]) -> bool:
        """Whether a request and its reply fit into what is left."""
        asked = request_tokens(messages, WrittenClip, 0) + sum(item.tokens for item in images)
        return self._spent + asked + self._reply <= self._budget

    def ask(self, messages: Sequence[Message], images: Sequence[Item]) -> WrittenClip:
        """What the model writes.

        Raises:
            Spent: there is no room for the request.
            ModelError: the model failed, or what it wrote cannot be read.
        """
        if not self.affords(messages, images):
            raise BudgetSpent(
                f"a clip may take {self._budget} tokens, and {self._spent} are spent: the next run "
                "tries again; settings.memory.clip_tokens in the profile allows more"
            )
        reply = self._chat.ask(
            messages,
            WrittenClip,
            purpose="clip",
            images=[item.image for item in images if item.image is not None],
            max_tokens=self._reply,
        )
        return reply.value

    def _served(self, request: str) -> Recorded | None:
        """What is on record counts as if it were asked for now."""
        found = self._replay(request) if self._replay else None
        self._spent += found.tokens_in + found.tokens_out if found else 0
        return found

    def _count(self, call: CallRecord) -> None:
        self._spent += call.tokens_in + call.tokens_out
        if self._sink is not None:
            self._sink(call)


def _is_plain(draft: MemoryDraft) -> bool:
    return draft.kind == MemoryKind.EPISODIC


def _again(
    first: Sequence[Message], written: WrittenClip, complaints: Sequence[str]
) -> list[Message]:
    text = prompt("clip_repair", complaints=listed(f"- {one}" for one in complaints))
    return [*first, assistant(written.model_dump_json()), user(text)]


def complain(written: WrittenClip, people: ClipPeople, facts: set[str]) -> list[str]:
    """What is wrong with a written clip, for the model to put right."""
    known = people.tags()
    listing = ", ".join(sorted(known)) or "none: describe people in words"
    wrong = [
        f"{tag} does not exist; the tags of this clip are: {listing}"
        for tag in dict.fromkeys(_tags(written))
        if tag not in known
    ]
    wrong += [
        f"{noted(one.face)} is {noted(one.voice)}: name a face and a voice of this clip"
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


def _is_pair(one: WrittenSame, people: ClipPeople) -> bool:
    faces = {identity.tag for identity in people.faces.values()}
    voices = {identity.tag for identity in people.voices.values()}
    return one.face in faces and one.voice in voices


def _ref(text: str) -> str:
    return text.strip().strip("[]")


def _sound(written: WrittenClip, people: ClipPeople, facts: set[str]) -> WrittenClip:
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
    names = [one for one in written.names if one.tag in known and foreign(one.name)]
    return WrittenClip(lines=lines, same=same, names=names)


def _thinned(written: WrittenClip, most: int) -> WrittenClip:
    """At most so many lines; to ask for fewer would cost a call."""
    return written.model_copy(update={"lines": list(thinned(written.lines, most))})


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
    """The line's time within its clip; the whole clip where it has none that fits."""
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
                support=STATED,
                by_model=True,
                reason=" ".join(one.reason.split()),
            )
