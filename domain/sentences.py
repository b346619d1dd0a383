"""Sentences: utterances joined and split at sentence ends with times, and what sentences state."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from unicodedata import east_asian_width

from domain.base import Frozen
from domain.media import SeenObject, Utterance
from domain.time import TimeSpan
from domain.words import plural

LINE_WORDS = 40
"""An utterance with more words is split at its sentence ends."""

LINE_CHARACTERS = 300
"""Longest line that sentences are joined to, in characters."""

# The longest spoken sentences have a few hundred characters. Longer text without a full stop is a
# transcript without punctuation, or made to slow down the parser.
LONGEST_SENTENCE = 2_000
"""Most characters of a sentence; a longer one is split between words."""

_END = re.compile(r"((?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s)|[。！？]++[”’」）]*+)\s*+")
_PART = re.compile(
    rf"\S(?:.{{0,{LONGEST_SENTENCE - 2}}}\S)?(?!\S)|\S{{{LONGEST_SENTENCE}}}", re.DOTALL
)
_LAST = re.compile(r"[.!?…。！？][\"'”’)\]」』]*\s*$")
_ABBREVIATION = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|Sr|Jr|St|vs|etc|e\.g|i\.e|[A-Z])\.\s*$")
_ABBREVIATED = 8
"""Characters to look at to decide whether a full stop ends an abbreviation."""


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text in order; joined they are the text but for white space.

    None is longer than ``LONGEST_SENTENCE``.
    """
    parts, start = [], 0
    for end in _END.finditer(text):
        text_end = end.end(1)
        if not _ABBREVIATION.search(text[max(0, text_end - _ABBREVIATED) : text_end]):
            parts.append(text[start : end.end()])
            start = end.end()
    parts.append(text[start:])
    return [part for sentence in parts for part in _PART.findall(sentence)]


def ends_sentence(text: str) -> bool:
    return bool(_LAST.search(text)) and not _ABBREVIATION.search(text)


def join_sentences(utterances: Iterable[Utterance], max_pause_ms: int) -> list[Utterance]:
    """Join utterances that one sentence of one speaker runs over, in order of time.

    Args:
        utterances: In order of time.
        max_pause_ms: A longer pause, in milliseconds, ends a sentence.
    """
    sentences: list[Utterance] = []
    for utterance in utterances:
        if sentences and continues_sentence(sentences[-1], utterance, max_pause_ms):
            utterance = join_utterances(sentences.pop(), utterance)
        sentences.append(utterance)
    return sentences


def continues_sentence(last: Utterance, utterance: Utterance, max_pause_ms: int) -> bool:
    """Check whether an utterance goes on with a sentence that ``last`` leaves open."""
    # Lines grow only so far, so that speech that was written down without full stops is still
    # split.
    pause_ms = utterance.span.start_ms - last.span.end_ms
    return (
        not ends_sentence(last.text)
        and (utterance.voice, utterance.language) == (last.voice, last.language)
        and utterance.speaker in (None, last.speaker)
        and utterance.span.start_ms >= last.span.start_ms
        and pause_ms <= max_pause_ms
        and len(last.text.split()) + len(utterance.text.split()) <= LINE_WORDS
        and len(last.text) + len(utterance.text) <= LINE_CHARACTERS
    )


def join_utterances(first: Utterance, second: Utterance) -> Utterance:
    """Return two utterances as one; the confidence is the lower one."""
    spaced = not (_is_wide(first.text[-1:]) or _is_wide(second.text[:1]))
    return first.model_copy(
        update={
            "text": f"{first.text}{' ' * spaced}{second.text}",
            "span": first.span.union(second.span),
            "confidence": min(first.confidence, second.confidence),
        }
    )


def _is_wide(character: str) -> bool:
    return bool(character) and east_asian_width(character) in "WF"


def split_utterance(utterance: Utterance) -> list[tuple[str, TimeSpan]]:
    """Split an utterance into lines of ``LINE_WORDS`` words, as far as sentence ends allow."""
    text = utterance.text.strip()
    if len(text.split()) <= LINE_WORDS:
        return [(text, utterance.span)] if text else []
    parts = split_sentences(text)
    lines: list[str] = []
    for part in parts:
        joined = f"{lines[-1]} {part}" if lines else part
        if lines and len(joined.split()) <= LINE_WORDS:
            lines[-1] = joined
        else:
            lines.append(part)
    return list(zip(lines, share_span(utterance.span, [len(line) for line in lines]), strict=True))


def share_span(span: TimeSpan, lengths: list[int]) -> list[TimeSpan]:
    """Divide a span in proportion to lengths of text."""
    # Speech runs evenly enough.
    total, used, spans = sum(lengths), 0, []
    for length in lengths:
        start = span.start_ms + span.length_ms * used // total
        used += length
        spans.append(TimeSpan.of(start, span.start_ms + span.length_ms * used // total))
    return spans


_ONLY_PLURAL = frozenset({"skis", "scissors"})
_WITHOUT_NUMBER = frozenset({"broccoli"})


def describe_counts(counts: Mapping[str, int]) -> str:
    """Describe counted objects in the order given: ``3 people, a laptop, scissors``."""
    described = list[str]()
    for label, count in counts.items():
        if label in _ONLY_PLURAL | _WITHOUT_NUMBER:
            described.append(label)
        elif count == 1:
            described.append(f"an {label}" if label[0] in "aeiou" else f"a {label}")
        else:
            described.append(f"{count} {plural(label)}")
    return ", ".join(described)


def count_objects(objects: Iterable[SeenObject]) -> dict[str, int]:
    """Count the most objects of each kind in view at once: people first, then by number, name."""
    at_once = Counter((item.time_ms, item.label) for item in objects)
    most: dict[str, int] = {}
    for (_, label), count in at_once.items():
        most[label] = max(count, most.get(label, 0))
    order = sorted(most, key=lambda label: (label != "person", -most[label], label))
    return {label: most[label] for label in order}


def describe_picture(
    people: Iterable[str], objects: Iterable[SeenObject], texts: Iterable[str]
) -> str:
    """Describe a picture by who is in view, the objects seen and the lines read; "" for nothing."""
    who, read = ", ".join(people), " / ".join(texts)
    seen = describe_counts(count_objects(objects))
    parts = (("in view", who), ("seen", seen), ("text on screen", read))
    return "; ".join(f"{what}: {text}" for what, text in parts if text)


def describe_by_time(objects: Sequence[SeenObject]) -> list[tuple[int, str]]:
    """Describe the objects in view at each time."""
    times = sorted({item.time_ms for item in objects})
    return [
        (ms, describe_counts(count_objects(item for item in objects if item.time_ms == ms)))
        for ms in times
    ]


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

KIND_WORDS = "|".join(f"{word}|{plural(word)}" for word in KINDS)
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
    word = next(kind for kind in KINDS if match[0].lower() in (kind, plural(kind)))
    return frozenset((word, *KINDS[word]))


def things_on(line: str) -> dict[str, str]:
    """Return the things of a line about objects by label: ``4 cars`` is ``{"car": "4 cars"}``.

    Labels beyond the kinds above stay as the line has them.
    """
    things = (part.strip() for part in line.removeprefix(_SEEN).rstrip(".").split(","))
    names = {thing: _COUNT.sub("", thing) for thing in things if thing}
    return {_LABEL_OF.get(name, name): thing for thing, name in names.items()}


_LABEL_OF = {plural(label): label for labels in KINDS.values() for label in labels} | {
    plural("person"): "person"
}
