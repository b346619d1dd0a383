"""What a language model replies to EventMemAgent's prompts; unknown keys are refused everywhere."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Annotated, Literal

from pydantic import Field

from agent.reasoners.reply_schemas import with_schema
from domain.people import TAG
from models.reply_schema import StrictReply

LONGEST = 1_200
"""Most characters of a caption or change, since later prompts repeat it."""


class EventReply(StrictReply):
    """The caption of an event, and how it changes."""

    caption: str = Field(min_length=1)
    change: str
    onward: str

    @property
    def text(self) -> str:
        """The caption on one line."""
        return " ".join(self.caption.split())

    def complaints(self, material: Iterable[str]) -> list[str]:
        """Return what the model is asked to put right, given what it wrote of."""
        texts = [self.caption, self.change, self.onward]
        wrong = [] if self.text else ["the caption is empty"]
        wrong += [f"a text is longer than {LONGEST} characters"] * any(
            len(text) > LONGEST for text in texts
        )
        made_up = _tags(texts) - _tags(material)
        return [*wrong, *(f"nobody goes by {tag}" for tag in sorted(made_up))]


class SearchStep(StrictReply):
    """Search the long-term memory by a query or a time."""

    tool: Literal["search_memory"]
    query: str = ""
    start_s: float | None = None
    end_s: float | None = None


class OcrStep(StrictReply):
    """Read the text on a frame, or on those of an event."""

    tool: Literal["ocr"]
    frame_index: int | None = None
    event_id: int | None = None


class DetectStep(StrictReply):
    """Detect things on a frame, or on those of an event."""

    tool: Literal["detect_objects"]
    labels: list[str] = Field(min_length=1)
    frame_index: int | None = None
    event_id: int | None = None


class AnswerStep(StrictReply):
    """Answer."""

    tool: Literal["answer"]
    found: bool = Field(description="whether what was found answers the question")
    boxed: str = Field(description="the answer; the letter alone where there are options")
    evidence: list[str] = Field(default=[], description="refs such as f12 or n3")


class ReactReply(StrictReply):
    """One thought, and one action or the answer."""

    thought: str
    action: Annotated[SearchStep | OcrStep | DetectStep | AnswerStep, Field(discriminator="tool")]


STEPS = {
    "search_memory": "SearchStep",
    "ocr": "OcrStep",
    "detect_objects": "DetectStep",
    "answer": "AnswerStep",
}
"""The actions with the names of their schemas."""


def react_form(offered: Collection[str]) -> type[ReactReply]:
    """Return the schema of a step: only these actions."""
    form = ReactReply.model_json_schema()
    definitions, action = form["$defs"], form["properties"]["action"]
    for tool, name in STEPS.items():
        if tool not in offered:
            del definitions[name]
            del action["discriminator"]["mapping"][tool]
    action["oneOf"] = [one for one in action["oneOf"] if one["$ref"].split("/")[-1] in definitions]
    return with_schema(ReactReply, form)


def _tags(texts: Iterable[str]) -> set[str]:
    return {match[0] for text in texts for match in TAG.finditer(text)}
