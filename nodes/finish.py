"""Finish: the final answer, with citations that resolve, and its calibrated confidence."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Literal

from agent.harness.constrain import chosen_letter
from agent.prompt_context import shown_tags
from agent.reasoners.question_parts import answer_claim
from agent.run_context import RunContext
from agent.state import LoopOutcome, State, action_of, ledger_of, outcome_of, question_of
from agent.support import score, supported
from domain.asking import (
    LIKELIEST_ONLY,
    NOTE,
    PICTURES_NOT_SEARCHED,
    Answer,
    Evidence,
    Ledger,
    Subtask,
    SubtaskState,
)
from domain.ledger import confidence
from domain.people import TAG
from domain.trajectory import IMAGE_FAILURE, Ended, EvidenceRetrieved, Failed, Setup
from retrieval.built_views import unbuilt_note, writers_note
from retrieval.encoders import encoder_note
from retrieval.heuristics.language import language_note

SHOWN = 20
"""Moments that an answer lists as retrieved."""
SHARE, LEAST = 0.75, 1e-3
"""Weight of the log odds of an option's share, against 1 for its support: fitted, rounded."""
NOT_IN_MEMORY = "This is not in memory."
NOTHING_YET = "The search was stopped before anything was found."
NOBODY = "somebody"


def finish(state: State, context: RunContext) -> State:
    """Build the answer and end the trajectory."""
    return end(state, context, "done")


def end(state: State, context: RunContext, how: Literal["done", "stopped"]) -> State:
    """End the trajectory with the answer of the outcome."""
    outcome, number = outcome_of(state), state.get("round", 0)
    answer = answer_of(state, context, outcome)
    if how == "done":
        # Add each citation's support: the reasoner's own, else scored.
        stated = outcome.action.support if outcome.action else ()
        cited = {citation.ref for citation in answer.citations}
        given = {support.ref: support.score for support in stated if support.ref in cited}
        unscored = [piece for piece in answer.citations if piece.ref not in given]
        claim = answer_claim(question_of(state), answer.option)
        scores = {**given, **score(context, state.get("round", 0), claim, unscored)}
        answer = supported(answer, scores, context.settings)
    refs = tuple(citation.ref for citation in answer.citations)
    support = [c.support for c in answer.citations if c.support is not None]
    sure = certainty(ledger_of(state), refs)
    raw = raw_confidence(sure, outcome.share, max(support, default=None))
    raw = round(raw if outcome.sure is None else outcome.sure, 4)
    setup = context.recorder.setup or Setup()
    options = bool(question_of(state).options)
    curve = setup.calibration.options if options else setup.calibration.open
    confidence = round(curve.at(raw), 4) if answer.citations else 0.0
    answer = answer.model_copy(update={"raw_confidence": raw, "confidence": confidence})
    if how == "stopped" and outcome.action and not outcome.action.not_in_memory:
        # A stopped search cannot tell that the memory does not hold the answer.
        text = NOTHING_YET if answer.not_in_memory else answer.text
        answer = answer.model_copy(update={"text": text, "not_in_memory": False, "searched": ()})
    context.recorder.add(
        Ended(
            round=number,
            state=how,
            why=outcome.why,
            answer=answer,
            rounds=number,
            tokens=context.budget.tokens,
        )
    )
    return {"next": "end"}


def answer_of(state: State, context: RunContext, outcome: LoopOutcome) -> Answer:
    """Build the answer of the outcome; refs without a row are dropped and recorded.

    An answer "not in memory" has one fixed text: a reasoner's guess would be an unsupported claim.
    """
    action, options = outcome.action or action_of(state), question_of(state).options
    if action is None:
        raise ValueError("a trajectory ends with an answer")
    cited = context.cite(() if action.not_in_memory and not options else action.citations)
    missing = not options and (action.not_in_memory or not cited.citations)
    if cited.unknown:
        message = f"no row has the ids {', '.join(cited.unknown)}"
        context.recorder.add(Failed(round=state.get("round", 0), where="cite", message=message))
    option = chosen_letter(action.answer, options) if options else None
    tags = shown_tags(question_of(state), context)
    text = NOT_IN_MEMORY if missing else with_names(action.answer, context.people, tags)
    refs = tuple(c.ref for c in cited.citations)
    held = context.recorder.evidence()
    seen = {ref: evidence.seen for ref, evidence in held.items()}
    return Answer(
        text=options[ord(option) - ord("A")] if option else text,
        option=option,
        confidence=0.0,
        not_in_memory=missing,
        citations=tuple(
            c.model_copy(update={"seen": seen.get(c.ref, "")}) for c in cited.citations
        ),
        retrieved=retrieved(context, refs, outcome.ranked),
        searched=searches_made(context) if missing else (),
        note=" ".join(filter(None, _notes(state, context, outcome, missing=missing))),
    )


