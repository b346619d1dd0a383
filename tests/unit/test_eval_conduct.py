"""Whether a reasoner's replies keep the rules is counted from its trajectories."""

from __future__ import annotations

import pytest

from agent.harness.correct import harness_search
from domain.asking import Action, Answer, Question, Subtask
from domain.memories import MemoryView, Scope
from domain.trajectory import Acted, Ended, Event, Guarded, ModelCalled, QuestionAsked, RoundOpened
from evals.bars import all_met
from evals.conduct import Conduct, conduct_in
from models.profile import load_profile
from tests.support.machine import VIDEO, search

OPTIONS = ("yes", "no")


def asked(options: tuple[str, ...] = OPTIONS) -> QuestionAsked:
    question = Question(text="Is it so?", videos=(VIDEO,), options=options)
    view = MemoryView(scopes=(Scope(video=VIDEO, last_clip=1),))
    return QuestionAsked(
        question=question, machine="homer", version=1, profile="small", reasoner="llm", view=view
    )


def ended(option: str | None) -> Ended:
    answer = Answer(text="yes", option=option, confidence=0.5)
    return Ended(state="done", why="so", answer=answer, rounds=1, tokens=0)


def tried(number: int, *accepted: bool, action: Action | None = None) -> list[Event]:
    """A round with so many tries, each accepted or refused."""
    events: list[Event] = [RoundOpened(round=number, subtask="t1", text="x", attempt=1)]
    for at, good in enumerate(accepted):
        chosen = action or search("two words")
        events += [
            Acted(round=number, action=chosen, attempt=at),
            Guarded(round=number, accepted=good),
        ]
    return events


def test_a_round_counts_where_an_own_action_was_accepted_within_the_retries() -> None:
    by_harness = harness_search(Subtask(id="t1", text="what it is"), None, None, ())
    events: list[Event] = [
        asked(),
        *tried(1, True),
        *tried(2, False, False, True),
        *tried(3, False, False, False, True),
        *tried(4, True, action=by_harness),
        RoundOpened(round=5, subtask="t1", text="x", attempt=1),
        ModelCalled(purpose="act", model="m", request="r", tokens_in=70),
        ended("B"),
    ]
    made = conduct_in(events, retries=2)
    assert (made.rounds, made.valid) == (4, 2)
    assert (made.answers, made.choices, made.options, made.tokens_in) == (1, 1, 1, 70)


@pytest.mark.parametrize(
    ("options", "option", "counts"),
    [(OPTIONS, "C", (1, 0)), (OPTIONS, None, (1, 0)), ((), None, (0, 0)), (OPTIONS, "A", (1, 1))],
)
def test_a_choice_must_be_an_option(
    options: tuple[str, ...], option: str | None, counts: tuple[int, int]
) -> None:
    made = conduct_in([asked(options), ended(option)], retries=2)
    assert (made.choices, made.options) == counts


def test_bars_say_what_is_missing() -> None:
    good = Conduct(answers=30, rounds=40, valid=38, citations=9, resolved=9, choices=2, options=2)
    assert all_met(good.bars(30))
    assert not all_met(good.bars(31))
    assert not all_met((good + Conduct(rounds=1)).bars(30))
    assert not all_met((good + Conduct(citations=1)).bars(30))
    assert not all_met((good + Conduct(choices=1)).bars(30))
    assert all_met(Conduct().bars(0))


def test_a_model_in_this_process_is_known_as_such() -> None:
    assert load_profile("small").in_process
    assert not load_profile("openai").in_process
    assert not load_profile("local").in_process
