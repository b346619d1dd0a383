"""A question on its way to an answer: subtasks, ledger, actions, searches, evidence, answer."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum
from string import ascii_uppercase
from typing import Annotated, Any

from pydantic import Field, NonNegativeInt, StringConstraints, model_validator

from domain.base import Frozen, StorableText
from domain.errors import InputError
from domain.time import TimeSpan
from domain.words import marked

# The authors' code knows A to D only.
MOST_OPTIONS = len(ascii_uppercase)
"""Most options of a question: a letter names each."""


class Question(Frozen):
    """A question over one or more videos, asked as of a moment of video time."""

    text: StorableText = Field(min_length=1)
    videos: tuple[str, ...] = Field(min_length=1)
    options: tuple[StorableText, ...] = Field(default=(), max_length=MOST_OPTIONS)
    as_of_ms: NonNegativeInt | None = None
    type: str | None = None


class SubtaskState(StrEnum):
    """``pending -> searching -> partial -> resolved``, or ``abandoned``."""

    PENDING = "pending"
    SEARCHING = "searching"
    PARTIAL = "partial"
    RESOLVED = "resolved"
    ABANDONED = "abandoned"


def check_options(options: Sequence[str]) -> tuple[str, ...]:
    """Return the options of a question, checked that letters can name them.

    Raises:
        InputError: There are too many, or one is empty.
    """
    if len(options) > MOST_OPTIONS:
        raise InputError(f"at most {MOST_OPTIONS} options can be told apart by letters")
    if any(not option.strip() for option in options):
        raise InputError("an option is empty")
    return tuple(options)


class Subtask(Frozen):
    """One atomic thing to find out. ``evidence`` are citations such as ``m12`` or ``s3``.

    ``options`` are the letters of the options whose evidence it looks for; without any it is about
    the question as a whole.
    """

    id: str = Field(pattern=r"^t[1-9]\d*$")
    text: str = Field(min_length=1)
    depends: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    state: SubtaskState = SubtaskState.PENDING
    attempts: NonNegativeInt = 0
    evidence: tuple[str, ...] = ()
    best_score: float = 0.0
    answer: str | None = None
    support: tuple[str, ...] = Field(
        default=(), description="the evidence that is said to support the answer"
    )


class Ledger(Frozen):
    """The task ledger: the subtasks of a question and their states (section 2)."""

    subtasks: tuple[Subtask, ...] = ()


class Mode(StrEnum):
    """The four retrieval modes."""

    EVENT = "event"
    VIDEO = "video"
    NEIGHBOR = "neighbor"
    KEYFRAME = "keyframe"


ToolName = Annotated[
    Mode | Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")],
    Field(union_mode="left_to_right"),
]
"""The name of the tool that a search uses: one of HOMER's modes, or a strategy's own."""


class Support(Frozen):
    """How well one piece of evidence supports a claim, in [0, 1]."""

    ref: str
    score: float = Field(ge=0, le=1)


class Action(Frozen):
    """What the reasoner wants next: ``search`` with mode and query, or ``answer``.

    ``mode`` is the tool; ``arguments`` are those of a strategy's own tool, which checks them.
    ``support``: how well the citations support the answer, where the reasoner said so.
    ``span``: the time of the video that a KEYFRAME search looks at, if it names one. ``note``: what
    the policy carries over to later rounds.
    """

    kind: str = Field(pattern=r"^(search|answer)$")
    reason: str = ""
    mode: ToolName | None = None
    query: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict)
    answer: str = ""
    citations: tuple[str, ...] = ()
    support: tuple[Support, ...] = ()
    not_in_memory: bool = False
    span: TimeSpan | None = None
    note: str = ""


REF_KINDS = "mskfner"
"""The letters that refs begin with.

