"""The run context: what the nodes use besides the state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from agent.budget import RunBudget
from agent.reasoners.port import Reasoner, reads_cards
from agent.recorder import Recorder
from agent.strategy import AgentPolicy, ToolLoop
from domain.asking import Aim, Mode
from domain.memories import MemoryView
from domain.moments import ResolvedRefs, Retrieval
from domain.settings import AskSettings
from domain.skills import RoutedSkill
from domain.time import TimeSpan
from telemetry import tracing


class Rounds:
    """The span of the open round, if any."""

    def __init__(self) -> None:
        self._number = 0
        self._open: tracing.Span | None = None

    def during(self, step: str, number: int) -> AbstractContextManager[object]:
        """Surround a step; the first of a round begins its span, the first after it ends it."""
        if step not in STEPS:
            self.end()
            return nullcontext()
        if self._open is None or number != self._number:
            self.end()
            self._number = number
            self._open = tracing.begin(tracing.Work.ROUND, round=number)
        return self._open.activate()

    def end(self, error: BaseException | None = None) -> None:
        """End the open round's span."""
        if self._open is not None:
            self._open.end(error)
            self._open = None


class SearchableMemory(Protocol):
    """The memory as the machine searches it (``retrieval``)."""

    def search(
        self,
        view: MemoryView,
        mode: Mode,
        query: str,
        focus: int | None = None,
        seen: frozenset[str] = frozenset(),
        aim: Aim | None = None,
        span: TimeSpan | None = None,
    ) -> Retrieval:
        """Search the memory.

        Args:
            view: which videos, each up to which clip.
            mode: what kind of search.
            query: its words.
            focus: the id of a segment.
            seen: the refs that were shown already.
            aim: the purpose, if moments of the whole view are wanted too.
            span: for KEYFRAME: the time to look at, if one is named.
        """

    def support(self, claim: str, passages: Sequence[str]) -> tuple[float, ...]:
        """Return how well each passage supports a claim, in [0, 1]."""


class Skills(Protocol):
    """The skill library as a question uses it (``skills.library``)."""

    def route(self, question: str, above: float, tokens: int) -> tuple[RoutedSkill, ...]:
        """Return the skills above that cosine to the question, best first, within a token limit."""


@dataclass(frozen=True)
class RunContext:
    """The ports of one run.

    ``cite`` resolves refs to rows; ``people`` are names by tag. ``moments``: how many moments of
    the whole view a search adds to what its mode finds. ``contents``: what happens when in the
    videos, a line an event. ``skills`` is None without a skill library. ``languages``: those the
    text model was made for; empty: unknown. ``rounds`` are telemetry spans. ``tool_loop`` is None
    for the HOMER machine, to which ``unbuilt`` returns the titles of videos without its memory.
    ``writers`` wrote the strategy's memory: rules, or models by name.
    """

    reasoner: Reasoner
    memory: SearchableMemory
    cite: Callable[[Sequence[str]], ResolvedRefs]
    settings: AskSettings
    recorder: Recorder
    budget: RunBudget
    people: tuple[tuple[str, str], ...] = ()
    moments: int = 0
    contents: tuple[str, ...] = ()
    skills: Skills | None = None
    languages: tuple[str, ...] = ()
    rounds: Rounds = field(default_factory=Rounds, compare=False)
    tool_loop: ToolLoop | None = None
    unbuilt: Callable[[], tuple[str, ...]] = tuple
    writers: tuple[str, ...] = ()

    @property
    def by_rules(self) -> bool:
        """Whether the reasoner compares scores and reads no cards."""
        return not reads_cards(self.reasoner.name)

    @property
    def actor(self) -> Reasoner | AgentPolicy:
        """Return who decides what to do in a round, and who answers."""
        return self.reasoner if self.tool_loop is None else self.tool_loop.policy

    @property
    def loop(self) -> ToolLoop:
        """Return what the tool loop uses.

        Raises:
            ValueError: the run is not on the tool loop.
        """
        if self.tool_loop is None:
            raise ValueError("the run has no tools: its strategy is not on the tool loop")
        return self.tool_loop


STEPS = frozenset({"act", "guard", "retrieve", "bind", "assess", "record", "answer"})
"""The steps that a round is made of, from its action on."""
