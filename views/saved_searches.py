"""Searches of the library that are saved under a name."""

from __future__ import annotations

from domain.base import Frozen
from domain.errors import InputError
from domain.texts import make_storable
from store.database import Store
from store.queries import library as stored
from views.library_search import LibraryQuery
from views.translation import translate
from views.words import plain_line

MAX_SAVED = 50
"""Searches that are saved, at most."""


class SavedSearch(Frozen):
    """A search and its name."""

    name: str
    query: LibraryQuery


def list_searches(store: Store) -> list[SavedSearch]:
    """Return the saved searches by name."""
    with store.begin() as session:
        rows = stored.list_searches(session)
    return [SavedSearch(name=name, query=LibraryQuery.model_validate(it)) for name, it in rows]


def save_search(store: Store, name: str, query: LibraryQuery) -> None:
    """Save a search; one of the same name is replaced.

    Raises:
        InputError: there is no name, or there are ``MAX_SAVED`` others.
    """
    wanted = plain_line(make_storable(name))
    if not wanted:
        raise InputError(translate("write a name for the search"))
    with store.begin() as session:
        others = {saved for saved, _ in stored.list_searches(session)} - {wanted}
        if len(others) >= MAX_SAVED:
            raise InputError(
                translate("there are {count} saved searches: delete one first").format(
                    count=MAX_SAVED
                )
            )
        stored.put_search(session, wanted, query.model_dump(mode="json"))


def delete_search(store: Store, name: str) -> None:
    """Delete a saved search, if there is one of that name."""
    with store.begin() as session:
        stored.delete_search(session, name)
