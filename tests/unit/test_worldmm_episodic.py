"""WorldMM's graph of a scale, what its search finds, and the choice across scales."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.time import TimeSpan
from retrieval.english import Known
from strategies.worldmm.captions import extract
from strategies.worldmm.choice import QuestionForm, ScaleCandidate, choose_across_scales
from strategies.worldmm.choice import question_form as form_of
from strategies.worldmm.graph import (
    Numbered,
    ScaleIndex,
    Vectors,
    entity_seeds,
    search_scale,
    synonyms,
)
from strategies.worldmm.settings import WorldMemorySettings
from tests.support.remembered import PARSER
from tests.support.scale_graphs import GraphParts

SETTINGS = WorldMemorySettings()
KNOWN = Known(people=("Ann", "Lucia"))
VOCABULARY = ("cup", "shelf", "guitar", "string", "ann", "lucia", "garden", "noodle", "i", "mug")
CAPTIONS = (
    "I put the cup on the shelf.",
    "Lucia repairs the guitar.",
    "Ann waters the garden.",
    "I eat noodles.",
    "The noodles are in the cup.",
    "I put the mug on the shelf.",
)


def embed(texts: Sequence[str]) -> Vectors:
    """Embed by which words of a vocabulary stand in a text, with a little of everything."""
    rows = [[1.0 if word in text.casefold() else 0.01 for word in VOCABULARY] for text in texts]
    vectors = np.array(rows, dtype=np.float64)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def _index(captions: Sequence[str]) -> tuple[ScaleIndex, GraphParts]:
    parts = GraphParts()
    for facts in extract(PARSER, captions, KNOWN):
        parts.add_caption(facts.entities, facts.triples)
    parts.add_synonyms(embed(list(parts.numbers)), SETTINGS.synonym_cosine)
    texts = [triple.text for triple in parts.triples]
    vectors = embed(captions), embed(texts)
    return ScaleIndex(parts.graph(), *vectors, parts.ends(), parts.stated_in()), parts


def _found(query: str, most: int = 2) -> list[str]:
    index, _ = _index(CAPTIONS)
    found = search_scale(index, embed([query])[0], most, SETTINGS)
    return [CAPTIONS[one.number] for one in found.captions]


def test_the_nearest_triples_lead_to_their_captions() -> None:
    assert _found("who repairs the guitar", 1) == ["Lucia repairs the guitar."]
    assert _found("cup on the shelf", 1) == ["I put the cup on the shelf."]
    assert set(_found("garden", 6)) > {"Ann waters the garden."}


def test_captions_without_the_words_are_found_through_shared_entities() -> None:
    index, parts = _index(["Ann hides the string in the cup.", "I wash the cup.", "Lucia naps."])
    found = search_scale(index, embed(["string"])[0], 3, SETTINGS)
    scores = {one.number: one.score for one in found.captions}
    assert scores[0] > scores[1] > 2 * scores.get(2, 0.0)
    assert {"cup", "string", "Ann"} <= set(parts.numbers)


def test_a_filter_takes_triples_out_of_the_search() -> None:
    index, parts = _index(CAPTIONS)
    query = embed(["noodle shelf"])[0]
    asked: list[int] = []

    def only_food(numbers: Sequence[int]) -> Sequence[int]:
        asked.extend(numbers)
        texts = [triple.text for triple in parts.triples]
        return [number for number in numbers if texts[number] == "I eat noodle"]

    plain = {one.number for one in search_scale(index, query, 2, SETTINGS).captions}
    found = search_scale(index, query, 2, SETTINGS, only_food)
    assert len(asked) == SETTINGS.matched_triples
    assert len(found.triples) == 1
    assert {one.number for one in found.captions} == {3, 4} != plain


def _ranked(query: str, words: Sequence[float], *, graph: bool = True) -> list[str]:
    index, _ = _index(CAPTIONS)
    scores = np.array(words, dtype=np.float64)
    found = search_scale(index, embed([query])[0], 6, SETTINGS, words=scores, graph=graph)
    return [CAPTIONS[one.number] for one in found.captions]


def test_words_rank_captions_beside_the_graph_and_each_is_found() -> None:
    silent = _ranked("who repairs the guitar", [0, 0, 0, 0, 0, 0])
    assert silent[0] == "Lucia repairs the guitar."
    spoken = _ranked("who repairs the guitar", [0, 0, 0, 9, 0, 0])
    assert set(spoken[:2]) == {"I eat noodles.", "Lucia repairs the guitar."}
    assert sorted(silent) == sorted(spoken) == sorted(CAPTIONS)


def test_without_the_graph_captions_rank_by_words_and_their_own_likeness() -> None:
    index, _ = _index(["Ann hides the string in the cup.", "I wash the cup.", "Lucia naps."])
    query = embed(["string"])[0]
    none = np.zeros(3, dtype=np.float64)
    whole, plain = (
        search_scale(index, query, 3, SETTINGS, words=none, graph=graph) for graph in (True, False)
    )
    assert [one.number for one in whole.captions] == [0, 1, 2]
    assert plain.triples == () != whole.triples
    scores = {one.number: one.score for one in plain.captions}
    assert scores[0] == 1 > 0.1 > max(scores[1], scores[2])


def test_an_entity_weighs_the_mean_of_its_triples_over_the_captions_it_stands_in() -> None:
    ends = np.array([[0, 1], [0, 2]])
    matched = (Numbered(0, 0.9), Numbered(1, 0.5))
    seeds = entity_seeds(np.array([7.0, 2.0, 1.0, 5.0]), ends, matched)
    assert seeds.tolist() == pytest.approx([0.1, 0.45, 0.5, 0])


def test_whoever_stands_everywhere_leads_nowhere_in_particular() -> None:
    captions = [*(f"I eat the noodles number {word}." for word in "abcdef"), "I use the mug."]
    index, _ = _index(captions)
    found = search_scale(index, embed(["i mug"])[0], 1, SETTINGS)
    assert captions[found.captions[0].number] == "I use the mug."


def test_names_alike_are_synonyms_but_two_people_never_are() -> None:
    vectors = embed(["cup", "mug cup", "cup.", "garden"])
    assert synonyms(vectors, 0.8).pairs.tolist() == [[0, 2]]
    assert synonyms(vectors, 0.8, apart=np.ones(4, dtype=np.bool_)).pairs.tolist() == []
    _, parts = _index(["<face_1> and <face_2> hold the cup."])
    assert parts.alike.pairs.tolist() == []


@given(st.integers(0, 6), st.integers(0, 1000))
def test_synonyms_found_in_two_steps_are_those_found_at_once(known: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(6, 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    first = synonyms(vectors[:known], 0.5).pairs.tolist()
    later = synonyms(vectors, 0.5, known=known).pairs.tolist()
    whole = synonyms(vectors, 0.5).pairs.tolist()
    assert sorted([*first, *later]) == sorted(whole)
    cosines = vectors @ vectors.T
    assert sorted(whole) == [
        [i, j] for i in range(6) for j in range(i + 1, 6) if cosines[i, j] >= 0.5
    ]


def _candidate(ref: str, scale: int, start_s: int, length_s: int, score: float) -> ScaleCandidate:
    span = TimeSpan.of(1000 * start_s, 1000 * (start_s + length_s))
    return ScaleCandidate(ref=ref, scale=scale, span=span, score=score)


FOUND = (
    (_candidate("n1", 0, 4000, 30, 0.10), _candidate("n2", 0, 9000, 30, 0.09)),
    (_candidate("n3", 1, 20_000, 180, 0.02), _candidate("n4", 1, 3960, 180, 0.01)),
    (_candidate("n5", 2, 30_000, 600, 0.30),),
    (_candidate("n6", 3, 43_200, 3600, 0.70), _candidate("n7", 3, 3600, 3600, 0.60)),
)


def test_events_are_looked_up_in_fine_captions_and_habits_in_coarse_ones() -> None:
    event = choose_across_scales("When did I last water the garden?", FOUND, 3)
    assert [one.ref for one in event.chosen] == ["n1", "n2", "n3"]
    assert event.reason.startswith('asks for a particular event ("when"): fine captions first')
    habit = choose_across_scales("What does Ann usually drink?", FOUND, 3)
    assert [one.ref for one in habit.chosen] == ["n6", "n7", "n5"]
    assert 'a habit or relation ("usually"): coarse captions first' in habit.reason
    assert "n6 at 12:00:00-13:00:00" in habit.reason


def test_a_caption_on_which_coarser_scales_agree_comes_first() -> None:
    fine = (_candidate("n1", 0, 9000, 30, 0.10), _candidate("n2", 0, 4000, 30, 0.09))
    alone = choose_across_scales("When was it?", (fine, (), (), ()), 1)
    agreed = choose_across_scales("When was it?", (fine, (), (), FOUND[3]), 1)
    assert [one.ref for one in alone.chosen] == ["n1"]
    assert [one.ref for one in agreed.chosen] == ["n2"]


def test_a_caption_within_a_chosen_one_is_left_out() -> None:
    inside = (FOUND[0], FOUND[1][1:], (), ())
    chosen = choose_across_scales("What is on the shelf?", inside, 3).chosen
    assert [one.ref for one in chosen] == ["n1", "n2"]


@pytest.mark.parametrize(
    ("question", "form"),
    [
        ("Who put the cup away before dinner?", QuestionForm.EVENT),
        ("What did Ann say about the trip?", QuestionForm.EVENT),
        ("How often does Lucia clean up?", QuestionForm.HABIT),
        ("What is the relationship between Ann and Lucia?", QuestionForm.HABIT),
        ("What colour is the door?", QuestionForm.OPEN),
    ],
)
def test_the_form_of_a_question_is_read_from_its_words(question: str, form: QuestionForm) -> None:
    assert form_of(question)[0] == form
