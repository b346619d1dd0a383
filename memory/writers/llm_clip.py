"""The clip writer with a language model that sees and reads the clip (section 3.2).

The model's lines are added to verbatim speech and screen text, since only quotations can be cited
as said. Tags are checked by code; complaints go back to the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError, field_validator

from domain.calls import CallRecord
from domain.errors import ModelError, NoReply, ReplayMiss
from domain.media import IdentityKind, Percept
from domain.memories import PRESENCE_SOURCES, ClipMemories, MemoryDraft, MemoryKind, MemorySource
from domain.people import TAG, IdentityStatement
from domain.settings import CLIP_TRIES, REPLY_SHARE
from domain.time import TimeSpan
from memory.writers.clip_page import (
    PromptItem,
    clip_prompt,
    describe_omitted,
    fit_parts,
    prompt_parts,
)
from memory.writers.local_clip import (
    DEFAULTS,
    LocalClipWriter,
    checked_descriptions,
    fill_descriptions,
)
from memory.writers.port import ClipContext
from memory.writers.segment_labels import content_words
from models.chat import Replay, Sink, StructuredChat
from models.messages import (
    Message,
    assistant,
    join_lines,
    prompts_beside,
    request_tokens,
    sanitise,
    sanitise_generated,
    system,
    user,
)
from people.characters import MODEL_SUPPORT, ClipPeople

prompt = prompts_beside(__file__)

Written = TypeVar("Written", bound=BaseModel)

MAX_TRIES = CLIP_TRIES
"""Most requests for one clip, repairs included."""

ChatFactory = Callable[[Sink | None, Replay | None], StructuredChat]
"""Makes the language model, with a sink that records its calls and a replay of recorded ones."""


ClipCheck = Callable[["WrittenClip"], list[str]]
"""Returns the complaints about a written clip."""


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


class WrittenKeyframe(BaseModel):
    """What one keyframe shows, in one or two sentences."""

    image: int = Field(description="the number of the image")
    text: str = Field(min_length=1, description="people by their tags, things, colours, text")


class WrittenClip(BaseModel):
    """The memory of a clip."""

    lines: list[WrittenLine]
    same: list[WrittenSame] = []
    names: list[WrittenName] = []
    keyframes: list[WrittenKeyframe] = []

    @field_validator("keyframes", mode="before")
    @classmethod
    def _drop_unreadable(cls, value: object) -> object:
        """Drop descriptions that cannot be read: none of them is worth the clip's memory."""
        readable = []
        for one in value if isinstance(value, list) else ():
            with suppress(ValidationError):
                WrittenKeyframe.model_validate(one)
                readable.append(one)
        return readable


class WrittenMore(BaseModel):
    """Further lines on a clip, after a second look at it."""

    lines: list[WrittenLine] = []


SPOKEN = "the language that is spoken in the video, else English"
"""What lines are written in where the encoder knows many languages."""


