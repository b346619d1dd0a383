"""Joins the identities of one person into a character with a number and names (section 3.2).

What was learned is never changed by users, nor are corrections by learning: both are kept, and who
is in which character follows from them. It is written down when either changes, so that searches
read plain rows, a correction holds at every moment of the video whatever is learned later, and
undoing it restores what was learned. Every change is valid from the clip at which it was learned.

- Every identity begins as a character of its own, with a number that is never reused.
- A face stays there, and a voice moves to the face that it was found to belong to: by accepted
  statements "this face is this voice".
- A face or voice that a user assigned to a character stays there, from its first clip on.
- Faces that a user joined count as one where statements assign a voice. A voice and a face that
  users gave different names, or kept apart, are not joined by statements.
- Number n always stands for the character that the n-th identity is in: splitting a character
  restores the numbers of its members.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby

from sqlalchemy.orm import Session

from domain.media import Group, IdentityKind, Percept
from domain.memories import Scope
from domain.people import (
    ACROSS_VIDEOS,
    TAG,
    Character,
    Correction,
    CorrectionKind,
    Identity,
    IdentityStatement,
    escape_tags,
)
from domain.time import TimeSpan, merge_close_spans
from people.identities import Recognised
from store.queries import characters as stored
from store.queries.characters import (
    GivenNames,
    Membership,
    characters_in_view,
    corrections_of,
    identities_of,
    replace_given_names,
    replace_memberships,
    stated_support,
)
from store.queries.identities import add_statements, identity_rows

# Who is in a clip: the identity of each group, and the characters that they form.

_NOT_AFTER_INTRODUCTION = "".join(
    f"(?<!{phrase} )" for phrase in ("name is", "name['’]s", "I['’]m", "I am", "named")
)
"""Lookbehinds that keep a name as it was said in "my name is Jeff", even where it is replaced."""


@dataclass(frozen=True)
class ClipPeople:
    """The people of one clip.

    Attributes:
        faces: The identity of each face group, by the group's number in the clip.
        voices: The identity of each voice group.
        speakers: The voice of each speaker that the source names.
        characters: The characters these identities belong to, as known before the clip.
    """

    faces: Mapping[int, Identity] = field(default_factory=dict)
    voices: Mapping[int, Identity] = field(default_factory=dict)
    speakers: Mapping[str, Identity] = field(default_factory=dict)
    characters: tuple[Character, ...] = ()

    def identities(self) -> dict[str, Identity]:
        """Return the identities of the clip by tag, faces first, by number."""
        identities = [*self.faces.values(), *self.voices.values(), *self.speakers.values()]
        ordered = sorted(identities, key=lambda identity: (identity.kind, identity.number))
        return {identity.tag: identity for identity in ordered}

    def tags(self) -> frozenset[str]:
        return frozenset(self.identities()) | {character.tag for character in self.characters}

    def members(self, tag: str) -> tuple[Identity, ...]:
        """Return the clip's identities that a tag stands for: one, or all of a character."""
        identities = self.identities()
        if tag in identities:
            return (identities[tag],)
        person = next((character for character in self.characters if character.tag == tag), None)
        if person is None:
            return ()
        tags = [f"<{IdentityKind.FACE}_{n}>" for n in person.faces]
        tags += [f"<{IdentityKind.VOICE}_{n}>" for n in person.voices]
        return tuple(identities[member] for member in tags if member in identities)

    def character(self, tag: str) -> Character | None:
        """Return the character that a tag belongs to; None where there is none."""
        match = TAG.fullmatch(tag)
        if match is None:
            return None
        return self._character_by_tag.get((match[1], int(match[2])))

    @cached_property
    def _character_by_tag(self) -> dict[tuple[str, int], Character]:
        """Map each tag's kind and number to its character; the first where several have it."""
        owned = dict[tuple[str, int], Character]()
        for one in reversed(self.characters):
            owned |= {("character", number): one for number in (one.number, *one.joined)}
            owned |= {(IdentityKind.FACE, number): one for number in one.faces}
            owned |= {(IdentityKind.VOICE, number): one for number in one.voices}
        return owned

    def label(self, tag: str) -> str:
        """Return the known name of the tag's character, else the tag itself.

        A name from the source is replaced by the one that a user gave instead.
        """
        person = self.character(tag)
        if person is None:
            return self.replaced_names.get(tag, tag)
        return person.name or tag

    @cached_property
    def replaced_names(self) -> dict[str, str]:
        """Map each name that a user replaced to the label that replaces it."""
        return {
            alias: character.label for character in self.characters for alias in character.aliases
        }

    def update_names(self, text: str) -> str:
        """Replace tags and former names in a generated text by the current names."""
        return self.display(replace_names(self.replaced_names, text))

    def display(self, text: str) -> str:
        """Replace each tag by its person's name, or by the character's tag without one.

        Stored memories keep the tags of faces and voices (``replace_tags``), since a merge can be
        undone.
        """
        return TAG.sub(self._display_tag, text) if "<" in text else text

    def _display_tag(self, match: re.Match[str]) -> str:
        person = self.character(match[0])
        return match[0] if person is None else person.label

    def replace_tags(self, text: str) -> str:
        """Replace every tag by the name known for it, if any."""
        return TAG.sub(lambda match: self.label(match[0]), text) if "<" in text else text


