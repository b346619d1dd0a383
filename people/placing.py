"""Places faces and voices in characters: as statements have it, and as users corrected it.

What was learned is never changed by users, nor are corrections by learning: both are kept, and who
is in which character follows from them. It is written down when either changes, so that searches
read plain rows, a correction holds at every moment of the video whatever is learned later, and
undoing it restores what was learned.

- Every identity begins as a character of its own, with a number that is never reused.
- A face stays there, and a voice moves to the face that it was found to belong to (section 3.2).
- A face or voice that a user assigned to a character stays there, from its first clip on.
- Faces that a user joined count as one where statements assign a voice. A voice and a face that
  users gave different names, or kept apart, are not joined by statements.
- Number n always stands for the character that the n-th identity is in: splitting a character
  restores the numbers of its members.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from sqlalchemy.orm import Session

from domain.media import IdentityKind
from domain.memories import Scope
from domain.people import ACROSS_VIDEOS, Correction, CorrectionKind, Identity, IdentityStatement
from people.characters import ClipPeople, best_character, limit_model_statements
from people.identities import Recognised
from store.queries.characters import (
    GivenNames,
    Membership,
    StatedSupport,
    characters_in_view,
    corrections_of,
    identities_of,
    replace_given_names,
    replace_memberships,
    stated_support,
)
from store.queries.identities import add_statements, identity_rows


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
    identities: Sequence[Identity], stated: Iterable[StatedSupport], truth: InForce
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
