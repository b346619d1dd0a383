"""A span that was deleted is a gap: nothing of it is left, and it is never watched again."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select, text, update

from domain import faults
from domain.asking import Mode
from domain.calls import CallRecord
from domain.errors import InputError
from domain.media import ClipState, IdentityKind
from domain.time import TimeSpan
from flows.removal import delete_video_span, preview_span_deletion
from flows.uploads import store_upload
from flows.workspace import Workspace
from library.memory import dump_lines, show_video
from library.videos import all_videos, check_video
from memory.delete_span import list_deleted_spans
from models.profile import load_profile
from people.across_videos import rename
from people.corrections import history
from retrieval.retrievers import Retrievers
from store.database import Store
from store.queries.clips import clips_of, mark_clip, memory_view, next_clips
from store.queries.identities import known_identities
from store.queries.outline import segments_at
from store.queries.trajectories import add_call, list_trajectories
from store.queries.videos import video_state
from store.tables.schema import (
    ClipRow,
    EdgeRow,
    IdentityRow,
    MemoryRow,
    SegmentRevisionRow,
    SegmentRow,
    TrajectoryEventRow,
    TrajectoryRow,
    VideoRow,
)
from tests.integration.test_forget import everything
from tests.support.full_video import ask, fill
from tests.support.library_templates import FilledLibraries
from tests.support.memory import (
    VIDEO,
    Perceived,
    Tools,
    WordVectors,
    direction,
    local_writers,
    memorise,
    remember,
)
from tests.support.span_deletion import (
    KEPT,
    SECRETS,
    SETTINGS,
    SHA,
    SPAN,
    cut,
    scenes,
    update_graph,
    watch_talk,
)

# Their trajectories are made up.
pytestmark = pytest.mark.usefixtures("tampered")


@pytest.fixture
def talk(store: Store, libraries: FilledLibraries) -> Store:
    libraries.fill(store, watch_talk)
    return store


SAID_LATER = "<character_2>: Omar says good night to the boats and the lighthouse."
"""Said by somebody whose name was only told in the span."""


def left(store: Store) -> set[str]:
    """The secrets that are still somewhere: in a row of any table, in a file, in an answer."""
    rows = "\n".join(f"{table} {row}" for table, row in everything(store)).lower()
    return {secret for secret in SECRETS if secret in rows}


def lines(store: Store) -> list[str]:
    return [one.text for clip in show_video(store, VIDEO).clips for one in clip.lines]


def people(store: Store) -> list[tuple[int, str]]:
    return [(one.number, one.label) for one in show_video(store, VIDEO).people]


def runs(store: Store) -> set[str]:
    with store.begin() as session:
        return {one.id for one in list_trajectories(session)}


def test_all_that_is_of_the_span_is_gone_and_the_rest_is_there(talk: Store) -> None:
    assert left(talk) == set(SECRETS)
    kept = [one for one in lines(talk) if not re.search("(?i)zanzibar|marmalade|petra", one)]
    gone = cut(talk)
    assert (left(talk), gone.clips, gone.images, gone.people) == (set(), 2, 3, 2)
    assert any("is on screen" in one for one in kept)
    of_rest = {"Ada Lovelace: The boats come home to the green lighthouse at night."}
    assert of_rest < set(lines(talk)) < {*kept, "<character_2> is on screen.", SAID_LATER}
    assert talk.blobs.get(SHA[KEPT]) == KEPT


def test_it_is_a_gap_of_whole_clips_that_needs_no_watching(talk: Store) -> None:
    cut(talk)
    assert list_deleted_spans(talk, VIDEO) == [TimeSpan.of(60_000, 120_000)]
    shown = show_video(talk, VIDEO)
    assert [clip.state for clip in shown.clips] == ["done"] * 2 + ["deleted"] * 2 + ["done"] * 2
    assert shown.last_clip == 5
    (entry,) = all_videos(talk).items
    assert (entry.clips, entry.done, entry.failed) == (6, 6, 0)
    with talk.begin() as session:
        state = video_state(session, VIDEO)
    assert state is not None
    assert (state.done, state.failed) == (6, 0)


def test_it_is_never_watched_again(talk: Store) -> None:
    cut(talk)
    before = list(dump_lines(talk, VIDEO))
    for one in list(scenes())[2:4]:
        done = remember(talk, VIDEO, Perceived(one), local_writers(), Tools(), SETTINGS)
        assert done is ClipState.DONE
    with talk.begin() as session:
        assert next_clips(session, VIDEO, again=True) == []
        mark_clip(session, VIDEO, 2, ClipState.FAILED, "the disk was full")
        assert clips_of(session, VIDEO)[2].state is ClipState.DELETED
    update_graph(talk)
    assert list(dump_lines(talk, VIDEO)) == before


def test_what_is_deleted_before_it_was_watched_is_never_watched(store: Store) -> None:
    watch_talk(store, 2)
    cut(store)
    with store.begin() as session:
        assert [one.index for one in next_clips(session, VIDEO)] == [4, 5]
    for one in list(scenes())[2:]:
        memorise(store, one)
        update_graph(store)
    assert (left(store), check_video(store, VIDEO).findings) == (set(), ())


def test_people_are_known_by_what_else_was_seen_of_them(talk: Store) -> None:
    named = [(0, "Ada Lovelace"), (2, "Omar Zanzibar"), (4, "<character_4>"), (5, "Petra")]
    assert people(talk) == named
    cut(talk)
    assert people(talk) == [(0, "Ada Lovelace"), (2, "<character_2>")]
    with talk.begin() as session:
        faces = known_identities(session, VIDEO, IdentityKind.FACE)
        rows = select(IdentityRow.number, IdentityRow.first_clip).where(IdentityRow.kind == "face")
        began = dict(session.execute(rows).all())
    # Of Omar no vector is left to know him by: those that were kept were of the span.
    assert [list(one.centre) for one in faces] == [pytest.approx(list(direction(1)), abs=1e-3)]
    assert began == {0: 0, 1: 5}


def test_a_name_that_is_said_again_holds_from_there_on(talk: Store) -> None:
    with talk.begin() as session:
        session.execute(
            text("UPDATE character_names SET name = 'Omar' WHERE name = 'Omar Zanzibar'")
        )
    cut(talk)
    then = show_video(talk, VIDEO, as_of=150_000)
    assert [one.label for one in then.people if "Omar" in one.label] == []
    assert (2, "Omar") in people(talk)


def test_what_people_said_of_those_who_are_gone_goes_with_them(talk: Store) -> None:
    rename(talk, VIDEO, "5", "Petra Rubinstein")
    rename(talk, VIDEO, "0", "Countess Byron")
    cut(talk)
    assert "Rubinstein" not in "\n".join(row for _, row in everything(talk))
    first, second = history(talk, VIDEO)
    assert (first.told, first.undone) == ("About somebody who was forgotten", True)
    assert second.told == "Renamed Ada Lovelace (person 0) to Countess Byron"
    assert (0, "Countess Byron") in people(talk)


def test_events_within_go_and_those_that_reach_beyond_are_reported_anew(talk: Store) -> None:
    with talk.begin() as session:
        before = segments_at(session, VIDEO, 5)
    assert any(set(one.clips) & {2, 3} and set(one.clips) - {2, 3} for one in before)
    cut(talk)
    with talk.begin() as session:
        after = segments_at(session, VIDEO, 5)
        row = SegmentRevisionRow
        embedded = select(row.segment_id, row.embedding).where(row.to_clip.is_(None))
        stored: dict[int, Any] = dict(session.execute(embedded).all())
    assert all(not {2, 3} & set(one.clips) for one in after)
    assert sorted({clip for one in after for clip in one.clips}) == [0, 1, 4, 5]
    vectors = WordVectors()
    for one in after:
        assert one.summary
        (fresh,) = vectors.embed([f"{one.label}. {one.summary}"])
        assert list(stored[one.id]) == pytest.approx(fresh.tolist(), abs=1e-2)
    for moment in (60_000, 120_000, 180_000, None):
        assert check_video(talk, VIDEO, moment).findings == ()


@pytest.mark.full
def test_events_go_on_from_what_is_left(store: Store) -> None:
    watch_talk(store, 4)
    cut(store)
    for one in list(scenes())[4:]:
        memorise(store, one)
    assert (update_graph(store), check_video(store, VIDEO).findings) == (1, ())
    assert left(store) == set()


def test_an_edge_that_rests_on_it_in_part_says_so(talk: Store) -> None:
    with talk.begin() as session:
        ids = list(session.scalars(select(SegmentRow.id).order_by(SegmentRow.number)))[:2]
        ends = {"source_id": ids[0], "target_id": ids[-1], "explicit": True, "confidence": 0.5}
        for relation, evidence in (("enables", [1, 2]), ("requires", [2, 3])):
            made = {"relation": relation, "rationale": "marmalade", "from_clip": 5}
            session.add(EdgeRow(video_id=VIDEO, evidence=evidence, **ends, **made))
    cut(talk)
    with talk.begin() as session:
        added = EdgeRow.relation.in_(("enables", "requires"))
        edges = session.scalars(select(EdgeRow).where(added))
        assert [(e.relation, e.evidence, e.rationale) for e in edges] == [
            ("enables", [1], "Part of what this rested on was deleted.")
        ]


def leak(store: Store, words: str) -> None:
    """A model that was shown the secret repeats it of a later clip."""
    with store.begin() as session:
        output = {"kind": "plot", "source": "model", "start_ms": 150_000, "end_ms": 160_000}
        session.add(MemoryRow(video_id=VIDEO, clip=5, text=words, embedding=[1.0] * 64, **output))
        here = (ClipRow.video_id == VIDEO, ClipRow.clip == 5)
        session.execute(update(ClipRow).where(*here).values(text=ClipRow.text + "\n" + words))
        revision = select(SegmentRevisionRow.id).order_by(SegmentRevisionRow.id.desc()).limit(1)
        last = SegmentRevisionRow.id == revision.scalar_subquery()
        session.execute(update(SegmentRevisionRow).where(last).values(summary=words))
        session.execute(update(EdgeRow).values(rationale=words))


def test_what_a_model_repeated_later_goes_too(talk: Store) -> None:
    before = lines(talk)
    leak(talk, "The men still look for the marmalade.")
    cut(talk)
    assert left(talk) == set()
    assert set(lines(talk)) <= {*before, "<character_2> is on screen.", SAID_LATER}
    with talk.begin() as session:
        last = session.get_one(ClipRow, (VIDEO, 5))
        assert "good night to the boats" in last.text
        vectors = session.scalars(select(MemoryRow.embedding).where(MemoryRow.clip == 5))
        near = [list(one) for one in vectors if one is not None]
    # The vectors of lines are not made of the name any more that was told in the span.
    fresh = WordVectors().embed([SAID_LATER.partition(" ")[2]])
    assert near[0] == pytest.approx(fresh[0].tolist(), abs=1e-2)
    assert list(last.embedding or []) != near[0]


def test_words_that_the_rest_has_too_take_nothing_with_them(talk: Store) -> None:
    leak(talk, "The lighthouse is green at night.")
    cut(talk)
    assert "The lighthouse is green at night." in lines(talk)


def test_answers_that_were_shown_any_of_it_go_and_others_stay(talk: Store) -> None:
    with talk.begin() as session:
        rows = session.execute(select(MemoryRow.clip, MemoryRow.id).order_by(MemoryRow.id)).all()
    line: dict[int, int] = dict(rows)
    for name, question in (
        ("cites", "Who speaks?"),
        ("other", "Who opens?"),
        ("asks", "Where is the marmalade?"),
        ("runs", "What is green?"),
        ("image", "Which picture?"),
    ):
        ask(talk, name, question, VIDEO)
    found: dict[str, Any] = {"cites": {"ref": f"m{line[2]}"}, "other": {"ref": f"m{line[0]}"}}
    found["image"] = {"images": [SECRETS[-1]]}
    with talk.begin() as session:
        for name, payload in found.items():
            output: dict[str, Any] = {"trajectory_id": name, "seq": 1, "kind": "retrieve"}
            session.add(TrajectoryEventRow(payload=payload, **output))
        session.execute(
            update(TrajectoryRow).where(TrajectoryRow.id == "runs").values(state="running")
        )
        session.execute(text("UPDATE trajectory_videos SET last_clip = 5"))
    assert (cut(talk).answers, runs(talk)) == (4, {"other"})


def test_an_answer_as_of_before_it_stays(talk: Store) -> None:
    ask(talk, "early", "What about the marmalade?", VIDEO)
    with talk.begin() as session:
        session.execute(text("UPDATE trajectory_videos SET last_clip = 1"))
    assert (cut(talk).answers, runs(talk)) == (0, {"early"})


def test_writers_calls_from_there_on_go_and_earlier_ones_stay(talk: Store) -> None:
    def call(clip: int) -> CallRecord:
        output = {"role": "user", "content": f"the marmalade of {clip}"}
        kept: dict[str, Any] = {"profile": "p", "model": "m", "reply": {}, "error": None}
        paid: dict[str, Any] = {"tokens_in": 1, "tokens_out": 1, "cost_usd": 0.0, "ms": 1}
        of: dict[str, Any] = {"messages": [output], "video_id": VIDEO, "clip": clip}
        return CallRecord(f"r{clip}", "write", **of, **kept, **paid)

    with talk.begin() as session:
        for clip in (1, 2, 4):
            add_call(session, call(clip))
    cut(talk)
    with talk.begin() as session:
        calls = session.scalars(text("SELECT clip FROM model_calls")).all()
        output = session.scalars(text("SELECT content ->> 'content' FROM messages")).all()
    assert (calls, output) == ([1], ["the marmalade of 1"])


def test_a_search_under_way_shows_it_no_more(talk: Store) -> None:
    tools: Any = SimpleNamespace(text=WordVectors(), reranker=None, images=None)
    retrievers = Retrievers(talk, tools, SETTINGS)

    def found() -> str:
        with talk.begin() as session:
            view = memory_view(session, [VIDEO])
        modes = [(Mode.VIDEO, "marmalade treasure"), (Mode.EVENT, "marmalade fire")]
        searches = [retrievers.search(view, mode, query) for mode, query in modes]
        return " | ".join(f"{one.span} {one.text}" for s in searches for one in s.evidence)

    assert "marmalade" in found()
    cut(talk)
    assert not re.search("(?i)marmalade|treasure|zanzibar", found())
    assert "lighthouse" in found()


def test_another_video_keeps_all_that_is_its_own(talk: Store) -> None:
    other = "a" * 16
    fill(talk, other)
    ask(talk, "t1", "why?", other)
    before = list(dump_lines(talk, other))
    cut(talk)
    assert (list(dump_lines(talk, other)), runs(talk)) == (before, {"t1"})


def test_all_or_nothing_and_once_more_ends_it(talk: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(everything(talk))

    def break_at(wanted: faults.FaultPoint) -> None:
        def happen(point: faults.FaultPoint) -> None:
            if point is wanted:
                raise KeyboardInterrupt

        monkeypatch.setattr(faults, "fault_point", happen)

    break_at(faults.FaultPoint.CUT_ROWS)
    with pytest.raises(KeyboardInterrupt):
        cut(talk)
    assert sorted(everything(talk)) == before
    break_at(faults.FaultPoint.CUT)
    with pytest.raises(KeyboardInterrupt):
        cut(talk)
    assert left(talk) == set(SECRETS[4:]), "only files of which no row is left"
    monkeypatch.undo()
    again = cut(talk)
    assert (again.clips, again.images) == (0, 3)
    assert left(talk) == set()


def test_a_span_that_is_none_deletes_nothing(talk: Store) -> None:
    before = list(dump_lines(talk, VIDEO))
    with pytest.raises(InputError, match="it must end after it begins"):
        cut(talk, TimeSpan.of(5000, 5000))
    with pytest.raises(InputError, match="ends at 03:00, before that span"):
        cut(talk, TimeSpan.of(180_000, 190_000))
    assert list(dump_lines(talk, VIDEO)) == before


def workspace_of(store: Store) -> Workspace:
    toolbox: Any = SimpleNamespace(text=WordVectors())
    toolbox.of_library = lambda *_: toolbox
    return Workspace(store.home, store, load_profile("local"), toolbox)


def test_a_file_of_ones_own_stays(talk: Store) -> None:
    assert preview_span_deletion(talk, VIDEO, SPAN).file == "There is no file of it."
    with talk.begin() as session:
        session.execute(update(VideoRow).values(path="/videos/talk.mp4"))
    found = preview_span_deletion(talk, VIDEO, SPAN)
    assert "can still be played" in found.file
    delete_video_span(workspace_of(talk), found.cut.video, SPAN)
    assert show_video(talk, VIDEO).video.path == "/videos/talk.mp4"


def test_a_file_of_homers_own_that_shows_it_is_removed(store: Store) -> None:
    path = store_upload(store.home, "film.mp4", b"an uploaded film")
    fill(store, path.parent.name)
    found = preview_span_deletion(store, path.parent.name, TimeSpan.of(0, 1000))
    assert found.file == "The uploaded file shows it, so that goes too, whole."
    delete_video_span(workspace_of(store), found.cut.video, TimeSpan.of(0, 1000))
    assert not path.exists()
    assert [one.path for one in all_videos(store).items] == [None]


def test_the_command_says_which_clips_go_and_asks(talk: Store, homer: Any, tmp_path: Path) -> None:
    before = list(dump_lines(talk, VIDEO))
    span = ("--from", "1:05", "--to", "1:31")
    code, _, output = homer("delete", VIDEO, *span, answer="n\n")
    assert code == 1
    assert "Delete 1:00-2:00 of video 0123 (2 clips, with every answer" in output
    assert "It cannot be undone. There is no file of it." in output
    assert list(dump_lines(talk, VIDEO)) == before
    code, out, _ = homer("delete", VIDEO, *span, "--yes")
    assert code == 0
    assert out.startswith("1:00-2:00 of video 0123 is deleted: 2 clips, 3 images, 2 people")
    assert left(talk) == set()
    assert "clip 2  1:00-1:30  deleted" in homer("show", VIDEO)[1]
    exported = tmp_path / "talk.zip"
    assert homer("export", VIDEO, "--out", str(exported))[0] == 0
    import zipfile

    with zipfile.ZipFile(exported) as archive:
        parts = [archive.read(name).decode(errors="replace") for name in archive.namelist()]
    held = "\n".join([*parts, *archive.namelist()])
    assert {secret for secret in SECRETS if secret in held.lower()} == set()


def test_half_a_span_reaches_to_the_end_and_a_wrong_one_is_refused(talk: Store, homer: Any) -> None:
    code, _, output = homer("delete", VIDEO, "--from", "2:00", "--to", "1:00")
    assert (code, "is not after" in output) == (2, True)
    assert homer("delete", VIDEO, "--from", "soon")[0] == 2
    assert homer("delete", VIDEO, "--from", "2:30", "--yes")[0] == 0
    assert list_deleted_spans(talk, VIDEO) == [TimeSpan.of(150_000, 180_000)]
