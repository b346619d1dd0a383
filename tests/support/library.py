"""Whole libraries: filled with everything there is, and compared row by row."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text

from domain.asking import Question
from domain.media import Video
from library.memory import dump_lines
from library.videos import all_videos
from store.database import Store
from store.driver import driver_of
from store.queries.backup import copied_tables
from store.tables.schema import SkillRow
from tests.support import full_video
from tests.support.asking import PARTY, WordToolbox, remember_party
from tests.support.runs import ask

ADVICE = {
    "name": "advice",
    "topic": "mode",
    "description": "orders é \n\t\\ of events",
    "instructions": ["Search for events first."],
}
FULL, OTHER = "a" * 16, "b" * 16


class Quiet:
    """Progress that nobody follows; what it was told is kept."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []
        self.steps = 0

    def start(self, label: str, total: int, done: int = 0) -> None:
        self.told.append((label, total))

    def step(self, steps: int = 1) -> None:
        self.steps += steps


def fill_library(store: Store) -> str:
    """Three videos, images, a skill, and an answered question, whose trajectory is returned."""
    full_video.fill(store, FULL, "full")
    full_video.fill(store, OTHER, "other")
    full_video.ask(store, "0" * 16, "told by hand", FULL, OTHER)
    remember_party(store)
    with store.begin() as session:
        session.add(SkillRow(name="advice", version=1, payload=ADVICE))
    question = Question(text="Who opens the gate?", videos=(PARTY,))
    return ask(store, WordToolbox(), question).trajectory_id


def all_rows(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, as Postgres writes it.

    Without the versions of videos, which are transactions of one database.
    """
    with store.begin(snapshot=True) as session:
        connection = session.connection()
        found = {}
        for table in (one for one in copied_tables() if one.name != "audit"):
            output = "t" if table.name != "videos" else "(to_jsonb(t) - 'rewritten')"
            query = f"SELECT {output}::text FROM {table.name} t"  # noqa: S608
            rows = driver_of(connection).execute(f"{query} ORDER BY 1")
            found[table.name] = rows.fetchall()
        return found


def all_dumps(store: Store) -> dict[str, list[str]]:
    return {one.id: list(dump_lines(store, one.id)) for one in all_videos(store).items}


def all_images(store: Store) -> dict[str, bytes]:
    return {sha: store.blobs.get(sha) for sha, _put in store.blobs.walk()}


def next_id(store: Store, table: str) -> int:
    with store.begin() as session:
        query = "SELECT nextval(pg_get_serial_sequence(:table, 'id'))"
        return int(session.execute(text(query), {"table": table}).scalar_one())


class Heard:
    """A listener that takes notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def opened(self, video: Video, clips: int, done: int) -> None:
        self.notes.append(f"opened {clips} {done}")

    def remembered(self, video: Video, clip: int) -> None:
        self.notes.append(f"remembered {clip}")

    def failed(self, video: Video, clip: int, error: Exception) -> None:
        self.notes.append(f"failed {clip}: {error}")

    def said(self, text: str) -> None:
        self.notes.append(text)
