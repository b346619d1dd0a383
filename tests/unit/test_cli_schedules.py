"""The commands about schedules say what is set, when it runs and what is missing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from domain.errors import NotFound
from flows.schedules.kinds import KINDS, ScheduleDraft, ScheduleEntry, ScheduleRun
from library.schedules import set_schedule
from services.supervisor import ScheduleWorker
from store.home import Home

AT = datetime(2026, 1, 31, 3, 30, tzinfo=UTC)
LOCAL = f"{AT.astimezone():%Y-%m-%d %H:%M}"


def entry(name: str, kind: str, **more: Any) -> ScheduleEntry:
    plain: dict[str, Any] = {"when": "daily 03:30", "on": True, "options": {}, "declared": False}
    return ScheduleEntry(
        **{"name": name, "kind": kind, "next": None, "last": None, **plain, **more}
    )


class Book:
    """Schedules in a list; notes what is done to them."""

    pool = "homer-0123"

    def __init__(self, *every: ScheduleEntry) -> None:
        self.every, self.done = every, list[tuple[str, Any]]()

    def entries(self) -> list[ScheduleEntry]:
        return list(self.every)

    def entry(self, name: str) -> ScheduleEntry:
        found = next((one for one in self.every if one.name == name), None)
        if found is None:
            raise NotFound(f"no schedule is called {name!r}")
        return found

    def put(self, one: ScheduleDraft) -> None:
        self.done.append(("put", one))

    def run(self, name: str) -> str:
        self.done.append(("run", self.entry(name).name))
        return "f00d"

    def __getattr__(self, what: str) -> Any:
        return lambda name: self.done.append((what, self.entry(name).name))


LAST = ScheduleRun(id="r1", state="Completed", told="all\x07 kept", at=AT)
BACKUP = entry("backup", "backup", options={"keep": 7}, next=AT, last=LAST)
NIGHTLY = entry("nightly", "backup", options={"folder": "/b", "keep": 3}, when="every 7 minutes")


@pytest.fixture
def book(monkeypatch: pytest.MonkeyPatch, home: Home) -> Book:
    """Some schedules, and nothing that carries them out."""
    found = Book(BACKUP, entry("check", "check", on=False), NIGHTLY)

    @contextmanager
    def opened(_: Home) -> Iterator[Book]:
        yield found

    monkeypatch.setattr("library.schedules._open", opened)
    monkeypatch.setattr(ScheduleWorker, "address", lambda _: None)
    return found


def homer(*words: str, code: int = 0) -> Result:
    done = CliRunner().invoke(app, ["schedule", *words])
    assert done.exit_code == code, done.output
    return done


def test_each_schedule_tells_its_last_run(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = homer("list")
    heads, backup, check, _ = listed.stdout.splitlines()
    assert heads.split() == ["schedule", "kind", "when", "state", "next", "last", "at", "found"]
    assert (
        backup.split() == f"backup backup daily 03:30 on {LOCAL} Completed {LOCAL} all kept".split()
    )
    assert check.split() == ["check", "check", "daily", "03:30", "paused"]
    assert homer().stdout == listed.stdout
    for kind in KINDS:
        missing = f"not there yet: {kind.name}," in listed.stderr
        assert missing is (kind.name not in ("backup", "check"))
    assert "nothing carries them out at the moment: homer up" in listed.stderr
    assert homer("run", "backup").stdout == "f00d; it begins with `homer up`\n"
    monkeypatch.setattr(ScheduleWorker, "address", lambda _: "http://127.0.0.1:1")
    assert "homer up" not in homer("list").stderr
    assert homer("run", "backup").stdout == "f00d\n"


def test_one_is_shown_with_its_options_and_how_it_ended(book: Book) -> None:
    assert homer("show", "backup").stdout.splitlines() == [
        "backup: backup, daily 03:30, on",
        "  keep = 7",
        f"last: Completed {LOCAL} all  kept",
    ]
    assert json.loads(homer("show", "backup", "--json").stdout)["options"] == {"keep": 7}
    assert homer("show", "check").stdout == "check: check, daily 03:30, paused\n"
    assert homer("pool").stdout == "homer-0123\n"


@pytest.mark.parametrize("command", ["pause", "resume", "remove"])
def test_a_schedule_is_paused_resumed_and_taken_away(book: Book, command: str) -> None:
    homer(command, "backup")
    assert book.done == [(command, "backup")]
    assert homer(command, "talks", code=2).stderr == "homer: no schedule is called 'talks'\n"


def test_what_is_not_given_stays_as_it_was(book: Book, home: Home) -> None:
    assert set_schedule(home, "nightly", ("keep=9",)) == "nightly: every 7 minutes"
    set_schedule(home, "nightly", ("folder=",))
    set_schedule(home, "nightly", kind="check", off=True)
    kept, removed, other = (one for _, one in book.done)
    assert kept.options == {"folder": "/b", "keep": 9}
    assert removed.options == {"keep": 3}, "an empty value removes an option"
    assert (other.kind, other.options, str(other.when), other.on) == (
        *("check", {}, "daily 04:00", False),
    )
    done = homer("set", "backup", "keep=30", "--off", "--when", "sunday 04:00")
    assert done.stdout == "backup: sunday 04:00, paused\n"


@pytest.mark.parametrize(
    "words",
    [("backup", "keep"), ("backup", "keep=no"), ("backup", "--when", "at noon"), ("talks",)],
)
def test_what_cannot_be_set_changes_nothing(book: Book, words: tuple[str, ...]) -> None:
    assert homer("set", *words, code=2).stderr.startswith("homer: ")
    assert book.done == []


def test_kinds_tell_what_they_do_and_what_they_need(home: Home) -> None:
    lines = homer("kinds").stdout.splitlines()
    for kind in KINDS:
        at = next(n for n, line in enumerate(lines) if line.startswith(f"{kind.name}: "))
        options = lines[at + 1 : at + 1 + len(kind.options.model_fields)]
        for (name, one), line in zip(kind.options.model_fields.items(), options, strict=True):
            assert line.startswith(f"  {name}=")
            assert ("(needed)" in line) is one.is_required()
            assert (one.description or "") in line
