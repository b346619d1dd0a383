"""How ``homer people`` shows the people of the library."""

from __future__ import annotations

from collections.abc import Sequence

from cli.console import note, say, say_json, say_table
from domain.people import Correction, tags_in_words
from people.corrections import KnownPerson
from views.persons_view import CharacterCard, LastSeen, LibraryPeople, LibraryPerson, LikelyCards
from views.words import counted, format_span, plain_line


def show_library(found: LibraryPeople, json: bool) -> None:
    """List persons with their videos and where they were last seen."""
    if json:
        return say_json([_person_data(person) for person in found.persons])
    if not found.persons:
        return note("nobody is known by name yet, or joined across videos")
    say_table(("person", "in", "last seen", "picture"), map(_row, found.persons))
    if found.more:
        note("there are more: --limit lists them")
    return note("who may be the same person in different videos: homer people alike")


def show_likely(found: Sequence[LikelyCards], json: bool) -> None:
    """List pairs of different videos that may be one person."""
    if json:
        return say_json([pair.found.model_dump(mode="json") for pair in found])
    if not found:
        return note("no likely pairs in different videos")
    heads = ("video", "person", "other video", "person", "alike in", "cosine", "sure")
    say_table(heads, map(_pair_row, found))
    one, other = found[0].one, found[0].other
    pair = f"{one.video} {one.person.number} {other.person.number} --of {other.video}"
    return note(f"join the first pair with: homer people merge {pair}")


def show_joined(made: Sequence[Correction], json: bool) -> None:
    """List the joins that were made."""
    if json:
        return say_json([correction.model_dump(mode="json") for correction in made])
    for correction in made:
        say(plain_line(tags_in_words(correction.told)))
    return note(f"{counted(len(made), 'pair')} joined: homer people undo VIDEO undoes one")


def last_seen_line(last: LastSeen | None) -> str:
    """Return where somebody was last seen: ``0:40-0:44 of talk``."""
    if last is None:
        return ""
    heard = "" if last.seen else " (heard)"
    return plain_line(f"{format_span(last.span)} of {last.title}{heard}")


def _row(person: LibraryPerson) -> tuple[object, ...]:
    cards = person.characters
    places = ", ".join(plain_line(f"{card.title} ({card.person.number})") for card in cards)
    last = person.last
    picture = last.keyframe if last and last.keyframe else ""
    return (_name(person.label), places, last_seen_line(last), picture)


def _pair_row(pair: LikelyCards) -> tuple[object, ...]:
    found = pair.found
    return (
        *(*_side(pair.one), *_side(pair.other)),
        *(found.kind, f"{found.cosine:.2f}", "yes" if found.sure else ""),
    )


def _side(card: CharacterCard) -> tuple[str, str]:
    return plain_line(card.title), f"{_who(card.person)}"


def _who(person: KnownPerson) -> str:
    name = _name(person.label)
    number = f"person {person.number}"
    return name if name == number.capitalize() else f"{name} ({number})"


def _name(label: str) -> str:
    return plain_line(tags_in_words(label))


def _person_data(person: LibraryPerson) -> dict[str, object]:
    last = person.last
    return person.model_dump(mode="json") | {
        "last": last.model_dump(mode="json") if last is not None else None
    }
