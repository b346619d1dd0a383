"""Earlier cards: the last ones whole, older ones with their best line."""

from __future__ import annotations

import re

from agent.harness.inform import LEFT_OUT, WHOLE, CardLine, earlier_cards, shortened
from models.messages import assistant, system, user

HEAD, FOCUS, END = '<card mode="video" query="a gate">', 'Focus: [s1] "a gate"', "</card>"
NEIGHBOUR = 'Neighbour -> causes: "rain" [s2]'
FIRST = [system("Rules of <contents>."), user("<contents>\nA film\n</contents>\nWho sings?")]


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


def found(*scores: float) -> str:
    lines = "\n".join(
        f'<memory id="[m1]" score="{score:.2f}">It rains.</memory>' for score in scores
    )
    return f"{HEAD}\n{lines}\n</card>"


def texts(tokens: int) -> list[str]:
    request = [*FIRST, assistant("search"), user(found(0.5)), assistant("search")]
    return [
        one.content for one in shortened([*request, user(found(0.3, 0.1)), user("Go on")], tokens)
    ]


def test_a_request_loses_old_cards_then_the_contents_then_the_worst_lines_and_no_more() -> None:
    whole = texts(1_000)
    assert whole[3] == found(0.5)
    stages = list(dict.fromkeys(tuple(texts(tokens)) for tokens in range(200, 0, -1)))
    assert [one[3] for one in stages] == [found(0.5), *[LEFT_OUT] * 4]
    assert ["<contents>\nA film" in one[1] for one in stages] == [True, True, False, False, False]
    output = [re.findall("0.[0-9]{2}", one[5]) for one in stages][2:]
    assert output == [["0.30", "0.10"], ["0.30"], []]
    assert all("Who sings?" in one[1] and one[0] == whole[0] for one in stages)
    assert all(one[6] == "Go on" for one in stages)
