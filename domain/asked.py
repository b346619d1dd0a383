"""Questions that were asked, with their answers, as every door shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from domain.base import Frozen
from domain.moments import Moment
from domain.texts import make_storable, one_line


class Answered(Frozen):
    """An answer with its citations and cost.

    ``not_in_memory``: the memory does not hold the answer; ``searched`` lists what was searched.
    The score of a citation is how well it supports the answer.
    """

    id: str = Field(description="of the question: GET /questions/{id} has its steps")
    state: str = Field(description="done, or stopped: the best answer so far")
    answer: str
    option: str | None = Field(description="the letter of the chosen option")
    chosen: str | None = Field(description="the chosen option")
    confidence: float = Field(ge=0, le=1)
    confidence_level: str = Field(description="high, medium or low")
    standing: str | None = Field(
        description="supported, weakly supported, or best guess; null if not scored"
    )
    not_in_memory: bool
    note: str = Field(description="limitations of the models, in plain words")
    citations: tuple[Moment, ...]
    retrieved: tuple[Moment, ...]
    searched: tuple[str, ...]
    rounds: int
    tokens: int
    seconds: float
    choice: str | None = Field(
        default=None, description="how `auto` chose the strategy; null where it was named"
    )


class RoundLine(Frozen):
    """A round of a search in a line, and its query."""

    number: int
    headline: str
    subtask: str
    mode: str | None
    query: str
    found: int


class Asked(Frozen):
    """A question, its videos and time, and the state of its run.

    What follows ``answer`` is there where one question is shown alone.
    """

    id: str
    question: str
    videos: tuple[str, ...]
    options: tuple[str, ...]
    as_of_ms: int | None
    profile: str
    strategy: str
    state: str = Field(description="running, done, stopped or failed")
    asked_at: datetime = Field(description="time by the server's clock, UTC")
    seconds: float
    fork: str = Field(default="", description="of what it is a fork, and what was changed")
    answer: str | None
    at_work: bool = Field(default=False, description="its run is in progress")
    rounds: tuple[RoundLine, ...] = ()
    result: Answered | None = Field(default=None, description="the answer with its citations")
    errors: tuple[str, ...] = ()
    choice: str | None = Field(
        default=None, description="how `auto` chose the strategy; null where it was named"
    )
    steps: tuple[str, ...] = Field(default=(), description="every step that says something new")

    def __str__(self) -> str:
        """Return the question and a line for each step."""
        lines = [f"{self.id} ({self.state}): {self.question}", *self.steps]
        return "\n".join(one_line(make_storable(line)) for line in lines)
