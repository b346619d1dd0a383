"""A person who is forgotten is nowhere any more: no table, file or message has them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select, text

from domain.asking import Mode
from domain.errors import InputError, NotFound
from domain.media import Box, Group, Percept, SeenObject
from domain.skills import JudgedTrajectory, Signal
from domain.time import TimeSpan
from library.memory import dump_lines, show_video
from memory.delete_span import delete_span
from people.across_videos import rename
from people.corrections import history, keep_apart, merge, split, undo
from people.forget import forget, restore_forgotten
from perception.source import previews_of
from retrieval.retrievers import Retrievers
from store.database import Store
from store.queries.characters import characters_at
from store.queries.clips import memory_view
from store.queries.evaluations import plan_slots
from store.queries.learning import add_observations, put_judgement
from store.tables.schema import BlobRow, KeyframeRow, MessageRow, ModelCallRow, ObjectRow
from tests.support.altered_exports import export_with
from tests.support.evaluation_rows import evaluated, slot
from tests.support.event_graphs import update_event_graph
from tests.support.full_video import ask
from tests.support.library_templates import FilledLibraries
from tests.support.memory import (
    SETTINGS,
    VIDEO,
    Tools,
    WordVectors,
    face,
    keyframe,
    known_video,
    local_writers,
    memorise,
    percept,
    said,
    text_at,
    voice,
)

# Their trajectories are made up.
pytestmark = pytest.mark.usefixtures("tampered")

CROP, FRAME, OTHER = b"a crop of Ada", b"a frame with Ada", b"a crop of Omar"
SHA = {data: hashlib.sha256(data).hexdigest() for data in (CROP, FRAME, OTHER)}


def cropped(group: Group, data: bytes) -> Group:
    seen = tuple(one.model_copy(update={"blob": SHA[data]}) for one in group.sightings)
    return group.model_copy(update={"sightings": seen})


def thing_at(time_s: float, label: str) -> SeenObject:
    box = Box(x0=0, y0=0, x1=2, y1=2)
    return SeenObject(time_ms=round(1000 * time_s), label=label, score=0.8, box=box)


def scenes() -> Iterator[Percept]:
    """Ada Lovelace speaks in view, Omar speaks of her in view, Ada is there again."""
    yield percept(
        0,
        faces=(cropped(face(0, 1, (0, 9)), CROP),),
        voices=(voice(0, 1, (0, 9)),),
        utterances=(said(0, "My name is Ada Lovelace. The lighthouse is green.", 0, seconds=9),),
        keyframes=(keyframe(4, SHA[FRAME]),),
        screen_texts=(text_at(4, "ADA LOVELACE"), text_at(4, "Professor", row=1)),
        objects=(thing_at(4, "person"), thing_at(8, "cup")),
        subtitles=(said(0, "I, Ada, built the lighthouse."),),
    )
    yield percept(
        1,
        faces=(cropped(face(0, 2, (30, 39)), OTHER),),
        voices=(voice(0, 2, (30, 39)),),
        utterances=(
            said(30, "My name is Omar. Yesterday Ada told me a story.", 0, seconds=9),
            said(40, "The adage says that Mrs. Lovelace's boats sail.", 0, seconds=3),
        ),
    )
    yield percept(
        2,
        faces=(face(0, 1, (60, 62)), face(1, 2, (60, 62))),
        voices=(voice(0, 1, (63, 70)),),
        utterances=(said(63, "The boats are green because I like it.", 0, seconds=7),),
    )


@pytest.fixture
def talk(store: Store, libraries: FilledLibraries) -> Store:
    libraries.fill(store, watch_talk)
    return store


def watch_talk(store: Store) -> None:
    """The video with patches, a judged answer, its messages, and corrections."""
    known_video(store, 3)
    files = {SHA[data]: data for data in (CROP, FRAME, OTHER)}
    for one in scenes():
        of = {s.blob for group in one.faces for s in group.sightings if s.blob}
        blobs = {sha: files[sha] for sha in of | {k.blob for k in one.keyframes}}
        memorise(store, one, blobs=blobs)
    rename(store, VIDEO, "Ada Lovelace", "Countess Byron")
    rename(store, VIDEO, "Omar", "Omar Khayyam")
    assert update_event_graph(store, VIDEO, local_writers(), Tools(), SETTINGS, is_final=True) == 1
    ask(store, "t1", "What did Ada say?", VIDEO)
    with store.begin() as session:
        session.add(MessageRow(hash="m", content={"role": "user", "content": "<voice_0> is Ada"}))
        session.flush()
        session.add(
            ModelCallRow(
                request_hash="r",
                purpose="write",
                profile="p",
                model="m",
                messages=["m"],
                reply={"text": "Countess Byron speaks"},
                tokens_in=1,
                tokens_out=1,
                cost_usd=0.0,
                ms=1,
                video_id=VIDEO,
                clip=0,
            )
        )
        judged = JudgedTrajectory(trajectory="t1", question_type="why", right=True)
        put_judgement(session, judged)
        add_observations(session, judged, [Signal.SEARCH_WIN])
    evaluated(store, "t1", VIDEO)
    unasked = slot("Who is Ada?", VIDEO)
    with store.begin() as session:
        plan_slots(session, "run", [unasked])


_CLOCK = re.compile(r'"(?:(?:created_at|updated_at)": "[^"]+"|rewritten": \d+)')


def everything(store: Store) -> Iterator[tuple[str, str]]:
    """Every row of every table of every schema of ours, as text, and every stored file."""
    tables = text(
        "SELECT table_schema || '.' || table_name FROM information_schema.tables "
        "WHERE table_schema NOT IN ('pg_catalog', 'information_schema') AND table_name <> 'audit'"
    )
    with store.begin() as session:
        for table in session.scalars(tables).all():
            # Who is in which character is written anew, under other ids, when people change.
            whole = "to_jsonb(t) - 'id'" if ".character_" in table else "to_jsonb(t)"
            for row in session.scalars(text(f"SELECT ({whole})::text FROM {table} t")):  # noqa: S608
                yield table, _CLOCK.sub("", row.replace(VIDEO, ""))
    for sha, _ in store.blobs.walk():
        yield "file", f"{sha} {store.blobs.get(sha)!r}"


TRACES = (
    *("lovelace", "byron", "countess", "ada", "face_0", "voice_0", "character_0"),
    *(SHA[CROP], SHA[FRAME]),
)


def left(store: Store) -> list[tuple[str, str, str]]:
    return [
        (trace, table, row)
        for table, row in everything(store)
        for trace in TRACES
        # A random id may have "ada" among its digits.
        if re.search(rf"(?<![a-z\d]){trace}(?![a-z\d])", row.casefold())
    ]


def people(store: Store) -> list[tuple[int, str | None, tuple[int, ...], tuple[int, ...]]]:
    with store.begin() as session:
        found = [one.character for one in characters_at(session, VIDEO, 99)]
    return [(one.number, one.name, one.faces, one.voices) for one in found]


def test_a_forgotten_person_is_nowhere_any_more(talk: Store) -> None:
    assert {trace for trace, *_ in left(talk)} >= {"lovelace", "byron", "face_0", SHA[CROP]}
    vectors = exemplars(talk)
    previews_of(talk.home, VIDEO).mkdir(parents=True)
    done = forget(talk, VIDEO, "Countess Byron", WordVectors())
    assert not previews_of(talk.home, VIDEO).exists()
    assert (done.number, done.images, done.answers, left(talk)) == (0, 2, 1, [])
    assert exemplars(talk) < vectors
    assert people(talk) == [(2, "Omar Khayyam", (1,), (1,))]


def exemplars(store: Store) -> set[str]:
    with store.begin() as session:
        return set(session.scalars(text("SELECT vector::text FROM exemplars")))


def test_the_words_stay_as_somebody_s_with_vectors_of_their_own(talk: Store) -> None:
    forget(talk, VIDEO, "0", WordVectors())
    lines = [line.text for clip in show_video(talk, VIDEO).clips for line in clip.lines]
    assert "somebody: My name is somebody. The lighthouse is green." in lines
    assert "Omar Khayyam: My name is Omar. Yesterday somebody told me a story." in lines
    assert any("The adage says that Mrs. somebody's boats sail." in line for line in lines)
    assert "<face_0>" not in json.dumps(lines)
    with talk.begin() as session:
        rows = session.execute(
            text("SELECT text, speaker, embedding::text FROM memories WHERE speaker = 'somebody'")
        ).all()
    assert rows
    for said_text, speaker, vector in rows:
        (fresh,) = WordVectors().embed([f"{speaker}: {said_text}"])
        assert json.loads(vector) == pytest.approx(fresh.tolist(), abs=1e-3)


def test_kept_and_brought_back_all_is_as_it_was(talk: Store, tmp_path: Path) -> None:
    before, rows = list(dump_lines(talk, VIDEO)), sorted(everything(talk))
    # A link that ended with its answer does not begin again.
    rows = [
        row for row in rows if row[0] != "public.shared_links" or '"trajectory_id": null' in row[1]
    ]
    forget(talk, VIDEO, "0", WordVectors(), tmp_path / "ada.zip")
    assert left(talk) == []
    assert restore_forgotten(talk, VIDEO, tmp_path / "ada.zip") > 20
    assert (list(dump_lines(talk, VIDEO)), sorted(everything(talk))) == (before, rows)
    assert undo(talk, VIDEO).number == 2


def test_a_name_with_letters_of_any_language_goes_in_whatever_case(store: Store) -> None:
    known_video(store, 1)
    one = percept(
        0,
        utterances=(
            said(1, "I am at home.", speaker="Émile Zolá"),
            said(5, "ÉMILE ZOLÁ is at home, says émile zolá.", speaker='Omar "O" Ray'),
        ),
    )
    memorise(store, one)
    forget(store, VIDEO, "émile zolá", WordVectors())
    shown = [line.text for line in show_video(store, VIDEO).clips[0].lines]
    assert shown == ["somebody: I am at home.", 'Omar "O" Ray: somebody is at home, says somebody.']
    forget(store, VIDEO, 'omar "o" ray', WordVectors())
    assert not re.search("Omar|Ray|(?i:zolá)", "".join(row for _, row in everything(store)))


def test_others_keep_what_was_theirs_and_voices_that_were_joined_go_home(talk: Store) -> None:
    split(talk, VIDEO, "0", ["voice_0"], "Ruth")
    forget(talk, VIDEO, "face_0", WordVectors())
    assert people(talk) == [(1, "Ruth", (), (0,)), (2, "Omar Khayyam", (1,), (1,))]
    assert talk.blobs.exists(SHA[OTHER])
    assert not talk.blobs.exists(SHA[CROP])
    assert [one.told for one in history(talk, VIDEO)] == [
        "About somebody who was forgotten",
        "Renamed Omar (person 2) to Omar Khayyam",
        "Split voice 0 off somebody (person 0), as Ruth",
    ]


def test_a_search_under_way_shows_them_only_when_they_are_back(talk: Store, tmp_path: Path) -> None:
    tools: Any = SimpleNamespace(text=WordVectors(), reranker=None, images=None)
    retrievers = Retrievers(talk, tools, SETTINGS)

    def found() -> str:
        with talk.begin() as session:
            view = memory_view(session, [VIDEO])
        modes = [(Mode.VIDEO, "the green boats of Ada"), (Mode.EVENT, "Ada tells of a lighthouse")]
        searches = [retrievers.search(view, mode, query) for mode, query in modes]
        return " | ".join(one.text for search in searches for one in search.evidence)

    before = found()
    assert "Byron" in before
    forget(talk, VIDEO, "0", WordVectors(), tmp_path / "ada.zip")
    assert not re.search("Byron|Ada|Lovelace|<face_0>|<voice_0>", found())
    assert "somebody" in found()
    restore_forgotten(talk, VIDEO, tmp_path / "ada.zip")
    assert found() == before


def test_what_was_seen_on_their_keyframes_goes_with_them(talk: Store, tmp_path: Path) -> None:
    def things() -> list[str]:
        with talk.begin() as session:
            return sorted(session.scalars(select(ObjectRow.label)))

    forget(talk, VIDEO, "0", WordVectors(), tmp_path / "ada.zip")
    assert things() == ["cup"]
    restore_forgotten(talk, VIDEO, tmp_path / "ada.zip")
    assert things() == ["cup", "person"]


def test_a_file_that_another_video_has_too_stays(talk: Store) -> None:
    known_video(talk, 1, "f" * 16)
    with talk.begin() as session:
        session.add(BlobRow(video_id="f" * 16, sha256=SHA[FRAME], size=3))
        frame = keyframe(4, SHA[FRAME]).model_dump(exclude={"vector", "likeness", "image_encoder"})
        session.add(KeyframeRow(video_id="f" * 16, clip=0, **frame))
    forget(talk, VIDEO, "0", WordVectors())
    assert talk.blobs.exists(SHA[FRAME])


def test_watching_goes_on_and_the_number_is_not_given_again(talk: Store) -> None:
    merge(talk, VIDEO, "2", "0")
    forget(talk, VIDEO, "0", WordVectors())
    assert people(talk) == []
    known_more(talk)
    memorise(talk, percept(3, faces=(face(0, 1, (90, 92)),)))
    assert [number for number, *_ in people(talk)] == [4]


@pytest.mark.full
def test_who_was_met_since_is_not_lost_by_bringing_one_back(talk: Store, tmp_path: Path) -> None:
    forget(talk, VIDEO, "Omar", WordVectors(), tmp_path / "omar.zip")
    known_more(talk)
    memorise(talk, percept(3, faces=(face(0, 2, (90, 92)),)))
    before = sorted(everything(talk))
    with pytest.raises(InputError, match="were met since"):
        restore_forgotten(talk, VIDEO, tmp_path / "omar.zip")
    assert sorted(everything(talk)) == before


@pytest.mark.full
def test_bringing_one_back_brings_back_none_forgotten_since(talk: Store, tmp_path: Path) -> None:
    forget(talk, VIDEO, "0", WordVectors(), tmp_path / "ada.zip")
    forget(talk, VIDEO, "Omar", WordVectors(), tmp_path / "omar.zip")
    before = sorted(everything(talk))
    with pytest.raises(InputError, match="deleted or forgotten since"):
        restore_forgotten(talk, VIDEO, tmp_path / "ada.zip")
    assert sorted(everything(talk)) == before
    restore_forgotten(talk, VIDEO, tmp_path / "omar.zip")
    restore_forgotten(talk, VIDEO, tmp_path / "ada.zip")


@pytest.mark.full
def test_bringing_one_back_brings_back_no_deleted_span(talk: Store, tmp_path: Path) -> None:
    forget(talk, VIDEO, "0", WordVectors(), tmp_path / "ada.zip")
    delete_span(talk, VIDEO, TimeSpan.of(0, 1000), WordVectors(), SETTINGS.memory)
    with pytest.raises(InputError, match="deleted or forgotten since"):
        restore_forgotten(talk, VIDEO, tmp_path / "ada.zip")


def test_what_was_said_of_nobody_else_is_no_more_but_its_number_is_stored(talk: Store) -> None:
    forget(talk, VIDEO, "Omar", WordVectors())
    first, second = history(talk, VIDEO)
    assert (first.undone, second.told, second.undone) == (
        False,
        "About somebody who was forgotten",
        True,
    )
    assert (undo(talk, VIDEO).number, rename(talk, VIDEO, "0", "Grace").number) == (1, 3)


def test_who_was_kept_apart_from_the_forgotten_one_is_stored_apart_from_nobody(talk: Store) -> None:
    keep_apart(talk, VIDEO, "0", "Omar")
    forget(talk, VIDEO, "Omar", WordVectors())
    last = history(talk, VIDEO)[-1]
    assert (last.told, last.outcomes, last.undone) == ("About somebody who was forgotten", (), True)


def known_more(store: Store) -> None:
    with store.begin() as session:
        session.execute(
            text(
                "INSERT INTO clips (video_id, clip, start_ms, end_ms, state, attempts, gaps, text) "
                "VALUES (:video, 3, 90000, 120000, 'pending', 0, '[]', '')"
            ),
            {"video": VIDEO},
        )


@pytest.mark.full
def test_what_cannot_be_kept_is_not_forgotten(talk: Store, tmp_path: Path) -> None:
    before = list(dump_lines(talk, VIDEO))
    (tmp_path / "there.zip").write_text("mine")
    with pytest.raises(InputError, match="is there already"):
        forget(talk, VIDEO, "0", WordVectors(), tmp_path / "there.zip")
    with pytest.raises(InputError, match="is in Homer's own data"):
        forget(talk, VIDEO, "0", WordVectors(), talk.home.root / "kept.zip")
    with pytest.raises(InputError, match="cannot be written"):
        forget(talk, VIDEO, "0", WordVectors(), tmp_path / "no" / "such.zip")
    with pytest.raises(NotFound, match="nobody goes by"):
        forget(talk, VIDEO, "Bob", WordVectors())
    assert list(dump_lines(talk, VIDEO)) == before
    assert (tmp_path / "there.zip").read_text() == "mine"


def test_a_file_of_something_else_brings_nothing_back(talk: Store, tmp_path: Path) -> None:
    other = tmp_path / "other.zip"
    other.write_bytes(b"PK no zip")
    with pytest.raises(InputError, match=r"no file of --keep-undo"):
        restore_forgotten(talk, VIDEO, other)
    forget(talk, VIDEO, "0", WordVectors(), tmp_path / "ada.zip")
    known_video(talk, 1, "f" * 16)
    with pytest.raises(InputError, match="is not of video ffff"):
        restore_forgotten(talk, "f" * 16, tmp_path / "ada.zip")
    for table in ("skills", "group_members", "enforced_rights"):
        odd = export_with(
            tmp_path / "ada.zip",
            tmp_path / "odd.zip",
            lambda rows: rows.append([table, "{}"]),  # noqa: B023
        )
        with pytest.raises(InputError, match=r"no file of --keep-undo"):
            restore_forgotten(talk, VIDEO, odd)


def test_the_command_asks_and_says_how_to_undo(talk: Store, homer: Any, tmp_path: Path) -> None:
    before = list(dump_lines(talk, VIDEO))

    code, _, output = homer("people", "forget", VIDEO, "0", answer="n\n")
    assert code == 1
    assert "cannot be undone" in output
    assert list(dump_lines(talk, VIDEO)) == before
    keep = str(tmp_path / "ada.zip")
    code, out, output = homer("people", "forget", VIDEO, "0", "--yes", "--keep-undo", keep)
    assert (code, out.startswith("person 0 is forgotten")) == (0, True)
    assert f"homer people undo {VIDEO} --from {keep}" in output
    assert left(talk) == []
    assert homer("people", "undo", VIDEO, "--from", keep)[0] == 0
    assert list(dump_lines(talk, VIDEO)) == before
