"""A trajectory: a flat, append-only list of typed events, from which every view is computed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, TypeAdapter

from domain.asking import (
    Action,
    Answer,
    Calibration,
    Evidence,
    Mode,
    Question,
    Quote,
    Subtask,
    Support,
    ToolName,
    VideoQuotes,
    Weighed,
)
from domain.base import Frozen
from domain.memories import MemoryView
from domain.settings import AskSettings
from domain.skills import RoutedSkill, StrategyChoice
from domain.time import TimeSpan


# Events hold what happened, never when or how fast: the store adds time stamps and the trajectory's
# row holds the seconds, so that the same run gives the same events.
class _Event(Frozen):
    """Base of all events: the round they belong to, 0 before the first."""

    round: NonNegativeInt = 0


class Setup(Frozen):
    """What a run decides with, besides its record: enough to replay it.

    ``model`` is the language model, "" without one; ``sees`` whether it accepts images; ``people``
    are the names by tag at that time, ``languages`` those of the text model. ``calibration`` maps
    raw confidences to calibrated ones. ``tools`` are those that were offered; empty: all.
    ``image_model`` is the image-text model, "" without one. ``writers`` wrote the strategy's memory
    of the videos: rules, or models by name. ``contents``: what happens when, as a model was told.
    ``room``: the tokens of a request that the model reads; None: no limit was known.
    """

    settings: AskSettings = AskSettings()
    model: str = ""
    sees: bool = False
    people: tuple[tuple[str, str], ...] = ()
    languages: tuple[str, ...] = ()
    calibration: Calibration = Calibration()
    tools: tuple[str, ...] = ()
    image_model: str = ""
    writers: tuple[str, ...] = ()
    contents: tuple[str, ...] = ()
    room: int | None = None


class QuestionAsked(_Event):
    """The first event: what was asked, over which view, and by which strategy.

    ``machine`` is the strategy's name and ``version`` the strategy's. ``choice`` says how the
    strategy was chosen; None where somebody named it.
    """

    kind: Literal["question"] = "question"
    question: Question
    machine: str
    profile: str
    reasoner: str
    view: MemoryView
    setup: Setup = Setup()
    version: PositiveInt
    choice: StrategyChoice | None = None


class SkillsRouted(_Event):
    """The skills given to the question, best first; empty if none fits."""

    kind: Literal["skills"] = "skills"
    skills: tuple[RoutedSkill, ...] = ()


class Planned(_Event):
    """The question was split into subtasks."""

    kind: Literal["plan"] = "plan"
    subtasks: tuple[Subtask, ...]
    dropped: tuple[str, ...] = Field(default=(), description="what the plan lost in checking")


class Progressed(_Event):
    """The progress check: continue, repair the plan, or finish; and why."""

    kind: Literal["progress"] = "progress"
    verdict: Literal["go", "replan", "finish"]
    reasons: tuple[str, ...] = ()


class Replanned(_Event):
    """The plan was repaired; an edit that changed nothing is ``empty`` and is not counted."""

    kind: Literal["replan"] = "replan"
    reasons: tuple[str, ...] = ()
    subtasks: tuple[Subtask, ...]
    refused: tuple[str, ...] = ()
    empty: bool = False


class RoundOpened(_Event):
    """A subtask was scheduled; ``focus`` is the segment in focus (``s12``), if any."""

    kind: Literal["round"] = "round"
    subtask: str
    text: str
    attempt: NonNegativeInt
    focus: str | None = None


class Prompted(_Event):
    """A language model is called; the result is in the call with the same request."""

    kind: Literal["prompt"] = "prompt"
    purpose: str
    request: str = Field(description="hash of the request")


class ModelCalled(_Event):
    """A language model was called; the messages are in the store under ``request``."""

    kind: Literal["call"] = "call"
    purpose: str
    model: str
    request: str = Field(description="hash of the request")
    tokens_in: NonNegativeInt = 0
    tokens_out: NonNegativeInt = 0
    cost_usd: float = 0.0
    ms: NonNegativeInt = 0
    error: str | None = None


class Acted(_Event):
    """The reasoner chose its next step; None if its reply was not an action."""

    kind: Literal["act"] = "act"
    action: Action | None
    attempt: NonNegativeInt = 0


class Guarded(_Event):
    """The verdict on an action: which rule rejected it, and the complaint for the reasoner."""

    kind: Literal["guard"] = "guard"
    accepted: bool
    rule: str | None = None
    complaint: str = ""


class Neighbour(Frozen):
    """A segment one edge away from ``of``, by default the focus, and how it relates to it."""

    ref: str
    of: str = ""
    label: str
    relation: str
    outgoing: bool = True
    rationale: str = ""


class Searched(Frozen):
    """The result of one search, best evidence first, as a run records it and as it was made.

    ``mode`` is the tool. ``nothing_close``: no evidence is closer than chance; the nearest is still
    listed. ``searched`` describes the search in words, for "not in memory" answers.
    """

    mode: ToolName
    query: str
    evidence: tuple[Evidence, ...] = ()
    nothing_close: bool = False
    searched: str = ""
    weighed: tuple[Weighed, ...] = Field(
        default=(), description="what supports options: evidence, and what else compares them"
    )
    temperature: float = Field(
        default=1.0, gt=0, description="what scores by option are divided by to be logits"
    )
    quotes: tuple[Quote, ...] = Field(
        default=(), description="what may answer an open question, best first"
    )
    by_video: tuple[VideoQuotes, ...] = Field(
        default=(), description="what may answer it in each of a few videos"
    )
    unbuilt: tuple[str, ...] = Field(
        default=(), description="titles of videos of which the memory is not built"
    )
    writers: tuple[str, ...] = Field(
        default=(), description="who wrote the memory by then, where the tool wrote in it"
    )
    selected: bool = Field(
        default=False, description="whether only the likeliest of many videos were searched"
    )


class EvidenceRetrieved(_Event, Searched):
    """The result of one search. ``focus`` is the segment in focus after it.

    ``arguments`` are those of a strategy's own tool.
    """

    kind: Literal["retrieve"] = "retrieve"
    arguments: dict[str, Any] = Field(default_factory=dict)
    focus: str | None = None
    focus_label: str = ""
    focus_video: str = ""
    neighbours: tuple[Neighbour, ...] = ()
    images: tuple[str, ...] = Field(default=(), description="SHA-256 of the images shown")
    refused: str = Field(default="", description="why the search could not be made, if so")
    options: tuple[str, ...] = Field(default=(), description="letters of those it looked for")
    span: TimeSpan | None = Field(default=None, description="the time that it looked at")


class Forked(_Event):
    """The events before this one are another trajectory's, up to one of its rounds.

    ``edit`` is what was changed; its action, if any, is what the round does first. ``found`` is the
    search result of that action, if it was changed. ``start`` is the state that the machine
    continues from.
    """

    kind: Literal["fork"] = "fork"
    parent: str
    at: PositiveInt = Field(description="the round of the parent")
    edit: ForkEdit
    found: EvidenceRetrieved | None = None
    start: dict[str, Any]


class Bound(_Event):
    """Evidence was tied to a subtask in the ledger."""

    kind: Literal["bind"] = "bind"
    subtask: str
    refs: tuple[str, ...]
    best_score: float = Field(ge=0, le=1)


class SupportScored(_Event):
    """Evidence was scored against a claim, by a model that reads both together."""

    kind: Literal["support"] = "support"
    claim: str
    scores: tuple[Support, ...]


class ImageNote(Frozen):
    """What a model saw on one image that it was shown."""

    ref: str = Field(pattern=r"^[kf]\d+$")
    text: str = Field(min_length=1)


class ImagesSeen(_Event):
    """A model looked at images: their refs, what it saw on them, and what was not taken over."""

    kind: Literal["look"] = "look"
    shown: tuple[str, ...]
    seen: tuple[ImageNote, ...] = ()
    refused: tuple[str, ...] = ()


class Resolution(Frozen):
    """A subtask's answer with the evidence claimed to support it.

    ``support``: how well each piece does, if the claimant said so.
    """

    subtask: str
    answer: str
    refs: tuple[str, ...]
    support: tuple[Support, ...] = ()


class Assessed(_Event):
    """How much was new, and which subtasks are answered now."""

    kind: Literal["assess"] = "assess"
    increment: float = Field(ge=0, le=1)
    low: bool
    saturated: bool
    resolved: tuple[Resolution, ...] = ()
    refused: tuple[str, ...] = ()


class RoundClosed(_Event):
    """The ledger and the tokens spent at the end of a round."""

    kind: Literal["record"] = "record"
    subtasks: tuple[Subtask, ...]
    tokens: NonNegativeInt
    warning: str = Field(default="", description="a grace round or a last round, and why")


class Forced(_Event):
    """The machine was locked on, so the next mode is not the reasoner's choice."""

    kind: Literal["force"] = "force"
    mode: Mode
    reason: str


