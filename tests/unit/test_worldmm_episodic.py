"""WorldMM's numbers, scales and captions, its graph of a scale, and what its search finds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import strategies.worldmm.settings
from benchmarks.page_rank import DAMPING, NODES, power_iteration, random_graph, top
from domain.asking import Evidence
from domain.memories import Line, MemoryKind, MemorySource
from domain.time import TimeSpan
from retrieval.chapters import DocumentCounts, caption_sentences, coarser_caption
from retrieval.english import Known
from retrieval.page_rank import Floats, Pairs, page_rank, weighted_graph
from strategies.registry import strategy_names
from strategies.worldmm.captions import (
    ScaleWindow,
    due_windows,
    extract,
    finer_windows,
    finest_caption,
    summarised_scale,
    window_at,
)
from strategies.worldmm.choice import QuestionForm, Scored, choose_across_scales
from strategies.worldmm.choice import question_form as form_of
from strategies.worldmm.graph import (
    Numbered,
    ScaleIndex,
    Vectors,
    entity_seeds,
    search_scale,
    synonyms,
)
from strategies.worldmm.replies import find_span
from strategies.worldmm.settings import HOUR, MINUTE, SECOND, WorldMemorySettings
from tests.support.packages import ROOT
from tests.support.remembered import PARSER
from tests.support.scale_graphs import GraphParts

SETTINGS = WorldMemorySettings()
KNOWN = Known(people=("Ann", "Lucia"))
VOCABULARY = ("cup", "shelf", "guitar", "string", "ann", "lucia", "garden", "noodle", "i", "mug")
CAPTIONS = (
    *("I put the cup on the shelf.", "Lucia repairs the guitar.", "Ann waters the garden."),
    *("I eat noodles.", "The noodles are in the cup.", "I put the mug on the shelf."),
)
ENDS = st.integers(0, 7)
RESTARTS = st.lists(st.floats(0.01, 1) | st.just(0.0), min_size=8, max_size=8).filter(any)
TIMES = st.lists(st.integers(0, 3 * HOUR), max_size=40)
DAY, HOUR_OF_TIMES, MINUTE_OF_TIMES = 86_400, 3_600, 60
AT_18_34 = DAY + 18 * HOUR_OF_TIMES + 34 * MINUTE_OF_TIMES
WORDS = st.sampled_from(("cup", "table", "garden", "rain", "guitar", "noodles", "bridge", "lamp"))
SENTENCES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
CAPTIONS_OF_CAPTIONS = st.lists(
    st.lists(SENTENCES, min_size=1, max_size=5).map("\n".join), min_size=1, max_size=6
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
    query, none = embed(["string"])[0], np.zeros(3, dtype=np.float64)
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


def _candidate(ref: str, start_s: int, length_s: int, score: float) -> Scored:
    span = TimeSpan.of(1000 * start_s, 1000 * (start_s + length_s))
    return Evidence(ref=ref, video="v", span=span, text=ref, score=score), score


FOUND = (
    (_candidate("n1", 4000, 30, 0.10), _candidate("n2", 9000, 30, 0.09)),
    (_candidate("n3", 20_000, 180, 0.02), _candidate("n4", 3960, 180, 0.01)),
    (_candidate("n5", 30_000, 600, 0.30),),
    (_candidate("n6", 43_200, 3600, 0.70), _candidate("n7", 3600, 3600, 0.60)),
)


def test_events_are_looked_up_in_fine_captions_and_habits_in_coarse_ones() -> None:
    event, why = choose_across_scales("When did I last water the garden?", FOUND, 3)
    assert [one.ref for one in event] == ["n1", "n2", "n3"]
    assert why.startswith('asks for a particular event ("when"): fine captions first')
    habit, why = choose_across_scales("What does Ann usually drink?", FOUND, 3)
    assert [one.ref for one in habit] == ["n6", "n7", "n5"]
    assert 'a habit or relation ("usually"): coarse captions first' in why
    assert "n6 at 12:00:00-13:00:00" in why


def test_a_caption_on_which_coarser_scales_agree_comes_first() -> None:
    fine = (_candidate("n1", 9000, 30, 0.10), _candidate("n2", 4000, 30, 0.09))
    alone, _ = choose_across_scales("When was it?", (fine, (), (), ()), 1)
    agreed, _ = choose_across_scales("When was it?", (fine, (), (), FOUND[3]), 1)
    assert [one.ref for one in alone] == ["n1"]
    assert [one.ref for one in agreed] == ["n2"]


def test_a_caption_within_a_chosen_one_is_left_out() -> None:
    inside = (FOUND[0], FOUND[1][1:], (), ())
    chosen, _ = choose_across_scales("What is on the shelf?", inside, 3)
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


def _reference(edges: Pairs, weights: Floats, restart: Floats, damping: float) -> Floats:
    graph = networkx.Graph()
    graph.add_nodes_from(range(len(restart)))
    for (left, right), weight in zip(edges.tolist(), weights.tolist(), strict=True):
        if left != right:
            before = graph.get_edge_data(left, right, {"weight": 0.0})["weight"]
            graph.add_edge(left, right, weight=before + weight)
    begin = dict(enumerate(restart.tolist()))
    ranks = networkx.pagerank(graph, damping, begin, tol=1e-12, max_iter=1_000)
    return np.array([ranks[node] for node in range(len(restart))])


@pytest.mark.parametrize("seed", range(5))
def test_ranks_are_those_of_an_independent_library(seed: int) -> None:
    edges, weights, restart = random_graph(2_000, 8_000, seed)
    ranks = page_rank(weighted_graph(2_000, edges, weights), restart, DAMPING)
    reference = _reference(edges, weights, restart, DAMPING)
    assert top(ranks) == top(reference)
    assert np.allclose(ranks, reference, atol=1e-7)


@pytest.mark.full
def test_the_first_of_a_large_graph_are_those_of_a_plain_power_iteration() -> None:
    edges, weights, restart = random_graph(NODES, 4 * NODES)
    ranks = page_rank(weighted_graph(NODES, edges, weights), restart, DAMPING)
    assert top(ranks) == top(power_iteration(edges, weights, restart))


@given(st.lists(st.tuples(ENDS, ENDS, st.floats(0.1, 5)), max_size=20), RESTARTS, st.floats(0, 0.9))
def test_any_graph_is_ranked(
    graph: list[tuple[int, int, float]], begin: list[float], damping: float
) -> None:
    edges = np.array([[left, right] for left, right, _ in graph], dtype=np.int64).reshape(-1, 2)
    weights = np.array([weight for *_, weight in graph], dtype=float)
    restart = np.array(begin)
    ranks = page_rank(weighted_graph(8, edges, weights), restart, damping)
    assert ranks.sum() == pytest.approx(1)
    assert np.allclose(ranks, _reference(edges, weights, restart, damping), atol=1e-6)


def test_nothing_to_start_from_ranks_nothing() -> None:
    graph = weighted_graph(3, np.array([[0, 1]]), np.ones(1))
    assert page_rank(graph, np.zeros(3), 0.5).tolist() == [0, 0, 0]


def test_edges_that_end_nowhere_or_weigh_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="of 2"):
        weighted_graph(2, np.array([[0, 2]]), np.ones(1))
    with pytest.raises(ValueError, match="above 0"):
        weighted_graph(2, np.array([[0, 1]]), np.zeros(1))


def _line(start_ms: int, text: str, speaker: str | None = None) -> Line:
    span = TimeSpan.of(start_ms, start_ms + 1_000)
    source = MemorySource.SAID if speaker else MemorySource.CAPTION
    return Line(kind=MemoryKind.EPISODIC, span=span, text=text, source=source, speaker=speaker)


def _counts(*captions: str) -> DocumentCounts:
    counts = DocumentCounts()
    for caption in captions:
        counts.add(caption)
    return counts


def test_the_finest_caption_is_the_lines_in_order_with_who_said_them() -> None:
    lines = [_line(2_000, "Mark it.", "Jake"), _line(0, "I hold  my phone."), _line(3_000, " ")]
    assert finest_caption([*lines, lines[0]]) == "I hold my phone.\nJake: Mark it."


def test_a_local_caption_falls_into_the_sentences_it_was_made_of() -> None:
    lines = [_line(0, "First this. Then that.", "Ann"), _line(1_000, "I nod.")]
    assert caption_sentences(finest_caption(lines)) == ["Ann: First this. Then that.", "I nod."]
    assert caption_sentences("I nod. I leave.") == ["I nod.", "I leave."]


def test_rare_words_are_chosen_before_common_ones_and_stay_in_order() -> None:
    common = "I walk forward.\nI hold my phone."
    finer = [f"{common}\nLucia repairs the guitar.", f"{common}\nJake: The guitar needs strings."]
    chosen = coarser_caption(finer, _counts(*[common] * 20, *finer), most=2)
    assert chosen == "Lucia repairs the guitar.\nJake: The guitar needs strings."


@given(CAPTIONS_OF_CAPTIONS, st.integers(1, 8))
def test_an_extract_has_a_few_sentences_of_the_finer_ones(finer: list[str], most: int) -> None:
    counts = _counts(*finer)
    chosen = caption_sentences(coarser_caption(finer, counts, most))
    given = [sentence for caption in finer for sentence in caption_sentences(caption)]
    assert 0 < len(chosen) <= most
    assert len(set(chosen)) == len(chosen)
    positions = [given.index(sentence) for sentence in chosen]
    assert positions == sorted(positions)
    assert coarser_caption(finer, counts, most).split("\n") == chosen


def test_the_numbers_are_the_papers() -> None:
    assert SETTINGS.model_dump() == {
        "scales_ms": (30_000, 180_000, 600_000, 3_600_000),
        "short_scales_ms": (10_000, 30_000, 180_000, 600_000),
        "short_video_ms": 3_600_000,
        "summary_sentences": 8,
        "synonym_cosine": 0.8,
        "matched_triples": 5,
        "damping": 0.5,
        "caption_weight": 0.05,
        "captions": (10, 5, 5, 3),
        "captions_kept": 3,
        "semantic_window_ms": 600_000,
        "occasions": 3,
        "consolidation_cosine": 0.6,
        "consolidation_candidates": 10,
        "semantic_triples": 10,
        "segment_ms": 10_000,
        "frames": 10,
        "rounds": 5,
    }


def test_only_videos_under_an_hour_have_the_short_scales() -> None:
    assert SETTINGS.scales(HOUR - 1) == SETTINGS.short_scales_ms
    assert SETTINGS.scales(HOUR) == SETTINGS.scales(None) == SETTINGS.scales_ms


@pytest.mark.parametrize("scales", [(30, 10, 60, 90), (10, 25, 50, 100), (10, 10, 20, 40)])
def test_scales_must_ascend_by_multiples_of_the_finest(scales: tuple[int, ...]) -> None:
    with pytest.raises(ValidationError, match="scales"):
        WorldMemorySettings.model_validate({"scales_ms": scales})


def test_a_folder_without_a_strategy_file_is_no_strategy() -> None:
    whole = {path.parent.name for path in (ROOT / "strategies").glob("*/strategy.py")}
    assert set(strategy_names()) == {name.replace("_", "-") for name in whole}
    assert strategies.worldmm.settings.SECOND == 1_000


def test_a_window_is_due_once_it_is_complete() -> None:
    times = [5 * SECOND, 40 * SECOND, 170 * SECOND]
    assert due_windows(SETTINGS.scales_ms, times, 0, 59 * SECOND) == (
        ScaleWindow(scale_ms=30 * SECOND, number=0),
    )
    assert due_windows(SETTINGS.scales_ms, times, 59 * SECOND, 3 * MINUTE) == (
        ScaleWindow(scale_ms=30 * SECOND, number=1),
        ScaleWindow(scale_ms=30 * SECOND, number=5),
        ScaleWindow(scale_ms=3 * MINUTE, number=0),
    )


def test_the_end_of_a_video_completes_what_has_begun() -> None:
    due = due_windows(SETTINGS.scales_ms, [5 * SECOND], 0, 20 * SECOND, ended=True)
    assert [window.scale_ms for window in due] == list(SETTINGS.scales_ms)


@given(TIMES, st.lists(st.integers(0, 3 * HOUR), max_size=6))
def test_built_in_steps_or_at_once_windows_are_the_same(times: list[int], stops: list[int]) -> None:
    stepwise = [
        window
        for built, seen in pairwise([0, *sorted(stops), 3 * HOUR])
        for window in due_windows(SETTINGS.scales_ms, times, built, seen)
    ]
    assert tuple(stepwise) == due_windows(SETTINGS.scales_ms, times, 0, 3 * HOUR)


@given(TIMES)
def test_every_moment_is_in_one_window_of_each_scale_and_none_is_empty(times: list[int]) -> None:
    due = due_windows(SETTINGS.scales_ms, times, 0, 4 * HOUR)
    for scale in SETTINGS.scales_ms:
        windows = [window for window in due if window.scale_ms == scale]
        assert all(any(w.span.start_ms <= t < w.end_ms for t in times) for w in windows)
        assert {window_at(scale, time) for time in times} == set(windows)


def test_a_coarser_scale_summarises_windows_that_lie_in_its_own() -> None:
    long, short = SETTINGS.scales_ms, SETTINGS.short_scales_ms
    made_of = [summarised_scale(long, scale) for scale in long]
    assert made_of == [None, 30 * SECOND, 30 * SECOND, 10 * MINUTE]
    assert [summarised_scale(short, s) for s in short] == [None, 10_000, 30_000, 30_000]
    parts = list(finer_windows(ScaleWindow(scale_ms=HOUR, number=2), 10 * MINUTE))
    assert (parts[0].span.start_ms, parts[-1].end_ms) == (2 * HOUR, 3 * HOUR)
    assert len(parts) == 6


@pytest.mark.parametrize(
    ("text", "start_s", "end_s"),
    [
        ("12:30", 750, 750),
        ("12:30 - 12:50", 750, 770),
        ("What is on the table from 12:30 to 12:50?", 750, 770),
        ("1:02:03 – 1:04:00", HOUR_OF_TIMES + 123, HOUR_OF_TIMES + 240),
        ("DAY 2 18:34:01 - 18:34:29", AT_18_34 + 1, AT_18_34 + 29),
        ("DAY2, 18:34 - DAY2, 18:35", AT_18_34, AT_18_34 + 60),
        ("d2 18:34:01-d3 18:34:01", AT_18_34 + 1, AT_18_34 + DAY + 1),
        ("the kitchen on day 2 at 18:34", AT_18_34, AT_18_34),
        ("12:50 - 12:30", 770, 770),
        ("[03:14] somebody reads", 194, 194),
    ],
)
def test_a_time_is_read_as_it_is_meant(text: str, start_s: int, end_s: int) -> None:
    assert find_span(text) == TimeSpan.of(start_s * 1000, end_s * 1000)


@pytest.mark.parametrize(
    "text", ["", "the red car", "at noon", "day 2", "12", "12:3", "ratio 1:2:3:4", "v1.12:30:1.5"]
)
def test_what_names_no_time_is_none(text: str) -> None:
    assert find_span(text) is None
