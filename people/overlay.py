"""Applies users' corrections to the learned characters; pure.

Learned rows are never changed by users, and corrections never by learning. So a correction holds
at every moment of the video whatever is learned later, and undoing it restores what was learned.

- A face or voice that a user assigned to a character stays there.
- All else is as learned: a voice follows the face that it was found to belong to, and faces that
  a user joined count as one where statements assign a voice.
- A voice and a face that users gave different names, or kept apart, are not joined by statements.
- Number n always stands for the character that the n-th identity is in. So numbers are never
  reused, and splitting a character restores the numbers of its members.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby

from sqlalchemy.orm import Session

from domain.media import IdentityKind
from domain.memories import Scope
from domain.people import ACROSS_VIDEOS, Character, Correction, CorrectionKind, Identity
from people.characters import ClipPeople, best_character
from people.identities import Recognised
from store.queries import characters as stored
from store.queries.characters import CharacterAt, Name, preferred_name
from store.queries.corrections import (
    LearnedName,
    Origin,
    StatedSupport,
    corrected_videos,
    corrections_of,
    learned_names,
    origins_of,
    statements_until,
)
from store.queries.identities import IdentitySupport

USER_SOURCE = "person"
"""Source of the names that users give."""


@dataclass
class Overlay:
    """All corrections in force, the latest on each subject.

    Attributes:
        placements: The number of the character that each tag was assigned to.
        names: The names of each character, by number, the preferred name first.
        nameless: Tags whose learned names are ignored.
        distinct: For each tag, the tags that belong to other people.
    """

    placements: dict[str, int] = field(default_factory=dict)
    names: dict[int, tuple[str, ...]] = field(default_factory=dict)
    nameless: set[str] = field(default_factory=set)
    distinct: dict[str, set[str]] = field(default_factory=dict)


def overlay_of(corrections: Iterable[Correction]) -> Overlay | None:
    """Combine the corrections in force, in order; None where there are none.

    Those about characters of different videos change nothing within a video.
    """
    active = [c for c in corrections if not c.undone and c.kind not in ACROSS_VIDEOS]
    overlay = Overlay()
    for correction in sorted(active, key=lambda item: item.number):
        if correction.kind is CorrectionKind.APART:
            _add_distinct(overlay, correction)
            continue
        for number in correction.numbers:
            overlay.names.pop(number, None)
        for outcome in correction.outcomes:
            overlay.placements |= dict.fromkeys(outcome.members, outcome.number)
            overlay.nameless |= set(outcome.nameless)
            if outcome.names:
                overlay.names[outcome.number] = outcome.names
    return overlay if active else None


def _add_distinct(overlay: Overlay, correction: Correction) -> None:
    for outcome in correction.outcomes:
        for tag in outcome.members:
            overlay.distinct.setdefault(tag, set()).update(outcome.others)


def are_distinct(overlay: Overlay, tags: Iterable[str], other_tags: Iterable[str]) -> bool:
    """Tell whether users kept the people with these tags apart."""
    others = set(other_tags)
    return any(not others.isdisjoint(overlay.distinct.get(tag, ())) for tag in tags)


@dataclass(frozen=True)
class LearnedPeople:
    """The characters, names and statements of a video as of a clip, without corrections."""

    characters: Sequence[CharacterAt]
    origins: Mapping[int, Origin]
    names: Sequence[LearnedName]
    stated: Sequence[StatedSupport]

    @cached_property
    def anchors(self) -> dict[int, int]:
        """Map each identity to the face of its character, else to the character's first voice."""
        return {
            row: self._anchor(character)
            for character in self.characters
            for row in character.members
        }

    def _anchor(self, character: CharacterAt) -> int:
        faces = (row for row in character.members if self.origins[row].kind == IdentityKind.FACE)
        return next(faces, character.members[0])

    def tag(self, identity: int) -> str:
        """Return the tag of an identity."""
        return self.origins[identity].tag


def apply_overlay(learned: LearnedPeople, overlay: Overlay) -> list[CharacterAt]:
    """Return the characters with the corrections applied, by number."""
    view = _OverlaidPeople(learned, overlay)
    learned_by_number = {character.character.number: character for character in learned.characters}
    corrected = [
        _unchanged(view, learned_by_number.get(number), members) or view.character(number, members)
        for number, members in sorted(view.groups.items())
    ]
    names = {character.character.name for character in corrected}
    return [_without_names_as_aliases(character, names) for character in corrected]


