"""Finds out what a language model can do, by asking it about a small picture and a short clip.

How fast it is counts where it runs in this process. One on a server that writes clips or answers
questions is also sent what it will be sent then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import av
import cv2
import numpy as np
from pydantic import BaseModel, Field

from agent.harness.inform import CardLine
from agent.reasoners.llm import LlmReasoner
from agent.reasoners.port import CompletedRound, DecisionContext
from domain.asking import Action, Mode, Question, Subtask
from domain.calls import CallRecord
from domain.errors import ModelError, SetupError
from domain.media import Clip, Keyframe, Percept
from domain.memories import MemoryView, Scope
from domain.settings import CLIP_TRIES, LINE_TOKENS, Settings, WatchSettings
from domain.time import TimeSpan
from memory.writers.clip_page import prompt
from memory.writers.llm_clip import ClipBudget, LlmClipWriter, WrittenClip
from memory.writers.port import ClipContext
from models.chat import StructuredChat, read_value
from models.endpoint import IMAGE_TOKENS, ChatFactory, make_chat_model, redact_key
from models.messages import Message, to_langchain, user
from models.retries import CallFailed, call_with_timeout
from models.specs import IN_PROCESS, OPENAI, ChatSpec, Structure
from models.structured import STRUCTURES, request
from people.characters import ClipPeople
from perception.clip_view import encode_clip
from perception.decode import RawClip
from perception.frames import Frame, FrameMetrics
from services.health import Check

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from models.toolbox import Toolbox


Reply = TypeVar("Reply", bound=BaseModel)

SIDE = 256
"""Pixels of the picture's sides: some models take none that are much smaller."""
CLIP_MS = 2_000
CONTEXTS = (24_000, 12_000, 6_000, 3_000)
"""Tokens of a request that are tried, most first."""
FILLER_TOKENS = 6
COUNTS = (24, 16, 8, 4, 2)
"""Images of one call that are tried, most first."""
COLOURS = {"yellow": (255, 220, 0), "green": (0, 160, 60), "blue": (20, 60, 220)}
ON_PICTURE = ("yellow", "green")
"""From top to bottom."""
IN_CLIP = ("blue", "yellow")
"""One after the other."""
PAGE = "The old mill stands by the river. " * 24
"""About as much text to an image as the page of a clip has."""
PAGE_TOKENS = 1_500
"""Of the page of a clip, besides its images."""


class ColoursSeen(BaseModel):
    """The colours that are seen."""

    colours: list[str]


@dataclass(frozen=True)
class Abilities:
    """What a model can do; ``images``: of one call at least; ``failure``: why it did not answer.

    ``context``: tokens of a request that were read from their beginning; 0: not tried.
    """

    structures: tuple[Structure, ...] = ()
    sees: bool = False
    images: int = 0
    video: bool = False
    failure: str = ""
    context: int = 0

    @property
    def structure(self) -> Structure:
        """The strongest way in which it can be held to a schema."""
        return next(iter(self.structures), "text")


class Counted(BaseModel):
    """As many digits as the form wants, some 80 tokens: a reader may have 160."""

    digits: list[Annotated[int, Field(ge=0, le=9)]] = Field(min_length=24, max_length=24)


class Noted(BaseModel):
    """Whether it was read."""

    noted: bool


def probe_models(toolbox: Toolbox) -> Iterator[Check]:
    """Ask each language model of a profile what it can do; in this process, how fast it is."""
    profile = toolbox.profile
    measured: set[str] = set()
    reached: list[ChatSpec] = []
    for role, spec in profile.chat.items():
        if spec.provider != IN_PROCESS:
            abilities = probe(spec)
            yield from probe_checks(role, spec, abilities, profile.settings)
            reached += [spec] * (not abilities.failure)
        elif spec.model not in measured:
            measured.add(spec.model)
            writes = profile.writer == "llm" and profile.chat_for("writer").model == spec.model
            yield _speed(role, toolbox, profile.settings if writes else None)
    if profile.writer == "llm" and profile.chat_for("writer") in reached:
        yield _tried("writer writes a clip", send_clip, toolbox.chat("writer"), profile.settings)
    if profile.answering == "llm" and profile.chat_for("reasoner") in reached:
        yield _tried("reasoner takes a step", send_step, toolbox.chat("reasoner"), profile.settings)


def _tried(
    what: str,
    send: Callable[[StructuredChat, Settings], None],
    chat: StructuredChat,
    settings: Settings,
) -> Check:
    try:
        send(chat, settings)
    except (ModelError, SetupError) as error:
        fix = "choose another model in the profile"
        return Check(what, False, f"what Homer sends for it is refused: {error}", fix)
    return Check(what, True, "yes")


