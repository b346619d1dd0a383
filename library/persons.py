"""Reads people in full: when they appear, names, pictures, and with whom they may be one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from domain.media import IdentityKind
from domain.memories import Scope
from domain.people import (
    CharacterRef,
    LastSeen,
    LibraryPerson,
    LikelySame,
    MaybeSame,
    PersonOfVideo,
)
from domain.time import TimeSpan, merge_close_spans
from people.across_videos import Persons, person_links
from people.characters import MODEL_SUPPORT, in_force
from people.corrections import LAST_CLIP, VideoPeople, find_person, people_of_video
from people.likely_same import (
    LikelyRefs,
    likely_in_other_videos,
    similar_people,
    thresholds_of,
)
from store.queries.characters import (
    CharacterAt,
    appearances_of,
    claims_of,
    corrections_of,
    people_in_view,
)
from store.queries.identities import (
    appearance_spans,
    best_crops,
    centres_of,
    last_appearances,
    seen_together,
)
from store.queries.keyframes import frames_of
from store.queries.outline import began_times
from store.queries.people_in_view import models_of_videos

LikelyPeople = LikelySame[PersonOfVideo]

GAP_MS = 5_000
"""Appearances closer than this many milliseconds are shown as one."""
SLOTS = 400
"""The most appearances shown over a video's length: more could not be told apart."""
LOOKED_AT = 200
"""The most pairs of a video that are checked, the most similar first, until enough are found."""
BATCH = 100
"""Videos whose people are read at a time, the newest first."""


