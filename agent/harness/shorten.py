"""Shorten: earlier cards as they are shown again, the last ones whole and older ones in brief."""

from __future__ import annotations

from collections.abc import Sequence

from agent.harness.inform import CardLine

Card = Sequence[CardLine]

WHOLE = 2
"""The last cards are shown whole, so many."""


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
