"""Shorten: earlier cards as they are shown again, whole as long as the tokens suffice."""

from __future__ import annotations

from collections.abc import Sequence

from agent.harness.inform import CardLine
from models.messages import text_tokens

Card = Sequence[CardLine]


def fit_cards(cards: Sequence[Card], tokens: int) -> list[str]:
    """Return the texts of earlier cards, together within about so many tokens.

    All of them whole if they fit. Else the lines of evidence with the lowest scores are left out,
    of whichever card, and so are the neighbours; heads stay. Each was read whole before, and what
    was found in it is in the ledger and in the final evidence.

    Args:
        cards: the lines of each card, oldest first.
        tokens: how many tokens they may take.
    """
    texts = [_text(card) for card in cards]
    if sum(map(text_tokens, texts)) <= tokens:
        return texts
    left = tokens - sum(text_tokens(_text(_restricted(card, set()))) for card in cards)
    kept: set[tuple[int, int]] = set()
    for number, place, line in _best_first(cards):
        if text_tokens(line.text) <= left:
            kept.add((number, place))
            left -= text_tokens(line.text)
    return [
        _text(_restricted(card, {place for at, place in kept if at == number}))
        for number, card in enumerate(cards)
    ]


def _text(card: Card) -> str:
    return "\n".join(line.text for line in card)


def _best_first(cards: Sequence[Card]) -> list[tuple[int, int, CardLine]]:
    """Return the lines of evidence with the numbers of their cards and their places in them.

    Of equal scores the later card's is first.
    """
    lines = [
        (number, place, line)
        for number, card in enumerate(cards)
        for place, line in enumerate(card)
        if line.score is not None
    ]
    return sorted(lines, key=lambda one: (-(one[2].score or 0.0), -one[0], one[1]))


def _restricted(card: Card, places: set[int]) -> Card:
    """Return a card with only these of its lines of evidence, and without neighbours."""
    scored = [place for place, line in enumerate(card) if line.score is not None]
    if not scored:
        return card
    kept = [card[place] for place in scored if place in places]
    missing = len(scored) - len(kept)
    note = [CardLine(text=f"({missing} more are left out here.)")] if missing else []
    return (*card[: scored[0]], *kept, *note, card[-1])
