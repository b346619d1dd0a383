"""Read models of the persons of the library: their characters in videos, and likely pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from itertools import islice

from sqlalchemy.orm import Session

from domain.base import Frozen
from domain.memories import Scope
from domain.people import CharacterRef
from domain.time import TimeSpan
from people.across_videos import person_links
from people.corrected import people_in_view
from people.corrections import KnownPerson, known_people
from people.likely_same import likely_in_other_videos
from people.persons import Persons
from people.similar_across import LikelySame
from people.video_people import LAST_CLIP, VideoPeople, find_person, people_of_video
from store.database import Store
from store.queries.characters import CharacterAt
from store.queries.identities import LastAppearance, best_crops, last_appearances
from store.queries.keyframes import frames_of
from store.queries.recaps import began_times
from store.queries.videos import newest_titles

BATCH = 100
"""Videos whose people are read at a time, the newest first."""
MOST_VIDEOS = 30
"""The newest videos whose people are compared with those of all others."""


class LastSeen(Frozen):
    """When a person was last seen, or heard where no face is known.

    ``span`` is in the time of the video, ``at`` the time of day: of a file, when it was added.
    ``keyframe``: how the nearest keyframe of that clip is cited, such as ``k12``.
    """

    video: str
    title: str
    span: TimeSpan
    at: datetime
    seen: bool
    keyframe: str | None = None


class CharacterCard(Frozen):
    """A character of a video; ``crop`` is the SHA-256 of the best crop of the face."""

    video: str
    title: str
    person: KnownPerson
    crop: str | None = None
    last: LastSeen | None = None

    @property
    def ref(self) -> CharacterRef:
        """The character's video and number."""
        return CharacterRef(video=self.video, number=self.person.number)


class LibraryPerson(Frozen):
    """A person of the library: the characters that are joined, those last seen first."""

    label: str
    characters: tuple[CharacterCard, ...]

    @property
    def last(self) -> LastSeen | None:
        """When the person was last seen, or heard if no face is known."""
        appearances = [card.last for card in self.characters if card.last]
        return max(appearances, key=lambda last: (last.seen, last.at), default=None)


class LibraryPeople(Frozen):
    """Some persons of the library; ``more``: there are others after them."""

    persons: tuple[LibraryPerson, ...]
    more: bool


class LikelyCards(Frozen):
    """Two characters of different videos that may be one person."""

    found: LikelySame
    one: CharacterCard
    other: CharacterCard


def load_library_people(store: Store, offset: int = 0, limit: int | None = None) -> LibraryPeople:
    """Return the persons of the library: those of several videos, then others with a name.

    Both begin with those of the newest video.

    Args:
        store: The store.
        offset: The first to return.
        limit: The most to return; None: all.
    """
    with store.begin(snapshot=True) as session:
        titles = newest_titles(session)
        everybody = _persons(session, list(titles))
        last = None if limit is None else offset + limit + 1
        page = list(islice(everybody, offset, last))
        cards = _Cards(session, titles)
        chosen = page if limit is None else page[:limit]
        persons = tuple(cards.person(person) for person in chosen)
    return LibraryPeople(persons=persons, more=len(page) > len(chosen))


def load_person(store: Store, video: str, person: str) -> LibraryPerson:
    """Return the person that a character of a video is.

    Raises:
        NotFound: no such video or person.
        Ambiguous: several go by that name.
    """
    with store.begin(snapshot=True) as session:
        people = people_of_video(session, video)
        number = find_person(people, person).character.number
        ref = CharacterRef(video=people.video.id, number=number)
        return _Cards(session, newest_titles(session)).person(person_links(session).person_of(ref))