def _unchanged(
    view: _OverlaidPeople, learned: CharacterAt | None, members: Sequence[int]
) -> CharacterAt | None:
    if learned is None or set(learned.members) != set(members):
        return None
    named = learned.character.number in view.user_names or any(map(view.has_no_name, members))
    return None if named else learned


def _without_names_as_aliases(state: CharacterAt, names: set[str | None]) -> CharacterAt:
    aliases = tuple(name for name in state.character.aliases if name not in names)
    if aliases == state.character.aliases:
        return state
    character = state.character.model_copy(update={"aliases": aliases})
    return replace(state, character=character)


class _OverlaidPeople:
    """The learned people with the corrections applied."""

    def __init__(self, learned: LearnedPeople, overlay: Overlay) -> None:
        self._learned, self._overlay = learned, overlay
        self.numbers = self._assigned_numbers()
        groups: dict[int, list[int]] = {}
        for row in sorted(self.numbers, key=lambda r: self._learned.origins[r][1:3]):
            groups.setdefault(self.numbers[row], []).append(row)
        self.groups = groups
        # Each character's names from users, including those of joined characters.
        originals = {
            self._learned.origins[row].began: current for row, current in self.numbers.items()
        }
        user_names: dict[int, tuple[str, ...]] = {}
        targets = {n: n if n in self.groups else originals.get(n, n) for n in self._overlay.names}
        for number, target in sorted(
            targets.items(), key=lambda item: (item[0] != item[1], item[0])
        ):
            user_names[target] = _unique_texts(
                [*user_names.get(target, ()), *self._overlay.names[number]]
            )
        self.user_names = user_names

    def _assigned_numbers(self) -> dict[int, int]:
        placements = {}
        for character in self._learned.characters:
            for row in character.members:
                anchor = self._placement(self._learned.anchors[row], character.character.number)
                placements[row] = self._placement(row, anchor)
        return placements | {
            voice: self._character_of_voice(voice, placements) for voice in self._voices_to_place()
        }

    def _placement(self, identity: int, default: int) -> int:
        return self._overlay.placements.get(self._learned.tag(identity), default)

    def _voices_to_place(self) -> list[int]:
        """Return unassigned voices whose character may change due to a correction."""
        voices = {
            stated.voice
            for stated in self._learned.stated
            if self._learned.tag(stated.face) in self._overlay.placements
            or self._learned.origins[stated.voice].began in self._overlay.names
            or self._learned.tag(stated.voice) in self._overlay.distinct
        }
        return [
            row for row in sorted(voices) if self._learned.tag(row) not in self._overlay.placements
        ]

    def _character_of_voice(self, voice: int, numbers: Mapping[int, int]) -> int:
        """Return a voice's character by its statements, replayed with the corrections applied."""
        current = original = self._learned.origins[voice].began
        totals: dict[int, IdentitySupport] = {}
        own_support = (item for item in self._learned.stated if item.voice == voice)
        for _, stated in groupby(own_support, key=lambda item: item.clip):
            for item in stated:
                earlier = totals[item.face].total if item.face in totals else 0.0
                total = earlier + item.support
                totals[item.face] = IdentitySupport(item.face, voice, item.face_number, total, 1)
            best = best_character(list(totals.values()), numbers)
            if best is not None and not self._conflict(original, best, voice, numbers):
                current = best
        return current

    def _conflict(self, first: int, second: int, voice: int, numbers: Mapping[int, int]) -> bool:
        """Tell whether users gave two characters different names, or kept the voice apart."""
        names = [{n.casefold() for n in self._overlay.names.get(c, ())} for c in (first, second)]
        if all(names) and not names[0] & names[1]:
            return True
        tags = [self._learned.tag(row) for row, number in numbers.items() if number == second]
        return are_distinct(self._overlay, [self._learned.tag(voice)], tags)

    def has_no_name(self, identity: int) -> bool:
        """Tell whether learned names of an identity, or of the face it follows, are ignored."""
        tag, anchor = self._learned.tag(identity), self._learned.anchors[identity]
        follows = (
            tag not in self._overlay.placements and self.numbers[anchor] == self.numbers[identity]
        )
        named = {tag, self._learned.tag(anchor)} if follows else {tag}
        return not named.isdisjoint(self._overlay.nameless)

    def character(self, number: int, members: Sequence[int]) -> CharacterAt:
        """Build the character of a number from its members."""
        origins = [self._learned.origins[row] for row in members]
        first = min(origin.first_clip for origin in origins)
        user_names = [Name(text, USER_SOURCE, first) for text in self.user_names.get(number, ())]
        learned_names = [one for one in self._learned.names if one.identity in members]
        learned = (name for row, name in learned_names if not self.has_no_name(row))
        known = reversed([*user_names, *learned])
        names = list({name.text.casefold(): name for name in known}.values())[::-1]
        preferred = preferred_name(names)
        hidden = user_names or any(self.has_no_name(row) for row in members)
        former = (
            _unique_texts([name.text for _, name in learned_names if name.text != preferred])
            if hidden
            else ()
        )
        character = Character(
            number=number,
            name=preferred,
            faces=tuple(o.number for o in origins if o.kind == IdentityKind.FACE),
            voices=tuple(o.number for o in origins if o.kind == IdentityKind.VOICE),
            aliases=former,
        )
        return CharacterAt(self._rows[number], character, tuple(members), tuple(names), first)

    @cached_property
    def _rows(self) -> dict[int, int]:
        return {origin.began: origin.character for origin in self._learned.origins.values()}


