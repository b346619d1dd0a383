"""MemDreamer's seven tools over a hand-written memory: what each shows, as of each moment."""

from __future__ import annotations

from typing import Any

import pytest

from agent.strategy import ToolUse
from domain.errors import InputError
from domain.moments import Retrieval
from store.database import Store
from store.queries.builds import read_built
from store.queries.clips import memory_view
from strategies.memdreamer import settings
from strategies.memdreamer.tools import HierarchyTools
from tests.support.asking import WordToolbox
from tests.support.full_suite import sample
from tests.support.memdreamer_memory import (
    BUILDER,
    EPISODES,
    HOUSE,
    Part,
    WrittenMemory,
    write_two_hours,
)

OTHER = "ffeeddccbbaa0099"
ARGUMENTS: dict[str, Any] = {
    "get_summary": settings.SummaryArguments,
    "get_super_events": settings.SuperEventsArguments,
    "get_macro_events": settings.MacroEventsArguments,
    "get_subgraph": settings.SubgraphArguments,
    "search_nodes": settings.NodesArguments,
    "search_by_time": settings.TimeArguments,
    "get_relations": settings.RelationsArguments,
}
CLIP_MS = 30_000


class Using:
    """Uses tools on videos as of a moment."""

    def __init__(
        self, store: Store, *videos: str, as_of_ms: int | None = None, without: str = ""
    ) -> None:
        self._tools = HierarchyTools(store, WordToolbox(), BUILDER).by_name()
        self._use = ToolUse(without=frozenset(without.split()))
        with store.begin() as session:
            self._view = memory_view(session, videos or (HOUSE,), as_of_ms)

    def __call__(self, tool: str, **arguments: Any) -> Retrieval:
        return self._tools[tool](self._view, ARGUMENTS[tool](**arguments), self._use)


def ref(store: Store, level: str, number: int, video: str = HOUSE) -> str:
    with store.begin() as session:
        nodes = read_built(session, video, BUILDER).nodes
    return next(f"n{one.id}" for one in nodes if (one.level, one.number) == (level, number))


def entity(store: Store, name: str) -> str:
    with store.begin() as session:
        entities = read_built(session, HOUSE, BUILDER).entities
    return next(f"e{one.id}" for one in entities if one.key.name == name)


def texts(found: Retrieval) -> dict[str, str]:
    return {piece.ref: piece.text for piece in found.evidence}


def test_the_summary_is_the_root_and_the_super_events_with_their_macro_events(house: Store) -> None:
    found = texts(Using(house)("get_summary"))
    root, first, second = found.values()
    assert list(found) == [ref(house, *one) for one in (("root", 0), ("super", 0), ("super", 1))]
    assert root.splitlines() == [
        "whole video: A day: A day at home that ends with guests.",
        "Themes: home; friends",
        "Tone: merry",
    ]
    assert first.splitlines() == [
        "super event: A morning at home: Tea is made, then a bicycle is repaired.",
        f"Macro events: {ref(house, 'macro', 0)}, {ref(house, 'macro', 1)}",
    ]
    assert second.startswith("super event: Painting and dinner: A fence is painted, then guests")


def test_super_events_show_their_edges_with_refs_and_one_its_macro_events(house: Store) -> None:
    use, (first, second) = Using(house), [ref(house, "super", n) for n in (0, 1)]
    shown = texts(use("get_super_events"))
    assert list(shown) == [first, second]
    assert f"CONTRASTS_WITH {first}: it is loud instead of calm" in shown[second].splitlines()
    assert f'BEFORE -> {second} "Painting and dinner"' in shown[first].splitlines()
    assert f'BEFORE <- {first} "A morning at home"' in shown[second].splitlines()
    macros = [ref(house, "macro", n) for n in (0, 1)]
    assert f"{macros[0]} ENABLES {macros[1]}: tea wakes Bob up" in shown[first].splitlines()
    one = texts(use("get_super_events", id=second))
    assert list(one) == [second, ref(house, "macro", 2), ref(house, "macro", 3)]


def test_macro_events_are_those_of_a_super_event_or_those_named(house: Store) -> None:
    use, macros = Using(house), [ref(house, "macro", n) for n in range(4)]
    assert list(texts(use("get_macro_events", super_id=ref(house, "super", 0)))) == macros[:2]
    named = texts(use("get_macro_events", macro_ids=[macros[3], f"[{macros[0]}]", macros[3]]))
    assert list(named) == [macros[3], macros[0]]
    assert named[macros[0]].splitlines() == [
        "macro event: Breakfast in the kitchen: Ann makes tea while Bob reads the newspaper at "
        "the table.",
        f'Key entities: {entity(house, "newspaper")} "newspaper", '
        f'{entity(house, "<face_1>")} "Ann", {entity(house, "Bob")} "Bob", '
        f'{entity(house, "kettle")} "kettle", {entity(house, "balcony")} "balcony"',
    ]


