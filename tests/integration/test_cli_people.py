"""``homer people`` as a user types it, and that everything shows the corrected names at once."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from domain.asking import Mode
from domain.settings import Settings
from memory.patches import WrittenEdge, WrittenPatch, WrittenSegment
from memory.writers.port import EventWindow, Writers
from retrieval.quotes_and_citations import cite
from retrieval.retrievers import Retrievers
from store.database import Store
from store.queries.characters import characters_at
from store.queries.clips import memory_view
from tests.support.commands import data
from tests.support.event_graphs import update_event_graph
from tests.support.memory import (
    SETTINGS,
    VIDEO,
    Perceived,
    Tools,
    WordVectors,
    face,
    known_video,
    local_writers,
    memorise,
    percept,
    remember,
    said,
    voice,
)
from tests.support.remembered import Tools as SearchTools


def homer(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["people", *arguments])


class Told:
    """Tells of everybody by name."""

    name = "told"

    def patch(self, window: EventWindow) -> WrittenPatch:
        output = " ".join(line.attributed_text for line in window.lines)
        draft = WrittenSegment(label="Ada at the harbour", summary=output, clips=window.new)
        edges: tuple[WrittenEdge, ...] = ()
        return WrittenPatch(segments=(draft,), edges=edges)

    def repair(self, window: EventWindow, *_: object) -> WrittenPatch:
        return self.patch(window)


@pytest.fixture
def talk(store: Store, database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Ada speaks of a lighthouse in view, somebody speaks of ships out of view."""
    monkeypatch.setenv("HOMER_DATABASE_URL", database)
    known_video(store, 2)
    writers = Writers(local_writers().clip, Told())
    first = percept(
        0,
        faces=(face(0, 1, (0, 9)),),
        voices=(voice(0, 1, (0, 9)),),
        utterances=(said(0, "My name is Ada. The lighthouse is green.", 0, seconds=9),),
    )
    second = percept(
        1,
        voices=(voice(0, 2, (30, 36)),),
        utterances=(said(30, "The ships carry coffee to Lisbon.", 0, seconds=6),),
    )
    for one in (first, second):
        remember(store, VIDEO, Perceived(one), writers, Tools(), SETTINGS)
    assert update_event_graph(store, VIDEO, writers, Tools(), SETTINGS, is_final=True) == 1
    return f"video {VIDEO[:4]}"


def test_a_session_of_corrections_as_it_reads(talk: str) -> None:
    renamed = homer("rename", talk, "voice_1", "Ruth")
    assert (renamed.exit_code, renamed.stdout) == (0, "1: Named person 2 Ruth\n")
    assert f"undo it with: homer people undo {VIDEO} 1" in renamed.stderr
    merged = homer("merge", talk, "ruth", "Ada").stdout
    assert merged == "2: Merged Ruth (person 2) into Ada (person 0)\n"
    parted = homer("split", talk, "0", "face_0", "voice_0", "--name", "Zoe")
    assert parted.stdout == "3: Split face 0 and voice 0 off Ruth (person 0), as Zoe\n"
    refused = homer("undo", talk, "1")
    assert refused.exit_code == 2
    assert f"homer people undo {VIDEO} 3" in refused.stderr
    assert homer("undo", talk).stdout == f"{parted.stdout.strip()}  (undone)\n"
    assert [line.endswith("(undone)") for line in homer("history", talk).stdout.splitlines()] == [
        *(False, False),
        True,
    ]
    assert [one["undone"] for one in data(homer("history", talk, "--json"))] == [
        *(False, False),
        True,
    ]
    assert [one["label"] for one in data(homer(talk, "--json"))] == ["Ruth"]


def all_that_is_told(store: Store, video: str) -> str:
    """Whatever shows people: a search of each kind, its citations, and the whole video."""
    with store.begin() as session:
        view = memory_view(session, [VIDEO])
    retrievers = Retrievers(store, SearchTools(WordVectors()), Settings())
    found = [
        retrievers.search(view, mode, "who carries coffee to Lisbon").evidence
        for mode in (Mode.VIDEO, Mode.EVENT)
    ]
    texts = [one.text for some in found for one in some]
    with store.begin() as session:
        cited = cite(session, view, [one.ref for some in found for one in some])
    assert sorted(one.text for one in cited.citations) == sorted(texts)
    lines = CliRunner().invoke(app, ["show", video]).stdout.splitlines()
    return "\n".join([*texts, *(line for line in lines if "<character_0>  " not in line)])


@pytest.mark.parametrize("number", ["0", "1"])
def test_who_was_merged_goes_by_one_name_everywhere(
    number: str, store: Store, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen and heard are one: the voice's own number and tag are nobody's any more."""
    monkeypatch.setenv("HOMER_DATABASE_URL", database)
    known_video(store, 2)
    writers = Writers(local_writers().clip, Told())
    # Somebody is seen (0), somebody is heard (1), and neither has a name.
    seen = percept(0, faces=(face(0, 1, (0, 9)),))
    words = (said(30, "The ships carry coffee to Lisbon.", 0, seconds=6),)
    heard = percept(1, voices=(voice(0, 2, (30, 36)),), utterances=words)
    for one in (seen, heard):
        remember(store, VIDEO, Perceived(one), writers, Tools(), SETTINGS)
    assert update_event_graph(store, VIDEO, writers, Tools(), SETTINGS, is_final=True) == 1
    nobody = VIDEO[:6]
    before = all_that_is_told(store, nobody)
    assert "<voice_0>: The ships" in before
    homer("merge", nobody, {"0": "1", "1": "0"}[number], number)
    after = all_that_is_told(store, nobody)
    assert "<voice_0>" not in after.replace("<face_0> <voice_0>", "")
    assert f"<character_{number}>: The ships" in after
    assert f"<character_{number}> is on screen" in after
    homer("rename", nobody, number, "Ruth")
    named = all_that_is_told(store, nobody)
    assert "Ruth: The ships" in named
    assert "Ruth is on screen" in named
    homer("undo", nobody)
    homer("undo", nobody)
    assert all_that_is_told(store, nobody) == before


def test_speaker_whom_captions_name_goes_by_name_that_person_gave(store: Store, talk: str) -> None:
    known_video(store, 1, "e" * 16)
    one = percept(0, utterances=(said(1, "The office is closed.", speaker="OMAR"),))
    memorise(store, one, video="e" * 16)
    assert homer("rename", "eee", "Omar", "Omar Farouk").exit_code == 0
    shown = CliRunner().invoke(app, ["show", "eee"]).stdout
    assert "said: Omar Farouk: The office is closed." in shown
    with store.begin() as session:
        (person,) = characters_at(session, "e" * 16, 0)
    assert person.character.aliases == ("OMAR",)