def _unique_texts(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple({text.casefold(): text for text in reversed([*texts])}.values())[::-1]


# Who is who in a video as of a clip, with what people corrected.
#
# An as-of view never shows what was watched later. Corrections are an exception: they state facts
# that hold throughout the video, so a question as of minute five sees them even if they were made
# at the end.


def characters_at(session: Session, video_id: str, clip: int) -> list[CharacterAt]:
    """Return the characters of a video after ``clip``, by number, with corrections applied."""
    return characters_in_view(session, [Scope(video=video_id, last_clip=clip)])[video_id]


def characters_in_view(
    session: Session, scopes: Sequence[Scope]
) -> Mapping[str, list[CharacterAt]]:
    """Return the characters of each video as of its scope, by number, with corrections applied."""
    characters = stored.characters_in_view(session, scopes)
    corrected = corrected_videos(session, [scope.video for scope in scopes])
    return {
        scope.video: _with_corrections(session, scope, characters[scope.video])
        if scope.video in corrected
        else [_with_joined_numbers(row, row.began) for row in characters[scope.video]]
        for scope in scopes
    }


def _with_corrections(
    session: Session, scope: Scope, characters: list[CharacterAt]
) -> list[CharacterAt]:
    overlay = overlay_of(corrections_of(session, scope.video))
    origins = {origin.identity: origin for origin in origins_of(session, scope.video)}
    if overlay:
        characters = _apply_overlay(
            session, scope.video, scope.last_clip, characters, origins, overlay
        )
    return [
        _with_joined_numbers(state, [origins[row].began for row in state.members])
        for state in characters
    ]


def people_as_of(session: Session, scope: Scope) -> list[Character]:
    """Return the characters of a video as they were known as of ``scope``, by number."""
    return people_in_view(session, [scope])[scope.video]


def people_in_view(session: Session, scopes: Sequence[Scope]) -> dict[str, list[Character]]:
    """Return the characters of each video as they were known as of its scope, by number."""
    characters = characters_in_view(session, scopes)
    return {video: [row.character for row in rows] for video, rows in characters.items()}


def people_of_clip(
    session: Session, video_id: str, recognised: Recognised, clip: int
) -> ClipPeople:
    """Return the people of a clip with the characters known so far, corrections applied."""
    rows = {identity.id for identity in _identities(recognised)}
    overlay = overlay_of(corrections_of(session, video_id))
    if overlay is None:
        return learned_people(session, recognised, clip)
    characters = stored.characters_at(session, video_id, clip)
    origins = {origin.identity: origin for origin in origins_of(session, video_id)}
    corrected = _apply_overlay(session, video_id, clip, characters, origins, overlay)
    return _clip_people(
        recognised, [character for character in corrected if rows.intersection(character.members)]
    )


def learned_people(session: Session, recognised: Recognised, clip: int) -> ClipPeople:
    """Return the people of a clip as they were learned, without corrections."""
    rows = [identity.id for identity in _identities(recognised)]
    return _clip_people(recognised, stored.characters_with(session, rows, clip))


def people_for_writer(
    session: Session, video_id: str, recognised: Recognised, clip: int, learned: int
) -> ClipPeople:
    """Return the people of a clip as known after an earlier clip, corrections applied.

    Args:
        recognised: The clip's identities.
        clip: The clip's index.
        learned: The last clip whose names and statements count. An identity first seen after it is
            a character of its own, as it began.
    """
    rows = [identity.id for identity in _identities(recognised)]
    origins = {origin.identity: origin for origin in origins_of(session, video_id)}
    overlay = overlay_of(corrections_of(session, video_id))
    if overlay is None:
        characters = stored.characters_with(session, rows, learned)
        return _clip_people(
            recognised, _with_new_characters(session, characters, origins, rows, video_id, clip)
        )
    characters = stored.characters_at(session, video_id, learned)
    met_rows = [row for row, origin in origins.items() if origin.first_clip <= clip]
    all_characters = _with_new_characters(session, characters, origins, met_rows, video_id, clip)
    # A name that the source gives is known as soon as its speaker is.
    names = [
        learned_name
        for learned_name in learned_names(session, video_id, clip)
        if learned_name.name.from_clip <= learned or learned_name.name.source == "caption"
    ]
    stated = statements_until(session, video_id, learned)
    corrected = apply_overlay(LearnedPeople(all_characters, origins, names, stated), overlay)
    return _clip_people(
        recognised,
        [character for character in corrected if not set(rows).isdisjoint(character.members)],
    )


def _with_new_characters(
    session: Session,
    characters: list[CharacterAt],
    origins: Mapping[int, Origin],
    rows: Iterable[int],
    video_id: str,
    clip: int,
) -> list[CharacterAt]:
    """Add a character for each of ``rows`` that is in none yet; return all by number."""
    placed = {row for character in characters for row in character.members}
    new = [origins[row] for row in rows if row not in placed]
    if not new:
        return characters
    learned = learned_names(session, video_id, clip)
    named = {
        learned_name.identity: learned_name.name
        for learned_name in learned
        if learned_name.name.source == "caption"
    }
    added = [_first_character(origin, named.get(origin.identity)) for origin in new]
    return sorted([*characters, *added], key=lambda row: row.character.number)


def _first_character(origin: Origin, name: Name | None) -> CharacterAt:
    face = origin.kind == IdentityKind.FACE
    character = Character(
        number=origin.began,
        name=name.text if name else None,
        faces=(origin.number,) if face else (),
        voices=() if face else (origin.number,),
    )
    return CharacterAt(
        origin.character, character, (origin.identity,), (name,) if name else (), origin.first_clip
    )


def _identities(recognised: Recognised) -> list[Identity]:
    return [*recognised.groups.values(), *recognised.speakers.values()]


def _clip_people(recognised: Recognised, rows: Iterable[CharacterAt]) -> ClipPeople:
    return ClipPeople(
        faces=recognised.of_kind(IdentityKind.FACE),
        voices=recognised.of_kind(IdentityKind.VOICE),
        speakers=recognised.speakers,
        characters=tuple(row.character for row in rows),
    )


def _with_joined_numbers(state: CharacterAt, began: Iterable[int]) -> CharacterAt:
    """Add the numbers of characters that were joined to this one: stored lines may use them.

    Args:
        began: The numbers that its members began with.
    """
    joined_numbers = set(began) - {state.character.number}
    if not joined_numbers:
        return state
    character = state.character.model_copy(update={"joined": tuple(sorted(joined_numbers))})
    return replace(state, character=character)


def _apply_overlay(
    session: Session,
    video_id: str,
    clip: int,
    characters: list[CharacterAt],
    origins: Mapping[int, Origin],
    overlay: Overlay,
) -> list[CharacterAt]:
    learned = LearnedPeople(
        characters=characters,
        origins=origins,
        names=learned_names(session, video_id, clip),
        stated=statements_until(session, video_id, clip),
    )
    return apply_overlay(learned, overlay)