def people_at(session: Session, video_id: str, clip: int) -> ClipPeople:
    """Return the people of a video as they were known after ``clip``."""
    found = stored.characters_at(session, video_id, clip)
    return ClipPeople(characters=tuple(one.character for one in found))


def replace_names(names: Mapping[str, str], text: str) -> str:
    """Replace whole names, the longest first, except right after words of introduction.

    ``names``: former name -> new name.
    """
    if not names:
        return text
    # A new name may contain the old one: an occurrence of the new one is matched first and kept.
    replacements = {**{new: new for new in names.values()}, **names}
    longest = sorted(replacements, key=len, reverse=True)
    pattern = rf"{_NOT_AFTER_INTRODUCTION}(?<!\w)(?:{'|'.join(map(re.escape, longest))})(?!\w)"
    return re.sub(pattern, lambda match: replacements[match[0]], text)


ACCEPT_SUPPORT = 4.0
"""Support at which a statement is accepted; one second of speech with one face in view is 1."""

MODEL_SUPPORT = 3.0
"""Support of a model's statement for one clip.

It is below ``ACCEPT_SUPPORT``: a statement for a second clip, or a second of speech with only that
face in view, is needed too.
"""

ACCEPT_SHARE = 0.6
"""A voice's best character must have at least this share, in [0, 1], of the voice's support."""


@dataclass(frozen=True)
class NameClaim:
    """A name that a clip states for a tag, with its source (said, read, caption or model)."""

    tag: str
    name: str
    source: str


def name_speakers(session: Session, video_id: str, recognised: Recognised, clip: int) -> None:
    """Name the new voices of speakers that the source names."""
    for name, identity in recognised.new_speakers:
        stored.add_name(session, video_id, identity.id, name, "caption", clip)


def limit_model_statements(statements: Iterable[IdentityStatement]) -> list[IdentityStatement]:
    """Keep one model statement per voice of a clip, with ``MODEL_SUPPORT`` at most.

    Several statements of a model about one voice in one clip are no independent evidence.
    """
    limited: list[IdentityStatement] = []
    model_voices: set[int] = set()
    for statement in statements:
        if not statement.by_model:
            limited.append(statement)
        elif statement.voice not in model_voices:
            model_voices.add(statement.voice)
            limited.append(
                statement.model_copy(update={"support": min(statement.support, MODEL_SUPPORT)})
            )
    return limited


def best_character(supports: Mapping[int, float], character_of: Mapping[int, int]) -> int | None:
    """Return the character that one voice belongs to according to the statements.

    Args:
        supports: All support for the voice by face, in the order of the faces' numbers.
        character_of: The character of each face.

    Returns:
        The character with the most support, on a tie that of the lowest face number; None while its
        support is below ``ACCEPT_SUPPORT`` or its share below ``ACCEPT_SHARE``.
    """
    totals: dict[int, float] = {}
    for face, support in supports.items():
        character = character_of[face]
        totals[character] = totals.get(character, 0.0) + support
    best = max(totals, key=lambda character: totals[character], default=None)
    if best is None or totals[best] < ACCEPT_SUPPORT:
        return None
    return best if totals[best] >= ACCEPT_SHARE * sum(totals.values()) else None


def name_characters(
    session: Session, video_id: str, claims: Iterable[NameClaim], people: ClipPeople, clip: int
) -> None:
    """Name characters; a name that a character already has is not added again."""
    for claim in claims:
        rows = [identity.id for identity in people.members(claim.tag)]
        for character in stored.learned_with(session, video_id, rows, clip):
            existing_names = {name.name.casefold() for name in character.names}
            name = escape_tags(claim.name)
            if name.casefold() not in existing_names:
                row = next(row for row in rows if row in character.members)
                stored.add_name(session, video_id, row, name, claim.source, clip)


def source_of_name(tag: str, writer_source: str) -> str:
    """Return a name's source: the writer's, else read for a face and said for a voice."""
    if writer_source:
        return writer_source
    match = TAG.fullmatch(tag)
    return "read" if match and match[1] == IdentityKind.FACE else "said"


