"""What a language model replies to VAM's prompts; unknown keys are refused everywhere.

Names of nested classes are keys of ``$defs`` in schemas that models read: they stay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt

from agent.reasoners.reply_schemas import with_schema
from domain.people import TAG
from strategies.vam.arguments import DAY_S, SearchQuery, Source
from strategies.vam.times import TimeRange

LONGEST_LINE = 600
"""Most characters of a line of a document, since later prompts repeat it."""


def strict(title: str, description: str) -> ConfigDict:
    """Return the configuration of a reply whose schema has this title; unknown keys are refused."""
    return ConfigDict(title=title, extra="forbid", json_schema_extra={"description": description})


class WrittenLines(BaseModel):
    """The lines of a document."""

    model_config = strict("WrittenLines", "The lines of a document.")

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


class SeenFrame(BaseModel):  # Its name is a key of "$defs": it stays.
    """What is seen on a frame."""

    model_config = strict("SeenFrame", "What is seen on a frame.")

    number: NonNegativeInt
    seen: str


class InspectReply(BaseModel):
    """What frames show of a question."""

    model_config = strict("InspectReply", "What frames show of a question.")

    shown: bool
    frames: list[SeenFrame]


class RouteReply(BaseModel):
    """How a question is answered."""

    model_config = strict("RouteReply", "How a question is answered.")

    reason: str
    route: Literal["answer", "retrieve", "summarize"]


class PlannedSearch(BaseModel):  # Its name is a key of "$defs": it stays.
    """Search."""

    model_config = strict("PlannedSearch", "Search.")

    kind: Literal["search"]
    queries: list[SearchQuery] = Field(default=[], max_length=8)
    sources: list[Source] = []
    times: TimeRange | None = None
    visual_ref: str | None = None
    joint: bool = False
    question: str = ""


class PlannedInspection(BaseModel):  # Its name is a key of "$defs": it stays.
    """Look at frames."""

    model_config = strict("PlannedInspection", "Look at frames.")

    kind: Literal["inspect"]
    question: str
    refs: list[str] = Field(default=[], max_length=16)
    start_s: float | None = None
    end_s: float | None = None
    joint: bool = True


class PlannedSummary(BaseModel):  # Its name is a key of "$defs": it stays.
    """Summarise a span."""

    model_config = strict("PlannedSummary", "Summarise a span.")

    kind: Literal["summarize"]
    prompt: str
    granularity_s: float = Field(gt=0, le=DAY_S)
    start_s: float | None = None
    end_s: float | None = None


class BestRef(BaseModel):  # Its name is a key of "$defs": it stays.
    """A result by its turn and its place there."""

    model_config = strict("BestRef", "A result by its turn and its place there.")

    turn: int = Field(description="from 1")
    result: int = Field(description="from 0")


class PlannedAnswer(BaseModel):  # Its name is a key of "$defs": it stays.
    """Answer."""

    model_config = strict("PlannedAnswer", "Answer.")

    kind: Literal["answer"]
    found: bool = Field(description="whether what was found answers the question")
    answer: str
    option: str | None = Field(default=None, description="the letter, where there are options")
    best_ref: BestRef | None = None


class PlannedReply(BaseModel):
    """One action, and why."""

    model_config = strict("PlannedReply", "One action, and why.")

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
