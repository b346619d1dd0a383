"""What led to an answer: the rounds of a trajectory, computed from its events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from domain.asking import Action, Evidence, Mode, Subtask
from domain.marked import marked
from domain.people import tags_in_words
from domain.skills import StrategyChoice
from domain.trajectory import (
    Acted,
    Assessed,
    Ended,
    Event,
    EvidenceRetrieved,
    Forked,
    ModelCalled,
    Planned,
    RoundOpened,
    choice_of,
)
from domain.words import counted, translate, translate_sentence
from store.queries.calls import find_call, messages_of
from store.queries.trajectories import (
    StoredTrajectory,
    events_of,
    find_trajectory,
    forks_of,
    is_claimed,
    recent_questions,
)
from store.queries.trajectories import count_trajectories as count

if TYPE_CHECKING:
    from store.database import Store

E = TypeVar("E", bound=Event)


@dataclass(frozen=True)
class Round:
    """One round: the subtask and action, the result, and what followed from it."""

    number: int
    subtask: str
    text: str
    action: Action | None = None
    found: EvidenceRetrieved | None = None
    assessed: Assessed | None = None
    calls: tuple[ModelCalled, ...] = ()

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Return what its search found; nothing if it made none."""
        return self.found.evidence if self.found else ()


@dataclass(frozen=True)
class History:
    """A whole trajectory: its row, and what follows from its events.

    ``at_work``: some process works on it now.
    """

    row: StoredTrajectory
    events: Sequence[Event] = field(repr=False)
    at_work: bool = False

    def of(self, kind: type[E]) -> tuple[E, ...]:
        """Return the events of a kind."""
        return tuple(event for event in self.events if isinstance(event, kind))

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        """Return the rounds in order; an event belongs to the round of its number."""
        opened, events = dict[int, RoundOpened](), dict[int, list[Event]]()
        for event in self.events:
            if isinstance(event, RoundOpened):
                opened[event.round], events[event.round] = event, []
            elif event.round in events:
                events[event.round].append(event)
        return tuple(_round(opened[number], events[number]) for number in sorted(opened))

    @property
    def running(self) -> bool:
        """Whether it has not ended; then nobody may be at work on it."""
        return self.row.state == "running"

    @property
    def plan(self) -> tuple[Subtask, ...]:
        """Return the first plan."""
        return next((event.subtasks for event in self.of(Planned)), ())

    @property
    def calls(self) -> tuple[ModelCalled, ...]:
        """Return all its model calls, including those outside rounds."""
        return self.of(ModelCalled)

    @property
    def cost_usd(self) -> float:
        """Return what they cost, where prices are known."""
        return sum(call.cost_usd for call in self.calls)

    @property
    def why(self) -> str:
        """Return why it ended; "" where it has not."""
        return next((event.why for event in reversed(self.of(Ended))), "")

    @property
    def choice(self) -> StrategyChoice | None:
        """Return how the strategy was chosen; None where it was named."""
        return choice_of(self.events)

    @property
    def evidence(self) -> dict[str, Evidence]:
        """Return what the rounds found, by ref, in the order of finding."""
        by_ref: dict[str, Evidence] = {}
        for round_ in self.rounds:
            for evidence in round_.evidence:
                by_ref.setdefault(evidence.ref, evidence)
        return by_ref


def _round(opened: RoundOpened, events: Sequence[Event]) -> Round:
    def last(kind: type[E]) -> E | None:
        return next((event for event in reversed(events) if isinstance(event, kind)), None)

    acted = last(Acted)
    return Round(
        number=opened.round,
        subtask=opened.subtask,
        text=opened.text,
        action=acted.action if acted else None,
        found=last(EvidenceRetrieved),
        assessed=last(Assessed),
        calls=tuple(event for event in events if isinstance(event, ModelCalled)),
    )


def load_history(store: Store, name: str) -> History:
    """Return the trajectory whose id is or begins with ``name``.

    Raises:
        NotFound: there is none.
        Ambiguous: there are several.
    """
    with store.begin(snapshot=True) as session:
        row = find_trajectory(session, name)
        return History(row, events_of(session, row.id), is_claimed(session, row.id))


