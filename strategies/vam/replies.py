"""What a language model replies to VAM's prompts; unknown keys are refused everywhere."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt

from agent.reasoners.reply_schemas import with_schema
from domain.people import TAG
from models.reply_schema import StrictReply
from strategies.vam.arguments import DAY_S, SearchQuery, Source
from strategies.vam.times import TimeRange

LONGEST_LINE = 600
"""Most characters of a line of a document, since later prompts repeat it."""


class WrittenLines(StrictReply):
    """The lines of a document."""

    lines: list[str] = Field(min_length=1)

    @property
    def texts(self) -> list[str]:
        """The lines, each on one line and once."""
        texts = (" ".join(line.split()) for line in self.lines)
        return list(dict.fromkeys(text for text in texts if text))

    def complaints(self, material: Iterable[str]) -> list[str]:
        """Return what the model is asked to put right, given what it wrote of."""
        wrong = [] if self.texts else ["all lines are empty"]
        if any(len(text) > LONGEST_LINE for text in self.texts):
            wrong.append(f"a line is longer than {LONGEST_LINE} characters")
        made_up = _tags(self.texts) - _tags(material)
        return [*wrong, *(f"nobody goes by {tag}" for tag in sorted(made_up))]


class SeenFrame(StrictReply):
    """What is seen on a frame."""

    number: NonNegativeInt
    seen: str


class InspectReply(StrictReply):
    """What frames show of a question."""

    shown: bool
    frames: list[SeenFrame]


class RouteReply(StrictReply):
    """How a question is answered."""

    reason: str
    route: Literal["answer", "retrieve", "summarize"]


class PlannedSearch(StrictReply):
    """Search."""

    kind: Literal["search"]
    queries: list[SearchQuery] = Field(default=[], max_length=8)
    sources: list[Source] = Field(default=[])
    times: TimeRange | None = None
    visual_ref: str | None = None
    joint: bool = False
    question: str = ""


class PlannedInspection(StrictReply):
    """Look at frames."""

    kind: Literal["inspect"]
    question: str
    refs: list[str] = Field(default=[], max_length=16)
    start_s: float | None = None
    end_s: float | None = None
    joint: bool = True


class PlannedSummary(StrictReply):
    """Summarise a span."""

    kind: Literal["summarize"]
    prompt: str
    granularity_s: float = Field(gt=0, le=DAY_S)
    start_s: float | None = None
    end_s: float | None = None


class BestRef(StrictReply):
    """A result by its turn and its place there."""

    turn: int = Field(description="from 1")
    result: int = Field(description="from 0")


class PlannedAnswer(StrictReply):
    """Answer."""

    kind: Literal["answer"]
    found: bool = Field(description="whether what was found answers the question")
    answer: str
    option: str | None = Field(default=None, description="the letter, where there are options")
    best_ref: BestRef | None = None


class PlannedReply(StrictReply):
    """One action, and why."""

    reason: str
    action: Annotated[
        PlannedSearch | PlannedInspection | PlannedSummary | PlannedAnswer,
        Field(discriminator="kind"),
    ]


KINDS = {
    "search": "PlannedSearch",
    "inspect": "PlannedInspection",
    "summarize": "PlannedSummary",
    "answer": "PlannedAnswer",
}
"""The kinds of actions with the names of their schemas."""


def plan_form(kinds: Collection[str], sources: Sequence[str]) -> type[PlannedReply]:
    """Return the schema of an action: only these kinds, and searches of these sources."""
    form = PlannedReply.model_json_schema()
    definitions, action = form["$defs"], form["properties"]["action"]
    for kind, name in KINDS.items():
        if kind not in kinds:
            del definitions[name]
            del action["discriminator"]["mapping"][kind]
    action["oneOf"] = [one for one in action["oneOf"] if one["$ref"].split("/")[-1] in definitions]
    if "Source" in definitions:
        definitions["Source"]["enum"] = list(sources)
    return with_schema(PlannedReply, form)


def _tags(texts: Iterable[str]) -> set[str]:
    return {match[0] for text in texts for match in TAG.finditer(text)}
