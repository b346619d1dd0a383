"""Finish: the final answer, from the evidence of the ledger, with citations that resolve."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Literal

from agent.harness.constrain import chosen_letter, letter, made_up_tags, words
from agent.harness.inform import quote_untrusted
from agent.harness.verify_and_correct import needed_subtasks, score, supported
from agent.reasoners.concluding import answer_claim
from agent.reasoners.port import Conclusion, DecisionContext, Unreadable
from agent.run_context import RunContext, attempt, decision_context_of, is_last, shown_tags
from agent.state import (
    LoopOutcome,
    State,
    action_of,
    ledger_of,
    outcome_of,
    plain,
    progress_of,
    question_of,
)
from domain.asking import (
    LIKELIEST_ONLY,
    NOTE,
    PICTURES_NOT_SEARCHED,
    QUOTED,
    Action,
    Answer,
    Evidence,
    Ledger,
    SubtaskState,
)
from domain.errors import BudgetExceeded
from domain.ledger import confidence, refs
from domain.people import TAG
from domain.trajectory import (
    IMAGE_FAILURE,
    AnswerProposed,
    Ended,
    EvidenceRetrieved,
    Failed,
    Interrupted,
    Setup,
)
from retrieval.built_views import unbuilt_note, writers_note
from retrieval.heuristics.questions import language_note

# Finish: the final answer, with citations that resolve, and its calibrated confidence.

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
    made = context.recorder.of(EvidenceRetrieved)
    searches = dict.fromkeys(f"{search.mode}: {search.query}" for search in made)
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
        searched=tuple(searches) if missing else (),
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
    limits = (unseen if gone else "", language, unbuilt, likeliest, pictures)
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
    confidences = list[float]()
    for one in cited_subtasks:
        is_resolved = one.state is SubtaskState.RESOLVED
        pieces = len(one.support) if is_resolved else len(cited & set(one.evidence))
        confidences.append(confidence(one.best_score, pieces))
    return sum(confidences) / len(confidences) if confidences else 0.0


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


# Synthesize: the final answer from the evidence of the ledger.

NO_ANSWER = "No readable answer came: this is what the evidence says most plainly."


def synthesize(state: State, context: RunContext) -> State:
    """Ask for a conclusion and check it; quote the evidence if there is none."""
    decision, note = decision_context_of(state, context), ""
    try:
        conclusion = attempt(
            context, "conclude", decision, lambda t: _checked(context, t), context.settings.retries
        )
    except BudgetExceeded as error:
        context.recorder.add(Failed(round=decision.round, where="conclude", message=str(error)))
        conclusion = None
    if conclusion is None:
        conclusion, note = fallback(decision), NO_ANSWER
    action = concluding_action(conclusion)
    context.recorder.add(AnswerProposed(round=state.get("round", 0), action=action, accepted=True))
    changes = {"action": action, "ranked": conclusion.ranked, "share": conclusion.share}
    changes |= {"sure": conclusion.sure, "note": note}
    outcome = outcome_of(state).model_copy(update=changes)
    return {"outcome": plain(outcome), "next": "finish"}


def _checked(context: RunContext, decision: DecisionContext) -> Conclusion:
    """Return the conclusion, with its option as a letter and only evidence that was shown.

    Raises:
        Unreadable: it is not an option, or cites nothing that was shown.
    """
    conclusion = context.actor.conclude(decision)
    seen = refs(decision.ledger) if context.by_rules else context.recorder.evidence()
    unknown = [ref for ref in conclusion.refs if ref not in seen]
    if unknown:
        raise Unreadable(f"Nothing with the id {', '.join(unknown)} was retrieved: cite others.")
    options = decision.question.options
    if not options:
        if conclusion.not_in_memory:
            return conclusion.model_copy(update={"option": None, "refs": ()})
        if not conclusion.text.strip():
            raise Unreadable("The answer is empty.")
        if not conclusion.refs:
            raise Unreadable("Cite the evidence, or say that the memory does not hold it.")
        if made_up := made_up_tags(conclusion.text, shown_tags(decision.question, context)):
            raise Unreadable(f"Nobody goes by {', '.join(made_up)}: use tags as they were shown.")
        return conclusion.model_copy(update={"option": None})
    option = chosen_letter(conclusion.option or conclusion.text, options)
    if option is None:
        raise Unreadable(f"Choose exactly one letter from A to {letter(len(options) - 1)}.")
    if not conclusion.refs and seen:
        raise Unreadable("Cite the evidence that speaks for the option.")
    return conclusion.model_copy(update={"option": option, "not_in_memory": False})


def fallback(decision: DecisionContext) -> Conclusion:
    """Conclude by code: the option whose words the evidence holds, or a quotation."""
    best = sorted(decision.held, key=lambda e: (-e.score, e.span.start_ms))
    quoted = best[:QUOTED]
    cited = tuple(e.ref for e in quoted)
    if decision.question.options:
        evidence_words = {word for e in best for word in words(e.full_text)}
        shares = [
            len(evidence_words & set(words(o))) / max(1, len(set(words(o))))
            for o in decision.question.options
        ]
        option = letter(shares.index(max(shares)))
        return Conclusion(text=option, option=option, refs=cited)
    if not quoted:
        return Conclusion(text="The memory does not hold this.", not_in_memory=True)
    return Conclusion(text=" ".join(e.full_text for e in quoted), refs=cited)


def concluding_action(conclusion: Conclusion) -> Action:
    return Action(
        kind="answer",
        answer=conclusion.option or conclusion.text,
        citations=conclusion.refs,
        support=conclusion.support,
        not_in_memory=conclusion.not_in_memory,
    )


# Answer: checks a valid answer against the subtasks that are still open.

REASONER_ANSWERED = "the reasoner answered"
"""The reason why the search ended, which is recorded."""


def answer(state: State, context: RunContext) -> State:
    """Accept the answer, or name the open subtasks once while there is budget for them."""
    action, counts = action_of(state), progress_of(state)
    if action is None:
        return {"next": "record"}
    open_subtasks = needed_subtasks(ledger_of(state), context.settings)
    deferred = bool(open_subtasks) and not (
        counts.reminded or is_last(state, context) or context.budget.gone()
    )
    names = ", ".join(f"{s.id} ({quote_untrusted(s.text)})" for s in open_subtasks)
    complaint = f"Still open: {names}. Search for it, or answer again if it does not matter."
    context.recorder.add(
        AnswerProposed(
            round=state["round"],
            action=action,
            accepted=not deferred,
            complaint=complaint if deferred else "",
        )
    )
    if not deferred:
        outcome = LoopOutcome(action=action, why=REASONER_ANSWERED)
        return {"outcome": plain(outcome), "next": "finish"}
    after = counts.model_copy(update={"reminded": True, "hints": (complaint,)})
    return {"progress": plain(after), "next": "record"}


# Stop: the best answer so far, without any model, for a user who does not want to wait.

SO_FAR = "Stopped before the search was over: this is the best answer so far."
WHY = "it was stopped"


def stop(state: State, context: RunContext) -> State:
    """End the trajectory with the best answer at this step."""
    number = state.get("round", 0)
    action = outcome_of(state).action
    if action is None:  # Conclude from the resolved subtasks, else from the evidence alone.
        decision = decision_context_of(state, context)
        resolved = [s for s in ledger_of(state).subtasks if s.state is SubtaskState.RESOLVED]
        if resolved and not decision.question.options:
            refs = dict.fromkeys(ref for subtask in resolved for ref in subtask.support)
            text = " ".join(s.answer or "" for s in resolved)
            conclusion = Conclusion(text=text, refs=tuple(refs))
        elif not decision.evidence and not decision.question.options:
            conclusion = Conclusion(text=NOTHING_YET)
        else:
            conclusion = fallback(decision)
        action = concluding_action(conclusion)
    context.recorder.step = "stop"
    context.recorder.add(Interrupted(round=number))
    context.recorder.add(AnswerProposed(round=number, action=action, accepted=True))
    outcome = LoopOutcome(action=action, why=WHY, note=SO_FAR)
    return end({**state, "outcome": plain(outcome)}, context, "stopped")
