"""Searching a large library: the likeliest videos are chosen first, then searched."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sqlalchemy import select, update

from domain.asking import Mode, Question
from domain.memories import MemoryView, Scope
from domain.search import Aim
from domain.settings import Settings
from graphs.runner import Runner
from retrieval import video_selection as selection
from retrieval.citations import cite
from retrieval.result import Retrieval
from retrieval.retrievers import Retrievers
from store.database import Store
from store.queries import candidates as stored_selection
from store.queries import search
from store.tables.schema import MemoryRow
from tests.support.asking import WordToolbox
from tests.support.remembered import Event, Said, Tools, add_event_graph, name, watch
from tests.support.statements import statements

VIDEOS = 9
CHOSEN = 3
FIRST_MENTION = Aim(text="When is the lamp of the kitchen first mentioned?", moments=3)


def video(number: int) -> str:
    return f"{number:016x}"


@pytest.fixture
def retrievers(store: Store, monkeypatch: pytest.MonkeyPatch) -> Retrievers:
    """Search a library that counts as large, of which three videos are chosen."""
    monkeypatch.setattr(selection, "MOST_VIDEOS", CHOSEN)
    monkeypatch.setattr(selection, "MOST_CLIPS", 2 * CHOSEN)
    monkeypatch.setattr(search, "WIDE", CHOSEN)
    monkeypatch.setattr(selection, "BY_QUESTION", 2 * CHOSEN)
    monkeypatch.setattr(stored_selection, "FREQUENT", CHOSEN)
    ask = Settings().ask.model_copy(update={"video_clips": VIDEOS})
    return Retrievers(store, Tools(), Settings(ask=ask))


def fill(store: Store, special: Sequence[Said], number: int = VIDEOS - 1) -> None:
    """Add videos of somebody in the kitchen, one with other lines besides."""
    for other in range(VIDEOS):
        lines = [Said(f"<face_0> at the lamp of the kitchen {100 + other}", 2, who=("<face_0>",))]
        watch(store, video(other), [lines, list(special) if other == number else []])


def view(last_clip: int = 1, videos: int = VIDEOS) -> MemoryView:
    return MemoryView(
        scopes=tuple(Scope(video=video(n), last_clip=last_clip) for n in range(videos))
    )


def videos_of(found: Retrieval) -> set[str]:
    return {one.video for one in found.evidence}


def test_the_video_with_the_nearest_line_is_searched(store: Store, retrievers: Retrievers) -> None:
    fill(store, [Said("A zebra crosses the river", 4)])
    found = retrievers.search(view(), Mode.VIDEO, "Which zebra crosses the river?")
    assert found.evidence[0].text == "A zebra crosses the river"
    assert not found.nothing_close
    assert len(videos_of(found)) <= CHOSEN
    assert f"in the likeliest {CHOSEN} of {VIDEOS} videos" in found.searched


def test_a_rare_word_finds_its_video_however_far(store: Store, retrievers: Retrievers) -> None:
    said = "Umbrella, says somebody who talks of taxes, weather, trains, soup and of football"
    fill(store, [Said(said, 4)])
    found = retrievers.search(view(), Mode.VIDEO, "the lamp of the kitchen and an umbrella")
    assert said in [one.text for one in found.evidence]


def test_a_person_is_sought_where_lines_name_them(store: Store, retrievers: Retrievers) -> None:
    fill(store, [])
    name(store, video(4), 0, "Ottilie", "<face_0>")
    query = "What does Ottilie do at the lamp of the kitchen 102, or of the kitchen 103 or 106?"
    assert videos_of(retrievers.search(view(), Mode.VIDEO, query)) == {video(4)}


def test_nothing_later_than_view_is_chosen_or_found(store: Store, retrievers: Retrievers) -> None:
    fill(store, [Said("A zebra crosses the river", 4)])
    found = retrievers.search(view(0), Mode.VIDEO, "Which zebra crosses the river?")
    assert found.nothing_close
    assert all("zebra" not in one.text for one in found.evidence)


def test_video_in_focus_is_searched_whatever_is_asked(store: Store, retrievers: Retrievers) -> None:
    fill(store, [Said("A zebra crosses the river", 4)])
    last = video(VIDEOS - 1)
    ids = add_event_graph(store, last, [Event(0, "A crossing", "An animal crosses.", (1,), 1)], [])
    found = retrievers.search(view(), Mode.VIDEO, "the lamp of the kitchen", focus=ids[0])
    assert videos_of(found) == {last}


@pytest.mark.usefixtures("retrievers")
def test_an_answer_says_that_only_some_videos_were_searched(store: Store) -> None:
    fill(store, [Said("A zebra crosses the river", 4)])
    question = Question(text="Which zebra crosses the river?", videos=view().videos)
    with Runner(store, WordToolbox()) as runner:
        made = runner.ask(question)
    assert "only the likeliest were searched" in made.answer.note
    assert made.answer.citations[0].video == video(VIDEOS - 1)


def test_events_of_other_videos_are_not_denied(store: Store, retrievers: Retrievers) -> None:
    fill(store, [])
    add_event_graph(store, video(4), [Event(0, "A crossing", "A zebra crosses.", (1,), 1)], [])
    found = retrievers.search(view(), Mode.EVENT, "Which zebra crosses the river?")
    assert found.searched.startswith("no event is in these videos")


def test_a_small_library_is_searched_whole(store: Store, retrievers: Retrievers) -> None:
    fill(store, [])
    found = retrievers.search(view(videos=CHOSEN), Mode.VIDEO, "the lamp of the kitchen")
    assert "likeliest" not in found.searched
    assert not found.selected
    assert videos_of(found) == {video(n) for n in range(CHOSEN)}


def test_first_mention_is_not_told_from_some_videos(store: Store, retrievers: Retrievers) -> None:
    fill(store, [])
    found = retrievers.search(view(), Mode.VIDEO, "the lamp", aim=FIRST_MENTION)
    assert "likeliest" in found.searched
    assert found.selected
    assert not any(quote.kind == "structure" for quote in found.quotes)


def test_videos_without_clips_make_no_library_large(
    store: Store, retrievers: Retrievers, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, [])
    monkeypatch.setattr(selection, "MOST_CLIPS", CHOSEN)
    monkeypatch.setattr(selection, "BY_QUESTION", 1)
    empty = tuple(Scope(video=video(n), last_clip=-1) for n in range(CHOSEN, VIDEOS))
    few = MemoryView(scopes=(*view(videos=CHOSEN).scopes, *empty))
    found = retrievers.search(few, Mode.VIDEO, "Which zebra crosses the river?")
    assert "likeliest" not in found.searched


@pytest.mark.parametrize("mode", [Mode.EVENT, Mode.VIDEO, Mode.KEYFRAME])
def test_nothing_is_found_without_vectors_to_compare_and_words_that_match(
    store: Store, retrievers: Retrievers, mode: Mode
) -> None:
    fill(store, [])
    with store.begin() as session:
        session.execute(update(MemoryRow).values(embedding=[1.0, 0.0]))
    found = retrievers.search(view(), mode, "Which zebra crosses the river?")
    assert found.nothing_close


def test_only_lines_in_view_make_it_frequent(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_selection, "FREQUENT", CHOSEN)
    watch(store, video(0), [[Said("A zebra crosses the river")], [Said("A zebra")] * CHOSEN])
    with store.begin() as session:
        early, late = (view(last, videos=1).scopes for last in (0, 1))
        chosen = stored_selection.videos_with_words(session, early, [["zebra"]])
        assert chosen == {0: [video(0)]}
        assert stored_selection.videos_with_words(session, late, [["zebra"]]) == {}


def test_citing_reads_the_videos_of_its_refs_only(store: Store) -> None:
    fill(store, [Said("A zebra crosses the river", 4)])
    last = view().model_copy(update={"scopes": view().scopes[-1:]})
    with store.begin() as session:
        (line,) = session.scalars(select(MemoryRow.id).where(MemoryRow.text.contains("zebra")))
        found = {}
        for seen in (last, view()):
            with statements(session) as sent:
                resolved = cite(session, seen, [f"m{line}", "m999"])
            found[len(sent)] = resolved
    (resolved,) = found.values()
    assert [one.video for one in resolved.citations] == [video(VIDEOS - 1)]
    assert resolved.unknown == ("m999",)