def test_subgraph_has_all_of_a_macro_event_each_with_edges_that_lead_from_it(house: Store) -> None:
    macro = ref(house, "macro", 0)
    found = Using(house)("get_subgraph", macro_id=macro)
    shown = texts(found)
    boils, reads = ref(house, "event", 0), ref(house, "event", 1)
    assert next(iter(shown)) == macro
    assert set(shown) == {macro, boils, reads, ref(house, "text", 0)} | {
        entity(house, one) for one in ("<face_1>", "Bob", "kettle", "newspaper", "balcony")
    }
    assert shown[entity(house, "<face_1>")].splitlines() == [
        "PERSON: Ann: Ann of the persons",
        f"PERFORMS {boils}",
    ]
    assert shown[boils].splitlines() == ["event: Ann boils water in the kettle", f"BEFORE {reads}"]
    assert shown[entity(house, "balcony")] == "OBJECT: balcony: balcony of the objects"
    assert found.searched == f"{macro} with 5 entities, 3 events and texts, 6 edges"


def test_nodes_are_searched_in_one_space_each_with_macro_event_and_neighbours(house: Store) -> None:
    use = Using(house)
    found = use("search_nodes", query="Bob turns a bolt with the wrench", top_k=3)
    best = found.evidence[0]
    assert best.ref == ref(house, "event", 2)
    assert best.text.splitlines() == [
        "event: Bob turns a bolt with the wrench",
        f"In macro event {ref(house, 'macro', 1)}",
        f'PERFORMS <- {entity(house, "Bob")} "Bob"',
        f'USES_TOOL <- {entity(house, "wrench")} "wrench"',
        f'CAUSES -> {ref(house, "event", 3)} "Bob rides the red bicycle"',
    ]
    assert len(found.evidence) == 3
    assert not found.nothing_close
    assert [one.text for one in found.quotes] == ["Bob turns a bolt with the wrench"]
    kinds = {
        kind: {
            piece.ref[0] for piece in use("search_nodes", query="news", node_types=kind).evidence
        }
        for kind in ("entity", "event", "text")
    }
    assert kinds == {"entity": {"e"}, "event": {"n"}, "text": {"n"}}
    assert use("search_nodes", query="DAILY NEWS").evidence[0].ref == ref(house, "text", 0)
    assert use("search_nodes", query="a submarine under polar ice").nothing_close


def test_options_are_supported_by_what_has_their_words(house: Store) -> None:
    options = ("Bob", "Carla")
    found = Using(house)("search_nodes", query="Who sings?", options=options, top_k=2)
    best = max(found.weighed, key=lambda one: max(one.scores))
    assert best.ref == ref(house, "event", 7)
    assert best.scores[1] > best.scores[0]
    assert found.quotes == ()
    opened = Using(house)(
        "get_subgraph", macro_id=ref(house, "macro", 3), query="Who sings?", options=options
    )
    assert opened.weighed == found.weighed  # of the whole memory, whatever is shown


def test_with_options_only_what_bears_on_them_is_kept(store: Store) -> None:
    video = write_two_hours(store)
    use, macro = Using(store, video), ref(store, "macro", 2, video)
    whole = use("get_subgraph", macro_id=macro)
    options = ("the clock strikes 17", "MARK03033", "a submarine")
    part = use("get_subgraph", macro_id=macro, query="What happens?", options=options)
    kept = [piece.ref for piece in part.evidence]
    assert kept == [piece.ref for piece in whole.evidence if piece.ref in set(kept)]
    assert len(kept) <= 10 + len(options) < len(whole.evidence)
    for wanted in ("strikes 17", "MARK03033"):
        assert any(wanted in piece.text for piece in part.evidence)


def test_a_time_shows_what_there_is_then(house: Store) -> None:
    use = Using(house)
    shown = texts(use("search_by_time", start="02:00", end="2:10"))
    assert list(shown) == [ref(house, "macro", 1), ref(house, "event", 2)]
    whole = use("search_by_time", start=0, end="8:00")
    levels = [piece.text.partition(":")[0] for piece in whole.evidence]
    assert levels == ["macro event"] * 4 + ["event"] * 8 + ["screen text"]
    with pytest.raises(InputError, match="what is known ends at 08:00"):
        use("search_by_time", start="9:00", end="9:10")
    with pytest.raises(ValueError, match="is before the start"):
        settings.TimeArguments(start="9:00", end="8:00")
    with pytest.raises(ValueError, match="is not a time"):
        settings.TimeArguments(start="noon", end="8:00")


