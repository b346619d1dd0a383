"""Questions taken apart: terms, statements, parts, language, and times relative to them."""

from __future__ import annotations

import json
import re
import warnings
from string import ascii_uppercase

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.harness.constrain import ActionBounds, check
from agent.reasoners import concluding
from domain.asking import Action, Mode, Question, Subtask
from domain.errors import SetupError
from domain.ledger import new_ledger
from domain.settings import AskSettings
from models.speech import WhisperRecognizer
from models.weights import weights_named
from retrieval.heuristics.questions import (
    DAY,
    HOUR,
    Times,
    are_times,
    core_question,
    detect_language,
    function_words,
    is_english,
    language_note,
    statement,
    temporal_fit,
)
from retrieval.ranking import PreparedQuestion
from retrieval.terms import stem, terms
from store.home import Home

ASK = AskSettings()
NOON_3 = 2 * DAY + 12 * HOUR
"""Day 3, noon."""
GERMAN = "Wer trägt die Last und ist in Not?"
"""With words that are English ones of no sense, and mean a load and distress."""


@pytest.mark.parametrize(
    "forms",
    [
        ["wash", "washes", "washed", "washing"],
        ["carry", "carries", "carried", "carrying"],
        ["stop", "stopped", "stopping", "stops"],
        ["move", "moved", "moving", "moves"],
        ["quick", "quickly"],
    ],
)
def test_inflections_share_a_stem(forms: list[str]) -> None:
    assert len({stem(form) for form in forms}) == 1


def test_accents_and_case_fold() -> None:
    assert terms("CAFÉ Übung") == ["café", "übung"]


def test_scripts_without_spaces_are_cut_in_pairs() -> None:
    assert set(terms("東京タワー")) & set(terms("東京駅"))
    assert terms("水") == ["水"]


@given(st.text())
def test_terms_of_any_text_are_plain_words(text: str) -> None:
    assert all(term and not any(mark.isspace() for mark in term) for term in terms(text))


@pytest.mark.parametrize(
    ("question", "plain"),
    [
        ("Who washed the dishes?", "Who washed the dishes"),
        ("Now I am cooking in the kitchen, who bought the salt today?", "who bought the salt"),
        ("When was the last time that I watered the plants?", "I watered the plants"),
        ("What did we eat the previous time?", "What did we eat"),
        ("What did Tasha drink yesterday?", "What did Tasha drink"),
        ("Now, who?", "Now, who"),
    ],
)
def test_framing_is_removed_from_questions(question: str, plain: str) -> None:
    assert core_question(question) == plain


@pytest.mark.parametrize(
    ("question", "option", "said"),
    [
        ("Who washed the dishes?", "Tasha", "Tasha washed the dishes"),
        ("Who washed the dishes?", "me", "I washed the dishes"),
        ("Who did I call?", "Lucia", "I call Lucia"),
        ("Who did I call?", "Me", "I call me"),
        ("Whose cup broke?", "Alice", "Alice's cup broke"),
        ("Whose cup broke?", "Alice's", "Alice's cup broke"),
        ("Why did the bowl fall?", "Because it was wet.", "the bowl fall Because it was wet"),
        ("What is on the table?", "A cup.", "What is on the table A cup"),
    ],
)
def test_questions_are_restated_with_an_option(question: str, option: str, said: str) -> None:
    assert statement(question, option) == said


@given(st.text(), st.text())
def test_any_question_and_option_can_be_restated(question: str, option: str) -> None:
    core_question(question)
    assert isinstance(statement(question, option), str)


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Who came?", ["Who came?"]),
        ("Who came and what did they bring?", ["Who came", "what did they bring?"]),
        ("Who came? Where did they sit?", ["Who came", "Where did they sit?"]),
        ("What do Ann and Bob eat?", ["What do Ann and Bob eat?"]),
        ("Why did Ann leave?", ["Why did Ann leave?"]),
        ("the colour of the car", ["the colour of the car"]),
    ],
)
def test_a_question_is_split_by_what_it_asks(question: str, parts: list[str]) -> None:
    assert [draft.text for draft in concluding.decompose(question, ())] == parts


