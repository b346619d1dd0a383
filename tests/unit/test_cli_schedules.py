"""The commands about schedules say what is set, when it runs and what is missing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cli import schedules
from cli.main import app
from domain.errors import NotFound
from flows.schedules.kinds import KINDS, ScheduleDraft
from flows.schedules.worker import ScheduleWorker
from store.home import Home

AT = datetime(2026, 1, 31, 3, 30, tzinfo=UTC)


@dataclass
class Ran:
    """How a run ended, without Prefect, which is slow to import."""

    state: str
    told: str
    at: datetime | None = AT
    id: str = "r1"


@dataclass
class Entry:
    """A schedule as it stands."""

    name: str
    kind: str
    when: str = "daily 03:30"
    on: bool = True
    options: dict[str, Any] = field(default_factory=dict)
    declared: bool = False
    next: datetime | None = None
    last: Ran | None = None

    def model_dump(self, mode: str) -> dict[str, Any]:
        assert mode == "json"
        return json.loads(json.dumps(asdict(self), default=str))  # type: ignore[no-any-return]


class Book:
    """Schedules in a list; notes what is done to them."""

    pool = "homer-0123"

    def __init__(self, *every: Entry) -> None:
        self.every, self.done = every, list[tuple[str, Any]]()

    def entries(self) -> list[Entry]:
        return list(self.every)

    def entry(self, name: str) -> Entry:
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


BACKUP = Entry(
    "backup", "backup", options={"keep": 7}, next=AT, last=Ran("Completed", "all\x07 kept")
)
CHECK = Entry("check", "check", on=False)


@pytest.fixture
def book(monkeypatch: pytest.MonkeyPatch, home: Home) -> Book:
    """Two schedules, and nothing that carries them out."""
    found = Book(BACKUP, CHECK)

    @contextmanager
    def opened() -> Iterator[Book]:
        yield found

    monkeypatch.setattr(schedules, "_open", opened)
    monkeypatch.setattr(ScheduleWorker, "address", lambda _: None)
    return found


def homer(*words: str, code: int = 0) -> Result:
    done = CliRunner().invoke(app, ["schedule", *words])
    assert done.exit_code == code, done.output
    return done


def test_each_schedule_has_a_line_and_what_its_last_run_found_another(book: Book) -> None:
    heads, backup, check, reported = homer("list").stdout.splitlines()
    assert heads.split() == ["schedule", "kind", "when", "state", "next", "last", "at"]
    local = f"{AT.astimezone():%Y-%m-%d %H:%M}"
    assert (
        backup.split()
        == ["backup"] * 2 + ["daily", "03:30", "on", *local.split(), "Completed"] + local.split()
    )
    assert check.split() == ["check", "check", "daily", "03:30", "paused"]
    assert reported == "backup: all  kept"


def test_alone_it_lists_them(book: Book) -> None:
    assert homer().stdout == homer("list").stdout


def test_kinds_that_are_not_there_and_that_nothing_runs_are_reported_beside_it(book: Book) -> None:
    reported = homer("list").stderr
    for kind in KINDS:
        assert (f"not there yet: {kind.name}," in reported) is (
            kind.name not in ("backup", "check")
        )
    assert "nothing carries them out at the moment: homer up" in reported


def test_where_they_are_carried_out_nothing_is_said_of_it(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScheduleWorker, "address", lambda _: "http://127.0.0.1:1")
    assert "homer up" not in homer("list").stderr
    assert homer("run", "backup").stderr == ""


def test_json_is_for_programs_and_has_nothing_beside_it(book: Book) -> None:
    reported = json.loads(homer("list", "--json").stdout)
    assert [(one["name"], one["on"]) for one in reported] == [("backup", True), ("check", False)]
    assert json.loads(homer("show", "backup", "--json").stdout)["options"] == {"keep": 7}


def test_one_is_shown_with_what_it_was_told_and_how_it_ended(book: Book) -> None:
    local = f"{AT.astimezone():%Y-%m-%d %H:%M}"
    assert homer("show", "backup").stdout.splitlines() == [
        "backup: backup, daily 03:30, on",
        "  keep = 7",
        f"last: Completed {local} all  kept",
    ]
    assert homer("show", "check").stdout == "check: check, daily 03:30, paused\n"


def test_a_run_that_waits_has_no_time_yet(book: Book) -> None:
    book.every = (Entry("backup", "backup", last=Ran("Scheduled", "", at=None)),)
    assert homer("show", "backup").stdout.splitlines()[-1] == "last: Scheduled"


@pytest.mark.parametrize(
    ("command", "reported"),
    [("pause", "backup is paused"), ("resume", "backup is on"), ("remove", "backup was removed")],
)
def test_a_schedule_is_paused_resumed_and_taken_away(
    book: Book, command: str, reported: str
) -> None:
    done = homer(command, "backup")
    assert (done.stdout, done.stderr) == ("", f"{reported}\n")
    assert book.done == [(command, "backup")]


def test_a_run_now_tells_its_id_and_where_it_begins(book: Book) -> None:
    done = homer("run", "backup")
    assert (done.stdout, done.stderr) == ("f00d\n", "it begins with `homer up`\n")


@pytest.mark.parametrize("command", ["show", "pause", "resume", "run", "remove"])
def test_one_that_is_not_there_is_reported_in_one_line(book: Book, command: str) -> None:
    assert homer(command, "talks", code=2).stderr == "homer: no schedule is called 'talks'\n"


def test_what_is_not_told_stays_as_it_is(book: Book) -> None:
    assert homer("set", "backup", "keep=30").stdout == "backup: daily 03:30\n"
    ((_, one),) = book.done
    assert (one.kind, one.options["keep"], one.on) == ("backup", 30, True)


def test_one_may_be_put_there_paused(book: Book) -> None:
    done = homer("set", "backup", "--off", "--when", "sunday 04:00")
    assert done.stdout == "backup: sunday 04:00, paused\n"
    assert not book.done[0][1].on


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


def test_the_pool_is_one_word_for_scripts(book: Book) -> None:
    assert homer("pool").stdout == "homer-0123\n"
