"""Read models of a video's page: its people, a page at a time."""

from __future__ import annotations

from domain.base import Frozen
from people.corrected import characters_at
from store.database import Store
from store.queries.clips import memory_view
from views.library import ShownPerson, shown_person


class PeoplePage(Frozen):
    """Some people of a video, by number; ``total`` counts all its people."""

    people: tuple[ShownPerson, ...]
    total: int


def load_people_page(
    store: Store, video: str, offset: int = 0, limit: int = 100, as_of_ms: int | None = None
) -> PeoplePage:
    """Return ``limit`` people of a video from the ``offset``-th on; ``as_of_ms`` None: now."""
    with store.begin(snapshot=True) as session:
        last = memory_view(session, [video], as_of_ms).scopes[0].last_clip
        rows = characters_at(session, video, last)
    shown = tuple(shown_person(row) for row in rows[offset : offset + limit])
    return PeoplePage(people=shown, total=len(rows))
