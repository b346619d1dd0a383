"""Strategies: limits, names, which suits a question, and how memory supports its options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.settings import AskSettings
from domain.skills import Pattern, Signal, Tone, Topic
from domain.time import TimeSpan
from retrieval.heuristics.options import SHORT, is_captioned, option_actions, subject_of
from retrieval.ranking import CandidateLines, PreparedQuestion, relevance
from retrieval.signals import WordScores
from retrieval.terms import terms
from skills.learn import LEAST_QUESTIONS, best_strategy, strategy_skill
from skills.writer import review
from store.queries.learning import JudgedRun
from strategies.asked import MOST, Asked, Pieces
from strategies.registry import find_strategy, strategy_names
from tests.support.packages import ROOT
from tests.support.ranking import shares
from tests.support.remembered import WordEmbedder
from tests.support.story import (
    candidates_at,
    candidates_of,
    prepare_question,
    roster_of,
    vectors_of,
    video_of,
)

HOUR = 3_600
NOW_S = 3 * 24 * HOUR + 20 * HOUR
YARD = [["A boy and a dog play in a yard"] * 4 + ["The boy throws a ball", "The dog barks"]] * 3
QUESTION = prepare_question("why did the boy run away?", ("catch the ball", "eat lunch"))
LONG = replace(find_strategy("plain-rag"), rounds=13, retries=1)
HALF = [True, False] * 4


def pieces(*said: tuple[float, str]) -> Pieces:
    """Pieces at some hours before the question, among many that say nothing of it."""
    filler = [(60.0 - n / 10, "I walk on.\nI look around.") for n in range(100)]
    texts = [text for _, text in (*filler, *said)]
    starts = [int((NOW_S - hours * HOUR) * 1000) for hours, _ in (*filler, *said)]
    return Pieces(
        [f"n{number}" for number in range(len(texts))],
        texts,
        [TimeSpan.of(start, start + 30_000) for start in starts],
        np.zeros((len(texts), 1), np.float32),
        [WordScores([terms(text) for text in texts])],
    )


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
    # The option that the best piece supports most.
    memory = pieces(*said)
    asked = Asked(
        PreparedQuestion(question, options, NOW_S, as_of=True),
        np.zeros(1, np.float32),
        np.zeros((len(options), 1), np.float32),
    )
    weighed = asked.supported(memory).weighed(())
    assert len(weighed) == MOST
    assert options[int(np.argmax(max(weighed, key=lambda one: max(one.scores)).scores))] == right


def test_nothing_supports_options_where_nothing_is_known() -> None:
    asked = Asked(
        PreparedQuestion("Who sings?", ("Bob", "Me")),
        np.zeros(1, np.float32),
        np.zeros((2, 1), np.float32),
    )
    nothing = Pieces([], [], [], np.zeros((0, 1), np.float32), [WordScores([])])
    assert asked.supported(nothing).weighed(()) == ()
    assert asked.supported(nothing).best() == []


@pytest.mark.parametrize(
    ("question", "who"),
    [
        ("why did the boy in red run away?", "the boy"),
        ("what does the lady in black do after taking the microphone?", "the lady"),
        ("What did the dog do at the end of the video?", "the dog"),
        ("how does the old man react when the ball falls?", "the old man"),
        ("how do people cross the river?", "people"),
        ("where is this happening?", "this happening"),
        ("how many dogs are there?", "dogs"),
        ("who sings?", "sings"),
        ("after the game?", "after"),
        ("?", ""),
    ],
)
def test_the_subject_of_a_question_is_found(question: str, who: str) -> None:
    assert subject_of(question) == who


@given(st.text(max_size=200), st.lists(st.text(max_size=20), max_size=4))
def test_any_question_gives_an_action_for_each_option(question: str, options: list[str]) -> None:
    actions = option_actions(question, tuple(options))
    assert len(actions) == len(options)
    assert all(option.strip() in item for option, item in zip(options, actions, strict=True))


@pytest.mark.parametrize(
    ("candidates", "question"),
    [
        (candidates_of(YARD), prepare_question("why did the boy run away?")),
        (candidates_of(YARD * SHORT), QUESTION),
        (candidates_of([["I take the ball", "My dog barks"]] * 3), QUESTION),
        (candidates_at(2, video_of(YARD, speakers=dict.fromkeys(YARD[0], "Ann"))), QUESTION),
        (candidates_of(YARD), prepare_question("when was it?", ("two hours ago", "yesterday"))),
    ],
    ids=["no options", "a long video", "somebody narrates", "talk", "times"],
)
def test_other_views_and_options_are_ranked_by_z_scores(
    candidates: CandidateLines, question: PreparedQuestion
) -> None:
    assert not is_captioned(candidates.lines, question, roster_of(candidates))


def supported(
    candidates: CandidateLines, question: PreparedQuestion, *, as_actions: bool = True
) -> str:
    vectors = vectors_of(question)
    if as_actions:
        actions = WordEmbedder().embed(option_actions(question.text, question.options))
        vectors = replace(vectors, actions=actions)
    return question.options[int(shares(relevance(candidates, question, vectors)).argmax())]


def test_the_action_in_most_captions_is_supported_most() -> None:
    """A clip that stands out says nothing where a scene is told second after second."""
    story = [["The lady holds a pan"] * 6 for _ in range(3)]
    story[1] += ["A red table and a microphone of the lady", "A red table"]
    question = prepare_question(
        "what does the lady do after taking the microphone?", ("red table", "hold a pan")
    )
    candidates = candidates_of(story)
    assert supported(candidates, question) == "hold a pan"
    assert supported(candidates, question, as_actions=False) != "hold a pan"


@pytest.mark.parametrize(
    ("settings", "rounds", "retries"),
    [
        (AskSettings(), 13, 1),
        (AskSettings(rounds=4), 4, 1),
        (AskSettings(rounds=20, retries=0), 13, 0),
    ],
)
def test_limits_are_own_or_lower(settings: AskSettings, rounds: int, retries: int) -> None:
    made = LONG.settings_from(settings)
    assert (made.rounds, made.retries, made.strategy) == (rounds, retries, "plain-rag")
    assert LONG.settings_from(AskSettings.model_validate(made.model_dump())) == made


def test_a_strategy_without_limits_of_its_own_takes_those_of_the_settings() -> None:
    made = replace(LONG, rounds=None, retries=None).settings_from(AskSettings(rounds=7))
    assert (made.rounds, made.retries) == (7, AskSettings().retries)
    assert made.tokens == AskSettings().tokens


def test_a_token_budget_is_the_strategys_unless_one_is_set() -> None:
    long = replace(LONG, tokens=80_000)
    assert long.settings_from(AskSettings()).tokens == 80_000
    assert long.settings_from(AskSettings(tokens=9_000)).tokens == 9_000
    assert long.settings_from(AskSettings(tokens=200_000)).tokens == 200_000


# homer is also the name of the program, and of the default strategy.
@pytest.mark.parametrize("name", [name for name in strategy_names() if name != "homer"])
def test_a_strategy_is_named_in_its_own_folder_only(name: str) -> None:
    folder = name.replace("-", "_")
    named = re.compile(rf"\b({re.escape(name)}|{re.escape(folder)})\b", re.IGNORECASE)
    measuring = {".venv", "tests", "benchmarks"}
    files = [one for one in ROOT.rglob("*.py") if not measuring & {*one.parts}]
    others = [one for one in files if (ROOT / "strategies" / folder) not in one.parents]
    assert [str(one) for one in others if named.search(one.read_text())] == []


def answers(
    strategy: str, rights: Sequence[bool], rounds: int = 2, first: int = 0
) -> list[JudgedRun]:
    return [
        JudgedRun(
            trajectory=f"{strategy}-{n}",
            asked=f"q{n}",
            text=f"Who opens gate {n}?",
            question_type="who",
            strategy=strategy,
            right=right,
            rounds=rounds,
        )
        for n, right in enumerate(rights, start=first)
    ]


def test_the_strategy_that_was_right_most_often_is_the_best() -> None:
    runs = [*answers("a", HALF), *answers("b", [True] * 7 + [False]), *answers("c", [False] * 8)]
    best = best_strategy(runs, "a")
    assert best is not None
    assert best.strategy == "b"
    assert {run.strategy for run in best.runs} == {"a", "b", "c"}


def test_of_equals_the_default_is_the_best_then_the_one_with_fewer_rounds() -> None:
    runs = [*answers("a", HALF, 1), *answers("b", HALF, 3), *answers("c", HALF, 2)]
    assert [getattr(best_strategy(runs, name), "strategy", None) for name in "abcd"] == [*"abca"]


@pytest.mark.parametrize("count", [LEAST_QUESTIONS - 1, LEAST_QUESTIONS])
def test_strategies_are_compared_on_enough_questions_only(count: int) -> None:
    runs = [*answers("a", [True] * count), *answers("b", [False] * count)]
    assert (best_strategy(runs, "a") is not None) == (count == LEAST_QUESTIONS)


def test_the_latest_judgement_of_a_question_counts() -> None:
    runs = [*answers("a", [False] * 8), *answers("b", HALF), *answers("a", [True] * 8)]
    best = best_strategy(runs, "b")
    assert best is not None
    assert (best.strategy, len(best.runs)) == ("a", 16)


def test_where_nobody_was_right_nothing_is_learned() -> None:
    assert best_strategy([*answers("a", [False] * 8), *answers("b", [False] * 8)], "a") is None


def test_what_was_learned_passes_the_review() -> None:
    best = best_strategy([*answers("a", HALF), *answers("b-c", [True] * 8)], "a")
    assert best is not None
    pattern = Pattern(signal=Signal.STRATEGY, question_type="who")
    skill = strategy_skill(pattern, best, lambda text: text.split()[1:3])
    assert review(skill) == ()
    assert (skill.name, skill.topic, skill.tone) == ("strategy-who", Topic.STRATEGY, Tone.POSITIVE)
    assert (skill.policy.strategy, skill.policy.rounds) == ("b-c", 2)
    assert skill.triggers == ("gate", "opens")
