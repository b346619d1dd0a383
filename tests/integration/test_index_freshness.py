"""What is held in memory is read anew after any change, whatever the clocks of machines say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import text, update

from domain.media import ClipState
from people.corrections import rename
from store.database import Store
from store.export import open_export
from store.import_video import import_video
from store.queries.clips import mark_clip
from store.queries.forget import mark_rewritten
from store.queries.stamps import Stamp, stamps
from store.tables.schema import ClipRow
from tests.support.asking import PARTY, remember_party
from tests.support.library import Quiet
from views.library import delete_video_rows, export_to_file


def stamp(store: Store) -> Stamp:
    with store.begin() as session:
        return stamps(session, {PARTY: 5})[PARTY]


@pytest.fixture
def ahead(store: Store) -> Store:
    """The party, watched on a machine whose clock is a year ahead."""
    remember_party(store)
    with store.begin() as session:
        session.execute(update(ClipRow).values(updated_at=text("now() + interval '1 year'")))
    return store


def deleted_of(store: Store) -> None:
    with store.begin() as session:
        mark_rewritten(session, PARTY)


def late_clip(store: Store) -> None:
    with store.begin() as session:
        mark_clip(session, PARTY, 2, ClipState.DONE)


def test_nothing_changes_where_nothing_is_done(ahead: Store) -> None:
    assert stamp(ahead) == stamp(ahead)


def test_what_deletes_changes_all_keys_though_clips_are_from_the_future(ahead: Store) -> None:
    seen = [stamp(ahead)]
    for _ in range(2):
        deleted_of(ahead)
        seen.append(stamp(ahead))
    for key in ("lines", "events", "people"):
        assert len({getattr(one, key) for one in seen}) == 3, key


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        (late_clip, {"lines", "people"}),
        (lambda store: rename(store, PARTY, "1", "Anna"), {"people"}),
    ],
)
def test_what_is_changed_later_changes_its_keys(
    ahead: Store, change: Callable[[Store], object], keys: set[str]
) -> None:
    with ahead.begin() as session:
        mark_clip(session, PARTY, 2, ClipState.FAILED, "away")
        session.execute(update(ClipRow).values(updated_at=text("now() + interval '1 year'")))
    before = stamp(ahead)
    change(ahead)
    after = stamp(ahead)
    assert {
        k for k in ("lines", "events", "people") if getattr(before, k) != getattr(after, k)
    } == (keys)


def test_a_video_that_comes_back_is_another_one(ahead: Store) -> None:
    before, out = stamp(ahead), ahead.home.root / "party.zip"
    export_to_file(ahead, PARTY, out)
    delete_video_rows(ahead, PARTY)
    with open_export(out) as parcel:
        import_video(ahead, parcel, parcel.contents(), Quiet())
    assert stamp(ahead).added == before.added
    assert stamp(ahead).lines != before.lines
    assert stamp(ahead).events != before.events