``m`` a memory, ``s`` a segment, ``k`` a keyframe, ``f`` a frame that a strategy kept; ``n`` a node,
``e`` an entity and ``r`` a relation that it built.
"""
IMAGE_KINDS = ("k", "f")
"""The letters of refs that name an image."""


def names_image(ref: str) -> bool:
    return ref.startswith(IMAGE_KINDS)


class Piece(Frozen):
    """A piece of memory; ``ref`` names it, as in ``m12``: one of ``REF_KINDS`` and a number.

    ``seen``: what a model that looked at the image saw on it, in this run.
    """

    ref: str
    video: str
    span: TimeSpan
    text: str
    clip: NonNegativeInt | None = None
    seen: str = ""

    @property
    def full_text(self) -> str:
        """The text with what was seen on the image, if anything was, before it."""
        return f"seen on it: {self.seen}; {self.text}" if self.seen else self.text


class Evidence(Piece):
    """A piece that was retrieved, with its score in [0, 1]."""

    ref: str = Field(pattern=rf"^[{REF_KINDS}]\d+$")
    score: float = Field(ge=0, le=1)


class Citation(Piece):
    """A piece that an answer rests on, checked by code to exist in the store.

    ``support``: how well it supports the claim, in [0, 1]; None where nothing scored it.
    """

    support: float | None = Field(default=None, ge=0, le=1)

    @property
    def unscored(self) -> Citation:
        """The citation as stored in memory, without what the run added to it."""
        return self.model_copy(update={"support": None, "seen": ""})


class Standing(StrEnum):
    """How well an answer is supported by what it cites."""

    SUPPORTED = "supported"
    WEAK = "weakly supported"
    GUESS = "best guess, nothing supports it"


class Answer(Frozen):
    """The answer as shown. ``option`` is the letter of the option chosen.

    ``confidence`` is calibrated from ``raw_confidence``, None if it is not. ``standing`` says how
    well the citations support the answer; None if nothing scored them.
    """

    text: str
    option: str | None = Field(default=None, pattern=r"^[A-Z]$")
    confidence: float = Field(ge=0, le=0.95)
    raw_confidence: float | None = Field(default=None, ge=0, le=1)
    standing: Standing | None = None
    not_in_memory: bool = False
    citations: tuple[Citation, ...] = ()
    retrieved: tuple[Evidence, ...] = ()
    searched: tuple[str, ...] = ()
    note: str = Field(default="", description="what the profile could not do, said plainly")


NOTE = marked(
    "Answered without a language model: the text is quoted from memory, not phrased as an answer."
)
LIKELIEST_ONLY = marked("Of the many videos, only the likeliest were searched.")
"""What is said of a search of selected videos."""
PICTURES_NOT_SEARCHED = marked(
    "Pictures were not searched by what they show; 'homer models pull' can fetch a model that does "
    "('homer models' says which). Of pictures only words on them and 80 kinds of things are known, "
    "such as people, cars, animals and furniture."
)
"""What is said where a profile without an image-text model finds nothing close."""

HIGH = 0.7
"""The lowest confidence called high."""
MEDIUM = 0.4
"""The lowest confidence called medium."""
MAX_CONFIDENCE = 0.95
"""The highest confidence (SPEC section 2)."""


class ConfidenceLevel(StrEnum):
    """Confidence in words."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


def level_of_confidence(confidence: float) -> ConfidenceLevel:
    if confidence >= HIGH:
        return ConfidenceLevel.HIGH
    return ConfidenceLevel.MEDIUM if confidence >= MEDIUM else ConfidenceLevel.LOW