def recently_asked(store: Store, limit: int) -> tuple[list[tuple[str, str]], int]:
    """Return the newest questions, each with its newest trajectory, and how often was asked."""
    with store.begin(snapshot=True) as session:
        return recent_questions(session, limit), count(session)


def forks_among(store: Store, trajectories: Sequence[str]) -> Mapping[str, Forked]:
    """Return where those of the trajectories that are forks come from."""
    with store.begin() as session:
        return forks_of(session, trajectories)


@dataclass(frozen=True)
class ShownCall:
    """A model call: what was sent, as (role, text), and the reply, "" if there was none."""

    event: ModelCalled
    messages: Sequence[tuple[str, str]] = ()
    reply: str = ""


def calls_in_round(store: Store, history: History, number: int) -> list[ShownCall]:
    """Return the model calls of a round with their texts; 0 is before the first round."""
    # A fork's inherited calls are on the record of what it is a fork of.
    sources = [history.row.id, *(fork.parent for fork in reversed(history.of(Forked)))]
    before: dict[str, int] = {}
    calls = []
    with store.begin(snapshot=True) as session:
        for event in history.calls:
            nth = before.get(event.request, 0)
            before[event.request] = nth + 1
            if event.round != number:
                continue
            rows = (
                find_call(session, event.request, source, 0 if place else nth)
                for place, source in enumerate(sources)
            )
            row = next(filter(None, rows), None)
            if row is None:
                calls.append(ShownCall(event))
                continue
            sent = messages_of(session, row.messages)
            messages = [(str(one.get("role", "")), message_text(one)) for one in sent]
            calls.append(ShownCall(event, messages, str((row.reply or {}).get("text", ""))))
    return calls


def message_text(message: Mapping[str, Any]) -> str:
    """Return the text of a recorded message; images are named by the beginning of their digest."""
    content = message.get("content", "")
    if isinstance(content, str):
        return content
    texts = [part.get("text") or f"[image {str(part.get('sha256', ''))[:12]}]" for part in content]
    return "\n".join(texts)


PLACES: Mapping[str, str] = {
    Mode.VIDEO: marked("in what was said, read and seen"),
    Mode.EVENT: marked("among the events"),
    Mode.KEYFRAME: marked("in the images"),
    Mode.NEIGHBOR: marked("around the moments found before"),
}
"""Where each mode of HOMER searches; a strategy's own tools are named."""


def place_in_words(mode: str) -> str:
    """Return where a mode searches: ``in the images``, or ``with open frames`` for a tool."""
    if mode in PLACES:
        return translate(PLACES[mode])
    return translate("with {tool}").format(tool=mode.replace("_", " "))


def search_in_words(search: str) -> str:
    """Return ``event: a gate``, as answers record their searches, in words."""
    mode, colon, query = search.partition(": ")
    return f"{query}, {translate(PLACES[mode])}" if colon and mode in PLACES else search


def round_headline(history: History, number: int) -> str:
    """Return a round as a sentence: what was done, and what it found."""
    round_ = next((each for each in history.rounds if each.number == number), None)
    if round_ is None:
        return translate("Round {number}").format(number=number)
    action, found = round_.action, round_.found
    if action is None:
        parts = [translate("about {text}").format(text=tags_in_words(round_.text))]
    elif action.kind == "answer":
        parts = [translate("gave an answer")]
    else:
        searched = translate("searched {place} for \u201c{query}\u201d").format(
            place=place_in_words(action.mode or Mode.VIDEO), query=tags_in_words(action.query)
        )
        parts = [searched]
    if found is not None and found.refused:
        parts.append(translate_sentence(found.refused))
    elif found is not None and (found.nothing_close or not found.evidence):
        parts.append(translate("found nothing close"))
    elif found is not None:
        moments = counted(len(found.evidence), "moment")
        parts.append(translate("found {moments}").format(moments=moments))
    return translate("Round {number}: {text}").format(number=number, text=", ".join(parts))
