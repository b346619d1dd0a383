"""What led to an answer: the rounds of a trajectory, computed from its events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import NonNegativeInt

from agent.strategy import AUTO
from domain.asking import Action, Answer, Evidence, Mode, Question, Subtask
from domain.base import Frozen
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
from domain.words import counted, marked, translate, translate_sentence
from store.queries.trajectories import (
    StoredTrajectory,
    events_of,
    find_call,
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
            # The same request may be made several times: its nth event is the nth call on record.
            nth = before.get(event.request, 0)
            before[event.request] = nth + 1
            if event.round != number:
                continue
            found = (
                find_call(session, event.request, source, 0 if place else nth)
                for place, source in enumerate(sources)
            )
            call = next(filter(None, found), None)
            if call is None:
                calls.append(ShownCall(event))
                continue
            messages = [(str(one.get("role", "")), message_text(one)) for one in call.messages]
            calls.append(ShownCall(event, messages, str((call.reply or {}).get("text", ""))))
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


# Trajectories compared: two of them round by round, and one question by several strategies.


class ComparedRound(Frozen):
    """The action of one round, and the refs that each of its searches found, best first."""

    round: int
    subtask: str
    action: Action | None
    seen: tuple[str, ...]


class FirstDivergence(Frozen):
    """The first round in which the two differ; None for a trajectory that had ended."""

    round: int
    a: ComparedRound | None
    b: ComparedRound | None


class Difference(Frozen):
    """How two trajectories differ.

    ``action`` is the first round with another action, ``evidence`` the first with other evidence;
    None if there is none. ``only_a`` and ``only_b`` are the evidence that one of them found in the
    whole run, in the order of finding; ``both`` counts what both found.
    """

    a: str
    b: str
    same_question: bool
    same_answer: bool
    action: FirstDivergence | None
    evidence: FirstDivergence | None
    only_a: tuple[Evidence, ...]
    only_b: tuple[Evidence, ...]
    both: int
    answer_a: Answer | None
    answer_b: Answer | None
    question_a: Question
    question_b: Question

    @property
    def same(self) -> bool:
        return self.action is None and self.evidence is None and self.same_answer


def compare_trajectories(a: History, b: History) -> Difference:
    """Return the differences of ``a`` and ``b``; the reasons of actions are not compared."""
    seen_a, seen_b = a.evidence, b.evidence
    one, other = a.row, b.row
    return Difference(
        a=one.id,
        b=other.id,
        same_question=one.question == other.question,
        same_answer=_answer_key(one.answer) == _answer_key(other.answer),
        action=_first_difference(a, b, ("subtask", "action")),
        evidence=_first_difference(a, b, ("seen",)),
        only_a=tuple(e for ref, e in seen_a.items() if ref not in seen_b),
        only_b=tuple(e for ref, e in seen_b.items() if ref not in seen_a),
        both=len(seen_a.keys() & seen_b.keys()),
        answer_a=one.answer,
        answer_b=other.answer,
        question_a=one.question,
        question_b=other.question,
    )


def _first_difference(a: History, b: History, fields: Sequence[str]) -> FirstDivergence | None:
    left, right = (
        [
            ComparedRound(
                round=one.number,
                subtask=one.subtask,
                action=one.action,
                seen=tuple(evidence.ref for evidence in one.evidence),
            )
            for one in history.rounds
        ]
        for history in (a, b)
    )
    # Where one has ended and the other goes on, they differ too.
    for one, other in zip_longest(left, right):
        if (
            one is None
            or other is None
            or any(_compared(one, name) != _compared(other, name) for name in fields)
        ):
            return FirstDivergence(round=(one or other).round, a=one, b=other)
    return None


def _compared(round_: ComparedRound, field: str) -> object:
    """Return a field of a round as it is compared: an action without its reason."""
    if field == "action" and round_.action is not None:
        return round_.action.model_copy(update={"reason": ""})
    return getattr(round_, field)


def _answer_key(answer: Answer | None) -> tuple[object, ...] | None:
    return None if answer is None else (answer.option, answer.text, answer.not_in_memory)


class StrategyRow(Frozen):
    """The answer of one strategy, and what it took.

    ``alone`` is the evidence that no other strategy found, in the order of finding. ``strategy``
    begins with ``auto: `` where it was chosen.
    """

    strategy: str
    trajectory: str
    answer: Answer | None
    rounds: NonNegativeInt
    searches: NonNegativeInt
    calls: NonNegativeInt
    tokens: NonNegativeInt
    cost_usd: float
    seconds: float
    alone: tuple[Evidence, ...]


class SideBySide(Frozen):
    """The rows in the order of asking. ``shared`` counts the evidence that all of them found.

    ``titles`` are those of the videos by id, ``failed`` why the others failed.
    """

    question: Question
    rows: tuple[StrategyRow, ...]
    shared: NonNegativeInt
    titles: Mapping[str, str] = {}
    failed: Mapping[str, str] = {}

    @property
    def answers_agree(self) -> bool:
        given = {(row.answer.option or row.answer.text) if row.answer else "" for row in self.rows}
        return len(given) == 1


def side_by_side(histories: Sequence[History]) -> SideBySide:
    """Compare the trajectories of one question; there is at least one."""
    found = [history.evidence for history in histories]
    rows = []
    for place, (history, own) in enumerate(zip(histories, found, strict=True)):
        row = history.row
        others = {ref for n, each in enumerate(found) if n != place for ref in each}
        one = StrategyRow(
            strategy=f"{AUTO}: {row.machine}" if history.choice else row.machine,
            trajectory=row.id,
            answer=row.answer,
            rounds=len(history.rounds),
            searches=sum(round_.found is not None for round_ in history.rounds),
            calls=len(history.calls),
            tokens=row.tokens,
            cost_usd=history.cost_usd,
            seconds=row.seconds,
            alone=tuple(piece for ref, piece in own.items() if ref not in others),
        )
        rows.append(one)
    shared = set.intersection(*map(set, found))
    return SideBySide(question=histories[0].row.question, rows=tuple(rows), shared=len(shared))
