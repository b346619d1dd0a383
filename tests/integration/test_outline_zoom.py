"""An outline to zoom into: nodes within nodes, whatever strategy built them, and their graphs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import text
from streamlit.testing.v1 import AppTest

from flows.build import build
from library.outline_zoom import (
    BuiltOutline,
    DrawnEdge,
    GraphVertex,
    NodeGraph,
    ZoomedOutline,
    load_graph,
    load_zoomed,
    outlines_of,
)
from people.across_videos import rename
from store.database import Store
from strategies.registry import find_strategy
from tests.integration.test_outline import watch_party
from tests.support.app_pages import EVIL, app_over, open_page, output, press, words
from tests.support.asking import PARTY, WordToolbox
from tests.support.caption_evaluations import workspace_of
from tests.support.remembered import see
from ui.remembered import as_dot


@pytest.fixture
def party(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    watch_party(store)
    see(store, PARTY, "<face_2>", 400, 410)
    with app_over(store, monkeypatch, WordToolbox):
        yield store


def built(store: Store, *memories: str) -> Store:
    for memory in memories:
        build(workspace_of(store), PARTY, find_strategy(memory), lambda *_: None)
    return store


def outline_of(store: Store) -> BuiltOutline:
    (found,) = outlines_of(store, PARTY)
    return found


def zoomed(store: Store, node: int | None = None, offset: int = 0) -> ZoomedOutline:
    return load_zoomed(store, PARTY, outline_of(store), node, offset, 100)


def test_nothing_is_drawn_where_nothing_was_built(party: Store) -> None:
    assert outlines_of(party, PARTY) == ()
    assert "Outline" not in [one.value for one in open_page("video", video=PARTY).header]


def test_parts_of_a_node_fill_it_and_lead_back_to_it(party: Store) -> None:
    built(party, "memdreamer")
    whole = zoomed(party)
    assert whole.here is not None
    assert (whole.path, whole.noun) == ((), "super event")
    nouns = []
    while whole.parts:
        here = whole.here
        assert here is not None
        assert whole.parts[0].span.start_ms == here.span.start_ms
        assert all(
            here.span.start_ms <= one.span.start_ms < here.span.end_ms for one in whole.parts
        )
        nouns.append(whole.noun)
        whole = zoomed(party, whole.parts[-1].id)
        assert whole.path[-1] == here
    assert (nouns, len(whole.path)) == (["super event", "macro event", "event"], 3)


@pytest.mark.full
def test_parts_come_a_page_at_a_time(party: Store) -> None:
    built(party, "memdreamer")
    macro = zoomed(party, zoomed(party).parts[0].id).parts[0].id
    every = zoomed(party, macro)
    page = load_zoomed(party, PARTY, outline_of(party), macro, 2, 3)
    assert page.parts == every.parts[2:5]
    assert page.total == every.total == len(every.parts)


def test_any_memory_with_levels_has_an_outline(party: Store) -> None:
    built(party, "worldmm")
    whole = zoomed(party)
    assert whole.total
    assert zoomed(party, whole.parts[0].id).total > 1
    graph = load_graph(party, PARTY, outline_of(party), whole.parts[0].id)
    assert graph is not None
    assert "Ann" in {one.name for one in graph.vertices}


@pytest.mark.full
def test_people_of_a_graph_are_those_of_the_page_of_people(party: Store) -> None:
    built(party, "memdreamer")
    macro = zoomed(party, zoomed(party).parts[0].id).parts[0].id
    graph = load_graph(party, PARTY, outline_of(party), macro)
    assert graph is not None
    assert [(one.name, one.person) for one in graph.people] == [("Ann", 1)]
    assert any(one.is_node and "washes" in one.name for one in graph.vertices)
    by_id = {one.id: one for one in graph.vertices}
    assert "Ann" in [by_id[one.subject].name for one in graph.edges if one.label == "performs"]
    rename(party, PARTY, "1", "Ada")
    after = load_graph(party, PARTY, outline_of(party), macro)
    assert after is not None
    assert [one.name for one in after.people] == ["Ada"]


def test_a_node_without_a_graph_of_its_own_shows_how_its_parts_follow(party: Store) -> None:
    built(party, "memdreamer")
    whole = zoomed(party)
    assert whole.here is not None
    graph = load_graph(party, PARTY, outline_of(party), whole.here.id)
    assert graph is not None
    assert {one.label for one in graph.edges} >= {"before"}
    assert all(one.is_node for one in graph.vertices)
    assert load_graph(party, PARTY, outline_of(party), 999_999) is None


def test_a_press_zooms_in_and_another_leads_back(party: Store) -> None:
    built(party, "memdreamer")
    page = open_page("video", video=PARTY)
    whole = zoomed(party)
    part = whole.parts[0]
    press(page, part.title)
    assert output(page, "outline") == str(part.id)
    assert part.text in words(page)
    assert whole.here is not None
    press(page, f"← {whole.here.title}")
    assert output(page, "outline") == str(whole.here.id)


def test_a_graph_is_drawn_once_it_is_asked_for_and_links_its_people(party: Store) -> None:
    built(party, "memdreamer")
    macro = zoomed(party, zoomed(party).parts[0].id).parts[0].id
    page = open_page("video", video=PARTY, outline=macro)
    assert _graphs(page) == []
    page.toggle(key=f"graph_{macro}").set_value(True).run()
    assert len(_graphs(page)) == 1
    assert "\nAnn\n" in words(page)
    assert "<face_" not in words(page)


def _graphs(page: AppTest) -> list[object]:
    return list(page.get("graphviz_chart"))


@pytest.mark.full
def test_several_memories_are_chosen_from(party: Store) -> None:
    built(party, "memdreamer", "worldmm")
    page = open_page("video", video=PARTY)
    box = next(one for one in page.selectbox if one.label == "Made of")
    assert len(box.options) == 2
    box.select_index(1).run()
    assert not page.exception
    assert "caption" in words(page)


def test_no_words_are_instructions_of_a_graph(party: Store) -> None:
    bad = f'a"]; b -> c [label="{EVIL}\\N'
    vertices = (GraphVertex(id=1, name=bad, kind="person"), GraphVertex(id=2, name="b", kind="x"))
    edge = DrawnEdge(subject=1, label=bad, target=2)
    graph = NodeGraph(vertices=vertices, edges=(edge,), vertices_total=2, edges_total=1, people=())
    text = as_dot(graph)
    assert text.count("->") == 1 + 2
    assert 'label="a\\"]; b -> c' in text
    assert text.count("\\\\N") == 2


@pytest.mark.full
def test_an_entity_of_an_altered_import_breaks_no_graph(party: Store) -> None:
    built(party, "memdreamer")
    outline = outline_of(party)
    kinds = list(outline.strategy.node_types)
    nodes = [one.id for one in zoomed(party).parts]
    with party.begin() as session:
        change = (
            "UPDATE entities SET name = repeat('9', 20) || name WHERE type = ANY(:kinds) "
            "RETURNING id"
        )
        assert session.execute(text(change), {"kinds": kinds}).all()
    assert nodes
    for node in nodes:
        load_graph(party, PARTY, outline, node)
