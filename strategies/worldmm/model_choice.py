"""What a language model chooses in a search: triples that bear on it, and captions of all scales.

Where its reply cannot be read, or its tokens or seconds are spent, the rules choose, and the search
says so.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from agent.ask_model import AskModel
from agent.harness.inform import quote_untrusted
from agent.reasoners.port import Unreadable
from domain.asking import Evidence
from domain.errors import BudgetExceeded
from domain.stated import Triple
from models.messages import system, user
from strategies.worldmm.pages import choose_page, filter_page
from strategies.worldmm.prompts import prompt
from strategies.worldmm.replies import ChooseReply, FilterReply

SHOWN = 800
"""Characters of a caption that the model chooses by."""
REASON = 200
"""Characters of its reason that a search keeps."""


class KeptTriples(NamedTuple):
    """The triples that bear on a query, and what the search says of it."""

    triples: Collection[Triple]
    reason: str


class KeptCaptions(NamedTuple):
    """The captions that are kept, best first, and what the search says of it."""

    captions: Sequence[Evidence]
    reason: str


def keep_triples(model: AskModel, query: str, matched: Sequence[Triple]) -> KeptTriples:
    """Return those of the triples matched to a query that bear on it; all without a reply."""
    triples = list(dict.fromkeys(matched))
    if not triples:
        return KeptTriples((), "no triple is like it")
    asked = [system(prompt("filter_system")), user(filter_page(query, triples))]
    try:
        numbers = model.ask("filter", asked, FilterReply).sound(len(triples))
    except (Unreadable, BudgetExceeded) as error:
        return KeptTriples(triples, f"all {len(triples)} triples are kept by rules: {_why(error)}")
    kept = [triples[number] for number in numbers]
    return KeptTriples(kept, f"{len(kept)} of {len(triples)} triples bear on it")


def choose_captions(
    model: AskModel, query: str, found: Sequence[Evidence], most: int
) -> KeptCaptions | str:
    """Return at most so many of the captions, best first; why there is no choice as a text."""
    if len(found) <= most:
        return KeptCaptions(found, f"all {len(found)} captions that were found")
    shown = [(one.span, quote_untrusted(one.text, SHOWN)) for one in found]
    rules = prompt("choose_system", most=most)
    asked = [system(rules), user(choose_page(query, shown, most))]
    try:
        reply = model.ask("choose", asked, ChooseReply)
    except (Unreadable, BudgetExceeded) as error:
        return f"chosen by rules: {_why(error)}"
    kept = [found[number] for number in reply.sound(len(found), most)]
    if not kept:
        return "chosen by rules: the model chose none"
    places = ", ".join(f"{one.ref} at {one.span}" for one in kept)
    return KeptCaptions(kept, f'the model\'s choice ("{_why(reply.reason)}"): kept {places}')


def _why(reason: object) -> str:
    return quote_untrusted(str(reason), REASON)