def test_each_option_is_a_subtask_with_words_of_its_own() -> None:
    asked = Question(text="Who opens the gate?", videos=("v",), options=("Ann", "Bob"))
    ledger, _ = new_ledger(concluding.decompose(asked.text, asked.options), asked.text, ASK)
    found = [(task.text, task.options) for task in ledger.subtasks]
    assert found == [("Evidence for A: Ann", ("A",)), ("Evidence for B: Bob", ("B",))]
    queries = [concluding.query_of(task, asked) for task in ledger.subtasks]
    assert queries == ["Ann opens the gate", "Bob opens the gate"]
    assert {concluding.ranking_text_of(task, asked) for task in ledger.subtasks} == {asked.text}


@pytest.mark.parametrize("count", [1, 4, 5, 6, 7, 11, 26])
def test_more_options_than_subtasks_share_them_evenly(count: int) -> None:
    drafts = concluding.decompose("Who came?", tuple(f"guest {n}" for n in range(count)))
    groups = [draft.options for draft in drafts]
    assert len(drafts) == min(5, count)
    assert "".join(letter for group in groups for letter in group) == ascii_uppercase[:count]
    assert max(map(len, groups)) - min(map(len, groups)) <= 1


def test_a_subtask_that_was_reworded_is_searched_by_its_new_words() -> None:
    asked = Question(text="Who opens the gate?", videos=("v",), options=("Ann", "Bob"))
    task = Subtask(id="t1", text="somebody with a key at the fence", options=("A",))
    assert not concluding.has_rule_wording(task, asked)
    assert concluding.ranking_text_of(task, asked) == concluding.query_of(task, asked)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("What did Ann open?", "Ann open"),
        ("Who opens the gate?", "opens the gate"),
        ("How many cups are on the table?", "cups are on the table"),
        ("In which room is the piano?", "room is the piano"),
        ("By how much is the risk increased?", "the risk increased"),
        ("Does it rain?", "it rain"),
        ("Why?", "Why"),
    ],
)
def test_a_question_becomes_a_statement_with_a_gap(text: str, statement: str) -> None:
    assert concluding.as_statement(text) == statement


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("What is the video about?", concluding.QuestionKind.BROAD),
        ("Why did Ann leave?", concluding.QuestionKind.CAUSE),
        ("What colour is the car?", concluding.QuestionKind.LOOKS),
        ("What is Ann wearing?", concluding.QuestionKind.LOOKS),
        ("Where is the car?", concluding.QuestionKind.FACT),
    ],
)
def test_the_words_of_a_question_tell_its_kind(text: str, kind: concluding.QuestionKind) -> None:
    assert concluding.kind_of(text) is kind


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=60))
def test_whatever_is_asked_becomes_a_legal_plan_and_queries_that_guard_takes(question: str) -> None:
    ledger, _ = new_ledger(concluding.decompose(question, ()), question, ASK)
    for task in ledger.subtasks:
        action = Action(kind="search", mode=Mode.EVENT, query=concluding.as_query(task.text))
        assert check(action, ActionBounds(subtask=task.text), ASK).accepted


def at(day: int, hour: float) -> float:
    return (day - 1) * DAY + hour * HOUR


def fit(text: str, *times: float, as_of: float = NOON_3) -> list[float]:
    found = temporal_fit(text, np.array(times), as_of)
    assert found is not None, text
    return [float(value) for value in found]


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("yesterday", at(2, 9), at(1, 9)),
        ("Yesterday morning", at(2, 8), at(2, 20)),
        ("yesterday at noon", at(2, 12.5), at(2, 20)),
        ("the day before yesterday", at(1, 15), at(2, 15)),
        ("the night before yesterday", at(1, 21), at(2, 21)),
        ("last night", at(2, 22), at(2, 12)),
        ("today", at(3, 8), at(2, 8)),
        ("this morning", at(3, 9), at(2, 9)),
        ("In the morning", at(3, 9), at(2, 9)),
        ("2 days ago in the evening", at(1, 20), at(1, 8)),
        ("one and a half hours ago", NOON_3 - 1.5 * HOUR, NOON_3 - 5 * HOUR),
        ("half an hour ago", NOON_3 - 0.5 * HOUR, NOON_3 - 4 * HOUR),
        ("half a day ago", NOON_3 - 12 * HOUR, NOON_3 - HOUR),
        ("a day 2 hours ago", NOON_3 - 26 * HOUR, NOON_3 - 48 * HOUR),
        ("just now", NOON_3 - 60, NOON_3 - 6 * HOUR),
    ],
)
def test_a_temporal_expression_fits_its_time(text: str, inside: float, outside: float) -> None:
    within, beyond = fit(text, inside, outside)
    assert within > 0.9
    assert beyond < 0.1


