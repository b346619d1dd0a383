"""Telling in which language is asked, and saying so where the text model was not made for it."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import SetupError
from models.profile import Profile
from models.weights import load_manifest, weights_named
from models.whisper import WhisperRecognizer
from retrieval.heuristics.questions import (
    detect_language,
    function_words,
    is_english,
    language_note,
    temporal_fit,
)
from retrieval.ranking import PreparedQuestion
from store.home import Home

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


@pytest.mark.parametrize("text", ["", "42", "red car", "???", "Yggdrasil", "<face_3>"])
def test_what_does_not_tell_is_let_pass(text: str) -> None:
    assert detect_language(text) is None


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


def test_every_text_model_says_what_it_was_made_for() -> None:
    for weights in load_manifest().values():
        spoken = weights.need in ("speech", "text", "reranker", "sentences")
        assert bool(weights.languages) == spoken
    assert Profile(name="p").search_languages == ("en",)


def test_a_language_that_the_speech_model_does_not_know_is_refused_with_the_way_out() -> None:
    folder = Home.default().weights / "whisper-base"
    known = weights_named("whisper-base").languages
    with pytest.raises(SetupError, match=r"does not know the language tlh.*homer models"):
        WhisperRecognizer("whisper-base", folder, ("de", "tlh"), known)
    assert WhisperRecognizer("whisper-base", folder, ("de",), known).languages == ("de",)
    assert WhisperRecognizer("whisper-base", folder, (), known).languages == known


GERMAN = "Wer trägt die Last und ist in Not?"
"""With words that are English ones of no sense, and mean a load and distress."""


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
