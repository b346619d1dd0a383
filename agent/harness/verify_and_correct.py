"""Verify and correct (SPEC section 2).

Verify: how much of a search's result is new, and how it supports a claim. Correct: the plan or the
mode changes, or the search stops, where it makes no progress.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agent.run_context import RunContext
from agent.state import Focus, ProgressLedger
from domain.asking import (
    Action,
    Answer,
    Citation,
    Evidence,
    Ledger,
    Mode,
    Standing,
    Subtask,
    SubtaskState,
    Support,
)
from domain.base import Frozen
from domain.ledger import blocked_subtasks, is_stalled
from domain.settings import AskSettings
from domain.trajectory import EvidenceRetrieved, Resolution, SupportScored
from retrieval.terms import STOP, pieces, plain_words


def fingerprint(texts: Iterable[str], query: str) -> frozenset[str]:
    """Return the words of a payload without stop words and words of the query."""
    text_pieces = {piece for text in texts for piece in _pieces(text)}
    return frozenset(text_pieces - STOP - set(_pieces(query)))


def _pieces(text: str) -> list[str]:
    return [piece for word in plain_words(text) for piece in pieces(word)]


def payload_words(retrieval: EvidenceRetrieved) -> frozenset[str]:
    return fingerprint((e.text for e in retrieval.evidence), retrieval.query)


def increment(retrieval: EvidenceRetrieved, earlier: Sequence[EvidenceRetrieved]) -> float:
    """Return the share of the payload's words that no earlier retrieval had, in [0, 1].

    A payload without words gives 0.
    """
    words = payload_words(retrieval)
    known = (
        frozenset().union(*(payload_words(previous) for previous in earlier))
        if earlier
        else frozenset()
    )
    return len(words - known) / len(words) if words else 0.0


def is_low(
    retrieval: EvidenceRetrieved,
    earlier: Sequence[EvidenceRetrieved],
    share: float,
    settings: AskSettings,
) -> bool:
    """Check whether a retrieval found too little that is new."""
    # They look closer at what was only summarised before: the first of each with content is exempt.
    closer = retrieval.mode in (Mode.VIDEO, Mode.KEYFRAME)
    first = not any(previous.mode is retrieval.mode and previous.evidence for previous in earlier)
    if closer and first and retrieval.evidence:
        return False
    # The threshold is higher where the focus was seen before.
    seen = retrieval.focus is not None and any(
        previous.focus == retrieval.focus for previous in earlier
    )
    return share < (settings.low_increment_seen if seen else settings.low_increment)


# Support: scores how well evidence supports a claim, and records the scores.

Scores = Mapping[str, float]
"""How well each piece of evidence supports a claim, in [0, 1], by ref."""


def score(
    context: RunContext, number: int, claim: str, evidence: Sequence[Evidence | Citation]
) -> Scores:
    """Score evidence against a claim in round ``number``; recorded scores are used first.

    Raises:
        ReplayMiss: a replay's record has no such scores.
    """
    if not evidence:
        return {}
    known = context.recorder.replay_source.support(claim)
    if known is None:
        values = context.memory.support(claim, [piece.full_text for piece in evidence])
        pairs = zip(evidence, values, strict=True)
        scores = tuple(Support(ref=piece.ref, score=scored) for piece, scored in pairs)
        known = SupportScored(round=number, claim=claim, scores=scores)
    context.recorder.add(known.model_copy(update={"round": number}))
    return {support.ref: support.score for support in known.scores}


def bearing(claim: Resolution, scores: Scores, least: float) -> Resolution:
    """Return the claim with only those refs whose score reaches ``least``; unscored are dropped."""
    refs = tuple(ref for ref in claim.refs if scores.get(ref, 0.0) >= least)
    return claim.model_copy(update={"refs": refs})


def supported(answer: Answer, scores: Scores, settings: AskSettings) -> Answer:
    """Return the answer with the support of its citations, and its standing.

    Args:
        answer: without support.
        scores: of its citations; some may lack one.
        settings: the thresholds of weak and of no support.
    """
    cited = tuple(
        piece.model_copy(update={"support": scores.get(piece.ref)}) for piece in answer.citations
    )
    best = max(scores.values(), default=None)
    if best is None:
        standing = None if answer.citations or answer.option is None else Standing.GUESS
    elif best >= settings.weak_support:
        standing = Standing.SUPPORTED
    else:
        guessed = answer.option is not None and best < settings.bearing
        standing = Standing.GUESS if guessed else Standing.WEAK
    return answer.model_copy(update={"citations": cited, "standing": standing})


# Correct.


BY_HARNESS = "the harness searches"
"""The reason of an action that is not the reasoner's own."""
_STRATEGIES = {
    Mode.EVENT: "Search in mode event for a different part of the video.",
    Mode.VIDEO: "Look closer: mode video lists what was said and done within the focus.",
    Mode.NEIGHBOR: "Follow an edge: mode neighbor moves to a related segment.",
    Mode.KEYFRAME: "Look at the images: mode keyframe shows what the focus looks like.",
}