# Fitted as an isotonic regression on judged answers (``homer eval calibrate``).
class Curve(Frozen):
    """A calibration curve: the share of right answers by raw confidence, linear between points.

    ``raw`` is strictly increasing, ``right`` never decreases; both are in [0, 1]. Without points
    the raw confidence is used unchanged.
    """

    raw: tuple[float, ...] = ()
    right: tuple[float, ...] = ()

    @model_validator(mode="after")
    def _is_a_curve(self) -> Curve:
        if len(self.raw) != len(self.right):
            raise ValueError("a curve has as many shares as raw confidences")
        if any(not 0 <= value <= 1 for value in (*self.raw, *self.right)):
            raise ValueError("the points of a curve lie in [0, 1]")
        if list(self.raw) != sorted(set(self.raw)) or list(self.right) != sorted(self.right):
            raise ValueError("a curve rises")
        return self

    def at(self, raw: float) -> float:
        """Return the calibrated confidence for a raw one, at most 0.95."""
        if not self.raw:
            return min(MAX_CONFIDENCE, raw)
        after = bisect_right(self.raw, raw)
        if after in (0, len(self.raw)):
            return min(MAX_CONFIDENCE, self.right[max(0, after - 1)])
        (x0, x1), (y0, y1) = self.raw[after - 1 : after + 1], self.right[after - 1 : after + 1]
        return min(MAX_CONFIDENCE, y0 + (y1 - y0) * (raw - x0) / (x1 - x0))


class Calibration(Frozen):
    """The curves of a profile: one for questions with options, one for open questions."""

    options: Curve = Curve()
    open: Curve = Curve()


STRUCTURE = "structure"
"""The kind of a sentence about how the video is built."""
TOLD = 0.9
"""The score of a sentence about structure that was measured, and that the question asks for."""
LIKELY = 0.6
"""The score up to which it answers only where nobody says anything of it."""
NEAR_BEST = 3.5
"""How much larger the odds of the best quote may be than those of others quoted beside it."""
QUOTED = 3
"""Quotes in an answer, at most."""


class Aim(Frozen):
    """What a search is for, besides its query.

    ``text`` is what the whole view is ranked by; ``options`` are those of the question, against
    which every piece of evidence is weighed; ``letters`` are those that this search is about, empty
    for all. At most ``moments`` of the whole view are listed; ``quotes``: whether sentences of them
    are quoted that may answer. ``asked`` are the texts that may ask how the video is built: the
    question, and what it was split into.
    """

    text: str = Field(min_length=1)
    options: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()
    moments: NonNegativeInt = 0
    quotes: bool = True
    asked: tuple[str, ...] = ()


class Weighed(Frozen):
    """How strongly one piece of evidence speaks for each option, in the order of the question.

    Sums of standard deviations; only the differences between them have a meaning.
    """

    ref: str
    scores: tuple[float, ...]


class Quote(Frozen):
    """Sentences of memory that may answer an open question, or one about how the video is built.

    ``refs`` are the lines they come from, the first of them the one to cite; ``kind`` is ``said``,
    ``read``, ``seen`` or, for a sentence about structure, ``structure``. ``score`` is how likely it
    answers, in [0, 1].
    """

    text: str
    refs: tuple[str, ...]
    video: str
    span: TimeSpan
    score: float = Field(ge=0, le=1)
    kind: str = "said"


def quote_of(piece: Evidence, text: str, score: float) -> Quote:
    return Quote(text=text, refs=(piece.ref,), video=piece.video, span=piece.span, score=score)


def answering(quotes: Iterable[Quote]) -> tuple[Quote, ...]:
    """Return the quotes that are likely to answer, those near to the best, at most three.

    What is told of structure, because it is asked for, answers alone; what is only likely, where
    nobody says anything of it.
    """
    ranked = sorted(quotes, key=lambda quote: -quote.score)
    told = tuple(quote for quote in ranked if quote.kind == STRUCTURE)
    said = any(quote.kind == "said" and quote.score >= 0.5 for quote in ranked)
    if told and (not said or told[0].score > LIKELY):
        return told
    best = ranked[0].score if ranked else 0.0
    least = max(0.5, best / (best + (1 - best) * NEAR_BEST))
    chosen: list[Quote] = []
    for quote in ranked:
        new = not any(quote.text in other.text or other.text in quote.text for other in chosen)
        if quote.score >= least and new:
            chosen.append(quote)
    return tuple(chosen[:QUOTED])


class VideoQuotes(Frozen):
    """What may answer an open question best in one of several videos; empty if nothing is close."""

    video: str
    title: str
    quotes: tuple[Quote, ...] = ()
