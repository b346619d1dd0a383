"""Chooses captions across scales by the question's form (English); pure.

Questions of particular events are answered by fine captions, those of habits and relations by
coarse ones; where the form says neither, finer ones are preferred less. A caption within those that
coarser scales found counts more: the scales agree on it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

from agent.builder import AskModel
from agent.harness.inform import quote_untrusted
from agent.reasoners.port import Unreadable
from domain.asking import Evidence
from domain.errors import BudgetExceeded
from domain.sentences import Triple
from models.messages import prompts_beside, system, user
from strategies.worldmm.replies import ChooseReply, FilterReply, choose_page, filter_page

prompt = prompts_beside(__file__)


class QuestionForm(StrEnum):
    """What a question asks for, as far as its words say."""

    EVENT = "a particular event"
    HABIT = "a habit or relation"
    OPEN = "neither a particular event nor a habit"


_HABITS = re.compile(
    r"\b(?:usually|often|always|typically|generally|normally|habits?|routine|every (?:day|morning|"
    r"evening|night|time)|each (?:day|time)|tends? to|used to|prefers?|prefer(?:red|ence)s?|"
    r"favou?rites?|likes? to|how (?:often|many (?:times|days))|relationships?|friends?|get along|"
    r"roles?|personality|most (?:frequently|often)|frequently|main(?:ly)?|overall|during the week|"
    r"throughout)\b",
    re.IGNORECASE,
)
_EVENTS = re.compile(
    r"\b(?:when|what time|which day|where did|first|last|latest|most recent(?:ly)?|just now|"
    r"just before|right (?:before|after)|before|after|at \d|yesterday|today|this (?:morning|"
    r"afternoon|evening)|did \w+ (?:say|put|buy|take|give|ask|tell))\b",
    re.IGNORECASE,
)
_WEIGHTS = {
    QuestionForm.EVENT: (1.0, 0.5, 0.25, 0.1),
    QuestionForm.OPEN: (1.0, 0.7, 0.5, 0.3),
    QuestionForm.HABIT: (0.4, 0.6, 0.8, 1.0),
}
"""Factor on a candidate's score at each scale, finest first."""
AGREEMENT = 0.6
"""Share that the score of a coarser candidate adds to those that lie within it."""
_ORDERS = {
    QuestionForm.EVENT: "fine captions first",
    QuestionForm.OPEN: "fine captions before coarse ones as good",
    QuestionForm.HABIT: "coarse captions first",
}


Scored = tuple[Evidence, float]
"""A caption, and its score among those of its scale."""


def question_form(question: str) -> tuple[QuestionForm, str]:
    """Return what a question asks for, and the words that say so; "" if none do."""
    for form, words in ((QuestionForm.HABIT, _HABITS), (QuestionForm.EVENT, _EVENTS)):
        if found := words.search(question):
            return form, found[0].lower()
    return QuestionForm.OPEN, ""


def choose_across_scales(
    question: str, found: Sequence[Sequence[Scored]], most: int
) -> tuple[list[Evidence], str]:
    """Choose among what all scales found.

    Args:
        found: the captions of each scale by rank, finest scale first; scores are compared within a
            scale only.
        most: captions to keep.

    Returns:
        At most so many, none of which lies within another, best first, and why in words.
    """
    form, words = question_form(question)
    # Each with its weight: the scale's, times its share and what agrees.
    pairs = list[tuple[float, Evidence]]()
    shares = [_shares(candidates) for candidates in found]
    for scale, (of_scale, weight) in enumerate(zip(shares, _WEIGHTS[form], strict=True)):
        coarser = [pair for others in shares[scale + 1 :] for pair in others]
        for share, candidate in of_scale:
            agreeing = sum(
                other
                for other, one in coarser
                if (one.span.overlap_ms(candidate.span) == candidate.span.length_ms)
            )
            pairs.append((weight * (share + AGREEMENT * agreeing), candidate))
    weighed = sorted(pairs, key=lambda pair: -pair[0])
    chosen: list[Evidence] = []
    for _, candidate in weighed:
        # One that lies in another would say the same again.
        if len(chosen) < most and not any(
            candidate.span.overlap_ms(one.span)
            >= min(candidate.span.length_ms, one.span.length_ms)
            > 0
            for one in chosen
        ):
            chosen.append(candidate)
    asked = f'asks for {form} ("{words}")' if words else f"asks for {form}"
    kept = ", ".join(f"{candidate.ref} at {candidate.span}" for candidate in chosen)
    return chosen, f"{asked}: {_ORDERS[form]}; kept {kept or 'nothing'}"


def _shares(candidates: Sequence[Scored]) -> list[tuple[float, Evidence]]:
    best = max((score for _, score in candidates), default=0.0)
    return [(max(0.0, score) / best if best > 0 else 0.0, one) for one, score in candidates]


# What a language model chooses in a search: triples that bear on it, and captions of all scales.
#
# Where its reply cannot be read, or its tokens or seconds are spent, the rules choose, and the
# search says so.

SHOWN = 800
"""Characters of a caption that the model chooses by."""
REASON = 200
"""Characters of its reason that a search keeps."""


def keep_triples(
    model: AskModel, query: str, matched: Sequence[Triple]
) -> tuple[Sequence[Triple], str]:
    """Return those of the triples matched to a query that bear on it, and why; all if unread."""
    triples = list(dict.fromkeys(matched))
    if not triples:
        return (), "no triple is like it"
    asked = [system(prompt("filter_system")), user(filter_page(query, triples))]
    try:
        numbers = model.ask("filter", asked, FilterReply).sound(len(triples))
    except (Unreadable, BudgetExceeded) as error:
        return triples, f"all {len(triples)} triples are kept by rules: {_why(error)}"
    kept = [triples[number] for number in numbers]
    return kept, f"{len(kept)} of {len(triples)} triples bear on it"


def choose_captions(
    model: AskModel, query: str, found: Sequence[Evidence], most: int
) -> tuple[Sequence[Evidence] | None, str]:
    """Return at most so many of the captions, best first, and why; None without a choice."""
    if len(found) <= most:
        return found, f"all {len(found)} captions that were found"
    shown = [(one.span, quote_untrusted(one.text, SHOWN)) for one in found]
    rules = prompt("choose_system", most=most)
    asked = [system(rules), user(choose_page(query, shown, most))]
    try:
        reply = model.ask("choose", asked, ChooseReply)
    except (Unreadable, BudgetExceeded) as error:
        return None, f"chosen by rules: {_why(error)}"
    kept = [found[number] for number in reply.sound(len(found), most)]
    if not kept:
        return None, "chosen by rules: the model chose none"
    places = ", ".join(f"{one.ref} at {one.span}" for one in kept)
    return kept, f'the model\'s choice ("{_why(reply.reason)}"): kept {places}'


def _why(reason: object) -> str:
    return quote_untrusted(str(reason), REASON)
