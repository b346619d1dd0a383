"""Shorten: earlier cards in brief, and a request to what a model reads of it."""

from __future__ import annotations

from collections.abc import Sequence

from agent.harness.inform import CardLine
from models.messages import Message, text_tokens

Card = Sequence[CardLine]

WHOLE = 2
"""The last cards are shown whole, so many."""
LEFT_OUT = "(What this search found is left out here.)"


def earlier_cards(cards: Sequence[Card]) -> list[str]:
    """Return the texts of earlier cards, oldest first.

    The last ones are whole. Of older ones the head and the best line are shown: each was read whole
    before, and what was found in it is in the ledger and in the final evidence.
    """
    brief = max(0, len(cards) - WHOLE)
    shown = [*map(_brief, cards[:brief]), *cards[brief:]]
    return ["\n".join(line.text for line in card) for card in shown]


def _brief(card: Card) -> Card:
    """Return a card with the best of its lines of evidence, and without neighbours."""
    evidence = [line for line in card if line.score is not None]
    if not evidence:
        return card
    best = max(evidence, key=lambda line: line.score or 0.0)
    more = len(evidence) - 1
    note = [CardLine(text=f"({more} more are left out here.)")] if more else []
    return (*card[: card.index(evidence[0])], best, *note, card[-1])


def shortened(messages: Sequence[Message], tokens: int) -> list[Message]:
    """Return a request with at most so many tokens of text, if what was found leaves them.

    The oldest cards go first, then the contents, then those lines of the newest card that scored
    lowest. All marks are the harness's own: quoted words have none (``quote_untrusted``).
    """
    texts = [message.content for message in messages]
    found = [
        (n, card)
        for n, text in enumerate(texts)
        if (card := _part(text, "<card ", "</card>") or _part(text, "<memory ", "</memory>"))
    ]
    cuts = [(n, card, LEFT_OUT) for n, card in found[:-1]]
    cuts += [(n, _part(text, "<contents>", "</contents>\n"), "") for n, text in enumerate(texts)]
    for n, card in found[-1:]:
        lines = [line for line in card.splitlines(keepends=True) if ' score="' in line]
        scores = [float(line.partition(' score="')[2].partition('"')[0]) for line in lines]
        lowest_first = sorted(range(len(lines)), key=lambda at: (scores[at], -at))
        cuts += [(n, lines[at], "") for at in lowest_first]
    for n, part, instead in cuts:
        if sum(map(text_tokens, texts)) <= tokens:
            break
        texts[n] = texts[n].replace(part, instead, 1)
    return [
        message.model_copy(update={"content": text})
        for message, text in zip(messages, texts, strict=True)
    ]


def _part(text: str, first: str, last: str) -> str:
    """Return what is between two marks, with both; "" where they are not there."""
    start, end = text.find(first), text.rfind(last)
    return text[start : end + len(last)] if 0 <= start < end else ""