def in_full(
    session: Session, people: VideoPeople, chosen: Sequence[CharacterAt]
) -> list[PersonOfVideo]:
    """Return some of a video's people in their order, as known after the clip of ``people``."""
    video, last_clip = people.video, people.last_clip
    rows = [row for one in chosen for row in one.members]
    times = appearances_of(session, video.id, rows, last_clip)
    # Of a long video more would be read than a timeline can show.
    gap_ms = max(GAP_MS, video.duration_ms // SLOTS)
    spans = appearance_spans(session, video.id, rows, gap_ms, last_clip)
    crops, maybe = best_crops(session, rows, last_clip), _stated_to_be_one(session, people)
    last = last_appearances(session, rows, last_clip)
    frames = frames_of(session, video.id, sorted({clip for clip, _, _ in last.values()}))
    began = began_times(session, [video.id])[video.id]

    def last_seen(one: CharacterAt) -> LastSeen | None:
        of_them = [last[row] for row in one.members if row in last]
        if not of_them:
            return None
        # Where they were seen last, else heard: of a sighting there is a picture.
        clip, span, seen = max(of_them, key=lambda at: (at[2], at[1].end_ms))
        near = [frame for frame in frames if frame.clip == clip]
        frame = min(near, key=lambda it: abs(it.time_ms - span.end_ms), default=None)
        return LastSeen(
            video=video.id,
            title=video.title,
            span=span,
            at=began.moment(span.end_ms),
            seen=seen,
            keyframe=None if frame is None else f"k{frame.id}",
        )

    def when(one: CharacterAt, kind: IdentityKind) -> tuple[TimeSpan, ...]:
        of_kind = _rows_by_tag(one, kind).values()
        shown = (span for row in of_kind for span in spans.get(row, ()))
        return tuple(merge_close_spans(shown, gap_ms))

    def counted(one: CharacterAt, kind: IdentityKind) -> int:
        return sum(times[row][0] for row in _rows_by_tag(one, kind).values() if row in times)

    def whole(one: CharacterAt) -> TimeSpan | None:
        known = [times[row] for row in one.members if row in times]
        if not known:
            return None
        return TimeSpan.of(min(at.start_ms for _, at in known), max(at.end_ms for _, at in known))

    return [
        PersonOfVideo(
            video=video.id,
            title=video.title,
            number=one.character.number,
            label=one.character.label,
            names=one.names,
            tags=one.tags,
            seen=counted(one, IdentityKind.FACE),
            heard=counted(one, IdentityKind.VOICE),
            span=whole(one),
            maybe=tuple(maybe.get(one.character.number, ())),
            last_seen=last_seen(one),
            seen_spans=when(one, IdentityKind.FACE),
            heard_spans=when(one, IdentityKind.VOICE),
            crops={tag: crops[row] for tag, row in _rows_by_tag(one).items() if row in crops},
        )
        for one in chosen
    ]


def _rows_by_tag(one: CharacterAt, kind: IdentityKind | None = None) -> dict[str, int]:
    """Return the rows of a character's faces and voices, or of one kind of them, by tag."""
    every = zip(one.tags, one.members, strict=True)
    return {tag: row for tag, row in every if kind is None or tag.startswith(f"<{kind}_")}


def _stated_to_be_one(session: Session, people: VideoPeople) -> Mapping[int, Sequence[MaybeSame]]:
    """Return who was stated to be whom with too little support to join them, by number."""
    owners = {row: person for person in people.characters for row in person.members}
    tag_of = {row: tag for one in people.characters for tag, row in _rows_by_tag(one).items()}
    truth = in_force(corrections_of(session, people.video.id))
    maybe: dict[int, list[MaybeSame]] = {}
    for claim in claims_of(session, people.video.id, people.last_clip):
        face, voice = owners.get(claim.face), owners.get(claim.voice)
        if claim.support < MODEL_SUPPORT or face is None or voice is None or face is voice:
            continue
        if truth.are_distinct(face.tags, voice.tags):
            continue
        tags = (tag_of[claim.face], tag_of[claim.voice])
        for person, other in ((face, voice), (voice, face)):
            same = MaybeSame(number=other.character.number, tags=tags, reason=claim.reason)
            maybe.setdefault(person.character.number, []).append(same)
    return maybe


def by_ref(session: Session, refs: Iterable[CharacterRef]) -> dict[CharacterRef, PersonOfVideo]:
    """Return characters of any videos in full; each video is read once."""
    by_video: dict[str, list[CharacterRef]] = {}
    for ref in dict.fromkeys(refs):
        by_video.setdefault(ref.video, []).append(ref)
    found: dict[CharacterRef, PersonOfVideo] = {}
    for video, of_video in by_video.items():
        people = people_of_video(session, video)
        chosen = [find_person(people, str(ref.number)) for ref in of_video]
        found |= zip(of_video, in_full(session, people, chosen), strict=True)
    return found


def persons_in_full(session: Session, persons: Sequence[Persons]) -> list[LibraryPerson]:
    """Return persons with all their characters, those last seen first."""
    every = by_ref(session, [ref for person in persons for ref in person])

    def recency(one: PersonOfVideo) -> tuple[bool, float]:
        last = one.last_seen
        return last is not None, last.at.timestamp() if last else 0.0

    shown = []
    for person in persons:
        characters = sorted((every[ref] for ref in person), key=recency, reverse=True)
        names = [name for one in characters for name in one.names]
        # A person is called by the name that a user gave, else by a learned one, else as the first
        # is.
        given = [name for name in names if name.source == "person"]
        labels = [name.name for name in (*given, *names)]
        last = [one.last_seen for one in characters if one.last_seen]
        shown.append(
            LibraryPerson(
                label=labels[0] if labels else characters[0].label,
                characters=tuple(characters),
                last_seen=max(last, key=lambda one: (one.seen, one.at), default=None),
            )
        )
    return shown


def persons_of_library(session: Session, videos: Sequence[str]) -> Iterator[Persons]:
    """Yield persons of several characters, then single named ones; both by the order of videos."""
    links = person_links(session)
    order = {video: place for place, video in enumerate(videos)}
    joined = links.joined_persons()
    yield from sorted(joined, key=lambda one: min((order[ref.video], ref.number) for ref in one))
    in_several = frozenset[CharacterRef]().union(*joined)
    for start in range(0, len(videos), BATCH):
        scopes = [Scope(video=one, last_clip=LAST_CLIP) for one in videos[start : start + BATCH]]
        for video, characters in people_in_view(session, scopes).items():
            for one in characters:
                ref = CharacterRef(video=video, number=one.number)
                if one.name and ref not in in_several:
                    yield frozenset({ref})


def likely_across(session: Session, videos: Iterable[str], limit: int) -> list[LikelyPeople]:
    """Return pairs of these videos in turn with any others, until there are ``limit``."""
    found: dict[frozenset[CharacterRef], LikelyRefs] = {}
    for video in videos:
        # Of two of these videos, a pair is found from either side.
        for pair in likely_in_other_videos(session, video):
            found.setdefault(frozenset((pair.one, pair.other)), pair)
        # Videos that are left are not compared: the newest come first.
        if len(found) >= limit:
            break
    pairs = sorted(found.values(), key=lambda pair: (not pair.sure, -pair.cosine))[:limit]
    people = by_ref(session, [ref for pair in pairs for ref in (pair.one, pair.other)])
    return [
        LikelyPeople(
            one=people[pair.one],
            other=people[pair.other],
            kind=pair.kind,
            cosine=pair.cosine,
            sure=pair.sure,
        )
        for pair in pairs
    ]


def likely_within(session: Session, video: str, limit: int) -> list[LikelyPeople]:
    """Return pairs of one video, most alike first: never in one frame, nor said to be two."""
    people = people_of_video(session, video)
    by_number = {one.character.number: one for one in people.characters}
    centres = centres_of(session, [row for one in people.characters for row in one.members])
    looks: dict[int, dict[IdentityKind, list[NDArray[np.float32]]]] = {}
    for number, one in by_number.items():
        looks[number] = {}
        # Each identity counts as often as it has exemplars.
        for kind, _, vector in (centres[row] for row in one.members if row in centres):
            looks[number].setdefault(kind, []).append(vector)
    truth = in_force(corrections_of(session, people.video.id))
    thresholds = thresholds_of(models_of_videos(session, [people.video.id])[people.video.id])
    # Pairs that were said to be two are passed over: they do not count.
    most = LOOKED_AT + sum(map(len, truth.distinct.values()))
    undecided = (
        pair
        for pair in similar_people(looks, thresholds, most)
        if not truth.are_distinct(by_number[pair.one].tags, by_number[pair.other].tags)
    )
    candidates, pairs = list(islice(undecided, LOOKED_AT)), list[LikelySame[int]]()
    # In batches: who was in one frame is a query of its own, and few pairs were.
    for start in range(0, len(candidates), 2 * limit):
        batch = candidates[start : start + 2 * limit]
        members = [(by_number[pair.one].members, by_number[pair.other].members) for pair in batch]
        together = seen_together(session, members)
        apart = [pair for pair, met in zip(batch, together, strict=True) if not met]
        pairs += apart[: limit - len(pairs)]
        if len(pairs) == limit:
            break
    numbers = dict.fromkeys(number for pair in pairs for number in (pair.one, pair.other))
    shown = in_full(session, people, [by_number[number] for number in numbers])
    full = dict(zip(numbers, shown, strict=True))
    return [
        LikelyPeople(one=full[pair.one], other=full[pair.other], kind=pair.kind, cosine=pair.cosine)
        for pair in pairs
    ]