def _notes(
    state: State, context: RunContext, outcome: LoopOutcome, *, missing: bool
) -> tuple[str, ...]:
    """Return the limits met by the reasoner, by the run, and in the question's language."""
    language = language_note(question_of(state).text, context.languages)
    gone = sum(event.where == IMAGE_FAILURE for event in context.recorder.of(Failed))
    unseen = f"Images that were found could not be looked at: files of {gone} are gone."
    searches = context.recorder.of(EvidenceRetrieved)
    encoders = encoder_note({name for search in searches for name in search.unloaded})
    strategy = context.recorder.strategy
    titles = list(dict.fromkeys(title for search in searches for title in search.unbuilt))
    unbuilt = unbuilt_note(titles, strategy.memory, left_out=strategy.windows is None)
    writers = (*context.writers, *(name for search in searches for name in search.writers))
    written = writers_note(list(dict.fromkeys(writers)))
    likeliest = LIKELIEST_ONLY if any(search.selected for search in searches) else ""
    own, pictures = context.actor.note, ""
    if missing:
        own = own.replace(NOTE, "").strip()  # Nothing was quoted.
        seen = (context.recorder.setup or Setup()).image_model
        pictures = "" if seen else PICTURES_NOT_SEARCHED
    limits = (unseen if gone else "", language, encoders, unbuilt, likeliest, pictures)
    return own, written, outcome.note, *limits


def with_names(text: str, people: Sequence[tuple[str, str]], tags: Collection[str]) -> str:
    """Replace tags by known names; a tag that was never shown becomes "somebody"."""
    names = dict(people)
    names_by_tag = {tag: tag for tag in tags} | names
    return TAG.sub(lambda tag: names_by_tag.get(tag[0], NOBODY), text)


def raw_confidence(sure: float, share: float | None, support: float | None) -> float:
    """Estimate from the evidence how certain the answer is, in [0, 1], before calibration.

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
    """Return the mean confidence of the subtasks with cited evidence (SPEC section 2).

    0 without citations. A subtask counts the pieces said to support its answer, else those of its
    evidence that the answer cites.
    """
    cited = set(refs)
    cited_subtasks = [s for s in ledger.subtasks if cited & {*s.evidence, *s.support}]
    confidences = [confidence(s.best_score, _pieces(s, cited)) for s in cited_subtasks]
    return sum(confidences) / len(confidences) if confidences else 0.0


def _pieces(subtask: Subtask, cited: set[str]) -> int:
    if subtask.state is SubtaskState.RESOLVED:
        return len(subtask.support)
    return len(cited & set(subtask.evidence))


def retrieved(
    context: RunContext, cited: Sequence[str], ranked: Sequence[str] = ()
) -> tuple[Evidence, ...]:
    """Return the evidence: by the reasoner's ranking, else cited first, then by score."""
    held = context.recorder.evidence()
    known = held.values()
    if ranked:
        return tuple(held[ref] for ref in ranked if ref in held)[:SHOWN]
    ordered = sorted(known, key=lambda e: (e.ref not in cited, -e.score, e.span.start_ms))
    return tuple(ordered[:SHOWN])


def searches_made(context: RunContext) -> tuple[str, ...]:
    """Return the distinct searches, as ``mode: query``."""
    searches = [f"{e.mode}: {e.query}" for e in context.recorder.of(EvidenceRetrieved)]
    return tuple(dict.fromkeys(searches))