class LlmClipWriter:
    """Writes a clip's memory with a language model.

    Args:
        chat: Makes the model of the profile's role ``writer``.
        lines: Most lines of a clip; of more, those are dropped that add least.
        tokens: Budget for a clip, all requests together. The prompt is reduced to fit
            (``memory.writers.clip_page``), and there is no repair without enough tokens left.
        looks_twice: Whether a model that sees is shown the images again, and asked what its lines
            cannot answer.
        language: What lines are written in.
    """

    source = str(MemorySource.MODEL)
    wants_context = True

    def __init__(
        self,
        chat: ChatFactory,
        lines: int = DEFAULTS.lines,
        tokens: int = DEFAULTS.clip_tokens,
        *,
        looks_twice: bool = False,
        language: str = SPOKEN,
    ) -> None:
        self._chat, self._lines, self._tokens = chat, lines, tokens
        self._looks_twice, self._language = looks_twice, language

    def write(self, percept: Percept, people: ClipPeople, context: ClipContext) -> ClipMemories:
        """Return the model's lines and the clip's own words.

        Raises:
            ModelError: The model failed, wrote nothing valid, or exceeded the budget.
        """
        budget = ClipBudget(self._chat, self._tokens, context.sink, context.replay)
        written, omitted, keyframes = self._ask(percept, people, context, budget)
        described = [(one.image, one.text) for one in written.keyframes]
        usable, dropped = checked_descriptions(described, keyframes, people)
        quoted = self.quote(percept, people, context)
        drafts = [*quoted.drafts, *(_draft(line, percept, people) for line in written.lines)]
        return ClipMemories(
            drafts=tuple(
                sorted(drafts, key=lambda draft: (draft.span.start_ms, draft.span.end_ms))
            ),
            statements=(*quoted.statements, *_statements(written, people, percept.clip.index)),
            names=tuple((name.tag, sanitise(name.name)) for name in written.names),
            budget=self._tokens,
            left_out=omitted,
            descriptions=fill_descriptions(usable, quoted.descriptions),
            dropped=dropped,
        )

    def quote(self, percept: Percept, people: ClipPeople, context: ClipContext) -> ClipMemories:
        """Return the clip's own words and sounds, which are remembered whatever the model writes.

        With them the descriptions of keyframes for those that the model leaves without one.
        """
        quoted = LocalClipWriter().write(percept, people, context)
        episodic = (one for one in quoted.drafts if one.kind == MemoryKind.EPISODIC)
        words = tuple(one for one in episodic if one.source not in PRESENCE_SOURCES)
        return quoted.model_copy(update={"drafts": words})

    def request_size(
        self, percept: Percept, people: ClipPeople, context: ClipContext
    ) -> tuple[int, int]:
        """Return images and tokens of the first request for a clip, as estimated; makes no call.

        A video counts as one image; the tokens are those of images too.
        """
        budget = ClipBudget(self._chat, self._tokens, None)
        messages, images, _, _ = self.first_request(percept, people, context, budget)
        tokens = request_tokens(messages, WrittenClip, 0, _labels(images))
        return len(images), tokens + sum(item.image_tokens for item in images)

    def first_request(
        self, percept: Percept, people: ClipPeople, context: ClipContext, budget: ClipBudget
    ) -> tuple[list[Message], list[PromptItem], tuple[int, ...], tuple[str, ...]]:
        """Return the first request for a clip, reduced to the budget; makes no call.

        Its messages, its images, the times in ms of the keyframes, which are the first of these,
        and what it omits.
        """
        language = self._language
        rules = system(prompt("clip_system", lines=self._lines, language=language))
        all_parts = prompt_parts(percept, people, context, images=budget.accepts_images)
        too_large = ["the video, which would be too large"] if context.view.too_large else []
        blank = [rules, user(clip_prompt(percept, people, context, {}, language))]
        parts = fit_parts(all_parts, budget.tokens_left_for(blank))
        return (
            [rules, user(clip_prompt(percept, people, context, parts, language))],
            [item for items in parts.values() for item in items if item.image is not None],
            tuple(one.time_ms for one in parts["keyframes"] if one.time_ms is not None),
            (*describe_omitted(all_parts, parts), *too_large),
        )

    def _ask(
        self, percept: Percept, people: ClipPeople, context: ClipContext, budget: ClipBudget
    ) -> tuple[WrittenClip, tuple[str, ...], tuple[int, ...]]:
        """Return the storable part of what the model wrote, what it was not shown, and keyframes.

        These are the times in ms of those that it was shown.
        """
        messages, images, keyframes, omitted = self.first_request(percept, people, context, budget)
        facts = {f"m{fact.id}" for fact in context.facts}
        written = _ask_until_valid(
            budget, messages, images, lambda clip: check_clip(clip, people, facts)
        )
        storable = _storable_lines(written.lines, people, facts)
        if not storable:
            raise ModelError("the model wrote no line that can be stored")
        pairs = [pair for pair in written.same if _is_pair(pair, people)]
        names = [
            name for name in written.names if name.tag in people.tags() and sanitise(name.name)
        ]
        usable = written.model_copy(update={"lines": storable, "same": pairs, "names": names})
        if self._looks_twice and images:
            turns = _retry_messages(messages, usable, "clip_again", lines=self._lines // 2)
            try:
                more = budget.ask(turns, images, WrittenMore)
                lines, clip = [*usable.lines], percept.clip.span
                for line in _storable_lines(more.lines, people, facts):
                    # What is done again later is no repetition of the line.
                    same = (_span(one, clip) for one in lines if one.text == line.text)
                    if not any(span.overlap_ms(_span(line, clip)) for span in same):
                        lines.append(line)
                usable = usable.model_copy(update={"lines": lines})
            except ReplayMiss:
                raise
            except ModelError as error:
                # What the first look found is worth more than the second look.
                omitted = (*omitted, f"a second look: {error}")
        # Drop lines beyond ``max_lines``, one after the other that which adds least to the rest.
        # What a line adds is the share of its words that neither another line nor a quotation has.
        # Of lines that add the same, the one with the closest neighbours goes.
        words = [{*content_words(line.text), *TAG.findall(line.text)} for line in usable.lines]
        texts = (*percept.utterances, *percept.captions, *percept.subtitles)
        said = [one.text for one in (*texts, *percept.chapters)]
        quoted = [*said, *(one.text for one in percept.screen_texts)]
        counts = Counter(word for one in quoted for word in {*content_words(one)})
        counts.update(word for some in words for word in some)
        kept = [*range(len(words))]
        while len(kept) > self._lines:
            added = {n: sum(counts[w] == 1 for w in words[n]) / max(1, len(words[n])) for n in kept}
            around = zip([-len(words), *kept], kept, [*kept[1:], 2 * len(words)], strict=False)
            least = min((added[n], after - before, n) for before, n, after in around)[2]
            counts.subtract(words[least])
            kept.remove(least)
        limit_lines = usable.model_copy(update={"lines": [usable.lines[n] for n in kept]})
        return limit_lines, omitted, keyframes


def _labels(images: Sequence[PromptItem]) -> list[str]:
    """Return the text before each image: its number in the list, and what it is."""
    return [f"{number}. {item.text}" for number, item in enumerate(images, 1)]


def _ask_until_valid(
    budget: ClipBudget, request: list[Message], images: Sequence[PromptItem], check: ClipCheck
) -> WrittenClip:
    """Request a clip, with complaints fed back while tries and tokens are left."""
    messages = request
    for tries_left in reversed(range(MAX_TRIES)):
        try:
            written = budget.ask(messages, images, WrittenClip)
        except (ReplayMiss, BudgetSpent, NoReply):
            raise
        except ModelError as error:
            if not tries_left:
                raise
            messages = [*request, user(prompt("clip_repair", complaints=sanitise(str(error))))]
            continue
        complaints = check(written)
        listed = join_lines(f"- {complaint}" for complaint in complaints)
        retry = _retry_messages(request, written, "clip_repair", complaints=listed)
        if not complaints or not tries_left or not budget.fits(retry, images):
            return written
        messages = retry
    raise AssertionError("unreachable")


class BudgetSpent(ModelError):
    """A clip's budget has no room for another call."""


class ClipBudget:
    """Makes the calls for one clip within the clip's budget of tokens."""

    def __init__(
        self, chat: ChatFactory, budget: int, sink: Sink | None, replay: Replay | None = None
    ) -> None:
        self._budget, self._sink, self._replay, self._spent = budget, sink, replay, 0
        self._chat = chat(self._record_call, self._replay_call if replay else None)
        reply, whole = REPLY_SHARE
        self._reply_tokens = budget // MAX_TRIES * reply // whole

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
        """Check whether a request and its reply fit into the remaining budget."""
        request = request_tokens(messages, WrittenClip, 0) + sum(item.tokens for item in images)
        return self._spent + request + self._reply_tokens <= self._budget

    def ask(
        self, messages: Sequence[Message], images: Sequence[PromptItem], schema: type[Written]
    ) -> Written:
        """Return what the model writes.

        Raises:
            BudgetSpent: There are too few tokens left for the request.
            ModelError: The model failed, or its reply cannot be parsed.
        """
        if not self.fits(messages, images):
            raise BudgetSpent(
                f"a clip may take {self._budget} tokens, and {self._spent} are spent: the next run "
                "tries again; settings.memory.clip_tokens in the profile allows more"
            )
        return self._chat.ask(
            messages,
            schema,
            purpose="clip" if schema is WrittenClip else "clip-again",
            images=[item.image for item in images if item.image is not None],
            labels=_labels(images),
            max_tokens=self._reply_tokens,
        )

    def _replay_call(self, request: str) -> CallRecord | None:
        """Count the recorded calls against the budget, as if they were made now."""
        recorded = self._replay(request) if self._replay else None
        self._spent += recorded.tokens_in + recorded.tokens_out if recorded else 0
        return recorded

    def _record_call(self, call: CallRecord) -> None:
        self._spent += call.tokens_in + call.tokens_out
        if self._sink is not None:
            self._sink(call)


def _retry_messages(
    request: Sequence[Message], written: WrittenClip, name: str, **slots: str | int
) -> list[Message]:
    """Return a request with what was written, and a prompt for what comes next."""
    return [*request, assistant(written.model_dump_json()), user(prompt(name, **slots))]


def check_clip(written: WrittenClip, people: ClipPeople, facts: set[str]) -> list[str]:
    """Return what is wrong with a written clip, for the model to put right."""
    known_tags = people.tags()
    listing = ", ".join(sorted(known_tags)) or "none: describe people in words"
    tags = [match[0] for line in written.lines for match in TAG.finditer(line.text)]
    tags += [one.tag if TAG.fullmatch(one.tag) else sanitise(one.tag) for one in written.names]
    complaints = [
        f"{tag} does not exist; the tags of this clip are: {listing}"
        for tag in dict.fromkeys(tags)
        if tag not in known_tags
    ]
    complaints += [
        f"{sanitise_generated(pair.face)} is {sanitise_generated(pair.voice)}: "
        "name a face and a voice of this clip"
        for pair in written.same
        if not _is_pair(pair, people)
    ]
    unknown_facts = [
        ref for line in written.lines for ref in line.contradicts if _parse_ref(ref) not in facts
    ]
    complaints += [f"{sanitise(ref)} is no known fact: leave it out" for ref in unknown_facts]
    return complaints if written.lines else [*complaints, "there are no lines: write at least one"]


def _is_pair(pair: WrittenSame, people: ClipPeople) -> bool:
    faces = {identity.tag for identity in people.faces.values()}
    voices = {identity.tag for identity in people.voices.values()}
    return pair.face in faces and pair.voice in voices


def _parse_ref(text: str) -> str:
    return text.strip().strip("[]")


def _storable_lines(
    lines: Iterable[WrittenLine], people: ClipPeople, facts: set[str]
) -> list[WrittenLine]:
    """Return the lines that name nobody who is not in the clip, with known facts only."""
    tags = people.tags()
    return [
        line.model_copy(
            update={
                "contradicts": [_parse_ref(r) for r in line.contradicts if _parse_ref(r) in facts]
            }
        )
        for line in lines
        if line.text.strip() and all(match[0] in tags for match in TAG.finditer(line.text))
    ]


def _draft(line: WrittenLine, percept: Percept, people: ClipPeople) -> MemoryDraft:
    tags = [match[0] for match in TAG.finditer(line.text) if people.members(match[0])]
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
    identities = people.identities()
    for pair in written.same:
        face, voice = identities[pair.face], identities[pair.voice]
        if (face.kind, voice.kind) == (IdentityKind.FACE, IdentityKind.VOICE):
            yield IdentityStatement(
                face=face.number,
                voice=voice.number,
                clip=clip,
                support=MODEL_SUPPORT,
                by_model=True,
                reason=" ".join(pair.reason.split()),
            )