def test_relations_lead_out_in_or_both_ways(house: Store) -> None:
    use, bob = Using(house), entity(house, "Bob")
    turns, rides = ref(house, "event", 2), ref(house, "event", 3)
    shown = texts(use("get_relations", node_id=bob))
    assert list(shown) == [bob, ref(house, "event", 1), turns, rides]
    assert shown[turns].splitlines() == [
        "event: Bob turns a bolt with the wrench",
        f"In macro event {ref(house, 'macro', 1)}",
        f'{bob} "Bob" PERFORMS {turns} "Bob turns a bolt with the wrench"',
    ]
    assert set(texts(use("get_relations", node_id=rides, direction="in"))) == {rides, bob, turns}
    assert set(texts(use("get_relations", node_id=rides, direction="out"))) == {rides}


@pytest.mark.parametrize("clip", sample((0, 7, 11, 15), range(16)))
def test_as_of_a_clip_nothing_later_is_known(house: Store, clip: int) -> None:
    moment = (clip + 1) * CLIP_MS
    use, done = Using(house, as_of_ms=moment), (clip + 1) // 4
    everything = [
        use("get_summary"),
        use("get_super_events"),
        use("search_nodes", query="Carla and Bob", top_k=50),
    ]
    if done:
        everything.append(use("search_by_time", start="0", end="10:00"))
    pieces = [piece for found in everything for piece in found.evidence]
    assert all(piece.span.end_ms <= moment for piece in pieces)
    said = " ".join(piece.text for piece in pieces)
    for number, episode in enumerate(EPISODES):
        assert (episode.title in said) == (number < done)
        for happened in episode.happens:
            assert (happened.replace("<face_1>", "Ann") in said) == (number < done)
    later = [("macro", done), ("event", 2 * done)] if done < 4 else []
    for level, number in later:
        with pytest.raises(InputError, match="in what is asked about, as of this moment"):
            use("get_relations", node_id=ref(house, level, number))


def test_the_hierarchy_is_that_of_its_moment(house: Store) -> None:
    def supers(clip: int) -> list[str]:
        found = Using(house, as_of_ms=(clip + 1) * CLIP_MS)("get_super_events")
        return [piece.text.splitlines()[0] for piece in found.evidence]

    assert supers(2) == []
    assert supers(3) == supers(6) == ["super event: A morning of tea: The morning begins with tea."]
    assert [one.split(": ")[1] for one in supers(7)] == ["A morning at home"]
    assert [one.split(": ")[1] for one in supers(15)] == [
        "A morning at home",
        "Painting and dinner",
    ]


def test_an_id_of_another_video_or_kind_or_of_nothing_is_refused(house: Store) -> None:
    WrittenMemory(house, OTHER, EPISODES[1:3]).watch()
    part = Part("Work", "Work is done.", (0,))
    WrittenMemory(house, OTHER, EPISODES[1:2]).write([[part]], ["Work."])
    theirs = ref(house, "macro", 0, OTHER)
    use = Using(house)
    for tool, arguments in (
        ("get_subgraph", {"macro_id": theirs}),
        ("get_macro_events", {"macro_ids": [theirs]}),
        ("get_macro_events", {"super_id": ref(house, "super", 0, OTHER)}),
        ("get_relations", {"node_id": theirs}),
        ("get_relations", {"node_id": "e99999"}),
        ("get_super_events", {"id": "n99999"}),
    ):
        with pytest.raises(InputError, match="in what is asked about, as of this moment"):
            use(tool, **arguments)
    with pytest.raises(InputError, match="is no macro event: it is of the kind 'super event'"):
        use("get_subgraph", macro_id=ref(house, "super", 0))
    both = Using(house, HOUSE, OTHER)
    assert both("get_subgraph", macro_id=theirs).evidence[0].video == OTHER
    assert {piece.video for piece in both("get_summary").evidence} == {HOUSE, OTHER}


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (settings.SummaryArguments, {"macro_id": "n1"}),
        (settings.SuperEventsArguments, {"super_id": "n1"}),
        (settings.MacroEventsArguments, {}),
        (settings.MacroEventsArguments, {"super_id": "n1", "macro_ids": ["n2"]}),
        (settings.NodesArguments, {"query": "tea", "node_types": ["face"]}),
        (settings.RelationsArguments, {"node_id": "n1", "direction": "up"}),
    ],
)
def test_arguments_that_a_tool_has_not_are_refused(kind: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"validation error"):
        kind(**arguments)


def test_without_the_hierarchy_macro_events_have_no_summary(house: Store) -> None:
    use = Using(house, without="hierarchy")
    shown = texts(use("get_subgraph", macro_id=ref(house, "macro", 0)))
    assert ref(house, "macro", 0) not in shown
    assert ref(house, "event", 0) in shown
    found = use("search_by_time", start="0", end="2:00")
    assert not any(piece.text.startswith("macro") for piece in found.evidence)


def test_of_a_video_without_a_memory_it_says_what_to_run(store: Store) -> None:
    WrittenMemory(store, HOUSE, EPISODES).watch()
    with pytest.raises(InputError, match=f"homer build {HOUSE}"):
        Using(store)("get_summary")
