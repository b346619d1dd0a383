"""What an older Homer remembered is all there after the upgrade, and watching goes on from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, text

from domain.errors import DatabaseError
from domain.media import ClipState, Percept
from memory.write_clip import remember
from store.database import Store, open_store
from store.driver import parse_url
from store.home import Home
from store.migrations import HEAD, migrate
from tests.support.event_graphs import update_event_graph
from tests.support.full_suite import ends, sample
from tests.support.memory import (
    SETTINGS,
    VIDEO,
    Perceived,
    Tools,
    face,
    known_video,
    local_writers,
    percept,
    said,
    text_at,
    voice,
)
from views.library import check_video, delete_video_rows, dump_lines, list_library, show_video

ROOT = Path(__file__).parents[2]
REVISIONS = sorted(path.name[:4] for path in (ROOT / "alembic" / "versions").glob("0*.py"))
BETWEEN = [name for name in REVISIONS if "0002" <= name < HEAD]
OLDER = ends(BETWEEN)
TOOLS: Any = Tools()


def scene(n: int) -> Percept:
    start = 30 * n
    plate = (text_at(start + 5, "Grace Hopper"), text_at(start + 5, "Professor", row=1))
    return percept(
        n,
        faces=(face(0, 1, (start, start + 25)),),
        voices=(voice(0, n % 2, (start, start + 6)),),
        utterances=(said(start, f"My name is {('Ada', 'Omar')[n % 2]}.", voice=0, seconds=6),),
        screen_texts=plate if n == 1 else (),
    )


def watch(store: Store, n: int) -> None:
    state = remember(store, VIDEO, Perceived(scene(n)), local_writers(), TOOLS, SETTINGS)
    assert state == ClipState.DONE


def moved(url: str, *revisions: str) -> None:
    """Take the database's tables to these revisions, one after the other."""
    config = Config(str(ROOT / "alembic.ini"))
    for revision in revisions:
        with create_engine(parse_url(url)).begin() as connection:
            config.attributes["connection"] = connection
            command.downgrade(config, revision)


@pytest.fixture
def watched(home: Home, make_database: Callable[[], str]) -> Iterator[Store]:
    """Three clips of four, woven, with people and names."""
    with open_store(home, make_database()) as store:
        known_video(store, 4)
        for n in range(3):
            watch(store, n)
        yield store


def seen(store: Store) -> list[Any]:
    views = [show_video(store, VIDEO, as_of_ms=30_000 * n) for n in range(5)]
    return [(one.clips, one.people, one.segments, one.edges, one.pending) for one in views]


@pytest.mark.parametrize("revision", OLDER)
def test_a_library_of_an_older_revision_is_all_there_after_the_upgrade(
    watched: Store, revision: str
) -> None:
    shown, listed = seen(watched), list_library(watched)
    moved(watched.url, revision)
    assert migrate(watched.url)
    assert seen(watched) == shown
    assert list_library(watched) == listed
    assert not migrate(watched.url)


@pytest.mark.parametrize("revision", sample(BETWEEN[:1], BETWEEN))
def test_the_watching_goes_on_as_if_it_had_never_been_upgraded(
    watched: Store, home: Home, make_database: Callable[[], str], revision: str
) -> None:
    moved(watched.url, revision)
    migrate(watched.url)
    with open_store(home, make_database()) as fresh:
        known_video(fresh, 4)
        for n in range(3):
            watch(fresh, n)
        for store in (watched, fresh):
            watch(store, 3)
            update_event_graph(store, VIDEO, local_writers(), TOOLS, SETTINGS, is_final=True)
            assert check_video(store, VIDEO).findings == ()
        assert seen(watched)[-1] == renumbered(seen(fresh)[-1], seen(watched)[-1])
    assert delete_video_rows(watched, VIDEO) >= 0
    assert list_library(watched) == []


def renumbered(one: Any, other: Any) -> Any:
    """``one`` with the row ids of ``other``: they count what the database has ever held."""
    clips = tuple(
        mine.model_copy(
            update={
                "lines": tuple(
                    line.model_copy(update={"id": known.id})
                    for line, known in zip(mine.lines, theirs.lines, strict=True)
                )
            }
        )
        for mine, theirs in zip(one[0], other[0], strict=True)
    )
    segments = tuple(
        mine.model_copy(update={"id": theirs.id})
        for mine, theirs in zip(one[2], other[2], strict=True)
    )
    ids = {mine.id: theirs.id for mine, theirs in zip(one[2], other[2], strict=True)}
    edges = tuple(
        mine.model_copy(
            update={"id": theirs.id, "source": ids[mine.source], "target": ids[mine.target]}
        )
        for mine, theirs in zip(one[3], other[3], strict=True)
    )
    return (clips, one[1], segments, edges, one[4])


def test_an_older_homer_refuses_a_newer_library_and_names_the_way_out(watched: Store) -> None:
    lines = list(dump_lines(watched, VIDEO))
    with watched.begin() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(DatabaseError, match="9999, which this Homer does not know: a newer Homer"):
        migrate(watched.url)
    with pytest.raises(DatabaseError, match="is at revision 9999"):
        open_store(watched.home, watched.url)
    with watched.begin() as session:
        session.execute(text("UPDATE alembic_version SET version_num = :head"), {"head": HEAD})
    assert list(dump_lines(watched, VIDEO)) == lines
