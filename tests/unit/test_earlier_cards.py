"""Earlier cards: the last ones whole, older ones with their best line."""

from __future__ import annotations

from agent.harness.inform import CardLine
from agent.harness.shorten import WHOLE, earlier_cards

HEAD, FOCUS, END = '<card mode="video" query="a gate">', 'Focus: [s1] "a gate"', "</card>"
NEIGHBOUR = 'Neighbour -> causes: "rain" [s2]'


def card(*scores: float) -> list[CardLine]:
    evidence = [CardLine(text=f"line of {score:.2f}", score=score) for score in scores]
    head = [CardLine(text=HEAD), CardLine(text=FOCUS)]
    return [*head, *evidence, CardLine(text=NEIGHBOUR), CardLine(text=END)]


def test_older_cards_keep_their_head_and_best_line_and_the_last_ones_are_whole() -> None:
    cards = [card(0.2, 0.9, 0.6), card(), card(0.4), *(card(0.1, 0.3) for _ in range(WHOLE))]
    first, empty, single, *last = (text.split("\n") for text in earlier_cards(cards))
    assert first == [HEAD, FOCUS, "line of 0.90", "(2 more are left out here.)", END]
    assert empty == [HEAD, FOCUS, NEIGHBOUR, END]
    assert single == [HEAD, FOCUS, "line of 0.40", END]
    assert last == WHOLE * [[HEAD, FOCUS, "line of 0.10", "line of 0.30", NEIGHBOUR, END]]
