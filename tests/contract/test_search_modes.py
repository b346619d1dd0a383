"""What every search mode promises, whatever it is asked."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.asking import Mode, Question
from domain.errors import InputError
from domain.memories import MemoryView, Scope
from domain.moments import Retrieval
from domain.settings import Settings
from retrieval.quotes_and_citations import cite
from retrieval.retrievers import Retrievers
from store.database import Store
from tests.support import remembered
from tests.support.full_suite import examples, in_full, sample
from tests.support.ranking import rank

V = "0123456789abcdef"
LINES = [
    *("Ann bakes a cake", "the dog runs home", "a red ball", "<face_0> sings", "we drink tea", ""),
    *("the cake burns", "good night"),
]
QUERIES = ["Ann bakes a cake", "dog", "what does Ada sing?", "zebra", "...", "<face_0>", "tea cake"]


@pytest.fixture
def video(store: Store) -> dict[int, int]:
    """A video with everything in it, part of it known only from clip 5 on."""
    clips = [
        [
            remembered.Said(text or "hm", 1, "<voice_1>", who=("<face_0>",) if "<" in text else ()),
            remembered.Said(f"clip number {i}", 9),
        ]
        for i, text in enumerate(LINES)
    ]
    remembered.watch(store, V, clips)
    events = [
        remembered.Event(0, "Baking", "Ann bakes a cake while a dog runs home.", (0, 1), since=3),
        remembered.Event(1, "Singing", "Somebody sings with a ball.", (2, 3), since=3, until=5),
        remembered.Event(1, "Singing", "Ada sings, tea is drunk.", (2, 3, 4), since=5),
        remembered.Event(2, "Night", "The cake burns at night.", (5, 6, 7), since=7),
    ]
    edges = [(0, 1, "before", 3), (1, 2, "causes", 7), (0, 2, "before", 7)]
    ids = remembered.add_event_graph(store, V, events, edges)
    remembered.recording(
        store, V, [30.0 * i + t for i in range(8) for t in (1.0, 20.0)], {61.0: "BALL"}
    )
    remembered.name(store, V, 0, "Ada", "<face_0>", "<voice_1>", since=5)
    remembered.see(store, V, "<face_0>", 91.0, 95.0)
    return ids


@pytest.fixture
def retrievers(store: Store) -> Retrievers:
    return Retrievers(store, remembered.Tools(), Settings())


def view(last_clip: int) -> MemoryView:
    return MemoryView(scopes=(Scope(video=V, last_clip=last_clip),))


def search(
    retrievers: Retrievers, mode: Mode, query: str, last_clip: int, focus: int | None
) -> Retrieval | None:
    try:
        return retrievers.search(view(last_clip), mode, query, focus)
    except InputError:
        assert mode is Mode.NEIGHBOR
        return None


def check(found: Retrieval, last_clip: int) -> None:
    """Scores fall in [0, 1]; everything lies in view."""
    scores = [one.score for one in found.evidence]
    assert scores == sorted(scores, reverse=True)
    end = (last_clip + 1) * remembered.CLIP_MS
    for one in found.evidence:
        assert one.video == V
        assert one.span.end_ms <= end
        assert one.clip is None or one.clip <= last_clip
    assert found.evidence or found.nothing_close
    assert type(found).model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize(
    ("mode", "last_clip"),
    sample(
        [*zip(Mode, (5, 3, 7, 0), strict=True), (Mode.VIDEO, -1)], product(Mode, (-1, 0, 3, 5, 7))
    ),
)
def test_every_mode_keeps_its_promises(
    store: Store, retrievers: Retrievers, video: dict[int, int], mode: Mode, last_clip: int
) -> None:
    for query in ["Singing", "Night", "Baking"] if mode is Mode.NEIGHBOR else QUERIES:
        found = search(retrievers, mode, query, last_clip, video[0])
        if found is None:
            continue
        check(found, last_clip)
        assert found.mode is mode
        assert found.query == query
        assert found.searched
        refs = [one.ref for one in found.evidence]
        assert len(set(refs)) == len(refs)
        with store.begin() as session:
            cited = cite(session, view(last_clip), refs)
        assert [one.ref for one in cited.citations] == refs
        for one, evidence in zip(cited.citations, found.evidence, strict=True):
            assert (one.span, one.clip) == (evidence.span, evidence.clip)
        ids = {found.focus.id if found.focus else 0, *(s.id for s in found.neighbours)}
        assert all({edge.source, edge.target} <= ids for edge in found.edges)
        assert found == search(retrievers, mode, query, last_clip, video[0])


@pytest.mark.parametrize("last_clip", [0, in_full(4), 7])
@pytest.mark.parametrize("options", [(), ("a cake", "a ball"), in_full((("Yesterday", "Today"),))])
def test_ranking_keeps_its_promises(
    retrievers: Retrievers, video: dict[int, int], last_clip: int, options: tuple[str, ...]
) -> None:
    for query in QUERIES:
        question = Question(text=query, videos=(V,), options=options)
        ranking = rank(retrievers, view(last_clip), question, limit=4)
        check(ranking, last_clip)
        assert len(ranking.evidence) <= 4
    assert video


@settings(
    max_examples=examples(4, 25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(mode=st.sampled_from(list(Mode)), query=st.text(min_size=1, max_size=40))
def test_any_words_can_be_searched_for(
    retrievers: Retrievers, video: dict[int, int], mode: Mode, query: str
) -> None:
    found = search(retrievers, mode, query.replace("\x00", "?"), 7, video[1])
    if found is not None:
        check(found, 7)


def test_what_is_found_as_of_a_clip_is_the_same_before_and_after_the_rest(store: Store) -> None:
    clips = [[remembered.Said(f"{text or 'hm'} in part {i}", 1)] for i, text in enumerate(LINES)]
    remembered.watch(store, V, clips[:4])
    remembered.add_event_graph(
        store, V, [remembered.Event(0, "All", "Ann bakes and sings.", (0, 1, 2, 3), since=3)]
    )
    remembered.recording(store, V, [1.0, 40.0, 100.0])

    def everything() -> list[Retrieval]:
        fresh = Retrievers(store, remembered.Tools(), Settings())
        modes = (Mode.EVENT, Mode.VIDEO, Mode.KEYFRAME)
        found = [fresh.search(view(3), mode, query) for mode in modes for query in QUERIES]
        questions = [Question(text=query, videos=(V,)) for query in QUERIES]
        return [*found, *(rank(fresh, view(3), question) for question in questions)]

    then = everything()
    remembered.watch(store, V, clips[4:], first=4)
    remembered.recording(store, V, [130.0])
    remembered.name(store, V, 0, "Ada", "<face_0>", since=4)
    remembered.see(store, V, "<face_0>", 121.0, 130.0)
    assert everything() == then
