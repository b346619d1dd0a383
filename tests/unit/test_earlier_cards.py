"""Earlier cards: whole while there is room, then without what scored lowest, of whichever card."""

from __future__ import annotations

from agent.harness.inform import CardLine
from agent.harness.shorten import fit_cards
from models.messages import text_tokens

HEAD, FOCUS, END = '<card mode="video" query="a gate">', 'Focus: [s1] "a gate"', "</card>"
NEIGHBOUR = 'Neighbour -> causes: "rain" [s2]'


def card(*scores: float) -> list[CardLine]:
    evidence = [CardLine(text=f"line of {score:.2f} " + "x" * 90, score=score) for score in scores]
    head = [CardLine(text=HEAD), CardLine(text=FOCUS)]
    return [*head, *evidence, CardLine(text=NEIGHBOUR), CardLine(text=END)]


def shown(text: str) -> list[float]:
    return [float(line.split()[2]) for line in text.split("\n") if line.startswith("line of")]


def tokens(texts: list[str]) -> int:
    return sum(map(text_tokens, texts))


CARDS = [card(0.9, 0.2, 0.6), card(0.5, 0.1), card(0.3, 0.8, 0.4)]
WHOLE = ["\n".join(line.text for line in one) for one in CARDS]


def test_cards_that_fit_are_whole() -> None:
    assert fit_cards(CARDS, tokens(WHOLE)) == WHOLE


def test_the_lowest_scores_are_left_out_first_of_whichever_card() -> None:
    made = fit_cards(CARDS, tokens(WHOLE) - 60)
    kept = [score for text in made for score in shown(text)]
    left = sorted({0.9, 0.2, 0.6, 0.5, 0.1, 0.3, 0.8, 0.4} - set(kept))
    assert left
    assert max(left) < min(kept)
    assert tokens(made) <= tokens(WHOLE) - 60 + 12 * len(CARDS)
    assert shown(made[0])[:1] == [0.9]


def test_a_shortened_card_keeps_its_head_and_says_how_many_lines_are_missing() -> None:
    (made,) = fit_cards([card(0.9, 0.1, 0.2)], 75)
    assert shown(made) == [0.9]
    assert made.startswith(f"{HEAD}\n{FOCUS}\n")
    assert made.endswith(f"\n(2 more are left out here.)\n{END}")
    assert NEIGHBOUR not in made


def test_without_any_room_the_heads_are_left() -> None:
    made = fit_cards(CARDS, 0)
    assert [shown(text) for text in made] == [[], [], []]
    assert all(text.startswith(HEAD) and text.endswith(END) for text in made)
