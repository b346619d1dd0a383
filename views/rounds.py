"""Read models of a trajectory's page: what each round found, harness remarks, and model calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from domain.asking import Mode, Subtask
from domain.base import Frozen
from domain.marked import marked
from domain.people import tags_in_words
from domain.time import TimeSpan
from domain.trajectory import (
    AnswerProposed,
    Assessed,
    Bound,
    Event,
    EvidenceRetrieved,
    Failed,
    Forced,
    Forked,
    Guarded,
    ImagesSeen,
    Interrupted,
    ModelCalled,
    Planned,
    Progressed,
    Replanned,
    RoundClosed,
    TimeUp,
)
from graphs.forks import ledger_before
from store.queries.calls import find_call, messages_of
from store.queries.trajectories import (
    StoredTrajectory,
    events_of,
    find_trajectory,
    forks_of,
    is_claimed,
    list_trajectories,
    recent_questions,
)
from store.queries.trajectories import count_trajectories as count
from views.sentences import translate_sentence
from views.trajectory import History, Round, history_of
from views.translation import format_number, translate
from views.words import counted

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from store.database import Store
    from store.tables.questions import ModelCallRow

RUNNING = "running"


class HarnessPart(StrEnum):
    """The four parts of the harness (SPEC section 2)."""

    INFORM = "inform"
    CONSTRAIN = "constrain"
    VERIFY = "verify"
    CORRECT = "correct"


class Remark(Frozen):
    """One action of the harness, in words."""

    part: HarnessPart
    text: str


class SubtaskChange(Frozen):
    """A subtask at a round; ``marks`` say what changed since the round before."""

    subtask: Subtask
    marks: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShownCall:
    """A model call: what was sent, as (role, text), and the reply, "" if there was none."""

    event: ModelCalled
    messages: Sequence[tuple[str, str]] = ()
    reply: str = ""


@dataclass(frozen=True)
class InspectedTrajectory:
    """A whole trajectory, with everything that its page shows.

    ``at_work``: some process works on it now.
    """

    row: StoredTrajectory
    history: History
    at_work: bool

    def seen(self, number: int, video: str) -> list[TimeSpan]:
        """Return the spans of a video that a round found."""
        return [
            evidence.span
            for search in self._searches(number)
            for evidence in search.evidence
            if evidence.video == video
        ]

    def remarks(self, number: int) -> list[Remark]:
        """Return the remarks of the harness in a round, in order; 0 is before the first."""
        events = [event for event in self.history.events if event.round == number]
        return [remark for event in events for remark in harness_remarks(event)]

    def ledger(self, number: int) -> list[SubtaskChange]:
        """Return the ledger at the end of a round, with the changes since the round before."""
        before = {subtask.id: subtask for subtask in self._ledger_after(number - 1)}
        return [
            SubtaskChange(subtask=now, marks=tuple(_marks(now, before.get(now.id))))
            for now in self._ledger_after(number)
        ]

    def _ledger_after(self, number: int) -> Sequence[Subtask]:
        events = [event for event in self.history.events if event.round <= max(number, 0)]
        return ledger_before(events).subtasks if number >= 0 else ()

    def _searches(self, number: int) -> Iterator[EvidenceRetrieved]:
        for event in self.history.events:
            if event.round == number and isinstance(event, EvidenceRetrieved):
                yield event


def page_of_trajectories(
    store: Store, limit: int, offset: int = 0, words: str = ""
) -> tuple[list[StoredTrajectory], int]:
    """Return a page of the newest trajectories, and their number."""
    with store.begin(snapshot=True) as session:
        return list_trajectories(session, limit, offset, words), count(session, words)


def recently_asked(store: Store, limit: int) -> tuple[list[tuple[str, str]], int]:
    """Return the newest questions, each with its newest trajectory, and how often was asked."""
    with store.begin(snapshot=True) as session:
        return recent_questions(session, limit), count(session)


def forks_among(store: Store, trajectories: Sequence[str]) -> Mapping[str, Forked]:
    """Return where those of the trajectories that are forks come from."""
    with store.begin() as session:
        return forks_of(session, trajectories)


def changed_parts(fork: Forked) -> str:
    """Name what a fork changed: ``query changed``."""
    edit = fork.edit
    action = (
        marked("answer")
        if edit.action is not None and edit.action.kind == "answer"
        else marked("query")
    )
    parts = {
        marked("plan"): edit.plan,
        action: edit.action,
        marked("evidence"): edit.evidence,
        marked("models"): edit.profile,
    }
    changed = [name for name, value in parts.items() if value is not None]
    if not changed:
        return translate("decided once more")
    return translate("{parts} changed").format(parts=", ".join(map(translate, changed)))


def inspect_trajectory(store: Store, name: str) -> InspectedTrajectory:
    """Return the trajectory whose id is or begins with ``name``.

    Raises:
        NotFound: there is none.
        Ambiguous: there are several.
    """
    with store.begin(snapshot=True) as session:
        row = find_trajectory(session, name)
        events = events_of(session, row.id)
        at_work = is_claimed(session, row.id)
    return InspectedTrajectory(row, history_of(row, events), at_work)


def calls_in_round(store: Store, shown: InspectedTrajectory, number: int) -> list[ShownCall]:
    """Return the model calls of a round with their texts; 0 is before the first round."""
    events = [event for event in shown.history.events if isinstance(event, ModelCalled)]
    # A fork's inherited calls are on the record of what it is a fork of.
    parents = [one.parent for one in reversed(shown.history.events) if isinstance(one, Forked)]
    before: dict[str, int] = {}
    calls = []
    with store.begin(snapshot=True) as session:
        for event in events:
            nth = before.get(event.request, 0)
            before[event.request] = nth + 1
            if event.round == number:
                found = (
                    find_call(session, event.request, shown.row.id, nth),
                    *(find_call(session, event.request, parent) for parent in parents),
                )
                calls.append(_call(session, event, next(filter(None, found), None)))
    return calls


def _call(session: Session, event: ModelCalled, row: ModelCallRow | None) -> ShownCall:
    """Return the call with its record, if there is one."""
    if row is None:
        return ShownCall(event)
    sent = messages_of(session, row.messages)
    messages = [(str(message.get("role", "")), message_text(message)) for message in sent]
    return ShownCall(event, messages, str((row.reply or {}).get("text", "")))


def message_text(message: Mapping[str, Any]) -> str:
    """Return the text of a recorded message; images are named by the beginning of their digest."""
    content = message.get("content", "")
    if isinstance(content, str):
        return content
    texts = [part.get("text") or f"[image {str(part.get('sha256', ''))[:12]}]" for part in content]
    return "\n".join(texts)


def _marks(now: Subtask, before: Subtask | None) -> Iterator[str]:
    if before is None:
        yield translate("new")
        return
    if now.text != before.text:
        yield translate("reworded")
    if now.state != before.state:
        yield f"{translate(before.state)} -> {translate(now.state)}"
    if now.attempts != before.attempts:
        yield translate("attempt {number}").format(number=now.attempts)
    gained = len(set(now.evidence) - set(before.evidence))
    if gained:
        yield translate("+{count} evidence").format(count=gained)
    if now.answer != before.answer:
        yield translate("answered") if now.answer else translate("answer withdrawn")


def harness_remarks(event: Event) -> Iterator[Remark]:
    """Yield the remarks of the harness for an event: most events have none."""
    for part, text in _remarks(event):
        if text:
            yield Remark(part=part, text=tags_in_words(text))


def _remarks(event: Event) -> Iterator[tuple[HarnessPart, str]]:
    match event:
        case EvidenceRetrieved():
            yield HarnessPart.INFORM, _shown(event)
        case Bound():
            yield (
                HarnessPart.INFORM,
                translate("{evidence} tied to {subtask}").format(
                    evidence=counted(len(event.refs), "piece of evidence"), subtask=event.subtask
                ),
            )
        case Guarded(accepted=True):
            yield HarnessPart.CONSTRAIN, translate("accepted")
        case Guarded():
            yield (
                HarnessPart.CONSTRAIN,
                translate("refused by the rule '{rule}': {complaint}").format(
                    rule=event.rule, complaint=translate_sentence(event.complaint)
                ),
            )
        case AnswerProposed():
            verdict = (
                translate("the answer was accepted")
                if event.accepted
                else translate("the answer was sent back: {complaint}")
            )
            yield HarnessPart.VERIFY, verdict.format(complaint=event.complaint)
        case ImagesSeen():
            yield from ((HarnessPart.VERIFY, text) for text in _looked(event))
        case Assessed():
            yield from ((HarnessPart.VERIFY, text) for text in _assessed(event))
        case _:
            yield HarnessPart.CORRECT, _corrected(event)


def _shown(event: EvidenceRetrieved) -> str:
    if event.refused:
        return translate_sentence(event.refused)
    if event.nothing_close or not event.evidence:
        return translate("nothing close to '{query}'").format(query=event.query)
    images = (
        translate(" and {images}").format(images=counted(len(event.images), "image"))
        if event.images
        else ""
    )
    moments = counted(len(event.evidence), "moment")
    return translate("{moments}{images} shown; the best scored {score}").format(
        moments=moments, images=images, score=format_number(event.evidence[0].score, ".2f")
    )


def _looked(event: ImagesSeen) -> Iterator[str]:
    yield translate("images looked at: {images}").format(images=", ".join(event.shown))
    yield from (
        translate("seen on {ref}: {text}").format(ref=one.ref, text=one.text) for one in event.seen
    )
    yield from event.refused


def _assessed(event: Assessed) -> Iterator[str]:
    low = translate(", which is low") if event.low else ""
    yield translate("{share} of what was found is new{low}").format(
        share=format_number(event.increment, ".0%"), low=low
    )
    if event.saturated:
        yield translate("saturated: two rounds in a row with little new")
    for resolution in event.resolved:
        yield translate("{subtask} is resolved with {evidence}").format(
            subtask=resolution.subtask, evidence=", ".join(resolution.refs)
        )
    yield from event.refused


def _corrected(event: Event) -> str:
    match event:
        case Planned(dropped=dropped) if dropped:
            return translate("dropped from the plan: {parts}").format(
                parts="; ".join(map(translate_sentence, dropped))
            )
        case Progressed(verdict="replan" | "finish"):
            return f"{event.verdict}: " + "; ".join(event.reasons)
        case Replanned():
            what = (
                translate("the plan stayed as it was")
                if event.empty
                else translate("the plan was repaired")
            )
            return "; ".join([what, *event.reasons, *map(translate_sentence, event.refused)])
        case Forced():
            return translate("the next mode is {mode}: {reason}").format(
                mode=event.mode, reason=event.reason
            )
        case RoundClosed():
            return event.warning
        case Failed():
            return translate("{where} failed: {message}").format(
                where=event.where, message=event.message
            )
        case Interrupted():
            return translate("stopped by a person: what follows is the best answer so far")
        case TimeUp():
            return translate("the time is up")
        case _:
            return ""


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
    parts = [_did(round_), _result(round_.found)]
    return translate("Round {number}: {text}").format(
        number=number, text=", ".join(part for part in parts if part)
    )


def _did(round_: Round) -> str:
    action = round_.action
    if action is None:
        return translate("about {text}").format(text=tags_in_words(round_.text))
    if action.kind == "answer":
        return translate("gave an answer")
    place = place_in_words(action.mode or Mode.VIDEO)
    return translate("searched {place} for \u201c{query}\u201d").format(
        place=place, query=tags_in_words(action.query)
    )


def _result(found: EvidenceRetrieved | None) -> str:
    if found is None:
        return ""
    if found.refused:
        return translate_sentence(found.refused)
    if found.nothing_close or not found.evidence:
        return translate("found nothing close")
    return translate("found {moments}").format(moments=counted(len(found.evidence), "moment"))