def identities_of_tags(people: ClipPeople, tags: Iterable[str]) -> list[Identity]:
    """Return the identities of the clip that these tags stand for, without repeats."""
    identities = [identity for tag in tags for identity in people.members(tag)]
    return list({identity.id: identity for identity in identities}.values())


# Finds evidence within one clip that a face and a voice are one person; pure.


VISIBLE_GAP_MS = 1_000
"""A face seen twice within this time counts as visible in between."""

MIN_SPEECH_MS = 1_000
"""Shorter speech with one face in view is no evidence."""


def visible_spans(group: Group) -> list[TimeSpan]:
    """Return the spans in which a group is visible (or audible), in order."""
    return merge_close_spans((sighting.span for sighting in group.sightings), VISIBLE_GAP_MS)


def spans_alone(groups: Sequence[Group]) -> dict[int, list[TimeSpan]]:
    """Return the spans in which each group is the only one visible, by the group's number."""
    visible_by_group = {group.number: visible_spans(group) for group in groups}
    alone = {}
    for number, spans in visible_by_group.items():
        left = list(spans)
        for cut in (s for n, others in visible_by_group.items() if n != number for s in others):
            left = [piece for span in left for piece in _subtract_one(span, cut)]
        alone[number] = left
    return alone


def _subtract_one(span: TimeSpan, cut: TimeSpan) -> list[TimeSpan]:
    if cut.end_ms < span.start_ms or cut.start_ms > span.end_ms:
        return [span]
    edges = [(span.start_ms, cut.start_ms), (cut.end_ms, span.end_ms)]
    return [TimeSpan.of(start, end) for start, end in edges if end > start]


def speaking_alone(percept: Percept) -> list[tuple[int, int, float]]:
    """Return (face, voice, seconds): how long a voice is heard with only that face visible.

    Faces and voices are given by the numbers of their groups.

    Overlapping speech counts for no voice.
    """
    faces, voices = spans_alone(percept.faces), spans_alone(percept.voices)
    pairs = []
    for face, face_spans in sorted(faces.items()):
        for voice, voice_spans in sorted(voices.items()):
            shared = sum(a.overlap_ms(b) for a in face_spans for b in voice_spans)
            if shared >= MIN_SPEECH_MS:
                pairs.append((face, voice, shared / 1000))
    return pairs


@dataclass
class InForce:
    """All corrections in force within a video, the latest on each subject.

    Attributes:
        placements: The number of the character that each tag was assigned to.
        names: The names that users gave, by number.
        nameless: Tags whose learned names are ignored.
        distinct: For each tag, the tags that belong to other people.
    """

    placements: dict[str, int] = field(default_factory=dict)
    names: dict[int, GivenNames] = field(default_factory=dict)
    nameless: set[str] = field(default_factory=set)
    distinct: dict[str, set[str]] = field(default_factory=dict)

    def are_distinct(self, tags: Iterable[str], other_tags: Iterable[str]) -> bool:
        """Tell whether users kept the people with these tags apart."""
        others = set(other_tags)
        return any(not others.isdisjoint(self.distinct.get(tag, ())) for tag in tags)

    def allow(self, voice: Identity, number: int, fixed: Mapping[str, int]) -> bool:
        """Tell whether statements may join a voice to a character.

        They may not where users gave the two different names, or kept the voice apart from one of
        the ``fixed``: the number of each tag that statements do not move.
        """
        given = (self.names.get(n) for n in (voice.character, number))
        names = [{name.casefold() for name in one.names} if one else set() for one in given]
        if all(names) and names[0].isdisjoint(names[1]):
            return False
        return not self.are_distinct([voice.tag], [tag for tag, n in fixed.items() if n == number])


def in_force(corrections: Iterable[Correction]) -> InForce:
    """Combine the corrections of a video; those about several videos change nothing within one."""
    active = [c for c in corrections if not c.undone and c.kind not in ACROSS_VIDEOS]
    combined = InForce()
    for correction in sorted(active, key=lambda item: item.number):
        if correction.kind is CorrectionKind.APART:
            for outcome in correction.outcomes:
                for tag in outcome.members:
                    combined.distinct.setdefault(tag, set()).update(outcome.others)
            continue
        for number in correction.numbers:
            combined.names.pop(number, None)
        for outcome in correction.outcomes:
            combined.placements |= dict.fromkeys(outcome.members, outcome.number)
            combined.nameless |= set(outcome.nameless)
            if outcome.names:
                combined.names[outcome.number] = GivenNames(outcome.names, correction.act)
    return combined


