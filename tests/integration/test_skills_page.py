"""The skills page: what was learned, from what, how it was used; and verdicts on answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from domain.asking import Mode
from domain.skills import JudgedTrajectory, Policy, Tone
from evals.example import example_skills
from library.skills import page_of_sources, page_of_uses, skill_use_record
from skills.learn import count_waiting, judge, recorded_judgement
from skills.library import find_skill, list_skills_page, store_skills
from store.database import Store
from store.queries import skills as stored
from tests.support.app_pages import (
    EVIL,
    LONG,
    RTL,
    app_over,
    charts,
    open_page,
    press,
    tables,
    words,
)
from tests.support.machine import VIDEO, watched
from tests.support.many_answers import TYPE, a_run, fill_answers
from tests.support.skills import a_skill


@pytest.fixture
def app_library(store: Store, monkeypatch: pytest.MonkeyPatch, tampered: None) -> Iterator[Store]:
    with app_over(store, monkeypatch):
        yield store


@pytest.fixture
def learned(app_library: Store) -> Store:
    """Sixty answers over a hundred days, and two skills that all of them were given."""
    watched(app_library)
    fill_answers(app_library, 60, skills=2)
    return app_library


def test_without_skills_it_says_how_to_get_some(app_library: Store) -> None:
    output = words(open_page("skills"))
    assert "No skill was learned yet" in output
    assert "learn from them here" in output
    assert "No skill matches" in words(open_page("skills", q="zebra"))


def test_without_skills_an_example_is_shown_that_no_question_is_given(app_library: Store) -> None:
    page = open_page("skills")
    output = words(page)
    assert "Example" in [one.value for one in page.header]
    assert "They are no skills of your library: no question is given them." in output
    assert example_skills().skills
    for skill in example_skills().skills:
        assert skill.instructions[0] in output
    assert list_skills_page(app_library, 0, 10) == ([], 0)


def test_an_example_is_offered_beside_skills(learned: Store) -> None:
    page = open_page("skills")
    assert "no skills of your library" not in words(page)
    queries = [link.proto.query_string for link in page.main.get("page_link")]
    assert "example=1" in queries
    example = words(open_page("skills", example=1))
    assert "no skills of your library" in example
    assert "advice-0" not in example


def test_skills_are_listed_with_what_they_are_for_and_their_use(learned: Store) -> None:
    output = words(open_page("skills"))
    assert "advice-0" in output
    assert "Questions about what happened first, next or last" in output
    assert "version 1, topic mode, positive, used for 60 questions, in use" in output
    assert "60 judged answers not learned from yet" in output


def test_judged_answers_are_learned_from_by_a_button(learned: Store) -> None:
    page = press(open_page("skills"), "Learn from them")
    assert "Learned from 60 answers" in words(page)
    assert "not learned from yet" not in words(page)


def test_a_skill_is_shown_with_all_that_it_says(app_library: Store) -> None:
    first = a_skill(tone=Tone.CAUTIONARY, instructions=("Look twice.",))
    second = a_skill(policy=Policy(modes=(Mode.EVENT, Mode.VIDEO), split=False))
    store_skills(app_library, [first])
    store_skills(app_library, [second])
    output = words(open_page("skills", skill="order-of-events"))
    assert "version 2, topic mode, positive, in use" in output
    assert "**Triggers:** before, after, order" in output
    assert "- Find both events first, then compare their times." in output
    assert "search in the order event, video; leave the question whole" in output
    assert "Earlier versions: 1" in output
    assert "- Look twice." in output
    assert "it was written by hand, or" in output
    assert "It was not used yet" in output


def test_use_and_success_have_words_beside_the_chart(learned: Store) -> None:
    page = open_page("skills", skill="advice-0")
    used, went = charts(page)
    assert "Used for 60 questions between 2025-12-29 and 2026-04-06, shown by week." in used
    assert "40 of 60 judged answers were right (67%). Of comparable answers without it 67%" in went
    ((heads, *rows),) = tables(page)
    given, share = heads.index("given"), heads.index("share right")
    assert [int(row[given]) for row in rows] == [
        one.given for one in skill_use_record(learned, "advice-0").tallies
    ]
    assert rows[0][share].endswith("%")
    assert used in words(page)


def test_answers_that_nobody_judged_make_no_curve(app_library: Store) -> None:
    watched(app_library)
    fill_answers(app_library, 6, skills=1)
    for n in range(6):
        judge(app_library, JudgedTrajectory(trajectory=a_run(n), question_type=TYPE, right=None))
    page = open_page("skills", skill="advice-0")
    assert len(charts(page)) == 1
    assert "No answer to these questions was judged yet" in words(page)


def test_trajectories_are_linked_a_page_at_a_time(learned: Store) -> None:
    page = open_page("skills", skill="advice-1")
    links = [one.proto for one in page.main.get("page_link")]
    mine = [one.query_string for one in links if "Who opens door 59" in one.label]
    assert mine == [f"trajectory={a_run(59)}"]
    output = words(page)
    assert "1 to 10 of 60" in output
    assert "2026-04-09 20:00 UTC, right" in output
    later = words(open_page("skills", skill="advice-1", uses=6))
    assert "51 to 60 of 60" in later
    assert "Who opens door 0?" in later
    # It was learned from eight others.
    assert [one.trajectory for one in page_of_sources(learned, "advice-1", 0, 99)[0]] == [
        a_run(n) for n in range(15, 7, -1)
    ]
    found, total = page_of_uses(learned, "advice-1", 58, 10)
    assert (total, [one.trajectory for one in found]) == (60, [a_run(1), a_run(0)])


def test_a_skill_is_banned_and_used_again(learned: Store) -> None:
    page = press(open_page("skills", skill="advice-0"), "Ban it")
    assert find_skill(learned, "advice-0").banned
    assert "it is not used for any question" in words(page)
    assert "banned" in words(open_page("skills"))
    press(page, "Unban it")
    assert not find_skill(learned, "advice-0").banned
    assert "in use" in words(page)


def test_a_skill_that_is_not_there_is_one_message(learned: Store) -> None:
    page = open_page("skills", skill=EVIL)
    assert "there is no skill" in page.error[0].value
    assert "All skills" in words(page)


def test_many_skills_are_shown_a_page_at_a_time_and_searched(app_library: Store) -> None:
    store_skills(app_library, [a_skill(f"advice-{n:02d}") for n in range(60)])
    store_skills(
        app_library, [a_skill("counting", description="Questions that ask how many there are")]
    )
    assert "26 to 50 of 61" in words(open_page("skills", page=2))
    assert "51 to 61 of 61" in words(open_page("skills", page=9))
    found, total = list_skills_page(app_library, 0, 25, "HOW MANY")
    assert ([one.skill.name for one in found], total) == (["counting"], 1)
    assert list_skills_page(app_library, 0, 25, "advice-5")[1] == 10
    assert list_skills_page(app_library, 0, 25, "100%")[1] == 0


def test_search_looks_at_the_latest_version_only(app_library: Store) -> None:
    store_skills(app_library, [a_skill(description="Questions about zebras")])
    store_skills(app_library, [a_skill(description="Questions about lions")])
    assert list_skills_page(app_library, 0, 25, "zebra")[1] == 0
    assert list_skills_page(app_library, 0, 25, "lion")[1] == 1


@pytest.mark.parametrize("text", [EVIL, LONG[:290], RTL])
def test_any_words_are_shown_as_words(app_library: Store, text: str) -> None:
    # Code reviews what comes in; what lies in a database may have come otherwise.
    with app_library.begin() as session:
        stored.add_version(
            session, a_skill(description=text, triggers=(text,), instructions=(text,))
        )
    for page in (open_page("skills"), open_page("skills", skill="order-of-events")):
        assert text in words(page)
        assert not any(one.allow_html for one in page.markdown)


def test_an_answer_is_judged_and_the_verdict_taken_back(learned: Store) -> None:
    judge(learned, JudgedTrajectory(trajectory=a_run(1), question_type=TYPE, right=None))
    page = open_page("ask", trajectory=a_run(1))
    assert "Is this answer right?" in words(page)
    press(page, "Wrong")
    assert recorded_judgement(learned, a_run(1)) is False
    assert "Judged **wrong**." in words(page)
    # Whoever opens it again, here or on the page of its steps, sees what was said.
    other = open_page("trajectory", trajectory=a_run(1))
    assert "Judged **wrong**." in words(other)
    assert [b.disabled for b in other.button if b.label in ("Right", "Wrong")] == [False, True]
    press(other, "Right")
    assert recorded_judgement(learned, a_run(1)) is True
    press(page, "Withdraw the verdict")
    assert recorded_judgement(learned, a_run(1)) is None
    assert "Is this answer right?" in words(page)


def test_a_verdict_is_learned_from_by_the_kind_of_its_question(learned: Store) -> None:
    before = count_waiting(learned)
    judge(learned, JudgedTrajectory(trajectory=a_run(3), question_type=TYPE, right=None))
    assert count_waiting(learned) == before - 1
    press(open_page("trajectory", trajectory=a_run(3)), "Right")
    assert count_waiting(learned) == before
    with learned.begin() as session:
        from store.queries.learning import judgement_of

        found = judgement_of(session, a_run(3))
    assert found == JudgedTrajectory(trajectory=a_run(3), question_type="fact", right=True)


def test_a_search_without_an_answer_has_nothing_to_judge(learned: Store) -> None:
    from store.queries.trajectories import end_trajectory

    with learned.begin() as session:
        end_trajectory(session, a_run(2), "failed", None, 0, 1.0)
    output = words(open_page("trajectory", trajectory=a_run(2)))
    assert "Is this answer right?" not in output


def test_skills_of_a_video_that_is_gone_stay_with_no_use(learned: Store) -> None:
    from flows.delete import delete_video_rows

    delete_video_rows(learned, VIDEO)
    output = words(open_page("skills", skill="advice-0"))
    assert "It was not used yet" in output