class AnswerProposed(_Event):
    """The reasoner gave an answer; ``complaint`` is why it was sent back, if it was."""

    kind: Literal["propose"] = "propose"
    action: Action
    accepted: bool
    complaint: str = ""


class Interrupted(_Event):
    """A user stopped the run before this step: the best answer so far follows."""

    kind: Literal["stop"] = "stop"


class TimeUp(_Event):
    """The seconds were spent when the clock was read for the ``look``-th time."""

    kind: Literal["timeup"] = "timeup"
    look: PositiveInt


IMAGE_FAILURE = "images"
"""``Failed.where`` if an image that was found could not be shown."""


class Failed(_Event):
    """Something failed; the machine continued or ended."""

    kind: Literal["error"] = "error"
    where: str
    message: str


class Ended(_Event):
    """The last event: the answer as shown, and ``why`` the machine stopped."""

    kind: Literal["end"] = "end"
    state: Literal["done", "stopped", "failed"]
    why: str
    answer: Answer | None
    rounds: NonNegativeInt
    tokens: NonNegativeInt


Event = Annotated[
    QuestionAsked
    | Forked
    | SkillsRouted
    | Planned
    | Progressed
    | Replanned
    | RoundOpened
    | Prompted
    | ModelCalled
    | Acted
    | Guarded
    | EvidenceRetrieved
    | Bound
    | SupportScored
    | ImagesSeen
    | Assessed
    | RoundClosed
    | Forced
    | AnswerProposed
    | Interrupted
    | TimeUp
    | Failed
    | Ended,
    Field(discriminator="kind"),
]
"""Any event of a trajectory, discriminated by ``kind``."""