def memberships(
    identities: Sequence[Identity], stated: Iterable[IdentityStatement], truth: InForce
) -> list[Membership]:
    """Return who is in which character from which clip on; pure.

    Args:
        identities: The faces and voices, and every face that a statement names.
        stated: The statements, in order of voices and clips.
        truth: The corrections; without any this is what was learned.
    """
    of_voice = {voice: list(rows) for voice, rows in groupby(stated, key=lambda one: one.voice)}
    by_row = {one.id: one for one in identities}
    face_numbers = {
        one.id: truth.placements.get(one.tag, one.character)
        for one in identities
        if one.kind == IdentityKind.FACE
    }
    fixed = truth.placements | {by_row[row].tag: n for row, n in face_numbers.items()}
    found: list[Membership] = []
    for one in identities:
        path = [(one.first_clip, fixed.get(one.tag, one.character))]
        support: dict[int, float] = {}
        moves = () if one.tag in fixed else groupby(of_voice.get(one.id, ()), lambda s: s.clip)
        for clip, rows in moves:
            for row in rows:
                support[row.face] = support.get(row.face, 0.0) + row.support
            by_number = dict(sorted(support.items(), key=lambda item: by_row[item[0]].number))
            best = best_character(by_number, face_numbers)
            if best not in (None, path[-1][1]) and truth.allow(one, best, fixed):
                path.append((clip, best))
        ends = [*(clip for clip, _ in path[1:]), None]
        found += [Membership(one.id, n, at, to) for (at, n), to in zip(path, ends, strict=True)]
    return found


def nameless(identities: Sequence[Identity], now: Iterable[Membership], truth: InForce) -> set[int]:
    """Return the identities (rows) whose learned names are ignored; pure.

    Who has no name gets none from a voice that statements join to their face either.
    """
    last = {one.identity: one.number for one in now}
    told = [one for one in identities if one.tag in truth.nameless]
    of_faces = {last[one.id] for one in told if one.kind == IdentityKind.FACE}
    follow = {one.id for one in identities if one.tag not in truth.placements}
    voices = {one.id for one in identities if one.kind == IdentityKind.VOICE}
    return {one.id for one in told} | {row for row in follow & voices if last[row] in of_faces}


def place_people(session: Session, video_id: str, voices: Collection[int] | None = None) -> None:
    """Write down who is in which character and how users named them, in a transaction.

    Call it when corrections or statements changed; ``voices``: only statements about these did.
    """
    truth = in_force(corrections_of(session, video_id))
    if truth != InForce():
        voices = None  # A correction may concern anybody.
    stated = stated_support(session, video_id, voices)
    rows = None if voices is None else {*voices, *(one.face for one in stated)}
    identities = identities_of(session, video_id, rows)
    learned = memberships(identities, stated, InForce())
    if voices is not None:
        learned = [one for one in learned if one.identity in voices]
        replace_memberships(session, voices, learned, learned)
        return
    now = memberships(identities, stated, truth)
    replace_memberships(session, [one.id for one in identities], learned, now)
    replace_given_names(session, video_id, truth.names, nameless(identities, now, truth))


def join_voices(
    session: Session, video_id: str, statements: Sequence[IdentityStatement], people: ClipPeople
) -> None:
    """Record statements, and move each voice to the character that now has most support.

    A single statement of a language model is recorded, but never suffices to move a voice.
    """
    statements = limit_model_statements(statements)
    ids = {
        (identity.kind, identity.number): identity.id for identity in people.identities().values()
    }
    stated = {(IdentityKind.FACE, statement.face) for statement in statements}
    stated |= {(IdentityKind.VOICE, statement.voice) for statement in statements}
    ids |= identity_rows(session, video_id, stated - ids.keys())
    add_statements(session, video_id, statements, ids)
    place_people(session, video_id, {ids[IdentityKind.VOICE, one.voice] for one in statements})


def people_of_clip(
    session: Session,
    video_id: str,
    recognised: Recognised,
    clip: int,
    *,
    learned: bool = False,
    known: int | None = None,
) -> ClipPeople:
    """Return the people of a clip with the characters known so far.

    Args:
        learned: As they were learned, without corrections.
        known: The last clip whose names and statements count; an identity first seen after it is
            in the character that it began in.
    """
    rows = [one.id for one in (*recognised.groups.values(), *recognised.speakers.values())]
    scopes = [Scope(video=video_id, last_clip=clip if known is None else max(known, -1))]
    found = characters_in_view(session, scopes, learned=learned, of=rows, met=clip)
    return ClipPeople(
        faces=recognised.of_kind(IdentityKind.FACE),
        voices=recognised.of_kind(IdentityKind.VOICE),
        speakers=recognised.speakers,
        characters=tuple(one.character for one in found[video_id]),
    )
