"""What sentences name and state."""

from __future__ import annotations

import re
from enum import StrEnum
from types import MappingProxyType

from domain.base import Frozen
from domain.wording import pluralise


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
        return self.start + len(self.text)


# Kinds of things that object detectors name, by the word that people ask for them with.

_ANIMALS = ("bird", "cat", "dog", "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe")
_VEHICLES = ("bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat")
_FRUIT = ("banana", "apple", "orange")
_VEGETABLES = ("broccoli", "carrot")
_FOOD = (*_FRUIT, *_VEGETABLES, "sandwich", "hot dog", "pizza", "donut", "cake")
_FURNITURE = ("chair", "couch", "bed", "dining table", "bench")
_DEVICES = ("tv", "laptop", "mouse", "remote", "keyboard", "cell phone")
_APPLIANCES = ("microwave", "oven", "toaster", "refrigerator")
_DISHES = ("bottle", "wine glass", "cup", "fork", "knife", "spoon", "bowl")
_LUGGAGE = ("backpack", "handbag", "suitcase")

KINDS = MappingProxyType(
    {
        "animal": _ANIMALS,
        "pet": _ANIMALS,
        "vehicle": _VEHICLES,
        "fruit": _FRUIT,
        "vegetable": _VEGETABLES,
        "food": _FOOD,
        "furniture": _FURNITURE,
        "device": _DEVICES,
        "appliance": _APPLIANCES,
        "tableware": _DISHES,
        "dish": _DISHES,
        "luggage": _LUGGAGE,
        "bag": _LUGGAGE,
    }
)
"""The labels of COCO's 80 classes by kind, after its supercategories."""

KIND_WORDS = "|".join(f"{word}|{pluralise(word)}" for word in KINDS)
"""An expression that matches the word of a kind, in the singular or plural."""
_KIND = re.compile(rf"\b(?:{KIND_WORDS})\b", re.IGNORECASE)
_COUNT = re.compile(r"^(?:\d+|an?)\s+")
_SEEN = "Seen: "


def labels_of_kind(question: str) -> frozenset[str]:
    """Return the labels of the first kind of things that a question names; none if it names none.

    A kind's own word is among them: a line may say "an animal".
    """
    match = _KIND.search(question)
    if match is None:
        return frozenset()
    word = next(kind for kind in KINDS if match[0].lower() in (kind, pluralise(kind)))
    return frozenset((word, *KINDS[word]))


def things_on(line: str) -> dict[str, str]:
    """Return the things of a line about objects by label: ``4 cars`` is ``{"car": "4 cars"}``.

    Labels beyond the kinds above stay as the line has them.
    """
    things = (part.strip() for part in line.removeprefix(_SEEN).rstrip(".").split(","))
    names = {thing: _COUNT.sub("", thing) for thing in things if thing}
    return {_LABEL_OF.get(name, name): thing for thing, name in names.items()}


_LABEL_OF = {pluralise(label): label for labels in KINDS.values() for label in labels} | {
    pluralise("person"): "person"
}
