"""What a viewer sees of a library: nothing of a video that is not theirs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.orm import Session
from typer.testing import CliRunner

from cli.main import app
from domain.asking import Question
from domain.errors import AccessDenied, DatabaseError, InputError, NotFound, SetupError
from domain.rights import Deed
from flows.agent_pool import AgentPool
from library.rights import (
    change_group,
    check_user,
    give_right,
    rights,
    rights_off,
    rights_on,
    take_right,
)
from store.database import Store
from store.migrations import prepare_viewer_role, recording
from store.queries.encoders import LibraryEncoders
from store.queries.rights import audit_entries, enforce_rights, visible_to
from store.queries.trajectories import count_trajectories, find_trajectory
from store.queries.videos import find_video, video_titles
from store.tables.schema import Base
from tests.support.asking import WordToolbox
from tests.support.full_video import fill
from tests.support.marked_library import MARK, VIDEO, plant
from tests.support.several_videos import INTERVIEW, TALK, watch_people

ANA, KEY = "ana@example.org", "key:reader"
OWN = "a" * 16
"""The video that Ana sees; that of ``marked_library`` has a marker in all of its content."""


@pytest.fixture
def shared(store: Store) -> Store:
    """A library of two videos, of which Ana sees one."""
    plant(store, VIDEO)
    fill(store, OWN, "own")
    give_right(store, ANA, video="own")
    rights_on(store)
    return store


def rows_of(store: Store) -> dict[str, list[str]]:
    """All rows of all tables, as text."""
    with store.begin() as session:
        return {
            table.name: [
                json.dumps(row)
                for row in session.scalars(text(f"SELECT to_jsonb(t) FROM {table.name} AS t"))  # noqa: S608
            ]
            for table in Base.metadata.sorted_tables
        }


def count_of(session: Session, table: str) -> int:
    return session.scalar(select(func.count()).select_from(text(table))) or 0


@pytest.mark.usefixtures("tampered")
def test_a_viewer_sees_no_row_of_another_video(shared: Store) -> None:
    seen, all_rows = rows_of(shared.for_viewer(ANA)), rows_of(shared)
    everything = "".join(line for lines in seen.values() for line in lines)
    assert MARK.lower() not in everything.lower()
    assert VIDEO not in everything
    for name in (
        "videos",
        "clips",
        "memories",
        "keyframes",
        "character_names",
        "exemplars",
        "nodes",
    ):
        assert seen[name], name
        assert len(seen[name]) < len(all_rows[name]), name
    strangers = rows_of(shared.for_viewer("stranger@example.org"))
    assert {name for name, lines in strangers.items() if lines} == {"library"}


@pytest.mark.usefixtures("tampered")
def test_a_viewer_changes_nothing(shared: Store) -> None:
    before, viewer = rows_of(shared), shared.for_viewer(ANA)
    for table in Base.metadata.sorted_tables:
        for statement in (f"DELETE FROM {table.name}", f"INSERT INTO {table.name} DEFAULT VALUES"):  # noqa: S608
            with pytest.raises(AccessDenied, match="look and ask"), viewer.begin() as session:
                session.execute(text(statement))
    assert rows_of(shared) == before


def test_every_table_has_a_policy_or_is_closed(store: Store) -> None:
    rights_on(store)
    with store.begin() as session:
        query = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relrowsecurity"
        protected = {*session.scalars(text(query))}
    assert protected == {table.name for table in Base.metadata.sorted_tables}


@pytest.mark.parametrize(
    ("table", "condition"),
    [
        ("messages", "hash = (hashed SubPlan"),
        ("trajectories", "id = (hashed SubPlan"),
        ("corrections", "act = (hashed SubPlan"),
    ],
)
def test_what_a_viewer_sees_is_read_once_for_all(store: Store, table: str, condition: str) -> None:
    rights_on(store)
    with store.for_viewer(ANA).begin() as session:
        plan = session.scalars(text(f"EXPLAIN SELECT * FROM {table}")).all()  # noqa: S608
    assert any(condition in line for line in plan), plan


def test_without_role_it_says_what_to_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.migrations.VIEWER_ROLE", "somebody_unknown")
    with pytest.raises(DatabaseError, match="homer rights on"), store.for_viewer(ANA).begin():
        pass


def test_rights_are_turned_on_twice_at_once(store: Store) -> None:
    with ThreadPoolExecutor(4) as pool:
        [*pool.map(lambda _: rights_on(store), range(8))]
    with store.begin() as session:
        assert count_of(session, "enforced_rights") == 1


def test_user_of_the_database_who_may_create_no_role_uses_one_that_was_given(store: Store) -> None:
    owned = "".join(
        f"ALTER TABLE {table.name} OWNER TO plain;" for table in Base.metadata.sorted_tables
    )
    with store.begin() as session:
        enforce_rights(session, True)  # The server has the role from here on.
        session.execute(text(f"CREATE ROLE plain; ALTER SCHEMA public OWNER TO plain; {owned}"))
        session.execute(text("SET LOCAL ROLE plain"))
        with pytest.raises(SetupError, match="GRANT homer_viewer TO"), session.begin_nested():
            prepare_viewer_role(session.connection())
        session.execute(text("RESET ROLE; GRANT homer_viewer TO plain; SET LOCAL ROLE plain"))
        prepare_viewer_role(session.connection())
        session.execute(text("SET LOCAL ROLE homer_viewer"))
        assert count_of(session, "videos") == 0
        session.rollback()


class TestGrants:
    @pytest.fixture
    def two(self, store: Store) -> Store:
        watch_people(store, TALK, {1: 0.9})
        watch_people(store, INTERVIEW, {1: 0.9})
        rights_on(store)
        return store

    @pytest.fixture
    def pool(self, two: Store) -> Iterator[AgentPool]:
        class Pool(AgentPool):
            def _make_toolbox(self, profile: str, _: LibraryEncoders) -> WordToolbox:
                return WordToolbox()

        pool = Pool(two, "local")
        yield pool
        pool.close()

    def visible(self, store: Store, name: str) -> set[str]:
        with store.begin() as session:
            listed = visible_to(session, name)
        with store.for_viewer(name).begin() as session:
            assert sorted(video_titles(session)) == listed
        return {*listed}

    def test_of_videos_folders_groups_and_everything(self, two: Store) -> None:
        assert self.visible(two, ANA) == set()
        assert give_right(two, "Ana@Example.org", video="talk") == "given"
        assert give_right(two, "Ana@Example.org", video="talk") == "was given already"
        assert self.visible(two, ANA) == {TALK}
        assert self.visible(two, KEY) == set()
        change_group(two, "editors", KEY)
        give_right(two, "editors", group=True, video="interview")
        assert self.visible(two, KEY) == {INTERVIEW}
        give_right(two, "editors", group=True, everything=True)
        assert self.visible(two, KEY) == {INTERVIEW, TALK}
        change_group(two, "editors", KEY, remove=True)
        assert self.visible(two, KEY) == set()
        take_right(two, ANA, video="talk")
        assert self.visible(two, ANA) == set()
        with pytest.raises(NotFound, match="no such right"):
            take_right(two, ANA, video="talk")

    def test_of_a_folder_and_not_of_its_neighbours(self, two: Store) -> None:
        paths = {TALK: "/media/films/a/talk.mp4", INTERVIEW: "/media/films-of-others/i.mp4"}
        with two.begin() as session:
            for video, path in paths.items():
                where = {"path": path, "video": video}
                session.execute(text("UPDATE videos SET path = :path WHERE id = :video"), where)
        give_right(two, ANA, folder="/media/films")
        assert self.visible(two, ANA) == {TALK}
        with two.begin() as session:
            up = {"path": "/media/films/../secret/talk.mp4"}
            session.execute(text("UPDATE videos SET path = :path"), up)
        assert self.visible(two, ANA) == set()

    def test_whoever_has_everything_is_no_viewer(self, two: Store, pool: AgentPool) -> None:
        give_right(two, ANA, everything=True)
        assert pool.for_user(ANA) is pool
        assert pool.for_user(None) is pool
        assert not pool.for_user(KEY).store.may_change
        rights_off(two)
        assert pool.for_user(KEY) is pool

    def test_names_are_checked(self, two: Store) -> None:
        assert check_user("Ana@Example.org") == ANA
        for name in ("ana", "key:", "key:a b", "a b@example.org", "@", "*"):
            with pytest.raises(InputError, match="neither an e-mail"):
                check_user(name)
        with pytest.raises(NotFound, match="no group"):
            give_right(two, "nobody", group=True, everything=True)
        with pytest.raises(InputError, match="a video or a folder"):
            give_right(two, ANA, video="talk", folder="/media")

    @pytest.mark.parametrize("folder", ["", " ", "/media/\udcff"])
    def test_a_variable_that_is_not_set_gives_no_folder(self, two: Store, folder: str) -> None:
        with pytest.raises(InputError, match="no name of a folder"):
            give_right(two, ANA, folder=folder)

    def test_a_folder_is_named_from_where_one_is(
        self, two: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.chdir(tmp_path)
        for folder in ("../films/./", "/"):
            give_right(two, ANA, folder=folder)
        assert {one.folder for one in rights(two).grants} == {f"{tmp_path.parent}/films/", "/"}

    def test_the_rights_of_a_group_without_members_are_taken(self, two: Store) -> None:
        change_group(two, "editors", KEY)
        give_right(two, "editors", group=True, everything=True)
        change_group(two, "editors", KEY, remove=True)
        take_right(two, "editors", group=True, everything=True)
        change_group(two, "editors", KEY)
        assert self.visible(two, KEY) == set()

    def test_a_viewer_asks_what_is_theirs(self, two: Store, pool: AgentPool) -> None:
        give_right(two, ANA, video="talk")
        give_right(two, KEY, video="talk")
        own = pool.for_user(ANA)
        answered = own.runner().ask(Question(text="Who is there?", videos=(TALK,)))
        with own.store.begin() as session:
            row = find_trajectory(session, answered.trajectory_id)
            assert (row.view.videos, row.state) == ((TALK,), "done")
        assert own.runner().resume(answered.trajectory_id).answer == answered.answer
        with pytest.raises(NotFound):
            own.runner().ask(Question(text="Who is there?", videos=(INTERVIEW,)))
        # Others with the same right do not see what she asked; the operator does.
        with two.for_viewer(KEY).begin() as session:
            assert count_trajectories(session) == 0
        with two.begin() as session:
            assert count_trajectories(session) == 1
        take_right(two, ANA, video="talk")
        with own.store.begin() as session:
            assert count_trajectories(session) == 0

    def test_a_correction_in_several_videos_is_seen_with_all_of_them(self, two: Store) -> None:
        with two.begin() as session:
            for video, number, act in ((TALK, 1, "both"), (INTERVIEW, 1, "both"), (TALK, 2, None)):
                row = {"video": video, "number": number, "act": act}
                session.execute(
                    text(
                        "INSERT INTO corrections (video_id, number, kind, told, numbers, outcomes,"
                        " act) VALUES (:video, :number, 'name', 'told', '{1}', '[]', :act)"
                    ),
                    row,
                )
                session.execute(
                    text(
                        "INSERT INTO character_names (video_id, number, name, source, from_clip,"
                        " act) VALUES (:video, :number, 'Given', 'person', 0, :act)"
                    ),
                    row,
                )
        given = "(SELECT FROM character_names WHERE source = 'person') AS given"
        for video, seen in ((TALK, 1), (INTERVIEW, 3)):
            give_right(two, ANA, video=video)
            with two.for_viewer(ANA).begin() as session:
                assert count_of(session, "corrections") == count_of(session, given) == seen

    def test_an_error_within_a_record_does_not_lift_the_limit(self, two: Store) -> None:
        with two.for_viewer(ANA).begin() as session:
            with suppress(KeyError), recording(session):
                assert count_of(session, "videos") == 2
                raise KeyError
            assert count_of(session, "videos") == 0

    def test_titles_of_others_are_not_found(self, two: Store) -> None:
        viewer = two.for_viewer(ANA)
        for name in ("talk", TALK, TALK[:6]):
            with pytest.raises(NotFound) as refused, viewer.begin() as session:
                find_video(session, name)
            assert "interview" not in str(refused.value)


def test_the_terminal_gives_lists_and_takes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMER_DATABASE_URL", store.url)
    watch_people(store, TALK, {1: 0.9})

    def run(*arguments: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, ["rights", *arguments], env={"COLUMNS": "200"})
        assert done.exit_code == code, done.output
        return done.output

    assert "not enforced" in run("give", ANA, "--video", "talk")
    assert "was given already" in run("give", ANA, "--video", "talk")
    assert "say what" in run("give", ANA, code=2)
    assert "neither an e-mail" in run("give", "ana", "--everything", code=2)
    run("group", "editors", KEY)
    run("give", "editors", "--group", "--folder", "/media/")
    run("on")
    listed = run("list")
    assert re.search(rf"{ANA}\s+talk", listed)
    assert re.search(r"group editors\s+/media/\n", listed)
    assert "rights are enforced" in listed
    assert TALK in run("show", ANA)
    assert "sees nothing" in run("show", KEY)
    run("take", ANA, "--video", "talk")
    assert "sees nothing" in run("show", ANA)
    run("give", ANA, "--everything")
    assert "sees everything" in run("show", ANA)
    assert json.loads(run("show", KEY, "--json"))["videos"] == {}
    run("group", "editors", KEY, "--remove")
    run("off")
    assert json.loads(run("list", "--json"))["enforced"] is False
    with store.begin() as session:
        entries = audit_entries(session, deeds=(Deed.CHANGED_RIGHTS,))
    assert len(entries) == 9
