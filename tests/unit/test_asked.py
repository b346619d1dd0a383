"""How pieces of a strategy's memory support the options of a question."""

from __future__ import annotations

import numpy as np
import pytest

from domain.time import TimeSpan
from retrieval.ranking import PreparedQuestion
from retrieval.signals import WordScores
from retrieval.terms import terms
from strategies.asked import MOST, Asked, Pieces

HOUR = 3_600
NOW_S = 3 * 24 * HOUR + 20 * HOUR
FILLER = "I walk on.\nI look around."


def pieces(*said: tuple[float, str]) -> Pieces:
    """Pieces at some hours before the question, among many that say nothing of it."""
    filler = [(60.0 - n / 10, FILLER) for n in range(100)]
    texts = [text for _, text in (*filler, *said)]
    starts = [int((NOW_S - hours * HOUR) * 1000) for hours, _ in (*filler, *said)]
    return Pieces(
        [f"n{number}" for number in range(len(texts))],
        texts,
        [TimeSpan.of(start, start + 30_000) for start in starts],
        np.zeros((len(texts), 1), np.float32),
        [WordScores([terms(text) for text in texts])],
    )


def chosen(question: str, options: tuple[str, ...], memory: Pieces) -> str:
    """The option that the best piece supports most."""
    asked = Asked(
        PreparedQuestion(question, options, NOW_S, as_of=True),
        np.zeros(1, np.float32),
        np.zeros((len(options), 1), np.float32),
    )
    weighed = asked.supported(memory).weighed(())
    assert len(weighed) == MOST
    best = max(weighed, key=lambda one: max(one.scores))
    return options[int(np.argmax(best.scores))]


@pytest.mark.parametrize(
    ("question", "options", "said", "right"),
    [
        (  # who acts in the line, not who is named most
            "Who washed the strawberries?",
            ("Me", "Alice", "Lucia"),
            [
                (
                    5,
                    "I washed the strawberries.\nAlice: Alice and Lucia, come.\nLucia: Yes, Alice.",
                ),
                (6, "Alice: Here I am.\nLucia: Lucia is here too."),
                (7, "Jake: I am off.\nJake: Back soon.\nJake: See you.\nJake: Bye."),
            ],
            "Me",
        ),
        (  # when it was, by fit
            "When did I buy the violin?",
            ("Two hours ago", "Yesterday morning", "Three days ago"),
            [(35, "I buy the violin."), (2, "I drink water.")],
            "Yesterday morning",
        ),
        (  # a long option does not win by its length
            "What did I put on the table?",
            ("A cake", "A table cloth that I put on the table before I put a vase on it"),
            [(5, "I put a cake on the table."), (6, "I put it on the table.")],
            "A cake",
        ),
        (  # the latest of what is equal otherwise
            "What did I take from the fridge?",
            ("Juice", "Butter"),
            [(50, "I take juice from the fridge."), (1, "I take butter from the fridge.")],
            "Butter",
        ),
    ],
)
def test_options_are_supported_by_what_the_memory_says_of_them(
    question: str, options: tuple[str, ...], said: list[tuple[float, str]], right: str
) -> None:
    assert chosen(question, options, pieces(*said)) == right


def test_nothing_supports_options_where_nothing_is_known() -> None:
    asked = Asked(
        PreparedQuestion("Who sings?", ("Bob", "Me")),
        np.zeros(1, np.float32),
        np.zeros((2, 1), np.float32),
    )
    nothing = Pieces([], [], [], np.zeros((0, 1), np.float32), [WordScores([])])
    assert asked.supported(nothing).weighed(()) == ()
    assert asked.supported(nothing).best() == []
