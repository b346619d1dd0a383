"""Searching a real store: the four modes, ranking, citing, and never what comes later."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from domain.asking import Aim, Mode, Question
from domain.errors import InputError, NotFound
from domain.memories import MemoryView, Scope
from domain.moments import Retrieval, UnknownLabel
from domain.settings import Settings
from domain.time import TimeSpan
from models.ports import Image, Vector
from nodes.search_steps import neighbours
from retrieval.quotes_and_citations import cite
from retrieval.retrievers import Retrievers
from store.database import Store
from store.tables.schema import CharacterMemberRow
from tests.support.ranking import rank, shares
from tests.support.remembered import (
    Event,
    Said,
    Tools,
    add_event_graph,
    identity_of,
    name,
    recording,
    see,
    watch,
)

V = "0123456789abcdef"
W = "fedcba9876543210"

CLIPS = [
    [Said("We bake an apple cake in the kitchen", 2), Said("Pass me the flour please", 9)],
    [Said("The oven is hot now", 1), Said("Careful with the glass bowl", 20)],
    [Said("Oh no, the glass bowl broke on the floor", 5), Said("Sweep the shards away", 12)],
    [Said("Let us walk the dog in the park", 3), Said("The dog chases a red ball", 15)],
    [Said("The train to Paris leaves at noon", 4), Said("I bought two tickets", 11)],
]
EVENTS = [
    Event(0, "Baking a cake", "An apple cake is baked in the kitchen.", (0, 1), since=4),
    Event(1, "The bowl breaks", "A glass bowl broke and the shards are swept.", (2,), since=4),
    Event(2, "Walk in the park", "The dog is walked in the park.", (3,), since=4),
    Event(3, "Trip to Paris", "Tickets for the train to Paris are bought.", (4,), since=4),
]
EDGES = [(0, 1, "before", 4), (1, 2, "before", 4), (2, 3, "before", 4), (0, 3, "enables", 4)]


@pytest.fixture
def ids(store: Store) -> dict[int, int]:
    """Segment ids of a watched and woven video, by number."""
    watch(store, V, CLIPS)
    return add_event_graph(store, V, EVENTS, EDGES)


@pytest.fixture
def retrievers(store: Store) -> Retrievers:
    return Retrievers(store, Tools(), Settings())


def seen(last_clip: int = 4, as_of_ms: int | None = None, video: str = V) -> MemoryView:
    return MemoryView(scopes=(Scope(video=video, last_clip=last_clip),), as_of_ms=as_of_ms)


def texts(found: Retrieval) -> list[str]:
    return [one.text for one in found.evidence]


def falling(found: Retrieval) -> bool:
    scores = [one.score for one in found.evidence]
    return scores == sorted(scores, reverse=True)


# EVENT


def test_event_finds_it_with_neighbours(retrievers: Retrievers, ids: dict[int, int]) -> None:
    found = retrievers.search(seen(), Mode.EVENT, "the glass bowl broke")
    assert (found.focus and found.focus.label) == "The bowl breaks"
    assert {s.label for s in found.neighbours} == {"Baking a cake", "Walk in the park"}
    assert {(e.source, e.target) for e in found.edges} == {(ids[0], ids[1]), (ids[1], ids[2])}
    assert found.evidence[0].ref == f"s{ids[1]}"
    assert found.evidence[0].span == TimeSpan.of(60_000, 90_000)
    assert falling(found)
    assert not found.nothing_close


def test_neighbours_are_ranked_by_the_query_and_limited(store: Store, ids: dict[int, int]) -> None:
    settings = Settings()
    ask = settings.ask.model_copy(update={"event_neighbours": 1})
    one = Retrievers(store, Tools(), settings.model_copy(update={"ask": ask}))
    found = one.search(seen(), Mode.EVENT, "broken glass bowl, then the dog in the park")
    assert found.focus is not None
    by_label = {"The bowl breaks": "Walk in the park", "Walk in the park": "The bowl breaks"}
    assert [s.label for s in found.neighbours] == [by_label[found.focus.label]]
    assert all(
        {e.source, e.target} == {found.focus.id, found.neighbours[0].id} for e in found.edges
    )
    assert ids


def test_event_without_segments_says_so(store: Store, retrievers: Retrievers) -> None:
    watch(store, V, CLIPS)
    found = retrievers.search(seen(), Mode.EVENT, "the glass bowl broke")
    assert found.focus is None
    assert found.nothing_close
    assert "there are no events yet" in found.searched


# VIDEO


def test_video_shows_best_clips_of_the_focus(retrievers: Retrievers, ids: dict[int, int]) -> None:
    found = retrievers.search(seen(), Mode.VIDEO, "careful with the glass bowl", focus=ids[0])
    assert texts(found)[0] == "Careful with the glass bowl"
    assert found.evidence[0].span == TimeSpan.of(50_000, 52_000)
    assert {one.clip for one in found.evidence} == {0, 1}
    assert falling(found)


def test_video_passes_over_clips_shown(retrievers: Retrievers, ids: dict[int, int]) -> None:
    first = retrievers.search(seen(), Mode.VIDEO, "careful with the glass bowl", focus=ids[0])
    shown = frozenset(one.ref for one in first.evidence if one.clip == 1)
    again = retrievers.search(seen(), Mode.VIDEO, "careful with the glass bowl", ids[0], shown)
    assert {one.clip for one in again.evidence} == {0}
    every = frozenset(one.ref for one in first.evidence)
    nothing = retrievers.search(seen(), Mode.VIDEO, "the glass bowl", ids[0], every)
    assert nothing.evidence == ()
    assert nothing.nothing_close


def test_what_was_not_shown_of_clip_is_unseen(retrievers: Retrievers, ids: dict[int, int]) -> None:
    first = retrievers.search(seen(), Mode.VIDEO, "careful with the glass bowl", focus=ids[0])
    shown = frozenset({first.evidence[0].ref})
    again = retrievers.search(seen(), Mode.VIDEO, "careful with the glass bowl", ids[0], shown)
    assert "The oven is hot now" in texts(again)
    assert "Careful with the glass bowl" not in texts(again)


def test_video_without_focus_makes_event_first(retrievers: Retrievers, ids: dict[int, int]) -> None:
    found = retrievers.search(seen(), Mode.VIDEO, "the train to Paris")
    assert (found.focus and found.focus.id) == ids[3]
    assert texts(found)[0] == "The train to Paris leaves at noon"
    assert "Trip to Paris" in found.searched


def test_video_without_segments_searches_every_clip(store: Store, retrievers: Retrievers) -> None:
    watch(store, V, CLIPS)
    found = retrievers.search(seen(), Mode.VIDEO, "the dog chases a red ball")
    assert found.focus is None
    assert texts(found)[0] == "The dog chases a red ball"


def test_a_question_about_a_person_searches_them(store: Store, retrievers: Retrievers) -> None:
    clips = [
        [Said("<face_0> opens the door", source="seen", who=("<face_0>",)), Said("Hello there", 5)],
        [Said("<face_1> reads a book", source="seen", who=("<face_1>",))],
        [Said("I am going home", speaker="<voice_2>", who=("<voice_2>",))],
    ]
    watch(store, V, clips)
    events = [Event(0, "Arrival", "A door opens.", (0,), 2), Event(1, "Rest", "Home.", (1, 2), 2)]
    ids = add_event_graph(store, V, events)
    name(store, V, 0, "Ada", "<face_0>", "<voice_2>")
    inside = retrievers.search(seen(2), Mode.VIDEO, "what does Ada do", focus=ids[0])
    assert texts(inside) == ["Ada opens the door"]
    tagged = retrievers.search(seen(2), Mode.VIDEO, "what does <face_1> do", focus=ids[1])
    assert "Ada: I am going home" in texts(tagged)
    by_name = retrievers.search(seen(2), Mode.VIDEO, "where does Ada go", focus=ids[1])
    assert texts(by_name) == ["Ada: I am going home"]
    assert "Ada" in by_name.searched


def test_memories_of_person_that_were_shown_make_room(store: Store, retrievers: Retrievers) -> None:
    lines = [Said(f"<face_0> counts to {i}", i, who=("<face_0>",)) for i in range(14)]
    watch(store, V, [lines])
    name(store, V, 0, "Ada", "<face_0>")
    first = retrievers.search(seen(0), Mode.VIDEO, "what does Ada count")
    shown = frozenset(one.ref for one in first.evidence)
    rest = retrievers.search(seen(0), Mode.VIDEO, "what does Ada count", seen=shown)
    assert len(rest.evidence) == 4
    assert not shown & {one.ref for one in rest.evidence}


def test_clips_with_words_of_the_query_come_first(store: Store, retrievers: Retrievers) -> None:
    watch(store, V, [[Said("zebra")], [Said("rain")], [Said("snow")], [Said("sun")]])
    found = retrievers.search(seen(3), Mode.VIDEO, "the zebra")
    assert texts(found)[0] == "zebra"
    assert not found.nothing_close
    again = retrievers.search(seen(3), Mode.VIDEO, "the zebra", seen=frozenset({"m1"}))
    assert "zebra" not in texts(again)


def test_a_person_missing_in_focus_is_sought_all_over(store: Store, retrievers: Retrievers) -> None:
    clips = [[Said("<face_0> sings", source="seen", who=("<face_0>",))], [Said("It rains")]]
    watch(store, V, clips)
    ids = add_event_graph(
        store, V, [Event(0, "Song", "A song.", (0,), 1), Event(1, "Rain", "It.", (1,), 1)]
    )
    name(store, V, 0, "Ada", "<face_0>")
    found = retrievers.search(seen(1), Mode.VIDEO, "what does Ada do", focus=ids[1])
    assert texts(found) == ["Ada sings"]


def test_what_mentions_a_person_is_looked_up_once_until_there_is_more(
    store: Store, retrievers: Retrievers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def what_ada_does(last_clip: int) -> list[str]:
        return sorted(texts(retrievers.search(seen(last_clip), Mode.VIDEO, "what does Ada do")))

    watch(store, V, [[Said("<face_0> sings", source="seen", who=("<face_0>",)), Said("It rains")]])
    name(store, V, 0, "Ada", "<face_0>")
    assert what_ada_does(0) == ["Ada sings"]
    more = [Said("I am cold", speaker="<voice_1>", who=("<voice_1>",)), Said("So it is")]
    watch(store, V, [more], first=1)
    with store.begin() as session:
        voice = identity_of(session, V, "<voice_1>")
        session.add(CharacterMemberRow(identity_id=voice, number=0, from_clip=1))
    assert what_ada_does(1) == ["Ada sings", "Ada: I am cold"]
    assert what_ada_does(0) == ["Ada sings"]


def test_a_name_is_not_known_before_it_was_given(store: Store, retrievers: Retrievers) -> None:
    watch(store, V, [[Said("<face_0> sings", source="seen", who=("<face_0>",))], [Said("Rain")]])
    name(store, V, 0, "Ada", "<face_0>", since=1)
    assert texts(retrievers.search(seen(0), Mode.VIDEO, "who sings")) == ["<face_0> sings"]
    assert texts(retrievers.search(seen(1), Mode.VIDEO, "what does Ada do")) == ["Ada sings"]


# NEIGHBOR


def test_neighbor_moves_along_an_edge_by_label(retrievers: Retrievers, ids: dict[int, int]) -> None:
    found = retrievers.search(seen(), Mode.NEIGHBOR, "  trip to PARIS", focus=ids[0])
    assert (found.focus and found.focus.id) == ids[3]
    assert {s.id for s in found.neighbours} == {ids[0], ids[2]}
    back = retrievers.search(seen(), Mode.NEIGHBOR, "Baking a cake", focus=ids[3])
    assert (back.focus and back.focus.id) == ids[0]


def test_neighbor_names_the_labels_there_are(retrievers: Retrievers, ids: dict[int, int]) -> None:
    with pytest.raises(UnknownLabel) as refused:
        retrievers.search(seen(), Mode.NEIGHBOR, "Walk in the park", focus=ids[0])
    assert set(refused.value.valid) == {"The bowl breaks", "Trip to Paris"}
    assert "The bowl breaks" in str(refused.value)


def test_neighbor_needs_a_focus(retrievers: Retrievers, ids: dict[int, int]) -> None:
    with pytest.raises(InputError, match="search EVENT first"):
        retrievers.search(seen(), Mode.NEIGHBOR, "Baking a cake")
    assert ids


# KEYFRAME


@pytest.fixture
def recorded_video(store: Store, ids: dict[int, int]) -> dict[int, int]:
    times = [2.0, 10.0, 20.0, 31.0, 45.0, 51.0, 65.0, 95.0]
    recording(store, V, times, {2.0: "APPLE CAKE", 51.0: "DANGER"})
    name(store, V, 0, "Ada", "<face_0>")
    see(store, V, "<face_0>", 1.5, 4.0)
    see(store, V, "<face_1>", 50.0, 52.0)
    return ids


def test_keyframe_spreads_images(retrievers: Retrievers, recorded_video: dict[int, int]) -> None:
    found = retrievers.search(
        seen(), Mode.KEYFRAME, "careful with the glass bowl", recorded_video[0]
    )
    assert len(found.images) == 5
    first, second = found.images[:2]
    assert first.time_ms == 51_000
    assert {first.clip, second.clip} == {0, 1}
    assert [one.ref for one in found.evidence] == [image.ref for image in found.images]
    assert found.evidence[0].span.start_ms == 51_000
    assert falling(found)


def test_keyframe_describes_images(retrievers: Retrievers, recorded_video: dict[int, int]) -> None:
    found = retrievers.search(seen(), Mode.KEYFRAME, "we bake an apple cake", recorded_video[0])
    shown = {image.time_ms: image.description for image in found.images}
    assert "in view: Ada" in shown[2_000]
    assert "text on screen: APPLE CAKE" in shown[2_000]
    assert "We bake an apple cake in the kitchen" in shown[2_000]
    if 51_000 in shown:
        assert "<face_1>" in shown[51_000]


def test_keyframe_finds_the_things_and_the_text_on_an_image(
    store: Store, retrievers: Retrievers, ids: dict[int, int]
) -> None:
    things = {20.0: ["person", "person", "laptop"], 10.0: ["cup"]}
    recording(store, V, [2.0, 10.0, 20.0, 45.0], {45.0: "MIND THE GAP"}, things)
    for query, time_ms, output in (
        ("people with laptops", 20_000, "seen: 2 people, a laptop"),
        ("on the laptop", 20_000, "seen: 2 people, a laptop"),
        ("a sign says mind the gap", 45_000, "text on screen: MIND THE GAP"),
    ):
        best = retrievers.search(seen(), Mode.KEYFRAME, query, ids[0]).images[0]
        assert (best.time_ms, output in best.description) == (time_ms, True)
        with store.begin() as session:
            (cited,) = cite(session, seen(), [best.ref]).citations
        assert output in cited.text


class Likeness:
    """An image-text model that likes one image."""

    name = "likeness"
    close = 0.5

    def images(self, images: list[Image]) -> NDArray[np.float32]:
        return np.array([[1.0, 0.0]] * len(images), dtype=np.float32)

    def text(self, text: str) -> Vector:
        return np.array([1.0, 0.0], dtype=np.float32)


def test_keyframe_uses_image_text_similarity_where_there_is_such_a_model(
    store: Store, recorded_video: dict[int, int]
) -> None:
    from sqlalchemy import update

    from store.tables.schema import KeyframeRow

    with store.begin() as session:
        session.execute(update(KeyframeRow).values(embedding=[0.1, 0.9]))
        liked = update(KeyframeRow).where(KeyframeRow.time_ms == 45_000)
        session.execute(liked.values(embedding=[0.9, 0.1]))
    found = Retrievers(store, Tools(images=Likeness()), Settings()).search(
        seen(), Mode.KEYFRAME, "anything", recorded_video[0]
    )
    assert found.images[0].time_ms == 45_000
    assert found.images[0].score == pytest.approx(0.9)
    # Without a focus, not only the event that words suggest is looked at.
    anywhere = Retrievers(store, Tools(images=Likeness()), Settings()).search(
        seen(), Mode.KEYFRAME, "a dog in the park"
    )
    assert anywhere.images[0].time_ms == 45_000


# As of


def test_what_is_written_later_is_not_seen(store: Store, retrievers: Retrievers) -> None:
    watch(store, V, CLIPS)
    add_event_graph(
        store,
        V,
        [
            Event(0, "Kitchen", "Somebody bakes.", (0, 1), since=1, until=3),
            Event(0, "Kitchen", "Somebody bakes and the glass bowl broke.", (0, 1, 2), since=3),
            Event(1, "Outside", "A dog in the park.", (3,), since=3),
        ],
    )
    early = retrievers.search(seen(2), Mode.EVENT, "the glass bowl broke")
    assert early.focus is not None
    assert early.focus.summary == "Somebody bakes."
    assert early.focus.clips == (0, 1)
    late = retrievers.search(seen(3), Mode.EVENT, "the glass bowl broke")
    assert late.focus is not None
    assert late.focus.summary == "Somebody bakes and the glass bowl broke."
    assert late.focus.clips == (0, 1, 2)


def test_a_superseded_line_is_gone_after_its_clip(store: Store, retrievers: Retrievers) -> None:
    watch(store, V, [[Said("The key is in the drawer", until=2)], [Said("Hm")], [Said("Tea?")]])
    where = "where is the key"
    assert texts(retrievers.search(seen(1), Mode.VIDEO, where))[0] == "The key is in the drawer"
    assert "The key is in the drawer" not in texts(retrievers.search(seen(2), Mode.VIDEO, where))


def test_nothing_in_view_is_no_error(store: Store, retrievers: Retrievers) -> None:
    watch(store, V, CLIPS)
    for mode in (Mode.EVENT, Mode.VIDEO, Mode.KEYFRAME):
        found = retrievers.search(seen(-1), mode, "anything at all")
        assert found.nothing_close
        assert found.evidence == ()
    assert rank(retrievers, seen(-1), Question(text="Anything?", videos=(V,))).nothing_close


def test_an_unknown_video_is_named(retrievers: Retrievers) -> None:
    with pytest.raises(NotFound, match=W):
        retrievers.search(seen(video=W), Mode.VIDEO, "anything at all")


# Ranking


def test_ranking_finds_and_quotes_the_moment(retrievers: Retrievers, ids: dict[int, int]) -> None:
    question = Question(text="When does the train to Paris leave?", videos=(V,))
    ranking = rank(retrievers, seen(), question)
    assert ranking.evidence[0].span == TimeSpan.of(124_000, 126_000)
    aim = Aim(text=question.text, moments=5)
    found = retrievers.search(seen(), Mode.EVENT, question.text, aim=aim)
    assert found.quotes[0].text.startswith("The train to Paris leaves at noon")
    assert found.quotes[0].refs[0] == ranking.evidence[0].ref
    assert len({one.clip for one in ranking.evidence}) == len(ranking.evidence)
    assert ids


def test_a_model_is_shown_the_line_with_the_words_of_its_query_and_what_came_right_after(
    store: Store, retrievers: Retrievers
) -> None:
    """Many lines are nearly alike: the one with all the words is shown, whatever the event."""
    who, what = ("Ann", "Ben", "Eve", "Max", "Zoe"), ("vase", "mug", "lamp", "drum")
    told = [[Said(f"{a} hides the striped {b}")] for b in what for a in who]
    watch(store, V, [*told, [Said("The bus leaves")]])
    aim = Aim(text="Max hides the striped mug", moments=5, quotes=False)
    found = retrievers.search(seen(20), Mode.EVENT, aim.text, aim=aim)
    shown = texts(found)
    after = [f"{a} hides the striped mug" for a in ("Eve", "Zoe")]
    assert "Max hides the striped mug" in shown
    assert set(after) <= set(shown)
    assert found.quotes == ()


def test_a_model_is_told_what_joins_the_event_of_the_best_line_where_another_is_in_focus(
    store: Store, retrievers: Retrievers
) -> None:
    watch(store, V, [[Said("The bus leaves")], [Said("Max hides the mug")], [Said("Rain falls")]])
    events = [
        Event(0, "Max hides the mug", "Max hides the mug", (0,), 2),
        Event(1, "Noon", "Noon", (1,), 2),
        Event(2, "Weather", "Rain", (2,), 2),
    ]
    ids = add_event_graph(store, V, events, [(2, 1, "causes", 2)])
    told = Aim(text="Max hides the mug", moments=5, quotes=False)
    found = retrievers.search(seen(2), Mode.EVENT, told.text, aim=told)
    assert (found.focus and found.focus.id) == ids[0]
    (edge,) = neighbours(found)
    assert (edge.ref, edge.of) == (f"s{ids[2]}", f"s{ids[1]}")
    rules = retrievers.search(seen(2), Mode.EVENT, told.text, aim=Aim(text=told.text, moments=5))
    assert rules.neighbours == ()


def test_ranking_weighs_options_and_says_why(retrievers: Retrievers, ids: dict[int, int]) -> None:
    options = ("The mirror", "The glass bowl", "The window")
    question = Question(text="What broke on the floor?", videos=(V,), options=options)
    ranking = rank(retrievers, seen(), question)
    relevance = retrievers._preparation.context(seen(), question.text, options).relevance
    assert relevance is not None
    assert options[int(shares(relevance).argmax())] == "The glass bowl"
    assert "bowl" in ranking.evidence[0].text
    assert ids


@pytest.mark.parametrize("query", ["xylophone quartz", "volcano eruption in Iceland"])
def test_nothing_close_is_said(retrievers: Retrievers, ids: dict[int, int], query: str) -> None:
    for mode in (Mode.EVENT, Mode.VIDEO):
        assert retrievers.search(seen(), mode, query).nothing_close
    assert rank(retrievers, seen(), Question(text=query, videos=(V,))).nothing_close
    assert ids


def test_several_videos_are_ranked_together(store: Store, retrievers: Retrievers) -> None:
    watch(store, V, CLIPS)
    watch(store, W, [[Said("A volcano erupts in Iceland")], [Said("Ash covers the village")]])
    both = MemoryView(scopes=(Scope(video=V, last_clip=4), Scope(video=W, last_clip=1)))
    question = Question(text="Where did the volcano erupt?", videos=(V, W))
    ranking = rank(retrievers, both, question)
    assert ranking.evidence[0].video == W
    assert ranking.evidence[0].text == "A volcano erupts in Iceland"
    other = Question(text="Where does the train leave to?", videos=(V, W))
    assert rank(retrievers, both, other).evidence[0].video == V


# Citing


def test_refs_resolve_to_rows_in_view_and_unknown_ones_are_reported(
    store: Store, retrievers: Retrievers, recorded_video: dict[int, int]
) -> None:
    memory = retrievers.search(seen(), Mode.VIDEO, "the train to Paris").evidence[0].ref
    frame = retrievers.search(seen(), Mode.KEYFRAME, "apple cake", recorded_video[0]).images[0].ref
    refs = [memory, f"[s{recorded_video[1]}]", frame, memory, "m999999", "nonsense", ""]
    with store.begin() as session:
        found = cite(session, seen(), refs)
    assert [one.ref for one in found.citations] == [memory, f"s{recorded_video[1]}", frame]
    assert found.citations[0].text == "The train to Paris leaves at noon"
    assert found.citations[0].span == TimeSpan.of(124_000, 126_000)
    assert found.citations[1].span == TimeSpan.of(60_000, 90_000)
    assert found.unknown == ("m999999", "nonsense", "")


def test_nothing_later_than_the_view_can_be_cited(
    store: Store, retrievers: Retrievers, recorded_video: dict[int, int]
) -> None:
    late = retrievers.search(seen(), Mode.VIDEO, "the train to Paris").evidence[0].ref
    frame = (
        retrievers.search(seen(), Mode.KEYFRAME, "dog in the park", recorded_video[2]).images[0].ref
    )
    refs = [late, frame, f"s{recorded_video[3]}"]
    with store.begin() as session:
        assert cite(session, seen(2), refs).unknown == tuple(refs)
        assert cite(session, seen(4), refs).unknown == ()
        other = MemoryView(scopes=(Scope(video=W, last_clip=9),))
        assert cite(session, other, refs).unknown == tuple(refs)