def likely_across_videos(
    store: Store, video: str | None = None, limit: int = 10
) -> list[LikelyCards]:
    """Return characters of different videos that may be one person, most alike first.

    Args:
        store: The store.
        video: Id, unambiguous beginning of one, or title of the video of the first of each pair;
            None: the newest videos in turn, up to ``MOST_VIDEOS``, until there are enough pairs.
        limit: The most to return.

    Raises:
        NotFound: no such video.
        Ambiguous: several go by that name.
    """
    with store.begin(snapshot=True) as session:
        titles = newest_titles(session)
        chosen = (
            list(titles)[:MOST_VIDEOS]
            if video is None
            else [people_of_video(session, video).video.id]
        )
        pairs = _likely_of(session, chosen, limit)
        cards = _Cards(session, titles)
        return [
            LikelyCards(found=pair, one=cards.card(pair.one), other=cards.card(pair.other))
            for pair in sorted(pairs, key=lambda pair: (not pair.sure, -pair.cosine))[:limit]
        ]


def _likely_of(session: Session, videos: Iterable[str], limit: int) -> list[LikelySame]:
    """Return the pairs of these videos in turn, until there are ``limit``."""
    found: dict[frozenset[CharacterRef], LikelySame] = {}
    for video in videos:
        # Of two of these videos, a pair is found from either side.
        for pair in likely_in_other_videos(session, video):
            found.setdefault(frozenset((pair.one, pair.other)), pair)
        if len(found) >= limit:
            break
    return list(found.values())


def _persons(session: Session, videos: Sequence[str]) -> Iterator[Persons]:
    """Yield persons of several characters, then single named characters, newest videos first."""
    links = person_links(session)
    order = {video: place for place, video in enumerate(videos)}
    joined = links.joined_persons()
    yield from sorted(joined, key=lambda one: min((order[ref.video], ref.number) for ref in one))
    in_several = frozenset[CharacterRef]().union(*joined)
    for start in range(0, len(videos), BATCH):
        batch = videos[start : start + BATCH]
        scopes = [Scope(video=video, last_clip=LAST_CLIP) for video in batch]
        for video, characters in people_in_view(session, scopes).items():
            for one in characters:
                ref = CharacterRef(video=video, number=one.number)
                if one.name and ref not in in_several:
                    yield frozenset({ref})


class _Cards:
    """Makes the cards of characters; the people of a video are read once."""

    def __init__(self, session: Session, titles: Mapping[str, str]) -> None:
        self._session, self._titles = session, titles
        self._people = cache(partial(people_of_video, session))
        self.card = cache(self._read_card)

    def person(self, characters: Persons) -> LibraryPerson:
        """Return a person with the cards of its characters."""
        cards = sorted(map(self.card, characters), key=_recency, reverse=True)
        return LibraryPerson(label=_label(cards), characters=tuple(cards))

    def _read_card(self, ref: CharacterRef) -> CharacterCard:
        people = self._people(ref.video)
        character = find_person(people, str(ref.number))
        (person,) = known_people(self._session, people, [character])
        crops = best_crops(self._session, character.members)
        return CharacterCard(
            video=ref.video,
            title=self._titles[ref.video],
            person=person,
            crop=next((crops[row] for row in character.members if row in crops), None),
            last=self._last_seen(people, character),
        )

    def _last_seen(self, people: VideoPeople, character: CharacterAt) -> LastSeen | None:
        last = last_appearances(self._session, character.members)
        if not last:
            return None
        latest = max(last.values(), key=lambda one: (one.seen, one.end_ms))
        began = began_times(self._session, [people.video.id])[people.video.id]
        return LastSeen(
            video=people.video.id,
            title=people.video.title,
            span=TimeSpan.of(latest.start_ms, latest.end_ms),
            at=began.moment(latest.end_ms),
            seen=latest.seen,
            keyframe=self._keyframe(people.video.id, latest),
        )

    def _keyframe(self, video: str, last: LastAppearance) -> str | None:
        frames = frames_of(self._session, video, [last.clip])
        nearest = min(frames, key=lambda frame: abs(frame.time_ms - last.end_ms), default=None)
        return f"k{nearest.id}" if nearest else None


def _recency(card: CharacterCard) -> tuple[bool, float]:
    return (card.last is not None, card.last.at.timestamp() if card.last else 0.0)


def _label(cards: Sequence[CharacterCard]) -> str:
    """Return the name that a user gave, else a learned one, else the label of the first."""
    named = [name for card in cards for name in card.person.names]
    given = (name.name for name in named if name.source == "person")
    return next(given, next((name.name for name in named), cards[0].person.label))
