"""Who did what is on record by ids, outlives what it was of, and cannot be taken back."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from typer.testing import CliRunner

from cli.main import app
from domain.asking import Question
from domain.rights import Deed, acting_user
from flows.removal import delete_video_rows
from library.removal import export_video
from people.across_videos import rename
from people.corrections import undo
from people.forget import forget, restore_forgotten
from store.backup import back_up, restore_backup
from store.database import Store
from store.export import import_exported_video
from store.queries.rights import acting_name, audit_entries, record_deed
from tests.support.asking import PARTY, WordToolbox, remember_party
from tests.support.library import Quiet
from tests.support.memory import VIDEO, WordVectors
from tests.support.runs import ask
from tests.support.span_deletion import cut, watch_talk
from ui.sign_in import provider_user_name

pytestmark = pytest.mark.usefixtures("tampered")


def done(store: Store) -> list[tuple[str, str]]:
    """What is on record, the first deed first."""
    with store.begin() as session:
        return [(one.deed.value, one.subject) for one in reversed(audit_entries(session))]


def test_every_deed_is_on_record_by_its_id(store: Store, tmp_path: Path) -> None:
    remember_party(store)
    asked = ask(store, WordToolbox(), Question(text="Who opens the gate?", videos=(PARTY,)))
    rename(store, PARTY, "Ann", "Anna Secret")
    undo(store, PARTY)
    forget(store, PARTY, "Bob", WordVectors(), tmp_path / "bob.zip")
    restore_forgotten(store, PARTY, tmp_path / "bob.zip")
    export_video(store, PARTY, tmp_path / "party.zip")
    back_up(store, tmp_path / "all.homer", Quiet())
    delete_video_rows(store, PARTY)
    import_exported_video(store, tmp_path / "party.zip", Quiet())
    assert done(store) == [
        ("asked", asked.trajectory_id),
        ("changed people", f"{PARTY} correction 1"),
        ("changed people", f"{PARTY} correction 1"),
        ("forgot", f"{PARTY} person 2"),
        ("brought back", PARTY),
        ("exported", PARTY),
        ("backed up", ""),
        ("deleted", PARTY),
        ("imported", PARTY),
    ]
    with store.begin() as session:
        output = "\n".join(session.scalars(text("SELECT to_jsonb(a)::text FROM audit a")))
    assert not any(word in output for word in ("Secret", "Ann", "Bob", "gate"))


def test_a_deleted_span_is_reported_by_its_times(store: Store) -> None:
    watch_talk(store, 3)
    cut(store)
    assert done(store) == [("deleted", f"{VIDEO} 60000-120000 ms")]


@pytest.mark.parametrize(
    "how", ["UPDATE audit SET who = 'nobody'", "DELETE FROM audit", "TRUNCATE audit"]
)
def test_nobody_changes_or_deletes_a_line(store: Store, how: str) -> None:
    with store.begin() as session:
        record_deed(session, Deed.DELETED, VIDEO)
    with pytest.raises(DBAPIError, match="neither changed nor deleted"), store.begin() as session:
        session.execute(text(how))
    assert done(store) == [("deleted", VIDEO)]


def test_an_emptied_library_is_restored_from_its_back_up(store: Store, tmp_path: Path) -> None:
    with store.begin() as session:
        record_deed(session, Deed.SIGNED_IN, "ann")
    back_up(store, tmp_path / "all.homer", Quiet())
    restore_backup(store, tmp_path / "all.homer", Quiet())
    assert sorted(done(store)) == [("backed up", ""), ("restored", ""), ("signed in", "ann")]


def test_it_is_by_who_signed_in_else_by_the_process_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "ann")
    assert acting_name() == "ann"
    token = acting_user.set("bob@example.org\0")
    assert acting_name().startswith("bob@example.org")
    assert "\0" not in acting_name()
    acting_user.reset(token)

    def unknown() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", unknown)
    assert acting_name().startswith("user ")


@pytest.mark.parametrize(
    ("user", "named"),
    [
        ({"is_logged_in": True, "email": "a@b.c", "email_verified": True}, "a@b.c"),
        ({"is_logged_in": True, "email": "a@b.c", "provider": "x", "sub": "77"}, "@x:77"),
        ({"is_logged_in": False, "email": "a@b.c"}, ""),
        ({}, ""),
    ],
)
def test_whom_a_provider_names(user: dict[str, Any], named: str) -> None:
    assert provider_user_name(user) == named


def test_the_command_chooses(store: Store, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMER_DATABASE_URL", database)

    def homer(*arguments: str) -> tuple[int, str, str]:
        ran = CliRunner().invoke(app, ["audit", *arguments])
        return ran.exit_code, ran.stdout, ran.stderr

    assert "nothing of that kind is on record" in homer()[2]
    for who, deed, subject in (
        ("ann", Deed.ASKED, "t1"),
        ("ann", Deed.DELETED, VIDEO),
        ("bob", Deed.ASKED, "t2"),
    ):
        token = acting_user.set(who)
        with store.begin() as session:
            record_deed(session, deed, subject)
        acting_user.reset(token)
    shown = [line.split()[2:] for line in homer()[1].splitlines()[1:]]
    assert shown == [["bob", "asked", "t2"], ["ann", "deleted", VIDEO], ["ann", "asked", "t1"]]
    rows = json.loads(homer("--who", "ann", "--deed", "asked", "--json")[1])
    assert [(one["who"], one["deed"], one["subject"]) for one in rows] == [("ann", "asked", "t1")]
    assert len(json.loads(homer("--of", VIDEO[:6], "--json")[1])) == 1
    assert len(json.loads(homer("--limit", "2", "--json")[1])) == 2
    tomorrow = f"{datetime.now(UTC) + timedelta(days=2):%Y-%m-%d}"
    assert homer("--since", tomorrow, "--json")[1].strip() == "[]"
    code, _, output = homer("--deed", "stole")
    assert (code, "Input should be 'asked'" in output) == (2, True)