EVENT: TypeAdapter[Event] = TypeAdapter(Event)
"""Parses a stored event: ``EVENT.validate_python(payload)``."""


def choice_of(events: Sequence[Event]) -> StrategyChoice | None:
    """Return how the strategy of a run was chosen; None where it was named."""
    first = events[0] if events else None
    return first.choice if isinstance(first, QuestionAsked) else None


CLOCK_FIELDS = frozenset({"ms"})
"""Fields of events that depend on the clock."""


def canonical_event(event: Event) -> str:
    """Return an event as JSON with sorted keys and without durations: equal runs, equal bytes."""
    payload = event.model_dump(mode="json", exclude=set(CLOCK_FIELDS))
    return json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class PlanLine(Frozen):
    """One subtask of an edited plan. Without an id it is a new one."""

    id: str | None = Field(default=None, pattern=r"^t[1-9]\d*$")
    text: str = Field(min_length=1)
    depends: tuple[str, ...] = ()


class ForkEdit(Frozen):
    """What is changed in a fork; None leaves it unchanged.

    ``plan`` is the whole plan: a line with another text is reworded, a missing one is abandoned,
    one without an id is added. ``action`` is what the round does, ``evidence`` what its search
    finds, ``profile`` the profile to continue with.
    """

    plan: tuple[PlanLine, ...] | None = None
    action: Action | None = None
    evidence: tuple[Evidence, ...] | None = None
    profile: str | None = None


class PartialReply(Frozen):
    """A reply while a model writes it: ``text`` is all of it so far.

    It is not recorded: the call that results is.
    """

    kind: Literal["said"] = "said"
    round: int
    purpose: str
    text: str


RunEvent = Event | PartialReply
RunListener = Callable[[RunEvent], None]
"""Receives every event as it happens, possibly from another thread while a model writes."""