@given(st.text(max_size=60), st.floats(min_value=0, max_value=10 * DAY))
def test_any_text_gives_memberships_or_none(text: str, as_of: float) -> None:
    found = temporal_fit(text, np.linspace(0, as_of, 7), as_of)
    if found is not None:
        assert ((found >= 0) & (found <= 1)).all()


PARTS = st.sampled_from(["morning", "noon", "afternoon", "evening", "night"])
AGO = st.builds(
    lambda n, unit, half, more: f"{n} {unit}{half}{more} ago",
    st.sampled_from(["zero", "one", "two", "twelve", "a", "an", "0", "0.5", "3", "48", "1000"]),
    st.sampled_from(["day", "days", "hour", "hours", "minute", "minutes", "min"]),
    st.sampled_from(["", " and a half"]),
    st.sampled_from(["", " 3 hours", " 0 hours"]),
)
DAYS = st.builds(
    lambda word, part: word.replace("PART", part),
    st.sampled_from(
        [
            *("yesterday PART", "the day before yesterday", "PART before yesterday", "this PART"),
            *("today", "last night", "tonight", "in the PART", "just now", "half a day ago"),
            "half an hour ago",
        ]
    ),
    PARTS,
)
PHRASES = st.lists(AGO | DAYS, min_size=1, max_size=2).map(" or ".join)
AS_OF = st.sampled_from([0.0, 1.0, 59.0, HOUR, 13 * HOUR, DAY, 2.5 * DAY, 7 * DAY])


def week() -> Times:
    return np.arange(0, 7 * DAY, HOUR / 2)