def send_clip(chat: StructuredChat, settings: Settings) -> None:
    """Ask for the memory of a clip with two images, and for a repair: two user turns in a row.

    Raises:
        ModelError: the server refuses, or the reply is no clip's memory.
    """
    frame = Keyframe(
        time_ms=0, shot=0, sharpness=1, entropy=1, quality=1, width=SIDE, height=SIDE, blob="a"
    )
    frames = (frame, frame.model_copy(update={"time_ms": CLIP_MS // 2, "blob": "b"}))
    percept = Percept(clip=Clip(index=0, span=TimeSpan.of(0, CLIP_MS)), keyframes=frames)
    context = ClipContext("", "Two colours", blobs=dict.fromkeys("ab", make_picture()))
    budget = ClipBudget(lambda *_: chat, settings.clip_budget, None)
    writer = LlmClipWriter(lambda *_: chat, settings.memory.lines)
    messages, images, _, _ = writer.first_request(percept, ClipPeople(), context, budget)
    repair = user(prompt("clip_repair", complaints="(nothing so far)"))
    budget.ask([*messages, repair], images, WrittenClip)


class _Caller:
    """Makes the call of a reasoner, without the budget and the record of a question."""

    sees = in_process = False

    def __init__(self, chat: StructuredChat) -> None:
        self._chat = chat

    def ask(
        self, purpose: str, messages: Sequence[Message], schema: type[Reply], **more: Any
    ) -> Reply:
        """Ask for a reply in ``schema``; there are no images."""
        heat = more["temperature"]
        return self._chat.ask(messages, schema, purpose=purpose, temperature=heat)


def send_step(chat: StructuredChat, settings: Settings) -> None:
    """Have a reasoner decide what to do after a first search that found nothing.

    Raises:
        ModelError: the server refuses, or the reply is no action.
    """
    searched = Action(kind="search", mode=Mode.EVENT, query="a gate is opened")
    card = CardLine(text='<card mode="event" query="a gate is opened">Nothing new.</card>')
    decision = DecisionContext(
        question=Question(text="Who opens the gate?", videos=("0" * 16,)),
        view=MemoryView(scopes=(Scope(video="0" * 16, last_clip=0),)),
        current=Subtask(id="t1", text="find out who opens the gate"),
        round=2,
        steps=(CompletedRound(round=1, subtask="t1", action=searched, lines=(card,)),),
    )
    LlmReasoner(_Caller(chat), settings.ask).act(decision)


def _speed(role: str, toolbox: Toolbox, settings: Settings | None) -> Check:
    """Measure a model; ``settings``: of the clips that it writes, if it does."""
    calls = list[CallRecord]()
    chat = toolbox.chat(role, calls.append)
    picture = [make_picture(2 * SIDE)] if chat.sees else []
    try:
        # The first call also reads the weights from the disk.
        chat.ask([user("Note it.")], Noted, purpose="probe")
        chat.ask([user("Count.")], Counted, purpose="probe")
        # llama.cpp reads no prompt twice that begins as an earlier one.
        page = f"{time.time_ns()}: {PAGE}"
        chat.ask([user(page)], Noted, purpose="probe", images=picture)
    except ModelError as error:
        return Check(f"{role} answers", False, str(error), "choose another model in the profile")
    _, wrote, read = calls
    writing = 1_000 * wrote.tokens_out / max(1, wrote.ms)
    reading = 1_000 * read.tokens_in / max(1.0, read.ms - 1_000 * read.tokens_out / writing)
    found = f"reads {reading:,.0f} and writes {writing:,.0f} tokens a second"
    if settings is not None:
        watch, memory = settings.watch, settings.memory
        frames = memory.clip_frames if memory.clip_view == "frames" else 0
        images = watch.keyframes + frames if chat.sees else 0
        # A clip takes its images, its page and half of the lines that it may have; all of it twice
        # where it is looked at twice.
        seconds = (images * IMAGE_TOKENS + PAGE_TOKENS) / reading
        seconds += memory.lines / 2 * LINE_TOKENS / writing
        hours = seconds * (1 + memory.looks_twice) * 1_000 / watch.clip_ms
        found += f": an hour of video takes about {hours:,.1f} hours"
    return Check(f"{role} speed", True, found)


def probe(spec: ChatSpec, factory: ChatFactory = make_chat_model) -> Abilities:
    """Find out what a model can do, by at most a dozen short calls.

    Raises:
        SetupError: a package or a key is missing.
    """
    model = factory(spec.model_copy(update={"retries": 0}), spec.temperature)
    asking = _Asking(model, spec)
    try:
        asking.send("text", "Answer with one word: hello.", ())
    except CallFailed as failure:
        return Abilities(failure=redact_key(str(failure), spec))
    words = 'Which colour has grass? Answer {"colours": ["..."]}.'
    structures = tuple(
        structure for structure in STRUCTURES if asking.names(structure, words, (), ("green",))
    )
    way: Structure = next(iter(structures), "text")
    picture = make_picture()
    # A server of one's own may cut what is longer than its context, and say nothing.
    context = 0 if spec.base_url is None else asking.context(way)
    layers = "Which colours has the picture, from top to bottom?"
    if not asking.names(way, layers, [picture], ON_PICTURE):
        return Abilities(structures, context=context)
    images = next((n for n in COUNTS if asking.takes(way, layers, [picture] * n)), 1)
    turns = "Which colours does the video show, one after the other?"
    video = asking.names(way, turns, [make_clip()], IN_CLIP)
    return Abilities(structures, True, images, video, context=context)


class _Asking:
    """Asks one model; what a server refuses it cannot do."""

    def __init__(self, model: BaseChatModel, spec: ChatSpec) -> None:
        self._model, self._spec = model, spec

    def names(
        self, structure: Structure, question: str, files: Sequence[bytes], colours: Sequence[str]
    ) -> bool:
        """Check whether the reply fits the schema and names these colours in their order."""
        try:
            told = read_value(self.send(structure, question, files), ColoursSeen).colours
        except (CallFailed, ModelError):
            return False
        text = " ".join(told).casefold()
        places = [text.find(colour) for colour in colours]
        return -1 not in places and places == sorted(places)

    def context(self, structure: Structure) -> int:
        """Return how many tokens of a request are read, of those that are tried."""
        for tokens in CONTEXTS:
            filler = "Nothing of this matters here. " * (tokens // FILLER_TOKENS)
            question = f"The colour is blue.\n{filler}\nWhich colour was named at the beginning?"
            if self.names(structure, question, (), ("blue",)):
                return tokens
        return 1

    def takes(self, structure: Structure, question: str, files: Sequence[bytes]) -> bool:
        try:
            self.send(structure, question, files)
        except CallFailed:
            return False
        return True

    def send(self, structure: Structure, question: str, files: Sequence[bytes]) -> str:
        """Return the text of a reply.

        Raises:
            CallFailed: the server does not answer, or refuses.
        """
        messages: list[Message] = [user(question)]
        sent = to_langchain(messages, files, video_urls=self._spec.provider == OPENAI)
        schema = ColoursSeen.model_json_schema()
        call = partial(request, self._model, structure, sent, schema)
        return call_with_timeout(self._spec.timeout_s, call).text


def make_picture(side: int = SIDE) -> bytes:
    """Return a JPEG with one colour above another."""
    top, bottom = (np.full((side // 2, side, 3), COLOURS[name], np.uint8) for name in ON_PICTURE)
    bgr = cv2.cvtColor(np.vstack([top, bottom]), cv2.COLOR_RGB2BGR)
    return cv2.imencode(".jpg", bgr)[1].tobytes()


def make_clip() -> bytes:
    """Return an MP4 of two seconds with a tone, in which one colour follows another."""
    watch = WatchSettings()
    frames = [
        Frame(
            time_ms,
            FrameMetrics(0, 1, 1),
            av.VideoFrame.from_ndarray(
                np.full((SIDE, SIDE, 3), COLOURS[name], np.uint8), format="rgb24"
            ),
        )
        for time_ms, name in zip((0, CLIP_MS // 2), IN_CLIP, strict=True)
    ]
    ticks = np.arange(CLIP_MS * watch.audio_hz // 1_000)
    tone = np.asarray(np.sin(2 * np.pi * 440 * ticks / watch.audio_hz) / 4, dtype=np.float32)
    raw = RawClip(Clip(index=0, span=TimeSpan.of(0, CLIP_MS)), frames, tone)
    return encode_clip(raw, SIDE, 1_000_000, watch)


def probe_checks(
    role: str, spec: ChatSpec, found: Abilities, settings: Settings
) -> Iterator[Check]:
    """Say what a model can do, and which settings follow."""
    if found.failure:
        fix = "check that the server runs, and its address, model and key in the profile"
        yield Check(f"{role} answers", False, found.failure, fix)
        return
    yield Check(f"{role} answers", True, "yes")
    for name, structure in (("keeps to a JSON schema", "json_schema"), ("calls tools", "tools")):
        yield Check(f"{role} {name}", True, "yes" if structure in found.structures else "no")
    if found.context:
        needed = settings.clip_budget // CLIP_TRIES
        short = found.context < min(needed, CONTEXTS[0])
        fix = (
            f"give the server a context of {needed} tokens (Ollama: OLLAMA_CONTEXT_LENGTH={needed} "
            f"where it is started), or set chat.{role}.context_tokens = {found.context}"
        )
        text = f"of a request at least {found.context} tokens"
        yield Check(f"{role} reads", True, text, fix if short else "", warning=short)
    seen = f"yes, {found.images} images in a call" if found.sees else "no"
    yield _compared(f"{role} sees pictures", seen, found.sees, spec.images, f"{role}.images")
    watched = "yes" if found.video else "no"
    yield _compared(f"{role} watches videos", watched, found.video, spec.video, f"{role}.video")
    wanted = settings.watch.keyframes + settings.memory.clip_frames
    view = "keyframes"
    if found.sees and found.images >= wanted:
        view = "frames"
    if found.video:
        view = "video"
    flags = f"images = {str(found.sees).lower()}, video = {str(found.video).lower()}"
    yield Check(
        f"{role} settings",
        True,
        f'{flags}, structure = "{found.structure}"; at most clip_view = "{view}"',
    )


def _compared(what: str, text: str, can: bool, said: bool, setting: str) -> Check:
    """Compare what a model can do with what its profile says."""
    fix = "" if can == said else f"set chat.{setting} = {str(can).lower()} in the profile"
    return Check(what, True, text, fix, warning=can != said)
