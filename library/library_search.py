"""The search of a whole library: lines with the words and lines close in meaning, with filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from pydantic import Field
from sqlalchemy.orm import Session

from domain.base import Frozen
from domain.errors import InputError
from domain.memories import Memory, MemorySource, Scope
from domain.people import Character, tags_in_words
from domain.time import TimeSpan
from domain.words import make_storable, marked, plain_line, translate
from library.transcript import (
    GROUP_OF,
    GROUPS,
    SEEN,
    TranscriptLine,
    shown_lines,
    sources_of,
    split_names,
)
from models.ports import ImageEncoder, TextEmbedder
from people.characters import ClipPeople
from retrieval.preparation import close_pictures
from retrieval.relevance import close_lines, embed_words
from retrieval.terms import plain_words
from store.database import Store
from store.queries import library as stored
from store.queries.characters import people_in_view
from store.queries.clips import memory_view
from store.queries.keyframes import AlikeKeyframe
from store.queries.library import (
    Tags,
    frames_of_lines,
    library_lines,
    lines_in_library,
)
from store.queries.people_in_view import videos_naming
from store.queries.videos import newest_titles

MAX_WITH_WORDS, MAX_CLOSE = 24, 12
"""Results that are shown: with the words, and close in meaning."""
MAX_CANDIDATES = 200
"""Close lines among which those that pass the filters are found."""
MAX_CHIPS = 8
"""Videos and people that a search is narrowed to by a press."""
MAX_SAVED = 50
"""Searches that are saved, at most."""


class Added(StrEnum):
    """When videos were added."""

    EVER = marked("Any time")
    DAY = marked("Last 24 hours")
    WEEK = marked("Last 7 days")
    MONTH = marked("Last 30 days")

    def since(self, now: datetime) -> datetime | None:
        """Return the earliest moment; None: there is none."""
        days = {Added.DAY: 1, Added.WEEK: 7, Added.MONTH: 30}.get(self)
        return None if days is None else now - timedelta(days=days)


class LibraryQuery(Frozen):
    """What is sought: words or a person, of these videos (none: all) and of these groups.

    ``person`` is a name as it is shown.
    """

    words: str = Field(default="", max_length=500)
    videos: tuple[str, ...] = Field(default=(), max_length=50)
    person: str = Field(default="", max_length=200)
    groups: tuple[str, ...] = Field(default=(), max_length=len(GROUPS))
    added: Added = Added.EVER

    @property
    def empty(self) -> bool:
        return not (self.words.strip() or self.person)


class LibraryResult(TranscriptLine):
    """A line that was found, its video, and the SHA-256 of the picture nearest to it."""

    video: str
    title: str
    blob: str | None


class LibraryResults(Frozen):
    """What a search finds: ``total`` lines have the words, or ``more`` than that.

    ``pictures`` show what the words say, by an image-text model. ``videos`` are titles by id,
    ``people`` names, and ``groups`` those of the lines with the words: what the search can be
    narrowed to.
    """

    with_words: tuple[LibraryResult, ...] = ()
    close: tuple[LibraryResult, ...] = ()
    pictures: tuple[LibraryResult, ...] = ()
    total: int = 0
    more: bool = False
    videos: Mapping[str, str] = {}
    people: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


def search_library(
    store: Store,
    text: TextEmbedder,
    query: LibraryQuery,
    now: datetime | None = None,
    images: ImageEncoder | None = None,
) -> LibraryResults:
    """Search all videos, or those that the query names.

    Args:
        text: The text encoder of the library.
        now: The present moment; None: of the clock.
        images: The image-text model of the library, if it has one.
    """
    words, sources = make_storable(query.words).strip(), sources_of(query.groups or GROUPS)
    vector = embed_words(text, words) if words and not query.person else None
    # Pictures are searched by words, and only where what is seen is wanted.
    sought = images if vector is not None and SEEN in (query.groups or GROUPS) else None
    shown = sought.text(words) if sought else None
    with store.begin(snapshot=True) as session:
        since = query.added.since(now or datetime.now(UTC))
        titles = newest_titles(session, since=since, only=query.videos)
        if not titles:
            return LibraryResults()
        scopes = memory_view(session, list(titles)).scopes
        others, person = _split_person(session, scopes, words, query.person)
        lines, matches, by_source, more = lines_in_library(
            session, scopes, others, sources, MAX_WITH_WORDS, person
        )
        close = list[Memory]()
        if vector is not None:
            order = close_lines(session, text, scopes, vector, MAX_CANDIDATES)
            # Lines that have the words are not listed again as close in meaning.
            known = {line.id for line in lines}
            places = {one: place for place, one in enumerate(order) if one not in known}
            near = library_lines(session, places, sources)
            close = sorted(near, key=lambda line: places[line.id])[:MAX_CLOSE]
        pictures = list[AlikeKeyframe]()
        if sought and shown is not None:
            pictures = close_pictures(session, scopes, sought, shown, MAX_CLOSE)
        videos = {line.video for line in [*lines, *close]}
        in_view = people_in_view(session, [one for one in scopes if one.video in videos])
        blobs = frames_of_lines(session, [*lines, *close])
        people = {video: ClipPeople(characters=tuple(found)) for video, found in in_view.items()}
        groups = {GROUP_OF[MemorySource(source)] for source in by_source}
        ranked = sorted(matches, key=lambda video: -matches[video])
        counts = Counter(
            person.name
            for line in [*lines, *close]
            for person in people[line.video].characters
            if person.name
            and any(
                tag in f"{line.text} {line.speaker or ''}" for tag in (*person.tags, person.name)
            )
        )
        return LibraryResults(
            with_words=_results(lines, people, titles, blobs),
            close=_results(close, people, titles, blobs),
            pictures=tuple(
                LibraryResult(
                    id=one.frame.id,
                    span=TimeSpan.of(one.frame.time_ms, one.frame.time_ms),
                    group=SEEN,
                    who="",
                    text=tags_in_words(one.frame.description or ""),
                    video=one.video,
                    title=titles[one.video],
                    blob=one.frame.blob,
                )
                for one in pictures
            ),
            total=sum(matches.values()),
            more=more,
            videos={video: titles[video] for video in ranked[:MAX_CHIPS]},
            people=tuple(sorted(counts, key=lambda name: (-counts[name], name))[:MAX_CHIPS]),
            groups=tuple(group for group in GROUPS if group in groups),
        )


def _split_person(
    session: Session, scopes: Sequence[Scope], words: str, name: str
) -> tuple[str, tuple[str, Tags] | None]:
    """Return the other words, and the person who is sought, with the tags of everybody so called.

    The person is the one of ``name``, else the longest name of anybody among the words; None: no
    name is among them.
    """
    naming = videos_naming(session, scopes, plain_words(name or words))
    people = people_in_view(session, [scope for scope in scopes if scope.video in naming])
    if not name:
        every = (one for of_video in people.values() for one in of_video)
        _, found = split_names(words, ClipPeople(characters=tuple(every)))
        if not found:
            return words, None
        name = found[0][0]
        # Only this name is taken out of the words: others are words of the lines that are sought.
        words, _ = split_names(words, ClipPeople(characters=(Character(number=0, name=name),)))
    called = name.casefold()
    tags = {
        video: [tag for one in known if (one.name or "").casefold() == called for tag in one.tags]
        for video, known in people.items()
    }
    return words, (name, tags)


def _results(
    lines: Sequence[Memory],
    people: Mapping[str, ClipPeople],
    titles: Mapping[str, str],
    blobs: Mapping[int, str],
) -> tuple[LibraryResult, ...]:
    """Return lines as readers see them, with the names of the people of their videos."""
    return tuple(
        LibraryResult(
            **dict(shown), video=line.video, title=titles[line.video], blob=blobs.get(line.id)
        )
        for line in lines
        for shown in shown_lines([line], people[line.video])
    )


def list_searches(store: Store) -> dict[str, LibraryQuery]:
    with store.begin() as session:
        rows = stored.list_searches(session)
    return {name: LibraryQuery.model_validate(query) for name, query in rows}


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