@example("0 days 0 hours ago", HOUR)
@example("zero minutes ago", 0.0)
@given(PHRASES, AS_OF)
def test_temporal_expressions_give_memberships_silently(text: str, as_of: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = temporal_fit(f"What was bought {text}?", week(), as_of)
    assert fit is not None
    assert fit.shape == week().shape
    assert np.isfinite(fit).all()
    assert ((fit >= 0) & (fit <= 1)).all()


@given(PHRASES, AS_OF)
def test_a_time_is_the_same_however_it_is_written(text: str, as_of: float) -> None:
    one, other = (temporal_fit(words, week(), as_of) for words in (text, f"  {text.upper()}!"))
    assert one is not None
    assert other is not None
    assert np.array_equal(one, other)


@given(st.integers(5, 48), st.sampled_from(["hours", "minutes"]))
def test_an_age_fits_best_at_its_time(count: int, unit: str) -> None:
    ago = count * (HOUR if unit == "hours" else 60.0)
    fit = temporal_fit(f"{count} {unit} ago", 7 * DAY - np.array([ago / 4, ago, ago * 4]), 7 * DAY)
    assert fit is not None
    assert fit[1] == pytest.approx(1)
    assert fit[1] > fit[0]
    assert fit[1] > fit[2]


@given(st.integers(1, 6), PARTS)
def test_days_back_are_whole_days_and_parts_of_them(back: int, part: str) -> None:
    noon = {"morning": 8, "noon": 12.5, "afternoon": 15, "evening": 20, "night": 22}[part] * HOUR
    days = np.arange(0, 7, dtype=np.float64) * DAY + noon
    fit = temporal_fit(f"{back} days ago in the {part}", days, 6 * DAY + 12 * HOUR)
    assert fit is not None
    assert int(fit.argmax()) == 6 - back
    assert fit[6 - back] == 1


@given(st.lists(PHRASES, min_size=1, max_size=4), st.lists(st.just("a red car"), max_size=4), AS_OF)
def test_options_are_times_if_most_are(times: list[str], others: list[str], as_of: float) -> None:
    short = [one for one in times if len(one.split()) <= 8]
    output, count = are_times((*times, *others), as_of), len(times) + len(others)
    assert output == (count > 1 and len(short) >= 0.75 * count)


QUESTIONS = {
    "de": "Wer öffnet das Tor und warum ist es zu?",
    "fr": "Où est la clé de la maison ?",
    "es": "¿Quién abre la puerta del jardín?",
    "it": "Chi apre la porta della casa?",
    "pt": "Quem abre a porta do jardim?",
    "nl": "Wie heeft het hek van de tuin geopend?",
    "ru": "Кто открывает ворота?",
    "el": "Ποιος ανοίγει την πύλη;",
    "ja": "だれが門を開けますか",
    "ko": "누가 문을 엽니까",
    "zh": "谁打开大门",
    "th": "ใครเปิดประตู",
}


@pytest.mark.parametrize("code", QUESTIONS)
def test_a_question_s_language_is_reported_and_said_where_it_is_not_covered(code: str) -> None:
    found = detect_language(QUESTIONS[code])
    assert found is not None
    assert code in found.codes
    said = language_note(QUESTIONS[code], ("en",))
    assert found.name in said
    assert "made for en" in said
    assert language_note(QUESTIONS[code], ("en", code)) == ""


def test_the_small_words_of_a_question_s_language_are_not_searched_for() -> None:
    assert PreparedQuestion(QUESTIONS["de"]).words == ["öffnet", "tor"]
    assert PreparedQuestion(QUESTIONS["fr"]).words == ["clé", "maison"]
    # Where nothing else is asked for, they are.
    assert PreparedQuestion("wer ist das").words == ["wer", "ist", "das"]


@pytest.mark.parametrize(
    "text", ["Who opens the gate and why was it shut?", "red car", "", "谁打开大门"]
)
def test_nothing_more_is_left_out_of_english_or_of_what_cannot_be_told(text: str) -> None:
    assert function_words(text) == frozenset()


@pytest.mark.parametrize(
    "text",
    [
        "Who opens the gate and why was it shut?",
        "What does the man in the red coat die of?",
        "Where was he when the war ended?",
        "What is the name of the café in Zürich?",
        "How many people are there?",
    ],
)
def test_english_is_covered(text: str) -> None:
    assert language_note(text, ("en",)) == ""


@given(st.text())
def test_no_text_breaks_it_and_nothing_is_said_where_nothing_is_known(text: str) -> None:
    assert language_note(text, ()) == ""
    language_note(text, ("en",))


def test_the_manifest_knows_the_languages_of_speech_that_the_model_has_marks_for() -> None:
    path = Home.default().weights / "whisper-base" / "tokenizer.json"
    if not path.exists():
        pytest.skip("homer models pull fetches whisper-base")
    marks = {one["content"] for one in json.loads(path.read_text())["added_tokens"]}
    codes = {mark[2:-2] for mark in marks if re.fullmatch(r"<\|[a-z]{2,3}\|>", mark)}
    assert set(weights_named("whisper-base").languages) == codes


def test_a_language_that_the_speech_model_does_not_know_is_refused_with_the_way_out() -> None:
    folder = Home.default().weights / "whisper-base"
    known = weights_named("whisper-base").languages
    with pytest.raises(SetupError, match=r"does not know the language tlh.*homer models"):
        WhisperRecognizer("whisper-base", folder, ("de", "tlh"), known)
    assert WhisperRecognizer("whisper-base", folder, ("de",), known).languages == ("de",)
    assert WhisperRecognizer("whisper-base", folder, (), known).languages == known


def test_english_stop_words_are_words_of_sense_in_other_languages() -> None:
    assert PreparedQuestion(GERMAN).words == ["trägt", "last", "not"]
    assert PreparedQuestion(GERMAN).database_words["last"] == "last"
    assert "last" not in PreparedQuestion("Who carries the last load?").words


def test_rules_for_english_questions_are_off_in_other_languages() -> None:
    assert is_english("Who carries it?")
    assert is_english("42")
    assert not is_english(GERMAN)
    question = PreparedQuestion("Wer war last night der Chef und wo ist er?", ("Ann", "Ben"))
    assert question.core == "Wer war last night der Chef und wo ist er"
    assert question.statements() == (f"{question.core} Ann", f"{question.core} Ben")
    day = np.array([3_600.0 * hour for hour in range(48)])
    assert temporal_fit(question.text, day, 172_800.0) is None
    assert temporal_fit("Who was the boss last night?", day, 172_800.0) is not None