class Reason(Frozen):
    """Why the plan should be repaired. ``key`` tells one occasion from the next."""

    key: str
    text: str


class RoundGain(Frozen):
    """What one round found, as far as progress is concerned."""

    empty: bool
    new_evidence: bool
    low: bool
    same_focus: bool


def replan_reasons(
    ledger: Ledger, progress: ProgressLedger, settings: AskSettings
) -> tuple[Reason, ...]:
    """Return reasons to repair the plan that were not acted on yet."""
    stalled = [s for s in ledger.subtasks if is_stalled(s, settings)]
    reasons = [
        Reason(key=f"stalled {s.id} {s.text}", text=f"{s.id} used all its attempts unresolved")
        for s in stalled
    ]
    reasons += [
        Reason(key=f"broken {name}", text=f"{name} waits for a subtask that will not be resolved")
        for name in blocked_subtasks(ledger, settings)
    ]
    if progress.stale >= settings.replan_stale_rounds:
        text = f"{progress.stale} rounds brought no new evidence"
        reasons.append(Reason(key=f"stale {progress.replans}", text=text))
    if progress.on_focus >= settings.replan_focus_rounds:
        text = f"{progress.on_focus} rounds stayed on one segment"
        reasons.append(Reason(key=f"focus {progress.replans}", text=text))
    return tuple(reason for reason in reasons if reason.key not in progress.told)


def after_round(
    progress: ProgressLedger,
    number: int,
    gain: RoundGain,
    modes: Sequence[Mode],
    settings: AskSettings,
) -> tuple[ProgressLedger, str]:
    """Return the progress ledger after round ``number``, and a warning if there is one."""
    stuck = gain.same_focus and not gain.new_evidence
    counts = {
        "empties": progress.empties + 1 if gain.empty else 0,
        "lows": progress.lows + 1 if gain.low else 0,
        "stale": 0 if gain.new_evidence else progress.stale + 1,
        "on_focus": progress.on_focus + 1 if gain.same_focus else 1,
        "locked": progress.locked + 1 if stuck else 0,
    }
    counted = progress.model_copy(update=counts)
    if counted.last is not None:
        return counted, ""
    spent = counted.lows >= settings.saturated_after or counted.empties >= settings.empty_rounds
    if not spent:
        return counted, ""
    # The first time that the search is saturated, or empty twice in a row, it gets one grace round
    # with suggestions; the next such round makes the following one the last.
    if not counted.grace:
        unused = [
            hint
            for mode, hint in _STRATEGIES.items()
            if mode in settings.memory.modes and mode not in modes
        ]
        hints = tuple(unused) or ("All modes were tried: use other words, names or times.",)
        changes = {"grace": True, "hints": (*counted.hints, *hints)}
        return counted.model_copy(update=changes), "grace round: little new was found"
    warning = "last round: the search gives nothing new"
    return counted.model_copy(update={"last": number + 1}), warning


def forced_mode(
    progress: ProgressLedger, focus: Focus | None, settings: AskSettings, neighbours: int
) -> Mode | None:
    """Return the mode forced on a search that is locked on: VIDEO, then NEIGHBOR."""
    if focus is None or progress.locked < settings.lock_on_rounds:
        return None
    if len(progress.forced) % 2 == 0:
        return Mode.VIDEO
    # Without neighbours of the focus there is nothing to move to.
    return Mode.NEIGHBOR if neighbours else Mode.EVENT


def harness_search(
    subtask: Subtask,
    forced: Mode | None,
    focus: Focus | None,
    neighbours: Sequence[str],
    available: Sequence[Mode] = tuple(Mode),
) -> Action:
    """Return the harness's own search where a reasoner cannot word one.

    Its query is the subtask's own words without stop words, at least two; ``available`` are the
    modes that can be used.
    """
    first = Mode.EVENT if Mode.EVENT in available else Mode.VIDEO
    mode = forced or (Mode.VIDEO if focus else first)
    if mode is Mode.NEIGHBOR:
        if neighbours:
            return _search(Mode.NEIGHBOR, neighbours[0])
        mode = first
    return _search(mode, keywords(subtask.text))


def keywords(text: str) -> str:
    """Return ``text`` without stop words; all its words if too few are left."""
    all_words = plain_words(text)
    content_words = [word for word in all_words if word not in STOP]
    if len(content_words) >= 2:
        return " ".join(content_words)
    return " ".join(["scene", "with", *(content_words or all_words or ["people"])])


def _search(mode: Mode, query: str) -> Action:
    return Action(kind="search", reason=BY_HARNESS, mode=mode, query=query)


def needed_subtasks(ledger: Ledger, settings: AskSettings) -> tuple[Subtask, ...]:
    """Return subtasks that an answer should wait for: never searched, or with attempts left."""
    open_states = (SubtaskState.PENDING, SubtaskState.SEARCHING, SubtaskState.PARTIAL)
    return tuple(
        s for s in ledger.subtasks if s.state in open_states and s.attempts < settings.attempts
    )
