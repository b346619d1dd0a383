"""What sentences name and state."""

from __future__ import annotations

from enum import StrEnum

from domain.base import Frozen


class Triple(Frozen):
    """What a sentence states; the predicate is a verb in base form with its preposition."""

    subject: str
    predicate: str
    object: str

    @property
    def text(self) -> str:
        """As a plain sentence, to be embedded and shown."""
        return f"{self.subject} {self.predicate} {self.object}"


class EntityKind(StrEnum):
    """What an entity is."""

    PERSON = "PERSON"
    GROUP = "GROUP"
    LOCATION = "LOCATION"
    OBJECT = "OBJECT"
    CONCEPT = "CONCEPT"


class NamedEntity(Frozen):
    """An entity of a sentence: people as they are called, else lower case and singular.

    ``quality``: it is what something is like: "white".
    """

    name: str
    kind: EntityKind
    quality: bool = False


class StatedFacts(Frozen):
    """The entities and triples of a text, in order, each once."""

    entities: tuple[NamedEntity, ...] = ()
    triples: tuple[Triple, ...] = ()


class Mention(Frozen):
    """A named entity from a letter of a text on; labels are spaCy's: PERSON, ORG, GPE, DATE, ..."""

    text: str
    label: str
    start: int

    @property
    def end(self) -> int:
        """The letter after it."""
        return self.start + len(self.text)
