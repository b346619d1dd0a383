"""A voice finds its face over the whole video: by company and by names, and the reason is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from domain.errors import InputError, MediaError
from domain.media import ClipState, Group, Percept
from domain.memories import ClipMemories
from domain.rights import Deed
from flows.ingest_video import open_video
from flows.workspace import Workspace
from library.memory import show_video
from library.videos import all_videos, check_video
from memory.captions import read_captions
from memory.writers.port import ClipContext, Writers
from models.profile import load_profile
from people.characters import ClipPeople
from store.database import Store
from store.home import Home
from store.queries.rights import audit_entries
from store.tables.schema import IdentityStatementRow
from tests.support.asking import WordToolbox
from tests.support.event_graphs import import_with_events
from tests.support.media import make_video
from tests.support.memory import (
    SETTINGS,
    VIDEO,
    Perceived,
    Tools,
    face,
    known_video,
    local_writers,
    percept,
    remember,
    voice,
)

TOOLS: Any = Tools()
ANN, BOB, CEM = 1, 2, 3


@dataclass
class Namer:
    """Gives names and states nothing else."""

    names: Sequence[tuple[str, str]] = ()
    source: str = ""
    name: str = "namer"
    wants_context: bool = False
    statements: tuple[Any, ...] = field(default=())

    def write(self, seen: Percept, people: ClipPeople, context: ClipContext) -> ClipMemories:
        return ClipMemories(drafts=(), names=tuple(self.names))


@pytest.fixture
def video(store: Store) -> Store:
    known_video(store, 6)
    return store


def watch(
    store: Store,
    n: int,
    faces: Sequence[int] = (),
    voices: Sequence[int] = (),
    names: Sequence[tuple[str, str]] = (),
    seconds: int = 9,
) -> None:
    """A clip in which these people are all in view, and these voices heard, at one time."""
    times = (30 * n, 30 * n + seconds)
    seen: list[Group] = [face(at, who, times) for at, who in enumerate(faces)]
    heard = [voice(at, 10 + who, times) for at, who in enumerate(voices)]
    one = percept(n, faces=tuple(seen), voices=tuple(heard))
    writers = Writers(Namer(names), local_writers().event)
    assert remember(store, VIDEO, Perceived(one), writers, TOOLS, SETTINGS) == ClipState.DONE


def together(store: Store, as_of_ms: int | None = None) -> list[tuple[str, ...]]:
    """The tags of each character that has a face and a voice."""
    people = show_video(store, VIDEO, as_of_ms).people
    return [one.tags for one in people if len({tag[:5] for tag in one.tags}) > 1]


def reasons(store: Store) -> list[str]:
    with store.begin() as session:
        query = select(IdentityStatementRow.reason).order_by(IdentityStatementRow.id)
        return list(session.scalars(query))


def test_a_voice_heard_in_changing_company_is_of_who_stays(video: Store) -> None:
    watch(video, 0, [ANN, BOB], [ANN])
    watch(video, 1, [ANN, CEM], [ANN])
    assert together(video) == []
    watch(video, 2, [ANN, BOB], [ANN])
    assert (together(video), together(video, 59_000)) == ([("<face_0>", "<voice_0>")], [])
    assert reasons(video) == [
        "in view during 27.0 of the 27.0 s of this voice with anyone in view, "
        "nobody else for more than 18.0 s"
    ]
    assert check_video(video, VIDEO).findings == ()


def test_a_narrator_over_changing_groups_is_nobody_in_view(video: Store) -> None:
    for n, faces in enumerate([[ANN, BOB], [BOB, CEM], [CEM, ANN], []]):
        watch(video, n, faces, [7])
    assert together(video) == []


def test_a_name_said_and_shown_joins_voice_and_face_wherever_they_were(video: Store) -> None:
    watch(video, 0, [], [ANN], [("<voice_0>", "Ann")])
    watch(video, 1, [BOB], [], [("<face_0>", "Bob Stone")])
    assert together(video) == []
    watch(video, 2, [ANN], [], [("<face_1>", "Ann Smith")])
    assert together(video) == [("<face_1>", "<voice_0>")]
    assert reasons(video) == ['the only face and the only voice that are called "Ann Smith"']
    (ann,) = [one for one in show_video(video, VIDEO).people if "<voice_0>" in one.tags]
    assert {one.name for one in ann.names} == {"Ann", "Ann Smith"}


def test_a_name_that_two_faces_have_joins_nobody(video: Store) -> None:
    watch(video, 0, [ANN], [], [("<face_0>", "Ann Smith")])
    watch(video, 1, [BOB], [], [("<face_1>", "Ann Jones")])
    watch(video, 2, [], [ANN], [("<voice_0>", "Ann")])
    assert (together(video), reasons(video)) == ([], [])


# What is in memory already is known again by its content, and told by the title it has there.


@pytest.fixture
def workspace(home: Home, store: Store) -> Workspace:
    return Workspace(home, store, load_profile("local"), WordToolbox())


def bring_in(store: Store, path: Path, title: str | None = None) -> str:
    track = read_captions(path)
    return import_with_events(store, track, local_writers(), TOOLS, SETTINGS, title=title).title


def test_captions_imported_twice_keep_their_first_title(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "week.jsonl"
    path.write_text('{"start": 0, "end": 1, "text": "Good morning."}')
    assert bring_in(store, path, "my week") == "my week"
    assert bring_in(store, path, "another") == "my week"
    assert bring_in(store, path.rename(tmp_path / "renamed.jsonl")) == "my week"
    (entry,) = all_videos(store).items
    assert entry.title == "my week"
    with store.begin() as session:
        added = [(one.deed, one.subject) for one in audit_entries(session)]
    assert added == [(Deed.ADDED, entry.id)]
    assert show_video(store, "my week").state == "done"


def test_a_renamed_file_keeps_its_first_title(workspace: Workspace, tmp_path: Path) -> None:
    path = make_video(tmp_path / "talk.mp4")
    with open_video(workspace, path) as work:
        assert work.video.title == "talk"
    moved = path.rename(tmp_path / "renamed.mp4")
    with open_video(workspace, moved) as work:
        assert (work.video.title, work.path) == ("talk", moved)
    (entry,) = all_videos(workspace.store).items
    assert (entry.title, entry.path) == ("talk", str(moved))


def test_who_added_a_video_is_on_record_once(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "ann")
    path, damaged = make_video(tmp_path / "talk.mp4"), tmp_path / "damaged.mp4"
    damaged.write_bytes(b"no film")
    with pytest.raises(MediaError), open_video(workspace, damaged):
        pass
    for _ in range(2):
        with open_video(workspace, path) as work:
            pass
    with workspace.store.begin() as session:
        (entry,) = audit_entries(session)
    assert (entry.who, entry.deed, entry.subject) == ("ann", Deed.ADDED, work.video.id)


def test_one_content_is_one_video_one_name_is_two(workspace: Workspace, tmp_path: Path) -> None:
    first = make_video(tmp_path / "talk.mp4")
    (tmp_path / "copies").mkdir()
    copy = tmp_path / "copies/talk-copy.mp4"
    copy.write_bytes(first.read_bytes())
    other = make_video(tmp_path / "copies/talk.mp4", seconds=2.0)
    ids = []
    for path in (first, copy, other):
        with open_video(workspace, path) as work:
            ids.append(work.video.id)
    assert ids[0] == ids[1] != ids[2]
    assert [one.title for one in all_videos(workspace.store).items] == ["talk", "talk"]


def test_a_video_is_open_to_one_at_a_time_and_again(workspace: Workspace, tmp_path: Path) -> None:
    path = make_video(tmp_path / "talk.mp4")
    with (
        open_video(workspace, path),
        pytest.raises(InputError, match="talk is being watched by another homer"),
        open_video(workspace, path),
    ):
        raise AssertionError("it is open twice")
    with open_video(workspace, path) as work:
        assert work.pending()
