"""Finish: the answer as it is shown, with citations that resolve and confidence from the ledger."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Literal

from agent.harness.constrain import chosen
from agent.prompt_context import shown_tags
from agent.reasoners.question_parts import answer_claim
from agent.run_context import RunContext
from agent.state import LoopOutcome, State, action_of, ledger_of, outcome_of, question_of
from agent.support import score, supported
from domain.asking import Answer, Evidence, Ledger, Subtask, SubtaskState
from domain.ledger import confidence
from domain.people import TAG
from domain.trajectory import IMAGES, Ended, EvidenceRetrieved, Failed, Setup
from retrieval.heuristics.language import uncovered

SHOWN = 20
"""Moments that an answer lists as retrieved."""
SHARE, LEAST = 0.75, 1e-3
"""How much the log odds of an option's share count beside 1 for its support: fitted, rounded."""
NOT_IN_MEMORY = "This is not in memory."
NOTHING_YET = "The search was stopped before anything was found."
NOBODY = "somebody"


def finish(state: State, desk: RunContext) -> State:
    """Build the answer by code and end the trajectory."""
    return end(state, desk, "done")


def end(state: State, desk: RunContext, how: Literal["done", "stopped"]) -> State:
    """End the trajectory with the answer that the outcome comes to."""
    outcome, number = outcome_of(state), state.get("round", 0)
    answer = answer_of(state, desk, outcome)
    if how == "done" and not answer.declined:
        answer = _with_support(state, desk, outcome, answer)
    answer = _with_confidence(state, desk, outcome, answer)
    if how == "stopped" and outcome.action and not outcome.action.not_in_memory:
        # Who was stopped cannot say that the memory does not hold it.
        text = NOTHING_YET if answer.not_in_memory else answer.text
        answer = answer.model_copy(update={"text": text, "not_in_memory": False, "searched": ()})
    desk.recorder.add(
        Ended(
            round=number,
            state=how,
            why=outcome.why,
            answer=answer,
            rounds=number,
            tokens=desk.meter.tokens,
        )
    )
    return {"next": "end"}


def answer_of(state: State, desk: RunContext, outcome: LoopOutcome) -> Answer:
    """The answer that the outcome comes to; refs that no row has are dropped and noted.

    What is not in memory has one text: a reasoner's guess at it would be a claim without evidence.
    """
    action, options = outcome.action or action_of(state), question_of(state).options
    if action is None:
        raise ValueError("a trajectory ends with an answer")
    cited = desk.cite(() if action.not_in_memory and not options else action.citations)
    missing = not options and (action.not_in_memory or not cited.citations)
    if cited.unknown:
        message = f"no row has the ids {', '.join(cited.unknown)}"
        desk.recorder.add(Failed(round=state.get("round", 0), where="cite", message=message))
    option = chosen(action.answer, options) if options else None
    tags = shown_tags(question_of(state), desk)
    said = NOT_IN_MEMORY if missing else named(action.answer, desk.people, tags)
    refs = tuple(c.ref for c in cited.citations)
    return Answer(
        text=options[ord(option) - ord("A")] if option else said,
        option=option,
        confidence=0.0,
        not_in_memory=missing,
        declined=outcome.declined and not missing and option is None,
        citations=cited.citations,
        retrieved=retrieved(desk, refs, outcome.ranked),
        searched=searched(desk) if missing else (),
        note=" ".join(note for note in _notes(state, desk, outcome) if note),
    )


def _with_support(state: State, desk: RunContext, outcome: LoopOutcome, answer: Answer) -> Answer:
    """How well each citation supports the answer: as its reasoner said, else scored."""
    said = outcome.action.support if outcome.action else ()
    cited = {citation.ref for citation in answer.citations}
    told = {one.ref: one.score for one in said if one.ref in cited}
    unscored = [piece for piece in answer.citations if piece.ref not in told]
    claim = answer_claim(question_of(state), answer.option)
    scores = {**told, **score(desk, state.get("round", 0), claim, unscored)}
    return supported(answer, scores, desk.settings)


def _notes(state: State, desk: RunContext, outcome: LoopOutcome) -> tuple[str, ...]:
    """What could not be done: by the reasoner, by the run, and in the language of the question."""
    tongue = uncovered(question_of(state).text, desk.languages)
    gone = sum(event.where == IMAGES for event in desk.recorder.of(Failed))
    unseen = f"Images that were found could not be looked at: files of {gone} are gone."
    return desk.reasoner.note, outcome.note, unseen if gone else "", tongue


def named(text: str, people: Sequence[tuple[str, str]], tags: Collection[str]) -> str:
    """``text`` with known names in the place of tags; a tag that was never shown is nobody's."""
    names = dict(people)
    kept = {tag: tag for tag in tags} | names
    return TAG.sub(lambda tag: kept.get(tag[0], NOBODY), text)


def _with_confidence(
    state: State, desk: RunContext, outcome: LoopOutcome, answer: Answer
) -> Answer:
    """The answer with its confidence, calibrated by the curves that the run has on record."""
    refs = tuple(citation.ref for citation in answer.citations)
    support = [c.support for c in answer.citations if c.support is not None]
    sure = certainty(ledger_of(state), refs)
    raw = raw_confidence(sure, outcome.share, max(support, default=None))
    raw = round(raw if outcome.sure is None else outcome.sure, 4)
    setup = desk.recorder.setup or Setup()
    options = bool(question_of(state).options)
    curve = setup.calibration.options if options else setup.calibration.open
    confidence = round(curve.at(raw), 4) if answer.citations else 0.0
    return answer.model_copy(update={"raw_confidence": raw, "confidence": confidence})


def raw_confidence(sure: float, share: float | None, support: float | None) -> float:
    """How sure the evidence is, in [0, 1], before calibration.

    Args:
        sure: the confidence of the ledger.
        share: of the support of all options that the chosen one has; None where it is not known.
        support: of the best citation; None where nothing was scored.
    """
    if share is None:
        return sure if support is None else (sure + support) / 2
    odds = SHARE * math.log(max(share, LEAST) / max(1 - share, LEAST)) + (support or 0.0)
    return 1 / (1 + math.exp(-odds))


def certainty(ledger: Ledger, refs: Sequence[str]) -> float:
    """The mean confidence of the subtasks that the cited evidence belongs to (SPEC section 2).

    0 where nothing is cited. A subtask's pieces are those said to support its answer, else those
    of its evidence that the answer cites.
    """
    cited = set(refs)
    touched = [s for s in ledger.subtasks if cited & {*s.evidence, *s.support}]
    each = [confidence(s.best_score, _pieces(s, cited)) for s in touched]
    return sum(each) / len(each) if each else 0.0


def _pieces(subtask: Subtask, cited: set[str]) -> int:
    if subtask.state is SubtaskState.RESOLVED:
        return len(subtask.support)
    return len(cited & set(subtask.evidence))


def retrieved(
    desk: RunContext, cited: Sequence[str], ranked: Sequence[str] = ()
) -> tuple[Evidence, ...]:
    """What was found, best first: as the reasoner ranked it, else what is cited, then by score."""
    held = desk.recorder.evidence()
    known = held.values()
    if ranked:
        return tuple(held[ref] for ref in ranked if ref in held)[:SHOWN]
    ordered = sorted(known, key=lambda e: (e.ref not in cited, -e.score, e.span.start_ms))
    return tuple(ordered[:SHOWN])


def searched(desk: RunContext) -> tuple[str, ...]:
    """What was searched, in words, each once."""
    said = [f"{e.mode}: {e.query}" for e in desk.recorder.of(EvidenceRetrieved)]
    return tuple(dict.fromkeys(said))
