"""What the nodes use besides the state, and what a reasoner is given to decide with.

The context of a decision is put together from the state and the recorded events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol, TypeVar

from agent.harness.inform import card_lines, pictures_of
from agent.model_calls import RunBudget
from agent.reasoners.port import (
    CompletedRound,
    CompletedSearch,
    DecisionContext,
    Reasoner,
    Unreadable,
    reads_cards,
)
from agent.recorder import Recorder, with_notes
from agent.state import (
    State,
    current_of,
    focus_of,
    ledger_of,
    outcome_of,
    progress_of,
    question_of,
    view_of,
)
from agent.strategy import AgentPolicy, ToolLoop
from domain.asking import Aim, Ledger, Mode, Question, Subtask
from domain.memories import MemoryView
from domain.moments import ResolvedRefs, Retrieval
from domain.people import tags_in
from domain.settings import AskSettings
from domain.skills import RoutedSkill, Tone
from domain.time import TimeSpan
from domain.trajectory import (
    Acted,
    Assessed,
    EvidenceRetrieved,
    Failed,
    ImageNote,
    ImagesSeen,
    Neighbour,
    Planned,
    Replanned,
    RoundOpened,
    SkillsRouted,
    SupportScored,
)
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
    """The ports of one run."""

    reasoner: Reasoner
    memory: SearchableMemory
    # Resolves refs to rows.
    cite: Callable[[Sequence[str]], ResolvedRefs]
    settings: AskSettings
    recorder: Recorder
    budget: RunBudget
    # Names by tag.
    people: tuple[tuple[str, str], ...] = ()
    # How many moments of the whole view a search adds to what its mode finds.
    moments: int = 0
    # What happens when in the videos, a line an event.
    contents: tuple[str, ...] = ()
    # None without a skill library.
    skills: Skills | None = None
    # Those the text model was made for; empty: unknown.
    languages: tuple[str, ...] = ()
    # Telemetry spans.
    rounds: Rounds = field(default_factory=Rounds, compare=False)
    # None for the HOMER machine.
    tool_loop: ToolLoop | None = None
    # Returns the titles of videos without HOMER's memory.
    unbuilt: Callable[[], tuple[str, ...]] = tuple
    # What wrote the strategy's memory: rules, or models by name.
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


# The context of a decision.


T = TypeVar("T")


def decision_context_of(state: State, context: RunContext, **more: Any) -> DecisionContext:
    """Build the decision context of a state; ``more``: fields that only this decision has."""
    progress, forced = progress_of(state), state.get("forced")
    routed = [skill for event in context.recorder.of(SkillsRouted) for skill in event.skills]
    # Cautionary skills are shown only once a search went badly: it found little that is new, or
    # stayed on the same segment.
    warned = any(event.low for event in context.recorder.of(Assessed)) or any(
        event.focus is not None
        and event.focus == following.focus
        and event.options == following.options
        for event, following in pairwise(context.recorder.of(EvidenceRetrieved))
    )
    return DecisionContext(
        question=question_of(state),
        view=view_of(state),
        ledger=ledger_of(state),
        planned=planned(context.recorder),
        current=current_of(state),
        round=state.get("round", 0),
        focus=focus_of(state),
        steps=steps(context.recorder),
        evidence=tuple(context.recorder.evidence().values()),
        searches=searches(context.recorder),
        support=tuple(context.recorder.of(SupportScored)),
        neighbours=last_neighbours(context),
        hints=progress.hints,
        complaint=state.get("complaint", ""),
        forced=Mode(forced) if forced else None,
        modes=context.settings.memory.modes,
        final=is_last(state, context),
        people=context.people,
        contents=context.contents,
        guesses=context.settings.answers == "best_guess",
        skills=tuple(skill for skill in routed if warned or skill.tone is Tone.POSITIVE),
        # The latest search's first, each once.
        pictures=tuple(
            dict.fromkeys(
                one
                for event in reversed(context.recorder.of(EvidenceRetrieved))
                for one in pictures_of(event)
            )
        ),
        notes=notes(context.recorder),
        answered=outcome_of(state).action,
        seconds=context.budget.seconds_left,
        tokens=context.budget.tokens_left,
        **more,
    )


def is_last(state: State, context: RunContext) -> bool:
    last, number = progress_of(state).last, state.get("round", 0)
    return number >= context.settings.rounds or (last is not None and number >= last)


def planned(recorder: Recorder) -> Ledger:
    """Return the latest plan as it was made or repaired, without progress; empty before."""
    plans_made = [e for e in recorder.events if isinstance(e, Planned | Replanned)]
    plans = [e.subtasks for e in plans_made if isinstance(e, Planned) or not e.empty]
    bare = (Subtask(id=s.id, text=s.text, depends=s.depends) for s in (plans or [()])[-1])
    return Ledger(subtasks=tuple(bare))


def steps(recorder: Recorder) -> tuple[CompletedRound, ...]:
    """Return the searches so far, each with its card; each card is built once."""
    rounds: list[CompletedRound] = []
    notes: dict[int, tuple[ImageNote, ...]] = {}
    for look in recorder.of(ImagesSeen):
        notes[look.round] = (*notes.get(look.round, ()), *look.seen)
    seen: set[str] = set()
    subtask, focused, action = "", set[str](), None
    for at, event in enumerate(recorder.events):
        if isinstance(event, RoundOpened):
            subtask = event.subtask
        elif isinstance(event, Acted):
            action = event.action
        elif isinstance(event, EvidenceRetrieved) and action is not None:
            on_images = notes.get(event.round, ())
            built = (at, len(on_images))
            # A card has what was seen on its images, which is asked after it was built.
            if built not in recorder.cards:
                found = event
                if on_images:
                    changed = with_notes({e.ref: e for e in event.evidence}, on_images)
                    evidence = tuple(changed.get(e.ref, e) for e in event.evidence)
                    found = event.model_copy(update={"evidence": evidence})
                recorder.cards[built] = card_lines(found, seen, repeats=event.focus in focused)
            lines = recorder.cards[built]
            rounds.append(
                CompletedRound(round=event.round, subtask=subtask, action=action, lines=lines)
            )
            seen |= {e.ref for e in event.evidence}
            focused |= {event.focus} if event.focus else set()
    return tuple(rounds)


def notes(recorder: Recorder) -> tuple[str, ...]:
    """Return what the actions so far carry over."""
    actions = (event.action for event in recorder.of(Acted))
    return tuple(action.note for action in actions if action is not None and action.note)


def searches(recorder: Recorder) -> tuple[CompletedSearch, ...]:
    """Return every search so far with the subtask it was made for."""
    completed: list[CompletedSearch] = []
    subtask = ""
    for event in recorder.events:
        if isinstance(event, RoundOpened):
            subtask = event.subtask
        elif isinstance(event, EvidenceRetrieved):
            completed.append(CompletedSearch(subtask=subtask, found=event))
    return tuple(completed)


def shown_tags(question: Question, context: RunContext) -> frozenset[str]:
    """Return the tags in the question, in the known names and in the evidence."""
    texts = (question.text, *(e.text for e in context.recorder.evidence().values()))
    return frozenset(tags_in(texts) | {tag for tag, _ in context.people})


def last_neighbours(context: RunContext) -> tuple[Neighbour, ...]:
    """Return the neighbours of the focus, by the last search that moved it."""
    moves = (Mode.EVENT, Mode.NEIGHBOR)
    retrieved = [
        e for e in context.recorder.of(EvidenceRetrieved) if e.mode in moves and not e.refused
    ]
    return tuple(n for n in retrieved[-1].neighbours if not n.of) if retrieved else ()


def attempt(
    context: RunContext,
    where: str,
    decision: DecisionContext,
    decide: Callable[[DecisionContext], T],
    retries: int,
) -> T | None:
    """Return a decision, retried with the complaint while unreadable; None if all fail."""
    for _ in range(retries + 1):
        try:
            return decide(decision)
        except Unreadable as error:
            failed = Failed(round=decision.round, where=where, message=str(error))
            context.recorder.add(failed)
            decision = decision.model_copy(update={"complaint": str(error)})
    return None
